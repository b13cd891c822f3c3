//! Fusion of elementwise operators: nodes of one shape are moved together and run block by block ([`mxnet_core::tiles`]). Buffers that only these
//! nodes read need no memory.

use std::collections::{HashMap, HashSet};

use mxnet_core::launch::Kernel;
use mxnet_core::mode::{Scope, is_recording};
use mxnet_core::plan::Plan;
use mxnet_core::tiles::{ArrayForm, Link, Slot, Tiles};
use mxnet_core::{Array, Call, Cpu, Error, Result, eager};
use mxnet_kernels::Elem;
use mxnet_tensor::{Layout, Tensor};
use smallvec::SmallVec;

use crate::ir::{BufferId, Graph, Node, Operand, View};

/// The nodes `first..=last` of a graph, which run as one step.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub first: usize,
    pub last: usize,
    /// Arrays and numbers that the nodes read and that the group does not compute.
    pub inputs: Vec<Operand>,
    /// Results that nodes outside the group read.
    pub outputs: Vec<View>,
    /// For each node the dtype that it computes in, and its numeric attributes.
    pub computes: Vec<(Elem, SmallVec<[f64; 4]>)>,
    pub cost_ns: u64,
}

/// Largest number of nodes of a group, and of arrays that it reads.
const MAX_NODES: usize = 48;
const MAX_INPUTS: usize = 24;

/// Number of open groups, newest first, that a node is tried to be added to.
const MAX_OPEN: usize = 16;

/// The properties of an elementwise node that can be part of a group.
struct Form {
    shape: SmallVec<[usize; 4]>,
    compute: Elem,
    params: SmallVec<[f64; 4]>,
    cost_ns: u64,
}

/// A group to which nodes can still be added.
struct OpenGroup {
    members: Vec<usize>,
    defined: HashSet<BufferId>,
    read: HashSet<BufferId>,
    /// Open groups that must run before this one.
    after: HashSet<usize>,
    is_open: bool,
}

/// Moves elementwise nodes of one shape together. Returns the groups of two or more nodes, in order.
pub(crate) fn groups(graph: &mut Graph) -> Result<Vec<Group>> {
    let forms = graph.nodes.iter().map(form).collect::<Result<Vec<_>>>()?;
    let order = arranged(graph, &forms);
    let mut found = Vec::new();
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    let old: Vec<Node> = std::mem::take(&mut graph.nodes);
    let mut old: Vec<Option<Node>> = old.into_iter().map(Some).collect();
    let mut ranges = Vec::new();
    for run in order {
        let first = nodes.len();
        for &i in &run {
            nodes.extend(old[i].take());
        }
        if run.len() > 1 {
            ranges.push((first, nodes.len() - 1, run));
        }
    }
    graph.nodes = nodes;
    let results: HashSet<BufferId> = graph.results().collect();
    // The first and the last node that reads each buffer.
    let mut readers: HashMap<BufferId, (usize, usize)> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for buffer in node.reads() {
            let range = readers.entry(buffer).or_insert((at, at));
            range.1 = at;
        }
    }
    for (first, last, run) in ranges {
        let members = &graph.nodes[first..=last];
        let defined: HashSet<BufferId> = members.iter().flat_map(Node::defines).collect();
        let (mut inputs, mut outputs): (Vec<Operand>, Vec<View>) = (Vec::new(), Vec::new());
        for node in members {
            for operand in &node.inputs {
                let is_inside = operand
                    .view()
                    .is_some_and(|view| defined.contains(&view.buffer));
                if !is_inside && !inputs.contains(operand) {
                    inputs.push(operand.clone());
                }
            }
            for view in &node.outputs {
                let is_read_outside = readers
                    .get(&view.buffer)
                    .is_some_and(|&(_, end)| end > last);
                if is_read_outside || results.contains(&view.buffer) {
                    outputs.push(view.clone());
                }
            }
        }
        let of_run = || run.iter().filter_map(|&i| forms[i].as_ref());
        found.push(Group {
            first,
            last,
            inputs,
            outputs,
            computes: of_run()
                .map(|form| (form.compute, form.params.clone()))
                .collect(),
            cost_ns: of_run().map(|form| form.cost_ns).sum(),
        });
    }
    Ok(found)
}

