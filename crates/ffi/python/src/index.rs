//! `x[...]`: reads Python's index expressions for the core.

use std::mem::MaybeUninit;

use mxnet::core::Array;
use mxnet::core::mode::Flags;
use mxnet::ops::{InlineScalar, Operand, index};
use mxnet::tensor::{BasicIndex, DType, IndexItem, Layout};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::array::{Get, PyArray, as_array};
use crate::call::without_gil_unless_light;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::index_key::Key;
use crate::index_key::{integer, unpacked};
use crate::{convert, interop, numbers};

/// `x[key]`.
#[inline]
pub fn get(slf: &Bound<'_, PyArray>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
    if key.is_exact_instance_of::<PyInt>() {
        return at(slf, integer(key)?);
    }
    if let Ok(tuple) = key.cast_exact::<PyTuple>()
        && let Some(found) = by_tuple(slf, tuple)?
    {
        return Ok(found);
    }
    if let Some(found) = picked(slf, key)? {
        return Ok(found);
    }
    let mut entries = BasicIndices::new();
    if entries.read(key)
        && let Some(found) = entries.view(slf)?
    {
        return Ok(found);
    }
    general(slf, key)
}

/// An element by its indices, or a view by integers and slices. `None`: take the general path.
#[inline]
fn by_tuple(slf: &Bound<'_, PyArray>, key: &Bound<'_, PyTuple>) -> PyResult<Option<Py<PyArray>>> {
    let mut indices = Indices::new();
    if indices.read_all(key)?
        && let Some(found) = element(slf, indices.as_slice())?
    {
        return Ok(Some(found));
    }
    let mut entries = BasicIndices::new();
    match entries.read_all(key) {
        true => entries.view(slf),
        false => Ok(None),
    }
}

/// `x[index]`, `x[rows, columns]`, `x[:, index]` with index arrays; `None`: take the general path.
#[inline]
fn picked(slf: &Bound<'_, PyArray>, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyArray>>> {
    let py = slf.py();
    let found = if let Ok(index) = key.cast_exact::<PyArray>() {
        if slf.get().with(py, |x| x.ndim() == 1) {
            let make = |to: &mut MaybeUninit<Array>| {
                index::elements_to(&slf.get().borrow(py), &index.get().borrow(py), to)
            };
            // SAFETY: if `make` returns true, it has initialised the result.
            return unsafe { PyArray::made_by(py, false, make) };
        }
        index::take_positions(&slf.get().borrow(py), 0, &[&*index.get().borrow(py)])
    } else if let Ok(tuple) = key.cast_exact::<PyTuple>() {
        let mut entries = tuple.iter_borrowed();
        let (Some(first), Some(second), None) = (entries.next(), entries.next(), entries.next())
        else {
            return Ok(None);
        };
        let Ok(b) = second.cast_exact::<PyArray>() else {
            return Ok(None);
        };
        let (x, b) = (slf.get().borrow(py), (*b).get().borrow(py));
        if let Ok(a) = first.cast_exact::<PyArray>() {
            index::take_positions(&x, 0, &[&*(*a).get().borrow(py), &*b])
        } else if is_all(&first) {
            index::take_positions(&x, 1, &[&*b])
        } else {
            return Ok(None);
        }
    } else {
        return Ok(None);
    };
    match found {
        Ok(Some(array)) => PyArray::wrap(py, array).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(raise(py, error)),
    }
}

/// Whether the entry is `:`.
fn is_all(entry: &Bound<'_, PyAny>) -> bool {
    let Ok(slice) = entry.cast_exact::<PySlice>() else {
        return false;
    };
    let is_none = |name| slice.getattr(name).is_ok_and(|bound| bound.is_none());
    let py = entry.py();
    is_none(crate::once_box::interned!(py, "start"))
        && is_none(crate::once_box::interned!(py, "stop"))
        && is_none(crate::once_box::interned!(py, "step"))
}

/// A key of at most 4 integers, stored inline.
struct Indices {
    values: [isize; 4],
    len: usize,
}

impl Indices {
    #[inline]
    fn new() -> Indices {
        let (values, len) = ([0; 4], 0);
        Indices { values, len }
    }

    /// Reads a key; false if it has other entries.
    #[inline]
    fn read(&mut self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if key.is_exact_instance_of::<PyInt>() {
            (self.values[0], self.len) = (integer(key)?, 1);
            return Ok(true);
        }
        match key.cast_exact::<PyTuple>() {
            Ok(tuple) => self.read_all(tuple),
            Err(_) => Ok(false),
        }
    }

