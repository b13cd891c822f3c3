//! Graphs as JSON text. The text names the arrays that a graph needs; they are stored in a separate file.
//!
//! ```json
//! {"format": "mxnet-graph", "version": 1, "name": "Dense", "promotion": "mx", "num_rng_blocks": 0,
//!  "buffers": [32, 64],
//!  "inputs": [{"buffer": 0, "argument": 0, "view": {...}}, {"buffer": 1, "array": "weight", "view": {...}}],
//!  "nodes": [{"op": "tanh", "version": 1, "attrs": {}, "inputs": [{"view": {...}}], "outputs": [{...}]}],
//!  "outputs": [{"buffer": 2, "shape": [8], "strides": [1], "offset": 0, "dtype": "float32"}]}
//! ```
//!
//! Reading checks everything that a run relies on: each buffer has one definition before it is read, each view lies within its buffer, each operator
//! is known in the version of the file, and its rules give the outputs that the file states. A file can execute nothing but operators.

use mxnet_core::serialised::{from_json as attrs_from_json, to_json as attrs_to_json};
use mxnet_core::{Array, Result, registry};
use mxnet_tensor::{DType, Device, Layout, Promotion, Scalar};
use num_complex::Complex;
use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use crate::ir::{Buffer, BufferId, Graph, Input, Node, Operand, Source, Version, View};
use crate::provider;
use crate::random::Stream;
use crate::verify::{verify, wrong};

const FORMAT: &str = "mxnet-graph";

/// Version of files of graphs for arrays of one size.
const VERSION: u64 = 1;

/// Newest version: graphs whose numbers depend on sizes ([`crate::dynamic`]).
pub(crate) const SIZED_VERSION: u64 = 2;

fn view_to_json(view: &View) -> Json {
    json!({
        "buffer": view.buffer.0,
        "shape": view.layout.shape(),
        "strides": view.layout.strides(),
        "offset": view.layout.offset(),
        "dtype": view.dtype.name(),
        "read_only": view.is_read_only,
    })
}

/// A number with its kind, exactly.
fn scalar_to_json(value: &Scalar) -> Json {
    let float = |x: f64| Json::from(x.to_bits().to_string());
    match *value {
        Scalar::Bool(x) => json!({ "bool": x }),
        Scalar::I64(x) => json!({ "int": x }),
        Scalar::U64(x) => json!({ "uint": x }),
        Scalar::Wide(x) => json!({ "wide": float(x) }),
        Scalar::F64(x) => json!({ "real": float(x) }),
        Scalar::C128(x) => json!({ "complex": [float(x.re), float(x.im)] }),
    }
}

fn operand_to_json(operand: &Operand) -> Json {
    match operand {
        Operand::Absent => Json::Null,
        Operand::View(view) => json!({ "view": view_to_json(view) }),
        Operand::Number(value) => json!({ "number": scalar_to_json(value) }),
        Operand::Constant(value, dtype) => {
            json!({ "constant": scalar_to_json(value), "dtype": dtype.name() })
        }
    }
}

impl Graph {
    /// The graph as JSON text. `name_of` names captured arrays and constants.
    pub fn to_json(&self, name_of: &mut dyn FnMut(usize, &Array) -> String) -> String {
        self.json(name_of).to_string()
    }

