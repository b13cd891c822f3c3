use super::*;
use crate::Serial;
use crate::reduce::computed::{Computed, num_tasks_computed, reduce_computed};
use crate::reduce::fixtures::{Noise, Strided, indices};
use crate::threads::Scoped;

/// Shape of the result (length 1 at reduced axes), and every output by a scalar loop.
fn reference(op: Reduce, x: &Strided, axes: &[bool]) -> (Vec<usize>, Vec<(f64, f64)>) {
    let shape: Vec<usize> = x
        .shape
        .iter()
        .zip(axes)
        .map(|(&n, &a)| if a { 1 } else { n })
        .collect();
    let n: usize = x
        .shape
        .iter()
        .zip(axes)
        .map(|(&n, &a)| if a { n } else { 1 })
        .product();
    let results = indices(&shape).map(|at| {
        let group: Vec<(f64, f64)> = indices(&x.shape)
            .filter(|i| i.iter().zip(&at).zip(axes).all(|((i, a), &r)| r || i == a))
            .map(|i| x.at(&i))
            .collect();
        let numbers: Vec<(f64, f64)> = group.iter().copied().filter(|b| !b.0.is_nan()).collect();
        let pick = |better: fn((f64, f64), (f64, f64)) -> bool, start: (f64, f64)| {
            group.iter().fold(start, |a, &b| {
                if a.0.is_nan() {
                    a
                } else if b.0.is_nan() || better(b, a) {
                    b
                } else {
                    a
                }
            })
        };
        let inf = f64::INFINITY;
        match op {
            Reduce::Sum => group.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1)),
            Reduce::Mean => {
                let s = group.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
                (
                    s.0 / n as f64,
                    if x.elem >= Elem::C64 {
                        s.1 / n as f64
                    } else {
                        0.0
                    },
                )
            }
            Reduce::Prod => group.iter().fold((1.0, 0.0), |a, b| {
                (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
            }),
            Reduce::NanSum => numbers
                .iter()
                .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1)),
            Reduce::NanMin => numbers
                .iter()
                .fold((f64::NAN, 0.0), |a, b| (a.0.min(b.0), 0.0)),
            Reduce::NanMax => numbers
                .iter()
                .fold((f64::NAN, 0.0), |a, b| (a.0.max(b.0), 0.0)),
            Reduce::Min => pick(|b, a| b < a, (inf, inf)),
            Reduce::Max => pick(|b, a| b > a, (-inf, -inf)),
            Reduce::Any => (group.iter().any(|&b| b != (0.0, 0.0)) as u8 as f64, 0.0),
            Reduce::All => (group.iter().all(|&b| b != (0.0, 0.0)) as u8 as f64, 0.0),
            Reduce::SumSquares => (group.iter().map(|b| b.0 * b.0 + b.1 * b.1).sum(), 0.0),
            Reduce::SumAbs => (group.iter().map(|b| b.0.hypot(b.1)).sum(), 0.0),
            Reduce::CountNonzero => (
                group.iter().filter(|&&b| b != (0.0, 0.0)).count() as f64,
                0.0,
            ),
        }
    });
    (shape.clone(), results.collect())
}

fn natural_out(op: Reduce, src: Elem) -> Elem {
    let int = src < Elem::F16;
    match op {
        Reduce::Any | Reduce::All => Elem::Bool,
        Reduce::CountNonzero => Elem::I64,
        Reduce::Min | Reduce::Max | Reduce::NanMin | Reduce::NanMax => src,
        Reduce::Mean if int => Elem::F32,
        Reduce::SumSquares | Reduce::SumAbs if src == Elem::C64 => Elem::F32,
        Reduce::SumSquares | Reduce::SumAbs if src == Elem::C128 => Elem::F64,
        _ if int => Elem::I64,
        _ => src,
    }
}

