//! Batch normalisation: one mean and variance per channel of dense `(n, c, inner)` data.

use std::ops::Range;

use super::{columns, loops};
use crate::real::{Real, Shared, sum_row, with_real};
use crate::{Elem, Threads};

/// Geometry of a batch normalisation. Works for any channel axis: `n` is the product of the axes before it, `inner` of the axes after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// Product of the axes before the channel axis.
    pub n: usize,
    /// Number of channels.
    pub c: usize,
    /// Product of the axes after the channel axis.
    pub inner: usize,
    /// Added to the variance.
    pub epsilon: f64,
}

/// Source of the mean and variance of a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// Computed from the batch: they depend on the data.
    Batch,
    /// Given, such as running averages: constants.
    Fixed,
}

/// Element `c` of a parameter vector, or `otherwise` if the vector is null.
pub(super) fn or<T: Real>(vector: Shared<T>, c: usize, otherwise: T) -> T {
    if vector.is_null() {
        return otherwise;
    }
    // SAFETY: a non-null vector has one element per channel.
    unsafe { *vector.at(c) }
}

impl BatchNorm {
    fn len(&self) -> usize {
        self.n * self.inner
    }

    /// Calls `task` with ranges of channels, which together are all; on the calling thread if there is little data.
    fn each_range(&self, threads: &dyn Threads, task: impl Fn(Range<usize>) + Sync) {
        // With a small `inner`, neighbouring channels share cache lines and one channel is too little work for a task.
        let group = (1usize << 14)
            .div_ceil(self.len().max(1))
            .max(if self.inner < 16 { 16 } else { 1 });
        let group_task = |t: usize| task(t * group..((t + 1) * group).min(self.c));
        match self.c.div_ceil(group) {
            0 => {}
            1 => group_task(0),
            n => threads.run(n, &group_task),
        }
    }

    /// Calls `task` for all channels; on the calling thread if there is little data.
    fn each_channel(&self, threads: &dyn Threads, task: impl Fn(usize) + Sync) {
        self.each_range(threads, |channels| channels.for_each(&task));
    }

    /// Calls `f` with the offset of every dense row of one channel.
    fn each_row(&self, c: usize, mut f: impl FnMut(usize)) {
        (0..self.n).for_each(|n| f((n * self.c + c) * self.inner));
    }
}

/// `y = (x - mean) / sqrt(var + epsilon) * gamma + beta` with the batch's `mean` and biased `var`, which are also written (one per channel).
/// `gamma` and `beta` may be null, meaning 1 and 0. Without elements, mean and variance are 0.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Operands are dense, aligned and of the sizes that `g` says; `y` overlaps none but may be `x`.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn batch_norm_training(
    threads: &dyn Threads,
    g: &BatchNorm,
    x: *const u8,
    gamma: *const u8,
    beta: *const u8,
    y: *mut u8,
    mean: *mut u8,
    var: *mut u8,
) {
    with_real!(g.elem, T => {
        let (x, y) = (Shared(x.cast_mut().cast::<T>()), Shared(y.cast::<T>()));
        let (gamma, beta) = (Shared(gamma.cast_mut().cast::<T>()), Shared(beta.cast_mut().cast::<T>()));
        let (mean, var) = (Shared(mean.cast::<T>()), Shared(var.cast::<T>()));
        if g.inner == 1 {
            // SAFETY: same contract.
            return unsafe { columns::training(threads, g, x, [gamma, beta], y, [mean, var]) };
        }
        g.each_channel(threads, |c| {
            // SAFETY: the rows and parameters of one channel.
            unsafe {
                let count = g.len().max(1) as f64;
                let (m, v) = statistics::<T>(g, x, c, count);
                (*mean.at(c), *var.at(c)) = (m, v);
                let scale = or(gamma, c, T::ONE).to_f64() / (v.to_f64() + g.epsilon).sqrt();
                normalise(g, x, y, c, m, T::from_f64(scale), or(beta, c, T::ZERO));
            }
        });
    })
}

/// Mean and biased variance of one channel.
///
/// # Safety
/// `x` has the data.
unsafe fn statistics<T: Real>(g: &BatchNorm, x: Shared<T>, c: usize, count: f64) -> (T, T) {
    let (mut sum, mut squares) = (0.0, 0.0);
    // SAFETY: rows of the channel.
    unsafe {
        g.each_row(c, |at| {
            sum += sum_row(x.at(at).cast_const(), g.inner).to_f64()
        });
        let mean = T::from_f64(sum / count);
        g.each_row(c, |at| {
            squares += loops::square_deviation(x.at(at).cast_const(), g.inner, mean)
        });
        // The deviations are from the rounded mean, so the square of the rounding error is subtracted.
        let moved = sum / count - mean.to_f64();
        (
            mean,
            T::from_f64((squares / count - moved * moved).max(0.0)),
        )
    }
}

/// # Safety
/// Same as for [`batch_norm_training`], for one channel.
unsafe fn normalise<T: Real>(
    g: &BatchNorm,
    x: Shared<T>,
    y: Shared<T>,
    c: usize,
    mean: T,
    scale: T,
    shift: T,
) {
    // SAFETY: rows of the channel.
    g.each_row(c, |at| unsafe {
        loops::scale_shift(x.at(at).cast_const(), g.inner, mean, scale, shift, y.at(at))
    });
}

