//! The class `Device`.

use std::hash::{DefaultHasher, Hash, Hasher};

use mxnet::tensor::{Device, DeviceKind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::raise;

/// A place where arrays live: a type and a number.
///
/// Parameters
/// ----------
/// device_type : str
///     'cpu', 'cpu_pinned', 'cpu_shared' or 'gpu'.
/// device_id : int
///     Number of the device, from 0.
///
/// Raises
/// ------
/// ValueError
///     If there is no such type.
///
/// Examples
/// --------
/// >>> mx.Device('cpu', 1)
/// cpu(1)
/// >>> with mx.Device('cpu', 1):
/// ...     np.zeros(2).device
/// cpu(1)
#[pyclass(
    name = "Device",
    module = "mxnet.device",
    frozen,
    subclass,
    from_py_object
)]
#[derive(Clone, Copy)]
pub struct PyDevice(pub Device);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (device_type, device_id = 0))]
    fn new(device_type: &Bound<'_, PyAny>, device_id: u32) -> PyResult<PyDevice> {
        if let Ok(device) = device_type.cast::<PyDevice>() {
            return Ok(*device.get());
        }
        let name: String = device_type.extract()?;
        match DeviceKind::find(&name) {
            Some(kind) => Ok(PyDevice(Device::new(kind, device_id))),
            None => {
                let known: Vec<&str> = DeviceKind::all().map(DeviceKind::name).collect();
                Err(PyValueError::new_err(format!(
                    "unknown device type '{name}'; known are {}",
                    known.join(", ")
                )))
            }
        }
    }

    /// 'cpu', 'cpu_pinned', 'cpu_shared', 'gpu', or the name of a kind that a module has added.
    #[getter]
    fn device_type(&self) -> &'static str {
        self.0.kind().name()
    }

    /// Number of the device.
    #[getter]
    fn device_id(&self) -> u32 {
        self.0.id()
    }

    /// Text names a device, too: the array API's examples ask for `x.device == "cpu"`.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let named =
            |text: &Bound<'_, PyString>| extract(text.as_any()).is_ok_and(|other| other == self.0);
        match other.cast::<PyDevice>() {
            Ok(other) => other.get().0 == self.0,
            Err(_) => other.cast::<PyString>().is_ok_and(named),
        }
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("{}({})", self.device_type(), self.0.id())
    }
}

/// A device from a `Device`, or from text such as `'cpu'` and `'gpu(1)'`.
pub fn extract(object: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(device) = object.cast::<PyDevice>() {
        return Ok(device.get().0);
    }
    let Ok(text) = object.extract::<String>() else {
        return Err(PyTypeError::new_err(format!(
            "device must be a Device or text, not '{}'",
            object.get_type().name()?
        )));
    };
    let (name, id) = match text.split_once(['(', ':']) {
        Some((name, id)) => (name, id.trim_end_matches(')').parse::<u32>().ok()),
        None => (text.as_str(), Some(0)),
    };
    match (DeviceKind::find(name), id) {
        (Some(kind), Some(id)) => Ok(Device::new(kind, id)),
        _ => Err(PyValueError::new_err(format!("'{text}' names no device"))),
    }
}

/// Makes the simulated devices available that tests of device code use, and returns the name of their kind.
#[pyfunction]
pub fn add_simulated_devices(py: Python<'_>) -> PyResult<&'static str> {
    let kind = mxnet::simulated::register().map_err(|error| raise(py, error))?;
    Ok(kind.name())
}