/// Reorders the nodes into lists; a list of several nodes is a group.
fn arranged(graph: &Graph, forms: &[Option<Form>]) -> Vec<Vec<usize>> {
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut open: Vec<OpenGroup> = Vec::new();
    // The open group that defines a buffer.
    let mut definer: HashMap<BufferId, (usize, &View)> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let needs: HashSet<usize> = (node.reads())
            .filter_map(|buffer| definer.get(&buffer).map(|(group, _)| *group))
            .filter(|&group| open[group].is_open)
            .collect();
        let Some(form) = &forms[at] else {
            // Nodes that read what this node overwrites come first, so that it can write in place.
            let overwrites = |group: &OpenGroup| {
                let mut versions = node.versions.iter();
                group.is_open && versions.any(|version| group.read.contains(&version.old))
            };
            let readers = (0..open.len()).filter(|&i| overwrites(&open[i]));
            let readers: Vec<usize> = readers.collect();
            for group in needs.into_iter().chain(readers) {
                close(group, &mut open, &mut order);
            }
            order.push(vec![at]);
            continue;
        };
        let reads: HashSet<BufferId> = node.reads().collect();
        // A block holds the elements in the order in which they were computed, so the node must read them by the same view.
        let sees_blocks = |index: usize| {
            let mut views = node.inputs.iter().filter_map(Operand::view);
            views.all(|view| match definer.get(&view.buffer) {
                Some((group, made)) if *group == index => {
                    view.layout == made.layout && view.dtype == made.dtype
                }
                _ => true,
            })
        };
        let fits = |index: usize| {
            let group = &open[index];
            let shape = || forms[group.members[0]].as_ref().map(|other| &other.shape);
            group.is_open
                && shape() == Some(&form.shape)
                && group.members.len() < MAX_NODES
                && group.read.union(&reads).count() <= MAX_INPUTS
                && (needs.contains(&index) || !group.read.is_disjoint(&reads))
                && needs
                    .iter()
                    .all(|&other| other == index || !comes_after(&open, other, index))
                && sees_blocks(index)
        };
        let chosen = (0..open.len()).rev().filter(|&index| open[index].is_open);
        let chosen = chosen.take(MAX_OPEN).find(|&index| fits(index));
        let index = chosen.unwrap_or_else(|| {
            open.push(OpenGroup {
                members: Vec::new(),
                defined: HashSet::new(),
                read: HashSet::new(),
                after: HashSet::new(),
                is_open: true,
            });
            open.len() - 1
        });
        let group = &mut open[index];
        group.members.push(at);
        group
            .after
            .extend(needs.into_iter().filter(|&other| other != index));
        let inside = group.defined.clone();
        group
            .read
            .extend(reads.into_iter().filter(|buffer| !inside.contains(buffer)));
        for view in &node.outputs {
            group.defined.insert(view.buffer);
            definer.insert(view.buffer, (index, view));
        }
    }
    for group in 0..open.len() {
        close(group, &mut open, &mut order);
    }
    order
}

/// Whether group `a` must come after group `b`.
fn comes_after(open: &[OpenGroup], a: usize, b: usize) -> bool {
    a == b
        || open[a]
            .after
            .iter()
            .any(|&before| open[before].is_open && comes_after(open, before, b))
}

/// Appends a group to the order, after the groups that must run before it.
fn close(index: usize, open: &mut Vec<OpenGroup>, order: &mut Vec<Vec<usize>>) {
    if !open[index].is_open {
        return;
    }
    open[index].is_open = false;
    let before: Vec<usize> = open[index].after.iter().copied().collect();
    for other in before {
        close(other, open, order);
    }
    order.push(std::mem::take(&mut open[index].members));
}

