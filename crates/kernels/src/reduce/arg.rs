//! `argmin` and `argmax`: positions of extrema.

use std::mem::MaybeUninit;

use super::kernel::{Fold, Lane, Load, Max, Min, SCALAR_LEN, by_isa, fold_row, load_of, truth_of};
use super::number::{Bit, Complex, Number};
use super::plan::{Axes, Axis, Units, Walk, count, join, normalise};
use super::{Source, Target};
use crate::lanes::in_lanes;
use crate::threads::split;
use crate::{Elem, Threads};

/// Which extreme to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// Bytes of one block of a row, and of one row of columns.
const BLOCK_BYTES: usize = 8 * 1024;
/// Columns searched together.
const COLUMNS: usize = 256;
/// Elements of one segment of a long row.
const SEGMENT: usize = 64 * 1024;

/// Aligned buffer for one block.
type Block = MaybeUninit<[[u64; 8]; BLOCK_BYTES / 64]>;
/// Buffer for one value of any type.
type Value = [u64; 2];

#[derive(Clone, Copy)]
struct Kernel {
    /// `(values, n, best, has_best)`: searches a block for a value better than `best`. Returns the position of the first best one, which replaces
    /// `best`.
    row: unsafe fn(*const u8, usize, *mut u8, bool) -> Option<usize>,
    /// `(best, positions, values, row number, n)`: updates the best values and positions of `n` columns with one more row.
    columns: unsafe fn(*mut u8, *mut i64, *const u8, i64, usize),
}

fn kernel<O>(acc: Elem) -> Kernel
where
    O: Fold<Bit>
        + Fold<i8>
        + Fold<i16>
        + Fold<i32>
        + Fold<i64>
        + Fold<u8>
        + Fold<u16>
        + Fold<u32>
        + Fold<u64>,
    O: Fold<f32> + Fold<f64> + Fold<Complex<f32>> + Fold<Complex<f64>>,
{
    fn of<A: Lane, O: Fold<A>>() -> Kernel {
        Kernel {
            row: row::<A, O>,
            columns: columns::<A, O>,
        }
    }
    match acc {
        Elem::Bool => of::<Bit, O>(),
        Elem::I8 => of::<i8, O>(),
        Elem::I16 => of::<i16, O>(),
        Elem::I32 => of::<i32, O>(),
        Elem::I64 => of::<i64, O>(),
        Elem::U8 => of::<u8, O>(),
        Elem::U16 => of::<u16, O>(),
        Elem::U32 => of::<u32, O>(),
        Elem::U64 => of::<u64, O>(),
        Elem::F64 => of::<f64, O>(),
        Elem::C64 => of::<Complex<f32>, O>(),
        Elem::C128 => of::<Complex<f64>, O>(),
        _ => of::<f32, O>(),
    }
}

/// Whether `b` replaces `a`: it is strictly better, or the first NaN.
#[inline(always)]
fn replaces<A: Number, O: Fold<A>>(a: A, b: A) -> bool {
    !a.is_nan() & (b.is_nan() | ((O::apply(a, b) == b) & (a != b)))
}

/// The first index for which a condition holds: without branches up to the block that contains it.
macro_rules! first {
    ($x:ident, |$v:ident| $holds:expr) => {{
        const BLOCK: usize = 64;
        let mut start = 0;
        while start + BLOCK <= $x.len() {
            let mut any = false;
            for i in 0..BLOCK {
                // SAFETY: the block lies inside the slice.
                let $v = unsafe { *$x.get_unchecked(start + i) };
                any |= $holds;
            }
            if any {
                break;
            }
            start += BLOCK;
        }
        let end = $x.len().min(start + BLOCK);
        let first = in_lanes!(32; u32::MAX, |a, b| a.min(b); i in start, end, |first| {
            // SAFETY: as above.
            let $v = unsafe { *$x.get_unchecked(i) };
            first.min(if $holds { (i - start) as u32 } else { u32::MAX })
        });
        (first != u32::MAX).then_some(start + first as usize)
    }};
}

