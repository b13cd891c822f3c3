//! Failures, which variables carry to their readers, and the errors of waits.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A failure. The variables that the failed operation should have written carry it to all their readers.
///
/// Cloning is cheap and keeps the typed error and its identity.
#[derive(Clone)]
pub struct Failure(Arc<Inner>);

struct Inner {
    error: Box<dyn Error + Send + Sync>,
    origin: String,
    /// Number of creation in this process. Of several failures the oldest is passed on.
    sequence: u64,
    /// Whether it is in an engine's list of unreported failures, has been, or must not be.
    is_listed: AtomicBool,
    is_reported: AtomicBool,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Failure {
    /// A failure with its typed error. `origin` names the operation and where it was issued.
    pub fn new(error: Box<dyn Error + Send + Sync>, origin: impl Into<String>) -> Failure {
        Failure(Arc::new(Inner {
            error,
            origin: origin.into(),
            sequence: NEXT.fetch_add(1, Ordering::Relaxed),
            is_listed: AtomicBool::new(false),
            is_reported: AtomicBool::new(false),
        }))
    }

    /// The error as it was raised. It can be downcast to its type.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0.error
    }

    /// The operation, and where it was issued.
    pub fn origin(&self) -> &str {
        &self.0.origin
    }

    /// Whether both are clones of one failure.
    pub fn is_same(&self, other: &Failure) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Marks the failure as seen by the user, so that `Engine::wait_all` does not return it.
    ///
    /// For callers that raise a failure at the call. Waits mark the failures that they return.
    pub fn mark_reported(&self) {
        self.0.is_reported.store(true, Ordering::Relaxed);
    }

    /// Marks it as reported, by a caller that returns it to the user. Returns true for the first caller.
    pub fn report(&self) -> bool {
        !self.0.is_reported.swap(true, Ordering::Relaxed)
    }

    /// Whether it was reported.
    pub(crate) fn is_reported(&self) -> bool {
        self.0.is_reported.load(Ordering::Relaxed)
    }

    /// Marks it as listed. Returns true for the first caller.
    pub(crate) fn mark_listed(&self) -> bool {
        !self.0.is_listed.swap(true, Ordering::Relaxed)
    }

    /// The failure that was created first.
    pub(crate) fn older(self, other: Failure) -> Failure {
        if self.0.sequence <= other.0.sequence {
            self
        } else {
            other
        }
    }

    /// A failure from the payload of `catch_unwind`.
    pub fn from_panic(payload: Box<dyn Any + Send>, origin: &str) -> Failure {
        let message = match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => match payload.downcast::<&'static str>() {
                Ok(text) => (*text).to_owned(),
                Err(other) => {
                    // The payload's destructor may panic again; that must not end a worker.
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(other)));
                    "panic whose payload is not text".to_owned()
                }
            },
        };
        Failure::new(Box::new(Panicked { message }), origin)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("error", &self.0.error)
            .field("origin", &self.0.origin)
            .finish()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.error)?;
        if self.0.origin.is_empty() {
            Ok(())
        } else {
            write!(f, "\n  in {}", self.0.origin)
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0.error)
    }
}

/// The error of an operation that panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    /// The panic's message.
    pub message: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation panicked: {}", self.message)
    }
}

impl Error for Panicked {}

/// Why a wait failed.
#[derive(Debug, Clone)]
pub enum WaitError {
    /// The variable or operation that was waited for has failed.
    Failed(Failure),
    /// The caller's `check` returned true. The operations waited for continue.
    Interrupted,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitError::Failed(failure) => failure.fmt(f),
            WaitError::Interrupted => f.write_str("wait interrupted"),
        }
    }
}

impl Error for WaitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            WaitError::Failed(failure) => Some(failure),
            WaitError::Interrupted => None,
        }
    }
}
