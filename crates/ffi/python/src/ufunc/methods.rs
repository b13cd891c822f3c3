//! Methods `reduce`, `accumulate`, `reduceat`, `outer` and `at`: argument binding for `mxnet::ops::ufunc`.

use std::ffi::CStr;

use mxnet::core::{Array, Error, OpDef};
use mxnet::ops::ufunc::{self as core, Initial, Reduction};
use mxnet::tensor::{DType, Promotion, Scalar, promotion};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyTuple};

use super::instance;
use super::method_arguments::Given;
use super::method_arguments::operand;
use super::outs::Outs;
use super::resolve_dtypes::resolve_dtypes;
use crate::array::{Get, PyArray};
use crate::call::{FastCall, without_gil_unless_light};
use crate::convert::{self};
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::index_key::Key;
use crate::keywords::Keywords;
use crate::numbers;
use crate::panic_guard::guarded;

type Method = for<'py> fn(
    &Bound<'py, PyAny>,
    &Bound<'py, PyTuple>,
    Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>>;

/// Methods: name, signature and docstring, C function.
const METHODS: &[(&CStr, &CStr, FastCall)] = &[
    (
        c"reduce",
        c"reduce($self, /, array, axis=0, dtype=None, out=None, **kwargs)\n--\n\nFolds the elements over `axis` (an integer, a tuple, or None for all axes). Keywords: `keepdims=False`, `initial`, `where=True`.\n\n`initial` is the start value; for None the fold starts with the first element. Elements where `where` is false are skipped.\nRaises ValueError if the function does not have two operands and one result, for several axes if the order of the elements\nmatters, and for empty axes if the function has no identity.\n\nParameters\n----------\narray : array_like\n    The elements.\naxis : int, tuple of int or None, default 0\n    Axes to reduce.\ndtype : dtype, optional\n    Dtype of the computation and of the result.\nout : ndarray, optional\n    Array for the result.\n\nReturns\n-------\nndarray\n    The shape of `array` without the reduced axes.\n\nExamples\n--------\n>>> np.multiply.reduce([[1, 2], [3, 4]], axis=1)\narray([ 2, 12])\n>>> np.add.reduce([1, 2, 3], initial=10)\narray(16)",
        entry::<0>,
    ),
    (
        c"accumulate",
        c"accumulate($self, /, array, axis=0, dtype=None, out=None)\n--\n\nResults of all steps of the fold along `axis`, as an array of the same shape.\n\nParameters\n----------\narray : array_like\n    The elements.\naxis : int, default 0\n    Axis along which elements are folded.\ndtype : dtype, optional\n    Dtype of the computation and of the result.\nout : ndarray, optional\n    Array for the result.\n\nReturns\n-------\nndarray\n    The shape is that of `array`.\n\nExamples\n--------\n>>> np.maximum.accumulate([1, 3, 2, 5])\narray([1, 3, 3, 5])",
        entry::<1>,
    ),
    (
        c"reduceat",
        c"reduceat($self, /, array, indices, axis=0, dtype=None, out=None)\n--\n\nFolds segments of `axis`: each begins at one of `indices` and ends before the next one, or at the end of the axis. If the next index is\nnot larger, the segment has one element.\n\nRaises IndexError for an index out of range.\n\n*Differs from NumPy*: indices that are floats raise an error.\n\nParameters\n----------\narray : array_like\n    The elements.\nindices : array_like of int, shape (n,)\n    First position of each segment.\naxis : int, default 0\n    Axis along which elements are folded.\ndtype : dtype, optional\n    Dtype of the computation and of the result.\nout : ndarray, optional\n    Array for the result.\n\nReturns\n-------\nndarray\n    The shape of `array` with length n along the axis.\n\nExamples\n--------\n>>> np.add.reduceat([1, 2, 3, 4, 5], [0, 3])\narray([6, 9])",
        entry::<2>,
    ),
    (
        c"outer",
        c"outer($self, A, B, /, **kwargs)\n--\n\nApplies the function to all pairs of an element of `A` and an element of `B`. The result has the shape `A.shape + B.shape`.\n\nParameters\n----------\nA : array_like\n    First operand.\nB : array_like\n    Second operand.\n**kwargs\n    Keywords of a call: `out`, `where`, `dtype`, ...\n\nReturns\n-------\nndarray\n\nExamples\n--------\n>>> np.subtract.outer([10, 20], [1, 2, 3])\narray([[ 9,  8,  7],\n       [19, 18, 17]])",
        entry::<3>,
    ),
    (
        c"at",
        c"at($self, a, indices, b=None, /)\n--\n\nApplies the function in place to `a[indices]` (and `b`). An element that occurs several times in `indices` is changed several times.\n\nWhile a gradient is recorded, `add.at` and `subtract.at` are recorded too; others raise AutogradError.\n\nFloats are truncated for integer arrays; other results must be castable to the dtype of `a` under 'same_kind'.\n\nParameters\n----------\na : ndarray\n    The array that is changed.\nindices : index expression\n    Which elements.\nb : array_like, optional\n    Second operand, of functions of two arrays.\n\nExamples\n--------\n>>> x = np.array([0, 0, 0])\n>>> np.add.at(x, [0, 2, 2], [1, 10, 100])\n>>> x\narray([  1,   0, 110])",
        entry::<4>,
    ),
    (
        c"__reduce__",
        c"__reduce__($self, /)\n--\n\nPickles by name.",
        entry::<5>,
    ),
    (
        c"resolve_dtypes",
        c"resolve_dtypes($self, /, dtypes, *, signature=None, casting=None, reduction=False)\n--\n\nThe dtypes of the operands and results in the loop that is used for operands of these dtypes, as a tuple.\n\n`dtypes` has one entry for each input and output: a dtype, None for an output that is not given, or one of int, float and\ncomplex for a Python number. With `reduction` the entries are the dtype of the result, that of the elements, and None.\nRaises TypeError if there is no loop for them, or the casting rule forbids a conversion.\n\nParameters\n----------\ndtypes : tuple\n    One entry for each input and output.\nsignature : str or tuple, optional\n    Dtypes of the requested loop.\ncasting : str, optional\n    Casting rule; 'same_kind' for None.\nreduction : bool, default False\n    Whether the dtypes are those of a reduction.\n\nReturns\n-------\ntuple of dtype\n\nExamples\n--------\n>>> f4 = np.dtype('float32')\n>>> np.add.resolve_dtypes((f4, int, None))\n(dtype('float32'), dtype('float32'), dtype('float32'))",
        entry::<6>,
    ),
];

