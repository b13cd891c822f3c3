//! QR factorisation by blocked Householder reflections.
//!
//! Conventions are LAPACK's: Q is the product of I - tau v v^H, v starts with an implicit 1, the diagonal of R is real. Source: Golub and Van Loan, Matrix
//! Computations, 4th edition, section 5.2; Schreiber and Van Loan, A storage-efficient WY representation for products of Householder transformations, 1989.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::batch::{
    AnyBitPattern, Elem, Failure, Parts, Run, by_elem, each, elements, elements_mut, to_columns,
};
use crate::lu::{none, runners};
use crate::memory::{ensure_panels, filled};
use crate::number::{MatrixElement, RealElement};
use crate::parallel::{chunks, share};
use crate::scale;

/// Number of columns that are reflected one by one before the trailing columns are updated.
const PANEL: usize = 32;

/// Number of columns per task.
const CHUNK: usize = 96;

/// The form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reflectors {
    /// Q with min(m, n) columns and R with as many rows.
    Reduced,
    /// Q (m, m) and R (m, n).
    Complete,
    /// R alone, with min(m, n) rows.
    ROnly,
}

/// Factors a = q r for `a` (count, m, n). [`Reflectors`] determines the shapes; `q` is empty for `ROnly`.
#[expect(
    clippy::too_many_arguments,
    reason = "sizes and operands of one factorisation"
)]
pub fn qr(
    elem: Elem,
    run: Run,
    form: Reflectors,
    count: usize,
    m: usize,
    n: usize,
    a: &[u8],
    q: &mut [u8],
    r: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => typed::<T>(run, form, count, (m, n), elements(a), elements_mut(q), elements_mut(r)))
}

/// The Householder vectors: `h` (count, n, m), each the transpose of R with the vectors below its diagonal, and `tau` (count, min(m, n)).
#[expect(
    clippy::too_many_arguments,
    reason = "sizes and operands of one factorisation"
)]
pub fn qr_raw(
    elem: Elem,
    run: Run,
    count: usize,
    m: usize,
    n: usize,
    a: &[u8],
    h: &mut [u8],
    tau: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => {
        let (h, tau) = (elements_mut::<T>(h), elements_mut::<T>(tau));
        raw_typed::<T>(run, count, (m, n), elements(a), h, tau)
    })
}

fn raw_typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    count: usize,
    (m, n): (usize, usize),
    a: &[T],
    h: &mut [T],
    tau: &mut [T],
) -> Result<(), Failure> {
    let k = m.min(n);
    let (outer, run) = runners(run, k);
    let outputs = (Parts::new(h, m * n), Parts::new(tau, k), none::<T>());
    each(
        outer,
        count,
        2 * m * n * k,
        outputs,
        || (),
        |(), i, h, tau, _| {
            // A column-major (m, n) matrix and a row-major (n, m) one have the same bytes.
            let a = &a[i * m * n..(i + 1) * m * n];
            to_columns(a, h, m, n);
            let exponent = scale::exponent(a);
            scale::multiply(h, exponent);
            let mut blocks = filled(PANEL * k, T::ZERO);
            factor(run, h, m, n, tau, &mut blocks);
            for (j, column) in h.chunks_exact_mut(m.max(1)).enumerate() {
                scale::multiply(&mut column[..m.min(j + 1)], -exponent);
            }
            Ok(())
        },
    )
}

fn typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    form: Reflectors,
    count: usize,
    (m, n): (usize, usize),
    a: &[T],
    q: &mut [T],
    r: &mut [T],
) -> Result<(), Failure> {
    let k = m.min(n);
    let (columns, rows) = match form {
        Reflectors::Reduced => (k, k),
        Reflectors::Complete => (m, m),
        Reflectors::ROnly => (0, k),
    };
    let (outer, run) = runners(run, k);
    let outputs = (
        Parts::new(q, m * columns),
        Parts::new(r, rows * n),
        none::<T>(),
    );
    let make = || Work {
        a: filled(m * n, T::ZERO),
        tau: filled(k, T::ZERO),
        blocks: filled(PANEL * k, T::ZERO),
        q: filled(m * columns, T::ZERO),
    };
    each(
        outer,
        count,
        4 * m * n * k,
        outputs,
        make,
        |work, i, q, r, _| {
            let a = &a[i * m * n..(i + 1) * m * n];
            to_columns(a, &mut work.a, m, n);
            let exponent = scale::exponent(a);
            scale::multiply(&mut work.a, exponent);
            factor(run, &mut work.a, m, n, &mut work.tau, &mut work.blocks);
            r.fill(T::ZERO);
            for i in 0..rows.min(n) {
                for j in i..n {
                    r[i * n + j] = work.a[j * m + i];
                }
            }
            scale::multiply(r, -exponent);
            if columns > 0 {
                form_q(run, work, m, n, columns);
                to_columns(&work.q, q, columns, m);
            }
            Ok(())
        },
    )
}

