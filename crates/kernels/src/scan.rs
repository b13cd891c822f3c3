//! Cumulative sums, products and extrema along one axis.

use std::mem::MaybeUninit;

use crate::reduce::kernel::CHAINS;
use crate::reduce::plan::{Axes, Axis, Units, count, normalise};
use crate::reduce::product::multiplies_exactly;
use crate::reduce::{Reduce, Source, Target, Types};
use crate::threads::split;
use crate::{Elem, Threads};

/// The operation along the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scan {
    /// Sum of all elements up to this one.
    Sum,
    /// Product of all elements up to this one.
    Prod,
    /// Minimum of all elements up to this one; NaN from the first NaN on.
    Min,
    /// Maximum of all elements up to this one; NaN from the first NaN on.
    Max,
}

/// Where a scan starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// At index 0.
    Forward,
    /// At the last index.
    Reverse,
}

/// Bytes of one block of a row, or of one row of columns.
const BLOCK_BYTES: usize = 8 * 1024;
/// Elements of one segment of a long row.
const SEGMENT: usize = 64 * 1024;

type Block = MaybeUninit<[[u64; 8]; BLOCK_BYTES / 64]>;

/// Scans `src` along `axis` into `out`, which has the source's shape.
///
/// Accumulates as [`reduce`](crate::reduce::reduce) does. Rows of at least 256 Ki elements are split into fixed segments, whose totals are computed
/// first. They run on several threads and the result does not depend on their number. Integer sums, exact in any grouping, are not split for two
/// threads.
///
/// # Safety
/// Every element of `src` can be read and every element of `out` written; `out` either does not overlap `src` or is the same elements
/// with the same type and strides; elements of `out` do not overlap each other; both strides have one entry per axis of `src`.
pub unsafe fn scan(
    threads: &dyn Threads,
    op: Scan,
    direction: Direction,
    src: &Source,
    axis: usize,
    out: &Target,
) {
    let (mut from, mut to) = (src.ptr, out.ptr);
    let along = |i: usize| Axis {
        len: src.shape[i],
        src: src.strides[i],
        dst: out.strides[i],
    };
    let mut keep: Axes = (0..src.shape.len())
        .filter(|&i| i != axis)
        .map(along)
        .collect();
    let mut line = along(axis);
    let outputs = count(&keep) * line.len;
    if outputs == 0 {
        return;
    }
    if direction == Direction::Reverse {
        let last = line.len as isize - 1;
        (from, to) = (
            from.wrapping_offset(line.src * last),
            to.wrapping_offset(line.dst * last),
        );
        (line.src, line.dst) = (-line.src, -line.dst);
    }
    normalise(&mut keep, &mut from, &mut to);
    let inner = keep.pop().unwrap_or(Axis {
        len: 1,
        src: 0,
        dst: 0,
    });
    let is_product = op == Scan::Prod;
    let sums_whole_numbers = op == Scan::Sum && src.elem < Elem::F16;
    let op = match op {
        Scan::Sum => Reduce::Sum,
        Scan::Prod => Reduce::Prod,
        Scan::Min => Reduce::Min,
        Scan::Max => Reduce::Max,
    };
    let types = Types::new(op, src.elem, out.elem);
    let size = types.acc.size();
    let is_dense_accumulator =
        |elem: Elem, step: isize| elem == types.acc && elem != Elem::Bool && step == size as isize;
    let job = Job {
        size,
        reads: is_dense_accumulator(src.elem, line.src),
        writes: is_dense_accumulator(out.elem, line.dst),
        types,
        line,
    };
    let columns = inner.len >= 8 && (inner.src < line.src.abs() || inner.len > line.len);
    let width = if columns {
        (BLOCK_BYTES / job.size).min(256)
    } else {
        // Whole groups of `CHAINS` rows, unless there are too few rows for that.
        match (SEGMENT / line.len).clamp(1, 1024) {
            width if width > CHAINS => width / CHAINS * CHAINS,
            _ if inner.len >= 8 * CHAINS => CHAINS,
            width => width,
        }
    };
    let parts = Units::new(&keep, inner, width);
    let units = parts.count();
    let (from, to) = (from as usize, to as usize);
    let locate = |unit: usize| {
        let (src, dst, width) = parts.locate(unit);
        (
            (from as *const u8).wrapping_offset(src),
            (to as *mut u8).wrapping_offset(dst),
            width,
        )
    };
    if columns {
        return split(threads, units, outputs, &|unit| {
            let (src, dst, width) = locate(unit);
            // SAFETY: offsets lie inside the caller's arrays; units are disjoint.
            unsafe { job.columns(src, dst, inner, width) };
        });
    }
    // Integer sums are equal in any grouping, and one pass over a row on one thread is as fast as two passes on two threads.
    let in_one = sums_whole_numbers && threads.count() <= 2;
    let segments = if line.len >= 4 * SEGMENT && !in_one {
        line.len.div_ceil(SEGMENT)
    } else {
        1
    };
    if segments == 1 {
        return split(threads, units, outputs, &|unit| {
            let (src, dst, width) = locate(unit);
            // Integer additions have a short latency, so reading several rows together is not faster.
            let together = match sums_whole_numbers {
                true => 0,
                false => width / CHAINS * CHAINS,
            };
            for j in (0..together as isize).step_by(CHAINS) {
                // SAFETY: as above.
                unsafe { job.rows(src.offset(j * inner.src), dst.offset(j * inner.dst), inner) };
            }
            for j in together as isize..width as isize {
                // SAFETY: as above.
                unsafe {
                    let mut carry = job.neutral();
                    job.row(
                        src.offset(j * inner.src),
                        dst.offset(j * inner.dst),
                        0,
                        line.len,
                        &mut carry,
                    );
                }
            }
        });
    }
    // A long row is one unit, because its length exceeds a segment.
    let mut carries = crate::scratch::filled(units * segments, [0u64; 2]);
    let base = carries.as_mut_ptr() as usize;
    let range = |s: usize| (s * SEGMENT, line.len.min((s + 1) * SEGMENT));
    split(threads, units * segments, outputs, &|task| {
        let (start, end) = range(task % segments);
        // SAFETY: every task writes its own carry.
        unsafe {
            *(base as *mut Carry).add(task) = job.total(locate(task / segments).0, start, end)
        };
    });
    let mut is_sound = true;
    for row in carries.chunks_exact_mut(segments) {
        // SAFETY: carries are values of the accumulator type, which do not overlap.
        let mut before = unsafe { job.neutral() };
        for carry in row {
            let total = std::mem::replace(carry, before);
            if is_product {
                // SAFETY: as above.
                is_sound &= unsafe {
                    multiplies_exactly(before.as_ptr().cast(), total.as_ptr().cast(), job.types.acc)
                };
            }
            // SAFETY: as above.
            unsafe {
                (job.types.kernel.rows)(before.as_mut_ptr().cast(), total.as_ptr().cast(), 0, 1, 1)
            };
        }
    }
    if !is_sound {
        // The product of a segment over- or underflowed, although the running products may not have: recompute in the order of the elements.
        return split(threads, units, outputs, &|unit| {
            let (src, dst, _) = locate(unit);
            // SAFETY: as above: units are disjoint.
            unsafe { job.row(src, dst, 0, line.len, &mut job.neutral()) };
        });
    }
    split(threads, units * segments, outputs, &|task| {
        let (start, end) = range(task % segments);
        let (src, dst, _) = locate(task / segments);
        // SAFETY: tasks write disjoint segments; the carries are only read.
        unsafe {
            job.row(
                src,
                dst,
                start,
                end,
                &mut (base as *const Carry).add(task).read(),
            )
        };
    });
}

