//! Sorting within segments.

use super::{Segments, run};
use crate::real::Shared;
use crate::scratch;
use crate::sort::{self, Order, Rows};
use crate::{Elem, Serial, Threads};

/// Segment-wise argsort: `out[r, j]` is the row that column `j` of its segment has at position `r` in sorted order; stable. NaN counts as the largest
/// value.
///
/// # Safety
/// The offsets passed [`super::check`]; `x` and `out` have `rows * inner` elements, dense, aligned and not overlapping; a segment has fewer than 2^32
/// rows.
pub unsafe fn argsort(
    threads: &dyn Threads,
    g: &Segments,
    elem: Elem,
    order: Order,
    x: *const u8,
    out: *mut i64,
) {
    let (x, out) = (Shared(x.cast_mut()), Shared(out));
    let (inner, size) = (g.inner, elem.size());
    if inner == 0 {
        return;
    }
    let one = |threads: &dyn Threads, s: usize| {
        let range = g.range(s);
        let n = range.len();
        if n == 0 {
            return;
        }
        let sorted = |ptr: *const u8, to: *mut i64| {
            let rows = Rows {
                ptr,
                elem,
                rows: 1,
                n,
            };
            // SAFETY: `n` elements to read and positions to write.
            unsafe { sort::argsort(threads, order, &rows, to) };
        };
        if inner == 1 {
            let to = out.at(range.start);
            sorted(x.at(range.start * size), to);
            // SAFETY: the positions of this segment, which were just written.
            let to = unsafe { std::slice::from_raw_parts_mut(to, n) };
            to.iter_mut().for_each(|p| *p += range.start as i64);
            return;
        }
        // 8-byte words are aligned for every element type of at most 8 bytes.
        let mut column = scratch::filled((n * size).div_ceil(8), 0u64);
        let mut chosen = scratch::filled(n, 0i64);
        for j in 0..inner {
            for i in 0..n {
                // SAFETY: element (i, j) of the segment; the column has room for `n` elements.
                unsafe {
                    let from = x.at(((range.start + i) * inner + j) * size);
                    let to = column.as_mut_ptr().cast::<u8>().add(i * size);
                    std::ptr::copy_nonoverlapping(from, to, size);
                }
            }
            sorted(column.as_ptr().cast(), chosen.as_mut_ptr());
            for (i, &p) in chosen.iter().enumerate() {
                // SAFETY: the positions of this segment.
                unsafe { *out.at((range.start + i) * inner + j) = range.start as i64 + p }
            }
        }
    };
    let (long, groups) = g.groups((1 << 12) / inner.max(1) + 1);
    run(threads, groups.len(), &|t| {
        groups[t].clone().for_each(|s| one(&Serial, s));
    });
    long.into_iter().for_each(|s| one(threads, s));
}
