//! Transposed copies: small squares through registers, large copies through a thread-local block.

#[cfg(target_arch = "x86_64")]
mod x86;

use std::mem::MaybeUninit;

use super::{SharedPtr, with_item};
use crate::Threads;
#[cfg(target_arch = "x86_64")]
use crate::isa::{Isa, isa};
use crate::nd::Axis;

/// Transposed copies of at least this many bytes are staged; smaller ones fit in the caches on both sides.
const STAGED_BYTES: usize = 512 * 1024;
/// From this many bytes on, the destination is written with non-temporal stores: no cache would hold it until it is read.
const STREAMED_BYTES: usize = 2 * 1024 * 1024;
/// Minimum bytes of a source row that a block reads (lines are fetched in pairs), and minimum number of such pieces.
const LINE_PAIR_BYTES: usize = 128;
const BLOCK_COLS: usize = 512;
/// Size of a block. Its rows are padded by a cache line so that they do not map to the same cache sets.
const BLOCK_BYTES: usize = LINE_PAIR_BYTES * BLOCK_COLS + LINE_PAIR_BYTES * 64;

#[repr(C, align(64))]
struct Block(MaybeUninit<[u8; BLOCK_BYTES]>);

/// Bytes between rows of a block.
fn row_bytes(len: usize) -> usize {
    len.next_multiple_of(64) + 64
}

/// Copies if this is a large transposed copy; returns whether it did. Arguments are those of [`super::copy_nd`].
///
/// The rows of the destination are assembled in a block of 64 KiB and written one after the other, each as one run. Writing eight rows, a page or
/// more apart, at the same time costs several times as much as writing the same bytes in order.
///
/// # Safety
/// Same as for [`super::copy_nd`]; `axes` are its axes, ordered by the destination's strides, none of which is negative.
pub(super) unsafe fn copy_staged(
    threads: &dyn Threads,
    size: usize,
    axes: &[Axis],
    dst: *mut u8,
    src: *const u8,
) -> bool {
    let bytes = size * axes.iter().map(|a| a.len).product::<usize>();
    let Some((cols, others)) = axes.split_last() else {
        return false;
    };
    // The axis with the smallest source stride becomes the rows.
    let near = |a: &Axis| a.strides[1].unsigned_abs();
    let Some(at) = (0..others.len())
        .filter(|&i| others[i].len > 1 && near(&others[i]) > 0)
        .min_by_key(|&i| near(&others[i]))
    else {
        return false;
    };
    let rows = others[at];
    if bytes < STAGED_BYTES
        || near(&rows) >= near(cols)
        || cols.strides[0] != size as isize
        || rows.len * size < LINE_PAIR_BYTES / 2
    {
        return false;
    }
    // Columns are short: a block holds several indices of the next axis side by side.
    let mut outer: Vec<Axis> = others.to_vec();
    outer.remove(at);
    let group = outer.pop().unwrap_or(Axis {
        len: 1,
        strides: [0; crate::nd::MAX_OPERANDS],
    });
    let wide = cols.len.min(BLOCK_COLS);
    let groups = if group.strides[0] == (cols.len * size) as isize {
        (BLOCK_COLS / wide).min(group.len)
    } else {
        1
    };
    let row = row_bytes(groups * wide * size);
    if groups * wide * size < LINE_PAIR_BYTES {
        return false;
    }
    let pair = LINE_PAIR_BYTES / size;
    let plan = Plan {
        size,
        bytes,
        rows,
        cols: *cols,
        group,
        outer,
        sides: [
            (BLOCK_BYTES / row / pair * pair).min(rows.len),
            wide,
            groups,
        ],
    };
    plan.run(threads, dst, src);
    true
}

/// A transposed copy in blocks; `sides` are a block's rows, columns and groups.
struct Plan {
    size: usize,
    bytes: usize,
    rows: Axis,
    cols: Axis,
    group: Axis,
    outer: Vec<Axis>,
    sides: [usize; 3],
}

