//! Reductions over axes. `argmax` and `argmin` are in `order`.

mod covariance;
mod extreme;
mod fold;
mod masked;
mod moments;
mod nan_moments;
mod nans;
mod scan;

pub use covariance::*;
pub use extreme::*;
pub use fold::*;
pub use masked::*;
pub use moments::*;
pub use nan_moments::*;
pub use nans::*;
pub use scan::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &SUM,
    &PROD,
    &MEAN,
    &ANY,
    &ALL,
    &COUNT_NONZERO,
    &MAX,
    &MIN,
    &PTP,
    &NAN_SUM,
    &SUM_SQUARES,
    &EUCLIDEAN_NORM,
    &NAN_MAX,
    &NAN_MIN,
    &VAR,
    &STD,
    &CUMSUM,
    &CUMPROD,
    &NANCUMSUM,
    &NANCUMPROD,
    &CUMMAX,
    &CUMMIN,
    &CUMULATIVE_SUM,
    &CUMULATIVE_PROD,
    &MASKED_SUM,
    &MASKED_PROD,
    &MASKED_MAX,
    &MASKED_MIN,
    &MASKED_ANY,
    &MASKED_ALL,
    &MASKED_MEAN,
    &MASKED_VAR,
    &MASKED_STD,
    &NANMEAN,
    &NANVAR,
    &NANSTD,
    &AVERAGE,
    &COV,
    &CORRCOEF,
];