    #[inline]
    fn read_all(&mut self, key: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let len = key.len();
        if len > self.values.len() {
            return Ok(false);
        }
        for (value, entry) in self.values.iter_mut().zip(key.iter_borrowed()) {
            if !entry.is_exact_instance_of::<PyInt>() {
                return Ok(false);
            }
            *value = integer(&entry)?;
        }
        self.len = len;
        Ok(true)
    }

    #[inline]
    fn as_slice(&self) -> &[isize] {
        &self.values[..self.len]
    }
}

/// A key of at most 4 entries without arrays, stored inline without owned objects, so that nothing must be dropped.
struct BasicIndices {
    entries: [BasicIndex; 4],
    len: usize,
}

impl BasicIndices {
    #[inline]
    fn new() -> BasicIndices {
        BasicIndices {
            entries: [BasicIndex::Ellipsis; 4],
            len: 0,
        }
    }

    /// Reads a key; false if it has other or invalid entries, which the general path handles.
    #[inline]
    fn read(&mut self, key: &Bound<'_, PyAny>) -> bool {
        match key.cast_exact::<PyTuple>() {
            Ok(tuple) => self.read_all(tuple),
            Err(_) => self.push(key),
        }
    }

    #[inline]
    fn read_all(&mut self, key: &Bound<'_, PyTuple>) -> bool {
        key.len() <= self.entries.len() && key.iter_borrowed().all(|entry| self.push(&entry))
    }

    #[inline]
    fn push(&mut self, entry: &Bound<'_, PyAny>) -> bool {
        let cut = if entry.is_exact_instance_of::<PyInt>() {
            integer(entry).ok().map(BasicIndex::Int)
        } else if let Ok(slice) = entry.cast_exact::<PySlice>() {
            let bounds = unpacked(slice).ok();
            bounds.map(|(start, stop, step)| BasicIndex::Slice(start, stop, step))
        } else if entry.is_none() {
            Some(BasicIndex::NewAxis)
        } else {
            (entry.is(PyEllipsis::get(entry.py()))).then_some(BasicIndex::Ellipsis)
        };
        let Some(cut) = cut else { return false };
        self.entries[self.len] = cut;
        self.len += 1;
        true
    }

    #[inline]
    fn as_slice(&self) -> &[BasicIndex] {
        &self.entries[..self.len]
    }

    /// The view; `None` if the call is recorded or intercepted, or if the key does not fit: the general path reports why.
    #[inline]
    fn view(&self, slf: &Bound<'_, PyArray>) -> PyResult<Option<Py<PyArray>>> {
        // The result of indexing a scalar shares no memory with it.
        if slf.get().is_scalar() || !Flags::current().allows_copies() {
            return Ok(None);
        }
        let entries = self.as_slice();
        let are_indices = entries.iter().all(|cut| matches!(cut, BasicIndex::Int(_)));
        let layout = |x: &Layout, to: &mut MaybeUninit<Layout>| {
            let is_element = are_indices && x.ndim() == entries.len();
            !is_element && x.write_basic_view(entries, to)
        };
        // SAFETY: a layout derived from another by indexing lies within it.
        unsafe { PyArray::view_by(slf, None, layout) }
    }
}

/// `x[index]`.
pub fn at(slf: &Bound<'_, PyArray>, index: isize) -> PyResult<Py<PyArray>> {
    if let Some(element) = element(slf, &[index])? {
        return Ok(element);
    }
    let mut entries = BasicIndices::new();
    (entries.entries[0], entries.len) = (BasicIndex::Int(index), 1);
    if let Some(row) = entries.view(slf)? {
        return Ok(row);
    }
    general(slf, PyInt::new(slf.py(), index).as_any())
}

/// A copy of the element at these indices, one for each axis. `None`: take the general path, which also reports invalid indices.
#[inline]
fn element(slf: &Bound<'_, PyArray>, indices: &[isize]) -> PyResult<Option<Py<PyArray>>> {
    let py = slf.py();
    if slf.get().borrow(py).ndim() != indices.len() {
        return Ok(None);
    }
    let make = |to: &mut MaybeUninit<InlineScalar>| {
        let x = slf.get().borrow(py);
        let offset_in_elements = x.layout().offset_of(indices);
        // SAFETY: the address is that of an element.
        offset_in_elements
            .is_some_and(|offset_in_elements| unsafe { index::element(&x, offset_in_elements, to) })
    };
    // SAFETY: if `make` returns true, it has initialised the element.
    unsafe { PyArray::element_by(py, make) }
}

