//! Sums and differences of two sparse matrices, row by row.

use super::pattern::{Pattern, run_all, runs};
use super::value::{Operand, Output, Value, output, with_value};
use crate::real::Shared;
use crate::{Elem, Threads};

/// Sign of the second matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Addition.
    Plus,
    /// Subtraction.
    Minus,
}

/// The sum of two matrices of as many rows, whose rows ascend; so do those of the result. Writes where rows begin to `indptr`. `allocate` receives the
/// number of stored elements and returns memory for them.
///
/// Runs of rows are merged once, into `scratch`, and copied to the result when the lengths of all rows are known.
///
/// # Errors
/// The error that `allocate` returns.
///
/// # Safety
/// Each operand holds one element of `elem` for each stored one. The memory that `allocate` returns has room for the requested number, `scratch` for as
/// many as both operands have together. `elem` is one of those that sparse kernels compute in.
pub unsafe fn add<E>(
    threads: &dyn Threads,
    elem: Elem,
    (a, a_data): (&Pattern, Operand),
    (b, b_data, sign): (&Pattern, Operand, Sign),
    indptr: &mut [i64],
    scratch: Output,
    allocate: impl FnOnce(usize) -> Result<Output, E>,
) -> Result<(), E> {
    assert!(a.num_rows() == b.num_rows() && indptr.len() == a.num_rows() + 1);
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let (a_data, b_data) = unsafe { (a_data.as_slice::<T>(), b_data.as_slice::<T>()) };
        assert!(a_data.len() == a.indices.len() && b_data.len() == b.indices.len());
        // Where rows begin in `scratch`: as if the operands shared no column.
        let apart = |i: usize| a.row_start(i) + b.row_start(i);
        let runs = runs(a.num_rows(), TASK, |i| apart(i) + 8 * i);
        indptr[0] = 0;
        let counts = Shared(indptr.as_mut_ptr());
        let (kept, columns) = (Shared(scratch.data.cast::<T>()), Shared(scratch.indices));
        run_all(threads, runs.len() - 1, &|t| {
            let (at, len) = (apart(runs[t]), apart(runs[t + 1]) - apart(runs[t]));
            // SAFETY: runs are disjoint, and together at most as long as both operands.
            let (columns, values) = unsafe {
                (output::<i64>(columns.at(at).cast(), len), output::<T>(kept.at(at).cast(), len))
            };
            let mut end = 0;
            for i in runs[t]..runs[t + 1] {
                let (j, k) = (a.row(i), b.row(i));
                let lhs = (&a.indices[j.clone()], &a_data[j]);
                let rhs = (&b.indices[k.clone()], &b_data[k]);
                let to = (&mut columns[end..], &mut values[end..]);
                // SAFETY: the rest of the run's memory has room for the rows from here on.
                let count = unsafe {
                    match sign {
                        Sign::Plus => add_row(lhs, rhs, to, |x| x, T::plus),
                        Sign::Minus => add_row(lhs, rhs, to, |x| T::ZERO.minus(x), T::minus),
                    }
                };
                // SAFETY: each row is one task's.
                unsafe { *counts.at(i + 1) = count as i64 };
                end += count;
            }
        });
        for i in 1..indptr.len() {
            indptr[i] += indptr[i - 1];
        }
        let to = allocate(indptr.last().map_or(0, |&n| n as usize))?;
        let (data, indices) = (Shared(to.data.cast::<T>()), Shared(to.indices));
        let indptr = &*indptr;
        run_all(threads, runs.len() - 1, &|t| {
            let (from, at) = (apart(runs[t]), indptr[runs[t]] as usize);
            let len = indptr[runs[t + 1]] as usize - at;
            // SAFETY: runs have as many elements as were counted, in the scratch memory and in the result, which do not overlap.
            unsafe {
                output::<i64>(indices.at(at).cast(), len)
                    .copy_from_slice(output(columns.at(from).cast(), len));
                output::<T>(data.at(at).cast(), len)
                    .copy_from_slice(output(kept.at(from).cast(), len));
            }
        });
        Ok(())
    })
}

/// Approximate number of elements that a task merges.
const TASK: usize = 32 * 1024;

/// Writes one row of the result. Returns its number of elements.
///
/// # Safety
/// There is memory for the elements of both operands.
#[inline(always)]
unsafe fn add_row<T: Value>(
    (j, a): (&[i64], &[T]),
    (k, b): (&[i64], &[T]),
    (columns, values): (&mut [i64], &mut [T]),
    only_right: impl Fn(T) -> T,
    both: impl Fn(T, T) -> T,
) -> usize {
    let (a, b) = (&a[..j.len()], &b[..k.len()]);
    debug_assert!(columns.len().min(values.len()) >= j.len() + k.len());
    let mut at = 0;
    let mut push = |column: i64, value: T| {
        // SAFETY: each step below reads at least one element more, so `at` is below the number of both.
        unsafe {
            *columns.get_unchecked_mut(at) = column;
            *values.get_unchecked_mut(at) = value;
        }
        at += 1;
    };
    let (mut p, mut q) = (0, 0);
    while p < j.len() && q < k.len() {
        let (left, right) = (j[p], k[q]);
        if left < right {
            push(left, a[p]);
            p += 1;
        } else if right < left {
            push(right, only_right(b[q]));
            q += 1;
        } else {
            push(left, both(a[p], b[q]));
            (p, q) = (p + 1, q + 1);
        }
    }
    // One of the operands has nothing left. Rows are short, so these loops are no calls of `memcpy`.
    while p < j.len() {
        push(j[p], a[p]);
        p += 1;
    }
    while q < k.len() {
        push(k[q], only_right(b[q]));
        q += 1;
    }
    at
}
