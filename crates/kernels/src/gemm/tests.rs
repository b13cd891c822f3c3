use super::*;
use crate::Serial;
use crate::threads::Scoped;
use crate::values::Values;
use half::{bf16, f16};

/// Element types of the tests, with conversions from and to complex numbers.
trait Entry: Copy + PartialEq + std::fmt::Debug {
    const ELEM: Elem;
    fn make(x: Complex<f64>) -> Self;
    fn value(self) -> Complex<f64>;
}
macro_rules! entry {
    ($($t:ty, $e:ident, $x:ident => $make:expr, $v:ident => $value:expr;)*) => {$(
        impl Entry for $t {
            const ELEM: Elem = Elem::$e;
            fn make($x: Complex<f64>) -> Self { $make }
            fn value(self) -> Complex<f64> { let $v = self; $value }
        }
    )*};
}
entry! {
    f32, F32, x => x.re as f32, v => Complex::new(v as f64, 0.0);
    f64, F64, x => x.re, v => Complex::new(v, 0.0);
    Complex<f32>, C64, x => Complex::new(x.re as f32, x.im as f32), v => Complex::new(v.re as f64, v.im as f64);
    Complex<f64>, C128, x => x, v => v;
    f16, F16, x => f16::from_f64(x.re), v => Complex::new(v.to_f64(), 0.0);
    bf16, BF16, x => bf16::from_f64(x.re), v => Complex::new(v.to_f64(), 0.0);
    i8, I8, x => (x.re * 100.0) as i8, v => Complex::new(v as f64, 0.0);
    u16, U16, x => (x.re * 100.0) as i16 as u16, v => Complex::new(v as f64, 0.0);
    i32, I32, x => (x.re * 1000.0) as i32, v => Complex::new(v as f64, 0.0);
    i64, I64, x => (x.re * 1000.0) as i64, v => Complex::new(v as f64, 0.0);
    bool, Bool, x => x.re > 0.6, v => Complex::new(v as u8 as f64, 0.0);
}

/// A matrix stored with its own strides inside a larger buffer.
struct Stored<T> {
    data: Vec<T>,
    strides: (usize, usize, usize),
}

impl<T: Entry> Stored<T> {
    /// `(batch, rows, cols)`; `order` 0: row-major, 1: column-major, 2: rows and columns both with gaps. `shared`: one matrix for all.
    fn new(
        values: &mut Values,
        (batch, rows, cols): (usize, usize, usize),
        order: usize,
        shared: bool,
    ) -> Self {
        let (rs, cs) = match order {
            0 => (cols, 1),
            1 => (1, rows),
            _ => (2 * cols * 3, 3),
        };
        let per = rows.saturating_sub(1) * rs + cols.saturating_sub(1) * cs + 1;
        let n = if shared { per } else { per * batch };
        let data = (0..n)
            .map(|_| T::make(Complex::new(values.next(), values.next())))
            .collect();
        Stored {
            data,
            strides: (if shared { 0 } else { per }, rs, cs),
        }
    }
    fn at(&self, b: usize, i: usize, j: usize) -> usize {
        b * self.strides.0 + i * self.strides.1 + j * self.strides.2
    }
    fn matrix<'a>(&mut self, batch_strides: &'a mut [isize; 1]) -> Matrix<'a> {
        let size = size_of::<T>() as isize;
        batch_strides[0] = self.strides.0 as isize * size;
        Matrix {
            ptr: self.data.as_mut_ptr().cast(),
            row_stride: self.strides.1 as isize * size,
            col_stride: self.strides.2 as isize * size,
            batch_strides,
        }
    }
}

