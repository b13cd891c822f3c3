//! Sequences of samples: differences, convolutions of one axis, division of polynomials, values between points. Transforms are in `fft`.

mod between;
mod convolve;
mod diff;
mod division;

pub use between::*;
pub use convolve::*;
pub use diff::*;
pub use division::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &DIFF,
    &EDIFF1D,
    &CONVOLVE,
    &CORRELATE,
    &SLIDING_DOT,
    &POLYNOMIAL_DIVISION,
    &INTERP,
    &INTERPOLATED,
];
