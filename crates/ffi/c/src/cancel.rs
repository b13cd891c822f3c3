//! Cancellation of threads during a call. `pthread_cancel` unwinds the stack of its thread, which ends the process where the frames are Rust's.

use std::ffi::c_int;

// POSIX leaves the numbers to the system.
#[cfg(target_os = "macos")]
const DISABLE: c_int = 0;
#[cfg(not(target_os = "macos"))]
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// While it lives, requests to cancel this thread are kept for its next cancellation point.
pub struct NoCancellation {
    before: c_int,
}

impl NoCancellation {
    pub fn new() -> NoCancellation {
        let mut before = DISABLE;
        // SAFETY: `before` is a variable that the function may write.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        NoCancellation { before }
    }
}

impl Drop for NoCancellation {
    fn drop(&mut self) {
        let mut disabled = DISABLE;
        // SAFETY: the state is one that the function returned, and `disabled` is a variable that it may write.
        unsafe { pthread_setcancelstate(self.before, &raw mut disabled) };
    }
}
