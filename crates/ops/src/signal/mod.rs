//! Functions of sampled sequences: differences, 1-d convolution, polynomial division, interpolation. Fourier transforms are in `fft`.

mod convolve;
mod diff;
mod division;
mod interp1d;
mod trapezoid;

pub use convolve::*;
pub use diff::*;
pub use division::*;
pub use interp1d::*;
pub use trapezoid::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &DIFF,
    &EDIFF1D,
    &TRAPEZOID,
    &CONVOLVE,
    &CORRELATE,
    &SLIDING_DOT,
    &POLYNOMIAL_DIVISION,
    &INTERP,
    &INTERPOLATED,
];
