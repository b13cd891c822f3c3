//! Functions that are traced at the first call with each signature, and then run as compiled graphs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mxnet::core::Array;
use mxnet::core::mode::{self, Flags};
use mxnet::graph::Decision;
use mxnet::graph::passes::Choice;
use mxnet::tensor::{DType, Promotion, promotion};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::compiled::{CompiledGraph, TracedFunction};
use super::pieces::SplitFunction;
use super::sized::{Axes, CallSizes, DynamicAxes, Fitted, LENGTHS, SizedFunction, fitted};
use super::tree::{Flattener, Signature, Tree};
use super::watch::watched;
use crate::array::PyArray;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::typed::Get;

/// What is known about calls with one signature.
struct Entry {
    signature: Signature,
    kind: Kind,
    form: Form,
    /// Called before each run.
    before: Vec<Py<PyAny>>,
    /// Called after parameters have been replaced; returns whether the graph still has the right ones.
    is_current: Option<Py<PyAny>>,
    generation: u64,
    /// What reports show of the trace.
    record: Py<PyAny>,
}

/// How a call is executed.
enum Kind {
    /// With a graph.
    Graph(Arc<Py<CompiledGraph>>),
    /// With a template, compiled for the sizes of each call.
    Sized(Box<SizedFunction>),
    /// With a graph in pieces.
    Split(Box<SplitFunction>),
    /// With one graph for each size, and why.
    Specialised(String),
    /// Without a graph, by calling the function, and why.
    AsItIs(String),
}

/// The structure of arguments and results.
struct Form {
    results: Tree,
    /// The arguments of the trace, with shapes and dtypes of their arrays.
    arguments: Tree,
    keywords: Option<Tree>,
    arrays: Vec<(Vec<usize>, DType)>,
}

