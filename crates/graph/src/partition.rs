//! Parts of a graph that other code runs: neighbouring nodes become one node, a call of an operator that stands for them.

use std::collections::{HashMap, HashSet};

use mxnet_core::{Attrs, OpDef, Result, Rng};
use mxnet_tensor::{Layout, promotion};

use crate::file::wrong;
use crate::ir::{Buffer, BufferId, Graph, Input, Node, Operand, Source, View};
use crate::verify;

/// The call that takes the place of a part. The operator takes a list of arrays; its first outputs are the results of the part.
pub struct PartCall {
    /// The operator.
    pub op: &'static OpDef,
    /// Its attributes.
    pub attrs: Attrs,
}

/// Whether a node can be moved to a part: it lies on the CPU, changes no array, draws no random numbers, and its outputs are in C order.
pub fn can_be_taken(graph: &Graph, node: &Node) -> bool {
    let is_here = |view: &View| graph.buffer(view.buffer).device.is_host();
    !node.is_assignment
        && node.versions.is_empty()
        && node.op.mutates.is_empty()
        && matches!(node.op.rng, Rng::No)
        && node.inputs.iter().filter_map(Operand::view).all(is_here)
        && node
            .outputs
            .iter()
            .all(|view| is_here(view) && view.layout.is_contiguous() && view.layout.offset() == 0)
}

/// Replaces groups of taken nodes (`taken[i]` for node `i`) of at least `min_nodes` nodes by calls. `call_of` gets each part as a graph whose inputs
/// are all arguments, and returns `None` if it stays as it is. Returns the number of replaced parts.
///
/// # Errors
/// Errors of `call_of`; [`mxnet_core::Error::Value`] if a call gives other outputs than its part. The graph is unchanged then.
pub fn partition(
    graph: &mut Graph,
    taken: &[bool],
    min_nodes: usize,
    call_of: &mut dyn FnMut(Graph) -> Result<Option<PartCall>>,
) -> Result<usize> {
    let members = groups(graph, taken);
    let mut work = graph.clone();
    let mut nodes: Vec<Option<Node>> = std::mem::take(&mut work.nodes)
        .into_iter()
        .map(Some)
        .collect();
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    let mut count = 0;
    for group in members {
        if group.len() < min_nodes || !is_convex(&nodes, &order, &group) {
            continue;
        }
        let outside = order.iter().filter(|i| !group.contains(i));
        let outside = outside.filter_map(|&i| nodes[i].as_ref());
        let needed: HashSet<BufferId> = outside
            .flat_map(Node::reads)
            .chain(work.results())
            .collect();
        let inside: Vec<&Node> = group.iter().filter_map(|&i| nodes[i].as_ref()).collect();
        let part = extract(&work, &inside, &needed);
        if part.arguments.is_empty() || part.results.is_empty() {
            continue;
        }
        let num_results = part.results.len();
        let Some(call) = call_of(part.graph)? else {
            continue;
        };
        let mut node = Node {
            op: call.op,
            attrs: call.attrs,
            inputs: part.arguments.into_iter().map(Operand::View).collect(),
            outputs: part.results.into_iter().collect(),
            versions: Default::default(),
            dtype: None,
            training: inside.iter().any(|node| node.training),
            is_assignment: false,
            rng_block: 0,
            rng_stream: 0,
            line: inside.first().and_then(|node| node.line.clone()),
        };
        let found = verify::infer(&work, &node)?;
        let mut pairs = found.iter().zip(&node.outputs);
        if found.len() < num_results
            || !pairs.all(|(y, view)| y.dtype() == view.dtype && y.layout() == &view.layout)
        {
            return Err(wrong(format!(
                "`{}` infers other outputs than the part it stands for has",
                call.op.name
            )));
        }
        // Outputs of the operator that the part does not have.
        for y in &found[num_results..] {
            let device = mxnet_tensor::Device::cpu(0);
            let view = View {
                buffer: work.add_buffer(y.len() * y.dtype().size(), device),
                layout: y.layout().clone(),
                dtype: y.dtype(),
                is_read_only: false,
            };
            node.outputs.push(view);
        }
        nodes.push(Some(node));
        let last = group.last().copied();
        for place in &mut order {
            if Some(*place) == last {
                *place = nodes.len() - 1;
            }
        }
        order.retain(|i| !group.contains(i));
        order = sorted(&nodes, &order);
        count += 1;
    }
    work.nodes = order.iter().filter_map(|&i| nodes[i].take()).collect();
    *graph = work;
    Ok(count)
}

