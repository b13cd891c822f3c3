//! The engine's switches, and waiting for everything.

use mxnet::engine::{Mode, engine};
use mxnet::ops::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::raise;

/// Whether calls may have to wait for the engine before they return.
#[inline]
pub fn may_wait() -> bool {
    engine().mode() == Mode::Sync
}

/// Whether a signal handler asked to stop.
pub fn interrupted() -> bool {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            // `raise` takes it from here once the wait has ended.
            error.restore(py);
            true
        }
    })
}

/// Waits for everything pushed so far; raises the first failure not yet raised.
#[pyfunction]
pub fn waitall(py: Python<'_>) -> PyResult<()> {
    py.detach(|| engine().wait_all(&mut interrupted))
        .map_err(|error| raise(py, Error::from(error)))
}

/// The engine's mode: 'adaptive', 'async' or 'sync'.
#[pyfunction]
pub fn engine_mode() -> &'static str {
    match engine().mode() {
        Mode::Adaptive => "adaptive",
        Mode::Async => "async",
        Mode::Sync => "sync",
    }
}

/// Switches the engine's mode.
#[pyfunction]
pub fn set_engine_mode(mode: &str) -> PyResult<()> {
    engine().set_mode(match mode {
        "adaptive" => Mode::Adaptive,
        "async" => Mode::Async,
        "sync" => Mode::Sync,
        other => {
            return Err(PyValueError::new_err(format!(
                "mode must be 'adaptive', 'async' or 'sync', not '{other}'"
            )));
        }
    });
    Ok(())
}

/// Number of threads that compute.
#[pyfunction]
pub fn num_threads() -> usize {
    engine().num_threads()
}

/// Sets the number of threads that compute.
#[pyfunction]
pub fn set_num_threads(n: usize) -> PyResult<()> {
    if n == 0 {
        return Err(PyValueError::new_err(
            "the number of threads must be at least 1",
        ));
    }
    engine().set_num_threads(n);
    Ok(())
}

/// Names the Python line in failures that surface later (costs a little per call); returns what it was.
#[pyfunction]
pub fn set_debug(on: bool) -> bool {
    mxnet::ops::origin::set_enabled(on)
}

/// File and line of the innermost Python frame.
pub fn running_line() -> Option<String> {
    Python::attach(|py| {
        let frame = py.import("sys").ok()?.call_method0("_getframe").ok()?;
        let code = frame.getattr("f_code").ok()?;
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        let line: usize = frame.getattr("f_lineno").ok()?.extract().ok()?;
        Some(format!("{file}:{line}"))
    })
}
