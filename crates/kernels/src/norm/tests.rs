use super::*;
use crate::real::Real;
use crate::threads::Scoped;
use crate::values::{Values, close};
use crate::{Serial, Threads};

/// Normalisation of one set of elements in f64: `(y without affine, mean, var)`.
fn standard(x: &[f64], centre: bool, epsilon: f64) -> (Vec<f64>, f64, f64) {
    let n = x.len() as f64;
    let mean = if centre {
        x.iter().sum::<f64>() / n
    } else {
        0.0
    };
    let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (
        x.iter()
            .map(|x| (x - mean) / (var + epsilon).sqrt())
            .collect(),
        mean,
        var,
    )
}

/// Derivative of `f` at 0. Gradients are compared with it, `f` being `sum(weights * normalised)` along a direction.
fn slope(f: impl Fn(f64) -> f64) -> f64 {
    let h = 1e-4;
    // Fourth-order differences: error ~ h^4.
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

fn f64s<T: Real>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

fn batch<T: Real>(tolerance: f64) {
    for (n, c, inner) in [(3, 5, 35), (40, 19, 1), (1, 2, 9000), (17, 3, 4)] {
        let g = BatchNorm {
            elem: T::ELEM,
            n,
            c,
            inner,
            epsilon: 1e-3,
        };
        let mut values = Values((n + inner) as u64);
        let total = n * c * inner;
        let (mut x, dy): (Vec<T>, Vec<T>) = (values.take(total), values.take(total));
        // A mean that is large compared to the deviation.
        x.iter_mut().for_each(|x| *x += T::from_f64(8.0));
        let (gamma, beta): (Vec<T>, Vec<T>) = (values.take(c), values.take(c));
        let members =
            |ch: usize| -> Vec<usize> { (0..total).filter(|i| i / inner % c == ch).collect() };
        let value = |x: &[f64], gamma: &[f64], beta: &[f64]| -> Vec<f64> {
            let mut y = vec![0.0; total];
            for ch in 0..c {
                let at = members(ch);
                let (hat, _, _) = standard(
                    &at.iter().map(|&i| x[i]).collect::<Vec<_>>(),
                    true,
                    g.epsilon,
                );
                at.iter()
                    .zip(hat)
                    .for_each(|(&i, h)| y[i] = h * gamma[ch] + beta[ch]);
            }
            y
        };
        let (x64, gamma64, beta64, dy64) = (f64s(&x), f64s(&gamma), f64s(&beta), f64s(&dy));
        let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| {
            value(x, gamma, beta)
                .iter()
                .zip(&dy64)
                .map(|(y, d)| y * d)
                .sum::<f64>()
        };
        let p = |x: &[T]| x.as_ptr().cast::<u8>();
        let mut previous = None;
        for threads in [&Serial as &dyn Threads, &Scoped(3)] {
            let nan = |n: usize| vec![<T as Real>::from_f64(f64::NAN); n];
            let (mut y, mut mean, mut var) = (nan(total), nan(c), nan(c));
            let (mut dx, mut dgamma, mut dbeta, mut fixed, mut inferred) =
                (nan(total), nan(c), nan(c), nan(total), nan(total));
            // SAFETY: dense vectors of the geometry's sizes.
            unsafe {
                let m = |x: &mut Vec<T>| x.as_mut_ptr().cast::<u8>();
                batch_norm_training(
                    threads,
                    &g,
                    p(&x),
                    p(&gamma),
                    p(&beta),
                    m(&mut y),
                    m(&mut mean),
                    m(&mut var),
                );
                batch_norm_inference(
                    threads,
                    &g,
                    p(&x),
                    p(&gamma),
                    p(&beta),
                    p(&mean),
                    p(&var),
                    m(&mut inferred),
                );
                let (dx, dgamma, dbeta) = (m(&mut dx), m(&mut dgamma), m(&mut dbeta));
                batch_norm_backward(
                    threads,
                    &g,
                    Statistics::Batch,
                    p(&x),
                    p(&dy),
                    p(&gamma),
                    p(&mean),
                    p(&var),
                    dx,
                    dgamma,
                    dbeta,
                );
                let null = std::ptr::null_mut();
                batch_norm_backward(
                    threads,
                    &g,
                    Statistics::Fixed,
                    p(&x),
                    p(&dy),
                    null,
                    p(&mean),
                    p(&var),
                    m(&mut fixed),
                    null,
                    null,
                );
            }
            close("y", &y, &value(&x64, &gamma64, &beta64), tolerance * 16.0);
            assert!(y == inferred, "the same statistics give the same result");
            for ch in 0..c {
                let at = members(ch);
                let (_, m, v) =
                    standard(&at.iter().map(|&i| x64[i]).collect::<Vec<_>>(), true, 0.0);
                close("mean", &mean[ch..=ch], &[m], tolerance);
                close("var", &var[ch..=ch], &[v], tolerance * 4.0);
                let scale = 1.0 / (v + g.epsilon).sqrt();
                let want: Vec<f64> = at.iter().map(|&i| dy64[i] * scale).collect();
                close(
                    "fixed dx",
                    &at.iter().map(|&i| fixed[i]).collect::<Vec<_>>(),
                    &want,
                    tolerance * 16.0,
                );
                let nudge = |of: &[f64], i: usize, h: f64| -> Vec<f64> {
                    let mut of = of.to_vec();
                    of[i] += h;
                    of
                };
                let bound = tolerance.max(1e-10) * (n * inner) as f64;
                close(
                    "dgamma",
                    &dgamma[ch..=ch],
                    &[slope(|h| loss(&x64, &nudge(&gamma64, ch, h), &beta64))],
                    bound,
                );
                close(
                    "dbeta",
                    &dbeta[ch..=ch],
                    &[slope(|h| loss(&x64, &gamma64, &nudge(&beta64, ch, h)))],
                    bound,
                );
                for &i in at.iter().step_by(at.len() / 3 + 1) {
                    close(
                        "dx",
                        &dx[i..=i],
                        &[slope(|h| loss(&nudge(&x64, i, h), &gamma64, &beta64))],
                        tolerance.max(1e-9) * 64.0,
                    );
                }
            }
            let all = (y, mean, var, dx, dgamma, dbeta);
            assert!(
                previous.is_none_or(|before| before == all),
                "thread count changes the result"
            );
            previous = Some(all);
        }
    }
}

#[test]
fn batch_norm_f64_matches_reference_loops_and_differences() {
    batch::<f64>(1e-13);
}

#[test]
fn batch_norm_f32_matches_reference_loops_and_differences() {
    batch::<f32>(1e-6);
}

fn rows<T: Real>(tolerance: f64) {
    let layer = RowNorm {
        elem: T::ELEM,
        rows: 7,
        len: 33,
        centre: Centre::Mean,
        affine: Affine::PerElement,
        epsilon: 1e-5,
    };
    for g in [
        layer,
        RowNorm {
            rows: 300,
            len: 100,
            ..layer
        },
        RowNorm {
            centre: Centre::Zero,
            ..layer
        },
        RowNorm {
            rows: 6,
            len: 40,
            affine: Affine::PerChannel {
                groups: 3,
                inner: 10,
            },
            ..layer
        },
        RowNorm {
            rows: 10,
            len: 9,
            affine: Affine::PerChannel {
                groups: 5,
                inner: 9,
            },
            ..layer
        },
    ] {
        let mut values = Values(g.rows as u64);
        let (x, dy): (Vec<T>, Vec<T>) = (values.take(g.rows * g.len), values.take(g.rows * g.len));
        let (gamma, beta): (Vec<T>, Vec<T>) =
            (values.take(g.parameters()), values.take(g.parameters()));
        let parameter = |i: usize| match g.affine {
            Affine::PerElement => i % g.len,
            Affine::PerChannel { groups, inner } => {
                i / g.len % groups * (g.len / inner) + i % g.len / inner
            }
        };
        let value = |x: &[f64], gamma: &[f64], beta: &[f64]| -> Vec<f64> {
            let hat = x
                .chunks(g.len)
                .flat_map(|x| standard(x, g.centre == Centre::Mean, g.epsilon).0);
            hat.enumerate()
                .map(|(i, h)| h * gamma[parameter(i)] + beta[parameter(i)])
                .collect()
        };
        let (x64, gamma64, beta64, dy64) = (f64s(&x), f64s(&gamma), f64s(&beta), f64s(&dy));
        let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| {
            value(x, gamma, beta)
                .iter()
                .zip(&dy64)
                .map(|(y, d)| y * d)
                .sum::<f64>()
        };
        let (ones, zeros) = (vec![1.0; gamma.len()], vec![0.0; gamma.len()]);
        let p = |x: &[T]| x.as_ptr().cast::<u8>();
        let mut previous = None;
        for threads in [&Serial as &dyn Threads, &Scoped(3)] {
            let nan = |n: usize| vec![<T as Real>::from_f64(f64::NAN); n];
            let (mut y, mut mean, mut inverse) = (nan(x.len()), nan(g.rows), nan(g.rows));
            let (mut dx, mut dx_alone, mut dgamma, mut dbeta) = (
                nan(x.len()),
                nan(x.len()),
                nan(gamma.len()),
                nan(gamma.len()),
            );
            let mut scratch = nan(row_norm_backward_scratch_bytes(&g) / size_of::<T>());
            // SAFETY: dense vectors of the geometry's sizes.
            unsafe {
                let null = std::ptr::null_mut();
                let m = |x: &mut Vec<T>| x.as_mut_ptr().cast::<u8>();
                for (with_gamma, with_beta) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    let (pg, pb) = (
                        if with_gamma { p(&gamma) } else { null },
                        if with_beta { p(&beta) } else { null },
                    );
                    row_norm(
                        threads,
                        &g,
                        p(&x),
                        pg,
                        pb,
                        m(&mut y),
                        m(&mut mean),
                        m(&mut inverse),
                    );
                    let want = value(
                        &x64,
                        if with_gamma { &gamma64 } else { &ones },
                        if with_beta { &beta64 } else { &zeros },
                    );
                    close("y", &y, &want, tolerance * 8.0);
                }
                let results = (m(&mut dx), m(&mut dgamma), m(&mut dbeta), m(&mut scratch));
                row_norm_backward(
                    threads,
                    &g,
                    p(&x),
                    p(&dy),
                    p(&gamma),
                    p(&mean),
                    p(&inverse),
                    results.0,
                    results.1,
                    results.2,
                    results.3,
                );
                row_norm_backward(
                    threads,
                    &g,
                    p(&x),
                    p(&dy),
                    null,
                    p(&mean),
                    p(&inverse),
                    m(&mut dx_alone),
                    null,
                    null,
                    null,
                );
            }
            let nudge = |of: &[f64], i: usize, h: f64| -> Vec<f64> {
                let mut of = of.to_vec();
                of[i] += h;
                of
            };
            for i in (0..x.len()).step_by(x.len() / 9) {
                close(
                    "dx",
                    &dx[i..=i],
                    &[slope(|h| loss(&nudge(&x64, i, h), &gamma64, &beta64))],
                    tolerance.max(1e-9) * 64.0,
                );
                close(
                    "dx alone",
                    &dx_alone[i..=i],
                    &[slope(|h| loss(&nudge(&x64, i, h), &ones, &zeros))],
                    tolerance.max(1e-9) * 64.0,
                );
            }
            for i in (0..gamma.len()).step_by(3) {
                let bound = tolerance.max(1e-9) * 16.0 * g.rows as f64;
                close(
                    "dgamma",
                    &dgamma[i..=i],
                    &[slope(|h| loss(&x64, &nudge(&gamma64, i, h), &beta64))],
                    bound,
                );
                close(
                    "dbeta",
                    &dbeta[i..=i],
                    &[slope(|h| loss(&x64, &gamma64, &nudge(&beta64, i, h)))],
                    bound,
                );
            }
            let all = (y, mean, inverse, dx, dgamma, dbeta);
            assert!(
                previous.is_none_or(|before| before == all),
                "thread count changes the result"
            );
            previous = Some(all);
        }
    }
}

#[test]
fn row_norms_f64_match_reference_loops_and_differences() {
    rows::<f64>(1e-13);
}

#[test]
fn row_norms_f32_match_reference_loops_and_differences() {
    rows::<f32>(1e-6);
}
