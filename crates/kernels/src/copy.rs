//! Strided copy, fill and zero by item size, whatever the element type.

mod border;
mod row;
mod transpose;

use crate::nd::{Axes, Axis, MAX_OPERANDS};
use crate::{Threads, scratch};
pub use border::{BorderRun, border_runs, border_source};
pub use row::copy_row;
use transpose::transpose_tile;

/// Minimum bytes per task; a copy of less than twice this runs on one thread.
const GRAIN_BYTES: usize = 256 * 1024;

/// Sides of the tiles of transposed copies that are not staged. The destination is written in few enough streams for the hardware prefetcher to
/// follow. The source's cache lines (a pair per column, since lines are fetched in pairs) stay in L1, or at worst in L2, until all of their items
/// are used.
const TILE_ROWS: usize = 32;
const TILE_COLS: usize = 256;

/// A 16-byte item.
type Item16 = [u64; 2];

/// Evaluates `body` with `T` as the item type of `size` bytes.
macro_rules! with_item {
    ($size:expr, $t:ident => $body:expr) => {
        match $size {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            8 => {
                type $t = u64;
                $body
            }
            16 => {
                type $t = $crate::copy::Item16;
                $body
            }
            size => unreachable!("items have 1, 2, 4, 8 or 16 bytes, not {size}"),
        }
    };
}
use with_item;

/// A pointer shared with worker threads: tasks touch disjoint bytes.
#[derive(Clone, Copy)]
struct SharedPtr(*mut u8);
// SAFETY: every task writes its own part of the destination and only reads the source.
unsafe impl Send for SharedPtr {}
// SAFETY: as above.
unsafe impl Sync for SharedPtr {}

impl SharedPtr {
    fn ptr(self) -> *mut u8 {
        self.0
    }
}

/// Copies `shape` items of `size` bytes (1, 2, 4, 8 or 16) from `src` to `dst`; strides in bytes, any sign, source strides may be 0.
///
/// # Safety
/// 1. Both sides are valid for all items at their strides and aligned to the item size (16-byte items: to 8).
/// 2. Destination items are distinct and overlap no source item.
pub unsafe fn copy_nd(
    threads: &dyn Threads,
    size: usize,
    shape: &[usize],
    dst: *mut u8,
    dst_strides: &[isize],
    src: *const u8,
    src_strides: &[isize],
) {
    let axes = Axes::new(shape, &[dst_strides, src_strides]);
    if axes.len == 0 {
        return;
    }
    // SAFETY: `shift` is the offset of the first item of the loop, inside the operand.
    let (dst, src) = unsafe { (dst.offset(axes.shift[0]), src.offset(axes.shift[1])) };
    let unit = |len: usize| Axis {
        len,
        strides: [0; MAX_OPERANDS],
    };
    let mut list = axes.axes.clone();
    while list.len() < 2 {
        list.insert(0, unit(1));
    }
    // SAFETY: the pointers are at the first items of these axes (the caller guarantees that all are valid).
    if unsafe { transpose::copy_staged(threads, size, &list, dst, src) } {
        return;
    }
    let rank = list.len();
    let (outer, inner) = (list[rank - 2], list[rank - 1]);

    // A transposed pair of axes is split along both, so that a task is compact on both sides. Otherwise rows are split first, then their length.
    let grain = (GRAIN_BYTES / size).max(1);
    let (rows, cols) = if is_transposed(&outer, &inner) {
        let cols = inner.len.min(4 * TILE_COLS);
        (outer.len.min((grain / cols).max(TILE_ROWS)), cols)
    } else {
        let cols = inner.len.min(grain);
        (outer.len.min((grain / cols).max(1)), cols)
    };
    let (num_rows, num_cols) = (outer.len.div_ceil(rows), inner.len.div_ceil(cols));
    let outermost: usize = list[..rank - 2].iter().map(|a| a.len).product();
    let units = outermost * num_rows * num_cols;
    let per_task = (grain / (rows * cols)).max(1);
    let tasks = units.div_ceil(per_task);

    let ends = (SharedPtr(dst), SharedPtr(src.cast_mut()));
    let task = |t: usize| {
        for unit in t * per_task..units.min((t + 1) * per_task) {
            let (mut rest, col) = (unit / num_cols, unit % num_cols);
            let row = rest % num_rows;
            rest /= num_rows;
            let mut offset = [0isize; 2];
            for (k, at) in offset.iter_mut().enumerate() {
                *at = outer.strides[k] * (row * rows) as isize
                    + inner.strides[k] * (col * cols) as isize;
            }
            for axis in list[..rank - 2].iter().rev() {
                let i = (rest % axis.len) as isize;
                rest /= axis.len;
                offset[0] += axis.strides[0] * i;
                offset[1] += axis.strides[1] * i;
            }
            // SAFETY: the block lies inside the loop nest, whose items the caller guarantees.
            unsafe {
                copy_2d(
                    size,
                    rows.min(outer.len - row * rows),
                    cols.min(inner.len - col * cols),
                    ends.0.ptr().offset(offset[0]),
                    [outer.strides[0], inner.strides[0]],
                    ends.1.ptr().offset(offset[1]),
                    [outer.strides[1], inner.strides[1]],
                );
            }
        }
    };
    if tasks < 2 || threads.count() < 2 {
        (0..tasks).for_each(task);
    } else {
        threads.run(tasks, &task);
    }
}

