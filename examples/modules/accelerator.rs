//! A module in Rust with a fake accelerator: a kind of device with memory of its own, and kernels for it.
//!
//! Its memory is main memory that only the module's functions touch. `rustc --crate-type cdylib accelerator.rs` builds it.

#![allow(non_camel_case_types, reason = "names of the table")]

#[path = "../../crates/module/src/abi.rs"]
#[allow(dead_code, reason = "a module needs a part of the table")]
mod abi;

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use abi::*;

const FLOAT32: i32 = 11;

/// Bytes that are allocated: the device has a megabyte.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
const CAPACITY: usize = 1 << 20;

fn layout(len_bytes: usize) -> Option<Layout> {
    Layout::from_size_align(len_bytes.max(1), 64).ok()
}

unsafe extern "C" fn allocate(_state: *mut c_void, _id: u32, len_bytes: usize) -> *mut c_void {
    if IN_USE.fetch_add(len_bytes, Ordering::Relaxed) + len_bytes > CAPACITY {
        IN_USE.fetch_sub(len_bytes, Ordering::Relaxed);
        return ptr::null_mut();
    }
    match layout(len_bytes) {
        // SAFETY: the layout has a size that is not 0.
        Some(layout) => unsafe { alloc(layout) }.cast(),
        None => ptr::null_mut(),
    }
}

unsafe extern "C" fn free(_state: *mut c_void, _id: u32, block: *mut c_void, len_bytes: usize) {
    IN_USE.fetch_sub(len_bytes, Ordering::Relaxed);
    if let Some(layout) = layout(len_bytes) {
        // SAFETY: the engine gives back what `allocate` gave, with the same length.
        unsafe { dealloc(block.cast(), layout) };
    }
}

unsafe extern "C" fn copy(
    _state: *mut c_void,
    _id: u32,
    to: *mut c_void,
    from: *const c_void,
    len_bytes: usize,
) -> i32 {
    // SAFETY: both ranges have so many bytes and do not overlap, by the table's contract.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), len_bytes) };
    MX_MODULE_OK
}

/// The elements of a dense float32 array.
///
/// # Safety
/// The array is valid for the call.
unsafe fn elements<'a>(x: &mx_tensor) -> Result<&'a mut [f32], (i32, String)> {
    // SAFETY: an array has `ndim` sizes and strides.
    let (shape, strides) = unsafe {
        let ndim = x.ndim as usize;
        match ndim {
            0 => (&[][..], &[][..]),
            _ => (
                std::slice::from_raw_parts(x.shape, ndim),
                std::slice::from_raw_parts(x.strides, ndim),
            ),
        }
    };
    let mut step = 1;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        if x.dtype != FLOAT32 || n != 1 && stride != step {
            let problem = "the accelerator takes dense float32 arrays".to_owned();
            return Err((MX_MODULE_DTYPE, problem));
        }
        step *= n;
    }
    // SAFETY: the array is dense.
    Ok(unsafe { std::slice::from_raw_parts_mut(x.data.cast::<f32>(), step as usize) })
}

unsafe extern "C" fn add(call: *const mx_kernel_call) -> i32 {
    // SAFETY: the engine's structure is valid for the call.
    let call = unsafe { &*call };
    // SAFETY: the engine gives a buffer for a message.
    unsafe {
        guarded(call.message, call.message_capacity, || {
            let (a, b) = (elements(&*call.inputs)?, elements(&*call.inputs.add(1))?);
            let c = elements(&*call.outputs)?;
            if a.len() != c.len() || b.len() != c.len() {
                return Err((MX_MODULE_SHAPE, "the accelerator does not broadcast".to_owned()));
            }
            for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
                *c = *a + *b;
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn exp(call: *const mx_kernel_call) -> i32 {
    // SAFETY: the engine's structure is valid for the call.
    let call = unsafe { &*call };
    // SAFETY: the engine gives a buffer for a message.
    unsafe {
        guarded(call.message, call.message_capacity, || {
            let (x, y) = (elements(&*call.inputs)?, elements(&*call.outputs)?);
            assert!(x.iter().all(|x| *x < 1000.0), "the accelerator overheats");
            for (y, x) in y.iter_mut().zip(x) {
                *y = x.exp();
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn init(host: *const mx_host, message: *mut c_char, capacity: usize) -> i32 {
    // SAFETY: the engine's table is valid while this runs, and there is a buffer for a message.
    unsafe {
        guarded(message, capacity, || {
            let host = &*host;
            let refused = |what: &str| (MX_MODULE_FAILED, format!("{what} was not taken"));
            let (Some(add_device), Some(add_kernel)) = (host.add_device, host.add_kernel) else {
                return Err(refused("a function of the table"));
            };
            let device = mx_device {
                size: size_of::<mx_device>(),
                name: c"accelerator".as_ptr(),
                count: 2,
                allocate: Some(allocate),
                free: Some(free),
                upload: Some(copy),
                download: Some(copy),
                copy: Some(copy),
                state: ptr::null_mut(),
            };
            if add_device(host.context, &raw const device) != MX_MODULE_OK {
                return Err(refused("the device"));
            }
            let kernels: [(&std::ffi::CStr, unsafe extern "C" fn(*const mx_kernel_call) -> i32); 2] =
                [(c"add", add), (c"exp", exp)];
            for (op, kernel) in kernels {
                let entry = mx_kernel_entry {
                    size: size_of::<mx_kernel_entry>(),
                    op: op.as_ptr(),
                    device: c"accelerator".as_ptr(),
                    priority: 0,
                    reserved: 0,
                    kernel: Some(kernel),
                    state: ptr::null_mut(),
                };
                if add_kernel(host.context, &raw const entry) != MX_MODULE_OK {
                    return Err(refused("a kernel"));
                }
            }
            Ok(())
        })
    }
}

struct Constant(mx_module);

// SAFETY: nobody writes it, and the texts that it points to are constant.
unsafe impl Sync for Constant {}

static MODULE: Constant = Constant(mx_module {
    size: size_of::<mx_module>(),
    abi: MX_MODULE_ABI,
    reserved: 0,
    name: c"accelerator".as_ptr(),
    version: c"1.0".as_ptr(),
    init: Some(init),
});

/// What makes the library a module.
#[unsafe(no_mangle)]
pub extern "C" fn mx_module_entry() -> *const mx_module {
    &raw const MODULE.0
}
