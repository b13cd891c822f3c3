//! Recording calls and attaching gradients to arrays.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mxnet_tensor::Scalar;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::autograd::RowSparse;
use crate::autograd::node::{
    Buffer, Edges, GradReq, Inputs, Kind, Leaf, Node, Recorded, Saved, SavedArray, Spec,
};
use crate::error::{Error, Result, Tuple};
use crate::invoke::Call;
use crate::mode::Scope;
use crate::opdef::{Cpu, Keep};
use crate::{Array, Outputs, eager, mode};

/// Executes a call, records it if a gradient can flow through it, and appends its outputs to `outputs`, which must be empty.
pub(crate) fn record(call: &Call, outputs: &mut Outputs) -> Result<()> {
    let is_recorded = |x: &&Array| x.edge().is_some();
    let is_composite = matches!(call.op.cpu, Cpu::Composite(_));
    let keep = match call.op.grad {
        _ if is_composite => None,
        grad if call.inputs.iter().flatten().any(is_recorded) => grad.keep(),
        _ => None,
    };
    if !is_composite {
        check_fresh(call)?;
    }
    let Some(keep) = keep else {
        return run_unrecorded(call, outputs);
    };
    recorded(call, keep, outputs, |outputs| {
        // The body of an eager operator calls other operators, which must not be recorded.
        let _paused =
            matches!(call.op.cpu, Cpu::Eager(..)).then(|| Scope::enter(false, mode::is_training()));
        eager::run_into(call, outputs)
    })
}

/// Executes a call that is not recorded. Writing into a variable is still an error.
fn run_unrecorded(call: &Call, outputs: &mut Outputs) -> Result<()> {
    if call.outs.is_empty() {
        return eager::run_into(call, outputs);
    }
    check_outs(call)?;
    eager::run_into(call, outputs)?;
    // Writes of constants may have replaced recorded elements, and a composite may return recorded arrays.
    let is_recorded = |x: &Array| x.entry().is_some();
    if call.outs.iter().flatten().any(|out| is_recorded(out)) || outputs.iter().any(is_recorded) {
        mark_current(call, outputs);
    }
    Ok(())
}

/// Records a call that `compute` executes in place of the operator's kernel. Assignments use it: they write in place.
pub fn record_as(call: &Call, compute: impl FnOnce() -> Result<Outputs>) -> Result<Outputs> {
    check_fresh(call)?;
    let Some(keep) = call.op.grad.keep() else {
        return compute();
    };
    let mut outputs = Outputs::new();
    recorded(call, keep, &mut outputs, |outputs| {
        *outputs = compute()?;
        Ok(())
    })?;
    Ok(outputs)
}

fn recorded(
    call: &Call,
    keep: Keep,
    outputs: &mut Outputs,
    compute: impl FnOnce(&mut Outputs) -> Result<()>,
) -> Result<()> {
    check_outs(call)?;
    // Inputs that the call overwrites are copied before.
    let changes = !call.outs.is_empty() || !call.op.mutates.is_empty();
    let mut saved = Saved::new();
    if changes {
        save_inputs(call, keep, None, &mut saved)?;
    }
    compute(outputs)?;
    mark_current(call, outputs);
    let inputs = if changes {
        Inputs::each(call)
    } else {
        let inputs = like_output(call, outputs).unwrap_or_else(|| Inputs::each(call));
        save_inputs(call, keep, inputs.number(), &mut saved)?;
        inputs
    };
    for (i, y) in outputs.iter().enumerate() {
        if keep.has_output(i) {
            saved.push(SavedArray::new(y.detach()));
        }
    }
    let recorded = Recorded {
        op: call.op,
        training: mode::is_training(),
        attrs: (!call.attrs.values().is_empty()).then(|| Box::new(call.attrs.clone())),
        inputs,
        saved: Mutex::new(Some(saved)),
        is_freed: AtomicBool::new(false),
    };
    let mut edges = Edges::new();
    for x in call.inputs {
        edges.push(x.and_then(|x| x.edge().cloned()));
    }
    let mut specs = SmallVec::new();
    for y in &*outputs {
        specs.push(Spec::of(y));
    }
    let node = Node::new(Kind::Call(recorded), edges, specs);
    for (i, y) in outputs.iter_mut().enumerate() {
        y.set_entry(node.clone(), i as u32);
    }
    Ok(())
}

