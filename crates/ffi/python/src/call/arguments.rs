//! Arguments of a call, associated with the operator's parameters and converted.

use std::os::raw::c_int;
use std::ptr;

use mxnet::core::{Attrs, Default, Error, OpDef, ParamKind, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::binding::Binding;
use crate::array::PyArray;
use crate::convert::{self, Operand};
use crate::error::raise;

/// Arguments bound to parameters.
pub struct Arguments<'py> {
    /// Arrays, lists of them flattened; an optional one that is missing is `None`.
    pub inputs: SmallVec<[Option<Operand<'py>>; 4]>,
    /// The other parameters, in their order; `None` if all are at their defaults, which the binding has.
    given: Option<Attrs>,
    /// Their values then.
    defaults: &'static Attrs,
    /// `out=`.
    pub outs: SmallVec<[Option<Bound<'py, PyArray>>; 1]>,
}

impl Arguments<'_> {
    /// Nothing given yet.
    #[inline]
    pub fn new(binding: &'static Binding) -> Self {
        Arguments {
            inputs: SmallVec::new(),
            given: None,
            defaults: &binding.defaults,
            outs: SmallVec::new(),
        }
    }

    /// The parameters that are no arrays, in their order.
    #[inline]
    pub fn attrs(&self) -> &Attrs {
        self.given.as_ref().unwrap_or(self.defaults)
    }
}

/// Keyword arguments of a fast call.
pub struct Named {
    /// One borrowed object for each name.
    pub values: *const *mut ffi::PyObject,
    /// A tuple of strings, or null.
    pub names: *mut ffi::PyObject,
    /// How many.
    pub len: usize,
}

impl Named {
    /// # Safety
    /// `names` is null or a tuple of strings, with one borrowed object each at `values`.
    pub unsafe fn new(values: *const *mut ffi::PyObject, names: *mut ffi::PyObject) -> Named {
        // SAFETY: a tuple, by the contract.
        let len = if names.is_null() {
            0
        } else {
            // SAFETY: a tuple of names, by the contract.
            unsafe { ffi::PyTuple_Size(names) as usize }
        };
        Named { values, names, len }
    }

    /// Name and value of keyword `i`.
    #[inline]
    pub fn get(&self, i: usize) -> (*mut ffi::PyObject, *mut ffi::PyObject) {
        debug_assert!(i < self.len);
        // SAFETY: `i < len`, by the contract of `new`.
        unsafe {
            (
                ffi::PyTuple_GetItem(self.names, i as ffi::Py_ssize_t),
                *self.values.add(i),
            )
        }
    }
}

/// Whether an argument is a keyword value that only the full signature accepts.
fn asks_for_more(py: Python<'_>, binding: &Binding, slots: &[*mut ffi::PyObject]) -> bool {
    if !binding.has_more_words {
        return false;
    }
    let params = binding.op.params.iter().zip(binding.public.params);
    params.zip(slots).any(|((plain, extended), &slot)| {
        let (ParamKind::Choice(plain), ParamKind::Choice(extended)) = (plain.kind, extended.kind)
        else {
            return false;
        };
        if slot.is_null() || plain.len() == extended.len() {
            return false;
        }
        // SAFETY: a borrowed argument of the running call.
        let word = unsafe { Bound::from_borrowed_ptr(py, slot) };
        word.extract::<String>()
            .is_ok_and(|word| !plain.contains(&&*word) && extended.contains(&&*word))
    })
}

/// Most operators have no more parameters: no allocation, and little to clear.
const FEW_SLOTS: usize = 12;

/// Associates each argument with its parameter. Answers the operator to call: the extended one if the call gives what only that has.
pub fn bind<'py>(
    py: Python<'py>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
    bound: &mut Arguments<'py>,
) -> PyResult<&'static OpDef> {
    if named.len == 0 && binding.operands == Some(positional.len()) {
        // Arrays and nothing else: what most calls are.
        let op = binding.op;
        for (&object, param) in positional.iter().zip(op.params) {
            bound
                .inputs
                .push(convert::array_argument(py, op, param, object)?);
        }
        for _ in 0..binding.absent {
            bound.inputs.push(None);
        }
        return Ok(op);
    }
    let op = binding.public;
    let gathered = match binding.variadic {
        Some(at) if positional.len() >= at + 2 => gather_variadic(py, at, positional)?,
        _ => None,
    };
    let shortened: SmallVec<[*mut ffi::PyObject; 4]>;
    let positional = match &gathered {
        Some((at, tuple)) => {
            shortened = positional[..*at]
                .iter()
                .copied()
                .chain([tuple.as_ptr()])
                .collect();
            &shortened[..]
        }
        None => positional,
    };
    if positional.len() > binding.positional {
        let (most, given) = (binding.positional, positional.len());
        return Err(PyTypeError::new_err(format!(
            "{}() takes at most {most} positional arguments ({given} given)",
            binding.name
        )));
    }
    let (mut few, mut many) = ([ptr::null_mut(); FEW_SLOTS], Vec::new());
    let slots = match few.get_mut(..binding.keywords.len()) {
        Some(slots) => slots,
        None => {
            many.resize(binding.keywords.len(), ptr::null_mut());
            &mut many[..]
        }
    };
    slots[..positional.len()].copy_from_slice(positional);
    let mut beside = None;
    for i in 0..named.len {
        let (name, value) = named.get(i);
        let Some(at) = find(binding, name) else {
            // SAFETY: keyword names are strings that live as long as the call.
            let name = unsafe { Bound::from_borrowed_ptr(py, name) };
            return Err(PyTypeError::new_err(format!(
                "{}() got an unexpected keyword argument '{name}'",
                binding.name
            )));
        };
        if !slots[at].is_null() {
            let key = binding.keywords[at].bind(py);
            return Err(PyTypeError::new_err(format!(
                "{}() got multiple values for argument '{key}'",
                binding.name
            )));
        }
        slots[at] = value;
        // A bound by place may be the only one; by name it is what it says.
        if binding.has_beside
            && let Some(other) = op.params.get(at).and_then(|param| param.beside)
        {
            let other = op.params.iter().position(|param| param.name == other);
            beside = beside.or(other);
        }
    }
    if let Some(other) = beside.filter(|&at| slots[at].is_null()) {
        return Err(PyTypeError::new_err(format!(
            "{}() requires {} to be specified.",
            binding.name, op.params[other].name
        )));
    }
    // What only the extended form has was not given, as a rule.
    let none = |slot: &*mut ffi::PyObject| {
        // SAFETY: None is an object that is always there.
        slot.is_null() || std::ptr::eq(*slot, unsafe { ffi::Py_None() })
    };
    let op = match slots.get(binding.op.params.len()..) {
        Some(rest) if rest.iter().all(none) && !asks_for_more(py, binding, slots) => binding.op,
        _ => op,
    };
    let attrs = bound.given.insert(Attrs::none());
    // Length of the lists of arrays, and the parameter of the first.
    let mut list: Option<(usize, &str)> = None;
    for (param, &slot) in op.params.iter().zip(&*slots) {
        if slot.is_null() {
            match (param.kind, param.default) {
                (_, Default::Required) => {
                    return Err(PyTypeError::new_err(format!(
                        "{}() missing required argument: '{}'",
                        binding.name, param.name
                    )));
                }
                (ParamKind::Array, _) => bound.inputs.push(None),
                (ParamKind::Arrays | ParamKind::Out, _) => {}
                (_, default) => attrs.push(Value::from(default)),
            }
            continue;
        }
        match param.kind {
            ParamKind::Array => bound
                .inputs
                .push(convert::array_argument(py, op, param, slot)?),
            ParamKind::Arrays => {
                let start = bound.inputs.len();
                convert::arrays_argument(py, op, param, slot, &mut bound.inputs)?;
                let len = bound.inputs.len() - start;
                // SAFETY: `None` is an object that is always there.
                let is_none = std::ptr::eq(slot, unsafe { ffi::Py_None() });
                match list {
                    _ if is_none => {}
                    Some((first, name)) if first != len => {
                        let problem = format!(
                            "lists of equal length are needed, found {first} arrays in `{name}` and {len} in `{}`",
                            param.name
                        );
                        return Err(raise(py, Error::value(op.name, problem)));
                    }
                    _ => list = Some((len, param.name)),
                }
            }
            ParamKind::Out => {
                // SAFETY: a borrowed argument of the running call.
                let value = unsafe { Bound::from_borrowed_ptr(py, slot) };
                if !value.is_none() {
                    bound.outs = convert::outs_argument(op, &value)?;
                }
            }
            _ => attrs.push(convert::attribute(py, op, param, slot)?),
        }
    }
    // Behind the parameters stands `out`, if the form has it.
    if let Some(&slot) = slots.get(op.params.len())
        && !slot.is_null()
    {
        // SAFETY: a borrowed argument of the running call.
        let value = unsafe { Bound::from_borrowed_ptr(py, slot) };
        if !value.is_none() {
            bound.outs = convert::outs_argument(op, &value)?;
        }
    }
    Ok(op)
}

