//! Softmax over segments: of the stored elements of each row, as in attention over the edges of a graph.

use super::pattern::Pattern;
use super::value::Operand;
use crate::real::{Real, Shared, per_isa, with_real};
use crate::{Elem, Threads};

/// Softmax over each segment, separately for each of the `width` columns.
///
/// # Safety
/// `x` holds a row of `width` elements (f32 or f64) for each row of the segments; `out` has room for as many.
pub unsafe fn softmax_segments(
    threads: &dyn Threads,
    elem: Elem,
    segments: &Pattern,
    width: usize,
    x: Operand,
    out: *mut u8,
) {
    if width == 0 {
        return;
    }
    with_real!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let x = unsafe { x.as_slice::<T>() };
        assert_eq!(x.len(), segments.indices.len() * width);
        let to = Shared(out.cast::<T>());
        segments.for_rows(threads, 2 * width, &|rows| {
            let first = segments.row(rows.start).start * width;
            let end = segments.row(rows.end - 1).end * width;
            // SAFETY: runs of segments have disjoint rows of the output.
            let y = unsafe { std::slice::from_raw_parts_mut(to.at(first), end - first) };
            let of = |i: usize| {
                let range = segments.row(i);
                range.start * width..range.end * width
            };
            if width == 1 {
                for i in rows.clone() {
                    let x = &x[of(i)];
                    let largest = (x.iter()).fold(T::NEG_INFINITY, |largest, &x| if x > largest { x } else { largest });
                    for (y, &x) in y[of(i).start - first..of(i).end - first].iter_mut().zip(x) {
                        *y = x - largest;
                    }
                }
                // SAFETY: elements of a slice.
                unsafe { exp_row(y.as_mut_ptr(), y.len()) };
                for i in rows {
                    let y = &mut y[of(i).start - first..of(i).end - first];
                    let scale = T::ONE / y.iter().fold(T::ZERO, |total, &y| total + y);
                    y.iter_mut().for_each(|y| *y *= scale);
                }
                return;
            }
            let mut scale = vec![T::ZERO; width];
            for i in rows.clone() {
                scale.fill(T::NEG_INFINITY);
                let x = &x[of(i)];
                for x in x.chunks_exact(width) {
                    for (largest, &x) in scale.iter_mut().zip(x) {
                        *largest = if x > *largest { x } else { *largest };
                    }
                }
                let y = &mut y[of(i).start - first..of(i).end - first];
                for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
                    for (d, (&x, y)) in x.iter().zip(y).enumerate() {
                        *y = x - scale[d];
                    }
                }
            }
            // SAFETY: elements of a slice.
            unsafe { exp_row(y.as_mut_ptr(), y.len()) };
            for i in rows {
                let y = &mut y[of(i).start - first..of(i).end - first];
                scale.fill(T::ZERO);
                for y in y.chunks_exact(width) {
                    for (total, &y) in scale.iter_mut().zip(y) {
                        *total += y;
                    }
                }
                scale.iter_mut().for_each(|total| *total = T::ONE / *total);
                for y in y.chunks_exact_mut(width) {
                    for (y, &scale) in y.iter_mut().zip(&scale) {
                        *y *= scale;
                    }
                }
            }
        });
    });
}

per_isa! {
    /// Exponential function, in place.
    ///
    /// # Safety
    /// `n` elements can be read and written at `x`.
    unsafe fn exp_row<T>(x: *mut T, n: usize) = exp_body
}

#[inline(always)]
unsafe fn exp_body<T: Real, const FMA: bool>(x: *mut T, n: usize) {
    // SAFETY: guaranteed by the caller.
    for x in unsafe { std::slice::from_raw_parts_mut(x, n) } {
        *x = x.exp::<FMA>();
    }
}

/// The gradient of [`softmax_segments`] from its result `y`: `y * (dy - sum of y * dy over the segment)`.
///
/// # Safety
/// Same as for [`softmax_segments`], for `y`, `dy` and `out`.
pub unsafe fn softmax_segments_gradient(
    threads: &dyn Threads,
    elem: Elem,
    segments: &Pattern,
    width: usize,
    (y, dy): (Operand, Operand),
    out: *mut u8,
) {
    if width == 0 {
        return;
    }
    with_real!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let (y, dy) = unsafe { (y.as_slice::<T>(), dy.as_slice::<T>()) };
        assert!(y.len() == segments.indices.len() * width && dy.len() == y.len());
        let to = Shared(out.cast::<T>());
        segments.for_rows(threads, 3 * width, &|rows| {
            let mut total = vec![0.0 as T; width];
            for i in rows {
                let range = segments.row(i);
                let all = range.start * width..range.end * width;
                let (y, dy) = (&y[all.clone()], &dy[all.clone()]);
                // SAFETY: segments have disjoint rows of the output.
                let dx = unsafe { std::slice::from_raw_parts_mut(to.at(all.start), all.len()) };
                total.fill(0.0);
                for (y, dy) in y.chunks_exact(width).zip(dy.chunks_exact(width)) {
                    for (total, (&y, &dy)) in total.iter_mut().zip(y.iter().zip(dy)) {
                        *total += y * dy;
                    }
                }
                for (k, dx) in dx.iter_mut().enumerate() {
                    *dx = y[k] * (dy[k] - total[k % width]);
                }
            }
        });
    });
}