by_isa! {
    unsafe fn row [A: Lane, O: Fold<A>] [A, O] (x: *const u8, n: usize, best: *mut u8, has_best: bool) -> Option<usize> {
        // SAFETY: the caller gives `n` values and room for one.
        let (x, best) = unsafe { (std::slice::from_raw_parts(x.cast::<A>(), n), &mut *best.cast::<A>()) };
        if n <= SCALAR_LEN {
            // For so few values, choosing among the loops below costs more than a scalar loop.
            let (mut at, mut has_best) = (None, has_best);
            for (i, &value) in x.iter().enumerate() {
                if !has_best || replaces::<A, O>(*best, value) {
                    (*best, at, has_best) = (value, Some(i), true);
                }
            }
            return at;
        }
        let extreme = fold_row::<A, O>(x);
        if has_best && !replaces::<A, O>(*best, extreme) {
            return None;
        }
        *best = extreme;
        first!(x, |v| (v == extreme) | (extreme.is_nan() & v.is_nan()))
    }
}

by_isa! {
    unsafe fn columns [A: Lane, O: Fold<A>] [A, O] (best: *mut u8, positions: *mut i64, x: *const u8, r: i64, n: usize) {
        // SAFETY: the caller gives `n` values, bests and positions, which do not overlap.
        unsafe {
            let (best, positions) = (std::slice::from_raw_parts_mut(best.cast::<A>(), n), std::slice::from_raw_parts_mut(positions, n));
            let x = std::slice::from_raw_parts(x.cast::<A>(), n);
            for j in 0..n {
                let better = (r == 0) | replaces::<A, O>(best[j], x[j]);
                best[j] = if better { x[j] } else { best[j] };
                positions[j] = if better { r } else { positions[j] };
            }
        }
    }
}

/// Writes the index of the extremum of every row along `axis` to `out` (I64), or the flat index in C order of the whole array if `axis` is `None`.
///
/// The first of equal values wins and NaN counts as extremum, as in NumPy; complex numbers compare by real, then by imaginary part.
///
/// # Safety
/// Every element of `src` can be read and every element of `out` can be written; they do not overlap; the searched length is not 0; all strides have
/// one entry per axis of `src`. The stride of `out` along `axis` (all of its strides if `None`) is ignored.
pub unsafe fn arg_reduce(
    threads: &dyn Threads,
    which: Extreme,
    src: &Source,
    axis: Option<usize>,
    out: &Target,
) {
    debug_assert!(out.elem == Elem::I64);
    let (mut from, mut to) = (src.ptr, out.ptr);
    let (mut keep, mut red) = (Axes::new(), Axes::new());
    for (i, (&len, &stride)) in src.shape.iter().zip(src.strides).enumerate() {
        match axis {
            Some(a) if a != i => keep.push(Axis {
                len,
                src: stride,
                dst: out.strides[i],
            }),
            _ => red.push(Axis {
                len,
                src: stride,
                dst: 0,
            }),
        }
    }
    if count(&keep) == 0 {
        return;
    }
    normalise(&mut keep, &mut from, &mut to);
    join(&mut red);
    let acc = src.elem.compute();
    let inner = keep.pop().unwrap_or(Axis {
        len: 1,
        src: 0,
        dst: 0,
    });
    let n = count(&red);
    let stride = red.last().map_or(0, |r| r.src).unsigned_abs() as isize;
    let side_by_side = inner.len >= 8 && (inner.src < stride || (n < 16 && inner.len > n));
    let search = Search {
        kernel: if which == Extreme::Min {
            kernel::<Min>(acc)
        } else {
            kernel::<Max>(acc)
        },
        load: if src.elem == Elem::Bool {
            truth_of(src.elem)
        } else {
            load_of(src.elem, acc)
        },
        size: acc.size(),
        needs_no_load: acc == src.elem && acc != Elem::Bool,
        best_truth: (src.elem == Elem::Bool).then_some(which == Extreme::Max),
        red,
        n,
    };
    let width = if side_by_side {
        COLUMNS.min(BLOCK_BYTES / search.size)
    } else {
        (SEGMENT / n).clamp(1, 1024)
    };
    let parts = Units::new(&keep, inner, width);
    let units = parts.count();
    let work = n * count(&keep) * inner.len;
    let (from, to) = (from as usize, to as usize);
    let locate = |unit: usize| {
        let (src, dst, width) = parts.locate(unit);
        (
            (from as *const u8).wrapping_offset(src),
            (to as *mut u8).wrapping_offset(dst),
            width,
        )
    };
    if units == 1 && inner.len == 1 && n >= 2 * SEGMENT {
        if search.best_truth.is_some() {
            // SAFETY: the segment lies inside the source, the output is the caller's.
            unsafe {
                let (value, at) = search.row(from as *const u8, 0, SEGMENT);
                if search.is_last(&value) {
                    *(to as *mut i64) = at as i64;
                    return;
                }
            }
        }
        let segments = n.div_ceil(SEGMENT);
        let mut found: Vec<(Value, usize)> = crate::scratch::filled(segments, ([0; 2], 0));
        let base = found.as_mut_ptr() as usize;
        split(threads, segments, work, &|s| {
            let (start, end) = (s * SEGMENT, n.min((s + 1) * SEGMENT));
            // SAFETY: every task writes its own entry; offsets lie inside the source.
            unsafe {
                *(base as *mut (Value, usize)).add(s) = search.row(from as *const u8, start, end)
            };
        });
        let (mut best, mut at) = found[0];
        for (value, position) in &mut found[1..] {
            // SAFETY: both hold a value of the kernel's type.
            if unsafe {
                (search.kernel.row)(value.as_ptr().cast(), 1, best.as_mut_ptr().cast(), true)
            }
            .is_some()
            {
                at = *position;
            }
        }
        // SAFETY: the caller's output.
        return unsafe { *(to as *mut i64) = at as i64 };
    }
    split(threads, units, work, &|unit| {
        let (src, dst, width) = locate(unit);
        // SAFETY: offsets lie inside the caller's arrays.
        unsafe {
            if side_by_side {
                return search.columns(src, dst, inner, width);
            }
            for j in 0..width as isize {
                *dst.offset(j * inner.dst).cast::<i64>() =
                    search.row(src.offset(j * inner.src), 0, n).1 as i64;
            }
        }
    });
}

