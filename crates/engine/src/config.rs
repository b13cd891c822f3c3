//! How an engine behaves: its mode and its limits.

/// When operations run on the calling thread. Switchable at any time: the order per variable is the same in all modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Mode {
    /// A cheap operation whose variables are free runs inline, any other is pushed.
    #[default]
    Adaptive,
    /// Everything is pushed.
    Async,
    /// Everything has run when the call returns.
    Sync,
}

impl Mode {
    pub(crate) fn from_u8(value: u8) -> Mode {
        match value {
            0 => Mode::Adaptive,
            1 => Mode::Async,
            _ => Mode::Sync,
        }
    }
}

/// Settings of an engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// When operations run on the calling thread.
    pub mode: Mode,
    /// Workers of the pool, started when first needed. With 0 operations run only in threads that wait.
    pub threads: usize,
    /// In adaptive mode an operation estimated above this many nanoseconds is pushed. A hand-over to a worker
    /// costs the pushing thread some microseconds, so that below about 30 µs there is nothing to win.
    pub inline_limit_ns: u64,
    /// Bytes that unfinished operations pushed before may hold when another is pushed; over that, its pusher helps.
    ///
    /// Results that are dropped soon come back as the memory of the next ones, still in the cache, unless the pusher
    /// runs far ahead of the workers: so this is about the size of a cache, not of the memory.
    pub max_bytes_in_flight: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mode: Mode::Adaptive,
            threads: crate::threads::default_threads(),
            inline_limit_ns: 30_000,
            max_bytes_in_flight: 4 << 20,
        }
    }
}
