//! Normalisation of rows: layer norm, RMS norm, and group and instance norm, whose rows are the groups of each image.

use super::loops;
use crate::real::{Real, Shared, sum_row, with_real};
use crate::{Elem, Threads};

/// What is subtracted from a row before it is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Centre {
    /// The row's mean: layer, group and instance norm.
    Mean,
    /// Nothing: RMS norm.
    Zero,
}

/// Which affine parameter applies to element `i` of row `r`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affine {
    /// Parameter `i` of `len`: layer and RMS norm.
    PerElement,
    /// Parameter `r % groups * (len / inner) + i / inner` of `groups * len / inner`: group norm of `(n, c, inner)` data, or instance norm with
    /// `groups = c`.
    PerChannel {
        /// Rows per image.
        groups: usize,
        /// Elements per channel of an image.
        inner: usize,
    },
}

/// Geometry of the normalisation of dense rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowNorm {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// Number of rows.
    pub rows: usize,
    /// Elements per row.
    pub len: usize,
    /// What is subtracted from a row.
    pub centre: Centre,
    /// Which affine parameter applies to which element.
    pub affine: Affine,
    /// Added to the variance.
    pub epsilon: f64,
}

impl RowNorm {
    /// Number of elements of gamma, and of beta.
    pub fn parameters(&self) -> usize {
        match self.affine {
            Affine::PerElement => self.len,
            Affine::PerChannel { groups, inner } => groups * self.len / inner.max(1),
        }
    }

    /// Rows per task: about 16 K elements, in whole images.
    fn block(&self) -> usize {
        let rows = ((1 << 14) / self.len.max(1)).max(1);
        match self.affine {
            Affine::PerElement => rows,
            Affine::PerChannel { groups, .. } => rows.next_multiple_of(groups.max(1)),
        }
    }

    /// Rows per partial sum of the parameters' gradients: a multiple of [`RowNorm::block`] such that there are at most 16 parts.
    fn part(&self) -> usize {
        let block = self.block();
        self.rows.div_ceil(16).max(1).next_multiple_of(block)
    }

    fn parts(&self) -> usize {
        self.rows.div_ceil(self.part()).max(1)
    }

    /// Calls `f(first element, elements, parameter)` for the runs of row `r` that share one parameter.
    #[inline(always)]
    fn each_channel(
        &self,
        r: usize,
        groups: usize,
        inner: usize,
        mut f: impl FnMut(usize, usize, usize),
    ) {
        let channels = self.len / inner.max(1);
        for c in 0..channels {
            f(c * inner, inner, r % groups * channels + c);
        }
    }
}

