//! The trait `Backend`, which each kind of device implements, the registered backends, and the CPU's backend.

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use mxnet_engine::{Event, Failure, Stream};

use crate::error::{DeviceError, TensorError, Unsupported};
use crate::memory::MemoryStats;
use crate::{Device, DeviceKind, memory};

/// Memory of one device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that can be allocated now.
    pub free: usize,
    /// All bytes.
    pub total: usize,
}

/// New memory of a device.
pub struct Allocation {
    /// The first byte.
    pub ptr: NonNull<u8>,
    /// Pending work on the same bytes by their previous owner. The first use of the memory must come after it.
    pub in_flight: Vec<Arc<dyn Event>>,
}

impl From<NonNull<u8>> for Allocation {
    fn from(ptr: NonNull<u8>) -> Allocation {
        Allocation {
            ptr,
            in_flight: Vec::new(),
        }
    }
}

/// Source and destination of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// First byte written.
    pub dst: *mut u8,
    /// Device of `dst`.
    pub dst_device: Device,
    /// First byte read.
    pub src: *const u8,
    /// Device of `src`.
    pub src_device: Device,
    /// Number of bytes.
    pub len_bytes: usize,
}

/// A kind of device: memory, copies, and streams of work.
pub trait Backend: Send + Sync + 'static {
    /// The kind it implements.
    fn kind(&self) -> DeviceKind;

    /// Number of devices of this kind.
    fn count(&self) -> usize;

    /// If there are no devices: the reason, and how to make one available.
    fn absence(&self) -> Option<String> {
        None
    }

    /// Allocates uninitialised memory on device `id`, aligned to 64 bytes (16 for lengths up to 256). `len_bytes` is not 0.
    ///
    /// # Errors
    ///
    /// `Memory` when there is not enough; `Device` when the device fails.
    fn allocate(&self, id: u32, len_bytes: usize) -> Result<Allocation, TensorError>;

    /// As [`Backend::allocate`], with all bytes zero once the work in [`Allocation::in_flight`] has ended.
    ///
    /// # Errors
    ///
    /// As [`Backend::allocate`].
    fn allocate_zeroed(&self, id: u32, len_bytes: usize) -> Result<Allocation, TensorError>;

    /// Frees a block. Its memory must not be reused before the work behind `in_flight` has ended: the backend waits for these events, frees in the
    /// order of a stream that waits for them, or returns them in [`Allocation::in_flight`] with the next allocation.
    ///
    /// # Safety
    ///
    /// The block must come from this backend's `allocate` with this `id` and length. Nobody uses it any more except the pending work.
    unsafe fn free(
        &self,
        id: u32,
        block: NonNull<u8>,
        len_bytes: usize,
        in_flight: &[Arc<dyn Event>],
    );

    /// Copies bytes between this backend's devices and main memory, in either direction. With a stream the copy is enqueued there and the call may
    /// return before it is done; without a stream it is done when the call returns.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a pair of devices that the backend cannot copy between; `Device` when the device fails.
    ///
    /// # Safety
    ///
    /// Both ranges must be valid on their devices until the copy is done, and must not overlap. Until then nothing may write to the source or access
    /// the destination.
    unsafe fn copy(
        &self,
        transfer: Transfer,
        stream: Option<&dyn Stream>,
    ) -> Result<(), TensorError>;

    /// Whether [`Backend::copy`] copies between two devices of this kind. If not, elements go through main memory.
    fn copies_between_devices(&self) -> bool {
        true
    }

    /// The calling thread's stream on device `id`; `None` for devices whose work is always done when a call returns.
    ///
    /// # Errors
    ///
    /// `Device` if a stream cannot be made.
    fn stream(&self, id: u32) -> Result<Option<Arc<dyn Stream>>, TensorError>;

    /// The calling thread's stream for copies from and to device `id`. If it differs from [`Backend::stream`], copies overlap with kernels.
    ///
    /// # Errors
    ///
    /// As [`Backend::stream`].
    fn copy_stream(&self, id: u32) -> Result<Option<Arc<dyn Stream>>, TensorError> {
        self.stream(id)
    }

    /// Blocks until the work in all streams of all devices of this kind has ended.
    ///
    /// # Errors
    ///
    /// A failure of that work that no wait has returned yet.
    fn wait_all(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Free and total memory of device `id`.
    fn memory(&self, id: u32) -> MemoryInfo;

    /// Statistics of the backend's allocator for device `id`; `None` if it has none.
    fn memory_stats(&self, _id: u32) -> Option<MemoryStats> {
        None
    }

    /// Frees the memory that the allocator caches for device `id`.
    ///
    /// # Errors
    ///
    /// `Device` when the device fails.
    fn empty_cache(&self, _id: u32) -> Result<(), TensorError> {
        Ok(())
    }
}