/// [`arg_reduce`] along the middle one of three axes of a contiguous array in C order, on one thread. Returns whether it was done. It is not done for element types that
/// need a conversion before they are compared, nor for many columns.
///
/// # Safety
/// `src` has `outer * n * inner` elements, `n > 0`, and `out` has room for `outer * inner`; they do not overlap.
pub unsafe fn arg_reduce_contiguous(
    which: Extreme,
    elem: Elem,
    src: *const u8,
    [outer, n, inner]: [usize; 3],
    out: *mut i64,
) -> bool {
    const MAX_COLUMNS: usize = 64;
    if elem.compute() != elem || elem == Elem::Bool || inner > MAX_COLUMNS {
        return false;
    }
    let kernel = match which {
        Extreme::Min => kernel::<Min>(elem),
        Extreme::Max => kernel::<Max>(elem),
    };
    let size = elem.size();
    let mut best = MaybeUninit::<[Value; MAX_COLUMNS]>::uninit();
    let best = best.as_mut_ptr().cast::<u8>();
    for i in 0..outer {
        // SAFETY: 1. block `i` of `n * inner` elements lies inside the source, its `inner` positions inside the output. 2. `best` has room
        // for `MAX_COLUMNS` values of any type. 3. the first row is not compared with `best`, which is uninitialised then.
        unsafe {
            let (src, out) = (src.add(i * n * inner * size), out.add(i * inner));
            if inner == 1 {
                *out = (kernel.row)(src, n, best, false).unwrap_or(0) as i64;
                continue;
            }
            for r in 0..n {
                (kernel.columns)(best, out, src.add(r * inner * size), r as i64, inner);
            }
        }
    }
    true
}

