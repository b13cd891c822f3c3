//! Gamma samples and their derivatives with respect to the shape parameter.
#![allow(
    clippy::needless_range_loop,
    reason = "iterator adapters may be compiled without the instruction set"
)]

use super::Stream;
use super::math::{SampleFloat, exp, log};
use super::philox::words_at;
use super::source::{SMALL_TILE, TILE, tiles};
use crate::map::digamma;
use crate::reduce::by_isa;
use crate::reduce::plan::split;
use crate::{Elem, Threads};

/// Whether to return the sample or its logarithm. For small shapes the sample may underflow to 0 while its logarithm is finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The sample.
    Linear,
    /// Its natural logarithm.
    Log,
}

/// Fills `n` contiguous elements of type `elem` with gamma samples of scale 1 and returns the number of counter blocks used, `n`. `shapes` has one
/// element for all, or `n`; a negative shape gives NaN. Source: Marsaglia and Tsang, 2000, computed in f64.
///
/// # Safety
/// `out` has room for `n` elements.
pub unsafe fn fill_gamma(
    threads: &dyn Threads,
    stream: Stream,
    scale: Scale,
    shapes: &[f64],
    elem: Elem,
    n: usize,
    out: *mut u8,
) -> u64 {
    debug_assert!(shapes.len() == 1 || shapes.len() == n);
    // SAFETY: guaranteed by the caller.
    unsafe {
        if n <= LANES {
            in_tiles::<LANES>(threads, stream, scale, shapes, elem, n, out);
        } else if n <= SMALL_TILE {
            in_tiles::<SMALL_TILE>(threads, stream, scale, shapes, elem, n, out);
        } else {
            in_tiles::<TILE>(threads, stream, scale, shapes, elem, n, out);
        }
    };
    n as u64
}

/// # Safety
/// Same as for [`fill_gamma`].
unsafe fn in_tiles<const TILE: usize>(
    threads: &dyn Threads,
    stream: Stream,
    scale: Scale,
    shapes: &[f64],
    elem: Elem,
    n: usize,
    out: *mut u8,
) {
    let one = [shapes.first().copied().unwrap_or(1.0); TILE];
    // SAFETY: guaranteed by the caller; `samples` writes the tile that it is given.
    unsafe {
        tiles::<TILE>(threads, 60, elem, n, out, &|first, made| {
            let shapes = match shapes.len() {
                1 => &one[..made.len()],
                _ => &shapes[first..first + made.len()],
            };
            samples::<TILE>(stream, first as u64, shapes, scale, made);
        })
    };
}

/// Upper half of the counters that provide u for shapes below 1; the attempts use smaller ones.
const BOOST: u64 = 1 << 32;

by_isa! {
    /// Samples of one tile of at most `TILE` elements. All elements attempt at once; those rejected are packed together and attempt again.
    unsafe fn samples [const TILE: usize] [TILE] (stream: Stream, first: u64, shapes: &[f64], scale: Scale, out: &mut [f64]) {
        let n = shapes.len();
        let base = stream.offset.wrapping_add(first);
        let mut pending = iota::<TILE>();
        let (mut d, mut bits) = ([1.0; TILE], [[0u32; TILE]; 4]);
        // For a shape below 1: a sample of shape + 1 times u^(1 / shape). Invalid shapes sample as 1 and are overwritten below.
        for (d, &a) in d.iter_mut().zip(shapes) {
            let a = if (0.0..f64::INFINITY).contains(&a) { a } else { 1.0 };
            *d = if a < 1.0 { a + 1.0 } else { a } - 1.0 / 3.0;
        }
        let (mut tried, mut fits) = ([0.0; TILE], [0u64; TILE]);
        let mut radius = [0.0; TILE];
        let (mut left, mut round) = (n, 0);
        while left > 0 {
            // SAFETY: `bits` holds the words of `TILE` blocks.
            unsafe { words_at(stream.seed, base, &pending[..left], round, &mut bits) };
            if TILE <= SMALL_TILE {
                for at in (0..left).step_by(LANES) {
                    let words = [lanes(&bits[0], at), lanes(&bits[1], at), lanes(&bits[2], at), lanes(&bits[3], at)];
                    let (made, taken) = in_lanes(words, lanes(&d, at), scale);
                    tried[at..at + LANES].copy_from_slice(&made);
                    fits[at..at + LANES].copy_from_slice(&taken);
                }
            } else {
                // Each of these short loops vectorises; a single loop would not.
                let [first, second, third, fourth] = &bits;
                for ((r, &a), &b) in radius[..left].iter_mut().zip(first).zip(second) {
                    *r = length(a, b);
                }
                for (r, &c) in radius[..left].iter_mut().zip(third) {
                    *r *= cosine(c);
                }
                let tries = tried[..left].iter_mut().zip(&mut fits[..left]);
                for ((((v, fits), &x), &d), &u) in tries.zip(&radius).zip(&d).zip(fourth) {
                    (*v, *fits) = attempt(scale, d, x, u);
                }
            }
            let mut num_rejected = 0;
            for j in 0..left {
                out[pending[j] as usize] = tried[j];
                (pending[num_rejected], d[num_rejected]) = (pending[j], d[j]);
                num_rejected += 1 - fits[j] as usize;
            }
            left = num_rejected;
            round += 1;
        }
        if shapes.iter().any(|&a| a < 1.0) {
            pending = iota::<TILE>();
            // SAFETY: `bits` holds the words of `TILE` blocks.
            unsafe { words_at(stream.seed, base, &pending[..n], BOOST, &mut bits) };
            let [first, second, ..] = &bits;
            for (((x, &a), &low), &high) in out.iter_mut().zip(shapes).zip(first).zip(second) {
                let boost = log(f64::positive([low, high])) / a;
                let raised = if scale == Scale::Log { *x + boost } else { *x * exp(boost) };
                *x = if a < 1.0 { raised } else { *x };
            }
        }
        for (x, &a) in out.iter_mut().zip(shapes) {
            if a > 0.0 && a < f64::INFINITY {
                continue;
            }
            // The limits for shape 0 and infinity; NaN for invalid shapes.
            let limit = if a == 0.0 || a == f64::INFINITY { a } else { f64::NAN };
            *x = if scale == Scale::Log { limit.ln() } else { limit };
        }
    }
}

