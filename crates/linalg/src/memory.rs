//! Workspace whose size follows the matrices. Without memory for it the work in hand ends with a panic whose payload is the error, which
//! who launched the work makes an error of memory; nothing is printed.

use std::collections::TryReserveError;

use faer::dyn_stack::{MemBuffer, StackReq};

#[cold]
fn no_memory(error: TryReserveError) -> ! {
    std::panic::resume_unwind(Box::new(error))
}

/// `len` times the same value, as `vec![value; len]`, which ends the process if there is no memory for it.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Vec<T> {
    let mut all = Vec::new();
    if let Err(error) = all.try_reserve_exact(len) {
        no_memory(error);
    }
    all.resize(len, value);
    all
}

/// A copy, as `to_vec`.
pub(crate) fn copied<T: Copy>(from: &[T]) -> Vec<T> {
    let mut all = Vec::new();
    if let Err(error) = all.try_reserve_exact(from.len()) {
        no_memory(error);
    }
    all.extend_from_slice(from);
    all
}

/// Workspace of the library.
pub(crate) fn buffer(needed: StackReq) -> MemBuffer {
    MemBuffer::try_new(needed).unwrap_or_else(|_| {
        let mut none = Vec::<u8>::new();
        match none.try_reserve_exact(usize::MAX) {
            Err(error) => no_memory(error),
            Ok(()) => unreachable!("no address space is that large"),
        }
    })
}