/// Groups of neighbouring taken nodes, such that no path between two nodes of a group passes through other nodes.
fn groups(graph: &Graph, taken: &[bool]) -> Vec<Vec<usize>> {
    let mut maker: HashMap<BufferId, usize> = HashMap::new();
    let mut group_of: Vec<Option<usize>> = Vec::new();
    // For each node the groups that it depends on through nodes outside of its own group.
    let mut behind: Vec<HashSet<usize>> = Vec::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let made_by: Vec<usize> = (node.reads())
            .filter_map(|buffer| maker.get(&buffer).copied())
            .collect();
        let through = |group: Option<usize>| {
            let mut found = HashSet::new();
            for &other in &made_by {
                found.extend(behind[other].iter().copied());
                found.extend(group_of[other].filter(|of| Some(*of) != group));
            }
            found
        };
        let is_taken = taken.get(at) == Some(&true) && can_be_taken(graph, node);
        let chosen = is_taken.then(|| {
            let mut own = made_by.iter().filter_map(|&other| group_of[other]);
            let joined = own.find(|&group| !through(Some(group)).contains(&group));
            joined.unwrap_or(members.len())
        });
        if let Some(group) = chosen {
            if group == members.len() {
                members.push(Vec::new());
            }
            members[group].push(at);
        }
        let depends = through(chosen);
        group_of.push(chosen);
        behind.push(depends);
        maker.extend(node.defines().map(|buffer| (buffer, at)));
    }
    members
}

/// Whether no path leaves the group and comes back to it.
fn is_convex(nodes: &[Option<Node>], order: &[usize], group: &[usize]) -> bool {
    let inside: HashSet<usize> = group.iter().copied().collect();
    let members = group.iter().filter_map(|&i| nodes[i].as_ref());
    let made: HashSet<BufferId> = members.flat_map(Node::defines).collect();
    // Buffers that depend on the group through a node outside of it.
    let mut reached: HashSet<BufferId> = HashSet::new();
    for &i in order {
        let Some(node) = &nodes[i] else { continue };
        if inside.contains(&i) {
            if node.reads().any(|buffer| reached.contains(&buffer)) {
                return false;
            }
        } else if (node.reads()).any(|buffer| reached.contains(&buffer) || made.contains(&buffer)) {
            reached.extend(node.defines());
        }
    }
    true
}

/// The nodes such that each is behind those that it reads from; otherwise in their order.
fn sorted(nodes: &[Option<Node>], order: &[usize]) -> Vec<usize> {
    let mut maker: HashMap<BufferId, usize> = HashMap::new();
    for &i in order {
        let defined = nodes[i].iter().flat_map(Node::defines);
        maker.extend(defined.map(|buffer| (buffer, i)));
    }
    let (mut done, mut found) = (HashSet::new(), Vec::new());
    for &first in order {
        let mut waiting = vec![first];
        while let Some(&i) = waiting.last() {
            let reads = nodes[i].iter().flat_map(Node::reads);
            let makers = reads.filter_map(|buffer| maker.get(&buffer).copied());
            let missing: Vec<usize> = makers
                .filter(|other| *other != i && !done.contains(other))
                .collect();
            if done.contains(&i) || missing.is_empty() {
                waiting.pop();
                if done.insert(i) {
                    found.push(i);
                }
            } else {
                waiting.extend(missing);
            }
        }
    }
    found
}

/// Nodes as a graph of their own.
struct Part {
    graph: Graph,
    /// The values that its arguments have in the whole graph, and its results.
    arguments: Vec<View>,
    results: Vec<View>,
}

fn extract(whole: &Graph, inside: &[&Node], needed: &HashSet<BufferId>) -> Part {
    let mut graph = Graph::new("part", whole.promotion);
    debug_assert_eq!(whole.promotion, promotion());
    let mut renamed: HashMap<BufferId, BufferId> = HashMap::new();
    let (mut arguments, mut results) = (Vec::<View>::new(), Vec::new());
    let mut views: Vec<View> = Vec::new();
    for node in inside {
        let mut new = (*node).clone();
        for operand in &mut new.inputs {
            let Operand::View(view) = operand else {
                continue;
            };
            if let Some(&buffer) = renamed.get(&view.buffer) {
                view.buffer = buffer;
                continue;
            }
            let known = arguments.iter().position(|argument| argument == view);
            let index = known.unwrap_or_else(|| {
                let Buffer { device, .. } = whole.buffer(view.buffer);
                let argument = View {
                    buffer: graph.add_buffer(view.len_bytes(), device),
                    layout: Layout::contiguous(view.layout.shape()),
                    dtype: view.dtype,
                    is_read_only: false,
                };
                graph.inputs.push(Input {
                    buffer: argument.buffer,
                    source: Source::Argument(arguments.len()),
                    view: argument.clone(),
                    written: None,
                });
                arguments.push(view.clone());
                views.push(argument);
                arguments.len() - 1
            });
            *view = views[index].clone();
        }
        for output in &mut new.outputs {
            let Buffer { len_bytes, device } = whole.buffer(output.buffer);
            let buffer = graph.add_buffer(len_bytes, device);
            renamed.insert(output.buffer, buffer);
            let outer = output.clone();
            output.buffer = buffer;
            if needed.contains(&outer.buffer) {
                graph.outputs.push(output.clone());
                results.push(outer);
            }
        }
        // The text of a part does not depend on where it was found.
        new.line = None;
        graph.nodes.push(new);
    }
    Part {
        graph,
        arguments,
        results,
    }
}
