//! The profiler.

use mxnet::profiler::{self, Format, Instant, Label, SortBy, SpanKind, SummaryOptions};
use pyo3::prelude::*;

use crate::error::raise;
use crate::gil_release::without_gil;

/// Starts or stops the profiler. Stopping waits for pending operations.
#[pyfunction]
pub fn profiler_set_running(py: Python<'_>, on: bool) {
    without_gil(py, || match on {
        true => profiler::start(),
        false => profiler::stop(),
    });
}

/// Pauses the profiler, or continues.
#[pyfunction]
pub fn profiler_set_paused(on: bool) {
    match on {
        true => profiler::pause(),
        false => profiler::resume(),
    }
}

/// Writes the trace to the file of the settings.
#[pyfunction]
pub fn profiler_dump(py: Python<'_>, finished: bool) -> PyResult<()> {
    without_gil(py, || profiler::dump(finished)).map_err(|error| raise(py, error))
}

/// The statistics as text.
#[pyfunction]
pub fn profiler_dumps(
    py: Python<'_>,
    reset: bool,
    format: &str,
    sort_by: &str,
    ascending: bool,
) -> PyResult<String> {
    let options = SummaryOptions {
        format: Format::of(format).map_err(|error| raise(py, error))?,
        sort_by: SortBy::of(sort_by).map_err(|error| raise(py, error))?,
        ascending,
        reset,
    };
    Ok(without_gil(py, || profiler::summary(&options)))
}

/// Whether blocks should name their operators: events are being recorded, or a trace that may be profiled later.
#[pyfunction]
pub fn profiler_uses_scopes() -> bool {
    profiler::is_active() || mxnet::core::mode::is_tracing()
}

/// Name of the thread's scope.
#[pyfunction]
pub fn profiler_scope() -> String {
    profiler::current_scope().name().to_string()
}

/// Opens a scope inside the thread's scope. Returns that as a number for `profiler_leave_block`.
#[pyfunction]
pub fn profiler_enter_block(name: &str) -> u32 {
    profiler::enter_scope(name).number()
}

/// Restores the thread's scope.
#[pyfunction]
pub fn profiler_leave_block(outer: u32) {
    profiler::set_scope(Label::of_number(outer));
}

/// Sets the name of the thread's scope.
#[pyfunction]
pub fn profiler_set_scope(name: &str) {
    profiler::set_scope(profiler::label(name));
}

/// Records an instant.
#[pyfunction]
pub fn profiler_mark(py: Python<'_>, domain: &str, name: &str, reach: &str) -> PyResult<()> {
    let reach = Instant::of(reach).map_err(|error| raise(py, error))?;
    profiler::mark(domain, name, reach);
    Ok(())
}

/// A time span of the program.
#[pyclass(frozen, module = "mxnet._core")]
pub struct ProfilerSpan(profiler::Span);

#[pymethods]
impl ProfilerSpan {
    /// `kind` is 'task', 'frame' or 'event'.
    #[new]
    fn new(kind: &str, domain: &str, name: &str) -> ProfilerSpan {
        let kind = match kind {
            "task" => SpanKind::Task,
            "frame" => SpanKind::Frame,
            _ => SpanKind::Event,
        };
        ProfilerSpan(profiler::Span::new(kind, domain, name))
    }

    /// Begins the span.
    fn start(&self) {
        self.0.start();
    }

    /// Ends the span and records it.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.0.stop().map_err(|error| raise(py, error))
    }
}

/// A number whose changes are recorded.
#[pyclass(frozen, module = "mxnet._core")]
pub struct ProfilerCounter(profiler::Counter);

#[pymethods]
impl ProfilerCounter {
    #[new]
    fn new(domain: &str, name: &str) -> ProfilerCounter {
        ProfilerCounter(profiler::Counter::new(domain, name))
    }

    /// Sets the value.
    fn set(&self, value: i64) {
        self.0.set(value);
    }

    /// Adds to the value.
    fn add(&self, delta: i64) {
        self.0.add(delta);
    }
}

/// At the end of a program whose environment started the profiler: writes its file.
#[pyfunction]
fn dump_at_exit(py: Python<'_>) -> PyResult<()> {
    match profiler::is_running() {
        true => profiler_dump(py, true),
        false => Ok(()),
    }
}

/// Has the file written at the end of the program, if the environment has started the profiler.
pub fn register(py: Python<'_>) -> PyResult<()> {
    if profiler::is_running() {
        let dump = wrap_pyfunction!(dump_at_exit, py)?;
        py.import("atexit")?.call_method1("register", (dump,))?;
    }
    Ok(())
}
