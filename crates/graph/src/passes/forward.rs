//! Copy propagation: nodes that read a copy read its source instead. Copies are parts of concatenated arrays, contiguous copies, and split arrays.
//!
//! Dead code elimination then removes copies that nobody reads.

use std::collections::HashMap;

use mxnet_core::Cpu;
use mxnet_tensor::Layout;
use smallvec::SmallVec;

use super::simplify::args;
use crate::ir::{BufferId, Graph, Node, Operand, View};

/// A part of a buffer that is a copy of another view.
struct Copied {
    to: View,
    from: View,
}

/// Replaces reads of copies by reads of their sources. Returns the number of changed operands.
pub fn forward_copies(graph: &mut Graph) -> usize {
    let overwritten = overwritten_at(graph);
    let mut copies: HashMap<BufferId, Vec<Copied>> = HashMap::new();
    let mut changed = 0;
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        let is_elementwise = matches!(node.op.cpu, Cpu::Map(_)) || node.is_assignment;
        let versions: SmallVec<[BufferId; 2]> = node.versions.iter().map(|v| v.old).collect();
        for i in 0..graph.nodes[at].inputs.len() {
            // Follows copies of copies.
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

/// The first node that may overwrite each buffer: later nodes cannot read it instead of a copy.
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

/// The parts of a node's results that are copies.
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
        ("split_vector", [Operand::View(x)], outputs) => {
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

/// The operands of a `concatenate` along an axis before which all lengths are 1: each is one contiguous part of the result.
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

/// The view of the source with the elements of `view`, if the part contains all of them.
///
/// If both are dense, any view has a counterpart. Strided sources are allowed for elementwise operators only: reductions may add in memory order,
/// which would change the rounding of the result.
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
