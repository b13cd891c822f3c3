//! Sums, products and extrema of segments.

use super::Segments;
use crate::lanes::in_lanes;
use crate::real::{Real, Shared, per_isa, sum_row};
use crate::reduce::number::Complex;
use crate::{Elem, Threads, scratch};

/// Reduction of the rows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Sum; 0 for an empty segment.
    Sum,
    /// Product; 1 for an empty segment.
    Product,
    /// Maximum of each column, propagating NaN; the type's minimum for an empty segment.
    Max,
    /// Minimum of each column, propagating NaN; the type's maximum for an empty segment.
    Min,
}

/// Element types of these reductions.
trait FoldElement: Copy + Send + Sync + 'static {
    fn identity(fold: Fold) -> Self;
    fn join(fold: Fold, a: Self, b: Self) -> Self;
    /// `acc = fold(acc, rows)` of `n` dense rows.
    ///
    /// # Safety
    /// `n * inner` elements at `x`, `inner` at `acc`.
    unsafe fn rows(fold: Fold, x: *const Self, n: usize, inner: usize, acc: *mut Self);
}

macro_rules! real {
    ($($t:ty),*) => { $(
        impl FoldElement for $t {
            fn identity(fold: Fold) -> Self {
                match fold {
                    Fold::Sum => 0.0,
                    Fold::Product => 1.0,
                    Fold::Max => <$t>::NEG_INFINITY,
                    Fold::Min => <$t>::INFINITY,
                }
            }
            fn join(fold: Fold, a: Self, b: Self) -> Self {
                join_real(fold, a, b)
            }
            unsafe fn rows(fold: Fold, x: *const Self, n: usize, inner: usize, acc: *mut Self) {
                // SAFETY: same contract.
                unsafe {
                    match inner {
                        1 => *acc = join_real(fold, *acc, column::<$t>(fold, x, n)),
                        _ => table::<$t>(fold, x, n, inner, acc),
                    }
                }
            }
        }
    )* };
}
real!(f32, f64);

macro_rules! integer {
    ($($t:ty),*) => { $(
        impl FoldElement for $t {
            fn identity(fold: Fold) -> Self {
                match fold {
                    Fold::Sum => 0,
                    Fold::Product => 1,
                    Fold::Max => <$t>::MIN,
                    Fold::Min => <$t>::MAX,
                }
            }
            #[inline(always)]
            fn join(fold: Fold, a: Self, b: Self) -> Self {
                match fold {
                    Fold::Sum => a.wrapping_add(b),
                    Fold::Product => a.wrapping_mul(b),
                    Fold::Max => a.max(b),
                    Fold::Min => a.min(b),
                }
            }
            unsafe fn rows(fold: Fold, x: *const Self, n: usize, inner: usize, acc: *mut Self) {
                if inner != 1 {
                    // SAFETY: same contract.
                    return unsafe { each_row(fold, x, n, inner, acc) };
                }
                // SAFETY: same contract, with rows of one element.
                let (x, acc) = unsafe { (std::slice::from_raw_parts(x, n).iter(), &mut *acc) };
                // One loop for each kind, so that each becomes a vector loop.
                *acc = match fold {
                    Fold::Sum => x.fold(*acc, |a, &b| a.wrapping_add(b)),
                    Fold::Product => x.fold(*acc, |a, &b| a.wrapping_mul(b)),
                    Fold::Max => x.fold(*acc, |a, &b| a.max(b)),
                    Fold::Min => x.fold(*acc, |a, &b| a.min(b)),
                };
            }
        }
    )* };
}
integer!(i64, u64);

macro_rules! complex {
    ($($t:ty),*) => { $(
        // Sums are those of the real and of the imaginary parts; complex numbers have no extrema.
        impl FoldElement for Complex<$t> {
            fn identity(_: Fold) -> Self {
                Complex { re: 1.0, im: 0.0 }
            }
            #[inline(always)]
            fn join(_: Fold, a: Self, b: Self) -> Self {
                Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
            }
            unsafe fn rows(fold: Fold, x: *const Self, n: usize, inner: usize, acc: *mut Self) {
                // SAFETY: same contract.
                unsafe { each_row(fold, x, n, inner, acc) }
            }
        }
    )* };
}
complex!(f32, f64);

