//! Recomputation: drops intermediate results that a gradient needs and computes them again, to keep a graph within a memory budget.
//!
//! The nodes of the function are divided into segments. Results that later segments read are kept; the inner results of a segment are computed again
//! right before the gradient needs the first of them. Nodes that draw random numbers or change arrays run once, and their results are kept.

use std::collections::{HashMap, HashSet};

use mxnet_core::{Error, Result, Rng};

use super::forward::overwritten_at;
use super::{Choice, optimise};
use crate::compile::Options;
use crate::fuse;
use crate::ir::{BufferId, Graph, Node, Operand};
use crate::plan::MemoryPlan;
use crate::split::{Residual, split};

/// Numbers of segments to try, until the budget is met.
const NUM_SEGMENTS: &[usize] = &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// A function and its gradient in one graph.
#[derive(Clone, Copy, Debug)]
pub struct Training {
    /// Nodes before this one belong to the function.
    pub num_forward: usize,
    /// Results before this one belong to the function.
    pub num_outputs: usize,
    /// Arguments from this one on are cotangents.
    pub num_arguments: usize,
}

/// The graph with as much recomputation as the budget requires. Without `training`, the boundary is found in the graph: a step with its gradient
/// inside.
///
/// # Errors
/// [`Error::Value`] with the smallest possible number of bytes, if that exceeds the budget; errors of passes.
pub fn within_budget(graph: Graph, training: Option<Training>, choice: &Choice) -> Result<Graph> {
    let Some(budget) = choice.memory_budget else {
        return Ok(graph);
    };
    let peak = |graph: &Graph| peak_bytes(graph, training, choice);
    let current = peak(&graph)?;
    if current <= budget {
        return Ok(graph);
    }
    let boundary = training.map_or_else(|| peak_node(&graph), |t| t.num_forward);
    let mut best = (current, 0);
    for &count in NUM_SEGMENTS {
        let found = peak(&recomputed(&graph, boundary, count, count))?;
        if found < best.0 {
            best = (found, count);
        }
    }
    let (least, count) = best;
    if least > budget {
        let problem = format!(
            "`{}` needs {current} bytes for intermediate results, and {least} with recomputation: more than the budget of {budget} bytes",
            graph.name
        );
        return Err(Error::value("memory_budget", problem));
    }
    // Results of the first segments are kept longest. Recomputes as few segments as suffice, beginning with the first.
    for recomputes in 1..count {
        let candidate = recomputed(&graph, boundary, count, recomputes);
        if peak(&candidate)? <= budget {
            return Ok(candidate);
        }
    }
    Ok(recomputed(&graph, boundary, count, count))
}

/// Peak of the bytes of intermediate results and of new memory for results.
fn peak_bytes(graph: &Graph, training: Option<Training>, choice: &Choice) -> Result<usize> {
    let planned = |graph: Graph| planned_bytes(graph, Options::of(choice));
    let Some(t) = training else {
        return planned(graph.clone());
    };
    let parts = split(graph.clone(), t.num_forward, t.num_outputs, t.num_arguments);
    let (mut forward, mut backward) = (parts.forward, parts.backward);
    let kept: HashSet<BufferId> = (parts.residuals.iter())
        .filter_map(|residual| match residual {
            Residual::Output(i) => Some(forward.outputs[*i].buffer),
            Residual::Input(_) => None,
        })
        .collect();
    let kept: usize = kept
        .iter()
        .map(|&buffer| forward.buffer(buffer).len_bytes)
        .sum();
    optimise(&mut forward, choice)?;
    optimise(&mut backward, choice)?;
    Ok(planned(forward)?.max(kept + planned(backward)?))
}

/// Bytes of intermediate results and results of the graph without recomputation.
pub(super) fn planned_bytes(mut graph: Graph, options: Options) -> Result<usize> {
    let groups = match options.fuses {
        true => fuse::groups(&mut graph)?,
        false => Vec::new(),
    };
    Ok(MemoryPlan::new(&graph, &groups, options.side_by_side).peak_bytes(&graph))
}

/// The node before which most bytes are in use.
pub(super) fn peak_node(graph: &Graph) -> usize {
    let mut ends: HashMap<BufferId, usize> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        ends.extend(node.reads().map(|buffer| (buffer, at)));
    }
    let (mut live, mut most, mut found) = (0_usize, 0, 0);
    let mut over: HashMap<usize, usize> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for buffer in node.defines() {
            let len = graph.buffer(buffer).len_bytes;
            live += len;
            *over
                .entry(ends.get(&buffer).copied().unwrap_or(at))
                .or_default() += len;
        }
        if live > most {
            (most, found) = (live, at);
        }
        live -= over.remove(&at).unwrap_or(0);
    }
    found
}