/// `x.reshape(2, 3)`: several integers where one variadic parameter stands become its tuple. Answers its position and the tuple.
fn gather_variadic<'py>(
    py: Python<'py>,
    at: usize,
    positional: &[*mut ffi::PyObject],
) -> PyResult<Option<(usize, Bound<'py, PyTuple>)>> {
    // SAFETY: borrowed arguments of the running call.
    let items = positional[at..]
        .iter()
        .map(|&p| unsafe { Bound::from_borrowed_ptr(py, p) });
    let items: SmallVec<[Bound<'_, PyAny>; 4]> = items.collect();
    if !items.iter().all(|item| item.extract::<i64>().is_ok()) {
        return Ok(None);
    }
    Ok(Some((at, PyTuple::new(py, items)?)))
}

/// The parameter of this name.
pub fn find(binding: &Binding, name: *mut ffi::PyObject) -> Option<usize> {
    // Names in calls are interned like ours: nearly always the pointers are the same.
    if let Some(at) = binding.keywords.iter().position(|k| k.as_ptr() == name) {
        return Some(at);
    }
    // SAFETY: both are strings; comparing strings runs no foreign code and cannot fail for strings.
    binding
        .keywords
        .iter()
        .position(|k| unsafe { ffi::PyUnicode_Compare(k.as_ptr(), name) == 0 as c_int })
}
