//! Working memory: a bounded thread-local buffer for the kernels' tiles, and vectors whose length depends on the data.

use std::cell::{Cell, RefCell};

/// One cache line, so that rows of a tile start aligned.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
    static TAKEN_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Counts working memory that a kernel takes for a whole call. The buffers of [`with`], which a thread keeps, are not counted.
pub fn count_bytes(len_bytes: usize) {
    TAKEN_BYTES.set(TAKEN_BYTES.get().wrapping_add(len_bytes));
}

/// Bytes that this thread has counted so far: the difference of two calls is the working memory of the kernels that ran between them.
pub fn taken_bytes() -> usize {
    TAKEN_BYTES.get()
}

/// Calls `f` with `len` elements of a thread-local buffer, 64-byte aligned, with unspecified contents. Calls must not nest.
pub fn with<T: crate::real::Real, R>(len: usize, f: impl FnOnce(*mut T) -> R) -> R {
    LINES.with(|lines| {
        let mut lines = lines.borrow_mut();
        let needed = (len * size_of::<T>()).div_ceil(64);
        if lines.len() < needed {
            let missing = needed - lines.len();
            reserve(&mut lines, missing);
            lines.resize(needed, Line([0; 64]));
        }
        f(lines.as_mut_ptr().cast())
    })
}

/// Out of memory: unwinds with the allocator's error as payload, without printing a message. The engine that launched the kernel converts it into a
/// memory error.
#[cold]
fn no_memory(error: std::collections::TryReserveError) -> ! {
    std::panic::resume_unwind(Box::new(error))
}

/// Reserves space for `more` elements; unwinds with [`no_memory`] if there is none.
pub fn reserve<T>(to: &mut Vec<T>, more: usize) {
    if let Err(error) = to.try_reserve_exact(more) {
        no_memory(error);
    }
}

/// `vec![value; len]` that panics if there is no memory, whereas `vec!` aborts the process.
///
/// # Panics
/// If there is no memory; the payload is the allocator's error.
pub fn filled<T: Clone>(len: usize, value: T) -> Vec<T> {
    let mut all = Vec::new();
    reserve(&mut all, len);
    all.resize(len, value);
    all
}

/// Memory for `len` elements that are all written before they are read; zeros if blocks have padding, which nobody writes.
pub(crate) fn memory<T: crate::real::Real>(len: usize, has_padding: bool) -> Vec<T> {
    let mut all = Vec::new();
    reserve(&mut all, len);
    count_bytes(len * size_of::<T>());
    if has_padding {
        all.resize(len, T::ZERO);
    }
    all
}

/// Collects `of`, at most `most` values, and panics if there is no memory, whereas `collect` aborts the process.
///
/// # Panics
/// If there is no memory; the payload is the allocator's error.
pub fn collected<T>(most: usize, of: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    reserve(&mut all, most);
    all.extend(of);
    all
}

/// Checks that `len_bytes` bytes can be allocated, before a call of a library that ends the process if they cannot.
///
/// # Panics
/// If there is no memory; the payload is the allocator's error.
pub fn check_available(len_bytes: usize) {
    let mut all = Vec::<u8>::new();
    reserve(&mut all, len_bytes);
    // An allocation that nobody uses may be optimised away.
    std::hint::black_box(&all);
}

/// Reserves space for `more` entries; unwinds with [`no_memory`] if there is none.
pub(crate) fn reserve_map<K: Eq + std::hash::Hash, V>(
    to: &mut std::collections::HashMap<K, V>,
    more: usize,
) {
    if let Err(error) = to.try_reserve(more) {
        no_memory(error);
    }
}
