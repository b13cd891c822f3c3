//! Short ways of calls with nothing but their first arguments: views by integers, constants by a shape, copies, elementwise choices.
//!
//! What is not exactly of that form is left to the general way, errors included.

use mxnet::ops::index::put_few;
use mxnet::ops::{
    Array, Copied, Default, Filling, Form, OpDef, Outputs, ParamKind, Short, constant,
    constant_elements, default_dtype, duplicate, flat, flat_layout, floats, interp::Flags,
};
use mxnet::tensor::{DType, Layout, Scalar, default_float};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::arguments::{Named, find};
use super::binding::Binding;
use crate::array::{Get, PyArray};
use crate::cell::Look;
use crate::convert;
use crate::error::raise;

const MOST: usize = Few::MOST;

/// The result, if the operator has a short way and it is open.
#[inline]
pub fn call(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let flags = Flags::current();
    if flags.is_watching() && flags.may_move() {
        return watched(py, binding, positional, named);
    }
    open_way(py, binding, positional, named)
}

/// The same while somebody watches for floating-point errors: a result that tells of none is kept.
#[inline(never)]
fn watched(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let op = binding.op;
    let way = || open_way(py, binding, positional, named);
    let is_out = |i| find(binding, named.get(i).0).is_none_or(|at| at >= op.params.len());
    // What is written to `out` cannot be taken back.
    if (0..named.len).any(is_out) {
        return Ok(None);
    }
    match op.short {
        // What only shows or copies elements tells of none, conversions are looked at where they are made.
        Short::View(_)
        | Short::Locked(_)
        | Short::Squeezed(_)
        | Short::Copy
        | Short::CopyOfDense
        | Short::Flat(_)
        | Short::Cast
        | Short::Constant(_) => way(),
        _ => floats::tried(op, way, |made| Ok(is_clean(made.bind(py)))),
    }
}

/// Whether all elements of an array, or of a tuple or list of arrays, are finite.
fn is_clean(made: &Bound<'_, PyAny>) -> bool {
    if let Ok(x) = made.cast_exact::<PyArray>() {
        if let Some(element) = x.get().lone(made.py()) {
            return element.is_finite();
        }
        return floats::is_finite(&x.get().look(made.py())).unwrap_or(false);
    }
    if let Ok(parts) = made.cast_exact::<PyTuple>() {
        return parts.iter().all(|part| is_clean(&part));
    }
    match made.cast_exact::<PyList>() {
        Ok(parts) => parts.iter().all(|part| is_clean(&part)),
        Err(_) => true,
    }
}

#[inline]
fn open_way(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let op = binding.op;
    match op.short {
        Short::None => Ok(None),
        Short::View(view) if named.len == 0 => viewed(py, op, view, positional, false),
        Short::Locked(view) if named.len == 0 => viewed(py, op, view, positional, true),
        Short::Squeezed(view) if named.len == 0 => match itself(py, positional) {
            None => viewed(py, op, view, positional, false),
            found => Ok(found),
        },
        Short::Constant(filling) => filled(py, binding, filling, positional, named),
        Short::Copy if named.len == 0 => copied(py, op, positional, false),
        Short::CopyOfDense if named.len == 0 => copied(py, op, positional, true),
        Short::Flat(copied) if named.len == 0 => flattened(py, copied, positional),
        Short::Cast => cast(py, binding, positional, named),
        Short::List(list) => listed(py, binding, list, positional, named),
        Short::Several(several) if named.len == 0 => together(py, several, positional),
        Short::Counted(counted) => repeated(py, binding, counted, positional, named),
        Short::PairAlong(pair) => taken(py, binding, pair, positional, named),
        Short::Single(single) if named.len == 0 => alone(py, binding, single, positional),
        Short::Pair(pair) if named.len == 0 => paired(py, op, pair, positional),
        Short::Along(along) => searched(py, binding, along, positional, named),
        Short::View(_)
        | Short::Locked(_)
        | Short::Squeezed(_)
        | Short::Copy
        | Short::CopyOfDense
        | Short::Flat(_)
        | Short::Single(_)
        | Short::Several(_)
        | Short::Pair(_) => Ok(None),
    }
}

/// The Python object for what a short way answers. The array goes straight into it: every place that it passes through costs. No array is being
/// looked at meanwhile.
#[inline]
pub(super) fn made(
    py: Python<'_>,
    op: &OpDef,
    answer: mxnet::ops::Result<Option<Array>>,
) -> PyResult<Option<Py<PyAny>>> {
    match answer {
        Ok(Some(array)) => Ok(Some(PyArray::wrap_made(py, op, array)?.into_any())),
        Ok(None) => Ok(None),
        Err(error) => Err(raise(py, error)),
    }
}

