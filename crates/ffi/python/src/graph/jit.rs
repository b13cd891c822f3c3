//! Functions that are traced at the first call with each signature, and then run as compiled graphs.

mod entry;
mod tracing;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mxnet::core::Array;
use mxnet::core::mode::{self, Flags};
use mxnet::tensor::DType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::compiled::CompiledGraph;
use super::sized::{Axes, DynamicAxes};
use super::tree::Signature;
use crate::array::PyArray;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::typed::Get;
use entry::{Entry, Kind};
use tracing::{Arrays, Tracing};

/// What [`JitFunction::records`] returns for a trace.
type Record = (
    Py<PyAny>,
    Vec<Py<CompiledGraph>>,
    bool,
    usize,
    Option<String>,
);

/// What [`JitFunction::last_arguments`] returns.
type LastCall = (Py<PyAny>, Py<PyAny>, Option<&'static str>);

/// A function that is compiled for each signature of its arguments.
#[pyclass(frozen, subclass, module = "mxnet._core")]
pub struct JitFunction {
    function: Py<PyAny>,
    /// Called with this object, the arguments and `trace`, which traces the call; returns the result of `trace`.
    tracing: Py<PyAny>,
    entries: Mutex<Vec<Arc<Entry>>>,
    max_entries: usize,
    /// Axes that may have any length.
    dynamic: Option<DynamicAxes>,
}

/// Number of times that arrays of parameters were replaced.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Must be called when a parameter's array was replaced: graphs check their parameters at the next call.
#[pyfunction]
pub fn parameters_replaced() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Whether calls of this thread are being traced.
#[pyfunction]
pub fn trace_is_active() -> bool {
    mode::is_tracing()
}

/// Calls `body` outside all traces, without recording, so that its results have values.
#[pyfunction]
pub fn outside_trace(body: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    mode::outside(|| body.call0()).map(Bound::unbind)
}

#[pymethods]
impl JitFunction {
    /// `dynamic` lists, for each array among the arguments, the axes that may have any length, each with a name or None. If `is_for_all`, its only
    /// entry applies to all arrays.
    #[new]
    fn new(
        function: Py<PyAny>,
        tracing: Py<PyAny>,
        max_entries: usize,
        dynamic: Option<Vec<Axes>>,
        is_for_all: bool,
    ) -> JitFunction {
        JitFunction {
            function,
            tracing,
            entries: Mutex::new(Vec::new()),
            max_entries,
            dynamic: dynamic.map(|axes| DynamicAxes::new(axes, is_for_all)),
        }
    }

    /// The Python function.
    #[getter]
    fn function(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    /// The compiled graphs, the most recently used last.
    #[getter]
    fn graphs(&self, py: Python<'_>) -> Vec<Py<CompiledGraph>> {
        let entries = self.entries();
        let graphs = entries.iter().flat_map(|entry| entry.graphs());
        graphs.map(|graph| graph.clone_ref(py)).collect()
    }

    /// For each stored trace: what reports show of it, its graphs, whether these come from a template, the number of pieces, and why there is no
    /// graph.
    #[getter]
    fn records(&self, py: Python<'_>) -> Vec<Record> {
        let entries = self.entries();
        let records = entries.iter().map(|entry| {
            let graphs = entry.graphs().into_iter().map(|graph| graph.clone_ref(py));
            let why = match &entry.kind {
                Kind::Specialised(why) | Kind::AsItIs(why) => Some(why.clone()),
                Kind::Sized(sized) => sized.note(),
                Kind::Graph(_) | Kind::Split(_) => None,
            };
            let is_sized = matches!(entry.kind, Kind::Sized(_));
            let num_pieces = match &entry.kind {
                Kind::Split(split) => split.num_pieces(),
                _ => 0,
            };
            (
                entry.record.clone_ref(py),
                graphs.collect(),
                is_sized,
                num_pieces,
                why,
            )
        });
        records.collect()
    }

    /// Number of signatures for which the function runs without a graph, because shapes depend on values.
    #[getter]
    fn num_dynamic(&self) -> usize {
        let is_it = |entry: &&Arc<Entry>| matches!(entry.kind, Kind::AsItIs(_));
        self.entries().iter().filter(is_it).count()
    }

    /// The arguments of the last trace with abstract arrays in place of their arrays, and the dtype of automatic mixed precision; `None` if there is
    /// no graph.
    fn last_arguments(&self, py: Python<'_>) -> PyResult<Option<LastCall>> {
        let entries = self.entries();
        let has_graph = |entry: &&Arc<Entry>| matches!(entry.kind, Kind::Graph(_) | Kind::Sized(_));
        let Some(entry) = entries.iter().rev().find(has_graph) else {
            return Ok(None);
        };
        let form = &entry.form;
        let array = &mut |i: usize, _: bool| {
            let (shape, dtype) = &form.arrays[i];
            let made = Array::without_values(shape, *dtype, mode::current_device());
            let made = made.map_err(|error| raise(py, error))?;
            Ok(PyArray::wrap(py, made)?.into_any())
        };
        let args = form.arguments.build(py, array)?;
        let kwargs = match &form.keywords {
            Some(tree) => tree.build(py, array)?,
            None => PyDict::new(py).into_any().unbind(),
        };
        Ok(Some((args, kwargs, form.autocast.map(DType::name))))
    }

    /// The graph for calls with arguments like these, traced if necessary, and the structure of its results, with `slot(i)` in place of array `i`.
    fn graph_for(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        slot: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(Py<CompiledGraph>, Py<PyAny>)>> {
        let py = slf.py();
        let Prepared { entry, graph, .. } = JitFunction::prepared(slf, args, Some(kwargs))?;
        let Some(graph) = graph else {
            return Ok(None);
        };
        let number = &mut |i: usize, _: bool| Ok(slot.call1((i,))?.unbind());
        Ok(Some((
            graph.clone_ref(py),
            entry.form.results.build(py, number)?,
        )))
    }

    /// Discards all graphs.
    fn clear(&self) {
        let old = std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner));
        drop(old);
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let flags = Flags::current();
        // An outer trace must see the calls themselves; floating-point checks look at each result.
        if flags.is_intercepted() || !mxnet::core::config::jit_is_on() {
            return this.function.call(py, args, kwargs);
        }
        let prepared = JitFunction::prepared(slf, args, kwargs)?;
        this.run(&prepared, args, kwargs)
    }

    fn __get__(
        slf: Py<Self>,
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        _class: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if object.is_none() {
            return Ok(slf.into_any());
        }
        let method = py.import("types")?.getattr("MethodType")?;
        Ok(method.call1((slf, object))?.unbind())
    }
}

/// A call, and the graph that executes it if there is one.
struct Prepared<'py> {
    entry: Arc<Entry>,
    graph: Option<Arc<Py<CompiledGraph>>>,
    arrays: Arrays<'py>,
    /// Lengths of the dynamic axes.
    sizes: Vec<i64>,
}

