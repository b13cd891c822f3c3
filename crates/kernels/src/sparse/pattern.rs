//! Sparsity patterns: which columns of each row are stored.

use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::Threads;
use crate::real::Shared;

/// Why index arrays are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There are no offsets.
    NoOffsets,
    /// The first offset, given here, is not 0.
    FirstOffset(i64),
    /// An offset is smaller than the one before it: position, offset before, offset.
    Decreasing(usize, i64, i64),
    /// The last offset is not the number of stored elements: offset, number of elements.
    LastOffset(i64, usize),
    /// An index is outside its axis: position (`None` if it is not known), index.
    OutOfRange(Option<usize>, i64),
}

/// The stored columns of each row, one row after the other.
#[derive(Clone, Copy)]
pub struct Pattern<'a> {
    /// Column indices.
    pub indices: &'a [i64],
    /// Row `i` is `indices[indptr[i]..indptr[i + 1]]`.
    indptr: &'a [i64],
}

/// Approximate work per task, in elements.
const TASK: usize = 16 * 1024;

impl<'a> Pattern<'a> {
    /// Checks that the offsets begin at 0, do not decrease and end at the number of stored elements.
    ///
    /// # Errors
    /// The first fault.
    pub fn new(indices: &'a [i64], indptr: &'a [i64]) -> Result<Pattern<'a>, Fault> {
        let Some((&first, &last)) = indptr.first().zip(indptr.last()) else {
            return Err(Fault::NoOffsets);
        };
        if first != 0 {
            return Err(Fault::FirstOffset(first));
        }
        // No branch for each offset: the loop is vectorised.
        let pairs = indptr.iter().zip(&indptr[1..]);
        if !pairs.fold(true, |ascend, (a, b)| ascend & (a <= b)) {
            let at = indptr.windows(2).position(|w| w[1] < w[0]).unwrap_or(0);
            return Err(Fault::Decreasing(at + 1, indptr[at], indptr[at + 1]));
        }
        if last as usize != indices.len() {
            return Err(Fault::LastOffset(last, indices.len()));
        }
        Ok(Pattern { indices, indptr })
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Where each row begins, and the end.
    #[inline(always)]
    pub(crate) fn offsets(&self) -> &'a [i64] {
        self.indptr
    }

    /// Positions of the stored elements of row `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> Range<usize> {
        self.indptr[i] as usize..self.indptr[i + 1] as usize
    }

    /// Number of stored elements before row `i`, which may be the end.
    #[inline(always)]
    pub(crate) fn row_start(&self, i: usize) -> usize {
        self.indptr[i] as usize
    }

    /// Splits the rows into runs of about equal work: `width` per stored element, plus a constant per row. Returns the first row of each run, then
    /// the number of rows.
    pub(crate) fn runs(&self, width: usize) -> Vec<usize> {
        let width = width.max(1);
        runs(self.num_rows(), TASK, |i| {
            self.indptr[i] as usize * width + i * 8
        })
    }

    /// Runs `task(rows)` for all rows, in runs of about the same work.
    pub(crate) fn for_rows(
        &self,
        threads: &dyn Threads,
        width: usize,
        task: &(dyn Fn(Range<usize>) + Sync),
    ) {
        let runs = self.runs(width);
        run_all(threads, runs.len() - 1, &|t| task(runs[t]..runs[t + 1]));
    }
}

/// Splits rows into runs, each as short as possible with at least `task` of work. Returns the first row of each run, then the number of rows.
/// `work(i)` is the work of all rows before row i.
pub(crate) fn runs(num_rows: usize, task: usize, work: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut first = 0;
    while first < num_rows {
        let before = work(first);
        let (mut low, mut high) = (first + 1, num_rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if work(middle) - before >= task {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        first = low;
        starts.push(first);
    }
    starts
}

/// Runs `task(0)`, ..., `task(n - 1)`.
pub(crate) fn run_all(threads: &dyn Threads, n: usize, task: &(dyn Fn(usize) + Sync)) {
    if n < 2 || threads.count() < 2 {
        return (0..n).for_each(task);
    }
    threads.run(n, task);
}

/// Stores one of the indices that tasks found out of range.
pub(crate) struct OutOfRange(AtomicI64, i64);

impl OutOfRange {
    /// No index found yet; indices must be below `len`.
    pub(crate) fn below(len: usize) -> OutOfRange {
        OutOfRange(AtomicI64::new(0), len as i64)
    }

    /// The index as a position, or `None` if it is out of range, in which case it is stored.
    #[inline(always)]
    pub(crate) fn check(&self, index: i64) -> Option<usize> {
        if (index as u64) < self.1 as u64 {
            return Some(index as usize);
        }
        // A stored value in range means that no index was found, so the value for "none" must be in range even for length 0.
        self.0.store(index, Ordering::Relaxed);
        None
    }

    /// Whether all of these indices are in range; stores one that is not.
    #[inline(always)]
    pub(crate) fn are_in_range(&self, indices: &[i64]) -> bool {
        // As unsigned numbers, negative indices are large.
        let largest = indices
            .iter()
            .fold(0, |largest, &j| (j as u64).max(largest));
        indices.is_empty() || self.check(largest as i64).is_some()
    }

    /// An error if an index was out of range.
    pub(crate) fn result(&self) -> Result<(), Fault> {
        let found = self.0.load(Ordering::Relaxed);
        if self.1 == 0 || (found as u64) < self.1 as u64 {
            return Ok(());
        }
        Err(Fault::OutOfRange(None, found))
    }
}

/// Checks all indices of a pattern. Returns whether they ascend in each row, and whether they ascend strictly (without duplicates).
///
/// # Errors
/// The first fault.
pub fn check(pattern: &Pattern, num_columns: usize) -> Result<(bool, bool), Fault> {
    let (mut is_sorted, mut is_canonical) = (true, true);
    for i in 0..pattern.num_rows() {
        let row = &pattern.indices[pattern.row(i)];
        if let Some(at) = row.iter().position(|&j| j as u64 >= num_columns as u64) {
            return Err(Fault::OutOfRange(Some(pattern.row(i).start + at), row[at]));
        }
        is_sorted &= row.is_sorted();
        is_canonical &= row.is_sorted_by(|a, b| a < b);
    }
    Ok((is_sorted, is_canonical))
}

/// The row of every stored element.
pub fn row_numbers(threads: &dyn Threads, pattern: &Pattern, out: &mut [i64]) {
    assert_eq!(out.len(), pattern.indices.len());
    let to = Shared(out.as_mut_ptr());
    pattern.for_rows(threads, 1, &|rows| {
        for i in rows {
            let range = pattern.row(i);
            // SAFETY: the pattern's rows are disjoint and end within the elements of `out`.
            unsafe { std::slice::from_raw_parts_mut(to.at(range.start), range.len()) }
                .fill(i as i64);
        }
    });
}
