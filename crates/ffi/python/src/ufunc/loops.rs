//! Loop dtypes of ufuncs: `dtype=`, `signature=`, `casting=`, and the attribute `types`.

use mxnet::core::{Array, Attrs, Call, Error, OpDef, resolve_call};
use mxnet::ops::ufunc::{Loop, loops};
use mxnet::tensor::{Casting, DType, can_cast};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use smallvec::SmallVec;

use crate::numpy_dtype;

pub use mxnet::ops::ufunc::{num_inputs, num_outputs};

/// Dtypes that the caller requires, of the inputs, then of the outputs.
pub type Asked = SmallVec<[Option<DType>; 4]>;

/// NumPy's type character of a dtype; for bfloat16 that of `ml_dtypes`.
const fn letter(dtype: DType) -> char {
    match dtype {
        DType::Bool => '?',
        DType::I8 => 'b',
        DType::U8 => 'B',
        DType::I16 => 'h',
        DType::U16 => 'H',
        DType::I32 => 'i',
        DType::U32 => 'I',
        DType::I64 => 'l',
        DType::U64 => 'L',
        DType::F16 => 'e',
        DType::BF16 => 'E',
        DType::F32 => 'f',
        DType::F64 => 'd',
        DType::C64 => 'F',
        DType::C128 => 'D',
    }
}

fn text(of: &Loop) -> String {
    let letters = |dtypes: &[DType]| dtypes.iter().map(|&d| letter(d)).collect::<String>();
    format!("{}->{}", letters(&of.inputs), letters(&of.outputs))
}

/// One type signature for each loop: `dd->d`.
pub fn types(op: &OpDef) -> Vec<String> {
    loops(op).iter().map(text).collect()
}

/// The argument `dtype`: the dtype of the outputs.
pub fn of_dtype(op: &OpDef, dtype: DType) -> Asked {
    let mut asked = Asked::from_elem(None, op.params.len());
    asked.resize(op.params.len() + num_outputs(op), Some(dtype));
    asked
}

/// The argument `signature`: a text like `dd->d`, or a tuple with a dtype or None for each input and output.
pub fn of_signature(op: &OpDef, object: &Bound<'_, PyAny>) -> PyResult<Asked> {
    let py = object.py();
    let (nin, nout) = (op.params.len(), num_outputs(op));
    if let Ok(text) = object.cast::<PyString>() {
        let text = text.to_str()?;
        if text.chars().count() == 1 {
            return Err(one_entry(op));
        }
        let fitting = text
            .split_once("->")
            .filter(|(a, b)| a.chars().count() == nin && b.chars().count() == nout);
        let Some((before, after)) = fitting else {
            return Err(PyValueError::new_err(format!(
                "a type-string for {}, {nin} typecode(s) before and {nout} after the -> sign",
                op.name
            )));
        };
        return before
            .chars()
            .chain(after.chars())
            .map(|c| {
                let name = c.to_string();
                numpy_dtype::read(PyString::new(py, &name).as_any())
                    .map(Some)
                    .map_err(|_| {
                        PyValueError::new_err(format!("invalid typecode '{c}' in '{text}'"))
                    })
            })
            .collect();
    }
    let Ok(tuple) = object.cast::<PyTuple>() else {
        return Err(PyTypeError::new_err(format!(
            "the signature object to ufunc must be a string or a tuple, not '{}'",
            object.get_type().name()?
        )));
    };
    if tuple.len() == 1 && nin + nout > 1 {
        return Err(one_entry(op));
    }
    if tuple.len() != nin + nout {
        return Err(PyValueError::new_err(format!(
            "the signature of {} needs {} entries, found {}",
            op.name,
            nin + nout,
            tuple.len()
        )));
    }
    tuple
        .iter()
        .map(|item| {
            if item.is_none() {
                Ok(None)
            } else {
                numpy_dtype::read(&item).map(Some)
            }
        })
        .collect()
}

/// The error for a signature of one entry, which in older NumPy meant the output's dtype.
#[cold]
fn one_entry(op: &OpDef) -> PyErr {
    let count = op.params.len() + num_outputs(op);
    PyTypeError::new_err(format!(
        "{}: a signature has an entry for each of the {count} operands: use `dtype=` for that of the output",
        op.name
    ))
}

/// The loop of a call: among those that satisfy the caller's dtypes, the natural one for the operands, else the first that they can be cast to.
///
/// # Errors
/// [`Error::DType`] if there is none, or if the casting rule forbids the conversion of an operand.
pub fn choose(
    op: &'static OpDef,
    inputs: &[Option<&Array>],
    asked: &[Option<DType>],
    casting: Casting,
) -> Result<Loop, Error> {
    let natural = resolve_call(&Call {
        op,
        inputs,
        attrs: &Attrs::none(),
        outs: &[],
        dtype: None,
    });
    let open: Vec<Loop> = loops(op)
        .into_iter()
        .filter(|l| {
            let given = l.inputs.iter().chain(&l.outputs);
            asked
                .iter()
                .zip(given)
                .all(|(asked, found)| asked.is_none_or(|asked| asked == *found))
        })
        .collect();
    if asked.iter().all(Option::is_none)
        && let Err(error) = natural
    {
        return Err(error);
    }
    let found = natural
        .ok()
        .and_then(|(compute, _)| open.iter().find(|l| l.compute == compute))
        .or_else(|| open.iter().find(|l| misfit(l, inputs, casting).is_none()))
        .or_else(|| open.first());
    let Some(found) = found else {
        let wanted: String = asked.iter().map(|a| a.map_or('.', letter)).collect();
        let (before, after) = wanted.split_at(op.params.len());
        let problem = format!(
            "no loop matching the specified signature {before}->{after} was found for ufunc {}; it has {}",
            op.name,
            types(op).join(", ")
        );
        return Err(Error::dtype(op.name, problem));
    };
    match misfit(found, inputs, casting) {
        None => Ok(found.clone()),
        Some(i) => {
            let from = inputs[i].map_or("", |x| x.dtype().name());
            let problem = format!(
                "cannot cast ufunc '{}' input {i} from {from} to {} with casting rule '{casting}'",
                op.name,
                found.inputs[i].name()
            );
            Err(Error::dtype(op.name, problem))
        }
    }
}

/// The first input that may not be cast to the loop's dtype. Python numbers are checked by kind.
fn misfit(of: &Loop, inputs: &[Option<&Array>], casting: Casting) -> Option<usize> {
    inputs.iter().enumerate().position(|(i, x)| {
        x.is_some_and(|x| {
            let to = of.inputs[i];
            if x.is_weak() {
                casting != Casting::Unsafe && x.dtype().kind() > to.kind()
            } else {
                !can_cast(x.dtype(), to, casting)
            }
        })
    })
}

/// An error if the casting rule forbids the conversion of outputs to the dtypes of `out`.
pub fn check_output(
    op: &'static OpDef,
    i: usize,
    from: DType,
    to: DType,
    casting: Casting,
) -> Result<(), Error> {
    if can_cast(from, to, casting) {
        return Ok(());
    }
    let which = if num_outputs(op) > 1 {
        format!("output {i}")
    } else {
        "output".to_owned()
    };
    let problem = format!(
        "cannot cast ufunc '{}' {which} from {} to {} with casting rule '{casting}'",
        op.name,
        from.name(),
        to.name()
    );
    Err(Error::dtype(op.name, problem))
}
