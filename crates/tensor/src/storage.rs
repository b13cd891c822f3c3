//! Storage: bytes on one device, their owner, and the variable that orders access to them.

use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

use mxnet_engine::{Access, Failure, Resource, Var};

use crate::backend::{Allocation, Backend, backend_of};
use crate::error::TensorError;
use crate::packed::PackedForms;
use crate::{Device, DeviceKind, memory};

/// Bytes on one device. Small ones are inside the storage itself. Arrays that are views of each other share one storage, which never moves.
///
/// Operations access the bytes through [`Storage::ptr`] after the engine has granted them the variable. Nothing in this type reads or writes them.
pub struct Storage {
    /// `None` if the bytes are in `inside`.
    ptr: Option<NonNull<u8>>,
    len_bytes: usize,
    device: Device,
    is_read_only: bool,
    is_shared: AtomicBool,
    lineage: AtomicU32,
    version: AtomicU64,
    var: Var,
    owner: Owner,
    packed: OnceLock<Box<PackedForms>>,
    inside: UnsafeCell<InlineBytes>,
}

/// Bit of `Storage::version` that is set when the version has been read since its last increment. The other bits are the count.
const SEEN: u64 = 1;

/// Bytes inside the storage object, so that a single element needs no separate block.
#[repr(align(16))]
struct InlineBytes(
    #[expect(dead_code, reason = "seen through pointers")] [MaybeUninit<u8>; InlineBytes::BYTES],
);

impl InlineBytes {
    const BYTES: usize = 16;
}

/// The owner of the bytes, which frees them.
enum Owner {
    Memory,
    /// There are no bytes.
    None,
    Backend(&'static dyn Backend),
    /// Another library. Dropping the box frees the bytes.
    Foreign(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>),
}

// SAFETY: the pointer is owned (by the storage or by `owner`, which is `Send + Sync`), and only unsafe code that the engine orders by `var` accesses
// the bytes.
unsafe impl Send for Storage {}
// SAFETY: as above; everything else behind `&Storage` is atomic or constant.
unsafe impl Sync for Storage {}

impl Storage {
    /// Allocates uninitialised bytes, aligned to 64, or to 16 for lengths up to 256.
    ///
    /// # Errors
    ///
    /// `Memory` if there is not enough; `Device` if the device does not exist.
    #[inline]
    pub fn allocate(len_bytes: usize, device: Device) -> Result<Arc<Storage>, TensorError> {
        if device.kind() == DeviceKind::Cpu {
            let ptr = match len_bytes {
                0..=InlineBytes::BYTES => None,
                _ => Some(memory::allocate(len_bytes)?),
            };
            return Ok(Storage::shared(|| {
                Storage::new(ptr, len_bytes, device, Owner::Memory)
            }));
        }
        Storage::allocate_on_backend(len_bytes, device, Backend::allocate)
    }

    /// Allocates bytes that are all zero. Large blocks of main memory get their pages when they are touched.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`].
    pub fn zeroed(len_bytes: usize, device: Device) -> Result<Arc<Storage>, TensorError> {
        if device.kind() == DeviceKind::Cpu {
            if len_bytes <= InlineBytes::BYTES {
                let zeros = [0; InlineBytes::BYTES];
                // SAFETY: the array has `len_bytes` bytes.
                return Ok(unsafe { Storage::of_element(zeros.as_ptr(), len_bytes, device) });
            }
            let ptr = memory::allocate_zeroed(len_bytes)?;
            return Ok(Storage::shared(|| {
                Storage::new(Some(ptr), len_bytes, device, Owner::Memory)
            }));
        }
        Storage::allocate_on_backend(len_bytes, device, Backend::allocate_zeroed)
    }

