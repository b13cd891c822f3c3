//! Reductions: one value from many, along axes. Positions of extremes are with sorting.

mod extreme;
mod fold;
mod moments;
mod scan;

pub use extreme::*;
pub use fold::*;
pub use moments::*;
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
    &VAR,
    &STD,
    &CUMSUM,
    &CUMPROD,
    &CUMMAX,
    &CUMMIN,
];
