//! Creation of arrays: constants, ranges, identities.

mod constant;
mod pattern;
mod range;

pub use constant::*;
pub use mxnet_core::creation::{full, ones, zeros};
pub use pattern::*;
pub use range::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &ZEROS,
    &ONES,
    &EMPTY,
    &FULL,
    &ZEROS_LIKE,
    &ONES_LIKE,
    &EMPTY_LIKE,
    &FULL_LIKE,
    &ZEROED,
    &FILLED,
    &ARANGE,
    &RAMP,
    &LINSPACE,
    &VANDER,
    &RAMPS,
    &EYE,
    &EYE_WITH_ORDER,
    &GRID_POSITIONS,
    &TRIANGLE_POSITIONS,
    &IDENTITY,
    &TRI,
];
