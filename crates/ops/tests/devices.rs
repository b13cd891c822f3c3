//! A device that another crate provides: memory through `Backend`, kernels through `variants`, everything else as on the CPU.

use std::alloc::{Layout as Block, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxnet_core::{Array, Error, KernelContext, Result, device_kernels};
use mxnet_engine::{Event, Stream};
use mxnet_ops::creation;
use mxnet_tensor::{
    Allocation, Backend, DType, Device, DeviceKind, MemoryInfo, TensorError, Transfer,
    register_backend,
};

/// Number of blocks that the device has allocated and not freed.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// A device of a different kind, with its memory in host memory.
struct Simulated;

fn block(len_bytes: usize) -> Block {
    Block::from_size_align(len_bytes, 64).expect("lengths come from checked shapes")
}

impl Backend for Simulated {
    fn kind(&self) -> DeviceKind {
        DeviceKind::CpuPinned
    }

    fn count(&self) -> usize {
        1
    }

    fn allocate(&self, _id: u32, len_bytes: usize) -> std::result::Result<Allocation, TensorError> {
        LIVE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the length is not 0, by the trait's contract.
        let ptr = NonNull::new(unsafe { alloc(block(len_bytes)) });
        Ok(ptr.expect("the test's blocks are small").into())
    }

    fn allocate_zeroed(
        &self,
        _id: u32,
        len_bytes: usize,
    ) -> std::result::Result<Allocation, TensorError> {
        LIVE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the length is not 0, by the trait's contract.
        let ptr = NonNull::new(unsafe { alloc_zeroed(block(len_bytes)) });
        Ok(ptr.expect("the test's blocks are small").into())
    }

    unsafe fn free(
        &self,
        _id: u32,
        ptr: NonNull<u8>,
        len_bytes: usize,
        _in_flight: &[Arc<dyn Event>],
    ) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the block came from `allocate` with this length, by the trait's contract.
        unsafe { dealloc(ptr.as_ptr(), block(len_bytes)) }
    }

    unsafe fn copy(
        &self,
        transfer: Transfer,
        _stream: Option<&dyn Stream>,
    ) -> std::result::Result<(), TensorError> {
        // SAFETY: two valid ranges that do not overlap, by the trait's contract.
        unsafe {
            transfer
                .dst
                .copy_from_nonoverlapping(transfer.src, transfer.len_bytes)
        };
        Ok(())
    }

    fn stream(&self, _id: u32) -> std::result::Result<Option<Arc<dyn Stream>>, TensorError> {
        Ok(None)
    }

    fn memory(&self, _id: u32) -> MemoryInfo {
        MemoryInfo {
            free: 1 << 30,
            total: 1 << 30,
        }
    }
}

/// The elements of a dense float64 tensor of the simulated device.
#[expect(
    clippy::mut_from_ref,
    reason = "the tensor's bytes are not the reference's: the engine orders access to them"
)]
fn elements(tensor: &mxnet_tensor::Tensor) -> &mut [f64] {
    assert!(tensor.dtype() == DType::F64 && tensor.layout().is_contiguous());
    // SAFETY: dense, of this type, in host memory; the engine granted access to the kernel that asks.
    unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast::<f64>(), tensor.len()) }
}

fn add(context: &KernelContext) -> Result<()> {
    for (i, y) in elements(context.output(0)).iter_mut().enumerate() {
        *y = elements(context.input(0))[i] + elements(context.input(1))[i];
    }
    Ok(())
}

fn full(context: &KernelContext) -> Result<()> {
    elements(context.output(0)).fill(context.scalar("value").map_or(0.0, |v| v.as_f64()));
    Ok(())
}

#[test]
fn operators_run_on_a_device_that_brings_memory_and_kernels() -> Result<()> {
    register_backend(Box::new(Simulated))?;
    device_kernels::register("add", DeviceKind::CpuPinned, 0, add)?;
    device_kernels::register("filled", DeviceKind::CpuPinned, 0, full)?;
    let device = Device::new(DeviceKind::CpuPinned, 0);
    {
        let x = creation::full(&[2, 3], mxnet_tensor::Scalar::F64(1.5), DType::F64, device)?;
        assert_eq!(x.device(), device);
        // Views need no kernel.
        let y = x.add(&x)?.reshape(&[3, 2])?;
        assert_eq!((y.device(), y.shape()), (device, &[3, 2][..]));
        y.wait_to_read()?;
        assert_eq!(elements(y.tensor()), [3.0; 6]);
        // A missing kernel and mixed devices are errors that say so.
        assert!(
            matches!(x.mul(&x), Err(Error::Device(fault)) if fault.problem.contains("no kernel for cpu_pinned(0)"))
        );
        let here = Array::from_slice(&[1.0_f64; 6], &[2, 3])?;
        assert!(
            matches!(x.add(&here), Err(Error::Device(fault)) if fault.problem.contains("different devices"))
        );
    }
    assert_eq!(
        LIVE.load(Ordering::Relaxed),
        0,
        "every block went back to its device"
    );
    assert!(matches!(
        device_kernels::register("no_such", DeviceKind::CpuPinned, 0, add),
        Err(Error::Value(_))
    ));
    // A view has no kernel to replace.
    assert!(matches!(
        device_kernels::register("transpose", DeviceKind::Cpu, 1, add),
        Err(Error::Value(_))
    ));
    Ok(())
}
