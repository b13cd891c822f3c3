//! Working memory of kernels on the CPU. A compiled graph offers the part of its memory that a step leaves unused; everything else is allocated.

use std::cell::RefCell;
use std::sync::Arc;

use mxnet_tensor::{DType, Device, Layout, Storage, Tensor};

use crate::Result;

/// Alignment of what is given out, in bytes.
const ALIGNMENT: usize = 64;

/// The memory that the caller of a kernel offers, from byte `next` on.
struct Offered {
    storage: Arc<Storage>,
    next: usize,
    /// Where all that was asked for would end.
    end: usize,
}

thread_local! {
    static OFFERED: RefCell<Option<Offered>> = const { RefCell::new(None) };
}

/// Calls `work` while [`take`] on this thread uses `storage` from byte `start` on. Also returns how many bytes a storage must have for all that `work`
/// asked for. What it took is used again after the call.
pub fn offer<R>(storage: &Arc<Storage>, start: usize, work: impl FnOnce() -> R) -> (R, usize) {
    struct Restore(Option<Offered>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OFFERED.set(self.0.take());
        }
    }
    let start = start.next_multiple_of(ALIGNMENT);
    let offered = Offered {
        storage: storage.clone(),
        next: start,
        end: start,
    };
    let restore = Restore(OFFERED.replace(Some(offered)));
    let result = work();
    let end = OFFERED.with_borrow(|offered| offered.as_ref().map_or(start, |x| x.end));
    drop(restore);
    (result, end)
}

/// Working memory of a kernel that runs on this thread, uninitialised: bytes. It must be dropped before the kernel returns.
///
/// # Errors
/// [`crate::Error::Memory`] if there is not enough.
pub fn take(len_bytes: usize) -> Result<Tensor> {
    let offered = OFFERED.with_borrow_mut(|offered| {
        let offered = offered.as_mut()?;
        let size = len_bytes.next_multiple_of(ALIGNMENT);
        offered.end = offered.end.saturating_add(size);
        let start = offered.next;
        if offered.storage.len_bytes().checked_sub(start)? < size {
            return None;
        }
        offered.next = start + size;
        let layout = Layout::contiguous(&[len_bytes]).with_offset(start);
        Some(Tensor::new(offered.storage.clone(), layout, DType::U8))
    });
    if let Some(tensor) = offered {
        return Ok(tensor?);
    }
    mxnet_kernels::scratch::count_bytes(len_bytes);
    Ok(Tensor::empty(&[len_bytes], DType::U8, Device::CPU)?)
}
