//! The thread's interpreter stack: what `invoke` does with a call.
//!
//! The bottom is eager execution. Recording is a flag on top of it, because it is on the hot path. Anything else (a tracer, a counter, a
//! type caster) is an [`Interpreter`] pushed for the time of a scope; while it handles a call, the calls it makes go to the one below.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, Ordering};

use mxnet_tensor::Device;

use crate::error::Result;
use crate::invoke::Call;
use crate::{Array, Outputs};

const RECORDING: u8 = 1;
const TRAINING: u8 = 2;
const STACKED: u8 = 4;
const WATCHING: u8 = 8;
const EXPANDED: u8 = 16;
const GENERAL: u8 = 32;

/// [`GENERAL`] if no thread may take the ways of elements and positions, else 0.
static EVERYWHERE: AtomicU8 = AtomicU8::new(0);

thread_local! {
    static DEVICE: Cell<Device> = const { Cell::new(Device::cpu(0)) };
    static FLAGS: Cell<u8> = const { Cell::new(0) };
    static STACK: RefCell<Vec<Rc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) };
    /// Interpreters that passed the running call on by [`expand`], the top one first.
    static EXPANDING: RefCell<Vec<Rc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) };
}

/// What a pushed interpreter does with each call of its thread.
pub trait Interpreter {
    /// Handles one call. `crate::invoke` inside goes to the interpreter below.
    ///
    /// # Errors
    /// Whatever the call, or what is done with it, reports.
    fn call(&self, call: &Call) -> Result<Outputs>;

    /// Is told that the host is about to look at the values of an array.
    ///
    /// # Errors
    /// What the interpreter has against that.
    fn reads(&self, _x: &Array) -> Result<()> {
        Ok(())
    }
}

/// How the current thread executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The current thread's flags.
    #[inline]
    pub fn current() -> Flags {
        Flags(FLAGS.get() | EVERYWHERE.load(Ordering::Relaxed))
    }

    /// Neither recording nor watched nor intercepted: the call is carried out at once.
    #[inline]
    pub fn is_unobserved(self) -> bool {
        self.0 & (RECORDING | STACKED | WATCHING) == 0
    }

    /// Whether the ways of elements and positions are open: neither recording nor watched nor intercepted, and they are not switched off.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 & (RECORDING | STACKED | WATCHING | GENERAL) == 0
    }

    /// The same for what only moves elements, which makes no floating-point error that a watch looks for.
    #[inline]
    pub fn may_move(self) -> bool {
        self.0 & (RECORDING | STACKED | GENERAL) == 0
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

    /// Whether results are watched for floating-point errors.
    #[inline]
    pub fn is_watching(self) -> bool {
        self.0 & WATCHING != 0
    }

    /// Whether somebody wants to see every call: there are no short ways then.
    #[inline]
    pub fn is_intercepted(self) -> bool {
        self.0 & (STACKED | WATCHING) != 0
    }

    /// Whether an interpreter is pushed.
    #[inline]
    pub fn is_stacked(self) -> bool {
        self.0 & STACKED != 0
    }
}

/// Where this thread's new arrays are made if nothing else says where.
#[inline]
pub fn current_device() -> Device {
    DEVICE.get()
}

/// Chooses where this thread's new arrays are made; returns what it was.
pub fn set_current_device(device: Device) -> Device {
    DEVICE.replace(device)
}

/// Switches recording on this thread; returns what it was.
pub fn set_recording(on: bool) -> bool {
    set(RECORDING, on)
}

/// Switches training mode on this thread; returns what it was.
pub fn set_training(on: bool) -> bool {
    set(TRAINING, on)
}

/// Switches the watch for floating-point errors on this thread; returns what it was.
pub(crate) fn set_watching(on: bool) -> bool {
    set(WATCHING, on)
}

/// Opens or closes the ways of elements and positions for all threads; returns whether they were open. Without them every read and write of
/// elements is a call of an operator.
pub fn set_element_path(is_open: bool) -> bool {
    EVERYWHERE.swap(if is_open { 0 } else { GENERAL }, Ordering::Relaxed) == 0
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

/// Runs `body` outside all interpreters and any recording, as if it were called before them: what it computes has values, and nobody sees it.
pub fn outside<R>(body: impl FnOnce() -> R) -> R {
    struct Restore {
        stack: Vec<Rc<dyn Interpreter>>,
        expanding: Vec<Rc<dyn Interpreter>>,
    }
    impl Drop for Restore {
        fn drop(&mut self) {
            STACK.set(std::mem::take(&mut self.stack));
            EXPANDING.set(std::mem::take(&mut self.expanding));
        }
    }
    let _scope = Scope::enter(false, is_training());
    let _stacked = RestoreFlag(STACKED, set(STACKED, false));
    let _expanded = RestoreFlag(EXPANDED, set(EXPANDED, false));
    let _restore = Restore {
        stack: STACK.take(),
        expanding: EXPANDING.take(),
    };
    body()
}

/// Tells the top interpreter that the host is about to look at the values of an array.
#[cold]
pub(crate) fn look(x: &Array) -> Result<()> {
    let top = STACK.with_borrow(|stack| stack.last().cloned());
    match top {
        Some(top) => top.reads(x),
        None => Ok(()),
    }
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

/// Carries out `call` below `interpreter`, which is handling it, as [`crate::invoke::dispatch`] does. If the operator is a composite, `interpreter`
/// also handles the calls that its body makes: a tracer sees every primitive.
///
/// # Errors
/// As [`crate::invoke`].
pub fn expand(interpreter: Rc<dyn Interpreter>, call: &Call) -> Result<Outputs> {
    let depth = EXPANDING.with_borrow_mut(|expanding| {
        expanding.push(interpreter);
        expanding.len() - 1
    });
    let _truncate = Truncate(&EXPANDING, depth);
    let _restore = RestoreFlag(EXPANDED, set(EXPANDED, true));
    crate::invoke::dispatch(call)
}

/// Runs the body of a composite: its calls go to the interpreters that asked for them by [`expand`].
#[inline]
pub(crate) fn in_body<R>(body: impl FnOnce() -> R) -> R {
    match FLAGS.get() & EXPANDED == 0 {
        true => body(),
        false => expanded(body),
    }
}

#[cold]
#[inline(never)]
fn expanded<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(Vec<Rc<dyn Interpreter>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            EXPANDING.set(std::mem::take(&mut self.0));
        }
    }
    let expanding = Restore(EXPANDING.take());
    let depth = STACK.with_borrow_mut(|stack| {
        let depth = stack.len();
        stack.extend(expanding.0.iter().rev().cloned());
        depth
    });
    let _truncate = Truncate(&STACK, depth);
    let _outside = RestoreFlag(EXPANDED, set(EXPANDED, false));
    let _below = RestoreFlag(STACKED, set(STACKED, true));
    body()
}

/// Gives a flag of the thread its earlier value when dropped.
struct RestoreFlag(u8, bool);

impl Drop for RestoreFlag {
    fn drop(&mut self) {
        set(self.0, self.1);
    }
}

/// Shortens a list of the thread when dropped.
struct Truncate(
    &'static std::thread::LocalKey<RefCell<Vec<Rc<dyn Interpreter>>>>,
    usize,
);

impl Drop for Truncate {
    fn drop(&mut self) {
        self.0.with_borrow_mut(|list| list.truncate(self.1));
    }
}
