//! What a trace knows: the graph so far, and for each storage the buffer that it holds now.

use std::collections::HashMap;
use std::sync::Arc;

use mxnet_core::builtins::builtins;
use mxnet_core::mode::is_training;
use mxnet_core::{Array, Attrs, Error, Result, Rng, call_site, caller, profiler};
use mxnet_tensor::{DType, Device, Layout, Storage, Tensor};
use smallvec::SmallVec;

use super::{Recorded, address};
use crate::ir::{BufferId, Graph, Input, Node, Operand, Source, Version, View};

/// A storage that the traced function uses.
pub(super) struct Variable {
    /// The abstract storage that operators see. It is kept alive so that its address is not reused.
    pub shadow: Arc<Storage>,
    /// The buffer that the storage holds now.
    pub current: BufferId,
    /// The number of the input that it is, if it is one.
    pub input: Option<usize>,
}

pub(super) struct State {
    pub graph: Graph,
    pub variables: Vec<Variable>,
    /// Variables by the addresses of their storages: the abstract one, and the one with values if there is one.
    pub by_storage: HashMap<usize, usize>,
    /// Storages of arguments, kept alive while their addresses are in `by_storage`.
    pub held: Vec<Array>,
    /// Whether an argument and an array from outside share a storage.
    pub argument_is_captured: bool,
    /// Arrays with a graph entry of the outer recording that the function uses, each once.
    pub recorded: Vec<Recorded>,
    /// Arrays whose values the function read, with their versions. If the values change, the function must be traced again.
    pub seen: Vec<(Array, u64)>,
    /// Nodes before this one belong to the function, later ones to its gradient.
    pub num_forward_nodes: Option<usize>,
    /// Whether the function has called an operator whose result shape depends on values.
    pub is_dynamic: bool,
    /// Lengths to assume for axes that depend on values, if the function is traced several times with different lengths.
    pub lengths: Option<fn(usize) -> Option<usize>>,
    /// Axes of results that depend on values, each listed at its first occurrence.
    pub counted: Vec<Counted>,
}

/// An axis of a result whose length depends on values.
pub(super) struct Counted {
    pub buffer: BufferId,
    pub axis: usize,
    pub len: usize,
    /// What the length counts, for example nonzero elements.
    pub what: &'static str,
    pub of: Operand,
}

/// An abstract array in `storage`, with the write permission and the graph entry of `like`.
pub(super) fn seen_in(storage: Arc<Storage>, layout: Layout, like: &Array) -> Result<Array> {
    let tensor = Tensor::new(storage, layout, like.dtype())?.locked(like.tensor().is_read_only());
    let seen = Array::from_tensor(tensor);
    Ok(match like.entry() {
        Some((node, index)) => seen.with_entry(node.clone(), *index),
        None => seen,
    })
}

impl State {
    pub fn add_variable(&mut self, len_bytes: usize, device: Device) -> Result<usize> {
        let shadow = Array::without_values(&[len_bytes], DType::U8, device)?;
        let shadow = shadow.tensor().storage().clone();
        let current = self.graph.add_buffer(len_bytes, device);
        self.by_storage
            .insert(address(&shadow), self.variables.len());
        self.variables.push(Variable {
            shadow,
            current,
            input: None,
        });
        Ok(self.variables.len() - 1)
    }

    pub fn add_input(&mut self, known: usize, source: Source, layout: Layout, like: &Array) {
        let buffer = self.variables[known].current;
        self.variables[known].input = Some(self.graph.inputs.len());
        self.graph.inputs.push(Input {
            buffer,
            source,
            view: View {
                buffer,
                layout,
                dtype: like.dtype(),
                is_read_only: like.tensor().is_read_only(),
            },
            written: None,
        });
    }

    /// The variable of an array's storage. A new array with values becomes an input.
    pub fn variable_of(&mut self, x: &Array) -> Result<usize> {
        let storage = x.tensor().storage();
        if let Some(&known) = self.by_storage.get(&address(storage)) {
            if let Some(i) = self.variables[known].input
                && !x.is_abstract()
                && matches!(self.graph.inputs[i].source, Source::Argument(_))
            {
                self.argument_is_captured = true;
            }
            return Ok(known);
        }
        if x.is_abstract() {
            let problem = format!(
                "an array of shape {} belongs to another trace, which has ended: it has no values",
                mxnet_core::Tuple(x.shape())
            );
            return Err(Error::without_values("trace", problem)
                .with_hint("return it from the traced function instead of keeping it elsewhere"));
        }
        let known = self.add_variable(storage.len_bytes(), x.device())?;
        self.by_storage.insert(address(storage), known);
        // The whole storage, not only what the array views.
        let whole = Layout::contiguous(&[storage.len_bytes()]);
        let bytes = Array::from_tensor(Tensor::new(storage.clone(), whole.clone(), DType::U8)?);
        let bytes = bytes.locked(storage.is_read_only());
        self.add_input(known, Source::Captured(bytes.clone()), whole, &bytes);
        Ok(known)
    }