struct Search {
    kernel: Kernel,
    load: Load,
    size: usize,
    needs_no_load: bool,
    /// The truth value that no other one replaces, in arrays of booleans.
    best_truth: Option<bool>,
    red: Axes,
    n: usize,
}

impl Search {
    /// Whether nothing that follows replaces this value.
    fn is_last(&self, best: &Value) -> bool {
        self.best_truth
            .is_some_and(|truth| best[0].to_ne_bytes()[0] == u8::from(truth))
    }

    /// The extremum of elements `start..end` of a row, and its index.
    unsafe fn row(&self, src: *const u8, start: usize, end: usize) -> (Value, usize) {
        let mut best: Value = [0; 2];
        let stride = self.red.last().map_or(self.size as isize, |r| r.src);
        let reads_source = self.needs_no_load && stride == self.size as isize;
        if reads_source && self.red.len() == 1 && (end - start) * self.size <= BLOCK_BYTES {
            // One block, read where it lies.
            let from = src.wrapping_offset(start as isize * stride);
            // SAFETY: the elements lie inside the source.
            let found =
                unsafe { (self.kernel.row)(from, end - start, best.as_mut_ptr().cast(), false) };
            return (best, found.map_or(start, |p| start + p));
        }
        let mut at = start;
        let mut walk = Walk::new(&self.red, start);
        let mut buffer = Block::uninit();
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        let mut i = start;
        while i < end {
            let (offset, left) = walk.run();
            let n = left.min(end - i).min(BLOCK_BYTES / self.size);
            let from = src.wrapping_offset(offset);
            // SAFETY: the run lies inside the source; `n` values fit the buffer.
            let found = unsafe {
                if !reads_source {
                    (self.load)(from, stride, n, buffer);
                }
                (self.kernel.row)(
                    if reads_source { from } else { buffer },
                    n,
                    best.as_mut_ptr().cast(),
                    i != start,
                )
            };
            at = found.map_or(at, |p| i + p);
            if self.is_last(&best) {
                break;
            }
            walk.advance(n);
            i += n;
        }
        (best, at)
    }

