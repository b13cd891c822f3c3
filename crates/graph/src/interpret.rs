//! Interprets a graph: calls its operators one after the other, as the traced function did. The calls can be recorded for gradients and seen by
//! interpreters, on any device.

use std::collections::HashMap;
use std::sync::Arc;

use mxnet_core::args::Value;
use mxnet_core::builtins::builtins;
use mxnet_core::eager::copy_into;
use mxnet_core::mode::{Scope, is_recording, outside};
use mxnet_core::{
    Array, Call, Error, Outputs, Result, Rng, RngState, autograd, caller, dispatch, invoke1, rng,
};
use mxnet_tensor::{DType, Layout, Tensor};
use smallvec::SmallVec;

use crate::ir::{BufferId, Graph, Node, Operand, Source, View};
use crate::random::unbound_stream;

/// The stream positions of a run's random numbers.
#[derive(Clone, Debug, Default)]
pub struct RunDraws {
    /// For the process's stream: pairs of a first block and the position at which it begins.
    pub of_process: Vec<(u64, RngState)>,
    /// For each stream of the graph.
    pub own: Vec<RngState>,
}

impl RunDraws {
    /// The positions of a run of a single graph.
    pub fn of(drawn: &[RngState]) -> RunDraws {
        RunDraws {
            of_process: drawn.iter().take(1).map(|&state| (0, state)).collect(),
            own: drawn.iter().skip(1).copied().collect(),
        }
    }
}

#[cold]
fn lost() -> Error {
    Error::internal("graph", "random numbers of a run are missing")
}

/// The array of a buffer.
#[derive(Clone)]
struct Base {
    array: Array,
    /// Difference in bytes between the offset of the elements in the array's storage and in the graph.
    shift: isize,
}

/// The arrays of a run, one for each buffer.
struct Values {
    bases: HashMap<BufferId, Base>,
}

/// Byte offset of an array's elements.
fn start(layout: &Layout, dtype: DType) -> isize {
    (layout.offset() * dtype.size()) as isize
}

impl Graph {
    /// Calls the nodes in order. Returns the first `num_outputs` results. `bindings` has an array for each input that is an argument or a captured
    /// array. `random` has stream positions of another run, which is repeated, so inputs are not written; by default random numbers come from the
    /// thread's stream.
    ///
    /// # Errors
    /// What the operators report.
    pub fn interpret(
        &self,
        bindings: &[&Array],
        num_outputs: usize,
        random: Option<&RunDraws>,
    ) -> Result<Outputs> {
        self.call(bindings, num_outputs, random, random.is_none())
    }

    /// As [`Graph::interpret`]; `writes` says whether inputs are written.
    pub(crate) fn call(
        &self,
        bindings: &[&Array],
        num_outputs: usize,
        random: Option<&RunDraws>,
        writes: bool,
    ) -> Result<Outputs> {
        if random.is_none() && !self.streams.is_empty() {
            return Err(unbound_stream());
        }
        let mut values = Values {
            bases: HashMap::new(),
        };
        let mut given = bindings.iter();
        for input in &self.inputs {
            let array = match &input.source {
                // Its values are known, also inside a trace.
                Source::Constant(x) => outside(|| x.copy())?,
                Source::Argument(_) | Source::Captured(_) => match given.next() {
                    Some(x) => (*x).clone(),
                    None => return Err(Error::internal("graph", "an input is not bound")),
                },
            };
            let shift =
                start(array.layout(), array.dtype()) - start(&input.view.layout, input.view.dtype);
            values.bases.insert(input.buffer, Base { array, shift });
        }
        for node in &self.nodes {
            values.call(node, random)?;
        }
        for input in &self.inputs {
            let Some(last) = input.written.filter(|_| writes) else {
                continue;
            };
            let (to, from) = (values.base(input.buffer)?.clone(), values.base(last)?);
            if !Arc::ptr_eq(from.array.tensor().storage(), to.array.tensor().storage()) {
                // The same elements as a view of the newer buffer.
                let (layout, dtype) = (to.array.layout(), to.array.dtype());
                let offset = (start(layout, dtype) - to.shift + from.shift) / dtype.size() as isize;
                let layout = layout.with_offset(offset.unsigned_abs());
                copy_into(&raw(&from.array, layout, dtype)?, &to.array.detach())?;
            }
            if !is_recording() {
                // A result that is the written array is the caller's array itself.
                values.bases.insert(last, to);
            }
        }
        let outputs = self.outputs.iter().take(num_outputs);
        outputs.map(|view| values.array(view)).collect()
    }
}

/// A view of an array's storage, outside any recording.
fn raw(base: &Array, layout: Layout, dtype: DType) -> Result<Array> {
    let storage = base.tensor().storage().clone();
    Ok(Array::from_tensor(Tensor::new(storage, layout, dtype)?))
}

impl Values {
    fn base(&self, buffer: BufferId) -> Result<&Base> {
        let found = self.bases.get(&buffer);
        found.ok_or_else(|| Error::internal("graph", "a buffer is read before it is defined"))
    }

    fn define(&mut self, view: &View, array: Array) {
        let shift = start(array.layout(), array.dtype()) - start(&view.layout, view.dtype);
        self.bases.insert(view.buffer, Base { array, shift });
    }

