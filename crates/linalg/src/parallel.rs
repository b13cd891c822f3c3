//! Blocked factorisations of a single large column-major matrix. The trailing columns are updated in parallel.
//!
//! Source: Golub and Van Loan, Matrix Computations, 4th edition, sections 3.2.11 (LU) and 4.2.9 (Cholesky).

use std::sync::{Mutex, PoisonError};

use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt;
use faer::linalg::lu::partial_pivoting::factor as plu;
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve as tri;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use crate::batch::{Fault, Run};
use crate::memory::{buffer, copied, ensure_panels, filled};
use crate::number::MatrixElement;
use crate::unblocked::Factored;

/// From this size on, a single matrix is factored by several threads.
pub(crate) const MIN_PARALLEL: usize = 192;

/// Number of columns that are factored before the trailing columns are updated; also the inner size of that matrix product.
const PANEL: usize = 64;

/// Number of columns per task.
const CHUNK: usize = 96;

/// Disjoint parts of a matrix, one per task.
pub(crate) type Shares<P> = Vec<Mutex<P>>;

/// Runs `body(i, share)` for every share, on threads that have memory for products.
pub(crate) fn share<P: Send>(run: Run, shares: &Shares<P>, body: impl Fn(usize, &mut P) + Sync) {
    let task = |i: usize| {
        ensure_panels();
        body(
            i,
            &mut shares[i].lock().unwrap_or_else(PoisonError::into_inner),
        )
    };
    match shares.len() {
        0 => {}
        1 => task(0),
        n => run(n, &task),
    }
}

/// Splits a column-major matrix of `m` rows into chunks of `width` columns, each with the index of its first column.
pub(crate) fn chunks<T>(a: &mut [T], m: usize, width: usize) -> Shares<(usize, &mut [T])> {
    a.chunks_mut((m * width).max(1))
        .enumerate()
        .map(|(i, chunk)| Mutex::new((i * width, chunk)))
        .collect()
}

/// Factors P A = L U in place. `rows[i]` is the row of A that became row i.
pub(crate) fn lu<T: MatrixElement>(
    run: Run,
    a: &mut [T],
    n: usize,
    rows: &mut [usize],
) -> Factored {
    for (i, row) in rows.iter_mut().enumerate() {
        *row = i;
    }
    let mut odd = false;
    let (mut order, mut inverse) = (filled(n, 0_usize), filled(n, 0_usize));
    let width = if n < MIN_PARALLEL { n } else { PANEL };
    let mut memory = buffer(plu::lu_in_place_scratch::<usize, T>(
        n,
        width,
        Par::Seq,
        Default::default(),
    ));
    for k in (0..n).step_by(width.max(1)) {
        let w = width.min(n - k);
        let (left, rest) = a.split_at_mut(k * n);
        let (panel, right) = rest.split_at_mut(w * n);
        let order = &mut order[..n - k];
        let (found, _) = plu::lu_in_place(
            MatMut::from_column_major_slice_mut(panel, n, w).subrows_mut(k, n - k),
            order,
            &mut inverse[..n - k],
            Par::Seq,
            MemStack::new(&mut memory),
            Default::default(),
        );
        odd ^= found.transposition_count % 2 == 1;
        permute(&mut rows[k..], order);
        let panel = MatRef::from_column_major_slice(panel, n, w);
        let (top, bottom) = panel.subrows(k, n - k).split_at_row(w);
        let mut shares = chunks(left, n, 4 * CHUNK);
        let num_left = shares.len();
        shares.extend(chunks(right, n, CHUNK));
        share(run, &shares, |i, (_, columns)| {
            for column in columns.chunks_exact_mut(n) {
                permute(&mut column[k..], order);
            }
            if i < num_left {
                return;
            }
            let width = columns.len() / n;
            let (_, part) =
                MatMut::from_column_major_slice_mut(columns, n, width).split_at_row_mut(k);
            let (mut head, mut tail) = part.split_at_row_mut(w);
            tri::solve_unit_lower_triangular_in_place(top, head.as_mut(), Par::Seq);
            matmul(
                tail.as_mut(),
                Accum::Add,
                bottom,
                head.as_ref(),
                -T::ONE,
                Par::Seq,
            );
        });
    }
    Factored {
        odd,
        zero: (0..n).find(|&i| a[i * n + i] == T::ZERO),
    }
}

