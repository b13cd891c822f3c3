//! Values of attributes, and their equality.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use mxnet_tensor::{DType, Device, IndexItem, Scalar};
use smallvec::SmallVec;

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Value {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A number of any kind.
    Scalar(Scalar),
    /// Integers.
    Ints(SmallVec<[i64; 4]>),
    /// Real numbers.
    Floats(Arc<[f64]>),
    /// Text.
    Str(Arc<str>),
    /// A word of a [`ParamKind::Choice`].
    Word(&'static str),
    /// A data type.
    DType(DType),
    /// A device.
    Device(Device),
    /// An index expression.
    Index(Arc<[IndexItem]>),
}

/// Variant and bits of a number. Unlike `==` they tell 0.0 from -0.0 and 1 from 1.0.
pub(crate) fn bits_of(value: &Scalar) -> (u8, u64, u64) {
    match *value {
        Scalar::Bool(x) => (0, u64::from(x), 0),
        Scalar::I64(x) => (1, x as u64, 0),
        Scalar::U64(x) => (2, x, 0),
        Scalar::Wide(x) => (3, x.to_bits(), 0),
        Scalar::F64(x) => (4, x.to_bits(), 0),
        Scalar::C128(x) => (5, x.re.to_bits(), x.im.to_bits()),
    }
}

/// Values are equal if every operator treats them alike: floats by their bits, so that NaN equals itself and 0.0 differs from -0.0; text regardless
/// of its representation.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Scalar(a), Value::Scalar(b)) => bits_of(a) == bits_of(b),
            (Value::Ints(a), Value::Ints(b)) => a == b,
            (Value::Floats(a), Value::Floats(b)) => {
                let bits = |x: &f64| x.to_bits();
                a.iter().map(bits).eq(b.iter().map(bits))
            }
            (Value::DType(a), Value::DType(b)) => a == b,
            (Value::Device(a), Value::Device(b)) => a == b,
            (Value::Index(a), Value::Index(b)) => a == b,
            _ => matches!((self.text(), other.text()), (Some(a), Some(b)) if a == b),
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tag().hash(state);
        match self {
            Value::None => {}
            Value::Bool(x) => x.hash(state),
            Value::Int(x) => x.hash(state),
            Value::Float(x) => x.to_bits().hash(state),
            Value::Scalar(x) => bits_of(x).hash(state),
            Value::Ints(x) => x.hash(state),
            Value::Floats(x) => x.iter().for_each(|x| x.to_bits().hash(state)),
            Value::Str(_) | Value::Word(_) => self.text().hash(state),
            Value::DType(x) => x.hash(state),
            Value::Device(x) => x.hash(state),
            Value::Index(x) => x.hash(state),
        }
    }
}

impl Value {
    /// Its text, if it is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Str(x) => Some(x),
            Value::Word(x) => Some(x),
            _ => None,
        }
    }

    /// Number of the variant; both representations of text have the same.
    pub(crate) fn tag(&self) -> u64 {
        match self {
            Value::None => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::Float(_) => 3,
            Value::Scalar(_) => 4,
            Value::Ints(_) => 5,
            Value::Floats(_) => 6,
            Value::Str(_) | Value::Word(_) => 7,
            Value::DType(_) => 8,
            Value::Device(_) => 9,
            Value::Index(_) => 10,
        }
    }
}

impl From<bool> for Value {
    fn from(x: bool) -> Value {
        Value::Bool(x)
    }
}

impl From<i64> for Value {
    fn from(x: i64) -> Value {
        Value::Int(x)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl From<DType> for Value {
    fn from(x: DType) -> Value {
        Value::DType(x)
    }
}

impl From<&'static str> for Value {
    fn from(x: &'static str) -> Value {
        Value::Word(x)
    }
}

impl From<&[i64]> for Value {
    fn from(x: &[i64]) -> Value {
        Value::Ints(SmallVec::from_slice(x))
    }
}

impl From<&[usize]> for Value {
    fn from(x: &[usize]) -> Value {
        Value::Ints(x.iter().map(|&d| d as i64).collect())
    }
}
