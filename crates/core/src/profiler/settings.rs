//! Settings of the profiler, and the thread that writes its file periodically.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;

use crate::profiler::{apply, is_running, trace};

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Operators that run one by one.
    pub operators: bool,
    /// Runs of compiled graphs, and their nodes.
    pub graphs: bool,
    /// Memory, after each of these.
    pub memory: bool,
    /// Calls of operators and waits, as the calling thread sees them.
    pub calls: bool,
}

impl Profile {
    /// Nothing but the events of the program.
    pub const NOTHING: Profile = Profile {
        operators: false,
        graphs: false,
        memory: false,
        calls: false,
    };
    /// Everything.
    pub const ALL: Profile = Profile {
        operators: true,
        graphs: true,
        memory: true,
        calls: true,
    };

    pub(super) const OPERATORS: u8 = 1;
    pub(super) const GRAPHS: u8 = 2;
    pub(super) const MEMORY: u8 = 4;
    pub(super) const CALLS: u8 = 8;

    pub(super) fn bits(self) -> u8 {
        let bit = |is_on: bool, bit: u8| if is_on { bit } else { 0 };
        bit(self.operators, Profile::OPERATORS)
            | bit(self.graphs, Profile::GRAPHS)
            | bit(self.memory, Profile::MEMORY)
            | bit(self.calls, Profile::CALLS)
    }
}

/// Settings of the profiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What is recorded.
    pub profile: Profile,
    /// The file that [`dump`](crate::profiler::dump) writes.
    pub filename: Arc<str>,
    /// Whether there is a [`summary`](crate::profiler::summary).
    pub aggregate_stats: bool,
    /// Whether the file is written periodically.
    pub continuous_dump: bool,
    /// Time between two writes, in milliseconds.
    pub dump_period_ms: u64,
    /// Limit for the buffers of all threads. Later events are counted, but the trace lacks them.
    pub buffer_bytes: usize,
}

/// Default limit for the buffers.
pub(crate) const BUFFER_BYTES: usize = 128 << 20;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            profile: Profile {
                operators: true,
                graphs: true,
                ..Profile::NOTHING
            },
            filename: Arc::from("profile.json"),
            aggregate_stats: true,
            continuous_dump: false,
            dump_period_ms: 1000,
            buffer_bytes: BUFFER_BYTES,
        }
    }
}

static SETTINGS: Mutex<Option<Settings>> = Mutex::new(None);
/// A copy for the threads that need a new buffer.
static BUFFER_LIMIT: AtomicUsize = AtomicUsize::new(BUFFER_BYTES);

fn with<R>(body: impl FnOnce(&mut Settings) -> R) -> R {
    let _gate = mxnet_engine::hold_off_fork();
    body(SETTINGS.lock().get_or_insert_with(Settings::default))
}

/// The settings.
pub fn settings() -> Settings {
    with(|settings| settings.clone())
}

/// Changes the settings. They apply at once, also while the profiler runs.
pub fn configure(change: impl FnOnce(&mut Settings)) {
    with(|settings| {
        change(settings);
        BUFFER_LIMIT.store(settings.buffer_bytes, Ordering::Relaxed);
    });
    apply();
    stop_dumping();
    if is_running() {
        start_dumping();
    }
}

pub(super) fn profile() -> Profile {
    with(|settings| settings.profile)
}

pub(super) fn filename() -> Arc<str> {
    with(|settings| settings.filename.clone())
}

pub(super) fn buffer_bytes() -> usize {
    BUFFER_LIMIT.load(Ordering::Relaxed)
}

/// Incremented to end the thread that writes the file.
static EPOCH: AtomicU64 = AtomicU64::new(0);
static DUMPING: Mutex<Option<Thread>> = Mutex::new(None);

/// Starts the thread that writes the file periodically, if the settings ask for that and it does not run.
pub(super) fn start_dumping() {
    let Settings {
        continuous_dump,
        dump_period_ms,
        ..
    } = settings();
    if !continuous_dump {
        return;
    }
    let _gate = mxnet_engine::hold_off_fork();
    let mut dumping = DUMPING.lock();
    if dumping.is_some() {
        return;
    }
    let epoch = EPOCH.load(Ordering::Relaxed);
    let period = Duration::from_millis(dump_period_ms.max(1));
    let spawned = std::thread::Builder::new()
        .name("mxnet-profiler".to_owned())
        .spawn(move || {
            loop {
                std::thread::park_timeout(period);
                if EPOCH.load(Ordering::Relaxed) != epoch {
                    break;
                }
                if let Err(error) = trace::write(&filename()) {
                    eprintln!("mxnet: the profiler cannot write its file: {error}");
                    break;
                }
            }
        });
    match spawned {
        Ok(thread) => *dumping = Some(thread.thread().clone()),
        Err(error) => eprintln!("mxnet: the profiler cannot start its thread: {error}"),
    }
}

/// Ends the thread that writes the file periodically.
pub(super) fn stop_dumping() {
    let _gate = mxnet_engine::hold_off_fork();
    EPOCH.fetch_add(1, Ordering::Relaxed);
    if let Some(thread) = DUMPING.lock().take() {
        thread.unpark();
    }
}

/// In a forked child, which has no such thread.
pub(super) fn forget_thread() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    *DUMPING.lock() = None;
}
