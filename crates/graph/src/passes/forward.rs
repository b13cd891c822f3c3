//! Who reads a copy reads what was copied: parts of joined arrays, arrays that were made dense or taken apart.
//!
//! The copies themselves go with the dead code, if nobody else reads them.

use std::collections::HashMap;

use mxnet_core::Cpu;
use mxnet_tensor::Layout;
use smallvec::SmallVec;

use super::simplify::args;
use crate::ir::{BufferId, Graph, Node, Operand, View};

/// A part of a buffer that has the elements of another array.
struct Copied {
    to: View,
    from: View,
}

/// Lets nodes read the sources of copies. Returns how many operands it changed.
pub fn forward_copies(graph: &mut Graph) -> usize {
    let overwritten = overwritten_at(graph);
    let mut copies: HashMap<BufferId, Vec<Copied>> = HashMap::new();
    let mut changed = 0;
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        let is_elementwise = matches!(node.op.cpu, Cpu::Map(_)) || node.is_assignment;
        let versions: SmallVec<[BufferId; 2]> = node.versions.iter().map(|v| v.old).collect();
        for i in 0..graph.nodes[at].inputs.len() {
            // A copy of a copy is followed to its source.
            while let Operand::View(view) = &graph.nodes[at].inputs[i]
                && !versions.contains(&view.buffer)
                && let Some(parts) = copies.get(&view.buffer)
                && let Some(source) = parts
                    .iter()
                    .find_map(|part| source_of(view, part, is_elementwise))
                && overwritten.get(&source.buffer).is_none_or(|&end| at < end)
            {
                graph.nodes[at].inputs[i] = Operand::View(source);
                changed += 1;
            }
        }
        for part in parts_of(&graph.nodes[at]) {
            copies.entry(part.to.buffer).or_default().push(part);
        }
    }
    changed
}

/// The first node that may write over each buffer: a later reader would need a copy of what was there.
pub(super) fn overwritten_at(graph: &Graph) -> HashMap<BufferId, usize> {
    let mut found: HashMap<BufferId, usize> = HashMap::new();
    let mut note = |buffer: BufferId, at: usize| {
        found
            .entry(buffer)
            .and_modify(|end| *end = at.min(*end))
            .or_insert(at);
    };
    let written: HashMap<BufferId, BufferId> = (graph.inputs.iter())
        .filter_map(|input| Some((input.written?, input.buffer)))
        .collect();
    for (at, node) in graph.nodes.iter().enumerate() {
        for version in &node.versions {
            note(version.old, at);
        }
        for buffer in node.defines() {
            if let Some(&input) = written.get(&buffer) {
                note(input, at);
            }
        }
    }
    found
}

/// The parts of its results that a node copies.
fn parts_of(node: &Node) -> Vec<Copied> {
    let none = Vec::new();
    if !node.versions.is_empty() {
        return none;
    }
    let whole = |x: &View, to: &View| {
        let is_same = x.dtype == to.dtype && x.layout.shape() == to.layout.shape();
        is_same.then(|| Copied {
            to: to.clone(),
            from: x.clone(),
        })
    };
    match (node.op.name, &node.inputs[..], &node.outputs[..]) {
        (_, [Operand::View(x)], [to]) if node.is_assignment => whole(x, to).into_iter().collect(),
        ("copy" | "duplicate", [Operand::View(x)], [to]) => whole(x, to).into_iter().collect(),
        ("cut", [Operand::View(x)], outputs) => {
            let mut start = 0;
            let cut = |to: &View| {
                let len = to.layout.len();
                let layout = x
                    .layout
                    .slice(0, Some(start), Some(start + len as isize), None)
                    .ok()?;
                start += len as isize;
                whole(
                    &View {
                        layout,
                        ..x.clone()
                    },
                    to,
                )
            };
            outputs.iter().map_while(cut).collect()
        }
        ("concatenate", inputs, [to]) => joined(node, inputs, to),
        _ => none,
    }
}

/// The operands of a `concatenate` along an axis before which all lengths are 1: each is one piece of the result.
fn joined(node: &Node, inputs: &[Operand], to: &View) -> Vec<Copied> {
    let shape = to.layout.shape();
    let Some(axis) = args(node).opt_int("axis") else {
        return Vec::new();
    };
    let axis = if axis < 0 {
        axis + shape.len() as i64
    } else {
        axis
    };
    let Ok(axis) = usize::try_from(axis) else {
        return Vec::new();
    };
    if axis >= shape.len() || !to.layout.is_contiguous() || shape[..axis].iter().any(|&n| n != 1) {
        return Vec::new();
    }
    let (mut found, mut start) = (Vec::new(), 0_isize);
    for operand in inputs {
        let Some(x) = operand.view().filter(|x| x.layout.ndim() == shape.len()) else {
            return Vec::new();
        };
        let end = start + x.layout.shape()[axis] as isize;
        let Ok(layout) = to.layout.slice(axis as isize, Some(start), Some(end), None) else {
            return Vec::new();
        };
        start = end;
        if x.dtype == to.dtype {
            found.push(Copied {
                to: View {
                    layout,
                    ..to.clone()
                },
                from: x.clone(),
            });
        }
    }
    found
}

/// The elements of `view` in the source of a copy, if the part has all of them.
///
/// Where both lie densely any view has its like. A strided source is read by elementwise operators only: what sums elements may take them in
/// the order in which they lie, and then gives other bits.
fn source_of(view: &View, part: &Copied, is_elementwise: bool) -> Option<View> {
    if part.to.layout.is_contiguous() && part.from.layout.is_contiguous() {
        let size = view.dtype.size();
        let (low, high) = view.layout.span()?;
        let start = part.to.layout.offset() * part.to.dtype.size();
        let end = start + part.to.len_bytes();
        if low * size < start || (high + 1) * size > end {
            return None;
        }
        let from = part.from.layout.offset() * part.from.dtype.size();
        let bytes = view.layout.offset() * size - start + from;
        let layout: Layout = view.layout.with_offset(bytes / size);
        return bytes.is_multiple_of(size).then(|| View {
            buffer: part.from.buffer,
            layout,
            ..view.clone()
        });
    }
    let is_same = view.layout == part.to.layout && view.dtype == part.to.dtype;
    (is_same && is_elementwise).then(|| View {
        buffer: part.from.buffer,
        layout: part.from.layout.clone(),
        ..view.clone()
    })
}
