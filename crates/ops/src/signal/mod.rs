//! Sequences of samples: differences and convolutions of one axis. Transforms are in `fft`.

mod convolve;
mod diff;

pub use convolve::*;
pub use diff::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[&DIFF, &CONVOLVE, &CORRELATE];
