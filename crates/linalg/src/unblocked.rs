//! Unblocked row-major algorithms for small matrices, for which blocking costs more than it saves.

use std::cmp::Ordering;

use crate::batch::Fault;
use crate::number::{MatrixElement, RealElement};

/// Largest matrix size for which the loops of this file are faster than a blocked factorisation (of f64).
pub(crate) const MAX_UNBLOCKED: usize = 24;

/// Result of a factorisation P A = L U in place.
pub(crate) struct Factored {
    /// Whether the permutation is odd.
    pub odd: bool,
    /// Index of the first pivot that is exactly zero.
    pub zero: Option<usize>,
}

/// Factors P A = L U for a row-major matrix in place, with partial pivoting. `rows[i]` is the row of A that became row i.
pub(crate) fn lu<T: MatrixElement>(a: &mut [T], n: usize, rows: &mut [usize]) -> Factored {
    let mut found = Factored {
        odd: false,
        zero: None,
    };
    for (i, row) in rows.iter_mut().enumerate() {
        *row = i;
    }
    for k in 0..n {
        let (mut at, mut largest) = (k, a[k * n + k].sum_of_parts());
        for i in k + 1..n {
            let size = a[i * n + k].sum_of_parts();
            // A NaN is chosen as the pivot, so that it propagates.
            let found = size.partial_cmp(&largest);
            let is_first_nan = found.is_none() && largest.partial_cmp(&largest).is_some();
            if found == Some(Ordering::Greater) || is_first_nan {
                (at, largest) = (i, size);
            }
        }
        if at != k {
            found.odd = !found.odd;
            rows.swap(at, k);
            let (top, bottom) = a.split_at_mut(at * n);
            top[k * n..k * n + n].swap_with_slice(&mut bottom[..n]);
        }
        if a[k * n + k] == T::ZERO {
            found.zero = found.zero.or(Some(k));
            continue;
        }
        let (top, bottom) = a.split_at_mut((k + 1) * n);
        let pivot_row = &top[k * n..];
        let inverse = T::ONE / pivot_row[k];
        for row in bottom.chunks_exact_mut(n) {
            let factor = row[k] * inverse;
            row[k] = factor;
            for (x, &p) in row[k + 1..].iter_mut().zip(&pivot_row[k + 1..]) {
                *x -= factor * p;
            }
        }
    }
    found
}

/// Solves with factors of [`lu`]: `x` (n, k), row-major, holds the permuted right side on entry and the solution on return.
pub(crate) fn solve_factored<T: MatrixElement>(lu: &[T], n: usize, k: usize, x: &mut [T]) {
    for i in 1..n {
        let (above, row) = x.split_at_mut(i * k);
        for j in 0..i {
            let factor = lu[i * n + j];
            for (x, &y) in row[..k].iter_mut().zip(&above[j * k..(j + 1) * k]) {
                *x -= factor * y;
            }
        }
    }
    for i in (0..n).rev() {
        let (upto, below) = x.split_at_mut((i + 1) * k);
        let row = &mut upto[i * k..];
        for j in i + 1..n {
            let factor = lu[i * n + j];
            for (x, &y) in row.iter_mut().zip(&below[(j - i - 1) * k..(j - i) * k]) {
                *x -= factor * y;
            }
        }
        let inverse = T::ONE / lu[i * n + i];
        for x in row {
            *x *= inverse;
        }
    }
}

/// The inverse from factors of [`lu`].
pub(crate) fn invert_factored<T: MatrixElement>(lu: &[T], n: usize, rows: &[usize], x: &mut [T]) {
    x.fill(T::ZERO);
    for (i, &row) in rows.iter().enumerate() {
        x[i * n + row] = T::ONE;
    }
    solve_factored(lu, n, n, x);
}

/// Lower Cholesky factor in place. Reads only the lower triangle and sets the upper one to zero.
pub(crate) fn cholesky<T: MatrixElement>(a: &mut [T], n: usize) -> Result<(), Fault> {
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..(j + 1) * n];
            let mut sum = row[j];
            for (&x, &y) in row[..j].iter().zip(&other[..j]) {
                sum -= x * y.conjugate();
            }
            row[j] = sum.times(<T::Re as MatrixElement>::ONE / other[j].re());
        }
        let mut rest = row[i].re();
        for &x in &row[..i] {
            rest -= x.re() * x.re() + x.im() * x.im();
        }
        // A NaN propagates, as in NumPy.
        if rest <= <T::Re as MatrixElement>::ZERO {
            return Err(Fault::NotPositiveDefinite(i + 1));
        }
        row[i] = T::of(rest.root(), <T::Re as MatrixElement>::ZERO);
        row[i + 1..n].fill(T::ZERO);
    }
    Ok(())
}
