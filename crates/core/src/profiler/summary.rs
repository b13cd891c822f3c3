//! The statistics as text.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;

use crate::profiler::buffer::{BACKWARD, Kind, QUEUED};
use crate::profiler::names;
use crate::profiler::store::{self, Format, Row, SortBy, Stat, SummaryOptions};

/// A row of a table.
struct Entry {
    name: String,
    stat: Stat,
}

impl Entry {
    fn average(&self) -> f64 {
        self.stat.total as f64 / self.stat.count.max(1) as f64
    }

    /// The mean value of a counter. Exact before the division: values are shifted by a large number.
    fn average_value(&self) -> f64 {
        let count = i128::from(self.stat.count.max(1));
        let sum = self.stat.total as i128 - count * i128::from(store::COUNTER_ZERO);
        sum as f64 / count as f64
    }
}

/// Title of the table that a row is in. Traces use it as category.
pub(super) fn category(kind: Kind, flags: u8, domain: &str) -> String {
    let own = match kind {
        Kind::Operator => "operator",
        Kind::View => "view",
        Kind::Composite => "composite",
        Kind::Copy => "copy",
        Kind::Graph => "graph",
        Kind::Node => "graph operator",
        Kind::Call => "call",
        Kind::Event => "event",
        Kind::Task => domain,
        Kind::Frame => return format!("{domain},frame"),
        Kind::Counter => return format!("{domain},counter"),
        Kind::Marker => return format!("{domain},marker"),
    };
    match flags {
        QUEUED => format!("{own},queue"),
        _ if flags & BACKWARD != 0 => format!("{own},backward"),
        _ => own.to_owned(),
    }
}

fn sort(entries: &mut [Entry], options: &SummaryOptions) {
    let compare = |a: &Entry, b: &Entry| match options.sort_by {
        SortBy::Total => a.stat.total.cmp(&b.stat.total),
        SortBy::Average => a
            .average()
            .partial_cmp(&b.average())
            .unwrap_or(Ordering::Equal),
        SortBy::Min => a.stat.min.cmp(&b.stat.min),
        SortBy::Max => a.stat.max.cmp(&b.stat.max),
        SortBy::Count => a.stat.count.cmp(&b.stat.count),
    };
    entries.sort_by(|a, b| {
        let order = compare(a, b);
        let order = if options.ascending {
            order
        } else {
            order.reverse()
        };
        order.then_with(|| a.name.cmp(&b.name))
    });
}

/// Which numbers a table has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Time,
    Value,
}

