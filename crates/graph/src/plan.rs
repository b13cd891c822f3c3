//! The memory plan: where each buffer of a graph is stored in a run.
//!
//! Buffers live from their definition to their last use, in the order of the nodes. The buffers of a run share one block, the arena; a buffer reuses
//! the memory of buffers that are dead. A node may write to the memory of an operand whose last use it is: a new version of an array overwrites the
//! old one, and elementwise results overwrite an operand.

use mxnet_core::Cpu;

use crate::fuse::Group;
use crate::ir::{BufferId, Graph, Node, Operand, View};
use crate::passes::side_by_side;

/// Location of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferLocation {
    /// No memory: nothing reads or writes it.
    Nowhere,
    /// In the memory of input `i`.
    Input(usize),
    /// Block `i` of new memory, which is returned to the caller.
    Fresh(usize),
    /// The arena, from this byte on.
    Arena(usize),
}

/// The plan of a graph.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// The location of each buffer.
    pub locations: Vec<BufferLocation>,
    /// Size of the arena in bytes.
    pub arena_bytes: usize,
    /// Buffers in new memory, which is returned to the caller.
    pub fresh: Vec<BufferId>,
    /// Sum of the sizes of the buffers in the arena, without reuse of memory.
    pub unshared_bytes: usize,
    /// While a node runs, the arena is free from this byte on.
    pub used_bytes: Vec<usize>,
    /// For each node the arguments, as bits, whose buffer in the arena no other node reads from then on.
    pub last_reads: Vec<u64>,
    /// Nodes that may run at the same time, as ranges: first and last.
    pub side_by_side: Vec<(usize, usize)>,
}

/// Alignment of buffers in the arena, in bytes.
const ALIGNMENT: usize = 64;

/// Last use of a buffer that is needed after the run.
const FOREVER: usize = usize::MAX;

/// Definition and last use of a buffer, as indices of nodes.
#[derive(Clone, Copy)]
struct Life {
    start: usize,
    end: usize,
    is_used: bool,
}

/// A part of the arena: one buffer, or several that use the same bytes one after the other.
struct Block {
    len: usize,
    /// The node that defines the first buffer, and the last use of the last one.
    start: usize,
    end: usize,
    offset: usize,
}

/// Whether the kernel of a node reads each element of an operand only before it writes the same element of the output.
fn computes_in_place(node: &Node, output: &View, operand: &View) -> bool {
    matches!(node.op.cpu, Cpu::Map(_))
        && !node.is_assignment
        && node.op.expands.is_none()
        && output.layout == operand.layout
        && output.dtype == operand.dtype
        && !output.layout.may_self_overlap()
        && node.op.refuses.is_none()
}

/// Whether the output may overwrite every operand of a node in `buffer`.
fn may_overwrite(node: &Node, output: &View, buffer: BufferId) -> bool {
    let views = node.inputs.iter().filter_map(Operand::view);
    let mut of_buffer = views.filter(|view| view.buffer == buffer);
    of_buffer.all(|view| computes_in_place(node, output, view))
}

/// Whether a node with a partial write also reads the old version by an operand that it does not change.
fn reads_besides(node: &Node, old: BufferId) -> bool {
    let mutated: Vec<usize> = node.mutated_inputs();
    let inputs = node.inputs.iter().enumerate();
    inputs
        .filter(|(i, _)| !mutated.contains(i))
        .filter_map(|(_, x)| x.view())
        .any(|view| view.buffer == old)
}

