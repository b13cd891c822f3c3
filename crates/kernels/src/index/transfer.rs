//! Gather and scatter of blocks at positions given by one or several index arrays: `take`, advanced indexing, embeddings.

use smallvec::SmallVec;

use super::along::{Row, gather_row};
use super::{Sum, Write, move_of, with_size};
use crate::reduce::plan::{Axes, Axis, count, offsets};
use crate::reduce::with_elem;
use crate::scratch;
use crate::threads::split;
use crate::{Elem, Threads};

/// One indexed axis of the view.
#[derive(Clone, Copy, Debug)]
pub struct IndexAxis {
    /// One resolved index per position, contiguous.
    pub indices: *const i64,
    /// Byte stride of the view along this axis.
    pub stride: isize,
}

/// A view that is read or written in blocks. The block of position p starts at `sum(axes[k].indices[p] * axes[k].stride)` and spans the axes that are
/// not indexed.
#[derive(Clone, Copy, Debug)]
pub struct Picked<'a> {
    /// Element type; gathers and `Write::Set` use only its size.
    pub elem: Elem,
    /// The indexed axes. If there are none, every position is the view's first element.
    pub axes: &'a [IndexAxis],
    /// Number of positions.
    pub positions: usize,
    /// Lengths of the axes that are not indexed.
    pub block: &'a [usize],
    /// Their byte strides in the view.
    pub strides: &'a [isize],
}

/// From this length of a contiguous run on, it pays to check whether positions are distinct: they can then be written in parallel.
const MIN_PARALLEL_RUN_BYTES: usize = 256;
/// Positions whose offsets are computed at once.
const CHUNK: usize = 512;
/// Rows of blocks for which one task of a gather reuses the same offsets.
const ROWS: usize = 16;

/// Copies the blocks of `view` to `out`, where block p starts at `p * position_stride` and has strides `out_strides`.
///
/// # Safety
/// Every index is in range of its axis; the view can be read and `out` written; they do not overlap, nor do elements of `out` each other.
pub unsafe fn gather(
    threads: &dyn Threads,
    picked: &Picked,
    view: *const u8,
    out: *mut u8,
    position_stride: isize,
    out_strides: &[isize],
) {
    let size = picked.elem.size() as isize;
    let blocks = picked.block.iter().zip(picked.strides).zip(out_strides);
    let mut axes: Axes = blocks
        .map(|((&len, &src), &dst)| Axis { len, src, dst })
        .collect();
    let positions = picked.positions;
    let total = count(&axes) * positions;
    if total == 0 {
        return;
    }
    // Loop over the block along the axis with the smallest output stride, unless the stride between positions is smaller still.
    order(&mut axes, |a| a.dst);
    let run = take_run(&mut axes, |a| {
        a.dst.abs() < position_stride.abs() || positions == 1
    });
    let copy = move_of(picked.elem, Write::Set);
    let pick = with_size!(size, T => pick_gather::<T> as Pick);
    let pick_along = with_size!(size, T => gather_row::<T> as Row);
    let rows = count(&axes);
    let (groups, chunks) = (rows.div_ceil(ROWS), positions.div_ceil(CHUNK));
    let (view, out) = (view as usize, out as usize);
    let (axes, indices) = (&axes[..], Indices(picked.axes));
    // Tasks are chunks of positions times groups of rows. Many positions with long runs need no finer split; few positions with long runs do.
    let chunk = if run.len >= 64 {
        CHUNK.min(positions.div_ceil(16)).max(1)
    } else {
        CHUNK
    };
    let chunks = if chunk == CHUNK {
        chunks
    } else {
        positions.div_ceil(chunk)
    };
    split(
        threads,
        groups * chunks,
        total * size as usize / 4,
        &|task| {
            let (group, first) = (task / chunks, task % chunks * chunk);
            let n = chunk.min(positions - first);
            if let ([axis], 1, 1) = (indices.0, rows, run.len) {
                let (view, out) = (view as *mut u8, out as *mut u8);
                // SAFETY: `n` positions from `first` exist; every index is in range.
                unsafe {
                    let out = out.offset(first as isize * position_stride);
                    let from = axis.indices.add(first);
                    return pick_along(view, 0, axis.stride, out, position_stride, from, n);
                }
            }
            let mut at = [0isize; CHUNK];
            // SAFETY: `n` positions from `first` exist.
            unsafe { indices.offsets(first, &mut at[..n]) };
            for row in group * ROWS..rows.min((group + 1) * ROWS) {
                let (src, dst) = offsets(axes, row);
                let src = (view as *const u8).wrapping_offset(src);
                let dst = (out as *mut u8).wrapping_offset(dst + first as isize * position_stride);
                // SAFETY: every index is in range, so every source is inside the view; tasks write disjoint elements.
                unsafe {
                    if run.len == 1 {
                        pick(src, dst, position_stride, &at[..n]);
                    } else {
                        for (p, &at) in at[..n].iter().enumerate() {
                            copy(
                                src.offset(at),
                                run.src,
                                dst.offset(p as isize * position_stride),
                                run.dst,
                                run.len,
                            );
                        }
                    }
                }
            }
        },
    );
}