fn check(op: Reduce, x: &Strided, out: Elem, axes: &[bool], threads: &dyn Threads) {
    let (shape, want) = reference(op, x, axes);
    let order: Vec<usize> = (0..shape.len()).rev().collect();
    let mut y = Strided::new(out, &shape, &order, &vec![-2; shape.len()], || (77.0, 0.0));
    // SAFETY: the views lie in their buffers, which do not overlap.
    unsafe { reduce(threads, op, &x.source(), axes, &y.target()) };
    let n = x
        .shape
        .iter()
        .zip(axes)
        .map(|(&n, &a)| if a { n } else { 1 })
        .product::<usize>() as f64;
    // The rounding errors of n values around 1, in the accumulator's or the output's type, add up like a random walk.
    let eps = match out {
        Elem::F16 => 2f64.powi(-10),
        Elem::BF16 => 2f64.powi(-7),
        Elem::F32 | Elem::C64 => 2f64.powi(-23),
        _ if matches!(x.elem, Elem::F16 | Elem::BF16 | Elem::F32 | Elem::C64) => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    };
    for (i, (got, want)) in y.values().into_iter().zip(want).enumerate() {
        let size = if want.0.is_finite() {
            want.0.abs() + want.1.abs() + n.sqrt()
        } else {
            0.0
        };
        let near = |a: f64, b: f64| {
            a == b
                || (a.is_nan() && b.is_nan())
                || (a - b).abs() <= (4.0 + n.sqrt()) * eps * (size + 1.0)
        };
        assert!(
            near(got.0, want.0) && (out < Elem::C64 || near(got.1, want.1)),
            "{op:?} of {:?} into {out:?}, shape {:?} strides {:?} axes {axes:?}: output {i} is {got:?}, not {want:?}",
            x.elem,
            x.shape,
            x.strides
        );
    }
}

const OPS: [Reduce; 10] = [
    Reduce::Sum,
    Reduce::Prod,
    Reduce::Min,
    Reduce::Max,
    Reduce::Any,
    Reduce::All,
    Reduce::Mean,
    Reduce::SumSquares,
    Reduce::SumAbs,
    Reduce::CountNonzero,
];

/// Values that every element type represents exactly, of few different magnitudes, so that products stay small.
fn value(elem: Elem, noise: &mut Noise) -> (f64, f64) {
    let small = |noise: &mut Noise, low: i64| (noise.below(3) as i64 + low) as f64;
    match elem {
        Elem::Bool => (noise.below(2) as f64, 0.0),
        Elem::U8 | Elem::U16 | Elem::U32 | Elem::U64 => (small(noise, 0), 0.0),
        Elem::C64 | Elem::C128 => (small(noise, -1), small(noise, -1)),
        _ => (small(noise, -1), 0.0),
    }
}

#[test]
fn every_operator_and_type_agrees_with_a_reference_loop() {
    let mut noise = Noise(7);
    for elem in Elem::ALL {
        for op in OPS {
            let x = Strided::new(elem, &[5, 3, 20], &[0, 1, 2], &[1, 1, 1], || {
                value(elem, &mut noise)
            });
            for axes in [
                [true, true, true],
                [false, false, true],
                [true, false, false],
                [false, true, false],
            ] {
                check(op, &x, natural_out(op, elem), &axes, &Serial);
            }
        }
    }
}

#[test]
fn any_strides_and_axes_agree_with_a_reference_loop() {
    let mut noise = Noise(11);
    for round in 0..300 {
        let ndim = noise.below(5);
        let shape: Vec<usize> = (0..ndim)
            .map(|_| [0, 1, 2, 3, 7, 19][noise.below(6)])
            .collect();
        let mut order: Vec<usize> = (0..ndim).collect();
        (0..ndim).for_each(|i| order.swap(i, noise.below(ndim)));
        let steps: Vec<isize> = (0..ndim)
            .map(|_| [1, 1, 2, -1, -3, 0][noise.below(6)])
            .collect();
        let axes: Vec<bool> = (0..ndim).map(|_| noise.below(2) == 0).collect();
        let elem = [Elem::F32, Elem::I16, Elem::F16, Elem::C64, Elem::F64][noise.below(5)];
        let op = OPS[round % OPS.len()];
        let x = Strided::new(elem, &shape, &order, &steps, || value(elem, &mut noise));
        let empty = x.shape.iter().zip(&axes).any(|(&n, &a)| a && n == 0);
        if !(empty && matches!(op, Reduce::Min | Reduce::Max)) {
            check(op, &x, natural_out(op, elem), &axes, &Serial);
        }
    }
}