    /// A constant block of zeros in main memory, for small read-only arrays of zeros.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`], at the first call.
    pub(crate) fn zeros() -> Result<&'static Arc<Storage>, TensorError> {
        /// 64 of the largest elements, or 1024 of the smallest.
        const BYTES: usize = 1024;
        static ZEROS: OnceLock<Arc<Storage>> = OnceLock::new();
        if let Some(zeros) = ZEROS.get() {
            return Ok(zeros);
        }
        let ptr = memory::allocate_zeroed(BYTES)?;
        let mut storage = Storage::new(Some(ptr), BYTES, Device::CPU, Owner::Memory);
        storage.is_read_only = true;
        Ok(ZEROS.get_or_init(|| Arc::new(storage)))
    }

    /// Bytes that another library owns. `owner` is dropped with the storage, on any thread: if its destructor needs a lock (an interpreter's, say),
    /// it must acquire that lock itself.
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
        let mut storage = Storage::new(Some(ptr), len_bytes, device, Owner::Foreign(owner));
        storage.is_read_only = read_only;
        storage.is_shared = AtomicBool::new(true);
        Arc::new(storage)
    }

    /// An abstract storage: it has a length but no bytes. Arrays in it have a shape and a dtype, but no values. Reads fail with `failure`.
    ///
    /// Its address is unique and not valid.
    #[must_use]
    pub fn without_memory(len_bytes: usize, device: Device, failure: Failure) -> Arc<Storage> {
        /// Not canonical: no supported processor has memory at such an address.
        const FIRST: usize = 1 << 56;
        static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
        let address_len = len_bytes.min(1 << 48).next_multiple_of(64).max(64);
        let address = NEXT.fetch_add(address_len, Ordering::Relaxed);
        let ptr = NonNull::new(std::ptr::without_provenance_mut(address));
        let mut storage = Storage::new(ptr, len_bytes, device, Owner::None);
        storage.var = Var::failed(failure);
        Arc::new(storage)
    }

    /// Whether it is abstract, that is, without bytes.
    #[inline]
    pub fn is_abstract(&self) -> bool {
        matches!(self.owner, Owner::None)
    }

    #[inline]
    fn new(ptr: Option<NonNull<u8>>, len_bytes: usize, device: Device, owner: Owner) -> Storage {
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
            packed: OnceLock::new(),
            inside: UnsafeCell::new(InlineBytes([MaybeUninit::uninit(); InlineBytes::BYTES])),
        }
    }

    /// A new storage in main memory (`device` is a name for it) for one element, which is copied from `from`.
    ///
    /// # Safety
    /// `from` is valid for reading `len_bytes` bytes.
    ///
    /// # Panics
    /// If `len_bytes` exceeds the size of the largest element.
    #[inline]
    pub unsafe fn of_element(from: *const u8, len_bytes: usize, device: Device) -> Arc<Storage> {
        assert!(len_bytes <= InlineBytes::BYTES);
        let storage = Storage::shared(|| Storage::new(None, len_bytes, device, Owner::Memory));
        let to = storage.ptr();
        // SAFETY: the caller's promise; the buffer is large enough, as checked above, and new.
        unsafe {
            match len_bytes {
                8 => to.cast::<u64>().write(from.cast::<u64>().read_unaligned()),
                4 => to.cast::<u32>().write(from.cast::<u32>().read_unaligned()),
                _ => std::ptr::copy_nonoverlapping(from, to, len_bytes),
            }
        }
        storage
    }

    /// Constructs the storage directly on the heap. Moving it there from the stack is expensive, because it has just been written.
    #[inline]
    fn shared(make: impl FnOnce() -> Storage) -> Arc<Storage> {
        let uninit = Arc::<Storage>::new_uninit();
        // SAFETY: nobody else has the pointer, and the memory is initialised afterwards.
        unsafe {
            Arc::as_ptr(&uninit)
                .cast_mut()
                .cast::<Storage>()
                .write(make());
            uninit.assume_init()
        }
    }

    fn allocate_on_backend(
        len_bytes: usize,
        device: Device,
        allocate: impl Fn(&'static dyn Backend, u32, usize) -> Result<Allocation, TensorError>,
    ) -> Result<Arc<Storage>, TensorError> {
        let backend = backend_of(device)?;
        // Backends do not allocate blocks of size 0.
        let block = if len_bytes == 0 {
            Allocation::from(NonNull::dangling())
        } else {
            allocate(backend, device.id(), len_bytes)?
        };
        let owner = Owner::Backend(backend);
        let storage = Storage::new(Some(block.ptr), len_bytes, device, owner);
        // The first use of the new storage must come after the pending work on the same bytes.
        for event in block.in_flight {
            storage.var.record_event(event, Access::Read);
        }
        Ok(Arc::new(storage))
    }

    /// Address of the first byte, on [`Storage::device`]. Not null; must not be accessed if there are no bytes.
    #[inline]
    pub fn ptr(&self) -> *mut u8 {
        match self.ptr {
            Some(ptr) => ptr.as_ptr(),
            None => self.inside.get().cast(),
        }
    }

    /// Number of bytes.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Device of the bytes.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The variable that orders access to the bytes.
    #[inline]
    pub fn var(&self) -> &Var {
        &self.var
    }

    /// A number that changes with [`Storage::bump_version`].
    pub fn version(&self) -> u64 {
        let mut version = self.version.load(Ordering::Relaxed);
        if version & SEEN == 0 {
            version = self.version.fetch_or(SEEN, Ordering::Relaxed);
        }
        version >> 1
    }

    /// Must be called when an operation that writes the bytes is issued. Only the first call after a read of the version increments it: most versions
    /// are never read, and an atomic addition takes longer than writing an element.
    #[inline]
    pub fn bump_version(&self) {
        if self.version.load(Ordering::Relaxed) & SEEN != 0 {
            // Adding `SEEN` clears the bit and increments the count. If two threads do so at once, the count grows by one and the bit stays set,
            // which is harmless.
            self.version.fetch_add(SEEN, Ordering::Relaxed);
        }
    }

    /// Number of calls of [`Storage::bump_lineage`].
    #[inline]
    pub fn lineage(&self) -> u32 {
        self.lineage.load(Ordering::Relaxed)
    }

    /// Must be called when a recorded operation writes the bytes: older graph entries of arrays in this storage become stale.
    pub fn bump_lineage(&self) {
        self.lineage.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether writing the bytes is forbidden.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Whether code outside the library can see the bytes. If so, calls that access them return only when they are done. Storage of other owners is
    /// shared from the start.
    ///
    /// If one thread pushes an operation and then calls this, and another thread calls `mark_shared` and then waits for the variable, at least one
    /// sees the other: the fences order each thread's store before its load.
    #[inline]
    pub fn is_shared(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_shared.load(Ordering::Relaxed)
    }

    /// As [`Storage::is_shared`], without its fences, which cost as much as reading a few elements: for a caller that has just acquired the variable.
    #[inline]
    pub fn is_shared_while_held(&self) -> bool {
        self.is_shared.load(Ordering::Acquire)
    }

    /// Marks the bytes as visible to code outside the library. Operations that were pushed before may still be running.
    pub fn mark_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Other forms of the elements, such as packed weights, which kernels keep for the next call.
    pub fn packed_forms(&self) -> &PackedForms {
        self.packed.get_or_init(Box::default)
    }

    /// Whether another library owns the bytes.
    pub fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign(_))
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        if self.device.is_host() || self.is_foreign() {
            // A device may be copying from or to these bytes, and their owner does not know of that work.
            self.var.wait_for_devices();
        }
        let Some(ptr) = self.ptr else { return };
        match &self.owner {
            // SAFETY: the block was allocated with this length, and this storage was its last user.
            Owner::Memory => unsafe { memory::free(ptr, self.len_bytes) },
            Owner::Backend(backend) if self.len_bytes > 0 => {
                let in_flight = self.var.events(Access::Write);
                let in_flight: Vec<_> = in_flight.into_iter().map(|(event, _)| event).collect();
                // SAFETY: as above, on this backend and device.
                unsafe { backend.free(self.device.id(), ptr, self.len_bytes, &in_flight) }
            }
            Owner::Backend(_) | Owner::Foreign(_) | Owner::None => {}
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
            self.len_bytes,
            self.ptr(),
            self.device
        )
    }
}
