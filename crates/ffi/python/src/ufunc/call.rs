//! Calls of ufuncs with NumPy's keywords (`where`, `dtype`, `casting`, …).

use mxnet::core::bind::Misfit;
use mxnet::core::fp_errors::under_mask;
use mxnet::core::{Array, Attrs, Cpu, Error, OpDef, Outputs, Surface};
use mxnet::ops::elementwise::select;
use mxnet::tensor::{Casting, DType, can_cast};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyString};
use smallvec::SmallVec;

use super::loops::{self, Asked};
use super::outs::Outs;
use crate::array::Get;
use crate::call::{Binding, run};
use crate::convert::{self, Operand};
use crate::error::raise;
use crate::interop;
use crate::keywords::Keywords;
use crate::numpy_dtype;

/// Values of the keywords.
struct Options<'py> {
    outs: Outs<'py>,
    mask: Option<Array>,
    casting: Casting,
    order: u8,
    asked: Option<Asked>,
}

/// Binds the arguments, calls the operator, and wraps the result.
pub fn general(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Keywords,
) -> PyResult<Py<PyAny>> {
    let op = binding.op;
    let (nin, nout) = (op.params.len(), loops::num_outputs(op));
    let mut slots: SmallVec<[*mut ffi::PyObject; 4]> =
        SmallVec::from_elem(std::ptr::null_mut(), nin);
    for (slot, &object) in slots.iter_mut().zip(positional) {
        *slot = object;
    }
    let mut options = Options {
        outs: Outs::default(),
        mask: None,
        casting: Casting::SameKind,
        order: b'K',
        asked: None,
    };
    if positional.len() > nin + nout {
        return Err(wrong_count(op, nin, nout, positional.len()));
    }
    for &object in positional.iter().skip(nin) {
        // SAFETY: a borrowed argument of the running call.
        let object = unsafe { Bound::from_borrowed_ptr(py, object) };
        if object.is(PyEllipsis::get(py)) {
            return Err(PyTypeError::new_err(
                "out=... is only allowed as a keyword argument.",
            ));
        }
        options.outs.push(op, &object)?;
    }
    if options.outs.arrays.iter().all(Option::is_none) {
        options.outs = Outs::default();
    } else {
        while options.outs.arrays.len() < nout {
            options.outs.push(op, py.None().bind(py))?;
        }
    }
    let mut dtype = None;
    for i in 0..named.len {
        let (name, value) = named.get(i);
        // SAFETY: borrowed arguments of the running call.
        let (name, value) = unsafe {
            (
                Bound::from_borrowed_ptr(py, name),
                Bound::from_borrowed_ptr(py, value),
            )
        };
        let name = name.cast::<PyString>()?.to_str()?;
        match name {
            "out" if positional.len() > nin => {
                return Err(PyTypeError::new_err(
                    "cannot specify 'out' as both a positional and keyword argument",
                ));
            }
            "out" => options.outs = Outs::argument(op, &value, nout)?,
            "where" => options.mask = mask(op, &value)?,
            "casting" => options.casting = convert::casting_argument(op, &value)?,
            "order" => options.order = convert::order_argument(op, &value)?,
            "dtype" if value.is_none() => {}
            "dtype" => dtype = Some(numpy_dtype::read(&value)?),
            "signature" | "sig" if options.asked.is_some() => {
                return Err(PyTypeError::new_err(
                    "cannot specify both 'sig' and 'signature'",
                ));
            }
            "signature" | "sig" if value.is_none() => {}
            "signature" | "sig" => options.asked = Some(loops::of_signature(op, &value)?),
            "subok" => {
                // There is only one class of results.
                value
                    .cast::<PyBool>()
                    .map_err(|_| PyTypeError::new_err("'subok' must be a boolean"))?;
            }
            _ => match position(op, name) {
                Some(at) if slots[at].is_null() => slots[at] = value.as_ptr(),
                Some(_) => {
                    return Err(PyTypeError::new_err(format!(
                        "{}() got multiple values for argument '{name}'",
                        binding.name
                    )));
                }
                None => {
                    return Err(PyTypeError::new_err(format!(
                        "{}() {}",
                        binding.name,
                        Misfit::Unexpected(name.into())
                    )));
                }
            },
        }
    }
    if let Some(dtype) = dtype {
        if options.asked.is_some() {
            return Err(PyTypeError::new_err(
                "cannot specify both 'signature' and 'dtype'",
            ));
        }
        options.asked = Some(loops::of_dtype(op, dtype));
    }
    let mut inputs = SmallVec::<[Option<Operand>; 4]>::new();
    for (&slot, param) in slots.iter().zip(op.params) {
        if slot.is_null() {
            let given = positional.len();
            return Err(wrong_count(op, nin, nout, given));
        }
        inputs.push(convert::array_argument(py, op, param, slot)?);
    }
    execute(py, op, inputs, &options)
}

/// The operand called `name`. The only operand of a function of `npx` is also called `data`, its name in MXNet 2.
#[cold]
pub(super) fn position(op: &OpDef, name: &str) -> Option<usize> {
    let is_npx = || op.surface.iter().any(|s| matches!(s, Surface::Npx(_)));
    match op.params.iter().position(|p| p.name == name) {
        None if name == "data" && op.params.len() == 1 && is_npx() => Some(0),
        found => found,
    }
}

