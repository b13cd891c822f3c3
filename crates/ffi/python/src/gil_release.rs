//! Work without the interpreter's lock (GIL), and the lock that keeps `fork` away from it.
//!
//! A thread that forks holds the GIL, so no other thread is in the middle of a call that keeps the GIL. A thread without the GIL could be
//! anywhere: it may hold variables of the engine, locks of the allocator, cells that are being filled. The child would find them held for
//! ever. Therefore threads hold [`FORK_LOCK`] as readers while they are without the GIL, and `os.fork` takes it as the writer.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mxnet::core::interrupt::num_new_threads;
use mxnet::engine::engine;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A reader-writer lock: the number of readers, and the bit [`WRITER`]. The child of a fork must be able to reset it, and readers nest,
/// which `std::sync::RwLock` does not allow.
static FORK_LOCK: AtomicUsize = AtomicUsize::new(0);

/// A fork is in preparation, or waits for readers.
const WRITER: usize = 1 << (usize::BITS - 1);

/// Longest time that a fork waits for readers. Only a reader that waits for something that never comes (the other end of a pipe) takes
/// longer; the child then finds held what that thread holds.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Time between two polls of the lock by a waiting thread.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

thread_local! {
    /// Number of read guards of this thread. Guards nest: work without the GIL calls Python, which calls the package again.
    static READ_DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread holds the lock as the writer.
    static IS_FORKING: Cell<bool> = const { Cell::new(false) };
}

/// Holds [`FORK_LOCK`] as a reader.
struct ReadGuard;

impl ReadGuard {
    fn acquire() -> ReadGuard {
        let depth = READ_DEPTH.get();
        READ_DEPTH.set(depth + 1);
        if depth == 0 && !IS_FORKING.get() {
            while FORK_LOCK.fetch_add(1, Ordering::SeqCst) & WRITER != 0 {
                FORK_LOCK.fetch_sub(1, Ordering::SeqCst);
                while FORK_LOCK.load(Ordering::SeqCst) & WRITER != 0 {
                    std::thread::sleep(POLL_INTERVAL);
                }
            }
        }
        ReadGuard
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        let depth = READ_DEPTH.get() - 1;
        READ_DEPTH.set(depth);
        if depth == 0 && !IS_FORKING.get() {
            FORK_LOCK.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Runs `body` without the GIL, so that other Python threads run meanwhile.
///
/// The only function that releases the GIL: see the head of this file.
pub fn without_gil<R: Send>(py: Python<'_>, body: impl FnOnce() -> R + Send) -> R {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one function that releases the GIL"
    )]
    py.detach(|| {
        let _guard = ReadGuard::acquire();
        body()
    })
}

/// Calls Python within [`without_gil`]. The thread releases [`FORK_LOCK`] meanwhile, so that `body` may fork, or wait for a thread that
/// forks. It must hold nothing of the engine.
pub fn with_gil<R>(body: impl FnOnce(Python<'_>) -> R) -> R {
    /// Takes the lock again, also after a panic.
    struct Reacquire(usize);
    impl Drop for Reacquire {
        fn drop(&mut self) {
            if self.0 > 0 {
                std::mem::forget(ReadGuard::acquire());
                READ_DEPTH.set(self.0);
            }
        }
    }
    let depth = READ_DEPTH.replace(0);
    if depth > 0 && !IS_FORKING.get() {
        FORK_LOCK.fetch_sub(1, Ordering::SeqCst);
    }
    let _reacquire = Reacquire(depth);
    with_python(body)
}

/// Runs `body` with PyO3 aware that this thread has the GIL, which it acquires if necessary. Unlike `Python::attach`, which panics then, this works
/// while the interpreter exits, when objects are deallocated and hooks run.
#[inline]
pub fn with_python<R>(body: impl FnOnce(Python<'_>) -> R) -> R {
    // SAFETY: an interpreter has loaded this module, and calls it until its end only.
    unsafe { Python::attach_unchecked(body) }
}

/// As [`with_python`]; `None` while the interpreter ends, and before it has begun.
pub fn try_with_python<R>(body: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    Python::try_attach(body)
}

/// Takes the lock as the writer and finishes pending operations, whether they succeed or not. Other threads may have the GIL meanwhile.
#[pyfunction]
fn prepare_fork(py: Python<'_>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the writer must not become a reader"
    )]
    py.detach(|| {
        let begin = Instant::now();
        let is_late = || begin.elapsed() >= MAX_WAIT;
        // Forks are serialised.
        while FORK_LOCK.fetch_or(WRITER, Ordering::SeqCst) & WRITER != 0 && !is_late() {
            std::thread::sleep(POLL_INTERVAL);
        }
        let own = usize::from(READ_DEPTH.get() > 0);
        while FORK_LOCK.load(Ordering::SeqCst) & !WRITER > own && !is_late() {
            std::thread::sleep(POLL_INTERVAL);
        }
        // Work that an interrupted call has left behind.
        while num_new_threads() > 0 && !is_late() {
            std::thread::sleep(POLL_INTERVAL);
        }
        IS_FORKING.set(true);
        engine().drain();
    });
}

#[pyfunction]
fn after_fork_in_parent() {
    IS_FORKING.set(false);
    FORK_LOCK.fetch_and(!WRITER, Ordering::SeqCst);
}

#[pyfunction]
fn after_fork_in_child() {
    IS_FORKING.set(false);
    FORK_LOCK.store(usize::from(READ_DEPTH.get() > 0), Ordering::SeqCst);
}

/// Registers the three hooks with `os.register_at_fork`, where there is a `fork`.
pub fn register_at_fork(py: Python<'_>) -> PyResult<()> {
    let Ok(register) = py.import("os")?.getattr("register_at_fork") else {
        return Ok(());
    };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(prepare_fork, py)?)?;
    hooks.set_item(
        "after_in_parent",
        wrap_pyfunction!(after_fork_in_parent, py)?,
    )?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, py)?)?;
    register.call((), Some(&hooks)).map(drop)
}
