use super::*;
use crate::Serial;
use crate::threads::Scoped;
use crate::values::{Values, close};

const BASE: Pool = Pool {
    elem: Elem::F64,
    kind: Kind::Max,
    planes: 3,
    input: [1, 9, 11],
    output: [0; 3],
    kernel: [1, 3, 3],
    stride: [1; 3],
    pad: [0; 3],
    pad_end: [0; 3],
};

fn geometries() -> Vec<Pool> {
    let mut all = vec![];
    for convention in [Convention::Valid, Convention::Full] {
        for g in [
            BASE,
            Pool {
                stride: [1, 2, 2],
                pad: [0, 1, 1],
                pad_end: [0, 1, 1],
                ..BASE
            },
            Pool {
                input: [2, 9, 41],
                kernel: [1, 2, 2],
                stride: [1, 2, 2],
                ..BASE
            },
            Pool {
                input: [2, 6, 34],
                kernel: [1, 2, 2],
                stride: [1, 2, 2],
                ..BASE
            },
            Pool {
                stride: [1, 3, 2],
                kernel: [1, 2, 4],
                pad: [0, 0, 2],
                pad_end: [0, 1, 1],
                ..BASE
            },
            Pool {
                kernel: [1, 9, 11],
                ..BASE
            },
            Pool {
                input: [2, 4, 4],
                kernel: [2, 4, 4],
                ..BASE
            },
            Pool {
                input: [1, 1, 300],
                kernel: [1, 1, 5],
                stride: [1, 1, 3],
                planes: 200,
                ..BASE
            },
            Pool {
                input: [5, 6, 7],
                kernel: [2, 3, 2],
                stride: [2, 2, 3],
                pad: [1, 1, 0],
                pad_end: [1, 1, 0],
                ..BASE
            },
        ] {
            let output = std::array::from_fn(|a| {
                output_extent(
                    g.input[a],
                    g.kernel[a],
                    g.stride[a],
                    g.pad[a] + g.pad_end[a],
                    convention,
                )
            });
            all.push(Pool { output, ..g });
        }
    }
    // The last window lies wholly after the input's end.
    all.push(Pool {
        output: [1, 5, 6],
        stride: [1, 3, 3],
        ..BASE
    });
    all
}

/// Calls `f(output index, input indices of the window, divisor with padding)`.
fn windows(g: &Pool, mut f: impl FnMut(usize, &[usize], usize)) {
    for o in 0..g.planes * g.out_len() {
        let p = o % g.out_len();
        let at = [
            p / (g.output[1] * g.output[2]),
            p / g.output[2] % g.output[1],
            p % g.output[2],
        ];
        let start: [isize; 3] =
            std::array::from_fn(|a| (at[a] * g.stride[a]) as isize - g.pad[a] as isize);
        let mut divisor = 1;
        for (a, &start) in start.iter().enumerate() {
            let end = (start + g.kernel[a] as isize).min((g.input[a] + g.pad_end[a]) as isize);
            divisor *= (end - start).max(0) as usize;
        }
        let mut seen = vec![];
        for t in 0..g.kernel.iter().product() {
            let tap = [
                t / (g.kernel[1] * g.kernel[2]),
                t / g.kernel[2] % g.kernel[1],
                t % g.kernel[2],
            ];
            let x: [isize; 3] = std::array::from_fn(|a| start[a] + tap[a] as isize);
            if (0..3).all(|a| (0..g.input[a] as isize).contains(&x[a])) {
                let [d, h, w] = x.map(|x| x as usize);
                seen.push(o / g.out_len() * g.in_len() + (d * g.input[1] + h) * g.input[2] + w);
            }
        }
        f(o, &seen, divisor);
    }
}

