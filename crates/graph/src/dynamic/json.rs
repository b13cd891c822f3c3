//! JSON format of the dependence of a graph on sizes.
//!
//! ```json
//! {"sizes": [{"argument": 0, "axis": 0}, {"buffer": 7, "axis": 2}],
//!  "inputs": [{"views": ["contiguous"], "numbers": [[0, {"whole": [[1, 0]]}]]}],
//!  "nodes": [...], "outputs": [...]}
//! ```
//!
//! A term `[3, 0, 1]` is three times the product of sizes 0 and 1.

use mxnet_core::{Array, Result};
use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use super::number::{MAX_DEGREE, Number, Polynomial};
use super::template::{COMPARISONS, Comparison, Condition, Holes, Range, Symbol, Template};
use super::walk::ViewRule;
use crate::file::SIZED_VERSION;
use crate::ir::{BufferId, Graph};
use crate::verify::wrong;

const RULES: [(ViewRule, &str); 4] = [
    (ViewRule::Fixed, "fixed"),
    (ViewRule::Definition, "definition"),
    (ViewRule::Contiguous, "contiguous"),
    (ViewRule::Strided, "strided"),
];

fn polynomial_to_json(x: &Polynomial) -> Json {
    let term = |(factor, symbols): &(i64, SmallVec<[u32; 4]>)| {
        let mut term = vec![json!(factor)];
        term.extend(symbols.iter().map(|symbol| json!(symbol)));
        Json::Array(term)
    };
    x.terms.iter().map(term).collect()
}

fn number_to_json(x: &Number) -> Json {
    match x {
        Number::Whole(x) => json!({ "whole": polynomial_to_json(x) }),
        Number::Real(x) => json!({ "real": polynomial_to_json(x) }),
        Number::Quotient(constant, x) => {
            let bits = constant.to_bits().to_string();
            json!({ "quotient": [bits, polynomial_to_json(x)] })
        }
    }
}

fn holes_to_json(x: &Holes) -> Json {
    let name = |rule: &ViewRule| {
        let found = RULES.iter().find(|(known, _)| known == rule);
        found.map_or("fixed", |(_, name)| name)
    };
    let numbers = x.numbers.iter();
    let numbers: Vec<Json> = numbers
        .map(|(at, x)| json!([at, number_to_json(x)]))
        .collect();
    let views: Vec<&str> = x.views.iter().map(name).collect();
    json!({ "views": views, "numbers": numbers })
}

fn condition_to_json(x: &Condition) -> Json {
    let name = COMPARISONS.iter().find(|(known, _)| *known == x.comparison);
    let name = name.map_or("eq", |(_, name)| name);
    json!([
        name,
        number_to_json(&x.left),
        number_to_json(&x.right),
        x.outcome
    ])
}

fn range_to_json(x: &Range) -> Json {
    let (start, count) = (polynomial_to_json(&x.start), polynomial_to_json(&x.count));
    json!({ "input": x.input, "start": start, "step": x.step, "count": count })
}

impl Template {
    /// The graph as JSON text (the format of [`Graph::to_json`]) with its dependence on sizes.
    pub fn to_json(&self, name_of: &mut dyn FnMut(usize, &Array) -> String) -> String {
        let mut json = self.graph.json(name_of);
        json["version"] = json!(SIZED_VERSION);
        json["dynamic"] = self.sizes_to_json();
        json.to_string()
    }

    fn sizes_to_json(&self) -> Json {
        let symbol = |symbol: &Symbol| match symbol {
            Symbol::Argument { index, axis } => json!({ "argument": index, "axis": axis }),
            Symbol::Computed {
                buffer,
                axis,
                depends_on_values,
            } => json!({ "buffer": buffer.0, "axis": axis, "counted": depends_on_values }),
        };
        let all = |holes: &[Holes]| -> Vec<Json> { holes.iter().map(holes_to_json).collect() };
        json!({
            "sizes": self.symbols.iter().map(symbol).collect::<Vec<_>>(),
            "inputs": all(&self.inputs),
            "conditions": self.conditions.iter().map(condition_to_json).collect::<Vec<_>>(),
            "ranges": self.ranges.iter().map(range_to_json).collect::<Vec<_>>(),
            "nodes": all(&self.nodes),
            "outputs": all(&self.outputs),
        })
    }

    /// Reads the dependence on sizes from the file of `graph`; `None` if there is none.
    ///
    /// # Errors
    /// [`mxnet_core::Error::Value`] for another format. Graphs of certain sizes are checked when they are made.
    pub(crate) fn from_text(graph: &Graph, text: &str) -> Result<Option<Template>> {
        let json: Json = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let dynamic = json.get("dynamic").filter(|x| !x.is_null());
        dynamic
            .map(|json| Template::from_json(graph.clone(), json))
            .transpose()
    }

