//! Tracing: an interpreter that records the calls of a function on abstract arrays as a graph.
//!
//! Arrays are identified by their storage. Arguments and results of the function are abstract. An array with values that the function uses from
//! outside (a parameter, a global variable) becomes an input of the graph; operators get an abstract stand-in for it. Nothing is computed, and no
//! array that has values is written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use mxnet_core::builtins::builtins;
use mxnet_core::mode::{Interpreter, expand, is_recording, is_training, with_interpreter};
use mxnet_core::{
    Array, Call, Cpu, Error, Known, OpDef, Outputs, Result, Rng, autograd, call_site, caller,
    eager, fp_errors, profiler,
};
use mxnet_tensor::{DType, Device, DeviceKind, Promotion, Storage, promotion};
use smallvec::SmallVec;

use crate::ir::{BufferId, Graph, Node, Operand, Source, Version, View};
use crate::random::Stream;

mod state;

use state::{Counted, State, seen_in};

/// An array with a graph entry of the outer recording that a traced function uses.
#[derive(Clone)]
pub struct Recorded {
    /// The number of the argument; `None` for an array from outside.
    pub argument: Option<usize>,
    /// The array.
    pub array: Array,
}

/// The interpreter that records calls.
pub struct Tracer {
    this: Weak<Tracer>,
    state: RefCell<State>,
}

/// Result of a trace.
pub struct Traced {
    /// The graph.
    pub graph: Graph,
    /// Whether an argument and an array from outside share a storage: the graph is then valid only for such calls.
    pub argument_is_captured: bool,
    /// The arrays with a graph entry of the outer recording that it uses.
    pub recorded: Vec<Recorded>,
    /// Number of nodes of the function itself; those of its gradient follow.
    pub num_forward_nodes: usize,
    /// Axes of results whose lengths depend on values, each listed at its first occurrence.
    pub counted: Vec<(BufferId, usize)>,
    /// Arrays whose values the function read, with their versions: the graph is valid while these are the same.
    pub seen: Vec<(Array, u64)>,
}

fn address(storage: &Arc<Storage>) -> usize {
    Arc::as_ptr(storage) as usize
}

impl Tracer {
    /// A tracer for a graph of this name.
    pub fn new(name: &str) -> Rc<Tracer> {
        Rc::new_cyclic(|this| Tracer {
            this: this.clone(),
            state: RefCell::new(State {
                graph: Graph::new(name, promotion()),
                variables: Vec::new(),
                by_storage: HashMap::new(),
                held: Vec::new(),
                argument_is_captured: false,
                recorded: Vec::new(),
                seen: Vec::new(),
                num_forward_nodes: None,
                is_dynamic: false,
                lengths: None,
                counted: Vec::new(),
            }),
        })
    }

