//! Fuses activations into matrix products and convolutions, and batch normalisation with given statistics and the addition after it into
//! convolutions, which apply them while a tile of the result is in the cache.

use std::collections::{HashMap, HashSet};

use mxnet_core::args::Value;
use mxnet_core::registry;
use mxnet_tensor::{DType, DeviceKind};
use smallvec::smallvec;

use crate::ir::{BufferId, Graph, Node, Operand, View};

/// An operator, the activation after it, and the fused operator.
const FUSED: &[(&str, &str, &str)] = &[
    ("fully_connected", "relu", "fully_connected_relu"),
    ("convolution", "relu", "convolution_relu"),
];

/// A convolution with batch normalisation, with an addition if it has the operand `addend`, and with relu if its last attribute is true.
const NORMALISED: &str = "convolution_batch_norm";

/// Fuses products whose only reader is an activation, a batch normalisation or, after that, an addition. Returns the number of removed nodes.
pub fn fuse_epilogues(graph: &mut Graph) -> usize {
    let before = graph.nodes.len();
    let mut must_be_stored: HashSet<BufferId> = graph.results().collect();
    let mut num_readers: HashMap<BufferId, usize> = HashMap::new();
    for node in &graph.nodes {
        must_be_stored.extend(node.versions.iter().map(|version| version.old));
        for buffer in node.reads() {
            *num_readers.entry(buffer).or_default() += 1;
        }
    }
    // Candidates, by their result.
    let mut products: HashMap<BufferId, usize> = HashMap::new();
    let mut gone: HashSet<usize> = HashSet::new();
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        let is_read = |view: &View| {
            num_readers.contains_key(&view.buffer) || must_be_stored.contains(&view.buffer)
        };
        let Some((y, others)) = node.outputs.split_first() else {
            continue;
        };
        if !node.versions.is_empty() || node.is_assignment || others.iter().any(is_read) {
            continue;
        }
        // Other devices may have no kernel for the fused operator.
        let is_on_cpu = graph.buffer(y.buffer).device.kind() == DeviceKind::Cpu;
        let is_product = is_on_cpu && FUSED.iter().any(|(product, ..)| *product == node.op.name);
        if is_product && matches!(y.dtype, DType::F32 | DType::F64) {
            products.insert(y.buffer, at);
            continue;
        }
        // The latest product among the operands: the others are there when it runs.
        let made = node.inputs.iter().filter_map(Operand::view);
        let made = made.filter_map(|x| Some((*products.get(&x.buffer)?, x)));
        let Some((earlier, x)) = made.max_by_key(|(at, _)| *at) else {
            continue;
        };
        let product = &graph.nodes[earlier];
        let is_whole = product.outputs[0] == *x && x.layout == y.layout && x.dtype == y.dtype;
        let is_only_reader =
            num_readers.get(&x.buffer) == Some(&1) && !must_be_stored.contains(&x.buffer);
        if !is_whole || !is_only_reader || node.dtype.is_some() {
            continue;
        }
        let between = &graph.nodes[earlier..at];
        let (output, buffer) = (y.clone(), x.buffer);
        if let Some(fused) = fused(product, node, between) {
            products.remove(&buffer);
            if fused.op.name == NORMALISED {
                products.insert(output.buffer, earlier);
            }
            graph.nodes[earlier] = Node {
                outputs: smallvec![output],
                ..fused
            };
            gone.insert(at);
        }
    }
    let mut at = 0;
    graph.nodes.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    before - graph.nodes.len()
}

/// The product with the node after it, which is its only reader, if there is an operator for both. `between` are the nodes from the product to the
/// other.
fn fused(product: &Node, node: &Node, between: &[Node]) -> Option<Node> {
    let (first, second) = (product.op.name, node.op.name);
    let mut both = product.clone();
    if let Some((.., name)) = FUSED
        .iter()
        .find(|fused| (fused.0, fused.1) == (first, second))
    {
        both.op = registry::find(name)?;
        return Some(both);
    }
    match (first, second) {
        (NORMALISED, "add") if !is_true(product.attribute("relu")) => {
            let [Operand::View(a), Operand::View(b)] = &node.inputs[..] else {
                return None;
            };
            let made = &product.outputs[0];
            let addend = if a.buffer == made.buffer { b } else { a };
            let fits = addend.dtype == made.dtype && addend.layout.shape() == made.layout.shape();
            // The addend is there when the convolution runs.
            if !fits || addend.buffer == made.buffer || is_made_in(between, addend) {
                return None;
            }
            let at = both.op.array_params().position(|p| p.name == "addend")?;
            *both.inputs.get_mut(at)? = Operand::View(addend.clone());
        }
        (NORMALISED, "relu") => {
            let mut values = product.attrs.values().to_vec();
            *values.last_mut()? = Value::Bool(true);
            both.attrs = values.into_iter().collect();
        }
        ("convolution", "batch_norm_inference") => {
            let Value::Int(axis) = *node.attribute("axis")? else {
                return None;
            };
            let ndim = product.outputs[0].layout.shape().len() as i64;
            let is_last =
                matches!(product.attribute("layout")?, Value::Str(layout) if layout.ends_with('C'));
            let channels = if is_last { ndim - 1 } else { 1 };
            if axis.rem_euclid(ndim) != channels {
                return None;
            }
            both.op = registry::find(NORMALISED)?;
            both.inputs.resize(3, Operand::Absent);
            for vector in &node.inputs[1..] {
                match vector {
                    Operand::Absent => {}
                    // The vectors are there when the convolution runs.
                    Operand::View(view) => {
                        if view.dtype != product.outputs[0].dtype || is_made_in(between, view) {
                            return None;
                        }
                    }
                    _ => return None,
                }
                both.inputs.push(vector.clone());
            }
            both.inputs.push(Operand::Absent);
            for value in [node.attribute("eps")?.clone(), Value::Bool(false)] {
                both.attrs.push(value);
            }
        }
        _ => return None,
    }
    Some(both)
}

fn is_true(value: Option<&Value>) -> bool {
    matches!(value, Some(Value::Bool(true)))
}

/// Whether one of the nodes makes the array.
fn is_made_in(nodes: &[Node], view: &View) -> bool {
    let mut made = nodes.iter().flat_map(Node::defines);
    made.any(|buffer| buffer == view.buffer)
}
