//! Simplification: operators that return an operand unchanged become copies, which other passes remove; casts of casts use the first source.
//!
//! Only changes that keep every bit: `x - 0` is removed, `x + 0` is not, because it turns -0 into 0.

use std::collections::HashMap;

use mxnet_core::builtins::builtins;
use mxnet_core::{Args, Attrs};
use mxnet_tensor::{Casting, can_cast};
use smallvec::SmallVec;

use crate::ir::{BufferId, Graph, Node, Operand, View};

/// Operators for which f(f(x)) = f(x).
const IDEMPOTENT: &[&str] = &["absolute", "ceil", "fix", "floor", "relu", "rint", "trunc"];

/// Operators for which f(f(x)) = x.
const INVOLUTIONS: &[&str] = &["conjugate", "invert", "negative"];

/// Rewrites nodes whose result is known to equal another array. Returns the number of changed nodes.
pub fn simplify(graph: &mut Graph) -> usize {
    // The node that computed each buffer, except for partially written ones.
    let mut makers: HashMap<BufferId, usize> = HashMap::new();
    let mut changed = 0;
    for at in 0..graph.nodes.len() {
        if let Some(rewritten) = rewritten(graph, &makers, &graph.nodes[at]) {
            graph.nodes[at] = rewritten;
            changed += 1;
        }
        let node = &graph.nodes[at];
        if node.versions.is_empty() && node.outputs.len() == 1 {
            makers.insert(node.outputs[0].buffer, at);
        }
    }
    changed
}

fn rewritten(graph: &Graph, makers: &HashMap<BufferId, usize>, node: &Node) -> Option<Node> {
    if node.is_assignment || !node.versions.is_empty() || node.outputs.len() != 1 {
        return None;
    }
    let to = &node.outputs[0];
    let name = node.op.name;
    if let Some(x) = neutral(node) {
        return keeps(x, to).then(|| copy_of(node, x));
    }
    let x = node.inputs.first()?.view()?;
    // The node that computed exactly these elements.
    let earlier = makers.get(&x.buffer).map(|&at| &graph.nodes[at]);
    let earlier = earlier.filter(|earlier| earlier.outputs[0] == *x && !earlier.is_assignment);
    if name == "astype" {
        if keeps(x, to) {
            return Some(copy_of(node, x));
        }
        let earlier = earlier.filter(|earlier| earlier.op.name == "astype")?;
        let source = earlier.inputs.first()?.view()?;
        // The first cast must be exact.
        if !can_cast(source.dtype, x.dtype, Casting::Safe) || !is_order_kept(source, to) {
            return None;
        }
        let mut skipped = node.clone();
        skipped.inputs[0] = Operand::View(source.clone());
        return Some(match source.dtype == to.dtype {
            true => copy_of(node, source),
            false => skipped,
        });
    }
    let earlier =
        earlier.filter(|earlier| earlier.op.name == name && earlier.dtype == node.dtype)?;
    if IDEMPOTENT.contains(&name) {
        return keeps(x, to).then(|| copy_of(node, x));
    }
    if INVOLUTIONS.contains(&name) {
        let source = earlier.inputs.first()?.view()?;
        return keeps(source, to).then(|| copy_of(node, source));
    }
    None
}

/// The operand that a call with a neutral element returns: `x * 1`, `1 * x`, `x / 1`, `x - 0`, for integers `x + 0`.
fn neutral(node: &Node) -> Option<&View> {
    let [lhs, rhs] = &node.inputs[..] else {
        return match (node.op.name, &node.inputs[..]) {
            ("identity" | "positive", [Operand::View(x)]) => Some(x),
            _ => None,
        };
    };
    let is = |operand: &Operand, wanted: f64| match operand {
        Operand::Number(value) | Operand::Constant(value, _) => {
            value.as_f64().to_bits() == wanted.to_bits()
        }
        _ => false,
    };
    let is_integer = node.outputs[0].dtype.is_integer();
    match node.op.name {
        "multiply" if is(rhs, 1.0) => lhs.view(),
        "multiply" if is(lhs, 1.0) => rhs.view(),
        "divide" if is(rhs, 1.0) => lhs.view(),
        "subtract" if is(rhs, 0.0) => lhs.view(),
        "add" if is_integer && is(rhs, 0.0) => lhs.view(),
        "add" if is_integer && is(lhs, 0.0) => rhs.view(),
        _ => None,
    }
}

/// Whether the elements of `x` can be used for `to` unchanged. Complex products with 1 are not exact for infinities.
fn keeps(x: &View, to: &View) -> bool {
    x.dtype == to.dtype && x.layout.shape() == to.layout.shape() && !x.dtype.is_complex()
}

/// Whether a cast of `source` has the memory order of `to`.
fn is_order_kept(source: &View, to: &View) -> bool {
    source.layout.shape() == to.layout.shape() && source.layout.strides() == to.layout.strides()
}

/// A copy of `x` that replaces a node.
fn copy_of(node: &Node, x: &View) -> Node {
    Node {
        op: builtins().copy,
        attrs: Attrs::none(),
        inputs: SmallVec::from_iter([Operand::View(x.clone())]),
        dtype: Some(node.outputs[0].dtype),
        is_assignment: true,
        ..node.clone()
    }
}

/// The attributes of a node, by name.
pub(super) fn args(node: &Node) -> Args<'_> {
    Args {
        params: node.op.params,
        attrs: &node.attrs,
    }
}