    /// An abstract array for an argument. If the argument `shares` its storage with another one, the whole storage is the input, otherwise only the
    /// part that it views.
    ///
    /// # Errors
    /// [`Error::Memory`] if the size of the storage overflows.
    pub fn argument(&self, index: usize, x: &Array, shares: bool) -> Result<Array> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let real = x.tensor().storage();
        state.note_recorded(Some(index), x);
        if let Some(&known) = state.by_storage.get(&address(real)) {
            let shadow = state.variables[known].shadow.clone();
            return seen_in(shadow, x.layout().clone(), x);
        }
        let (layout, len_bytes) = match (shares, x.layout().span()) {
            (false, Some((low, high))) => {
                let offset = x.layout().offset() - low;
                (
                    x.layout().with_offset(offset),
                    (high - low + 1) * x.dtype().size(),
                )
            }
            (false, None) => (x.layout().with_offset(0), 0),
            (true, _) => (x.layout().clone(), real.len_bytes()),
        };
        let known = state.add_variable(len_bytes, x.device())?;
        state.by_storage.insert(address(real), known);
        state.held.push(x.detach());
        state.add_input(known, Source::Argument(index), layout.clone(), x);
        seen_in(state.variables[known].shadow.clone(), layout, x)
    }

    /// An abstract array for argument `index`, of which only layout, dtype and device are known.
    ///
    /// # Errors
    /// As [`Tracer::argument`].
    pub fn argument_like(&self, index: usize, like: &Array) -> Result<Array> {
        let form = Array::without_values(like.shape(), like.dtype(), like.device())?;
        self.argument(index, &form, false)
    }

    /// Whether the trace failed because the shape of a result depends on values.
    pub fn is_dynamic(&self) -> bool {
        self.state.borrow().is_dynamic
    }

    /// Marks the end of the function itself. Later calls belong to its gradient.
    pub fn end_forward(&self) {
        let mut state = self.state.borrow_mut();
        state.num_forward_nodes = Some(state.graph.nodes.len());
    }

    /// The arrays with a graph entry of the outer recording that were used so far.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.state.borrow().recorded.clone()
    }

    /// Sets the lengths of axes that depend on values, by their number in the order of the calls.
    pub fn take_lengths(&self, lengths: fn(usize) -> Option<usize>) {
        self.state.borrow_mut().lengths = Some(lengths);
    }

    /// Runs `body` and records its calls.
    pub fn run<R>(self: &Rc<Tracer>, body: impl FnOnce() -> R) -> R {
        fp_errors::unwatched(|| with_interpreter(self.clone(), body))
    }

    /// The view of an array in the graph, in its current version.
    ///
    /// # Errors
    /// [`Error::Abstract`] for an abstract array of another trace.
    pub fn view_of(&self, x: &Array) -> Result<View> {
        let mut state = self.state.borrow_mut();
        let known = state.variable_of(x)?;
        Ok(state.view(known, x))
    }

    /// The abstract stand-in for an array with values. It has the same graph entry.
    ///
    /// # Errors
    /// As [`Tracer::view_of`].
    pub fn shadow(&self, x: &Array) -> Result<Array> {
        self.state.borrow_mut().shadow(x)
    }

    /// Ends the trace; `outputs` are the views of the results. Arrays that nobody else holds by now were made by the function itself.
    pub fn finish(&self, outputs: Vec<View>) -> Traced {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.graph.outputs = outputs;
        for variable in &state.variables {
            let Some(i) = variable.input else { continue };
            let input = &mut state.graph.inputs[i];
            if let Source::Captured(x) = &input.source
                && Arc::strong_count(x.tensor().storage()) == 1
            {
                input.source = Source::Constant(x.detach());
            }
            let is_written = variable.current != input.buffer;
            if is_written && !matches!(input.source, Source::Constant(_)) {
                input.written = Some(variable.current);
            }
        }
        state.graph.streams.iter_mut().for_each(Stream::end_trace);
        state.by_storage.clear();
        state.held.clear();
        let num_nodes = state.graph.nodes.len();
        Traced {
            graph: std::mem::replace(&mut state.graph, Graph::new("", promotion())),
            argument_is_captured: state.argument_is_captured,
            num_forward_nodes: (state.num_forward_nodes).unwrap_or(num_nodes),
            recorded: std::mem::take(&mut state.recorded),
            counted: (state.counted.iter()).map(|x| (x.buffer, x.axis)).collect(),
            // Drops arrays that nobody else holds: the function made them.
            seen: (state.seen.drain(..))
                .filter(|(x, _)| Arc::strong_count(x.tensor().storage()) > 1)
                .collect(),
        }
    }
}