    fn from_json(graph: Graph, json: &Json) -> Result<Template> {
        let mut symbols = Vec::new();
        for entry in list(json, "sizes")? {
            let axis = integer(entry.get("axis"))?;
            symbols.push(match (entry.get("argument"), entry.get("buffer")) {
                (Some(index), None) => Symbol::Argument {
                    index: integer(Some(index))?,
                    axis,
                },
                (None, Some(buffer)) => Symbol::Computed {
                    buffer: BufferId(integer(Some(buffer))? as u32),
                    axis,
                    depends_on_values: entry.get("counted").and_then(Json::as_bool) == Some(true),
                },
                _ => {
                    return Err(wrong(
                        "a size has neither an argument nor a buffer".to_owned(),
                    ));
                }
            });
        }
        let all = |name: &str, len: usize| -> Result<Vec<Holes>> {
            let found = list(json, name)?;
            match found.len() == len {
                true => found.iter().map(holes).collect(),
                false => Err(wrong(format!("sizes of {name} are missing"))),
            }
        };
        Ok(Template {
            inputs: all("inputs", graph.inputs.len())?,
            conditions: list(json, "conditions")?
                .iter()
                .map(condition)
                .collect::<Result<_>>()?,
            ranges: list(json, "ranges")?
                .iter()
                .map(range)
                .collect::<Result<_>>()?,
            nodes: all("nodes", graph.nodes.len())?,
            outputs: all("outputs", graph.outputs.len())?,
            symbols,
            graph,
        })
    }
}

fn list<'a>(json: &'a Json, name: &str) -> Result<&'a [Json]> {
    let found = json.get(name).and_then(Json::as_array);
    found
        .map(Vec::as_slice)
        .ok_or_else(|| wrong(format!("the entry {name:?} of its sizes is not a list")))
}

fn integer(json: Option<&Json>) -> Result<usize> {
    let found = json
        .and_then(Json::as_u64)
        .and_then(|x| u32::try_from(x).ok());
    found
        .map(|x| x as usize)
        .ok_or_else(|| wrong("a position among its sizes is not an integer".to_owned()))
}

fn polynomial(json: &Json) -> Option<Polynomial> {
    let mut terms = Vec::new();
    for term in json.as_array()? {
        let (factor, symbols) = term.as_array()?.split_first()?;
        let symbols = symbols
            .iter()
            .map(|x| x.as_u64().and_then(|x| u32::try_from(x).ok()));
        let symbols: SmallVec<[u32; 4]> = symbols.collect::<Option<_>>()?;
        if symbols.len() > MAX_DEGREE {
            return None;
        }
        terms.push((factor.as_i64()?, symbols));
    }
    Some(Polynomial { terms })
}

fn number(json: &Json) -> Option<Number> {
    let (kind, x) = json.as_object()?.iter().next()?;
    match kind.as_str() {
        "whole" => polynomial(x).map(Number::Whole),
        "real" => polynomial(x).map(Number::Real),
        "quotient" => match x.as_array().map(Vec::as_slice) {
            Some([bits, below]) => {
                let constant = f64::from_bits(bits.as_str()?.parse().ok()?);
                Some(Number::Quotient(constant, polynomial(below)?))
            }
            _ => None,
        },
        _ => None,
    }
}

fn condition(json: &Json) -> Result<Condition> {
    let found = || match json.as_array().map(Vec::as_slice) {
        Some([name, left, right, outcome]) => Some(Condition {
            comparison: Comparison::from_name(name.as_str()?)?,
            left: number(left)?,
            right: number(right)?,
            outcome: outcome.as_bool()?,
        }),
        _ => None,
    };
    found().ok_or_else(|| wrong(format!("{json} is not a condition on sizes")))
}

fn range(json: &Json) -> Result<Range> {
    let found = || {
        Some(Range {
            input: usize::try_from(json.get("input")?.as_u64()?).ok()?,
            start: polynomial(json.get("start")?)?,
            step: json.get("step")?.as_i64()?,
            count: polynomial(json.get("count")?)?,
        })
    };
    found().ok_or_else(|| wrong(format!("{json} is not a range of numbers")))
}

fn holes(json: &Json) -> Result<Holes> {
    let mut found = Holes::default();
    for name in list(json, "views")? {
        let rule = RULES.iter().find(|(_, known)| name.as_str() == Some(known));
        let rule = rule.ok_or_else(|| wrong(format!("{name} is not a rule of a view")))?;
        found.views.push(rule.0);
    }
    for entry in list(json, "numbers")? {
        let pair = match entry.as_array().map(Vec::as_slice) {
            Some([at, x]) => number(x).map(|x| (at, x)),
            _ => None,
        };
        let (at, x) =
            pair.ok_or_else(|| wrong(format!("{entry} is not a number that depends on sizes")))?;
        found.numbers.push((integer(Some(at))? as u32, x));
    }
    Ok(found)
}