/// Compares one problem in every stride order with a slow loop; `tolerance` is relative to `sum |a||b|`.
fn check<T: Entry>(
    (batch, m, n, k): (usize, usize, usize, usize),
    alpha: f64,
    beta: f64,
    tolerance: f64,
) {
    let mut values = Values((m * 31 + n * 7 + k) as u64);
    for order in 0..27 {
        let (oa, ob, oc) = (order % 3, order / 3 % 3, order / 9);
        let mut a = Stored::<T>::new(&mut values, (batch, m, k), oa, false);
        let mut b = Stored::<T>::new(&mut values, (batch, k, n), ob, batch > 1);
        let mut c = Stored::<T>::new(&mut values, (batch, m, n), oc, false);
        let before = c.data.clone();
        let p = Problem {
            elem: T::ELEM,
            batch: &[batch],
            m,
            n,
            k,
            alpha,
            beta,
        };
        let mut strides = [[0isize; 1]; 3];
        let [sa, sb, sc] = &mut strides;
        // SAFETY: the buffers hold what shape and strides reach.
        unsafe {
            gemm(
                &Scoped(3),
                &p,
                &a.matrix(sa),
                &b.matrix(sb),
                &c.matrix(sc),
                &Epilogue::NONE,
            )
        };
        let mut touched = vec![false; before.len()];
        for bt in 0..batch {
            for i in 0..m {
                for j in 0..n {
                    let (mut sum, mut size) = (Complex::new(0.0, 0.0), 0.0);
                    for q in 0..k {
                        let (x, y) = (
                            a.data[a.at(bt, i, q)].value(),
                            b.data[b.at(bt, q, j)].value(),
                        );
                        sum += x * y;
                        size += x.norm() * y.norm();
                    }
                    let at = c.at(bt, i, j);
                    touched[at] = true;
                    let old = before[at].value();
                    let want = alpha * sum
                        + if beta == 0.0 {
                            Complex::new(0.0, 0.0)
                        } else {
                            beta * old
                        };
                    let got = c.data[at].value();
                    let bound = tolerance * (1.0 + alpha.abs() * size + old.norm());
                    assert!(
                        (got - want).norm() <= bound,
                        "order {order} ({bt},{i},{j}): got {got}, want {want}"
                    );
                }
            }
        }
        for (at, touched) in touched.iter().enumerate() {
            assert!(
                *touched || c.data[at] == before[at],
                "element {at} between C's was written"
            );
        }
    }
}

const SIZES: [(usize, usize, usize, usize); 10] = [
    (1, 1, 1, 1),
    (1, 4, 4, 4),
    (2, 5, 3, 7),
    (1, 1, 37, 29),
    (1, 41, 1, 67),
    (3, 16, 17, 15),
    (1, 50, 70, 33),
    (1, 7, 9, 0),
    (5, 1, 8, 130),
    (2, 3, 100, 2),
];

#[test]
fn floats_match_a_reference_loop_in_every_stride_order() {
    for size in SIZES {
        let k = size.3 as f64 + 2.0;
        check::<f32>(size, 1.0, 0.0, k * f32::EPSILON as f64);
        check::<f32>(size, -0.5, 2.0, k * f32::EPSILON as f64);
        check::<f64>(size, 1.0, 1.0, k * f64::EPSILON);
        check::<Complex<f32>>(size, 2.0, 0.0, 2.0 * k * f32::EPSILON as f64);
        check::<Complex<f64>>(size, 1.0, -1.0, 2.0 * k * f64::EPSILON);
    }
}

#[test]
fn rows_a_power_of_two_apart_are_copied_in_every_stride_order() {
    // A single part, and several parts with a shorter last one.
    for size in [(2, 20, 50, 256), (1, 50, 20, 512), (1, 9, 110, 4096)] {
        let k = size.3 as f64 + 2.0;
        check::<f32>(size, -0.5, 2.0, k * f32::EPSILON as f64);
        check::<f64>(size, 1.0, 0.0, k * f64::EPSILON);
    }
}

#[test]
fn long_inner_axes_are_sliced_in_every_stride_order() {
    // The last slice is shorter. An inner product, a vector on either side, a longer one, two matrices.
    for size in [
        (1, 1, 1, 270_001),
        (1, 10, 1, 27_001),
        (1, 1, 65, 4_101),
        (1, 33, 20, 3_201),
    ] {
        check::<f32>(size, -0.5, 2.0, 64.0 * f32::EPSILON as f64);
        check::<Complex<f64>>(size, 1.0, 0.0, 64.0 * f64::EPSILON);
    }
}