impl JitFunction {
    fn entries(&self) -> Vec<Arc<Entry>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clone()
    }

    /// The entry of a signature, if it is still valid.
    fn entry_for(&self, py: Python<'_>, signature: &Signature) -> PyResult<Option<Arc<Entry>>> {
        let known: SmallVec<[Arc<Entry>; 8]> = {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let same = entries
                .iter()
                .rev()
                .filter(|entry| entry.signature.words == signature.words);
            same.cloned().collect()
        };
        for entry in known {
            if !entry.signature.is_same(signature, py)? {
                continue;
            }
            let is_current = entry.has_seen()
                && match &entry.is_current {
                    Some(ask) if entry.generation != GENERATION.load(Ordering::Relaxed) => {
                        ask.call0(py)?.extract(py)?
                    }
                    _ => true,
                };
            if is_current {
                return Ok(Some(entry));
            }
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.retain(|other| !Arc::ptr_eq(other, &entry));
        }
        Ok(None)
    }

    /// The entry of a call and the graph that executes it; traces and compiles if necessary.
    fn prepared<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Prepared<'py>> {
        let (py, this) = (slf.py(), slf.get());
        if this.dynamic.is_some() {
            let (tracing, signature, arrays, sizes) =
                Tracing::of(args, kwargs, this.dynamic.as_ref())?;
            if let Some(sizes) = sizes.filter(|sizes| !sizes.sizes.is_empty()) {
                let entry = match this.entry_for(py, &signature)? {
                    Some(entry) => entry,
                    None => {
                        let call = (args, kwargs, &arrays[..]);
                        this.trace_sizes(slf, call, tracing, signature, &sizes)?
                    }
                };
                let graph = match &entry.kind {
                    Kind::Sized(sized) => sized.graph_at(py, &sizes.sizes)?,
                    _ => None,
                };
                let is_split = matches!(entry.kind, Kind::Split(_) | Kind::AsItIs(_));
                if graph.is_some() || is_split {
                    return Ok(Prepared {
                        entry,
                        graph,
                        arrays,
                        sizes: sizes.sizes,
                    });
                }
            }
        }
        let (tracing, signature, arrays, _) = Tracing::of(args, kwargs, None)?;
        let entry = match this.entry_for(py, &signature)? {
            Some(entry) => entry,
            None => this.trace(slf, (args, kwargs, &arrays), tracing, signature)?,
        };
        let graph = match &entry.kind {
            Kind::Graph(graph) => Some(graph.clone()),
            _ => None,
        };
        Ok(Prepared {
            entry,
            graph,
            arrays,
            sizes: Vec::new(),
        })
    }

    fn name(&self, py: Python<'_>) -> String {
        let name = self.function.getattr(py, "__qualname__");
        name.and_then(|name| name.extract(py))
            .unwrap_or_else(|_| "function".to_owned())
    }

    /// Runs the graph of a call; returns its results in their structure. Calls the function instead if there is no graph, or if an argument shares
    /// memory with a captured array and one of them is written.
    fn run(
        &self,
        prepared: &Prepared<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let Prepared {
            entry,
            graph,
            arrays,
            sizes,
        } = prepared;
        let held: SmallVec<[_; 8]> = arrays.iter().map(|x| x.get().array(py)).collect();
        let arguments: SmallVec<[_; 8]> = held.iter().collect();
        let run = |graph: &CompiledGraph| match graph.is_long() {
            true => without_gil(py, || graph.run(&arguments)),
            false => graph.run(&arguments),
        };
        let before = || -> PyResult<()> {
            entry
                .before
                .iter()
                .try_for_each(|before| before.call0(py).map(drop))
        };
        let outputs = match (graph.as_ref().map(|graph| graph.get()), &entry.kind) {
            (Some(graph), _) if !graph.meets_captured(&arguments) => {
                before()?;
                run(graph)
            }
            (None, Kind::Split(split)) if !split.meets_captured(&arguments) => {
                before()?;
                match without_gil(py, || split.run(&arguments, sizes)) {
                    Ok(None) => return self.function.call(py, args, kwargs),
                    Ok(Some(outputs)) => Ok(outputs),
                    Err(error) => Err(error),
                }
            }
            _ => return self.function.call(py, args, kwargs),
        };
        let mut outputs = outputs.map_err(|error| raise(py, error))?;
        let mut outputs: SmallVec<[_; 4]> = outputs.drain(..).map(Some).collect();
        let array = &mut |i: usize, is_scalar: bool| {
            let Some(y) = outputs.get_mut(i).and_then(Option::take) else {
                return Err(pyo3::exceptions::PyRuntimeError::new_err(
                    "a result of a graph is missing",
                ));
            };
            Ok(match is_scalar {
                true => PyArray::wrap_result(py, y)?.into_any(),
                false => PyArray::wrap(py, y)?.into_any(),
            })
        };
        entry.form.results.build(py, array)
    }
}