impl Tracer {
    /// Records a call of an operator, and returns its outputs as abstract arrays.
    fn note(&self, call: &Call, seen: &Call) -> Result<Outputs> {
        let rng_stream = match call.op.rng {
            Rng::Blocks(_) => self.state.borrow_mut().graph.stream(),
            _ => 0,
        };
        if let Cpu::Eager(_, Known::FromValues) = call.op.cpu {
            self.state.borrow_mut().is_dynamic = true;
        }
        let operands = {
            let mut state = self.state.borrow_mut();
            let operands = call.inputs.iter().map(|x| state.operand(*x));
            operands.collect::<Result<SmallVec<[Operand; 4]>>>()?
        };
        let has_arrays = operands.iter().any(|x| matches!(x, Operand::View(_)));
        // Checks the call and records it for gradients. Without arrays there is nothing to record.
        let counted = self.counted(call, &operands)?;
        let results = match has_arrays || !call.outs.is_empty() {
            _ if counted.is_some() => {
                let forms = counted.as_ref().map_or(&[][..], |(forms, _)| forms);
                let made = || {
                    let forms = forms.iter().map(|(shape, dtype, _)| {
                        Array::without_values(shape, *dtype, Device::cpu(0))
                    });
                    forms.collect::<Result<Outputs>>()
                };
                match is_recording() {
                    true => autograd::record_as(seen, made)?,
                    false => made()?,
                }
            }
            true => self.below(seen)?,
            false => eager::without_values(seen)?,
        };
        // Given outputs are computed separately and copied. Passes remove the copy where possible.
        let computed = match call.outs.iter().any(Option::is_some) {
            true => eager::without_values(&Call { outs: &[], ..*seen })?,
            false => results.clone(),
        };
        let mut state = self.state.borrow_mut();
        let is_copy =
            std::ptr::eq(call.op, builtins().copy) || std::ptr::eq(call.op, builtins().cast);
        if is_copy && let (Some(Some(out)), Some(y)) = (call.outs.first(), computed.first()) {
            let from = match &operands[0] {
                Operand::View(view) if view.layout.shape() != out.shape() => Operand::View(View {
                    layout: view.layout.broadcast_to(out.shape())?,
                    ..view.clone()
                }),
                other => other.clone(),
            };
            debug_assert!(y.ndim() <= out.ndim());
            state.assign(from, out)?;
            return Ok(results);
        }
        let mutated: SmallVec<[usize; 4]> = call.context().mutated().map(|(i, _)| i).collect();
        let outputs: SmallVec<[View; 1]> = computed.iter().map(|y| state.define(y)).collect();
        if let Some((forms, true)) = &counted
            && let Some(i) = forms.iter().position(|form| form.2.is_some())
            && let (shape, _, Some(axis)) = &forms[i]
        {
            state.counted.push(Counted {
                buffer: outputs[i].buffer,
                axis: *axis,
                len: shape[*axis],
                what: counted_what(call.op),
                of: operands[0].clone(),
            });
        }
        let mut versions: SmallVec<[Version; 1]> = SmallVec::new();
        for i in mutated {
            if let Some(x) = call.inputs[i] {
                let known = state.variable_of(x)?;
                versions.push(state.renew(known));
            }
        }
        state.push(Node {
            op: call.op,
            attrs: call.attrs.clone(),
            inputs: operands,
            outputs,
            versions,
            dtype: call.dtype,
            training: is_training(),
            is_assignment: false,
            rng_block: 0,
            rng_stream,
            caller: caller::current(),
            line: call_site::line(),
            scope: profiler::current_scope(),
            is_backward: profiler::is_in_backward(),
        });
        for (i, out) in call.outs.iter().enumerate() {
            let Some(out) = out else { continue };
            let known = state.variable_of(&computed[i])?;
            let mut from = state.view(known, &computed[i]);
            if from.layout.shape() != out.shape() {
                from.layout = from.layout.broadcast_to(out.shape())?;
            }
            let is_same = from.layout == *out.layout() && from.dtype == out.dtype();
            let target = state.variable_of(out)?;
            let len_bytes = out.tensor().storage().len_bytes();
            if is_same && from.len_bytes() == len_bytes {
                // From now on the storage holds the computed buffer.
                state.variables[target].current = from.buffer;
                continue;
            }
            state.assign(Operand::View(from), out)?;
        }
        if !call.outs.is_empty() {
            // Outputs that were not given are the computed ones.
            for (i, y) in results.iter().enumerate() {
                if call.outs.get(i).copied().flatten().is_none() {
                    let known = state.variable_of(&computed[i])?;
                    state
                        .by_storage
                        .insert(address(y.tensor().storage()), known);
                    state.held.push(y.detach());
                }
            }
        }
        Ok(results)
    }

