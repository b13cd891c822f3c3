//! Copies of whole rows: one row repeated for all rows of a segment, and conversion between ragged and padded form.

use super::{Segments, run};
use crate::Threads;
use crate::real::Shared;

/// Copies row `s` of `x` to every row of segment `s` of `out`. `g.inner` is in bytes.
///
/// # Safety
/// The offsets passed [`super::check`]; `x` has a row for each segment, `out` for each row; they do not overlap.
pub unsafe fn expand(threads: &dyn Threads, g: &Segments, x: *const u8, out: *mut u8) {
    let (x, out, size) = (Shared(x.cast_mut()), Shared(out), g.inner);
    g.each_task(threads, &|_, rows| {
        g.pieces(rows, |s, piece| {
            // SAFETY: a row of `x`, and the rows of `out` of this piece.
            unsafe {
                repeat(
                    x.at(s * size),
                    size,
                    piece.len(),
                    out.at(piece.start * size),
                )
            }
        });
    });
}

/// Writes `n` copies of an item of `size` bytes.
///
/// # Safety
/// `size` bytes at `item`, `n * size` at `out`, which do not overlap.
unsafe fn repeat(item: *const u8, size: usize, n: usize, out: *mut u8) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            4 => {
                let item = item.cast::<u32>().read_unaligned();
                (0..n).for_each(|i| out.cast::<u32>().add(i).write_unaligned(item));
            }
            8 => {
                let item = item.cast::<u64>().read_unaligned();
                (0..n).for_each(|i| out.cast::<u64>().add(i).write_unaligned(item));
            }
            _ => (0..n).for_each(|i| std::ptr::copy_nonoverlapping(item, out.add(i * size), size)),
        }
    }
}

/// Ragged to padded: writes the first `len` rows of each segment to `out`, shape `(segments, len, inner)`, then `fill`, one element. `g.inner` is in
/// bytes.
///
/// # Safety
/// The offsets passed [`super::check`]; `x` has all rows, `out` has `segments * len` rows; a row is a whole number of elements; nothing overlaps.
pub unsafe fn pad(
    threads: &dyn Threads,
    g: &Segments,
    len: usize,
    fill: &[u8],
    x: *const u8,
    out: *mut u8,
) {
    let (x, out, size) = (Shared(x.cast_mut()), Shared(out), g.inner);
    if size == 0 || len == 0 {
        return;
    }
    each_block(threads, g.count() * len, size, &|rows| {
        let mut r = rows.start;
        while r < rows.end {
            let (s, first) = (r / len, r % len);
            let count = (len - first).min(rows.end - r);
            let segment = g.range(s);
            let real = segment.len().saturating_sub(first).min(count);
            // SAFETY: rows of the segment, and the rows of `out` of this block.
            unsafe {
                let to = out.at(r * size);
                std::ptr::copy_nonoverlapping(
                    x.at((segment.start + first) * size),
                    to,
                    real * size,
                );
                let rest = (count - real) * size;
                repeat(
                    fill.as_ptr(),
                    fill.len(),
                    rest / fill.len(),
                    to.add(real * size),
                );
            }
            r += count;
        }
    });
}

/// Padded to ragged: writes the rows of each segment of `x`, shape `(segments, len, inner)`, to `out`; rows from `len` on become 0. `g.inner` is in
/// bytes.
///
/// # Safety
/// Same as for [`pad`], with `x` and `out` exchanged.
pub unsafe fn unpad(threads: &dyn Threads, g: &Segments, len: usize, x: *const u8, out: *mut u8) {
    let (x, out, size) = (Shared(x.cast_mut()), Shared(out), g.inner);
    g.each_task(threads, &|_, rows| {
        g.pieces(rows, |s, piece| {
            let first = piece.start - g.offsets[s] as usize;
            let real = len.saturating_sub(first).min(piece.len());
            // SAFETY: rows of the padded segment, and the rows of `out` of this piece.
            unsafe {
                let to = out.at(piece.start * size);
                std::ptr::copy_nonoverlapping(x.at((s * len + first) * size), to, real * size);
                to.add(real * size)
                    .write_bytes(0, (piece.len() - real) * size);
            }
        });
    });
}

/// Runs `task(rows)` for blocks of about 64 KiB.
fn each_block(
    threads: &dyn Threads,
    rows: usize,
    size: usize,
    task: &(dyn Fn(std::ops::Range<usize>) + Sync),
) {
    let step = ((1 << 16) / size).max(1);
    run(threads, rows.div_ceil(step), &|t| {
        task(t * step..((t + 1) * step).min(rows));
    });
}
