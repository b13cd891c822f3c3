//! The thread's stack of interpreters: what `invoke` does with a call.
//!
//! The bottom is eager execution. Recording is a flag, because it is on the hot path. Automatic casts are flags, because they must come before every
//! interpreter. Anything else (a tracer, a counter) is an [`Interpreter`] that is pushed for a scope. While it handles a call, the calls that it makes
//! go to the interpreter below.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use mxnet_tensor::{DType, Device};

use crate::error::Result;
use crate::invoke::Call;
use crate::{Array, Outputs};

const RECORDING: u16 = 1;
const TRAINING: u16 = 2;
const STACKED: u16 = 4;
const WATCHING: u16 = 8;
const EXPANDED: u16 = 16;
const NO_FAST_PATH: u16 = 32;
const TASKS: u16 = 64;
const SCOPED: u16 = 128;
const PROFILED: u16 = 256;
const CALLS_PROFILED: u16 = 512;
const AUTOCAST: u16 = 1024;
/// Which dtype [`AUTOCAST`] and [`CASTS_IN_BODY`] mean: bfloat16 if set, else float16.
const BFLOAT16: u16 = 2048;
/// While a composite is called: its body is run with [`AUTOCAST`].
const CASTS_IN_BODY: u16 = 4096;
/// The flags of automatic casts.
const CASTS: u16 = AUTOCAST | BFLOAT16 | CASTS_IN_BODY;
/// The flags that [`set_recording`] and [`set_training`] change.
const MODES: u16 = RECORDING | TRAINING;

/// Flags of all threads: [`NO_FAST_PATH`] if the fast path for elements and indexing is switched off; [`PROFILED`] and [`CALLS_PROFILED`] while the
/// profiler records operators and calls.
static PROCESS_FLAGS: AtomicU16 = AtomicU16::new(0);

thread_local! {
    static DEVICE: Cell<Device> = const { Cell::new(Device::cpu(0)) };
    static FLAGS: Cell<u16> = const { Cell::new(0) };
    /// The modes of tasks that have not changed their modes, while [`TASKS`] is set.
    static TASKLESS_MODES: Cell<u16> = const { Cell::new(0) };
    /// Number of open blocks in which tasks have changed their modes.
    static NUM_TASK_BLOCKS: Cell<usize> = const { Cell::new(0) };
    static STACK: RefCell<Vec<Rc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) };
    /// Interpreters that passed the current call on by [`expand`], the top one first.
    static EXPANDING: RefCell<Vec<Rc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) };
}

/// Handles each call of its thread while it is on the stack.
pub trait Interpreter {
    /// Handles one call. `crate::invoke` inside goes to the interpreter below.
    ///
    /// # Errors
    /// Errors of the call, and of the interpreter itself.
    fn call(&self, call: &Call) -> Result<Outputs>;

    /// Called before the host reads the values of an array.
    ///
    /// # Errors
    /// If the interpreter does not allow that.
    fn reads(&self, _x: &Array) -> Result<()> {
        Ok(())
    }

    /// The array that it uses instead of `x` in calls, if it does. Records that are made without a call refer to that array.
    ///
    /// # Errors
    /// Errors of making the array.
    fn stand_in(&self, _x: &Array) -> Result<Option<Array>> {
        Ok(None)
    }

    /// Whether gradient rules must be composed of differentiable operators, also where fused kernels exist.
    fn composes_gradients(&self) -> bool {
        false
    }

    /// Whether it records calls for later runs. Values that the host computes meanwhile become constants.
    fn is_tracer(&self) -> bool {
        false
    }

    /// Refuses a custom gradient function that the interpreter would ignore.
    ///
    /// # Errors
    /// If it would be ignored.
    fn check_custom(&self, _name: &str, _inputs: &[&Array]) -> Result<()> {
        Ok(())
    }
}

/// Refuses a custom gradient function if one of the thread's interpreters does.
///
/// # Errors
/// As [`Interpreter::check_custom`].
pub fn check_custom(name: &str, inputs: &[&Array]) -> Result<()> {
    let stack = STACK.with_borrow(Clone::clone);
    stack
        .iter()
        .try_for_each(|interpreter| interpreter.check_custom(name, inputs))
}

/// Whether one of the thread's interpreters asks for composed gradient rules.
pub(crate) fn composes_gradients() -> bool {
    Flags::current().is_stacked()
        && STACK.with_borrow(|stack| {
            stack
                .iter()
                .any(|interpreter| interpreter.composes_gradients())
        })
}

