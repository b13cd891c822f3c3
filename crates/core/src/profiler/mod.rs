//! The profiler: records when operators run, and for how long.
//!
//! [`launch`](mod@crate::launch) and the bodies of [`eager`](crate::eager) record operators, the executor of graphs records runs and nodes, and
//! [`dispatch`](crate::invoke::dispatch) records calls. Each thread writes its events to a buffer of its own, without a lock (`buffer.rs`). The store
//! keeps all buffers for the trace, and adds their events to the statistics (`store.rs`). While the profiler is off, a call tests one flag.

mod buffer;
mod names;
mod settings;
mod store;
mod summary;
mod trace;
mod user;
mod watch;

use std::sync::atomic::{AtomicU8, Ordering};

use crate::mode;

pub use names::{Label, label};
pub use settings::{Profile, Settings, configure, settings};
pub use store::{Format, SortBy, SummaryOptions};
pub use user::{Counter, Instant, Span, SpanKind, mark};
pub use watch::{
    BackwardScope, Mute, NodeRun, Pending, RunWatch, Scope, Watch, current_scope, enter_scope,
    is_in_backward, records_operators, set_scope, watch, watch_body, watch_run,
};
pub(crate) use watch::{wait_began, wait_ended, watch_call};

/// Set between [`start`] and [`stop`].
const RUNNING: u8 = 16;
/// Set between [`pause`] and [`resume`].
const PAUSED: u8 = 32;

/// What is being recorded: bits of [`Profile`], and [`RUNNING`]; 0 while the profiler is stopped or paused.
static ACTIVE: AtomicU8 = AtomicU8::new(0);
/// [`RUNNING`] and [`PAUSED`].
static STATE: AtomicU8 = AtomicU8::new(0);

/// The bits of what is being recorded.
#[inline]
pub(crate) fn active() -> u8 {
    ACTIVE.load(Ordering::Relaxed)
}

/// Whether events are recorded now: the profiler runs and is not paused.
#[inline]
pub fn is_active() -> bool {
    active() != 0
}

/// Whether the profiler runs, paused or not.
pub fn is_running() -> bool {
    STATE.load(Ordering::Relaxed) & RUNNING != 0
}

/// Whether the profiler is paused.
pub fn is_paused() -> bool {
    STATE.load(Ordering::Relaxed) & PAUSED != 0
}

/// Applies state and settings.
fn apply() {
    let profile = settings::profile();
    let is_on = STATE.load(Ordering::Relaxed) == RUNNING;
    let bits = if is_on { profile.bits() | RUNNING } else { 0 };
    ACTIVE.store(bits, Ordering::Relaxed);
    mode::set_profiled(is_on && profile.operators, is_on && profile.calls);
}

/// Starts to record. After a finished [`dump`], a new trace begins.
pub fn start() {
    mxnet_engine::at_fork_in_child(forget_after_fork);
    store::begin();
    STATE.fetch_or(RUNNING, Ordering::Relaxed);
    apply();
    settings::start_dumping();
}

/// Stops recording, after the operations that were pushed before. The recorded events are kept.
pub fn stop() {
    if is_running() {
        mxnet_engine::engine().drain();
    }
    STATE.store(0, Ordering::Relaxed);
    settings::stop_dumping();
    apply();
}

/// Stops recording for a while. [`resume`] continues.
pub fn pause() {
    STATE.fetch_or(PAUSED, Ordering::Relaxed);
    apply();
}

/// Continues after [`pause`].
pub fn resume() {
    STATE.fetch_and(!PAUSED, Ordering::Relaxed);
    apply();
}

/// Writes the trace to the file of the settings, as JSON in Chrome's format for trace events, after the operations that were pushed before. The
/// previous content of the file is replaced. `finished` stops the profiler; the next [`start`] then begins a new trace.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn dump(finished: bool) -> crate::Result<()> {
    mxnet_engine::engine().drain();
    if finished {
        stop();
    }
    trace::write(&settings::filename())?;
    if finished {
        store::end();
    }
    Ok(())
}

/// The trace as text.
pub fn trace() -> String {
    mxnet_engine::engine().drain();
    trace::text()
}

/// The statistics as text, after the operations that were pushed before. Empty if the settings switch statistics off.
pub fn summary(options: &SummaryOptions) -> String {
    if !settings::settings().aggregate_stats {
        return String::new();
    }
    mxnet_engine::engine().drain();
    summary::text(options)
}

/// Removes all events and statistics.
pub fn clear() {
    store::clear();
}

/// A forked child begins with a stopped, empty profiler.
fn forget_after_fork() {
    STATE.store(0, Ordering::Relaxed);
    apply();
    settings::forget_thread();
    store::clear();
}
