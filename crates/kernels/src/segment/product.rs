//! Matrix products of segments, each with its own matrix.

use super::{Segments, run};
use crate::gemm::{self, Epilogue, GemmFloat, Matrix, Problem, Tile};
use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads};

/// `out[r] = x[r] @ w[s]` for the rows of each segment `s`. `x` is `(rows, inner)`; `w` is `(segments, inner, columns)`, or `(segments, columns,
/// inner)` if `is_transposed`.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// The offsets passed [`super::check`]; operands are dense, aligned, of these sizes, and `out` overlaps none.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn matmul(
    threads: &dyn Threads,
    g: &Segments,
    columns: usize,
    is_transposed: bool,
    elem: Elem,
    x: *const u8,
    w: *const u8,
    out: *mut u8,
) {
    let inner = g.inner;
    let w_strides = match is_transposed {
        false => (columns as isize, 1),
        true => (1, inner as isize),
    };
    with_real!(elem, T => {
        let (x, w) = (Shared(x.cast_mut().cast::<T>()), Shared(w.cast_mut().cast::<T>()));
        let out = Shared(out.cast::<T>());
        // Blocks of rows with about a million multiply-adds each.
        let step = ((1 << 20) / (inner * columns).max(1)).max(16);
        let rows = g.rows();
        run(threads, rows.div_ceil(step), &|t| {
            g.pieces(t * step..((t + 1) * step).min(rows), |s, piece| {
                // SAFETY: rows of the piece and the matrix of its segment.
                unsafe {
                    multiply::<T>(&Tile {
                        m: piece.len(),
                        n: columns,
                        k: inner,
                        a: x.at(piece.start * inner),
                        a_strides: (inner as isize, 1),
                        b: w.at(s * inner * columns),
                        b_strides: w_strides,
                        c: out.at(piece.start * columns),
                        c_strides: (columns as isize, 1),
                        alpha: T::ONE,
                        beta: T::ZERO,
                    });
                }
            });
        });
    })
}

/// # Safety
/// Same as for `gemm::dense`.
unsafe fn multiply<T: Real + GemmFloat>(tile: &Tile<T>) {
    // SAFETY: same contract.
    unsafe { gemm::dense(tile) }
}

/// `out[s] = x[rows of s].T @ y[rows of s]`, shape `(segments, inner, columns)`; zeros for empty segments.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Same as for [`matmul`].
pub unsafe fn outer(
    threads: &dyn Threads,
    g: &Segments,
    columns: usize,
    elem: Elem,
    x: *const u8,
    y: *const u8,
    out: *mut u8,
) {
    let inner = g.inner;
    let (long, groups) = g.groups(((1 << 20) / (inner * columns).max(1)).max(16));
    let (x, y, out) = (Shared(x.cast_mut()), Shared(y.cast_mut()), Shared(out));
    let size = elem.size() as isize;
    let one = |threads: &dyn Threads, s: usize| {
        let range = g.range(s);
        let at = |p: Shared<u8>, width: usize| p.at(range.start * width * size as usize);
        let matrix = |ptr, row: usize, col: usize| Matrix {
            ptr,
            row_stride: row as isize * size,
            col_stride: col as isize * size,
            batch_strides: &[],
        };
        let problem = Problem {
            elem,
            batch: &[],
            m: inner,
            n: columns,
            k: range.len(),
            alpha: 1.0,
            beta: 0.0,
        };
        // SAFETY: rows of the segment and its output.
        unsafe {
            gemm::gemm(
                threads,
                &problem,
                &matrix(at(x, inner), 1, inner),
                &matrix(at(y, columns), columns, 1),
                &matrix(out.at(s * inner * columns * size as usize), columns, 1),
                &Epilogue::NONE,
            );
        }
    };
    run(threads, groups.len(), &|t| {
        groups[t].clone().for_each(|s| one(&crate::Serial, s));
    });
    long.into_iter().for_each(|s| one(threads, s));
}
