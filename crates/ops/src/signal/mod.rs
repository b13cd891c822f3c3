//! Sequences of samples: differences, convolutions of one axis, values between points. Transforms are in `fft`.

mod between;
mod convolve;
mod diff;

pub use between::*;
pub use convolve::*;
pub use diff::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &DIFF,
    &EDIFF1D,
    &CONVOLVE,
    &CORRELATE,
    &SLIDING_DOT,
    &INTERP,
    &INTERPOLATED,
];
