//! Distributions for which every element uses a fixed share of one counter block.

use super::Stream;
use super::math::SampleFloat;
use super::philox::words;
use crate::reduce::by_isa;
use crate::reduce::kernel::store_of;
use crate::threads::split;
use crate::{Elem, Threads};

/// Distributions that need a fixed number of random bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// `low + (high - low) u`, u uniform in [0, 1) with 24 (f32) or 53 (f64) bits. Rounding may give `high` if the ends are not 0 and 1.
    Uniform {
        /// Lower end, inclusive.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Normal. Source: Box and Muller, 1958.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        deviation: f64,
    },
    /// 1 with probability `p`, else 0.
    Bernoulli {
        /// Probability of 1.
        p: f64,
    },
    /// Exponential: `-scale ln u`.
    Exponential {
        /// Mean.
        scale: f64,
    },
    /// Laplace of mean 0: `-scale ln u` with a random sign.
    Laplace {
        /// Scale.
        scale: f64,
    },
    /// Logistic of mean 0: `scale ln(u / (1 - u))`.
    Logistic {
        /// Scale.
        scale: f64,
    },
    /// Gumbel of location 0: `-scale ln(-ln u)`.
    Gumbel {
        /// Scale.
        scale: f64,
    },
    /// Triangular: the density rises linearly from `left` to `mode` and falls linearly to `right`. Inversion.
    Triangular {
        /// Lower end.
        left: f64,
        /// Upper end, above `left`.
        right: f64,
        /// Where the density is largest.
        mode: f64,
    },
}

impl Distribution {
    /// Number of counter blocks for `n` elements of type `elem`.
    pub fn blocks(self, elem: Elem, n: usize) -> u64 {
        n.div_ceil(per_block(elem)) as u64
    }
}

/// Elements per counter block. F64 outputs are computed in f64, two per block; all others in f32, four per block.
fn per_block(elem: Elem) -> usize {
    if elem == Elem::F64 {
        f64::PER_BLOCK
    } else {
        f32::PER_BLOCK
    }
}

/// Counter blocks per tile.
const TILE: usize = 256;

/// Counter blocks in the tile of an output that fits one tile of this size: initialising `TILE` blocks would dominate.
const SINGLE_TILE: usize = 32;

/// Fills `n` contiguous elements of type `elem` at `out`. Types other than f64 get the f32 sample, converted.
///
/// # Safety
/// `out` has room for `n` elements.
pub unsafe fn fill(
    threads: &dyn Threads,
    stream: Stream,
    what: Distribution,
    elem: Elem,
    n: usize,
    out: *mut u8,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if n <= per_block(elem) {
            by_tiles::<1>(threads, stream, what, elem, n, out);
        } else if n <= SINGLE_TILE * per_block(elem) {
            by_tiles::<SINGLE_TILE>(threads, stream, what, elem, n, out);
        } else {
            by_tiles::<TILE>(threads, stream, what, elem, n, out);
        }
    }
}

/// # Safety
/// Same as for [`fill`].
unsafe fn by_tiles<const TILE: usize>(
    threads: &dyn Threads,
    stream: Stream,
    what: Distribution,
    elem: Elem,
    n: usize,
    out: *mut u8,
) {
    let per_block = per_block(elem);
    let (make, computed) = if elem == Elem::F64 {
        (
            samples::<f64> as unsafe fn(&[[u32; 4]], Distribution, *mut u8),
            Elem::F64,
        )
    } else {
        (
            samples::<f32> as unsafe fn(&[[u32; 4]], Distribution, *mut u8),
            Elem::F32,
        )
    };
    let store = store_of(computed, elem).expect("F32 and F64 convert to all");
    let out = out as usize;
    split(threads, n.div_ceil(TILE * per_block), 4 * n, &|tile| {
        let first = tile * TILE;
        let count = (TILE * per_block).min(n - first * per_block);
        let mut bits = [[0u32; 4]; TILE];
        let bits = &mut bits[..count.div_ceil(per_block)];
        let to = (out as *mut u8).wrapping_add(first * per_block * elem.size());
        // SAFETY: tile `tile` of the output is inside it; a counter block gives 16 bytes of samples, for which `samples` has room.
        unsafe {
            words(stream, first as u64, bits);
            if computed == elem && bits.len() * per_block == count {
                return make(bits, what, to);
            }
            let mut made = [[0u64; 2]; TILE];
            make(bits, what, made.as_mut_ptr().cast());
            store(made.as_ptr().cast(), to, elem.size() as isize, count);
        }
    });
}

