//! Named arrays in safetensors files.

use std::ffi::c_char;
use std::path::Path;

use mxnet::core::files;
use mxnet::core::{Error, Result};

use crate::array::give_text;
use crate::foreign::{check_out, give, list, text};
use crate::handles::{self, Object, mx_handle};
use crate::status::guard;

/// Writes `len` named arrays to a safetensors file, and replaces an existing file atomically.
///
/// # Safety
/// `path` is null or a string; `names` and `arrays` are null or have `len` entries; the names are strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_save(
    path: *const c_char,
    names: *const *const c_char,
    arrays: *const mx_handle,
    len: usize,
) -> i32 {
    guard("mx_save", || {
        // SAFETY: as the caller promises.
        let (path, names, arrays) = unsafe {
            (
                text(path, "path")?,
                list(names, len, "names")?,
                list(arrays, len, "arrays")?,
            )
        };
        let mut named = Vec::with_capacity(len);
        for (&name, &array) in names.iter().zip(arrays) {
            // SAFETY: as the caller promises.
            let name = unsafe { text(name, "names")? }.to_owned();
            if named.iter().any(|(other, _)| *other == name) {
                return Err(Error::value("", format!("two arrays are named `{name}`")));
            }
            named.push((name, handles::array(array)?));
        }
        let path = Path::new(path);
        files::save(path, named, None).map_err(|error| error.at(path))
    })
}

/// Reads a safetensors file. Sets `len` to the number of its arrays. Writes a new handle for each to `arrays` if `capacity` is at least that. Writes
/// their names, separated by line feeds and terminated by a zero byte, to `names` if `names_capacity` is enough; sets `names_len_bytes` to the
/// required length.
///
/// # Safety
/// `path` is null or a string; the other pointers are null or valid for the given lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_load(
    path: *const c_char,
    arrays: *mut mx_handle,
    capacity: usize,
    len: *mut usize,
    names: *mut c_char,
    names_capacity: usize,
    names_len_bytes: *mut usize,
) -> i32 {
    guard("mx_load", || {
        check_out(len, "len")?;
        check_out(names_len_bytes, "names_len_bytes")?;
        // SAFETY: as the caller promises.
        let path = Path::new(unsafe { text(path, "path")? });
        let (found, _) = files::load(path).map_err(|error| error.at(path))?;
        if let Some((name, _)) = found.iter().find(|(name, _)| name.contains(['\n', '\0'])) {
            let problem = format!("the name {name:?} contains a line feed or a zero byte");
            return Err(Error::unsupported("", problem));
        }
        let all: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        // SAFETY: as the caller promises.
        unsafe {
            give_text(&all.join("\n"), names, names_capacity, names_len_bytes)?;
            give(len, found.len(), "len")?;
        }
        if found.len() > capacity || found.is_empty() {
            return Ok(());
        }
        check_out(arrays, "arrays")?;
        for (i, (_, array)) in found.into_iter().enumerate() {
            let handle: Result<mx_handle> = handles::add(Object::Array(array));
            // SAFETY: `i` is less than `capacity`, the length of `arrays` by the caller's promise.
            unsafe { arrays.add(i).write(handle?) };
        }
        Ok(())
    })
}
