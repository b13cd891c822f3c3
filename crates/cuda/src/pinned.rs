//! Main memory that a device copies from and to without staging, and keeps for the next copy.
#![allow(unsafe_code)]

use std::ptr;

use mxnet_engine::Event;
use mxnet_tensor::TensorError;
use parking_lot::Mutex;

use crate::driver::{Address, Context};
use crate::error::check;
use crate::stream::Mark;

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: for all devices, and with an address there.
const FOR_ALL_DEVICES: u32 = 3;

/// A block of main memory that is known to the driver.
pub struct Pinned {
    ptr: *mut u8,
    address: Address,
    len_bytes: usize,
}

// SAFETY: the block is owned; nothing of it belongs to a thread.
unsafe impl Send for Pinned {}

impl Pinned {
    /// The first byte, for the host.
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// The first byte, for devices.
    pub fn address(&self) -> Address {
        self.address
    }
}

/// A new block, which is never given back to the system.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn allocate(id: u32, len_bytes: usize) -> Result<Pinned, TensorError> {
    let (driver, _) = Context::enter(id)?;
    let (mut start, mut address) = (ptr::null_mut(), 0);
    // SAFETY: both may be written.
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

/// Blocks for copies are as long as this; longer copies are done in parts.
pub const PART_BYTES: usize = 4 << 20;
/// Parts of this length serve short copies.
const SHORT_BYTES: usize = 64 << 10;
/// So many blocks of a length are in flight at most.
const MAX_BLOCKS: usize = 16;

/// Blocks that are not in use, or that a device still copies from.
struct Blocks {
    idle: Vec<Pinned>,
    in_flight: Vec<(Pinned, Mark)>,
}

static SHORT: Mutex<Blocks> = Mutex::new(Blocks {
    idle: Vec::new(),
    in_flight: Vec::new(),
});
static LONG: Mutex<Blocks> = Mutex::new(Blocks {
    idle: Vec::new(),
    in_flight: Vec::new(),
});

fn blocks_of(len_bytes: usize) -> (&'static Mutex<Blocks>, usize) {
    match len_bytes <= SHORT_BYTES {
        true => (&SHORT, SHORT_BYTES),
        false => (&LONG, PART_BYTES),
    }
}

/// A block of at least `len_bytes`, which are at most [`PART_BYTES`]. Waits for copies in flight if there are many.
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
            // The failure is that of who reads the result.
            let _ = mark.wait();
            Ok(block)
        }
        None => allocate(id, class_bytes),
    }
}

/// Gives a block back that a device copies from until `mark` is reached, or that nobody uses.
pub fn give_back(block: Pinned, mark: Option<Mark>) {
    let mut blocks = blocks_of(block.len_bytes).0.lock();
    match mark {
        Some(mark) => blocks.in_flight.push((block, mark)),
        None => blocks.idle.push(block),
    }
}
