//! Attributes as JSON text for files: an object with one entry per attribute.
//!
//! | value | JSON |
//! |---|---|
//! | none, truth value, integer, text, integers | `null`, `true`, `3`, `"reflect"`, `[0, 1]` |
//! | real number | `{"float": 0.5}`; `"inf"`, `"-inf"` and `"nan"` (without its payload bits), which JSON cannot write as numbers |
//! | real numbers | `{"floats": [0.5, 1.0]}` |
//! | number of any kind | `{"bool": true}`, `{"int": 3}`, `{"uint": 3}`, `{"wide": 1e30}`, `{"real": 0.5}`, `{"complex": [0.5, 1.0]}` |
//! | data type, device | `{"dtype": "float32"}`, `{"device": "cpu(0)"}` |
//! | index | `{"index": [1, {"slice": [0, null, 2]}, "newaxis", "...", {"array": [3]}, {"mask": [2, 3]}]}` |
//!
//! Attributes that are missing in a file get their default, so an operator may gain attributes without a new [`OpDef::version`].

use std::sync::Arc;

use mxnet_tensor::{DType, Device, Dims, IndexItem, Scalar};
use num_complex::Complex;
use serde_json::{Map, Value as Json, json};

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::error::{Error, Result};
use crate::opdef::OpDef;

/// The attributes of a call of `op` as JSON text. Equal attributes give equal text.
pub fn to_json(op: &OpDef, attrs: &Attrs) -> String {
    let attributes = op.params.iter().filter(|param| param.is_attribute());
    let entries: Map<String, Json> = attributes
        .zip(attrs.values())
        .map(|(param, value)| (param.name.to_owned(), written(value)))
        .collect();
    Json::Object(entries).to_string()
}

/// One attribute as JSON text.
pub fn value_to_json(value: &Value) -> String {
    written(value).to_string()
}

/// Parses the text that [`to_json`] wrote.
///
/// # Errors
/// [`Error::Value`] for other text, attributes that `op` does not have, values of another kind, and required attributes that are missing.
pub fn from_json(op: &OpDef, text: &str) -> Result<Attrs> {
    let wrong = |problem: String| Error::value("attributes", format!("`{}`: {problem}", op.name));
    let parsed = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let Json::Object(mut entries) = parsed else {
        return Err(wrong(format!("expected a JSON object, found {parsed}")));
    };
    let mut attrs = Attrs::none();
    for param in op.params.iter().filter(|param| param.is_attribute()) {
        attrs.push(match entries.remove(param.name) {
            Some(json) => read(param, &json)
                .filter(|value| takes(param, value))
                .ok_or_else(|| {
                    wrong(format!(
                        "{json} is not a value of attribute `{}`",
                        param.name
                    ))
                })?,
            None if param.default == Default::Required => {
                return Err(wrong(format!("attribute `{}` is missing", param.name)));
            }
            None => Value::from(param.default),
        });
    }
    match entries.keys().next() {
        Some(name) => Err(wrong(format!("it has no attribute `{name}`"))),
        None => Ok(attrs),
    }
}

fn float(x: f64) -> Json {
    match x {
        x if x.is_finite() => json!(x),
        x if x.is_nan() => json!("nan"),
        x if x > 0.0 => json!("inf"),
        _ => json!("-inf"),
    }
}

fn read_float(json: &Json) -> Option<f64> {
    match json {
        Json::String(text) => match text.as_str() {
            "nan" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        json => json.as_f64(),
    }
}

fn written(value: &Value) -> Json {
    match value {
        Value::None => Json::Null,
        Value::Bool(x) => json!(x),
        Value::Int(x) => json!(x),
        Value::Float(x) => json!({"float": float(*x)}),
        Value::Scalar(x) => match *x {
            Scalar::Bool(x) => json!({"bool": x}),
            Scalar::I64(x) => json!({"int": x}),
            Scalar::U64(x) => json!({"uint": x}),
            Scalar::Wide(x) => json!({"wide": float(x)}),
            Scalar::F64(x) => json!({"real": float(x)}),
            Scalar::C128(x) => json!({"complex": [float(x.re), float(x.im)]}),
        },
        Value::Ints(x) => json!(x.as_slice()),
        Value::Floats(x) => {
            json!({"floats": x.iter().map(|&x| float(x)).collect::<Vec<_>>()})
        }
        Value::Str(x) => json!(&**x),
        Value::Word(x) => json!(x),
        Value::DType(x) => json!({"dtype": x.name()}),
        Value::Device(x) => json!({"device": x.to_string()}),
        Value::Index(items) => {
            json!({"index": items.iter().map(written_item).collect::<Vec<_>>()})
        }
    }
}

fn written_item(item: &IndexItem) -> Json {
    match item {
        IndexItem::Int(i) => json!(i),
        IndexItem::Slice { start, stop, step } => json!({"slice": [start, stop, step]}),
        IndexItem::NewAxis => json!("newaxis"),
        IndexItem::Ellipsis => json!("..."),
        IndexItem::Array { shape } => json!({"array": shape.as_slice()}),
        IndexItem::Mask { shape } => json!({"mask": shape.as_slice()}),
    }
}

fn read(param: &Param, json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::None,
        Json::Bool(x) => Value::Bool(*x),
        Json::Number(x) => Value::Int(x.as_i64()?),
        Json::String(x) => read_text(param, x)?,
        Json::Array(items) => Value::Ints(items.iter().map(Json::as_i64).collect::<Option<_>>()?),
        Json::Object(tagged) => {
            let (tag, json) = tagged.iter().next().filter(|_| tagged.len() == 1)?;
            read_tagged(tag, json)?
        }
    })
}

