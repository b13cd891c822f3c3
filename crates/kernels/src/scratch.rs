//! Bounded working memory that every thread keeps for the kernels' tiles.

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
            lines.resize(needed, Line([0; 64]));
        }
        f(lines.as_mut_ptr().cast())
    })
}
