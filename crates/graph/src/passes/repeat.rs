//! Rematerialisation: cheap results that a gradient reads are computed again from operands that are kept anyway.

use std::collections::{HashMap, HashSet};

use mxnet_core::{Cpu, Rng};

use super::forward::overwritten_at;
use super::recompute::{peak_node, planned_bytes, rename};
use crate::compile::Options;
use crate::ir::{BufferId, Graph, Node, Operand, View};

/// Operators other than elementwise ones that take hardly longer than reading their operands.
const CHEAP: &[&str] = &["row_norm"];

/// Smaller results are not worth it: the arena has gaps of that size anyway.
const MIN_BYTES: usize = 1 << 12;

/// Smallest reduction of the peak, in percent, for which the pass is applied.
const MIN_GAIN: usize = 5;

/// Repeats elementwise nodes and norms after the point of largest memory use, if their operands still exist there and their results were kept for
/// later nodes only. Returns the number of repeated nodes: 0 if the peak of the memory plan would hardly fall.
pub fn repeat_cheap_nodes(graph: &mut Graph) -> usize {
    let (made, count) = repeated(graph);
    if count == 0 {
        return 0;
    }
    let peaks = planned_bytes(graph.clone(), Options::default())
        .and_then(|before| Ok((before, planned_bytes(made.clone(), Options::default())?)));
    match peaks {
        Ok((before, after)) if after * 100 <= before * (100 - MIN_GAIN) => {
            *graph = made;
            count
        }
        _ => 0,
    }
}

/// Whether a node is pure and cheap.
fn is_cheap(node: &Node) -> bool {
    (matches!(node.op.cpu, Cpu::Map(_)) || CHEAP.contains(&node.op.name))
        && node.versions.is_empty()
        && !node.is_assignment
        && node.op.mutates.is_empty()
        && node.op.state.is_none()
        && matches!(node.op.rng, Rng::No | Rng::Derived)
}

fn repeated(graph: &Graph) -> (Graph, usize) {
    let boundary = peak_node(graph);
    let results: HashSet<BufferId> = graph.results().collect();
    let overwritten = overwritten_at(graph);
    let (mut first_use, mut last_use) = (HashMap::new(), HashMap::new());
    for (at, node) in graph.nodes.iter().enumerate() {
        for buffer in node.reads() {
            if at >= boundary {
                first_use.entry(buffer).or_insert(at);
            }
            last_use.insert(buffer, at);
        }
    }
    let is_input = |buffer: BufferId| graph.input_of(buffer).is_some();
    let mut made = graph.clone();
    let mut clones: HashMap<usize, Vec<Node>> = HashMap::new();
    let mut renamed: HashMap<BufferId, BufferId> = HashMap::new();
    for node in graph.nodes[..boundary].iter().filter(|node| is_cheap(node)) {
        // The first result is the large one; further results are as small as means of rows.
        let Some(y) = node.outputs.first().map(|view| view.buffer) else {
            continue;
        };
        let Some(&first) = first_use.get(&y) else {
            continue;
        };
        // Whether an operand exists at the first use, complete, and not only because of this node.
        let is_there = |view: &View| {
            let buffer = view.buffer;
            let is_kept = is_input(buffer)
                || last_use.get(&buffer).is_some_and(|&last| last >= first)
                || results.contains(&buffer);
            is_kept
                && !renamed.contains_key(&buffer)
                && overwritten.get(&buffer).is_none_or(|&end| end > first)
        };
        let is_wanted = graph.buffer(y).len_bytes >= MIN_BYTES
            && !results.contains(&y)
            && !overwritten.contains_key(&y)
            && node.inputs.iter().filter_map(Operand::view).all(is_there);
        if !is_wanted {
            continue;
        }
        let mut again = node.clone();
        for view in &mut again.outputs {
            let old = graph.buffer(view.buffer);
            let new = made.add_buffer(old.len_bytes, old.device);
            if view.buffer == y {
                renamed.insert(y, new);
            }
            view.buffer = new;
        }
        clones.entry(first).or_default().push(again);
    }
    let count = renamed.len();
    for (at, mut node) in std::mem::take(&mut made.nodes).into_iter().enumerate() {
        made.nodes.extend(clones.remove(&at).unwrap_or_default());
        if at >= boundary {
            rename(&mut node, &renamed);
        }
        made.nodes.push(node);
    }
    (made, count)
}
