//! How a call is traced: its structure and signature, samples at several sizes, and the entry that is stored for them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use mxnet::core::Array;
use mxnet::core::mode::{self, Flags};
use mxnet::graph::Decision;
use mxnet::graph::passes::Choice;
use mxnet::tensor::{Promotion, promotion};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::entry::{Entry, Form, Kind};
use super::{GENERATION, JitFunction};
use crate::array::PyArray;
use crate::error::raise;
use crate::graph::sized::{CallSizes, DynamicAxes, Fitted, LENGTHS, fitted};
use crate::graph::traced::TracedFunction;
use crate::graph::tree::{Flattener, Signature, Tree};
use crate::graph::watch::watched;
use crate::typed::Get;

/// A call that may have to be traced.
pub(super) struct Tracing {
    tree: Tree,
    keywords: Option<Tree>,
    start: Instant,
}

/// The arrays among arguments.
pub(super) type Arrays<'py> = SmallVec<[Bound<'py, PyArray>; 8]>;

impl Tracing {
    /// Analyses the arguments of a call: their structure, the signature, the arrays, and the lengths of dynamic axes.
    pub(super) fn of<'py>(
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
            | flags.autocast().map_or(0, |dtype| 1 + dtype as u64) << 3
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
pub(super) struct Sampled {
    traced: Option<TracedFunction>,
    results: Option<Tree>,
    setup: Py<PyAny>,
}

impl JitFunction {
    /// Traces a call with arrays of these shapes (by default their own). Templates need three such traces.
    pub(super) fn sample(
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
    pub(super) fn trace(
        &self,
        slf: &Bound<'_, Self>,
        call: Call<'_, '_>,
        tracing: Tracing,
        signature: Signature,
    ) -> PyResult<Arc<Entry>> {
        let py = slf.py();
        let sampled = self.sample(slf, call, &tracing, (None, 0))?;
        let choice = crate::graph::passes::choice(sampled.setup.bind(py))?;
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
    pub(super) fn trace_sizes(
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
        let choice = crate::graph::passes::choice(setup.bind(py))?;
        let (fitted, results) = fitted_of(py, found, &samples, &sizes.positions, choice)?;
        let kind = match fitted {
            Ok(Fitted::Sized(sized)) => Kind::Sized(Box::new(sized)),
            Ok(Fitted::Split(split)) => Kind::Split(Box::new(split)),
            Err(other) => Kind::Specialised(why.unwrap_or(other)),
        };
        let form = tracing.form(py, call.2, results);
        self.keep(py, (kind, form, setup), signature, true)
    }

    /// Creates an entry and stores it.
    pub(super) fn keep(
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
            let oldest = (entries.len() >= self.max_entries).then(|| entries.remove(0));
            entries.push(entry.clone());
            // Its objects may run code of the user, which may need the lock.
            drop(entries);
            drop(oldest);
        }
        Ok(entry)
    }
}

/// A template from three traces, or the reason why there is none, and the structure of its results.
pub(super) fn fitted_of(
    py: Python<'_>,
    found: Vec<Sampled>,
    sizes: &[Vec<i64>; 3],
    positions: &[(usize, usize)],
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
        Ok(traces) => fitted(traces, sizes, positions, choice),
        Err(_) => Err("it raises an error at another size".to_owned()),
    };
    Ok((fitted, results))
}

/// Arguments, keyword arguments, and the arrays in both.
pub(super) type Call<'a, 'py> = (
    &'a Bound<'py, PyTuple>,
    Option<&'a Bound<'py, PyDict>>,
    &'a [Bound<'py, PyArray>],
);

impl Tracing {
    pub(super) fn form(
        self,
        py: Python<'_>,
        arrays: &[Bound<'_, PyArray>],
        results: Option<Tree>,
    ) -> Form {
        let form = |x: &Array| (x.shape().to_vec(), x.dtype());
        Form {
            results: results.unwrap_or_else(|| Tree::Tuple(Vec::new())),
            arguments: self.tree,
            keywords: self.keywords,
            arrays: arrays.iter().map(|x| x.get().with(py, form)).collect(),
            autocast: mode::autocast(),
        }
    }
}
