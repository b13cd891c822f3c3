//! Batching (`vmap`): a function of one example runs once for all examples of a batch.
//!
//! The function gets abstract arrays with the shape of one example. For each of them [`Batching`] stores the array of all examples, whose first axis
//! is the batch. Each call is made twice: on the abstract arrays, which infers the shapes that the function continues with and records the call for
//! gradients inside the function; and on the arrays of all examples, by the batching rule of the operator ([`Batch`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use mxnet_tensor::{Device, Storage};
use smallvec::SmallVec;

use crate::args::{Args, Attrs, ParamKind, Value};
use crate::autograd::graph_input;
use crate::builtins::builtins;
use crate::error::{Error, Result, Tuple};
use crate::invoke::{Call, dispatch, invoke1};
use crate::mode::{self, Interpreter, Scope, expand, with_interpreter, without_interpreters};
use crate::opdef::{Cpu, OpDef, Rng};
use crate::{Array, Outputs};

/// How an operator computes all examples of a batch. Elementwise operators, views and composites need no rule.
#[derive(Clone, Copy)]
pub enum Batch {
    /// Not supported.
    None,
    /// It treats the leading axes of each array as batch axes. Entry `i` is the number of trailing axes of array `i` that are not; the last entry
    /// holds for all further arrays.
    Leading(&'static [usize]),
    /// This attribute names axes of the first array, or is `None` for all of them.
    Axes(&'static str),
    /// A function, whose results have the batch axis first.
    Rule(fn(&BatchContext) -> Result<Outputs>),
}

/// Arguments of a batching rule: a call on arrays of single examples, and the arrays of all examples.
pub struct BatchContext<'a> {
    call: &'a Call<'a>,
    args: Args<'a>,
    /// Number of examples.
    pub size: usize,
    arrays: SmallVec<[Option<BatchOperand>; 4]>,
    results: &'a [Array],
}

/// An array of a call.
struct BatchOperand {
    array: Array,
    /// Whether its first axis is the batch.
    is_batched: bool,
}

impl<'a> std::ops::Deref for BatchContext<'a> {
    type Target = Args<'a>;

    fn deref(&self) -> &Args<'a> {
        &self.args
    }
}

