//! Arrays: creation, properties, copies, waiting, freeing.

use std::ffi::{c_char, c_void};

use mxnet::core::{Array, Error, Result, creation};
use mxnet::tensor::{DType, Device};

use crate::foreign::{check_out, give, list, text};
use crate::handles::{self, Object, mx_handle};
use crate::status::{guard, named};

/// Booleans of one byte.
pub const MX_BOOL: i32 = 0;
/// Signed integers of 8 bits.
pub const MX_INT8: i32 = 1;
/// Signed integers of 16 bits.
pub const MX_INT16: i32 = 2;
/// Signed integers of 32 bits.
pub const MX_INT32: i32 = 3;
/// Signed integers of 64 bits.
pub const MX_INT64: i32 = 4;
/// Unsigned integers of 8 bits.
pub const MX_UINT8: i32 = 5;
/// Unsigned integers of 16 bits.
pub const MX_UINT16: i32 = 6;
/// Unsigned integers of 32 bits.
pub const MX_UINT32: i32 = 7;
/// Unsigned integers of 64 bits.
pub const MX_UINT64: i32 = 8;
/// IEEE 754 binary16.
pub const MX_FLOAT16: i32 = 9;
/// bfloat16.
pub const MX_BFLOAT16: i32 = 10;
/// IEEE 754 binary32.
pub const MX_FLOAT32: i32 = 11;
/// IEEE 754 binary64.
pub const MX_FLOAT64: i32 = 12;
/// Pairs of binary32.
pub const MX_COMPLEX64: i32 = 13;
/// Pairs of binary64.
pub const MX_COMPLEX128: i32 = 14;

/// The data type of a number of the ABI (`MX_BOOL` etc.).
pub fn dtype_of(number: i32) -> Result<DType> {
    let found = u8::try_from(number).ok().and_then(DType::from_number);
    found.ok_or_else(|| {
        Error::dtype(
            "",
            format!("there is no data type with the number {number}"),
        )
    })
}

/// The sizes of a shape; an error if one is negative.
pub fn sizes(shape: &[i64]) -> Result<Vec<usize>> {
    let size = |&n: &i64| {
        usize::try_from(n)
            .map_err(|_| Error::shape("", format!("a size must not be negative, found {n}")))
    };
    shape.iter().map(size).collect()
}

/// Writes the handle of a new array to the caller's variable.
///
/// # Safety
/// `out` is null or a variable.
pub unsafe fn give_array(out: *mut mx_handle, array: Array) -> Result<()> {
    check_out(out, "out")?;
    let handle = handles::add(Object::Array(array))?;
    // SAFETY: as the caller promises.
    unsafe { give(out, handle, "out") }
}

/// A new array of `shape` (`ndim` sizes) in C order. The elements are copied from `data`, or zero if that is null. `device` is text such as
/// "cpu" or "gpu(1)"; null means the CPU.
///
/// # Safety
/// `shape`, `data` and `device` are null or valid for the call, `data` for as many bytes as the array has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_create(
    data: *const c_void,
    shape: *const i64,
    ndim: usize,
    dtype: i32,
    device: *const c_char,
    out: *mut mx_handle,
) -> i32 {
    guard("mx_array_create", || {
        check_out(out, "out")?;
        // SAFETY: as the caller promises.
        let shape = sizes(unsafe { list(shape, ndim, "shape")? })?;
        let dtype = dtype_of(dtype)?;
        let device = match device.is_null() {
            true => Device::cpu(0),
            // SAFETY: not null, and the caller's promise.
            false => unsafe { text(device, "device")? }.parse()?,
        };
        let array = match data.is_null() {
            true => creation::zeros(&shape, dtype, device),
            false => {
                let array = Array::uninitialised(&shape, dtype, Device::cpu(0))?;
                let tensor = array.tensor();
                // SAFETY: 1. `data` has as many bytes as the array, by the caller's promise. 2. the new array is not shared yet.
                unsafe {
                    let to = tensor.data_ptr();
                    std::ptr::copy_nonoverlapping(data.cast::<u8>(), to, tensor.len_bytes());
                }
                array.to_device(device)
            }
        };
        let array = array.map_err(named("mx_array_create"))?;
        // SAFETY: as the caller promises.
        unsafe { give_array(out, array) }
    })
}

