//! Language-neutral arguments, which the C ABI, the Rust crate and files pass to the binder.

use mxnet_tensor::{DType, Device, IndexItem, Promotion, Scalar, promotion};
use num_complex::Complex;
use smallvec::SmallVec;

use super::{Misfit, Reader};
use crate::args::{Param, Value};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::opdef::OpDef;
use crate::types::dtype_of_number;

/// One argument.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// Text: a word, a dtype, a device, or an index expression such as `"1:3, ..., newaxis"`.
    Text(&'a str),
    /// Texts.
    Texts(&'a [&'a str]),
    /// Integers.
    Ints(&'a [i64]),
    /// Lists of integers.
    IntLists(&'a [&'a [i64]]),
    /// Real numbers.
    Floats(&'a [f64]),
    /// An array.
    Array(&'a Array),
    /// Arrays; one that is absent is `None`.
    Arrays(&'a [Option<&'a Array>]),
    /// A data type.
    DType(DType),
    /// A device.
    Device(Device),
    /// An index expression.
    Index(&'a [IndexItem]),
}

macro_rules! given {
    ($($t:ty => $variant:ident),*) => { $(
        impl<'a> From<$t> for Given<'a> {
            fn from(x: $t) -> Given<'a> {
                Given::$variant(x)
            }
        }
    )* };
}
given!(bool => Bool, i64 => Int, f64 => Float, &'a str => Text, &'a [i64] => Ints, &'a [f64] => Floats, &'a Array => Array, DType => DType,
    Device => Device);

/// The [`Reader`] of [`Given`]. It holds the function's name for errors.
pub struct NeutralReader {
    /// The function that is called.
    pub op: &'static str,
}

impl NeutralReader {
    fn wrong(&self, problem: String) -> Error {
        Error::dtype(self.op, problem)
    }
}

impl<'a> Reader for &'a NeutralReader {
    type Object = Given<'a>;
    type Array = Array;
    type Out = Array;
    type Error = Error;

    fn fail(&self, error: Error) -> Error {
        error
    }

    fn misfit(&self, name: &str, misfit: Misfit) -> Error {
        Error::dtype("", format!("{name}() {misfit}"))
    }

    fn type_name(&self, object: Given<'a>) -> String {
        match object {
            Given::None => "none",
            Given::Bool(_) => "bool",
            Given::Int(_) => "int",
            Given::Float(_) => "float",
            Given::Complex(..) => "complex",
            Given::Text(_) => "text",
            Given::Texts(_) => "texts",
            Given::Ints(_) => "ints",
            Given::IntLists(_) => "lists of ints",
            Given::Floats(_) => "floats",
            Given::Array(_) => "array",
            Given::Arrays(_) => "arrays",
            Given::DType(_) => "dtype",
            Given::Device(_) => "device",
            Given::Index(_) => "index",
        }
        .to_owned()
    }

    fn is_none(&self, object: Given<'a>) -> bool {
        matches!(object, Given::None)
    }

    fn array(&self, op: &'static OpDef, param: &Param, object: Given<'a>) -> Result<Option<Array>> {
        if let Given::Array(x) = object {
            return Ok(Some(x.clone()));
        }
        if matches!(object, Given::None)
            && (param.nullable || param.default == crate::args::Default::None)
        {
            return Ok(None);
        }
        let Some(value) = number_of(object) else {
            let problem = format!(
                "argument `{}` must be an array or a number, not '{}'",
                param.name,
                self.type_name(object)
            );
            return Err(Error::dtype(op.name, problem));
        };
        let number = Array::weak_scalar(value)?;
        let is_strong = param.strong && promotion() == Promotion::NumPy;
        Ok(Some(if is_strong { strong(number) } else { number }))
    }

    fn arrays(
        &self,
        op: &'static OpDef,
        param: &Param,
        object: Given<'a>,
        inputs: &mut SmallVec<[Option<Array>; 4]>,
    ) -> Result<()> {
        match object {
            Given::None if param.default == crate::args::Default::None => {}
            Given::Arrays(list) => inputs.extend(list.iter().map(|x| x.cloned())),
            Given::Array(x) => inputs.push(Some(x.clone())),
            other => {
                let problem = format!(
                    "argument `{}` must be a list of arrays, not '{}'",
                    param.name,
                    self.type_name(other)
                );
                return Err(Error::dtype(op.name, problem));
            }
        }
        Ok(())
    }

    fn outs(&self, op: &'static OpDef, object: Given<'a>) -> Result<SmallVec<[Option<Array>; 1]>> {
        match object {
            Given::Array(x) => Ok(SmallVec::from_iter([Some(x.clone())])),
            Given::Arrays(list) => Ok(list.iter().map(|x| x.cloned()).collect()),
            other => {
                let problem = format!("`out` must be an array, not '{}'", self.type_name(other));
                Err(Error::dtype(op.name, problem))
            }
        }
    }

    fn is_bool(&self, object: Given<'a>) -> bool {
        matches!(object, Given::Bool(_))
    }

    fn is_integer(&self, object: Given<'a>) -> bool {
        matches!(object, Given::Int(_))
    }

    /// A list of integers stands for a tuple here.
    fn is_other_sequence(&self, _: Given<'a>) -> bool {
        false
    }

    fn truth(&self, object: Given<'a>) -> Result<bool> {
        match object {
            Given::Bool(x) => Ok(x),
            Given::Int(x) => Ok(x != 0),
            other => Err(self.wrong(format!(
                "expected true or false, not '{}'",
                self.type_name(other)
            ))),
        }
    }

    fn integer(&self, object: Given<'a>) -> Result<Option<i64>> {
        Ok(match object {
            Given::Int(x) => Some(x),
            Given::Bool(x) => Some(i64::from(x)),
            _ => None,
        })
    }

