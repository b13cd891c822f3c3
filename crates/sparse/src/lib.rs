//! Operators on the components of sparse arrays: values, int64 column indices, int64 row offsets. A sparse array is a structure of these ordinary
//! arrays; recording, tracing and devices see only calls of these operators.
//!
//! The pattern of a CSR array is `(indices, indptr)`: row `i` stores the columns `indices[indptr[i]..indptr[i + 1]]`. CSC is CSR of the transposed
//! matrix. COO has one array of positions per axis. Conversions compute a pattern and gather the values, so that gradients follow from those of the
//! gather.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod families;
mod gather;
mod operand;
mod pattern;
mod product;
mod segment;
mod sum;

pub use gather::{GATHER_OR_ZERO, SCATTER_OR_SKIP};
pub use pattern::{
    CONCATENATED_RANGES, COO_ORDER, CSR_CHECK, CSR_FIND, CSR_FIND_POINTS, CSR_MERGE, CSR_ROWS,
    CSR_TRANSPOSE,
};
pub use product::{CSR_MATMUL, CSR_MATMUL_DENSE, CSR_SAMPLED_DENSE, CSR_SAMPLED_MATMUL};
pub use segment::{SEGMENT_MAX, SEGMENT_MIN};
pub use sum::CSR_ADD;
