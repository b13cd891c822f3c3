//! Settings of the process. Each has a name, a type, a value that can be changed at any time, and an origin. All languages share this list.
//!
//! The environment variable `MXNET_<NAME>` gives a setting its first value. The environment is read once: by [`load`], or when a setting is first
//! read.

use std::collections::BTreeSet;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use mxnet_engine::{Mode, engine};
use mxnet_tensor::{Promotion, memory, promotion, set_promotion};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::{blas, call_site, plan, profiler};

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// On or off.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// One of the words of the setting, or a text.
    Word(&'static str),
}

/// What a setting can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On or off.
    Bool,
    /// A whole number from the first to the second.
    Int(i64, i64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text that is not empty.
    Text,
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Origin {
    /// The default value.
    Default,
    /// The environment.
    Environment,
    /// A file.
    File,
    /// The program.
    Program,
}

impl Origin {
    /// As text: 'default', 'environment', 'file', 'program'.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Environment => "environment",
            Origin::File => "file",
            Origin::Program => "program",
        }
    }
}

/// One setting.
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What it can be.
    pub kind: Kind,
    read: fn() -> Setting,
    write: fn(Setting),
    /// Called before `write`, for settings that can fail to take a valid value.
    attempt: Option<fn(Setting) -> Result<()>>,
    origin: AtomicU8,
}

impl Key {
    const fn new(
        name: &'static str,
        doc: &'static str,
        kind: Kind,
        read: fn() -> Setting,
        write: fn(Setting),
    ) -> Key {
        Key {
            name,
            doc,
            kind,
            read,
            write,
            attempt: None,
            origin: AtomicU8::new(Origin::Default as u8),
        }
    }

    /// The value now.
    pub fn value(&self) -> Setting {
        (self.read)()
    }

    /// Where the value comes from.
    pub fn origin(&self) -> Origin {
        match self.origin.load(Ordering::Relaxed) {
            1 => Origin::Environment,
            2 => Origin::File,
            3 => Origin::Program,
            _ => Origin::Default,
        }
    }

    /// Name of the environment variable.
    pub fn variable(&self) -> String {
        format!("MXNET_{}", self.name.to_ascii_uppercase())
    }

    fn set(&self, value: Setting, origin: Origin) -> Result<()> {
        let wrong = |found: String| self.wrong(&found);
        match (self.kind, value) {
            (Kind::Bool, Setting::Bool(_)) => {}
            (Kind::Int(least, most), Setting::Int(n)) if (least..=most).contains(&n) => {}
            (Kind::Word(words), Setting::Word(word)) if words.contains(&word) => {}
            (Kind::Text, Setting::Word(text)) if !text.is_empty() => {}
            (_, Setting::Bool(x)) => return Err(wrong(x.to_string())),
            (_, Setting::Int(x)) => return Err(wrong(x.to_string())),
            (_, Setting::Word(x)) => return Err(wrong(format!("'{x}'"))),
        }
        if let Some(attempt) = self.attempt {
            attempt(value)?;
        }
        (self.write)(value);
        self.origin.store(origin as u8, Ordering::Relaxed);
        Ok(())
    }

    /// Parses the text of an environment variable.
    ///
    /// # Errors
    /// [`Error::Value`] for text that is not a value of the setting.
    pub fn parse(&self, text: &str) -> Result<Setting> {
        let text = text.trim();
        let found = match self.kind {
            Kind::Bool => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "on" | "yes" => Some(Setting::Bool(true)),
                "0" | "false" | "off" | "no" => Some(Setting::Bool(false)),
                _ => None,
            },
            Kind::Int(..) => text.parse().ok().map(Setting::Int),
            Kind::Word(words) => {
                let word = words.iter().find(|word| **word == text);
                word.map(|word| Setting::Word(word))
            }
            Kind::Text => (!text.is_empty()).then(|| Setting::Word(intern(text))),
        };
        found.ok_or_else(|| self.wrong(&format!("'{text}'")))
    }

    /// The error for a value that the setting does not take; `found` describes the value.
    #[cold]
    pub fn wrong(&self, found: &str) -> Error {
        let required = match self.kind {
            Kind::Bool => "true or false".to_owned(),
            Kind::Int(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Text => "a text that is not empty".to_owned(),
        };
        let problem = format!("`{}` must be {required}, not {found}", self.name);
        Error::value("config", problem)
    }
}

/// A copy of the text that lives as long as the process. Equal texts share one copy.
fn intern(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = TEXTS.lock();
    if let Some(found) = kept.get(text) {
        return found;
    }
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    kept.insert(text);
    text
}