impl BatchContext<'_> {
    /// Number of arrays, absent ones included.
    pub fn num_inputs(&self) -> usize {
        self.arrays.len()
    }

    /// Whether array `i` differs between examples.
    pub fn is_batched(&self, i: usize) -> bool {
        self.arrays[i]
            .as_ref()
            .is_some_and(|given| given.is_batched)
    }

    /// Shape of array `i` for one example.
    pub fn shape(&self, i: usize) -> &[usize] {
        self.call.inputs[i].map_or(&[], Array::shape)
    }

    /// Shape of result `i` for one example.
    pub fn result_shape(&self, i: usize) -> &[usize] {
        self.results[i].shape()
    }

    /// Array `i` with the batch axis first and `ndim` axes behind it: axes of length 1 are inserted after the batch axis. An array that is the same
    /// for all examples is returned as it is.
    ///
    /// # Errors
    /// None that the call itself would not report.
    pub fn aligned(&self, i: usize, ndim: usize) -> Result<Option<Array>> {
        match &self.arrays[i] {
            None => Ok(None),
            Some(given) if !given.is_batched => Ok(Some(given.array.clone())),
            Some(given) => {
                let shape = self.shape(i);
                let ones = ndim.saturating_sub(shape.len());
                given
                    .array
                    .reshape(&joined(&[&[self.size], &vec![1; ones], shape]))
                    .map(Some)
            }
        }
    }

    /// Array `i` with the batch axis first, also if it is the same for all examples (then broadcast).
    ///
    /// # Errors
    /// As [`BatchContext::aligned`].
    pub fn front(&self, i: usize) -> Result<Option<Array>> {
        match &self.arrays[i] {
            Some(given) if !given.is_batched => {
                let shape = joined(&[&[self.size], self.shape(i)]);
                given.array.broadcast_to(&shape).map(Some)
            }
            _ => self.aligned(i, 0),
        }
    }

    /// The attributes with some values replaced.
    pub fn with(&self, changes: &[(&str, Value)]) -> Attrs {
        let attributes = self.call.op.params.iter().filter(|p| p.is_attribute());
        let values = attributes
            .zip(self.call.attrs.values())
            .map(|(param, value)| {
                let change = changes.iter().find(|(name, _)| *name == param.name);
                change.map_or_else(|| value.clone(), |(_, changed)| changed.clone())
            });
        values.collect()
    }

    /// Attribute `name`, integers, with `front` prepended.
    pub fn prefixed(&self, name: &str, front: &[i64]) -> Value {
        let all: SmallVec<[i64; 4]> = front.iter().chain(self.ints(name)).copied().collect();
        Value::from(&all[..])
    }

    /// Calls the operator on whole batches. Attributes in `axes` and `shapes` are adjusted to the batch axis.
    ///
    /// # Errors
    /// What the call reports.
    pub fn call_with(&self, axes: &[&str], shapes: &[&str]) -> Result<Outputs> {
        let axes = axes.iter().map(|&name| (name, shifted(self.get(name))));
        let shapes = shapes
            .iter()
            .map(|&name| (name, self.prefixed(name, &[self.size as i64])));
        let changes: Vec<_> = axes.chain(shapes).collect();
        self.call(&self.fronts()?, &self.with(&changes))
    }

    /// Calls the operator unchanged on the batch of array `i`; the other arrays are the same for all examples.
    ///
    /// # Errors
    /// What the call reports.
    pub fn call_with_first(&self, i: usize) -> Result<Outputs> {
        let array = |k: usize| {
            if k == i {
                self.front(k)
            } else {
                self.aligned(k, 0)
            }
        };
        let arrays: Vec<_> = (0..self.num_inputs()).map(array).collect::<Result<_>>()?;
        self.call(&arrays, self.call.attrs)
    }

    /// The operator.
    pub fn op(&self) -> &'static OpDef {
        self.call.op
    }

    /// Device of the arrays.
    pub fn device(&self) -> Device {
        let arrays = self.arrays.iter().flatten();
        arrays
            .map(|given| given.array.device())
            .next()
            .unwrap_or_else(mode::current_device)
    }

    /// All arrays with the batch axis first.
    ///
    /// # Errors
    /// As [`BatchContext::aligned`].
    pub fn fronts(&self) -> Result<Vec<Option<Array>>> {
        (0..self.num_inputs()).map(|i| self.front(i)).collect()
    }

    /// All arrays with the batch merged into their first axis: `(size, n, ...)` -> `(size * n, ...)`.
    ///
    /// # Errors
    /// As [`BatchContext::aligned`].
    pub fn in_a_row(&self) -> Result<Vec<Option<Array>>> {
        (0..self.num_inputs())
            .map(|i| {
                let Some(x) = self.front(i)? else {
                    return Ok(None);
                };
                let shape = x.shape();
                x.reshape(&joined(&[&[shape[0] * shape[1]], &shape[2..]]))
                    .map(Some)
            })
            .collect()
    }

    /// Calls the operator.
    ///
    /// # Errors
    /// What the call reports.
    pub fn call(&self, arrays: &[Option<Array>], attrs: &Attrs) -> Result<Outputs> {
        dispatch(&Call {
            inputs: &arrays
                .iter()
                .map(Option::as_ref)
                .collect::<SmallVec<[_; 4]>>(),
            attrs,
            ..*self.call
        })
    }

    /// Results by the operator's rule.
    fn results(&self) -> Result<Outputs> {
        match (self.call.op.cpu, self.call.op.batch) {
            (_, Batch::Rule(rule)) => rule(self),
            (Cpu::Map(_), _) => self.elementwise(),
            (_, Batch::Leading(ndims)) => self.leading(ndims),
            (_, Batch::Axes(name)) => self.along(name),
            (Cpu::View(_), Batch::None) => self.viewed(),
            (_, Batch::None) => Err(self.refused()),
        }
    }

    /// The error for an operator without a rule, or a call that its rule does not handle.
    pub fn refused(&self) -> Error {
        Error::unsupported(
            self.call.op.name,
            "has no batching rule, so `vmap` cannot call it for all examples at once",
        )
        .with_hint("write the function for a whole batch")
    }

    fn elementwise(&self) -> Result<Outputs> {
        let ndim = (0..self.num_inputs())
            .map(|i| self.shape(i).len())
            .max()
            .unwrap_or(0);
        let arrays: Vec<_> = (0..self.num_inputs())
            .map(|i| self.aligned(i, ndim))
            .collect::<Result<_>>()?;
        self.call(&arrays, self.call.attrs)
    }

    fn leading(&self, ndims: &[usize]) -> Result<Outputs> {
        let own = |i: usize| ndims[i.min(ndims.len() - 1)];
        let present = |i: &usize| self.arrays[*i].is_some();
        // If an array has fewer axes than the operator needs, the batch axis would be taken for one of them.
        if (0..self.num_inputs())
            .filter(present)
            .any(|i| self.shape(i).len() < own(i))
        {
            return Err(self.refused());
        }
        let count = (0..self.num_inputs()).filter(present).count();
        let mut arrays = Vec::new();
        let widest = (0..self.num_inputs())
            .filter(present)
            .map(|i| self.shape(i).len() - own(i))
            .max();
        let ahead = widest.unwrap_or(0);
        // The leading axes, broadcast against each other.
        let mut common = vec![1; ahead];
        for i in (0..self.num_inputs()).filter(present) {
            let shape = &self.shape(i)[..self.shape(i).len() - own(i)];
            for (to, &n) in common[ahead - shape.len()..].iter_mut().zip(shape) {
                *to = if *to == 1 { n } else { *to };
            }
        }
        for i in 0..self.num_inputs() {
            let x = self.aligned(i, ahead + own(i))?;
            arrays.push(match x {
                Some(x) if count > 1 => {
                    let last = &self.shape(i)[self.shape(i).len() - own(i)..];
                    Some(x.broadcast_to(&joined(&[&[self.size], &common, last]))?)
                }
                x => x,
            });
        }
        self.call(&arrays, self.call.attrs)
    }

    fn along(&self, name: &str) -> Result<Outputs> {
        let ndim = self.shape(0).len() as i64;
        let kind = self
            .call
            .op
            .params
            .iter()
            .find(|p| p.name == name)
            .map(|p| p.kind);
        let mut arrays = self.fronts()?;
        let value = match self.get(name) {
            Value::None if matches!(kind, Some(ParamKind::Int)) => {
                for x in arrays.iter_mut().flatten() {
                    let len = x.len() / self.size.max(1);
                    *x = x.reshape(&[self.size, len])?;
                }
                Value::Int(1)
            }
            Value::None => {
                let axes: SmallVec<[i64; 4]> = (1..=ndim).collect();
                Value::from(&axes[..])
            }
            // For a 0-d example the axis would refer to the batch.
            Value::Int(_) if ndim == 0 => return Err(self.refused()),
            value => shifted(value),
        };
        self.call(&arrays, &self.with(&[(name, value)]))
    }

    /// The same view of each example: the strides of the view of the abstract array, which is in C order, and the batch stride in front.
    fn viewed(&self) -> Result<Outputs> {
        let (Some(Some(given)), Some(example), [view]) =
            (self.arrays.first(), self.call.inputs[0], self.results)
        else {
            return Err(self.refused());
        };
        if view.dtype() != example.dtype() {
            return self.call(&[Some(given.array.clone())], self.call.attrs);
        }
        let is_shared = Arc::ptr_eq(view.tensor().storage(), example.tensor().storage());
        if !is_shared || !given.is_batched {
            return Err(self.refused());
        }
        let strides: SmallVec<[i64; 4]> = [example.len() as i64]
            .into_iter()
            .chain(view.layout().strides().iter().map(|&s| s as i64))
            .collect();
        let shape = joined(&[&[self.size], view.shape()]);
        let attrs: Attrs = [
            Value::from(&shape[..]),
            Value::from(&strides[..]),
            Value::Int(view.layout().offset() as i64),
        ]
        .into_iter()
        .collect();
        let window = invoke1(builtins().window, &[&given.array.contiguous()?], &attrs)?;
        Ok(SmallVec::from_iter([window]))
    }
}

