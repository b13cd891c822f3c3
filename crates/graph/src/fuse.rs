//! Fusion of elementwise operators: nodes of one shape are moved together and run block by block ([`mxnet_core::tiles`]). Buffers that only these
//! nodes read need no memory. A reduction of a result can be the last node of a group.

use std::collections::{HashMap, HashSet};

use mxnet_core::args::Args;
use mxnet_core::context::CallContext;
use mxnet_core::launch::Kernel;
use mxnet_core::launch::elem;
use mxnet_core::mode::{Scope, is_recording};
use mxnet_core::plan::{Launch, Plan};
use mxnet_core::tiles::{
    ArrayForm, Link, ReducedTiles, Reduction, Slot, Tiles, converts_first, result_strides,
};
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
    /// The result of the reduction, if there is one; then results of elementwise nodes that nodes outside the group read.
    pub outputs: Vec<View>,
    /// The reduction that is the last node.
    pub reduction: Option<Reduction>,
    /// The group with its reduction, prepared.
    pub reduced: Option<ReducedTiles>,
    /// For each elementwise node the dtype that it computes in, and its numeric attributes.
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

/// What is known of the nodes of a graph before they are moved.
struct Forms {
    /// Properties of elementwise nodes.
    maps: Vec<Option<Form>>,
    /// Reductions whose operand may be computed while it is reduced, and their cost in nanoseconds.
    reductions: Vec<Option<(Reduction, u64)>>,
}

/// Moves elementwise nodes of one shape together. Returns the groups of two or more nodes, in order.
pub(crate) fn groups(graph: &mut Graph) -> Result<Vec<Group>> {
    let nodes = || graph.nodes.iter();
    let forms = Forms {
        maps: nodes().map(form).collect::<Result<_>>()?,
        reductions: nodes().map(reduction).collect::<Result<_>>()?,
    };
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
            ranges.push((first, run));
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
    let of_run =
        |first: usize, run: &[usize]| Group::new(graph, &forms, &readers, &results, first, run);
    for (first, run) in ranges {
        let mut group = of_run(first, &run);
        group.reduced = group.reduced_tiles(&graph.nodes)?;
        if group.reduction.is_none() || group.reduced.is_some() {
            found.push(group);
        } else if run.len() > 2 {
            found.push(of_run(first, &run[..run.len() - 1]));
        }
    }
    Ok(found)
}

/// Reorders the nodes into lists; a list of several nodes is a group.
fn arranged(graph: &Graph, forms: &Forms) -> Vec<Vec<usize>> {
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut open: Vec<OpenGroup> = Vec::new();
    // The open group that defines a buffer.
    let mut definer: HashMap<BufferId, (usize, &View)> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let needs: HashSet<usize> = (node.reads())
            .filter_map(|buffer| definer.get(&buffer).map(|(group, _)| *group))
            .filter(|&group| open[group].is_open)
            .collect();
        let Some(form) = &forms.maps[at] else {
            if forms.reductions[at].is_some()
                && let Some(operand) = node.inputs[0].view()
                && let Some(&(index, made)) = definer.get(&operand.buffer)
                && operand == made
                && open[index].is_open
            {
                open[index].members.push(at);
                close(index, &mut open, &mut order);
                continue;
            }
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
            let shape = || {
                forms.maps[group.members[0]]
                    .as_ref()
                    .map(|other| &other.shape)
            };
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
    Ok(launch_of(node)?.and_then(|launch| match launch.kernel {
        Kernel::Map {
            compute, params, ..
        } => Some(Form {
            shape: node.outputs[0].layout.shape().into(),
            compute,
            params,
            cost_ns: launch.cost_ns,
        }),
        Kernel::Fn(..) => None,
    }))
}

/// The kernel and the cost of a node by itself; `None` if it is computed by other calls.
fn launch_of(node: &Node) -> Result<Option<Launch>> {
    let mut arrays = SmallVec::<[Option<Array>; 4]>::new();
    for operand in &node.inputs {
        arrays.push(abstract_operand(operand)?);
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
        Plan::Launch(launch) => Some(launch),
        Plan::Expand(_) => None,
    })
}

