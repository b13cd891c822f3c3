//! The trace as JSON: Chrome's format for trace events, which Perfetto and `chrome://tracing` open.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use mxnet_tensor::DType;

use crate::atomic_file::AtomicFile;
use crate::error::{Error, Result};
use crate::files::FileError;
use crate::profiler::buffer::{BACKWARD, Event, Kind, NESTED, QUEUED, Role, events};
use crate::profiler::{names, store, summary};

/// Text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Nanoseconds as microseconds with three digits.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

struct Writer<'a> {
    text: String,
    names: &'a [Arc<str>],
    process: u32,
}

impl Writer<'_> {
    fn name(&self, label: u32) -> &str {
        self.names.get(label as usize).map_or("", |name| &**name)
    }

    fn separate(&mut self) {
        let is_first = self.text.ends_with("[\n");
        self.text.push_str(if is_first { "" } else { ",\n" });
    }

    fn metadata(&mut self, what: &str, thread: u32, name: &str) {
        self.separate();
        let _ = write!(
            self.text,
            r#"{{"name":"{what}","ph":"M","pid":{},"tid":{thread},"args":{{"name":{}}}}}"#,
            self.process,
            quoted(name)
        );
    }

    fn event(&mut self, event: &Event, thread: u32) {
        let kind = event.kind();
        let domain = match kind {
            Kind::Task | Kind::Frame | Kind::Counter | Kind::Marker => {
                self.name(event.extra() as u32)
            }
            _ => "",
        };
        let category = summary::category(kind, event.flags() & BACKWARD, domain);
        self.separate();
        let _ = write!(
            self.text,
            r#"{{"name":{},"cat":{},"pid":{},"tid":{thread},"ts":{}"#,
            quoted(self.name(event.name())),
            quoted(&category),
            self.process,
            us(event.begin())
        );
        match kind {
            Kind::Counter => {
                let value = store::of_counter(event.duration());
                let _ = write!(self.text, r#","ph":"C","args":{{"value":{value}}}}}"#);
                return;
            }
            Kind::Marker => {
                let reach = ["g", "p", "t"][event.bytes() as usize % 3];
                let _ = write!(self.text, r#","ph":"i","s":"{reach}"}}"#);
                return;
            }
            _ => {
                let _ = write!(self.text, r#","ph":"X","dur":{}"#, us(event.duration()));
            }
        }
        self.arguments(event);
        self.text.push('}');
    }

    fn arguments(&mut self, event: &Event) {
        let mut parts: Vec<String> = Vec::new();
        if event.num_operands() > 0 {
            for (title, role) in [("inputs", Role::Input), ("outputs", Role::Output)] {
                let shown = event.operands().filter(|x| x.role == role).map(|x| {
                    let shape: Vec<String> = x.shape.iter().map(u64::to_string).collect();
                    let dtype = DType::ALL[usize::from(x.dtype) % DType::ALL.len()];
                    format!(r#"{{"shape":[{}],"dtype":"{dtype}"}}"#, shape.join(","))
                });
                let shown: Vec<String> = shown.collect();
                parts.push(format!(r#""{title}":[{}]"#, shown.join(",")));
            }
            let num_left_out = event.num_operands() - event.operands().count();
            if num_left_out > 0 {
                parts.push(format!(r#""operands_left_out":{num_left_out}"#));
            }
        }
        if matches!(event.kind(), Kind::Operator | Kind::Copy | Kind::Graph) {
            parts.push(format!(r#""bytes":{}"#, event.bytes()));
        }
        if event.flags() & QUEUED != 0 {
            parts.push(format!(r#""queued_us":{}"#, us(event.extra())));
        }
        if event.flags() & NESTED != 0 {
            parts.push(r#""inside_operator":true"#.to_owned());
        }
        if event.scope() != 0 {
            parts.push(format!(r#""scope":{}"#, quoted(self.name(event.scope()))));
        }
        if event.line() != 0 {
            parts.push(format!(r#""line":{}"#, quoted(self.name(event.line()))));
        }
        let _ = write!(self.text, r#","args":{{{}}}"#, parts.join(","));
    }

    /// A counter event for the bytes in use.
    fn memory(&mut self, at: u64, now: u64, peak: u64) {
        self.separate();
        let _ = write!(
            self.text,
            r#"{{"name":"memory of cpu(0)","cat":"memory","ph":"C","pid":{},"tid":0,"ts":{},"args":{{"live_bytes":{now},"peak_bytes":{peak}}}}}"#,
            self.process,
            us(at)
        );
    }
}

/// The trace.
pub(super) fn text() -> String {
    let snapshot = store::snapshot();
    let names = names::all();
    let mut writer = Writer {
        text: String::from("{\"traceEvents\":[\n"),
        names: &names,
        process: std::process::id(),
    };
    writer.metadata("process_name", 0, "mxnet");
    for (thread, name) in snapshot.thread_names.iter().enumerate() {
        writer.metadata("thread_name", thread as u32, name);
    }
    let mut found: Vec<(u32, Event)> = Vec::new();
    for (thread, words) in &snapshot.buffers {
        found.extend(events(words).map(|event| (*thread, event)));
    }
    found.sort_by_key(|(_, event)| event.begin());
    for (thread, event) in &found {
        writer.event(event, *thread);
    }
    let sample = |(_, event): &(u32, Event)| {
        let (now, peak) = event.memory()?;
        Some((event.begin() + event.duration(), now, peak))
    };
    let mut samples: Vec<(u64, u64, u64)> = found.iter().filter_map(sample).collect();
    samples.sort_unstable();
    samples.dedup_by_key(|(_, now, _)| *now);
    for (at, now, peak) in samples {
        writer.memory(at, now, peak);
    }
    let mut text = writer.text;
    let _ = write!(
        text,
        "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{{\"version\":\"{}\",\"dropped_events\":{}}}}}\n",
        env!("CARGO_PKG_VERSION"),
        snapshot.num_dropped
    );
    text
}

/// Writes the trace to a file, which is replaced in one step.
pub(super) fn write(filename: &str) -> Result<()> {
    let text = text();
    let written = (|| -> std::result::Result<(), FileError> {
        let mut file = AtomicFile::create(Path::new(filename))?;
        file.file.write_all(text.as_bytes())?;
        Ok(file.commit()?)
    })();
    written.map_err(|error| match error {
        FileError::Content(error) => error,
        FileError::System(error) => {
            Error::io("profiler", format!("cannot write `{filename}`: {error}"))
        }
    })
}