/// The same for what an operator makes of `first`, its first argument.
#[inline]
fn made_of(
    py: Python<'_>,
    op: &OpDef,
    first: &Bound<'_, PyArray>,
    answer: mxnet::ops::Result<Option<Array>>,
) -> PyResult<Option<Py<PyAny>>> {
    match answer {
        Ok(Some(array)) => Ok(Some(
            PyArray::wrap_made_of(py, op, array, Some(first))?.into_any(),
        )),
        Ok(None) => Ok(None),
        Err(error) => Err(raise(py, error)),
    }
}

/// Small integers, given one by one or as a tuple.
pub(super) struct Few {
    values: [isize; MOST],
    len: usize,
}

impl Few {
    /// More of them, axes of arrays most often, go the general way.
    pub(super) const MOST: usize = 8;

    pub(super) fn new() -> Few {
        Few {
            values: [0; MOST],
            len: 0,
        }
    }

    /// Appends an `int`; answers whether it was one that fits.
    #[inline]
    pub(super) fn push(&mut self, object: Borrowed<'_, '_, PyAny>) -> bool {
        // SAFETY: a live object.
        if self.len == MOST || unsafe { ffi::PyLong_CheckExact(object.as_ptr()) } == 0 {
            return false;
        }
        // SAFETY: an int.
        let value = unsafe { ffi::PyLong_AsSsize_t(object.as_ptr()) };
        // SAFETY: the thread is attached, as the borrowed object shows.
        if value == -1 && !unsafe { ffi::PyErr_Occurred() }.is_null() {
            // SAFETY: as above. The general way raises it again, with more words.
            unsafe { ffi::PyErr_Clear() };
            return false;
        }
        self.values[self.len] = value;
        self.len += 1;
        true
    }

    /// An `int` or a tuple of them.
    #[inline]
    pub(super) fn of(object: Borrowed<'_, '_, PyAny>) -> Option<Few> {
        let mut few = Few::new();
        // SAFETY: a live object.
        if unsafe { ffi::PyTuple_CheckExact(object.as_ptr()) } == 0 {
            return few.push(object).then_some(few);
        }
        // SAFETY: a tuple.
        let len = unsafe { ffi::PyTuple_Size(object.as_ptr()) };
        for i in 0..len {
            // SAFETY: 1. `i` is in range. 2. the tuple, which the caller holds, keeps the item.
            let item = unsafe {
                Borrowed::from_ptr(object.py(), ffi::PyTuple_GetItem(object.as_ptr(), i))
            };
            if !few.push(item) {
                return None;
            }
        }
        Some(few)
    }

    pub(super) fn as_slice(&self) -> &[isize] {
        &self.values[..self.len]
    }
}

/// `x.reshape(2, 3)`, `x.transpose((1, 0))`.
#[inline]
fn viewed(
    py: Python<'_>,
    op: &'static OpDef,
    view: fn(&Layout, Option<&[isize]>) -> Option<Layout>,
    positional: &[*mut ffi::PyObject],
    is_locked: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let Some((&first, rest)) = positional.split_first() else {
        return Ok(None);
    };
    // SAFETY: a borrowed argument of the running call.
    let first = unsafe { Borrowed::<PyAny>::from_ptr(py, first) };
    let Ok(x) = first.cast::<PyArray>() else {
        return Ok(None);
    };
    let Some(layout) = seen(py, op, view, &x, rest) else {
        return Ok(None);
    };
    let view = match is_locked {
        true => PyArray::shown_of(py, &layout, None, true, &x)?,
        false => PyArray::shown(py, &layout, &x)?,
    };
    Ok(Some(view.into_any()))
}

/// The only argument, if it is an array without axes of length 1.
#[inline]
pub(super) fn itself(py: Python<'_>, positional: &[*mut ffi::PyObject]) -> Option<Py<PyAny>> {
    let &[object] = positional else {
        return None;
    };
    // SAFETY: a borrowed argument of the running call.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    let x = object.cast::<PyArray>().ok()?;
    let is_whole = (*x).get().with(py, |x| !x.shape().contains(&1));
    is_whole.then(|| object.to_owned().unbind())
}

