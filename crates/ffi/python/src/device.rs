//! The class `Device`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use mxnet::core::Error;
use mxnet::tensor::{Device, DeviceKind, backend_of, num_devices as num_devices_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::raise;
use crate::gil_release::without_gil;

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
        Ok(PyDevice(Device::new(kind_of(&name)?, device_id)))
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

    /// A device also equals its name: examples of the array API compare `x.device == "cpu"`.
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

/// A device from a `Device`, or from a string such as `'cpu'` or `'gpu(1)'`.
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

/// Number of devices of a kind.
#[pyfunction]
pub fn num_devices(py: Python<'_>, kind: &str) -> PyResult<usize> {
    let kind = kind_of(kind)?;
    // Loading a driver takes seconds.
    Ok(without_gil(py, || num_devices_of(kind)))
}

/// Free and total memory of a device, in bytes.
#[pyfunction]
pub fn device_memory(py: Python<'_>, device: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let device = extract(device)?;
    let memory = || Ok(backend_of(device)?.memory(device.id()));
    let info = without_gil(py, memory).map_err(|error: Error| raise(py, error))?;
    Ok((info.free, info.total))
}

/// Bytes in use, bytes cached, largest number of bytes in use; number of allocations, and of those that the system served.
type Stats = (usize, usize, usize, u64, u64);

/// Statistics of a device's allocator: bytes in use, bytes cached, the largest number of bytes in use, number of blocks handed out, and how many of
/// these were requested from the driver. `None` if the device does not count.
#[pyfunction]
pub fn device_memory_stats(py: Python<'_>, device: &Bound<'_, PyAny>) -> PyResult<Option<Stats>> {
    let device = extract(device)?;
    let stats = || Ok(backend_of(device)?.memory_stats(device.id()));
    let stats = without_gil(py, stats).map_err(|error: Error| raise(py, error))?;
    Ok(stats.map(|stats| {
        (
            stats.in_use_bytes,
            stats.cached_bytes,
            stats.peak_bytes,
            stats.allocations,
            stats.system_allocations,
        )
    }))
}

/// Frees the cached memory of a device.
#[pyfunction]
pub fn empty_cache(py: Python<'_>, device: &Bound<'_, PyAny>) -> PyResult<()> {
    let device = extract(device)?;
    let empty = || Ok(backend_of(device)?.empty_cache(device.id())?);
    without_gil(py, empty).map_err(|error: Error| raise(py, error))
}

/// Name, path, version, and why it is missing.
type LibraryFacts = (&'static str, Option<String>, Option<(i32, i32)>, String);
/// Name, compute capability, and bytes of memory.
type DeviceFacts = (String, (i32, i32), usize);

/// NVIDIA's libraries: name, path or None, version or None, and why one is missing.
#[pyfunction]
pub fn cuda_libraries(py: Python<'_>) -> Vec<LibraryFacts> {
    let found = without_gil(py, mxnet::cuda::libraries);
    let facts = |library: mxnet::cuda::Library| {
        (library.name, library.path, library.version, library.reason)
    };
    found.into_iter().map(facts).collect()
}

/// The GPUs: name, compute capability, and bytes of memory of each.
#[pyfunction]
pub fn cuda_devices(py: Python<'_>) -> PyResult<Vec<DeviceFacts>> {
    let found = without_gil(py, mxnet::cuda::devices).map_err(|error| raise(py, error))?;
    let facts = |device: mxnet::cuda::CudaDevice| {
        (device.name, device.compute_capability, device.total_bytes)
    };
    Ok(found.into_iter().map(facts).collect())
}

/// Source texts of all CUDA kernels by key, for tests that compile them.
#[pyfunction]
pub fn cuda_texts(py: Python<'_>) -> Vec<(String, String)> {
    without_gil(py, mxnet::cuda::texts)
        .into_iter()
        .map(|(key, text)| (key, format!("{}{text}", mxnet::cuda::PRELUDE)))
        .collect()
}

/// Registers the CUDA backend. No library is loaded before a GPU is first searched for.
pub fn register_cuda(py: Python<'_>) -> PyResult<()> {
    mxnet::cuda::register().map_err(|error| raise(py, error))?;
    // NVIDIA's libraries, and those that multiply matrices, may lie where Python has its packages.
    let path = py.import("sys")?.getattr("path")?;
    let folders: Vec<PathBuf> = path
        .try_iter()?
        .filter_map(|folder| folder.ok()?.extract().ok())
        .collect();
    mxnet::cuda::add_folders(folders.iter().cloned());
    mxnet::module::add_folders(folders);
    Ok(())
}

fn kind_of(name: &str) -> PyResult<DeviceKind> {
    DeviceKind::find(name).ok_or_else(|| {
        let known: Vec<&str> = DeviceKind::all().map(DeviceKind::name).collect();
        PyValueError::new_err(format!(
            "unknown device type '{name}'; known are {}",
            known.join(", ")
        ))
    })
}

/// Registers the simulated devices that tests of device code use. Returns the name of their kind.
#[pyfunction]
pub fn add_simulated_devices(py: Python<'_>) -> PyResult<&'static str> {
    let kind = mxnet::simulated::register().map_err(|error| raise(py, error))?;
    Ok(kind.name())
}
