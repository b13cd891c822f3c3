//! Gamma samples.
#![allow(
    clippy::needless_range_loop,
    reason = "iterator adapters may be compiled without the instruction set"
)]

use super::Stream;
use super::math::{SampleFloat, exp, log};
use super::philox::words_at;
use super::source::{SINGLE_TILE, TILE, tiles};
use crate::reduce::by_isa;
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
        } else if n <= SINGLE_TILE {
            in_tiles::<SINGLE_TILE>(threads, stream, scale, shapes, elem, n, out);
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
            if TILE <= SINGLE_TILE {
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

/// f64 lanes of the widest vector register; [`SINGLE_TILE`] is a multiple of it.
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

/// Draws one candidate for each lane of a vector register. Returns the candidates, and 1 where one is accepted. A short tile is padded to registers: a loop of unknown length would be scalar.
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
