//! Ragged arrays: segments of rows with different lengths, as dense values and offsets.
//!
//! Segment `s` is the rows `offsets[s]..offsets[s + 1]` of the values. The operators take values and offsets, which are ordinary arrays, so that
//! recording, tracing, devices and files need no special cases. Elementwise functions are called on the values. The user's class is written in Python
//! (`mxnet.ragged`).

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod attention;
mod expand;
mod fold;
mod offsets;
mod order;
mod product;
mod scan;
mod softmax;

use linkme::distributed_slice;
use mxnet_core::registry::{Family, LIBRARIES};

pub use attention::{RAGGED_ATTENTION, RAGGED_ATTENTION_GRADIENT};
pub use expand::{RAGGED_EXPAND, RAGGED_PAD, RAGGED_UNPAD};
pub use fold::{RAGGED_MAX, RAGGED_MIN, RAGGED_PROD, RAGGED_SUM};
pub use order::RAGGED_ARGSORT;
pub use product::{RAGGED_MATMUL, RAGGED_OUTER};
pub use scan::RAGGED_CUMSUM;
pub use softmax::{RAGGED_LOG_SOFTMAX, RAGGED_SOFTMAX, RAGGED_SOFTMAX_GRADIENT};

/// The families of this crate.
static FAMILIES: &[Family] = &[Family {
    name: "ragged",
    ops: &[
        &RAGGED_SUM,
        &RAGGED_PROD,
        &RAGGED_MAX,
        &RAGGED_MIN,
        &RAGGED_CUMSUM,
        &RAGGED_EXPAND,
        &RAGGED_PAD,
        &RAGGED_UNPAD,
        &RAGGED_SOFTMAX,
        &RAGGED_LOG_SOFTMAX,
        &RAGGED_SOFTMAX_GRADIENT,
        &RAGGED_ARGSORT,
        &RAGGED_MATMUL,
        &RAGGED_OUTER,
        &RAGGED_ATTENTION,
        &RAGGED_ATTENTION_GRADIENT,
    ],
}];

#[distributed_slice(LIBRARIES)]
static RAGGED: &[Family] = FAMILIES;