/// What the integers in `rest` choose of the array, if nothing is recorded.
#[inline]
fn seen(
    py: Python<'_>,
    op: &'static OpDef,
    view: fn(&Layout, Option<&[isize]>) -> Option<Layout>,
    x: &Bound<'_, PyArray>,
    rest: &[*mut ffi::PyObject],
) -> Option<Layout> {
    // SAFETY: as above.
    let mut rest = rest.iter().map(|&p| unsafe { Borrowed::from_ptr(py, p) });
    let second = op.params.get(1)?;
    let integers = match rest.len() {
        0 if second.default == Default::Required => return None,
        0 => None,
        1 if second.kind == ParamKind::Int => {
            let mut few = Few::new();
            Some(few.push(rest.next()?).then_some(few)?)
        }
        1 => Some(Few::of(rest.next()?)?),
        n if second.variadic || second.kind == ParamKind::Int && n + 1 == op.params.len() => {
            let mut few = Few::new();
            Some(rest.all(|item| few.push(item)).then_some(few)?)
        }
        _ => return None,
    };
    // While recording, a view has a place in the graph.
    if !Flags::current().may_move() {
        return None;
    }
    let look = x.get().look(py);
    view(look.layout(), integers.as_ref().map(Few::as_slice))
}

/// `zeros((2, 3))`, `full((2, 3), 1.5, dtype="float64")`.
#[inline]
fn filled(
    py: Python<'_>,
    binding: &'static Binding,
    filling: Filling,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let least = 1 + usize::from(filling == Filling::Given);
    if !(least..=least + 1).contains(&positional.len()) {
        return Ok(None);
    }
    // SAFETY: borrowed arguments of the running call.
    let given = |i: usize| unsafe { Borrowed::from_ptr(py, positional[i]) };
    let dtype = match (positional.len() - least, named.len) {
        (0, 0) => None,
        (1, 0) => Some(given(least)),
        (0, 1) => {
            let (name, value) = named.get(0);
            if find(binding, name) != Some(least) {
                return Ok(None);
            }
            // SAFETY: as above.
            Some(unsafe { Borrowed::from_ptr(py, value) })
        }
        _ => return Ok(None),
    };
    let Some(sizes) = Few::of(given(0)) else {
        return Ok(None);
    };
    let mut shape = [0; MOST];
    for (to, &from) in shape.iter_mut().zip(sizes.as_slice()) {
        let Ok(size) = usize::try_from(from) else {
            return Ok(None);
        };
        *to = size;
    }
    let value = match filling {
        Filling::Nothing => None,
        Filling::Value(value) => Some(Scalar::I64(value)),
        Filling::Given => match convert::number(&given(1))? {
            Some(value) => Some(value),
            None => return Ok(None),
        },
    };
    let dtype = match (dtype, value) {
        (Some(dtype), _) if !dtype.is_none() => convert::dtype(&dtype)?,
        (_, Some(value)) if filling == Filling::Given => default_dtype(value.kind()),
        _ => default_float(),
    };
    let shape = &shape[..sizes.len];
    if shape.is_empty() {
        return made(py, binding.op, constant(shape, value, dtype));
    }
    let source = constant_elements(shape, value, dtype).map_err(|error| raise(py, error))?;
    let Some(source) = source else {
        return Ok(None);
    };
    let array = PyArray::of_source(py, source, &Layout::contiguous(shape))?;
    Ok(Some(array.into_any()))
}

/// `x.copy()`.
#[inline]
fn copied(
    py: Python<'_>,
    op: &OpDef,
    positional: &[*mut ffi::PyObject],
    dense_only: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let &[object] = positional else {
        return Ok(None);
    };
    // SAFETY: a borrowed argument of the running call.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    match object.cast::<PyArray>() {
        Ok(object) => {
            let x = (*object).get().look(py);
            if dense_only && !x.layout().is_contiguous() {
                return Ok(None);
            }
            let answer = duplicate(&x, x.dtype());
            x.end();
            made_of(py, op, &object, answer)
        }
        Err(_) => Ok(None),
    }
}

