//! The thread's interpreter stack: what `invoke` does with a call.
//!
//! The bottom is eager execution. Recording is a flag on top of it, because it is on the hot path. Anything else (a tracer, a counter, a
//! type caster) is an [`Interpreter`] pushed for the time of a scope; while it handles a call, the calls it makes go to the one below.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::Outputs;
use crate::error::Result;
use crate::invoke::Call;

const RECORDING: u8 = 1;
const TRAINING: u8 = 2;
const STACKED: u8 = 4;

thread_local! {
    static FLAGS: Cell<u8> = const { Cell::new(0) };
    static STACK: RefCell<Vec<Rc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) };
}

/// What a pushed interpreter does with each call of its thread.
pub trait Interpreter {
    /// Handles one call. `crate::invoke` inside goes to the interpreter below.
    ///
    /// # Errors
    /// Whatever the call, or what is done with it, reports.
    fn call(&self, call: &Call) -> Result<Outputs>;
}

/// How the current thread executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The current thread's flags.
    #[inline]
    pub fn current() -> Flags {
        Flags(FLAGS.get())
    }

    /// Neither recording nor intercepted.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 & (RECORDING | STACKED) == 0
    }

    /// Whether calls are recorded for differentiation.
    #[inline]
    pub fn is_recording(self) -> bool {
        self.0 & RECORDING != 0
    }

    /// Whether this is a training pass.
    #[inline]
    pub fn is_training(self) -> bool {
        self.0 & TRAINING != 0
    }

    /// Whether an interpreter is pushed.
    #[inline]
    pub fn is_stacked(self) -> bool {
        self.0 & STACKED != 0
    }
}

/// Switches recording on this thread; returns what it was.
pub fn set_recording(on: bool) -> bool {
    set(RECORDING, on)
}

/// Switches training mode on this thread; returns what it was.
pub fn set_training(on: bool) -> bool {
    set(TRAINING, on)
}

/// Whether this thread records.
pub fn is_recording() -> bool {
    Flags::current().is_recording()
}

/// Whether this thread is in training mode.
pub fn is_training() -> bool {
    Flags::current().is_training()
}

fn set(bit: u8, on: bool) -> bool {
    let old = FLAGS.get();
    FLAGS.set(if on { old | bit } else { old & !bit });
    old & bit != 0
}

/// Restores recording and training mode when dropped.
#[must_use]
pub struct Scope {
    recording: bool,
    training: bool,
}

impl Scope {
    /// Enters a scope with these modes.
    pub fn enter(recording: bool, training: bool) -> Scope {
        Scope {
            recording: set_recording(recording),
            training: set_training(training),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        set_recording(self.recording);
        set_training(self.training);
    }
}

/// Runs `body` with `interpreter` on top of the stack.
pub fn with_interpreter<R>(interpreter: Rc<dyn Interpreter>, body: impl FnOnce() -> R) -> R {
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            STACK.with_borrow_mut(|stack| {
                stack.pop();
                set(STACKED, !stack.is_empty());
            });
        }
    }
    STACK.with_borrow_mut(|stack| stack.push(interpreter));
    set(STACKED, true);
    let _pop = Pop;
    body()
}

/// Hands `call` to the top interpreter, which is out of the way while it works.
pub(crate) fn call_top(call: &Call) -> Result<Outputs> {
    struct Restore(Option<Rc<dyn Interpreter>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(top) = self.0.take() {
                STACK.with_borrow_mut(|stack| stack.push(top));
                set(STACKED, true);
            }
        }
    }
    let top = STACK.with_borrow_mut(|stack| {
        let top = stack.pop();
        set(STACKED, !stack.is_empty());
        top
    });
    let guard = Restore(top);
    match &guard.0 {
        Some(top) => top.call(call),
        None => crate::invoke::dispatch(call),
    }
}