/// The sizes of the axes. Sets `ndim` to the number of axes. Writes the sizes to `shape` if that has a `capacity` of at least `ndim` sizes;
/// `shape` may be null if `capacity` is 0.
///
/// # Safety
/// `shape` is null or valid for `capacity` sizes; `ndim` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_shape(
    array: mx_handle,
    shape: *mut i64,
    capacity: usize,
    ndim: *mut usize,
) -> i32 {
    guard("mx_array_shape", || {
        let array = handles::array(array)?;
        check_out(ndim, "ndim")?;
        if array.ndim() <= capacity && array.ndim() > 0 {
            check_out(shape, "shape")?;
            for (i, &n) in array.shape().iter().enumerate() {
                // SAFETY: `i` is less than `capacity`.
                unsafe { shape.add(i).write(n as i64) };
            }
        }
        // SAFETY: as the caller promises.
        unsafe { give(ndim, array.ndim(), "ndim") }
    })
}

/// The data type, one of `MX_BOOL` … `MX_COMPLEX128`.
///
/// # Safety
/// `dtype` is null or a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_dtype(array: mx_handle, dtype: *mut i32) -> i32 {
    guard("mx_array_dtype", || {
        let array = handles::array(array)?;
        // SAFETY: as the caller promises.
        unsafe { give(dtype, i32::from(array.dtype() as u8), "dtype") }
    })
}

/// The number of bytes that the elements take in C order.
///
/// # Safety
/// `len_bytes` is null or a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_len_bytes(array: mx_handle, len_bytes: *mut usize) -> i32 {
    guard("mx_array_len_bytes", || {
        let array = handles::array(array)?;
        let len = array.len() * array.dtype().size();
        // SAFETY: as the caller promises.
        unsafe { give(len_bytes, len, "len_bytes") }
    })
}

/// The device as text such as "cpu(0)". Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is
/// at least that.
///
/// # Safety
/// `text` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_device(
    array: mx_handle,
    text: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> i32 {
    guard("mx_array_device", || {
        let device = handles::array(array)?.device().to_string();
        // SAFETY: as the caller promises.
        unsafe { give_text(&device, text, capacity, len_bytes) }
    })
}

/// Writes text to the caller's memory.
///
/// # Safety
/// `to` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
pub unsafe fn give_text(
    text: &str,
    to: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> Result<()> {
    check_out(len_bytes, "len_bytes")?;
    if text.len() < capacity {
        check_out(to, "text")?;
        // SAFETY: `capacity` is enough for the text and the zero byte.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast::<u8>(), text.len());
            to.add(text.len()).write(0);
        }
    }
    // SAFETY: as the caller promises.
    unsafe { give(len_bytes, text.len() + 1, "len_bytes") }
}

/// Copies the elements in C order to `data`, which has `len_bytes` bytes. `len_bytes` must equal the size of the elements. Waits for pending work.
///
/// # Safety
/// `data` is null or valid for `len_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_read(
    array: mx_handle,
    data: *mut c_void,
    len_bytes: usize,
) -> i32 {
    guard("mx_array_read", || {
        let array = handles::array(array)?;
        let needed = array.len() * array.dtype().size();
        if needed != len_bytes {
            let problem =
                format!("the elements take {needed} bytes, but `len_bytes` is {len_bytes}");
            return Err(Error::value("", problem));
        }
        if needed == 0 {
            return Ok(());
        }
        check_out(data, "data")?;
        let dense = array.detach().on_host()?.contiguous()?;
        let held = dense.read()?;
        // SAFETY: `data` is valid for this many bytes, and does not overlap the library's memory.
        unsafe {
            std::ptr::copy_nonoverlapping(held.bytes().as_ptr(), data.cast::<u8>(), needed);
        }
        Ok(())
    })
}