#[test]
fn outputs_of_another_type_are_converted() {
    let mut noise = Noise(13);
    for (src, out) in [
        (Elem::I8, Elem::F64),
        (Elem::F32, Elem::F64),
        (Elem::U8, Elem::I16),
        (Elem::F16, Elem::F32),
        (Elem::C64, Elem::C128),
    ] {
        let x = Strided::contiguous(src, &[40, 30], || value(src, &mut noise));
        for op in [Reduce::Sum, Reduce::Max, Reduce::Mean] {
            for axes in [[true, true], [true, false], [false, true]] {
                if !(op == Reduce::Mean && out == Elem::I16) {
                    check(op, &x, out, &axes, &Serial);
                }
            }
        }
    }
}

#[test]
fn min_and_max_propagate_nan() {
    for elem in [Elem::F32, Elem::F64, Elem::F16, Elem::BF16, Elem::C64] {
        for at in [0, 1, 63, 64, 200, 299] {
            let mut i = 0;
            let x = Strided::contiguous(elem, &[300], || {
                i += 1;
                (
                    if i - 1 == at {
                        f64::NAN
                    } else {
                        i as f64 % 7.0
                    },
                    0.0,
                )
            });
            for op in [Reduce::Min, Reduce::Max] {
                let mut y = Strided::contiguous(elem, &[1], || (0.0, 0.0));
                // SAFETY: the views lie in their buffers.
                unsafe { reduce(&Serial, op, &x.source(), &[true], &y.target()) };
                assert!(y.at(&[0]).0.is_nan(), "{op:?} {elem:?} NaN at {at}");
            }
        }
    }
}

