use super::*;
use crate::reduce::fixtures::get;
use crate::threads::Scoped;
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
fn philox_matches_known_answers() {
    // Known-answer vectors published by the authors of Philox with Random123.
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
fn samples_depend_only_on_seed_and_index() {
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
            assert_eq!(all, sample(&Scoped(3), what, elem, 20_001));
            for n in [0, 1, 3, 1024, 1025] {
                assert_eq!(all[..n], sample(&Serial, what, elem, n));
            }
            // A stream with a later offset continues this one.
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

/// Checks the Kolmogorov-Smirnov distance: times sqrt(n) it is below 1.95 with probability 0.999.
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
        let of = |what| sample(&Scoped(2), what, elem, n);
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
    // Neighbours share a counter block but are uncorrelated: the sum of products has standard deviation sqrt(n).
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

fn counts(
    threads: &dyn Threads,
    what: Counts,
    parameters: &[&[f64]],
    elem: Elem,
    n: usize,
) -> Vec<f64> {
    let mut out = vec![0u64; (n * elem.size()).div_ceil(8)];
    // SAFETY: there is room for `n` elements.
    unsafe {
        fill_counts(
            threads,
            STREAM,
            what,
            parameters,
            elem,
            n,
            out.as_mut_ptr().cast(),
        )
    };
    read(elem, n, &out)
}

fn gammas(threads: &dyn Threads, scale: Scale, shapes: &[f64], elem: Elem, n: usize) -> Vec<f64> {
    let mut out = vec![0u64; (n * elem.size()).div_ceil(8)];
    // SAFETY: there is room for `n` elements.
    unsafe {
        fill_gamma(
            threads,
            STREAM,
            scale,
            shapes,
            elem,
            n,
            out.as_mut_ptr().cast(),
        )
    };
    read(elem, n, &out)
}

/// Checks that mean and variance are the given ones within four standard errors; the relative standard error of the variance is
/// sqrt((kurtosis - 1) / n).
fn has_moments(what: &str, x: &[f64], mean: f64, variance: f64, excess: f64) {
    let n = x.len() as f64;
    let m = x.iter().sum::<f64>() / n;
    let v = x.iter().map(|x| (x - m).powi(2)).sum::<f64>() / n;
    assert!(
        (m - mean).abs() < 4.0 * (variance / n).sqrt(),
        "{what}: mean {m}, not {mean}"
    );
    assert!(
        (v - variance).abs() < 4.0 * variance * ((2.0 + excess) / n).sqrt(),
        "{what}: variance {v}, not {variance}"
    );
}

#[test]
fn gamma_samples_follow_their_distribution() {
    let n = 100_000;
    for shape in [0.3, 1.0, 4.5, 30.0, 1000.0, 1e12] {
        let x = gammas(&Serial, Scale::Linear, &[shape], Elem::F64, n);
        assert_eq!(x, gammas(&Scoped(3), Scale::Linear, &[shape], Elem::F64, n));
        // One shape for all elements and one per element give the same samples.
        assert_eq!(
            x[..500],
            gammas(&Serial, Scale::Linear, &[shape; 500], Elem::F64, 500)
        );
        has_moments(&format!("gamma({shape})"), &x, shape, shape, 6.0 / shape);
        let logs = gammas(&Serial, Scale::Log, &[shape], Elem::F64, n);
        let near = |(x, log): (&f64, &f64)| (x.ln() - log).abs() < 1e-12 * log.abs().max(1.0);
        assert!(x.iter().zip(&logs).all(near));
    }
    follows(
        "gamma(1)",
        gammas(&Serial, Scale::Linear, &[1.0], Elem::F64, n),
        |x| 1.0 - (-x).exp(),
    );
    follows(
        "gamma(0.5)",
        gammas(&Serial, Scale::Linear, &[0.5], Elem::F64, n),
        |x| libm::erf(x.sqrt()),
    );
    let odd = [0.0, f64::INFINITY, f64::NAN, -1.0, 2.0];
    let x = gammas(&Serial, Scale::Linear, &odd, Elem::F64, 5);
    assert!(x[0] == 0.0 && x[1] == f64::INFINITY && x[2].is_nan() && x[3].is_nan() && x[4] > 0.0);
    // A sample far below the smallest float has a finite logarithm.
    let tiny = gammas(&Serial, Scale::Log, &[1e-5], Elem::F64, 1000);
    assert!(tiny.iter().all(|x| x.is_finite()) && tiny.iter().any(|&x| x < -1e4));
}

#[test]
fn discrete_samples_have_the_right_moments() {
    let n = 60_000;
    let cases: [(Counts, &[f64], f64, f64); 14] = [
        (Counts::Poisson, &[0.3], 0.3, 0.3),
        (Counts::Poisson, &[9.5], 9.5, 9.5),
        (Counts::Poisson, &[30.0], 30.0, 30.0),
        (Counts::Poisson, &[1e5], 1e5, 1e5),
        (Counts::Binomial, &[20.0, 0.25], 5.0, 3.75),
        (Counts::Binomial, &[200.0, 0.9], 180.0, 18.0),
        (Counts::Binomial, &[1e7, 0.5], 5e6, 2.5e6),
        (Counts::NegativeBinomial, &[2.5, 0.4], 3.75, 9.375),
        (Counts::NegativeBinomial, &[50.0, 0.01], 4950.0, 495_000.0),
        (
            Counts::Hypergeometric,
            &[7.0, 11.0, 5.0],
            35.0 / 18.0,
            5.0 * 77.0 / 324.0 * 13.0 / 17.0,
        ),
        (
            Counts::Hypergeometric,
            &[300.0, 200.0, 400.0],
            240.0,
            400.0 * 0.24 * 100.0 / 499.0,
        ),
        (
            Counts::Hypergeometric,
            &[3e7, 7e7, 5e7],
            1.5e7,
            5e7 * 0.21 * 0.5,
        ),
        // Moments of Zipf's law with exponent 7: quotients of zeta functions.
        (Counts::Zipf, &[7.0], 1.008_920_8, 0.010_374),
        (Counts::LogSeries, &[0.6], 1.637_035, 1.412_716),
    ];
    for (what, parameters, mean, variance) in cases {
        let shared: Vec<&[f64]> = parameters.chunks(1).collect();
        let own: Vec<Vec<f64>> = parameters.iter().map(|&p| vec![p; n]).collect();
        let own: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        for given in [&shared, &own] {
            let x = counts(&Serial, what, given, Elem::I64, n);
            assert_eq!(x, counts(&Scoped(3), what, given, Elem::I64, n));
            assert!(x.iter().all(|&x| x >= 0.0));
            // Zipf samples are heavy-tailed: their excess kurtosis is below 300.
            let excess = if what == Counts::Zipf { 300.0 } else { 20.0 };
            has_moments(
                &format!("{what:?} {parameters:?}"),
                &x,
                mean,
                variance,
                excess,
            );
        }
    }
    assert_eq!(
        counts(&Serial, Counts::Poisson, &[&[0.0]], Elem::I32, 2),
        [0.0, 0.0]
    );
    assert_eq!(
        counts(&Serial, Counts::Binomial, &[&[9.0], &[1.0]], Elem::I32, 2),
        [9.0, 9.0]
    );
    assert_eq!(
        counts(
            &Serial,
            Counts::Binomial,
            &[&[9.0, 0.0], &[1.0, 0.5]],
            Elem::I32,
            2
        ),
        [9.0, 0.0]
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
        assert_eq!(x, run(&Scoped(2)));
        assert!(x.iter().all(|&x| x >= low as f64 && x < high as f64));
        // Chi-squared test with ten classes: the statistic is below 28 with probability 0.999 (nine degrees of freedom).
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
        let blocks = unsafe { permutations(&Serial, STREAM, 1, n, out.as_mut_ptr()) };
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
    // All orders of three are equally likely.
    let mut counts = std::collections::HashMap::new();
    for offset in 0..6000 {
        let mut out = [0i64; 3];
        // SAFETY: there is room for three integers.
        unsafe {
            permutations(
                &Serial,
                Stream {
                    seed: 5,
                    offset: 10 * offset,
                },
                1,
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
            &Scoped(2),
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

#[test]
fn samples_without_replacement_match_permutations() {
    for (n, count) in [(10, 10), (10, 3), (1000, 7), (1000, 999), (1, 1), (5, 0)] {
        let (mut all, mut some) = (vec![0i64; n], vec![0i64; count]);
        // SAFETY: there is room for `n` and for `count` integers.
        unsafe {
            permutations(&Serial, STREAM, 1, n, all.as_mut_ptr());
            distinct_integers(STREAM, n, count, some.as_mut_ptr());
        }
        all.reverse();
        assert_eq!(some, all[..count], "{count} of {n}");
    }
}

#[test]
fn shuffle_matches_permutations() {
    let mut order = vec![0i64; 999];
    // SAFETY: there is room for 999 integers.
    unsafe { permutations(&Serial, STREAM, 1, 999, order.as_mut_ptr()) };
    let mut wide: Vec<i64> = (0..999).collect();
    let mut narrow: Vec<u16> = (0..999).collect();
    // SAFETY: there are 999 elements of these sizes.
    unsafe {
        shuffle(STREAM, 999, 8, wide.as_mut_ptr().cast());
        shuffle(STREAM, 999, 2, narrow.as_mut_ptr().cast());
    }
    assert_eq!(wide, order);
    assert!(narrow.iter().zip(&order).all(|(&x, &i)| x as i64 == i));
}

#[test]
fn multivariate_counts_add_up() {
    let p = [0.2, 0.0, 0.5, 0.3];
    let mut out = vec![0i64; 4 * 20_000];
    // SAFETY: there is room for 20000 rows of four.
    unsafe { multinomial(&Scoped(2), STREAM, &[10.0], &p, 20_000, 4, out.as_mut_ptr()) };
    assert!(
        out.chunks(4)
            .all(|row| row.iter().sum::<i64>() == 10 && row[1] == 0)
    );
    let third: Vec<f64> = out.chunks(4).map(|row| row[2] as f64).collect();
    has_moments("third of a multinomial", &third, 5.0, 2.5, 0.0);
    let colors = [5.0, 0.0, 12.0];
    let mut out = vec![0i64; 3 * 20_000];
    // SAFETY: there is room for 20000 rows of three.
    unsafe { multivariate_hypergeometric(&Serial, STREAM, &colors, 6.0, 20_000, out.as_mut_ptr()) };
    assert!(
        out.chunks(3)
            .all(|row| row.iter().sum::<i64>() == 6 && row[1] == 0)
    );
    let first: Vec<f64> = out.chunks(3).map(|row| row[0] as f64).collect();
    has_moments(
        "first color",
        &first,
        30.0 / 17.0,
        6.0 * 60.0 / 289.0 * 11.0 / 16.0,
        0.0,
    );
}

#[test]
fn integers_with_elementwise_bounds() {
    let low: Vec<u64> = (0..3000u64).map(|i| i.wrapping_sub(1500)).collect();
    let last: Vec<u64> = low.iter().map(|l| l.wrapping_add(6)).collect();
    let mut out = vec![0i64; 3000];
    // SAFETY: there is room for 3000 integers.
    unsafe {
        integers_between(
            &Serial,
            STREAM,
            &low,
            &last,
            Elem::I64,
            out.as_mut_ptr().cast(),
        )
    };
    let steps: Vec<f64> = out
        .iter()
        .zip(&low)
        .map(|(x, &l)| (x - l as i64) as f64)
        .collect();
    assert!(steps.iter().all(|s| (0.0..=6.0).contains(s)));
    has_moments("steps", &steps, 3.0, 4.0, 0.0);
}