/// Workspace for matrices of one shape, column-major.
struct Work<T> {
    a: Vec<T>,
    tau: Vec<T>,
    /// The triangular factor of each panel, [`PANEL`] elements per column.
    blocks: Vec<T>,
    q: Vec<T>,
}

/// Factors a column-major (m, n) matrix in place.
fn factor<T: MatrixElement>(
    run: Run,
    a: &mut [T],
    m: usize,
    n: usize,
    tau: &mut [T],
    blocks: &mut [T],
) {
    let k = m.min(n);
    // A small matrix is one panel: applying single reflections is faster than products of narrow matrices.
    let width = if k <= PANEL { k } else { PANEL };
    for first in (0..k).step_by(width.max(1)) {
        let w = width.min(k - first);
        let (panel, right) = a[first * m..].split_at_mut(w * m);
        reflect(panel, m, first, w, &mut tau[first..first + w]);
        if k <= PANEL {
            for column in right.chunks_exact_mut(m) {
                for j in 0..w {
                    let v = &panel[j * m + first + j + 1..(j + 1) * m];
                    apply(v, tau[first + j].conjugate(), &mut column[first + j..]);
                }
            }
            continue;
        }
        let t = &mut blocks[first * PANEL..(first + w) * PANEL];
        let v = vectors(panel, m, first, w);
        triangle(&v, m - first, w, &tau[first..first + w], t);
        let (v, t) = (
            MatRef::from_column_major_slice(&v, m - first, w),
            MatRef::from_column_major_slice(t, PANEL, w).subrows(0, w),
        );
        let shares = chunks(right, m, CHUNK);
        share(run, &shares, |_, (_, columns)| {
            let width = columns.len() / m;
            let part = MatMut::from_column_major_slice_mut(columns, m, width);
            apply_block(v, t.adjoint(), part.subrows_mut(first, m - first));
        });
    }
}

/// Applies a block of reflections: c = (I - v t v^H) c.
fn apply_block<T: MatrixElement>(
    v: MatRef<'_, T>,
    t: MatRef<'_, impl faer::traits::Conjugate<Canonical = T>>,
    mut c: MatMut<'_, T>,
) {
    let (w, width) = (v.ncols(), c.ncols());
    let (mut x, mut y) = (filled(w * width, T::ZERO), filled(w * width, T::ZERO));
    let mut x = MatMut::from_column_major_slice_mut(&mut x, w, width);
    let mut y = MatMut::from_column_major_slice_mut(&mut y, w, width);
    matmul(
        x.as_mut(),
        Accum::Replace,
        v.adjoint(),
        c.as_ref(),
        T::ONE,
        Par::Seq,
    );
    matmul(y.as_mut(), Accum::Replace, t, x.as_ref(), T::ONE, Par::Seq);
    matmul(c.as_mut(), Accum::Add, v, y.as_ref(), -T::ONE, Par::Seq);
}

/// Reduces `w` columns of `m` elements; the diagonal element of column j is element `first + j`.
fn reflect<T: MatrixElement>(panel: &mut [T], m: usize, first: usize, w: usize, tau: &mut [T]) {
    for j in 0..w {
        let (upto, rest) = panel.split_at_mut((j + 1) * m);
        let column = &mut upto[j * m + first + j..];
        tau[j] = reflection(column);
        let factor = tau[j].conjugate();
        for other in rest.chunks_exact_mut(m) {
            apply(&column[1..], factor, &mut other[first + j..]);
        }
    }
}

/// Computes a reflection (I - tau v v^H)^H x = (beta, 0, …) with real beta. Replaces x by (beta, v without its leading 1) and returns tau.
fn reflection<T: MatrixElement>(x: &mut [T]) -> T {
    let zero = <T::Re as MatrixElement>::ZERO;
    let norm = length(&x[1..]);
    let alpha = x[0];
    if norm == zero && alpha.im() == zero {
        return T::ZERO;
    }
    let size = alpha.modulus().hypotenuse(norm);
    let beta = if alpha.re() < zero { size } else { -size };
    let inverse = T::ONE / (alpha - T::of(beta, zero));
    for x in &mut x[1..] {
        *x *= inverse;
    }
    x[0] = T::of(beta, zero);
    T::of((beta - alpha.re()) / beta, -alpha.im() / beta)
}