/// [`batch_norm_training`] with a given `mean` and `var` (one per channel).
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Same as for [`batch_norm_training`].
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn batch_norm_inference(
    threads: &dyn Threads,
    g: &BatchNorm,
    x: *const u8,
    gamma: *const u8,
    beta: *const u8,
    mean: *const u8,
    var: *const u8,
    y: *mut u8,
) {
    with_real!(g.elem, T => {
        let shared = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        let (x, y, gamma, beta, mean, var) = (shared(x), shared(y), shared(gamma), shared(beta), shared(mean), shared(var));
        if g.inner == 1 {
            // SAFETY: same contract.
            return unsafe { columns::inference(threads, g, x, [gamma, beta], [mean, var], y) };
        }
        g.each_range(threads, |channels| {
            for first in channels.clone().step_by(BLOCK) {
                let block = first..channels.end.min(first + BLOCK);
                // SAFETY: the rows and parameters of these channels.
                unsafe {
                    let scales = scales(g, gamma, var, block.clone());
                    for (c, scale) in block.zip(scales) {
                        normalise(g, x, y, c, *mean.at(c), scale, or(beta, c, T::ZERO));
                    }
                }
            }
        });
    })
}

/// Channels whose factors are computed together.
pub(super) const BLOCK: usize = 64;

/// `gamma / sqrt(var + epsilon)` of at most [`BLOCK`] channels.
///
/// # Safety
/// The vectors have these channels; `gamma` may be null.
pub(super) unsafe fn scales<T: Real>(
    g: &BatchNorm,
    gamma: Shared<T>,
    var: Shared<T>,
    channels: Range<usize>,
) -> [T; BLOCK] {
    let mut scales = [T::ZERO; BLOCK];
    let to = &mut scales[..channels.len()];
    let gamma = match gamma.is_null() {
        true => std::ptr::null(),
        false => gamma.at(channels.start).cast_const(),
    };
    // SAFETY: as many elements as `to` has.
    unsafe {
        let var = var.at(channels.start).cast_const();
        loops::over_deviations(gamma, var, to.len(), g.epsilon, to.as_mut_ptr());
    }
    scales
}

/// `gamma / sqrt(var + epsilon)` of `n` channels; a null `gamma` is 1.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// The operands are dense vectors of `n` elements.
pub unsafe fn over_deviations(
    elem: Elem,
    n: usize,
    gamma: *const u8,
    var: *const u8,
    epsilon: f64,
    to: *mut u8,
) {
    with_real!(elem, T => {
        // SAFETY: same contract.
        unsafe { loops::over_deviations::<T>(gamma.cast(), var.cast(), n, epsilon, to.cast()) }
    })
}

/// Gradients of [`batch_norm_training`] (`Statistics::Batch`) or [`batch_norm_inference`] (`Statistics::Fixed`), given the mean and variance
/// that were used. `gamma` may be null, meaning 1. `dx`, `dgamma` and `dbeta` may be null if they are not wanted.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Operands that are not null are dense, aligned and of the sizes that `g` says; results overlap nothing, except that `dx` may be `dy`.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn batch_norm_backward(
    threads: &dyn Threads,
    g: &BatchNorm,
    statistics: Statistics,
    x: *const u8,
    dy: *const u8,
    gamma: *const u8,
    mean: *const u8,
    var: *const u8,
    dx: *mut u8,
    dgamma: *mut u8,
    dbeta: *mut u8,
) {
    with_real!(g.elem, T => {
        let shared = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        let (x, dy, gamma, mean, var) = (shared(x), shared(dy), shared(gamma), shared(mean), shared(var));
        let (dx, dgamma, dbeta) = (shared(dx), shared(dgamma), shared(dbeta));
        if g.inner == 1 {
            // SAFETY: same contract.
            return unsafe { columns::backward(threads, g, statistics, [x, dy, gamma, mean, var], [dx, dgamma, dbeta]) };
        }
        g.each_channel(threads, |c| {
            // SAFETY: the rows and parameters of one channel.
            unsafe {
                let (mean, inverse) = (*mean.at(c), 1.0 / ((*var.at(c)).to_f64() + g.epsilon).sqrt());
                let mut sums = [0.0; 2];
                g.each_row(c, |at| {
                    let row = loops::moments(x.at(at).cast_const(), dy.at(at).cast_const(), std::ptr::null(), g.inner, mean);
                    (0..2).for_each(|i| sums[i] += row[i]);
                });
                if !dbeta.is_null() {
                    *dbeta.at(c) = T::from_f64(sums[0]);
                }
                if !dgamma.is_null() {
                    *dgamma.at(c) = T::from_f64(sums[1] * inverse);
                }
                if dx.is_null() {
                    return;
                }
                let [a, b, d] = slopes(g, statistics, or(gamma, c, T::ONE), inverse, sums);
                g.each_row(c, |at| {
                    loops::combine(x.at(at).cast_const(), dy.at(at).cast_const(), g.inner, mean, a, b, d, dx.at(at));
                });
            }
        });
    })
}

/// `[a, b, d]` of `dx = a dy + b (x - mean) + d`, which equals gamma / sigma * (dy - mean(dy) - xhat * mean(dy * xhat)). Both means are 0 for fixed
/// statistics. `sums` holds the sums of `dy` and of `dy * (x - mean)`.
pub(super) fn slopes<T: Real>(
    g: &BatchNorm,
    statistics: Statistics,
    gamma: T,
    inverse: f64,
    sums: [f64; 2],
) -> [T; 3] {
    let a = gamma.to_f64() * inverse;
    let count = g.len() as f64;
    match statistics {
        Statistics::Fixed => [a, 0.0, 0.0],
        Statistics::Batch => [
            a,
            -a * inverse * inverse * sums[1] / count,
            -a * sums[0] / count,
        ],
    }
    .map(T::from_f64)
}
