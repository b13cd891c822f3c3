//! Recording and training mode, of threads and of the tasks of an event loop.
//!
//! A thread has its modes in flags that every call looks at. A coroutine that switches them in a `with` block may give way inside it, and others of its
//! thread must not run in its modes. So while the thread runs an event loop of asyncio, a block stands in a context variable, which belongs to the task
//! and to those that it makes, and as long as blocks are open the flags are read from there (`interp::open_in_task`).

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use mxnet::core::interp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::gil_cell::GilCell;
use crate::gil_release::try_with_python;
use crate::once_box::{OnceBox, interned};

const RECORDING: u8 = 1;
const TRAINING: u8 = 2;

static VARIABLE: OnceBox<Py<PyAny>> = OnceBox::new();
static RUNNING_LOOP: OnceBox<Py<PyAny>> = OnceBox::new();

/// The context variable of the modes.
fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let made = VARIABLE.get_or_try_init(|| {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        class.call1(("mxnet_modes",)).map(Bound::unbind)
    });
    made.map(|variable| variable.bind(py))
}

/// A block of a task.
#[pyclass(frozen)]
struct Block {
    /// [`RECORDING`] and [`TRAINING`].
    bits: AtomicU8,
    /// False once it is left: tasks that were made inside have the modes of the block around it then.
    is_open: AtomicBool,
    outer: Option<Py<Block>>,
}

impl Block {
    fn modes(&self) -> (bool, bool) {
        let bits = self.bits.load(Ordering::Relaxed);
        (bits & RECORDING != 0, bits & TRAINING != 0)
    }

    fn set_modes(&self, (recording, training): (bool, bool)) {
        let bits = (u8::from(recording) * RECORDING) | (u8::from(training) * TRAINING);
        self.bits.store(bits, Ordering::Relaxed);
    }
}

/// The innermost open block of the running task.
fn block_of_task(py: Python<'_>) -> PyResult<Option<Py<Block>>> {
    let found = variable(py)?.call_method1(interned!(py, "get"), (py.None(),))?;
    let mut block: Option<Py<Block>> = found.extract()?;
    while let Some(inner) = &block {
        if inner.get().is_open.load(Ordering::Relaxed) {
            break;
        }
        block = inner.get().outer.as_ref().map(|outer| outer.clone_ref(py));
    }
    Ok(block)
}

/// Answers the library's question about the running task.
pub fn task_modes() -> Option<(bool, bool)> {
    try_with_python(|py| {
        let block = block_of_task(py).ok().flatten();
        block.map(|block| block.get().modes())
    })
    .flatten()
}

/// Whether this thread runs an event loop.
fn runs_loop(py: Python<'_>) -> PyResult<bool> {
    let ask = match RUNNING_LOOP.get() {
        Some(ask) => ask.bind(py).clone(),
        None => {
            // Nobody runs a loop before the module is imported.
            let modules = py.import("sys")?.getattr(interned!(py, "modules"))?;
            let module = modules.call_method1(interned!(py, "get"), ("asyncio.events",))?;
            let Ok(ask) = module.getattr(interned!(py, "_get_running_loop")) else {
                return Ok(false);
            };
            RUNNING_LOOP.set(ask.clone().unbind());
            ask
        }
    };
    Ok(!ask.call0()?.is_none())
}

/// How a block was entered.
enum Entered {
    /// The thread's modes before.
    InThread { recording: bool, training: bool },
    /// The block, and the token of the context variable that it stands in.
    InTask(Py<Block>, Py<PyAny>),
}

impl Entered {
    /// Ends a block of a task.
    fn leave(&self) {
        if let Entered::InTask(block, _) = self {
            block.get().is_open.store(false, Ordering::Relaxed);
            interp::leave_in_task();
        }
    }
}

/// Recording and training mode inside a `with` block; `None` leaves a mode as it is.
#[pyclass(name = "Mode", module = "mxnet._core", frozen)]
pub struct Mode {
    recording: Option<bool>,
    training: Option<bool>,
    /// The blocks that are open, the innermost of each task last.
    entered: GilCell<Vec<Entered>>,
}