    pub(crate) fn json(&self, name_of: &mut dyn FnMut(usize, &Array) -> String) -> Json {
        let mut inputs = Vec::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let mut entry = json!({ "buffer": input.buffer.0, "view": view_to_json(&input.view) });
            match &input.source {
                Source::Argument(k) => entry["argument"] = json!(k),
                Source::Captured(x) => entry["array"] = json!(name_of(i, x)),
                Source::Constant(x) => {
                    entry["array"] = json!(name_of(i, x));
                    entry["constant"] = json!(true);
                }
            }
            if let Some(written) = input.written {
                entry["written"] = json!(written.0);
            }
            inputs.push(entry);
        }
        let nodes = self.nodes.iter().map(|node| {
            let attrs: Json =
                serde_json::from_str(&attrs_to_json(node.op, &node.attrs)).unwrap_or(Json::Null);
            let versions = node.versions.iter().map(|v| json!([v.old.0, v.new.0]));
            let mut entry = json!({
                "op": node.op.name,
                "version": node.op.version,
                "attrs": attrs,
                "inputs": node.inputs.iter().map(operand_to_json).collect::<Vec<_>>(),
                "outputs": node.outputs.iter().map(view_to_json).collect::<Vec<_>>(),
                "versions": versions.collect::<Vec<_>>(),
                "dtype": node.dtype.map(|dtype| dtype.name()),
                "training": node.training,
                "assignment": node.is_assignment,
                "rng_block": node.rng_block,
                "rng_stream": node.rng_stream,
                "caller": node.caller.map(|op| op.name),
                "line": node.line.as_deref(),
            });
            provider::write(node.op.name, &mut entry);
            entry
        });
        json!({
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "promotion": if self.promotion == Promotion::NumPy { "numpy" } else { "mx" },
            "num_rng_blocks": self.num_rng_blocks,
            "streams": self.streams.iter().map(|stream| stream.num_blocks).collect::<Vec<_>>(),
            "buffers": self.buffers.iter().map(|buffer| buffer.len_bytes).collect::<Vec<_>>(),
            "inputs": inputs,
            "nodes": nodes.collect::<Vec<_>>(),
            "outputs": self.outputs.iter().map(view_to_json).collect::<Vec<_>>(),
        })
    }

    /// Reads the text that [`Graph::to_json`] wrote. `array_of` returns the arrays by name. All buffers are on the CPU.
    ///
    /// # Errors
    /// [`mxnet_core::Error::Value`] for other text, a newer version, unknown operators or arrays, and inconsistent graphs.
    pub fn from_json(text: &str, array_of: &mut dyn FnMut(&str) -> Option<Array>) -> Result<Graph> {
        let json: Json = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if json.get("format").and_then(Json::as_str) != Some(FORMAT) {
            return Err(wrong(format!("it has no entry \"format\": \"{FORMAT}\"")));
        }
        let version = unsigned(&json, "version")?;
        if version == 0 || version > SIZED_VERSION {
            return Err(wrong(format!(
                "it has version {version}, this library reads versions up to {SIZED_VERSION}"
            )));
        }
        let promotion = match string(&json, "promotion")? {
            "numpy" => Promotion::NumPy,
            "mx" => Promotion::Mx,
            other => return Err(wrong(format!("unknown promotion {other:?}"))),
        };
        let mut graph = Graph::new(string(&json, "name")?, promotion);
        graph.num_rng_blocks = unsigned(&json, "num_rng_blocks")?;
        if json.get("streams").is_some() {
            for num_blocks in list(&json, "streams")? {
                let num_blocks = as_usize(num_blocks)? as u64;
                graph.streams.push(Stream::unbound(num_blocks));
            }
        }
        let device = Device::cpu(0);
        for len in list(&json, "buffers")? {
            let len_bytes = as_usize(len)?;
            graph.buffers.push(Buffer { len_bytes, device });
        }
        for entry in list(&json, "inputs")? {
            let view = view(&graph, field(entry, "view")?)?;
            let source = match (
                entry.get("argument"),
                entry.get("array").and_then(Json::as_str),
            ) {
                (Some(k), None) => Source::Argument(as_usize(k)?),
                (None, Some(name)) => {
                    let array = array_of(name)
                        .ok_or_else(|| wrong(format!("there is no array {name:?}")))?;
                    match entry.get("constant").and_then(Json::as_bool) {
                        Some(true) => Source::Constant(array),
                        _ => Source::Captured(array),
                    }
                }
                _ => {
                    return Err(wrong(
                        "an input is neither an argument nor an array".to_owned(),
                    ));
                }
            };
            let written = entry.get("written").filter(|x| !x.is_null());
            graph.inputs.push(Input {
                buffer: buffer(&graph, field(entry, "buffer")?)?,
                source,
                view,
                written: written.map(|x| buffer(&graph, x)).transpose()?,
            });
        }
        for entry in list(&json, "nodes")? {
            let node = node(&graph, entry)?;
            graph.nodes.push(node);
        }
        for entry in list(&json, "outputs")? {
            let output = view(&graph, entry)?;
            graph.outputs.push(output);
        }
        verify(&graph)?;
        Ok(graph)
    }
}

fn field<'a>(json: &'a Json, name: &str) -> Result<&'a Json> {
    json.get(name)
        .ok_or_else(|| wrong(format!("an entry {name:?} is missing")))
}

fn string<'a>(json: &'a Json, name: &str) -> Result<&'a str> {
    field(json, name)?
        .as_str()
        .ok_or_else(|| wrong(format!("the entry {name:?} is not text")))
}

fn list<'a>(json: &'a Json, name: &str) -> Result<&'a [Json]> {
    let items = field(json, name)?.as_array();
    items
        .map(Vec::as_slice)
        .ok_or_else(|| wrong(format!("the entry {name:?} is not a list")))
}

fn unsigned(json: &Json, name: &str) -> Result<u64> {
    field(json, name)?
        .as_u64()
        .ok_or_else(|| wrong(format!("the entry {name:?} is not an unsigned integer")))
}

fn as_usize(json: &Json) -> Result<usize> {
    let number = json.as_u64().and_then(|x| usize::try_from(x).ok());
    number.ok_or_else(|| wrong(format!("{json} is not a size")))
}

fn dtype(json: &Json) -> Result<DType> {
    let found = json.as_str().and_then(DType::from_name);
    found.ok_or_else(|| wrong(format!("{json} is not a dtype")))
}

fn buffer(graph: &Graph, json: &Json) -> Result<BufferId> {
    let index = as_usize(json)?;
    match graph.buffers.get(index) {
        Some(_) => Ok(BufferId(index as u32)),
        None => Err(wrong(format!("there is no buffer {index}"))),
    }
}