/// `x.flatten()`, `x.ravel()`.
#[inline]
fn flattened(
    py: Python<'_>,
    copied: Copied,
    positional: &[*mut ffi::PyObject],
) -> PyResult<Option<Py<PyAny>>> {
    let &[object] = positional else {
        return Ok(None);
    };
    // SAFETY: a borrowed argument of the running call.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    let Ok(x) = object.cast::<PyArray>() else {
        return Ok(None);
    };
    let look = (*x).get().look(py);
    if let Some(row) = flat_layout(&look, copied) {
        look.end();
        return Ok(Some(PyArray::shown(py, &row, &x)?.into_any()));
    }
    let copy = flat(&look).map_err(|error| raise(py, error))?;
    look.end();
    match copy {
        Some(copy) => Ok(Some(PyArray::wrap(py, copy)?.into_any())),
        None => Ok(None),
    }
}

/// The first argument, and the second if it is given by position or under its name, of which `count` are looked at. `None`: something else is
/// given.
#[inline]
fn one_or_two<'a, 'py>(
    py: Python<'py>,
    binding: &'static Binding,
    positional: &'a [*mut ffi::PyObject],
    named: &Named,
    count: usize,
) -> Option<(Borrowed<'a, 'py, PyAny>, Option<Borrowed<'a, 'py, PyAny>>)> {
    let (first, second) = match (positional, count) {
        (&[first], 0) => (first, None),
        (&[first, second], 0) => (first, Some(second)),
        (&[first], 1) => {
            let (name, value) = named.get(0);
            if find(binding, name) != Some(1) {
                return None;
            }
            (first, Some(value))
        }
        _ => return None,
    };
    // SAFETY: borrowed arguments of the running call.
    let borrowed = |object| unsafe { Borrowed::from_ptr(py, object) };
    Some((borrowed(first), second.map(borrowed)))
}

/// How many named arguments there are without a last one that chooses nothing, such as the kind of a sort.
#[inline]
fn telling(py: Python<'_>, binding: &'static Binding, named: &Named) -> usize {
    let Some(last) = named.len.checked_sub(1) else {
        return 0;
    };
    let (name, value) = named.get(last);
    // The name may be one of the extended operator's.
    let param = find(binding, name).and_then(|at| binding.op.params.get(at));
    let idle = param.map_or(&[][..], |param| param.idle);
    // SAFETY: a borrowed argument of the running call.
    let value = unsafe { Borrowed::<PyAny>::from_ptr(py, value) };
    let is_idle = !idle.is_empty()
        && value
            .cast_exact::<PyString>()
            .is_ok_and(|word| word.to_cow().is_ok_and(|word| idle.contains(&&*word)));
    named.len - usize::from(is_idle)
}

/// What the last named argument says about a copy, if it is that argument.
#[inline]
fn copies(py: Python<'_>, binding: &'static Binding, named: &Named) -> Option<bool> {
    let (name, value) = named.get(named.len.checked_sub(1)?);
    let param = binding.op.params.get(find(binding, name)?)?;
    // SAFETY: a borrowed argument of the running call.
    let value = unsafe { Borrowed::<PyAny>::from_ptr(py, value) };
    let value = value.cast_exact::<PyBool>().ok()?;
    (param.name == "copy").then(|| value.is_true())
}

/// `x.astype("int32")`, `x.astype("int32", copy=False)`. Objects of derived classes keep them, and imaginary parts are not dropped without a word: both in the general way.
#[inline]
fn cast(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let copies = copies(py, binding, named);
    let telling = named.len - usize::from(copies.is_some());
    let Some((object, Some(dtype))) = one_or_two(py, binding, positional, named, telling) else {
        return Ok(None);
    };
    let Ok(object) = object.cast_exact::<PyArray>() else {
        return Ok(None);
    };
    let dtype = convert::dtype(&dtype)?;
    let x = (*object).get().look(py);
    if copies == Some(false) && x.dtype() == dtype {
        x.end();
        return Ok(Some(object.to_owned().into_any().unbind()));
    }
    if x.dtype().is_complex() && !dtype.is_complex() {
        return Ok(None);
    }
    let answer = duplicate(&x, dtype);
    x.end();
    made_of(py, binding.op, &object, answer)
}

