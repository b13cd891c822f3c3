//! Operators whose shapes, values and gradients are computed by Python code. Each is an entry of the registry, so recording and tracing treat it like
//! any other operator.
//!
//! The operator takes a list of arrays and the parameters as text. It has one more output, the *ticket*. The ticket owns the Python object that the
//! forward code returned (an instance that stores values for the backward code), and is freed with the recorded call. In a graph it lives until the
//! run ends, or as long as a result of the graph that it was copied to: the forward graph of a recorded call returns it for the backward graph.
//!
//! An operator with a gradient has a second entry, `<name>.gradient`. A traced gradient is a call of it: its operands are the ticket, the gradients of
//! the outputs, the inputs and the outputs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use mxnet::core::caller::outside;
use mxnet::core::creation::zeros;
use mxnet::core::mode::Scope;
use mxnet::core::{
    Args, Array, Attrs, Cpu, EagerContext, Error, Grad, Grads, InferContext, Inferred, Keep, Known,
    OpDef, OutSpec, Outputs, Param, ParamKind, Result, Types, Value, invoke_with, registry,
};
use mxnet::graph::{Provider, set_provider};
use mxnet::tensor::{DType, Device, Dims, Layout, Storage, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::array::{Get, PyArray};
use crate::error::PythonFailure;
use crate::error::raise;
use crate::gil_release::with_python;
use crate::numpy_dtype;

/// The Python functions of an operator.
struct Code {
    /// `(parameters, training, [(shape, dtype)]) -> [(shape, dtype)]`
    infer: Py<PyAny>,
    /// `(parameters, training, [ndarray]) -> ([ndarray], instance)`
    forward: Py<PyAny>,
    /// `(instance, parameters, training, [cotangent], [input], [output]) -> [gradient or None]`; `None`: no gradient flows.
    backward: Option<Py<PyAny>>,
}

/// Objects that forward code stores for backward code, by the number in the ticket.
static INSTANCES: LazyLock<Mutex<HashMap<u64, Py<PyAny>>>> = LazyLock::new(Mutex::default);

/// The memory of a ticket.
struct Ticket(Box<u64>);

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = instances.remove(&self.0);
        // Dropping the object may run Python code, so the table must be unlocked.
        drop(instances);
        drop(kept);
    }
}

fn ticket(instance: Py<PyAny>) -> Result<Array> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let ticket = Box::new(Ticket(Box::new(number)));
    let mut instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
    instances.insert(number, instance);
    drop(instances);
    let address = (&raw const *ticket.0).cast_mut().cast::<u8>();
    // SAFETY: the number lives as long as the ticket, which the storage owns, and is only read.
    let storage = unsafe { Storage::from_foreign(address, 8, Device::cpu(0), ticket, true) };
    let tensor = Tensor::new(storage, Layout::contiguous(&[]), DType::U64)?;
    Ok(Array::from_tensor(tensor))
}

