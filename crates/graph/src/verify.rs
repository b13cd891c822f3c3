//! Checks of graphs from outside (files, registered passes), on which runs rely.

use std::collections::HashSet;

use mxnet_core::mode::Scope;
use mxnet_core::{
    Array, Call, Cpu, Default, Error, Known, Outputs, ParamKind, Result, Rng, Tuple, eager,
};
use mxnet_tensor::{DType, Device, Layout, Promotion, Tensor, promotion};
use smallvec::SmallVec;

use crate::ir::{BufferId, Graph, Node, Operand, Source, View};

/// The error for a graph from outside that is not valid.
#[cold]
pub(crate) fn wrong(problem: String) -> Error {
    Error::value("load", format!("the graph cannot be read: {problem}"))
}

/// Limit for the total size of a graph's buffers in bytes.
const MAX_BYTES: usize = 1 << 46;

/// Checks that each buffer has one definition before it is read, that operators accept their operands and infer the outputs that the graph states,
/// and that arrays have the sizes of their buffers.
///
/// # Errors
/// [`Error::Value`] that says what is wrong.
pub fn verify(graph: &Graph) -> Result<()> {
    if graph.promotion != promotion() {
        let mode = if graph.promotion == Promotion::NumPy {
            "on"
        } else {
            "off"
        };
        return Err(wrong(format!(
            "it was made in another promotion mode: switch `npx.set_np(dtype=True)` {mode}"
        )));
    }
    let total = graph
        .buffers
        .iter()
        .try_fold(0_usize, |sum, buffer| sum.checked_add(buffer.len_bytes));
    if total.is_none_or(|total| total > MAX_BYTES) {
        return Err(wrong("its buffers exceed the address space".to_owned()));
    }
    let mut defined: HashSet<BufferId> = HashSet::new();
    for input in &graph.inputs {
        if input.view.buffer != input.buffer || !defined.insert(input.buffer) {
            return Err(wrong(format!(
                "buffer {} is bound to two inputs",
                input.buffer.0
            )));
        }
        let len_bytes = graph.buffer(input.buffer).len_bytes;
        if let Source::Captured(x) | Source::Constant(x) = &input.source {
            let start = x.layout().offset() * x.dtype().size();
            let fits = x.layout().is_contiguous()
                && x.len() * x.dtype().size() == len_bytes
                && x.device().is_host()
                && start == 0
                && input.view.layout.offset() == 0;
            if !fits {
                return Err(wrong(format!(
                    "an array does not have the {len_bytes} bytes of buffer {}",
                    input.buffer.0
                )));
            }
        }
    }
    let mut blocks = 0_u64;
    for node in &graph.nodes {
        let bad = |problem: &str| wrong(format!("`{}`: {problem}", node.op.name));
        for buffer in node.reads() {
            if !defined.contains(&buffer) {
                return Err(bad(&format!(
                    "reads buffer {} before it is defined",
                    buffer.0
                )));
            }
        }
        for version in &node.versions {
            if graph.buffer(version.old) != graph.buffer(version.new) {
                return Err(bad("changes the size of a buffer"));
            }
        }
        match node.is_assignment {
            true => check_assignment(graph, node)?,
            false => check_call(graph, node)?,
        }
        for buffer in node.defines() {
            if !defined.insert(buffer) {
                return Err(bad(&format!("defines buffer {} again", buffer.0)));
            }
        }
        if let Rng::Blocks(count) = node.op.rng {
            let len = node
                .outputs
                .first()
                .map_or(0, |view| view.layout.len() as u64);
            let end = node.rng_block.checked_add(count(len));
            let end = end.ok_or_else(|| bad("draws too many random numbers"))?;
            let stream = node.rng_stream.checked_sub(1);
            match stream.map(|i| graph.streams.get(i)) {
                None => blocks = blocks.max(end),
                Some(Some(stream)) if end <= stream.num_blocks => {}
                Some(_) => return Err(bad("draws from a stream that the graph does not have")),
            }
        } else if node.rng_stream != 0 {
            return Err(bad("draws no random numbers, but names a stream"));
        }
    }
    if blocks > graph.num_rng_blocks {
        return Err(wrong(
            "it draws more random numbers than it states".to_owned(),
        ));
    }
    for view in &graph.outputs {
        if !defined.contains(&view.buffer) {
            return Err(wrong(format!("result {} is not defined", view.buffer.0)));
        }
    }
    for input in &graph.inputs {
        if let Some(written) = input.written {
            let is_same = graph.buffer(written) == graph.buffer(input.buffer);
            if !defined.contains(&written)
                || !is_same
                || matches!(input.source, Source::Constant(_))
            {
                return Err(wrong(format!(
                    "input {} cannot become buffer {}",
                    input.buffer.0, written.0
                )));
            }
        }
    }
    Ok(())
}