/// Saves the inputs that the gradient rule needs, except for the Python number at position `number`, which the node stores.
fn save_inputs(
    call: &Call,
    keep: Keep,
    number: Option<(u8, Scalar)>,
    saved: &mut Saved,
) -> Result<()> {
    let number = number.map(|(at, _)| usize::from(at));
    for (i, x) in call.inputs.iter().enumerate() {
        if let Some(x) = x
            && keep.has_input(i)
            && number != Some(i)
        {
            saved.push(SavedArray::new(input_before(call, x)?));
        }
    }
    Ok(())
}

/// The compact form of the inputs of an elementwise call: all are like its output, except for at most one Python number.
fn like_output(call: &Call, outputs: &[Array]) -> Option<Inputs> {
    let [y] = outputs else { return None };
    if !matches!(call.op.cpu, Cpu::Map(_)) {
        return None;
    }
    let mut number = None;
    for (i, x) in call.inputs.iter().enumerate() {
        let x = (*x)?;
        match x.number() {
            Some(value) if number.is_none() => number = Some((i as u8, value)),
            None if x.dtype() == y.dtype() && x.shape() == y.shape() => {}
            _ => return None,
        }
    }
    Some(Inputs::LikeOutput { number })
}

/// An input with its elements before the call: a copy if the call writes into its storage.
fn input_before(call: &Call, x: &Array) -> Result<Array> {
    let shares = |out: &&Array| Arc::ptr_eq(out.tensor().storage(), x.tensor().storage());
    if !call.outs.iter().flatten().any(shares) {
        return Ok(x.without_entry());
    }
    let _paused = Scope::enter(false, mode::is_training());
    mode::in_body(|| x.detach().copy())
}

/// Marks the graph entries of the outputs as current. All other arrays that share the written storages become stale.
fn mark_current(call: &Call, outputs: &mut Outputs) {
    for out in call.outs.iter().flatten() {
        out.tensor().storage().bump_lineage();
    }
    for y in outputs {
        y.set_up_to_date();
    }
}

/// Refuses inputs whose graph entries are stale: gradients would flow to the elements before the write.
fn check_fresh(call: &Call) -> Result<()> {
    for (i, x) in call.inputs.iter().enumerate() {
        if x.is_some_and(Array::is_stale) {
            return Err(stale(call.op.name, &format!("operand {i}")));
        }
    }
    match call.outs.iter().flatten().any(|out| out.is_stale()) {
        true => Err(stale(call.op.name, "`out`")),
        false => Ok(()),
    }
}

/// The error for an array whose elements a recorded operation has written through another array.
#[cold]
pub(crate) fn stale(op: &'static str, what: &str) -> Error {
    let problem = format!(
        "{what} shares elements with an array that a recorded operation has written in place since, so its own record is out of date"
    );
    Error::autograd(op, problem).with_hint(
        "take views inside `autograd.record()`, take them again after the write, or copy before it",
    )
}

/// Refuses to write into a variable while recording: its earlier uses would get the gradient of the new value.
fn check_outs(call: &Call) -> Result<()> {
    for out in call.outs.iter().flatten() {
        // Elements that share memory cannot be recorded: each needs its own gradient.
        out.check_writable(call.op.name, "output array")?;
        let Some((node, _)) = out.entry() else {
            continue;
        };
        if node.is_variable() {
            return Err(Error::autograd(
                call.op.name,
                "cannot write in place to a variable with a gradient while recording",
            )
            .with_hint("compute out of place, or write inside `autograd.pause()`"));
        }
        if viewed_variable(node) {
            return Err(Error::autograd(
                call.op.name,
                "cannot write in place to a view of a variable with a gradient while recording",
            )
            .with_hint("compute out of place, or write inside `autograd.pause()`"));
        }
    }
    Ok(())
}