impl Plan {
    fn run(&self, threads: &dyn Threads, dst: *mut u8, src: *const u8) {
        // The row index varies fastest: neighbouring blocks then read neighbouring lines of the same pages.
        let parts = [self.rows.len, self.cols.len, self.group.len];
        let counts: [usize; 3] = std::array::from_fn(|k| parts[k].div_ceil(self.sides[k]));
        let blocks =
            counts.iter().product::<usize>() * self.outer.iter().map(|a| a.len).product::<usize>();
        let per_task = (4 * LINE_PAIR_BYTES * BLOCK_COLS)
            .div_ceil(self.size * self.sides.iter().product::<usize>());
        let tasks = blocks.div_ceil(per_task);
        let ends = (SharedPtr(dst), SharedPtr(src.cast_mut()));
        let task = |t: usize| {
            let mut block = Block(MaybeUninit::uninit());
            for unit in t * per_task..blocks.min((t + 1) * per_task) {
                let mut rest = unit;
                let (mut sides, mut offset) = ([0; 3], [0isize; 2]);
                for (k, axis) in [&self.rows, &self.cols, &self.group]
                    .into_iter()
                    .enumerate()
                {
                    let first = rest % counts[k] * self.sides[k];
                    rest /= counts[k];
                    sides[k] = self.sides[k].min(axis.len - first);
                    offset[0] += axis.strides[0] * first as isize;
                    offset[1] += axis.strides[1] * first as isize;
                }
                for axis in self.outer.iter().rev() {
                    let i = (rest % axis.len) as isize;
                    rest /= axis.len;
                    offset[0] += axis.strides[0] * i;
                    offset[1] += axis.strides[1] * i;
                }
                // SAFETY: the block's items are items of the copy, which the caller of `copy_staged` guarantees.
                unsafe {
                    self.block(
                        sides,
                        ends.0.ptr().offset(offset[0]),
                        ends.1.ptr().offset(offset[1]),
                        block.0.as_mut_ptr().cast(),
                    );
                }
            }
            if self.bytes >= STREAMED_BYTES {
                finish_streaming();
            }
        };
        if tasks < 2 || threads.count() < 2 {
            (0..tasks).for_each(task);
        } else {
            threads.run(tasks, &task);
        }
    }

    /// # Safety
    /// Both sides are valid for `rows * cols * groups` items at the plan's strides; `spare` for `BLOCK_BYTES`.
    unsafe fn block(
        &self,
        [rows, cols, groups]: [usize; 3],
        dst: *mut u8,
        src: *const u8,
        spare: *mut u8,
    ) {
        let run = cols * self.size;
        let row = row_bytes(groups * run);
        let ss = [self.rows.strides[1], self.cols.strides[1]];
        let ds = [row as isize, self.size as isize];
        // SAFETY: `sides` are chosen such that this many rows fit in the block; the groups of a row are contiguous on both sides.
        unsafe {
            for g in 0..groups {
                let to = spare.add(g * run);
                let from = src.offset(self.group.strides[1] * g as isize);
                with_item!(self.size, T => transpose_tile::<T>(rows, cols, to, ds, from, ss));
            }
            let len = groups * run;
            for i in 0..rows {
                let to = dst.offset(self.rows.strides[0] * i as isize);
                let from = spare.add(i * row);
                if self.bytes >= STREAMED_BYTES {
                    stream(from, to, len);
                } else {
                    std::ptr::copy_nonoverlapping(from, to, len);
                }
            }
        }
    }
}

/// Copies `len` bytes, with non-temporal stores for whole lines of the destination where the CPU has them. Call [`finish_streaming`] after a series.
///
/// # Safety
/// Both are valid for `len` bytes and do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(src: *const u8, dst: *mut u8, len: usize) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
    let head = dst.align_offset(64).min(len);
    let lines = (len - head) / 64;
    let rest = head + lines * 64;
    // SAFETY: the parts lie inside the `len` bytes; lines of the destination are aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, head);
        for i in 0..lines {
            let (from, to) = (src.add(head + 64 * i), dst.add(head + 64 * i));
            for k in [0, 16, 32, 48] {
                _mm_stream_si128(to.add(k).cast(), _mm_loadu_si128(from.add(k).cast()));
            }
        }
        std::ptr::copy_nonoverlapping(src.add(rest), dst.add(rest), len - rest);
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, len) }
}

