//! Ragged rows: reductions, running sums, softmax, sorting and products of segments, and conversions to and from padded form.
//!
//! Segment `s` is the rows `offsets[s]..offsets[s + 1]` of dense `(rows, inner)` data. Work is split by rows, not by segments, so that one long
//! segment uses all threads. The partition depends only on the sizes, so results do not depend on the number of threads.

mod fold;
mod order;
mod product;
mod rows;
mod scan;
mod softmax;

#[cfg(test)]
mod tests;

pub use fold::{Fold, fold, folds};
pub use order::argsort;
pub use product::{matmul, outer};
pub use rows::{expand, pad, unpad};
pub use scan::cumsum;
pub use softmax::{softmax, softmax_backward};

use crate::Threads;

/// Elements per task: enough to be worth scheduling, few enough to balance.
const TASK: usize = 1 << 14;

/// Dense rows in segments.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a> {
    /// Index of the first row of each segment, then the number of rows: starts with 0 and does not decrease.
    pub offsets: &'a [i64],
    /// Elements of a row.
    pub inner: usize,
}

/// Why offsets are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// They are empty; even without segments there is the offset 0.
    Empty,
    /// The first offset, given here, is not 0.
    First(i64),
    /// The offset at this position is smaller than the one before.
    Decreases(usize),
    /// The last offset, given here, is not the number of rows.
    Last(i64),
}

/// Checks offsets into `rows` rows.
///
/// # Errors
/// The first reason why they are invalid.
pub fn check(offsets: &[i64], rows: usize) -> Result<(), Malformed> {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(Malformed::Empty);
    };
    if first != 0 {
        return Err(Malformed::First(first));
    }
    if let Some(at) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(Malformed::Decreases(at + 1));
    }
    if last != rows as i64 {
        return Err(Malformed::Last(last));
    }
    Ok(())
}

impl Segments<'_> {
    /// Number of segments.
    pub fn count(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.last().map_or(0, |&last| last as usize)
    }

    /// Rows of segment `s`.
    fn range(&self, s: usize) -> std::ops::Range<usize> {
        self.offsets[s] as usize..self.offsets[s + 1] as usize
    }

    /// The segment that contains row `r`.
    fn of_row(&self, r: usize) -> usize {
        self.offsets.partition_point(|&o| o <= r as i64) - 1
    }

    /// Rows per task.
    fn task_rows(&self) -> usize {
        (TASK / self.inner.max(1)).max(1)
    }

    /// Calls `piece(segment, rows)` for the parts of segments within `rows`, in order; empty segments have none.
    fn pieces(
        &self,
        rows: std::ops::Range<usize>,
        mut piece: impl FnMut(usize, std::ops::Range<usize>),
    ) {
        let mut row = rows.start;
        if row >= rows.end {
            return;
        }
        let mut s = self.of_row(row);
        while row < rows.end {
            let end = (self.offsets[s + 1] as usize).min(rows.end);
            if end > row {
                piece(s, row..end);
                row = end;
            }
            s += 1;
        }
    }

    /// Runs `task(first row..end)` for all tasks.
    fn each_task(
        &self,
        threads: &dyn Threads,
        task: &(dyn Fn(usize, std::ops::Range<usize>) + Sync),
    ) {
        let (rows, step) = (self.rows(), self.task_rows());
        run(threads, rows.div_ceil(step), &|t| {
            task(t, t * step..((t + 1) * step).min(rows));
        });
    }

    /// Segments that are large enough for several tasks each; and ranges of the other segments with about the rows of one task.
    fn groups(&self, rows: usize) -> (Vec<usize>, Vec<std::ops::Range<usize>>) {
        let (mut long, mut groups) = (Vec::new(), Vec::new());
        let (mut start, mut taken) = (0, 0);
        for s in 0..self.count() {
            let len = self.range(s).len();
            if len > 4 * rows {
                if start < s {
                    groups.push(start..s);
                }
                long.push(s);
                (start, taken) = (s + 1, 0);
                continue;
            }
            taken += len;
            if taken >= rows {
                groups.push(start..s + 1);
                (start, taken) = (s + 1, 0);
            }
        }
        if start < self.count() {
            groups.push(start..self.count());
        }
        (long, groups)
    }
}

/// Runs `n` tasks; a single task runs on the calling thread.
fn run(threads: &dyn Threads, n: usize, task: &(dyn Fn(usize) + Sync)) {
    match n {
        0 => {}
        1 => task(0),
        n => threads.run(n, task),
    }
}