    pub fn view(&self, known: usize, x: &Array) -> View {
        View {
            buffer: self.variables[known].current,
            layout: x.layout().clone(),
            dtype: x.dtype(),
            is_read_only: x.tensor().is_read_only(),
        }
    }

    /// Registers an array that has a graph entry, for gradients of the traced function.
    pub fn note_recorded(&mut self, argument: Option<usize>, x: &Array) {
        let Some((node, index)) = x.entry() else {
            return;
        };
        let is_known = self.recorded.iter().any(|known| {
            (known.array.entry()).is_some_and(|(n, i)| Arc::ptr_eq(n, node) && i == index)
        });
        if !is_known {
            self.recorded.push(Recorded {
                argument,
                array: x.clone(),
            });
        }
    }

    pub fn shadow(&mut self, x: &Array) -> Result<Array> {
        let known = self.variable_of(x)?;
        if x.is_abstract() {
            return Ok(x.clone());
        }
        self.note_recorded(None, x);
        seen_in(self.variables[known].shadow.clone(), x.layout().clone(), x)
    }

    /// Registers a new abstract array, which owns its storage. Returns its view.
    pub fn define(&mut self, y: &Array) -> View {
        let storage = y.tensor().storage();
        let current = self.graph.add_buffer(storage.len_bytes(), y.device());
        self.by_storage
            .insert(address(storage), self.variables.len());
        self.variables.push(Variable {
            shadow: storage.clone(),
            current,
            input: None,
        });
        self.view(self.variables.len() - 1, y)
    }

    /// Makes a new version of a storage's buffer for a partial write.
    pub fn renew(&mut self, known: usize) -> Version {
        let old = self.variables[known].current;
        let was = self.graph.buffer(old);
        let new = self.graph.add_buffer(was.len_bytes, was.device);
        self.variables[known].current = new;
        Version { old, new }
    }

    pub fn push(&mut self, mut node: Node) {
        self.graph.reserve(&mut node);
        self.graph.nodes.push(node);
    }

    /// Whether two operands are known to have equal elements, apart from their shape. Compares how they were computed, up to a depth.
    pub fn is_same(&self, a: &Operand, b: &Operand, depth: usize) -> bool {
        let (Operand::View(x), Operand::View(y)) = (a, b) else {
            return a == b;
        };
        let is_dense = |view: &View| view.layout.is_contiguous();
        let is_alike = x.layout == y.layout
            || is_dense(x)
                && is_dense(y)
                && x.layout.len() == y.layout.len()
                && x.layout.offset() == y.layout.offset();
        if !is_alike || x.dtype != y.dtype {
            return false;
        }
        if x.buffer == y.buffer {
            return true;
        }
        let definer = |buffer: BufferId| {
            let mut nodes = self.graph.nodes.iter().rev();
            nodes.find(|node| node.defines().any(|defined| defined == buffer))
        };
        let (Some(p), Some(q)) = (definer(x.buffer), definer(y.buffer)) else {
            return false;
        };
        let position = |node: &Node, buffer: BufferId| {
            node.outputs.iter().position(|view| view.buffer == buffer)
        };
        depth > 0
            && std::ptr::eq(p.op, q.op)
            && p.attrs == q.attrs
            && p.dtype == q.dtype
            && p.versions.is_empty()
            && q.versions.is_empty()
            && matches!(p.op.rng, Rng::No | Rng::Derived)
            && !p.op.is_impure
            && position(p, x.buffer) == position(q, y.buffer)
            && p.inputs.len() == q.inputs.len()
            && (p.inputs.iter().zip(&q.inputs)).all(|(a, b)| self.is_same(a, b, depth - 1))
    }

    /// Records an assignment of `from` to `out`.
    pub fn assign(&mut self, from: Operand, out: &Array) -> Result<()> {
        let known = self.variable_of(out)?;
        let len_bytes = out.tensor().storage().len_bytes();
        let is_whole = out.len() * out.dtype().size() == len_bytes && !out.shares_elements();
        let mut versions = SmallVec::new();
        match is_whole {
            true => {
                let device = out.device();
                self.variables[known].current = self.graph.add_buffer(len_bytes, device);
            }
            false => versions.push(self.renew(known)),
        }
        let output = self.view(known, out);
        self.push(Node {
            op: builtins().copy,
            attrs: Attrs::none(),
            inputs: SmallVec::from_iter([from]),
            outputs: SmallVec::from_iter([output]),
            versions,
            dtype: Some(out.dtype()),
            training: is_training(),
            is_assignment: true,
            rng_block: 0,
            rng_stream: 0,
            caller: caller::current(),
            line: call_site::line(),
            scope: profiler::current_scope(),
            is_backward: profiler::is_in_backward(),
        });
        Ok(())
    }

    pub fn operand(&mut self, x: Option<&Array>) -> Result<Operand> {
        let Some(x) = x else {
            return Ok(Operand::Absent);
        };
        if let Some(value) = x.number() {
            return Ok(Operand::Number(value));
        }
        if x.is_launch_argument() {
            return Ok(Operand::Constant(x.item()?, x.dtype()));
        }
        let known = self.variable_of(x)?;
        Ok(Operand::View(self.view(known, x)))
    }
}