impl MemoryPlan {
    /// Plans the memory of a graph. Each group of nodes runs as one step: buffers that it reads or writes are in use until its last node. So are those of
    /// nodes that run side by side.
    pub(crate) fn new(graph: &Graph, groups: &[Group], runs_side_by_side: bool) -> MemoryPlan {
        let side_by_side = match runs_side_by_side {
            true => side_by_side(graph, groups),
            false => Vec::new(),
        };
        let num_buffers = graph.buffers.len();
        let mut lives = vec![
            Life {
                start: 0,
                end: 0,
                is_used: false
            };
            num_buffers
        ];
        for (at, node) in graph.nodes.iter().enumerate() {
            for buffer in node.defines() {
                let life = &mut lives[buffer.0 as usize];
                (life.start, life.is_used) = (at, true);
                life.end = life.end.max(at);
            }
            for buffer in node.reads() {
                let life = &mut lives[buffer.0 as usize];
                (life.end, life.is_used) = (life.end.max(at), true);
            }
        }
        for life in &mut lives {
            let together = side_by_side.iter();
            let mut of_end = together.filter(|(first, last)| (*first..=*last).contains(&life.end));
            if let Some(&(_, last)) = of_end.next() {
                life.end = last;
            }
        }
        for buffer in graph.results() {
            lives[buffer.0 as usize].end = FOREVER;
            lives[buffer.0 as usize].is_used = true;
        }
        let mut plan = MemoryPlan {
            locations: vec![BufferLocation::Nowhere; num_buffers],
            arena_bytes: 0,
            fresh: Vec::new(),
            unshared_bytes: 0,
            used_bytes: Vec::new(),
            last_reads: Vec::new(),
            side_by_side,
        };
        let mut is_placed = vec![false; num_buffers];
        // Inputs have their own memory. It may be overwritten only if the graph writes to the input.
        for (i, input) in graph.inputs.iter().enumerate() {
            plan.locations[input.buffer.0 as usize] = BufferLocation::Input(i);
            is_placed[input.buffer.0 as usize] = true;
        }
        plan.place_written_inputs(graph, &lives, groups, &mut is_placed);
        // A result that is written to an input is returned as a view of the input.
        let is_taken_on = |buffer| {
            graph
                .inputs
                .iter()
                .any(|input| input.written == Some(buffer))
        };
        for view in &graph.outputs {
            let at = view.buffer.0 as usize;
            if !is_placed[at] && !is_taken_on(view.buffer) {
                plan.locations[at] = BufferLocation::Fresh(plan.fresh.len());
                plan.fresh.push(view.buffer);
                is_placed[at] = true;
            }
        }
        // Buffers that only nodes of one group read are blocks of that group.
        for group in groups {
            for buffer in graph.nodes[group.first..=group.last]
                .iter()
                .flat_map(Node::defines)
            {
                let at = buffer.0 as usize;
                if !group.outputs.iter().any(|view| view.buffer == buffer) {
                    is_placed[at] = true;
                }
            }
        }
        plan.place_in_arena(graph, &lives, groups, &mut is_placed);
        let nodes = graph.nodes.iter().enumerate();
        plan.last_reads =
            (nodes.map(|(at, node)| plan.last_reads_of(graph, &lives, at, node))).collect();
        plan
    }

    /// The arguments of node `at` whose memory it may overwrite, as bits.
    fn last_reads_of(&self, graph: &Graph, lives: &[Life], at: usize, node: &Node) -> u64 {
        let mut together = self.side_by_side.iter();
        let others = together.find(|(first, last)| (*first..=*last).contains(&at));
        let is_read_beside = |buffer: BufferId| {
            let others = others.map_or(0..0, |&(first, last)| first..last + 1);
            (others.filter(|&other| other != at))
                .any(|other| graph.nodes[other].reads().any(|read| read == buffer))
        };
        let mut bits = 0;
        for (i, operand) in node.inputs.iter().enumerate().take(64) {
            let Some(buffer) = operand.view().map(|view| view.buffer) else {
                continue;
            };
            let is_last = lives[buffer.0 as usize].end == at
                && matches!(self.locations[buffer.0 as usize], BufferLocation::Arena(_))
                && node.reads().filter(|&read| read == buffer).count() == 1
                && !is_read_beside(buffer);
            bits |= u64::from(is_last) << i;
        }
        bits
    }

    /// Places the final version of a written input into the input's memory, if no node reads older elements of it afterwards.
    fn place_written_inputs(
        &mut self,
        graph: &Graph,
        lives: &[Life],
        groups: &[Group],
        is_placed: &mut [bool],
    ) {
        for (i, input) in graph.inputs.iter().enumerate() {
            let Some(last) = input.written else { continue };
            // From the last version back to the first. Each version must begin where the one before ends.
            let mut chain = Vec::new();
            let mut buffer = last;
            let is_whole = loop {
                if buffer == input.buffer {
                    break true;
                }
                let life = lives[buffer.0 as usize];
                if is_placed[buffer.0 as usize] || !life.is_used {
                    break false;
                }
                let Some(node) = graph.nodes.get(life.start) else {
                    break false;
                };
                chain.push((buffer, life.start));
                match node.versions.iter().find(|version| version.new == buffer) {
                    Some(version) => {
                        let is_read_later = lives[version.old.0 as usize].end > life.start;
                        if is_read_later || reads_besides(node, version.old) {
                            break false;
                        }
                        buffer = version.old;
                    }
                    None => {
                        break takes_over(graph, lives, groups, input.buffer, buffer, life.start);
                    }
                }
            };
            if is_whole {
                for (buffer, _) in chain {
                    self.locations[buffer.0 as usize] = BufferLocation::Input(i);
                    is_placed[buffer.0 as usize] = true;
                }
            }
        }
    }

