//! Batch normalisation of `(n, c)` data, whose channels are columns: blocks of adjacent columns are processed row by row.

use super::batch::{BLOCK, BatchNorm, Statistics, or, scales, slopes};
use crate::Threads;
use crate::real::{Real, Shared, normalised, per_isa};

/// Columns of one block.
const WIDTH: usize = BLOCK;
/// Rows summed in `T` before they are added to the f64 totals.
const CHUNK_ROWS: usize = 128;

/// Calls `task(first column, columns)` for all blocks; on the calling thread if there is little data.
fn each_block(threads: &dyn Threads, g: &BatchNorm, task: impl Fn(usize, usize) + Sync) {
    let block = |b: usize| task(b * WIDTH, WIDTH.min(g.c - b * WIDTH));
    let blocks = g.c.div_ceil(WIDTH);
    if blocks == 1 || g.n * g.c < 1 << 14 {
        (0..blocks).for_each(block)
    } else {
        threads.run(blocks, &block)
    }
}

/// # Safety
/// Same as for `batch_norm_training`, with `inner == 1`.
pub(super) unsafe fn training<T: Real>(
    threads: &dyn Threads,
    g: &BatchNorm,
    x: Shared<T>,
    [gamma, beta]: [Shared<T>; 2],
    y: Shared<T>,
    [mean, var]: [Shared<T>; 2],
) {
    let count = g.n.max(1) as f64;
    each_block(threads, g, |c0, width| {
        // SAFETY: the columns and parameters of this block.
        unsafe {
            let from = x.at(c0).cast_const();
            let mut centre = [T::ZERO; WIDTH];
            let [sums, _] = sums(from, std::ptr::null(), g.c, g.n, width, &centre);
            for l in 0..width {
                centre[l] = T::from_f64(sums[l] / count);
            }
            // The sum of deviations gives the rounding error of the mean.
            let [moved, squares] = self::sums(from, std::ptr::null(), g.c, g.n, width, &centre);
            for l in 0..width {
                *mean.at(c0 + l) = centre[l];
                *var.at(c0 + l) =
                    T::from_f64((squares[l] / count - (moved[l] / count).powi(2)).max(0.0));
            }
        }
    });
    // SAFETY: same contract; mean and variance are those just written.
    unsafe { inference(threads, g, x, [gamma, beta], [mean, var], y) }
}

/// # Safety
/// Same as for `batch_norm_inference`, with `inner == 1`.
pub(super) unsafe fn inference<T: Real>(
    threads: &dyn Threads,
    g: &BatchNorm,
    x: Shared<T>,
    [gamma, beta]: [Shared<T>; 2],
    [mean, var]: [Shared<T>; 2],
    y: Shared<T>,
) {
    each_block(threads, g, |c0, width| {
        let mut vectors = [[T::ZERO; WIDTH]; 3];
        // SAFETY: the columns and parameters of this block.
        unsafe {
            vectors[0][..width].copy_from_slice(std::slice::from_raw_parts(mean.at(c0), width));
            vectors[1] = scales(g, gamma, var, c0..c0 + width);
            for (l, shift) in vectors[2][..width].iter_mut().enumerate() {
                *shift = or(beta, c0 + l, T::ZERO);
            }
            scale_shift(x.at(c0).cast_const(), g.c, g.n, width, &vectors, y.at(c0));
        }
    });
}

/// # Safety
/// Same as for `batch_norm_backward`, with `inner == 1`.
pub(super) unsafe fn backward<T: Real>(
    threads: &dyn Threads,
    g: &BatchNorm,
    statistics: Statistics,
    [x, dy, gamma, mean, var]: [Shared<T>; 5],
    [dx, dgamma, dbeta]: [Shared<T>; 3],
) {
    each_block(threads, g, |c0, width| {
        // SAFETY: the columns and parameters of this block.
        unsafe {
            let mut vectors = [[T::ZERO; WIDTH]; 4];
            vectors[0][..width].copy_from_slice(std::slice::from_raw_parts(mean.at(c0), width));
            let [first, second] = sums(
                x.at(c0).cast_const(),
                dy.at(c0).cast_const(),
                g.c,
                g.n,
                width,
                &vectors[0],
            );
            for l in 0..width {
                let c = c0 + l;
                let inverse = 1.0 / ((*var.at(c)).to_f64() + g.epsilon).sqrt();
                if !dbeta.is_null() {
                    *dbeta.at(c) = T::from_f64(first[l]);
                }
                if !dgamma.is_null() {
                    *dgamma.at(c) = T::from_f64(second[l] * inverse);
                }
                let slopes = slopes(
                    g,
                    statistics,
                    or(gamma, c, T::ONE),
                    inverse,
                    [first[l], second[l]],
                );
                (0..3).for_each(|i| vectors[i + 1][l] = slopes[i]);
            }
            if !dx.is_null() {
                combine(
                    x.at(c0).cast_const(),
                    dy.at(c0).cast_const(),
                    g.c,
                    g.n,
                    width,
                    &vectors,
                    dx.at(c0),
                );
            }
        }
    });
}