/// The result of indexing with integers and slices: a view, or a copy of a single element. NumPy's scalars are copies too, so that
/// `x[0], x[1] = x[1], x[0]` swaps.
#[inline]
fn finished(slf: &Bound<'_, PyArray>, array: Array) -> PyResult<Py<PyArray>> {
    let py = slf.py();
    if array.ndim() > 0 {
        return PyArray::wrap_of(py, array, slf);
    }
    let copy = array.copy().map_err(|error| raise(py, error))?;
    PyArray::wrap_result(py, copy)
}

/// Whether the call is neither recorded nor traced.
#[inline]
fn is_unrecorded(x: &Array) -> bool {
    let flags = Flags::current();
    flags.allows_copies()
        || !flags.is_stacked() && !flags.is_profiled() && x.entry().is_none() && !x.is_stale()
}

fn general(slf: &Bound<'_, PyArray>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
    let py = slf.py();
    let mut parts = Key::new();
    parts.read(key)?;
    let key = &parts;
    if mxnet::core::mode::is_tracing() {
        key.note_bounds(py, slf.get().array(py).shape())?;
    }
    if key.arrays.is_empty() {
        let by_layout = slf.get().with(py, |x| {
            is_unrecorded(x).then(|| {
                x.layout()
                    .index(&key.items)
                    .map(|found| Array::from_tensor(x.tensor().with_layout(found.view)))
            })
        });
        let array = match by_layout {
            Some(array) => array.map_err(|error| raise(py, error.into()))?,
            None => slf
                .get()
                .array(py)
                .index(key.items.as_slice().into())
                .map_err(|error| raise(py, error))?,
        };
        let all_integers = || {
            key.items
                .iter()
                .all(|item| matches!(item, IndexItem::Int(_)))
        };
        if array.ndim() == 0 && all_integers() {
            return finished(slf, array);
        }
        // As in NumPy, the result of indexing with a 0-d array shares no memory, nor does that of indexing a scalar.
        let array = match key.copies || slf.get().is_scalar() {
            true => array.copy().map_err(|error| raise(py, error))?,
            false => array,
        };
        return PyArray::wrap_of(py, array, slf);
    }
    let array = slf.get().array(py);
    let arrays: SmallVec<[&Array; 3]> = std::iter::once(&array).chain(&key.arrays).collect();
    let result =
        without_gil_unless_light(py, &arrays, || index::get(&array, &key.items, &key.arrays));
    PyArray::wrap(py, result.map_err(|error| raise(py, error))?)
}

/// `x[key] = value`.
pub fn set(
    slf: &Bound<'_, PyArray>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = slf.py();
    if put(slf, key, value)? {
        return Ok(());
    }
    let mut parts = Key::new();
    parts.read(key)?;
    let key = &parts;
    if mxnet::core::mode::is_tracing() {
        key.note_bounds(py, slf.get().array(py).shape())?;
    }
    let dtype = slf.get().with(py, Array::dtype);
    let operand = convert::value_for(value, dtype)?;
    slf.get().check_writable(py)?;
    let is_made = operand.held().is_none();
    let (array, operand) = (slf.get().array(py), operand.array());
    // With index arrays in the key, NumPy treats its scalars like arrays: they are cast without a range check.
    if is_made
        && key.arrays.is_empty()
        && !operand.is_weak()
        && operand.ndim() == 0
        && let Some((number, _)) = numbers::numpy_number(value)?
    {
        interop::check_numpy_element(py, number, dtype)?;
    }
    let value = operand;
    // Complex Python numbers are rejected below.
    if value.dtype().is_complex() && !value.is_weak() && !array.dtype().is_complex() {
        interop::discards_imaginary_part(py)?;
    }
    let body = || index::set(&array, &key.items, &key.arrays, &value);
    let result = if key.arrays.is_empty() && !crate::engine::may_wait() {
        body()
    } else {
        without_gil(py, body)
    };
    if let Some(recorded) = result.map_err(|error| raise(py, error))? {
        slf.get().adopt_written(py, recorded)?;
    }
    Ok(())
}