    /// Places all other buffers into the arena.
    fn place_in_arena(
        &mut self,
        graph: &Graph,
        lives: &[Life],
        groups: &[Group],
        is_placed: &mut [bool],
    ) {
        let (mut blocks, mut block_of) = (
            Vec::<Block>::new(),
            vec![None::<usize>; graph.buffers.len()],
        );
        for (at, node) in graph.nodes.iter().enumerate() {
            let group = group_at(groups, at);
            let last = group.map_or(at, |group| group.last);
            let mut taken: Vec<usize> = Vec::new();
            for buffer in node.defines() {
                let index = buffer.0 as usize;
                if is_placed[index] {
                    continue;
                }
                is_placed[index] = true;
                let len = graph.buffer(buffer).len_bytes;
                self.unshared_bytes += len;
                // Reuses the memory of an operand that ends here.
                let found = overwritten(graph, node, group, buffer)
                    .into_iter()
                    .find_map(|operand| {
                        let block = block_of[operand.0 as usize]?;
                        let ends = lives[operand.0 as usize].end == at && blocks[block].end == last;
                        let fits =
                            graph.buffer(operand).len_bytes == len && !taken.contains(&block);
                        (ends && fits).then_some(block)
                    });
                let end = match lives[index].end {
                    FOREVER => FOREVER,
                    end => group_at(groups, end).map_or(end, |group| group.last),
                };
                let block = found.unwrap_or_else(|| {
                    let len = len.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
                    blocks.push(Block {
                        len,
                        start: at,
                        end,
                        offset: 0,
                    });
                    blocks.len() - 1
                });
                blocks[block].end = end;
                taken.push(block);
                block_of[index] = Some(block);
            }
        }
        self.arena_bytes = place_blocks(&mut blocks);
        for (location, block) in self.locations.iter_mut().zip(&block_of) {
            if let Some(block) = block {
                *location = BufferLocation::Arena(blocks[*block].offset);
            }
        }
        self.used_bytes = vec![0; graph.nodes.len()];
        for block in &blocks {
            let last = block.end.min(graph.nodes.len() - 1);
            for used in &mut self.used_bytes[block.start..=last] {
                *used = (*used).max(block.offset + block.len);
            }
        }
    }

    /// The plan as text: a line for each buffer, in the order in which they are defined, then one for each range of nodes that may run side by side.
    pub fn describe(&self, graph: &Graph, workspace_bytes: usize) -> String {
        let mut text = format!(
            "memory of {}: {} bytes in the arena ({} without sharing), {} bytes of new results, {workspace_bytes} bytes for kernels\n",
            graph.name,
            self.arena_bytes,
            self.unshared_bytes,
            self.fresh_bytes(graph)
        );
        for buffer in graph.nodes.iter().flat_map(Node::defines) {
            let len = graph.buffer(buffer).len_bytes;
            let location = match self.locations[buffer.0 as usize] {
                BufferLocation::Nowhere => "no memory, or a block of a fused step".to_owned(),
                BufferLocation::Input(i) => format!("input {i}"),
                BufferLocation::Fresh(i) => format!("new result {i}"),
                BufferLocation::Arena(start) => format!("arena {start}..{}", start + len),
            };
            text.push_str(&format!("  b{}: {len} bytes, {location}\n", buffer.0));
        }
        for &(first, last) in &self.side_by_side {
            let names = graph.nodes[first..=last].iter().map(|node| node.op.name);
            let names = names.collect::<Vec<_>>().join(", ");
            text.push_str(&format!("  side by side: {names}\n"));
        }
        text
    }

    fn fresh_bytes(&self, graph: &Graph) -> usize {
        let fresh = self.fresh.iter();
        fresh.map(|&buffer| graph.buffer(buffer).len_bytes).sum()
    }

    /// Largest number of bytes that the buffers of a run need, inputs excepted.
    pub fn peak_bytes(&self, graph: &Graph) -> usize {
        self.arena_bytes + self.fresh_bytes(graph)
    }
}

/// The group of node `at`.
fn group_at(groups: &[Group], at: usize) -> Option<&Group> {
    (groups.iter()).find(|group| (group.first..=group.last).contains(&at))
}