fn check_assignment(graph: &Graph, node: &Node) -> Result<()> {
    let bad = |problem: &str| wrong(format!("an assignment {problem}"));
    let ([from], [to]) = (&node.inputs[..], &node.outputs[..]) else {
        return Err(bad("has more than one value"));
    };
    let shape = match from {
        Operand::View(view) => view.layout.shape(),
        Operand::Number(_) | Operand::Constant(..) => &[],
        Operand::Absent => return Err(bad("has no value")),
    };
    if mxnet_tensor::broadcast_shapes(&[shape, to.layout.shape()])?.as_slice() != to.layout.shape()
    {
        return Err(bad("has a value that does not fit"));
    }
    if to.layout.may_self_overlap() {
        return Err(bad("writes an element twice"));
    }
    let is_whole = to.len_bytes() == graph.buffer(to.buffer).len_bytes;
    let is_version = matches!(&node.versions[..], [version] if version.new == to.buffer);
    match is_version || is_whole && node.versions.is_empty() {
        true => Ok(()),
        false => Err(bad("leaves a part of its buffer undefined")),
    }
}

/// An abstract array with the layout and dtype of a view.
fn abstract_of(graph: &Graph, view: &View) -> Result<Array> {
    let buffer = graph.buffer(view.buffer);
    let bytes = Array::without_values(&[buffer.len_bytes], DType::U8, Device::cpu(0))?;
    let storage = bytes.tensor().storage().clone();
    let tensor = Tensor::new(storage, view.layout.clone(), view.dtype)?;
    Ok(Array::from_tensor(tensor.locked(view.is_read_only)))
}

/// Abstract outputs of a call, by the rules of its operator. The node's own outputs do not matter.
///
/// # Errors
/// [`Error::Value`] for wrong operands; errors of the rules.
pub(crate) fn infer(graph: &Graph, node: &Node) -> Result<Outputs> {
    match node.op.cpu {
        Cpu::Map(_) | Cpu::Kernel(_) | Cpu::AnyDevice(_) | Cpu::Eager(_, Known::ByRule) => {}
        _ => {
            return Err(wrong(format!(
                "`{}`: cannot be part of a graph",
                node.op.name
            )));
        }
    }
    check_operands(node)?;
    let mut arrays: SmallVec<[Option<Array>; 4]> = SmallVec::new();
    for operand in &node.inputs {
        arrays.push(match operand {
            Operand::Absent => None,
            Operand::View(view) => Some(abstract_of(graph, view)?),
            Operand::Number(value) => Some(Array::weak_scalar(*value)?),
            Operand::Constant(value, dtype) => Some(Array::constant(*value, *dtype)?),
        });
    }
    let inputs: SmallVec<[Option<&Array>; 4]> = arrays.iter().map(Option::as_ref).collect();
    let _scope = Scope::enter(false, node.training);
    eager::without_values(&Call {
        op: node.op,
        inputs: &inputs,
        attrs: &node.attrs,
        outs: &[],
        dtype: node.dtype,
    })
}

/// Whether inferred outputs have the dtypes and layouts of views.
pub(crate) fn has_outputs(found: &[Array], views: &[View]) -> bool {
    let mut pairs = found.iter().zip(views);
    found.len() == views.len()
        && pairs.all(|(y, view)| y.dtype() == view.dtype && y.layout() == &view.layout)
}

