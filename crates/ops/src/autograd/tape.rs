//! Recording calls and attaching gradients to arrays.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::autograd::node::{Edge, GradReq, Kept, Kind, Leaf, Node, Saved, Spec};
use crate::error::{Error, Result, Tuple};
use crate::invoke::Call;
use crate::opdef::{Cpu, Grad, Keep};
use crate::{Array, Outputs, eager};

/// Executes a call and records it if a gradient can flow through it.
pub(crate) fn record(call: &Call) -> Result<Outputs> {
    if matches!(call.op.cpu, Cpu::Composite(_)) {
        return eager::run(call);
    }
    if !call.inputs.iter().flatten().any(|x| x.entry().is_some()) {
        // Nothing to differentiate; writing into a variable is still an error.
        check_outs(call)?;
        return eager::run(call);
    }
    let Grad::Rule(keep, _) = call.op.grad else {
        return eager::run(call);
    };
    recorded(call, keep, || {
        // An eager body computes with operators of its own; those are not part of the graph.
        let _paused = matches!(call.op.cpu, Cpu::Eager(_))
            .then(|| crate::interp::Scope::enter(false, crate::interp::is_training()));
        eager::run(call)
    })
}

/// Records a call that `compute` carries out in another way than the operator's entry: assignments write in place.
pub(crate) fn record_as(call: &Call, compute: impl FnOnce() -> Result<Outputs>) -> Result<Outputs> {
    match call.op.grad {
        Grad::Rule(keep, _) => recorded(call, keep, compute),
        _ => compute(),
    }
}

fn recorded(call: &Call, keep: Keep, compute: impl FnOnce() -> Result<Outputs>) -> Result<Outputs> {
    check_outs(call)?;
    let kept = keep_inputs(call, keep);
    let outputs = compute()?;
    let kept_outputs = outputs
        .iter()
        .enumerate()
        .map(|(i, y)| (keep.outputs >> i & 1 == 1).then(|| Kept::new(y.detach())))
        .collect();
    let kind = Kind::Call {
        op: call.op,
        attrs: call.attrs.clone(),
        training: crate::interp::is_training(),
        inputs: call.inputs.iter().map(|x| x.map(Spec::of)).collect(),
        saved: parking_lot::Mutex::new(Some(Saved {
            inputs: kept,
            outputs: kept_outputs,
        })),
    };
    let edges: SmallVec<[Option<Edge>; 2]> = call
        .inputs
        .iter()
        .map(|x| x.and_then(|x| x.entry().cloned()))
        .collect();
    let node = Node::new(kind, edges, outputs.iter().map(Spec::of).collect());
    Ok(outputs
        .into_iter()
        .enumerate()
        .map(|(i, y)| y.with_entry(node.clone(), i as u32))
        .collect())
}

/// Inputs a rule asks for. They are kept as they are before the call, which may overwrite them in place.
fn keep_inputs(call: &Call, keep: Keep) -> SmallVec<[Option<Kept>; 2]> {
    let wanted = |i: usize| keep.inputs >> i.min(31) & 1 == 1;
    call.inputs
        .iter()
        .enumerate()
        .map(|(i, x)| x.filter(|_| wanted(i)).map(|x| Kept::new(x.clone())))
        .collect()
}

/// While recording, an array that a graph knows cannot be written: earlier uses of it would get the gradient of the new value.
fn check_outs(call: &Call) -> Result<()> {
    for out in call.outs.iter().flatten() {
        if let Some((node, _)) = out.entry() {
            if node.is_variable() {
                return Err(Error::autograd(
                    call.op.name,
                    "cannot write in place to a variable with a gradient while recording",
                )
                .with_hint("compute out of place, or write inside `autograd.pause()`"));
            }
            if matches!(&node.kind, Kind::Call { op, .. } if matches!(op.cpu, Cpu::View(_))) {
                return Err(Error::autograd(
                    call.op.name,
                    "cannot write through a recorded view while recording",
                )
                .with_hint("copy the view first, or write inside `autograd.pause()`"));
            }
        }
    }
    Ok(())
}

/// Gives `x` a gradient buffer of zeros. A result of a recorded operation stays in its graph and gets its gradient when one flows through it.
///
/// # Errors
/// [`Error::Memory`] if there is no memory for the buffer.
pub fn attach_grad(x: &mut Array, req: GradReq) -> Result<()> {
    let grad = crate::creation::zeros(x.shape(), x.dtype(), x.device())?;
    mark_variable(x, grad, req)
}

/// Gives `x` this gradient buffer.
///
/// # Errors
/// [`Error::Shape`] or [`Error::DType`] if the buffer is not like `x`.
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
    let recorded = x.entry().filter(|(node, _)| !node.is_variable()).cloned();
    if req == GradReq::Null && recorded.is_none() {
        *x = x.detach();
        return Ok(());
    }
    let leaf = Leaf::new(grad.detach(), req);
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
    Ok(())
}

/// Takes the gradient buffer of `x` away.
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
