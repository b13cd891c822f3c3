//! The graph: buffers that are written once, and nodes that call operators on views of buffers.
//!
//! A buffer is the memory of a storage between two writes. An array of the traced program is a [`View`] of a buffer. A write in place makes a new
//! version of the buffer. So every buffer has one definition, and passes can move, merge and remove nodes by comparing their operands only.

use std::sync::Arc;

use mxnet_core::profiler::Label;
use mxnet_core::{Array, Attrs, Call, OpDef, Value};
use mxnet_tensor::{DType, Device, Layout, Promotion, Scalar};
use smallvec::SmallVec;

use crate::random::Stream;

/// A buffer of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// A view of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The buffer.
    pub buffer: BufferId,
    /// Shape, strides and offset, in elements of `dtype`.
    pub layout: Layout,
    /// Data type.
    pub dtype: DType,
    /// Whether writing through the view is forbidden.
    pub is_read_only: bool,
}

impl View {
    /// Size of the elements in bytes.
    pub fn len_bytes(&self) -> usize {
        self.layout.len() * self.dtype.size()
    }
}

/// An operand of a node.
#[derive(Clone, Debug)]
pub enum Operand {
    /// An optional argument that was not given.
    Absent,
    /// An array.
    View(View),
    /// A Python number, which promotes by its kind.
    Number(Scalar),
    /// A constant of the operator, with a dtype.
    Constant(Scalar, DType),
}

/// Numbers are equal if their bits are: NaN equals itself, and 0.0 differs from -0.0.
impl PartialEq for Operand {
    fn eq(&self, other: &Operand) -> bool {
        match (self, other) {
            (Operand::Absent, Operand::Absent) => true,
            (Operand::View(a), Operand::View(b)) => a == b,
            (Operand::Number(a), Operand::Number(b)) => Value::Scalar(*a) == Value::Scalar(*b),
            (Operand::Constant(a, dtype), Operand::Constant(b, other)) => {
                dtype == other && Value::Scalar(*a) == Value::Scalar(*b)
            }
            _ => false,
        }
    }
}

impl Operand {
    /// The view, if it is one.
    pub fn view(&self) -> Option<&View> {
        match self {
            Operand::View(view) => Some(view),
            _ => None,
        }
    }
}

/// A partial write to a buffer: `new` has the elements of `old` where the node does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The buffer before.
    pub old: BufferId,
    /// The buffer after.
    pub new: BufferId,
}

/// One call of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operator.
    pub op: &'static OpDef,
    /// Its attributes.
    pub attrs: Attrs,
    /// Its array arguments. An argument that the operator changes is a view of the version before the change.
    pub inputs: SmallVec<[Operand; 4]>,
    /// Its results.
    pub outputs: SmallVec<[View; 1]>,
    /// Partial writes: to the output of an assignment, or to arguments that the operator changes.
    pub versions: SmallVec<[Version; 1]>,
    /// The dtype to compute in, if the caller set one.
    pub dtype: Option<DType>,
    /// Whether training mode was on.
    pub training: bool,
    /// Whether it is an assignment: copies the input to the elements of the output, with conversion of the dtype.
    pub is_assignment: bool,
    /// First block of its random numbers, counted from the start of a run.
    pub rng_block: u64,
    /// Its stream of random numbers: 0 is the process's stream, `i + 1` is stream `i` of the graph.
    pub rng_stream: usize,
    /// The composite operator whose body called it, which errors name.
    pub caller: Option<&'static OpDef>,
    /// The source line of the traced program, if lines are tracked.
    pub line: Option<Arc<str>>,
    /// The profiler's scope in which it was traced.
    pub scope: Label,
    /// Whether a backward pass called it.
    pub is_backward: bool,
}

