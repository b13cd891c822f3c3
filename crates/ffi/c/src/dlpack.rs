//! Memory that is shared without a copy: DLPack, and memory of the caller.

use std::ffi::c_void;
use std::ptr::NonNull;

use mxnet::core::{Array, Result};
use mxnet::dlpack::{DLDevice, DLManagedTensorVersioned, DLTensor, Import, import_or_return};
use mxnet::tensor::dlpack::{self, DEVICE_CPU, VERSION, dl_dtype};

use crate::array::{dtype_of, give_array, sizes};
use crate::foreign::{check_out, give, list};
use crate::handles::{self, mx_handle};
use crate::status::guard;

/// An array over the memory of a `DLManagedTensorVersioned` (DLPack 1.x). The array takes over the structure, and calls its deleter when the memory
/// is not needed any more. After an error the structure still belongs to the caller.
///
/// # Safety
/// `managed` is null or points to a valid structure that the caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_from_dlpack(managed: *mut c_void, out: *mut mx_handle) -> i32 {
    guard("mx_array_from_dlpack", || {
        check_out(out, "out")?;
        let managed = managed.cast::<DLManagedTensorVersioned>();
        check_out(managed, "managed")?;
        let Some(managed) = NonNull::new(managed) else {
            return Ok(());
        };
        // SAFETY: as the caller promises.
        let import = unsafe { Import::from_raw(managed) };
        match import_or_return(import) {
            // SAFETY: as the caller promises.
            Ok(array) => unsafe { give_array(out, array.into()) },
            Err((error, import)) => {
                import.into_raw();
                Err(error)
            }
        }
    })
}

/// The array as a `DLManagedTensorVersioned` (DLPack 1.x) over the same memory. The caller owns the structure and must call its deleter. Waits for
/// pending work. From then on, calls that read or write the array are synchronous.
///
/// # Safety
/// `managed` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_to_dlpack(array: mx_handle, managed: *mut *mut c_void) -> i32 {
    guard("mx_array_to_dlpack", || {
        check_out(managed, "managed")?;
        let array = mxnet::Array::from(handles::array(array)?);
        let exported = array.to_dlpack()?.into_raw();
        // SAFETY: as the caller promises.
        unsafe { give(managed, exported.as_ptr().cast::<c_void>(), "managed") }
    })
}

/// Called with its context, on any thread, when the memory is not needed any more.
pub type mx_deleter = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Owner of a structure over the caller's memory.
struct Borrowed {
    shape: Vec<i64>,
    deleter: mx_deleter,
    context: *mut c_void,
}

/// # Safety
/// `managed` was made by [`mx_array_from_memory`] and is not used afterwards.
unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: `mx_array_from_memory` leaked both boxes, and the storage calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        let borrowed = Box::from_raw(managed.manager_ctx.cast::<Borrowed>());
        if let Some(deleter) = borrowed.deleter {
            deleter(borrowed.context);
        }
    }
}

/// An array over memory of the caller, in C order on the CPU, without a copy. `deleter` (which may be null) is called with `context` when the memory
/// is not needed any more. After an error it is not called.
///
/// # Safety
/// `data` is null or valid for the elements that `shape` (`ndim` sizes) describes, until `deleter` is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_array_from_memory(
    data: *mut c_void,
    shape: *const i64,
    ndim: usize,
    dtype: i32,
    deleter: mx_deleter,
    context: *mut c_void,
    out: *mut mx_handle,
) -> i32 {
    guard("mx_array_from_memory", || {
        check_out(out, "out")?;
        check_out(data, "data")?;
        // SAFETY: as the caller promises.
        let shape = unsafe { list(shape, ndim, "shape")? };
        sizes(shape)?;
        let array = borrow(data, shape, dtype, deleter, context)?;
        // SAFETY: as the caller promises.
        unsafe { give_array(out, array) }
    })
}

/// The array that [`mx_array_from_memory`] returns.
fn borrow(
    data: *mut c_void,
    shape: &[i64],
    dtype: i32,
    deleter: mx_deleter,
    context: *mut c_void,
) -> Result<Array> {
    let dtype = dl_dtype(dtype_of(dtype)?);
    let mut borrowed = Box::new(Borrowed {
        shape: shape.to_vec(),
        deleter,
        context,
    });
    let dl_tensor = DLTensor {
        data,
        device: DLDevice {
            device_type: DEVICE_CPU,
            device_id: 0,
        },
        ndim: shape.len() as i32,
        dtype,
        shape: borrowed.shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = NonNull::from(Box::leak(Box::new(DLManagedTensorVersioned {
        version: VERSION,
        manager_ctx: Box::into_raw(borrowed).cast(),
        deleter: Some(delete),
        flags: 0,
        dl_tensor,
    })));
    // SAFETY: the structure is valid; the caller of the ABI guarantees that its memory is.
    match unsafe { dlpack::import(managed) } {
        Ok(tensor) => Ok(Array::from_tensor(tensor)),
        Err(error) => {
            // SAFETY: after an error the structure is still ours. The memory stays the caller's, so its deleter is not called.
            unsafe {
                let managed = Box::from_raw(managed.as_ptr());
                drop(Box::from_raw(managed.manager_ctx.cast::<Borrowed>()));
            }
            Err(error.into())
        }
    }
}
