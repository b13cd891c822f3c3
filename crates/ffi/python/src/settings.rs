//! Settings: the promotion mode, the random seed, reactions to floating-point errors.

use mxnet::core::Error;
use mxnet::core::floats::{self, Reaction, Reactions};
use mxnet::tensor::{Promotion, promotion};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

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

/// How this thread reacts to floating-point errors (division by zero, overflow, underflow, invalid value): 0 ignore, 1 report, 2 raise.
#[pyfunction]
pub fn float_reactions() -> [u8; 4] {
    let now = floats::reactions();
    [now.divide, now.over, now.under, now.invalid].map(|reaction| reaction as u8)
}

/// Chooses how this thread reacts to floating-point errors, in the numbers of `float_reactions`.
#[pyfunction]
pub fn set_float_reactions(reactions: [u8; 4]) {
    let [divide, over, under, invalid] = reactions.map(|number| match number {
        0 => Reaction::Ignore,
        1 => Reaction::Report,
        _ => Reaction::Raise,
    });
    floats::set_reactions(Reactions {
        divide,
        over,
        under,
        invalid,
    });
}

static REPORTER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Installs the function that is called with the sentence of each floating-point error to report.
#[pyfunction]
pub fn install_float_reporter(py: Python<'_>, reporter: Py<PyAny>) {
    let _ = REPORTER.set(py, reporter);
    floats::install(|sentence| {
        Python::attach(|py| {
            let Some(reporter) = REPORTER.get(py) else {
                return Ok(());
            };
            match reporter.call1(py, (sentence,)) {
                Ok(_) => Ok(()),
                // A warning that the user turned into an error: it is raised as it is.
                Err(error) => {
                    error.restore(py);
                    Err(Error::Interrupted)
                }
            }
        })
    });
}

/// Default device of this thread.
#[pyfunction]
pub fn current_device() -> PyDevice {
    PyDevice(mxnet::core::interp::current_device())
}

/// Chooses where this thread's new arrays are made; returns what it was.
#[pyfunction]
pub fn set_current_device(device: &PyDevice) -> PyDevice {
    PyDevice(mxnet::core::interp::set_current_device(device.0))
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
    mxnet::ops::random::set_state(mxnet::core::RngState { seed, offset });
}