#[test]
fn nan_reductions_ignore_nan() {
    let mut noise = Noise(23);
    for elem in [Elem::F32, Elem::F64, Elem::F16, Elem::BF16, Elem::I16] {
        let mut i = 0;
        // Column 4 is all NaN; other columns contain some.
        let x = Strided::new(elem, &[5, 70], &[0, 1], &[1, 1], || {
            i += 1;
            if elem >= Elem::F16 && (noise.below(4) == 0 || i % 70 == 4) {
                (f64::NAN, 0.0)
            } else {
                value(elem, &mut noise)
            }
        });
        for op in [Reduce::NanSum, Reduce::NanMin, Reduce::NanMax] {
            for axes in [[true, true], [true, false], [false, true], [false, false]] {
                check(op, &x, natural_out(op, elem), &axes, &Serial);
            }
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let mut noise = Noise(17);
    for (shape, axes) in [
        (vec![400_003], vec![true]),
        (vec![700, 600], vec![true, false]),
        (vec![700, 600], vec![false, true]),
        (vec![90_000, 5], vec![true, false]),
        (vec![60, 70, 80], vec![true, false, true]),
    ] {
        let x = Strided::contiguous(Elem::F32, &shape, || (noise.unit(), 0.0));
        let run = |threads: &dyn Threads| {
            let out: Vec<usize> = shape
                .iter()
                .zip(&axes)
                .map(|(&n, &a)| if a { 1 } else { n })
                .collect();
            let mut y = Strided::contiguous(Elem::F32, &out, || (0.0, 0.0));
            // SAFETY: the views lie in their buffers.
            unsafe { reduce(threads, Reduce::Sum, &x.source(), &axes, &y.target()) };
            y.bytes
        };
        let serial = run(&Serial);
        assert_eq!(serial, run(&Scoped(2)));
        assert_eq!(serial, run(&Scoped(5)));
    }
}

#[test]
fn long_float_sums_keep_their_digits() {
    // One float32 accumulator would stop growing at 2^24 and be off by more than half here.
    let n = 40_000_000;
    let x = vec![1.0f32; n];
    let mut y = 0f32;
    let (shape, strides) = ([n], [4]);
    let source = Source {
        ptr: x.as_ptr().cast(),
        elem: Elem::F32,
        shape: &shape,
        strides: &strides,
    };
    let target = Target {
        ptr: (&raw mut y).cast(),
        elem: Elem::F32,
        strides: &[0],
    };
    // SAFETY: the views describe `x` and `y`.
    unsafe { reduce(&Serial, Reduce::Sum, &source, &[true], &target) };
    assert_eq!(y, n as f32);
}

#[test]
fn many_runs_shorter_than_a_block_are_joined() {
    let mut noise = Noise(5);
    let x = Strided::contiguous(Elem::F32, &[200, 3, 160], || (noise.unit(), 0.0));
    check(Reduce::Sum, &x, Elem::F32, &[true, false, true], &Serial);
}

#[test]
fn the_first_of_several_complex_nans_is_the_extreme() {
    let nan = f64::NAN;
    for n in [3, 17, 40, 5000, 300_000] {
        for (first, then) in [(0, n - 1), (1, 2), (n / 2, n / 2 + 1), (n - 2, n - 1)] {
            for elem in [Elem::C64, Elem::C128] {
                for op in [Reduce::Min, Reduce::Max] {
                    let mut i = 0..;
                    let x = Strided::contiguous(elem, &[n], || match i.next() {
                        Some(at) if at == first => (nan, 3.0),
                        Some(at) if at >= then => (7.0, nan),
                        at => (at.unwrap_or(0) as f64, 1.0),
                    });
                    let mut y = Strided::contiguous(elem, &[1], || (0.0, 0.0));
                    let target = Target {
                        strides: &[0],
                        ..y.target()
                    };
                    // SAFETY: the views lie in their buffers.
                    unsafe { reduce(&Scoped(2), op, &x.source(), &[true], &target) };
                    let (re, im) = y.at(&[0]);
                    assert!(
                        re.is_nan() && im == 3.0,
                        "{op:?} of {n} {elem:?}, NaN at {first}: {re}, {im}"
                    );
                }
            }
        }
    }
}

#[test]
fn computed_elements_are_read_once_and_give_the_same_bits() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mut noise = Noise(11);
    let ops = [
        Reduce::Sum,
        Reduce::Mean,
        Reduce::Max,
        Reduce::NanMin,
        Reduce::SumSquares,
        Reduce::CountNonzero,
    ];
    let cases: [(&[usize], &[bool]); 7] = [
        (&[300_000], &[true]),
        (&[90, 100], &[false, true]),
        (&[3, 5000], &[false, true]),
        (&[700, 96], &[true, false]),
        (&[1500, 512], &[true, false]),
        (&[40, 3, 1100], &[true, false, true]),
        (&[20, 30, 64], &[true, true, false]),
    ];
    let mut num_taken = 0;
    for (shape, axes) in cases {
        for (elem, to) in [
            (Elem::F32, Elem::F32),
            (Elem::F32, Elem::F64),
            (Elem::F64, Elem::F64),
            (Elem::F16, Elem::F16),
            (Elem::I32, Elem::I64),
        ] {
            let x = Strided::contiguous(elem, shape, || (noise.unit() * 9.0, 0.0));
            let kept: Vec<usize> = (shape.iter().zip(axes))
                .map(|(&n, &a)| if a { 1 } else { n })
                .collect();
            let (bytes, size) = (&x.bytes, elem.size());
            let num_read = AtomicUsize::new(0);
            let in_buffer = |first: usize, n: usize, to: *mut u8, _: *mut u8| {
                num_read.fetch_add(n, Ordering::Relaxed);
                // SAFETY: `to` has room for `n` elements, which the array has from `first` on.
                unsafe {
                    std::ptr::copy_nonoverlapping(bytes[first * size..].as_ptr(), to, n * size)
                };
                to.cast_const()
            };
            let elsewhere = |first: usize, n: usize, _: *mut u8, _: *mut u8| {
                num_read.fetch_add(n, Ordering::Relaxed);
                bytes[first * size..].as_ptr()
            };
            for op in ops {
                let mut expected = Strided::contiguous(to, &kept, || (0.0, 0.0));
                // SAFETY: the views lie in their buffers.
                unsafe { reduce(&Scoped(2), op, &x.source(), axes, &expected.target()) };
                let rows: [&crate::reduce::ComputeRow; 2] = [&in_buffer, &elsewhere];
                for row in rows {
                    let source = Computed {
                        elem,
                        shape,
                        cost: 3,
                        row,
                    };
                    let mut y = Strided::contiguous(to, &kept, || (0.0, 0.0));
                    let target = y.target();
                    if num_tasks_computed(op, &source, axes, &target) == 0 {
                        continue;
                    }
                    num_taken += 1;
                    num_read.store(0, Ordering::Relaxed);
                    // SAFETY: the view lies in its buffer.
                    unsafe { reduce_computed(&Scoped(3), op, &source, axes, &target) };
                    assert_eq!(num_read.load(Ordering::Relaxed), bytes.len() / size);
                    assert_eq!(
                        y.bytes, expected.bytes,
                        "{op:?} of {shape:?} {elem:?} over {axes:?}"
                    );
                }
            }
        }
    }
    assert!(num_taken > 300, "{num_taken}");
}
