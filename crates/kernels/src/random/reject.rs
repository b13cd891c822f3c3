//! Samplers that may need several tries. Element i owns the counters (low half `offset + i / share`, any upper half).

use super::Stream;
use super::math::{Real, half, long};
use super::philox::{philox, words};
use crate::reduce::kernel::{load_of, store_of};
use crate::reduce::plan::split;
use crate::{Elem, Threads};

/// A parameter per element.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The first element's.
    pub ptr: *const u8,
    /// Element type, not complex.
    pub elem: Elem,
    /// Bytes to the next element's, 0 for one value shared by all.
    pub stride: isize,
}

/// Distributions sampled by rejection, one counter's low half per element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejecting {
    /// Gamma of scale 1 and the parameter as shape; 0 for shape 0, NaN for a negative one. Source: Marsaglia and Tsang, 2000.
    Gamma,
    /// Poisson of the parameter as mean; NaN for a negative mean. Sources: multiplication of uniforms (Knuth, TAOCP 3.4.1) below 10,
    /// above it PTRS (Hörmann, 1993).
    Poisson,
}

impl Rejecting {
    /// Counter blocks that `n` elements take.
    pub fn blocks(self, n: usize) -> u64 {
        n as u64
    }
}

/// Elements worked on at once.
const TILE: usize = 256;

/// Fills `n` contiguous elements of type `elem` at `out`; samples are computed in f64 and converted.
///
/// # Safety
/// `out` has room for `n` elements, `parameter` can be read for `n`, and they do not overlap.
pub unsafe fn fill_rejecting(
    threads: &dyn Threads,
    stream: Stream,
    what: Rejecting,
    parameter: &Parameter,
    elem: Elem,
    n: usize,
    out: *mut u8,
) {
    let draw = |source: &mut Source, [x, _]: [f64; 2]| match what {
        Rejecting::Gamma => gamma(source, x),
        Rejecting::Poisson => poisson(source, x),
    };
    // SAFETY: the caller's.
    unsafe { fill_by(threads, stream, [parameter, parameter], elem, n, out, &draw) }
}

/// Fills `n` elements with binomial samples: successes of `trials` tries that succeed with probability `p`, one counter's low half for each. NaN for
/// a negative number of tries or a `p` outside [0, 1]. Sources: sums of geometric numbers (Devroye, 1986, X.4) below a mean of 10, above it
/// BTRS (Hörmann, 1993).
///
/// # Safety
/// `out` has room for `n` elements, both parameters can be read for `n`, and they do not overlap it.
pub unsafe fn fill_binomial(
    threads: &dyn Threads,
    stream: Stream,
    trials: &Parameter,
    p: &Parameter,
    elem: Elem,
    n: usize,
    out: *mut u8,
) {
    let draw = |source: &mut Source, [trials, p]: [f64; 2]| binomial(source, trials, p);
    // SAFETY: the caller's.
    unsafe { fill_by(threads, stream, [trials, p], elem, n, out, &draw) }
}

/// Fills `n` elements with what `draw` makes of their two parameters and their own numbers.
///
/// # Safety
/// As [`fill_binomial`].
unsafe fn fill_by(
    threads: &dyn Threads,
    stream: Stream,
    parameters: [&Parameter; 2],
    elem: Elem,
    n: usize,
    out: *mut u8,
    draw: &(dyn Fn(&mut Source, [f64; 2]) -> f64 + Sync),
) {
    let from = parameters.map(|p| (load_of(p.elem, Elem::F64), p.ptr as usize, p.stride));
    let store = store_of(Elem::F64, elem).expect("F64 converts to all");
    let out = out as usize;
    // A sample costs about as much as a hundred additions.
    split(threads, n.div_ceil(TILE), n.saturating_mul(100), &|tile| {
        let first = tile * TILE;
        let count = TILE.min(n - first);
        let mut tiles = [[0f64; TILE]; 2];
        // SAFETY: elements `first..first + count` exist in all three arrays.
        unsafe {
            for (tile, (load, ptr, stride)) in tiles.iter_mut().zip(&from) {
                load(
                    (*ptr as *const u8).offset(first as isize * stride),
                    *stride,
                    count,
                    tile.as_mut_ptr().cast(),
                );
            }
            let [made, second] = &mut tiles;
            for (i, (x, y)) in made[..count].iter_mut().zip(&second[..count]).enumerate() {
                let mut source = Source {
                    seed: stream.seed,
                    counter: [stream.offset.wrapping_add((first + i) as u64), 0],
                };
                *x = draw(&mut source, [*x, *y]);
            }
            store(
                made.as_ptr().cast(),
                (out as *mut u8).add(first * elem.size()),
                elem.size() as isize,
                count,
            );
        }
    });
}

/// The numbers of one element.
struct Source {
    seed: u64,
    counter: [u64; 2],
}

impl Source {
    fn block(&mut self) -> [u32; 4] {
        let block = philox(self.counter, self.seed);
        self.counter[1] += 1;
        block
    }

    /// Two uniforms, the first in (0, 1], the second in [0, 1).
    fn uniforms(&mut self) -> (f64, f64) {
        let block = self.block();
        (f64::positive(half(&block, 0)), f64::unit(half(&block, 1)))
    }
}

fn gamma(source: &mut Source, shape: f64) -> f64 {
    if shape.is_nan() || shape < 0.0 {
        return f64::NAN;
    }
    // The limit of ever smaller shapes.
    if shape == 0.0 {
        return 0.0;
    }
    // A shape below 1 is that of shape + 1 times u^(1 / shape).
    let (shape, boost) = if shape < 1.0 {
        (shape + 1.0, source.uniforms().0.powf(1.0 / shape))
    } else {
        (shape, 1.0)
    };
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let (u1, u2) = source.uniforms();
        let x = (-2.0 * u1.ln()).sqrt() * (std::f64::consts::TAU * u2).cos();
        let v = (1.0 + c * x).powi(3);
        let u = source.uniforms().0;
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v * boost;
        }
    }
}

