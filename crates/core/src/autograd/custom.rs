//! Functions with their own gradients: functions of the user, and checkpoints.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::Array;
use crate::autograd::node::{Kind, Node, Spec};
use crate::error::Result;
use crate::mode;
use crate::opdef::Grads;

/// The backward function of such a function.
pub trait CustomBackward: Send + Sync {
    /// Cotangents of the inputs, from those of the outputs. `node` is the recorded call.
    ///
    /// # Errors
    /// Whatever the code of the function reports.
    fn backward(&self, node: &Arc<Node>, dys: &[Array]) -> Result<Grads>;
}

/// Makes `outputs` results of a custom function of `inputs`; they were computed without recording. Outputs for which `has_gradient` is false stay
/// constants, and so do integers.
///
/// # Errors
/// Errors of interpreters that replace the inputs.
pub fn record_custom(
    name: &str,
    inputs: &[&Array],
    outputs: Vec<Array>,
    has_gradient: impl Fn(usize) -> bool,
    rule: Box<dyn CustomBackward>,
) -> Result<Vec<Array>> {
    if !inputs.iter().any(|x| x.edge().is_some()) {
        return Ok(outputs);
    }
    let edge = |x: &&Array| match mode::stand_in(x)? {
        Some(other) => Ok(other.edge().cloned()),
        None => Ok(x.edge().cloned()),
    };
    let edges = inputs.iter().map(edge).collect::<Result<_>>()?;
    let specs: SmallVec<[Spec; 1]> = outputs.iter().map(Spec::of).collect();
    let node = Node::new(
        Kind::Custom {
            rule: Mutex::new(Some(rule)),
            name: name.to_owned(),
            is_freed: AtomicBool::new(false),
        },
        edges,
        specs,
    );
    let attach = |(i, y): (usize, Array)| match has_gradient(i) && y.dtype().is_inexact() {
        true => y.detach().with_entry(node.clone(), i as u32),
        false => y.detach(),
    };
    Ok(outputs.into_iter().enumerate().map(attach).collect())
}

/// A backward function that passes cotangents on.
struct Identity;

impl CustomBackward for Identity {
    fn backward(&self, _node: &Arc<Node>, dys: &[Array]) -> Result<Grads> {
        Ok(dys.iter().cloned().map(Some).collect())
    }
}

/// The elements of `x` as a variable whose gradients can be asked for. If `is_connected`, gradients also flow on into the graph of `x`; otherwise the
/// variable starts a new graph.
///
/// # Errors
/// As [`record_custom`].
pub fn graph_input(x: &Array, is_connected: bool) -> Result<Array> {
    if is_connected && x.edge().is_some() {
        let copies = vec![x.detach()];
        let mut same = record_custom("identity", &[x], copies, |_| true, Box::new(Identity))?;
        if let Some(same) = same.pop() {
            return Ok(same);
        }
    }
    let spec = SmallVec::from_iter([Spec::of(x)]);
    let node = Node::new(Kind::Variable, SmallVec::new(), spec);
    Ok(x.detach().with_entry(node, 0))
}