const FUNCTIONS: [Method; 7] = [
    reduce,
    accumulate,
    reduceat,
    outer,
    at,
    pickle,
    resolve_dtypes,
];

/// Methods that operands of other classes may override: name, parameters, and how many of these are operands.
const OVERRIDABLE: [(&str, &[&str], usize); 5] = [
    (
        "reduce",
        &[
            "array", "axis", "dtype", "out", "keepdims", "initial", "where",
        ],
        1,
    ),
    ("accumulate", &["array", "axis", "dtype", "out"], 1),
    ("reduceat", &["array", "indices", "axis", "dtype", "out"], 2),
    ("outer", &["A", "B"], 2),
    ("at", &["a", "indices", "b"], 3),
];

/// The table of methods for the type.
pub(super) fn table() -> Vec<ffi::PyMethodDef> {
    let mut table: Vec<ffi::PyMethodDef> = METHODS
        .iter()
        .map(|(name, doc, entry)| ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunctionFastWithKeywords: *entry,
            },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        })
        .collect();
    // SAFETY: an entry of zeros ends the table.
    table.push(unsafe { std::mem::zeroed() });
    table
}

/// Entry of method number `N`.
unsafe extern "C" fn entry<const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held, an instance of the type, `nargs` arguments and one for each keyword name, all borrowed for the
    // call.
    let (py, slf, positional, named) = unsafe {
        let positional = match nargs {
            0 => &[][..],
            _ => std::slice::from_raw_parts(args, nargs as usize),
        };
        let py = Python::assume_attached();
        (
            py,
            Bound::from_borrowed_ptr(py, slf),
            positional,
            Keywords::new(args.wrapping_add(nargs as usize), kwnames),
        )
    };
    guarded(py, "ufunc", || {
        // SAFETY: borrowed arguments of the running call.
        let object = |p: *mut ffi::PyObject| unsafe { Bound::from_borrowed_ptr(py, p) };
        let args = PyTuple::new(py, positional.iter().map(|&p| object(p)))?;
        let kwargs = match named.len {
            0 => None,
            _ => Some(PyDict::new(py)),
        };
        for (i, kwargs) in (0..named.len).zip(kwargs.iter().cycle()) {
            let (name, value) = named.get(i);
            kwargs.set_item(object(name), object(value))?;
        }
        if let Some((name, names, arrays)) = OVERRIDABLE.get(N)
            && let Some(answer) =
                super::method_call(&slf, name, (names, *arrays), &args, kwargs.as_ref())?
        {
            return Ok(answer);
        }
        FUNCTIONS[N](&slf, &args, kwargs.as_ref())
    })
}