/// Fast path for a number or a small array at integers and slices, and for masks and index arrays. Returns whether it wrote.
#[inline]
fn put(
    slf: &Bound<'_, PyArray>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = slf.py();
    if PyArray::is_exact_type_of(key)
        && let Ok(index) = key.cast_exact::<PyArray>()
    {
        return put_at(slf, &[index], value);
    }
    let mut indices = Indices::new();
    if indices.read(key)? && put_element(slf, indices.as_slice(), value)? {
        return Ok(true);
    }
    let mut entries = BasicIndices::new();
    if !entries.read(key) {
        return match key.cast_exact::<PyTuple>() {
            Ok(tuple) => put_at_all(slf, tuple, value),
            Err(_) => Ok(false),
        };
    }
    if let Some(value) = as_array(value) {
        let (x, value) = (slf.get().borrow(py), value.get().borrow(py));
        let Some(layout) = x.layout().basic_view(entries.as_slice()) else {
            return Ok(false);
        };
        return index::put_array(&x, &layout, &value).map_err(|error| raise(py, error));
    }
    let number = numbers::number(value);
    let x = slf.get().borrow(py);
    Ok(match (&number, x.layout().basic_view(entries.as_slice())) {
        (Ok(Some(number)), Some(layout)) => index::put_number(&x, layout, number),
        // The general path reads it again and reports the error.
        _ => false,
    })
}

/// `x[rows, columns] = value`.
#[inline]
fn put_at_all(
    slf: &Bound<'_, PyArray>,
    key: &Bound<'_, PyTuple>,
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let mut entries = key.iter_borrowed();
    let (Some(first), Some(second), None) = (entries.next(), entries.next(), entries.next()) else {
        return Ok(false);
    };
    match (
        first.cast_exact::<PyArray>(),
        second.cast_exact::<PyArray>(),
    ) {
        (Ok(a), Ok(b)) => put_at(slf, &[&a, &b], value),
        _ => Ok(false),
    }
}

/// Writes a number or an array where a mask is true, or at the positions given by one or two index arrays. Returns whether it wrote.
#[inline]
fn put_at(
    slf: &Bound<'_, PyArray>,
    indices: &[&Bound<'_, PyArray>],
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = slf.py();
    let source = as_array(value);
    let number = match source {
        Some(_) => None,
        None => numbers::number(value)?,
    };
    let (x, source) = (slf.get().borrow(py), source.map(|x| x.get().borrow(py)));
    let value = match (&source, &number) {
        (Some(source), _) => Operand::Array(source),
        (None, Some(number)) => Operand::Number(number),
        (None, None) => return Ok(false),
    };
    Ok(match indices {
        [a, b] => index::put_positions(&x, &[&*a.get().borrow(py), &*b.get().borrow(py)], value),
        [index] => {
            let index = index.get().borrow(py);
            match index.dtype() == DType::Bool {
                true => {
                    index.shape() == x.shape()
                        && index::put_where(&x, &index, value, index::Taken::Exactly)
                }
                false => index::put_positions(&x, &[&*index], value),
            }
        }
        _ => false,
    })
}

/// `x[i, j] = value` for a number or a 0-d array. Returns whether it wrote.
#[inline]
fn put_element(
    slf: &Bound<'_, PyArray>,
    indices: &[isize],
    value: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = slf.py();
    let Some(source) = as_array(value) else {
        let number = numbers::number(value);
        let x = slf.get().borrow(py);
        return Ok(match (&number, x.layout().offset_of(indices)) {
            // SAFETY: the address is that of an element.
            (Ok(Some(number)), Some(offset_in_elements)) => unsafe {
                index::put_element(&x, offset_in_elements, number)
            },
            // The general path reads it again and reports the error.
            _ => false,
        });
    };
    // Borrowed first: `slf` may be the value, and borrowing converts an inline scalar to an array.
    let x = slf.get().borrow(py);
    let element = source.get().inline_scalar(py);
    let Some(offset_in_elements) = x.layout().offset_of(indices) else {
        return Ok(false);
    };
    if let Some(element) = element {
        // SAFETY: the place is that of an element.
        if unsafe { index::put_inline_scalar(&x, offset_in_elements, &element) } {
            return Ok(true);
        }
        element.end();
    }
    // SAFETY: as above.
    Ok(unsafe { index::copy_element(&x, offset_in_elements, &source.get().borrow(py)) })
}

/// `x.fill(number)` of a small array. Returns whether it wrote.
pub fn fill(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let number = numbers::number(value)?;
    let x = slf.get().borrow(slf.py());
    Ok(number.is_some_and(|number| index::put_number(&x, x.layout().clone(), &number)))
}
