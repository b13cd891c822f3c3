//! Allocation of workspace that depends on the sizes of matrices. If it fails, the function panics with the allocator's error as payload, without
//! printing a message; the launcher converts that panic to a memory error.

use std::collections::TryReserveError;

use faer::dyn_stack::{MemBuffer, StackReq};

#[cold]
fn no_memory(error: TryReserveError) -> ! {
    std::panic::resume_unwind(Box::new(error))
}

/// As `vec![value; len]`, which would abort the process if the allocation fails.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Vec<T> {
    let mut all = Vec::new();
    if let Err(error) = all.try_reserve_exact(len) {
        no_memory(error);
    }
    all.resize(len, value);
    all
}

/// As `to_vec`.
pub(crate) fn copied<T: Copy>(from: &[T]) -> Vec<T> {
    let mut all = Vec::new();
    if let Err(error) = all.try_reserve_exact(from.len()) {
        no_memory(error);
    }
    all.extend_from_slice(from);
    all
}

/// Workspace for `faer`.
pub(crate) fn buffer(needed: StackReq) -> MemBuffer {
    MemBuffer::try_new(needed).unwrap_or_else(|_| {
        let mut none = Vec::<u8>::new();
        match none.try_reserve_exact(usize::MAX) {
            Err(error) => no_memory(error),
            Ok(()) => unreachable!("no address space is that large"),
        }
    })
}
