//! Pointers of the caller. Null and misaligned pointers are errors; the caller guarantees that other pointers are valid.

use std::ffi::{CStr, c_char};
use std::slice;

use mxnet::core::{Error, Result};

fn null(what: &str) -> Error {
    Error::value("", format!("`{what}` is null"))
}

/// The string at `text`.
///
/// # Safety
/// `text` is null, or a zero-terminated string that is valid during the call.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Error::value("", format!("`{what}` is not UTF-8")))
}

/// The `len` entries at `data`; null is an empty list.
///
/// # Safety
/// `data` is null, or valid for `len` entries during the call.
pub unsafe fn list<'a, T>(data: *const T, len: usize, what: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(null(what));
    }
    if !data.is_aligned() || len > isize::MAX as usize / size_of::<T>().max(1) {
        let problem = format!("`{what}` is not a list of {len} entries at an aligned address");
        return Err(Error::value("", problem));
    }
    // SAFETY: not null, aligned, within the largest size of an object, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// Writes a result to the caller's variable.
///
/// # Safety
/// `out` is null, or points to a variable of this type.
pub unsafe fn give<T>(out: *mut T, value: T, what: &str) -> Result<()> {
    check_out(out, what)?;
    // SAFETY: not null, aligned, and the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// An error for a null or misaligned pointer to a result. Checked before the call does anything.
pub fn check_out<T>(out: *mut T, what: &str) -> Result<()> {
    if out.is_null() {
        return Err(null(what));
    }
    match out.is_aligned() {
        true => Ok(()),
        false => Err(Error::value("", format!("`{what}` is not aligned"))),
    }
}

/// Writes a structure that starts with its size: as many bytes as the caller's version of it has. The size field is not changed.
///
/// # Safety
/// `out` is null, or points to a structure whose first field is its size in bytes.
pub unsafe fn fill<T>(out: *mut T, value: T, what: &str) -> Result<()> {
    // SAFETY: as the caller promises.
    let size = unsafe { size_of_caller(out, what)? };
    let word = size_of::<usize>();
    let len = size.min(size_of::<T>()) - word;
    // SAFETY: 1. both structures have `word + len` bytes. 2. one of them is a local variable.
    unsafe {
        let from = (&raw const value).cast::<u8>().add(word);
        std::ptr::copy_nonoverlapping(from, out.cast::<u8>().add(word), len);
    }
    Ok(())
}

/// The size in the first field of the caller's structure.
///
/// # Safety
/// As for [`fill`].
pub unsafe fn size_of_caller<T>(out: *mut T, what: &str) -> Result<usize> {
    check_out(out, what)?;
    // SAFETY: not null, aligned, and it starts with its size.
    let size = unsafe { out.cast::<usize>().read() };
    let word = size_of::<usize>();
    // A size of more than a page means that the field was not initialised.
    if !(2 * word..=4096).contains(&size) {
        let (problem, known) = (format!("`{what}.size` is {size}"), size_of::<T>());
        return Err(Error::value("", problem).with_hint(format!("set it to {known}, the sizeof")));
    }
    Ok(size)
}
