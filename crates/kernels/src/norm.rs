//! Normalisation and its gradients: over a batch per channel (`batch`), and over rows (`row`), as in layer, RMS, group and instance norm.
//!
//! Means and variances take two passes over cached data, sum in SIMD lanes, and combine in f64.

mod batch;
mod columns;
mod loops;
mod row;

#[cfg(test)]
mod tests;

pub(crate) use columns::sum_columns;
#[cfg(test)]
pub(crate) use loops::scale_shift;

pub use batch::{
    BatchNorm, Statistics, batch_norm_backward, batch_norm_inference, batch_norm_training,
    over_deviations,
};
pub use row::{
    Affine, Centre, RowNorm, row_norm, row_norm_backward, row_norm_backward_scratch_bytes,
};
