//! Copies of values, word by word, so that the processor can forward them from its store buffer.

use std::mem::MaybeUninit;

/// Copies the bytes of a value word by word. A value that was written in words a moment ago is still in the processor's store buffer, from which
/// wider loads cannot be served: an ordinary copy, which the compiler makes of the widest ones there are, waits until it has left it.
///
/// # Safety
///
/// `from` is valid for reading a `T`, `to` for writing one; both are aligned to 8. The value is at `to` afterwards: that at `from` is neither used
/// nor dropped any more, unless it may be there twice.
#[inline]
pub(crate) unsafe fn copy_words<T>(from: *const T, to: *mut T) {
    const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() >= 8) };
    let (from, to) = (
        from.cast::<MaybeUninit<u64>>(),
        to.cast::<MaybeUninit<u64>>(),
    );
    for i in 0..size_of::<T>() / 8 {
        // SAFETY: within the value; the words need not be initialised. Volatile, so that they are not put together.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) };
    }
}
