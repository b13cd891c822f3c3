//! Constant folding: evaluates calls whose operands are all known when the graph is compiled.

use std::collections::{HashMap, HashSet};

use mxnet_core::mode::Scope;
use mxnet_core::{Array, Call, Cpu, Known, Result, Rng, cpu, eager};
use mxnet_tensor::{DType, Layout, Storage, Tensor};
use smallvec::SmallVec;

use crate::ir::{BufferId, Graph, Input, Node, Operand, Source, View};

/// Larger results are computed in each run, because the graph and its file would contain them.
const MAX_BYTES: usize = 64 << 10;

/// Replaces calls on constants by constants. Returns the number of removed nodes.
pub fn fold_constants(graph: &mut Graph) -> usize {
    let before = graph.nodes.len();
    // Buffers that must stay separate arrays: results, and those that are partially written.
    let mut owned: HashSet<BufferId> = graph.results().collect();
    owned.extend(
        graph
            .nodes
            .iter()
            .flat_map(|node| node.versions.iter().map(|v| v.old)),
    );
    let mut constants: HashMap<BufferId, Array> = (graph.inputs.iter())
        .filter_map(|input| match &input.source {
            Source::Constant(x) => Some((input.buffer, x.clone())),
            _ => None,
        })
        .collect();
    let mut made = Vec::new();
    let mut kept = Vec::with_capacity(before);
    for node in std::mem::take(&mut graph.nodes) {
        let fits = |view: &View| graph.buffers[view.buffer.0 as usize].len_bytes <= MAX_BYTES;
        let is_free = |view: &View| fits(view) && !owned.contains(&view.buffer);
        let folds = can_run_early(&node)
            && node.outputs.iter().all(is_free)
            && (node.inputs.iter().filter_map(Operand::view))
                .all(|view| constants.contains_key(&view.buffer));
        // A call that fails stays in the graph, so that the run reports the error.
        match folds.then(|| values(graph, &node, &constants)) {
            Some(Ok(arrays)) => {
                for (view, bytes) in node.outputs.iter().zip(arrays) {
                    constants.insert(view.buffer, bytes.clone());
                    made.push((view.buffer, bytes));
                }
            }
            _ => kept.push(node),
        }
    }
    graph.nodes = kept;
    for (buffer, bytes) in made {
        graph.inputs.push(Input {
            buffer,
            view: View {
                buffer,
                layout: bytes.layout().clone(),
                dtype: DType::U8,
                is_read_only: true,
            },
            source: Source::Constant(bytes),
            written: None,
        });
    }
    before - graph.nodes.len()
}

/// Whether a call always gives the same results, changes nothing, and is of an operator of this library.
fn can_run_early(node: &Node) -> bool {
    let is_kernel = match node.op.cpu {
        Cpu::Map(_) | Cpu::Kernel(_) => true,
        Cpu::Eager(_, known) => !matches!(known, Known::FromValues),
        _ => false,
    };
    is_kernel
        && node.versions.is_empty()
        && node.op.mutates.is_empty()
        && node.op.state.is_none()
        && !node.op.name.starts_with("empty")
        && matches!(node.op.rng, Rng::No | Rng::Derived)
}

/// The results as byte arrays.
fn values(graph: &Graph, node: &Node, constants: &HashMap<BufferId, Array>) -> Result<Vec<Array>> {
    let array = |view: &View| -> Result<Array> {
        let storage = constants[&view.buffer].tensor().storage().clone();
        Ok(Array::from_tensor(Tensor::new(
            storage,
            view.layout.clone(),
            view.dtype,
        )?))
    };
    let mut inputs: SmallVec<[Option<Array>; 4]> = SmallVec::new();
    for operand in &node.inputs {
        inputs.push(match operand {
            Operand::Absent => None,
            Operand::View(view) => Some(array(view)?),
            Operand::Number(value) => Some(Array::weak_scalar(*value)?),
            Operand::Constant(value, dtype) => Some(Array::constant(*value, *dtype)?),
        });
    }
    let results = match (node.is_assignment, inputs.first()) {
        (true, Some(Some(x))) => SmallVec::from_iter([x.clone()]),
        _ => {
            let arguments: SmallVec<[Option<&Array>; 4]> =
                inputs.iter().map(Option::as_ref).collect();
            let _scope = Scope::enter(false, node.training);
            eager::run(&Call {
                op: node.op,
                inputs: &arguments,
                attrs: &node.attrs,
                outs: &[],
                dtype: node.dtype,
            })?
        }
    };
    let mut made = Vec::new();
    for (result, view) in results.iter().zip(&node.outputs) {
        let buffer = graph.buffer(view.buffer);
        let storage = Storage::zeroed(buffer.len_bytes, buffer.device)?;
        let to = Tensor::new(storage.clone(), view.layout.clone(), view.dtype)?;
        cpu::copy(result.read()?.tensor(), &to, &mxnet_core::Pool)?;
        let whole = Layout::contiguous(&[buffer.len_bytes]);
        made.push(Array::from_tensor(Tensor::new(storage, whole, DType::U8)?));
    }
    Ok(made)
}
