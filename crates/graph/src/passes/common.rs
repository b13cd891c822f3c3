//! Common subexpressions: removes nodes that compute the same as an earlier one.

use std::collections::HashMap;

use mxnet_core::{Attrs, Rng, Value};
use mxnet_tensor::{DType, Layout};

use crate::ir::{BufferId, Graph, Node, Operand, View};
use crate::provider;

/// An operand for comparison.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Absent,
    View(BufferId, Vec<usize>, Vec<isize>, usize, DType),
    Number(Value),
    Constant(Value, DType),
}

/// The computation of a node, for comparison.
#[derive(PartialEq, Eq, Hash)]
struct Computation {
    op: &'static str,
    attrs: Attrs,
    inputs: Vec<Key>,
    dtype: Option<DType>,
    training: bool,
    output_dtypes: Vec<DType>,
}

fn key(operand: &Operand) -> Key {
    match operand {
        Operand::Absent => Key::Absent,
        Operand::View(view) => {
            let layout: &Layout = &view.layout;
            Key::View(
                view.buffer,
                layout.shape().to_vec(),
                layout.strides().to_vec(),
                layout.offset(),
                view.dtype,
            )
        }
        Operand::Number(value) => Key::Number(Value::Scalar(*value)),
        Operand::Constant(value, dtype) => Key::Constant(Value::Scalar(*value), *dtype),
    }
}

/// Whether a node gives the same result for the same operands and changes nothing. Python code may do anything at each call.
fn is_pure(node: &Node) -> bool {
    node.versions.is_empty()
        && matches!(node.op.rng, Rng::No | Rng::Derived)
        && !provider::is_python(node.op.name)
        && !node.op.is_impure
}

/// Merges pure nodes with the same operator, operands and attributes. Results of the graph keep separate memory.
pub fn merge_common_nodes(graph: &mut Graph) -> usize {
    let before = graph.nodes.len();
    let results: std::collections::HashSet<BufferId> = graph.results().collect();
    // Buffers that are partially written later are arrays that must stay separate.
    let versioned: std::collections::HashSet<BufferId> = (graph.nodes.iter())
        .flat_map(|node| node.versions.iter().map(|version| version.old))
        .collect();
    let mut known: HashMap<Computation, Vec<BufferId>> = HashMap::new();
    let mut same: HashMap<BufferId, BufferId> = HashMap::new();
    let renamed = |view: &mut View, same: &HashMap<BufferId, BufferId>| {
        if let Some(&other) = same.get(&view.buffer) {
            view.buffer = other;
        }
    };
    let mut kept = Vec::with_capacity(before);
    for mut node in std::mem::take(&mut graph.nodes) {
        for operand in &mut node.inputs {
            if let Operand::View(view) = operand {
                renamed(view, &same);
            }
        }
        let is_own = |buffer: &BufferId| results.contains(buffer) || versioned.contains(buffer);
        if !is_pure(&node) || node.outputs.iter().any(|view| is_own(&view.buffer)) {
            kept.push(node);
            continue;
        }
        let computation = Computation {
            op: node.op.name,
            attrs: node.attrs.clone(),
            inputs: node.inputs.iter().map(key).collect(),
            dtype: node.dtype,
            training: node.training,
            output_dtypes: node.outputs.iter().map(|view| view.dtype).collect(),
        };
        let outputs: Vec<BufferId> = node.outputs.iter().map(|view| view.buffer).collect();
        match known.get(&computation) {
            Some(earlier) => same.extend(outputs.into_iter().zip(earlier.iter().copied())),
            None => {
                known.insert(computation, outputs);
                kept.push(node);
            }
        }
    }
    graph.nodes = kept;
    before - graph.nodes.len()
}