    /// For each output of an operator whose result shapes depend on values: its shape with the lengths assumed in this trace, its dtype, and the axis
    /// with the unknown length. `None` for other operators.
    fn counted(&self, call: &Call, operands: &[Operand]) -> Result<Option<CountedForms>> {
        let state = self.state.borrow();
        let is_counting = matches!(call.op.cpu, Cpu::Eager(_, Known::FromValues));
        let Some(lengths) = state.lengths.filter(|_| is_counting) else {
            return Ok(None);
        };
        let what = counted_what(call.op);
        let (Some(x), Some(of), true) = (
            call.inputs.first().copied().flatten(),
            operands.first(),
            call.outs.is_empty() && !what.is_empty(),
        ) else {
            return Ok(None);
        };
        if x.device().kind() != DeviceKind::Cpu {
            return Ok(None);
        }
        // Operators that count the same elements have results of the same length.
        let known = (state.counted.iter())
            .find(|known| known.what == what && what != "bins" && state.is_same(&known.of, of, 8));
        let len = match known {
            Some(known) => known.len,
            None => match lengths(state.counted.len()) {
                Some(len) => len,
                None => return Ok(None),
            },
        };
        let i64 = DType::I64;
        let forms = match call.op.name {
            "nonzero_matrix" => vec![(vec![x.ndim(), len], i64, Some(1))],
            "nonzero" if x.ndim() > 0 => vec![(vec![len], i64, Some(0)); x.ndim()],
            "unique_parts" => vec![
                (vec![len], i64, Some(0)),
                (vec![x.len()], i64, None),
                (vec![len], i64, Some(0)),
            ],
            "unique_sorted" => vec![(vec![len], x.dtype(), Some(0))],
            "unique_runs" => vec![(vec![len], x.dtype(), Some(0)), (vec![len], i64, Some(0))],
            "bincount" => {
                let dtype = match call.inputs.get(1).copied().flatten() {
                    None => i64,
                    Some(w) if w.dtype().is_float() && promotion() != Promotion::NumPy => w.dtype(),
                    Some(_) => mxnet_tensor::default_float(),
                };
                vec![(vec![len], dtype, Some(0))]
            }
            _ => return Ok(None),
        };
        Ok(Some((forms, known.is_none())))
    }

    /// Passes a call to the interpreter below. Calls that a composite makes come back here.
    fn below(&self, call: &Call) -> Result<Outputs> {
        match self.this.upgrade() {
            Some(this) => expand(this, call),
            None => Err(Error::internal(call.op.name, "the trace has ended")),
        }
    }
}

/// For each output the shape, the dtype, and the axis whose length depends on values; and whether this length is a new one.
type CountedForms = (Vec<(Vec<usize>, DType, Option<usize>)>, bool);

/// What the length of an operator's result counts; empty if a trace cannot assume a length.
fn counted_what(op: &OpDef) -> &'static str {
    match op.name {
        "nonzero_matrix" | "nonzero" => "elements",
        "unique_parts" | "unique_sorted" | "unique_runs" => "distinct elements",
        "bincount" => "bins",
        _ => "",
    }
}

impl Interpreter for Tracer {
    fn is_tracer(&self) -> bool {
        true
    }

    fn reads(&self, x: &Array) -> Result<()> {
        let mut state = self.state.borrow_mut();
        let storage = x.tensor().storage();
        if let Some(&known) = state.by_storage.get(&address(storage)) {
            let variable = &state.variables[known];
            let first = variable.input.map(|i| state.graph.inputs[i].buffer);
            if first != Some(variable.current) {
                let problem = format!(
                    "the function writes to an array of shape {} and then reads its values, which are not known in a trace",
                    mxnet_core::Tuple(x.shape())
                );
                return Err(Error::without_values("", problem));
            }
        }
        state.seen.push((x.detach(), storage.version()));
        Ok(())
    }

    fn call(&self, call: &Call) -> Result<Outputs> {
        let stand_in = |x: Option<&Array>| -> Result<Option<Array>> {
            match x {
                Some(x) if !x.is_launch_argument() => self.shadow(x).map(Some),
                other => Ok(other.cloned()),
            }
        };
        let inputs: SmallVec<[Option<Array>; 4]> = call
            .inputs
            .iter()
            .map(|x| stand_in(*x))
            .collect::<Result<_>>()?;
        let outs: SmallVec<[Option<Array>; 2]> = call
            .outs
            .iter()
            .map(|x| stand_in(*x))
            .collect::<Result<_>>()?;
        let inputs: SmallVec<[Option<&Array>; 4]> = inputs.iter().map(Option::as_ref).collect();
        let given: SmallVec<[Option<&Array>; 2]> = outs.iter().map(Option::as_ref).collect();
        let seen = Call {
            inputs: &inputs,
            outs: &given,
            ..*call
        };
        let mut results = match call.op.cpu {
            Cpu::Composite(_) | Cpu::View(_) => self.below(&seen)?,
            _ => self.note(call, &seen)?,
        };
        // A caller that passed an array with values as `out` gets that array back, with the graph entry of its stand-in.
        for (result, out) in results.iter_mut().zip(call.outs) {
            let Some(out) = out.filter(|out| !out.is_abstract()) else {
                continue;
            };
            let entry = result.entry().cloned();
            let own = Array::from_tensor(out.tensor().clone());
            *result = match entry {
                Some((node, index)) => own.with_entry(node, index),
                None => own,
            };
        }
        Ok(results)
    }
}
