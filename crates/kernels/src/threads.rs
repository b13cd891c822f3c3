//! The trait `Threads`, through which kernels use the caller's threads. The engine's thread pool implements it.

/// A provider of threads.
pub trait Threads: Sync {
    /// Maximum number of tasks that run at the same time, at least 1.
    fn count(&self) -> usize;

    /// Runs `task(0)`, ..., `task(n - 1)`, each once, in any order and possibly at the same time, and returns when all are done.
    ///
    /// A kernel's result must not depend on `count()` or on the order: the partition into tasks depends only on the size of the problem.
    fn run(&self, n: usize, task: &(dyn Fn(usize) + Sync));
}

/// Runs tasks on the calling thread only.
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