/// The properties of a node, if it is elementwise with dense results.
fn form(node: &Node) -> Result<Option<Form>> {
    let is_fusable = matches!(node.op.cpu, Cpu::Map(_))
        && !node.is_assignment
        && node.versions.is_empty()
        && node.op.refuses.is_none();
    if !is_fusable
        || node
            .outputs
            .iter()
            .any(|y| !y.layout.is_contiguous() || y.layout.offset() != 0)
    {
        return Ok(None);
    }
    let mut arrays = SmallVec::<[Option<Array>; 4]>::new();
    for operand in &node.inputs {
        arrays.push(match operand {
            Operand::Absent => None,
            Operand::View(view) => Some(abstract_of(view)?),
            Operand::Number(value) => Some(Array::weak_scalar(*value)?),
            Operand::Constant(value, dtype) => Some(Array::constant(*value, *dtype)?),
        });
    }
    let inputs: SmallVec<[Option<&Array>; 4]> = arrays.iter().map(Option::as_ref).collect();
    let _scope = Scope::enter(is_recording(), node.training);
    let prepared = eager::prepare(&Call {
        op: node.op,
        inputs: &inputs,
        attrs: &node.attrs,
        outs: &[],
        dtype: node.dtype,
    })?;
    Ok(match prepared {
        Plan::Launch(launch) => match launch.kernel {
            Kernel::Map {
                compute, params, ..
            } => Some(Form {
                shape: node.outputs[0].layout.shape().into(),
                compute,
                params,
                cost_ns: launch.cost_ns,
            }),
            Kernel::Fn(..) => None,
        },
        Plan::Expand(_) => None,
    })
}

impl Group {
    /// The chain of the group for arrays of these layouts and dtypes: outputs first, then inputs.
    ///
    /// # Errors
    /// None for a group of a traced graph.
    pub fn tiles(&self, nodes: &[Node], arrays: &[ArrayForm]) -> Result<Tiles> {
        let members = &nodes[self.first..=self.last];
        // Assigns intermediate results to blocks. After the last node that reads a result, its block is reused.
        let mut last_read: HashMap<BufferId, usize> = HashMap::new();
        for (at, node) in members.iter().enumerate() {
            for view in node.inputs.iter().filter_map(Operand::view) {
                last_read.insert(view.buffer, at);
            }
        }
        let mut blocks: HashMap<BufferId, usize> = HashMap::new();
        let (mut free, mut num_blocks) = (Vec::new(), 0);
        let mut links = Vec::new();
        for (at, node) in members.iter().enumerate() {
            let slot_of = |view: &View, blocks: &HashMap<BufferId, usize>| {
                if let Some(i) = self.outputs.iter().position(|y| y.buffer == view.buffer) {
                    return Some(Slot::Array(i));
                }
                blocks
                    .get(&view.buffer)
                    .map(|&i| Slot::Block(i, view.dtype))
            };
            let mut inputs = SmallVec::new();
            for operand in node.inputs.iter().filter(|x| **x != Operand::Absent) {
                let inside = operand.view().and_then(|view| slot_of(view, &blocks));
                let outside = || self.inputs.iter().position(|x| x == operand);
                let outside = || outside().map(|i| Slot::Array(self.outputs.len() + i));
                inputs.push(inside.or_else(outside).ok_or_else(|| {
                    Error::internal("fuse", "an operand of a group has no array or block")
                })?);
            }
            let mut outputs = SmallVec::new();
            for view in &node.outputs {
                let slot = slot_of(view, &blocks).unwrap_or_else(|| {
                    let block = free.pop().unwrap_or_else(|| {
                        num_blocks += 1;
                        num_blocks - 1
                    });
                    blocks.insert(view.buffer, block);
                    Slot::Block(block, view.dtype)
                });
                outputs.push(slot);
            }
            // A node must not write over what it reads, so its blocks are reused only by the next node.
            for buffer in node.defines().chain(node.reads()) {
                if last_read.get(&buffer).is_none_or(|&end| end == at)
                    && let Some(block) = blocks.remove(&buffer)
                {
                    free.push(block);
                }
            }
            let Cpu::Map(rows) = node.op.cpu else {
                return Err(Error::internal(
                    "fuse",
                    "a node of a group is not elementwise",
                ));
            };
            let (compute, params) = self.computes[at].clone();
            links.push(Link {
                rows,
                compute,
                params,
                outputs,
                inputs,
            });
        }
        let shape = members[0].outputs[0].layout.shape();
        Tiles::new(shape, arrays, links)
    }
}

/// An abstract array with the layout and dtype of a view.
fn abstract_of(view: &View) -> Result<Array> {
    let end = view.layout.span().map_or(0, |(_, high)| high + 1);
    let bytes = Array::without_values(&[end], view.dtype, mxnet_tensor::Device::cpu(0))?;
    let layout: Layout = view.layout.clone();
    let tensor = Tensor::new(bytes.tensor().storage().clone(), layout, view.dtype)?;
    Ok(Array::from_tensor(tensor))
}
