//! The trait `Threads`, through which kernels use the caller's threads. The engine's pool implements it.

/// A lender of threads.
pub trait Threads: Sync {
    /// The most tasks that run at the same time, at least 1.
    fn count(&self) -> usize;

    /// Runs `task(0)`, …, `task(n - 1)`, each once, in any order and partly at the same time, and returns when all are done.
    ///
    /// A kernel's result must not depend on `count()` or on the order: blocking is fixed by the problem's size alone.
    fn run(&self, n: usize, task: &(dyn Fn(usize) + Sync));
}

/// Lends the calling thread only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Threads for Serial {
    fn count(&self) -> usize {
        1
    }

    fn run(&self, n: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..n).for_each(task);
    }
}