/// An operand as an abstract array; `None` if it was not given.
fn abstract_operand(operand: &Operand) -> Result<Option<Array>> {
    Ok(match operand {
        Operand::Absent => None,
        Operand::View(view) => Some(abstract_of(view)?),
        Operand::Number(value) => Some(Array::weak_scalar(*value)?),
        Operand::Constant(value, dtype) => Some(Array::constant(*value, *dtype)?),
    })
}

/// The reduction of a node and its cost in nanoseconds, if its operand may be computed while it is reduced.
fn reduction(node: &Node) -> Result<Option<(Reduction, u64)>> {
    let (Some(op), [Operand::View(operand)], [result]) =
        (node.op.reduces, &node.inputs[..], &node.outputs[..])
    else {
        return Ok(None);
    };
    if node.is_assignment
        || !node.versions.is_empty()
        || !operand.layout.is_contiguous()
        || converts_first(op, operand.dtype, result.dtype)
    {
        return Ok(None);
    }
    let array = abstract_of(operand)?;
    let context = CallContext {
        op: node.op,
        inputs: &[Some(&array)],
        args: Args {
            params: node.op.params,
            attrs: &node.attrs,
        },
        training: node.training,
        outs: &[],
    };
    let reduced = context.axes("axis", 0)?;
    let axes: SmallVec<[bool; 8]> = (0..array.ndim()).map(|i| reduced.contains(&i)).collect();
    let size = result.dtype.size() as isize;
    let strides: SmallVec<[isize; 8]> =
        (result.layout.strides().iter()).map(|s| s * size).collect();
    let reduction = Reduction {
        op,
        strides: result_strides(&axes, &strides),
        axes,
        out: elem(result.dtype),
    };
    Ok(launch_of(node)?.map(|launch| (reduction, launch.cost_ns)))
}

