//! Implements the device backend interface of the tensor and engine crates.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::{Arc, Once, OnceLock};

use mxnet_core::Result;
use mxnet_engine::{Event, Failure, Stream};
use mxnet_tensor::error::Unsupported;
use mxnet_tensor::memory::MemoryStats;
use mxnet_tensor::{
    Allocation, Backend, Device, DeviceKind, MemoryInfo, TensorError, Transfer, register_backend,
};

use crate::driver::{self, Address, Context};
use crate::error::check;
use crate::stream::{self, Queue};
use crate::{kernels, pinned, pool};

/// Registers the devices `gpu(0)`, ... for the rest of the process. Driver and libraries are loaded when a device is first used.
///
/// # Errors
/// [`mxnet_core::Error::Device`] if this device kind already has a backend.
pub fn register() -> Result<()> {
    static REGISTERED: OnceLock<Result<()>> = OnceLock::new();
    REGISTERED
        .get_or_init(|| Ok(register_backend(Box::new(Cuda))?))
        .clone()
}

/// Properties of a device.
#[derive(Clone, Debug)]
pub struct CudaDevice {
    /// Product name.
    pub name: String,
    /// Major and minor version of the compute capability.
    pub compute_capability: (i32, i32),
    /// Total memory in bytes.
    pub total_bytes: usize,
}

/// The properties of all devices.
///
/// # Errors
/// [`mxnet_core::Error::Device`] if one cannot be used.
pub fn devices() -> Result<Vec<CudaDevice>> {
    let describe = |id: u32| {
        let (_, context) = Context::enter(id)?;
        Ok(CudaDevice {
            name: driver::device_name(id)?,
            compute_capability: (context.arch / 10, context.arch % 10),
            total_bytes: pool::info(id).total,
        })
    };
    (0..driver::count() as u32).map(describe).collect()
}

/// The backend.
struct Cuda;

impl Backend for Cuda {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Gpu
    }

    fn count(&self) -> usize {
        let count = driver::count();
        if count > 0 {
            static KERNELS: Once = Once::new();
            // The names of the kernels' operators are constants of this build. A wrong name is a bug, which the tests find.
            KERNELS.call_once(|| {
                if let Err(error) = kernels::register(DeviceKind::Gpu) {
                    eprintln!("mxnet: kernels of gpu are not complete: {error}");
                }
            });
        }
        count
    }

    fn absence(&self) -> Option<String> {
        match driver::get() {
            Err(problem) => Some(problem.to_owned()),
            Ok(_) => Some("the driver works, but finds no device".to_owned()),
        }
    }

    fn allocate(&self, id: u32, len_bytes: usize) -> std::result::Result<Allocation, TensorError> {
        pool::allocate(id, len_bytes)
    }

    fn allocate_zeroed(
        &self,
        id: u32,
        len_bytes: usize,
    ) -> std::result::Result<Allocation, TensorError> {
        pool::allocate_zeroed(id, len_bytes)
    }

    unsafe fn free(
        &self,
        id: u32,
        block: NonNull<u8>,
        _len_bytes: usize,
        in_flight: &[Arc<dyn Event>],
    ) {
        pool::free(id, block, in_flight);
    }

    unsafe fn copy(
        &self,
        transfer: Transfer,
        stream: Option<&dyn Stream>,
    ) -> std::result::Result<(), TensorError> {
        let (to, from) = (transfer.dst_device, transfer.src_device);
        let is_ours = |device: Device| device.kind() == DeviceKind::Gpu;
        let id = match is_ours(to) {
            true => to.id(),
            false => from.id(),
        };
        let given = stream.and_then(|stream| stream.as_any().downcast_ref::<Queue>());
        let own;
        let queue = match given {
            Some(queue) => queue,
            None => {
                own = stream::for_copies(id)?;
                &own
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (is_ours(to), is_ours(from)) {
                (true, true) => between_devices(&transfer, queue)?,
                (true, false) if from.is_host() => upload(&transfer, queue)?,
                (false, true) if to.is_host() => download(&transfer, queue)?,
                _ => return Err(Unsupported::Copy { from, to }.into()),
            }
        }
        match given {
            Some(_) => Ok(()),
            None => queue.synchronize(),
        }
    }

    fn stream(&self, id: u32) -> std::result::Result<Option<Arc<dyn Stream>>, TensorError> {
        Ok(Some(stream::for_kernels(id)?))
    }

    fn copy_stream(&self, id: u32) -> std::result::Result<Option<Arc<dyn Stream>>, TensorError> {
        Ok(Some(stream::for_copies(id)?))
    }

    fn wait_all(&self) -> std::result::Result<(), Failure> {
        stream::wait_all()
    }

    fn memory(&self, id: u32) -> MemoryInfo {
        pool::info(id)
    }

    fn memory_stats(&self, id: u32) -> Option<MemoryStats> {
        Some(pool::stats(id))
    }

    fn empty_cache(&self, id: u32) -> std::result::Result<(), TensorError> {
        pool::empty_cache(id)
    }
}