/// The dtype to fold in: the requested one, else the promotion of the dtypes of `out` and `x`, if the function computes in it.
fn dtype_for(
    op: &'static OpDef,
    asked: Option<DType>,
    outs: &Outs,
    x: &Array,
    py: Python<'_>,
) -> Option<DType> {
    asked.or_else(|| {
        let out = outs.get(0)?.get().array(py);
        let to = mxnet::core::promoted(&[Some(&out), Some(x)]);
        let own = core::loops(op)
            .iter()
            .any(|l| l.compute == to && l.outputs.as_slice() == [to]);
        own.then_some(to)
    })
}

fn finish<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    outs: &Outs<'py>,
    result: Result<Array, Error>,
) -> PyResult<Py<PyAny>> {
    let y = result.map_err(|error| raise(py, error))?;
    outs.check_writable(py)?;
    outs.write_exactly(py, op, y)
}

/// An error for generalised functions, which do not fold.
fn folds(op: &OpDef) -> PyResult<()> {
    match op.core_signature {
        "" => Ok(()),
        core => Err(PyRuntimeError::new_err(format!(
            "Reduction not defined on ufunc with signature: {} works on {core}",
            op.name
        ))),
    }
}

fn reduce<'py>(
    slf: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, op) = (slf.py(), instance::operator(slf)?);
    folds(op)?;
    let names = [
        "array", "axis", "dtype", "out", "keepdims", "initial", "where",
    ];
    let given = Given::new("reduce", names, 1, args, kwargs)?;
    let x = given.array(op, 0)?;
    let axes = match given.get(1) {
        None => Some([0].into_iter().collect()),
        Some(axis) if axis.is_none() => None,
        Some(axis) => match numbers::integers(axis)? {
            Some(axes) if !numbers::is_sequence(axis) => Some(axes),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "{}: axis must be an integer, a tuple of integers or None, not '{}'",
                    op.name,
                    axis.get_type().name()?
                )));
            }
        },
    };
    if args.len() > 3 && args.get_item(3)?.is(PyEllipsis::get(py)) {
        return Err(PyTypeError::new_err(
            "out=... is only allowed as a keyword argument.",
        ));
    }
    let outs = given.outs(op, 3)?;
    let dtype = dtype_for(op, given.dtype(2)?, &outs, &x, py);
    let keepdims = given.get(4).map_or(Ok(false), |x| x.is_truthy())?;
    let initial = match given.get(5) {
        None => Initial::Natural,
        Some(value) if value.is_none() => Initial::First,
        Some(value) => match convert::scalar_like(value)? {
            Some(value) => Initial::At(value),
            None if is_no_value(value)? => Initial::Natural,
            None => {
                return Err(PyTypeError::new_err(format!(
                    "{}: initial must be a number, not '{}'",
                    op.name,
                    value.get_type().name()?
                )));
            }
        },
    };
    let mask = match given.get(6) {
        None => None,
        Some(mask) if mask.is(pyo3::types::PyBool::new(py, true).as_any()) => None,
        Some(mask) => Some(operand(op, mask)?.detach()),
    };
    let how = Reduction {
        axes: axes.as_deref(),
        dtype,
        keepdims,
        initial,
        mask: mask.as_ref(),
    };
    let result = without_gil_unless_light(py, &[&x, mask.as_ref().unwrap_or(&x)], || {
        core::reduce(op, &x, &how)
    });
    finish(py, op, &outs, result)
}

/// Whether the object is NumPy's `_NoValue`, the default that its signatures show as `<no value>`.
fn is_no_value(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.get_type().name()? == "_NoValueType")
}

fn accumulate<'py>(
    slf: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, op) = (slf.py(), instance::operator(slf)?);
    folds(op)?;
    let given = Given::new(
        "accumulate",
        ["array", "axis", "dtype", "out"],
        1,
        args,
        kwargs,
    )?;
    let x = given.array(op, 0)?;
    let axis = given.axis(op, "accumulate", 1)?;
    let outs = given.outs(op, 3)?;
    let dtype = dtype_for(op, given.dtype(2)?, &outs, &x, py);
    let result = without_gil_unless_light(py, &[&x], || core::accumulate(op, &x, axis, dtype));
    finish(py, op, &outs, result)
}

