//! Sorting, selecting, searching, positions of extremes, counting.
//!
//! The kernels sort contiguous rows; operators move the axis to the end and back. Gradients of sorted values are gathers. The permutation is
//! recomputed from the input, so only the input is saved.

mod bin_rules;
mod bins;
mod extreme;
mod histogram;
mod isin;
mod lexsort;
mod nan_quantile;
mod quantile;
mod rows;
mod search;
mod sort;
mod statistics;
mod unique;

pub use bins::{BIN_COUNTS, BIN_NUMBERS};
pub use extreme::{ARGMAX, ARGMIN};
pub use histogram::{HISTOGRAM, HISTOGRAM_BIN_EDGES};
pub use isin::CONTAINS;
pub use lexsort::{LEXSORT, LEXSORT_ROWS};
pub use nan_quantile::{NANMEDIAN, NANQUANTILE};
pub use quantile::{MEDIAN, QUANTILE};
pub use rows::{
    ARGPARTITION_ROWS, ARGSORT_ROWS, PARTITION_ROWS, SORT_ROWS, TOPK_MASK, TOPK_ROWS,
    try_sort_in_place,
};
pub use search::{BINCOUNT, DIGITIZE, SEARCH_ROWS, SEARCHSORTED};
pub use sort::{ARGPARTITION, ARGSORT, PARTITION, SORT, TOPK, argsort};
pub use statistics::{ARGSELECT_EACH, ARGSELECT_ROWS, SELECT_EACH, SELECT_ROWS};
pub use unique::{UNIQUE_PARTS, UNIQUE_RUNS, UNIQUE_SORTED};

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &SORT_ROWS,
    &ARGSORT_ROWS,
    &PARTITION_ROWS,
    &ARGPARTITION_ROWS,
    &TOPK_ROWS,
    &TOPK_MASK,
    &SORT,
    &ARGSORT,
    &PARTITION,
    &ARGPARTITION,
    &TOPK,
    &ARGMAX,
    &ARGMIN,
    &SEARCH_ROWS,
    &SEARCHSORTED,
    &DIGITIZE,
    &BINCOUNT,
    &LEXSORT,
    &LEXSORT_ROWS,
    &BIN_NUMBERS,
    &BIN_COUNTS,
    &UNIQUE_PARTS,
    &UNIQUE_RUNS,
    &UNIQUE_SORTED,
    &CONTAINS,
    &SELECT_ROWS,
    &ARGSELECT_ROWS,
    &SELECT_EACH,
    &ARGSELECT_EACH,
    &MEDIAN,
    &QUANTILE,
    &NANMEDIAN,
    &NANQUANTILE,
    &HISTOGRAM_BIN_EDGES,
    &HISTOGRAM,
];