/// One accumulator of any type.
type Carry = [u64; 2];

struct Job {
    types: Types,
    size: usize,
    /// Whether rows of the source are contiguous values of the accumulator's type.
    reads: bool,
    /// Whether rows of the result are contiguous values of the accumulator's type.
    writes: bool,
    /// The scanned axis.
    line: Axis,
}

impl Job {
    unsafe fn neutral(&self) -> Carry {
        let mut carry = [0; 2];
        // SAFETY: a carry has room for any accumulator.
        unsafe { (self.types.kernel.fill)(carry.as_mut_ptr().cast(), 1) };
        carry
    }

    /// Fold of elements `start..end` of a row.
    unsafe fn total(&self, src: *const u8, start: usize, end: usize) -> Carry {
        let block = BLOCK_BYTES / self.size;
        let mut buffer = Block::uninit();
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: elements lie inside the source, `block` values fit the buffer.
        unsafe {
            let mut total = self.neutral();
            for i in (start..end).step_by(block) {
                let n = block.min(end - i);
                let mut part: Carry = [0; 2];
                let values = self.values(src.offset(i as isize * self.line.src), n, buffer);
                (self.types.kernel.fold)(values, n, part.as_mut_ptr().cast());
                (self.types.kernel.rows)(total.as_mut_ptr().cast(), part.as_ptr().cast(), 0, 1, 1);
            }
            total
        }
    }