/// Sum of every column: `out[c] = sum over r of x[r * stride + c]`.
///
/// # Safety
/// `columns` elements in each of `rows` rows, `stride` elements apart, and at `out`, which overlaps none.
pub(crate) unsafe fn sum_columns<T: Real>(
    threads: &dyn Threads,
    x: *const T,
    stride: usize,
    rows: usize,
    columns: usize,
    out: *mut T,
) {
    let (x, out) = (Shared(x.cast_mut()), Shared(out));
    let block = |b: usize| {
        let (c0, width) = (b * WIDTH, WIDTH.min(columns - b * WIDTH));
        // SAFETY: the columns of this block.
        unsafe {
            let [first, _] = sums(
                x.at(c0).cast_const(),
                std::ptr::null(),
                stride,
                rows,
                width,
                &[T::ZERO; WIDTH],
            );
            (0..width).for_each(|l| *out.at(c0 + l) = T::from_f64(first[l]));
        }
    };
    let blocks = columns.div_ceil(WIDTH);
    if blocks == 1 || rows * columns < 1 << 16 {
        (0..blocks).for_each(block)
    } else {
        threads.run(blocks, &block)
    }
}

per_isa! {
    /// Per column, the sums of `dy` and of `dy * (x - mean)`; if `dy` is null, of `x - mean` and its square.
    ///
    /// # Safety
    /// `width <= WIDTH` elements in each of `n` rows, `stride` elements apart, at the pointers that are not null.
    unsafe fn sums<T>(x: *const T, dy: *const T, stride: usize, n: usize, width: usize, mean: &[T; WIDTH]) -> [[f64; WIDTH]; 2] = sums_body
}

#[inline(always)]
unsafe fn sums_body<T: Real, const FMA: bool>(
    x: *const T,
    dy: *const T,
    stride: usize,
    n: usize,
    width: usize,
    mean: &[T; WIDTH],
) -> [[f64; WIDTH]; 2] {
    let mut totals = [[0.0; WIDTH]; 2];
    let mut row = 0;
    while row < n {
        let (mut first, mut second) = ([T::ZERO; WIDTH], [T::ZERO; WIDTH]);
        let end = (row + CHUNK_ROWS).min(n);
        for r in row..end {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let x = std::slice::from_raw_parts(x.add(r * stride), width);
                if dy.is_null() {
                    for l in 0..width {
                        let d = x[l] - mean[l];
                        first[l] += d;
                        second[l] = d.fma::<FMA>(d, second[l]);
                    }
                } else {
                    let dy = std::slice::from_raw_parts(dy.add(r * stride), width);
                    for l in 0..width {
                        first[l] += dy[l];
                        second[l] = dy[l].fma::<FMA>(x[l] - mean[l], second[l]);
                    }
                }
            }
        }
        for l in 0..width {
            totals[0][l] += first[l].to_f64();
            totals[1][l] += second[l].to_f64();
        }
        row = end;
    }
    totals
}

per_isa! {
    /// `y = (x - mean) * scale + shift`; `v` holds mean, scale and shift.
    ///
    /// # Safety
    /// Same as for [`sums`]; `y` is `x` or does not overlap it.
    unsafe fn scale_shift<T>(x: *const T, stride: usize, n: usize, width: usize, v: &[[T; WIDTH]; 3], y: *mut T) = scale_shift_body
}

#[inline(always)]
unsafe fn scale_shift_body<T: Real, const FMA: bool>(
    x: *const T,
    stride: usize,
    n: usize,
    width: usize,
    [mean, scale, shift]: &[[T; WIDTH]; 3],
    y: *mut T,
) {
    for r in 0..n {
        for l in 0..width.min(WIDTH) {
            let at = r * stride + l;
            // SAFETY: guaranteed by the caller.
            unsafe { *y.add(at) = normalised::<T, FMA>(*x.add(at), [mean[l], scale[l], shift[l]]) }
        }
    }
}

per_isa! {
    /// `dx = a * dy + b * (x - mean) + d`; `v` holds mean, a, b and d.
    ///
    /// # Safety
    /// Same as for [`sums`]; `dx` is `dy` or overlaps neither.
    unsafe fn combine<T>(x: *const T, dy: *const T, stride: usize, n: usize, width: usize, v: &[[T; WIDTH]; 4], dx: *mut T) = combine_body
}

#[inline(always)]
unsafe fn combine_body<T: Real, const FMA: bool>(
    x: *const T,
    dy: *const T,
    stride: usize,
    n: usize,
    width: usize,
    [mean, a, b, d]: &[[T; WIDTH]; 4],
    dx: *mut T,
) {
    for r in 0..n {
        for l in 0..width.min(WIDTH) {
            let at = r * stride + l;
            // SAFETY: guaranteed by the caller.
            unsafe {
                *dx.add(at) =
                    a[l].fma::<FMA>(*dy.add(at), b[l].fma::<FMA>(*x.add(at) - mean[l], d[l]))
            }
        }
    }
}
