//! Tests against the defining sum.

use std::f64::consts::TAU;

use super::*;
use mxnet_kernels::{Scoped, Serial};

type C = Complex<f64>;

fn numbers(len: usize, seed: u64) -> Vec<C> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    (0..len).map(|_| C::new(next(), next())).collect()
}

/// The defining sum, for input of any length.
fn reference(x: &[C], n: usize, sign: f64) -> Vec<C> {
    let at = |k: usize, j: usize| C::from_polar(1.0, sign * TAU * ((j * k) % n) as f64 / n as f64);
    (0..n)
        .map(|k| {
            x.iter()
                .take(n)
                .enumerate()
                .map(|(j, x)| x * at(k, j))
                .sum()
        })
        .collect()
}

fn close(got: &[C], want: &[C]) {
    assert_eq!(got.len(), want.len());
    let size: f64 = want.iter().map(|x| x.norm()).fold(1.0, f64::max);
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).norm() < 1e-13 * size, "element {k}: {g}, not {w}");
    }
}

fn what(spectrum: Spectrum, direction: Direction, n: usize) -> Transform {
    Transform {
        spectrum,
        direction,
        precision: Precision::Double,
        n,
        scale: 0.5,
        middle: 1.0,
    }
}

#[test]
fn complex_lines_of_any_strides() {
    // (5, 3, 4), each axis in turn; lines truncated, complete and zero-padded.
    let shape = [5_usize, 3, 4];
    let x = numbers(60, 1);
    let strides = [192_isize, 64, 16];
    for axis in 0..3 {
        for n in [1, 2, shape[axis], 7, 16, 31] {
            for (direction, sign) in [(Direction::Forward, -1.0), (Direction::Inverse, 1.0)] {
                let outer: Vec<usize> = (0..3).filter(|&a| a != axis).collect();
                let sizes: Vec<usize> = outer.iter().map(|&a| shape[a]).collect();
                let mut made = shape;
                made[axis] = n;
                let to = [
                    (made[1] * made[2] * 16) as isize,
                    (made[2] * 16) as isize,
                    16,
                ];
                let mut y = vec![C::default(); made.iter().product()];
                let pick = |s: &[isize; 3]| outer.iter().map(|&a| s[a]).collect::<Vec<_>>();
                let (src_outer, dst_outer) = (pick(&strides), pick(&to));
                // SAFETY: the strides are those of two dense arrays.
                unsafe {
                    transform(
                        &Serial,
                        &what(Spectrum::Complex, direction, n),
                        &sizes,
                        &Lines {
                            ptr: x.as_ptr().cast_mut().cast(),
                            len: shape[axis],
                            stride: strides[axis],
                            outer: &src_outer,
                        },
                        &Lines {
                            ptr: y.as_mut_ptr().cast(),
                            len: n,
                            stride: to[axis],
                            outer: &dst_outer,
                        },
                    );
                }
                for i in 0..sizes[0] {
                    for j in 0..sizes[1] {
                        let at = |s: &[isize]| (i as isize * s[0] + j as isize * s[1]) / 16;
                        let line: Vec<C> = (0..shape[axis] as isize)
                            .map(|k| x[(at(&src_outer) + k * strides[axis] / 16) as usize])
                            .collect();
                        let got: Vec<C> = (0..n as isize)
                            .map(|k| y[(at(&dst_outer) + k * to[axis] / 16) as usize])
                            .collect();
                        let want: Vec<C> =
                            reference(&line, n, sign).iter().map(|x| x * 0.5).collect();
                        close(&got, &want);
                    }
                }
            }
        }
    }
}

