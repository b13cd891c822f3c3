//! Attributes as text.

use std::hash::{DefaultHasher, Hash, Hasher};

use smallvec::smallvec;

use mxnet_core::serialised::{from_json, to_json};
use mxnet_core::{Attrs, OpDef, Param, ParamKind, Result, Value};
use mxnet_tensor::{DType, Device, IndexItem, Scalar};
use num_complex::Complex;

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
