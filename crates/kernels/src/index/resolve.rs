//! Range checks of indices.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Threads;
use crate::reduce::plan::{Axes, Axis, Walk, count, join};
use crate::reduce::{Number, Source, with_elem};
use crate::threads::split;

/// What to do with an index that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Negative indices count from the end; any other index out of range is an error.
    Raise,
    /// The index is taken modulo the length.
    Wrap,
    /// The index is clipped to the valid range; negative indices become 0.
    Clip,
}

/// The first index out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// Its flat position in C order.
    pub position: usize,
    /// The index; a u64 above the largest i64 is clipped to the latter.
    pub value: i64,
}

/// Whether `n` integers all lie in `0..limit`.
///
/// # Safety
/// `indices` holds `n` integers.
pub unsafe fn all_below(
    threads: &dyn Threads,
    indices: *const i64,
    n: usize,
    limit: usize,
) -> bool {
    let (from, limit) = (indices as usize, limit as u64);
    let outside = AtomicUsize::new(0);
    split(threads, n.div_ceil(CHUNK), n, &|chunk| {
        let start = chunk * CHUNK;
        // SAFETY: the chunk lies inside the indices.
        let values = unsafe {
            std::slice::from_raw_parts((from as *const u64).add(start), CHUNK.min(n - start))
        };
        // The sign bit of either is set for a bad index: negative, or not below the limit.
        let signs = values
            .iter()
            .fold(0, |signs, &v| signs | v | !v.wrapping_sub(limit));
        outside.fetch_or((signs >> 63) as usize, Ordering::Relaxed);
    });
    outside.into_inner() == 0
}

/// Indices per task.
const CHUNK: usize = 16 * 1024;

/// Writes `indices` (any integer type, any strides) to `out` as contiguous `i64` in `0..limit`, in C order.
///
/// # Errors
/// The first index out of range under [`Mode::Raise`], or the first index if `limit` is 0. The contents of `out` are then unspecified.
///
/// # Safety
/// Every element of `indices` can be read and `out` has room for as many `i64`; they do not overlap.
pub unsafe fn resolve(
    threads: &dyn Threads,
    mode: Mode,
    limit: usize,
    indices: &Source,
    out: *mut i64,
) -> Result<(), BadIndex> {
    let mut axes: Axes = indices
        .shape
        .iter()
        .zip(indices.strides)
        .map(|(&len, &src)| Axis { len, src, dst: 0 })
        .collect();
    let n = count(&axes);
    join(&mut axes);
    let stride = axes.last().map_or(indices.elem.size() as isize, |a| a.src);
    let row = with_elem!(indices.elem, T => row::<T> as unsafe fn(Mode, usize, *const u8, isize, usize, *mut i64) -> Option<usize>);
    let first_bad = AtomicUsize::new(usize::MAX);
    let (src, out) = (indices.ptr as usize, out as usize);
    split(threads, n.div_ceil(CHUNK), n, &|chunk| {
        let (mut at, end) = (chunk * CHUNK, n.min((chunk + 1) * CHUNK));
        let mut walk = Walk::new(&axes, at);
        while at < end {
            let (offset, left) = walk.run();
            let m = left.min(end - at);
            // SAFETY: the run lies inside the indices; chunks of `out` are disjoint.
            let bad = unsafe {
                row(
                    mode,
                    limit,
                    (src as *const u8).offset(offset),
                    stride,
                    m,
                    (out as *mut i64).add(at),
                )
            };
            if let Some(i) = bad {
                first_bad.fetch_min(at + i, Ordering::Relaxed);
                return;
            }
            walk.advance(m);
            at += m;
        }
    });
    match first_bad.into_inner() {
        usize::MAX => Ok(()),
        position => {
            let offset = Walk::new(&axes, position).run().0;
            // SAFETY: the position is inside the indices.
            let value = with_elem!(indices.elem, T => unsafe { *indices.ptr.offset(offset).cast::<T>() }.to_u64());
            let unsigned = indices.elem == crate::Elem::U64;
            Err(BadIndex {
                position,
                value: if unsigned {
                    value.min(i64::MAX as u64) as i64
                } else {
                    value as i64
                },
            })
        }
    }
}

/// Resolves one run; returns the position of the first bad index.
unsafe fn row<T: Number>(
    mode: Mode,
    limit: usize,
    src: *const u8,
    stride: isize,
    n: usize,
    out: *mut i64,
) -> Option<usize> {
    let length = limit as i64;
    let read = |i: usize| {
        // SAFETY: the caller gives `n` readable indices.
        let value = unsafe { *src.offset(i as isize * stride).cast::<T>() };
        // Only u64 has values that i64 lacks; they are out of range for any length.
        if value.to_i64() < 0 && value > T::ZERO {
            i64::MAX
        } else {
            value.to_i64()
        }
    };
    if limit == 0 {
        return (n > 0).then_some(0);
    }
    let mut all_good = true;
    for i in 0..n {
        let v = read(i);
        let resolved = match mode {
            Mode::Raise => {
                if v < 0 {
                    v + length
                } else {
                    v
                }
            }
            Mode::Wrap => v.rem_euclid(length),
            Mode::Clip => v.clamp(0, length - 1),
        };
        all_good &= (resolved as u64) < limit as u64;
        // SAFETY: the caller's `out` has room for `n` results.
        unsafe { *out.add(i) = resolved };
    }
    if all_good {
        return None;
    }
    (0..n).find(|&i| {
        let v = read(i);
        v >= length || v < -length
    })
}
