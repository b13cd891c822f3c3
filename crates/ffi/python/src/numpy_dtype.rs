//! Data types as Python names them: dtype objects and scalar types of NumPy, Python types, strings.

use mxnet::core::Error;
use mxnet::tensor::{DType, Promotion, promotion};
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::array::PyArray;
use crate::error::raise;
use crate::once_box::OnceBox;

static NUMPY_DTYPES: OnceBox<Vec<Py<PyAny>>> = OnceBox::new();

/// NumPy's dtype object of a dtype. For bfloat16 that of `ml_dtypes` if it is installed, else its name.
pub fn object(py: Python<'_>, dtype: DType) -> PyResult<Py<PyAny>> {
    let all = NUMPY_DTYPES.get_or_try_init(|| -> PyResult<Vec<Py<PyAny>>> {
        let numpy = py.import("numpy")?;
        DType::ALL
            .iter()
            .map(|dtype| {
                if *dtype != DType::BF16 {
                    return Ok(numpy.call_method1("dtype", (dtype.name(),))?.unbind());
                }
                match py.import("ml_dtypes") {
                    Ok(ml) => Ok(numpy
                        .call_method1("dtype", (ml.getattr("bfloat16")?,))?
                        .unbind()),
                    // `ml_dtypes` is not installed, or not for this Python. Other errors (Ctrl-C, for example) are the caller's.
                    Err(error) if error.is_instance_of::<PyImportError>(py) => {
                        Ok(PyString::new(py, "bfloat16").into_any().unbind())
                    }
                    Err(error) => Err(error),
                }
            })
            .collect()
    })?;
    Ok(all[dtype as usize].clone_ref(py))
}

/// Builds the tables of dtypes when the package is imported: a process that is forked while another thread imports `ml_dtypes` could not import
/// it any more.
pub fn init(py: Python<'_>) -> PyResult<()> {
    known(py.None().bind(py)).map(drop)
}

/// NumPy's dtype objects and scalar types of our dtypes.
static KNOWN_DTYPES: OnceBox<Vec<(Py<PyAny>, DType)>> = OnceBox::new();

/// The dtype of one of NumPy's own dtype objects or scalar types, which are unique objects. Most callers pass these.
pub fn known(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = object.py();
    let known = KNOWN_DTYPES.get_or_try_init(|| -> PyResult<Vec<(Py<PyAny>, DType)>> {
        let mut known = Vec::new();
        for dtype in DType::ALL {
            let object = self::object(py, dtype)?.into_bound(py);
            if object.is_instance_of::<PyString>() {
                continue;
            }
            known.push((object.getattr("type")?.unbind(), dtype));
            known.push((object.unbind(), dtype));
        }
        Ok(known)
    })?;
    Ok(known
        .iter()
        .find(|(known, _)| known.is(object))
        .map(|(_, dtype)| *dtype))
}

/// The dtype named by a NumPy dtype, a scalar type, a Python type or a string.
pub fn read(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = object.py();
    if object.is_exact_instance_of::<PyString>() {
        // Most callers pass a string, which is not among the known objects.
    } else if let Some(dtype) = known(object)? {
        return Ok(dtype);
    }
    if let Ok(text) = object.cast::<PyString>()
        && let Ok(text) = text.to_str()
        && let Some(dtype) = DType::from_name(text)
    {
        return Ok(dtype);
    }
    if object.is(py.get_type::<PyFloat>()) {
        return Ok(match promotion() {
            Promotion::Mx => mxnet::tensor::default_float(),
            Promotion::NumPy => DType::F64,
        });
    }
    if object.is_instance_of::<PyArray>() {
        return Err(PyTypeError::new_err(
            "cannot construct a dtype from an array: its `dtype` is one",
        ));
    }
    if object.is(py.get_type::<PyInt>()) {
        return Ok(DType::I64);
    }
    if object.is(py.get_type::<PyBool>()) {
        return Ok(DType::Bool);
    }
    let numpy = py.import("numpy")?;
    let found = numpy.call_method1("dtype", (object,)).map_err(|_| {
        PyTypeError::new_err(format!("data type {} not understood", display(object)))
    })?;
    let name: String = found.getattr("name")?.extract()?;
    DType::from_name(&name).ok_or_else(|| {
        raise(
            py,
            Error::dtype(
                "dtype",
                format!("arrays of numbers cannot have dtype {name}"),
            ),
        )
    })
}

fn display(object: &Bound<'_, PyAny>) -> String {
    object
        .repr()
        .map(|text| text.to_string())
        .unwrap_or_else(|_| "?".to_owned())
}

/// The dtype of a NumPy array, if it is one of ours.
pub fn of_array(source: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let dtype = source.getattr(crate::once_box::interned!(source.py(), "dtype"))?;
    if let Some(known) = known(&dtype)? {
        return Ok(Some(known));
    }
    let name: String = dtype.getattr("name")?.extract()?;
    Ok(DType::from_name(&name))
}