fn check<T: Real>(tolerance: f64) {
    for g in geometries() {
        for kind in [
            Kind::Max,
            Kind::Sum,
            Kind::Average,
            Kind::AverageWithPad,
            Kind::Lp(1),
            Kind::Lp(2),
            Kind::Lp(3),
        ] {
            let g = Pool {
                elem: T::ELEM,
                kind,
                ..g
            };
            let mut values = Values(g.kernel[2] as u64);
            let (mut x, dy): (Vec<T>, Vec<T>) = (
                values.take(g.planes * g.in_len()),
                values.take(g.planes * g.out_len()),
            );
            // Ties, of which the first must win.
            x.iter_mut().step_by(3).for_each(|x| *x = T::from_f64(0.75));
            let (mut want_y, mut want_dx) = (vec![0.0; dy.len()], vec![0.0; x.len()]);
            windows(&g, |o, seen, divisor| {
                let v = |i: usize| x[i].to_f64();
                let sum: f64 = seen.iter().map(|&i| v(i)).sum();
                let d = dy[o].to_f64();
                match kind {
                    Kind::Max => {
                        want_y[o] = seen.iter().fold(f64::NEG_INFINITY, |m, &i| m.max(v(i)));
                        if let Some(&i) = seen.iter().find(|&&i| v(i) == want_y[o]) {
                            want_dx[i] += d;
                        }
                    }
                    Kind::Sum | Kind::Average | Kind::AverageWithPad => {
                        let by = match kind {
                            Kind::Sum => 1.0,
                            Kind::Average => seen.len().max(1) as f64,
                            _ => divisor.max(1) as f64,
                        };
                        want_y[o] = sum / by;
                        seen.iter().for_each(|&i| want_dx[i] += d / by);
                    }
                    Kind::Lp(p) => {
                        let p = p as f64;
                        want_y[o] = seen
                            .iter()
                            .map(|&i| v(i).abs().powf(p))
                            .sum::<f64>()
                            .powf(1.0 / p);
                        if want_y[o] != 0.0 {
                            seen.iter().for_each(|&i| {
                                want_dx[i] +=
                                    d * v(i).signum() * (v(i).abs() / want_y[o]).powf(p - 1.0)
                            });
                        }
                    }
                }
            });
            let mut results = vec![];
            for threads in [&Serial as &dyn Threads, &Scoped(2)] {
                let (mut y, mut dx) = (
                    vec![<T as Real>::from_f64(f64::NAN); dy.len()],
                    vec![<T as Real>::from_f64(f64::NAN); x.len()],
                );
                // SAFETY: dense vectors of the geometry's sizes.
                unsafe {
                    forward(threads, &g, x.as_ptr().cast(), y.as_mut_ptr().cast());
                    backward(
                        threads,
                        &g,
                        x.as_ptr().cast(),
                        y.as_ptr().cast(),
                        dy.as_ptr().cast(),
                        dx.as_mut_ptr().cast(),
                    );
                }
                close(&format!("y of {g:?}"), &y, &want_y, tolerance * 32.0);
                close(&format!("dx of {g:?}"), &dx, &want_dx, tolerance * 64.0);
                results.push((y, dx));
            }
            assert!(
                results[0] == results[1],
                "thread count changes the result of {g:?}"
            );
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
fn max_pool_propagates_nan_and_keeps_gradients_inside() {
    let g = Pool {
        planes: 1,
        input: [1, 1, 6],
        output: [1, 1, 3],
        kernel: [1, 1, 3],
        stride: [1, 1, 2],
        pad: [0, 0, 1],
        ..BASE
    };
    let inf = f64::INFINITY;
    let (x, dy) = ([-inf, -inf, 1.0, f64::NAN, 2.0, 5.0], [1.0, 2.0, 4.0]);
    let (mut y, mut dx) = ([0.0; 3], [0.0; 6]);
    // SAFETY: dense vectors of the geometry's sizes.
    unsafe {
        forward(&Serial, &g, x.as_ptr().cast(), y.as_mut_ptr().cast());
        backward(
            &Serial,
            &g,
            x.as_ptr().cast(),
            y.as_ptr().cast(),
            dy.as_ptr().cast(),
            dx.as_mut_ptr().cast(),
        );
    }
    assert!(y[0] == -inf && y[1].is_nan() && y[2].is_nan());
    assert_eq!(dx, [1.0, 0.0, 0.0, 6.0, 0.0, 0.0]);
}

#[test]
fn the_maximum_of_a_plane_is_nan_wherever_it_has_one() {
    for len in [1, 5, 16, 40] {
        let g = Pool {
            planes: len + 1,
            input: [1, 1, len],
            kernel: [1, 1, len],
            output: [1; 3],
            ..BASE
        };
        // Plane `i` has a NaN at `i`, the last one has none.
        let mut x: Vec<f64> = (0..g.planes * len).map(|i| -((i % len) as f64)).collect();
        for i in 0..len {
            x[i * len + i] = f64::NAN;
        }
        let mut y = vec![1.0; g.planes];
        // SAFETY: dense arrays of the geometry's sizes.
        unsafe { forward(&Serial, &g, x.as_ptr().cast(), y.as_mut_ptr().cast()) };
        assert!(
            y[..len].iter().all(|y| y.is_nan()) && y[len] == 0.0,
            "{len}"
        );
    }
}

#[test]
fn two_by_two_pooling_matches_general_pooling() {
    let inf = f32::INFINITY;
    let nan = f32::NAN;
    // Two rows of windows; one column and one row belong to none.
    #[rustfmt::skip]
    let x = [
        1.0, 2.0, -inf, -inf, 3.0, 3.0, 9.0,
        2.0, 0.0, -inf, -inf, 3.0, 3.0, 9.0,
        nan, 5.0, 0.0, -0.0, 1.0, 4.0, 9.0,
        inf, nan, -0.0, 0.0, 4.0, nan, 9.0,
        9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0f32,
    ];
    let g = Pool {
        elem: Elem::F32,
        planes: 1,
        input: [1, 5, 7],
        output: [1, 2, 3],
        kernel: [1, 2, 2],
        stride: [1, 2, 2],
        ..BASE
    };
    let (mut y, mut dx) = ([7.0f32; 6], [7.0f32; 35]);
    let dy = [1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0];
    // SAFETY: dense vectors of the geometry's sizes.
    unsafe {
        forward(&Serial, &g, x.as_ptr().cast(), y.as_mut_ptr().cast());
        backward(
            &Serial,
            &g,
            x.as_ptr().cast(),
            y.as_ptr().cast(),
            dy.as_ptr().cast(),
            dx.as_mut_ptr().cast(),
        );
    }
    assert_eq!(y[..3], [2.0, -inf, 3.0]);
    assert!(y[3].is_nan() && y[4] == 0.0 && y[5].is_nan());
    let mut want = [0.0f32; 35];
    for (at, dy) in [1, 2, 4, 14, 16, 26].into_iter().zip(dy) {
        want[at] = dy;
    }
    assert_eq!(dx, want);
}

#[test]
fn output_extent_rounds_by_convention() {
    assert_eq!(output_extent(7, 2, 2, 0, Convention::Valid), 3);
    assert_eq!(output_extent(7, 2, 2, 0, Convention::Full), 4);
    assert_eq!(output_extent(1, 3, 1, 0, Convention::Full), 0);
}
