//! Arguments of a call as Python passes them: the core's binder associates them with the operator's parameters, this file reads the objects.

use std::cell::Cell;
use std::ffi::CString;
use std::os::raw::c_int;
use std::ptr::NonNull;

use mxnet::core::bind::{self, Misfit, Reader};
use mxnet::core::{Default, Error, OpDef, Param, Value};
use mxnet::tensor::{DType, Device, IndexItem, Scalar};
use pyo3::exceptions::{PyDeprecationWarning, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::binding::Binding;
use crate::array::PyArray;
use crate::convert::{self, Operand};
use crate::error::raise;
use crate::keywords::Keywords;
use crate::{numbers, numpy_dtype};

/// Arguments bound to parameters.
pub type Arguments<'py> = bind::Arguments<Operand<'py>, Bound<'py, PyArray>>;

/// Reads Python objects for the binder.
struct PyReader<'py>(Python<'py>);

impl<'py> PyReader<'py> {
    /// The object behind a borrowed argument of the running call.
    #[inline]
    fn object(&self, object: NonNull<ffi::PyObject>) -> Bound<'py, PyAny> {
        // SAFETY: `bind` makes readers for arguments that are borrowed for the whole call.
        unsafe { Bound::from_borrowed_ptr(self.0, object.as_ptr()) }
    }

    /// `None` if the object is not an integer; an error if it is one beyond 64 bits.
    fn unless_overflow<T>(&self, result: PyResult<T>) -> PyResult<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_instance_of::<PyOverflowError>(self.0) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

impl<'py> Reader for PyReader<'py> {
    type Object = NonNull<ffi::PyObject>;
    type Array = Operand<'py>;
    type Out = Bound<'py, PyArray>;
    type Error = PyErr;

    fn fail(&self, error: Error) -> PyErr {
        raise(self.0, error)
    }

    fn misfit(&self, name: &str, misfit: Misfit) -> PyErr {
        PyTypeError::new_err(format!("{name}() {misfit}"))
    }

    fn type_name(&self, object: Self::Object) -> String {
        let class = self.object(object).get_type();
        class
            .name()
            .map(|name| name.to_string())
            .unwrap_or_default()
    }

    #[inline]
    fn is_none(&self, object: Self::Object) -> bool {
        // SAFETY: the None object always exists.
        std::ptr::eq(object.as_ptr(), unsafe { ffi::Py_None() })
    }

    #[inline]
    fn array(
        &self,
        op: &'static OpDef,
        param: &Param,
        object: Self::Object,
    ) -> PyResult<Option<Operand<'py>>> {
        convert::array_argument(self.0, op, param, object.as_ptr())
    }

    fn arrays(
        &self,
        op: &'static OpDef,
        param: &Param,
        object: Self::Object,
        inputs: &mut SmallVec<[Option<Operand<'py>>; 4]>,
    ) -> PyResult<()> {
        let list = self.object(object);
        if list.is_none() && param.default == Default::None {
            return Ok(());
        }
        let Ok(items) = list.try_iter() else {
            let problem = format!(
                "argument `{}` must be a sequence of arrays, not '{}'",
                param.name,
                self.type_name(object)
            );
            return Err(self.fail(Error::dtype(op.name, problem)));
        };
        numbers::check_len(&list)?;
        for item in items {
            inputs.push(convert::array_argument(self.0, op, param, item?.as_ptr())?);
        }
        Ok(())
    }

    fn outs(
        &self,
        op: &'static OpDef,
        object: Self::Object,
    ) -> PyResult<SmallVec<[Option<Self::Out>; 1]>> {
        convert::outs_argument(op, &self.object(object))
    }

    fn is_bool(&self, object: Self::Object) -> bool {
        let object = self.object(object);
        // The second check, for NumPy's booleans, is slow for what is none.
        object.is_exact_instance_of::<PyBool>()
            || !object.is_exact_instance_of::<PyInt>() && object.extract::<bool>().is_ok()
    }

    fn is_integer(&self, object: Self::Object) -> bool {
        self.object(object).is_exact_instance_of::<PyInt>()
    }

    fn is_other_sequence(&self, object: Self::Object) -> bool {
        let object = self.object(object);
        numbers::is_sequence(&object) && !object.is_exact_instance_of::<PyList>()
    }

    fn truth(&self, object: Self::Object) -> PyResult<bool> {
        self.object(object).is_truthy()
    }

    #[inline]
    fn integer(&self, object: Self::Object) -> PyResult<Option<i64>> {
        self.unless_overflow(numbers::integer(&self.object(object)))
    }

    fn real(&self, object: Self::Object) -> Option<f64> {
        self.object(object).extract().ok()
    }

    fn number(&self, object: Self::Object) -> PyResult<Option<Scalar>> {
        convert::scalar_like(&self.object(object))
    }

    fn integers(&self, object: Self::Object) -> PyResult<Option<SmallVec<[i64; 4]>>> {
        numbers::integers(&self.object(object))
    }

    fn with_gaps(&self, object: Self::Object) -> PyResult<Option<SmallVec<[i64; 4]>>> {
        let object = self.object(object);
        if !object.is_instance_of::<PyTuple>() && !object.is_instance_of::<PyList>() {
            return Ok(None);
        }
        let read = |entry: PyResult<Bound<'_, PyAny>>| match entry? {
            entry if entry.is_none() => Ok(Param::GAP),
            entry => numbers::integer(&entry),
        };
        object
            .try_iter()?
            .map(read)
            .collect::<PyResult<_>>()
            .map(Some)
    }

    fn truncated(&self, object: Self::Object) -> PyResult<Option<Value>> {
        numbers::truncated(&self.object(object))
    }

    fn sections(&self, object: Self::Object) -> PyResult<Option<Value>> {
        let object = self.object(object);
        if let Ok(number) = object.cast::<PyFloat>()
            && number.value().fract() == 0.0
        {
            return number
                .call_method0("__int__")?
                .extract()
                .map(Value::Int)
                .map(Some);
        }
        Ok(match numbers::integers(&object)? {
            // A 0-d array has no length.
            Some(cuts) if object.len().is_ok() => Some(Value::Ints(cuts)),
            Some(parts) if parts.len() == 1 => Some(Value::Int(parts[0])),
            _ => None,
        })
    }

    fn axes_of_each(&self, object: Self::Object) -> PyResult<Option<SmallVec<[i64; 4]>>> {
        let object = self.object(object);
        let Ok(entries) = object.try_iter() else {
            return Ok(None);
        };
        numbers::check_len(&object)?;
        let mut flat: SmallVec<[i64; 4]> = SmallVec::new();
        for entry in entries {
            let Some(axes) = numbers::integers(&entry?)? else {
                return Ok(None);
            };
            flat.push(axes.len() as i64);
            flat.extend_from_slice(&axes);
        }
        Ok(Some(flat))
    }

    fn reals(&self, object: Self::Object) -> Option<Vec<f64>> {
        self.object(object).extract().ok()
    }

    fn with_text<T>(&self, object: Self::Object, read: impl FnOnce(&str) -> T) -> Option<T> {
        let object = self.object(object);
        let text = object.cast::<PyString>().ok()?.to_str().ok()?;
        Some(read(text))
    }

    fn texts(&self, object: Self::Object) -> Option<Vec<String>> {
        self.object(object).extract().ok()
    }

    fn dtype(&self, object: Self::Object) -> PyResult<DType> {
        numpy_dtype::read(&self.object(object))
    }

    fn device(&self, object: Self::Object) -> PyResult<Device> {
        crate::device::extract(&self.object(object))
    }

    fn index(&self, object: Self::Object) -> PyResult<Vec<IndexItem>> {
        crate::index_key::items(&self.object(object))
    }
}

