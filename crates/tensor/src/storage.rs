//! Storage: bytes on one device, the variable that orders access to them, and who frees them.

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
use crate::{Device, DeviceKind, memory};

/// Bytes on one device, few of them in the storage itself. Arrays that are views of each other share one storage, which stays where it is.
///
/// The bytes are reached through [`Storage::ptr`] by operations that the engine has granted its variable to; nothing
/// here reads or writes them.
pub struct Storage {
    /// `None` for the bytes in `inside`.
    ptr: Option<NonNull<u8>>,
    len_bytes: usize,
    device: Device,
    is_read_only: bool,
    is_shared: AtomicBool,
    lineage: AtomicU32,
    version: AtomicU64,
    var: Var,
    owner: Owner,
    inside: UnsafeCell<SmallBuffer>,
}

/// In `Storage::version`, whose other bits count: somebody has asked for it since it was counted.
const SEEN: u64 = 1;

/// Bytes inside the storage object, so that a single element needs no block.
#[repr(align(16))]
struct SmallBuffer(
    #[expect(dead_code, reason = "seen through pointers")] [MaybeUninit<u8>; SmallBuffer::BYTES],
);

impl SmallBuffer {
    const BYTES: usize = 16;
}

/// Who frees the bytes.
enum Owner {
    Memory,
    /// There are no bytes.
    Nobody,
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
            let ptr = match len_bytes {
                0..=SmallBuffer::BYTES => None,
                _ => Some(memory::allocate(len_bytes)?),
            };
            return Ok(Storage::shared(|| {
                Storage::new(ptr, len_bytes, device, Owner::Memory)
            }));
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
            if len_bytes <= SmallBuffer::BYTES {
                let zeros = [0; SmallBuffer::BYTES];
                // SAFETY: there are as many bytes.
                return Ok(unsafe { Storage::of_element(zeros.as_ptr(), len_bytes, device) });
            }
            let ptr = memory::allocate_zeroed(len_bytes)?;
            return Ok(Storage::shared(|| {
                Storage::new(Some(ptr), len_bytes, device, Owner::Memory)
            }));
        }
        Storage::allocate_on_backend(len_bytes, device, Backend::allocate_zeroed)
    }

    /// Some bytes of main memory that are zero and stay so, for small arrays of which nobody may make anything else.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`], the first time.
    pub(crate) fn zeros() -> Result<&'static Arc<Storage>, TensorError> {
        /// A row of the largest elements, or an image of small ones.
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
        let mut storage = Storage::new(Some(ptr), len_bytes, device, Owner::Foreign(owner));
        storage.is_read_only = read_only;
        storage.is_shared = AtomicBool::new(true);
        Arc::new(storage)
    }

    /// The place of as many bytes, without the bytes: arrays in it have a shape and a dtype, but no values. Reads fail with `failure`.
    ///
    /// Its address is one that no memory has, and no other storage.
    #[must_use]
    pub fn without_memory(len_bytes: usize, device: Device, failure: Failure) -> Arc<Storage> {
        /// Not canonical: no processor that we run on has memory there.
        const FIRST: usize = 1 << 56;
        static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
        let room = len_bytes.min(1 << 48).next_multiple_of(64).max(64);
        let address = NEXT.fetch_add(room, Ordering::Relaxed);
        let ptr = NonNull::new(std::ptr::without_provenance_mut(address));
        let mut storage = Storage::new(ptr, len_bytes, device, Owner::Nobody);
        storage.var = Var::failed(failure);
        Arc::new(storage)
    }

    /// Whether it is the place of bytes that do not exist.
    #[inline]
    pub fn is_abstract(&self) -> bool {
        matches!(self.owner, Owner::Nobody)
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
            inside: UnsafeCell::new(SmallBuffer([MaybeUninit::uninit(); SmallBuffer::BYTES])),
        }
    }

    /// A new storage in main memory, which `device` says, for one element: the bytes that lie at `from`.
    ///
    /// # Safety
    /// `from` is valid for reading `len_bytes` bytes.
    ///
    /// # Panics
    /// If these are more than any element has.
    #[inline]
    pub unsafe fn of_element(from: *const u8, len_bytes: usize, device: Device) -> Arc<Storage> {
        assert!(len_bytes <= SmallBuffer::BYTES);
        let storage = Storage::shared(|| Storage::new(None, len_bytes, device, Owner::Memory));
        let to = storage.ptr();
        // SAFETY: the caller's promise; there is room, checked above, which nobody else knows yet.
        unsafe {
            match len_bytes {
                8 => to.cast::<u64>().write(from.cast::<u64>().read_unaligned()),
                4 => to.cast::<u32>().write(from.cast::<u32>().read_unaligned()),
                _ => std::ptr::copy_nonoverlapping(from, to, len_bytes),
            }
        }
        storage
    }

    /// Constructs the storage in its final place. Moving it there from the stack is expensive, because it has just been written.
    #[inline]
    fn shared(make: impl FnOnce() -> Storage) -> Arc<Storage> {
        let place = Arc::<Storage>::new_uninit();
        // SAFETY: nobody else knows the place, and it is initialised afterwards.
        unsafe {
            Arc::as_ptr(&place)
                .cast_mut()
                .cast::<Storage>()
                .write(make());
            place.assume_init()
        }
    }

    fn allocate_on_backend(
        len_bytes: usize,
        device: Device,
        allocate: impl Fn(&'static dyn Backend, u32, usize) -> Result<Allocation, TensorError>,
    ) -> Result<Arc<Storage>, TensorError> {
        let backend = backend_of(device)?;
        // Backends are not asked for blocks of no bytes.
        let block = if len_bytes == 0 {
            Allocation::from(NonNull::dangling())
        } else {
            allocate(backend, device.id(), len_bytes)?
        };
        let owner = Owner::Backend(backend);
        let storage = Storage::new(Some(block.ptr), len_bytes, device, owner);
        // Whoever uses the new storage first comes after those who used the same bytes before.
        for event in block.in_flight {
            storage.var.record_event(event, Access::Read);
        }
        Ok(Arc::new(storage))
    }

    /// The first byte, on [`Storage::device`]. Not null; not to be touched if there are no bytes.
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

    /// A number that is another one after [`Storage::bump_version`] than before.
    pub fn version(&self) -> u64 {
        let mut version = self.version.load(Ordering::Relaxed);
        if version & SEEN == 0 {
            version = self.version.fetch_or(SEEN, Ordering::Relaxed);
        }
        version >> 1
    }

    /// Says that an operation that writes the bytes has been issued. Counted is only the first one since somebody asked for the version: most
    /// storages are never asked, and an atomic addition takes longer than to write an element.
    #[inline]
    pub fn bump_version(&self) {
        if self.version.load(Ordering::Relaxed) & SEEN != 0 {
            // Ends `SEEN` and counts one; where two threads do so at once, it counts one and leaves `SEEN`, which is as good.
            self.version.fetch_add(SEEN, Ordering::Relaxed);
        }
    }

    /// Number of calls of [`Storage::bump_lineage`].
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
    ///
    /// Of one thread that pushes an operation and then asks this, and another that marks and then waits for the variable, at
    /// least one sees the other: the fences order each thread's store before its load.
    #[inline]
    pub fn is_shared(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Says that foreign code can see the bytes from now on. What was pushed before may still be running.
    pub fn mark_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether somebody else frees the bytes.
    pub fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign(_))
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        if self.device.is_host() || self.is_foreign() {
            // A device may be copying from or to these bytes, and their owner does not know of its work.
            self.var.wait_for_devices();
        }
        let Some(ptr) = self.ptr else { return };
        match &self.owner {
            // SAFETY: the block was allocated with this length, and with the storage goes the last who knows it.
            Owner::Memory => unsafe { memory::free(ptr, self.len_bytes) },
            Owner::Backend(backend) if self.len_bytes > 0 => {
                let in_flight = self.var.events(Access::Write);
                let in_flight: Vec<_> = in_flight.into_iter().map(|(event, _)| event).collect();
                // SAFETY: as above, on this backend and device.
                unsafe { backend.free(self.device.id(), ptr, self.len_bytes, &in_flight) }
            }
            Owner::Backend(_) | Owner::Foreign(_) | Owner::Nobody => {}
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