/// Permutes: `x[i] = old x[order[i]]`.
fn permute<T: Copy>(x: &mut [T], order: &[usize]) {
    let old: Vec<T> = copied(x);
    for (x, &from) in x.iter_mut().zip(order) {
        *x = old[from];
    }
}

/// Solves with factors of [`lu`]: `x` (n, k), column-major, holds the permuted right side on entry and the solution on return.
pub(crate) fn solve_factored<T: MatrixElement>(run: Run, lu: &[T], n: usize, x: &mut [T]) {
    let lu = MatRef::from_column_major_slice(lu, n, n);
    let shares = chunks(
        x,
        n,
        if n < MIN_PARALLEL {
            usize::MAX / n.max(1)
        } else {
            CHUNK
        },
    );
    share(run, &shares, |_, (_, columns)| {
        let width = columns.len() / n;
        let mut x = MatMut::from_column_major_slice_mut(columns, n, width);
        tri::solve_unit_lower_triangular_in_place(lu, x.as_mut(), Par::Seq);
        tri::solve_upper_triangular_in_place(lu, x.as_mut(), Par::Seq);
    });
}

/// Computes A^-1 P^T from factors of [`lu`], column-major: its column i is column `rows[i]` of the inverse.
pub(crate) fn invert_factored<T: MatrixElement>(run: Run, lu: &[T], n: usize, x: &mut [T]) {
    let lu = MatRef::from_column_major_slice(lu, n, n);
    // A chunk of columns of the identity is zero above its first column's diagonal element, and so is L^-1 times it.
    let shares = chunks(x, n, CHUNK);
    share(run, &shares, |_, (first, columns)| {
        let (first, width) = (*first, columns.len() / n);
        columns.fill(T::ZERO);
        for j in 0..width {
            columns[j * n + first + j] = T::ONE;
        }
        let mut x = MatMut::from_column_major_slice_mut(columns, n, width);
        let rest = n - first;
        tri::solve_unit_lower_triangular_in_place(
            lu.submatrix(first, first, rest, rest),
            x.as_mut().subrows_mut(first, rest),
            Par::Seq,
        );
        tri::solve_upper_triangular_in_place(lu, x.as_mut(), Par::Seq);
    });
}

/// Lower Cholesky factor in place. Elements above the diagonal are neither read nor written, except within blocks of [`CHUNK`] columns.
pub(crate) fn cholesky<T: MatrixElement>(run: Run, a: &mut [T], n: usize) -> Result<(), Fault> {
    let width = if n < MIN_PARALLEL { n } else { CHUNK };
    let mut memory = buffer(llt::factor::cholesky_in_place_scratch::<T>(
        width,
        Par::Seq,
        Default::default(),
    ));
    for k in (0..n).step_by(width.max(1)) {
        let w = width.min(n - k);
        let (panel, right) = a[k * n..].split_at_mut(w * n);
        let panel = MatMut::from_column_major_slice_mut(panel, n, w).subrows_mut(k, n - k);
        let (mut top, mut below) = panel.split_at_row_mut(w);
        llt::factor::cholesky_in_place(
            top.as_mut(),
            Default::default(),
            Par::Seq,
            MemStack::new(&mut memory),
            Default::default(),
        )
        .map_err(|llt::factor::LltError::NonPositivePivot { index }| {
            Fault::NotPositiveDefinite(k + index + 1)
        })?;
        let top = top.as_ref();
        // L21 = A21 L11^-H, row by row: conj(L11) L21^T = A21^T.
        let mut rows = Vec::new();
        let mut rest = below.as_mut();
        while rest.nrows() > 0 {
            let height = CHUNK.min(rest.nrows());
            let (head, tail) = rest.split_at_row_mut(height);
            rows.push(Mutex::new(head));
            rest = tail;
        }
        share(run, &rows, |_, rows| {
            tri::solve_lower_triangular_in_place_with_conj(
                top,
                Conj::Yes,
                rows.as_mut().transpose_mut(),
                Par::Seq,
            );
        });
        drop(rows);
        let below = below.as_ref();
        let shares = chunks(right, n, CHUNK);
        share(run, &shares, |_, (first, columns)| {
            let (first, width) = (*first, columns.len() / n);
            let part = MatMut::from_column_major_slice_mut(columns, n, width);
            matmul(
                part.subrows_mut(k + w + first, n - k - w - first),
                Accum::Add,
                below.subrows(first, below.nrows() - first),
                below.subrows(first, width).adjoint(),
                -T::ONE,
                Par::Seq,
            );
        });
    }
    Ok(())
}