pub(super) fn text(options: &SummaryOptions) -> String {
    let (statistics, num_dropped) = store::statistics(options.reset);
    let names = names::all();
    let name_of = |label: u32| names.get(label as usize).map_or("", |name| &**name);
    let mut tables: BTreeMap<(Unit, String), Vec<Entry>> = BTreeMap::new();
    for (row, &stat) in &statistics.rows {
        let Row {
            kind,
            flags,
            domain,
            name,
        } = *row;
        let title = category(kind, flags, name_of(domain));
        let unit = if kind == Kind::Counter {
            Unit::Value
        } else {
            Unit::Time
        };
        let name = name_of(name).to_owned();
        tables
            .entry((unit, title))
            .or_default()
            .push(Entry { name, stat });
    }
    for entries in tables.values_mut() {
        sort(entries, options);
    }
    let memory = (statistics.memory.count > 0).then_some((statistics.memory, statistics.peak));
    match options.format {
        Format::Table => table(&tables, memory, num_dropped),
        Format::Json => json_text(&tables, memory, num_dropped),
    }
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

fn kb(bytes: f64) -> f64 {
    bytes / 1024.0
}

fn heading(text: &mut String, title: &str, columns: [&str; 5]) {
    let [a, b, c, d, e] = columns;
    let _ = writeln!(text, "\n{title}\n=================");
    let _ = writeln!(
        text,
        "{:<28}  {a:>12}  {b:>14}  {c:>14}  {d:>14}  {e:>14}",
        "Name"
    );
    let dashes = |column: &str| "-".repeat(column.len());
    let [a, b, c, d, e] = columns.map(dashes);
    let _ = writeln!(
        text,
        "{:<28}  {a:>12}  {b:>14}  {c:>14}  {d:>14}  {e:>14}",
        "----"
    );
}

fn table(
    tables: &BTreeMap<(Unit, String), Vec<Entry>>,
    memory: Option<(Stat, u64)>,
    num_dropped: u64,
) -> String {
    let mut text = String::from("\nProfile Statistics:\n");
    if num_dropped > 0 {
        let _ = writeln!(
            text,
            "\tThe trace lacks {num_dropped} events, because its buffers were full; these tables count them."
        );
    }
    if let Some((stat, peak)) = memory {
        let columns = [
            "Total Count",
            "Min Use (kB)",
            "Max Use (kB)",
            "Avg Use (kB)",
            "Peak (kB)",
        ];
        heading(&mut text, "Device Storage", columns);
        let average = stat.total as f64 / stat.count as f64;
        let _ = writeln!(
            text,
            "{:<28}  {:>12}  {:>14.4}  {:>14.4}  {:>14.4}  {:>14.4}",
            "Memory: cpu(0)",
            stat.count,
            kb(stat.min as f64),
            kb(stat.max as f64),
            kb(average),
            kb(peak as f64)
        );
    }
    for ((unit, title), entries) in tables {
        match unit {
            Unit::Time => {
                let columns = [
                    "Total Count",
                    "Time (ms)",
                    "Min Time (ms)",
                    "Max Time (ms)",
                    "Avg Time (ms)",
                ];
                heading(&mut text, title, columns);
            }
            Unit::Value => {
                heading(
                    &mut text,
                    title,
                    ["Total Count", "-", "Min Value", "Max Value", "Avg Value"],
                );
            }
        }
        for entry in entries {
            let _ = write!(text, "{:<28}  {:>12}  ", entry.name, entry.stat.count);
            let (min, max) = (entry.stat.min, entry.stat.max);
            let _ = match unit {
                Unit::Time => writeln!(
                    text,
                    "{:>14.4}  {:>14.4}  {:>14.4}  {:>14.4}",
                    ms(entry.stat.total as f64),
                    ms(min as f64),
                    ms(max as f64),
                    ms(entry.average())
                ),
                Unit::Value => {
                    let (min, max) = (store::of_counter(min), store::of_counter(max));
                    let average = entry.average_value();
                    writeln!(text, "{:>14}  {min:>14}  {max:>14}  {average:>14.4}", "-")
                }
            };
        }
    }
    text
}

fn json_text(
    tables: &BTreeMap<(Unit, String), Vec<Entry>>,
    memory: Option<(Stat, u64)>,
    num_dropped: u64,
) -> String {
    // Written by hand: the rows keep their order, which objects of `serde_json` do not.
    let object = |entries: &[(String, String)]| {
        let one = |(key, value): &(String, String)| format!("{}: {value}", json!(key));
        let all: Vec<String> = entries.iter().map(one).collect();
        format!("{{{}}}", all.join(",\n"))
    };
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for ((unit, title), entries) in tables {
        let rows = entries.iter().map(|entry| {
            let (stat, average) = (entry.stat, entry.average());
            let row = match unit {
                Unit::Time => json!({
                    "Count": stat.count,
                    "Total": ms(stat.total as f64),
                    "Min": ms(stat.min as f64),
                    "Max": ms(stat.max as f64),
                    "Avg": ms(average),
                }),
                Unit::Value => json!({
                    "Count": stat.count,
                    "Min": store::of_counter(stat.min),
                    "Max": store::of_counter(stat.max),
                    "Avg": entry.average_value(),
                }),
            };
            (entry.name.clone(), row.to_string())
        });
        let rows: Vec<(String, String)> = rows.collect();
        let to = if *unit == Unit::Time {
            &mut times
        } else {
            &mut values
        };
        to.push((title.clone(), object(&rows)));
    }
    let mut storage = json!({});
    if let Some((stat, peak)) = memory {
        let average = stat.total as f64 / stat.count as f64;
        let row = json!({
            "Count": stat.count,
            "Min": kb(stat.min as f64),
            "Max": kb(stat.max as f64),
            "Avg": kb(average),
            "Peak": kb(peak as f64),
        });
        storage["Memory: cpu(0)"] = row;
    }
    let whole = [
        ("Time".to_owned(), object(&times)),
        (
            "Memory".to_owned(),
            json!({"Device Storage": storage}).to_string(),
        ),
        ("Value".to_owned(), object(&values)),
        ("Dropped".to_owned(), num_dropped.to_string()),
        (
            "Unit".to_owned(),
            json!({"Time": "ms", "Memory": "kB"}).to_string(),
        ),
    ];
    object(&whole)
}
