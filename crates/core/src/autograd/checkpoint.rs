//! Checkpoints: a function runs without recording, so that no intermediates are saved. The backward pass runs it again, recorded.
//!
//! The calls of the first run are watched for what the second run needs: arrays from outside through which gradients flow ([`Checkpoint::inputs`]),
//! the elements of arrays from outside that the function overwrites, and the position in the stream of random numbers. The second run works on copies
//! of the overwritten arrays, so that running statistics are updated once.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use mxnet_tensor::{DType, Layout, Storage, Tensor};
use smallvec::SmallVec;

use crate::autograd::node::{Node, SavedArray};
use crate::autograd::{Retain, grad, graph_input};
use crate::context::RngState;
use crate::error::{Error, Result};
use crate::invoke::Call;
use crate::mode::{self, Flags, Interpreter, Scope, expand, with_interpreter};
use crate::opdef::{Cpu, Grads};
use crate::{Array, Outputs, rng};

/// Output number `.1` of node `.0`.
type Source = (*const Node, u32);

/// What the second run of a function needs to know about the first.
pub struct Checkpoint {
    name: String,
    training: bool,
    autocast: Option<DType>,
    /// Arrays from outside that are part of a graph: each as the function sees it, and the array that replaced it in the first run.
    inputs: Vec<(Array, SavedArray)>,
    /// Storages from outside that were read, with their versions.
    read: Vec<(Weak<Storage>, u64)>,
    /// Storages from outside that were written, with their bytes before the first write.
    before: Vec<(Weak<Storage>, Array)>,
    draws: Arc<[RngState]>,
}

/// The interpreter of the first run. It watches the calls.
pub struct FirstRun {
    this: std::rc::Weak<FirstRun>,
    /// Sequence number at the start: nodes with smaller numbers come from outside.
    start: u64,
    inputs: RefCell<Vec<(Array, SavedArray)>>,
    /// Storages that calls of the function allocated.
    made: RefCell<HashMap<*const Storage, Weak<Storage>>>,
    read: RefCell<HashMap<*const Storage, (Weak<Storage>, u64)>>,
    before: RefCell<HashMap<*const Storage, (Weak<Storage>, Array)>>,
}

impl FirstRun {
    /// Runs `body` without recording. A result that is an array from outside counts as an input.
    ///
    /// # Errors
    /// What `body` reports.
    pub fn of<R, E: From<Error>>(
        name: &str,
        body: impl FnOnce() -> std::result::Result<R, E>,
        results: impl FnOnce(&R) -> Vec<Array>,
    ) -> std::result::Result<(R, Checkpoint), E> {
        let run = Rc::new_cyclic(|this| FirstRun {
            this: this.clone(),
            start: Node::next_seq(),
            inputs: RefCell::default(),
            made: RefCell::default(),
            read: RefCell::default(),
            before: RefCell::default(),
        });
        let training = mode::is_training();
        let (result, draws) = {
            let _unrecorded = Scope::enter_casting(false, training);
            rng::logged(|| with_interpreter(run.clone(), body))
        };
        let result = result?;
        for y in results(&result) {
            run.note_input(&y)?;
        }
        let before = run.before.take();
        let read = run.read.take().into_iter();
        let checkpoint = Checkpoint {
            name: name.to_owned(),
            training,
            autocast: mode::autocast(),
            inputs: run.inputs.take(),
            read: read
                .filter(|(storage, _)| !before.contains_key(storage))
                .map(|(_, noted)| noted)
                .collect(),
            before: before.into_values().collect(),
            draws: draws.to_vec().into(),
        };
        Ok((result, checkpoint))
    }

    /// Notes an array that a call reads.
    fn note_input(&self, x: &Array) -> Result<()> {
        let storage = x.tensor().storage();
        if x.is_weak() || self.made.borrow().contains_key(&Arc::as_ptr(storage)) {
            return Ok(());
        }
        // An enclosing checkpoint in its second run may replace the array.
        let stand_in = mode::stand_in(x)?;
        let seen = stand_in.as_ref().unwrap_or(x);
        if !Arc::ptr_eq(seen.tensor().storage(), storage) {
            self.note_target(x)?;
        }
        self.read
            .borrow_mut()
            .entry(Arc::as_ptr(storage))
            .or_insert_with(|| (Arc::downgrade(storage), storage.version()));
        let Some((node, index)) = x.entry() else {
            return Ok(());
        };
        let mut inputs = self.inputs.borrow_mut();
        let is_same = |y: &Array| {
            y.entry()
                .is_some_and(|(n, i)| Arc::ptr_eq(n, node) && i == index)
        };
        if (node.seq() < self.start || node.is_variable())
            && !inputs.iter().any(|(y, _)| is_same(y))
        {
            inputs.push((x.clone(), SavedArray::new(seen.clone())));
        }
        Ok(())
    }

