//! Recording and training mode of threads, and of the tasks of an asyncio event loop.
//!
//! The modes of a thread are flags that every call reads. A coroutine may yield inside a `with` block that switches the modes, and other tasks of the
//! thread must not run with its modes. Therefore, while the thread runs an event loop, a block is stored in a context variable, which belongs to
//! the task and the tasks that it creates. As long as such blocks are open, the modes are read from there (`mode::open_in_task`).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, ThreadId};

use mxnet::core::mode;
use mxnet::tensor::DType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::gil_cell::GilCell;
use crate::gil_release::try_with_python;
use crate::once_box::{OnceBox, interned};

const RECORDING: u8 = 1;
const TRAINING: u8 = 2;

static VARIABLE: OnceBox<Py<PyAny>> = OnceBox::new();
static RUNNING_LOOP: OnceBox<Py<PyAny>> = OnceBox::new();

/// The context variable that holds the innermost block.
fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let made = VARIABLE.get_or_try_init(|| {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        class.call1(("mxnet_modes",)).map(Bound::unbind)
    });
    made.map(|variable| variable.bind(py))
}

/// A `with` block of a task.
#[pyclass(frozen)]
struct Block {
    /// Bits [`RECORDING`] and [`TRAINING`].
    bits: AtomicU8,
    /// False after the block has been left. Tasks that were created inside then have the modes of the outer block.
    is_open: AtomicBool,
    outer: Option<Py<Block>>,
}

impl Block {
    fn modes(&self) -> (bool, bool) {
        modes_of(self.bits.load(Ordering::Relaxed))
    }

    fn set_modes(&self, modes: (bool, bool)) {
        self.bits.store(bits_of(modes), Ordering::Relaxed);
    }
}

fn modes_of(bits: u8) -> (bool, bool) {
    (bits & RECORDING != 0, bits & TRAINING != 0)
}

fn bits_of((recording, training): (bool, bool)) -> u8 {
    (u8::from(recording) * RECORDING) | (u8::from(training) * TRAINING)
}

/// A `with` block of a thread that runs no event loop.
struct ThreadBlock {
    thread: ThreadId,
    /// The modes before it, as in [`Block::bits`].
    outer: AtomicU8,
}

thread_local! {
    /// The open blocks of this thread, innermost last.
    static OPEN: RefCell<Vec<Arc<ThreadBlock>>> = const { RefCell::new(Vec::new()) };
}

impl ThreadBlock {
    fn open(outer: (bool, bool)) -> Arc<ThreadBlock> {
        let block = Arc::new(ThreadBlock {
            thread: thread::current().id(),
            outer: AtomicU8::new(bits_of(outer)),
        });
        // Without storage for the list, which a thread that ends has no more, the block cannot be dropped out of order either.
        let _ = OPEN.try_with(|open| open.borrow_mut().push(block.clone()));
        block
    }

    /// Takes the block from the list. Returns the next inner one.
    fn close(self: &Arc<ThreadBlock>) -> Option<Arc<ThreadBlock>> {
        let inner = OPEN.try_with(|open| {
            let mut open = open.borrow_mut();
            let at = open.iter().rposition(|other| Arc::ptr_eq(other, self))?;
            open.remove(at);
            open.get(at).cloned()
        });
        inner.ok().flatten()
    }

    fn outer_modes(&self) -> (bool, bool) {
        modes_of(self.outer.load(Ordering::Relaxed))
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

/// The modes of the running task; a callback of the core.
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
            // No event loop can run before the module is imported.
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
    InThread(Arc<ThreadBlock>),
    /// The block, and the token of the context variable's previous value.
    InTask(Py<Block>, Py<PyAny>),
}

impl Entered {
    /// Marks a task's block as left.
    fn leave(&self) {
        if let Entered::InTask(block, _) = self {
            block.get().is_open.store(false, Ordering::Relaxed);
            mode::leave_in_task();
        }
    }
}

/// Recording and training mode inside a `with` block; `None` leaves a mode as it is.
#[pyclass(name = "Mode", module = "mxnet._core", frozen)]
pub struct Mode {
    recording: Option<bool>,
    training: Option<bool>,
    /// The open blocks of this object; of each task, the innermost is last.
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
        let (recording, training) = (mode::is_recording(), mode::is_training());
        let new = (
            self.recording.unwrap_or(recording),
            self.training.unwrap_or(training),
        );
        // Inside a scope of the core (a backward pass, for example) no other task can run before it ends.
        let entered = if !mode::is_scoped() && (mode::has_tasks() || runs_loop(py)?) {
            let block = Block {
                bits: AtomicU8::new(0),
                is_open: AtomicBool::new(true),
                outer: block_of_task(py)?,
            };
            block.set_modes(new);
            let block = Py::new(py, block)?;
            let token = variable(py)?.call_method1(interned!(py, "set"), (&block,))?;
            mode::open_in_task();
            Entered::InTask(block, token.unbind())
        } else {
            self.switch(new);
            Entered::InThread(ThreadBlock::open((recording, training)))
        };
        self.entered.change(py, |blocks| blocks.push(entered));
        Ok(())
    }

