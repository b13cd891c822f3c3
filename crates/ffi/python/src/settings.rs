//! Process-wide settings: the promotion mode and the random seed.

use mxnet::tensor::{Promotion, promotion};
use pyo3::prelude::*;

use crate::device::PyDevice;

/// Whether dtypes promote exactly as NumPy 2's do.
#[pyfunction]
pub fn numpy_promotion() -> bool {
    promotion() == Promotion::NumPy
}

/// Chooses between NumPy 2's promotion (True) and MXNet's; returns what it was.
#[pyfunction]
pub fn set_numpy_promotion(on: bool) -> bool {
    let mode = if on { Promotion::NumPy } else { Promotion::Mx };
    mxnet::tensor::set_promotion(mode) == Promotion::NumPy
}

/// Where this thread's new arrays are made.
#[pyfunction]
pub fn current_device() -> PyDevice {
    PyDevice(mxnet::ops::interp::current_device())
}

/// Chooses where this thread's new arrays are made; returns what it was.
#[pyfunction]
pub fn set_current_device(device: &PyDevice) -> PyDevice {
    PyDevice(mxnet::ops::interp::set_current_device(device.0))
}

/// Starts the global stream of random numbers anew.
#[pyfunction]
pub fn seed(seed: u64) {
    mxnet::ops::random::seed(seed);
}

/// Seed of the global stream of random numbers and the position of its next draw.
#[pyfunction]
pub fn random_state() -> (u64, u64) {
    let state = mxnet::ops::random::state();
    (state.seed, state.offset)
}

/// Goes on with the global stream of random numbers from what `random_state` returned.
#[pyfunction]
pub fn set_random_state(seed: u64, offset: u64) {
    mxnet::ops::random::set_state(mxnet::ops::RngState { seed, offset });
}