/// Axes shifted by the batch axis in front; negative ones count from the end and stay.
fn shifted(value: &Value) -> Value {
    let shift = |axis: i64| if axis < 0 { axis } else { axis + 1 };
    match value {
        Value::Int(axis) => Value::Int(shift(*axis)),
        Value::Ints(axes) => {
            let axes: SmallVec<[i64; 4]> = axes.iter().map(|&axis| shift(axis)).collect();
            Value::from(&axes[..])
        }
        other => other.clone(),
    }
}

fn joined(parts: &[&[usize]]) -> Vec<usize> {
    parts.concat()
}

/// The array of all examples, valid while the abstract array of one example lives.
struct BatchEntry {
    example: Weak<Storage>,
    all: Array,
}

/// The interpreter that runs a function on all examples.
pub struct Batching {
    this: std::rc::Weak<Batching>,
    size: usize,
    /// Whether the caller records.
    is_recorded: bool,
    known: RefCell<HashMap<*const Storage, BatchEntry>>,
    /// Number of entries at which entries whose abstract array is gone are dropped.
    limit: Cell<usize>,
}

impl Batching {
    /// Calls `body` with abstract arrays that stand for one example each of `batches`, whose first axis has length `size`. `results` lists the arrays
    /// in the value of `body`. Returns that value, and for each of these arrays the array of all examples, or `None` if it is the same for all.
    ///
    /// # Errors
    /// What `body` reports.
    pub fn run<R, E: From<Error>>(
        size: usize,
        batches: &[&Array],
        body: impl FnOnce(Vec<Array>) -> std::result::Result<R, E>,
        results: impl FnOnce(&R) -> Vec<Array>,
    ) -> std::result::Result<(R, Vec<Option<Array>>), E> {
        let batching = Rc::new_cyclic(|this| Batching {
            this: this.clone(),
            size,
            is_recorded: mode::is_recording(),
            known: RefCell::default(),
            limit: Cell::new(64),
        });
        let mut examples = Vec::new();
        for &x in batches {
            let example = Array::without_values(&x.shape()[1..], x.dtype(), x.device())?;
            batching.note(&example, x);
            // An example is recorded if its batch is, so that a detached example differs from the original.
            examples.push(match batching.is_recorded && x.entry().is_some() {
                true => graph_input(&example, false)?,
                false => example,
            });
        }
        // Keeps the abstract arrays alive: the function may return or store them.
        let held = examples.clone();
        let result = with_interpreter(batching.clone(), || body(examples))?;
        let found = results(&result)
            .iter()
            .map(|y| batching.all_of(y))
            .collect();
        drop(held);
        Ok((result, found))
    }