/// The same slice as non-null pointers.
#[inline]
fn non_null(objects: &[*mut ffi::PyObject]) -> &[NonNull<ffi::PyObject>] {
    debug_assert!(objects.iter().all(|object| !object.is_null()));
    // SAFETY: 1. arguments of a call are never null. 2. both pointer types have the same representation.
    unsafe { std::slice::from_raw_parts(objects.as_ptr().cast(), objects.len()) }
}

/// Associates each argument with its parameter. Returns the operator to call: the one with the full signature if an argument needs it.
#[inline]
pub fn bind<'py>(
    py: Python<'py>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Keywords,
    bound: &mut Arguments<'py>,
) -> PyResult<&'static OpDef> {
    let gathered = match binding.variadic {
        Some(at) if positional.len() >= at + 2 => gather_variadic(py, at, positional)?,
        _ => None,
    };
    let shortened: SmallVec<[*mut ffi::PyObject; 4]>;
    let positional = match &gathered {
        Some((at, tuple)) => {
            let before = positional[..*at].iter().copied();
            shortened = before.chain([tuple.as_ptr()]).collect();
            &shortened[..]
        }
        None => positional,
    };
    let is_older = Cell::new(false);
    let arguments_by_name = (0..named.len).map(|i| {
        let (name, value) = named.get(i);
        let found = find(binding, name).ok_or_else(|| {
            // SAFETY: keyword names are strings that live as long as the call.
            unsafe { Bound::from_borrowed_ptr(py, name) }.to_string()
        });
        let found = found.or_else(|name| match current_name(binding, &name) {
            Some(at) => {
                is_older.set(true);
                Ok(at)
            }
            None => Err(name),
        });
        // SAFETY: the value of a keyword is never null.
        (found, unsafe { NonNull::new_unchecked(value) })
    });
    let reader = PyReader(py);
    let op = bind::bind(
        &reader,
        binding,
        non_null(positional),
        arguments_by_name,
        bound,
    )?;
    if is_older.get() {
        warn_of_ctx(py, binding.op.name)?;
    }
    Ok(op)
}

/// Warns that a device was given as `ctx`.
#[cold]
pub fn warn_of_ctx(py: Python<'_>, function: &str) -> PyResult<()> {
    warn_of_older(py, &format!("argument `ctx` of {function}"), "`device`")
}

/// Warns that a name of MXNet 1 was used.
#[cold]
pub fn warn_of_older(py: Python<'_>, older: &str, current: &str) -> PyResult<()> {
    let text = CString::new(format!("{older} is deprecated; use {current}"))?;
    PyErr::warn(py, py.get_type::<PyDeprecationWarning>().as_any(), &text, 1)
}

/// The parameter that was called `ctx` in MXNet 1.
#[cold]
fn current_name(binding: &Binding, name: &str) -> Option<usize> {
    let at = (**binding)
        .keywords
        .iter()
        .position(|&keyword| keyword == "device")?;
    (name == "ctx").then_some(at)
}

/// `x.reshape(2, 3)`: packs several integers at the position of a variadic parameter into a tuple. Returns that position and the tuple.
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

/// The index of the parameter called `name`.
pub fn find(binding: &Binding, name: *mut ffi::PyObject) -> Option<usize> {
    // Names in calls are interned, so comparing pointers nearly always suffices.
    if let Some(at) = binding.keywords.iter().position(|k| k.as_ptr() == name) {
        return Some(at);
    }
    // SAFETY: both are strings; comparing strings runs no foreign code and cannot fail for strings.
    binding
        .keywords
        .iter()
        .position(|k| unsafe { ffi::PyUnicode_Compare(k.as_ptr(), name) == 0 as c_int })
}