/// Store fence: orders the stores of [`stream`] before all later stores of this thread, including the one that signals its completion.
fn finish_streaming() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of the architecture.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Copies one tile: squares through registers where the CPU and the strides allow it, the remaining items one by one.
///
/// # Safety
/// Same as for [`super::copy_nd`].
pub(super) unsafe fn transpose_tile<T: Copy>(
    rows: usize,
    cols: usize,
    dst: *mut u8,
    ds: [isize; 2],
    src: *const u8,
    ss: [isize; 2],
) {
    let size = size_of::<T>() as isize;
    let back = if ss[0] == -size { rows as isize - 1 } else { 0 };
    let (mut dst, mut src, mut ds, mut ss) = (dst, src, ds, ss);
    if back > 0 {
        // If the source runs backwards along the rows, start at the last row.
        // SAFETY: the last row is part of the tile.
        (dst, src) = unsafe { (dst.offset(ds[0] * back), src.offset(ss[0] * back)) };
        (ds[0], ss[0]) = (-ds[0], size);
    }
    let side = square_side(size_of::<T>());
    let squares = if side > 0 && ss[0] == size && ds[1] == size {
        [rows / side * side, cols / side * side]
    } else {
        [0, 0]
    };
    // SAFETY: items and squares stay inside the tile.
    unsafe {
        // Rows innermost: all items of a source line are used while the line is in L1.
        for j in (0..squares[1]).step_by(side.max(1)) {
            for i in (0..squares[0]).step_by(side.max(1)) {
                let (k, l) = (i as isize, j as isize);
                transpose_square(
                    size_of::<T>(),
                    dst.offset(ds[0] * k + size * l),
                    ds[0],
                    src.offset(size * k + ss[1] * l),
                    ss[1],
                );
            }
        }
        if squares == [rows, cols] {
            return;
        }
        for i in 0..rows {
            let done = if i < squares[0] { squares[1] } else { 0 };
            for j in done..cols {
                move_item::<T>(dst, ds, src, ss, i, j);
            }
        }
    }
}