fn reduceat<'py>(
    slf: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, op) = (slf.py(), instance::operator(slf)?);
    folds(op)?;
    let names = ["array", "indices", "axis", "dtype", "out"];
    let given = Given::new("reduceat", names, 2, args, kwargs)?;
    let (x, starts) = (given.array(op, 0)?, given.array(op, 1)?);
    let axis = given.axis(op, "reduceat", 2)?;
    let outs = given.outs(op, 4)?;
    let dtype = dtype_for(op, given.dtype(3)?, &outs, &x, py);
    let result = without_gil_unless_light(py, &[&x, &starts], || {
        core::reduceat(op, &x, &starts, axis, dtype)
    });
    finish(py, op, &outs, result)
}

fn outer<'py>(
    slf: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, op) = (slf.py(), instance::operator(slf)?);
    if !op.core_signature.is_empty() {
        return Err(PyTypeError::new_err(format!(
            "method outer is not allowed in ufunc with non-trivial signature: {} works on {}",
            op.name, op.core_signature
        )));
    }
    if op.params.len() != 2 {
        return Err(PyValueError::new_err(
            "outer product only supported for binary functions",
        ));
    }
    if args.len() != 2 {
        return Err(PyTypeError::new_err(format!(
            "outer() takes exactly 2 positional arguments ({} given)",
            args.len()
        )));
    }
    let (a, b) = (args.get_item(0)?, args.get_item(1)?);
    let (left, right) = (operand(op, &a)?, operand(op, &b)?);
    let becomes_array = |x: &Array| !matches!(x.number(), None | Some(Scalar::Wide(_)));
    if promotion() == Promotion::NumPy && (becomes_array(&left) || becomes_array(&right)) {
        // NumPy converts both to arrays.
        let both = [left, right].map(|x| PyArray::wrap(py, mxnet::core::bind::strong(x)));
        let [left, right] = both;
        return outer(slf, &PyTuple::new(py, [left?, right?])?, kwargs);
    }
    // Python numbers are passed as they are: they promote by their kind only.
    if left.is_weak() || right.ndim() == 0 {
        return slf.call((a, b), kwargs).map(Bound::unbind);
    }
    let spread = core::outer(op, &left, &right).map_err(|error| raise(py, error))?;
    slf.call((PyArray::wrap(py, spread)?, b), kwargs)
        .map(Bound::unbind)
}

fn at<'py>(
    slf: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, op) = (slf.py(), instance::operator(slf)?);
    if !op.core_signature.is_empty() {
        return Err(PyTypeError::new_err(format!(
            "{}.at: does not support ufunc with non-trivial signature: {}",
            op.name, op.core_signature
        )));
    }
    let given = Given::new("at", ["a", "indices", "b"], 2, args, kwargs)?;
    let mut target = Outs::default();
    if let Some(a) = given.get(0) {
        let numpy = py.import("numpy")?.getattr("ndarray")?;
        if !a.is_instance_of::<PyArray>() && !a.is_instance(&numpy)? {
            return Err(PyTypeError::new_err("first operand must be array"));
        }
        // Inline elements stand for NumPy scalars, which are not arrays.
        if let Ok(x) = a.cast::<PyArray>()
            && !x.get().is_written_in_place(py)
        {
            return Err(PyTypeError::new_err("first operand must be array"));
        }
        target.push(op, a)?;
    }
    let mut key = Key::new();
    if let Some(indices) = given.get(1) {
        key.read(indices)?;
    }
    let value = given.some(2).map(|b| operand(op, b)).transpose()?;
    let Some(object) = target.get(0) else {
        return Err(PyTypeError::new_err("first operand must be array"));
    };
    object.get().check_writable(py)?;
    let a = object.get().array(py);
    let result = without_gil(py, || {
        core::at(op, &a, &key.items, &key.arrays, value.as_ref())
    });
    if let Some(recorded) = result.map_err(|error| raise(py, error))? {
        object.get().adopt_written(py, recorded)?;
    }
    Ok(py.None())
}

fn pickle<'py>(
    slf: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let (py, op) = (slf.py(), instance::operator(slf)?);
    Given::new("__reduce__", [], 0, args, kwargs)?;
    let rebuild = py.import("mxnet._core")?.getattr("_ufunc")?;
    Ok((rebuild, (op.name,)).into_pyobject(py)?.into_any().unbind())
}