/// f64 lanes of the widest vector register; [`SMALL_TILE`] is a multiple of it.
const LANES: usize = 8;

/// The integers `0..N`.
#[inline(always)]
fn iota<const N: usize>() -> [u32; N] {
    let mut all = [0; N];
    for i in 0..N {
        all[i] = i as u32;
    }
    all
}

/// Radius of a two-dimensional normal vector (Box-Muller).
#[inline(always)]
fn length(a: u32, b: u32) -> f64 {
    (-2.0 * log(f64::positive([a, b]))).sqrt()
}

/// Cosine of the vector's angle.
#[inline(always)]
fn cosine(c: u32) -> f64 {
    (c as f64 * 2f64.powi(-32)).cos_sin_turns().0
}

/// The sample that the normal number `x` gives, and whether it is accepted (0 or 1).
#[inline(always)]
fn attempt(scale: Scale, d: f64, x: f64, u: u32) -> (f64, u64) {
    let t = 1.0 + x / (9.0 * d).sqrt();
    let cube = t * t * t;
    let log_v = log(if cube > 0.0 { cube } else { 1.0 });
    let log_u = log((u as f64 + 0.5) * 2f64.powi(-32));
    // For large shapes the difference loses its digits, but almost nothing is rejected there.
    let is_below = log_u < 0.5 * x * x + d - d * cube + d * log_v;
    let made = if scale == Scale::Log {
        log(d) + log_v
    } else {
        d * cube
    };
    (made, (cube > 0.0 && (is_below || d > 1e10)) as u64)
}

/// `LANES` elements from `at` on.
#[inline(always)]
fn lanes<T: Copy, const N: usize>(all: &[T; N], at: usize) -> [T; LANES] {
    let mut values = [all[at]; LANES];
    values.copy_from_slice(&all[at..at + LANES]);
    values
}

/// Attempts of one vector register of elements. A short tile is padded to registers: a loop of unknown length would be scalar.
#[inline(always)]
fn in_lanes(
    words: [[u32; LANES]; 4],
    d: [f64; LANES],
    scale: Scale,
) -> ([f64; LANES], [u64; LANES]) {
    let [first, second, third, fourth] = words;
    let (mut x, mut made, mut taken) = ([0.0; LANES], [0.0; LANES], [0; LANES]);
    for i in 0..LANES {
        x[i] = length(first[i], second[i]);
    }
    for i in 0..LANES {
        x[i] *= cosine(third[i]);
    }
    for i in 0..LANES {
        (made[i], taken[i]) = attempt(scale, d[i], x[i], fourth[i]);
    }
    (made, taken)
}

