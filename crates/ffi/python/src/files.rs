//! Named arrays in safetensors files, for Python: `core::files` reads and writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mxnet::core::Error;
use mxnet::core::files::{self, FileError};
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_release::without_gil;

/// The exception for an error of the file at `path`.
pub fn raise_for(error: FileError, py: Python<'_>, path: &Path) -> PyErr {
    match error {
        FileError::Content(error) => raise(py, error),
        // From an error number Python picks the class: FileNotFoundError, PermissionError, ...
        FileError::System(error) => match error.raw_os_error() {
            Some(number) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
                PyOSError::new_err((number, text, path.as_os_str().to_os_string()))
            }
            None => raise(py, Error::io("", format!("{}: {error}", path.display()))),
        },
    }
}

/// Writes named arrays to a safetensors file, which replaces an older one in a single step.
///
/// The values are those that all work issued before gives. Arrays are stored by descending size of their elements, so that each is aligned.
///
/// Parameters
/// ----------
/// path : path
/// arrays : dict of str to ndarray
/// metadata : dict of str to str, optional
///
/// Raises
/// ------
/// OSError
///     If the file cannot be written; an older file is untouched then.
/// TypeError
///     If an array is complex128, which the format does not have.
#[pyfunction]
#[pyo3(signature = (path, arrays, metadata = None))]
pub fn save_safetensors(
    py: Python<'_>,
    path: PathBuf,
    arrays: &Bound<'_, PyDict>,
    metadata: Option<BTreeMap<String, String>>,
) -> PyResult<()> {
    let mut named = Vec::with_capacity(arrays.len());
    for (name, value) in arrays {
        let Ok(name) = name.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "names of arrays must be str, not '{}'",
                name.get_type().name()?
            )));
        };
        let Ok(array) = value.cast::<PyArray>() else {
            return Err(PyTypeError::new_err(format!(
                "{} must be an ndarray, not '{}'",
                name.repr()?,
                value.get_type().name()?
            )));
        };
        named.push((name.extract::<String>()?, array.get().array(py)));
    }
    without_gil(py, || files::save(&path, named, metadata))
        .map_err(|error| raise_for(error, py, &path))
}

/// Reads a safetensors file.
///
/// Parameters
/// ----------
/// path : path
///
/// Returns
/// -------
/// (dict of str to ndarray, dict of str to str)
///     The arrays in the order in which they are stored, and the metadata.
///
/// Raises
/// ------
/// FileNotFoundError
///     If there is no such file.
/// mxnet.error.IOError
///     If it is truncated, damaged, or another kind of file.
#[pyfunction]
pub fn load_safetensors(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Py<PyDict>, BTreeMap<String, String>)> {
    let (named, metadata) =
        without_gil(py, || files::load(&path)).map_err(|error| raise_for(error, py, &path))?;
    let arrays = PyDict::new(py);
    for (name, array) in named {
        arrays.set_item(name, PyArray::wrap(py, array)?)?;
    }
    Ok((arrays.unbind(), metadata))
}