/// `acc = fold(acc, rows)`, row by row.
///
/// # Safety
/// `n * inner` elements at `x`, `inner` at `acc`.
unsafe fn each_row<T: FoldElement>(fold: Fold, x: *const T, n: usize, inner: usize, acc: *mut T) {
    // SAFETY: guaranteed by the caller.
    let (x, acc) = unsafe {
        (
            std::slice::from_raw_parts(x, n * inner),
            std::slice::from_raw_parts_mut(acc, inner),
        )
    };
    for row in x.chunks_exact(inner.max(1)) {
        for (acc, &x) in acc.iter_mut().zip(row) {
            *acc = T::join(fold, *acc, x);
        }
    }
}

#[inline(always)]
fn join_real<T: Real>(fold: Fold, a: T, b: T) -> T {
    match fold {
        Fold::Sum => a + b,
        Fold::Product => a * b,
        Fold::Max => a.max_nan(b),
        Fold::Min => -((-a).max_nan(-b)),
    }
}

per_isa! {
    /// Folds the rows of one column.
    ///
    /// # Safety
    /// `n` elements at `x`.
    unsafe fn column<T>(fold: Fold, x: *const T, n: usize) -> T = column_body
}

#[inline(always)]
unsafe fn column_body<T: Real, const FMA: bool>(fold: Fold, x: *const T, n: usize) -> T {
    // SAFETY: guaranteed by the caller; i < n.
    unsafe {
        match fold {
            Fold::Sum => sum_row(x, n),
            Fold::Product => {
                in_lanes!(32; T::ONE, |a, b| a * b; i in 0, n, |product| product * *x.add(i))
            }
            Fold::Max => {
                in_lanes!(32; T::NEG_INFINITY, |a, b| a.max_nan(b); i in 0, n, |max| max.max_nan(*x.add(i)))
            }
            Fold::Min => {
                in_lanes!(32; -T::NEG_INFINITY, |a, b| join_real(fold, a, b); i in 0, n, |min| join_real(fold, min, *x.add(i)))
            }
        }
    }
}

per_isa! {
    /// `acc = fold(acc, rows)`; sums are computed in blocks of rows, which bounds their error.
    ///
    /// # Safety
    /// `n * inner` elements at `x`, `inner` at `acc`.
    unsafe fn table<T>(fold: Fold, x: *const T, n: usize, inner: usize, acc: *mut T) = table_body
}

/// Columns summed at once.
const WIDTH: usize = 64;
/// Rows summed before they are added to the total.
const BLOCK: usize = 64;

#[inline(always)]
unsafe fn table_body<T: Real, const FMA: bool>(
    fold: Fold,
    x: *const T,
    n: usize,
    inner: usize,
    acc: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    let (x, acc) = unsafe {
        (
            std::slice::from_raw_parts(x, n * inner),
            std::slice::from_raw_parts_mut(acc, inner),
        )
    };
    let each = |join: fn(T, T) -> T, acc: &mut [T]| {
        for row in x.chunks_exact(inner) {
            for (acc, &x) in acc.iter_mut().zip(row) {
                *acc = join(*acc, x);
            }
        }
    };
    match fold {
        Fold::Product => each(|a, b| a * b, acc),
        Fold::Max => each(|a, b| a.max_nan(b), acc),
        Fold::Min => each(|a, b| -((-a).max_nan(-b)), acc),
        // Parts of complex numbers, points of a plane.
        Fold::Sum if inner == 2 => {
            for rows in x.chunks(2 * BLOCK) {
                let mut sums = [T::ZERO; 2];
                for row in rows.as_chunks::<2>().0 {
                    sums[0] += row[0];
                    sums[1] += row[1];
                }
                acc[0] += sums[0];
                acc[1] += sums[1];
            }
        }
        Fold::Sum => {
            for first in (0..inner).step_by(WIDTH) {
                let width = WIDTH.min(inner - first);
                for rows in x.chunks(BLOCK * inner) {
                    let mut sums = [T::ZERO; WIDTH];
                    for row in rows.chunks_exact(inner) {
                        for (sum, &x) in sums.iter_mut().zip(&row[first..first + width]) {
                            *sum += x;
                        }
                    }
                    for (acc, &sum) in acc[first..first + width].iter_mut().zip(&sums) {
                        *acc += sum;
                    }
                }
            }
        }
    }
}

