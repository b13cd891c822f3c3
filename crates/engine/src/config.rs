//! Settings of an engine: its mode and its limits.

/// When operations run on the calling thread. Can be changed at any time: the order per variable is the same in all modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Mode {
    /// A cheap operation whose variables are free runs inline, other operations are pushed.
    #[default]
    Adaptive,
    /// Everything is pushed.
    Async,
    /// Every operation has run when the call returns.
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
    /// Number of workers, which start when they are first needed. With 0, operations run only in threads that wait.
    pub threads: usize,
    /// In adaptive mode an operation with a higher estimated cost is pushed. Handing an operation to a worker costs the pushing thread some
    /// microseconds, so that below about 30 µs nothing is gained.
    pub inline_limit_ns: u64,
    /// Bytes that unfinished operations may hold. Above that, a thread that pushes another operation first helps to finish some.
    ///
    /// Results that are dropped soon are reused as the memory of the next ones, while still in the cache, unless the pushing thread runs far ahead of
    /// the workers. So the limit is about the size of a cache, not of the memory.
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