/// The graph in which the first `recomputes` of `count` segments of the nodes before `boundary` are computed again after it.
fn recomputed(graph: &Graph, boundary: usize, count: usize, recomputes: usize) -> Graph {
    let results: HashSet<BufferId> = graph.results().collect();
    let overwritten = overwritten_at(graph);
    let mut maker: HashMap<BufferId, usize> = HashMap::new();
    for (at, node) in graph.nodes[..boundary].iter().enumerate() {
        maker.extend(node.defines().map(|buffer| (buffer, at)));
    }
    // The first node after the boundary that reads each buffer of the function.
    let mut first_use: HashMap<BufferId, usize> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate().skip(boundary) {
        for buffer in node.reads().filter(|buffer| maker.contains_key(buffer)) {
            first_use.entry(buffer).or_insert(at);
        }
    }
    first_use.retain(|buffer, _| !results.contains(buffer) && !overwritten.contains_key(buffer));
    let segments = segments(graph, boundary, count, &first_use);
    let mut made = graph.clone();
    let mut clones: HashMap<usize, Vec<Node>> = HashMap::new();
    let mut renamed: HashMap<BufferId, BufferId> = HashMap::new();
    for range in segments.into_iter().take(recomputes) {
        // Results that later segments read are kept: later segments are recomputed from them, and before this segment is.
        let later = graph.nodes[range.end..boundary].iter();
        let handed_on: HashSet<BufferId> = later.flat_map(Node::reads).collect();
        let inside = |buffer: &BufferId| {
            maker.get(buffer).is_some_and(|at| range.contains(at)) && !handed_on.contains(buffer)
        };
        let needed: Vec<BufferId> = first_use.keys().copied().filter(|b| inside(b)).collect();
        let Some(first) = needed.iter().map(|buffer| first_use[buffer]).min() else {
            continue;
        };
        let repeats = |node: &Node| {
            let is_whole =
                |buffer: BufferId| overwritten.get(&buffer).is_none_or(|&end| end > first);
            node.versions.is_empty()
                && node.op.mutates.is_empty()
                && node.op.state.is_none()
                && matches!(node.op.rng, Rng::No | Rng::Derived)
                && node.reads().all(is_whole)
        };
        let mut waiting: Vec<usize> = needed.iter().map(|buffer| maker[buffer]).collect();
        let mut again: HashSet<usize> = HashSet::new();
        while let Some(at) = waiting.pop() {
            let node = &graph.nodes[at];
            if repeats(node) && again.insert(at) {
                waiting.extend(node.reads().filter(|b| inside(b)).map(|b| maker[&b]));
            }
        }
        let mut again: Vec<usize> = again.into_iter().collect();
        again.sort_unstable();
        let copies = clones.entry(first).or_default();
        let mut own: HashMap<BufferId, BufferId> = HashMap::new();
        for at in again {
            let mut node = graph.nodes[at].clone();
            rename(&mut node, &own);
            for view in &mut node.outputs {
                let old = graph.buffer(view.buffer);
                let new = made.add_buffer(old.len_bytes, old.device);
                if inside(&view.buffer) {
                    own.insert(view.buffer, new);
                }
                view.buffer = new;
            }
            copies.push(node);
        }
        renamed.extend(own);
    }
    let old = std::mem::take(&mut made.nodes);
    for (at, mut node) in old.into_iter().enumerate() {
        made.nodes.extend(clones.remove(&at).unwrap_or_default());
        if at >= boundary {
            rename(&mut node, &renamed);
        }
        made.nodes.push(node);
    }
    made
}

/// Makes a node read the new buffers.
pub(super) fn rename(node: &mut Node, renamed: &HashMap<BufferId, BufferId>) {
    for operand in &mut node.inputs {
        if let Operand::View(view) = operand
            && let Some(&new) = renamed.get(&view.buffer)
        {
            view.buffer = new;
        }
    }
}

/// Ranges of nodes, each with about as many bytes that nodes after the boundary read.
fn segments(
    graph: &Graph,
    boundary: usize,
    count: usize,
    first_use: &HashMap<BufferId, usize>,
) -> Vec<std::ops::Range<usize>> {
    let bytes = |node: &Node| -> usize {
        let kept = node
            .defines()
            .filter(|buffer| first_use.contains_key(buffer));
        kept.map(|buffer| graph.buffer(buffer).len_bytes).sum()
    };
    let sizes: Vec<usize> = graph.nodes[..boundary].iter().map(bytes).collect();
    let total: usize = sizes.iter().sum();
    let (mut found, mut start, mut sum) = (Vec::new(), 0, 0);
    for (at, size) in sizes.iter().enumerate() {
        sum += size;
        if sum * count >= total * (found.len() + 1) && found.len() + 1 < count {
            found.push(start..at + 1);
            start = at + 1;
        }
    }
    found.push(start..boundary);
    found
}
