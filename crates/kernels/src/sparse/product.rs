//! Products of two sparse matrices.

use std::cell::RefCell;
use std::sync::Mutex;

use super::pattern::{Fault, OutOfRange, Pattern, run_all, runs};
use super::value::{Operand, Output, Value, output, with_value};
use crate::real::Shared;
use crate::scratch::{filled, reserve};
use crate::{Elem, Threads};

/// Bit set of the columns of one row of a product. A second bit set marks the words of the first that are not 0, so that the columns are found in
/// ascending order without sorting.
struct Columns {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Columns {
    fn new(num_columns: usize) -> Columns {
        let words = num_columns.div_ceil(64);
        Columns {
            words: filled(words, 0),
            summary: filled(words.div_ceil(64), 0),
        }
    }

    /// Adds a column.
    #[inline(always)]
    fn insert(&mut self, column: usize) {
        self.words[column / 64] |= 1 << (column % 64);
        self.summary[column / 4096] |= 1 << (column / 64 % 64);
    }

    /// Visits the columns in ascending order and removes them.
    #[inline(always)]
    fn drain(&mut self, mut visit: impl FnMut(usize)) {
        for (s, summary) in self.summary.iter_mut().enumerate() {
            while *summary != 0 {
                let w = s * 64 + summary.trailing_zeros() as usize;
                *summary &= *summary - 1;
                let mut word = std::mem::take(&mut self.words[w]);
                while word != 0 {
                    visit(w * 64 + word.trailing_zeros() as usize);
                    word &= word - 1;
                }
            }
        }
    }
}

/// One row of a product while it is summed. Columns that are not in the row have sum 0.
struct Row<T> {
    columns: Columns,
    sums: Vec<T>,
}

/// Result of one run of rows.
struct Part<T> {
    indices: Vec<i64>,
    data: Vec<T>,
}

impl<T> Part<T> {
    /// Reserves space for `more` elements: the first time for a whole task, later for twice the current number.
    fn make_space(&mut self, more: usize) {
        if self.indices.capacity() - self.indices.len() < more {
            let more = more.max(self.indices.len()).max(TASK);
            reserve(&mut self.indices, more);
            reserve(&mut self.data, more);
        }
    }
}

/// `a @ b`, where `b` has `num_columns` columns. Writes where rows begin to `indptr`. `allocate` receives the number of stored elements and returns
/// memory for them.
///
/// Columns ascend in each row of the result. A row is summed in storage order (Gustavson, ACM TOMS 4 (1978), 250-269).
///
/// # Errors
/// An index of `a` that is no row of `b`, or one of `b` beyond `num_columns`; those of `allocate`.
///
/// # Safety
/// `a_data` and `b_data` hold one element of `elem` per stored one; the memory that `allocate` returns has room for the requested number. `elem` is one
/// of the types that sparse kernels compute in.
pub unsafe fn matmul<E>(
    threads: &dyn Threads,
    elem: Elem,
    (a, a_data): (&Pattern, Operand),
    (b, b_data): (&Pattern, Operand),
    num_columns: usize,
    indptr: &mut [i64],
    allocate: impl FnOnce(usize) -> Result<Output, E>,
) -> Result<Result<(), Fault>, E> {
    assert_eq!(indptr.len(), a.num_rows() + 1);
    let (rows_found, columns_found) = (
        OutOfRange::below(b.num_rows()),
        OutOfRange::below(num_columns),
    );
    if !rows_found.are_in_range(a.indices) || !columns_found.are_in_range(b.indices) {
        return Ok(rows_found.result().and_then(|()| columns_found.result()));
    }
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let (a_data, b_data) = unsafe { (a_data.as_slice::<T>(), b_data.as_slice::<T>()) };
        assert!(a_data.len() == a.indices.len() && b_data.len() == b.indices.len());
        // Numbers of products in the rows before each row; no row of the result has more elements than that, nor than columns.
        let products_of = |i: usize| -> usize {
            a.row(i).map(|k| b.row(a.indices[k] as usize).len()).sum()
        };
        let mut work = filled(a.num_rows() + 1, 0_usize);
        let to = Shared(work.as_mut_ptr());
        a.for_rows(threads, 4, &|rows| {
            // SAFETY: each row is one task's.
            rows.for_each(|i| unsafe { *to.at(i + 1) = products_of(i) });
        });
        for i in 1..work.len() {
            work[i] += work[i - 1];
        }
        let runs = runs(a.num_rows(), TASK, |i| work[i] + 4 * i);
        let num_runs = runs.len() - 1;
        let parts: Vec<Mutex<Option<Part<T>>>> = (0..num_runs).map(|_| Mutex::new(None)).collect();
        indptr[0] = 0;
        let counts = Shared(indptr.as_mut_ptr());
        let scratch: Scratch<Row<T>> = Scratch::new();
        run_all(threads, num_runs, &|t| {
            scratch.with(|| Row { columns: Columns::new(num_columns), sums: filled(num_columns, T::ZERO) }, |row| {
                let rows = runs[t]..runs[t + 1];
                let mut part = Part { indices: Vec::new(), data: Vec::new() };
                for i in rows {
                    let before = part.indices.len();
                    part.make_space((work[i + 1] - work[i]).min(num_columns));
                    for k in a.row(i) {
                        let (factor, of_b) = (a_data[k], b.row(a.indices[k] as usize));
                        for (&c, &v) in b.indices[of_b.clone()].iter().zip(&b_data[of_b]) {
                            let sum = &mut row.sums[c as usize];
                            *sum = sum.plus(factor.times(v));
                            row.columns.insert(c as usize);
                        }
                    }
                    let Row { columns, sums } = row;
                    columns.drain(|c| {
                        part.indices.push(c as i64);
                        part.data.push(std::mem::replace(&mut sums[c], T::ZERO));
                    });
                    // SAFETY: each row belongs to one task.
                    unsafe { *counts.at(i + 1) = (part.indices.len() - before) as i64 };
                }
                *parts[t].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(part);
            });
        });
        for i in 1..indptr.len() {
            indptr[i] += indptr[i - 1];
        }
        let to = allocate(indptr.last().map_or(0, |&n| n as usize))?;
        let (data, indices) = (Shared(to.data.cast::<T>()), Shared(to.indices));
        let indptr = &*indptr;
        run_all(threads, num_runs, &|t| {
            let part = parts[t].lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            if let Some(part) = part {
                let at = indptr[runs[t]] as usize;
                // SAFETY: runs of rows have disjoint ranges of the result, as long as the part has elements.
                unsafe {
                    output::<i64>(indices.at(at).cast(), part.indices.len()).copy_from_slice(&part.indices);
                    output::<T>(data.at(at).cast(), part.data.len()).copy_from_slice(&part.data);
                }
            }
        });
        Ok(Ok(()))
    })
}

