//! Kinds of devices of modules: memory and copies. Their work is done when a call returns, so they have no streams.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxnet_core::{Error, Result};
use mxnet_engine::{Event, Stream};
use mxnet_tensor::{
    Allocation, Backend, Device, DeviceKind, MemoryInfo, TensorError, Transfer, register_backend,
};

use crate::abi::mx_device;
use crate::call::State;
use crate::text;

type CopyFn = unsafe extern "C" fn(*mut c_void, u32, *mut c_void, *const c_void, usize) -> i32;

/// A checked copy of a module's description of a kind of device.
#[derive(Clone, Copy)]
pub struct Description {
    /// The name of the kind.
    pub name: &'static str,
    count: usize,
    allocate: unsafe extern "C" fn(*mut c_void, u32, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, u32, *mut c_void, usize),
    upload: CopyFn,
    download: CopyFn,
    copy: CopyFn,
    state: State,
}

/// Checks and copies the description of a kind of device.
///
/// # Safety
/// `given` is null or points to a structure whose pointers are null or valid.
pub unsafe fn describe(given: *const mx_device) -> Result<Description> {
    let wrong = |problem: String| Error::value("load", problem);
    if given.is_null() || !given.is_aligned() {
        return Err(wrong("the device is null".to_owned()));
    }
    // SAFETY: not null, and the caller's promise. The first word is the size.
    let size = unsafe { given.cast::<usize>().read() };
    if size < size_of::<mx_device>() {
        let needed = size_of::<mx_device>();
        return Err(wrong(format!(
            "the device's structure has {size} bytes, at least {needed} are needed"
        )));
    }
    // SAFETY: the structure has at least the size that is read; the caller's promise.
    let (given, name) = unsafe {
        let given = given.read();
        (given, text::copied(given.name, "name of a device")?)
    };
    if name.is_empty() || DeviceKind::find(name).is_some() {
        return Err(wrong(format!(
            "the name of the device is empty, or a device `{name}` exists already"
        )));
    }
    if !(1..=1024).contains(&given.count) {
        return Err(wrong(format!(
            "`{name}` has {} devices, 1 to 1024 can be",
            given.count
        )));
    }
    let (Some(allocate), Some(free), Some(upload), Some(download), Some(copy)) = (
        given.allocate,
        given.free,
        given.upload,
        given.download,
        given.copy,
    ) else {
        return Err(wrong(format!("a function of the device `{name}` is null")));
    };
    Ok(Description {
        name,
        count: given.count,
        allocate,
        free,
        upload,
        download,
        copy,
        state: State(given.state),
    })
}

/// Registers the kind of device.
pub fn add(described: Description) -> Result<()> {
    let kind = DeviceKind::add(described.name, false)?;
    register_backend(Box::new(Module {
        kind,
        described,
        in_use_bytes: AtomicUsize::new(0),
    }))?;
    Ok(())
}

struct Module {
    kind: DeviceKind,
    described: Description,
    in_use_bytes: AtomicUsize,
}

impl Module {
    fn no_memory(&self, id: u32, len_bytes: usize) -> TensorError {
        mxnet_tensor::error::MemoryError::OutOfMemory {
            device: Device::new(self.kind, id),
            requested_bytes: len_bytes,
            in_use_bytes: self.in_use_bytes.load(Ordering::Relaxed),
        }
        .into()
    }
}

impl Backend for Module {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn count(&self) -> usize {
        self.described.count
    }

    fn allocate(&self, id: u32, len_bytes: usize) -> std::result::Result<Allocation, TensorError> {
        // SAFETY: the module promises a function of this type.
        let block = unsafe { (self.described.allocate)(self.described.state.0, id, len_bytes) };
        let block =
            NonNull::new(block.cast::<u8>()).filter(|block| block.as_ptr().addr() % 64 == 0);
        let block = block.ok_or_else(|| self.no_memory(id, len_bytes))?;
        self.in_use_bytes.fetch_add(len_bytes, Ordering::Relaxed);
        Ok(block.into())
    }

    fn allocate_zeroed(
        &self,
        id: u32,
        len_bytes: usize,
    ) -> std::result::Result<Allocation, TensorError> {
        let block = self.allocate(id, len_bytes)?.ptr;
        let zeros = vec![0_u8; len_bytes];
        let (to, from) = (block.as_ptr().cast(), zeros.as_ptr().cast());
        // SAFETY: the block and the zeros have this size.
        let status =
            unsafe { (self.described.upload)(self.described.state.0, id, to, from, len_bytes) };
        match status {
            0 => Ok(block.into()),
            _ => {
                // SAFETY: nobody else uses the block.
                unsafe { self.free(id, block, len_bytes, &[]) };
                Err(self.no_memory(id, len_bytes))
            }
        }
    }

    unsafe fn free(
        &self,
        id: u32,
        block: NonNull<u8>,
        len_bytes: usize,
        _in_flight: &[Arc<dyn Event>],
    ) {
        self.in_use_bytes.fetch_sub(len_bytes, Ordering::Relaxed);
        // SAFETY: the caller's promise. No work is pending, because all work is done when a call returns.
        unsafe {
            (self.described.free)(self.described.state.0, id, block.as_ptr().cast(), len_bytes);
        }
    }

    unsafe fn copy(
        &self,
        transfer: Transfer,
        _stream: Option<&dyn Stream>,
    ) -> std::result::Result<(), TensorError> {
        let (to, from) = (transfer.dst_device, transfer.src_device);
        let is_ours = |device: Device| device.kind() == self.kind;
        let (function, id) = match (is_ours(to), is_ours(from)) {
            (true, true) if to.id() == from.id() => (self.described.copy, to.id()),
            (true, false) if from.is_host() => (self.described.upload, to.id()),
            (false, true) if to.is_host() => (self.described.download, from.id()),
            _ => return Err(mxnet_tensor::error::Unsupported::Copy { from, to }.into()),
        };
        // SAFETY: as the caller promises.
        let status = unsafe {
            function(
                self.described.state.0,
                id,
                transfer.dst.cast(),
                transfer.src.cast(),
                transfer.len_bytes,
            )
        };
        match status {
            0 => Ok(()),
            _ => Err(mxnet_tensor::error::Unsupported::Copy { from, to }.into()),
        }
    }

    fn stream(&self, _id: u32) -> Option<Arc<dyn Stream>> {
        None
    }

    fn memory(&self, _id: u32) -> MemoryInfo {
        // The ABI has no function for this.
        MemoryInfo { free: 0, total: 0 }
    }
}
