//! Text of arrays, as NumPy prints them.

use mxnet::core::{Array, Tuple};
use mxnet::tensor::{DType, DeviceKind};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::exported_buffer::Window;
use crate::gil_release::without_gil;
use crate::numpy_export::bf16_from_bits;

/// A read-only NumPy array for printing. If the array is so large that NumPy prints its corners only, the other elements are undefined: copying them
/// would read the whole array.
pub fn printable_copy(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let edge = printed_edge(py, array.len())?;
    let copy = || match edge {
        Some(edge) => array.snapshot_of_corners(edge),
        None => array.snapshot(),
    };
    let copy = without_gil(py, copy).map_err(|error| raise(py, error))?;
    let window = Window {
        tensor: copy.tensor().clone(),
    };
    let numpy = py.import(crate::once_box::interned!(py, "numpy"))?;
    let made = numpy.call_method1(
        crate::once_box::interned!(py, "asarray"),
        (Bound::new(py, window)?,),
    )?;
    if array.dtype() == DType::BF16 {
        return bf16_from_bits(py, &made);
    }
    Ok(made.unbind())
}

/// Number of elements that NumPy prints at each end of an axis, for an array of `len` elements; `None` if it prints all.
fn printed_edge(py: Python<'_>, len: usize) -> PyResult<Option<usize>> {
    /// Up to this many elements the whole array is copied.
    const MAX_COPIED_LEN: usize = 1000;
    if len <= MAX_COPIED_LEN {
        return Ok(None);
    }
    let numpy = py.import(crate::once_box::interned!(py, "numpy"))?;
    let options = numpy.call_method0(crate::once_box::interned!(py, "get_printoptions"))?;
    let options = options.cast::<PyDict>()?;
    let integer = |name: &str| -> Option<usize> {
        let value = options.get_item(name).ok()??;
        value.extract().ok()
    };
    // A print function set by the user may read all elements.
    let is_overridden =
        (options.get_item("override_repr")?).is_some_and(|function| !function.is_none());
    let is_summarised = integer("threshold").is_some_and(|threshold| len > threshold);
    match is_summarised && !is_overridden {
        true => Ok(integer("edgeitems")),
        false => Ok(None),
    }
}

/// The elements as NumPy prints them.
pub fn text(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    if x.get().with(x.py(), Array::is_abstract) {
        return repr(x)?.into_py_any(x.py());
    }
    let lent = printable_copy(x)?.into_bound(x.py());
    Ok(lent.str()?.into_any().unbind())
}

/// The text that NumPy prints, except that the dtype is omitted if it is our default, and shown if it is NumPy's default but not ours.
pub fn repr(slf: &Bound<'_, PyArray>) -> PyResult<String> {
    let py = slf.py();
    let array = slf.get().array(py);
    if array.is_abstract() {
        return Ok(without_values(&array));
    }
    let text: String = printable_copy(slf)?.bind(py).repr()?.extract()?;
    // A text that was overridden in NumPy's print options is returned unchanged.
    let Some(body) = text
        .strip_prefix("array(")
        .map(|_| text.strip_suffix(')').unwrap_or(&text))
    else {
        return Ok(text);
    };
    let (head, named) = match body.rsplit_once("dtype=") {
        Some((head, name)) => (head.trim_end().trim_end_matches(','), Some(name)),
        None => (body, None),
    };
    let float = mxnet::tensor::default_float();
    let is_default = array.dtype() == float || array.dtype() == float.complex();
    // An empty array shows its dtype, because no element indicates it.
    let text_of = match array.dtype().is_inexact() {
        true => (array.is_empty() || !is_default).then(|| array.dtype().name()),
        false => named,
    };
    let mut text = match text_of {
        // NumPy's text names the dtype already.
        Some(name) if named == Some(name) => body.to_owned(),
        Some(name) => format!("{head},{}dtype={name}", spacer(py, head, name)?),
        None => head.to_owned(),
    };
    if array.device().kind() != DeviceKind::Cpu {
        text += &format!(", device={}", array.device());
    }
    Ok(text + ")")
}

/// The text of an abstract array.
pub fn without_values(array: &Array) -> String {
    let (shape, dtype) = (Tuple(array.shape()), array.dtype().name());
    format!("array(<no values>, shape={shape}, dtype={dtype})")
}

/// Separator before the dtype: a space, or a new line if the last one is full.
fn spacer(py: Python<'_>, head: &str, name: &str) -> PyResult<&'static str> {
    let options = py.import("numpy")?.call_method0("get_printoptions")?;
    let width: usize = options.get_item("linewidth")?.extract()?;
    let last = head.rsplit('\n').next().unwrap_or(head).chars().count();
    let whole = last + ", dtype=)".len() + name.len();
    Ok(if whole > width { "\n      " } else { " " })
}
