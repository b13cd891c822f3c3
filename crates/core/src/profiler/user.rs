//! Events of the program: spans, counters, markers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::profiler::buffer::{Kind, head, now, write};
use crate::profiler::names::label;
use crate::profiler::store::to_counter;
use crate::profiler::watch::{current_scope, records_user};

/// What a [`Span`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A piece of work of a domain.
    Task,
    /// One of many passes, such as an epoch or a step.
    Frame,
    /// A section of the program, without a domain.
    Event,
}

impl SpanKind {
    const fn kind(self) -> Kind {
        match self {
            SpanKind::Task => Kind::Task,
            SpanKind::Frame => Kind::Frame,
            SpanKind::Event => Kind::Event,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            SpanKind::Task => "Task",
            SpanKind::Frame => "Frame",
            SpanKind::Event => "Event",
        }
    }
}

/// A time span that the program begins and ends, any number of times.
pub struct Span {
    kind: SpanKind,
    domain: Arc<str>,
    name: Arc<str>,
    /// The begin, `None` inside if nothing was recorded then.
    begun: Mutex<Option<Option<u64>>>,
}

impl Span {
    /// A span; events have no domain and ignore `domain`.
    pub fn new(kind: SpanKind, domain: &str, name: &str) -> Span {
        Span {
            kind,
            domain: Arc::from(domain),
            name: Arc::from(name),
            begun: Mutex::new(None),
        }
    }

    /// Begins the span. If it has begun already, it begins again.
    pub fn start(&self) {
        *self.begun.lock() = Some(records_user().then(now));
    }

    /// Ends the span and records it, if the profiler was recording at its begin and is now.
    ///
    /// # Errors
    /// [`Error::Value`] if it has not begun.
    pub fn stop(&self) -> Result<()> {
        let Some(begun) = self.begun.lock().take() else {
            let problem = format!("`{}` has not begun", self.name);
            return Err(Error::value(self.kind.name(), problem).with_hint("call `start` before"));
        };
        if let Some(begin) = begun
            && records_user()
        {
            let mut words = head(self.kind.kind(), 0, label(&self.name));
            words[1] = begin;
            words[2] = now() - begin;
            words[3] = u64::from(label(&self.domain).0);
            words[5] = u64::from(current_scope().0);
            write(&words);
        }
        Ok(())
    }
}

/// A number whose changes are recorded.
pub struct Counter {
    domain: Arc<str>,
    name: Arc<str>,
    value: AtomicI64,
}

impl Counter {
    /// A counter at 0. Nothing is recorded before its first change.
    pub fn new(domain: &str, name: &str) -> Counter {
        Counter {
            domain: Arc::from(domain),
            name: Arc::from(name),
            value: AtomicI64::new(0),
        }
    }

    /// Sets the value.
    pub fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
        self.record(value);
    }

    /// Adds to the value.
    pub fn add(&self, delta: i64) {
        let before = self.value.fetch_add(delta, Ordering::Relaxed);
        self.record(before.wrapping_add(delta));
    }

    /// The value.
    pub fn value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    fn record(&self, value: i64) {
        if records_user() {
            let mut words = head(Kind::Counter, 0, label(&self.name));
            words[1] = now();
            words[2] = to_counter(value);
            words[3] = u64::from(label(&self.domain).0);
            write(&words);
        }
    }
}

/// The scope of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
    /// All processes of the trace.
    Global,
    /// This process.
    Process,
    /// This thread.
    Thread,
}

impl Instant {
    /// The scope of this name: "global", "process", "thread". Traces do not have "task" and "marker", which stand for "thread".
    ///
    /// # Errors
    /// [`Error::Value`] for another name.
    pub fn of(name: &str) -> Result<Instant> {
        match name {
            "global" => Ok(Instant::Global),
            "process" => Ok(Instant::Process),
            "thread" | "task" | "marker" => Ok(Instant::Thread),
            _ => {
                let problem = format!(
                    "`scope` must be 'global', 'process', 'thread', 'task' or 'marker', not '{name}'"
                );
                Err(Error::value("mark", problem))
            }
        }
    }
}

/// Records an instant.
pub fn mark(domain: &str, name: &str, reach: Instant) {
    if records_user() {
        let mut words = head(Kind::Marker, 0, label(name));
        words[1] = now();
        words[3] = u64::from(label(domain).0);
        words[4] = reach as u64;
        words[5] = u64::from(current_scope().0);
        write(&words);
    }
}