/// `y = (x - mean) * inverse * gamma + beta` per row, with `inverse = 1 / sqrt(var + epsilon)` and `var` the mean square of `x - mean`.
/// `gamma` and `beta` may be null, meaning 1 and 0. `mean` and `inverse` (one per row, for [`row_norm_backward`]) may be null if not wanted.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Operands that are not null are dense, aligned and of the sizes that `g` says; results overlap nothing, except that `y` may be `x`.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn row_norm(
    threads: &dyn Threads,
    g: &RowNorm,
    x: *const u8,
    gamma: *const u8,
    beta: *const u8,
    y: *mut u8,
    mean: *mut u8,
    inverse: *mut u8,
) {
    with_real!(g.elem, T => {
        let shared = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        let (x, gamma, beta, y, mean, inverse) = (shared(x), shared(gamma), shared(beta), shared(y), shared(mean), shared(inverse));
        // If only one of the parameters is given, a vector of 1 or 0 replaces the missing one.
        let mixed = gamma.is_null() != beta.is_null();
        let constant = if mixed && g.affine == Affine::PerElement {
            crate::scratch::filled(g.len, if gamma.is_null() { T::ONE } else { T::ZERO })
        } else {
            Vec::new()
        };
        let constant = Shared(constant.as_ptr().cast_mut());
        let (vector_gamma, vector_beta) = match (gamma.is_null(), beta.is_null()) {
            (true, false) => (constant, beta),
            (false, true) => (gamma, constant),
            _ => (gamma, beta),
        };
        blocks(threads, g, &|r| {
            // SAFETY: the elements of this row, and parameters that are not null.
            unsafe {
                let from = x.at(r * g.len).cast_const();
                let to = y.at(r * g.len);
                let (m, s) = statistics::<T>(g, from);
                if !mean.is_null() {
                    *mean.at(r) = m;
                }
                if !inverse.is_null() {
                    *inverse.at(r) = s;
                }
                match g.affine {
                    Affine::PerElement if vector_gamma.is_null() => loops::scale_shift(from, g.len, m, s, T::ZERO, to),
                    Affine::PerElement => loops::scale_shift_vectors(from, g.len, m, s, vector_gamma.at(0), vector_beta.at(0), to),
                    Affine::PerChannel { groups, inner } => g.each_channel(r, groups, inner, |at, n, c| {
                        let scale = if gamma.is_null() { s } else { s * *gamma.at(c) };
                        let shift = if beta.is_null() { T::ZERO } else { *beta.at(c) };
                        loops::scale_shift(from.add(at), n, m, scale, shift, to.add(at));
                    }),
                }
            }
        });
    })
}

/// Runs `row(r)` for all rows, one task per block of rows.
fn blocks(threads: &dyn Threads, g: &RowNorm, row: &(dyn Fn(usize) + Sync)) {
    let block = g.block();
    let task = |t: usize| (t * block..((t + 1) * block).min(g.rows)).for_each(row);
    match g.rows.div_ceil(block) {
        0 => {}
        1 => task(0),
        n => threads.run(n, &task),
    }
}

/// Mean (0 for [`Centre::Zero`]) and inverse standard deviation of a row.
///
/// # Safety
/// `x` has a row.
unsafe fn statistics<T: Real>(g: &RowNorm, x: *const T) -> (T, T) {
    let count = g.len.max(1) as f64;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mean = match g.centre {
            Centre::Mean => T::from_f64(sum_row(x, g.len).to_f64() / count),
            Centre::Zero => T::ZERO,
        };
        let var = loops::square_deviation(x, g.len, mean) / count;
        (mean, T::from_f64(1.0 / (var + g.epsilon).sqrt()))
    }
}

/// Bytes of working memory for [`row_norm_backward`].
pub fn row_norm_backward_scratch_bytes(g: &RowNorm) -> usize {
    2 * g.parts() * g.parameters() * g.elem.size()
}