/// [`copy_nd`] with strides in elements.
///
/// # Safety
/// As [`copy_nd`]'s.
pub(crate) unsafe fn copy_elements<T, const N: usize>(
    threads: &dyn Threads,
    shape: [usize; N],
    dst: *mut T,
    ds: [usize; N],
    src: *const T,
    ss: [usize; N],
) {
    let bytes = |strides: [usize; N]| strides.map(|s| (s * size_of::<T>()) as isize);
    // SAFETY: forwarded.
    unsafe {
        copy_nd(
            threads,
            size_of::<T>(),
            &shape,
            dst.cast(),
            &bytes(ds),
            src.cast(),
            &bytes(ss),
        )
    }
}

/// Whether the source's stride along `outer` is smaller than along `inner`, the destination's contiguous axis.
fn is_transposed(outer: &Axis, inner: &Axis) -> bool {
    let (o, i) = (
        outer.strides[1].unsigned_abs(),
        inner.strides[1].unsigned_abs(),
    );
    outer.len > 1 && o != 0 && o < i
}

/// Copies a block of `rows` × `cols` items; strides are `[between rows, between columns]`.
///
/// # Safety
/// Same as for [`copy_nd`].
pub(crate) unsafe fn copy_2d(
    size: usize,
    rows: usize,
    cols: usize,
    dst: *mut u8,
    dst_strides: [isize; 2],
    src: *const u8,
    src_strides: [isize; 2],
) {
    // SAFETY: same contract; the item type has the item's size and at most its alignment.
    unsafe {
        with_item!(size, T => block::<T>(rows, cols, dst, dst_strides, src, src_strides));
    }
}

/// Blocks with at most this many columns are copied column by column.
const MAX_COLUMNWISE_COLS: usize = 8;
/// Rows per step of a column-by-column copy: few enough to stay in L1.
const ROWS_PER_STEP: usize = 512;

/// # Safety
/// Same as for [`copy_nd`].
unsafe fn block<T: Copy>(
    rows: usize,
    cols: usize,
    dst: *mut u8,
    ds: [isize; 2],
    src: *const u8,
    ss: [isize; 2],
) {
    let transposed = rows > 1 && ss[0] != 0 && ss[0].unsigned_abs() < ss[1].unsigned_abs();
    // SAFETY: items stay inside the block, which the caller guarantees.
    unsafe {
        if !transposed && cols < MAX_COLUMNWISE_COLS && rows > MAX_COLUMNWISE_COLS {
            // With few items in a row, the overhead of a row would exceed its copy: lines run along the columns instead.
            let mut first = 0;
            while first < rows {
                let n = ROWS_PER_STEP.min(rows - first);
                for j in 0..cols as isize {
                    let (d, s) = (
                        ds[0] * first as isize + ds[1] * j,
                        ss[0] * first as isize + ss[1] * j,
                    );
                    line::<T>(n, dst.offset(d), ds[0], src.offset(s), ss[0]);
                }
                first += n;
            }
            return;
        }
        if !transposed {
            for i in 0..rows as isize {
                line::<T>(
                    cols,
                    dst.offset(ds[0] * i),
                    ds[1],
                    src.offset(ss[0] * i),
                    ss[1],
                );
            }
            return;
        }
        let mut r0 = 0;
        while r0 < rows {
            let r = TILE_ROWS.min(rows - r0);
            let mut c0 = 0;
            while c0 < cols {
                let c = TILE_COLS.min(cols - c0);
                let d = dst.offset(ds[0] * r0 as isize + ds[1] * c0 as isize);
                let s = src.offset(ss[0] * r0 as isize + ss[1] * c0 as isize);
                transpose_tile::<T>(r, c, d, ds, s, ss);
                c0 += c;
            }
            r0 += r;
        }
    }
}