/// Whether [`fold`] supports elements of this type.
pub fn folds(what: Fold, elem: Elem) -> bool {
    match elem {
        Elem::F32 | Elem::F64 | Elem::I64 | Elem::U64 => true,
        Elem::C64 | Elem::C128 => matches!(what, Fold::Sum | Fold::Product),
        _ => false,
    }
}

/// `out[s] = fold(rows of segment s)`, `(segments, inner)`. A segment of one row is that row, signs of zeros included.
///
/// # Panics
/// If [`folds`] is false.
///
/// # Safety
/// The offsets passed [`super::check`]; `x` has `rows * inner` elements and `out` `segments * inner`; both are dense and aligned and do not overlap.
pub unsafe fn fold(
    threads: &dyn Threads,
    g: &Segments,
    what: Fold,
    elem: Elem,
    x: *const u8,
    out: *mut u8,
) {
    // SAFETY: same contract.
    unsafe {
        match elem {
            Elem::F32 => typed::<f32>(threads, g, what, x.cast(), out.cast()),
            Elem::F64 => typed::<f64>(threads, g, what, x.cast(), out.cast()),
            Elem::I64 => typed::<i64>(threads, g, what, x.cast(), out.cast()),
            Elem::U64 => typed::<u64>(threads, g, what, x.cast(), out.cast()),
            Elem::C64 if what == Fold::Product => {
                typed::<Complex<f32>>(threads, g, what, x.cast(), out.cast());
            }
            Elem::C128 if what == Fold::Product => {
                typed::<Complex<f64>>(threads, g, what, x.cast(), out.cast());
            }
            // A complex sum is the sum of the real parts and that of the imaginary parts.
            Elem::C64 | Elem::C128 if what == Fold::Sum => {
                let parts = Segments {
                    inner: 2 * g.inner,
                    ..*g
                };
                match elem {
                    Elem::C64 => typed::<f32>(threads, &parts, what, x.cast(), out.cast()),
                    _ => typed::<f64>(threads, &parts, what, x.cast(), out.cast()),
                }
            }
            other => panic!("segments of {other:?} are not folded"),
        }
    }
}

/// # Safety
/// Same as for [`fold`].
unsafe fn typed<T: FoldElement>(
    threads: &dyn Threads,
    g: &Segments,
    what: Fold,
    x: *const T,
    out: *mut T,
) {
    let inner = g.inner;
    if inner == 0 {
        return;
    }
    let (x, out) = (Shared(x.cast_mut()), Shared(out));
    let tasks = g.rows().div_ceil(g.task_rows());
    // A segment that spans tasks is folded in parts: the first part goes to the output, later ones to `parts`, one per task.
    let mut parts = scratch::filled(tasks * inner, T::identity(what));
    let parts_at = Shared(parts.as_mut_ptr());
    g.each_task(threads, &|t, rows| {
        g.pieces(rows, |s, piece| {
            let starts = g.offsets[s] as usize == piece.start;
            let at = piece.start * inner;
            // SAFETY: rows of the data; the output of the segment, or the part of this task, which at most one of its pieces uses.
            unsafe {
                if !starts {
                    let from = x.at(at).cast_const();
                    T::rows(what, from, piece.len(), inner, parts_at.at(t * inner));
                    return;
                }
                let to = out.at(s * inner);
                std::ptr::copy_nonoverlapping(x.at(at), to, inner);
                if piece.len() > 1 {
                    let rest = x.at(at + inner).cast_const();
                    T::rows(what, rest, piece.len() - 1, inner, to);
                }
            }
        });
    });
    let step = g.task_rows();
    for t in 1..tasks {
        let first = t * step;
        let s = g.of_row(first);
        if (g.offsets[s] as usize) < first {
            for j in 0..inner {
                // SAFETY: one output per segment, one part per task.
                unsafe {
                    *out.at(s * inner + j) =
                        T::join(what, *out.at(s * inner + j), parts[t * inner + j]);
                }
            }
        }
    }
    for s in 0..g.count() {
        if g.range(s).is_empty() {
            // SAFETY: one output per segment.
            unsafe {
                std::slice::from_raw_parts_mut(out.at(s * inner), inner).fill(T::identity(what))
            };
        }
    }
}
