//! Removes copies: a result that is assigned to a whole array is computed in that array's buffer.

use std::collections::{HashMap, HashSet};

use crate::ir::{BufferId, Graph, Operand};

/// Removes assignments of a buffer to a whole array with the same layout and dtype. The buffer replaces the array's.
pub fn remove_copies(graph: &mut Graph) -> usize {
    let before = graph.nodes.len();
    // Buffers that must not be replaced: inputs, results, and those that are partially written.
    let mut fixed: HashSet<BufferId> = graph.results().collect();
    fixed.extend(graph.inputs.iter().map(|input| input.buffer));
    for node in &graph.nodes {
        fixed.extend(
            node.versions
                .iter()
                .flat_map(|version| [version.old, version.new]),
        );
    }
    let mut replaced: HashMap<BufferId, BufferId> = HashMap::new();
    graph.nodes.retain(|node| {
        if !node.is_assignment || !node.versions.is_empty() {
            return true;
        }
        let (Operand::View(from), to) = (&node.inputs[0], &node.outputs[0]) else {
            return true;
        };
        let len_bytes = graph.buffers[from.buffer.0 as usize].len_bytes;
        let is_same = from.layout == to.layout
            && from.dtype == to.dtype
            && len_bytes == graph.buffers[to.buffer.0 as usize].len_bytes
            && from.len_bytes() == len_bytes;
        if !is_same || fixed.contains(&from.buffer) || replaced.contains_key(&from.buffer) {
            return true;
        }
        replaced.insert(from.buffer, to.buffer);
        false
    });
    for node in &mut graph.nodes {
        for operand in &mut node.inputs {
            if let Operand::View(view) = operand
                && let Some(&other) = replaced.get(&view.buffer)
            {
                view.buffer = other;
            }
        }
        for view in &mut node.outputs {
            if let Some(&other) = replaced.get(&view.buffer) {
                view.buffer = other;
            }
        }
    }
    before - graph.nodes.len()
}
