//! The dependency engine: orders operations by the variables they read and write, runs them inline when that is cheapest and on one thread pool
//! otherwise, and carries failures to the readers of their results. It does not depend on tensors, Python or CUDA.
//!
//! Each variable has one writer or many readers at a time, in push order. `docs/design/engine.md` has the whole contract.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod config;
mod engine;
mod failure;
#[allow(unsafe_code, reason = "registers fork handlers with libc")]
mod fork;
mod inline;
#[allow(unsafe_code, reason = "a task set borrows its caller's closure")]
mod pool;
mod read;
mod schedule;
#[allow(unsafe_code, reason = "asks the system about this thread")]
mod spin;
mod stats;
mod stream;
mod sync;
mod threads;
mod var;
mod wait;

pub use config::{Config, Mode};
pub use engine::Engine;
#[cfg(not(loom))]
pub use engine::engine;
pub use failure::{Failure, Panicked, WaitError};
#[cfg(loom)]
pub use fork::set_gate;
#[cfg(not(loom))]
pub use fork::{ForkGate, at_fork_in_child, hold_off_fork};
pub use inline::{Hold, Inline};
pub use read::{ReadGuard, holds_read_guard};
pub use schedule::Op;
pub use stats::Stats;
pub use stream::{Event, Stream};
pub use threads::default_threads;
pub use var::{Access, Resource, Var};