impl Group {
    /// The group of the nodes from `first` on, which were at the positions `run` before nodes were moved. `readers` has the first and the last node
    /// that reads each buffer, `results` the buffers that are read after the run.
    fn new(
        graph: &Graph,
        forms: &Forms,
        readers: &HashMap<BufferId, (usize, usize)>,
        results: &HashSet<BufferId>,
        first: usize,
        run: &[usize],
    ) -> Group {
        let last = first + run.len() - 1;
        let (reduction, cost_ns) = match run.last().and_then(|&i| forms.reductions[i].as_ref()) {
            Some((reduction, cost_ns)) => (Some(reduction.clone()), *cost_ns),
            None => (None, 0),
        };
        let members = &graph.nodes[first..=last];
        let defined: HashSet<BufferId> = members.iter().flat_map(Node::defines).collect();
        let (mut inputs, mut outputs): (Vec<Operand>, Vec<View>) = (Vec::new(), Vec::new());
        let elementwise = &members[..members.len() - usize::from(reduction.is_some())];
        if reduction.is_some() {
            outputs.push(graph.nodes[last].outputs[0].clone());
        }
        for node in elementwise {
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
        let of_run = || run.iter().filter_map(|&i| forms.maps[i].as_ref());
        Group {
            first,
            last,
            inputs,
            outputs,
            reduction,
            reduced: None,
            computes: of_run()
                .map(|form| (form.compute, form.params.clone()))
                .collect(),
            cost_ns: of_run().map(|form| form.cost_ns).sum::<u64>() + cost_ns,
        }
    }

    /// Results of elementwise nodes that nodes outside the group read.
    fn stored(&self) -> &[View] {
        &self.outputs[usize::from(self.reduction.is_some())..]
    }

    /// The chain of the group for arrays of these layouts and dtypes: stored results first, then inputs.
    ///
    /// # Errors
    /// None for a group of a traced graph.
    pub fn tiles(&self, nodes: &[Node], arrays: &[ArrayForm]) -> Result<Tiles> {
        let (links, _) = self.links(nodes)?;
        Tiles::new(self.shape(nodes), arrays, links)
    }

    /// The chain of the group with its reduction; `None` if there is none, or if it cannot run with the rest.
    fn reduced_tiles(&self, nodes: &[Node]) -> Result<Option<ReducedTiles>> {
        let Some(reduction) = &self.reduction else {
            return Ok(None);
        };
        let (links, slots) = self.links(nodes)?;
        let operand = nodes[self.last].inputs.first().and_then(Operand::view);
        let Some(&last) = operand.and_then(|x| slots.get(&x.buffer)) else {
            return Ok(None);
        };
        let form = |layout: &Layout, dtype| ArrayForm {
            layout: layout.clone(),
            dtype,
            address: 0,
        };
        let stored = self.stored().iter();
        let mut arrays: Vec<ArrayForm> =
            stored.map(|view| form(&view.layout, view.dtype)).collect();
        for operand in &self.inputs {
            if let Some(array) = abstract_operand(operand)? {
                arrays.push(form(array.layout(), array.dtype()));
            }
        }
        ReducedTiles::new(self.shape(nodes), &arrays, &links, last, reduction.clone())
    }

    fn shape<'a>(&self, nodes: &'a [Node]) -> &'a [usize] {
        nodes[self.first].outputs[0].layout.shape()
    }

    /// The operators of the elementwise nodes, and where they store the results that are read last.
    fn links(&self, nodes: &[Node]) -> Result<(Vec<Link>, HashMap<BufferId, Slot>)> {
        let members = &nodes[self.first..=self.last];
        // Assigns intermediate results to blocks. After the last node that reads a result, its block is reused.
        let mut last_read: HashMap<BufferId, usize> = HashMap::new();
        for (at, node) in members.iter().enumerate() {
            for view in node.inputs.iter().filter_map(Operand::view) {
                last_read.insert(view.buffer, at);
            }
        }
        let stored = self.stored();
        let mut slots: HashMap<BufferId, Slot> = (stored.iter().enumerate())
            .map(|(i, view)| (view.buffer, Slot::Array(i)))
            .collect();
        let (mut free, mut num_blocks) = (Vec::new(), 0);
        let mut links = Vec::new();
        for (at, (node, computes)) in members.iter().zip(&self.computes).enumerate() {
            let mut inputs = SmallVec::new();
            for operand in node.inputs.iter().filter(|x| **x != Operand::Absent) {
                let inside = operand
                    .view()
                    .and_then(|view| slots.get(&view.buffer).copied());
                let outside = || self.inputs.iter().position(|x| x == operand);
                let outside = || outside().map(|i| Slot::Array(stored.len() + i));
                inputs.push(inside.or_else(outside).ok_or_else(|| {
                    Error::internal("fuse", "an operand of a group has no array or block")
                })?);
            }
            let mut outputs = SmallVec::new();
            for view in &node.outputs {
                let slot = slots.entry(view.buffer).or_insert_with(|| {
                    let block = free.pop().unwrap_or_else(|| {
                        num_blocks += 1;
                        num_blocks - 1
                    });
                    Slot::Block(block, view.dtype)
                });
                outputs.push(*slot);
            }
            // A node must not write over what it reads, so its blocks are reused only by the next node.
            for buffer in node.defines().chain(node.reads()) {
                if last_read.get(&buffer).is_none_or(|&end| end == at)
                    && let Some(&Slot::Block(block, _)) = slots.get(&buffer)
                {
                    slots.remove(&buffer);
                    free.push(block);
                }
            }
            let Cpu::Map(rows) = node.op.cpu else {
                return Err(Error::internal(
                    "fuse",
                    "a node of a group is not elementwise",
                ));
            };
            let (compute, params) = computes.clone();
            links.push(Link {
                rows,
                compute,
                params,
                outputs,
                inputs,
            });
        }
        Ok((links, slots))
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