#[test]
fn half_floats_round_once() {
    for size in SIZES {
        // One final rounding; the sums are in f32.
        check::<f16>(size, 1.0, 0.0, 1.01 / 2048.0);
        check::<bf16>(size, 1.0, 1.0, 1.01 / 256.0);
    }
}

#[test]
fn exact_types_wrap_and_bools_or() {
    for size in SIZES {
        check::<i32>(size, 1.0, 0.0, 0.0);
        check::<i64>(size, 3.0, 2.0, 0.0);
    }
    let (a, b) = ([100i8, 100, 3, -7], [2i8, 1, 1, 5]);
    let mut c = [0i8; 4];
    let dense = |p: *const i8| Matrix {
        ptr: p as *mut u8,
        row_stride: 2,
        col_stride: 1,
        batch_strides: &[],
    };
    let p = Problem {
        elem: Elem::I8,
        batch: &[],
        m: 2,
        n: 2,
        k: 2,
        alpha: 1.0,
        beta: 0.0,
    };
    // SAFETY: 2 x 2 dense bytes each.
    unsafe {
        gemm(
            &Serial,
            &p,
            &dense(a.as_ptr()),
            &dense(b.as_ptr()),
            &dense(c.as_mut_ptr()),
            &Epilogue::NONE,
        )
    };
    assert_eq!(c, [300i32 as i8, 600i32 as i8, -1, -32]);
    check_bool();
    // u16 wraps like i16.
    let mut c = [0u16; 1];
    let x = [60_000u16];
    let one = |p: *const u16| Matrix {
        ptr: p as *mut u8,
        row_stride: 2,
        col_stride: 2,
        batch_strides: &[],
    };
    let p = Problem {
        elem: u16::ELEM,
        m: 1,
        n: 1,
        k: 1,
        ..p
    };
    // SAFETY: one element each.
    unsafe {
        gemm(
            &Serial,
            &p,
            &one(x.as_ptr()),
            &one(x.as_ptr()),
            &one(c.as_mut_ptr()),
            &Epilogue::NONE,
        )
    };
    assert_eq!(c[0], 60_000u16.wrapping_mul(60_000));
}

fn check_bool() {
    let mut values = Values(5);
    let (m, n, k) = (9, 70, 6);
    let mut make = |n: usize| -> Vec<bool> { (0..n).map(|_| values.next() > 0.4).collect() };
    let (a, b, mut c) = (make(m * k), make(k * n), vec![false; m * n]);
    let dense = |p: *const bool, cols: usize| Matrix {
        ptr: p as *mut u8,
        row_stride: cols as isize,
        col_stride: 1,
        batch_strides: &[],
    };
    let p = Problem {
        elem: bool::ELEM,
        batch: &[],
        m,
        n,
        k,
        alpha: 1.0,
        beta: 0.0,
    };
    // SAFETY: dense matrices of these sizes.
    unsafe {
        gemm(
            &Serial,
            &p,
            &dense(a.as_ptr(), k),
            &dense(b.as_ptr(), n),
            &dense(c.as_mut_ptr(), n),
            &Epilogue::NONE,
        )
    };
    for i in 0..m {
        for j in 0..n {
            assert_eq!(
                c[i * n + j],
                (0..k).any(|q| a[i * k + q] && b[q * n + j]),
                "({i}, {j})"
            );
        }
    }
}

fn dense_f32(ptr: *const f32, cols: usize) -> Matrix<'static> {
    Matrix {
        ptr: ptr as *mut u8,
        row_stride: 4 * cols as isize,
        col_stride: 4,
        batch_strides: &[],
    }
}

