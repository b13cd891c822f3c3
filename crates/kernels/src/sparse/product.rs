//! Products of two sparse matrices.

use std::cell::RefCell;
use std::sync::Mutex;

use super::pattern::{Fault, OutOfRange, Pattern};
use super::value::{Operand, Value, output, with_value};
use crate::real::Shared;
use crate::scratch::filled;
use crate::{Elem, Threads};

/// A sparse product: its pattern, rows ascending, and the bytes of its values.
pub struct Product {
    /// Columns.
    pub indices: Vec<i64>,
    /// Where rows begin.
    pub indptr: Vec<i64>,
}

/// Columns of one row of a product as bits, with a bit for each word of them that is not 0, so that the columns are found in ascending order without
/// sorting.
struct Columns {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Columns {
    fn new(num_columns: usize) -> Columns {
        let words = num_columns.div_ceil(64);
        Columns {
            words: filled(words, 0),
            summary: vec![0; words.div_ceil(64)],
        }
    }

    /// Adds a column; whether it is new.
    #[inline(always)]
    fn insert(&mut self, column: usize) -> bool {
        let word = &mut self.words[column / 64];
        let bit = 1 << (column % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.summary[column / 4096] |= 1 << (column / 64 % 64);
        is_new
    }

    /// Visits the columns in ascending order and forgets them.
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

/// One row of a product while it is summed.
struct Row<T> {
    columns: Columns,
    sums: Vec<T>,
}

/// What one run of rows gives.
struct Part<T> {
    indices: Vec<i64>,
    data: Vec<T>,
}

/// `a @ b`, where `b` has `num_columns` columns. `place` is told the number of stored elements and gives the memory for their values.
///
/// Rows of the result ascend. A row is summed in the order of storage (Gustavson, ACM TOMS 4 (1978), 250-269).
///
/// # Errors
/// An index of `a` that is no row of `b`, or one of `b` beyond `num_columns`.
///
/// # Safety
/// `a_data` and `b_data` hold one element of `elem` for each stored one; at what `place` gives as many as it was told can be written. `elem` is one of
/// those that sparse kernels compute in.
pub unsafe fn matmul<E>(
    threads: &dyn Threads,
    elem: Elem,
    (a, a_data): (&Pattern, Operand),
    (b, b_data): (&Pattern, Operand),
    num_columns: usize,
    place: impl FnOnce(usize) -> Result<*mut u8, E>,
) -> Result<Result<Product, Fault>, E> {
    with_value!(elem, T => {
        // SAFETY: the caller's.
        let (a_data, b_data) = unsafe { (a_data.as_slice::<T>(), b_data.as_slice::<T>()) };
        assert!(a_data.len() == a.indices.len() && b_data.len() == b.indices.len());
        let (rows_found, columns_found) =
            (OutOfRange::below(b.num_rows()), OutOfRange::below(num_columns));
        // Rows of about the same number of products.
        let mut work = filled(a.num_rows() + 1, 0_i64);
        for i in 0..a.num_rows() {
            let of_row: usize = (a.row(i).filter_map(|k| rows_found.check(a.indices[k])))
                .map(|j| b.row(j).len())
                .sum();
            work[i + 1] = work[i] + of_row as i64 + 4;
        }
        let runs = runs_of(&work, 32 * 1024);
        let num_runs = runs.len() - 1;
        let parts: Vec<Mutex<Option<Part<T>>>> = (0..num_runs).map(|_| Mutex::new(None)).collect();
        let mut indptr = filled(a.num_rows() + 1, 0_i64);
        let counts = Shared(indptr.as_mut_ptr());
        let scratch: Scratch<Row<T>> = Scratch::new();
        let run = |t: usize| {
            scratch.with(|| Row { columns: Columns::new(num_columns), sums: filled(num_columns, T::ZERO) }, |row| {
                let mut part = Part { indices: Vec::new(), data: Vec::new() };
                for i in runs[t]..runs[t + 1] {
                    let before = part.indices.len();
                    for k in a.row(i) {
                        let Some(j) = rows_found.check(a.indices[k]) else { continue };
                        let factor = a_data[k];
                        let of_b = b.row(j);
                        for (&c, &v) in b.indices[of_b.clone()].iter().zip(&b_data[of_b]) {
                            let Some(c) = columns_found.check(c) else { continue };
                            let product = factor.times(v);
                            let sum = &mut row.sums[c];
                            *sum = if row.columns.insert(c) { product } else { sum.plus(product) };
                        }
                    }
                    let Row { columns, sums } = row;
                    columns.drain(|c| {
                        part.indices.push(c as i64);
                        part.data.push(sums[c]);
                    });
                    // SAFETY: each row is one task's.
                    unsafe { *counts.at(i + 1) = (part.indices.len() - before) as i64 };
                }
                *parts[t].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(part);
            });
        };
        run_all(threads, num_runs, &run);
        if let Err(fault) = rows_found.result().and_then(|()| columns_found.result()) {
            return Ok(Err(fault));
        }
        for i in 1..indptr.len() {
            indptr[i] += indptr[i - 1];
        }
        let len = indptr.last().map_or(0, |&n| n as usize);
        let data = Shared(place(len)?.cast::<T>());
        let mut indices = filled(len, 0_i64);
        let to = Shared(indices.as_mut_ptr());
        run_all(threads, num_runs, &|t| {
            let part = parts[t].lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            if let Some(part) = part {
                let at = indptr[runs[t]] as usize;
                // SAFETY: runs of rows have places that lie apart, as many as the part has elements.
                unsafe {
                    output::<i64>(to.at(at).cast(), part.indices.len()).copy_from_slice(&part.indices);
                    output::<T>(data.at(at).cast(), part.data.len()).copy_from_slice(&part.data);
                }
            }
        });
        Ok(Ok(Product { indices, indptr }))
    })
}

fn run_all(threads: &dyn Threads, n: usize, task: &(dyn Fn(usize) + Sync)) {
    if n < 2 || threads.count() < 2 {
        return (0..n).for_each(task);
    }
    threads.run(n, task);
}

/// Rows cut where their summed work passes multiples of `task`.
fn runs_of(work: &[i64], task: i64) -> Vec<usize> {
    let mut runs = vec![0];
    let mut start = 0;
    for i in 1..work.len() {
        if work[i] - work[start] >= task || i + 1 == work.len() {
            runs.push(i);
            start = i;
        }
    }
    runs
}

/// Working memory that tasks hand to one another.
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

/// `out[k] = sum over j of a[i, j] * b[indices[k], j]` for the stored elements k of each row i of `pattern`: the product of `a` with the transposed `b`
/// at stored places. It is the gradient of a sparse product.
///
/// # Errors
/// An index of `pattern` that is no row of `b`, or one of `a` or `b` beyond `num_columns`.
///
/// # Safety
/// As for [`matmul`]; at `out` one element for each stored one of `pattern` can be written.
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
        // SAFETY: the caller's.
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
                        // SAFETY: rows lie apart.
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
