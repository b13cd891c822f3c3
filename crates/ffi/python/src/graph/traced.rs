//! Traced functions: a call with abstract arrays is recorded as a graph, with its gradient if gradients are recorded.

use std::rc::Rc;
use std::sync::Arc;

use mxnet::core::autograd::{self as tape, GradReq, Retain, Through};
use mxnet::core::{Array, Result, mode};
use mxnet::graph::trace::Recorded;
use mxnet::graph::{Decision, Traced, Tracer};
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::error::raise;
use crate::typed::Get;

/// Calls a function with abstract arrays for its arguments; returns its results.
pub type Body<'a> = dyn FnMut(&[Py<PyArray>]) -> PyResult<Vec<Py<PyArray>>> + 'a;

/// A traced function, with its gradient if gradients were recorded.
pub struct TracedFunction {
    pub traced: Traced,
    /// Indices of the results that propagate cotangents.
    pub heads: Vec<usize>,
    /// Inputs with a gradient.
    pub variables: Vec<Recorded>,
    pub num_outputs: usize,
    pub num_arguments: usize,
    /// What the function decided depending on lengths.
    pub decisions: Vec<Decision>,
}

/// An abstract array of another shape; a variable if `x` is recorded.
fn like(x: &Array, shape: &[usize]) -> Result<Array> {
    let made = Array::without_values(shape, x.dtype(), x.device())?;
    let mut made = made.locked(x.tensor().is_read_only());
    if x.edge().is_some() {
        let grad = Array::without_values(shape, x.dtype(), x.device())?;
        tape::mark_variable(&mut made, grad, GradReq::Write)?;
    }
    Ok(made)
}

impl TracedFunction {
    /// Whether the values that the function read during tracing are unchanged.
    pub fn is_current(&self) -> bool {
        let is_same = |(x, version): &(Array, u64)| x.tensor().storage().version() == *version;
        self.traced.seen.iter().all(is_same)
    }

    /// Traces a function, and its gradient if gradients are recorded. `shapes` replaces the shapes of `arrays`; arrays with another shape contribute
    /// their dtype only. `lengths` are the lengths of axes that depend on values. `None` if the function calls operators whose result shapes depend
    /// on values.
    ///
    /// # Errors
    /// What the function raises; the core's errors.
    pub fn trace(
        py: Python<'_>,
        name: &str,
        arrays: &[Bound<'_, PyArray>],
        shapes: Option<&[Vec<usize>]>,
        lengths: Option<fn(usize) -> Option<usize>>,
        function: &mut Body<'_>,
    ) -> PyResult<Option<TracedFunction>> {
        let failed = |error| raise(py, error);
        let mut given: Vec<Array> = Vec::new();
        for (i, x) in arrays.iter().enumerate() {
            let x = x.get().array(py);
            let other = shapes
                .map(|shapes| &shapes[i])
                .filter(|shape| shape[..] != *x.shape());
            given.push(match other {
                Some(shape) => like(&x, shape).map_err(failed)?,
                None => x,
            });
        }
        let tracer = Tracer::new(name);
        if let Some(lengths) = lengths {
            tracer.take_lengths(lengths);
        }
        let shares = |i: usize| {
            let mut others = given.iter().enumerate().filter(|(k, _)| *k != i);
            others.any(|(_, x)| Arc::ptr_eq(x.tensor().storage(), given[i].tensor().storage()))
        };
        let mut stand_ins = Vec::new();
        for (i, x) in given.iter().enumerate() {
            let stand_in = tracer.argument(i, x, shares(i)).map_err(failed)?;
            stand_ins.push(PyArray::wrap(py, stand_in)?);
        }
        let results = match tracer.run(|| function(&stand_ins)) {
            Err(_) if tracer.is_dynamic() => return Ok(None),
            results => results?,
        };
        drop(stand_ins);
        let outputs: Vec<Array> = results.iter().map(|y| y.get().array(py)).collect();
        drop(results);
        TracedFunction::with_gradient(&tracer, outputs, given.len())
            .map(Some)
            .map_err(failed)
    }

    /// Ends a trace after the gradients of its results have been traced.
    fn with_gradient(
        tracer: &Rc<Tracer>,
        outputs: Vec<Array>,
        num_arguments: usize,
    ) -> Result<TracedFunction> {
        tracer.end_forward();
        let num_outputs = outputs.len();
        let mut views = Vec::new();
        for y in &outputs {
            views.push(tracer.view_of(y)?);
        }
        let heads = (0..num_outputs).filter(|&i| outputs[i].entry().is_some());
        let heads: Vec<usize> = match mode::is_recording() {
            true => heads.collect(),
            false => Vec::new(),
        };
        let mut variables = Vec::new();
        if !heads.is_empty() {
            variables = tracer.recorded();
            let mut cotangents = Vec::new();
            for (k, &i) in heads.iter().enumerate() {
                cotangents.push(tracer.argument_like(num_arguments + k, &outputs[i])?);
            }
            let pass = || {
                let heads: Vec<&Array> = heads.iter().map(|&i| &outputs[i]).collect();
                let wanted: Vec<&Array> = variables.iter().map(|x| &x.array).collect();
                let cotangents: Vec<Option<&Array>> = cotangents.iter().map(Some).collect();
                let training = mode::is_training();
                // One input may have been computed from another; that part of the graph does not belong to the function.
                let (keep, through) = (Retain::No, Through::Nothing);
                tape::grad_within(&heads, &wanted, &cotangents, keep, false, training, through)
            };
            let grads = tracer.run(pass)?;
            for grad in &grads {
                let dense = tracer.run(|| grad.contiguous())?;
                views.push(tracer.view_of(&dense)?);
            }
        }
        drop(outputs);
        Ok(TracedFunction {
            traced: tracer.finish(views),
            heads,
            variables,
            num_outputs,
            num_arguments,
            decisions: Vec::new(),
        })
    }
}