    /// The `n` elements of a row from `src` on as values of the accumulator's type: in place, or converted into the buffer.
    ///
    /// # Safety
    /// The elements can be read; the buffer has room for `n` values.
    unsafe fn values(&self, src: *const u8, n: usize, buffer: *mut u8) -> *const u8 {
        if self.reads {
            return src;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { (self.types.load)(src, self.line.src, n, buffer) };
        buffer
    }

    /// Scans elements `start..end` of a row; `carry` is the fold of the elements before.
    unsafe fn row(
        &self,
        src: *const u8,
        dst: *mut u8,
        start: usize,
        end: usize,
        carry: &mut Carry,
    ) {
        let block = BLOCK_BYTES / self.size;
        let mut buffer = Block::uninit();
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        for i in (start..end).step_by(block) {
            let n = block.min(end - i);
            // SAFETY: elements lie inside the arrays, `block` values fit the buffer.
            unsafe {
                let values = self.values(src.offset(i as isize * self.line.src), n, buffer);
                let dst = dst.offset(i as isize * self.line.dst);
                let results = if self.writes { dst } else { buffer };
                (self.types.kernel.prefix)(values, results, n, carry.as_mut_ptr().cast());
                if !self.writes {
                    (self.types.store)(buffer, dst, self.line.dst, n);
                }
            }
        }
    }

    /// Scans [`CHAINS`] rows with distance `apart` in alternation. Each row has the same additions in the same order as on its own.
    unsafe fn rows(&self, src: *const u8, dst: *mut u8, apart: Axis) {
        let most = BLOCK_BYTES / CHAINS / self.size;
        let (mut buffer, mut carries) = (Block::uninit(), [[0u64; 2]; CHAINS]);
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let carries = carries.as_mut_ptr().cast::<u8>();
        // SAFETY: elements lie inside the arrays; `CHAINS` parts of `most` values fit the buffer; there are `CHAINS` carries.
        unsafe {
            (self.types.kernel.fill)(carries, CHAINS);
            for i in (0..self.line.len).step_by(most) {
                let n = most.min(self.line.len - i);
                let at = |r: usize| buffer.add(r * n * self.size);
                let (from, to) = (i as isize * self.line.src, i as isize * self.line.dst);
                for r in 0..CHAINS {
                    let src = src.offset(r as isize * apart.src + from);
                    (self.types.load)(src, self.line.src, n, at(r));
                }
                (self.types.kernel.prefixes)(buffer, n, carries);
                for r in 0..CHAINS {
                    let dst = dst.offset(r as isize * apart.dst + to);
                    (self.types.store)(at(r), dst, self.line.dst, n);
                }
            }
        }
    }

    /// Scans `width` neighbouring rows together.
    unsafe fn columns(&self, src: *const u8, dst: *mut u8, inner: Axis, width: usize) {
        let (mut acc, mut buffer) = (Block::uninit(), Block::uninit());
        let (acc, buffer) = (
            acc.as_mut_ptr().cast::<u8>(),
            buffer.as_mut_ptr().cast::<u8>(),
        );
        // SAFETY: elements lie inside the arrays, `width` values fit each buffer.
        unsafe {
            (self.types.kernel.fill)(acc, width);
            for i in 0..self.line.len as isize {
                (self.types.load)(src.offset(i * self.line.src), inner.src, width, buffer);
                (self.types.kernel.rows)(acc, buffer, 0, 1, width);
                (self.types.store)(acc, dst.offset(i * self.line.dst), inner.dst, width);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Serial;
    use crate::reduce::fixtures::{Noise, Strided, indices};
    use crate::threads::Scoped;

    #[test]
    fn scans_agree_with_a_reference_loop() {
        let mut noise = Noise(21);
        for round in 0..600 {
            let ndim = 1 + noise.below(3);
            let shape: Vec<usize> = (0..ndim)
                .map(|_| [0, 1, 3, 17, 30][noise.below(5)])
                .collect();
            let mut order: Vec<usize> = (0..ndim).collect();
            (0..ndim).for_each(|i| order.swap(i, noise.below(ndim)));
            let steps: Vec<isize> = (0..ndim).map(|_| [1, 2, -1, 0][noise.below(4)]).collect();
            let axis = noise.below(ndim);
            let elem = Elem::ALL[round % Elem::COUNT];
            let op = [Scan::Sum, Scan::Prod, Scan::Min, Scan::Max][noise.below(4)];
            let direction = [Direction::Forward, Direction::Reverse][noise.below(2)];
            // Small integers: every result below is exact in every type.
            let x = Strided::new(elem, &shape, &order, &steps, || {
                (
                    if op == Scan::Prod {
                        1.0
                    } else {
                        noise.below(3) as f64
                    },
                    0.0,
                )
            });
            let out = if elem < Elem::F16 { Elem::I64 } else { elem };
            let mut y = Strided::new(out, &shape, &order, &vec![-1; ndim], || (9.0, 0.0));
            // SAFETY: the views lie in their buffers.
            unsafe { scan(&Serial, op, direction, &x.source(), axis, &y.target()) };
            for at in indices(&shape) {
                let range = if direction == Direction::Forward {
                    0..=at[axis]
                } else {
                    at[axis]..=shape[axis] - 1
                };
                let values = range.map(|i| {
                    let mut at = at.clone();
                    at[axis] = i;
                    x.at(&at).0
                });
                let want = match op {
                    Scan::Sum => values.sum(),
                    Scan::Prod => values.product(),
                    Scan::Min => values.fold(f64::INFINITY, f64::min),
                    Scan::Max => values.fold(f64::NEG_INFINITY, f64::max),
                };
                assert_eq!(
                    y.at(&at).0,
                    want,
                    "{op:?} {direction:?} {elem:?} {shape:?} {:?} axis {axis} at {at:?}",
                    x.strides
                );
            }
        }
    }

    #[test]
    fn long_rows_give_one_result_on_any_number_of_threads() {
        let mut noise = Noise(22);
        let x = Strided::contiguous(Elem::F32, &[300_001], || (noise.unit(), 0.0));
        let run = |threads: &dyn Threads, direction| {
            let mut y = Strided::contiguous(Elem::F32, &[300_001], || (0.0, 0.0));
            // SAFETY: the views lie in their buffers.
            unsafe { scan(threads, Scan::Sum, direction, &x.source(), 0, &y.target()) };
            y
        };
        for direction in [Direction::Forward, Direction::Reverse] {
            let y = run(&Serial, direction);
            assert_eq!(y.bytes, run(&Scoped(3), direction).bytes);
            let values = x.values();
            let mut sum = 0.0;
            for i in 0..values.len() {
                let i = if direction == Direction::Forward {
                    i
                } else {
                    values.len() - 1 - i
                };
                sum += values[i].0;
                // Rounding errors of sums below about 1000 add up like a random walk.
                assert!(
                    (y.at(&[i]).0 - sum).abs() < 0.03,
                    "{i}: {} not {sum}",
                    y.at(&[i]).0
                );
            }
        }
    }

    #[test]
    fn adjacent_rows_scan_like_single_rows() {
        let mut noise = Noise(23);
        for (round, elem) in [Elem::F32, Elem::F16, Elem::C128, Elem::I8]
            .into_iter()
            .enumerate()
        {
            for (rows, len) in [
                (9, 1),
                (16, 255),
                (23, 513),
                (70, 300),
                (9, 9000),
                (64, 70_000),
            ] {
                if len > 9000 && elem != Elem::F32 {
                    continue;
                }
                let op = [Scan::Sum, Scan::Prod, Scan::Min, Scan::Max][(round + rows) % 4];
                let x =
                    Strided::contiguous(elem, &[rows, len], || (2.0 * noise.unit(), noise.unit()));
                for direction in [Direction::Forward, Direction::Reverse] {
                    let mut all = Strided::contiguous(elem, &[rows, len], || (0.0, 0.0));
                    // SAFETY: the views lie in their buffers.
                    unsafe { scan(&Scoped(2), op, direction, &x.source(), 1, &all.target()) };
                    let bytes = len * elem.size();
                    for (row, wanted) in all.bytes.chunks_exact(bytes).enumerate() {
                        let mut alone = Strided::contiguous(elem, &[1, len], || (0.0, 0.0));
                        let source = Source {
                            ptr: x.bytes[row * bytes..].as_ptr(),
                            elem,
                            shape: &[1, len],
                            strides: &x.strides,
                        };
                        // SAFETY: as above.
                        unsafe { scan(&Serial, op, direction, &source, 1, &alone.target()) };
                        assert_eq!(
                            alone.bytes, wanted,
                            "{op:?} {direction:?} {elem:?}, row {row} of {rows} x {len}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn scans_in_place() {
        let mut x = Strided::contiguous(Elem::I32, &[2, 4], || (1.0, 0.0));
        let target = x.target();
        let source = Source {
            ptr: target.ptr,
            elem: target.elem,
            shape: &[2, 4],
            strides: target.strides,
        };
        // SAFETY: source and target are the same elements.
        unsafe { scan(&Serial, Scan::Sum, Direction::Forward, &source, 1, &target) };
        assert_eq!(
            x.values().iter().map(|v| v.0).collect::<Vec<_>>(),
            [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]
        );
    }
}