/// `x.argmax()`, `x.argmax(1)`, `x.argmax(axis=1)`, `x.sum(0, out=y)`.
#[inline]
fn searched(
    py: Python<'_>,
    binding: &'static Binding,
    along: fn(&Array, Option<isize>) -> mxnet::ops::Result<Option<Array>>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let out = match target(py, binding, named) {
        Some(None) => return Ok(None),
        out => out.flatten(),
    };
    let telling = match out {
        Some(_) => named.len - 1,
        None => telling(py, binding, named),
    };
    let Some((object, axis)) = one_or_two(py, binding, positional, named, telling) else {
        return Ok(None);
    };
    let Ok(x) = object.cast::<PyArray>() else {
        return Ok(None);
    };
    let mut few = Few::new();
    let axis = match axis {
        None => None,
        Some(axis) if few.push(axis) => Some(few.values[0]),
        Some(_) => return Ok(None),
    };
    if !Flags::current().is_plain() {
        return Ok(None);
    }
    let answer = along(&(*x).get().look(py), axis);
    let Some(out) = out else {
        return made(py, binding.op, answer);
    };
    let Some(y) = answer.map_err(|error| raise(py, error))? else {
        return Ok(None);
    };
    let to = (*out).get().look(py);
    let is_like = to.shape() == y.shape() && to.dtype() == y.dtype();
    let is_done = is_like && put_few(&to, to.layout(), &y).map_err(|error| raise(py, error))?;
    Ok(is_done.then(|| out.to_owned().into_any().unbind()))
}

/// The array that the last named argument says to write to, if it is that argument; inside, `None` for anything but an array of ours.
#[inline]
fn target<'a, 'py: 'a>(
    py: Python<'py>,
    binding: &'static Binding,
    named: &Named,
) -> Option<Option<Borrowed<'a, 'py, PyArray>>> {
    let (name, value) = named.get(named.len.checked_sub(1)?);
    let at = find(binding, name)?;
    let is_out = match binding.public.params.get(at) {
        Some(param) => param.kind == ParamKind::Out,
        None => binding.public.form == Form::Out,
    };
    // SAFETY: a borrowed argument of the running call.
    let value = unsafe { Borrowed::<PyAny>::from_ptr(py, value) };
    is_out.then(|| value.cast_exact::<PyArray>().ok())
}

/// `concatenate((a, b))`, `concatenate([a, b], axis=1)`.
#[inline]
fn listed<'py>(
    py: Python<'py>,
    binding: &'static Binding,
    join: fn(&[&Array], Option<isize>) -> mxnet::ops::Result<Option<Array>>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let Some((sequence, axis)) = one_or_two(py, binding, positional, named, named.len) else {
        return Ok(None);
    };
    let mut few = Few::new();
    let axis = match axis {
        None => None,
        Some(axis) if few.push(axis) => Some(few.values[0]),
        Some(_) => return Ok(None),
    };
    let mut arrays = SmallVec::<[Bound<'py, PyArray>; MOST]>::new();
    let mut push = |entry: &Bound<'py, PyAny>| match entry.cast_exact::<PyArray>() {
        Ok(x) if arrays.len() < MOST => {
            arrays.push(x.clone());
            true
        }
        _ => false,
    };
    let all = if let Ok(tuple) = sequence.cast_exact::<PyTuple>() {
        tuple.iter_borrowed().all(|entry| push(&entry))
    } else if let Ok(list) = sequence.cast_exact::<PyList>() {
        list.iter().all(|entry| push(&entry))
    } else {
        false
    };
    if !all {
        return Ok(None);
    }
    let answer = {
        let looks: SmallVec<[Look<'_, Array>; MOST]> =
            arrays.iter().map(|x| x.get().look(py)).collect();
        let refs: SmallVec<[&Array; MOST]> = looks.iter().map(|x| &**x).collect();
        join(&refs, axis)
    };
    made(py, binding.op, answer)
}

/// `imag(a)`. Where the result has the class of the argument, derived classes take the general way.
#[inline]
fn alone(
    py: Python<'_>,
    binding: &'static Binding,
    single: fn(&Array) -> mxnet::ops::Result<Option<Array>>,
    positional: &[*mut ffi::PyObject],
) -> PyResult<Option<Py<PyAny>>> {
    let &[object] = positional else {
        return Ok(None);
    };
    // SAFETY: a borrowed argument of the running call.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    let Ok(x) = object.cast::<PyArray>() else {
        return Ok(None);
    };
    if binding.subok.is_some() && !object.is_exact_instance_of::<PyArray>() {
        return Ok(None);
    }
    let answer = single(&(*x).get().look(py));
    made_of(py, binding.op, &x, answer)
}