/// Copies one line of items. Common strides have their own loops, which vectorise.
///
/// # Safety
/// Same as for [`copy_nd`].
unsafe fn line<T: Copy>(
    n: usize,
    dst: *mut u8,
    dst_stride: isize,
    src: *const u8,
    src_stride: isize,
) {
    let size = size_of::<T>() as isize;
    // SAFETY: items stay inside the line.
    unsafe {
        let (d, s) = (dst.cast::<T>(), src.cast::<T>());
        if dst_stride == size {
            if src_stride == size {
                copy_row(src, dst, n * size_of::<T>());
            } else if src_stride == 0 {
                let value = *s;
                for i in 0..n {
                    *d.add(i) = value;
                }
            } else if src_stride == 2 * size {
                for i in 0..n {
                    *d.add(i) = *s.add(2 * i);
                }
            } else if src_stride == -size {
                for i in 0..n {
                    *d.add(i) = *s.offset(-(i as isize));
                }
            } else {
                for i in 0..n as isize {
                    *d.offset(i) = *src.offset(src_stride * i).cast::<T>();
                }
            }
        } else if src_stride == size {
            for i in 0..n as isize {
                *dst.offset(dst_stride * i).cast::<T>() = *s.offset(i);
            }
        } else {
            for i in 0..n as isize {
                *dst.offset(dst_stride * i).cast::<T>() = *src.offset(src_stride * i).cast::<T>();
            }
        }
    }
}

/// Sets every item of `shape` to the `size` bytes at `value`.
///
/// # Safety
/// 1. `dst` is valid for all items at its strides (bytes) and aligned to the item size (16-byte items: to 8).
/// 2. `value` points at `size` bytes with the same alignment, which do not overlap `dst`.
pub unsafe fn fill_nd(
    threads: &dyn Threads,
    size: usize,
    shape: &[usize],
    dst: *mut u8,
    dst_strides: &[isize],
    value: *const u8,
) {
    const NONE: [isize; 64] = [0; 64];
    // SAFETY: guaranteed by the caller; a source whose strides are all 0 is one item.
    unsafe {
        copy_nd(
            threads,
            size,
            shape,
            dst,
            dst_strides,
            value,
            &NONE[..shape.len()],
        )
    }
}

/// Sets `len_bytes` bytes to zero.
///
/// # Safety
/// `dst` is valid for writes of `len_bytes` bytes.
pub unsafe fn zero(threads: &dyn Threads, dst: *mut u8, len_bytes: usize) {
    let tasks = len_bytes.div_ceil(GRAIN_BYTES);
    let end = SharedPtr(dst);
    let task = |t: usize| {
        let at = t * GRAIN_BYTES;
        // SAFETY: the part lies inside the caller's bytes.
        unsafe {
            end.ptr()
                .add(at)
                .write_bytes(0, GRAIN_BYTES.min(len_bytes - at))
        }
    };
    if tasks < 2 || threads.count() < 2 {
        // SAFETY: guaranteed by the caller.
        unsafe { dst.write_bytes(0, len_bytes) }
    } else {
        threads.run(tasks, &task);
    }
}

/// How often each row is repeated.
#[derive(Clone, Copy, Debug)]
pub enum Counts<'a> {
    /// `All(n, count)`: a block has `n` rows, each repeated `count` times.
    All(usize, usize),
    /// Row `i` of each block is repeated `counts[i]` times; no count is negative.
    Each(&'a [i64]),
}

