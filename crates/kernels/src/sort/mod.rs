//! Sorting, selecting and searching in contiguous rows; the caller moves the axis to the end.
//!
//! Elements become integer keys whose order is theirs (`key`): NaN after everything, complex numbers as NumPy orders them, descending as
//! complemented keys. Rows are then sorted by radix or comparison (`radix`), one row per task or one long row on all threads.

mod key;
mod member;
mod radix;
mod rows;
mod search;
mod select;

pub use member::{Lookup, contains};
pub use rows::{Chosen, Order, Rows, argsort, sort, topk};
pub use rows::{argpartition, partition};
pub use search::{Nans, Side, runs, search_sorted};
pub use select::{argselect, select};

#[cfg(test)]
mod tests;
