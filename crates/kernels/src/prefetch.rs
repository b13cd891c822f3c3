//! Reading ahead of loops. Processors do so by themselves, but only within a page, and not for rows that are anywhere in memory.

/// Bytes in a cache line.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// How far ahead [`stream`] reads. In a product of a sparse matrix with a vector, anything from 2 to 8 KiB takes the same time.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 4 << 10;

/// Reads the cache line of an address, which may be any, into the first-level cache.
#[inline(always)]
pub(crate) fn line<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint; it does not fault for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Reads what lies as far behind `part` as a loop needs that goes through the elements in order: call it with each part of some cache lines.
#[inline(always)]
pub(crate) fn stream<T>(part: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for start in (0..size_of_val(part)).step_by(LINE_BYTES) {
        line(part.as_ptr().wrapping_byte_add(AHEAD_BYTES + start));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = part;
}