#[test]
fn large_products_are_the_same_for_any_number_of_threads() {
    let mut values = Values(1);
    for (m, n, k) in [
        (300, 500, 200),
        (1, 3000, 700),
        (2000, 1, 513),
        (700, 90, 333),
        (1, 1, 500_001),
        (9, 30, 20_001),
    ] {
        let (a, b) = (values.take::<f32>(m * k), values.take::<f32>(k * n));
        let p = Problem {
            elem: Elem::F32,
            batch: &[],
            m,
            n,
            k,
            alpha: 1.0,
            beta: 0.0,
        };
        let run = |threads: &dyn Threads| {
            let mut c = vec![0f32; m * n];
            // SAFETY: dense matrices of these sizes.
            unsafe {
                gemm(
                    threads,
                    &p,
                    &dense_f32(a.as_ptr(), k),
                    &dense_f32(b.as_ptr(), n),
                    &dense_f32(c.as_mut_ptr(), n),
                    &Epilogue::NONE,
                )
            };
            c
        };
        let one = run(&Serial);
        assert_eq!(one, run(&Scoped(2)));
        assert_eq!(one, run(&Scoped(7)));
        for (i, j) in [(0, 0), (m - 1, n - 1), (m / 2, n / 3)] {
            let want: f64 = (0..k)
                .map(|q| a[i * k + q] as f64 * b[q * n + j] as f64)
                .sum();
            assert!((one[i * n + j] as f64 - want).abs() < k as f64 * f32::EPSILON as f64 * 2.0);
        }
    }
}

#[test]
fn epilogue_adds_bias_and_clamps() {
    let mut values = Values(3);
    let (m, n, k) = (260, 300, 130);
    let (a, b, rows, cols) = (
        values.take::<f32>(m * k),
        values.take::<f32>(k * n),
        values.take::<f32>(m),
        values.take::<f32>(n),
    );
    let p = Problem {
        elem: Elem::F32,
        batch: &[],
        m,
        n,
        k,
        alpha: 1.0,
        beta: 0.0,
    };
    for (bias, relu) in [
        (Bias::PerRow(rows.as_ptr().cast()), false),
        (Bias::PerColumn(cols.as_ptr().cast()), true),
    ] {
        let mut c = vec![0f32; m * n];
        let e = Epilogue { bias, relu };
        // SAFETY: dense matrices of these sizes.
        unsafe {
            gemm(
                &Scoped(2),
                &p,
                &dense_f32(a.as_ptr(), k),
                &dense_f32(b.as_ptr(), n),
                &dense_f32(c.as_mut_ptr(), n),
                &e,
            )
        };
        for i in 0..m {
            for j in 0..n {
                let sum: f64 = (0..k)
                    .map(|q| a[i * k + q] as f64 * b[q * n + j] as f64)
                    .sum();
                let want = sum + if relu { cols[j] } else { rows[i] } as f64;
                let want = if relu { want.max(0.0) } else { want };
                assert!((c[i * n + j] as f64 - want).abs() < 1e-4, "({i}, {j})");
            }
        }
    }
}

#[test]
fn batch_axes_broadcast_independently() {
    // (2, 3) batch; A varies over the first axis only, B over the second only.
    let mut values = Values(9);
    let (m, n, k) = (3, 4, 5);
    let (a, b, mut c) = (
        values.take::<f64>(2 * m * k),
        values.take::<f64>(3 * k * n),
        vec![0f64; 6 * m * n],
    );
    let p = Problem {
        elem: Elem::F64,
        batch: &[2, 3],
        m,
        n,
        k,
        alpha: 1.0,
        beta: 0.0,
    };
    let at = |ptr: *const f64, cols: usize, s: &'static [isize]| Matrix {
        ptr: ptr as *mut u8,
        row_stride: 8 * cols as isize,
        col_stride: 8,
        batch_strides: s,
    };
    // SAFETY: dense matrices of these sizes.
    unsafe {
        gemm(
            &Serial,
            &p,
            &at(a.as_ptr(), k, &[8 * 15, 0]),
            &at(b.as_ptr(), n, &[0, 8 * 20]),
            &at(c.as_mut_ptr(), n, &[8 * 36, 8 * 12]),
            &Epilogue::NONE,
        );
    }
    for (x, y) in [(0, 0), (1, 2), (0, 2)] {
        let want: f64 = (0..k)
            .map(|q| a[x * 15 + k + q] * b[y * 20 + q * n + 3])
            .sum();
        assert!((c[(x * 3 + y) * 12 + n + 3] - want).abs() < 1e-14);
    }
}
