//! Errors found by kernels: a kernel that finds an invalid value, such as an index out of range, writes a report to memory that the host reads after
//! the work has ended. The results of the kernel, and everything computed from them, then fail with an error.
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use mxnet_core::{Error, KernelContext};
use mxnet_engine::Failure;
use mxnet_tensor::TensorError;
use parking_lot::Mutex;

use crate::driver::{self, Address};
use crate::pinned::{self, Pinned};

/// Words per slot: whether there is a report, and three numbers.
const WORDS: usize = 4;
/// Slots per page of memory.
const SLOTS: usize = 256;

/// Memory for one report.
#[derive(Clone, Copy)]
struct Slot {
    words: &'static [AtomicU64; WORDS],
    address: Address,
}

static IDLE: Mutex<Vec<Slot>> = Mutex::new(Vec::new());

fn take_slot(id: u32) -> Result<Slot, TensorError> {
    let mut idle = IDLE.lock();
    if idle.is_empty() {
        let page: Pinned = pinned::allocate(id, SLOTS * WORDS * 8)?;
        for i in 0..SLOTS {
            let offset = i * WORDS * 8;
            // SAFETY: the page contains the slot, is aligned and never freed; host and device write it by atomic words.
            let words = unsafe { &*page.ptr().add(offset).cast::<[AtomicU64; WORDS]>() };
            let address = page.address() + offset as u64;
            idle.push(Slot { words, address });
        }
    }
    let slot = idle.pop().expect("a page of slots was just added");
    slot.words
        .iter()
        .for_each(|word| word.store(0, Ordering::Relaxed));
    Ok(slot)
}

type Describe = Box<dyn Fn([i64; 3]) -> Error + Send + Sync>;

/// A report that a kernel may make, or a failure that is already known.
pub struct Fault {
    /// `None` for a known failure.
    slot: Option<(Slot, Describe)>,
    origin: String,
    failure: OnceLock<Failure>,
}

impl Fault {
    /// A slot for a kernel of this call; `describe` converts the three numbers that the kernel reports into an error.
    ///
    /// # Errors
    /// `Memory` if there is no memory for the slot.
    pub fn new(
        context: &KernelContext,
        describe: impl Fn([i64; 3]) -> Error + Send + Sync + 'static,
    ) -> Result<Fault, TensorError> {
        let origin = mxnet_core::call_site::current();
        Ok(Fault {
            slot: Some((take_slot(context.device.id())?, Box::new(describe))),
            origin: origin.as_deref().unwrap_or("").to_owned(),
            failure: OnceLock::new(),
        })
    }

    /// A failure that has happened already.
    pub fn known(failure: Failure) -> Fault {
        Fault {
            slot: None,
            origin: String::new(),
            failure: failure.into(),
        }
    }

    /// The address of the slot on the device.
    pub fn address(&self) -> Address {
        self.slot.as_ref().map_or(0, |(slot, _)| slot.address)
    }

    /// The failure, if the work has reported one. The work must have ended.
    pub fn failure(&self) -> Option<Failure> {
        if let Some(failure) = self.failure.get() {
            return Some(failure.clone());
        }
        let (slot, describe) = self.slot.as_ref()?;
        if slot.words[0].load(Ordering::Acquire) == 0 {
            return None;
        }
        let reported = [1, 2, 3].map(|i| slot.words[i].load(Ordering::Acquire) as i64);
        let failure = self
            .failure
            .get_or_init(|| Failure::new(Box::new(describe(reported)), self.origin.as_str()));
        Some(failure.clone())
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        // The stream of the work holds a reference until the work has ended.
        if let Some((slot, _)) = self.slot.take()
            && !driver::is_forked()
        {
            IDLE.lock().push(slot);
        }
    }
}
