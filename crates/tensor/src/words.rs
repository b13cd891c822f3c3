//! Copies of values word by word, which the processor can forward from its store buffer.

use std::mem::MaybeUninit;

/// Copies the bytes of a value word by word. A value that was written in words a moment ago is still in the processor's store buffer. Larger loads
/// cannot be forwarded from there: an ordinary copy, which uses the largest loads, would stall until the buffer is drained.
///
/// # Safety
///
/// `from` is valid for reading a `T`, `to` for writing one; both are aligned to 8. The value moves to `to`: that at `from` must not be used or
/// dropped afterwards, unless it may exist twice.
#[inline]
pub(crate) unsafe fn copy_words<T>(from: *const T, to: *mut T) {
    const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() >= 8) };
    let (from, to) = (
        from.cast::<MaybeUninit<u64>>(),
        to.cast::<MaybeUninit<u64>>(),
    );
    for i in 0..size_of::<T>() / 8 {
        // SAFETY: within the value; the words need not be initialised. Volatile, so that the compiler does not merge them.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) };
    }
}