    /// Saves the elements of an array that is about to be written.
    fn note_target(&self, x: &Array) -> Result<()> {
        let storage = x.tensor().storage();
        let key = Arc::as_ptr(storage);
        if self.made.borrow().contains_key(&key) || self.before.borrow().contains_key(&key) {
            return Ok(());
        }
        let copy = whole(storage)?.copy()?;
        self.before
            .borrow_mut()
            .insert(key, (Arc::downgrade(storage), copy));
        Ok(())
    }
}

/// All bytes of a storage as an array.
fn whole(storage: &Arc<Storage>) -> Result<Array> {
    let layout = Layout::contiguous(&[storage.len_bytes()]);
    Ok(Array::from_tensor(Tensor::new(
        storage.clone(),
        layout,
        DType::U8,
    )?))
}

/// Arrays that a call writes.
fn targets<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a Array> {
    let mutated = call.context().mutated().map(|(_, x)| x).collect::<Vec<_>>();
    call.outs.iter().flatten().copied().chain(mutated)
}

impl Interpreter for FirstRun {
    fn call(&self, call: &Call) -> Result<Outputs> {
        let Some(this) = self.this.upgrade() else {
            return crate::dispatch(call);
        };
        if matches!(call.op.cpu, Cpu::Composite(_)) {
            return expand(this, call);
        }
        for x in call.inputs.iter().flatten() {
            self.note_input(x)?;
        }
        for x in targets(call) {
            self.note_target(x)?;
        }
        let outputs = expand(this, call)?;
        let given = || call.inputs.iter().chain(call.outs).flatten();
        for y in &outputs {
            let storage = y.tensor().storage();
            if !given().any(|x| Arc::ptr_eq(x.tensor().storage(), storage)) {
                let mut made = self.made.borrow_mut();
                made.insert(Arc::as_ptr(storage), Arc::downgrade(storage));
            }
        }
        Ok(outputs)
    }
}

/// The interpreter of the second run. It replaces arrays of the outer graph by variables of a new graph, and overwritten arrays by copies.
struct SecondRun {
    this: std::rc::Weak<SecondRun>,
    start: u64,
    fresh: HashMap<Source, Array>,
    copies: HashMap<*const Storage, Arc<Storage>>,
    /// Whether the second run used an array that the first run did not use.
    uses_other_arrays: Cell<bool>,
}

impl SecondRun {
    /// The replacement of `x`; `x` itself if it is not replaced.
    fn replaced(&self, x: &Array) -> Result<Array> {
        let mut stand_in = match self.copies.get(&Arc::as_ptr(x.tensor().storage())) {
            Some(copy) => {
                let tensor = Tensor::new(copy.clone(), x.layout().clone(), x.dtype())?;
                Array::from_tensor(tensor)
            }
            None => x.clone(),
        };
        if let Some((node, index)) = x.entry() {
            match self
                .fresh
                .get(&(Arc::as_ptr(node), *index))
                .and_then(Array::entry)
            {
                Some((node, index)) => {
                    stand_in = stand_in.detach().with_entry(node.clone(), *index);
                }
                None if node.seq() < self.start => self.uses_other_arrays.set(true),
                None => {}
            }
        }
        Ok(stand_in)
    }

    fn stand_ins(&self, arrays: &[Option<&Array>]) -> Result<SmallVec<[Option<Array>; 4]>> {
        let stand_in = |x: &Option<&Array>| match x {
            Some(x) if !x.is_weak() => self.replaced(x).map(Some),
            x => Ok(x.cloned()),
        };
        arrays.iter().map(stand_in).collect()
    }
}

impl Interpreter for SecondRun {
    fn stand_in(&self, x: &Array) -> Result<Option<Array>> {
        self.replaced(x).map(Some)
    }

    fn call(&self, call: &Call) -> Result<Outputs> {
        let Some(this) = self.this.upgrade() else {
            return crate::dispatch(call);
        };
        if matches!(call.op.cpu, Cpu::Composite(_)) {
            return expand(this, call);
        }
        let inputs = self.stand_ins(call.inputs)?;
        let outs = self.stand_ins(call.outs)?;
        let mut outputs = expand(
            this,
            &Call {
                inputs: &inputs
                    .iter()
                    .map(Option::as_ref)
                    .collect::<SmallVec<[_; 4]>>(),
                outs: &outs
                    .iter()
                    .map(Option::as_ref)
                    .collect::<SmallVec<[_; 4]>>(),
                ..*call
            },
        )?;
        for (given, y) in call.outs.iter().zip(&mut outputs) {
            let Some(given) = given else { continue };
            if !self
                .copies
                .contains_key(&Arc::as_ptr(given.tensor().storage()))
            {
                continue;
            }
            if y.entry().is_some() {
                let problem = "writes a result with a gradient to an array from outside a checkpoint, through which no gradient can flow";
                return Err(Error::autograd(call.op.name, problem)
                    .with_hint("return the value from the function instead"));
            }
            // The caller gets back the array that it passed as `out`.
            *y = (*given).clone();
        }
        Ok(outputs)
    }
}

