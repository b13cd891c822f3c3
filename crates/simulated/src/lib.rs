//! A simulated device for tests of code that must work on a GPU. The host cannot access its memory (a page fault), work is done later on another
//! thread, and only streams and events order it.
//!
//! It uses the CPU's kernels. Its memory is made accessible while they run, and for copies.

mod memory;
mod stream;

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use mxnet_core::{Error, KernelContext, Result, cpu, device_kernels};
use mxnet_engine::{Event, Failure, Stream};
use mxnet_kernels::Serial;
use mxnet_tensor::{
    Allocation, Backend, Device, DeviceKind, MemoryInfo, TensorError, Transfer, register_backend,
};

use crate::stream::Queue;

/// The name of the kind of device.
pub const NAME: &str = "sim";

/// Number of devices.
const COUNT: usize = 4;

/// Registers the devices `sim(0)` to `sim(3)` for the rest of the process. Returns their kind.
///
/// # Errors
/// [`Error::Device`] if the kind cannot be added.
pub fn register() -> Result<DeviceKind> {
    static KIND: OnceLock<Result<DeviceKind>> = OnceLock::new();
    KIND.get_or_init(|| {
        let kind = DeviceKind::add(NAME, false)?;
        register_backend(Box::new(Simulated { kind }))?;
        device_kernels::register_for_all(kind, kernel);
        Ok(kind)
    })
    .clone()
}

/// The backend.
struct Simulated {
    kind: DeviceKind,
}

impl Backend for Simulated {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn count(&self) -> usize {
        COUNT
    }

    fn allocate(&self, id: u32, len_bytes: usize) -> std::result::Result<Allocation, TensorError> {
        memory::allocate(len_bytes, Device::new(self.kind, id)).map(Allocation::from)
    }

    fn allocate_zeroed(
        &self,
        id: u32,
        len_bytes: usize,
    ) -> std::result::Result<Allocation, TensorError> {
        // New pages are zero already.
        self.allocate(id, len_bytes)
    }

    unsafe fn free(
        &self,
        _id: u32,
        block: NonNull<u8>,
        len_bytes: usize,
        in_flight: &[Arc<dyn Event>],
    ) {
        // SAFETY: as the caller promises.
        unsafe { memory::free(block, len_bytes, in_flight) }
    }

    unsafe fn copy(
        &self,
        transfer: Transfer,
        stream: Option<&dyn Stream>,
    ) -> std::result::Result<(), TensorError> {
        let copy = memory::Copy(transfer);
        match stream.and_then(|stream| stream.as_any().downcast_ref::<Queue>()) {
            Some(queue) => queue.enqueue(move || {
                // SAFETY: the caller's promise lasts until the copy is done.
                unsafe { copy.run() };
                Ok(())
            }),
            // SAFETY: as the caller promises.
            None => unsafe { copy.run() },
        }
        Ok(())
    }

    fn stream(&self, id: u32) -> std::result::Result<Option<Arc<dyn Stream>>, TensorError> {
        Ok(Some(stream::of_thread(id)))
    }

    fn memory(&self, _id: u32) -> MemoryInfo {
        let total = 1 << 34;
        let free = total - memory::in_use().min(total);
        MemoryInfo { free, total }
    }
}

/// The kernel for every operator that has a CPU kernel.
fn kernel(context: &KernelContext) -> Result<()> {
    let stream = context
        .stream
        .and_then(|x| x.as_any().downcast_ref::<Queue>());
    let Some(queue) = stream else {
        return Err(Error::internal(
            context.op.name,
            "launched without a stream of its device",
        ));
    };
    for (i, x) in context.inputs.iter().enumerate() {
        if let Some(x) = x
            && x.device() != context.device
            && context.number(i).is_none()
        {
            let problem = format!(
                "operand {i} is on {}, the kernel on {}",
                x.device(),
                context.device
            );
            return Err(Error::internal(context.op.name, problem));
        }
    }
    let (work, origin) = (context.to_owned(), mxnet_core::call_site::current());
    queue.enqueue(move || {
        let tensors = work.inputs.iter().flatten().chain(&work.outputs);
        let opened: Vec<_> = tensors
            .filter(|x| !x.device().is_host())
            .filter_map(|x| memory::open(x.storage().ptr()))
            .collect();
        let result = memory::as_kernel(|| work.run(&Serial, None, cpu::run_kernel));
        drop(opened);
        result.map_err(|e| Failure::new(Box::new(e), origin.as_deref().unwrap_or("")))
    });
    Ok(())
}
