//! Pinned (page-locked) main memory for copies from and to devices, in reusable blocks.
#![allow(unsafe_code)]

use std::ptr;

use mxnet_engine::Event;
use mxnet_tensor::TensorError;
use parking_lot::Mutex;

use crate::driver::{Address, Context};
use crate::error::check;
use crate::stream::Mark;

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: pinned for all devices, and mapped into their address space.
const FOR_ALL_DEVICES: u32 = 3;

/// A block of pinned main memory.
pub struct Pinned {
    ptr: *mut u8,
    address: Address,
    len_bytes: usize,
}

// SAFETY: the block is owned and not tied to a thread.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Address of the first byte for the host.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Address of the first byte for devices.
    pub fn address(&self) -> Address {
        self.address
    }
}

/// Allocates a new block, which is never freed.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn allocate(id: u32, len_bytes: usize) -> Result<Pinned, TensorError> {
    let (driver, _) = Context::enter(id)?;
    let (mut start, mut address) = (ptr::null_mut(), 0);
    // SAFETY: both are writable.
    let status = unsafe {
        match (driver.cuMemHostAlloc)(&raw mut start, len_bytes, FOR_ALL_DEVICES) {
            0 => (driver.cuMemHostGetDevicePointer)(&raw mut address, start, 0),
            status => status,
        }
    };
    check(id, "allocating pinned memory", status)?;
    Ok(Pinned {
        ptr: start.cast(),
        address,
        len_bytes,
    })
}

/// Size of the largest blocks for copies; longer copies are split into parts of this size.
pub const PART_BYTES: usize = 4 << 20;
/// Sizes of the blocks, in bytes, ascending.
const CLASS_BYTES: [usize; 2] = [64 << 10, PART_BYTES];
/// Maximum number of blocks of one size in flight.
const MAX_BLOCKS: usize = 16;

/// Blocks that are not in use, and those from which a device still copies.
struct Blocks {
    idle: Vec<Pinned>,
    in_flight: Vec<(Pinned, Mark)>,
}

/// The blocks of each size of [`CLASS_BYTES`].
static CLASSES: [Mutex<Blocks>; 2] = [const {
    Mutex::new(Blocks {
        idle: Vec::new(),
        in_flight: Vec::new(),
    })
}; 2];

fn blocks_of(len_bytes: usize) -> (&'static Mutex<Blocks>, usize) {
    let class = usize::from(len_bytes > CLASS_BYTES[0]);
    (&CLASSES[class], CLASS_BYTES[class])
}

/// A block of at least `len_bytes`, which is at most [`PART_BYTES`]. If many copies are in flight, waits for one of them.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn take(id: u32, len_bytes: usize) -> Result<Pinned, TensorError> {
    let (blocks, class_bytes) = blocks_of(len_bytes);
    let oldest = {
        let mut blocks = blocks.lock();
        if let Some(block) = blocks.idle.pop() {
            return Ok(block);
        }
        let done = blocks.in_flight.iter().position(|(_, mark)| mark.query());
        if let Some(done) = done {
            return Ok(blocks.in_flight.remove(done).0);
        }
        match blocks.in_flight.len() >= MAX_BLOCKS {
            true => Some(blocks.in_flight.remove(0)),
            false => None,
        }
    };
    match oldest {
        Some((block, mark)) => {
            // A failure is reported to the reader of the result.
            let _ = mark.wait();
            Ok(block)
        }
        None => allocate(id, class_bytes),
    }
}

/// Returns a block. A device may still copy from it until `mark` is reached.
pub fn give_back(block: Pinned, mark: Option<Mark>) {
    let mut blocks = blocks_of(block.len_bytes).0.lock();
    match mark {
        Some(mark) => blocks.in_flight.push((block, mark)),
        None => blocks.idle.push(block),
    }
}