fn code(op: &'static OpDef) -> Result<&'static Code> {
    let state = op.state.and_then(|state| state.downcast_ref::<Code>());
    state.ok_or_else(|| Error::internal(op.name, "the entry has no Python code"))
}

/// Runs the Python code of an operator. A Python exception is propagated unchanged.
fn in_python<R>(body: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R> {
    with_python(|py| {
        outside(|| body(py)).map_err(|error| {
            let failure = Box::new(PythonFailure::new(error));
            Error::Failed(mxnet::engine::Failure::new(failure, ""))
        })
    })
}

fn infer(context: &InferContext) -> Result<Inferred> {
    let code = code(context.op)?;
    let mut specs: Inferred = in_python(|py| {
        let given = context.inputs.iter().flatten().map(|x| {
            let dtype = numpy_dtype::object(py, x.dtype())?;
            Ok((x.shape().to_vec(), dtype))
        });
        let given: Vec<(Vec<usize>, Py<PyAny>)> = given.collect::<PyResult<_>>()?;
        let found =
            code.infer
                .bind(py)
                .call1((context.str("parameters"), context.training, given))?;
        let mut specs = Inferred::new();
        for entry in found.try_iter()? {
            let (shape, dtype): (Vec<usize>, Bound<'_, PyAny>) = entry?.extract()?;
            specs.push(OutSpec {
                shape: Dims::from_slice(&shape),
                dtype: Some(numpy_dtype::read(&dtype)?),
            });
        }
        Ok(specs)
    })?;
    specs.push(OutSpec {
        shape: Dims::new(),
        dtype: Some(DType::U64),
    });
    Ok(specs)
}

fn wrapped(py: Python<'_>, arrays: impl Iterator<Item = Array>) -> PyResult<Bound<'_, PyList>> {
    let objects: Vec<Py<PyArray>> = arrays
        .map(|x| PyArray::wrap(py, x))
        .collect::<PyResult<_>>()?;
    PyList::new(py, objects)
}

/// The result `y`, or a copy of it if its memory belongs to one of `others` as well, because Python code may return an operand or a view. The
/// memory of a result must be its own: who writes into it changes nothing else, and graphs reuse the memory of operands.
fn with_own_memory<'a>(y: Array, mut others: impl Iterator<Item = &'a Array>) -> Result<Array> {
    let storage = y.tensor().storage();
    match others.any(|x| Arc::ptr_eq(x.tensor().storage(), storage)) {
        true => y.copy(),
        false => Ok(y),
    }
}

/// Whether other code may use the memory of its result `object` later: Python code keeps the object or another array of the same storage, or the
/// memory is NumPy's. True as well while an operation on a result of its own is pending.
fn is_kept(object: &Bound<'_, PyAny>, y: &Array) -> bool {
    // SAFETY: the object lives while it is borrowed.
    let num_references = unsafe { pyo3::ffi::Py_REFCNT(object.as_ptr()) };
    // The list of results and `object` refer to the Python object; it and `y` refer to the storage.
    let storage = y.tensor().storage();
    num_references > 2 || Arc::strong_count(storage) > 2 || storage.is_foreign()
}

fn forward(context: &EagerContext) -> Result<Outputs> {
    let code = code(context.op)?;
    let specs = infer(context)?;
    let _scope = Scope::enter(false, context.training);
    in_python(|py| {
        let inputs = wrapped(py, context.inputs.iter().flatten().map(|x| x.detach()))?;
        let made =
            code.forward
                .bind(py)
                .call1((context.str("parameters"), context.training, inputs))?;
        let (made, instance): (Bound<'_, PyAny>, Py<PyAny>) = made.extract()?;
        let mut outputs = Outputs::new();
        for (i, object) in made.try_iter()?.enumerate() {
            let object = object?;
            let y = object.cast::<PyArray>()?.get().array(py).detach();
            let spec = specs.get(i).filter(|_| i + 1 < specs.len());
            if !spec
                .is_some_and(|spec| spec.shape[..] == *y.shape() && spec.dtype == Some(y.dtype()))
            {
                let problem = format!(
                    "output {i} has shape {} and dtype {}, which is not what its shape rule says",
                    mxnet::core::Tuple(y.shape()),
                    y.dtype().name()
                );
                return Err(raise(py, Error::shape(context.op.name, problem)));
            }
            let others = context.inputs.iter().flatten().copied().chain(&outputs);
            let y = match is_kept(&object, &y) {
                true => y.copy(),
                false => with_own_memory(y, others),
            };
            outputs.push(y.map_err(|error| raise(py, error))?);
        }
        if outputs.len() + 1 != specs.len() {
            let (found, wanted) = (outputs.len(), specs.len() - 1);
            let problem = format!("{found} outputs were made, its shape rule says {wanted}");
            return Err(raise(py, Error::shape(context.op.name, problem)));
        }
        outputs.push(ticket(instance).map_err(|error| raise(py, error))?);
        Ok(outputs)
    })
}

/// Runs the Python code of the gradient.
fn gradients(
    op: &'static OpDef,
    parameters: &str,
    training: bool,
    ticket: &Array,
    [dys, inputs, outputs]: [&[Array]; 3],
) -> Result<Grads> {
    let code = code(op)?;
    let number = ticket.item()?.as_u64();
    in_python(|py| {
        let Some(rule) = &code.backward else {
            return Ok(inputs.iter().map(|_| None).collect());
        };
        let instance = {
            let instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
            instances
                .get(&number)
                .map(|instance| instance.clone_ref(py))
        };
        let Some(instance) = instance else {
            let problem = "the object that its forward code made is gone";
            return Err(raise(py, Error::autograd(op.name, problem)));
        };
        let given = (
            instance,
            parameters,
            training,
            wrapped(py, dys.iter().cloned())?,
            wrapped(py, inputs.iter().cloned())?,
            wrapped(py, outputs.iter().cloned())?,
        );
        let found = rule.bind(py).call1(given)?;
        let mut grads = Grads::new();
        for (i, gradient) in found.try_iter()?.enumerate() {
            let gradient = gradient?;
            if gradient.is_none() {
                grads.push(None);
                continue;
            }
            let gradient = gradient.cast::<PyArray>()?.get().array(py);
            if let Some(x) = inputs.get(i)
                && gradient.shape() != x.shape()
            {
                let problem = format!(
                    "the gradient of input {i} has shape {}, the input has shape {}",
                    mxnet::core::Tuple(gradient.shape()),
                    mxnet::core::Tuple(x.shape())
                );
                return Err(raise(py, Error::shape(op.name, problem)));
            }
            grads.push(Some(gradient));
        }
        if grads.len() != inputs.len() {
            let (found, wanted) = (grads.len(), inputs.len());
            let problem = format!("{found} gradients were made for {wanted} inputs");
            return Err(raise(py, Error::value(op.name, problem)));
        }
        Ok(grads)
    })
}

fn backward(g: &mxnet::core::autograd::GradContext) -> Result<Grads> {
    let num_outputs = g.num_outputs() - 1;
    let dys: Vec<Array> = (0..num_outputs).map(|i| g.dy(i).clone()).collect();
    let inputs: Vec<Array> = (0..g.num_inputs()).map(|i| g.input(i).clone()).collect();
    let outputs: Vec<Array> = (0..num_outputs).map(|i| g.output(i).clone()).collect();
    let ticket = g.output(num_outputs);
    if !ticket.is_abstract() {
        let parts = [&dys[..], &inputs, &outputs];
        return gradients(g.op, g.str("parameters"), g.training, ticket, parts);
    }
    // In a trace the gradient is a call of its own, which runs the code when the graph runs.
    let name = gradient_name(g.op.name);
    let op = registry::find(&name).ok_or_else(|| {
        Error::internal(g.op.name, format!("the operator `{name}` does not exist"))
    })?;
    let operands: Vec<Option<&Array>> = std::iter::once(ticket)
        .chain(&dys)
        .chain(&inputs)
        .chain(&outputs)
        .map(Some)
        .collect();
    let attrs: Attrs = [
        Value::Str(g.str("parameters").into()),
        Value::Int(num_outputs as i64),
    ]
    .into_iter()
    .collect();
    let grads = invoke_with(op, &operands, &attrs)?;
    let has_gradient = inputs.iter().map(|x| x.dtype().is_inexact());
    Ok(grads
        .into_iter()
        .zip(has_gradient)
        .map(|(gradient, has_gradient)| has_gradient.then_some(gradient))
        .collect())
}

/// The operator that computes the gradient of an operator in graphs.
fn gradient_name(op: &str) -> String {
    format!("{op}.gradient")
}

/// Operands of the operator that computes a gradient: where the inputs of the operator itself are.
fn inputs_in(op: &OpDef, args: Args<'_>, num_operands: usize) -> Result<std::ops::Range<usize>> {
    let num_outputs = args.int("num_outputs");
    let n = usize::try_from(num_outputs).ok();
    let range = n.and_then(|n| Some(n.checked_add(1)?..num_operands.checked_sub(n)?));
    let range = range.filter(|range| range.start <= range.end);
    range.ok_or_else(|| {
        let problem = format!(
            "operands are the ticket, {num_outputs} gradients of outputs, the inputs, {num_outputs} outputs; found {num_operands} operands"
        );
        Error::value(op.name, problem)
    })
}

fn infer_gradient(context: &InferContext) -> Result<Inferred> {
    let operands: Vec<_> = context.inputs.iter().flatten().collect();
    let inputs = inputs_in(context.op, context.args, operands.len())?;
    Ok(operands[inputs]
        .iter()
        .map(|x| OutSpec {
            shape: Dims::from_slice(x.shape()),
            dtype: Some(x.dtype()),
        })
        .collect())
}

fn run_gradient(context: &EagerContext) -> Result<Outputs> {
    let operator = context
        .op
        .state
        .and_then(|state| state.downcast_ref::<&OpDef>());
    let operator =
        operator.ok_or_else(|| Error::internal(context.op.name, "it has no operator"))?;
    let operands: Vec<Array> = context
        .inputs
        .iter()
        .flatten()
        .map(|x| x.detach())
        .collect();
    let range = inputs_in(context.op, context.args, operands.len())?;
    let (dys, inputs) = (&operands[1..range.start], &operands[range.clone()]);
    let _scope = Scope::enter(false, context.training);
    let parts = [dys, inputs, &operands[range.end..]];
    let grads = gradients(
        operator,
        context.str("parameters"),
        context.training,
        &operands[0],
        parts,
    )?;
    let mut outputs = Outputs::new();
    for (gradient, x) in grads.into_iter().zip(inputs) {
        outputs.push(match gradient {
            Some(gradient) => {
                let gradient = gradient.astype(x.dtype())?;
                with_own_memory(gradient, operands.iter().chain(&outputs))?
            }
            None => zeros(x.shape(), x.dtype(), x.device())?,
        });
    }
    Ok(outputs)
}

/// Adds the operator that computes the gradient of `op` in graphs.
fn add_gradient(op: &'static OpDef) -> Result<()> {
    const PARAMS: &[Param] = &[
        Param::arrays("data"),
        Param::required("parameters", ParamKind::Str),
        Param::required("num_outputs", ParamKind::Int),
    ];
    let added = registry::add(OpDef {
        name: gradient_name(op.name).leak(),
        doc: "The gradient of an operator that is written in Python.",
        params: PARAMS,
        types: Types::Infer,
        infer: infer_gradient,
        cpu: Cpu::Eager(run_gradient, Known::ByRule),
        grad: Grad::Stop("the gradient of an operator in Python has none in a graph"),
        state: Some(Box::leak(Box::new(op))),
        ..OpDef::DEFAULT
    })?;
    set_provider(added.name, Provider::Python);
    Ok(())
}

/// Adds an operator that is implemented in Python. Returns the function that calls it with a list of arrays and `parameters`; the function returns
/// the outputs, followed by the ticket.
#[pyfunction]
pub fn add_operator(
    py: Python<'_>,
    name: &str,
    doc: &str,
    infer: Py<PyAny>,
    forward: Py<PyAny>,
    backward: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    const PARAMS: &[Param] = &[
        Param::arrays("data"),
        Param::required("parameters", ParamKind::Str),
    ];
    let gradient = backward.as_ref().map(|_| gradient_name(name));
    for needed in std::iter::once(name).chain(gradient.as_deref()) {
        if registry::find(needed).is_some() {
            let problem = match needed == name {
                true => format!("an operator `{name}` exists already"),
                false => format!(
                    "the gradient of `{name}` needs the name `{needed}`, which another operator has"
                ),
            };
            return Err(raise(py, Error::value("operator", problem)));
        }
    }
    let code: &'static Code = Box::leak(Box::new(Code {
        infer,
        forward,
        backward,
    }));
    let op = registry::add(OpDef {
        name: Box::leak(name.to_owned().into_boxed_str()),
        doc: Box::leak(doc.to_owned().into_boxed_str()),
        params: PARAMS,
        types: Types::Infer,
        infer: self::infer,
        cpu: Cpu::Eager(self::forward, Known::ByRule),
        grad: match code.backward {
            Some(_) => Grad::Rule(Keep::ALL, self::backward),
            None => Grad::Stop("its Python code gives none"),
        },
        state: Some(code),
        ..OpDef::DEFAULT
    });
    let op = op.map_err(|error| raise(py, error))?;
    set_provider(op.name, Provider::Python);
    if code.backward.is_some() {
        add_gradient(op).map_err(|error| raise(py, error))?;
    }
    function(py, op)
}

fn function(py: Python<'_>, op: &'static OpDef) -> PyResult<Py<PyAny>> {
    crate::call::function(py, op, op.name, "mxnet._core")
}

/// The function of an operator that was added at run time.
#[pyfunction]
pub fn added_operator(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    let found = registry::find(name).ok_or_else(|| {
        raise(
            py,
            Error::value("operator", format!("there is no operator `{name}`")),
        )
    })?;
    function(py, found)
}
