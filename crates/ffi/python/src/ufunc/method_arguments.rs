//! Arguments of the methods of ufuncs, bound to names.

use mxnet::core::{Array, Error, OpDef};
use mxnet::tensor::DType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::outs::Outs;
use crate::convert::{self, Operand};
use crate::error::raise;
use crate::{numbers, numpy_dtype};

/// Arguments of a method, by parameter.
pub(super) struct Given<'py, const N: usize> {
    values: [Option<Bound<'py, PyAny>>; N],
}

impl<'py, const N: usize> Given<'py, N> {
    /// Associates arguments with parameters; the first `required` must be given.
    pub(super) fn new(
        method: &str,
        names: [&str; N],
        required: usize,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Given<'py, N>> {
        let mut values = [const { None }; N];
        if args.len() > N {
            return Err(PyTypeError::new_err(format!(
                "{method}() takes at most {N} positional arguments ({} given)",
                args.len()
            )));
        }
        for (value, given) in values.iter_mut().zip(args) {
            *value = Some(given);
        }
        for (key, given) in kwargs.into_iter().flatten() {
            let key: String = key.extract()?;
            let Some(at) = names.iter().position(|&name| name == key) else {
                return Err(PyTypeError::new_err(format!(
                    "{method}() got an unexpected keyword argument '{key}'"
                )));
            };
            if values[at].replace(given).is_some() {
                return Err(PyTypeError::new_err(format!(
                    "{method}() got multiple values for argument '{key}'"
                )));
            }
        }
        if let Some(missing) = (0..required).find(|&i| values[i].is_none()) {
            return Err(PyTypeError::new_err(format!(
                "{method}() missing required argument: '{}'",
                names[missing]
            )));
        }
        Ok(Given { values })
    }

    /// Argument `i`, unless it is missing.
    pub(super) fn get(&self, i: usize) -> Option<&Bound<'py, PyAny>> {
        self.values[i].as_ref()
    }

    /// Argument `i`, unless it is missing or None.
    pub(super) fn some(&self, i: usize) -> Option<&Bound<'py, PyAny>> {
        self.get(i).filter(|x| !x.is_none())
    }

    /// Argument `i` as an array.
    pub(super) fn array(&self, op: &'static OpDef, i: usize) -> PyResult<Array> {
        match self.get(i) {
            Some(object) => Ok(mxnet::core::bind::strong(operand(op, object)?)),
            None => Err(PyTypeError::new_err("missing array")),
        }
    }

    /// Argument `i` as a dtype.
    pub(super) fn dtype(&self, i: usize) -> PyResult<Option<DType>> {
        self.some(i).map(numpy_dtype::read).transpose()
    }

    /// Argument `i` as an axis, 0 if it is missing.
    pub(super) fn axis(&self, op: &'static OpDef, method: &str, i: usize) -> PyResult<i64> {
        let Some(object) = self.get(i) else {
            return Ok(0);
        };
        match numbers::integers(object)? {
            Some(axes) if axes.len() == 1 => Ok(axes[0]),
            _ => Err(PyValueError::new_err(format!(
                "{}: {method} does not allow multiple axes, and needs one",
                op.name
            ))),
        }
    }

    /// Argument `i` as `out`.
    pub(super) fn outs(&self, op: &'static OpDef, i: usize) -> PyResult<Outs<'py>> {
        match self.get(i) {
            Some(object) => Outs::argument(op, object, 1),
            None => Ok(Outs::default()),
        }
    }
}

/// The argument as an array.
pub(super) fn operand(op: &'static OpDef, object: &Bound<'_, PyAny>) -> PyResult<Array> {
    match convert::operand(object)? {
        Some(Operand::Converted(array)) => Ok(*array),
        Some(held) => Ok(held.array()),
        None => Err(raise(
            object.py(),
            Error::dtype(
                op.name,
                format!(
                    "operands must be arrays or numbers, not '{}'",
                    object.get_type().name()?
                ),
            ),
        )),
    }
}
