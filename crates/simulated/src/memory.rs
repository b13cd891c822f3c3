//! Memory pages that are protected from access unless a kernel or copy has opened them.
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
    /// Number of kernels and copies that are using it.
    users: usize,
}

/// The memory of all devices.
struct Memory {
    /// Blocks by address.
    blocks: BTreeMap<usize, Block>,
    /// Freed blocks on which work is still pending.
    leaving: Vec<(usize, Vec<Arc<dyn Event>>)>,
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory {
    blocks: BTreeMap::new(),
    leaving: Vec::new(),
});

fn protect(address: usize, len: usize, access: libc::c_int) {
    // SAFETY: the pages belong to one of our blocks, which only kernels and copies access, while it is open.
    let result = unsafe { libc::mprotect(address as *mut libc::c_void, len, access) };
    assert_eq!(result, 0, "the pages of a block can be protected");
}

impl Memory {
    fn unmap(&mut self, address: usize) {
        if let Some(block) = self.blocks.remove(&address) {
            // SAFETY: the block was mapped with this length, and nobody uses it any more.
            unsafe { libc::munmap(address as *mut libc::c_void, block.len) };
        }
    }

    /// Unmaps freed blocks on which no work is pending.
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

/// Runs a kernel on this thread. Memory that it allocates is scratch memory, which stays accessible.
pub fn as_kernel<T>(run: impl FnOnce() -> T) -> T {
    IS_KERNEL.set(true);
    let result = run();
    IS_KERNEL.set(false);
    result
}

/// Allocates pages of zeros, protected.
pub fn allocate(len_bytes: usize, device: Device) -> Result<NonNull<u8>, TensorError> {
    // SAFETY: asks for new memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let len = len_bytes.next_multiple_of(page);
    let (access, users) = match IS_KERNEL.get() {
        true => (libc::PROT_READ | libc::PROT_WRITE, 1),
        false => (libc::PROT_NONE, 0),
    };
    // SAFETY: a new private mapping, which replaces nothing.
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

/// Frees a block, at once or when the pending work has ended.
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

/// Size of all blocks in bytes.
pub fn in_use() -> usize {
    MEMORY.lock().blocks.values().map(|block| block.len).sum()
}

/// Keeps a block accessible while it lives.
pub struct Opened(usize);

/// Makes the block that begins at `ptr` accessible; `None` if there is none, as for arrays without elements.
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

/// Makes the block that contains this address accessible.
fn open_around(ptr: *const u8) -> Option<Opened> {
    let address = ptr as usize;
    let start = {
        let memory = MEMORY.lock();
        let (&start, block) = memory.blocks.range(..=address).next_back()?;
        (address < start + block.len).then_some(start)?
    };
    open(start as *mut u8)
}

/// A copy that is executed later.
pub struct Copy(pub Transfer);

// SAFETY: the caller that enqueues the copy promises that both ranges are valid, and that nobody else uses them, until it is done.
unsafe impl Send for Copy {}

impl Copy {
    /// Executes the copy.
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