    /// The array of all examples, if `x` stands for an example.
    fn all_of(&self, x: &Array) -> Option<Array> {
        let known = self.known.borrow();
        let all = &known.get(&Arc::as_ptr(x.tensor().storage()))?.all;
        Some(match x.entry() {
            None => all.detach(),
            Some(_) => all.clone(),
        })
    }

    fn note(&self, example: &Array, all: &Array) {
        let mut known = self.known.borrow_mut();
        if known.len() >= self.limit.get() {
            known.retain(|_, known| known.example.strong_count() > 0);
            self.limit.set((2 * known.len()).max(64));
        }
        let storage = example.tensor().storage();
        let entry = BatchEntry {
            example: Arc::downgrade(storage),
            all: all.clone(),
        };
        known.insert(Arc::as_ptr(storage), entry);
    }

    /// Refuses a custom gradient function on examples whose batch is part of a graph: its calls on the batch are not recorded.
    fn check_custom(&self, name: &str, inputs: &[&Array]) -> Result<()> {
        let is_recorded = |x: &&Array| self.all_of(x).is_some_and(|all| all.entry().is_some());
        if !inputs.iter().any(is_recorded) {
            return Ok(());
        }
        let problem = format!("`{name}` has a gradient rule of its own, which `vmap` cannot use");
        Err(Error::unsupported("vmap", problem)
            .with_hint("take the gradient inside the function, or call it outside `vmap`"))
    }
}

