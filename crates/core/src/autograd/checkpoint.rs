//! Recomputation: a function runs without a tape, which keeps no intermediates, and runs again when its gradients are asked for.
//!
//! What the second run must know is found by watching the calls of the first: arrays from outside that gradients flow into ([`Checkpoint::inputs`]),
//! the elements of arrays from outside that the function overwrites, and where it draws random numbers. The second run reads and writes copies of
//! the overwritten arrays, so that statistics are updated once.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use mxnet_tensor::{DType, Layout, Storage, Tensor};
use smallvec::SmallVec;

use crate::autograd::node::{Kept, Node};
use crate::autograd::{Retain, grad, graph_input};
use crate::cx::RngState;
use crate::error::{Error, Result};
use crate::interp::{self, Flags, Interpreter, Scope, expand, with_interpreter};
use crate::invoke::Call;
use crate::opdef::{Cpu, Grads};
use crate::{Array, Outputs, rng};

/// Output `.1` of a node.
type Source = (*const Node, u32);

/// What was learnt from the first run of a function.
pub struct Checkpoint {
    name: String,
    training: bool,
    /// Arrays from outside that are part of a graph: as the function knows them, and what stood for them in the first run.
    inputs: Vec<(Array, Kept)>,
    /// Storages from outside that were read, and their versions.
    read: Vec<(Weak<Storage>, u64)>,
    /// Storages from outside that were written, and their bytes before that.
    before: Vec<(Weak<Storage>, Array)>,
    draws: Arc<[RngState]>,
}

/// Watches the first run.
pub struct FirstRun {
    this: std::rc::Weak<FirstRun>,
    /// Nodes with smaller numbers are from outside.
    start: u64,
    inputs: RefCell<Vec<(Array, Kept)>>,
    /// Storages that calls of the function made.
    made: RefCell<HashMap<*const Storage, Weak<Storage>>>,
    read: RefCell<HashMap<*const Storage, (Weak<Storage>, u64)>>,
    before: RefCell<HashMap<*const Storage, (Weak<Storage>, Array)>>,
}

impl FirstRun {
    /// Runs `body`, unrecorded. Its results that come from outside as they are count as used.
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
        let training = interp::is_training();
        let (result, draws) = {
            let _unrecorded = Scope::enter(false, training);
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
        // In a second run of a function around this one.
        let stand_in = interp::stand_in(x)?;
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
            inputs.push((x.clone(), Kept::new(seen.clone())));
        }
        Ok(())
    }

    /// Keeps what an array that is about to be written holds.
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

/// All bytes of a storage.
fn whole(storage: &Arc<Storage>) -> Result<Array> {
    let layout = Layout::contiguous(&[storage.len_bytes()]);
    Ok(Array::from_tensor(Tensor::new(
        storage.clone(),
        layout,
        DType::U8,
    )?))
}

/// Arrays that a call writes to.
fn targets<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a Array> {
    let mutated = call.cx().mutated().map(|(_, x)| x).collect::<Vec<_>>();
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

/// Carries out the second run: arrays of the graph outside become variables of a graph of its own, and overwritten arrays copies.
struct SecondRun {
    this: std::rc::Weak<SecondRun>,
    start: u64,
    fresh: HashMap<Source, Array>,
    copies: HashMap<*const Storage, Arc<Storage>>,
    /// Whether an array was used that the first run did not use.
    has_strayed: Cell<bool>,
}

impl SecondRun {
    /// The array that stands for `x`, which may be `x`.
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
                None if node.seq() < self.start => self.has_strayed.set(true),
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
            // Callers go on to see the array that they gave.
            *y = (*given).clone();
        }
        Ok(outputs)
    }
}

impl Checkpoint {
    /// Arrays from outside that gradients flow into.
    pub fn inputs(&self) -> impl Iterator<Item = &Array> {
        self.inputs.iter().map(|(x, _)| x)
    }

    /// Cotangents of the inputs, from those of the results of a second run; `body` returns these results.
    ///
    /// # Errors
    /// [`Error::Autograd`] if an array from outside was overwritten since, or the second run does not do what the first did; what `body` and the
    /// gradient rules report.
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
            has_strayed: Cell::new(false),
        });
        let (results, count) = {
            let _recorded = Scope::enter(true, self.training);
            rng::replayed(self.draws.as_ref().into(), || {
                with_interpreter(run.clone(), body)
            })
        };
        let results = results?;
        if count != self.draws.len() || run.has_strayed.get() || results.len() != dys.len() {
            let problem = format!(
                "the second run of `{}`{} differs from the first: it drew random numbers {count} times, the first {} times; it gave {} arrays, the first {}{}",
                self.name,
                node.place(),
                self.draws.len(),
                results.len(),
                dys.len(),
                if run.has_strayed.get() {
                    "; it used other arrays"
                } else {
                    ""
                },
            );
            return Err(Error::autograd("checkpoint", problem).with_hint(
                "a function that is run again must not depend on anything but arrays and random numbers of this library",
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
            interp::is_training(),
        )?;
        Ok(grads.into_iter().map(Some).collect())
    }

    /// Refuses a second run on other values.
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
            node.place()
        );
        Err(Error::autograd("checkpoint", problem)
            .with_hint("copy the array before changing it, or compute out of place"))
    }
}
