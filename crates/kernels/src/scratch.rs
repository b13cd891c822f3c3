//! Working memory: bounded memory that every thread keeps for the kernels' tiles, and vectors whose length follows the data.

use std::cell::RefCell;

/// One cache line, so that rows of a tile start aligned.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Lends `len` elements of uninitialised-looking (old) memory, 64-byte aligned, to `f`. Not to be nested: a kernel asks once and divides.
pub(crate) fn with<T: crate::real::Real, R>(len: usize, f: impl FnOnce(*mut T) -> R) -> R {
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

/// Ends the work in hand: there is no memory for it. The panic's payload is the error, which who launched the work makes an error of memory;
/// no message is printed.
#[cold]
fn no_memory(error: std::collections::TryReserveError) -> ! {
    std::panic::resume_unwind(Box::new(error))
}

/// Makes room for `more` elements behind those there are, or ends the work in hand.
pub(crate) fn reserve<T>(to: &mut Vec<T>, more: usize) {
    if let Err(error) = to.try_reserve_exact(more) {
        no_memory(error);
    }
}

/// `len` times the same value, as `vec![value; len]`, which ends the process if there is no memory for it.
///
/// # Panics
/// With the allocator's error, without memory.
pub fn filled<T: Clone>(len: usize, value: T) -> Vec<T> {
    let mut all = Vec::new();
    reserve(&mut all, len);
    all.resize(len, value);
    all
}

/// What `of` gives, at most `most` values, as `collect`, which ends the process if there is no memory for them.
///
/// # Panics
/// With the allocator's error, without memory.
pub fn collected<T>(most: usize, of: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    reserve(&mut all, most);
    all.extend(of);
    all
}

/// Makes room for `more` entries, or ends the work in hand.
pub(crate) fn reserve_map<K: Eq + std::hash::Hash, V>(
    to: &mut std::collections::HashMap<K, V>,
    more: usize,
) {
    if let Err(error) = to.try_reserve(more) {
        no_memory(error);
    }
}