/// Derivatives of gamma samples, `dx / da`, or of their logarithms, `d ln x / da`, with respect to the shape parameter at constant quantile. Implicit
/// differentiation of the distribution function F: minus dF/da over the density.
///
/// Source: Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018. For x below the shape, F is a power series (DLMF 8.7.1); above
/// it,
/// 1 - F is a continued fraction (DLMF 8.9.2); both are differentiated term by term. For shapes above 5000 the Cornish-Fisher expansion of the
/// quantile
/// (Abramowitz and Stegun 26.2.49) is differentiated. Relative errors are below 1e-8. A sample that has underflowed to 0 has derivative 0.
///
/// # Panics
/// If the three slices differ in length.
pub fn gamma_slopes(
    threads: &dyn Threads,
    scale: Scale,
    shapes: &[f64],
    x: &[f64],
    out: &mut [f64],
) {
    let n = out.len();
    assert!(shapes.len() == n && x.len() == n);
    let out = out.as_mut_ptr() as usize;
    split(threads, n.div_ceil(TILE), n.saturating_mul(500), &|tile| {
        for i in tile * TILE..n.min((tile + 1) * TILE) {
            let slope = match scale {
                Scale::Linear if x[i] == 0.0 => 0.0,
                Scale::Linear => x[i] * log_slope(shapes[i], x[i].ln()),
                Scale::Log => log_slope(shapes[i], x[i]),
            };
            // SAFETY: element `i` of the output, which no other task writes.
            unsafe { *(out as *mut f64).add(i) = slope };
        }
    });
}

/// `d ln x / da` of a gamma sample with shape `a`.
fn log_slope(a: f64, log_x: f64) -> f64 {
    let x = log_x.exp();
    if a.is_nan() || a <= 0.0 || log_x.is_nan() {
        f64::NAN
    } else if a > 5000.0 {
        expanded(a, x) / x
    } else if x < a + 1.0 {
        series(a, x, log_x)
    } else {
        fraction(a, x, log_x)
    }
}

/// F = x^a e^-x / Gamma(a + 1) * sum of t, with t(0) = 1 and t(n) = t(n - 1) x / (a + n).
fn series(a: f64, x: f64, log_x: f64) -> f64 {
    let (mut t, mut sum, mut harmonic, mut slope) = (1.0, 1.0, 0.0, 0.0);
    for n in 1..100_000 {
        let divisor = a + n as f64;
        t *= x / divisor;
        harmonic += 1.0 / divisor;
        sum += t;
        slope -= t * harmonic;
        if t * harmonic < 1e-17 * sum {
            break;
        }
    }
    -(sum * (log_x - digamma(a + 1.0)) + slope) / a
}

/// 1 - F = x^a e^-x / Gamma(a) * h with the continued fraction h = 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)). Lentz' algorithm
/// also propagates the derivative with respect to a.
fn fraction(a: f64, x: f64, log_x: f64) -> f64 {
    // Pairs of a value and its derivative with respect to a.
    let mut b = x + 1.0 - a;
    let (mut c, mut dc) = (1e300, 0.0);
    let (mut d, mut dd) = (1.0 / b, 1.0 / (b * b));
    let (mut h, mut dh) = (d, dd);
    for i in 1..100_000 {
        let i = i as f64;
        let (term, term_slope) = (-i * (i - a), i);
        b += 2.0;
        // d = 1 / (term * d + b), c = b + term / c; the derivative of b is -1.
        let below = term * d + b;
        let below_slope = term_slope * d + term * dd - 1.0;
        (d, dd) = (1.0 / below, -below_slope / (below * below));
        (dc, c) = (-1.0 + term_slope / c - term * dc / (c * c), b + term / c);
        let (factor, factor_slope) = (c * d, dc * d + c * dd);
        (h, dh) = (h * factor, dh * factor + h * factor_slope);
        if (factor - 1.0).abs() < 1e-16 && factor_slope.abs() < 1e-16 * (dh / h).abs().max(1.0) {
            break;
        }
    }
    h * (log_x - digamma(a)) + dh
}

/// `dx / da` from x = a + sqrt(a) z + (z^2 - 1) / 3 + (z^3 - 7 z) / (36 sqrt(a)) - (3 z^4 + 7 z^2 - 16) / (810 a) + ... at constant z.
fn expanded(a: f64, x: f64) -> f64 {
    let root = a.sqrt();
    let quantile = |z: f64| {
        a + root * z + (z * z - 1.0) / 3.0 + (z * z * z - 7.0 * z) / (36.0 * root)
            - (3.0 * z.powi(4) + 7.0 * z * z - 16.0) / (810.0 * a)
    };
    let mut z = (x - a) / root;
    for _ in 0..4 {
        let slope = root + 2.0 * z / 3.0 + (3.0 * z * z - 7.0) / (36.0 * root);
        z -= (quantile(z) - x) / slope;
    }
    1.0 + z / (2.0 * root) - (z * z * z - 7.0 * z) / (72.0 * a * root)
        + (3.0 * z.powi(4) + 7.0 * z * z - 16.0) / (810.0 * a * a)
}