fn binomial(source: &mut Source, trials: f64, p: f64) -> f64 {
    if trials.is_nan() || trials < 0.0 || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 {
        return trials - binomial(source, trials, 1.0 - p);
    }
    if trials == 0.0 || p == 0.0 {
        return 0.0;
    }
    if trials * p < 10.0 {
        // Tries between successes are geometric.
        let slope = (-p).ln_1p().recip();
        let (mut tries, mut successes) = (0.0, 0.0);
        loop {
            let (a, b) = source.uniforms();
            // The second is in [0, 1): its complement is in (0, 1].
            for u in [a, 1.0 - b] {
                tries += (u.ln() * slope).floor() + 1.0;
                if tries > trials {
                    return successes;
                }
                successes += 1.0;
            }
        }
    }
    let spread = (trials * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * spread;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let alpha = (2.83 + 5.1 / b) * spread;
    let v_r = 0.92 - 4.2 / b;
    let odds = (p / (1.0 - p)).ln();
    let mode = ((trials + 1.0) * p).floor();
    let height = libm::lgamma(mode + 1.0) + libm::lgamma(trials - mode + 1.0);
    loop {
        let (v, u) = source.uniforms();
        let u = u - 0.5;
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + trials * p + 0.5).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || k > trials {
            continue;
        }
        let bound =
            height - libm::lgamma(k + 1.0) - libm::lgamma(trials - k + 1.0) + (k - mode) * odds;
        if (v * alpha / (a / (us * us) + b)).ln() <= bound {
            return k;
        }
    }
}

fn poisson(source: &mut Source, mean: f64) -> f64 {
    if mean.is_nan() || mean < 0.0 {
        return f64::NAN;
    }
    if mean < 10.0 {
        let floor = (-mean).exp();
        let (mut product, mut k) = (1.0, 0.0);
        loop {
            let (a, b) = source.uniforms();
            for u in [a, b] {
                product *= u;
                if product <= floor {
                    return k;
                }
                k += 1.0;
            }
        }
    }
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let v_r = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (v, u) = source.uniforms();
        let u = u - 0.5;
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        if (v * inverse_alpha / (a / (us * us) + b)).ln()
            <= -mean + k * mean.ln() - libm::lgamma(k + 1.0)
        {
            return k;
        }
    }
}

/// Fills `n` contiguous elements of the integer (or float) type `elem` at `out` with integers of `low..high`, each equally likely, and
/// returns how many counter blocks that took: a quarter of `n` for ranges up to 2^32, else half.
///
/// Source: Lemire, "Fast random integer generation in an interval", 2019 (multiply, and reject the few low products that bias).
///
/// # Safety
/// `low < high`; `out` has room for `n` elements.
pub unsafe fn integers(
    threads: &dyn Threads,
    stream: Stream,
    low: i64,
    high: i128,
    elem: Elem,
    n: usize,
    out: *mut u8,
) -> u64 {
    debug_assert!((low as i128) < high && high - low as i128 <= 1 << 64);
    // 0 stands for 2^64.
    let range = (high - low as i128) as u64;
    let narrow = range != 0 && range <= 1 << 32;
    let per_block = if narrow { 4 } else { 2 };
    let store = store_of(Elem::I64, elem).expect("I64 converts to all");
    let out = out as usize;
    split(threads, n.div_ceil(TILE * per_block), 4 * n, &|tile| {
        let first = tile * TILE;
        let count = (TILE * per_block).min(n - first * per_block);
        let mut bits = [[0u32; 4]; TILE];
        let mut made = [0i64; 4 * TILE];
        // SAFETY: the words are the caller's own.
        unsafe { words(stream, first as u64, &mut bits[..count.div_ceil(per_block)]) };
        for (i, x) in made[..count].iter_mut().enumerate() {
            let (block, lane) = (i / per_block, i % per_block);
            let again = |retry: u64| {
                philox(
                    [stream.offset.wrapping_add((first + block) as u64), retry],
                    stream.seed,
                )
            };
            let step = if narrow {
                below_narrow(range, &bits[block], lane, again)
            } else {
                below_wide(range, &bits[block], lane, again)
            };
            *x = low.wrapping_add(step as i64);
        }
        let to = (out as *mut u8).wrapping_add(first * per_block * elem.size());
        // SAFETY: tile `tile` of the output is inside it.
        unsafe { store(made.as_ptr().cast(), to, elem.size() as isize, count) };
    });
    n.div_ceil(per_block) as u64
}

fn below_narrow(range: u64, block: &[u32; 4], lane: usize, again: impl Fn(u64) -> [u32; 4]) -> u64 {
    let mut product = block[lane] as u64 * range;
    if (product as u32 as u64) < range {
        let threshold = (1u64 << 32) % range;
        let mut retry = 0;
        while (product as u32 as u64) < threshold {
            retry += 1;
            product = again(retry)[lane] as u64 * range;
        }
    }
    product >> 32
}

fn below_wide(range: u64, block: &[u32; 4], lane: usize, again: impl Fn(u64) -> [u32; 4]) -> u64 {
    let mut word = long(half(block, lane));
    if range == 0 {
        return word;
    }
    let threshold = range.wrapping_neg() % range;
    let mut retry = 0;
    loop {
        let product = word as u128 * range as u128;
        if product as u64 >= threshold {
            return (product >> 64) as u64;
        }
        retry += 1;
        word = long(half(&again(retry), lane));
    }
}