/// Dtype and shape of each value; also strides and offset if its elements do not lie in C order from the first on.
fn describe<'a>(values: impl Iterator<Item = (DType, &'a Layout)>) -> String {
    let texts: Vec<String> = values
        .map(|(dtype, layout)| {
            let (name, shape) = (dtype.name(), Tuple(layout.shape()));
            match layout.is_contiguous() && layout.offset() == 0 {
                true => format!("{name} {shape}"),
                false => {
                    let (strides, offset) = (layout.strides(), layout.offset());
                    format!("{name} {shape} with strides {strides:?} and offset {offset}")
                }
            }
        })
        .collect();
    match texts.is_empty() {
        true => "no outputs".to_owned(),
        false => texts.join(", "),
    }
}

/// As [`describe`].
pub(crate) fn describe_arrays(arrays: &[Array]) -> String {
    describe(arrays.iter().map(|x| (x.dtype(), x.layout())))
}

/// As [`describe`].
pub(crate) fn describe_views(views: &[View]) -> String {
    describe(views.iter().map(|view| (view.dtype, &view.layout)))
}

/// Checks a call against the rules of its operator.
fn check_call(graph: &Graph, node: &Node) -> Result<()> {
    let bad = |problem: String| wrong(format!("`{}`: {problem}", node.op.name));
    let results = infer(graph, node)?;
    if !has_outputs(&results, &node.outputs) {
        return Err(bad(format!(
            "infers {}, the graph states {}",
            describe_arrays(&results),
            describe_views(&node.outputs)
        )));
    }
    for view in &node.outputs {
        let (needed, found) = (view.len_bytes(), graph.buffer(view.buffer).len_bytes);
        if needed != found {
            let buffer = view.buffer.0;
            return Err(bad(format!(
                "an output of {needed} bytes has buffer {buffer} of {found} bytes"
            )));
        }
    }
    let mutated = node.mutated_inputs();
    let is_mutated = |buffer: BufferId| {
        let mut views = mutated.iter().filter_map(|&i| node.inputs[i].view());
        views.any(|view| view.buffer == buffer)
    };
    let all_versions = mutated
        .iter()
        .filter_map(|&i| node.inputs[i].view())
        .all(|view| {
            node.versions
                .iter()
                .any(|version| version.old == view.buffer)
        });
    match all_versions && node.versions.iter().all(|version| is_mutated(version.old)) {
        true => Ok(()),
        false => Err(bad(
            "changes other arguments than the graph states".to_owned()
        )),
    }
}

/// Checks the number of operands and that required ones are present.
fn check_operands(node: &Node) -> Result<()> {
    let bad = |problem: String| wrong(format!("`{}`: {problem}", node.op.name));
    let params: Vec<_> = node.op.array_params().collect();
    let num_lists = params
        .iter()
        .filter(|param| param.kind == ParamKind::Arrays)
        .count();
    let num_singles = params.len() - num_lists;
    let fits = match num_lists {
        0 => node.inputs.len() == num_singles,
        lists => {
            node.inputs.len() >= num_singles
                && (node.inputs.len() - num_singles).is_multiple_of(lists)
        }
    };
    if !fits {
        return Err(bad(format!("has {} operands", node.inputs.len())));
    }
    let none: SmallVec<[Option<&Array>; 8]> = node.inputs.iter().map(|_| None).collect();
    let call = Call {
        op: node.op,
        inputs: &none,
        attrs: &node.attrs,
        outs: &[],
        dtype: None,
    };
    let context = call.context();
    for (p, param) in params.iter().enumerate() {
        let is_absent = context
            .arguments_of(p)
            .any(|i| node.inputs[i] == Operand::Absent);
        let may_be_absent =
            param.kind == ParamKind::Arrays || param.nullable || param.default == Default::None;
        if is_absent && !may_be_absent {
            return Err(bad(format!("has no operand `{}`", param.name)));
        }
    }
    Ok(())
}
