//! Brings kernels that threads do not divide well next to each other, if they are independent: then they run side by side.

use std::collections::{HashSet, VecDeque};

use mxnet_core::Cpu;

use crate::fuse::Group;
use crate::ir::{BufferId, Graph, Node};

/// Number of nodes behind a node among which others are looked for.
const WINDOW: usize = 64;

/// Whether the node may run beside others.
fn is_candidate(node: &Node) -> bool {
    node.op.is_sequential && matches!(node.op.cpu, Cpu::Kernel(_)) && may_move(node)
}

/// Whether the node may run before nodes that it does not depend on. A write in place may not: readers of the old elements would need a copy.
fn may_move(node: &Node) -> bool {
    !node.op.is_impure && !node.is_assignment && node.versions.is_empty()
}

/// Whether the node defines the final elements of an input whose old elements one of `between` reads.
fn overwrites(graph: &Graph, node: &Node, mut between: impl Iterator<Item = usize>) -> bool {
    let inputs = graph.inputs.iter();
    let written: Vec<BufferId> = inputs
        .filter(|input| (input.written).is_some_and(|last| node.defines().any(|new| new == last)))
        .map(|input| input.buffer)
        .collect();
    !written.is_empty()
        && between.any(|at| graph.nodes[at].reads().any(|read| written.contains(&read)))
}

/// Moves sequential nodes, and what they need, to sequential nodes in front of them that they do not depend on. Returns the number of the former.
pub fn gather_independent_nodes(graph: &mut Graph) -> usize {
    let nodes = &graph.nodes;
    let mut rest: VecDeque<usize> = (0..nodes.len()).collect();
    let (mut order, mut moved) = (Vec::with_capacity(nodes.len()), 0);
    while let Some(&first) = rest.front() {
        let (mut together, mut before) = (vec![first], Vec::new());
        if is_candidate(&nodes[first]) {
            // The buffers that depend on a node of `together`.
            let mut dependent: HashSet<BufferId> = nodes[first].defines().collect();
            for at in 1..rest.len().min(WINDOW) {
                let node = &nodes[rest[at]];
                // Side effects come before what follows them, also if that fails.
                if node.op.is_impure {
                    break;
                }
                let depends = node.reads().any(|buffer| dependent.contains(&buffer));
                if !depends && is_candidate(node) {
                    let between = rest.iter().take(at).skip(1);
                    let mut open =
                        between.filter(|i| !together.contains(i) && !before.contains(*i));
                    if let Some(needed) = ancestors(nodes, node, &mut open.by_ref().copied()) {
                        let passed = || rest.iter().take(at).copied();
                        let is_written = |&i: &usize| overwrites(graph, &nodes[i], passed());
                        if needed.iter().any(is_written) || is_written(&rest[at]) {
                            dependent.extend(node.defines());
                            continue;
                        }
                        moved += usize::from(rest[at] != together[together.len() - 1] + 1);
                        before.extend(needed);
                        together.push(rest[at]);
                        dependent.extend(node.defines());
                    }
                } else if depends {
                    dependent.extend(node.defines());
                }
            }
        }
        before.sort_unstable();
        rest.retain(|i| !together.contains(i) && !before.contains(i));
        order.extend(before);
        order.extend(together);
    }
    let mut taken: Vec<Option<Node>> = std::mem::take(&mut graph.nodes)
        .into_iter()
        .map(Some)
        .collect();
    graph.nodes = order.into_iter().filter_map(|i| taken[i].take()).collect();
    moved
}

/// Those of `between` that `node` depends on; `None` if one of them may not move.
fn ancestors(
    nodes: &[Node],
    node: &Node,
    between: &mut dyn DoubleEndedIterator<Item = usize>,
) -> Option<Vec<usize>> {
    let mut read: HashSet<BufferId> = node.reads().collect();
    let mut found = Vec::new();
    while let Some(i) = between.next_back() {
        if nodes[i].defines().any(|buffer| read.contains(&buffer)) {
            if !may_move(&nodes[i]) {
                return None;
            }
            read.extend(nodes[i].reads());
            found.push(i);
        }
    }
    Some(found)
}

/// The nodes that run side by side, as ranges of neighbours: independent of each other, sequential, and in no group.
pub(crate) fn side_by_side(graph: &Graph, groups: &[Group]) -> Vec<(usize, usize)> {
    let is_free = |at: usize| {
        let is_grouped = groups
            .iter()
            .any(|group| (group.first..=group.last).contains(&at));
        is_candidate(&graph.nodes[at]) && !is_grouped
    };
    let (mut ranges, mut first) = (Vec::new(), 0);
    while first < graph.nodes.len() {
        let mut last = first;
        if is_free(first) {
            let mut defined: HashSet<BufferId> = graph.nodes[first].defines().collect();
            while let Some(node) = graph.nodes.get(last + 1)
                && is_free(last + 1)
                && !node.reads().any(|buffer| defined.contains(&buffer))
            {
                defined.extend(node.defines());
                last += 1;
            }
        }
        if last > first {
            ranges.push((first, last));
        }
        first = last + 1;
    }
    ranges
}
