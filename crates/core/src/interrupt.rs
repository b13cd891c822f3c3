//! Interrupts: whether the user asked to stop waiting. The language layer installs the check; in Python it runs the signal handlers.

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

/// Time between two checks in [`run_interruptibly`] and [`run_on_new_thread`].
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Smallest estimated cost of work that gets a new thread.
pub(crate) const MIN_THREAD_NS: u64 = 5_000_000;

/// Number of threads that [`run_on_new_thread`] has started and that still run.
static NUM_NEW_THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// On a worker thread of this module: whether the thread that started it was interrupted. It replaces the check.
    static CALLER_ANSWER: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Installs the check, which returns whether the user asked to stop. If one is installed already, that one stays.
pub fn install(check: fn() -> bool) {
    let _ = CHECK.set(check);
}

/// Whether a wait should end with [`crate::Error::Interrupted`].
pub(crate) fn is_requested() -> bool {
    let answer = CALLER_ANSWER.with(|answer| {
        answer
            .borrow()
            .as_ref()
            .map(|is_set| is_set.load(Ordering::Relaxed))
    });
    answer.unwrap_or_else(|| CHECK.get().is_some_and(|check| check()))
}

/// Ends long work on the host if the user asked to stop: call it between two steps. Must not be called under a read guard (see
/// [`run_interruptibly`]).
///
/// # Errors
/// [`Error::Interrupted`] if the user asked to stop.
pub fn check() -> Result<()> {
    match is_requested() {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

/// The check, if this thread may call it: not on a worker thread of this module, and not under a read guard.
fn callable_check() -> Option<fn() -> bool> {
    let is_answered = CALLER_ANSWER.with(|answer| answer.borrow().is_some());
    match is_answered || holds_read_guard() {
        true => None,
        false => CHECK.get().copied(),
    }
}

/// Whether this thread may call the check. Then [`run_on_new_thread`] uses another thread for long work.
pub(crate) fn can_check() -> bool {
    callable_check().is_some()
}

/// Runs `work` on a new thread while this thread calls the check. In `work`, [`is_requested`] returns this thread's result.
///
/// For work that holds read guards for a long time. The check takes Python's global lock, and the thread that holds that lock may be waiting for a
/// write that the guards block. So a thread that holds guards must not call the check.
///
/// # Errors
/// [`Error::Interrupted`] if the user asked to stop, also if the work was done by then.
pub(crate) fn run_interruptibly<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R> {
    let Some(check) = callable_check() else {
        return Ok(work());
    };
    let answer = Arc::new(AtomicBool::new(false));
    // If the system refuses the new thread, this thread takes the work.
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
                CALLER_ANSWER.with(|answer| *answer.borrow_mut() = Some(on_thread));
                let _is_running = is_running;
                run()
            });
        let Ok(thread) = spawned else {
            return run().ok_or_else(missing);
        };
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(CHECK_INTERVAL) {
            if check() {
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

/// Number of threads that [`run_on_new_thread`] has started and that still run, including those whose caller was interrupted.
pub fn num_new_threads() -> usize {
    NUM_NEW_THREADS.load(Ordering::SeqCst)
}

/// Runs `work` on a new thread while this thread calls the check every 10 ms. For long functions on the host that cannot be stopped in the middle.
/// After an interruption the new thread finishes its work and drops the result.
///
/// `work` runs on the calling thread if its estimated cost is at most [`MIN_THREAD_NS`], or if this thread may not call the check: no check is
/// installed, it is a worker thread of this module, or it holds a read guard (see [`run_interruptibly`]).
///
/// # Errors
/// [`Error::Interrupted`] if the user asked to stop.
pub fn run_on_new_thread<R: Send + 'static>(
    cost_ns: u64,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R> {
    let check = match callable_check() {
        Some(check) if cost_ns > MIN_THREAD_NS => check,
        _ => return Ok(work()),
    };
    /// Decrements the count of threads when dropped.
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            NUM_NEW_THREADS.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let answer = Arc::new(AtomicBool::new(false));
    let (done, result) = channel();
    // If the system refuses the new thread, this thread takes the work.
    let work = Arc::new(Mutex::new(Some(work)));
    NUM_NEW_THREADS.fetch_add(1, Ordering::SeqCst);
    let counted = Counted;
    let (on_thread, given) = (Arc::clone(&answer), Arc::clone(&work));
    let spawned = thread::Builder::new()
        .name("mxnet-host".to_owned())
        .spawn(move || {
            let _counted = counted;
            CALLER_ANSWER.with(|answer| *answer.borrow_mut() = Some(on_thread));
            let work = given.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(work) = work {
                // Fails after an interruption: the receiver is gone.
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
            Err(RecvTimeoutError::Timeout) if check() => {
                answer.store(true, Ordering::Relaxed);
                return Err(Error::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