/// Transforms one line of `src` into a vector.
fn one<S, D: Clone + Default>(what: &Transform, src: &[S]) -> Vec<D> {
    let mut out = vec![D::default(); what.lens().1];
    // SAFETY: dense lines of the lengths given.
    unsafe {
        transform(
            &Serial,
            what,
            &[],
            &Lines {
                ptr: src.as_ptr().cast_mut().cast(),
                len: src.len(),
                stride: size_of::<S>() as isize,
                outer: &[],
            },
            &Lines {
                ptr: out.as_mut_ptr().cast(),
                len: out.len(),
                stride: size_of::<D>() as isize,
                outer: &[],
            },
        );
    }
    out
}

#[test]
fn real_lines_have_half_and_full_spectra() {
    for n in [1, 2, 3, 4, 7, 12, 17, 64] {
        let x: Vec<f64> = numbers(n, n as u64).iter().map(|x| x.re).collect();
        let complex: Vec<C> = x.iter().map(|&x| C::from(x)).collect();
        for (direction, sign) in [(Direction::Forward, -1.0), (Direction::Inverse, 1.0)] {
            let want: Vec<C> = reference(&complex, n, sign)
                .iter()
                .map(|x| x * 0.5)
                .collect();
            close(&one(&what(Spectrum::RealToFull, direction, n), &x), &want);
            close(
                &one(&what(Spectrum::RealToHalf, direction, n), &x),
                &want[..n / 2 + 1],
            );
        }
    }
}

#[test]
fn half_spectra_give_real_lines() {
    for n in [1, 2, 3, 4, 7, 12, 17, 64] {
        let half = numbers(n / 2 + 1, n as u64);
        let mut full: Vec<C> = (0..n)
            .map(|k| {
                if k <= n / 2 {
                    half[k]
                } else {
                    half[n - k].conj()
                }
            })
            .collect();
        full[0].im = 0.0;
        if n % 2 == 0 {
            full[n / 2].im = 0.0;
        }
        for (direction, sign) in [(Direction::Forward, -1.0), (Direction::Inverse, 1.0)] {
            let want: Vec<C> = reference(&full, n, sign).iter().map(|x| x * 0.5).collect();
            let got: Vec<f64> = one(&what(Spectrum::HalfToReal, direction, n), &half);
            close(&got.iter().map(|&x| C::from(x)).collect::<Vec<_>>(), &want);
        }
    }
}

#[test]
fn middle_factor_applies_to_elements_that_stand_for_two() {
    let ones = |spectrum, n, middle| Transform {
        middle,
        scale: 1.0,
        ..what(spectrum, Direction::Forward, n)
    };
    // The spectrum of an impulse is 1 everywhere.
    for (n, want) in [(4, [1.0, 3.0, 1.0].as_slice()), (5, &[1.0, 3.0, 3.0])] {
        let mut impulse = vec![0.0_f64; n];
        impulse[0] = 1.0;
        let got: Vec<C> = one(&ones(Spectrum::RealToHalf, n, 3.0), &impulse);
        assert_eq!(got.iter().map(|x| x.re).collect::<Vec<_>>(), want);
        let half = vec![C::from(1.0); n / 2 + 1];
        let back: Vec<f64> = one(&ones(Spectrum::HalfToReal, n, 0.0), &half);
        assert_eq!(back[0], if n == 4 { 2.0 } else { 1.0 });
    }
}

#[test]
fn threads_and_blocks_change_nothing() {
    let (count, n) = (600, 96);
    let x = numbers(count * n, 5);
    let run = |threads: &dyn Threads| {
        let mut y = vec![C::default(); count * n];
        // SAFETY: dense arrays; lines along the first axis.
        unsafe {
            transform(
                threads,
                &what(Spectrum::Complex, Direction::Forward, n),
                &[count],
                &Lines {
                    ptr: x.as_ptr().cast_mut().cast(),
                    len: n,
                    stride: (count * 16) as isize,
                    outer: &[16],
                },
                &Lines {
                    ptr: y.as_mut_ptr().cast(),
                    len: n,
                    stride: (count * 16) as isize,
                    outer: &[16],
                },
            );
        }
        y
    };
    assert!(run(&Serial) == run(&Scoped(3)));
}
