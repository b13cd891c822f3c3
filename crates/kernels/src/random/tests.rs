use super::*;
use crate::reduce::fixtures::{Spawn, get};
use crate::{Elem, Serial, Threads};

const STREAM: Stream = Stream {
    seed: 0x1234_5678_9abc_def0,
    offset: 1 << 40,
};

fn sample(threads: &dyn Threads, what: Distribution, elem: Elem, n: usize) -> Vec<f64> {
    let mut out = vec![0u64; (n * elem.size()).div_ceil(8)];
    // SAFETY: there is room for `n` elements.
    unsafe { fill(threads, STREAM, what, elem, n, out.as_mut_ptr().cast()) };
    read(elem, n, &out)
}

fn read(elem: Elem, n: usize, words: &[u64]) -> Vec<f64> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    bytes
        .chunks_exact(elem.size())
        .take(n)
        .map(|c| get(elem, c).0)
        .collect()
}

#[test]
fn known_answers_of_the_generator() {
    // Known-answer vectors that the authors of Philox publish with Random123.
    assert_eq!(
        philox([0, 0], 0),
        [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
    );
    assert_eq!(
        philox([u64::MAX, u64::MAX], u64::MAX),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
    );
    // Digits of pi.
    assert_eq!(
        philox(
            [0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e],
            0x299f_31d0_a409_3822
        ),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
}

#[test]
fn elements_depend_on_their_number_alone() {
    for what in [
        Distribution::Uniform {
            low: -1.0,
            high: 2.0,
        },
        Distribution::Normal {
            mean: 1.0,
            deviation: 3.0,
        },
    ] {
        for elem in [Elem::F32, Elem::F64, Elem::F16] {
            let all = sample(&Serial, what, elem, 20_001);
            assert_eq!(all, sample(&Spawn(3), what, elem, 20_001));
            for n in [0, 1, 3, 1024, 1025] {
                assert_eq!(all[..n], sample(&Serial, what, elem, n));
            }
            // The stream of a later offset is the rest of this one.
            let skip = if elem == Elem::F64 { 2 } else { 4 };
            let mut out = [0u64; 4];
            let stream = Stream {
                offset: STREAM.offset + what.blocks(elem, skip),
                ..STREAM
            };
            // SAFETY: there is room for two elements.
            unsafe { fill(&Serial, stream, what, elem, 2, out.as_mut_ptr().cast()) };
            assert_eq!(read(elem, 2, &out), all[skip..skip + 2]);
        }
    }
}

/// Kolmogorov and Smirnov's distance times sqrt(n) stays below 1.95 with probability 0.999.
fn follows(what: &str, mut x: Vec<f64>, distribution: impl Fn(f64) -> f64) {
    x.sort_by(f64::total_cmp);
    let n = x.len() as f64;
    let distance = x.iter().enumerate().map(|(i, &x)| {
        let f = distribution(x);
        (f - i as f64 / n).abs().max(((i + 1) as f64 / n - f).abs())
    });
    let distance = distance.fold(0.0, f64::max) * n.sqrt();
    assert!(distance < 1.95, "{what}: distance {distance}");
}

#[test]
fn samples_follow_their_distributions() {
    let n = 200_000;
    for elem in [Elem::F32, Elem::F64] {
        let of = |what| sample(&Spawn(2), what, elem, n);
        let u = of(Distribution::Uniform {
            low: 2.0,
            high: 5.0,
        });
        assert!(u.iter().all(|&u| (2.0..5.0).contains(&u)));
        follows("uniform", u, |x| (x - 2.0) / 3.0);
        follows(
            "normal",
            of(Distribution::Normal {
                mean: 1.0,
                deviation: 2.0,
            }),
            |x| 0.5 * libm::erfc(-(x - 1.0) / 8f64.sqrt()),
        );
        follows(
            "exponential",
            of(Distribution::Exponential { scale: 3.0 }),
            |x| 1.0 - (-x / 3.0).exp(),
        );
        follows("gumbel", of(Distribution::Gumbel { scale: 2.0 }), |x| {
            (-(-x / 2.0).exp()).exp()
        });
        let ones: f64 = of(Distribution::Bernoulli { p: 0.3 }).iter().sum();
        // Four standard deviations.
        assert!((ones - 0.3 * n as f64).abs() < 4.0 * (n as f64 * 0.21).sqrt());
    }
    // Neighbours, which share a block, are not correlated: the sum of products has standard deviation sqrt(n).
    let z = sample(
        &Serial,
        Distribution::Normal {
            mean: 0.0,
            deviation: 1.0,
        },
        Elem::F32,
        n,
    );
    for lag in 1..5 {
        let sum: f64 = z.iter().zip(&z[lag..]).map(|(a, b)| a * b).sum();
        assert!(sum.abs() < 4.0 * (n as f64).sqrt(), "lag {lag}: {sum}");
    }
}

fn rejecting(
    threads: &dyn Threads,
    what: Rejecting,
    parameter: f64,
    elem: Elem,
    n: usize,
) -> Vec<f64> {
    let mut out = vec![0u64; (n * elem.size()).div_ceil(8)];
    let parameter = [parameter];
    let parameter = Parameter {
        ptr: parameter.as_ptr().cast(),
        elem: Elem::F64,
        stride: 0,
    };
    // SAFETY: there is room for `n` elements and one parameter is shared by all.
    unsafe {
        fill_rejecting(
            threads,
            STREAM,
            what,
            &parameter,
            elem,
            n,
            out.as_mut_ptr().cast(),
        )
    };
    read(elem, n, &out)
}

#[test]
fn gamma_and_poisson_have_their_moments() {
    let n = 100_000;
    for mean in [0.3, 1.0, 4.5, 30.0, 1000.0] {
        for what in [Rejecting::Gamma, Rejecting::Poisson] {
            // Both have the parameter as mean and as variance.
            let x = rejecting(&Serial, what, mean, Elem::F64, n);
            assert_eq!(x, rejecting(&Spawn(3), what, mean, Elem::F64, n));
            let m = x.iter().sum::<f64>() / n as f64;
            let v = x.iter().map(|x| (x - m).powi(2)).sum::<f64>() / n as f64;
            // Four standard errors; the variance's is sqrt((kurtosis - 1) / n), with excess kurtosis 6 / mean or 1 / mean.
            assert!(
                (m - mean).abs() < 4.0 * (mean / n as f64).sqrt(),
                "{what:?} {mean}: mean {m}"
            );
            assert!(
                (v - mean).abs() < 4.0 * mean * ((2.0 + 6.0 / mean) / n as f64).sqrt(),
                "{what:?} {mean}: variance {v}"
            );
            assert!(what == Rejecting::Gamma || x.iter().all(|x| x.fract() == 0.0 && *x >= 0.0));
        }
    }
    follows(
        "gamma(1)",
        rejecting(&Serial, Rejecting::Gamma, 1.0, Elem::F64, n),
        |x| 1.0 - (-x).exp(),
    );
    assert!(rejecting(&Serial, Rejecting::Gamma, -1.0, Elem::F32, 1)[0].is_nan());
    assert_eq!(
        rejecting(&Serial, Rejecting::Poisson, 0.0, Elem::I32, 2),
        [0.0, 0.0]
    );
}

#[test]
fn integers_are_equally_likely() {
    for (low, high, elem) in [
        (-3, 4, Elem::I8),
        (0, 10, Elem::I64),
        (-(1 << 40), (1 << 40) + 7, Elem::I64),
    ] {
        let n = 70_000;
        let run = |threads: &dyn Threads| {
            let mut out = vec![0u64; n];
            // SAFETY: there is room for `n` elements of any type.
            let blocks =
                unsafe { integers(threads, STREAM, low, high, elem, n, out.as_mut_ptr().cast()) };
            assert_eq!(blocks, n as u64 / if high < 100 { 4 } else { 2 });
            read(elem, n, &out)
        };
        let x = run(&Serial);
        assert_eq!(x, run(&Spawn(2)));
        assert!(x.iter().all(|&x| x >= low as f64 && x < high as f64));
        // Ten classes: the sum of squared deviations over the mean is below 28 with probability 0.999 (nine degrees of freedom).
        let classes = (high - low as i128).min(10) as usize;
        let mut counts = vec![0f64; classes];
        x.iter().for_each(|&x| {
            counts[((x - low as f64) / (high as f64 - low as f64) * classes as f64) as usize] += 1.0
        });
        let mean = n as f64 / classes as f64;
        let statistic: f64 = counts.iter().map(|c| (c - mean).powi(2) / mean).sum();
        assert!(statistic < 28.0, "{low}..{high}: {statistic}");
    }
}

#[test]
fn choices() {
    for n in [0usize, 1, 2, 10, 3000] {
        let mut out = vec![-1i64; n];
        // SAFETY: there is room for `n` integers.
        let blocks = unsafe { permutation(STREAM, n, out.as_mut_ptr()) };
        assert_eq!(blocks, n.div_ceil(2) as u64);
        let moved = out
            .iter()
            .enumerate()
            .filter(|&(i, &x)| x != i as i64)
            .count();
        assert!(n < 10 || moved > n / 2);
        out.sort();
        assert_eq!(out, (0..n as i64).collect::<Vec<_>>());
    }
    // Every order of three is as likely as any other.
    let mut counts = std::collections::HashMap::new();
    for offset in 0..6000 {
        let mut out = [0i64; 3];
        // SAFETY: there is room for three integers.
        unsafe {
            permutation(
                Stream {
                    seed: 5,
                    offset: 10 * offset,
                },
                3,
                out.as_mut_ptr(),
            )
        };
        *counts.entry(out).or_insert(0) += 1;
    }
    // Four standard deviations of a count of 1000.
    assert!(
        counts.len() == 6 && counts.values().all(|&c: &i32| (c - 1000).abs() < 120),
        "{counts:?}"
    );
    let weights = [0.0, 1.0, 0.0, 3.0, 0.0, 5.0, 0.0, 0.0];
    let mut out = vec![0i64; 2 * 30_000];
    // SAFETY: two rows of four weights and room for their draws.
    unsafe {
        categorical(
            &Spawn(2),
            STREAM,
            weights.as_ptr(),
            2,
            4,
            30_000,
            out.as_mut_ptr(),
        )
    };
    let threes = out[..30_000].iter().filter(|&&i| i == 3).count() as f64;
    assert!(
        out[..30_000].iter().all(|&i| i == 1 || i == 3) && out[30_000..].iter().all(|&i| i == 1)
    );
    assert!((threes - 22_500.0).abs() < 4.0 * (30_000f64 * 0.1875).sqrt());
}
