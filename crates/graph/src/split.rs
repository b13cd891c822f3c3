//! Splits the trace of a function with its gradient into two graphs. The second one needs results of the first.

use std::collections::{HashMap, HashSet};

use mxnet_core::Rng;
use mxnet_tensor::{DType, Layout};

use crate::ir::{BufferId, Graph, Input, Source, View};

/// A function, its gradient, and the buffers that the gradient needs.
pub struct Split {
    /// The function. Its own results are followed by those that only the gradient needs.
    pub forward: Graph,
    /// The gradient. Its arguments are `residuals`, in order, then the cotangents.
    pub backward: Graph,
    /// The buffers that the gradient needs, in order.
    pub residuals: Vec<Residual>,
}

/// A buffer of the function that the gradient needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The buffer of input `i`.
    Input(usize),
    /// The buffer of result `i`.
    Output(usize),
}

/// A view of a buffer as a 1-d array of bytes.
fn bytes(graph: &Graph, buffer: BufferId) -> View {
    View {
        buffer,
        layout: Layout::contiguous(&[graph.buffer(buffer).len_bytes]),
        dtype: DType::U8,
        is_read_only: false,
    }
}

/// Splits a graph. Its nodes before `num_forward` belong to the function, its results from `num_outputs` on are gradients, its arguments from
/// `num_arguments` on are cotangents.
pub fn split(graph: Graph, num_forward: usize, num_outputs: usize, num_arguments: usize) -> Split {
    let mut forward = Graph {
        nodes: graph.nodes[..num_forward].to_vec(),
        outputs: graph.outputs[..num_outputs].to_vec(),
        ..graph.clone()
    };
    let mut backward = Graph {
        nodes: graph.nodes[num_forward..].to_vec(),
        outputs: graph.outputs[num_outputs..].to_vec(),
        inputs: Vec::new(),
        name: format!("gradient of {}", graph.name),
        ..graph.clone()
    };
    let is_cotangent =
        |input: &Input| matches!(input.source, Source::Argument(i) if i >= num_arguments);
    // The gradient's random numbers follow those of the function.
    let first_block = (backward.nodes.iter())
        .filter(|node| matches!(node.op.rng, Rng::Blocks(_)) && node.rng_stream == 0)
        .map(|node| node.rng_block)
        .min()
        .unwrap_or(graph.num_rng_blocks);
    forward.num_rng_blocks = first_block;
    backward.num_rng_blocks = graph.num_rng_blocks - first_block;
    // Gradient rules draw from no generator of the function.
    backward.streams.clear();
    for node in &mut backward.nodes {
        node.rng_block = node.rng_block.saturating_sub(first_block);
    }
    forward.inputs.retain(|input| !is_cotangent(input));
    let made_later: HashSet<BufferId> = backward
        .nodes
        .iter()
        .flat_map(|node| node.defines())
        .collect();
    let cotangents: HashMap<BufferId, &Input> = (graph.inputs.iter())
        .filter(|input| is_cotangent(input))
        .map(|input| (input.buffer, input))
        .collect();
    let mut needed: Vec<BufferId> = Vec::new();
    let read = backward.nodes.iter().flat_map(|node| node.reads());
    for buffer in read.chain(backward.outputs.iter().map(|view| view.buffer)) {
        let is_earlier = !made_later.contains(&buffer) && !cotangents.contains_key(&buffer);
        if is_earlier && !needed.contains(&buffer) {
            needed.push(buffer);
        }
    }
    let mut residuals = Vec::new();
    for buffer in needed {
        // A constant of the function becomes a constant of the gradient.
        if let Some(input) = forward.inputs.iter().find(|input| input.buffer == buffer)
            && matches!(input.source, Source::Constant(_))
        {
            backward.inputs.push(input.clone());
            continue;
        }
        let residual = match forward
            .inputs
            .iter()
            .position(|input| input.buffer == buffer)
        {
            Some(i) => Residual::Input(i),
            None => {
                let known = forward
                    .outputs
                    .iter()
                    .position(|view| view.buffer == buffer);
                Residual::Output(known.unwrap_or_else(|| {
                    forward.outputs.push(bytes(&graph, buffer));
                    forward.outputs.len() - 1
                }))
            }
        };
        let view = match residual {
            Residual::Input(i) => forward.inputs[i].view.clone(),
            Residual::Output(i) => forward.outputs[i].clone(),
        };
        backward.inputs.push(Input {
            buffer,
            source: Source::Argument(residuals.len()),
            view,
            written: None,
        });
        residuals.push(residual);
    }
    for input in &graph.inputs {
        if let Source::Argument(i) = input.source
            && i >= num_arguments
        {
            backward.inputs.push(Input {
                source: Source::Argument(residuals.len() + i - num_arguments),
                ..input.clone()
            });
        }
    }
    for input in &mut backward.inputs {
        input.written = None;
    }
    Split {
        forward,
        backward,
        residuals,
    }
}
