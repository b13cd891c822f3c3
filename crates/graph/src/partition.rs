//! Parts of a graph that other code runs: neighbouring nodes become one node, a call of an operator that stands for them.

use std::collections::{HashMap, HashSet};

use mxnet_core::{Attrs, OpDef, Result, Rng};
use mxnet_tensor::{Layout, promotion};

use crate::ir::{Buffer, BufferId, Graph, Input, Node, Operand, Source, View};
use crate::verify;
use crate::verify::wrong;

/// The call that takes the place of a part. The operator takes a list of arrays; its first outputs are the results of the part.
pub struct PartCall {
    /// The operator.
    pub op: &'static OpDef,
    /// Its attributes.
    pub attrs: Attrs,
}

/// Whether a node can be moved to a part: it lies on the CPU, changes no array, draws no random numbers, is pure, and its outputs are in
/// C order.
pub fn can_be_taken(graph: &Graph, node: &Node) -> bool {
    let is_here = |view: &View| graph.buffer(view.buffer).device.is_host();
    !node.is_assignment
        && node.versions.is_empty()
        && node.op.mutates.is_empty()
        && matches!(node.op.rng, Rng::No)
        && !node.op.is_impure
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
    let producers = producers(graph);
    let mut groups = groups(graph, taken, &producers);
    groups.retain(|group| group.len() >= min_nodes && !group.is_empty());
    dissolve_cycles(&mut groups, &producers);
    let mut readers: HashMap<BufferId, Vec<usize>> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for buffer in node.reads() {
            readers.entry(buffer).or_default().push(at);
        }
    }
    let results: HashSet<BufferId> = graph.results().collect();
    let mut work = graph.clone();
    let mut nodes: Vec<Option<Node>> = std::mem::take(&mut work.nodes)
        .into_iter()
        .map(Some)
        .collect();
    let mut replaced = Vec::new();
    for group in groups {
        let members: HashSet<usize> = group.iter().copied().collect();
        // Buffers that are read outside of the group. It does not matter whether other groups are replaced: their calls read the same buffers.
        let is_needed = |buffer: BufferId| {
            let mut readers = readers.get(&buffer).into_iter().flatten();
            results.contains(&buffer) || readers.any(|reader| !members.contains(reader))
        };
        let inside: Vec<&Node> = group.iter().filter_map(|&i| nodes[i].as_ref()).collect();
        let part = extract(&work, &inside, &is_needed);
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
            caller: None,
            line: inside.first().and_then(|node| node.line.clone()),
            scope: inside.first().map(|node| node.scope).unwrap_or_default(),
            is_backward: inside.iter().all(|node| node.is_backward),
        };
        let found = verify::infer(&work, &node)?;
        let own = &found[..num_results.min(found.len())];
        if !verify::has_outputs(own, &node.outputs) {
            return Err(wrong(format!(
                "`{}` infers {}, the part it stands for has {}",
                call.op.name,
                verify::describe_arrays(&found),
                verify::describe_views(&node.outputs)
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
        for &i in &group {
            nodes[i] = None;
        }
        nodes[last(&group)] = Some(node);
        replaced.push(group);
    }
    let order = contracted_order(&replaced, &producers)
        .map_err(|_| mxnet_core::Error::internal("partition", "the parts depend on each other"))?;
    work.nodes = order.into_iter().filter_map(|i| nodes[i].take()).collect();
    *graph = work;
    Ok(replaced.len())
}

/// The node that stands for a group.
fn last(group: &[usize]) -> usize {
    group.last().copied().unwrap_or_default()
}

/// For each node the nodes that define what it reads.
fn producers(graph: &Graph) -> Vec<Vec<usize>> {
    let mut producer: HashMap<BufferId, usize> = HashMap::new();
    let mut found = Vec::with_capacity(graph.nodes.len());
    for (at, node) in graph.nodes.iter().enumerate() {
        let read = node.reads().filter_map(|buffer| producer.get(&buffer));
        found.push(read.copied().collect());
        producer.extend(node.defines().map(|buffer| (buffer, at)));
    }
    found
}

/// A set of groups: a bit for each.
#[derive(Clone, Default)]
struct GroupSet(Vec<u64>);

impl GroupSet {
    fn contains(&self, group: usize) -> bool {
        let word = self.0.get(group / 64).copied().unwrap_or(0);
        word & (1 << (group % 64)) != 0
    }

    fn insert(&mut self, group: usize) {
        self.0.resize(self.0.len().max(group / 64 + 1), 0);
        self.0[group / 64] |= 1 << (group % 64);
    }

    fn extend(&mut self, other: &GroupSet) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// Groups of neighbouring taken nodes, such that no path between two nodes of a group passes through other nodes.
fn groups(graph: &Graph, taken: &[bool], producers: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut group_of: Vec<Option<usize>> = Vec::new();
    // For each node the groups that it depends on through nodes outside of its own group.
    let mut behind: Vec<GroupSet> = Vec::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let read = &producers[at];
        let is_taken = taken.get(at) == Some(&true) && can_be_taken(graph, node);
        let chosen = is_taken.then(|| {
            let mut near = read.iter().filter_map(|&other| group_of[other]);
            let is_behind = |group| read.iter().any(|&other| behind[other].contains(group));
            let joined = near.find(|&group| !is_behind(group));
            joined.unwrap_or(members.len())
        });
        if let Some(group) = chosen {
            if group == members.len() {
                members.push(Vec::new());
            }
            members[group].push(at);
        }
        let mut depends = GroupSet::default();
        for &other in read {
            depends.extend(&behind[other]);
            if let Some(group) = group_of[other].filter(|group| Some(*group) != chosen) {
                depends.insert(group);
            }
        }
        group_of.push(chosen);
        behind.push(depends);
    }
    members
}

/// Removes groups until none depends on another one that depends on it.
fn dissolve_cycles(groups: &mut Vec<Vec<usize>>, producers: &[Vec<usize>]) {
    while let Err(cycle) = contracted_order(groups, producers) {
        let on_cycle = |group: &Vec<usize>| cycle.contains(&last(group));
        let Some(gone) = groups.iter().rposition(on_cycle) else {
            return;
        };
        groups.remove(gone);
    }
}

/// An order in which each node is behind those that it reads from, where the last node of a group stands for the whole group, and the others of the
/// group read nothing. Nodes stay in their order where possible. The error is a cycle.
fn contracted_order(
    groups: &[Vec<usize>],
    producers: &[Vec<usize>],
) -> std::result::Result<Vec<usize>, Vec<usize>> {
    let mut vertex_of: Vec<usize> = (0..producers.len()).collect();
    for group in groups {
        for &i in group {
            vertex_of[i] = last(group);
        }
    }
    let mut read: Vec<Vec<usize>> = vec![Vec::new(); producers.len()];
    for (at, from) in producers.iter().enumerate() {
        let others = from.iter().map(|&other| vertex_of[other]);
        read[vertex_of[at]].extend(others.filter(|&other| other != vertex_of[at]));
    }
    // Depth first. `path` has vertices that are not done, and how many of those that they read are.
    let (mut is_done, mut on_path) = (vec![false; read.len()], vec![false; read.len()]);
    let (mut found, mut path) = (Vec::with_capacity(read.len()), Vec::<(usize, usize)>::new());
    for root in 0..read.len() {
        if !is_done[root] {
            on_path[root] = true;
            path.push((root, 0));
        }
        while let Some((at, num_done)) = path.last_mut() {
            let at = *at;
            match read[at].get(*num_done).copied() {
                None => {
                    (is_done[at], on_path[at]) = (true, false);
                    found.push(at);
                    path.pop();
                }
                Some(next) if on_path[next] => {
                    let path = path.iter().map(|(vertex, _)| *vertex);
                    return Err(path.skip_while(|vertex| *vertex != next).collect());
                }
                Some(next) => {
                    *num_done += 1;
                    if !is_done[next] {
                        on_path[next] = true;
                        path.push((next, 0));
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Nodes as a graph of their own.
struct Part {
    graph: Graph,
    /// The values that its arguments have in the whole graph, and its results.
    arguments: Vec<View>,
    results: Vec<View>,
}

fn extract(whole: &Graph, inside: &[&Node], is_needed: &dyn Fn(BufferId) -> bool) -> Part {
    let mut graph = Graph::new("part", whole.promotion);
    debug_assert_eq!(whole.promotion, promotion());
    let mut renamed: HashMap<BufferId, BufferId> = HashMap::new();
    let (mut arguments, mut results) = (Vec::<View>::new(), Vec::new());
    // The arguments that are views of a buffer.
    let mut of_buffer: HashMap<BufferId, Vec<usize>> = HashMap::new();
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
            let same_buffer = of_buffer.entry(view.buffer).or_default();
            let known = same_buffer.iter().find(|&&at| arguments[at] == *view);
            let index = known.copied().unwrap_or_else(|| {
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
                same_buffer.push(arguments.len());
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
            if is_needed(outer.buffer) {
                graph.outputs.push(output.clone());
                results.push(outer);
            }
        }
        // The text of a part does not depend on where it was found.
        (new.caller, new.line) = (None, None);
        graph.nodes.push(new);
    }
    Part {
        graph,
        arguments,
        results,
    }
}
