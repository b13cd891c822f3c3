use super::*;
use crate::Serial;
use crate::threads::Scoped;
use crate::values::{Values, close};

/// Softmax or log-softmax of the first `n` elements in f64, followed by zeros.
fn reference(x: &[f64], n: usize, kind: Kind, temperature: f64) -> Vec<f64> {
    let max = x[..n].iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
    let sum: f64 = x[..n].iter().map(|x| ((x - max) / temperature).exp()).sum();
    let one = |x: f64| match kind {
        Kind::Softmax => ((x - max) / temperature).exp() / sum,
        Kind::LogSoftmax => (x - max) / temperature - sum.ln(),
    };
    x.iter()
        .enumerate()
        .map(|(i, &x)| if i < n { one(x) } else { 0.0 })
        .collect()
}

fn check<T: Real>(tolerance: f64) {
    for (outer, len, inner) in [
        (3, 1, 1),
        (7, 100, 1),
        (400, 65, 1),
        (3, 9, 5),
        (2, 40, 37),
        (5, 3000, 2),
    ] {
        for kind in [Kind::Softmax, Kind::LogSoftmax] {
            for (temperature, ragged) in [(1.0, false), (0.5, true)] {
                let g = Softmax {
                    elem: T::ELEM,
                    outer,
                    len,
                    inner,
                    temperature,
                };
                let mut values = Values(len as u64);
                let n = outer * len * inner;
                let (mut x, dy): (Vec<T>, Vec<T>) = (values.take(n), values.take(n));
                x.iter_mut()
                    .for_each(|x| *x = *x * T::from_f64(20.0) + T::from_f64(500.0));
                let lengths: Vec<i32> = (0..outer * inner)
                    .map(|r| (r * 7 % (len + 1)) as i32)
                    .collect();
                let (mut want_y, mut want_dx, mut want_lse) = (vec![0.0; n], vec![0.0; n], vec![]);
                for (r, &length) in lengths.iter().enumerate() {
                    let at = |j: usize| (r / inner * len + j) * inner + r % inner;
                    let row: Vec<f64> = (0..len).map(|j| x[at(j)].to_f64()).collect();
                    let valid = if ragged { length as usize } else { len };
                    let y = reference(&row, valid, kind, temperature);
                    let log = reference(&row, len, Kind::LogSoftmax, temperature);
                    want_lse.push(row[0] / temperature - log[0]);
                    let d: Vec<f64> = (0..len).map(|j| dy[at(j)].to_f64()).collect();
                    let (dot, sum) =
                        (0..valid).fold((0.0, 0.0), |(a, b), j| (a + y[j] * d[j], b + d[j]));
                    for j in 0..len {
                        want_y[at(j)] = y[j];
                        want_dx[at(j)] = match kind {
                            _ if j >= valid => 0.0,
                            Kind::Softmax => y[j] * (d[j] - dot) / temperature,
                            Kind::LogSoftmax => (d[j] - y[j].exp() * sum) / temperature,
                        };
                    }
                }
                let mut previous = None;
                for threads in [&Serial as &dyn Threads, &Scoped(3)] {
                    let nan = |n: usize| vec![<T as Real>::from_f64(f64::NAN); n];
                    let (mut y, mut dx, mut lse) = (nan(n), nan(n), nan(outer * inner));
                    let pl = if ragged {
                        lengths.as_ptr()
                    } else {
                        std::ptr::null()
                    };
                    // SAFETY: dense vectors of the geometry's sizes.
                    unsafe {
                        softmax(
                            threads,
                            &g,
                            kind,
                            x.as_ptr().cast(),
                            pl,
                            y.as_mut_ptr().cast(),
                        );
                        softmax_backward(
                            threads,
                            &g,
                            kind,
                            y.as_ptr().cast(),
                            dy.as_ptr().cast(),
                            pl,
                            dx.as_mut_ptr().cast(),
                        );
                        log_sum_exp(threads, &g, x.as_ptr().cast(), lse.as_mut_ptr().cast());
                    }
                    // Log-probabilities reach 80, and dx multiplies their errors by sums of `dy`.
                    close(&format!("y of {g:?}"), &y, &want_y, tolerance * 32.0);
                    close(&format!("dx of {g:?}"), &dx, &want_dx, tolerance * 1024.0);
                    close(&format!("lse of {g:?}"), &lse, &want_lse, tolerance * 4.0);
                    let all = (y, dx, lse);
                    assert!(
                        previous.is_none_or(|before| before == all),
                        "thread count changes the result of {g:?}"
                    );
                    previous = Some(all);
                }
            }
        }
    }
}

