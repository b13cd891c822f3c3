//! Source lines of operations: if tracking is on, failures that surface later name the line of the user's program that issued the operation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static ENABLED: AtomicBool = AtomicBool::new(false);
static ASK: OnceLock<fn() -> Option<String>> = OnceLock::new();

/// Installs the function that returns the current line. If one is installed already, that one stays.
pub fn install(ask: fn() -> Option<String>) {
    let _ = ASK.set(ask);
}

/// Switches tracking of lines on or off. Returns the previous value. Tracking reads the language's frame for each queued operation.
pub fn set_enabled(on: bool) -> bool {
    ENABLED.swap(on, Ordering::Relaxed)
}

/// Whether lines are tracked.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// The current line of the user's program; `None` if lines are not tracked.
pub fn current() -> Option<Arc<str>> {
    if !ENABLED.load(Ordering::Relaxed) {
        return None;
    }
    ASK.get().and_then(|ask| ask()).map(Arc::from)
}

/// The current line, also if tracking is off: traces always store it.
pub fn line() -> Option<Arc<str>> {
    ASK.get().and_then(|ask| ask()).map(Arc::from)
}