/// Whether operators can read a value of the parameter, by the accessors of [`crate::args::Args`].
fn takes(param: &Param, value: &Value) -> bool {
    use ParamKind as Kind;
    match value {
        Value::None => {
            param.nullable
                || param.default == Default::None
                || !matches!(param.kind, Kind::Int | Kind::Float | Kind::Index)
        }
        Value::Bool(_) => matches!(param.kind, Kind::Bool | Kind::Scalar),
        Value::Int(_) => matches!(
            param.kind,
            Kind::Int
                | Kind::Float
                | Kind::FloatOrWord(_)
                | Kind::Scalar
                | Kind::Ints
                | Kind::Sections
                | Kind::AxesOfEach
        ),
        Value::Float(_) => {
            matches!(
                param.kind,
                Kind::Float | Kind::FloatOrWord(_) | Kind::Scalar
            )
        }
        Value::Scalar(_) => param.kind == Kind::Scalar,
        Value::Ints(_) => matches!(param.kind, Kind::Ints | Kind::Sections | Kind::AxesOfEach),
        Value::Floats(_) => param.kind == Kind::Floats,
        Value::Str(_) => matches!(param.kind, Kind::Str | Kind::Words),
        Value::Word(_) => matches!(param.kind, Kind::Choice(_) | Kind::FloatOrWord(_)),
        Value::DType(_) => param.kind == Kind::DType,
        Value::Device(_) => param.kind == Kind::Device,
        Value::Index(_) => param.kind == Kind::Index,
    }
}

/// Words must be choices of the parameter; the result refers to the `'static` word.
fn read_text(param: &Param, text: &str) -> Option<Value> {
    match param.kind {
        ParamKind::Choice(words) | ParamKind::FloatOrWord(words) => words
            .iter()
            .find(|word| **word == text)
            .map(|x| Value::Word(x)),
        // The default of such a parameter is a name.
        ParamKind::DType => DType::from_name(text).map(Value::DType),
        _ => Some(Value::Str(Arc::from(text))),
    }
}

fn read_tagged(tag: &str, json: &Json) -> Option<Value> {
    let scalar = |x| Some(Value::Scalar(x));
    match tag {
        "float" => read_float(json).map(Value::Float),
        "floats" => {
            let floats: Option<Vec<f64>> = json.as_array()?.iter().map(read_float).collect();
            Some(Value::Floats(floats?.into()))
        }
        "bool" => scalar(Scalar::Bool(json.as_bool()?)),
        "int" => scalar(Scalar::I64(json.as_i64()?)),
        "uint" => scalar(Scalar::U64(json.as_u64()?)),
        "wide" => scalar(Scalar::Wide(read_float(json)?)),
        "real" => scalar(Scalar::F64(read_float(json)?)),
        "complex" => {
            let [re, im] = json.as_array()?.as_slice() else {
                return None;
            };
            scalar(Scalar::C128(Complex::new(read_float(re)?, read_float(im)?)))
        }
        "dtype" => DType::from_name(json.as_str()?).map(Value::DType),
        "device" => json.as_str()?.parse::<Device>().ok().map(Value::Device),
        "index" => {
            let items: Option<Vec<IndexItem>> = json.as_array()?.iter().map(read_item).collect();
            Some(Value::Index(items?.into()))
        }
        _ => None,
    }
}

fn read_item(json: &Json) -> Option<IndexItem> {
    match json {
        Json::Number(i) => Some(IndexItem::Int(i.as_i64()? as isize)),
        Json::String(text) => match text.as_str() {
            "newaxis" => Some(IndexItem::NewAxis),
            "..." => Some(IndexItem::Ellipsis),
            _ => None,
        },
        Json::Object(tagged) => {
            let (tag, json) = tagged.iter().next().filter(|_| tagged.len() == 1)?;
            let items = json.as_array()?;
            let shape = || -> Option<Dims> {
                items
                    .iter()
                    .map(|n| n.as_u64().map(|n| n as usize))
                    .collect()
            };
            match (tag.as_str(), items.as_slice()) {
                ("slice", [start, stop, step]) => {
                    let bound = |json: &Json| match json {
                        Json::Null => Some(None),
                        json => json.as_i64().map(|i| Some(i as isize)),
                    };
                    Some(IndexItem::Slice {
                        start: bound(start)?,
                        stop: bound(stop)?,
                        step: bound(step)?,
                    })
                }
                ("array", _) => shape().map(|shape| IndexItem::Array { shape }),
                ("mask", _) => shape().map(|shape| IndexItem::Mask { shape }),
                _ => None,
            }
        }
        _ => None,
    }
}