/// Copies within a device or between two.
///
/// # Safety
/// Same as for [`Backend::copy`].
unsafe fn between_devices(
    transfer: &Transfer,
    queue: &Queue,
) -> std::result::Result<(), TensorError> {
    let (to, from) = (transfer.dst_device.id(), transfer.src_device.id());
    let (dst, src) = (transfer.dst as Address, transfer.src as Address);
    let (_, from_context) = Context::enter(from)?;
    let (_, to_context) = Context::enter(to)?;
    if to != from {
        allow_direct_copies(from, to)?;
    }
    // The device of the stream must be current while work is enqueued.
    let (driver, _) = Context::enter(queue.id())?;
    // SAFETY: guaranteed by the caller.
    let status = unsafe {
        match to == from {
            true => (driver.cuMemcpyDtoDAsync)(dst, src, transfer.len_bytes, queue.handle()),
            false => (driver.cuMemcpyPeerAsync)(
                dst,
                to_context.handle,
                src,
                from_context.handle,
                transfer.len_bytes,
                queue.handle(),
            ),
        }
    };
    check(to, "copying between devices", status)
}

/// Enables peer access from device `to` to the memory of device `from`, if the hardware has it; otherwise copies go through main memory.
fn allow_direct_copies(from: u32, to: u32) -> std::result::Result<(), TensorError> {
    static ALLOWED: parking_lot::Mutex<Vec<(u32, u32)>> = parking_lot::Mutex::new(Vec::new());
    /// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
    const ALREADY: driver::Status = 704;
    let mut allowed = ALLOWED.lock();
    if allowed.contains(&(from, to)) {
        return Ok(());
    }
    let (_, of_memory) = Context::enter(from)?;
    let (driver, reader) = Context::enter(to)?;
    let mut can = 0;
    // SAFETY: `can` is writable; both contexts are valid, and that of the reader is current.
    let status = unsafe {
        match (driver.cuDeviceCanAccessPeer)(&raw mut can, reader.device, of_memory.device) {
            0 if can != 0 => (driver.cuCtxEnablePeerAccess)(of_memory.handle, 0),
            status => status,
        }
    };
    if status != ALREADY {
        check(to, "reading the memory of another device", status)?;
    }
    if can != 0 {
        pool::allow_access(from, reader)?;
    }
    allowed.push((from, to));
    Ok(())
}

/// Copies from main memory, in parts through pinned memory. The source may be reused when this returns.
///
/// # Safety
/// Same as for [`Backend::copy`].
unsafe fn upload(transfer: &Transfer, queue: &Queue) -> std::result::Result<(), TensorError> {
    let id = transfer.dst_device.id();
    let mut done = 0;
    while done < transfer.len_bytes {
        let part_bytes = (transfer.len_bytes - done).min(pinned::PART_BYTES);
        let block = pinned::take(id, part_bytes)?;
        let (driver, _) = Context::enter(id)?;
        // SAFETY: the caller guarantees both ranges; the block has that many bytes, and nobody else uses it before the mark is reached.
        let status = unsafe {
            let from = transfer.src.add(done);
            std::ptr::copy_nonoverlapping(from, block.ptr(), part_bytes);
            let to = transfer.dst as Address + done as Address;
            (driver.cuMemcpyHtoDAsync)(to, block.ptr().cast(), part_bytes, queue.handle())
        };
        pinned::give_back(block, Some(queue.mark()));
        check(id, "copying to it", status)?;
        done += part_bytes;
    }
    Ok(())
}

/// Copies to main memory and waits until the copy is done. While the device copies one part to pinned memory, the host copies the part before out of
/// it.
///
/// # Safety
/// Same as for [`Backend::copy`].
unsafe fn download(transfer: &Transfer, queue: &Queue) -> std::result::Result<(), TensorError> {
    let id = transfer.src_device.id();
    let mut waiting = None;
    let mut done = 0;
    loop {
        let started = done < transfer.len_bytes;
        let mut next = None;
        if started {
            let part_bytes = (transfer.len_bytes - done).min(pinned::PART_BYTES);
            let block = pinned::take(id, part_bytes)?;
            let (driver, _) = Context::enter(id)?;
            let from = transfer.src as Address + done as Address;
            // SAFETY: the caller guarantees the source; the block has that many bytes, and nobody else uses it.
            let status = unsafe {
                (driver.cuMemcpyDtoHAsync)(block.ptr().cast(), from, part_bytes, queue.handle())
            };
            check(id, "copying from it", status)?;
            next = Some((block, queue.mark(), done, part_bytes));
            done += part_bytes;
        }
        if let Some((block, mark, start, part_bytes)) = waiting.replace(next).flatten() {
            // A failure is also reported by the event after the copy, for which the reader of the destination waits.
            if mark.wait().is_ok() {
                // SAFETY: the caller guarantees the destination; the device has filled the block.
                unsafe {
                    std::ptr::copy_nonoverlapping(block.ptr(), transfer.dst.add(start), part_bytes);
                }
            }
            pinned::give_back(block, None);
        }
        if !started {
            return Ok(());
        }
    }
}
