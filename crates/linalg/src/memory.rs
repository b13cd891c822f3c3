//! Allocation of workspace that depends on the sizes of matrices. If it fails, the function panics with the allocator's error as payload, without
//! printing a message; the launcher converts that panic to a memory error.

use std::cell::Cell;
use std::collections::TryReserveError;
use std::sync::Mutex;

use faer::dyn_stack::{MemBuffer, StackReq};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

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

/// Panels that `faer` packs for products, in bytes: each thread keeps them from its first product on, and the process ends if they cannot be allocated.
/// It is twice the size of the L3 cache, which the library without its feature `std` takes to be 2 MiB.
const PANELS_BYTES: usize = 4 << 20;

thread_local! {
    static HAS_PANELS: Cell<bool> = const { Cell::new(false) };
}

/// Makes this thread's memory for products by `faer`. Each thread calls it before functions of the library that take no [`buffer`].
pub(crate) fn ensure_panels() {
    if !HAS_PANELS.get() {
        make_panels();
    }
}

#[cold]
fn make_panels() {
    // Products up to a size of 16 do without panels.
    const N: usize = 17;
    // The lock makes the check and the allocation one step among threads. It is not waited for: in a child of a fork it may be held for ever.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.try_lock();
    let mut free = Vec::<u8>::new();
    if let Err(error) = free.try_reserve_exact(2 * PANELS_BYTES) {
        no_memory(error);
    }
    // An allocation that nobody uses may be optimised away.
    drop(std::hint::black_box(free));
    let (a, mut product) = ([0.0_f32; N * N], [0.0_f32; N * N]);
    let a = MatRef::from_column_major_slice(&a, N, N);
    let product = MatMut::from_column_major_slice_mut(&mut product, N, N);
    matmul(product, Accum::Replace, a, a, 1.0, Par::Seq);
    HAS_PANELS.set(true);
}

/// Workspace for `faer`, also for products.
pub(crate) fn buffer(needed: StackReq) -> MemBuffer {
    ensure_panels();
    MemBuffer::try_new(needed).unwrap_or_else(|_| {
        let mut none = Vec::<u8>::new();
        match none.try_reserve_exact(usize::MAX) {
            Err(error) => no_memory(error),
            Ok(()) => unreachable!("no address space is that large"),
        }
    })
}
