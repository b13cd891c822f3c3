//! Discrete Fourier transforms along one axis or several, and the functions on their frequencies.

mod axis;
mod grid;
mod line;
mod several;

pub use axis::*;
pub use grid::*;
pub use line::*;
pub use several::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &FFT_LINES,
    &RFFT_LINES,
    &IRFFT_LINES,
    &FFT,
    &IFFT,
    &RFFT,
    &IRFFT,
    &HFFT,
    &IHFFT,
    &FFT2,
    &IFFT2,
    &RFFT2,
    &IRFFT2,
    &FFTN,
    &IFFTN,
    &RFFTN,
    &IRFFTN,
    &FFTFREQ,
    &RFFTFREQ,
    &FFTSHIFT,
    &IFFTSHIFT,
];