/// The address of the elements of a contiguous array on the CPU, without a copy. Waits for pending work. From then on, calls that read or write the
/// array are synchronous. The address is valid until the array and all views of it are freed.
///
/// # Safety
/// `data` is null or a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_data(array: mx_handle, data: *mut *mut c_void) -> i32 {
    guard("mx_array_data", || {
        let array = handles::array(array)?;
        check_out(data, "data")?;
        if !array.device().is_host() {
            let problem = format!("the array is on {}", array.device());
            return Err(Error::device("", problem).with_hint("copy it with mx_array_read"));
        }
        if !array.layout().is_contiguous() {
            let problem = "the array is not contiguous in C order";
            return Err(Error::unsupported("", problem).with_hint("use mx_array_copy"));
        }
        array.check_values()?;
        array.tensor().storage().mark_shared();
        array.wait_to_write()?;
        // SAFETY: as the caller promises.
        unsafe { give(data, array.tensor().data_ptr().cast::<c_void>(), "data") }
    })
}

/// A copy of the elements in C order, which is not part of a recorded graph.
///
/// # Safety
/// `out` is null or a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_copy(array: mx_handle, out: *mut mx_handle) -> i32 {
    guard("mx_array_copy", || {
        check_out(out, "out")?;
        let copy = handles::array(array)?.detach().copy()?;
        // SAFETY: as the caller promises.
        unsafe { give_array(out, copy) }
    })
}

/// Waits until the elements are computed. Returns the error of the operation that failed to compute them, if any.
#[unsafe(no_mangle)]
pub extern "C" fn mx_array_wait(array: mx_handle) -> i32 {
    guard("mx_array_wait", || handles::array(array)?.wait_to_read())
}

/// Waits for all operations issued so far, by any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mx_wait_all() -> i32 {
    guard("mx_wait_all", || {
        mxnet::engine::engine().wait_all(&mut || false)?;
        Ok(mxnet::tensor::wait_for_devices()?)
    })
}

/// Frees an object. Its handle is invalid from then on; views of an array and graphs that need it keep its elements alive.
#[unsafe(no_mangle)]
pub extern "C" fn mx_free(handle: mx_handle) -> i32 {
    guard("mx_free", || {
        if handles::scope(handle).is_ok() {
            let problem = "the handle is a scope: end it with mx_record_end";
            return Err(Error::value("", problem));
        }
        handles::remove(handle).map(drop)
    })
}

/// The number of valid handles. It is 0 if a program has freed all its objects.
///
/// # Safety
/// `count` is null or a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_handle_count(count: *mut usize) -> i32 {
    // SAFETY: as the caller promises.
    guard("mx_handle_count", || unsafe {
        give(count, handles::count(), "count")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_data_types_are_those_of_the_tensor_crate() {
        let named = [
            (MX_BOOL, "bool"),
            (MX_INT8, "int8"),
            (MX_INT16, "int16"),
            (MX_INT32, "int32"),
            (MX_INT64, "int64"),
            (MX_UINT8, "uint8"),
            (MX_UINT16, "uint16"),
            (MX_UINT32, "uint32"),
            (MX_UINT64, "uint64"),
            (MX_FLOAT16, "float16"),
            (MX_BFLOAT16, "bfloat16"),
            (MX_FLOAT32, "float32"),
            (MX_FLOAT64, "float64"),
            (MX_COMPLEX64, "complex64"),
            (MX_COMPLEX128, "complex128"),
        ];
        assert_eq!(named.len(), DType::COUNT);
        for (number, name) in named {
            assert_eq!(dtype_of(number).map(DType::name).ok(), Some(name));
        }
        assert!(dtype_of(-1).is_err());
        assert!(dtype_of(15).is_err());
    }
}