impl Checkpoint {
    /// Arrays from outside through which gradients flow.
    pub fn inputs(&self) -> impl Iterator<Item = &Array> {
        self.inputs.iter().map(|(x, _)| x)
    }

    /// Cotangents of the inputs, from the cotangents of the results. `body` runs the function again and returns its results.
    ///
    /// # Errors
    /// [`Error::Autograd`] if an array from outside was overwritten in the meantime, or if the second run does not repeat the first; errors of `body`
    /// and of the gradient rules.
    pub fn pull_back(
        &self,
        node: &Node,
        dys: &[Array],
        body: impl FnOnce() -> Result<Vec<Array>>,
    ) -> Result<Grads> {
        self.check(node)?;
        let creates_graph = Flags::current().is_recording();
        let fresh: Vec<Array> = self
            .inputs
            .iter()
            .map(|(_, x)| graph_input(x.array(), creates_graph))
            .collect::<Result<_>>()?;
        let mut copies = HashMap::new();
        for (storage, bytes) in &self.before {
            if let Some(storage) = storage.upgrade() {
                let copy = bytes.copy()?;
                copies.insert(Arc::as_ptr(&storage), copy.tensor().storage().clone());
            }
        }
        let sources = self.inputs().filter_map(Array::entry);
        let sources = sources.map(|(node, index)| (Arc::as_ptr(node), *index));
        let run = Rc::new_cyclic(|this| SecondRun {
            this: this.clone(),
            start: node.seq(),
            fresh: sources.zip(fresh.iter().cloned()).collect(),
            copies,
            uses_other_arrays: Cell::new(false),
        });
        let (results, count) = {
            let _recorded = Scope::enter(true, self.training);
            mode::set_autocast(self.autocast);
            rng::replayed(self.draws.as_ref().into(), || {
                with_interpreter(run.clone(), body)
            })
        };
        let results = results?;
        if count != self.draws.len() || run.uses_other_arrays.get() || results.len() != dys.len() {
            let problem = format!(
                "the second run of `{}`{} differs from the first: it drew random numbers {count} times, the first {} times; it gave {} arrays, the first {}{}",
                self.name,
                node.recorded_at(),
                self.draws.len(),
                results.len(),
                dys.len(),
                if run.uses_other_arrays.get() {
                    "; it used different arrays"
                } else {
                    ""
                },
            );
            return Err(Error::autograd("checkpoint", problem).with_hint(
                "the function may depend only on its arrays and on random numbers of this library",
            ));
        }
        let heads = results
            .iter()
            .map(|y| run.replaced(y))
            .collect::<Result<Vec<_>>>()?;
        drop(run);
        let pairs = heads.iter().zip(dys).filter(|(y, _)| y.entry().is_some());
        let (heads, dys): (Vec<&Array>, Vec<Option<&Array>>) =
            pairs.map(|(y, dy)| (y, Some(dy))).unzip();
        if heads.is_empty() {
            return Ok(self.inputs.iter().map(|_| None).collect());
        }
        let retain = if creates_graph {
            Retain::Yes
        } else {
            Retain::No
        };
        let variables: Vec<&Array> = fresh.iter().collect();
        let grads = grad(
            &heads,
            &variables,
            &dys,
            retain,
            creates_graph,
            mode::is_training(),
        )?;
        Ok(grads.into_iter().map(Some).collect())
    }

    /// Refuses a second run if an array that the first run read has been overwritten.
    fn check(&self, node: &Node) -> Result<()> {
        let is_old = |(storage, version): &(Weak<Storage>, u64)| {
            storage
                .upgrade()
                .is_some_and(|storage| storage.version() != *version)
        };
        if !self.read.iter().any(is_old) {
            return Ok(());
        }
        let problem = format!(
            "an array that `{}` read{} was overwritten in place, so it cannot be run again for its gradients",
            self.name,
            node.recorded_at()
        );
        Err(Error::autograd("checkpoint", problem)
            .with_hint("copy the array before changing it, or compute out of place"))
    }
}