impl Node {
    /// The buffers that it reads, including old versions in partial writes.
    pub fn reads(&self) -> impl Iterator<Item = BufferId> + '_ {
        let views = self.inputs.iter().filter_map(Operand::view);
        let kept = self.versions.iter().map(|version| version.old);
        views.map(|view| view.buffer).chain(kept)
    }

    /// An attribute; `None` if its operator has none of this name.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        let params = self.op.params.iter().filter(|param| param.is_attribute());
        let mut entries = params.zip(self.attrs.values());
        (entries.find(|(param, _)| param.name == name)).map(|(_, value)| value)
    }

    /// The buffers that it defines.
    pub fn defines(&self) -> impl Iterator<Item = BufferId> + '_ {
        let changed = self.versions.iter().map(|version| version.new);
        let outputs = self.outputs.iter().map(|view| view.buffer);
        let is_changed = |buffer: &BufferId| self.versions.iter().any(|v| v.new == *buffer);
        outputs
            .filter(move |buffer| !is_changed(buffer))
            .chain(changed)
    }

    /// Positions of the arguments whose elements it changes.
    pub fn mutated_inputs(&self) -> Vec<usize> {
        if self.op.mutates.is_empty() {
            return Vec::new();
        }
        let none: SmallVec<[Option<&Array>; 8]> = self.inputs.iter().map(|_| None).collect();
        let call = Call {
            op: self.op,
            inputs: &none,
            attrs: &self.attrs,
            outs: &[],
            dtype: None,
        };
        let context = call.context();
        let arguments = self
            .op
            .mutates
            .iter()
            .flat_map(|&p| context.arguments_of(p));
        arguments
            .filter(|&i| self.inputs[i].view().is_some())
            .collect()
    }

    /// The buffer of a view while the node runs: for an argument that it changes, the new version.
    pub fn buffer_of(&self, view: &View, is_mutated: bool) -> BufferId {
        let version = self
            .versions
            .iter()
            .find(|version| version.old == view.buffer);
        match version.filter(|_| is_mutated) {
            Some(version) => version.new,
            None => view.buffer,
        }
    }
}

/// Origin of an input's elements.
#[derive(Clone, Debug)]
pub enum Source {
    /// Argument number `i` of the call.
    Argument(usize),
    /// An array that the traced function used from outside. It is shared, so later writes to it are seen.
    Captured(Array),
    /// An array that the traced function made from values on the host.
    Constant(Array),
}

/// An input of a graph.
#[derive(Clone, Debug)]
pub struct Input {
    /// The buffer.
    pub buffer: BufferId,
    /// Origin of its elements.
    pub source: Source,
    /// The view that is bound at the call. Offsets of all views of the buffer are relative to its first element.
    pub view: View,
    /// The buffer that the array holds after the call, if the graph writes to it.
    pub written: Option<BufferId>,
}

/// Size and device of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Size in bytes.
    pub len_bytes: usize,
    /// Device.
    pub device: Device,
}

/// A traced function.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Name in messages.
    pub name: String,
    /// All buffers, by their number.
    pub buffers: Vec<Buffer>,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// The calls, each after the definitions of the buffers that it reads.
    pub nodes: Vec<Node>,
    /// The results.
    pub outputs: Vec<View>,
    /// Number of blocks of random numbers that a run draws from the process's stream.
    pub num_rng_blocks: u64,
    /// Generators that nodes draw from.
    pub streams: Vec<Stream>,
    /// The promotion mode of the trace.
    pub promotion: Promotion,
}

impl Graph {
    /// A graph without buffers and nodes.
    pub fn new(name: &str, promotion: Promotion) -> Graph {
        Graph {
            name: name.to_owned(),
            buffers: Vec::new(),
            inputs: Vec::new(),
            nodes: Vec::new(),
            outputs: Vec::new(),
            num_rng_blocks: 0,
            streams: Vec::new(),
            promotion,
        }
    }

    /// A new buffer.
    pub fn add_buffer(&mut self, len_bytes: usize, device: Device) -> BufferId {
        self.buffers.push(Buffer { len_bytes, device });
        BufferId(self.buffers.len() as u32 - 1)
    }

    /// Size and device of a buffer.
    pub fn buffer(&self, id: BufferId) -> Buffer {
        self.buffers[id.0 as usize]
    }

    /// The buffers that are needed at the end: those of the results, and those that inputs hold then.
    pub fn results(&self) -> impl Iterator<Item = BufferId> + '_ {
        let outputs = self.outputs.iter().map(|view| view.buffer);
        outputs.chain(self.inputs.iter().filter_map(|input| input.written))
    }

    /// The number of the input that a buffer is, if it is one.
    pub fn input_of(&self, buffer: BufferId) -> Option<usize> {
        self.inputs.iter().position(|input| input.buffer == buffer)
    }
}
