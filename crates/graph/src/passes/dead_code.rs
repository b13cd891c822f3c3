//! Removes nodes whose results nobody reads.

use std::collections::HashSet;

use crate::ir::{BufferId, Graph};

/// Removes nodes that contribute to no result, except calls of impure operators. The random numbers of the other nodes stay the same.
pub fn remove_dead_nodes(graph: &mut Graph) -> usize {
    let before = graph.nodes.len();
    let mut needed: HashSet<BufferId> = graph.results().collect();
    let mut kept = Vec::with_capacity(before);
    for node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        let is_needed = node.defines().any(|buffer| needed.contains(&buffer));
        if is_needed || node.op.is_impure {
            needed.extend(node.reads());
            kept.push(node);
        }
    }
    kept.reverse();
    graph.nodes = kept;
    // Captured arrays that nothing reads any more need not be bound.
    let is_needed = |buffer| needed.contains(&buffer);
    graph.inputs.retain(|input| {
        matches!(input.source, crate::ir::Source::Argument(_))
            || is_needed(input.buffer)
            || input.written.is_some()
    });
    before - graph.nodes.len()
}