#[pymethods]
impl Mode {
    #[new]
    fn new(recording: Option<bool>, training: Option<bool>) -> Mode {
        Mode {
            recording,
            training,
            entered: GilCell::new(Vec::new()),
        }
    }

    /// Switches the modes.
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let (recording, training) = (interp::is_recording(), interp::is_training());
        let new = (
            self.recording.unwrap_or(recording),
            self.training.unwrap_or(training),
        );
        // Inside a backward pass, say, no other task runs before it ends.
        let entered = if !interp::is_scoped() && (interp::has_tasks() || runs_loop(py)?) {
            let block = Block {
                bits: AtomicU8::new(0),
                is_open: AtomicBool::new(true),
                outer: block_of_task(py)?,
            };
            block.set_modes(new);
            let block = Py::new(py, block)?;
            let token = variable(py)?.call_method1(interned!(py, "set"), (&block,))?;
            interp::open_in_task();
            Entered::InTask(block, token.unbind())
        } else {
            self.switch(new);
            Entered::InThread {
                recording,
                training,
            }
        };
        self.entered.change(py, |blocks| blocks.push(entered));
        Ok(())
    }

    /// Puts back what was before.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        // Other tasks may have entered the same object since: the block of this one is the last whose token its context takes back.
        let mut others = Vec::new();
        while let Some(block) = self.entered.change(py, Vec::pop) {
            let is_left = match &block {
                Entered::InThread {
                    recording,
                    training,
                } => {
                    self.switch((*recording, *training));
                    true
                }
                Entered::InTask(_, token) => reset_variable(py, token)?,
            };
            if is_left {
                block.leave();
                self.put_back(py, others);
                return Ok(());
            }
            others.push(block);
        }
        // A task that has ended without leaving its block leaves it from another context, whose modes are not touched.
        if !others.is_empty() {
            others.remove(0).leave();
        }
        self.put_back(py, others);
        Ok(())
    }
}

impl Mode {
    /// Sets the thread's modes that this scope is about.
    fn switch(&self, (recording, training): (bool, bool)) {
        if self.recording.is_some() {
            interp::set_recording(recording);
        }
        if self.training.is_some() {
            interp::set_training(training);
        }
    }

    /// Blocks that were taken off, the last one first.
    fn put_back(&self, py: Python<'_>, blocks: Vec<Entered>) {
        self.entered
            .change(py, |entered| entered.extend(blocks.into_iter().rev()));
    }
}

/// Takes modes back; false if they were given in another context.
fn reset_variable(py: Python<'_>, token: &Py<PyAny>) -> PyResult<bool> {
    match variable(py)?.call_method1(interned!(py, "reset"), (token,)) {
        Ok(_) => Ok(true),
        Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Switches a mode of the innermost block of the running task, or else of the thread.
fn switch_one(
    py: Python<'_>,
    in_block: impl FnOnce((bool, bool)) -> (bool, bool),
    in_thread: impl FnOnce(),
) -> PyResult<()> {
    let block = match interp::has_tasks() {
        true => block_of_task(py)?,
        false => None,
    };
    match block {
        Some(block) => block.get().set_modes(in_block(block.get().modes())),
        None => in_thread(),
    }
    Ok(())
}

/// Switches recording of this thread, or of the running task if it is in a block; returns what it was.
#[pyfunction]
pub fn set_recording(py: Python<'_>, on: bool) -> PyResult<bool> {
    let before = interp::is_recording();
    let in_thread = || {
        interp::set_recording(on);
    };
    switch_one(py, |(_, training)| (on, training), in_thread)?;
    Ok(before)
}

/// Switches training mode of this thread, or of the running task if it is in a block; returns what it was.
#[pyfunction]
pub fn set_training(py: Python<'_>, on: bool) -> PyResult<bool> {
    let before = interp::is_training();
    let in_thread = || {
        interp::set_training(on);
    };
    switch_one(py, |(recording, _)| (recording, on), in_thread)?;
    Ok(before)
}

/// Whether this thread, or its running task, records.
#[pyfunction]
pub fn is_recording() -> bool {
    interp::is_recording()
}

/// Whether this thread, or its running task, is in training mode.
#[pyfunction]
pub fn is_training() -> bool {
    interp::is_training()
}
