//! A pass-through interpreter: it notes every call of a thread and hands it down. Tests compare what it saw with what happened. It fails on
//! attributes that do not come back from their serialised form.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::{Rc, Weak};

use mxnet::core::interp::{Interpreter, expand, with_interpreter};

use mxnet::core::serialised::{from_json, to_json};
use mxnet::core::{Array, Call, Cpu, Error, Outputs, Result, dispatch};
use pyo3::prelude::*;

use crate::array::{Get, PyArray};

/// Record of one call. A storage is named by its address.
#[pyclass(frozen, get_all, module = "mxnet._core")]
pub struct WitnessedCall {
    /// Name of the operator.
    name: &'static str,
    /// Whether its operator is made of others, whose calls are noted too.
    is_composite: bool,
    /// Its attributes as JSON.
    attributes: String,
    /// Storages of the inputs.
    inputs: Vec<usize>,
    /// Storages that are written: those of the arrays given as `out`, and of the inputs that the operator mutates.
    written: Vec<usize>,
    /// Storages of the outputs.
    outputs: Vec<usize>,
}

/// Notes calls.
struct Witness {
    this: Weak<Witness>,
    calls: RefCell<Vec<WitnessedCall>>,
    /// All arrays that were seen: their addresses are of no others then.
    held: RefCell<Vec<Array>>,
    /// Versions of the storages that were seen, as of their last known write.
    versions: RefCell<HashMap<usize, u64>>,
    /// Storages that something else than a noted call has written to.
    unseen: RefCell<BTreeSet<usize>>,
}

impl Witness {
    /// Notes an array; returns its storage's address.
    fn hold(&self, x: &Array) -> usize {
        let address = address(x);
        let version = x.tensor().storage().version();
        let known = *self
            .versions
            .borrow_mut()
            .entry(address)
            .or_insert_with(|| {
                self.held.borrow_mut().push(x.detach());
                version
            });
        if known != version {
            self.unseen.borrow_mut().insert(address);
        }
        address
    }

    /// Notes that the array's storage was written to by a noted call.
    fn renew(&self, x: &Array) {
        let version = x.tensor().storage().version();
        self.versions.borrow_mut().insert(address(x), version);
    }
}

impl Interpreter for Witness {
    fn call(&self, call: &Call) -> Result<Outputs> {
        let cx = call.cx();
        let is_composite = matches!(call.op.cpu, Cpu::Composite(_));
        let attributes = to_json(call.op, call.attrs);
        if from_json(call.op, &attributes)? != *call.attrs {
            let problem = format!("{:?} became {attributes}", call.attrs);
            return Err(Error::internal(call.op.name, problem));
        }
        let inputs = call.inputs.iter().flatten().filter(|x| !x.is_weak());
        let inputs = inputs.map(|x| self.hold(x)).collect();
        let targets = || {
            let outs = call.outs.iter().flatten().copied();
            outs.chain(cx.mutated().map(|(_, x)| x))
        };
        let written = targets().map(|x| self.hold(x)).collect();
        let number = {
            let mut calls = self.calls.borrow_mut();
            calls.push(WitnessedCall {
                name: call.op.name,
                is_composite,
                attributes,
                inputs,
                written,
                outputs: Vec::new(),
            });
            calls.len() - 1
        };
        let outputs = match self.this.upgrade() {
            Some(this) => expand(this, call)?,
            None => dispatch(call)?,
        };
        if !is_composite {
            targets().for_each(|x| self.renew(x));
        }
        let addresses = outputs.iter().map(|y| self.hold(y)).collect();
        self.calls.borrow_mut()[number].outputs = addresses;
        Ok(outputs)
    }
}

/// The address that stands for an array's storage.
fn address(x: &Array) -> usize {
    std::sync::Arc::as_ptr(x.tensor().storage()) as usize
}

/// Calls `body` while every call of this thread is noted: its result, the calls, and the storages that were written to by something else than a
/// noted call of an operator that is not made of others.
#[pyfunction]
pub fn witnessed(
    body: &Bound<'_, PyAny>,
) -> PyResult<(Py<PyAny>, Vec<WitnessedCall>, BTreeSet<usize>)> {
    let witness = Rc::new_cyclic(|this| Witness {
        this: this.clone(),
        calls: RefCell::default(),
        held: RefCell::default(),
        versions: RefCell::default(),
        unseen: RefCell::default(),
    });
    let result = with_interpreter(witness.clone(), || body.call0())?;
    for x in &*witness.held.borrow() {
        witness.hold(x);
    }
    Ok((result.unbind(), witness.calls.take(), witness.unseen.take()))
}

/// Identity of an array's storage in a [`WitnessedCall`].
#[pyfunction]
pub fn storage_of(array: &Bound<'_, PyArray>) -> usize {
    array.get().with(array.py(), address)
}