/// The 2-norm, without overflow or underflow.
fn length<T: MatrixElement>(x: &[T]) -> T::Re {
    let zero = <T::Re as MatrixElement>::ZERO;
    let mut sum = zero;
    for x in x {
        sum += x.re() * x.re() + x.im() * x.im();
    }
    // If squares overflowed or underflowed, sums again with scaling.
    if sum.is_number() && sum > T::Re::EPSILON * T::Re::EPSILON {
        return sum.root();
    }
    x.iter().fold(zero, |sum, x| sum.hypotenuse(x.modulus()))
}

/// Applies a reflection: c = (I - factor v v^H) c with v = (1, `tail`).
fn apply<T: MatrixElement>(tail: &[T], factor: T, c: &mut [T]) {
    if factor == T::ZERO {
        return;
    }
    let (head, c) = c.split_at_mut(1);
    let mut sums = [T::ZERO; 4];
    let (v4, c4) = (tail.chunks_exact(4), c.chunks_exact(4));
    let mut sum = head[0];
    for (&v, &c) in v4.remainder().iter().zip(c4.remainder()) {
        sum += v.conjugate() * c;
    }
    for (v, c) in v4.zip(c4) {
        for lane in 0..4 {
            sums[lane] += v[lane].conjugate() * c[lane];
        }
    }
    sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    sum *= factor;
    head[0] -= sum;
    for (c, &v) in c.iter_mut().zip(tail) {
        *c -= v * sum;
    }
}

/// The vectors of a panel with their implicit ones and zeros, column-major (m - first, w).
fn vectors<T: MatrixElement>(panel: &[T], m: usize, first: usize, w: usize) -> Vec<T> {
    let rows = m - first;
    let mut v = filled(rows * w, T::ZERO);
    for j in 0..w {
        let column = &mut v[j * rows..(j + 1) * rows];
        column[j] = T::ONE;
        column[j + 1..].copy_from_slice(&panel[j * m + first + j + 1..(j + 1) * m]);
    }
    v
}

/// The upper triangular t for which I - v t v^H = H1 H2 …, [`PANEL`] elements per column.
fn triangle<T: MatrixElement>(v: &[T], rows: usize, w: usize, tau: &[T], t: &mut [T]) {
    ensure_panels();
    let v = MatRef::from_column_major_slice(v, rows, w);
    let mut inner = filled(w * w, T::ZERO);
    let mut products = MatMut::from_column_major_slice_mut(&mut inner, w, w);
    matmul(
        products.as_mut(),
        Accum::Replace,
        v.adjoint(),
        v,
        T::ONE,
        Par::Seq,
    );
    t.fill(T::ZERO);
    for j in 0..w {
        t[j * PANEL + j] = tau[j];
        for i in 0..j {
            let mut sum = T::ZERO;
            for l in i..j {
                sum += t[l * PANEL + i] * inner[j * w + l];
            }
            t[j * PANEL + i] = -(sum * tau[j]);
        }
    }
}

/// Computes the first `columns` columns of Q.
fn form_q<T: MatrixElement>(run: Run, work: &mut Work<T>, m: usize, n: usize, columns: usize) {
    let k = m.min(n);
    let Work { a, tau, blocks, q } = work;
    q.fill(T::ZERO);
    q.iter_mut()
        .step_by(m + 1)
        .take(columns)
        .for_each(|x| *x = T::ONE);
    if k <= PANEL {
        for (c, column) in q.chunks_exact_mut(m.max(1)).enumerate() {
            // Reflection j does not change columns of the identity left of column j.
            for j in (0..k.min(c + 1)).rev() {
                apply(&a[j * m + j + 1..(j + 1) * m], tau[j], &mut column[j..]);
            }
        }
        return;
    }
    let panels: Vec<(usize, usize, Vec<T>)> = (0..k)
        .step_by(PANEL)
        .map(|first| {
            let w = PANEL.min(k - first);
            (
                first,
                w,
                vectors(&a[first * m..(first + w) * m], m, first, w),
            )
        })
        .collect();
    let shares = chunks(q, m, CHUNK);
    share(run, &shares, |_, (at, columns)| {
        let width = columns.len() / m;
        for (first, w, v) in panels.iter().rev() {
            if *first >= *at + width {
                continue;
            }
            let v = MatRef::from_column_major_slice(v, m - first, *w);
            let t = &blocks[first * PANEL..(first + w) * PANEL];
            let t = MatRef::from_column_major_slice(t, PANEL, *w).subrows(0, *w);
            let part = MatMut::from_column_major_slice_mut(columns, m, width);
            apply_block(v, t, part.subrows_mut(*first, m - first));
        }
    });
}