/// Gradients of [`row_norm`], given the `mean` and `inverse` that it wrote. `gamma` may be null, meaning 1. `dx`, `dgamma` and `dbeta` may be null if
/// they are not wanted; without the latter two `scratch` may be null.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Operands that are not null are dense, aligned and of the sizes that `g` says; results overlap nothing, except that `dx` may be `dy`;
/// `scratch` has [`row_norm_backward_scratch_bytes`] bytes, aligned to the element.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn row_norm_backward(
    threads: &dyn Threads,
    g: &RowNorm,
    x: *const u8,
    dy: *const u8,
    gamma: *const u8,
    mean: *const u8,
    inverse: *const u8,
    dx: *mut u8,
    dgamma: *mut u8,
    dbeta: *mut u8,
    scratch: *mut u8,
) {
    with_real!(g.elem, T => {
        let shared = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        let (x, dy, gamma, mean, inverse) = (shared(x), shared(dy), shared(gamma), shared(mean), shared(inverse));
        let (dx, dgamma, dbeta, scratch) = (shared(dx), shared(dgamma), shared(dbeta), shared(scratch));
        let (parts, part, parameters) = (g.parts(), g.part(), g.parameters());
        let affine_wanted = !dgamma.is_null() || !dbeta.is_null();
        let task = |t: usize| {
            // SAFETY: the rows and sums of this part.
            unsafe {
                let (gammas, betas) = (scratch.at(2 * t * parameters), scratch.at((2 * t + 1) * parameters));
                if affine_wanted {
                    std::slice::from_raw_parts_mut(gammas, 2 * parameters).fill(T::ZERO);
                }
                for r in t * part..((t + 1) * part).min(g.rows) {
                    let (x, dy) = (x.at(r * g.len).cast_const(), dy.at(r * g.len).cast_const());
                    let (m, s) = (*mean.at(r), *inverse.at(r));
                    if affine_wanted {
                        match g.affine {
                            Affine::PerElement => loops::add_affine(x, dy, g.len, m, s, gammas, betas),
                            Affine::PerChannel { groups, inner } => g.each_channel(r, groups, inner, |at, n, c| {
                                let [first, second] = loops::moments(x.add(at), dy.add(at), std::ptr::null(), n, m);
                                *betas.add(c) += T::from_f64(first);
                                *gammas.add(c) += T::from_f64(second * s.to_f64());
                            }),
                        }
                    }
                    if !dx.is_null() {
                        row_dx(g, r, x, dy, gamma, m, s, dx.at(r * g.len));
                    }
                }
            }
        };
        if parts == 1 { task(0) } else { threads.run(parts, &task) }
        for (into, which) in [(dgamma, 0), (dbeta, 1)] {
            for c in 0..if into.is_null() { 0 } else { parameters } {
                let mut sum = T::ZERO;
                for t in 0..parts {
                    // SAFETY: the parts' sums, written above.
                    sum += unsafe { *scratch.at((2 * t + which) * parameters + c) };
                }
                // SAFETY: one element per parameter.
                unsafe { *into.at(c) = sum }
            }
        }
    })
}

/// One row of `dx = s * (gamma dy - mean(gamma dy) - xhat * mean(gamma dy * xhat))`; for [`Centre::Zero`] without the first mean.
///
/// # Safety
/// Same as for [`row_norm_backward`], for row `r`.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
unsafe fn row_dx<T: Real>(
    g: &RowNorm,
    r: usize,
    x: *const T,
    dy: *const T,
    gamma: Shared<T>,
    m: T,
    s: T,
    dx: *mut T,
) {
    let (count, inverse) = (g.len as f64, s.to_f64());
    let mut sums = [0.0; 2];
    // SAFETY: guaranteed by the caller.
    unsafe {
        match g.affine {
            Affine::PerElement => sums = loops::moments(x, dy, gamma.at(0).cast_const(), g.len, m),
            Affine::PerChannel { groups, inner } => g.each_channel(r, groups, inner, |at, n, c| {
                let weight = if gamma.is_null() {
                    1.0
                } else {
                    (*gamma.at(c)).to_f64()
                };
                let part = loops::moments(x.add(at), dy.add(at), std::ptr::null(), n, m);
                (0..2).for_each(|i| sums[i] += weight * part[i]);
            }),
        }
        let b = T::from_f64(-inverse.powi(3) * sums[1] / count);
        let d = match g.centre {
            Centre::Mean => T::from_f64(-inverse * sums[0] / count),
            Centre::Zero => T::ZERO,
        };
        match g.affine {
            Affine::PerElement if gamma.is_null() => loops::combine(x, dy, g.len, m, s, b, d, dx),
            Affine::PerElement => {
                loops::combine_vector(x, dy, gamma.at(0).cast_const(), g.len, m, s, b, d, dx)
            }
            Affine::PerChannel { groups, inner } => g.each_channel(r, groups, inner, |at, n, c| {
                let a = if gamma.is_null() { s } else { s * *gamma.at(c) };
                loops::combine(x.add(at), dy.add(at), n, m, a, b, d, dx.add(at));
            }),
        }
    }
}
