//! DLPack: import and export of arrays of other libraries without a copy.

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use mxnet::core::{Array, Error};
use mxnet::engine::{Access, Event};
use mxnet::tensor::dlpack::{
    self as dl, DLManagedTensor, DLManagedTensorVersioned, Exported, Writes,
};
use mxnet::tensor::{Device, DeviceKind, backend_of};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::sharing::complete_for_others;

const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";
const LEGACY: &CStr = c"dltensor";
const LEGACY_USED: &CStr = c"used_dltensor";

/// `x.__dlpack_device__()`.
pub fn device(device: Device) -> (i32, i32) {
    let found = dl::dl_device(device);
    (found.device_type, found.device_id)
}

/// `x.__dlpack__(...)`: a capsule around the memory of the array. Waits for the elements; from then on the storage is synchronous.
pub fn export(
    slf: &Bound<'_, PyArray>,
    stream: Option<&Bound<'_, PyAny>>,
    max_version: Option<(u32, u32)>,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    if array.entry().is_some() && mxnet::core::mode::is_recording() {
        return Err(PyBufferError::new_err(
            "cannot export an array with a gradient while recording: use x.detach()",
        ));
    }
    let own = device(array.device());
    let moves = dl_device.is_some_and(|wanted| wanted != own);
    if moves && (copy == Some(false) || dl_device != Some(device(Device::CPU))) {
        return Err(PyBufferError::new_err(format!(
            "array is on {own:?}, asked for device {dl_device:?}"
        )));
    }
    let array = match (moves, copy) {
        (true, _) => without_gil(py, || array.to_device(Device::CPU)),
        (false, Some(true)) => array.copy(),
        (false, _) => Ok(array),
    };
    let array = array.map_err(|error| raise(py, error))?;
    let exported = match moves || copy == Some(true) {
        true => Exported::Copy,
        false => Exported::View,
    };
    match (array.device().kind(), exported) {
        (DeviceKind::Gpu, _) => order_before(py, &array, stream)?,
        _ if stream.is_some_and(|stream| !stream.is_none()) && !moves => {
            return Err(PyValueError::new_err(
                "stream must be None for arrays on the CPU",
            ));
        }
        (_, Exported::Copy) => {
            without_gil(py, || array.wait_to_write()).map_err(|error| raise(py, error))?;
        }
        (_, Exported::View) => complete_for_others(py, &array)?,
    }
    let tensor = array.tensor().clone();
    let failed = |error: mxnet::tensor::TensorError| PyBufferError::new_err(error.to_string());
    // SAFETY: the capsule owns the structure until a consumer renames it; its destructor distinguishes the two cases by the name.
    unsafe {
        let capsule = if max_version.is_some_and(|(major, _)| major >= 1) {
            let managed = dl::export(tensor, exported);
            ffi::PyCapsule_New(
                managed.as_ptr().cast(),
                VERSIONED.as_ptr(),
                Some(drop_versioned),
            )
        } else {
            let managed = dl::export_legacy(tensor, exported).map_err(failed)?;
            ffi::PyCapsule_New(managed.as_ptr().cast(), LEGACY.as_ptr(), Some(drop_legacy))
        };
        Ok(Bound::from_owned_ptr_or_err(py, capsule)?.unbind())
    }
}

/// Pending device work on an array. Pending host work is finished when this returns.
fn in_flight(py: Python<'_>, array: &Array) -> PyResult<Vec<(Arc<dyn Event>, bool)>> {
    let var = array.tensor().storage().var();
    if !var.is_free() {
        without_gil(py, || array.wait_to_write()).map_err(|error| raise(py, error))?;
    }
    Ok(var.events(Access::Write))
}

/// Makes a consumer's stream wait for the pending device work on an array.
///
/// Streams are numbered as in DLPack: 1 and None are the legacy default stream, 2 is the thread's default stream, -1 means that the consumer orders
/// its work itself; other numbers are addresses.
fn order_before(py: Python<'_>, array: &Array, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let stream = match stream.filter(|stream| !stream.is_none()) {
        Some(stream) => stream.extract::<i64>()?,
        None => 1,
    };
    match stream {
        -1 => return Ok(()),
        1.. => {}
        _ => {
            return Err(PyValueError::new_err(format!(
                "stream must be None, -1, 1, 2 or the address of a stream, not {stream}"
            )));
        }
    }
    let events = in_flight(py, array)?;
    mxnet::cuda::order_before(array.device().id(), &events, stream as u64)
        .map_err(|error| raise(py, error.into()))
}

/// Makes the calling thread's stream wait for the pending device work on an array. Returns the number of the stream.
pub fn ordered_on_own_stream(py: Python<'_>, array: &Array) -> PyResult<u64> {
    let failed = |error: mxnet::tensor::TensorError| raise(py, error.into());
    let (id, events) = (array.device().id(), in_flight(py, array)?);
    let stream = mxnet::cuda::number_of_stream(id).map_err(failed)?;
    mxnet::cuda::order_before(id, &events, stream).map_err(failed)?;
    Ok(stream)
}

/// Capsule destructor: frees a versioned structure that was not consumed.
unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule; only an unconsumed one still has this name, and then its pointer is ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr())
                .cast::<DLManagedTensorVersioned>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

