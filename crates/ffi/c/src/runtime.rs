//! Features of this build and of the machine, and its devices.

use std::ffi::c_char;

use mxnet::runtime;
use serde_json::{Value as Json, json};

use crate::array::give_text;
use crate::foreign::{check_out, give, text};
use crate::status::{guard, named};

/// The features of this build and of the processor as JSON: `[{"name", "is_enabled"}]`. Sets `len_bytes` to the required length including the
/// terminating zero byte. Writes the text if `capacity` is at least that.
///
/// # Safety
/// `features` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_features(
    features: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> i32 {
    guard("mx_features", || {
        let all = runtime::features().into_iter();
        let all: Vec<Json> = all
            .map(|(name, is_enabled)| json!({"name": name, "is_enabled": is_enabled}))
            .collect();
        // SAFETY: as the caller promises.
        unsafe { give_text(&Json::from(all).to_string(), features, capacity, len_bytes) }
    })
}

/// The number of devices of a kind: "cpu", "gpu", or one that a module added.
///
/// # Safety
/// `kind` is null or a string; `count` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_device_count(kind: *const c_char, count: *mut usize) -> i32 {
    guard("mx_device_count", || {
        check_out(count, "count")?;
        // SAFETY: as the caller promises.
        let kind = unsafe { text(kind, "kind")? };
        let found = runtime::num_devices(kind).map_err(named("mx_device_count"))?;
        // SAFETY: as the caller promises.
        unsafe { give(count, found, "count") }
    })
}

/// Free memory and all memory of a device such as "gpu(0)", in bytes.
///
/// # Safety
/// `device` is null or a string; `free_bytes` and `total_bytes` are null or variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_device_memory(
    device: *const c_char,
    free_bytes: *mut usize,
    total_bytes: *mut usize,
) -> i32 {
    guard("mx_device_memory", || {
        check_out(free_bytes, "free_bytes")?;
        check_out(total_bytes, "total_bytes")?;
        // SAFETY: as the caller promises.
        let device = unsafe { text(device, "device")? }.parse()?;
        let (free, total) = runtime::device_memory(device)?;
        // SAFETY: as the caller promises.
        unsafe {
            give(free_bytes, free, "free_bytes")?;
            give(total_bytes, total, "total_bytes")
        }
    })
}
