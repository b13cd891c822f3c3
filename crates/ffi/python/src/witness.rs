//! A pass-through interpreter that records every call of a thread and passes it on. Tests compare the record with what actually happened. It fails
//! on attributes that do not survive serialisation.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::{Rc, Weak};

use mxnet::core::mode::{Interpreter, expand, with_interpreter};

use mxnet::core::serialised::{from_json, to_json};
use mxnet::core::{Array, Call, Cpu, Error, Outputs, Result, dispatch};
use pyo3::prelude::*;

use crate::array::{Get, PyArray};

/// Record of one call. Storages are identified by address.
#[pyclass(frozen, get_all, module = "mxnet._core")]
pub struct WitnessedCall {
    /// Name of the operator.
    name: &'static str,
    /// Whether the operator is composite, in which case its inner calls are recorded, too.
    is_composite: bool,
    /// Its attributes as JSON.
    attributes: String,
    /// Storages of the inputs.
    inputs: Vec<usize>,
    /// Storages that the call writes: of the arrays given as `out`, and of inputs that the operator mutates.
    written: Vec<usize>,
    /// Storages of the outputs.
    outputs: Vec<usize>,
}

/// Records calls.
struct Witness {
    this: Weak<Witness>,
    calls: RefCell<Vec<WitnessedCall>>,
    /// All arrays seen so far, kept alive so that no address is reused.
    held: RefCell<Vec<Array>>,
    /// Versions of the storages seen, as of their last known write.
    versions: RefCell<HashMap<usize, u64>>,
    /// Storages that were written by something other than a recorded call.
    unseen: RefCell<BTreeSet<usize>>,
}

impl Witness {
    /// Records an array; returns the address of its storage.
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

    /// Must be called when a recorded call has written the array's storage.
    fn renew(&self, x: &Array) {
        let version = x.tensor().storage().version();
        self.versions.borrow_mut().insert(address(x), version);
    }
}

impl Interpreter for Witness {
    fn call(&self, call: &Call) -> Result<Outputs> {
        let context = call.context();
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
            outs.chain(context.mutated().map(|(_, x)| x))
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

/// The address that identifies an array's storage.
fn address(x: &Array) -> usize {
    std::sync::Arc::as_ptr(x.tensor().storage()) as usize
}

/// Calls `body` and records every call of this thread. Returns its result, the calls, and the storages that were written by something other than a
/// recorded call of a non-composite operator.
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