/// A switch of what the profiler records.
const fn profile(
    name: &'static str,
    doc: &'static str,
    read: fn() -> Setting,
    write: fn(Setting),
) -> Key {
    Key::new(name, doc, Kind::Bool, read, write)
}

const MODES: &[&str] = &["adaptive", "async", "sync"];

static JIT: AtomicBool = AtomicBool::new(true);

/// Whether compiled functions run as graphs.
#[inline]
pub fn jit_is_on() -> bool {
    JIT.load(Ordering::Relaxed)
}

static KERNEL_CACHE: AtomicBool = AtomicBool::new(true);

/// Whether compiled kernels of devices are stored on disk for other processes.
pub fn kernel_cache_is_on() -> bool {
    KERNEL_CACHE.load(Ordering::Relaxed)
}

static KEYS: [Key; 19] = [
    Key::new(
        "engine_mode",
        "How operations run: 'adaptive' runs cheap ones at the call and queues the others, 'async' queues all, 'sync' runs all at the call.",
        Kind::Word(MODES),
        || {
            Setting::Word(match engine().mode() {
                Mode::Adaptive => MODES[0],
                Mode::Async => MODES[1],
                Mode::Sync => MODES[2],
            })
        },
        |value| {
            engine().set_mode(match value {
                Setting::Word("async") => Mode::Async,
                Setting::Word("sync") => Mode::Sync,
                _ => Mode::Adaptive,
            });
        },
    ),
    Key::new(
        "num_threads",
        "Number of compute threads.",
        Kind::Int(1, 4096),
        || Setting::Int(engine().num_threads() as i64),
        |value| {
            if let Setting::Int(n) = value {
                engine().set_num_threads(n as usize);
            }
        },
    ),
    Key::new(
        "memory_cache_bytes",
        "Limit in bytes for freed memory that the allocator caches for new arrays.",
        Kind::Int(0, i64::MAX),
        || Setting::Int(i64::try_from(memory::cache_limit()).unwrap_or(i64::MAX)),
        |value| {
            if let Setting::Int(n) = value {
                memory::set_cache_limit(n as usize);
            }
        },
    ),
    Key::new(
        "promotion",
        "Type promotion: 'mx' has float32 as the type of Python's floats, 'numpy' has the rules of NumPy 2, with float64.",
        Kind::Word(&["mx", "numpy"]),
        || {
            Setting::Word(match promotion() {
                Promotion::Mx => "mx",
                Promotion::NumPy => "numpy",
            })
        },
        |value| {
            set_promotion(match value {
                Setting::Word("numpy") => Promotion::NumPy,
                _ => Promotion::Mx,
            });
        },
    ),
    Key::new(
        "debug_lines",
        "Whether errors that are raised later name the line that issued the operation, at a small cost per call.",
        Kind::Bool,
        || Setting::Bool(call_site::is_enabled()),
        |value| {
            call_site::set_enabled(value == Setting::Bool(true));
        },
    ),
    Key::new(
        "jit",
        "Whether `mx.jit` and hybridized blocks run compiled graphs. Without them their functions run operator by operator.",
        Kind::Bool,
        || Setting::Bool(jit_is_on()),
        |value| JIT.store(value == Setting::Bool(true), Ordering::Relaxed),
    ),
    Key::new(
        "kernel_cache",
        "Whether compiled GPU kernels are cached in the user's cache folder for other processes.",
        Kind::Bool,
        || Setting::Bool(kernel_cache_is_on()),
        |value| KERNEL_CACHE.store(value == Setting::Bool(true), Ordering::Relaxed),
    ),
    Key::new(
        "plan_cache",
        "Whether the plans of calls are cached for later calls with the same operator, shapes and dtypes.",
        Kind::Bool,
        || Setting::Bool(plan::is_enabled()),
        |value| {
            plan::set_enabled(value == Setting::Bool(true));
        },
    ),
    Key {
        attempt: Some(|value| match value {
            Setting::Word(choice) => blas::choose(choice),
            _ => Ok(()),
        }),
        ..Key::new(
            "blas",
            "Implementation of matrix products on the CPU: 'builtin', 'openblas' of the package scipy-openblas32, 'onednn' of the package \
             onednn-cpu-gomp, or 'auto': OpenBLAS if it can be opened, otherwise the built-in kernels.",
            Kind::Word(blas::CHOICES),
            || Setting::Word(blas::choice()),
            |_| {},
        )
    },
    profile(
        "profiler_operators",
        "Whether the profiler records operators that run one by one.",
        || Setting::Bool(profiler::settings().profile.operators),
        |value| profiler::configure(|to| to.profile.operators = value == Setting::Bool(true)),
    ),
    profile(
        "profiler_graphs",
        "Whether the profiler records runs of compiled graphs, and their nodes.",
        || Setting::Bool(profiler::settings().profile.graphs),
        |value| profiler::configure(|to| to.profile.graphs = value == Setting::Bool(true)),
    ),
    profile(
        "profiler_memory",
        "Whether the profiler records the memory in use after each operator.",
        || Setting::Bool(profiler::settings().profile.memory),
        |value| profiler::configure(|to| to.profile.memory = value == Setting::Bool(true)),
    ),
    profile(
        "profiler_calls",
        "Whether the profiler records calls and waits, as the calling thread sees them.",
        || Setting::Bool(profiler::settings().profile.calls),
        |value| profiler::configure(|to| to.profile.calls = value == Setting::Bool(true)),
    ),
    profile(
        "profiler_aggregate_stats",
        "Whether the profiler collects the statistics of `mx.profiler.dumps`.",
        || Setting::Bool(profiler::settings().aggregate_stats),
        |value| profiler::configure(|to| to.aggregate_stats = value == Setting::Bool(true)),
    ),
    profile(
        "profiler_continuous_dump",
        "Whether the profiler writes its file periodically while it runs.",
        || Setting::Bool(profiler::settings().continuous_dump),
        |value| profiler::configure(|to| to.continuous_dump = value == Setting::Bool(true)),
    ),
    Key::new(
        "profiler_dump_period_ms",
        "Milliseconds between two writes of the profiler's file, if it is written periodically.",
        Kind::Int(1, 1 << 40),
        || Setting::Int(profiler::settings().dump_period_ms as i64),
        |value| {
            if let Setting::Int(n) = value {
                profiler::configure(|to| to.dump_period_ms = n as u64);
            }
        },
    ),
    Key::new(
        "profiler_buffer_bytes",
        "Limit for the events that the profiler keeps for its trace. Later ones are counted in the statistics only.",
        Kind::Int(1 << 16, i64::MAX),
        || Setting::Int(profiler::settings().buffer_bytes as i64),
        |value| {
            if let Setting::Int(n) = value {
                profiler::configure(|to| to.buffer_bytes = n as usize);
            }
        },
    ),
    Key::new(
        "profiler_filename",
        "The file that the profiler writes.",
        Kind::Text,
        || Setting::Word(intern(&profiler::settings().filename)),
        |value| {
            if let Setting::Word(text) = value {
                profiler::configure(|to| to.filename = text.into());
            }
        },
    ),
    // After its other settings, so that these apply when the environment starts it.
    profile(
        "profiler",
        "Whether the profiler runs. If the environment starts it, the program writes its file at the end.",
        || Setting::Bool(profiler::is_running()),
        |value| match value {
            Setting::Bool(true) => profiler::start(),
            _ => profiler::stop(),
        },
    ),
];

