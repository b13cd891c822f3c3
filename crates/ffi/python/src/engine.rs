//! Settings and statistics of the engine, and `waitall`.

use mxnet::core::Error;
use mxnet::engine::{Mode, engine};
use mxnet::tensor::memory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raise;
use crate::gil_release::{try_with_python, without_gil};

/// Whether calls may wait for the engine, or execute its operations, before they return: the GIL should be released.
#[inline]
pub fn may_wait() -> bool {
    let engine = engine();
    engine.mode() == Mode::Sync || engine.may_wait()
}

/// Number of Python objects that are made or read between two checks for signals; takes a few milliseconds.
pub const SIGNALS_EVERY: usize = 1 << 16;

/// Whether a signal handler raised an exception.
pub fn interrupted() -> bool {
    // While the interpreter ends, there are no handlers any more.
    let asked = try_with_python(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            // `raise` raises it when the wait has ended.
            error.restore(py);
            true
        }
    });
    asked.unwrap_or(false)
}

/// Waits for everything pushed so far; raises the first failure not yet raised.
///
/// Raises
/// ------
/// MXNetError
///     What went wrong in a pending operation.
///
/// Examples
/// --------
/// >>> x = np.ones((100, 100)) @ np.ones((100, 100))
/// >>> npx.waitall()
#[pyfunction]
pub fn waitall(py: Python<'_>) -> PyResult<()> {
    let wait = || {
        engine().wait_all(&mut interrupted)?;
        Ok(mxnet::tensor::wait_for_devices()?)
    };
    without_gil(py, wait).map_err(|error: Error| raise(py, error))
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

/// Number of compute threads.
#[pyfunction]
pub fn num_threads() -> usize {
    engine().num_threads()
}

/// How often this thread has waited for an array. A call that does not change it has read no values.
#[pyfunction]
pub fn waits() -> u64 {
    mxnet::core::waits()
}

/// Sets the number of compute threads.
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

/// Statistics of the engine: numbers of operations, and bytes held by pending ones.
#[pyfunction]
pub fn engine_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = engine().stats();
    let facts = PyDict::new(py);
    for (name, value) in [
        ("pushed", stats.pushed),
        ("inline", stats.inline),
        ("queued", stats.queued),
        ("failed", stats.failed),
        ("skipped", stats.skipped),
        ("in_flight", stats.in_flight as u64),
        ("bytes_in_flight", stats.bytes_in_flight as u64),
        ("peak_bytes_in_flight", stats.peak_bytes_in_flight as u64),
        ("workers", stats.workers as u64),
    ] {
        facts.set_item(name, value)?;
    }
    Ok(facts)
}

/// Bytes that the CPU's allocator holds, and the number of its allocations. Memory of other libraries is not counted.
#[pyfunction]
pub fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = memory::stats();
    let facts = PyDict::new(py);
    for (name, value) in [
        ("in_use_bytes", stats.in_use_bytes as u64),
        ("cached_bytes", stats.cached_bytes as u64),
        ("peak_bytes", stats.peak_bytes as u64),
        ("allocations", stats.allocations),
        ("system_allocations", stats.system_allocations),
    ] {
        facts.set_item(name, value)?;
    }
    Ok(facts)
}

/// Resets `peak_bytes` of `memory_stats` to the bytes in use.
#[pyfunction]
pub fn reset_memory_peak() {
    memory::reset_peak();
}

/// Includes the Python line of the call in errors that surface later, at a small cost per call. Returns the previous setting.
#[pyfunction]
pub fn set_debug(on: bool) -> bool {
    mxnet::core::call_site::set_enabled(on)
}

/// File and line of the innermost Python frame.
pub fn running_line() -> Option<String> {
    try_with_python(|py| {
        let mut frame = py.import("sys").ok()?.call_method0("_getframe").ok()?;
        let innermost = line_of(&frame);
        // Frames of this package are skipped.
        loop {
            let globals = frame.getattr("f_globals").ok()?;
            let module = globals.get_item("__name__").ok();
            let module: Option<String> = module.and_then(|name| name.extract().ok());
            let is_own = module.is_some_and(|name| name == "mxnet" || name.starts_with("mxnet."));
            if !is_own {
                return line_of(&frame);
            }
            match frame.getattr("f_back") {
                Ok(back) if !back.is_none() => frame = back,
                _ => return innermost,
            }
        }
    })
    .flatten()
}

/// The file and line of a frame.
fn line_of(frame: &Bound<'_, PyAny>) -> Option<String> {
    let file: String = (frame.getattr("f_code").ok()?.getattr("co_filename").ok()?)
        .extract()
        .ok()?;
    let line: usize = frame.getattr("f_lineno").ok()?.extract().ok()?;
    Some(format!("{file}:{line}"))
}

/// Switches the plan cache; returns whether it was on. Without it every call is prepared by the rules of its operator.
#[pyfunction]
pub fn set_plan_cache(on: bool) -> bool {
    mxnet::core::plan::set_enabled(on)
}

/// Switches the fast paths for elements and positions (`x[i]`, `x[i] = v`, operators on elements) for all threads; returns whether they were on.
/// Without them every read and write of elements is an operator call.
#[pyfunction]
pub fn set_element_path(on: bool) -> bool {
    mxnet::core::mode::set_element_path(on)
}

/// Number of calls of this thread that ran a cached plan, and number of calls that were prepared.
#[pyfunction]
pub fn plan_counters() -> (u64, u64) {
    let counters = mxnet::core::plan::counters();
    (counters.hits, counters.misses)
}