/// Whether all nodes of a group that read `buffer` read the elements that `output` has, so that a block of the group reads and writes the same bytes.
fn reads_alike(graph: &Graph, group: &Group, output: &View, buffer: BufferId) -> bool {
    let members = graph.nodes[group.first..=group.last].iter();
    let views = members.flat_map(|node| node.inputs.iter().filter_map(Operand::view));
    let mut of_buffer = views.filter(|view| view.buffer == buffer);
    of_buffer.all(|view| view.layout == output.layout && view.dtype == output.dtype)
}

/// The buffers whose memory `new`, which a node defines, may use if no later node reads them.
fn overwritten(graph: &Graph, node: &Node, group: Option<&Group>, new: BufferId) -> Vec<BufferId> {
    if let Some(version) = node.versions.iter().find(|version| version.new == new) {
        let is_free = !reads_besides(node, version.old);
        return is_free.then_some(version.old).into_iter().collect();
    }
    let Some(output) = node.outputs.iter().find(|view| view.buffer == new) else {
        return Vec::new();
    };
    if group.is_some_and(|group| group.reduction.is_some()) {
        return Vec::new();
    }
    let views = node.inputs.iter().filter_map(Operand::view);
    (views
        .filter(|view| computes_in_place(node, output, view))
        .map(|view| view.buffer))
    .filter(|&operand| may_overwrite(node, output, operand))
    .filter(|&operand| group.is_none_or(|group| reads_alike(graph, group, output, operand)))
    .collect()
}

/// Chooses the offsets of blocks, and returns the size of the arena. Each block lies at the lowest offset where it overlaps no block that is in use at the
/// same time. Of two orders, largest first and in order of definition, the one with the smaller arena is taken.
fn place_blocks(blocks: &mut [Block]) -> usize {
    let mut by_size: Vec<usize> = (0..blocks.len()).collect();
    let by_start = by_size.clone();
    by_size.sort_by_key(|&i| std::cmp::Reverse(blocks[i].len));
    let (first, second) = (offsets(blocks, &by_size), offsets(blocks, &by_start));
    let (chosen, arena_bytes) = if first.1 <= second.1 { first } else { second };
    for (block, offset) in blocks.iter_mut().zip(chosen) {
        block.offset = offset;
    }
    arena_bytes
}

/// The offset of each block if they are placed in this order, and the end of the last.
fn offsets(blocks: &[Block], order: &[usize]) -> (Vec<usize>, usize) {
    let (mut offsets, mut placed, mut top) = (vec![0; blocks.len()], Vec::<usize>::new(), 0);
    for &i in order {
        let block = &blocks[i];
        let mut offset = 0;
        // In order of their offsets, so that the first gap is the lowest.
        for &other in &placed {
            let (start, other) = (offsets[other], &blocks[other]);
            let is_in_use = other.start <= block.end && block.start <= other.end;
            if is_in_use && start < offset + block.len {
                offset = offset.max(start + other.len);
            }
        }
        offsets[i] = offset;
        let at = placed.partition_point(|&other| offsets[other] <= offset);
        placed.insert(at, i);
        top = top.max(offset + block.len);
    }
    (offsets, top)
}

/// Whether a new buffer, defined by node `at`, may use the memory of an input.
fn takes_over(
    graph: &Graph,
    lives: &[Life],
    groups: &[Group],
    input: BufferId,
    buffer: BufferId,
    at: usize,
) -> bool {
    let node = &graph.nodes[at];
    let life = lives[input.0 as usize];
    let Some(output) = node.outputs.iter().find(|view| view.buffer == buffer) else {
        return false;
    };
    if graph.buffer(input) != graph.buffer(buffer) {
        return false;
    }
    // Within a group an input may be overwritten only if all nodes read the same elements in a block. Rows that are reduced are computed by loops that do
    // not allow for an operand in the memory of a result, and the result of the reduction has other elements.
    let group = group_at(groups, at);
    if group
        .is_some_and(|group| group.reduction.is_some() && life.is_used && life.end >= group.first)
    {
        return false;
    }
    let is_read_alike = group.is_none_or(|group| reads_alike(graph, group, output, input));
    let ends_before = !life.is_used || life.end < at;
    // A neighbour that runs side by side with this node, and not the node itself, may be the reader.
    let reads_itself = node.reads().any(|buffer| buffer == input);
    let overwrites = life.end == at && reads_itself && may_overwrite(node, output, input);
    is_read_alike && (ends_before || overwrites)
}
