//! The forward pass: one task for each block of queries of each segment and head.

use super::{Attention, KEYS, Mask, QUERIES, add_mask};
use crate::Threads;
use crate::gemm::{self, GemmFloat, Tile};
use crate::real::{Real, Shared};
use crate::scratch;
use crate::softmax::loops;

/// Multiply-adds that a task should have at least.
const MIN_TASK_WORK: usize = 1 << 19;

/// # Safety
/// Same as for `attention::forward`.
pub(super) unsafe fn run<T: Real + GemmFloat>(
    threads: &dyn Threads,
    g: &Attention,
    mask: Option<&Mask>,
    operands: [Shared<T>; 3],
    out: Shared<T>,
    lse: Shared<T>,
) {
    // Consecutive blocks of queries are grouped so that each task has enough work to be worth scheduling.
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    let mut groups: Vec<usize> = vec![0];
    let mut work = 0;
    for s in 0..g.segments() {
        let (queries, keys) = (g.queries(s).len(), g.keys(s).len());
        for first in (0..queries).step_by(QUERIES) {
            blocks.push((s, first));
            let rows = QUERIES.min(queries - first);
            work += rows * keys.max(1) * (g.dim + g.value_dim) * g.heads;
            if work >= MIN_TASK_WORK {
                groups.push(blocks.len());
                work = 0;
            }
        }
    }
    if groups.last() != Some(&blocks.len()) {
        groups.push(blocks.len());
    }
    let task = |t: usize| {
        for &(s, first) in &blocks[groups[t]..groups[t + 1]] {
            for head in 0..g.heads {
                // SAFETY: same contract; only this task writes the results of its block.
                unsafe { block(g, mask, operands, (s, first, head), out, lse) };
            }
        }
    };
    match groups.len() - 1 {
        0 => {}
        1 => task(0),
        n => threads.run(n, &task),
    }
}

/// # Safety
/// Same as for [`run`].
unsafe fn block<T: Real + GemmFloat>(
    g: &Attention,
    mask: Option<&Mask>,
    [q, k, v]: [Shared<T>; 3],
    (s, first, head): (usize, usize, usize),
    out: Shared<T>,
    lse: Shared<T>,
) {
    let (queries, keys) = (g.queries(s), g.keys(s));
    let rows = QUERIES.min(queries.len() - first);
    let start = queries.start + first;
    let (width, value_width) = (g.heads * g.dim, g.heads * g.value_dim);
    let num_visible = g.num_visible(first + rows, keys.len());
    let cols = KEYS.min(num_visible.max(1));
    let result = |i: usize| out.at(((start + i) * g.heads + head) * g.value_dim);
    scratch::with::<T, _>(rows * cols + 2 * rows, |memory| {
        let scores = memory;
        // SAFETY: the scratch holds the scores and two numbers per row; rows of the operands are in bounds (the caller guarantees it).
        unsafe {
            let maxima = std::slice::from_raw_parts_mut(memory.add(rows * cols), rows);
            let sums = std::slice::from_raw_parts_mut(memory.add(rows * cols + rows), rows);
            maxima.fill(T::NEG_INFINITY);
            sums.fill(T::ZERO);
            for column in (0..num_visible).step_by(KEYS) {
                let cols = KEYS.min(num_visible - column);
                let key = (keys.start + column) * g.heads + head;
                gemm::dense(&Tile {
                    m: rows,
                    n: cols,
                    k: g.dim,
                    a: q.at((start * g.heads + head) * g.dim),
                    a_strides: (width as isize, 1),
                    b: k.at(key * g.dim),
                    b_strides: (1, width as isize),
                    c: scores,
                    c_strides: (cols as isize, 1),
                    alpha: T::from_f64(g.scale),
                    beta: T::ZERO,
                });
                add_mask(g, mask, s, (first, rows), (column, cols), scores);
                for i in 0..rows {
                    let row = scores.add(i * cols);
                    let max = loops::max(row, cols);
                    let max = if max > maxima[i] { max } else { maxima[i] };
                    if max == T::NEG_INFINITY {
                        std::slice::from_raw_parts_mut(row, cols).fill(T::ZERO);
                        continue;
                    }
                    let sum = T::from_f64(loops::exp_row(row, cols, max, T::ONE, row));
                    if column > 0 && max != maxima[i] {
                        let factor = T::from_f64((maxima[i] - max).to_f64().exp());
                        sums[i] *= factor;
                        loops::multiply(result(i), g.value_dim, factor);
                    }
                    sums[i] += sum;
                    maxima[i] = max;
                }
                gemm::dense(&Tile {
                    m: rows,
                    n: g.value_dim,
                    k: cols,
                    a: scores,
                    a_strides: (cols as isize, 1),
                    b: v.at(key * g.value_dim),
                    b_strides: (value_width as isize, 1),
                    c: result(0),
                    c_strides: (value_width as isize, 1),
                    alpha: T::ONE,
                    beta: if column == 0 { T::ZERO } else { T::ONE },
                });
            }
            for i in 0..rows {
                let at = lse.at((start + i) * g.heads + head);
                if sums[i] == T::ZERO {
                    std::slice::from_raw_parts_mut(result(i), g.value_dim).fill(T::ZERO);
                    *at = T::NEG_INFINITY;
                    continue;
                }
                loops::multiply(result(i), g.value_dim, T::from_f64(1.0 / sums[i].to_f64()));
                *at = T::from_f64(maxima[i].to_f64() + sums[i].to_f64().ln());
            }
        }
    });
}
