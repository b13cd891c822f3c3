//! `resolve_dtypes` of ufuncs: the dtypes that a call would use.

use mxnet::core::Array;
use mxnet::ops::linalg::MATMUL;
use mxnet::ops::ufunc::{self as core};
use mxnet::tensor::{Casting, DType, Scalar};
use num_complex::Complex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyInt, PyTuple};

use super::instance;
use super::loops;
use super::method_arguments::Given;
use crate::convert::{self};
use crate::error::raise;
use crate::numpy_dtype;

pub(super) fn resolve_dtypes<'py>(
    slf: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, op) = (slf.py(), instance::operator(slf)?);
    let fail = |error| raise(py, error);
    let names = ["dtypes", "signature", "casting", "reduction"];
    let given = Given::new("resolve_dtypes", names, 1, args, kwargs)?;
    // All matrix products have the loops of `matmul`.
    let op = if op.core_signature.is_empty() {
        op
    } else {
        &MATMUL
    };
    let (nin, nout) = (loops::num_inputs(op), loops::num_outputs(op));
    let wrong = |what: &str| PyTypeError::new_err(format!("resolve_dtypes: {what}"));
    let dtypes = given
        .get(0)
        .and_then(|dtypes| dtypes.cast::<PyTuple>().ok())
        .filter(|dtypes| dtypes.len() == nin + nout)
        .ok_or_else(|| {
            wrong(&format!(
                "`dtypes` must be a tuple of {} entries",
                nin + nout
            ))
        })?;
    let operands: Vec<Option<Array>> = dtypes
        .iter()
        .map(|item| stand_in(&item))
        .collect::<PyResult<_>>()?;
    let casting = match given.some(2) {
        Some(casting) => convert::casting_argument(op, casting)?,
        None => Casting::SameKind,
    };
    let found: Vec<DType> = if given.get(3).map_or(Ok(false), |x| x.is_truthy())? {
        let [result, Some(elements), None] = operands.as_slice() else {
            return Err(wrong(
                "a reduction has a dtype or None for the result, one for the elements, and None",
            ));
        };
        let asked = result.as_ref().map(Array::dtype);
        let dtype = core::fold_dtype(op, "reduce", elements, asked).map_err(fail)?;
        vec![dtype; 3]
    } else {
        let inputs: Vec<Option<&Array>> = operands[..nin].iter().map(Option::as_ref).collect();
        if inputs.iter().any(Option::is_none) {
            return Err(wrong("inputs must have a dtype"));
        }
        let asked = match given.some(1) {
            Some(signature) => loops::of_signature(op, signature)?,
            None => loops::Asked::new(),
        };
        let found = loops::choose(op, &inputs, &asked, casting).map_err(fail)?;
        for (i, (from, out)) in found.outputs.iter().zip(&operands[nin..]).enumerate() {
            if let Some(out) = out {
                loops::check_output(op, i, *from, out.dtype(), casting).map_err(fail)?;
            }
        }
        found.inputs.iter().chain(&found.outputs).copied().collect()
    };
    let found = found
        .into_iter()
        .map(|dtype| numpy_dtype::object(py, dtype))
        .collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, found)?.into_any().unbind())
}

/// A 0-d array of the given dtype; a weak scalar for Python's number types; `None` for None.
fn stand_in(item: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let py = item.py();
    let weak = [
        (py.get_type::<PyInt>(), Scalar::I64(0)),
        (py.get_type::<PyFloat>(), Scalar::F64(0.0)),
        (
            py.get_type::<PyComplex>(),
            Scalar::from(Complex::new(0.0, 0.0)),
        ),
    ];
    let found = match weak.iter().find(|(class, _)| item.is(class)) {
        _ if item.is_none() => return Ok(None),
        Some((_, zero)) => Array::weak_scalar(*zero),
        None if item.is_instance(&py.import("numpy")?.getattr("dtype")?)? => {
            Array::scalar(Scalar::Bool(false), numpy_dtype::read(item)?)
        }
        None => {
            return Err(PyTypeError::new_err(format!(
                "resolve_dtypes: entries must be dtypes, None, int, float or complex, not {}",
                item.repr()?
            )));
        }
    };
    found.map(Some).map_err(|error| raise(py, error))
}
