//! Kernel launches.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use mxnet_core::{Error, KernelContext, Result};
use smallvec::SmallVec;

use crate::compile;
use crate::driver::{Context, Handle};
use crate::error::check;
use crate::fault::Fault;
use crate::stream::Queue;

/// Grid of a launch. It depends only on sizes, never on the GPU, so that results do not either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Blocks along x, y and z: up to 2^31 - 1, 65535 and 65535.
    pub blocks: [u32; 3],
    /// Threads per block along x, y and z; at most 1024 in total.
    pub threads: [u32; 3],
    /// Bytes of `extern __shared__` memory.
    pub shared_bytes: u32,
}

/// Threads per block for elementwise kernels.
const BLOCK: u32 = 256;
/// Maximum number of blocks of elementwise kernels; with more elements, each thread computes several.
const MAX_BLOCKS: usize = 1 << 16;

impl Grid {
    /// Blocks of 256 threads for `len` elements; with many elements each thread computes several (grid-stride loop).
    pub fn of_len(len: usize) -> Grid {
        Grid::of_blocks(
            len.div_ceil(BLOCK as usize).clamp(1, MAX_BLOCKS) as u32,
            BLOCK,
        )
    }

    /// A one-dimensional grid.
    pub fn of_blocks(blocks: u32, threads: u32) -> Grid {
        Grid {
            blocks: [blocks, 1, 1],
            threads: [threads, 1, 1],
            shared_bytes: 0,
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Arg<'a> {
    /// The address of the first element of an output.
    Output(usize),
    /// An address on the device.
    Pointer(u64),
    I64(i64),
    U64(u64),
    F64(f64),
    /// A struct by value: the bytes of a `#[repr(C)]` struct that the kernel source declares identically.
    Bytes(&'a [u8]),
}

/// The argument through which a kernel reports an invalid value, such as an index out of range: the kernel calls
/// `report_fault(slot, first, second, third)` of the prelude with the address that this returns ([`Arg::Pointer`]). The results of this call then
/// fail with the error that `describe` makes of the three numbers, and so does everything computed from them. The error is raised where a value is
/// read.
///
/// # Errors
/// [`Error::Device`] if there is no memory for the report.
pub(crate) fn fault(
    context: &KernelContext,
    describe: impl Fn([i64; 3]) -> Error + Send + Sync + 'static,
) -> Result<Arg<'static>> {
    let queue = queue_of(context)?;
    let fault = Arc::new(Fault::new(context, describe)?);
    let address = fault.address();
    queue.add_fault(fault);
    Ok(Arg::Pointer(address))
}

/// The stream of a call.
///
/// # Errors
/// [`Error::Internal`] if there is none.
pub(crate) fn queue_of<'a>(context: &KernelContext<'a>) -> Result<&'a Queue> {
    let stream = context
        .stream
        .and_then(|stream| stream.as_any().downcast_ref());
    stream
        .ok_or_else(|| Error::internal(context.op.name, "launched without a stream of its device"))
}

/// A function of a kernel source, loaded on a device.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub handle: Handle,
    /// Maximum dynamic shared memory that is enabled for it, in bytes.
    pub shared_bytes: u32,
}

thread_local! {
    /// Functions that this thread has launched, by device and key: a lookup needs no lock.
    static LAUNCHED: RefCell<Vec<HashMap<String, Function>>> = const { RefCell::new(Vec::new()) };
}

/// Maximum dynamic shared memory of a kernel without opting in.
const SHARED_BYTES: u32 = 48 << 10;

/// Launches the function `kernel` of a source on the stream of the call. `key` identifies the source with all parameters of its generation
/// (`add:f32:contiguous`); `source` is called once per key and process. The prelude is prepended.
///
/// # Errors
/// [`Error::Device`] if the compiler is missing or the device refuses the launch; [`Error::Internal`] if the source does not compile.
pub(crate) fn launch(
    call: &KernelContext,
    key: &str,
    source: impl FnOnce() -> String,
    grid: Grid,
    args: &[Arg<'_>],
) -> Result<()> {
    let queue = queue_of(call)?;
    let id = queue.id();
    let (driver, context) = Context::enter(id)?;
    let function = LAUNCHED.with_borrow_mut(|devices| {
        let index = id as usize;
        if devices.len() <= index {
            devices.resize_with(index + 1, HashMap::new);
        }
        if let Some(function) = devices[index].get(key)
            && function.shared_bytes >= grid.shared_bytes
        {
            return Ok(*function);
        }
        let mut function = compile::function(call.op.name, context, key, source)?;
        if grid.shared_bytes > SHARED_BYTES {
            /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
            const MAX_DYNAMIC: i32 = 8;
            let most = context.max_shared_bytes;
            if grid.shared_bytes > most {
                let problem = format!(
                    "needs {} bytes of shared memory, {} has {most}",
                    grid.shared_bytes, call.device
                );
                return Err(Error::unsupported(call.op.name, problem));
            }
            // SAFETY: the function is loaded.
            let status =
                unsafe { (driver.cuFuncSetAttribute)(function.handle, MAX_DYNAMIC, most as i32) };
            check(id, "asking for shared memory", status)?;
            function.shared_bytes = most;
        }
        devices[index].insert(key.to_owned(), function);
        Ok::<_, Error>(function)
    })?;
    // Storage of numbers and addresses; structs are passed from the caller's memory.
    let mut words = SmallVec::<[u64; 16]>::new();
    for arg in args {
        words.push(match *arg {
            Arg::Output(i) => call.output(i).data_ptr() as u64,
            Arg::Pointer(address) => address,
            Arg::I64(x) => x as u64,
            Arg::U64(x) => x,
            Arg::F64(x) => x.to_bits(),
            Arg::Bytes(_) => 0,
        });
    }
    let mut params = SmallVec::<[*mut c_void; 16]>::new();
    for (word, arg) in words.iter().zip(args) {
        params.push(match arg {
            Arg::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
            _ => ptr::from_ref(word).cast_mut().cast(),
        });
    }
    let ([x, y, z], [tx, ty, tz]) = (grid.blocks, grid.threads);
    // SAFETY: 1. the function is loaded in this context, to which the stream belongs. 2. each parameter points to as many bytes as the kernel
    // declares; a kernel and its launch are written side by side to ensure that. 3. the driver copies the parameters before it returns.
    let status = unsafe {
        (driver.cuLaunchKernel)(
            function.handle,
            x,
            y,
            z,
            tx,
            ty,
            tz,
            grid.shared_bytes,
            queue.handle(),
            params.as_mut_ptr(),
            ptr::null_mut(),
        )
    };
    check(id, "launching a kernel", status).map_err(|error| {
        let error: Error = error.into();
        Error::device(call.op.name, format!("{error} (kernel `{key}`)"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_cover_their_elements() {
        assert_eq!(Grid::of_len(0).blocks, [1, 1, 1]);
        assert_eq!(Grid::of_len(256).blocks, [1, 1, 1]);
        assert_eq!(Grid::of_len(257).blocks, [2, 1, 1]);
        assert_eq!(Grid::of_len(1 << 40).blocks, [1 << 16, 1, 1]);
    }
}