    /// Restores the previous modes.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        // Other tasks may have entered the same object since. This task's block is the last one whose token is valid in the current context.
        let mut others = Vec::new();
        while let Some(block) = self.entered.change(py, Vec::pop) {
            let is_left = match &block {
                Entered::InThread(block) => {
                    self.switch(block.outer_modes());
                    block.close();
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
        // A task that ended without leaving its block leaves it from another context (by garbage collection); the modes there are not changed.
        if !others.is_empty() {
            others.remove(0).leave();
        }
        self.put_back(py, others);
        Ok(())
    }
}

/// An object that goes away leaves its blocks. Python 3.14 may run a signal handler after `__enter__` and before the `with` block begins; if the
/// handler raises, nothing calls `__exit__`. The object may live on in the error's traceback: if inner blocks are open when it goes away, their modes
/// stay, and the next inner one restores those from before this object's block.
impl Drop for Mode {
    fn drop(&mut self) {
        while let Some(block) = self.entered.get_mut().pop() {
            block.leave();
            let Entered::InThread(block) = block else {
                continue;
            };
            if block.thread != thread::current().id() {
                continue;
            }
            let outer = block.outer_modes();
            match block.close() {
                None => self.switch(outer),
                Some(inner) => {
                    let (recording, training) = inner.outer_modes();
                    let restored = (
                        self.recording.map_or(recording, |_| outer.0),
                        self.training.map_or(training, |_| outer.1),
                    );
                    inner.outer.store(bits_of(restored), Ordering::Relaxed);
                }
            }
        }
    }
}

impl Mode {
    /// Sets those modes of the thread that this object switches.
    fn switch(&self, (recording, training): (bool, bool)) {
        if self.recording.is_some() {
            mode::set_recording(recording);
        }
        if self.training.is_some() {
            mode::set_training(training);
        }
    }

    /// Pushes blocks back, which were popped in this order.
    fn put_back(&self, py: Python<'_>, blocks: Vec<Entered>) {
        self.entered
            .change(py, |entered| entered.extend(blocks.into_iter().rev()));
    }
}

/// Restores the previous value of the context variable; false if the token belongs to another context.
fn reset_variable(py: Python<'_>, token: &Py<PyAny>) -> PyResult<bool> {
    match variable(py)?.call_method1(interned!(py, "reset"), (token,)) {
        Ok(_) => Ok(true),
        Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Switches a mode of the innermost block of the running task, or of the thread if there is none.
fn switch_one(
    py: Python<'_>,
    in_block: impl FnOnce((bool, bool)) -> (bool, bool),
    in_thread: impl FnOnce(),
) -> PyResult<()> {
    let block = match mode::has_tasks() {
        true => block_of_task(py)?,
        false => None,
    };
    match block {
        Some(block) => block.get().set_modes(in_block(block.get().modes())),
        None => in_thread(),
    }
    Ok(())
}

/// Switches recording of the running task if it is in a block, else of this thread; returns the previous setting.
#[pyfunction]
pub fn set_recording(py: Python<'_>, on: bool) -> PyResult<bool> {
    let before = mode::is_recording();
    let in_thread = || {
        mode::set_recording(on);
    };
    switch_one(py, |(_, training)| (on, training), in_thread)?;
    Ok(before)
}

/// Switches training mode of the running task if it is in a block, else of this thread; returns the previous setting.
#[pyfunction]
pub fn set_training(py: Python<'_>, on: bool) -> PyResult<bool> {
    let before = mode::is_training();
    let in_thread = || {
        mode::set_training(on);
    };
    switch_one(py, |(recording, _)| (recording, on), in_thread)?;
    Ok(before)
}

/// Whether the running task, or this thread, records.
#[pyfunction]
pub fn is_recording() -> bool {
    mode::is_recording()
}

/// Whether the running task, or this thread, is in training mode.
#[pyfunction]
pub fn is_training() -> bool {
    mode::is_training()
}

/// The dtype of automatic mixed precision on this thread, "float16" or "bfloat16"; None if it is off.
#[pyfunction]
pub fn autocast() -> Option<&'static str> {
    mode::autocast().map(DType::name)
}

/// Switches automatic mixed precision on for this thread ("float16" or "bfloat16") or off (None); returns the previous setting.
#[pyfunction]
pub fn set_autocast(dtype: Option<&str>) -> PyResult<Option<&'static str>> {
    let dtype = match dtype {
        None => None,
        Some("float16") => Some(DType::F16),
        Some("bfloat16") => Some(DType::BF16),
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "mixed precision is of 'float16' or 'bfloat16', found {other:?}"
            )));
        }
    };
    Ok(mode::set_autocast(dtype).map(DType::name))
}