/// Writes each row of `blocks` blocks, repeated as `counts` says. A row has `row_bytes` bytes.
///
/// # Safety
/// `src` holds the rows, `dst` has room for the result and does not overlap `src`; both are aligned to `row_bytes` if that is 2, 4 or 8.
pub unsafe fn repeat_rows(
    threads: &dyn Threads,
    row_bytes: usize,
    blocks: usize,
    counts: Counts,
    src: *const u8,
    dst: *mut u8,
) {
    /// Rows per task.
    const ROWS: usize = 1024;
    // Offset of each row in the result of a block, in rows.
    let mut starts = Vec::new();
    let (rows, total) = match counts {
        Counts::All(rows, times) => (rows, rows * times),
        Counts::Each(counts) => {
            let mut total = 0;
            scratch::reserve(&mut starts, counts.len());
            for &count in counts {
                starts.push(total);
                total += count as usize;
            }
            (counts.len(), total)
        }
    };
    let all = blocks * rows;
    let (src, dst) = (SharedPtr(src.cast_mut()), SharedPtr(dst));
    let task = |t: usize| {
        let (first, end) = (t * ROWS, all.min((t + 1) * ROWS));
        let (block, mut row) = (first / rows, first % rows);
        let start = match counts {
            Counts::All(_, times) => row * times,
            Counts::Each(_) => starts[row],
        };
        // Iterator over the counts of the rows from `first` on.
        let mut next = || match counts {
            Counts::All(_, times) => times,
            Counts::Each(counts) => {
                let count = counts[row] as usize;
                row = if row + 1 == rows { 0 } else { row + 1 };
                count
            }
        };
        // SAFETY: rows `first..end` of the source and their copies in the result, which only this task writes: the copies of consecutive rows are
        // consecutive.
        unsafe {
            let from = src.ptr().add(first * row_bytes).cast_const();
            let mut to = dst.ptr().add((block * total + start) * row_bytes);
            macro_rules! put {
                ($word:ty) => {
                    for i in 0..end - first {
                        let word = *from.cast::<$word>().add(i);
                        let (count, target) = (next(), to.cast::<$word>());
                        if count == 2 {
                            // The most common count, without a loop.
                            (*target, *target.add(1)) = (word, word);
                        } else {
                            for k in 0..count {
                                *target.add(k) = word;
                            }
                        }
                        to = to.add(count * size_of::<$word>());
                    }
                };
            }
            match row_bytes {
                1 => put!(u8),
                2 => put!(u16),
                4 => put!(u32),
                8 => put!(u64),
                16 => put!([u8; 16]),
                _ => {
                    for i in 0..end - first {
                        for _ in 0..next() {
                            to.copy_from_nonoverlapping(from.add(i * row_bytes), row_bytes);
                            to = to.add(row_bytes);
                        }
                    }
                }
            }
        }
    };
    let tasks = all.div_ceil(ROWS);
    if tasks < 2 || threads.count() < 2 || blocks * total * row_bytes < 2 * GRAIN_BYTES {
        (0..tasks).for_each(task);
    } else {
        threads.run(tasks, &task);
    }
}

#[cfg(test)]
mod repeat_tests {
    use super::*;
    use crate::Serial;

    fn repeated<T: Copy>(x: &[T], width: usize, blocks: usize, counts: Counts, fill: T) -> Vec<T> {
        let per_block = match counts {
            Counts::All(rows, times) => rows * times,
            Counts::Each(counts) => counts.iter().sum::<i64>() as usize,
        };
        let mut out = vec![fill; blocks * per_block * width];
        let (src, dst) = (x.as_ptr().cast(), out.as_mut_ptr().cast());
        // SAFETY: `src` has the rows and `dst` the size of the result.
        unsafe { repeat_rows(&Serial, width * size_of::<T>(), blocks, counts, src, dst) };
        out
    }

    #[test]
    fn rows_are_repeated_by_their_counts() {
        let x = [1_i32, 2, 3, 4];
        assert_eq!(
            repeated(&x, 1, 1, Counts::All(4, 2), 0),
            [1, 1, 2, 2, 3, 3, 4, 4]
        );
        assert_eq!(repeated(&x, 1, 2, Counts::Each(&[0, 2]), 0), [2, 2, 4, 4]);
        assert_eq!(
            repeated(&x, 2, 1, Counts::Each(&[2, 1]), 0),
            [1, 2, 1, 2, 3, 4]
        );
        let wide = [[1_u64; 3], [2; 3]];
        assert_eq!(repeated(&wide, 1, 1, Counts::All(2, 1), [0; 3]), wide);
        assert!(repeated(&x, 1, 1, Counts::All(4, 0), 0).is_empty());
    }
}
