//! Kernels on compressed sparse rows: products, merges, sorting, extrema of segments.
//!
//! A pattern ([`Pattern`]) holds the stored columns of each row, one row after the other. Its offsets are checked when it is created. Every loop
//! checks the columns that it reads, because index arrays belong to users, who may have overwritten them. Each output element is computed by one task
//! in storage order, so results do not depend on the number of threads.

mod dense;
mod merge;
mod order;
mod pattern;
mod product;
mod scatter;
mod segment;
mod sum;
mod value;
mod vector;

pub use dense::{Heads, matmul_dense, sampled_dense};
pub use merge::{Merged, Union, find_entries, find_points, merge};
pub use order::{order, transpose};
pub use pattern::{Fault, Pattern, check, row_numbers};
pub use product::{matmul, sampled_matmul};
pub use scatter::transposed_matmul_dense;
pub use segment::{Extremum, add_rows, extreme_segments};
pub use sum::{Sign, add};
pub use value::{Operand, Output};
