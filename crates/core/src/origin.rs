//! Where an operation was issued: in debug mode, failures that surface later name the line of the user's program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static ENABLED: AtomicBool = AtomicBool::new(false);
static ASK: OnceLock<fn() -> Option<String>> = OnceLock::new();

/// Installs the question "which line is running?"; later calls keep the first one.
pub fn install(ask: fn() -> Option<String>) {
    let _ = ASK.set(ask);
}

/// Switches the naming of lines; returns what it was. It costs a look at the interpreter's frame for each queued operation.
pub fn set_enabled(on: bool) -> bool {
    ENABLED.swap(on, Ordering::Relaxed)
}

/// Whether lines are named.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// The line that is running, if lines are named.
pub fn current() -> Option<Arc<str>> {
    if !ENABLED.load(Ordering::Relaxed) {
        return None;
    }
    ASK.get().and_then(|ask| ask()).map(Arc::from)
}

/// The line that is running, whether lines are named or not: traces always name them.
pub fn line() -> Option<Arc<str>> {
    ASK.get().and_then(|ask| ask()).map(Arc::from)
}