/// Whether a node is a view of a variable, possibly through several views.
fn viewed_variable(node: &Arc<Node>) -> bool {
    let mut node = node;
    while node.op().is_some_and(|op| matches!(op.cpu, Cpu::View(_))) {
        let Some(Some((source, _))) = node.edges.first() else {
            return false;
        };
        node = source;
    }
    node.is_variable()
}

/// Gives `x` a gradient buffer of zeros. If `x` is a recorded result it stays in its graph and gets the gradient that flows through it.
///
/// # Errors
/// [`Error::Memory`] if there is no memory for the buffer.
pub fn attach_grad(x: &mut Array, req: GradReq) -> Result<()> {
    let grad = crate::creation::zeros(x.shape(), x.dtype(), x.device())?;
    mark_variable(x, grad, req)
}

/// Gives `x` an empty row-sparse gradient. For arrays whose gradients are row-sparse, such as embedding tables.
///
/// # Errors
/// [`Error::Shape`] if `x` has no axis; [`Error::Memory`].
pub fn attach_row_grad(x: &mut Array, req: GradReq) -> Result<()> {
    let rows = RowSparse::empty(x)?;
    mark(x, Buffer::Rows(rows), req);
    Ok(())
}

/// Makes `grad` the gradient buffer of `x`.
///
/// # Errors
/// [`Error::Shape`] or [`Error::DType`] if `grad` does not have the shape and dtype of `x`; [`Error::Value`] if it is read-only.
pub fn mark_variable(x: &mut Array, grad: Array, req: GradReq) -> Result<()> {
    if grad.shape() != x.shape() {
        let problem = format!(
            "gradient has shape {}, its variable has shape {}",
            Tuple(grad.shape()),
            Tuple(x.shape())
        );
        return Err(Error::shape("mark_variables", problem));
    }
    if grad.dtype() != x.dtype() {
        let problem = format!(
            "gradient is {}, its variable is {}",
            grad.dtype().name(),
            x.dtype().name()
        );
        return Err(Error::dtype("mark_variables", problem));
    }
    if req != GradReq::Null {
        grad.check_writable("mark_variables", "the gradient")?;
    }
    mark(x, Buffer::Dense(grad.detach()), req);
    Ok(())
}

fn mark(x: &mut Array, buffer: Buffer, req: GradReq) {
    let recorded = x.edge().filter(|(node, _)| !node.is_variable()).cloned();
    if req == GradReq::Null && recorded.is_none() {
        *x = x.detach();
        return;
    }
    let leaf = Leaf::new(buffer, req);
    match recorded {
        Some((node, index)) => {
            let mut watchers = node.watchers.lock();
            watchers.retain(|(i, _)| *i != index);
            watchers.push((index, leaf));
        }
        None => {
            let node = Node::new(
                Kind::Variable,
                SmallVec::new(),
                SmallVec::from_iter([Spec::of(x)]),
            );
            node.watchers.lock().push((0, leaf));
            *x = x.detach().with_entry(node, 0);
        }
    }
}

/// Removes the gradient buffer of `x`.
pub fn drop_grad(x: &mut Array) {
    if let Some((node, index)) = x.entry().cloned() {
        node.watchers.lock().retain(|(i, _)| *i != index);
        if node.is_variable() {
            *x = x.detach();
        }
    }
}

/// The gradient buffer of `x`.
pub fn gradient_of(x: &Array) -> Option<Arc<Leaf>> {
    x.entry().and_then(|(node, index)| node.leaf(*index))
}
