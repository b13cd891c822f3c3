//! Settings: promotion mode, random seed, handling of floating-point errors, configuration.

use mxnet::core::config::{self, Kind, Origin, Setting};
use mxnet::core::fp_errors::{self, Reaction, Reactions};
use mxnet::core::{Array, Error};
use mxnet::tensor::{DeviceKind, Promotion, promotion};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::array::{Get, PyArray};
use crate::device::PyDevice;
use crate::error::raise;
use crate::gil_release::{with_python, without_gil};
use crate::once_box::OnceBox;

/// Whether dtypes promote exactly as in NumPy 2.
#[pyfunction]
pub fn numpy_promotion() -> bool {
    promotion() == Promotion::NumPy
}

/// Switches between NumPy 2's promotion (True) and MXNet's; returns the previous setting.
#[pyfunction]
pub fn set_numpy_promotion(on: bool) -> bool {
    let mode = if on { Promotion::NumPy } else { Promotion::Mx };
    mxnet::tensor::set_promotion(mode) == Promotion::NumPy
}

/// How this thread handles floating-point errors (division by zero, overflow, underflow, invalid value): 0 ignore, 1 report, 2 raise.
#[pyfunction]
pub fn float_reactions() -> [u8; 4] {
    let now = fp_errors::reactions();
    [now.divide, now.over, now.under, now.invalid].map(|reaction| reaction as u8)
}

/// Sets how this thread handles floating-point errors, with the numbers of `float_reactions`.
#[pyfunction]
pub fn set_float_reactions(reactions: [u8; 4]) {
    let [divide, over, under, invalid] = reactions.map(|number| match number {
        0 => Reaction::Ignore,
        1 => Reaction::Report,
        _ => Reaction::Raise,
    });
    fp_errors::set_reactions(Reactions {
        divide,
        over,
        under,
        invalid,
    });
}

static REPORTER: OnceBox<Py<PyAny>> = OnceBox::new();

/// Sets the callback that receives the message of each reported floating-point error.
#[pyfunction]
pub fn install_float_reporter(reporter: Py<PyAny>) {
    REPORTER.set(reporter);
    fp_errors::install(|sentence| {
        with_python(|py| {
            let Some(reporter) = REPORTER.get() else {
                return Ok(());
            };
            match reporter.call1(py, (sentence,)) {
                Ok(_) => Ok(()),
                // A warning that the user has turned into an error is raised unchanged.
                Err(error) => {
                    error.restore(py);
                    Err(Error::Interrupted)
                }
            }
        })
    });
}

/// The device of all arrays; `None` if they are on several devices, or there are none.
#[pyfunction]
pub fn common_device(arrays: Vec<Bound<'_, PyArray>>) -> Option<PyDevice> {
    let device_of = |x: &Bound<'_, PyArray>| x.get().with(x.py(), Array::device);
    let first = device_of(arrays.first()?);
    (arrays.iter().all(|x| device_of(x) == first)).then_some(PyDevice(first))
}

/// Default device of this thread.
#[pyfunction]
pub fn current_device() -> PyDevice {
    PyDevice(mxnet::core::mode::current_device())
}

/// Sets the default device of this thread; returns the previous one.
#[pyfunction]
pub fn set_current_device(device: &PyDevice) -> PyDevice {
    PyDevice(mxnet::core::mode::set_current_device(device.0))
}

/// Seeds the global random stream.
#[pyfunction]
pub fn seed(seed: u64) {
    mxnet::ops::random::seed(seed);
}

/// Seed of the global random stream and the position of its next draw.
#[pyfunction]
pub fn random_state() -> (u64, u64) {
    let state = mxnet::ops::random::state();
    (state.seed, state.offset)
}

/// Restores the state of the global random stream that `random_state` returned.
#[pyfunction]
pub fn set_random_state(seed: u64, offset: u64) {
    mxnet::ops::random::set_state(mxnet::core::RngState { seed, offset });
}

/// The value of a setting as a Python object.
fn setting_object(py: Python<'_>, value: Setting) -> PyResult<Py<PyAny>> {
    match value {
        Setting::Bool(x) => x.into_py_any(py),
        Setting::Int(x) => x.into_py_any(py),
        Setting::Word(x) => x.into_py_any(py),
    }
}

/// All settings: name, description, type, allowed values, environment variable.
#[pyfunction]
pub fn config_keys(py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
    let describe = |key: &'static config::Key| {
        let (kind, values) = match key.kind {
            Kind::Bool => ("bool", "True or False".to_owned()),
            Kind::Int(least, most) => ("int", format!("{least} to {most}")),
            Kind::Word(words) => ("str", words.join(", ")),
            Kind::Text => ("str", "any text".to_owned()),
        };
        (key.name, key.doc, kind, values, key.variable()).into_py_any(py)
    };
    config::keys().iter().map(describe).collect()
}

/// The value of a setting, and its origin.
#[pyfunction]
pub fn config_get(py: Python<'_>, name: &str) -> PyResult<(Py<PyAny>, &'static str)> {
    let key = config::key(name).map_err(|error| raise(py, error))?;
    Ok((setting_object(py, key.value())?, key.origin().name()))
}

/// Sets a setting; `origin` is 'default', 'environment', 'file' or 'program'.
#[pyfunction]
pub fn config_set(
    py: Python<'_>,
    name: &str,
    value: &Bound<'_, PyAny>,
    origin: &str,
) -> PyResult<()> {
    let origins = [
        Origin::Default,
        Origin::Environment,
        Origin::File,
        Origin::Program,
    ];
    let origin = origins.into_iter().find(|known| known.name() == origin);
    let set = || {
        let key = config::key(name)?;
        let value = if let Ok(truth) = value.extract::<bool>() {
            Setting::Bool(truth)
        } else if let Ok(n) = value.extract::<i64>() {
            Setting::Int(n)
        } else if let Ok(text) = value.extract::<String>() {
            match key.kind {
                Kind::Word(_) | Kind::Text => key.parse(&text)?,
                _ => return Err(key.wrong(&format!("'{text}'"))),
            }
        } else {
            let found = value.get_type().to_string();
            return Err(key.wrong(&found));
        };
        config::set(name, value, origin.unwrap_or(Origin::Program))
    };
    set().map_err(|error| raise(py, error))
}

/// Features of this build and machine: name, and whether it is available.
#[pyfunction]
pub fn features(py: Python<'_>) -> Vec<(&'static str, bool)> {
    // The driver tells whether there is a GPU, and loading it takes seconds.
    without_gil(py, mxnet::runtime::features)
}

/// Kinds of devices: name, and whether the host can read their memory.
#[pyfunction]
pub fn device_kinds() -> Vec<(&'static str, bool)> {
    DeviceKind::all()
        .map(|kind| (kind.name(), kind.is_host()))
        .collect()
}
