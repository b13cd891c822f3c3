//! The backward pass: one task for each segment and head. It recomputes the weights of each block instead of storing them.

use super::{Attention, KEYS, Mask, QUERIES, Saved, add_mask};
use crate::Threads;
use crate::gemm::{self, GemmFloat, Tile};
use crate::real::{Real, Shared};
use crate::scratch;
use crate::softmax::loops;

/// # Safety
/// Same as for `attention::backward`.
pub(super) unsafe fn run<T: Real + GemmFloat>(
    threads: &dyn Threads,
    g: &Attention,
    mask: Option<&Mask>,
    kept: &Saved,
    gradients: [Shared<T>; 3],
) {
    let at = |p: *const u8| Shared(p.cast_mut().cast::<T>());
    let operands = [kept.q, kept.k, kept.v, kept.out, kept.dout].map(at);
    let lse = at(kept.lse);
    let task = |t: usize| {
        // SAFETY: same contract; only this task writes the gradients of its segment and head.
        unsafe {
            segment_head(
                g,
                mask,
                operands,
                lse,
                (t / g.heads, t % g.heads),
                gradients,
            )
        };
    };
    match g.segments() * g.heads {
        0 => {}
        1 => task(0),
        n => threads.run(n, &task),
    }
}

/// # Safety
/// Same as for [`run`].
unsafe fn segment_head<T: Real + GemmFloat>(
    g: &Attention,
    mask: Option<&Mask>,
    [q, k, v, out, dout]: [Shared<T>; 5],
    lse: Shared<T>,
    (s, head): (usize, usize),
    [dq, dk, dv]: [Shared<T>; 3],
) {
    let (queries, keys) = (g.queries(s), g.keys(s));
    let (width, value_width) = ((g.heads * g.dim) as isize, (g.heads * g.value_dim) as isize);
    let query = |x: Shared<T>, i: usize| x.at(((queries.start + i) * g.heads + head) * g.dim);
    let result =
        |x: Shared<T>, i: usize| x.at(((queries.start + i) * g.heads + head) * g.value_dim);
    let key = |x: Shared<T>, j: usize| x.at(((keys.start + j) * g.heads + head) * g.dim);
    let value = |x: Shared<T>, j: usize| x.at(((keys.start + j) * g.heads + head) * g.value_dim);
    let clear = |row: *mut T, len: usize| {
        // SAFETY: a row of this segment's gradients.
        unsafe { std::slice::from_raw_parts_mut(row, len).fill(T::ZERO) }
    };
    (0..queries.len()).for_each(|i| clear(query(dq, i), g.dim));
    for j in 0..keys.len() {
        clear(key(dk, j), g.dim);
        clear(value(dv, j), g.value_dim);
    }
    let size = QUERIES.min(queries.len()) * KEYS.min(keys.len());
    let tile = |m, n, k, a, a_strides, b, b_strides, c, c_strides, alpha: f64, beta| {
        let alpha = T::from_f64(alpha);
        // SAFETY: rows of the operands and of the scratch, by the caller.
        unsafe {
            gemm::dense(&Tile {
                m,
                n,
                k,
                a,
                a_strides,
                b,
                b_strides,
                c,
                c_strides,
                alpha,
                beta,
            });
        }
    };
    scratch::with::<T, _>(2 * size, |memory| {
        let (weights, slopes) = (memory, memory.wrapping_add(size));
        for first in (0..queries.len()).step_by(QUERIES) {
            let rows = QUERIES.min(queries.len() - first);
            let num_visible = g.num_visible(first + rows, keys.len());
            for column in (0..num_visible).step_by(KEYS) {
                let cols = KEYS.min(num_visible - column);
                let block = (cols as isize, 1);
                let transposed_strides = (1, cols as isize);
                tile(
                    rows,
                    cols,
                    g.dim,
                    query(q, first).cast_const(),
                    (width, 1),
                    key(k, column).cast_const(),
                    (1, width),
                    weights,
                    block,
                    g.scale,
                    T::ZERO,
                );
                // SAFETY: the block's scores; rows of the operands.
                unsafe {
                    add_mask(g, mask, s, (first, rows), (column, cols), weights);
                    for i in 0..rows {
                        let row = weights.add(i * cols);
                        let shift = *lse.at((queries.start + first + i) * g.heads + head);
                        if shift == T::NEG_INFINITY {
                            clear(row, cols);
                        } else {
                            loops::exp_scaled(row, cols, shift, T::ONE, T::ONE, row);
                        }
                    }
                }
                tile(
                    rows,
                    cols,
                    g.value_dim,
                    result(dout, first).cast_const(),
                    (value_width, 1),
                    value(v, column).cast_const(),
                    (1, value_width),
                    slopes,
                    block,
                    1.0,
                    T::ZERO,
                );
                tile(
                    cols,
                    g.value_dim,
                    rows,
                    weights.cast_const(),
                    transposed_strides,
                    result(dout, first).cast_const(),
                    (value_width, 1),
                    value(dv, column),
                    (value_width, 1),
                    1.0,
                    T::ONE,
                );
                // SAFETY: rows of the block and of the operands.
                unsafe {
                    for i in 0..rows {
                        let dot = loops::dot(
                            result(out, first + i),
                            result(dout, first + i),
                            g.value_dim,
                        );
                        loops::softmax_slope(
                            weights.add(i * cols),
                            slopes.add(i * cols),
                            cols,
                            dot,
                            T::from_f64(g.scale),
                            slopes.add(i * cols),
                        );
                    }
                }
                tile(
                    rows,
                    g.dim,
                    cols,
                    slopes.cast_const(),
                    block,
                    key(k, column).cast_const(),
                    (width, 1),
                    query(dq, first),
                    (width, 1),
                    1.0,
                    T::ONE,
                );
                tile(
                    cols,
                    g.dim,
                    rows,
                    slopes.cast_const(),
                    transposed_strides,
                    query(q, first).cast_const(),
                    (width, 1),
                    key(dk, column),
                    (width, 1),
                    1.0,
                    T::ONE,
                );
            }
        }
    });
}