/// Whether one of the thread's interpreters records calls for later runs.
pub fn is_tracing() -> bool {
    Flags::current().is_stacked()
        && STACK.with_borrow(|stack| stack.iter().any(|interpreter| interpreter.is_tracer()))
}

/// Runs `body` below all interpreters. For calls that only infer shapes.
pub(crate) fn without_interpreters<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(Vec<Rc<dyn Interpreter>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STACK.set(std::mem::take(&mut self.0));
            set(STACKED, STACK.with_borrow(|stack| !stack.is_empty()));
        }
    }
    let _restore = Restore(STACK.take());
    let _expanded = RestoreFlag(EXPANDED, set(EXPANDED, false));
    set(STACKED, false);
    body()
}

/// The array that the thread's interpreters use instead of `x`, if one does.
///
/// # Errors
/// As [`Interpreter::stand_in`].
pub fn stand_in(x: &Array) -> Result<Option<Array>> {
    if !Flags::current().is_stacked() {
        return Ok(None);
    }
    let stack = STACK.with_borrow(Clone::clone);
    let mut found = None;
    for interpreter in stack.iter().rev() {
        let seen = found.as_ref().unwrap_or(x);
        if let Some(array) = interpreter.stand_in(seen)? {
            found = Some(array);
        }
    }
    Ok(found)
}

/// Execution modes of the current thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// The current thread's flags.
    #[inline]
    pub fn current() -> Flags {
        let flags = FLAGS.get();
        let flags = if flags & TASKS == 0 {
            flags
        } else {
            of_task(flags)
        };
        Flags(flags | PROCESS_FLAGS.load(Ordering::Relaxed))
    }

    /// True unless calls are recorded, watched or intercepted: the call can be executed at once.
    #[inline]
    pub fn is_unobserved(self) -> bool {
        self.0 & (RECORDING | STACKED | WATCHING) == 0
    }

    /// Whether a call is executed at once: it is unobserved, and the profiler does not record calls.
    #[inline]
    pub(crate) fn runs_at_once(self) -> bool {
        self.0 & (RECORDING | STACKED | WATCHING | CALLS_PROFILED | AUTOCAST) == 0
    }

    /// Whether the profiler records operators, so that fast paths, which it would not see, must not be used.
    #[inline]
    pub fn is_profiled(self) -> bool {
        self.0 & PROFILED != 0
    }

    /// Whether the profiler records calls.
    #[inline]
    pub(crate) fn profiles_calls(self) -> bool {
        self.0 & CALLS_PROFILED != 0
    }

    /// Whether the fast path for elements and indexing may be used: it is not switched off, and calls are neither recorded, watched, intercepted, profiled
    /// nor cast.
    #[inline]
    pub fn allows_fast_path(self) -> bool {
        self.0 & (RECORDING | STACKED | WATCHING | NO_FAST_PATH | PROFILED | AUTOCAST) == 0
    }

    /// As [`Flags::allows_fast_path`], for functions that only move elements: these may be watched, because they make no floating-point
    /// errors, and need no casts.
    #[inline]
    pub fn allows_copies(self) -> bool {
        self.0 & (RECORDING | STACKED | NO_FAST_PATH | PROFILED) == 0
    }

    /// Whether calls are recorded for differentiation.
    #[inline]
    pub fn is_recording(self) -> bool {
        self.0 & RECORDING != 0
    }

    /// Whether training mode is on.
    #[inline]
    pub fn is_training(self) -> bool {
        self.0 & TRAINING != 0
    }

    /// Whether results are watched for floating-point errors.
    #[inline]
    pub fn is_watching(self) -> bool {
        self.0 & WATCHING != 0
    }

    /// Whether every call must go through `dispatch`, so that there are no fast paths.
    #[inline]
    pub fn is_intercepted(self) -> bool {
        self.0 & (STACKED | WATCHING) != 0
    }

    /// The dtype of automatic mixed precision; `None` if it is off.
    #[inline]
    pub fn autocast(self) -> Option<DType> {
        (self.0 & AUTOCAST != 0).then_some(match self.0 & BFLOAT16 {
            0 => DType::F16,
            _ => DType::BF16,
        })
    }

    /// Whether an interpreter is pushed.
    #[inline]
    pub fn is_stacked(self) -> bool {
        self.0 & STACKED != 0
    }
}

/// Default device of this thread's new arrays.
#[inline]
pub fn current_device() -> Device {
    DEVICE.get()
}