by_isa! {
    /// Computes all samples of some counter blocks.
    unsafe fn samples [T: SampleFloat] [T] (bits: &[[u32; 4]], what: Distribution, out: *mut u8) {
        let n = bits.len() * T::PER_BLOCK;
        // SAFETY: the caller gives room for the samples of all blocks; the type's alignment is that of the output's elements.
        let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), n) };
        let words = T::word_list(bits);
        match what {
            Distribution::Uniform { low, high } => {
                let (low, range) = (T::of(low), T::of(high - low));
                map(words, out, |w| low + range * T::unit(w));
            }
            Distribution::Normal { mean, deviation } => normal(words, out, T::of(mean), T::of(deviation)),
            Distribution::Bernoulli { p } => {
                let (p, one, zero) = (T::of(p), T::of(1.0), T::of(0.0));
                map(words, out, |w| if T::unit(w) < p { one } else { zero });
            }
            Distribution::Exponential { scale } => {
                let scale = T::of(-scale);
                map(words, out, |w| scale * T::positive(w).ln());
            }
            Distribution::Laplace { scale } => {
                let scale = T::of(-scale);
                map(words, out, |w| {
                    let x = scale * T::positive(T::without_sign(w)).ln();
                    if T::sign(w) { -x } else { x }
                });
            }
            Distribution::Logistic { scale } => {
                // Both u and 1 - u have full precision near 0, so both tails extend equally far.
                let scale = T::of(scale);
                map(words, out, |w| scale * (T::inner(w).ln() + -T::inner(T::complement(w)).ln()));
            }
            Distribution::Triangular { left, right, mode } => {
                let [left, right, mode, one] = [left, right, mode, 1.0].map(T::of);
                let (width, before, behind) = (right + -left, mode + -left, right + -mode);
                map(words, out, |w| {
                    // One square root for both sides: its argument is selected first.
                    let u = T::unit(w);
                    let rises = u * width < before;
                    let (part, side) = if rises { (u, before) } else { (one + -u, behind) };
                    let root = (part * width * side).sqrt();
                    if rises { left + root } else { right + -root }
                });
            }
            Distribution::Gumbel { scale } => {
                // u = 1 would give infinity, so the exponential variate is clamped to at least half of the smallest step of u below 1.
                let (scale, least) = (T::of(-scale), T::of(if T::PER_BLOCK == 4 { 2f64.powi(-25) } else { 2f64.powi(-54) }));
                map(words, out, |w| {
                    let e = -T::positive(w).ln();
                    scale * (if e > least { e } else { least }).ln()
                });
            }
        }
    }
}

#[inline(always)]
fn map<T: SampleFloat>(words: &[T::Word], out: &mut [T], f: impl Fn(T::Word) -> T) {
    for (out, &w) in out.iter_mut().zip(words) {
        *out = f(w);
    }
}

/// Box-Muller: consecutive samples are the cosine and the sine of one pair of words.
///
/// Words are unpacked, transformed and interleaved in separate short loops, each of which vectorises; a single loop would not.
#[inline(always)]
fn normal<T: SampleFloat>(words: &[T::Word], out: &mut [T], mean: T, deviation: T) {
    // A single block (for a single number): padding it to a full vector would cost more than it saves.
    if words.len() == T::PER_BLOCK {
        return pairs::<T, 2>(words, out, mean, deviation);
    }
    let whole = words.len() / 64 * 64;
    pairs::<T, 32>(&words[..whole], &mut out[..whole], mean, deviation);
    pairs::<T, 8>(&words[whole..], &mut out[whole..], mean, deviation);
}

#[inline(always)]
fn pairs<T: SampleFloat, const PAIRS: usize>(
    words: &[T::Word],
    out: &mut [T],
    mean: T,
    deviation: T,
) {
    let zero = T::of(0.0);
    for (words, out) in words.chunks(2 * PAIRS).zip(out.chunks_mut(2 * PAIRS)) {
        let (mut radius, mut cos, mut sin) = ([T::of(1.0); PAIRS], [zero; PAIRS], [zero; PAIRS]);
        for (i, pair) in words.chunks_exact(2).enumerate() {
            radius[i] = T::positive(pair[0]);
            cos[i] = T::unit(pair[1]);
        }
        for r in &mut radius {
            *r = deviation * (T::of(-2.0) * r.ln()).sqrt();
        }
        for (c, s) in cos.iter_mut().zip(&mut sin) {
            (*c, *s) = c.cos_sin_turns();
        }
        for (i, pair) in out.chunks_exact_mut(2).enumerate() {
            pair[0] = mean + radius[i] * cos[i];
            pair[1] = mean + radius[i] * sin[i];
        }
    }
}