/// `nonzero(a)`: a tuple.
#[inline]
fn together(
    py: Python<'_>,
    several: fn(&Array) -> mxnet::ops::Result<Option<Outputs>>,
    positional: &[*mut ffi::PyObject],
) -> PyResult<Option<Py<PyAny>>> {
    let &[object] = positional else {
        return Ok(None);
    };
    // SAFETY: a borrowed argument of the running call.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    let Ok(x) = object.cast::<PyArray>() else {
        return Ok(None);
    };
    let answer = several(&(*x).get().look(py));
    let Some(arrays) = answer.map_err(|error| raise(py, error))? else {
        return Ok(None);
    };
    let objects: SmallVec<[Py<PyArray>; 4]> = arrays
        .into_iter()
        .map(|array| PyArray::wrap(py, array))
        .collect::<PyResult<_>>()?;
    Ok(Some(PyTuple::new(py, objects)?.into_any().unbind()))
}

/// The last argument, if it is given, by position behind `first` others or under its name; nothing else is. `None`: that is not so.
#[inline]
fn last_axis(
    py: Python<'_>,
    binding: &'static Binding,
    first: usize,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> Option<Option<isize>> {
    let axis = match (positional.len().checked_sub(first)?, named.len) {
        (0, 0) => return Some(None),
        (1, 0) => positional[first],
        (0, 1) => {
            let (name, value) = named.get(0);
            (find(binding, name)? == first).then_some(value)?
        }
        _ => return None,
    };
    let mut few = Few::new();
    // SAFETY: a borrowed argument of the running call.
    let axis = unsafe { Borrowed::<PyAny>::from_ptr(py, axis) };
    if axis.is_none() {
        return Some(None);
    }
    few.push(axis).then(|| Some(few.values[0]))
}

/// `repeat(a, 2)`, `repeat(a, 2, axis=1)`.
#[inline]
fn repeated(
    py: Python<'_>,
    binding: &'static Binding,
    counted: fn(&Array, isize, Option<isize>) -> mxnet::ops::Result<Option<Array>>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let &[object, count, ..] = positional else {
        return Ok(None);
    };
    let Some(axis) = last_axis(py, binding, 2, positional, named) else {
        return Ok(None);
    };
    // SAFETY: borrowed arguments of the running call.
    let [object, count] = [object, count].map(|p| unsafe { Borrowed::<PyAny>::from_ptr(py, p) });
    let mut few = Few::new();
    let Ok(x) = object.cast::<PyArray>() else {
        return Ok(None);
    };
    if !few.push(count) {
        return Ok(None);
    }
    let answer = counted(&(*x).get().look(py), few.values[0], axis);
    made(py, binding.op, answer)
}

/// `take(a, indices)`, `take(a, indices, axis=1)`.
#[inline]
fn taken(
    py: Python<'_>,
    binding: &'static Binding,
    pair: fn(&Array, &Array, Option<isize>) -> mxnet::ops::Result<Option<Array>>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    let &[a, b, ..] = positional else {
        return Ok(None);
    };
    let Some(axis) = last_axis(py, binding, 2, positional, named) else {
        return Ok(None);
    };
    // SAFETY: borrowed arguments of the running call.
    let [a, b] = [a, b].map(|p| unsafe { Borrowed::<PyAny>::from_ptr(py, p) });
    let Ok(a) = a.cast::<PyArray>() else {
        return Ok(None);
    };
    if let Ok(b) = b.cast::<PyArray>() {
        let answer = pair(&(*a).get().look(py), &(*b).get().look(py), axis);
        return made(py, binding.op, answer);
    }
    // A number is an array of no axes.
    let mut few = Few::new();
    if !few.push(b) {
        return Ok(None);
    }
    let number = Some(Scalar::I64(few.values[0] as i64));
    let answer = match constant(&[], number, DType::I64) {
        Ok(Some(b)) => pair(&(*a).get().look(py), &b, axis),
        other => other.map(|_| None),
    };
    made(py, binding.op, answer)
}

/// `dot(a, b)`.
#[inline]
fn paired(
    py: Python<'_>,
    op: &OpDef,
    pair: fn(&Array, &Array) -> mxnet::ops::Result<Option<Array>>,
    positional: &[*mut ffi::PyObject],
) -> PyResult<Option<Py<PyAny>>> {
    let &[a, b] = positional else {
        return Ok(None);
    };
    // SAFETY: borrowed arguments of the running call.
    let [a, b] = [a, b].map(|p| unsafe { Borrowed::<PyAny>::from_ptr(py, p) });
    match (a.cast::<PyArray>(), b.cast::<PyArray>()) {
        (Ok(a), Ok(b)) => {
            let answer = pair(&(*a).get().look(py), &(*b).get().look(py));
            made(py, op, answer)
        }
        _ => Ok(None),
    }
}
