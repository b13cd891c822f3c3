//! Sorting, selecting and searching in contiguous rows; the caller moves the axis to the end.
//!
//! Elements become signed integers whose order is theirs (`key`): NaN after everything, descending as complements. Rows of these are sorted
//! by a quicksort in registers (`quicksort`, `lanes`), one row per task or one long row on all threads; positions are sorted as parts of such integers
//! (`numbered`), bytes by counting, complex numbers as NumPy orders them (`complex`).

mod bins;
mod complex;
mod isin;
mod key;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod numbered;
mod quicksort;
mod rows;
mod runs;
mod search;
mod select;

pub use bins::{Bins, Spacing, bin_numbers, extremes, histogram, occurrences, weighted};
pub use isin::{Lookup, contains};
pub use rows::{Chosen, Order, Rows, argsort, sort, topk};
pub use rows::{argpartition, partition};
pub use runs::{Nans, Runs};
pub use search::{Side, search_sorted};
pub use select::{RowRanks, argselect, argselect_each, select, select_each};

#[cfg(test)]
mod tests;
