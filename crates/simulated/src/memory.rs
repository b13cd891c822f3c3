//! Pages that nobody may touch, unless they are opened.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;

use mxnet_engine::Event;
use mxnet_tensor::error::MemoryError;
use mxnet_tensor::{Device, TensorError, Transfer};
use parking_lot::Mutex;

/// A block of whole pages.
struct Block {
    len: usize,
    /// How many kernels and copies use it now.
    users: usize,
}

/// What is known of the device's memory.
struct Memory {
    /// By address.
    blocks: BTreeMap<usize, Block>,
    /// Blocks that were given back while work on them was in flight.
    leaving: Vec<(usize, Vec<Arc<dyn Event>>)>,
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory {
    blocks: BTreeMap::new(),
    leaving: Vec::new(),
});

fn protect(address: usize, len: usize, access: libc::c_int) {
    // SAFETY: the pages belong to a block of ours, which only kernels and copies look at, while it is open.
    let result = unsafe { libc::mprotect(address as *mut libc::c_void, len, access) };
    assert_eq!(result, 0, "the pages of a block can be protected");
}

impl Memory {
    fn unmap(&mut self, address: usize) {
        if let Some(block) = self.blocks.remove(&address) {
            // SAFETY: the block was mapped with this length, and nobody knows it any more.
            unsafe { libc::munmap(address as *mut libc::c_void, block.len) };
        }
    }

    /// Unmaps the blocks that no work in flight uses any more.
    fn sweep(&mut self) {
        let is_done = |(_, events): &mut (usize, Vec<Arc<dyn Event>>)| {
            events.iter().all(|event| event.query())
        };
        let done: Vec<_> = self.leaving.extract_if(.., is_done).collect();
        for (address, _) in done {
            self.unmap(address);
        }
    }
}

thread_local! {
    static IS_KERNEL: Cell<bool> = const { Cell::new(false) };
}

/// Runs a kernel on this thread. What it allocates is scratch memory of its own, which stays open.
pub fn as_kernel<T>(run: impl FnOnce() -> T) -> T {
    IS_KERNEL.set(true);
    let result = run();
    IS_KERNEL.set(false);
    result
}

/// New pages, all zero and closed.
pub fn allocate(len_bytes: usize, device: Device) -> Result<NonNull<u8>, TensorError> {
    // SAFETY: asks for new memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let len = len_bytes.next_multiple_of(page);
    let (access, users) = match IS_KERNEL.get() {
        true => (libc::PROT_READ | libc::PROT_WRITE, 1),
        false => (libc::PROT_NONE, 0),
    };
    // SAFETY: new private pages; nothing is mapped over.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            access,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    let mut memory = MEMORY.lock();
    memory.sweep();
    match NonNull::new(address.cast::<u8>()) {
        Some(block) if address != libc::MAP_FAILED => {
            let address = address as usize;
            memory.blocks.insert(address, Block { len, users });
            Ok(block)
        }
        _ => Err(MemoryError::OutOfMemory {
            device,
            requested_bytes: len_bytes,
            in_use_bytes: memory.blocks.values().map(|block| block.len).sum(),
        }
        .into()),
    }
}

/// Gives a block back, at once or when the work in flight has ended.
///
/// # Safety
/// As for `Backend::free`.
pub unsafe fn free(block: NonNull<u8>, _len_bytes: usize, in_flight: &[Arc<dyn Event>]) {
    let mut memory = MEMORY.lock();
    memory
        .leaving
        .push((block.as_ptr() as usize, in_flight.to_vec()));
    memory.sweep();
}

/// Bytes of all blocks.
pub fn in_use() -> usize {
    MEMORY.lock().blocks.values().map(|block| block.len).sum()
}

/// A block that may be read and written as long as this lives.
pub struct Opened(usize);

/// Opens the block that begins at `ptr`; `None` if there is none, as for arrays without elements.
pub fn open(ptr: *mut u8) -> Option<Opened> {
    let address = ptr as usize;
    let mut memory = MEMORY.lock();
    let block = memory.blocks.get_mut(&address)?;
    block.users += 1;
    if block.users == 1 {
        protect(address, block.len, libc::PROT_READ | libc::PROT_WRITE);
    }
    Some(Opened(address))
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut memory = MEMORY.lock();
        if let Some(block) = memory.blocks.get_mut(&self.0) {
            block.users -= 1;
            if block.users == 0 {
                protect(self.0, block.len, libc::PROT_NONE);
            }
        }
    }
}

/// Opens the block that has this address in it.
fn open_around(ptr: *const u8) -> Option<Opened> {
    let address = ptr as usize;
    let start = {
        let memory = MEMORY.lock();
        let (&start, block) = memory.blocks.range(..=address).next_back()?;
        (address < start + block.len).then_some(start)?
    };
    open(start as *mut u8)
}

/// A copy that is done later.
pub struct Copy(pub Transfer);

// SAFETY: who enqueues the copy promises that both ranges are valid, and that nobody else uses them, until it is done.
unsafe impl Send for Copy {}

impl Copy {
    /// Copies.
    ///
    /// # Safety
    /// As for `Backend::copy`.
    pub unsafe fn run(&self) {
        let opened = [open_around(self.0.src), open_around(self.0.dst)];
        // SAFETY: the caller's promise; blocks of the device are open.
        unsafe {
            self.0
                .dst
                .copy_from_nonoverlapping(self.0.src, self.0.len_bytes)
        };
        drop(opened);
    }
}
