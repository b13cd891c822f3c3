//! Graphs loaded from files.

use std::collections::HashMap;

use mxnet::core::Array;
use mxnet::graph::{Model, Source};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::graph::compiled::NamedArrays;
use crate::typed::Get;

/// A graph loaded from a file, with its arrays.
#[pyclass(frozen, module = "mxnet._core")]
pub struct LoadedGraph {
    model: Model,
}

/// The arrays of array objects.
fn arrays(py: Python<'_>, objects: &[Bound<'_, PyArray>]) -> SmallVec<[Array; 8]> {
    objects.iter().map(|x| x.get().array(py)).collect()
}

#[pymethods]
impl LoadedGraph {
    /// Reads a graph from the text of its file; `arrays` maps names to the arrays that it needs.
    #[new]
    fn new(py: Python<'_>, text: &str, arrays: &Bound<'_, PyDict>) -> PyResult<LoadedGraph> {
        let mut named = HashMap::new();
        for (name, array) in arrays.iter() {
            let array = array.cast::<PyArray>()?.get().array(py);
            named.insert(name.extract::<String>()?, array);
        }
        let model = Model::new(text, &named).map_err(|error| raise(py, error))?;
        Ok(LoadedGraph { model })
    }

    /// The results for these arguments.
    fn run(
        &self,
        py: Python<'_>,
        arguments: Vec<Bound<'_, PyArray>>,
    ) -> PyResult<Vec<Py<PyArray>>> {
        let held = arrays(py, &arguments);
        let given: SmallVec<[&Array; 8]> = held.iter().collect();
        let outputs = without_gil(py, || self.model.run(&given));
        let outputs = outputs.map_err(|error| raise(py, error))?;
        outputs.into_iter().map(|y| PyArray::wrap(py, y)).collect()
    }

    /// As `run`, operator by operator, with `values` in place of the loaded arrays.
    fn interpret(
        &self,
        py: Python<'_>,
        arguments: Vec<Bound<'_, PyArray>>,
        values: Vec<Bound<'_, PyArray>>,
    ) -> PyResult<Vec<Py<PyArray>>> {
        let (held, others) = (arrays(py, &arguments), arrays(py, &values));
        let given: SmallVec<[&Array; 8]> = held.iter().collect();
        let values: SmallVec<[&Array; 8]> = others.iter().collect();
        let outputs = self
            .model
            .interpret(&given, &values)
            .map_err(|error| raise(py, error))?;
        outputs.into_iter().map(|y| PyArray::wrap(py, y)).collect()
    }

    /// The graph for arguments of these shapes as the text of a file, and its constants by name. An input that is no argument is named by its
    /// position among the inputs.
    fn for_shapes(
        &self,
        py: Python<'_>,
        shapes: Vec<Vec<usize>>,
    ) -> PyResult<(String, NamedArrays)> {
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let graph = self.model.graph_for(&shapes);
        let graph = graph.map_err(|error| raise(py, error))?;
        let mut constants = Vec::new();
        let text = graph.to_json(&mut |i, x| {
            if matches!(graph.inputs[i].source, Source::Constant(_)) {
                constants.push((i.to_string(), x.clone()));
            }
            i.to_string()
        });
        let wrapped = (constants.into_iter()).map(|(name, x)| Ok((name, PyArray::wrap(py, x)?)));
        Ok((text, wrapped.collect::<PyResult<_>>()?))
    }

    /// Shapes and dtype names of the arguments; None for an axis of any length.
    #[getter]
    fn arguments(&self) -> Vec<(Vec<Option<usize>>, &'static str)> {
        let forms = self.model.arguments().iter().enumerate();
        forms
            .map(|(i, form)| {
                let dynamic = self.model.dynamic_axes(i);
                let shape = form.layout.shape().iter().enumerate();
                let shape = shape.map(|(axis, &n)| (!dynamic.contains(&axis)).then_some(n));
                (shape.collect(), form.dtype.name())
            })
            .collect()
    }

    /// The storage of each array that is neither an argument nor a constant, in the order that `interpret` takes them.
    #[getter]
    fn captured_storages(&self) -> Vec<usize> {
        let inputs = self.model.graph().inputs.iter();
        let found = inputs.filter_map(|input| match &input.source {
            Source::Captured(x) => Some(std::sync::Arc::as_ptr(x.tensor().storage()) as usize),
            _ => None,
        });
        found.collect()
    }

    /// The graph as readable text.
    fn __str__(&self) -> String {
        self.model.graph().to_string()
    }
}