/// Main memory. All `cpu(i)` are the same memory.
struct Cpu;

impl Backend for Cpu {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn count(&self) -> usize {
        1
    }

    fn allocate(&self, _id: u32, len_bytes: usize) -> Result<Allocation, TensorError> {
        memory::allocate(len_bytes).map(Allocation::from)
    }

    fn allocate_zeroed(&self, _id: u32, len_bytes: usize) -> Result<Allocation, TensorError> {
        memory::allocate_zeroed(len_bytes).map(Allocation::from)
    }

    unsafe fn free(
        &self,
        _id: u32,
        block: NonNull<u8>,
        len_bytes: usize,
        _in_flight: &[Arc<dyn Event>],
    ) {
        // SAFETY: the caller's promise.
        unsafe { memory::free(block, len_bytes) }
    }

    unsafe fn copy(
        &self,
        transfer: Transfer,
        _stream: Option<&dyn Stream>,
    ) -> Result<(), TensorError> {
        if !transfer.dst_device.is_host() || !transfer.src_device.is_host() {
            return Err(Unsupported::Copy {
                from: transfer.src_device,
                to: transfer.dst_device,
            }
            .into());
        }
        // SAFETY: the caller promises two valid ranges that do not overlap.
        unsafe {
            transfer
                .dst
                .copy_from_nonoverlapping(transfer.src, transfer.len_bytes)
        };
        Ok(())
    }

    fn stream(&self, _id: u32) -> Result<Option<Arc<dyn Stream>>, TensorError> {
        Ok(None)
    }

    fn memory(&self, _id: u32) -> MemoryInfo {
        MemoryInfo {
            free: memory::available_memory(),
            total: memory::memory_limit(),
        }
    }

    fn memory_stats(&self, _id: u32) -> Option<MemoryStats> {
        Some(memory::stats())
    }

    fn empty_cache(&self, _id: u32) -> Result<(), TensorError> {
        memory::trim();
        Ok(())
    }
}

static CPU: Cpu = Cpu;
static OTHERS: [OnceLock<Box<dyn Backend>>; DeviceKind::MAX] =
    [const { OnceLock::new() }; DeviceKind::MAX];

/// Registers a backend for the rest of the process.
///
/// # Errors
///
/// `Device` if its kind has a backend already, as `cpu` always has.
pub fn register_backend(backend: Box<dyn Backend>) -> Result<(), TensorError> {
    let kind = backend.kind();
    let registered = DeviceError::Registered { kind };
    if kind == DeviceKind::Cpu {
        return Err(registered.into());
    }
    OTHERS[kind.index()]
        .set(backend)
        .map_err(|_| registered.into())
}

/// The backend of a kind of device, if there is one.
pub fn backend(kind: DeviceKind) -> Option<&'static dyn Backend> {
    match kind {
        DeviceKind::Cpu => Some(&CPU),
        other => OTHERS[other.index()].get().map(|backend| &**backend),
    }
}

/// Blocks until the pending work of all devices has ended.
///
/// # Errors
///
/// A failure of that work that no wait has returned yet.
pub fn wait_for_devices() -> Result<(), Failure> {
    let backends = OTHERS.iter().filter_map(OnceLock::get);
    backends
        .map(|backend| backend.wait_all())
        .fold(Ok(()), Result::and)
}

/// Number of devices of a kind; 0 without a backend.
pub fn num_devices(kind: DeviceKind) -> usize {
    backend(kind).map_or(0, Backend::count)
}

/// The backend of a device. Checks that the device exists.
///
/// # Errors
///
/// `Device` when its kind has no backend or its number is too high.
pub fn backend_of(device: Device) -> Result<&'static dyn Backend, TensorError> {
    let backend = backend(device.kind()).ok_or(DeviceError::NoBackend { device })?;
    let count = backend.count();
    // `cpu(3)` is the same memory as `cpu(0)`, as in MXNet.
    if device.kind() != DeviceKind::Cpu && device.id() as usize >= count {
        if count == 0
            && let Some(reason) = backend.absence()
        {
            let reason = reason.into();
            return Err(DeviceError::Absent { device, reason }.into());
        }
        return Err(DeviceError::OutOfRange { device, count }.into());
    }
    Ok(backend)
}
