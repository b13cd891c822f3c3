//! Files that are replaced atomically, for Python. The implementation is `core::atomic_file`.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use mxnet::core::atomic_file::{AtomicFile as Inner, check_is_file};
use pyo3::prelude::*;

use crate::files::raise_for;
use crate::gil_release::without_gil;

/// A temporary file that replaces `target`: the caller writes to `path`, then `commit` renames it.
#[pyclass(frozen, module = "mxnet._core")]
pub struct AtomicFile {
    /// Path of the temporary file.
    #[pyo3(get)]
    path: PathBuf,
    file: Mutex<Option<Inner>>,
}

impl AtomicFile {
    fn take(&self) -> Option<Inner> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.take()
    }
}

#[pymethods]
impl AtomicFile {
    /// Creates the temporary file beside `target`, or beside the file that `target` links to.
    #[new]
    fn new(py: Python<'_>, target: PathBuf) -> PyResult<AtomicFile> {
        let file = without_gil(py, || Inner::create(&target))
            .map_err(|error| raise_for(error, py, &target))?;
        Ok(AtomicFile {
            path: file.path.clone(),
            file: Mutex::new(Some(file)),
        })
    }

    /// Replaces the target. Does nothing in a forked process, and after `discard`.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let Some(file) = self.take().filter(Inner::is_own) else {
            return Ok(());
        };
        let target = file.target.clone();
        without_gil(py, || file.commit()).map_err(|error| raise_for(error.into(), py, &target))
    }

    /// Removes the temporary file; the target is unchanged.
    fn discard(&self) {
        drop(self.take());
    }
}

/// Raises an error if `path` exists and is not a regular file.
#[pyfunction]
pub fn check_file(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    check_is_file("load", &path).map_err(|error| raise_for(error, py, &path))
}