/// Sets the default device of this thread's new arrays. Returns the previous one.
pub fn set_current_device(device: Device) -> Device {
    DEVICE.replace(device)
}

/// Sets recording on this thread. Returns the previous value.
pub fn set_recording(on: bool) -> bool {
    set(RECORDING, on)
}

/// Sets training mode on this thread. Returns the previous value.
pub fn set_training(on: bool) -> bool {
    set(TRAINING, on)
}

/// Sets whether this thread watches for floating-point errors. Returns the previous value.
pub(crate) fn set_watching(on: bool) -> bool {
    set(WATCHING, on)
}

/// Switches the fast path for elements and indexing on or off for all threads. Returns the previous value. Without it every read and write of
/// elements is a call of an operator.
pub fn set_element_path(is_open: bool) -> bool {
    set_of_process(NO_FAST_PATH, !is_open) & NO_FAST_PATH == 0
}

/// Sets a flag of all threads. Returns the flags before.
fn set_of_process(bit: u16, on: bool) -> u16 {
    match on {
        true => PROCESS_FLAGS.fetch_or(bit, Ordering::Relaxed),
        false => PROCESS_FLAGS.fetch_and(!bit, Ordering::Relaxed),
    }
}

/// Sets whether the profiler records operators, and calls.
pub(crate) fn set_profiled(operators: bool, calls: bool) {
    set_of_process(PROFILED, operators);
    set_of_process(CALLS_PROFILED, calls);
}

/// Returns recording and training mode of the running task; `None` if it has no modes of its own.
pub type TaskModes = fn() -> Option<(bool, bool)>;

static TASK_MODES: OnceLock<TaskModes> = OnceLock::new();

/// Installs the function that returns the modes of the running task. If one is installed already, that one stays. A task (a coroutine) shares its
/// thread with others: it may change its modes, suspend, and must find them again when it resumes.
pub fn install_task_modes(ask: TaskModes) {
    let _ = TASK_MODES.set(ask);
}

/// Called when a task of this thread changes its modes for a block. Until all such blocks are left, the modes are those of the running task.
pub fn open_in_task() {
    let flags = FLAGS.get();
    if flags & TASKS == 0 {
        TASKLESS_MODES.set(flags & MODES);
    }
    FLAGS.set(flags | TASKS);
    NUM_TASK_BLOCKS.set(NUM_TASK_BLOCKS.get() + 1);
}

/// Called when a task leaves such a block.
pub fn leave_in_task() {
    let open = NUM_TASK_BLOCKS.get().saturating_sub(1);
    NUM_TASK_BLOCKS.set(open);
    if open == 0 && FLAGS.get() & TASKS != 0 {
        FLAGS.set(FLAGS.get() & !(TASKS | MODES) | TASKLESS_MODES.get());
    }
}

/// Whether tasks of this thread have changed their modes and no [`Scope`] overrides them.
pub fn has_tasks() -> bool {
    FLAGS.get() & TASKS != 0
}

/// Whether a [`Scope`] determines the modes. No other task runs before it ends.
pub fn is_scoped() -> bool {
    FLAGS.get() & SCOPED != 0
}

/// The flags of these modes.
fn bits(recording: bool, training: bool) -> u16 {
    (u16::from(recording) * RECORDING) | (u16::from(training) * TRAINING)
}

/// The flags with the modes of the running task.
#[cold]
#[inline(never)]
fn of_task(flags: u16) -> u16 {
    let modes = match TASK_MODES.get().and_then(|ask| ask()) {
        Some((recording, training)) => bits(recording, training),
        None => TASKLESS_MODES.get(),
    };
    let flags = flags & !MODES | modes;
    FLAGS.set(flags);
    flags
}

/// Whether this thread records.
pub fn is_recording() -> bool {
    Flags::current().is_recording()
}

/// Whether this thread is in training mode.
pub fn is_training() -> bool {
    Flags::current().is_training()
}

fn set(bit: u16, on: bool) -> bool {
    let with = |flags: u16| if on { flags | bit } else { flags & !bit };
    let old = FLAGS.get();
    FLAGS.set(with(old));
    if old & TASKS != 0 && bit & MODES != 0 {
        TASKLESS_MODES.set(with(TASKLESS_MODES.get()));
    }
    old & bit != 0
}

/// The dtype of this thread's automatic mixed precision; `None` if it is off.
pub fn autocast() -> Option<DType> {
    Flags::current().autocast()
}