/// What [`JitFunction::records`] returns for a trace.
type Record = (
    Py<PyAny>,
    Vec<Py<CompiledGraph>>,
    bool,
    usize,
    Option<String>,
);

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

    /// The arguments of the last trace with abstract arrays in place of their arrays; `None` if there is no graph.
    fn last_arguments(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
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
        Ok(Some((args, kwargs)))
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

impl Entry {
    fn graphs(&self) -> Vec<Arc<Py<CompiledGraph>>> {
        match &self.kind {
            Kind::Graph(graph) => vec![graph.clone()],
            Kind::Sized(sized) => sized.graphs(),
            Kind::Split(_) | Kind::Specialised(_) | Kind::AsItIs(_) => Vec::new(),
        }
    }

    /// Whether the values that the function read during tracing are unchanged.
    fn has_seen(&self) -> bool {
        match &self.kind {
            Kind::Graph(graph) => graph.get().is_current(),
            Kind::Sized(sized) => sized.is_current(),
            Kind::Split(split) => split.is_current(),
            Kind::Specialised(_) | Kind::AsItIs(_) => true,
        }
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

/// A call, and the graph that executes it if there is one.
struct Prepared<'py> {
    entry: Arc<Entry>,
    graph: Option<Arc<Py<CompiledGraph>>>,
    arrays: Arrays<'py>,
    /// Lengths of the dynamic axes.
    sizes: Vec<i64>,
}

impl Tracing {
    /// Analyses the arguments of a call: their structure, the signature, the arrays, and the lengths of dynamic axes.
    fn of<'py>(
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        dynamic: Option<&DynamicAxes>,
    ) -> PyResult<(Tracing, Signature, Arrays<'py>, Option<CallSizes>)> {
        let (start, flags) = (Instant::now(), Flags::current());
        let mut flattener = Flattener {
            arrays: SmallVec::new(),
            signature: Some(Signature::default()),
            sizes: dynamic.map(|dynamic| (dynamic, CallSizes::default())),
        };
        let mode = u64::from(flags.is_training())
            | u64::from(flags.is_recording()) << 1
            | u64::from(promotion() == Promotion::NumPy) << 2
            | (mode::current_device().kind().index() as u64) << 8
            | u64::from(mode::current_device().id()) << 16;
        if let Some(signature) = &mut flattener.signature {
            signature.words.push(mode);
            signature.words.push(mxnet::graph::passes::generation());
        }
        let tree = flattener.flatten(args.as_any())?;
        let keywords = match kwargs {
            Some(kwargs) => Some(flattener.flatten(kwargs.as_any())?),
            None => None,
        };
        let mut signature = flattener.signature.take().unwrap_or_default();
        let arrays = flattener.arrays;
        let shares = signature.push_sharing(args.py(), &arrays);
        let sizes = flattener.sizes.map(|(_, sizes)| sizes);
        if sizes
            .as_ref()
            .is_some_and(|sizes| sizes.has_strides || shares)
        {
            // Arrays that are not in C order, or share memory, get a graph for their sizes.
            return Tracing::of(args, kwargs, None);
        }
        let tracing = Tracing {
            tree,
            keywords,
            start,
        };
        Ok((tracing, signature, arrays, sizes))
    }
}

/// A function as traced for one call.
struct Sampled {
    traced: Option<TracedFunction>,
    results: Option<Tree>,
    setup: Py<PyAny>,
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

    /// Traces a call with arrays of these shapes (by default their own). Templates need three such traces.
    fn sample(
        &self,
        slf: &Bound<'_, Self>,
        (args, kwargs, arrays): Call<'_, '_>,
        tracing: &Tracing,
        (shapes, which): (Option<&[Vec<usize>]>, usize),
    ) -> PyResult<Sampled> {
        let py = slf.py();
        let mut results = None;
        let setup = self.tracing.call1(py, (slf, args, kwargs))?;
        let call = setup.getattr(py, "call")?;
        let name = self.name(py);
        let splits: bool = setup.getattr(py, "splits")?.extract(py)?;
        let lengths = splits.then_some(LENGTHS[which]);
        let seen = setup.getattr(py, "note_length")?;
        let traced = TracedFunction::trace(py, &name, arrays, shapes, lengths, &mut |stand_ins| {
            let array = &mut |i: usize, _: bool| Ok(stand_ins[i].clone_ref(py).into_any());
            let given = tracing.tree.build(py, array)?;
            let keywords = match &tracing.keywords {
                Some(tree) => Some(tree.build(py, array)?),
                None => None,
            };
            let call = || call.bind(py).call1((given, keywords));
            let result = watched(seen.clone_ref(py), call)?;
            let mut flattener = Flattener {
                arrays: SmallVec::new(),
                signature: None,
                sizes: None,
            };
            results = Some(flattener.flatten(&result)?);
            Ok(flattener.arrays.into_iter().map(Bound::unbind).collect())
        })?;
        let decisions: Vec<(String, f64, f64, bool)> =
            setup.getattr(py, "decisions")?.extract(py)?;
        let decisions = decisions
            .into_iter()
            .map(|(comparison, left, right, outcome)| Decision {
                comparison,
                left,
                right,
                outcome,
            });
        let traced = traced.map(|traced| TracedFunction {
            decisions: decisions.collect(),
            ..traced
        });
        Ok(Sampled {
            traced,
            results,
            setup,
        })
    }

    /// Traces a call and stores its graph.
    fn trace(
        &self,
        slf: &Bound<'_, Self>,
        call: Call<'_, '_>,
        tracing: Tracing,
        signature: Signature,
    ) -> PyResult<Arc<Entry>> {
        let py = slf.py();
        let sampled = self.sample(slf, call, &tracing, (None, 0))?;
        let choice = super::passes::choice(sampled.setup.bind(py))?;
        let setup = sampled.setup.clone_ref(py);
        let as_it_is = |why: &str| Kind::AsItIs(why.to_owned());
        let (kind, results, is_kept) = match sampled.traced {
            Some(traced) if traced.traced.counted.is_empty() => {
                let graph = traced.traced.graph.clone();
                let compiled = traced.compile(graph, &choice);
                let mut graph = compiled.map_err(|error| raise(py, error))?;
                graph.seconds = tracing.start.elapsed().as_secs_f64();
                let is_kept = !graph.argument_is_captured;
                let kind = Kind::Graph(Arc::new(Py::new(py, graph)?));
                (kind, sampled.results, is_kept)
            }
            Some(_) => {
                // Shapes depend on values: the graph is in pieces, provided that it is the same for all lengths.
                let mut found = vec![sampled];
                for which in [1, 2] {
                    match self.sample(slf, call, &tracing, (None, which)) {
                        Ok(sampled) => found.push(sampled),
                        Err(_) => break,
                    }
                }
                let no_sizes = [Vec::new(), Vec::new(), Vec::new()];
                let (fitted, results) = fitted_of(py, found, &no_sizes, &[], choice)?;
                let kind = match fitted {
                    Ok(Fitted::Split(split)) => Kind::Split(Box::new(split)),
                    Ok(Fitted::Sized(_)) => as_it_is("its graph changes from trace to trace"),
                    Err(why) => Kind::AsItIs(format!("shapes of results depend on values: {why}")),
                };
                (kind, results, true)
            }
            None => (as_it_is("shapes of results depend on values"), None, true),
        };
        let form = tracing.form(py, call.2, results);
        self.keep(py, (kind, form, setup), signature, is_kept)
    }

    /// Traces a call at three sizes. Stores one template for all sizes, or the reason why there is none.
    fn trace_sizes(
        &self,
        slf: &Bound<'_, Self>,
        call: Call<'_, '_>,
        tracing: Tracing,
        signature: Signature,
        sizes: &CallSizes,
    ) -> PyResult<Arc<Entry>> {
        let py = slf.py();
        let arrays: Vec<Array> = call.2.iter().map(|x| x.get().array(py)).collect();
        let Some(samples) = sizes.samples() else {
            let why = format!("{} dynamic lengths are too many", sizes.sizes.len());
            let setup = self.tracing.call1(py, (slf, call.0, call.1))?;
            let form = tracing.form(py, call.2, None);
            return self.keep(py, (Kind::Specialised(why), form, setup), signature, true);
        };
        let mut found: Vec<Sampled> = Vec::new();
        let mut why = None;
        for (i, at) in samples.iter().enumerate() {
            let shapes = sizes.shapes(&arrays, at);
            match self.sample(slf, call, &tracing, (Some(&shapes), i)) {
                Ok(sampled) if sampled.traced.is_none() => {
                    let why = "shapes of results depend on values".to_owned();
                    let form = tracing.form(py, call.2, None);
                    let kept = (Kind::AsItIs(why), form, sampled.setup);
                    return self.keep(py, kept, signature, true);
                }
                Ok(sampled) => found.push(sampled),
                // For the sizes of the call itself, the error is the function's.
                Err(error) if i == 0 && *at == sizes.sizes => return Err(error),
                Err(error) => {
                    why = Some(format!("with sizes {at:?} it raises {}", error.value(py)));
                    break;
                }
            }
        }
        let setup = match found.first() {
            Some(sampled) => sampled.setup.clone_ref(py),
            None => self.tracing.call1(py, (slf, call.0, call.1))?,
        };
        let choice = super::passes::choice(setup.bind(py))?;
        let (fitted, results) = fitted_of(py, found, &samples, &sizes.places, choice)?;
        let kind = match fitted {
            Ok(Fitted::Sized(sized)) => Kind::Sized(Box::new(sized)),
            Ok(Fitted::Split(split)) => Kind::Split(Box::new(split)),
            Err(other) => Kind::Specialised(why.unwrap_or(other)),
        };
        let form = tracing.form(py, call.2, results);
        self.keep(py, (kind, form, setup), signature, true)
    }

    /// Creates an entry and stores it.
    fn keep(
        &self,
        py: Python<'_>,
        (kind, form, record): (Kind, Form, Py<PyAny>),
        signature: Signature,
        is_kept: bool,
    ) -> PyResult<Arc<Entry>> {
        let graph = match &kind {
            Kind::Graph(graph) => Some(graph.get().captured_storages()),
            Kind::Sized(sized) => Some(sized.captured_storages()),
            Kind::Split(split) => Some(split.captured_storages()),
            Kind::Specialised(_) | Kind::AsItIs(_) => None,
        };
        let (before, is_current) = record.call_method1(py, "finish", (graph,))?.extract(py)?;
        let entry = Arc::new(Entry {
            signature,
            kind,
            form,
            before,
            is_current,
            generation: GENERATION.load(Ordering::Relaxed),
            record,
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

/// A template from three traces, or the reason why there is none, and the structure of its results.
fn fitted_of(
    py: Python<'_>,
    found: Vec<Sampled>,
    sizes: &[Vec<i64>; 3],
    places: &[(usize, usize)],
    choice: Choice,
) -> PyResult<(Result<Fitted, String>, Option<Tree>)> {
    let mut results = None;
    let mut traces = Vec::new();
    for sampled in found {
        let (Some(tree), Some(traced)) = (sampled.results, sampled.traced) else {
            continue;
        };
        match &results {
            None => results = Some(tree),
            Some(first) if !tree.is_same(first, py)? => {
                let why = "a result that is not an array depends on a size".to_owned();
                return Ok((Err(why), results));
            }
            Some(_) => {}
        }
        traces.push(traced);
    }
    let fitted = match <[TracedFunction; 3]>::try_from(traces) {
        Ok(traces) => fitted(traces, sizes, places, choice),
        Err(_) => Err("it raises an error at another size".to_owned()),
    };
    Ok((fitted, results))
}

/// Arguments, keyword arguments, and the arrays in both.
type Call<'a, 'py> = (
    &'a Bound<'py, PyTuple>,
    Option<&'a Bound<'py, PyDict>>,
    &'a [Bound<'py, PyArray>],
);

impl Tracing {
    fn form(self, py: Python<'_>, arrays: &[Bound<'_, PyArray>], results: Option<Tree>) -> Form {
        let form = |x: &Array| (x.shape().to_vec(), x.dtype());
        Form {
            results: results.unwrap_or_else(|| Tree::Tuple(Vec::new())),
            arguments: self.tree,
            keywords: self.keywords,
            arrays: arrays.iter().map(|x| x.get().with(py, form)).collect(),
        }
    }
}