/// Writes `values` into the blocks of `view`: the values of block p start at `p * position_stride` and have strides `value_strides`
/// (0 repeats a value). The result is that of writing the positions in order, for any number of threads.
///
/// # Safety
/// Every index is in range of its axis; `values` can be read and the view written; they do not overlap; elements of one block of the
/// view do not overlap each other.
pub unsafe fn scatter(
    threads: &dyn Threads,
    write: Write,
    picked: &Picked,
    view: *mut u8,
    values: *const u8,
    position_stride: isize,
    value_strides: &[isize],
) {
    let size = picked.elem.size();
    let blocks = picked.block.iter().zip(value_strides).zip(picked.strides);
    let mut axes: Axes = blocks
        .map(|((&len, &src), &dst)| Axis { len, src, dst })
        .collect();
    let positions = picked.positions;
    let total = count(&axes) * positions;
    if total == 0 {
        return;
    }
    order(&mut axes, |a| a.dst);
    let run = take_run(&mut axes, |_| true);
    let rows = count(&axes);
    // If no position repeats, tasks are ranges of positions. Otherwise tasks are parts of the block, and each walks over all positions. There are no
    // more tasks than keep the threads busy, and no part of a block is shorter than 256 bytes.
    let wanted = match threads.count() {
        1 => 1,
        count => (2 * count).div_ceil(rows),
    };
    let indices = Indices(picked.axes);
    // SAFETY: `positions` indices exist.
    let is_distinct = wanted > 1
        && run.len * size >= MIN_PARALLEL_RUN_BYTES
        && unsafe { indices.are_distinct(positions) };
    let segments = if is_distinct {
        wanted.min(positions)
    } else {
        1
    };
    let segment = positions.div_ceil(segments);
    let piece = match is_distinct {
        true => run.len,
        false => run.len.div_ceil((run.len * size / 256).clamp(1, wanted)),
    };
    let pieces = run.len.div_ceil(piece);
    let put = move_of(picked.elem, write);
    let pick = match write {
        Write::Set => with_size!(size, T => pick_set::<T> as Pick),
        Write::Add => with_elem!(picked.elem, T => pick_add::<T> as Pick),
    };
    let (view, values) = (view as usize, values as usize);
    let axes = &axes[..];
    split(
        threads,
        rows * pieces * segments,
        total * size / 4,
        &|task| {
            let (task, part) = (task / segments, task % segments);
            let (from, to) = (part * segment, positions.min((part + 1) * segment));
            let (src, dst) = offsets(axes, task / pieces);
            let start = task % pieces * piece;
            let n = piece.min(run.len - start);
            let src = (values as *const u8).wrapping_offset(src + start as isize * run.src);
            let dst = (view as *mut u8).wrapping_offset(dst + start as isize * run.dst);
            let mut at = [0isize; CHUNK];
            for first in (from..to).step_by(CHUNK) {
                let m = CHUNK.min(to - first);
                let src = src.wrapping_offset(first as isize * position_stride);
                // SAFETY: every index is in range, so every target is inside the view; tasks write disjoint parts of the block.
                unsafe {
                    indices.offsets(first, &mut at[..m]);
                    if n == 1 {
                        pick(src, dst, position_stride, &at[..m]);
                    } else {
                        for (p, &at) in at[..m].iter().enumerate() {
                            put(
                                src.offset(p as isize * position_stride),
                                run.src,
                                dst.offset(at),
                                run.dst,
                                n,
                            );
                        }
                    }
                }
            }
        },
    );
}