/// Side of the squares that [`transpose_square`] supports for items of this size; 0 if none.
#[cfg(target_arch = "x86_64")]
fn square_side(size: usize) -> usize {
    match size {
        1 => 16,
        2 => 8,
        4 if isa() >= Isa::Avx2 => 8,
        8 if isa() >= Isa::Avx2 => 4,
        // Not through registers, but with as many lines at a time.
        16 => 4,
        _ => 0,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn square_side(_size: usize) -> usize {
    0
}

/// # Safety
/// `square_side(size)` is not 0; both sides are valid for a square.
unsafe fn transpose_square(
    size: usize,
    dst: *mut u8,
    dst_stride: isize,
    src: *const u8,
    src_stride: isize,
) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            1 => x86::transpose_16x16(dst, dst_stride, src, src_stride),
            2 => x86::transpose_8x8_items16(dst, dst_stride, src, src_stride),
            4 => x86::transpose_8x8(dst, dst_stride, src, src_stride),
            16 => {
                for j in 0..4 {
                    for i in 0..4 {
                        let from = src.offset(src_stride * j + 16 * i).cast::<super::Item16>();
                        *dst.offset(dst_stride * i + 16 * j).cast() = *from;
                    }
                }
            }
            _ => x86::transpose_4x4(dst, dst_stride, src, src_stride),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!(
        "squares of {size}-byte items from {src:p} ({src_stride}) to {dst:p} ({dst_stride}) need AVX2"
    );
}

/// # Safety
/// Item (`row`, `col`) is valid on both sides.
#[inline(always)]
unsafe fn move_item<T: Copy>(
    dst: *mut u8,
    ds: [isize; 2],
    src: *const u8,
    ss: [isize; 2],
    row: usize,
    col: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let s = src
            .offset(ss[0] * row as isize + ss[1] * col as isize)
            .cast::<T>();
        *dst.offset(ds[0] * row as isize + ds[1] * col as isize)
            .cast::<T>() = *s;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{copy_nd, fill_nd, zero};
    use crate::Serial;
    use crate::threads::Scoped;

    /// Copies a dense array of `shape` from a source whose axes lie in `order`, reversed where `back` has a bit set, and compares item by item.
    fn check(size: usize, shape: &[usize], order: &[usize], back: usize) {
        let (rank, n) = (shape.len(), shape.iter().product::<usize>());
        let dense = |order: &mut dyn Iterator<Item = usize>| {
            let mut strides = vec![0_isize; rank];
            let mut step = size as isize;
            for axis in order {
                strides[axis] = step;
                step *= shape[axis] as isize;
            }
            strides
        };
        let to = dense(&mut (0..rank).rev());
        let mut from = dense(&mut order.iter().rev().copied());
        let mut first = 0;
        for axis in (0..rank).filter(|axis| back >> axis & 1 == 1) {
            first += from[axis] * (shape[axis] as isize - 1);
            from[axis] = -from[axis];
        }
        // A vector of words, so that items are aligned; its bytes differ from item to item.
        let words = (n * size).div_ceil(8);
        let src: Vec<u64> = (0..words as u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let bytes =
            |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|w| w.to_ne_bytes()).collect() };
        let source = bytes(&src);
        for threads in [1, 3] {
            let mut dst = vec![0_u64; words];
            // SAFETY: both have the items of the shape; the strides stay inside the source.
            unsafe {
                let src = src.as_ptr().cast::<u8>().offset(first);
                copy_nd(
                    &Scoped(threads),
                    size,
                    shape,
                    dst.as_mut_ptr().cast(),
                    &to,
                    src,
                    &from,
                );
            }
            let result = bytes(&dst);
            for item in 0..n {
                let (mut rest, mut at) = (item, first);
                for axis in (0..rank).rev() {
                    at += from[axis] * (rest % shape[axis]) as isize;
                    rest /= shape[axis];
                }
                let (i, at) = (item * size, at as usize);
                assert_eq!(
                    result[i..i + size],
                    source[at..at + size],
                    "item {item} of {shape:?} in order {order:?}, {size} bytes, backwards {back:b}"
                );
            }
        }
    }

    #[test]
    fn transposed_copies_move_every_item() {
        for size in [1, 2, 4, 8, 16] {
            for shape in [
                [17, 33],
                [701, 813],
                [40, 14_000],
                [14_000, 40],
                [600, 1025],
                [3, 200_000],
            ] {
                for back in 0..4 {
                    check(size, &shape, &[1, 0], back);
                }
            }
        }
    }

    #[test]
    fn transposed_copies_of_three_axes_too() {
        for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            for shape in [
                [60, 101, 102],
                [3, 300, 600],
                [300, 3, 600],
                [600, 300, 3],
                [8, 8, 9000],
            ] {
                check(4, &shape, &order, 0);
                check(8, &shape, &order, 5);
            }
        }
    }

    #[test]
    fn fills_repeat_their_value_and_stop() {
        for (size, n) in [
            (1, 5),
            (2, 1001),
            (4, 600_001),
            (8, 300_007),
            (16, 140_003),
            (1, 3_000_017),
        ] {
            for offset in [0, 1, 3] {
                let value: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
                let mut out = vec![0x55_u8; (n + 8) * size + 16];
                let first = out.as_ptr().align_offset(16) + offset * size;
                // SAFETY: `n` items fit after the first one, aligned to their size.
                unsafe {
                    let to = out.as_mut_ptr().add(first);
                    fill_nd(
                        &Scoped(2),
                        size,
                        &[n],
                        to,
                        &[size as isize],
                        value.as_ptr().cast(),
                    );
                }
                let want: Vec<u8> = value
                    .iter()
                    .flat_map(|w| w.to_ne_bytes())
                    .take(size)
                    .collect();
                assert!(
                    out[first..first + n * size]
                        .chunks(size)
                        .all(|item| item == want)
                );
                let outside = out[..first].iter().chain(&out[first + n * size..]);
                assert!(
                    outside.into_iter().all(|&b| b == 0x55),
                    "{n} items of {size} bytes at {offset}"
                );
                // SAFETY: as above.
                unsafe { zero(&Serial, out.as_mut_ptr().add(first), n * size) };
                assert!(out[first..first + n * size].iter().all(|&b| b == 0));
                assert_eq!(out[first + n * size], 0x55);
            }
        }
    }
}
