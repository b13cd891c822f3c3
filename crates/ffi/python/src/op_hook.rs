//! An interpreter that reports every operator call of a thread to a Python function.

use std::rc::{Rc, Weak};

use mxnet::core::mode::{Interpreter, expand, with_interpreter};
use mxnet::core::{Array, Call, Cpu, Error, Outputs, Result, dispatch};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::PyArray;
use crate::error::PythonFailure;
use crate::gil_release::with_python;

/// Passes calls on and reports those of non-composite operators.
struct OpHook {
    this: Weak<OpHook>,
    callback: Py<PyAny>,
}

impl OpHook {
    /// Calls the function with the operator's name, inputs and outputs.
    fn report(&self, call: &Call, outputs: &Outputs) -> PyResult<()> {
        with_python(|py| {
            let wrapped = |arrays: &mut dyn Iterator<Item = &Array>| -> PyResult<Vec<Py<PyArray>>> {
                arrays.map(|x| PyArray::wrap(py, x.clone())).collect()
            };
            let given = call.inputs.iter().flatten().filter(|x| !x.is_weak());
            let inputs = wrapped(&mut given.copied())?;
            let outputs = wrapped(&mut outputs.iter())?;
            let inputs = PyTuple::new(py, inputs)?;
            let outputs = PyTuple::new(py, outputs)?;
            self.callback
                .bind(py)
                .call1((call.op.name, inputs, outputs))?;
            Ok(())
        })
    }
}

impl Interpreter for OpHook {
    fn call(&self, call: &Call) -> Result<Outputs> {
        let outputs = match self.this.upgrade() {
            Some(this) => expand(this, call)?,
            None => dispatch(call)?,
        };
        if !matches!(call.op.cpu, Cpu::Composite(_)) {
            self.report(call, &outputs).map_err(|error| {
                Error::Failed(mxnet::engine::Failure::new(
                    Box::new(PythonFailure(error)),
                    "",
                ))
            })?;
        }
        Ok(outputs)
    }
}

/// Calls `body`, and `callback(name, inputs, outputs)` after every call of a non-composite operator in it; returns the result of `body`. Operators
/// that `callback` itself calls are not reported.
#[pyfunction]
pub fn with_op_hook(callback: Py<PyAny>, body: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let hook = Rc::new_cyclic(|this| OpHook {
        this: this.clone(),
        callback,
    });
    with_interpreter(hook, || body.call0()).map(Bound::unbind)
}