/// Drops axes of length 1, moves the one with the smallest `stride` to the end and merges contiguous axes. Source strides may have any sign.
fn order(axes: &mut Axes, stride: fn(&Axis) -> isize) {
    axes.sort_by_key(|a| std::cmp::Reverse(stride(a).unsigned_abs()));
    crate::reduce::plan::join(axes);
}

/// Removes the last axis and returns it as the run if `fits` accepts it; otherwise the run is one element.
fn take_run(axes: &mut Axes, fits: impl Fn(&Axis) -> bool) -> Axis {
    match axes.last() {
        Some(a) if fits(a) => axes.pop().expect("there is a last axis"),
        _ => Axis {
            len: 1,
            src: 0,
            dst: 0,
        },
    }
}

struct Indices<'a>(&'a [IndexAxis]);

// SAFETY: index arrays are only read.
unsafe impl Sync for Indices<'_> {}

impl Indices<'_> {
    /// Whether the indices are known to be distinct. May return false for distinct ones where finding out is expensive.
    unsafe fn are_distinct(&self, positions: usize) -> bool {
        let [axis] = self.0 else { return false };
        // SAFETY: the caller's `positions` indices exist.
        let indices = unsafe { std::slice::from_raw_parts(axis.indices, positions) };
        if indices.is_sorted_by(|a, b| a < b) || indices.is_sorted_by(|a, b| a > b) {
            return true;
        }
        let last = indices.iter().copied().max().unwrap_or(0) as usize;
        // A bit set over all rows up to the largest index must not be large in proportion to the number of positions.
        if last / 64 > positions {
            return false;
        }
        let mut seen = scratch::filled(last / 64 + 1, 0_u64);
        indices.iter().all(|&i| {
            let (word, bit) = (i as usize / 64, 1 << (i % 64));
            let is_new = seen[word] & bit == 0;
            seen[word] |= bit;
            is_new
        })
    }

    /// Byte offsets in the view of positions `first..`.
    unsafe fn offsets(&self, first: usize, out: &mut [isize]) {
        if let [axis] = self.0 {
            for (i, at) in out.iter_mut().enumerate() {
                // SAFETY: the caller asks for positions that exist.
                *at = unsafe { *axis.indices.add(first + i) } as isize * axis.stride;
            }
            return;
        }
        let axes: SmallVec<[IndexAxis; 4]> = self.0.into();
        for (i, at) in out.iter_mut().enumerate() {
            // SAFETY: the caller asks for positions that exist.
            *at = axes
                .iter()
                .map(|a| unsafe { *a.indices.add(first + i) } as isize * a.stride)
                .sum();
        }
    }
}

/// Moves one element at each of the given offsets: `(src, dst, stride of the dense side, offsets)`.
type Pick = unsafe fn(*const u8, *mut u8, isize, &[isize]);

unsafe fn pick_gather<T: Copy>(src: *const u8, dst: *mut u8, stride: isize, at: &[isize]) {
    for (p, &at) in at.iter().enumerate() {
        // SAFETY: the caller's offsets lie inside the view, the positions inside the output.
        unsafe { *dst.offset(p as isize * stride).cast::<T>() = *src.offset(at).cast::<T>() };
    }
}

unsafe fn pick_set<T: Copy>(src: *const u8, dst: *mut u8, stride: isize, at: &[isize]) {
    for (p, &at) in at.iter().enumerate() {
        // SAFETY: the caller's offsets lie inside the view, the positions inside the values.
        unsafe { *dst.offset(at).cast::<T>() = *src.offset(p as isize * stride).cast::<T>() };
    }
}

unsafe fn pick_add<T: Sum>(src: *const u8, dst: *mut u8, stride: isize, at: &[isize]) {
    for (p, &at) in at.iter().enumerate() {
        // SAFETY: the caller's offsets lie inside the view, the positions inside the values.
        unsafe {
            let d = &mut *dst.offset(at).cast::<T>();
            *d = d.plus(*src.offset(p as isize * stride).cast::<T>());
        }
    }
}
