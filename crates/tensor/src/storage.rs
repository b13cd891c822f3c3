//! Storage: bytes on one device, the variable that orders access to them, and who frees them.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use mxnet_engine::{Resource, Var};

use crate::backend::{Backend, backend_of};
use crate::error::TensorError;
use crate::{Device, DeviceKind, memory};

/// Bytes on one device. Arrays that are views of each other share one storage.
///
/// The bytes are reached through [`Storage::ptr`] by operations that the engine has granted its variable to; nothing
/// here reads or writes them.
pub struct Storage {
    ptr: NonNull<u8>,
    len_bytes: usize,
    device: Device,
    is_read_only: bool,
    is_shared: AtomicBool,
    lineage: AtomicU32,
    version: AtomicU64,
    var: Var,
    owner: Owner,
}

/// Who frees the bytes.
enum Owner {
    Memory,
    Backend(&'static dyn Backend),
    /// Frees them when it is dropped.
    Foreign(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>),
}

// SAFETY: the pointer is owned (by the storage or by `owner`, which is `Send + Sync`), and the bytes behind it are only
// touched by unsafe code that the engine orders by `var`.
unsafe impl Send for Storage {}
// SAFETY: as above; everything else behind `&Storage` is atomic or constant.
unsafe impl Sync for Storage {}

impl Storage {
    /// Uninitialised bytes, aligned to 64 bytes, or to 16 up to a length of 256.
    ///
    /// # Errors
    ///
    /// `Memory` when there is not enough; `Device` when there is no such device.
    #[inline]
    pub fn allocate(len_bytes: usize, device: Device) -> Result<Arc<Storage>, TensorError> {
        if device.kind() == DeviceKind::Cpu {
            let ptr = memory::allocate(len_bytes)?;
            return Ok(Arc::new(Storage::new(
                ptr,
                len_bytes,
                device,
                Owner::Memory,
            )));
        }
        Storage::allocate_on_backend(len_bytes, device, Backend::allocate)
    }

    /// Bytes that are all zero. Big blocks of main memory cost nothing until they are touched.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`].
    pub fn zeroed(len_bytes: usize, device: Device) -> Result<Arc<Storage>, TensorError> {
        if device.kind() == DeviceKind::Cpu {
            let ptr = memory::allocate_zeroed(len_bytes)?;
            return Ok(Arc::new(Storage::new(
                ptr,
                len_bytes,
                device,
                Owner::Memory,
            )));
        }
        Storage::allocate_on_backend(len_bytes, device, Backend::allocate_zeroed)
    }

    /// Bytes that somebody else owns. `owner` is dropped with the storage, on whatever thread that happens: if what it
    /// does there needs a lock of its own (an interpreter's, say), it must take it.
    ///
    /// # Safety
    ///
    /// `ptr` must be valid for reading, and unless `read_only` for writing, `len_bytes` bytes on `device` until `owner`
    /// is dropped. It may be null if `len_bytes` is 0.
    pub unsafe fn from_foreign(
        ptr: *mut u8,
        len_bytes: usize,
        device: Device,
        owner: Box<dyn Any + Send + Sync>,
        read_only: bool,
    ) -> Arc<Storage> {
        let ptr = NonNull::new(ptr).unwrap_or(NonNull::dangling());
        let mut storage = Storage::new(ptr, len_bytes, device, Owner::Foreign(owner));
        storage.is_read_only = read_only;
        storage.is_shared = AtomicBool::new(true);
        Arc::new(storage)
    }

    #[inline]
    fn new(ptr: NonNull<u8>, len_bytes: usize, device: Device, owner: Owner) -> Storage {
        Storage {
            ptr,
            len_bytes,
            device,
            is_read_only: false,
            is_shared: AtomicBool::new(false),
            lineage: AtomicU32::new(0),
            version: AtomicU64::new(0),
            var: Var::new(),
            owner,
        }
    }

    fn allocate_on_backend(
        len_bytes: usize,
        device: Device,
        allocate: impl Fn(&'static dyn Backend, u32, usize) -> Result<NonNull<u8>, TensorError>,
    ) -> Result<Arc<Storage>, TensorError> {
        let backend = backend_of(device)?;
        // Backends are not asked for blocks of no bytes.
        let ptr = if len_bytes == 0 {
            NonNull::dangling()
        } else {
            allocate(backend, device.id(), len_bytes)?
        };
        Ok(Arc::new(Storage::new(
            ptr,
            len_bytes,
            device,
            Owner::Backend(backend),
        )))
    }

    /// The first byte, on [`Storage::device`]. Not null; not to be touched if there are no bytes.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Number of bytes.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Where the bytes lie.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The variable that orders access to the bytes.
    #[inline]
    pub fn var(&self) -> &Var {
        &self.var
    }

    /// How often the bytes have been written through [`Storage::bump_version`].
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Says that an operation that writes the bytes has been issued; returns the new version.
    #[inline]
    pub fn bump_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How often the bytes have been given another history through [`Storage::bump_lineage`].
    #[inline]
    pub fn lineage(&self) -> u32 {
        self.lineage.load(Ordering::Relaxed)
    }

    /// Says that an operation that somebody keeps the history of (for gradients) writes the bytes: what else is known of how they were computed
    /// is out of date.
    pub fn bump_lineage(&self) {
        self.lineage.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the bytes must not be written.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Whether foreign code can see the bytes: then calls that touch them return when they are done. Foreign storage is
    /// shared from the start.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Says that foreign code can see the bytes from now on.
    pub fn mark_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Whether somebody else frees the bytes.
    pub fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign(_))
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        match &self.owner {
            // SAFETY: the block was allocated with this length, and with the storage goes the last who knows it.
            Owner::Memory => unsafe { memory::free(self.ptr, self.len_bytes) },
            Owner::Backend(backend) if self.len_bytes > 0 => {
                // SAFETY: as above, on this backend and device.
                unsafe { backend.free(self.device.id(), self.ptr, self.len_bytes) }
            }
            Owner::Backend(_) | Owner::Foreign(_) => {}
        }
    }
}

impl Resource for Storage {
    fn var(&self) -> &Var {
        &self.var
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Storage {{ {} bytes at {:p} on {} }}",
            self.len_bytes, self.ptr, self.device
        )
    }
}
