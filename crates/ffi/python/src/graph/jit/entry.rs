//! Entries: how calls with one signature are executed, and the structure of their arguments and results.

use std::sync::Arc;

use mxnet::tensor::DType;
use pyo3::prelude::*;

use crate::graph::compiled::CompiledGraph;
use crate::graph::pieces::SplitFunction;
use crate::graph::sized::SizedFunction;
use crate::graph::tree::{Signature, Tree};

/// What is known about calls with one signature.
pub(super) struct Entry {
    pub(super) signature: Signature,
    pub(super) kind: Kind,
    pub(super) form: Form,
    /// Called before each run.
    pub(super) before: Vec<Py<PyAny>>,
    /// Called after parameters have been replaced; returns whether the graph still has the right ones.
    pub(super) is_current: Option<Py<PyAny>>,
    pub(super) generation: u64,
    /// What reports show of the trace.
    pub(super) record: Py<PyAny>,
}

/// How a call is executed.
pub(super) enum Kind {
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
pub(super) struct Form {
    pub(super) results: Tree,
    /// The arguments of the trace, with shapes and dtypes of their arrays.
    pub(super) arguments: Tree,
    pub(super) keywords: Option<Tree>,
    pub(super) arrays: Vec<(Vec<usize>, DType)>,
    /// The dtype of automatic mixed precision during the trace.
    pub(super) autocast: Option<DType>,
}

impl Entry {
    pub(super) fn graphs(&self) -> Vec<Arc<Py<CompiledGraph>>> {
        match &self.kind {
            Kind::Graph(graph) => vec![graph.clone()],
            Kind::Sized(sized) => sized.graphs(),
            Kind::Split(_) | Kind::Specialised(_) | Kind::AsItIs(_) => Vec::new(),
        }
    }

    /// Whether the values that the function read during tracing are unchanged.
    pub(super) fn has_seen(&self) -> bool {
        match &self.kind {
            Kind::Graph(graph) => graph.get().is_current(),
            Kind::Sized(sized) => sized.is_current(),
            Kind::Split(split) => split.is_current(),
            Kind::Specialised(_) | Kind::AsItIs(_) => true,
        }
    }
}