/// Switches automatic mixed precision on for this thread, with float16 or bfloat16, or off (`None`, or any other dtype). Returns the previous setting.
pub fn set_autocast(dtype: Option<DType>) -> Option<DType> {
    let before = autocast();
    let flags = match dtype {
        Some(DType::F16) => AUTOCAST,
        Some(DType::BF16) => AUTOCAST | BFLOAT16,
        _ => 0,
    };
    FLAGS.set(FLAGS.get() & !CASTS | flags);
    before
}

/// Restores automatic mixed precision when dropped.
#[must_use]
pub struct CastScope(u16);

impl CastScope {
    /// Enters a scope without automatic casts.
    pub fn off() -> CastScope {
        let flags = FLAGS.get();
        FLAGS.set(flags & !CASTS);
        CastScope(flags & CASTS)
    }

    /// Enters the scope of one call, without automatic casts outside the body of its operator.
    pub(crate) fn in_body_only() -> CastScope {
        let flags = FLAGS.get();
        FLAGS.set(flags & !AUTOCAST | CASTS_IN_BODY);
        CastScope(flags & CASTS)
    }

    /// Enters the body of a composite operator, with automatic casts if its call asked for them.
    fn body() -> CastScope {
        let flags = FLAGS.get();
        if flags & CASTS_IN_BODY != 0 {
            FLAGS.set(flags & !CASTS_IN_BODY | AUTOCAST);
        }
        CastScope(flags & CASTS)
    }
}

impl Drop for CastScope {
    fn drop(&mut self) {
        FLAGS.set(FLAGS.get() & !CASTS | self.0);
    }
}

/// Restores recording and training mode, and automatic casts, when dropped.
#[must_use]
pub struct Scope {
    before: u16,
}

impl Scope {
    /// Enters a scope with these modes and without automatic casts: calls that have been recorded or traced contain theirs.
    pub fn enter(recording: bool, training: bool) -> Scope {
        let before = FLAGS.get();
        FLAGS.set(before & !(MODES | TASKS | CASTS) | bits(recording, training) | SCOPED);
        Scope {
            before: before & Scope::RESTORED,
        }
    }

    /// Enters a scope with these modes that casts as before. For functions of users.
    pub fn enter_casting(recording: bool, training: bool) -> Scope {
        let autocast = autocast();
        let scope = Scope::enter(recording, training);
        set_autocast(autocast);
        scope
    }

    const RESTORED: u16 = MODES | TASKS | SCOPED | CASTS;
}

impl Drop for Scope {
    fn drop(&mut self) {
        FLAGS.set(FLAGS.get() & !Scope::RESTORED | self.before);
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

/// Runs `body` outside all interpreters and recording, as if it ran before they were pushed: its arrays have values and its calls are not seen.
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
    crate::rng::without_frames(body)
}

/// Notifies the top interpreter that the host is about to read the values of an array.
#[cold]
pub(crate) fn before_host_read(x: &Array) -> Result<()> {
    let top = STACK.with_borrow(|stack| stack.last().cloned());
    match top {
        Some(top) => top.reads(x),
        None => Ok(()),
    }
}

/// Passes `call` to the top interpreter. While that works, it is off the stack.
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

/// Executes `call` below `interpreter`, which is handling it, as [`crate::invoke::dispatch`] does. If the operator is a composite, `interpreter` also
/// handles the calls that its body makes, so that a tracer sees every primitive operator.
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

/// Runs the body of a composite. Its calls go to the interpreters that asked for them by [`expand`].
#[inline]
pub(crate) fn in_body<R>(body: impl FnOnce() -> R) -> R {
    match FLAGS.get() & (EXPANDED | CASTS_IN_BODY) {
        0 => body(),
        CASTS_IN_BODY => {
            let _casts = CastScope::body();
            body()
        }
        _ => expanded(body),
    }
}

#[cold]
#[inline(never)]
fn expanded<R>(body: impl FnOnce() -> R) -> R {
    let _casts = CastScope::body();
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

/// Restores a flag of the thread when dropped.
struct RestoreFlag(u16, bool);

impl Drop for RestoreFlag {
    fn drop(&mut self) {
        set(self.0, self.1);
    }
}

/// Truncates a list of the thread to an earlier length when dropped.
struct Truncate(
    &'static std::thread::LocalKey<RefCell<Vec<Rc<dyn Interpreter>>>>,
    usize,
);

impl Drop for Truncate {
    fn drop(&mut self) {
        self.0.with_borrow_mut(|list| list.truncate(self.1));
    }
}
