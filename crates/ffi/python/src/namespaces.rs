//! The types and the namespaces of operators that the module offers to Python.

use std::collections::HashMap;

use mxnet::core::{Surface, registry};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{function, function_binding, register_methods};
use crate::{array, flat, ufunc};

/// Modules of the namespaces, in the order used below.
const MODULES: [&str; 5] = [
    "mxnet.numpy",
    "mxnet.numpy.linalg",
    "mxnet.numpy.random",
    "mxnet.numpy_extension",
    "mxnet.numpy.fft",
];

/// Creates the namespaces of operators by their surfaces. The namespace `op` has every operator under its own name.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let class = array::slots::make(py)?;
    register_methods(py, &class)?;
    module.add("ndarray", class)?;
    module.add("flatiter", flat::make(py)?)?;
    let spaces =
        ["numpy", "linalg", "random", "npx", "fft", "op"].map(|name| (name, PyDict::new(py)));
    let mut ufuncs = HashMap::new();
    for op in registry::all() {
        // An elementwise function is the same object under all its names; any other operator is a separate function for each name.
        let ufunc = match op.is_ufunc() {
            true => {
                let binding = function_binding(py, op, op.name)?;
                let object = ufunc::make(py, binding)?;
                ufuncs.insert(op.name, object.clone_ref(py));
                for surface in op.surface {
                    if let Surface::Np(name) = surface {
                        ufuncs.insert(name, object.clone_ref(py));
                    }
                }
                Some(object)
            }
            false => None,
        };
        let named = |name, module| match &ufunc {
            Some(object) => Ok(object.clone_ref(py)),
            None => function(py, op, name, module),
        };
        spaces[5]
            .1
            .set_item(op.name, named(op.name, "mxnet._core")?)?;
        for surface in op.surface {
            let (space, name) = match surface {
                Surface::Np(name) => (0, name),
                // In NumPy's namespace `linalg` these are plain functions, not ufuncs.
                Surface::NpLinalg(name) if !op.core_signature.is_empty() => {
                    spaces[1]
                        .1
                        .set_item(*name, function(py, op, name, MODULES[1])?)?;
                    continue;
                }
                Surface::NpLinalg(name) => (1, name),
                Surface::NpRandom(name) => (2, name),
                Surface::Npx(name) => (3, name),
                Surface::NpFft(name) => (4, name),
                Surface::Method(_) => continue,
            };
            spaces[space]
                .1
                .set_item(*name, named(name, MODULES[space])?)?;
        }
    }
    ufunc::register(module, ufuncs)?;
    let all = PyDict::new(py);
    for (name, space) in spaces {
        all.set_item(name, space)?;
    }
    module.add("namespaces", all)
}
