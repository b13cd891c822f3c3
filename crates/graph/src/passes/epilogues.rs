//! Fuses activations into matrix products and convolutions, which apply them while a tile of the result is in the cache.

use std::collections::{HashMap, HashSet};

use mxnet_core::registry;
use mxnet_tensor::{DType, DeviceKind};

use crate::ir::{BufferId, Graph, Operand};

/// An operator, the activation after it, and the fused operator.
const FUSED: &[(&str, &str, &str)] = &[
    ("fully_connected", "relu", "fully_connected_relu"),
    ("convolution", "relu", "convolution_relu"),
];

/// Fuses products whose only reader is an activation. Returns the number of removed nodes.
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
        let has_one_whole_output =
            node.versions.is_empty() && !node.is_assignment && node.outputs.len() == 1;
        let Some(y) = node.outputs.first().filter(|_| has_one_whole_output) else {
            continue;
        };
        // Other devices may have no kernel for the fused operator.
        let is_on_cpu = graph.buffer(y.buffer).device.kind() == DeviceKind::Cpu;
        let is_product = is_on_cpu && FUSED.iter().any(|(product, ..)| *product == node.op.name);
        if is_product && matches!(y.dtype, DType::F32 | DType::F64) {
            products.insert(y.buffer, at);
            continue;
        }
        let [Operand::View(x)] = &node.inputs[..] else {
            continue;
        };
        let Some(&earlier) = products.get(&x.buffer) else {
            continue;
        };
        let product = &graph.nodes[earlier];
        let is_whole = product.outputs[0] == *x && x.layout == y.layout && x.dtype == y.dtype;
        let is_only_reader =
            num_readers.get(&x.buffer) == Some(&1) && !must_be_stored.contains(&x.buffer);
        let fused = FUSED
            .iter()
            .find(|(name, activation, _)| *name == product.op.name && *activation == node.op.name);
        let fused = fused.and_then(|(.., name)| registry::find(name));
        if let Some(op) = fused.filter(|_| is_whole && is_only_reader && node.dtype.is_none()) {
            let (output, buffer) = (y.clone(), x.buffer);
            let product = &mut graph.nodes[earlier];
            (product.op, product.outputs[0]) = (op, output);
            products.remove(&buffer);
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
