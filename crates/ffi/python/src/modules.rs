//! Extension modules, for Python. The implementation is `mxnet::module`.

use std::path::PathBuf;

use mxnet::module::{self, Loaded};
use pyo3::prelude::*;

use crate::error::raise;
use crate::gil_release::without_gil;

/// Name, version, path, operators, kinds of devices, passes.
type Facts = (
    &'static str,
    &'static str,
    String,
    Vec<&'static str>,
    Vec<&'static str>,
    Vec<&'static str>,
);

fn facts(loaded: Loaded) -> Facts {
    let Loaded {
        name,
        version,
        path,
        operators,
        devices,
        passes,
    } = loaded;
    let path = path.to_string_lossy().into_owned();
    (name, version, path, operators, devices, passes)
}

/// Loads a module and returns its description.
#[pyfunction]
pub fn load_module(py: Python<'_>, path: PathBuf) -> PyResult<Facts> {
    let loaded = without_gil(py, || module::load(&path));
    loaded.map(facts).map_err(|error| raise(py, error))
}

/// Descriptions of all loaded modules.
#[pyfunction]
pub fn loaded_modules() -> Vec<Facts> {
    module::loaded().into_iter().map(facts).collect()
}

/// Kernels that modules provide: operator, kind of device, priority, module.
#[pyfunction]
pub fn served_operators() -> Vec<(&'static str, &'static str, i32, &'static str)> {
    let all = module::served().into_iter();
    all.map(|x| (x.op, x.device, x.priority, x.module))
        .collect()
}

/// Name, whether it is open, path, version, why it is not open, and whether it computes products.
type BlasRow = (&'static str, bool, Option<String>, String, String, bool);

/// Libraries that multiply matrices.
#[pyfunction]
pub fn blas_libraries() -> Vec<BlasRow> {
    let all = module::blas_libraries().into_iter();
    all.map(|x| {
        (
            x.name,
            x.is_loaded,
            x.path,
            x.version,
            x.reason,
            x.is_selected,
        )
    })
    .collect()
}
