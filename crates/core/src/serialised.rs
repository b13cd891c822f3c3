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

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash, Hasher};

    use smallvec::smallvec;

    use super::*;

    static OP: OpDef = OpDef {
        name: "example",
        params: &[
            Param::array("x"),
            Param::required("a", ParamKind::Scalar),
            Param::choice("mode", &["wrap", "clip"], "clip"),
            Param::optional("b", ParamKind::Ints),
        ],
        ..OpDef::DEFAULT
    };

    fn attrs(a: Value, mode: Value, b: Value) -> Attrs {
        [a, mode, b].into_iter().collect()
    }

    fn hash(attrs: &Attrs) -> u64 {
        let mut hasher = DefaultHasher::new();
        attrs.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn every_value_survives_a_round_trip() -> Result<()> {
        let index = vec![
            IndexItem::Int(-1),
            IndexItem::Slice {
                start: None,
                stop: Some(5),
                step: Some(-2),
            },
            IndexItem::NewAxis,
            IndexItem::Ellipsis,
            IndexItem::Array {
                shape: smallvec![2, 3],
            },
            IndexItem::Mask { shape: smallvec![] },
        ];
        let values = [
            Value::None,
            Value::Bool(true),
            Value::Int(i64::MIN),
            Value::Float(-0.0),
            Value::Float(0.1 + 0.2),
            Value::Float(f64::NEG_INFINITY),
            Value::Float(f64::NAN),
            Value::Scalar(Scalar::Bool(false)),
            Value::Scalar(Scalar::I64(-3)),
            Value::Scalar(Scalar::U64(u64::MAX)),
            Value::Scalar(Scalar::Wide(1e300)),
            Value::Scalar(Scalar::F64(5e-324)),
            Value::Scalar(Scalar::C128(Complex::new(1.5, f64::INFINITY))),
            Value::Ints(smallvec![1, -2, 3, 4, 5]),
            Value::Ints(smallvec![]),
            Value::Floats(vec![0.5, f64::NAN].into()),
            Value::Floats(Vec::new().into()),
            Value::Str("a \"text\"".into()),
            Value::DType(DType::BF16),
            Value::Device(Device::cpu(3)),
            Value::Index(index.into()),
        ];
        for value in values {
            let op = with_kind(kind_of(&value));
            let given = attrs(value, Value::Word("wrap"), Value::None);
            let text = to_json(&op, &given);
            let back = from_json(&op, &text)?;
            assert_eq!(back, given, "{text}");
            assert_eq!(hash(&back), hash(&given), "{text}");
            assert_eq!(to_json(&op, &back), text);
        }
        Ok(())
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        let values = [
            (Value::Ints(smallvec![1, 2]), ParamKind::Int),
            (Value::Float(0.5), ParamKind::Int),
            (Value::None, ParamKind::Int),
            (Value::Bool(true), ParamKind::DType),
            (Value::Str("a".into()), ParamKind::Ints),
            (Value::DType(DType::F32), ParamKind::Float),
        ];
        for (value, kind) in values {
            let text = to_json(&OP, &attrs(value, Value::Word("wrap"), Value::None));
            assert!(
                from_json(&with_kind(kind), &text).is_err(),
                "{text}, {kind:?}"
            );
        }
    }

    /// [`OP`] with an attribute `a` of this kind.
    fn with_kind(kind: ParamKind) -> OpDef {
        let mut params = OP.params.to_vec();
        params[1] = Param::required("a", kind);
        OpDef {
            name: OP.name,
            params: params.leak(),
            ..OpDef::DEFAULT
        }
    }

    fn kind_of(value: &Value) -> ParamKind {
        match value {
            Value::Bool(_) => ParamKind::Bool,
            Value::Int(_) => ParamKind::Int,
            Value::Float(_) => ParamKind::Float,
            Value::None | Value::Scalar(_) => ParamKind::Scalar,
            Value::Ints(_) => ParamKind::Ints,
            Value::Floats(_) => ParamKind::Floats,
            Value::Str(_) => ParamKind::Str,
            Value::Word(_) => ParamKind::Choice(&["wrap", "clip"]),
            Value::DType(_) => ParamKind::DType,
            Value::Device(_) => ParamKind::Device,
            Value::Index(_) => ParamKind::Index,
        }
    }

    #[test]
    fn values_that_differ_in_meaning_differ() {
        let of = |a| attrs(a, Value::Word("clip"), Value::None);
        assert_ne!(of(Value::Int(1)), of(Value::Float(1.0)));
        assert_ne!(of(Value::Float(0.0)), of(Value::Float(-0.0)));
        assert_eq!(of(Value::Word("C")), of(Value::Str("C".into())));
    }

    #[test]
    fn missing_attributes_take_their_defaults_and_unknown_ones_are_refused() -> Result<()> {
        let found = from_json(&OP, r#"{"a": {"int": 1}}"#)?;
        let expected = attrs(
            Value::Scalar(Scalar::I64(1)),
            Value::Word("clip"),
            Value::None,
        );
        assert_eq!(found, expected);
        for text in [
            "{}",
            "[]",
            "{",
            r#"{"a": 1, "c": 2}"#,
            r#"{"a": 1, "mode": "up"}"#,
            r#"{"a": {"dtype": "float7"}}"#,
            r#"{"a": 1.5}"#,
        ] {
            assert!(from_json(&OP, text).is_err(), "{text}");
        }
        Ok(())
    }
}