    /// The array of a view. If recorded, it is a view of the array that the buffer was computed as.
    fn array(&self, view: &View) -> Result<Array> {
        let base = self.base(view.buffer)?;
        let offset = view.layout.offset() as isize + base.shift / view.dtype.size() as isize;
        let layout = view.layout.with_offset(offset.unsigned_abs());
        if base.array.layout() == &layout && base.array.dtype() == view.dtype {
            return Ok(base.array.clone());
        }
        let part = raw(&base.array, layout, view.dtype)?;
        match base.array.entry() {
            Some(_) if is_recording() => autograd::view_again(&base.array, &part),
            _ => Ok(part),
        }
    }

    fn call(&mut self, node: &Node, random: Option<&RunDraws>) -> Result<()> {
        let mutated = node.mutated_inputs();
        if !node.is_assignment {
            // The operator changes a copy of the old version.
            for version in &node.versions {
                let old = self.base(version.old)?;
                let copy = raw(&old.array, old.array.layout().clone(), old.array.dtype())?;
                let copy = copy.copy_in("K")?;
                let before = start(old.array.layout(), old.array.dtype()) - old.shift;
                let shift = start(copy.layout(), copy.dtype()) - before;
                self.bases.insert(version.new, Base { array: copy, shift });
            }
        }
        let mut arrays: SmallVec<[Option<Array>; 4]> = SmallVec::new();
        for (i, operand) in node.inputs.iter().enumerate() {
            arrays.push(match operand {
                Operand::Absent => None,
                Operand::View(view) => {
                    let buffer = node.buffer_of(view, mutated.contains(&i));
                    Some(self.array(&View {
                        buffer,
                        ..view.clone()
                    })?)
                }
                Operand::Number(value) => Some(Array::weak_scalar(*value)?),
                Operand::Constant(value, dtype) => Some(Array::constant(*value, *dtype)?),
            });
        }
        if node.is_assignment {
            return self.assign(node, arrays.pop().flatten());
        }
        let inputs: SmallVec<[Option<&Array>; 4]> = arrays.iter().map(Option::as_ref).collect();
        let _scope = Scope::enter(is_recording(), node.training);
        let call = || {
            let call = Call {
                op: node.op,
                inputs: &inputs,
                attrs: &node.attrs,
                outs: &[],
                dtype: node.dtype,
            };
            let result = caller::within(node.caller, || dispatch(&call));
            result.map_err(|error| error.called_by(node.caller))
        };
        let results = match (node.op.rng, random) {
            (Rng::Blocks(_), Some(drawn)) if node.rng_stream > 0 => {
                let state = drawn.own.get(node.rng_stream - 1).ok_or_else(lost)?;
                let first = state.offset + node.rng_block;
                rng::with_generator(&rng::Generator::new(state.seed, first, 0), call)?
            }
            (Rng::Blocks(_), Some(drawn)) => {
                let state = drawn
                    .of_process
                    .iter()
                    .rev()
                    .find(|(first, _)| *first <= node.rng_block);
                let (before, state) = state.ok_or_else(lost)?;
                let first = state.offset + node.rng_block - before;
                rng::with_generator(&rng::Generator::new(state.seed, first, 0), call)?
            }
            _ => call()?,
        };
        for (view, result) in node.outputs.iter().zip(results) {
            self.define(view, result);
        }
        Ok(())
    }

    /// Executes an assignment to an array or to a part of it.
    fn assign(&mut self, node: &Node, value: Option<Array>) -> Result<()> {
        let target = &node.outputs[0];
        let value = value.ok_or_else(|| Error::internal("graph", "an assignment has no value"))?;
        let value = value
            .astype(target.dtype)?
            .broadcast_to(target.layout.shape())?;
        let Some(version) = node.versions.first() else {
            let order = if target.layout.is_contiguous() {
                "C"
            } else {
                "F"
            };
            let whole = value.copy_in(order)?;
            if whole.layout().strides() != target.layout.strides() {
                return Err(unsupported("an array whose axes are permuted"));
            }
            self.define(target, whole);
            return Ok(());
        };
        let old = self.base(version.old)?.clone();
        if target.dtype != old.array.dtype() {
            return Err(unsupported("parts of elements"));
        }
        let (ordered, axes) = in_memory_order(&old.array)?;
        let before =
            (start(ordered.layout(), ordered.dtype()) - old.shift) / target.dtype.size() as isize;
        let offset = target.layout.offset() as i64 - before as i64;
        let strides: SmallVec<[i64; 4]> =
            target.layout.strides().iter().map(|&s| s as i64).collect();
        let attrs = [Value::from(&strides[..]), Value::Int(offset)]
            .into_iter()
            .collect();
        let changed = invoke1(builtins().window_assign, &[&ordered, &value], &attrs)?;
        let mut back: SmallVec<[i64; 4]> = SmallVec::from_elem(0, axes.len());
        for (i, &axis) in axes.iter().enumerate() {
            back[axis as usize] = i as i64;
        }
        let array = changed.transpose(Some(&back))?;
        let begins = start(array.layout(), array.dtype());
        let shift = begins - before * target.dtype.size() as isize;
        self.bases.insert(target.buffer, Base { array, shift });
        Ok(())
    }
}

#[cold]
fn unsupported(what: &str) -> Error {
    let problem = format!("a write to {what} cannot be called operator by operator");
    Error::unsupported("graph", problem)
}

/// The array with its axes permuted to memory order, and the permutation.
fn in_memory_order(whole: &Array) -> Result<(Array, SmallVec<[i64; 4]>)> {
    let strides = whole.layout().strides();
    let mut axes: SmallVec<[i64; 4]> = (0..whole.ndim() as i64).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(strides[axis as usize]));
    Ok((whole.transpose(Some(&axes))?, axes))
}