#[test]
fn f64_matches_reference_loops() {
    check::<f64>(f64::EPSILON);
}

#[test]
fn f32_matches_reference_loops() {
    check::<f32>(f32::EPSILON as f64);
}

#[test]
fn infinities_follow_the_limits() {
    let inf = f64::INFINITY;
    let x = [0.0, -inf, 0.0, -inf, -inf, -inf, 1.0, inf, 2.0];
    let g = Softmax {
        elem: Elem::F64,
        outer: 3,
        len: 3,
        inner: 1,
        temperature: 1.0,
    };
    let (mut y, mut lse) = ([0.0; 9], [0.0; 3]);
    // SAFETY: three rows of three.
    unsafe {
        softmax(
            &Serial,
            &g,
            Kind::Softmax,
            x.as_ptr().cast(),
            std::ptr::null(),
            y.as_mut_ptr().cast(),
        );
        log_sum_exp(&Serial, &g, x.as_ptr().cast(), lse.as_mut_ptr().cast());
    }
    assert_eq!(y[..3], [0.5, 0.0, 0.5]);
    assert!(y[3..6].iter().all(|y| y.is_nan()));
    assert_eq!(lse, [2f64.ln(), -inf, inf]);
}

#[test]
fn cross_entropy_and_its_gradient_match_reference_loops() {
    let (rows, len) = (200, 77);
    let g = Softmax {
        elem: Elem::F32,
        outer: rows,
        len,
        inner: 1,
        temperature: 2.0,
    };
    let mut values = Values(4);
    let (x, d): (Vec<f32>, Vec<f32>) = (values.take(rows * len), values.take(rows));
    let mut labels: Vec<i64> = (0..rows as i64).map(|r| r * 31 % len as i64).collect();
    (labels[3], labels[5], labels[6]) = (-100, len as i64, -1);
    let (mut loss, mut lse, mut dx) = (vec![0f32; rows], vec![0f32; rows], vec![0f32; rows * len]);
    // SAFETY: dense vectors of the geometry's sizes.
    unsafe {
        let x = x.as_ptr().cast();
        cross_entropy(
            &Scoped(2),
            &g,
            x,
            labels.as_ptr(),
            Some(-100),
            loss.as_mut_ptr().cast(),
            lse.as_mut_ptr().cast(),
        );
        let (lse, d) = (lse.as_ptr().cast(), d.as_ptr().cast());
        cross_entropy_backward(
            &Scoped(2),
            &g,
            x,
            labels.as_ptr(),
            Some(-100),
            lse,
            d,
            dx.as_mut_ptr().cast(),
        );
    }
    for r in 0..rows {
        let row: Vec<f64> = x[r * len..][..len].iter().map(|&x| x as f64).collect();
        let (log, y) = (
            reference(&row, len, Kind::LogSoftmax, 2.0),
            reference(&row, len, Kind::Softmax, 2.0),
        );
        match labels[r] {
            -100 => assert!(loss[r] == 0.0 && dx[r * len..][..len].iter().all(|&d| d == 0.0)),
            -1 | 77 => assert!(loss[r].is_nan() && dx[r * len..][..len].iter().all(|d| d.is_nan())),
            c => {
                close("loss", &loss[r..=r], &[-log[c as usize]], 1e-6);
                let want: Vec<f64> = (0..len)
                    .map(|j| d[r] as f64 * (y[j] - (j as i64 == c) as u8 as f64) / 2.0)
                    .collect();
                close("dx", &dx[r * len..][..len], &want, 1e-6);
            }
        }
    }
}
