//! The graph: buffers that are written once, and nodes that call operators on views of them.
//!
//! A buffer is the memory of one storage between two writes. An array of the traced program is a [`View`]: a buffer seen
//! through a layout. A write in place makes a new version of the buffer, so every buffer has one definition and nodes can be
//! moved, merged and dropped by looking at their operands alone.

use std::sync::Arc;

use mxnet_core::{Array, Attrs, Call, OpDef, Value};
use mxnet_tensor::{DType, Device, Layout, Promotion, Scalar};
use smallvec::SmallVec;

use crate::random::Stream;

/// A buffer of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Elements of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The buffer.
    pub buffer: BufferId,
    /// Shape, strides and offset, in elements of `dtype`.
    pub layout: Layout,
    /// Data type.
    pub dtype: DType,
    /// Whether the array must not be written to.
    pub is_read_only: bool,
}

impl View {
    /// Number of bytes of the elements.
    pub fn len_bytes(&self) -> usize {
        self.layout.len() * self.dtype.size()
    }
}

/// What a node is called with.
#[derive(Clone, Debug)]
pub enum Operand {
    /// An optional argument that was not given.
    Absent,
    /// An array.
    View(View),
    /// A Python number, which promotes by its kind.
    Number(Scalar),
    /// A number of the operator's own, with a dtype.
    Constant(Scalar, DType),
}

/// Numbers are equal if their bits are: NaN is itself, and zeros of both signs differ.
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
    /// The array, if it is one.
    pub fn view(&self) -> Option<&View> {
        match self {
            Operand::View(view) => Some(view),
            _ => None,
        }
    }
}

/// A write to a part of a buffer: `new` has the elements of `old` where the node does not write.
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
    /// Values of its attributes.
    pub attrs: Attrs,
    /// Its array arguments. Arguments that the operator changes are views of the buffer before the change.
    pub inputs: SmallVec<[Operand; 4]>,
    /// Its results.
    pub outputs: SmallVec<[View; 1]>,
    /// Buffers of which it writes a part: of its output if that is a copy into an array, or of arguments that it changes.
    pub versions: SmallVec<[Version; 1]>,
    /// The dtype that the caller forces the call to compute in.
    pub dtype: Option<DType>,
    /// Whether this was a training pass.
    pub training: bool,
    /// Copies the input to the elements of the output, converting them, whatever the strides of both: an assignment.
    pub is_assignment: bool,
    /// First block of random numbers that it draws, counted from the start of a run.
    pub rng_block: u64,
    /// Where it draws them from: 0 is the process's stream, `i + 1` is stream `i` of the graph.
    pub rng_stream: usize,
    /// The line of the traced program that called it, if lines are named.
    pub line: Option<Arc<str>>,
}

impl Node {
    /// The buffers that it reads. Parts that it keeps of an older version count.
    pub fn reads(&self) -> impl Iterator<Item = BufferId> + '_ {
        let views = self.inputs.iter().filter_map(Operand::view);
        let kept = self.versions.iter().map(|version| version.old);
        views.map(|view| view.buffer).chain(kept)
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
        let cx = call.cx();
        let arguments = self.op.mutates.iter().flat_map(|&p| cx.arguments_of(p));
        arguments
            .filter(|&i| self.inputs[i].view().is_some())
            .collect()
    }

    /// The buffer of a view while the node runs: the new version of an argument that it changes.
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

/// Where the elements of an input come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Argument number `i` of the call.
    Argument(usize),
    /// An array that the traced function found, by its storage: later writes to it are seen.
    Captured(Array),
    /// An array that the traced function made from values of the host.
    Constant(Array),
}

/// A buffer that the graph is given.
#[derive(Clone, Debug)]
pub struct Input {
    /// The buffer.
    pub buffer: BufferId,
    /// Where its elements come from.
    pub source: Source,
    /// How the array is seen when the call binds it: offsets of all views of the buffer count from the start of this one's elements.
    pub view: View,
    /// The buffer whose elements the array has after the call, if the graph writes to it.
    pub written: Option<BufferId>,
}

/// What is known of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Size in bytes.
    pub len_bytes: usize,
    /// Where it lies.
    pub device: Device,
}

/// A traced function.
#[derive(Clone, Debug)]
pub struct Graph {
    /// What it is called in messages.
    pub name: String,
    /// All buffers, by their number.
    pub buffers: Vec<Buffer>,
    /// What it is given.
    pub inputs: Vec<Input>,
    /// The calls, each behind the definitions of what it reads.
    pub nodes: Vec<Node>,
    /// The results.
    pub outputs: Vec<View>,
    /// Blocks of random numbers that a run draws from the process's stream.
    pub num_rng_blocks: u64,
    /// Generators of their own that nodes draw from.
    pub streams: Vec<Stream>,
    /// The rules of promotion it was traced under.
    pub promotion: Promotion,
}

impl Graph {
    /// A graph without nodes.
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

    /// What is known of a buffer.
    pub fn buffer(&self, id: BufferId) -> Buffer {
        self.buffers[id.0 as usize]
    }

    /// The buffers that must be there at the end: those of the results, and those that inputs take on.
    pub fn results(&self) -> impl Iterator<Item = BufferId> + '_ {
        let outputs = self.outputs.iter().map(|view| view.buffer);
        outputs.chain(self.inputs.iter().filter_map(|input| input.written))
    }

    /// Whether a buffer is given, and which input it is.
    pub fn input_of(&self, buffer: BufferId) -> Option<usize> {
        self.inputs.iter().position(|input| input.buffer == buffer)
    }
}
