//! Ranges of 8-bit integers: the largest number, and the threshold that keeps most of the information in a histogram.
//!
//! Source of the latter: S. Migacz, 8-bit Inference with TensorRT, GPU Technology Conference 2017: of all thresholds, take that for which the distribution of the
//! quantised values has the smallest Kullback-Leibler divergence from that of the values. Zeros of both are smoothed first.

use crate::Threads;
use crate::conv::run;
use crate::real::Shared;
use crate::reduce::by_isa;
use crate::scratch;

/// What each empty bin gets, of the counts.
const SMOOTHED: f64 = 1e-4;

/// Elements of a task of [`largest`].
const PIECE: usize = 1 << 16;

/// The largest absolute value; NaN does not count. 0 without elements.
pub fn largest(threads: &dyn Threads, x: &[f32]) -> f32 {
    let mut found = scratch::filled(x.len().div_ceil(PIECE), 0.0);
    let to = Shared(found.as_mut_ptr());
    run(threads, x.len().div_ceil(PIECE), &|i| {
        let piece = &x[i * PIECE..x.len().min((i + 1) * PIECE)];
        // SAFETY: each task writes its own element.
        unsafe { *to.at(i) = largest_of(piece) }
    });
    found.iter().fold(0.0, |a: f32, &b| a.max(b))
}

by_isa! {
    /// [`largest`] of a piece.
    ///
    /// # Safety
    /// None.
    unsafe fn largest_of [] [] (x: &[f32]) -> f32 {
        let mut lanes = [0.0f32; 64];
        let (blocks, rest) = x.as_chunks::<64>();
        for block in blocks {
            for l in 0..64 {
                let x = block[l].abs();
                lanes[l] = if x > lanes[l] { x } else { lanes[l] };
            }
        }
        let all = lanes.iter().copied().chain(rest.iter().map(|x| x.abs()));
        all.fold(0.0, |a, b| if b > a { b } else { a })
    }
}

/// The threshold and its divergence, for a histogram of an odd number of bins that is symmetric about 0.
///
/// # Panics
/// If `counts` has an even number of bins or fewer than `num_quantized`, `num_quantized` is even or 0, or `edges` does not have one element more than
/// `counts`.
pub fn entropy_threshold(
    threads: &dyn Threads,
    counts: &[f32],
    edges: &[f32],
    num_quantized: usize,
) -> (f32, f32) {
    let bins = counts.len();
    assert!(
        bins % 2 == 1 && num_quantized % 2 == 1 && bins >= num_quantized && edges.len() == bins + 1,
        "a histogram of {bins} bins and {} edges for {num_quantized} levels",
        edges.len()
    );
    let (middle, half) = (bins / 2, num_quantized / 2);
    let candidates = middle - half + 1;
    let mut found = scratch::filled(candidates, f64::INFINITY);
    let to = Shared(found.as_mut_ptr());
    run(threads, candidates, &|i| {
        let reach = half + i;
        // SAFETY: each task writes its own candidate.
        unsafe { *to.at(i) = divergence(counts, middle - reach, middle + reach + 1, num_quantized) }
    });
    let mut best = 0;
    for (i, &x) in found.iter().enumerate() {
        if x < found[best] {
            best = i;
        }
    }
    (edges[middle + half + best + 1], found[best] as f32)
}

/// Divergence of the distribution with everything outside the bins from `start` to `stop` moved to the outermost ones, from what `num_quantized` levels
/// make of these bins.
fn divergence(counts: &[f32], start: usize, stop: usize, num_quantized: usize) -> f64 {
    let inside = &counts[start..stop];
    let bins = inside.len();
    let mut p = scratch::collected(bins, inside.iter().map(|&x| f64::from(x)));
    let sum = |of: &[f32]| of.iter().map(|&x| f64::from(x)).sum::<f64>();
    p[0] += sum(&counts[..start]);
    p[bins - 1] += sum(&counts[stop..]);
    let merged = bins / num_quantized;
    let mut q = scratch::filled(bins, 0.0);
    for level in 0..num_quantized {
        let first = level * merged;
        let end = if level + 1 == num_quantized {
            bins
        } else {
            first + merged
        };
        let full = p[first..end].iter().filter(|&&x| x != 0.0).count();
        let mean = sum(&inside[first..end]) / full.max(1) as f64;
        for i in first..end {
            if p[i] != 0.0 {
                q[i] = mean;
            }
        }
    }
    match smooth(&mut p) && smooth(&mut q) {
        true => relative_entropy(&p, &q),
        false => f64::INFINITY,
    }
}

/// Moves a little from full bins to each empty one. False if that is not possible.
fn smooth(x: &mut [f64]) -> bool {
    let full = x.iter().filter(|&&x| x != 0.0).count();
    let taken = SMOOTHED * (x.len() - full) as f64 / full.max(1) as f64;
    if full == 0 || taken >= 1.0 {
        return false;
    }
    for x in x {
        *x = if *x == 0.0 { SMOOTHED } else { *x - taken };
    }
    true
}

/// `sum p log(p / q)` of both as distributions.
fn relative_entropy(p: &[f64], q: &[f64]) -> f64 {
    let (p_sum, q_sum): (f64, f64) = (p.iter().sum(), q.iter().sum());
    let terms = p.iter().zip(q).map(|(&p, &q)| {
        let (p, q) = (p / p_sum, q / q_sum);
        if p > 0.0 && q > 0.0 {
            p * (p / q).ln()
        } else {
            0.0
        }
    });
    terms.sum()
}
