//! Copies texts and messages of modules.

use std::ffi::{CStr, c_char};

use mxnet_core::{Error, Result};

/// Size of the buffer for messages of modules.
pub const MESSAGE_BYTES: usize = 1024;

/// A copy of the text that lives for the rest of the process; null is an error.
///
/// # Safety
/// `text` is null or ends with a zero byte.
pub unsafe fn copied(text: *const c_char, what: &str) -> Result<&'static str> {
    if text.is_null() {
        return Err(Error::value("load", format!("`{what}` is null")));
    }
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    let text = text.map_err(|_| Error::value("load", format!("`{what}` is not UTF-8")))?;
    Ok(Box::leak(text.to_owned().into_boxed_str()))
}

/// The message that a module has written.
pub fn message(written: &[c_char; MESSAGE_BYTES]) -> String {
    let bytes = written.iter().take(MESSAGE_BYTES - 1).map(|&c| c as u8);
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    match bytes.is_empty() {
        true => "the module gives no reason".to_owned(),
        false => String::from_utf8_lossy(&bytes).into_owned(),
    }
}
