//! The trait `Threads`, through which kernels use the caller's threads. The engine's thread pool implements it.

use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Starts this many threads at each call and waits for their end: for tests and benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct Scoped(pub usize);

impl Threads for Scoped {
    fn count(&self) -> usize {
        self.0
    }

    fn run(&self, n: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.0 {
                scope.spawn(|| {
                    loop {
                        match next.fetch_add(1, Ordering::Relaxed) {
                            i if i < n => task(i),
                            _ => break,
                        }
                    }
                });
            }
        });
    }
}

/// Runs `task(i)` for `i < n`, in groups of consecutive tasks, on as many threads as `work` (the total number of elements) is worth.
///
/// The assignment of tasks to threads does not change results, because the caller fixes the tasks.
pub fn split(threads: &dyn Threads, n: usize, work: usize, task: &(dyn Fn(usize) + Sync)) {
    // Less work is not worth waking a thread.
    const MIN_TASK_WORK: usize = 32 * 1024;
    let groups = (work / MIN_TASK_WORK).min(8 * threads.count()).min(n);
    if groups < 2 || threads.count() < 2 {
        return (0..n).for_each(task);
    }
    threads.run(groups, &|g| {
        (n * g / groups..n * (g + 1) / groups).for_each(task)
    });
}