    /// Computes `width` neighbouring outputs together.
    unsafe fn columns(&self, src: *const u8, dst: *mut u8, inner: Axis, width: usize) {
        let (mut best, mut buffer, mut positions) =
            (Block::uninit(), Block::uninit(), [0i64; COLUMNS]);
        let (best, buffer) = (
            best.as_mut_ptr().cast::<u8>(),
            buffer.as_mut_ptr().cast::<u8>(),
        );
        let reads_source = self.needs_no_load && inner.src == self.size as isize;
        let mut walk = Walk::new(&self.red, 0);
        // SAFETY: rows lie inside the source; `width` values fit each buffer. The first row is not compared with `best`, which is uninitialised then.
        unsafe {
            std::ptr::write_bytes(best, 0, BLOCK_BYTES);
            for r in 0..self.n {
                let from = src.offset(walk.run().0);
                if !reads_source {
                    (self.load)(from, inner.src, width, buffer);
                }
                (self.kernel.columns)(
                    best,
                    positions.as_mut_ptr(),
                    if reads_source { from } else { buffer },
                    r as i64,
                    width,
                );
                walk.advance(1);
            }
            for (j, &p) in positions[..width].iter().enumerate() {
                *dst.offset(j as isize * inner.dst).cast::<i64>() = p;
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

    fn better(which: Extreme, b: (f64, f64), a: (f64, f64)) -> bool {
        let nan = |v: (f64, f64)| v.0.is_nan() || v.1.is_nan();
        !nan(a) && (nan(b) || if which == Extreme::Min { b < a } else { b > a })
    }

    #[test]
    fn positions_agree_with_a_reference_loop() {
        let mut noise = Noise(3);
        for round in 0..400 {
            let ndim = 1 + noise.below(3);
            let shape: Vec<usize> = (0..ndim)
                .map(|_| [1, 2, 9, 20, 3][noise.below(5)])
                .collect();
            let mut order: Vec<usize> = (0..ndim).collect();
            (0..ndim).for_each(|i| order.swap(i, noise.below(ndim)));
            let steps: Vec<isize> = (0..ndim).map(|_| [1, 2, -1, 0][noise.below(4)]).collect();
            let elem = Elem::ALL[round % Elem::COUNT];
            let x = Strided::new(elem, &shape, &order, &steps, || {
                let nan = elem >= Elem::F16 && noise.below(40) == 0;
                (
                    if nan { f64::NAN } else { noise.below(6) as f64 },
                    noise.below(2) as f64,
                )
            });
            let axis = if noise.below(4) == 0 {
                None
            } else {
                Some(noise.below(ndim))
            };
            for which in [Extreme::Min, Extreme::Max] {
                let kept: Vec<usize> = shape
                    .iter()
                    .enumerate()
                    .map(|(i, &n)| if axis.is_none_or(|a| a == i) { 1 } else { n })
                    .collect();
                let mut y = Strided::contiguous(Elem::I64, &kept, || (-1.0, 0.0));
                // SAFETY: the views lie in their buffers.
                unsafe { arg_reduce(&Serial, which, &x.source(), axis, &y.target()) };
                for at in indices(&kept) {
                    let group = indices(&shape).filter(|i| {
                        (0..ndim).all(|k| axis.is_none_or(|a| a == k) || i[k] == at[k])
                    });
                    let values: Vec<_> = group.map(|i| x.at(&i)).collect();
                    let want = (1..values.len()).fold(0, |b, i| {
                        if better(which, values[i], values[b]) {
                            i
                        } else {
                            b
                        }
                    });
                    assert_eq!(
                        y.at(&at).0,
                        want as f64,
                        "{which:?} {elem:?} {shape:?} {:?} axis {axis:?} at {at:?}",
                        x.strides
                    );
                }
            }
        }
    }

    #[test]
    fn rows_of_every_length_find_the_first_extreme() {
        let mut noise = Noise(29);
        for elem in [
            Elem::I8,
            Elem::U16,
            Elem::I32,
            Elem::U64,
            Elem::F32,
            Elem::F64,
        ] {
            for n in [63, 64, 65, 128, 200, 513, 1000, 2049, 9001] {
                for nan in [false, true] {
                    let x = Strided::contiguous(elem, &[n], || {
                        let nan = nan && elem >= Elem::F16 && noise.below(n) == 0;
                        (
                            if nan {
                                f64::NAN
                            } else {
                                noise.below(90) as f64
                            },
                            0.0,
                        )
                    });
                    let mut y = Strided::contiguous(Elem::I64, &[1], || (-1.0, 0.0));
                    for which in [Extreme::Min, Extreme::Max] {
                        // SAFETY: the views lie in their buffers.
                        unsafe { arg_reduce(&Serial, which, &x.source(), Some(0), &y.target()) };
                        let values: Vec<_> = (0..n).map(|i| x.at(&[i])).collect();
                        let want = (1..n).fold(0, |b, i| {
                            if better(which, values[i], values[b]) {
                                i
                            } else {
                                b
                            }
                        });
                        assert_eq!(y.at(&[0]).0, want as f64, "{which:?} of {n} {elem:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn long_rows_find_the_first_on_any_number_of_threads() {
        let mut x = Strided::contiguous(Elem::F32, &[300_000], || (1.0, 0.0));
        let mut y = Strided::contiguous(Elem::I64, &[1], || (-1.0, 0.0));
        for (low, high) in [(0, 299_999), (65_535, 65_536), (131_072, 200_000)] {
            for at in [low, high] {
                x.bytes[4 * at..4 * at + 4].copy_from_slice(&2f32.to_ne_bytes());
            }
            for threads in [&Serial as &dyn Threads, &Scoped(3)] {
                // SAFETY: the views lie in their buffers.
                unsafe { arg_reduce(threads, Extreme::Max, &x.source(), None, &y.target()) };
                assert_eq!(y.at(&[0]).0, low as f64);
            }
            for at in [low, high] {
                x.bytes[4 * at..4 * at + 4].copy_from_slice(&1f32.to_ne_bytes());
            }
        }
    }
}