impl Interpreter for Batching {
    fn composes_gradients(&self) -> bool {
        true
    }

    fn call(&self, call: &Call) -> Result<Outputs> {
        let Some(this) = self.this.upgrade() else {
            return dispatch(call);
        };
        if !matches!(call.op.rng, Rng::No | Rng::Derived) {
            return Err(Error::unsupported(
                call.op.name,
                "draws random numbers, which would be the same for all examples of `vmap`",
            )
            .with_hint("draw them for the whole batch outside, and pass them as an argument"));
        }
        if matches!(call.op.cpu, Cpu::Composite(_)) {
            return expand(this, call);
        }
        let arrays: SmallVec<[Option<BatchOperand>; 4]> = call
            .inputs
            .iter()
            .map(|x| {
                x.map(|x| match self.all_of(x) {
                    Some(array) => BatchOperand {
                        array,
                        is_batched: true,
                    },
                    None => BatchOperand {
                        array: x.clone(),
                        is_batched: false,
                    },
                })
            })
            .collect();
        let is_batched = arrays.iter().flatten().any(|given| given.is_batched);
        let is_written = |x: &&Array| self.all_of(x).is_some();
        if is_batched && !(call.outs.is_empty() && call.op.mutates.is_empty())
            || call.outs.iter().flatten().any(is_written)
        {
            return Err(Error::unsupported(
                call.op.name,
                "writes to an array in place, which `vmap` cannot do for each example",
            )
            .with_hint("compute out of place: `x = x + y` for `x += y`"));
        }
        if !is_batched {
            return dispatch(call);
        }
        let examples = without_interpreters(|| dispatch(call))?;
        let context = BatchContext {
            call,
            args: Args {
                params: call.op.params,
                attrs: call.attrs,
            },
            size: self.size,
            arrays,
            results: &examples,
        };
        let all = {
            let is_recorded = self.is_recorded && mode::is_recording();
            let _scope = Scope::enter(is_recorded, mode::is_training());
            context.results()?
        };
        let mut outputs = Outputs::new();
        for (example, all) in examples.iter().zip(all) {
            outputs.push(self.joined_to(call, example, all)?);
        }
        Ok(outputs)
    }

    fn check_custom(&self, name: &str, inputs: &[&Array]) -> Result<()> {
        Batching::check_custom(self, name, inputs)
    }
}

impl Batching {
    /// Associates the abstract result of one example with the array of all examples.
    fn joined_to(&self, call: &Call, example: &Array, all: Array) -> Result<Array> {
        let shape = joined(&[&[self.size], example.shape()]);
        let all = match all.shape() == shape {
            true => all,
            false if all.len() == shape.iter().product::<usize>() => all.reshape(&shape)?,
            false => {
                let problem = format!(
                    "the batching rule gave shape {}, expected {}",
                    Tuple(all.shape()),
                    Tuple(&shape)
                );
                return Err(Error::internal(call.op.name, problem));
            }
        };
        if all.dtype() != example.dtype() {
            let (found, wanted) = (all.dtype().name(), example.dtype().name());
            let problem = format!("the batching rule gave {found}, expected {wanted}");
            return Err(Error::internal(call.op.name, problem));
        }
        let inputs = || call.inputs.iter().flatten();
        let is_view =
            inputs().any(|x| Arc::ptr_eq(x.tensor().storage(), example.tensor().storage()));
        if !is_view {
            // Gradient rules find the saved array by this storage.
            self.note(example, &all);
            if example.layout().is_contiguous() {
                return Ok(example.clone());
            }
        }
        // A new storage in C order: entries are found by storage, and a view shares that of the array it was taken from.
        let own = Array::without_values(example.shape(), example.dtype(), example.device())?;
        self.note(&own, &all);
        Ok(match example.entry() {
            Some((node, index)) => own.with_entry(node.clone(), *index),
            None => own,
        })
    }
}