static LOADED: Once = Once::new();

/// Reads the environment, once. Invalid values are reported on standard error, and the default stays.
pub fn load() {
    LOADED.call_once(|| {
        for key in &KEYS {
            let variable = key.variable();
            let Ok(text) = std::env::var(&variable) else {
                continue;
            };
            let set = |value| key.set(value, Origin::Environment);
            // The engine reads the number of threads as well and reports an invalid value.
            if let Err(error) = key.parse(&text).and_then(set)
                && key.name != "num_threads"
            {
                eprintln!("mxnet: {variable}: {error}; the variable is ignored");
            }
        }
    });
}

/// All settings.
pub fn keys() -> &'static [Key] {
    load();
    &KEYS
}

/// The setting of this name.
///
/// # Errors
/// [`Error::Value`] for an unknown name; the message lists the settings.
pub fn key(name: &str) -> Result<&'static Key> {
    let keys = keys();
    keys.iter().find(|key| key.name == name).ok_or_else(|| {
        let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
        let problem = format!(
            "there is no setting `{name}`; there are {}",
            names.join(", ")
        );
        Error::value("config", problem)
    })
}

/// Sets the value of a setting.
///
/// # Errors
/// [`Error::Value`] for an unknown name and for a value that the setting does not take; [`Error::Unsupported`] for a library that is not installed.
pub fn set(name: &str, value: Setting, origin: Origin) -> Result<()> {
    key(name)?.set(value, origin)
}
