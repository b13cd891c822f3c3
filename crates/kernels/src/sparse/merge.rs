//! Two patterns at a time: unions, intersections, and elements of one looked up in the other. The columns of every row ascend in both.

use super::pattern::Pattern;
use crate::Threads;
use crate::real::Shared;
use crate::scratch;

/// Which positions a merge returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Union {
    /// Those in either pattern.
    Either,
    /// Those in both patterns.
    Both,
}

/// A merged pattern. For each of its elements, the positions in both patterns; -1 if it is not in a pattern.
pub struct Merged {
    /// Column indices.
    pub indices: Vec<i64>,
    /// Row offsets.
    pub indptr: Vec<i64>,
    /// Positions in the first pattern.
    pub lhs: Vec<i64>,
    /// Positions in the second one.
    pub rhs: Vec<i64>,
}

/// Merges two patterns with equally many rows.
pub fn merge(threads: &dyn Threads, a: &Pattern, b: &Pattern, union: Union) -> Merged {
    assert_eq!(a.num_rows(), b.num_rows());
    let num_rows = a.num_rows();
    let mut counts = scratch::filled(num_rows + 1, 0_i64);
    let to = Shared(counts.as_mut_ptr());
    a.for_rows(threads, 2, &|rows| {
        for i in rows {
            let mut count = 0;
            walk(a, b, i, union, |_, _, _| count += 1);
            // SAFETY: each row belongs to one task.
            unsafe { *to.at(i + 1) = count };
        }
    });
    for i in 0..num_rows {
        counts[i + 1] += counts[i];
    }
    let len = counts[num_rows] as usize;
    let mut merged = Merged {
        indices: scratch::filled(len, 0),
        indptr: counts,
        lhs: scratch::filled(len, 0),
        rhs: scratch::filled(len, 0),
    };
    let (indices, lhs, rhs) = (
        Shared(merged.indices.as_mut_ptr()),
        Shared(merged.lhs.as_mut_ptr()),
        Shared(merged.rhs.as_mut_ptr()),
    );
    let indptr = &merged.indptr;
    a.for_rows(threads, 2, &|rows| {
        for i in rows {
            let mut at = indptr[i] as usize;
            walk(a, b, i, union, |column, left, right| {
                // SAFETY: each row has as many entries as were counted, disjoint from those of other rows.
                unsafe {
                    *indices.at(at) = column;
                    *lhs.at(at) = left;
                    *rhs.at(at) = right;
                }
                at += 1;
            });
        }
    });
    merged
}

/// Visits the merged elements of row `i`: column and both positions.
#[inline(always)]
fn walk(a: &Pattern, b: &Pattern, i: usize, union: Union, mut visit: impl FnMut(i64, i64, i64)) {
    let (mut p, mut q) = (a.row(i), b.row(i));
    loop {
        match (p.is_empty(), q.is_empty()) {
            (false, false) => {
                let (j, k) = (a.indices[p.start], b.indices[q.start]);
                let column = j.min(k);
                let left = if j == column { p.start as i64 } else { -1 };
                let right = if k == column { q.start as i64 } else { -1 };
                p.start += usize::from(left >= 0);
                q.start += usize::from(right >= 0);
                if union == Union::Either || (left >= 0 && right >= 0) {
                    visit(column, left, right);
                }
            }
            _ if union == Union::Both => return,
            (false, true) => {
                visit(a.indices[p.start], p.start as i64, -1);
                p.start += 1;
            }
            (true, false) => {
                visit(b.indices[q.start], -1, q.start as i64);
                q.start += 1;
            }
            (true, true) => return,
        }
    }
}

/// For each element of `wanted`, its position in `pattern`, or -1 if it is not there.
pub fn find_entries(threads: &dyn Threads, wanted: &Pattern, pattern: &Pattern, out: &mut [i64]) {
    assert!(wanted.num_rows() == pattern.num_rows() && out.len() == wanted.indices.len());
    let to = Shared(out.as_mut_ptr());
    wanted.for_rows(threads, 2, &|rows| {
        for i in rows {
            let mut candidates = pattern.row(i);
            for k in wanted.row(i) {
                let column = wanted.indices[k];
                while !candidates.is_empty() && pattern.indices[candidates.start] < column {
                    candidates.start += 1;
                }
                let is_there =
                    !candidates.is_empty() && pattern.indices[candidates.start] == column;
                let position = if is_there {
                    candidates.start as i64
                } else {
                    -1
                };
                // SAFETY: rows are disjoint.
                unsafe { *to.at(k) = position };
            }
        }
    });
}

/// For each point (row, column), its position in `pattern`, or -1 if it is not there. Invalid rows give -1.
pub fn find_points(pattern: &Pattern, rows: &[i64], columns: &[i64], out: &mut [i64]) {
    assert!(rows.len() == columns.len() && out.len() == rows.len());
    for ((&i, &j), to) in rows.iter().zip(columns).zip(out) {
        *to = -1;
        if (i as u64) < pattern.num_rows() as u64 {
            let range = pattern.row(i as usize);
            if let Ok(at) = pattern.indices[range.clone()].binary_search(&j) {
                *to = (range.start + at) as i64;
            }
        }
    }
}