    fn real(&self, object: Given<'a>) -> Option<f64> {
        match object {
            Given::Float(x) => Some(x),
            Given::Int(x) => Some(x as f64),
            Given::Bool(x) => Some(f64::from(u8::from(x))),
            _ => None,
        }
    }

    fn number(&self, object: Given<'a>) -> Result<Option<Scalar>> {
        match object {
            Given::Array(x) => x.item().map(Some),
            other => Ok(number_of(other)),
        }
    }

    fn integers(&self, object: Given<'a>) -> Result<Option<SmallVec<[i64; 4]>>> {
        Ok(match object {
            Given::Ints(x) => Some(SmallVec::from_slice(x)),
            Given::Int(x) => Some(SmallVec::from_slice(&[x])),
            _ => None,
        })
    }

    fn with_gaps(&self, object: Given<'a>) -> Result<Option<SmallVec<[i64; 4]>>> {
        match object {
            Given::Ints(_) => self.integers(object),
            _ => Ok(None),
        }
    }

    fn truncated(&self, object: Given<'a>) -> Result<Option<Value>> {
        Ok(match object {
            Given::Float(x) => Some(Value::Int(x as i64)),
            Given::Floats(x) => Some(Value::Ints(x.iter().map(|&x| x as i64).collect())),
            _ => None,
        })
    }

    fn sections(&self, object: Given<'a>) -> Result<Option<Value>> {
        Ok(match object {
            Given::Ints(x) => Some(Value::Ints(SmallVec::from_slice(x))),
            Given::Float(x) if x.fract() == 0.0 => Some(Value::Int(x as i64)),
            _ => None,
        })
    }

    fn axes_of_each(&self, object: Given<'a>) -> Result<Option<SmallVec<[i64; 4]>>> {
        let Given::IntLists(lists) = object else {
            return Ok(None);
        };
        let mut flat = SmallVec::new();
        for list in lists {
            flat.push(list.len() as i64);
            flat.extend_from_slice(list);
        }
        Ok(Some(flat))
    }

    fn reals(&self, object: Given<'a>) -> Option<Vec<f64>> {
        match object {
            Given::Floats(x) => Some(x.to_vec()),
            Given::Ints(x) => Some(x.iter().map(|&x| x as f64).collect()),
            _ => None,
        }
    }

    fn with_text<T>(&self, object: Given<'a>, read: impl FnOnce(&str) -> T) -> Option<T> {
        match object {
            Given::Text(text) => Some(read(text)),
            _ => None,
        }
    }

    fn texts(&self, object: Given<'a>) -> Option<Vec<String>> {
        match object {
            Given::Texts(texts) => Some(texts.iter().map(|&text| text.to_owned()).collect()),
            _ => None,
        }
    }

    fn dtype(&self, object: Given<'a>) -> Result<DType> {
        match object {
            Given::DType(dtype) => Ok(dtype),
            Given::Text(name) => DType::from_name(name)
                .ok_or_else(|| self.wrong(format!("data type '{name}' not understood"))),
            other => Err(self.wrong(format!(
                "expected a data type, not '{}'",
                self.type_name(other)
            ))),
        }
    }

    fn device(&self, object: Given<'a>) -> Result<Device> {
        match object {
            Given::Device(device) => Ok(device),
            Given::Text(text) => text
                .parse()
                .map_err(|_| Error::value(self.op, format!("'{text}' names no device"))),
            other => Err(self.wrong(format!(
                "expected a device, not '{}'",
                self.type_name(other)
            ))),
        }
    }

    fn index(&self, object: Given<'a>) -> Result<Vec<IndexItem>> {
        match object {
            Given::Index(items) => Ok(items.to_vec()),
            Given::Int(i) => Ok(vec![IndexItem::Int(i as isize)]),
            Given::Text(text) => index_of(text).ok_or_else(|| {
                Error::value(self.op, format!("'{text}' is not an index expression"))
            }),
            other => Err(self.wrong(format!(
                "expected an index, not '{}'",
                self.type_name(other)
            ))),
        }
    }
}

fn number_of(object: Given<'_>) -> Option<Scalar> {
    Some(match object {
        Given::Bool(x) => Scalar::Bool(x),
        Given::Int(x) => Scalar::I64(x),
        Given::Float(x) => Scalar::F64(x),
        Given::Complex(re, im) => Scalar::C128(Complex::new(re, im)),
        _ => return None,
    })
}

/// Makes a weak number a 0-d array of its default dtype. Integers beyond 64 bits stay weak: operators refuse them or convert them to floats.
#[must_use]
pub fn strong(array: Array) -> Array {
    match array.number() {
        Some(Scalar::Wide(_)) | None => array,
        Some(value) => Array::scalar(value, dtype_of_number(value)).unwrap_or(array),
    }
}

/// Parses an index expression such as `"0, 1:3, ..., newaxis"`; `None` if the text is not one.
pub fn index_of(text: &str) -> Option<Vec<IndexItem>> {
    let bound = |text: &str| match text.trim() {
        "" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let item = |text: &str| match text.trim() {
        "..." => Some(IndexItem::Ellipsis),
        "newaxis" | "None" => Some(IndexItem::NewAxis),
        slice if slice.contains(':') => {
            let mut parts = slice.split(':');
            let [start, stop] = [parts.next()?, parts.next()?];
            let step = parts.next().unwrap_or("");
            parts.next().is_none().then_some(IndexItem::Slice {
                start: bound(start)?,
                stop: bound(stop)?,
                step: bound(step)?,
            })
        }
        number => number.parse().ok().map(IndexItem::Int),
    };
    text.split(',').map(item).collect()
}
