//! The short way of distributions: parameters that are numbers or arrays, a size and a dtype are taken from the call as they are.
//!
//! What is not exactly of that form is left to the general way, errors included.

use std::mem::MaybeUninit;

use mxnet::ops::random::{Drawn, Parameter, Row, few, one};
use mxnet::ops::{Default, Lone, OpDef, Param, ParamKind, Sole};
use mxnet::tensor::{DType, Scalar};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyTuple};

use super::arguments::{Named, find};
use super::binding::Binding;
use super::short::{Few, made};
use crate::array::PyArray;
use crate::cell::Look;
use crate::convert;

/// More arguments than any distribution takes.
const SLOTS: usize = 8;

/// As many parameters as a distribution has.
const PARAMETERS: usize = 3;

/// `gamma(2.0, size=(2, 2))`, `rand(2, 3)`; with `ends_in_list` `multinomial(20, [0.2, 0.8], 4)`.
pub fn drawn(
    py: Python<'_>,
    binding: &'static Binding,
    drawn: Drawn,
    ends_in_list: bool,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let params = binding.op.params;
    let mut positional = positional;
    // None where it is the default stands for a missing argument, as methods pass them on.
    while let [before @ .., last] = positional
        && params.get(before.len()).is_some_and(|p| p.default == Default::None)
        // SAFETY: None is immortal or at least alive as long as the interpreter.
        && std::ptr::eq(*last, unsafe { ffi::Py_None() })
    {
        positional = before;
    }
    // Nothing is given: one number, if all parameters have defaults.
    if positional.is_empty() && named.len == 0 {
        if params.iter().any(|p| p.default == Default::Required) {
            return Ok(None);
        }
        let size = params[0].variadic.then_some(&[][..]);
        return samples(py, binding.op, drawn, &[], None, size, None);
    }
    let mut slots = [std::ptr::null_mut(); SLOTS];
    if params.len() > SLOTS {
        return Ok(None);
    }
    let mut sizes = Few::new();
    if params[0].variadic {
        // SAFETY: borrowed arguments of the running call.
        let mut given = positional
            .iter()
            .map(|&p| unsafe { Borrowed::from_ptr(py, p) });
        if !given.all(|size| sizes.push(size)) {
            return Ok(None);
        }
    } else if positional.len() <= params.len() {
        slots[..positional.len()].copy_from_slice(positional);
    } else {
        return Ok(None);
    }
    for i in 0..named.len {
        let (name, value) = named.get(i);
        match find(binding, name).and_then(|at| slots.get_mut(at)) {
            Some(slot) if slot.is_null() => *slot = value,
            _ => return Ok(None),
        }
    }
    // What stands behind the parameters is `out`; a variadic shape is not given twice.
    let is_twice = params[0].variadic && !positional.is_empty() && !slots[0].is_null();
    if is_twice || slots[params.len()..].iter().any(|slot| !slot.is_null()) {
        return Ok(None);
    }
    let (mut parameters, mut at) = ([Parameter::Missing; PARAMETERS], 0);
    let mut arrays: [Option<Bound<'_, PyArray>>; PARAMETERS] = [const { None }; PARAMETERS];
    let (mut row, mut dtype, mut has_size) = (None, None, params[0].variadic);
    for (param, &slot) in params.iter().zip(&slots) {
        let object = match slot.is_null() {
            true => None,
            // SAFETY: a borrowed argument of the running call.
            false => Some(unsafe { Borrowed::<PyAny>::from_ptr(py, slot) }),
        };
        // None where it is the default stands for a missing argument.
        let object = object.filter(|x| !(param.default == Default::None && x.is_none()));
        match (param.kind, object) {
            (ParamKind::Array | ParamKind::Bool, object) => {
                let here = at;
                at += 1;
                if at > PARAMETERS {
                    return Ok(None);
                }
                let is_last = params.get(at).is_none_or(|p| p.kind != ParamKind::Array);
                match object {
                    None if param.default == Default::Required => return Ok(None),
                    None => {}
                    Some(object) if ends_in_list && is_last => match list(&object) {
                        Some(list) => row = Some(list),
                        None => return Ok(None),
                    },
                    Some(object) => match number(param, &object) {
                        Some(number) => parameters[here] = Parameter::Number(number),
                        None => match object.cast_exact::<PyArray>() {
                            Ok(x) => arrays[here] = Some(Bound::clone(&x)),
                            Err(_) => return Ok(None),
                        },
                    },
                }
            }
            (_, None) => {}
            (ParamKind::Ints, Some(object)) => match Few::of(object) {
                Some(few) => (sizes, has_size) = (few, true),
                None => return Ok(None),
            },
            (ParamKind::DType, Some(object)) => match convert::dtype(&object) {
                Ok(found) => dtype = Some(found),
                Err(_) => return Ok(None),
            },
            (_, Some(_)) => return Ok(None),
        }
    }
    let mut shape = [0; Few::MOST];
    for (to, &size) in shape.iter_mut().zip(sizes.as_slice()) {
        match usize::try_from(size) {
            Ok(size) => *to = size,
            Err(_) => return Ok(None),
        }
    }
    let size = has_size.then_some(&shape[..sizes.as_slice().len()]);
    if arrays.iter().all(Option::is_none) {
        return samples(py, binding.op, drawn, &parameters[..at], row, size, dtype);
    }
    // No Python code runs from here to the end of the call, so the arrays can be looked at where they are.
    let looks = arrays
        .each_ref()
        .map(|x| x.as_ref().map(|x| x.get().look(py)));
    for (to, look) in parameters.iter_mut().zip(&looks) {
        if let Some(x) = look {
            *to = Parameter::Elements(x);
        }
    }
    let answer = few(binding.op, drawn, &parameters[..at], row, size, dtype);
    looks.into_iter().flatten().for_each(Look::end);
    made(py, binding.op, answer)
}

/// Samples of a call without arrays.
#[inline]
fn samples(
    py: Python<'_>,
    op: &'static OpDef,
    drawn: Drawn,
    parameters: &[Parameter],
    row: Option<Row>,
    size: Option<&[usize]>,
    dtype: Option<DType>,
) -> PyResult<Option<Py<PyAny>>> {
    let is_one = row.is_none() && size.is_none_or(<[usize]>::is_empty);
    if is_one && matches!(op.sole, Sole::Scalar) {
        let make = |to: &mut MaybeUninit<Lone>| one(op, drawn, parameters, dtype, to);
        // SAFETY: where `make` answers yes, it has made the element.
        if let Some(sample) = unsafe { PyArray::element_by(py, make) }? {
            return Ok(Some(sample.into_any()));
        }
        return Ok(None);
    }
    let answer = few(op, drawn, parameters, row, size, dtype);
    made(py, op, answer)
}

/// A real Python number; a truth value only where one belongs.
#[inline(always)]
fn number(param: &Param, object: &Bound<'_, PyAny>) -> Option<Scalar> {
    // A float's value stays in a register: scalars that are handed on are read as wider words than they were written, which takes longer than all
    // the rest of this.
    if object.is_exact_instance_of::<PyFloat>() {
        // SAFETY: a float.
        let value = unsafe { ffi::PyFloat_AsDouble(object.as_ptr()) };
        return (param.kind == ParamKind::Array).then_some(Scalar::F64(value));
    }
    no_float(param, object)
}

#[inline(never)]
fn no_float(param: &Param, object: &Bound<'_, PyAny>) -> Option<Scalar> {
    let number = convert::number(object).ok().flatten()?;
    match (number, param.kind) {
        (Scalar::Bool(_), ParamKind::Bool) => Some(number),
        (Scalar::I64(_) | Scalar::U64(_) | Scalar::F64(_), ParamKind::Array) => Some(number),
        _ => None,
    }
}

/// A list or a tuple of Python floats.
fn list(object: &Bound<'_, PyAny>) -> Option<Row> {
    let mut row = Row::new();
    let mut push = |entry: &Bound<'_, PyAny>| match convert::number(entry) {
        Ok(Some(Scalar::F64(x))) => {
            row.push(x);
            true
        }
        _ => false,
    };
    let all = if let Ok(list) = object.cast_exact::<PyList>() {
        list.iter().all(|entry| push(&entry))
    } else if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        tuple.iter_borrowed().all(|entry| push(&entry))
    } else {
        false
    };
    all.then_some(row)
}
