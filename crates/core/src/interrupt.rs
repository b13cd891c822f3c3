//! Interrupts: whether the user asked to stop waiting. The language layer (Python's signals) installs the check.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use mxnet_engine::holds_read_guard;

use crate::error::{Error, Result};

static CHECK: OnceLock<fn() -> bool> = OnceLock::new();

/// How often [`run_interruptibly`] and [`run_beside`] ask.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Estimated cost of work from which on a thread of its own is worth it.
pub(crate) const BESIDE_NS: u64 = 5_000_000;

/// How many threads of [`run_beside`] there are.
static NUM_BESIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// What answers on this thread instead of the question.
    static ANSWER_OF_CALLER: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Installs the question; later calls keep the first one.
pub fn install(question: fn() -> bool) {
    let _ = CHECK.set(question);
}

/// Whether a wait should end with [`crate::Error::Interrupted`].
pub(crate) fn is_requested() -> bool {
    let answer = ANSWER_OF_CALLER.with(|answer| {
        answer
            .borrow()
            .as_ref()
            .map(|is_set| is_set.load(Ordering::Relaxed))
    });
    answer.unwrap_or_else(|| CHECK.get().is_some_and(|ask| ask()))
}

/// For functions of the host, between two steps of work. Not under a read guard (see [`run_interruptibly`]).
///
/// # Errors
/// [`Error::Interrupted`] if the user asked to stop.
pub fn check() -> Result<()> {
    match is_requested() {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

/// What this thread may ask: nothing within work that it was given by another thread, and under a read guard.
fn question() -> Option<fn() -> bool> {
    let is_answered = ANSWER_OF_CALLER.with(|answer| answer.borrow().is_some());
    match is_answered || holds_read_guard() {
        true => None,
        false => CHECK.get().copied(),
    }
}

/// Whether this thread may ask, so that [`run_beside`] would use another one.
pub(crate) fn can_ask() -> bool {
    question().is_some()
}

/// Runs `work` on a thread of its own, where [`is_requested`] gives the answer that this thread gets meanwhile.
///
/// That is for work which holds read guards for long. To answer takes the interpreter's lock, and who has that may wait for what the guards
/// hold back, so a thread that holds guards must not ask.
///
/// # Errors
/// [`Error::Interrupted`] if the user asked to stop, also if the work was done by then.
pub(crate) fn run_interruptibly<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R> {
    let Some(ask) = question() else {
        return Ok(work());
    };
    let answer = Arc::new(AtomicBool::new(false));
    // A place from which it is taken, since the system may refuse the thread.
    let work = Mutex::new(Some(work));
    let run = || {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map(|work| work())
    };
    let missing = || Error::internal("interrupt", "the work was taken twice");
    thread::scope(|scope| {
        let (is_running, end) = channel::<()>();
        let on_thread = Arc::clone(&answer);
        let spawned = thread::Builder::new()
            .name("mxnet-files".to_owned())
            .spawn_scoped(scope, move || {
                ANSWER_OF_CALLER.with(|answer| *answer.borrow_mut() = Some(on_thread));
                let _is_running = is_running;
                run()
            });
        let Ok(thread) = spawned else {
            return run().ok_or_else(missing);
        };
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(CHECK_INTERVAL) {
            if ask() {
                answer.store(true, Ordering::Relaxed);
                break;
            }
        }
        let result = thread
            .join()
            .unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        match answer.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => result.ok_or_else(missing),
        }
    })
}

/// How many threads compute for [`run_beside`], for callers that wait and for callers that were interrupted.
pub fn num_beside() -> usize {
    NUM_BESIDE.load(Ordering::SeqCst)
}

/// Runs `work` on a thread of its own while this thread asks every 10 ms whether to stop, for functions of the host that take long and cannot be
/// stopped in the middle. After an interruption the thread finishes for itself what it does, and its result is dropped.
///
/// Where it is estimated to take less than [`BESIDE_NS`], and where nobody can be asked, `work` runs on this thread: without a question, within other such work, and under a read guard, whose holder must not
/// ask (see [`run_interruptibly`]).
///
/// # Errors
/// [`Error::Interrupted`] if the user asked to stop.
pub fn run_beside<R: Send + 'static>(
    cost_ns: u64,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R> {
    let ask = match question() {
        Some(ask) if cost_ns > BESIDE_NS => ask,
        _ => return Ok(work()),
    };
    /// Counts a thread as long as it is there.
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            NUM_BESIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let answer = Arc::new(AtomicBool::new(false));
    let (done, result) = channel();
    // A place from which it is taken, since the system may refuse the thread.
    let work = Arc::new(Mutex::new(Some(work)));
    NUM_BESIDE.fetch_add(1, Ordering::SeqCst);
    let counted = Counted;
    let (on_thread, given) = (Arc::clone(&answer), Arc::clone(&work));
    let spawned = thread::Builder::new()
        .name("mxnet-beside".to_owned())
        .spawn(move || {
            let _counted = counted;
            ANSWER_OF_CALLER.with(|answer| *answer.borrow_mut() = Some(on_thread));
            let work = given.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(work) = work {
                // Nobody waits for it after an interruption.
                let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
            }
        });
    let missing = || Error::internal("interrupt", "a thread ended without a result");
    if spawned.is_err() {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        return work.map(|work| work()).ok_or_else(missing);
    }
    loop {
        match result.recv_timeout(CHECK_INTERVAL) {
            Ok(result) => return Ok(result.unwrap_or_else(|payload| resume_unwind(payload))),
            Err(RecvTimeoutError::Disconnected) => return Err(missing()),
            Err(RecvTimeoutError::Timeout) if ask() => {
                answer.store(true, Ordering::Relaxed);
                return Err(Error::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