/// Reads a view and checks that it lies within its buffer.
fn view(graph: &Graph, json: &Json) -> Result<View> {
    let shape = list(json, "shape")?
        .iter()
        .map(as_usize)
        .collect::<Result<SmallVec<[usize; 8]>>>()?;
    let strides = list(json, "strides")?.iter().map(|x| {
        let stride = x.as_i64().and_then(|x| isize::try_from(x).ok());
        stride.ok_or_else(|| wrong(format!("{x} is not a stride")))
    });
    let strides = strides.collect::<Result<SmallVec<[isize; 8]>>>()?;
    let offset = as_usize(field(json, "offset")?)?;
    let dtype = dtype(field(json, "dtype")?)?;
    let buffer = buffer(graph, field(json, "buffer")?)?;
    let layout =
        Layout::strided(&shape, &strides, offset).map_err(|error| wrong(error.to_string()))?;
    let end = layout.span().map_or(Some(0), |(_, high)| {
        high.checked_add(1)?.checked_mul(dtype.size())
    });
    if end.is_none_or(|end| end > graph.buffer(buffer).len_bytes) {
        return Err(wrong(format!("a view exceeds buffer {}", buffer.0)));
    }
    Ok(View {
        buffer,
        layout,
        dtype,
        is_read_only: json
            .get("read_only")
            .and_then(Json::as_bool)
            .unwrap_or(false),
    })
}

fn scalar(json: &Json) -> Result<Scalar> {
    let bad = || wrong(format!("{json} is not a number"));
    let float = |x: &Json| {
        x.as_str()
            .and_then(|x| x.parse::<u64>().ok())
            .map(f64::from_bits)
    };
    let (kind, value) = json
        .as_object()
        .and_then(|entries| entries.iter().next())
        .ok_or_else(bad)?;
    let found = match kind.as_str() {
        "bool" => value.as_bool().map(Scalar::Bool),
        "int" => value.as_i64().map(Scalar::I64),
        "uint" => value.as_u64().map(Scalar::U64),
        "wide" => float(value).map(Scalar::Wide),
        "real" => float(value).map(Scalar::F64),
        "complex" => match value.as_array().map(Vec::as_slice) {
            Some([re, im]) => float(re)
                .zip(float(im))
                .map(|(re, im)| Scalar::C128(Complex::new(re, im))),
            _ => None,
        },
        _ => None,
    };
    found.ok_or_else(bad)
}

fn operand(graph: &Graph, json: &Json) -> Result<Operand> {
    if json.is_null() {
        return Ok(Operand::Absent);
    }
    if let Some(found) = json.get("view") {
        return Ok(Operand::View(view(graph, found)?));
    }
    if let Some(value) = json.get("number") {
        return Ok(Operand::Number(scalar(value)?));
    }
    let value = scalar(field(json, "constant")?)?;
    Ok(Operand::Constant(value, dtype(field(json, "dtype")?)?))
}

fn node(graph: &Graph, json: &Json) -> Result<Node> {
    let name = string(json, "op")?;
    let op = registry::find_in_file(name).ok_or_else(|| wrong(provider::missing(name, json)))?;
    let version = unsigned(json, "version")?;
    if version != u64::from(op.version) {
        let problem = format!(
            "operator `{name}` has version {version} in the file, this library has version {}",
            op.version
        );
        return Err(wrong(problem));
    }
    let attrs = attrs_from_json(op, &field(json, "attrs")?.to_string())?;
    let versions =
        list(json, "versions")?
            .iter()
            .map(|pair| match pair.as_array().map(Vec::as_slice) {
                Some([old, new]) => Ok(Version {
                    old: buffer(graph, old)?,
                    new: buffer(graph, new)?,
                }),
                _ => Err(wrong(format!("{pair} is not a pair of buffers"))),
            });
    let is_true = |name: &str| json.get(name).and_then(Json::as_bool).unwrap_or(false);
    let forced = json.get("dtype").filter(|x| !x.is_null());
    Ok(Node {
        op,
        attrs,
        inputs: list(json, "inputs")?
            .iter()
            .map(|x| operand(graph, x))
            .collect::<Result<_>>()?,
        outputs: list(json, "outputs")?
            .iter()
            .map(|x| view(graph, x))
            .collect::<Result<_>>()?,
        versions: versions.collect::<Result<_>>()?,
        dtype: forced.map(dtype).transpose()?,
        training: is_true("training"),
        is_assignment: is_true("assignment"),
        rng_block: unsigned(json, "rng_block")?,
        rng_stream: match json.get("rng_stream") {
            Some(stream) => as_usize(stream)?,
            None => 0,
        },
        caller: (json.get("caller").and_then(Json::as_str)).and_then(registry::find_in_file),
        line: json.get("line").and_then(Json::as_str).map(Into::into),
        scope: Default::default(),
        is_backward: false,
    })
}
