//! Sorting of stored elements: the transposed pattern, and positions sorted by row and column.

use super::pattern::{Fault, OutOfRange, Pattern, run_all, runs};
use crate::real::Shared;
use crate::{Threads, scratch};

/// The pattern of the transposed matrix: the rows of each column, and for each new element its position in the original.
///
/// Blocks of rows count their columns and then write to the positions that follow from the counts. An element's position depends on the pattern
/// alone.
///
/// # Errors
/// An index outside `num_columns`.
pub fn transpose(
    threads: &dyn Threads,
    pattern: &Pattern,
    num_columns: usize,
    indices: &mut [i64],
    indptr: &mut [i64],
    positions: &mut [i64],
) -> Result<(), Fault> {
    assert!(indptr.len() == num_columns + 1 && indices.len() == pattern.indices.len());
    assert!(positions.len() == indices.len());
    let stored = pattern.indices.len();
    // Each block has a counter for each column: no more counters than stored elements.
    let most = (stored / (32 * 1024)).min(stored / num_columns.max(1));
    let blocks = threads.count().min(most).max(1);
    let bounds = runs(pattern.num_rows(), stored.div_ceil(blocks), |i| {
        pattern.row_start(i)
    });
    let found = OutOfRange::below(num_columns);
    let mut next: Vec<Vec<i64>> = bounds
        .iter()
        .skip(1)
        .map(|_| scratch::filled(num_columns, 0))
        .collect();
    let tables = Shared(next.as_mut_ptr());
    run_all(threads, bounds.len() - 1, &|t| {
        // SAFETY: each block has its own counters.
        let counts = unsafe { &mut *tables.at(t) };
        for &j in &pattern.indices[pattern.row_start(bounds[t])..pattern.row_start(bounds[t + 1])] {
            if let Some(j) = found.check(j) {
                counts[j] += 1;
            }
        }
    });
    if found.result().is_err() || num_columns == 0 && stored > 0 {
        let at = pattern
            .indices
            .iter()
            .position(|&j| found.check(j).is_none());
        return Err(Fault::OutOfRange(at, pattern.indices[at.unwrap_or(0)]));
    }
    let mut end = 0;
    for (j, start) in indptr.iter_mut().enumerate() {
        *start = end;
        for counts in next.iter_mut().filter(|counts| j < counts.len()) {
            end += std::mem::replace(&mut counts[j], end);
        }
    }
    let (tables, indices, positions) = (
        Shared(next.as_mut_ptr()),
        Shared(indices.as_mut_ptr()),
        Shared(positions.as_mut_ptr()),
    );
    run_all(threads, bounds.len() - 1, &|t| {
        // SAFETY: each block has its own counters.
        let next = unsafe { &mut *tables.at(t) };
        for i in bounds[t]..bounds[t + 1] {
            for k in pattern.row(i) {
                let to = &mut next[pattern.indices[k] as usize];
                // SAFETY: the counts give each stored element a different position, below the number of stored elements.
                unsafe {
                    *indices.at(*to as usize) = i as i64;
                    *positions.at(*to as usize) = k as i64;
                }
                *to += 1;
            }
        }
    });
    Ok(())
}

/// Offsets of the elements of each key, for `starts.len() - 1` keys.
fn starts(keys: &[i64], starts: &mut [i64]) -> Result<(), Fault> {
    starts.fill(0);
    let found = OutOfRange::below(starts.len() - 1);
    for &key in keys {
        if let Some(key) = found.check(key) {
            starts[key + 1] += 1;
        }
    }
    if let Err(Fault::OutOfRange(_, index)) = found.result() {
        let at = keys.iter().position(|&key| key == index);
        return Err(Fault::OutOfRange(at, index));
    }
    if starts.len() == 1 && !keys.is_empty() {
        return Err(Fault::OutOfRange(Some(0), keys[0]));
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    Ok(())
}

/// Positions of the elements sorted by `rows`, then by `columns`; stable. Also writes the row offsets.
///
/// # Errors
/// An index outside its axis.
pub fn order(
    rows: &[i64],
    columns: &[i64],
    num_columns: usize,
    positions: &mut [i64],
    indptr: &mut [i64],
) -> Result<(), Fault> {
    assert!(rows.len() == columns.len() && positions.len() == rows.len());
    let found = OutOfRange::below(num_columns);
    let in_range = columns.iter().position(|&j| found.check(j).is_none());
    if let Some(at) = in_range {
        return Err(Fault::OutOfRange(Some(at), columns[at]));
    }
    starts(rows, indptr)?;
    let mut next = scratch::collected(indptr.len(), indptr[..indptr.len() - 1].iter().copied());
    for (k, &i) in rows.iter().enumerate() {
        let to = &mut next[i as usize];
        positions[*to as usize] = k as i64;
        *to += 1;
    }
    for bounds in indptr.windows(2) {
        let row = &mut positions[bounds[0] as usize..bounds[1] as usize];
        // Positions ascend so far, so a stable sort keeps equal columns in their order.
        if !row.is_sorted_by_key(|&k| columns[k as usize]) {
            row.sort_by_key(|&k| columns[k as usize]);
        }
    }
    Ok(())
}
