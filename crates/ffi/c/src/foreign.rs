//! Pointers of the caller: null and misaligned ones are errors. What they point to is the caller's promise.

use std::ffi::{CStr, c_char};
use std::slice;

use mxnet::core::{Error, Result};

fn null(what: &str) -> Error {
    Error::value("", format!("`{what}` is null"))
}

/// The text at `text`.
///
/// # Safety
/// Null, or text that ends with a zero byte and stays for the call.
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
/// Null, or so many entries that stay for the call.
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
    // SAFETY: not null, aligned, no longer than memory can be, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// Writes a result to the caller's variable.
///
/// # Safety
/// Null, or a variable of this type.
pub unsafe fn give<T>(out: *mut T, value: T, what: &str) -> Result<()> {
    check_out(out, what)?;
    // SAFETY: not null, aligned, and the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// Refuses a variable for a result that is null or misaligned: asked before anything is done.
pub fn check_out<T>(out: *mut T, what: &str) -> Result<()> {
    if out.is_null() {
        return Err(null(what));
    }
    match out.is_aligned() {
        true => Ok(()),
        false => Err(Error::value("", format!("`{what}` is not aligned"))),
    }
}

/// Writes a structure that starts with its size: as many bytes as the caller's version of it has. The size itself stays.
///
/// # Safety
/// Null, or a structure whose first word says how many bytes of it there are.
pub unsafe fn fill<T>(out: *mut T, value: T, what: &str) -> Result<()> {
    // SAFETY: as the caller promises.
    let size = unsafe { size_of_caller(out, what)? };
    let word = size_of::<usize>();
    let len = size.min(size_of::<T>()) - word;
    // SAFETY: 1. both structures have `word + len` bytes. 2. one is ours.
    unsafe {
        let from = (&raw const value).cast::<u8>().add(word);
        std::ptr::copy_nonoverlapping(from, out.cast::<u8>().add(word), len);
    }
    Ok(())
}

/// The size that the caller's structure says it has.
///
/// # Safety
/// As for [`fill`].
pub unsafe fn size_of_caller<T>(out: *mut T, what: &str) -> Result<usize> {
    check_out(out, what)?;
    // SAFETY: not null, aligned, and it starts with its size.
    let size = unsafe { out.cast::<usize>().read() };
    let word = size_of::<usize>();
    // A structure of more than a page is a variable that was not set.
    if !(2 * word..=4096).contains(&size) {
        let (problem, known) = (format!("`{what}.size` is {size}"), size_of::<T>());
        return Err(Error::value("", problem).with_hint(format!("set it to {known}, the sizeof")));
    }
    Ok(size)
}