/// Approximate number of products that a task computes.
const TASK: usize = 32 * 1024;

/// A pool of working memory for tasks.
struct Scratch<S>(Mutex<Vec<S>>);

impl<S> Scratch<S> {
    fn new() -> Scratch<S> {
        Scratch(Mutex::new(Vec::new()))
    }

    fn with(&self, make: impl FnOnce() -> S, body: impl FnOnce(&mut S)) {
        let lock = || {
            self.0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        };
        let kept = lock().pop();
        let mut state = kept.unwrap_or_else(make);
        body(&mut state);
        lock().push(state);
    }
}

/// Sampled sparse product: `out[k] = sum over j of a[i, j] * b[indices[k], j]` for the stored elements k of each row i of `pattern`, that is
/// `a @ b.T` at the stored positions. It is the gradient of a sparse product.
///
/// # Errors
/// An index of `pattern` that is not a row of `b`, or one of `a` or `b` that is not below `num_columns`.
///
/// # Safety
/// Same as for [`matmul`]; `out` has room for one element per stored one of `pattern`.
pub unsafe fn sampled_matmul(
    threads: &dyn Threads,
    elem: Elem,
    (a, a_data): (&Pattern, Operand),
    (b, b_data): (&Pattern, Operand),
    num_columns: usize,
    pattern: &Pattern,
    out: *mut u8,
) -> Result<(), Fault> {
    assert_eq!(a.num_rows(), pattern.num_rows());
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let (a_data, b_data) = unsafe { (a_data.as_slice::<T>(), b_data.as_slice::<T>()) };
        assert!(a_data.len() == a.indices.len() && b_data.len() == b.indices.len());
        let (rows_found, columns_found) =
            (OutOfRange::below(b.num_rows()), OutOfRange::below(num_columns));
        let to = Shared(out.cast::<T>());
        let scratch: Scratch<RefCell<Vec<T>>> = Scratch::new();
        pattern.for_rows(threads, 16, &|rows| {
            scratch.with(|| RefCell::new(filled(num_columns, T::ZERO)), |row| {
                let row = row.get_mut();
                for i in rows {
                    for k in a.row(i) {
                        if let Some(j) = columns_found.check(a.indices[k]) {
                            row[j] = row[j].plus(a_data[k]);
                        }
                    }
                    for k in pattern.row(i) {
                        let mut sum = T::ZERO;
                        if let Some(r) = rows_found.check(pattern.indices[k]) {
                            for q in b.row(r) {
                                if let Some(j) = columns_found.check(b.indices[q]) {
                                    sum = sum.plus(row[j].times(b_data[q]));
                                }
                            }
                        }
                        // SAFETY: rows are disjoint.
                        unsafe { *to.at(k) = sum };
                    }
                    for k in a.row(i) {
                        if let Some(j) = columns_found.check(a.indices[k]) {
                            row[j] = T::ZERO;
                        }
                    }
                }
            });
        });
        rows_found.result().and_then(|()| columns_found.result())
    })
}
