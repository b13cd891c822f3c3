//! Whether the user asked to stop waiting. The layer that knows signals (Python's) installs the question.

use std::sync::OnceLock;

static QUESTION: OnceLock<fn() -> bool> = OnceLock::new();

/// Installs the question; later calls keep the first one.
pub fn install(question: fn() -> bool) {
    let _ = QUESTION.set(question);
}

/// Whether a wait should end with [`crate::Error::Interrupted`].
pub(crate) fn is_requested() -> bool {
    QUESTION.get().is_some_and(|ask| ask())
}
