//! Graph passes written in Python, and the switches of all passes. A Python pass receives a graph as text and returns one, which is checked like a
//! file.

use std::collections::HashMap;
use std::sync::Arc;

use mxnet::core::{Array, Error, Result, Value, registry};
use mxnet::graph::passes::{self, Choice, Runs};
use mxnet::graph::{Graph, PartCall, partition};
use pyo3::prelude::*;

use crate::error::PythonFailure;
use crate::error::raise;
use crate::gil_release::with_python;

/// The passes that a trace requests: attributes of the object that `tracing` returned.
pub fn choice(setup: &Bound<'_, PyAny>) -> PyResult<Choice> {
    Ok(Choice {
        off: setup.getattr("passes_off")?.extract()?,
        backend: setup.getattr("backend")?.extract()?,
        memory_budget: setup.getattr("memory_budget")?.extract()?,
    })
}

/// An exception of Python code, which is raised again unchanged.
fn failed(error: PyErr) -> Error {
    let failure = Box::new(PythonFailure(error));
    Error::Failed(mxnet::engine::Failure::new(failure, ""))
}

/// Runs a Python pass on a graph.
fn run(function: &Py<PyAny>, graph: &mut Graph) -> Result<()> {
    let mut arrays: HashMap<String, Array> = HashMap::new();
    let text = graph.to_json(&mut |i, x| {
        let name = format!("input.{i}");
        arrays.insert(name.clone(), x.clone());
        name
    });
    let found = with_python(|py| {
        let found = function.bind(py).call1((text,));
        found.and_then(|text| text.extract::<Option<String>>())
    });
    let found = found.map_err(failed)?;
    if let Some(text) = found {
        let mut new = Graph::from_json(&text, &mut |name| arrays.get(name).cloned())?;
        // The text does not contain the random generators.
        if new.streams.len() == graph.streams.len() {
            new.streams = std::mem::take(&mut graph.streams);
        }
        *graph = new;
    }
    Ok(())
}

/// Registers a pass: a function that receives a graph as JSON and returns another one, or `None` if it leaves the graph unchanged. A `chosen` pass
/// runs on graphs of functions that name it as their backend, other passes run on all graphs.
#[pyfunction]
pub fn register_pass(
    py: Python<'_>,
    name: &str,
    chosen: bool,
    function: Py<PyAny>,
) -> PyResult<()> {
    let runs = if chosen { Runs::Chosen } else { Runs::Always };
    let pass = Arc::new(move |graph: &mut Graph| run(&function, graph));
    passes::register("register_pass", name, runs, pass).map_err(|error| raise(py, error))
}

/// Registers a partitioner, as a pass that is chosen. `take` receives a graph as JSON and returns for each node whether it is taken. `compile` receives
/// a part and returns the text that becomes the only attribute (`parameters`) of the call of `op` that takes its place.
#[pyfunction]
pub fn register_partitioner(
    py: Python<'_>,
    name: &str,
    min_nodes: usize,
    op: &str,
    take: Py<PyAny>,
    compile: Py<PyAny>,
) -> PyResult<()> {
    let op = registry::find(op).ok_or_else(|| {
        let problem = format!("there is no operator `{op}`");
        raise(py, Error::value("register_partitioner", problem))
    })?;
    let pass = move |graph: &mut Graph| {
        let text = graph.to_json(&mut |i, _| format!("input.{i}"));
        let taken = with_python(|py| {
            let taken = take.bind(py).call1((text,))?;
            taken.extract::<Vec<bool>>()
        });
        let taken = taken.map_err(failed)?;
        let mut call_of = |part: Graph| {
            let text = part.to_json(&mut |i, _| format!("input.{i}"));
            let key = with_python(|py| compile.bind(py).call1((text,))?.extract::<String>());
            let key = Value::Str(key.map_err(failed)?.into());
            Ok(Some(PartCall {
                op,
                attrs: [key].into_iter().collect(),
            }))
        };
        partition(graph, &taken, min_nodes, &mut call_of).map(drop)
    };
    passes::register("register_partitioner", name, Runs::Chosen, Arc::new(pass))
        .map_err(|error| raise(py, error))
}

/// Removes a registered pass; returns whether there was one.
#[pyfunction]
pub fn unregister_pass(name: &str) -> bool {
    passes::unregister(name)
}

/// Disables exactly the passes with these names, for all graphs compiled from now on. Returns the names that were disabled before.
#[pyfunction]
pub fn switch_off_passes(names: Vec<String>) -> Vec<String> {
    passes::switch_off(names)
}

/// The names of all passes in execution order, and whether each runs only if it is chosen.
#[pyfunction]
pub fn graph_passes() -> Vec<(String, bool)> {
    let added = passes::registered().into_iter();
    let mut found: Vec<(String, bool)> = added
        .map(|(name, runs)| (name, runs == Runs::Chosen))
        .collect();
    let own = passes::PASSES.iter().map(|(name, _)| (*name).to_owned());
    found.extend(own.chain(["fuse".to_owned()]).map(|name| (name, false)));
    found
}
