//! Products of the transpose of a sparse matrix with a dense one that has few columns, without transposing.

use std::ops::Range;

use super::pattern::{Fault, OutOfRange, Pattern, run_all};
use super::value::{Operand, Value, with_value};
use crate::real::Shared;
use crate::{Elem, Threads, scratch};

/// Largest number of runs of rows. Each run has its own sums.
const MAX_PARTS: usize = 4;
/// Elements per task when the sums of the runs are added.
const TASK: usize = 1 << 14;

/// `out[j] = sum of data[k] * x[i]` over the stored elements k with `indices[k] == j`, where i is the row of k. Rows of `x` and `out` have `width`
/// elements.
///
/// Each run of rows has its own sums, which are added in order. The runs depend on the sizes only.
///
/// # Errors
/// An index that is not below `num_columns`.
///
/// # Panics
/// If there is no memory for the sums; the payload is the allocator's error.
///
/// # Safety
/// `data` holds an element of `elem` for each stored one, `x` `width` for each row of the pattern; `out` has room for `num_columns * width`. `elem` is
/// one of the types that sparse kernels compute in.
pub unsafe fn transposed_matmul_dense(
    threads: &dyn Threads,
    elem: Elem,
    pattern: &Pattern,
    (num_columns, width): (usize, usize),
    data: Operand,
    x: Operand,
    out: *mut u8,
) -> Result<(), Fault> {
    let found = OutOfRange::below(num_columns);
    let len = num_columns * width;
    if width == 0 {
        return Ok(());
    }
    let bounds = runs(pattern, num_columns);
    let parts = bounds.len() - 1;
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let (data, x) = unsafe { (data.as_slice::<T>(), x.as_slice::<T>()) };
        assert_eq!(data.len(), pattern.indices.len());
        assert_eq!(x.len(), pattern.num_rows() * width);
        let mut others: Vec<T> = Vec::new();
        scratch::reserve(&mut others, (parts - 1) * len);
        let (to, others_at) = (Shared(out.cast::<T>()), Shared(others.as_mut_ptr()));
        let sums_of = |p: usize| match p {
            0 => to.at(0),
            _ => others_at.at((p - 1) * len),
        };
        run_all(threads, parts, &|p| {
            // SAFETY: the sums of this run, which this task initialises: the output, or a part of the memory of `others`.
            let sums = unsafe {
                sums_of(p).write_bytes(0, len);
                std::slice::from_raw_parts_mut(sums_of(p), len)
            };
            add_rows(pattern, bounds[p]..bounds[p + 1], width, data, x, sums, &found);
        });
        if parts > 1 {
            run_all(threads, len.div_ceil(TASK), &|t| {
                let (start, count) = (t * TASK, TASK.min(len - t * TASK));
                for p in 1..parts {
                    // SAFETY: elements of this task, of the output and of the sums of a run, which were written.
                    let (out, sums) = unsafe {
                        (
                            std::slice::from_raw_parts_mut(to.at(start), count),
                            std::slice::from_raw_parts(sums_of(p).add(start), count),
                        )
                    };
                    for k in 0..count {
                        out[k] = out[k].plus(sums[k]);
                    }
                }
            });
        }
    });
    found.result()
}

/// Splits the rows into runs of about the same number of stored elements, at least two for each sum. Returns the first row of each run, then the
/// number of rows.
fn runs(pattern: &Pattern, num_columns: usize) -> Vec<usize> {
    let stored = pattern.indices.len();
    let parts = (stored / (2 * num_columns).max(1)).clamp(1, MAX_PARTS);
    let mut bounds = vec![0];
    for p in 1..parts {
        let before = (stored * p / parts) as i64;
        let row = pattern.offsets().partition_point(|&at| at < before);
        bounds.push(row.clamp(bounds[p - 1], pattern.num_rows()));
    }
    bounds.push(pattern.num_rows());
    bounds
}

fn add_rows<T: Value>(
    pattern: &Pattern,
    rows: Range<usize>,
    width: usize,
    data: &[T],
    x: &[T],
    sums: &mut [T],
    found: &OutOfRange,
) {
    for i in rows {
        let row = pattern.row(i);
        // Other code may write to the offsets meanwhile.
        if row.start > row.end || row.end > pattern.indices.len() {
            found.check(-1);
            return;
        }
        if width == 1 {
            let x = x[i];
            for (&j, &a) in pattern.indices[row.clone()].iter().zip(&data[row]) {
                if let Some(j) = found.check(j) {
                    // SAFETY: below the number of columns, of which each has a sum.
                    let sum = unsafe { sums.get_unchecked_mut(j) };
                    *sum = sum.plus(a.times(x));
                }
            }
            continue;
        }
        let from = &x[i * width..(i + 1) * width];
        for (&j, &a) in pattern.indices[row.clone()].iter().zip(&data[row]) {
            let Some(j) = found.check(j) else {
                continue;
            };
            for (y, &x) in sums[j * width..(j + 1) * width].iter_mut().zip(from) {
                *y = y.plus(a.times(x));
            }
        }
    }
}
