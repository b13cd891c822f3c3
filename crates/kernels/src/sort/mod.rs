//! Sorting, selecting and searching in contiguous rows; the caller moves the axis to the end.
//!
//! Elements are mapped to signed integer keys with the same order (`key`): NaN is largest, and descending order complements the bits. Rows of keys
//! are sorted by a vectorised quicksort (`quicksort`, `lanes`), one row per task or one long row on all threads. For argsort, the position is packed
//! into the integer (`numbered`). Bytes are sorted by counting, complex numbers in NumPy's order (`complex`).

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
