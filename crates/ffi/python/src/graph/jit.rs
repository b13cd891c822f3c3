//! Functions that are traced at their first call of each form, and run as compiled graphs from then on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mxnet::core::Array;
use mxnet::core::interp::{self, Flags};
use mxnet::tensor::{DType, Promotion, promotion};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::compiled::CompiledGraph;
use super::tree::{Flattener, Signature, Tree};
use crate::array::PyArray;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::typed::Get;

/// A graph for calls of one signature.
struct Entry {
    signature: Signature,
    compiled: Option<Run>,
    /// Called before each run.
    before: Vec<Py<PyAny>>,
    /// Asked after parameters have been replaced: whether the graph still has the right ones.
    is_current: Option<Py<PyAny>>,
    generation: u64,
}

/// A graph, and the form of its results. A function without one calls operators whose results have shapes that depend on values: it is called as it is.
struct Run {
    graph: Py<CompiledGraph>,
    results: Tree,
    /// The arguments that it was traced with, and shapes and dtypes of their arrays.
    arguments: Tree,
    keywords: Option<Tree>,
    forms: Vec<(Vec<usize>, DType)>,
}

/// A function that is compiled for each form of its arguments.
#[pyclass(frozen, subclass, module = "mxnet._core")]
pub struct JitFunction {
    function: Py<PyAny>,
    /// Called with this object, the arguments and `trace`, which traces the call; it returns what `trace` does.
    tracing: Py<PyAny>,
    entries: Mutex<Vec<Arc<Entry>>>,
    max_entries: usize,
}

/// Counts replacements of parameters' arrays.
static GENERATION: AtomicU64 = AtomicU64::new(0);

static IS_ON: AtomicBool = AtomicBool::new(true);

/// Says that a parameter has other arrays from now on.
#[pyfunction]
pub fn parameters_replaced() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Switches compiled graphs for all threads; answers whether they were on. Without them jitted functions are called as they are.
#[pyfunction]
pub fn set_jit(on: bool) -> bool {
    IS_ON.swap(on, Ordering::Relaxed)
}

/// Whether calls of this thread are noted in a trace.
#[pyfunction]
pub fn trace_is_active() -> bool {
    interp::is_tracing()
}

/// Calls `body` outside all traces and unrecorded: what it computes has values.
#[pyfunction]
pub fn outside_trace(body: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    interp::outside(|| body.call0()).map(Bound::unbind)
}

#[pymethods]
impl JitFunction {
    #[new]
    fn new(function: Py<PyAny>, tracing: Py<PyAny>, max_entries: usize) -> JitFunction {
        JitFunction {
            function,
            tracing,
            entries: Mutex::new(Vec::new()),
            max_entries,
        }
    }

    /// The function as it is called without a graph.
    #[getter]
    fn function(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    /// The compiled graphs, the one used last at the end.
    #[getter]
    fn graphs(&self, py: Python<'_>) -> Vec<Py<CompiledGraph>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = entries.iter().filter_map(|entry| entry.compiled.as_ref());
        compiled.map(|run| run.graph.clone_ref(py)).collect()
    }

    /// For how many forms of the arguments the function runs as it is, because shapes depend on values.
    #[getter]
    fn num_dynamic(&self) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries
            .iter()
            .filter(|entry| entry.compiled.is_none())
            .count()
    }

    /// Arguments like those of the graph that was traced last, their arrays without values; `None` if there is no graph.
    fn last_arguments(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
        let entries = self
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(run) = entries
            .iter()
            .rev()
            .find_map(|entry| entry.compiled.as_ref())
        else {
            return Ok(None);
        };
        let array = &mut |i: usize, _: bool| {
            let (shape, dtype) = &run.forms[i];
            let made = Array::without_values(shape, *dtype, interp::current_device());
            let made = made.map_err(|error| raise(py, error))?;
            Ok(PyArray::wrap(py, made)?.into_any())
        };
        let args = run.arguments.build(py, array)?;
        let kwargs = match &run.keywords {
            Some(tree) => tree.build(py, array)?,
            None => PyDict::new(py).into_any().unbind(),
        };
        Ok(Some((args, kwargs)))
    }

