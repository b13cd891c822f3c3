//! Whether the user asked to stop waiting. The layer that knows signals (Python's) installs the question.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

static QUESTION: OnceLock<fn() -> bool> = OnceLock::new();

/// How often [`ask_beside`] asks.
const ASK_EVERY: Duration = Duration::from_millis(10);

thread_local! {
    /// What answers on this thread instead of the question.
    static ANSWER: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Installs the question; later calls keep the first one.
pub fn install(question: fn() -> bool) {
    let _ = QUESTION.set(question);
}

/// Whether a wait should end with [`crate::Error::Interrupted`].
pub(crate) fn is_requested() -> bool {
    let answer = ANSWER.with(|answer| {
        answer
            .borrow()
            .as_ref()
            .map(|is_set| is_set.load(Ordering::Relaxed))
    });
    answer.unwrap_or_else(|| QUESTION.get().is_some_and(|ask| ask()))
}

/// [`Error::Interrupted`] if the user asked to stop.
pub(crate) fn check() -> Result<()> {
    match is_requested() {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

/// Runs `work` on a thread of its own, where [`is_requested`] gives the answer that this thread gets meanwhile.
///
/// That is for work which holds read guards for long. To answer takes the interpreter's lock, and who has that may wait for what the guards
/// hold back, so a thread that holds guards must not ask.
///
/// # Errors
/// [`Error::Interrupted`] if the user asked to stop, also if the work was done by then.
pub(crate) fn ask_beside<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R> {
    let Some(ask) = QUESTION.get() else {
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
                ANSWER.with(|answer| *answer.borrow_mut() = Some(on_thread));
                let _is_running = is_running;
                run()
            });
        let Ok(thread) = spawned else {
            return run().ok_or_else(missing);
        };
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(ASK_EVERY) {
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