#[cold]
fn wrong_count(op: &OpDef, nin: usize, nout: usize, given: usize) -> PyErr {
    let were = if given == 1 { "was" } else { "were" };
    PyTypeError::new_err(format!(
        "{}() takes from {nin} to {} positional arguments but {given} {were} given",
        op.name,
        nin + nout
    ))
}

/// The argument `where`: `None` for True, else booleans.
fn mask(op: &'static OpDef, object: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let py = object.py();
    if object.is(PyBool::new(py, true).as_any()) {
        return Ok(None);
    }
    let Some(mask) = convert::operand(object)? else {
        return Err(PyTypeError::new_err(format!(
            "{}: `where` must be an array of bool, not '{}'",
            op.name,
            object.get_type().name()?
        )));
    };
    let mask = mask.array().detach().astype(DType::Bool);
    mask.map(Some).map_err(|error| raise(py, error))
}

fn execute<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    mut inputs: SmallVec<[Option<Operand<'py>>; 4]>,
    options: &Options<'py>,
) -> PyResult<Py<PyAny>> {
    let fail = |error: Error| raise(py, error);
    options.outs.check_writable(py)?;
    let mut dtype = None;
    // Whether the core may write to `out` directly: it casts under the default rule.
    let mut writes_out = options.mask.is_none() && matches!(options.order, b'K');
    if options.asked.is_some() || options.casting != Casting::SameKind {
        let arrays: SmallVec<[Option<Array>; 4]> = inputs
            .iter()
            .map(|x| x.as_ref().map(Operand::array))
            .collect();
        let refs: SmallVec<[Option<&Array>; 4]> = arrays.iter().map(Option::as_ref).collect();
        let none = Asked::new();
        let asked = options.asked.as_ref().unwrap_or(&none);
        let found = loops::choose(op, &refs, asked, options.casting).map_err(fail)?;
        for (i, from) in found.outputs.iter().enumerate() {
            if let Some(out) = options.outs.get(i) {
                let to = out.get().with(py, Array::dtype);
                loops::check_output(op, i, *from, to, options.casting).map_err(fail)?;
                writes_out &= can_cast(*from, to, Casting::SameKind);
            }
        }
        let composite = matches!(op.cpu, Cpu::Composite(_));
        for ((x, array), &to) in inputs.iter_mut().zip(&arrays).zip(&found.inputs) {
            let Some(array) = array else { continue };
            // Conversions that the core refuses.
            let lossy = array.is_weak() && array.dtype().kind() > to.kind();
            if lossy || composite && array.dtype() != to {
                *x = Some(Operand::converted(array.astype(to).map_err(fail)?));
            }
        }
        if !composite {
            dtype = Some(found.compute);
        }
    }
    if writes_out {
        let outs = &options.outs.arrays;
        let outputs = run(py, op, &inputs, &Attrs::none(), outs, dtype)?;
        return options.outs.finish(py, outputs);
    }
    let outputs = under_mask(options.mask.as_ref(), || {
        run(py, op, &inputs, &Attrs::none(), &[], dtype)
    })?;
    for (i, y) in outputs.iter().enumerate() {
        if let Some(out) = options.outs.get(i) {
            let to = out.get().with(py, Array::dtype);
            loops::check_output(op, i, y.dtype(), to, options.casting).map_err(fail)?;
            interop::check_real(py, y.dtype(), to)?;
        }
    }
    let outputs = outputs
        .into_iter()
        .enumerate()
        .map(|(i, y)| under_mask(options.mask.as_ref(), || masked(py, &y, options, i)))
        .collect::<Result<Outputs, Error>>()
        .map_err(fail)?;
    if options.outs.is_empty() {
        let outputs = ordered(outputs, &inputs, options.order).map_err(fail)?;
        return options.outs.finish(py, outputs);
    }
    options.outs.write(py, op, outputs)
}

/// The result where the mask is true; elsewhere the elements of `out`, or undefined elements if there is no `out`.
fn masked(py: Python<'_>, y: &Array, options: &Options, i: usize) -> Result<Array, Error> {
    let Some(mask) = &options.mask else {
        return Ok(y.clone());
    };
    match options.outs.get(i) {
        Some(out) => {
            // In the dtype of `out`: elements that the mask excludes must not be rounded.
            let base = out.get().array(py);
            select::choose(mask, &y.astype(base.dtype())?, &base)
        }
        None => {
            let base = Array::uninitialised(y.shape(), y.dtype(), y.device())?;
            select::choose(mask, y, &base)
        }
    }
}

/// New results in the requested memory order: `A` is Fortran order if all inputs are in it.
fn ordered(outputs: Outputs, inputs: &[Option<Operand>], order: u8) -> Result<Outputs, Error> {
    let order = match order {
        b'A' => {
            let fortran = inputs
                .iter()
                .flatten()
                .map(Operand::array)
                .filter(|x| x.ndim() > 0)
                .all(|x| x.layout().is_fortran() && !x.layout().is_contiguous());
            if fortran { b'F' } else { b'C' }
        }
        other => other,
    };
    outputs
        .iter()
        .map(|y| convert::in_order(y, order))
        .collect()
}