    /// The graph for calls with arguments like these, traced if it is not known yet, and the form of its results, with `slot(i)` in place of array `i`.
    fn graph_for(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        slot: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(Py<CompiledGraph>, Py<PyAny>)>> {
        let (py, this) = (slf.py(), slf.get());
        let (tracing, signature, arrays) = Tracing::of(args, Some(kwargs))?;
        let entry = match this.entry_for(py, &signature)? {
            Some(entry) => entry,
            None => this.trace(slf, args, Some(kwargs), &arrays, tracing, signature)?,
        };
        let Some(run) = &entry.compiled else {
            return Ok(None);
        };
        let number = &mut |i: usize, _: bool| Ok(slot.call1((i,))?.unbind());
        Ok(Some((
            run.graph.clone_ref(py),
            run.results.build(py, number)?,
        )))
    }

    /// Forgets all graphs.
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
        // A trace that is going on sees the calls themselves; floating-point checks look at each result.
        if flags.is_intercepted() || !IS_ON.load(Ordering::Relaxed) {
            return this.function.call(py, args, kwargs);
        }
        let (tracing, signature, arrays) = Tracing::of(args, kwargs)?;
        if let Some(entry) = this.entry_for(py, &signature)? {
            return this.run(&entry, args, kwargs, &arrays);
        }
        let entry = this.trace(slf, args, kwargs, &arrays, tracing, signature)?;
        this.run(&entry, args, kwargs, &arrays)
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

/// A call that may have to be traced.
struct Tracing {
    tree: Tree,
    keywords: Option<Tree>,
    start: Instant,
}

/// The arrays among arguments.
type Arrays<'py> = SmallVec<[Bound<'py, PyArray>; 8]>;

impl Tracing {
    /// Takes the arguments of a call apart: their form, the signature of the call, the arrays.
    fn of<'py>(
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Tracing, Signature, Arrays<'py>)> {
        let (start, flags) = (Instant::now(), Flags::current());
        let mut flattener = Flattener {
            arrays: SmallVec::new(),
            signature: Some(Signature::default()),
        };
        let mode = u64::from(flags.is_training())
            | u64::from(flags.is_recording()) << 1
            | u64::from(promotion() == Promotion::NumPy) << 2
            | (interp::current_device().kind().index() as u64) << 8
            | u64::from(interp::current_device().id()) << 16;
        if let Some(signature) = &mut flattener.signature {
            signature.words.push(mode);
        }
        let tree = flattener.flatten(args.as_any())?;
        let keywords = match kwargs {
            Some(kwargs) => Some(flattener.flatten(kwargs.as_any())?),
            None => None,
        };
        let mut signature = flattener.signature.take().unwrap_or_default();
        let arrays = flattener.arrays;
        signature.push_sharing(args.py(), &arrays);
        let tracing = Tracing {
            tree,
            keywords,
            start,
        };
        Ok((tracing, signature, arrays))
    }
}

impl JitFunction {
    /// The entry of a signature, if it is current.
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
            let run = entry.compiled.as_ref();
            let is_current = run.is_none_or(|run| run.graph.get().is_current())
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

    /// Traces a call and keeps its graph.
    fn trace(
        &self,
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        arrays: &[Bound<'_, PyArray>],
        tracing: Tracing,
        signature: Signature,
    ) -> PyResult<Arc<Entry>> {
        let py = slf.py();
        let mut results = None;
        let name: String = self
            .function
            .getattr(py, "__qualname__")
            .and_then(|name| name.extract(py))
            .unwrap_or_else(|_| "function".to_owned());
        let setup = self.tracing.call1(py, (slf, args, kwargs))?;
        let setup = setup.bind(py);
        let call = setup.getattr("call")?;
        let passes_off: Vec<String> = setup.getattr("passes_off")?.extract()?;
        let graph = CompiledGraph::trace(py, &name, arrays, &passes_off, &mut |stand_ins| {
            let array = &mut |i: usize, _: bool| Ok(stand_ins[i].clone_ref(py).into_any());
            let given = tracing.tree.build(py, array)?;
            let keywords = match &tracing.keywords {
                Some(tree) => Some(tree.build(py, array)?),
                None => None,
            };
            let result = call.call1((given, keywords))?;
            let mut flattener = Flattener {
                arrays: SmallVec::new(),
                signature: None,
            };
            results = Some(flattener.flatten(&result)?);
            Ok(flattener.arrays.into_iter().map(Bound::unbind).collect())
        })?;
        let compiled = match (graph, results) {
            (Some(mut graph), Some(results)) => {
                graph.seconds = tracing.start.elapsed().as_secs_f64();
                let form = |x: &Array| (x.shape().to_vec(), x.dtype());
                Some(Run {
                    graph: Py::new(py, graph)?,
                    results,
                    arguments: tracing.tree,
                    keywords: tracing.keywords,
                    forms: arrays.iter().map(|x| x.get().with(py, form)).collect(),
                })
            }
            _ => None,
        };
        let graph = compiled.as_ref().map(|run| run.graph.clone_ref(py));
        let (before, is_current) = setup.call_method1("finish", (graph,))?.extract()?;
        let is_kept = !compiled
            .as_ref()
            .is_some_and(|run| run.graph.get().argument_is_captured);
        let entry = Arc::new(Entry {
            signature,
            compiled,
            before,
            is_current,
            generation: GENERATION.load(Ordering::Relaxed),
        });
        if is_kept {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            if entries.len() >= self.max_entries {
                entries.remove(0);
            }
            entries.push(entry.clone());
        }
        Ok(entry)
    }

    /// Runs the graph of an entry; its results in their form. The function is called as it is if there is no graph, or if an argument is also an array
    /// that the graph found elsewhere, and one of both is written.
    fn run(
        &self,
        entry: &Entry,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        arrays: &[Bound<'_, PyArray>],
    ) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let held: SmallVec<[_; 8]> = arrays.iter().map(|x| x.get().array(py)).collect();
        let arguments: SmallVec<[_; 8]> = held.iter().collect();
        let run = entry.compiled.as_ref();
        let Some(run) = run.filter(|run| !run.graph.get().meets_captured(&arguments)) else {
            return self.function.call(py, args, kwargs);
        };
        for before in &entry.before {
            before.call0(py)?;
        }
        let graph = run.graph.get();
        let outputs = match graph.is_long() {
            true => without_gil(py, || graph.run(&arguments)),
            false => graph.run(&arguments),
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
        run.results.build(py, array)
    }
}