/// Capsule destructor: frees an unversioned structure that was not consumed.
unsafe extern "C" fn drop_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: as for `drop_versioned`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) == 1 {
            let managed =
                ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast::<DLManagedTensor>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

/// An array that shares the memory of another library's array (or of a capsule).
///
/// Parameters
/// ----------
/// x : object with `__dlpack__`, or a capsule
/// device : Device or None
///     Required device; None accepts any.
/// copy : bool or None
///     True copies, False raises if a copy is needed, None copies only if needed.
///
/// Returns
/// -------
/// ndarray
///
/// Raises
/// ------
/// TypeError
///     If `x` offers no DLPack.
///
/// Examples
/// --------
/// >>> import numpy
/// >>> x = numpy.zeros(2)
/// >>> y = np.from_dlpack(x)
/// >>> y[0] = 5
/// >>> x
/// array([5., 0.])
#[pyfunction]
#[pyo3(signature = (x, /, *, device = None, copy = None))]
pub fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Py<PyArray>> {
    let py = x.py();
    let capsule = if x.hasattr("__dlpack__")? {
        let options = PyDict::new(py);
        options.set_item("max_version", (dl::VERSION.major, dl::VERSION.minor))?;
        if let Some(stream) = own_stream(x)? {
            options.set_item("stream", stream)?;
        }
        if copy.is_some() {
            options.set_item("copy", copy)?;
        }
        match x.call_method("__dlpack__", (), Some(&options)) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) && copy != Some(false) => {
                // The producer implements an older version of the protocol.
                let options = options.copy()?;
                options.del_item("max_version")?;
                if copy.is_some() {
                    options.del_item("copy")?;
                }
                x.call_method("__dlpack__", (), Some(&options))?
            }
            other => other?,
        }
    } else {
        x.clone()
    };
    // A capsule passed directly is meant to be shared; an array that offers only the unversioned structure may be immutable.
    let writes = match capsule.is(x) {
        true => Writes::Allowed,
        false => Writes::Refused,
    };
    let array = consume(&capsule, writes)?;
    if array.device().kind() == DeviceKind::Gpu {
        // The producer has ordered its work before this thread's stream. Other threads' streams must wait for that work.
        let event = mxnet::cuda::order_after(array.device().id(), None);
        let event = event.map_err(|error| raise(py, error.into()))?;
        array
            .tensor()
            .storage()
            .var()
            .record_event(event, Access::Write);
    }
    let wanted = device.map(crate::device::extract).transpose()?;
    let array = match wanted {
        Some(wanted) if wanted != array.device() => {
            if copy == Some(false) {
                let problem = format!("array is on {}, asked for {wanted}", array.device());
                return Err(raise(py, Error::device("from_dlpack", problem)));
            }
            without_gil(py, || array.to_device(wanted))
        }
        _ if copy == Some(true) => array.copy(),
        _ => Ok(array),
    };
    PyArray::wrap(py, array.map_err(|error| raise(py, error))?)
}

/// The number of the calling thread's stream on the GPU of another library's array; `None` if the array is not on a GPU.
fn own_stream(x: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if !x.hasattr("__dlpack_device__")? {
        return Ok(None);
    }
    let (device_type, device_id) = x.call_method0("__dlpack_device__")?.extract()?;
    let dl_device = dl::DLDevice {
        device_type,
        device_id,
    };
    if device_type != dl::DEVICE_CUDA {
        return Ok(None);
    }
    reachable(dl_device).map_err(|error| raise(x.py(), error))?;
    let stream = mxnet::cuda::number_of_stream(device_id as u32);
    Ok(Some(stream.map_err(|error| raise(x.py(), error.into()))?))
}

/// Takes the structure out of a capsule.
fn consume(capsule: &Bound<'_, PyAny>, writes: Writes) -> PyResult<Array> {
    let py = capsule.py();
    // SAFETY: 1. the name determines the type of the pointer. 2. an imported structure is ours; its capsule is renamed so that it is not imported
    // again.
    let tensor = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), VERSIONED.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), VERSIONED.as_ptr())
                .cast::<DLManagedTensorVersioned>();
            let tensor = NonNull::new(managed).map(|managed| {
                // For another major version only the version field may be read, which `import` does.
                if managed.as_ref().version.major == dl::VERSION.major {
                    reachable(managed.as_ref().dl_tensor.device).map_err(|e| raise(py, e))?;
                }
                dl::import(managed).map_err(|e| raise(py, e.into()))
            });
            if matches!(tensor, Some(Ok(_))) {
                ffi::PyCapsule_SetName(capsule.as_ptr(), VERSIONED_USED.as_ptr());
            }
            tensor
        } else if ffi::PyCapsule_IsValid(capsule.as_ptr(), LEGACY.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), LEGACY.as_ptr())
                .cast::<DLManagedTensor>();
            let tensor = NonNull::new(managed).map(|managed| {
                reachable(managed.as_ref().dl_tensor.device).map_err(|e| raise(py, e))?;
                dl::import_legacy(managed, writes).map_err(|e| raise(py, e.into()))
            });
            if matches!(tensor, Some(Ok(_))) {
                ffi::PyCapsule_SetName(capsule.as_ptr(), LEGACY_USED.as_ptr());
            }
            tensor
        } else {
            return Err(PyTypeError::new_err(
                "from_dlpack() needs an object with __dlpack__ or an unused DLPack capsule",
            ));
        }
    };
    match tensor {
        Some(Ok(tensor)) => Ok(Array::from_tensor(tensor)),
        Some(Err(error)) => Err(error),
        None => Err(PyTypeError::new_err("the capsule holds no array")),
    }
}

/// Rejects memory of devices for which no backend is loaded, because the CPU cannot access it.
fn reachable(dl_device: dl::DLDevice) -> mxnet::core::Result<()> {
    let device = dl::device(dl_device)?;
    match device.kind() {
        DeviceKind::Gpu => match backend_of(device) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::device("from_dlpack", error.to_string())),
        },
        _ => Ok(()),
    }
}
