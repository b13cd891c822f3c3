//! Compiles a graph to steps: plans the memory and prepares the kernel of each node once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use mxnet_core::launch::Kernel;
use mxnet_core::mode::{Scope, is_recording};
use mxnet_core::plan::Plan;
use mxnet_core::profiler::{Label, label};
use mxnet_core::tiles::{ArrayForm, ReducedTiles, Tiles};
use mxnet_core::{Array, Call, Cpu, Error, Result, cpu, eager};
use mxnet_tensor::{DType, Device, DeviceKind, Layout, Storage, Tensor};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::fuse::{self, Group};
use crate::ir::{BufferId, Graph, Node, Operand, Source, View};
use crate::passes::Choice;
use crate::plan::{BufferLocation, MemoryPlan};
use crate::provider;

/// Where a step finds one of its tensors in a run.
#[derive(Clone, Debug)]
pub(crate) enum TensorRef {
    /// An optional argument that was not given.
    Absent,
    /// A number, known when the graph is compiled.
    Fixed(Tensor),
    /// Tensor `i` of the arena.
    Arena(usize),
    /// Tensor `i` of [`Executable::bound`]: views of inputs and of new memory, made for each run.
    Bound(usize),
}

/// A tensor that is made for each run.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub location: BufferLocation,
    pub layout: Layout,
    pub dtype: DType,
    pub is_read_only: bool,
}

/// The work of a step.
pub(crate) enum Work {
    /// Runs one kernel.
    Kernel(Kernel),
    /// Runs several elementwise nodes, block by block.
    Fused(Box<Tiles>),
    /// Runs several elementwise nodes and the reduction of a result, block by block. The first output is that of the reduction.
    Reduced(Box<ReducedTiles>),
    /// Calls the operator on arrays, and copies the results to the outputs.
    Call {
        /// Whether the operator is written in Python.
        is_python: bool,
    },
    /// Copies the input to the output.
    Copy,
}

/// One step of a run.
pub(crate) struct Step {
    /// The node that it executes; for a group, its last one.
    pub node: usize,
    pub work: Work,
    /// The first node of a fused group; else `node`.
    pub first: usize,
    pub inputs: SmallVec<[TensorRef; 4]>,
    pub outputs: SmallVec<[TensorRef; 2]>,
    /// Copies of the elements that a partial write keeps, done before the step, as byte arrays.
    pub carried: SmallVec<[(TensorRef, TensorRef); 1]>,
    /// Whether it runs side by side with the step before.
    pub joins: bool,
    /// What the profiler calls it.
    pub name: StepName,
}

/// The name of a step, made when it is first profiled.
#[derive(Default)]
pub(crate) struct StepName(OnceLock<(Label, Label)>);

impl StepName {
    /// Labels of the names of the step's operators, and of its source line.
    pub fn labels(&self, step: &Step, nodes: &[Node]) -> (Label, Label) {
        *self.0.get_or_init(|| {
            let node = &nodes[step.node];
            let name = match &step.work {
                Work::Fused(_) | Work::Reduced(_) => {
                    let names: Vec<&str> = nodes[step.first..=step.node]
                        .iter()
                        .map(|node| node.op.name)
                        .collect();
                    format!("fused({})", names.join(", "))
                }
                _ => node.op.name.to_owned(),
            };
            (
                label(&name),
                label(node.line.as_deref().unwrap_or_default()),
            )
        })
    }
}

/// The arena of one run, and its tensors.
pub(crate) struct Arena {
    pub storage: Arc<Storage>,
    pub tensors: Vec<Tensor>,
    /// Tickets of operators in Python, until the run ends, see [`Executable::call`].
    pub kept: Mutex<Vec<Arc<Storage>>>,
}

/// A result of the graph.
pub(crate) enum ResultRef {
    /// A bound tensor, returned as it is: new memory, or an input.
    Bound(usize),
    /// A copy of a bound tensor. For constants, which callers must not change.
    CopyOf(usize),
}

/// A compiled graph. Several threads may run it at once.
pub struct Executable {
    pub(crate) graph: Graph,
    pub(crate) plan: MemoryPlan,
    pub(crate) steps: Vec<Step>,
    /// Tensors that are made for each run.
    pub(crate) bound: Vec<Bound>,
    /// Tensors in the arena: byte offset of the buffer, layout, dtype, and whether it is read-only.
    pub(crate) in_arena: Vec<(usize, Layout, DType, bool)>,
    pub(crate) results: Vec<ResultRef>,
    /// Copies to inputs at the end of a run, as byte arrays.
    pub(crate) written: Vec<(TensorRef, TensorRef)>,
    /// Arenas that no run is using.
    pub(crate) arenas: Mutex<Vec<Arena>>,
    pub(crate) device: Device,
    /// Estimated time of a run on one core.
    pub(crate) cost_ns: u64,
    /// Size of the arenas: that of the plan, and what the kernels of a run needed beyond the buffers in use.
    pub(crate) arena_bytes: AtomicUsize,
    /// See [`Executable::workspace_bytes`].
    pub(crate) workspace_bytes: AtomicUsize,
}

/// Abstract stand-ins for the memory of a run, with which kernels are prepared.
struct Shadows {
    inputs: Vec<Arc<Storage>>,
    fresh: Vec<Arc<Storage>>,
    arena: Arc<Storage>,
}

fn without_memory(len_bytes: usize, device: Device) -> Result<Arc<Storage>> {
    let array = Array::without_values(&[len_bytes], DType::U8, device)?;
    Ok(array.tensor().storage().clone())
}

/// Kernels with a lower estimated cost do not run side by side: waking another thread takes as long.
const MIN_BESIDE_NS: u64 = 30_000;

/// Whether the node runs side by side with the one before.
fn follows(side_by_side: &[(usize, usize)], node: usize) -> bool {
    let mut ranges = side_by_side.iter();
    ranges.any(|(first, last)| (first + 1..=*last).contains(&node))
}

/// `layout` with its offset increased by `start` bytes.
pub(crate) fn shifted(layout: &Layout, dtype: DType, start: usize) -> Layout {
    layout.with_offset(layout.offset() + start / dtype.size())
}

struct Builder<'a> {
    graph: &'a Graph,
    plan: &'a MemoryPlan,
    shadows: Shadows,
    bound: Vec<Bound>,
    in_arena: Vec<(usize, Layout, DType, bool)>,
}

impl Builder<'_> {
    /// The abstract array that stands for a view.
    fn shadow(&self, view: &View, buffer: BufferId) -> Result<Array> {
        let (storage, start) = match self.plan.locations[buffer.0 as usize] {
            BufferLocation::Input(i) => (&self.shadows.inputs[i], 0),
            BufferLocation::Fresh(i) => (&self.shadows.fresh[i], 0),
            BufferLocation::Arena(start) => (&self.shadows.arena, start),
            BufferLocation::Nowhere => return Err(unplaced(self.graph)),
        };
        let layout = shifted(&view.layout, view.dtype, start);
        Ok(Array::from_tensor(
            Tensor::new(storage.clone(), layout, view.dtype)?.locked(view.is_read_only),
        ))
    }

    /// Where a run finds the tensor of a view.
    fn tensor(&mut self, view: &View, buffer: BufferId) -> Result<TensorRef> {
        let location = self.plan.locations[buffer.0 as usize];
        match location {
            BufferLocation::Arena(start) => {
                let layout = shifted(&view.layout, view.dtype, start);
                self.in_arena
                    .push((start, layout, view.dtype, view.is_read_only));
                Ok(TensorRef::Arena(self.in_arena.len() - 1))
            }
            BufferLocation::Input(_) | BufferLocation::Fresh(_) => {
                self.bound.push(Bound {
                    location,
                    layout: view.layout.clone(),
                    dtype: view.dtype,
                    is_read_only: view.is_read_only,
                });
                Ok(TensorRef::Bound(self.bound.len() - 1))
            }
            BufferLocation::Nowhere => Err(unplaced(self.graph)),
        }
    }

    /// All bytes of a buffer, as a 1-d tensor.
    fn bytes(&mut self, buffer: BufferId) -> Result<TensorRef> {
        let len_bytes = self.graph.buffer(buffer).len_bytes;
        let view = View {
            buffer,
            layout: Layout::contiguous(&[len_bytes]),
            dtype: DType::U8,
            is_read_only: false,
        };
        self.tensor(&view, buffer)
    }

    /// An operand of a node: the abstract array, and where a run finds it.
    fn operand(
        &mut self,
        node: &Node,
        i: usize,
        is_mutated: bool,
    ) -> Result<(Option<Array>, TensorRef)> {
        Ok(match &node.inputs[i] {
            Operand::Absent => (None, TensorRef::Absent),
            Operand::View(view) => {
                let buffer = node.buffer_of(view, is_mutated);
                (Some(self.shadow(view, buffer)?), self.tensor(view, buffer)?)
            }
            Operand::Number(value) => {
                let (number, tensor) = fixed(Array::weak_scalar(*value)?);
                (Some(number), tensor)
            }
            Operand::Constant(value, dtype) => {
                let (number, tensor) = fixed(Array::constant(*value, *dtype)?);
                (Some(number), tensor)
            }
        })
    }

    /// The copies of kept elements that must be done before a node.
    fn carried(&mut self, node: &Node) -> Result<SmallVec<[(TensorRef, TensorRef); 1]>> {
        let mut carried = SmallVec::new();
        for version in &node.versions {
            let location = |buffer: BufferId| self.plan.locations[buffer.0 as usize];
            if location(version.old) != location(version.new) {
                carried.push((self.bytes(version.old)?, self.bytes(version.new)?));
            }
        }
        Ok(carried)
    }

    /// The step of a single node, and its estimated cost.
    fn step(&mut self, at: usize) -> Result<(Step, u64)> {
        let node = &self.graph.nodes[at];
        let mutated = node.mutated_inputs();
        let (mut arrays, mut inputs) = (SmallVec::<[Option<Array>; 4]>::new(), SmallVec::new());
        for i in 0..node.inputs.len() {
            let (array, tensor) = self.operand(node, i, mutated.contains(&i))?;
            arrays.push(array);
            inputs.push(tensor);
        }
        let mut outs = SmallVec::<[Array; 2]>::new();
        let mut outputs = SmallVec::new();
        for view in &node.outputs {
            outs.push(self.shadow(view, view.buffer)?);
            outputs.push(self.tensor(view, view.buffer)?);
        }
        let carried = self.carried(node)?;
        let call = || Work::Call {
            is_python: provider::is_python(node.op.name),
        };
        let (work, cost_ns) = match node.op.cpu {
            _ if node.is_assignment => {
                let bytes: usize = node.outputs.iter().map(View::len_bytes).sum();
                (Work::Copy, bytes as u64 / 20)
            }
            Cpu::Map(_) | Cpu::Kernel(_) | Cpu::AnyDevice(_) => {
                let arguments: SmallVec<[Option<&Array>; 4]> =
                    arrays.iter().map(Option::as_ref).collect();
                let given: SmallVec<[Option<&Array>; 2]> = outs.iter().map(Some).collect();
                let _scope = Scope::enter(is_recording(), node.training);
                let prepared = eager::prepare(&Call {
                    op: node.op,
                    inputs: &arguments,
                    attrs: &node.attrs,
                    outs: &given,
                    dtype: node.dtype,
                })?;
                match prepared {
                    Plan::Launch(launch) => (Work::Kernel(launch.kernel), launch.cost_ns),
                    Plan::Expand(_) => (call(), 0),
                }
            }
            _ => (call(), 0),
        };
        Ok((
            Step {
                node: at,
                work,
                inputs,
                outputs,
                carried,
                first: at,
                joins: false,
                name: StepName::default(),
            },
            cost_ns,
        ))
    }

    /// The step of a fused group of elementwise nodes.
    fn fused_step(&mut self, group: Group) -> Result<(Step, u64)> {
        let (mut inputs, mut outputs) = (SmallVec::new(), SmallVec::new());
        let mut forms = Vec::new();
        let form = |array: &Array| ArrayForm {
            layout: array.layout().clone(),
            dtype: array.dtype(),
            address: array.tensor().data_ptr() as usize,
        };
        for view in &group.outputs {
            outputs.push(self.tensor(view, view.buffer)?);
            forms.push(form(&self.shadow(view, view.buffer)?));
        }
        for operand in &group.inputs {
            let (array, tensor) = match operand {
                Operand::View(view) => (
                    self.shadow(view, view.buffer)?,
                    self.tensor(view, view.buffer)?,
                ),
                Operand::Number(value) => fixed(Array::weak_scalar(*value)?),
                Operand::Constant(value, dtype) => fixed(Array::constant(*value, *dtype)?),
                Operand::Absent => continue,
            };
            forms.push(form(&array));
            inputs.push(tensor);
        }
        let work = match group.reduced {
            None => Work::Fused(Box::new(group.tiles(&self.graph.nodes, &forms)?)),
            Some(tiles) => Work::Reduced(Box::new(tiles)),
        };
        let step = Step {
            node: group.last,
            work,
            inputs,
            outputs,
            carried: SmallVec::new(),
            first: group.first,
            joins: false,
            name: StepName::default(),
        };
        Ok((step, group.cost_ns))
    }
}

/// A number as an array, and as a tensor of the compiled graph.
fn fixed(number: Array) -> (Array, TensorRef) {
    let tensor = number.tensor().clone();
    (number, TensorRef::Fixed(tensor))
}

#[cold]
fn unplaced(graph: &Graph) -> Error {
    Error::internal(
        "graph",
        format!(
            "a buffer of `{}` has no location in the memory plan",
            graph.name
        ),
    )
}

/// Options of compilation.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether elementwise nodes are fused and run block by block.
    pub fuses: bool,
    /// Whether independent kernels that threads do not divide well run side by side.
    pub side_by_side: bool,
}

impl Options {
    /// The options that a function chose by the names of passes.
    pub fn of(choice: &Choice) -> Options {
        Options {
            fuses: !choice.is_off("fuse"),
            side_by_side: !choice.is_off("gather_independent_nodes"),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fuses: true,
            side_by_side: true,
        }
    }
}

impl Executable {
    /// Compiles a graph.
    ///
    /// # Errors
    /// Errors of the operators' rules; none for a graph that was traced.
    pub fn new(graph: Graph, options: Options) -> Result<Executable> {
        let mut graph = graph;
        let devices = || graph.buffers.iter().map(|buffer| buffer.device);
        let is_elsewhere = |device: &Device| device.kind() != DeviceKind::Cpu;
        let device = devices().find(is_elsewhere).or_else(|| devices().next());
        let device = device.unwrap_or(Device::cpu(0));
        let groups = match options.fuses && !is_elsewhere(&device) {
            true => fuse::groups(&mut graph)?,
            false => Vec::new(),
        };
        let plan = MemoryPlan::new(&graph, &groups, options.side_by_side);
        if is_elsewhere(&device) {
            // On other devices the nodes are called one after the other; streams and events order them there.
            return Ok(Executable {
                graph,
                plan,
                steps: Vec::new(),
                bound: Vec::new(),
                in_arena: Vec::new(),
                results: Vec::new(),
                written: Vec::new(),
                arenas: Mutex::new(Vec::new()),
                device,
                cost_ns: 0,
                arena_bytes: AtomicUsize::new(0),
                workspace_bytes: AtomicUsize::new(0),
            });
        }
        let arena_bytes = AtomicUsize::new(plan.arena_bytes);
        let memory = |buffer: BufferId| without_memory(graph.buffer(buffer).len_bytes, device);
        let shadows = Shadows {
            inputs: graph
                .inputs
                .iter()
                .map(|input| memory(input.buffer))
                .collect::<Result<_>>()?,
            fresh: plan
                .fresh
                .iter()
                .map(|&buffer| memory(buffer))
                .collect::<Result<_>>()?,
            arena: without_memory(plan.arena_bytes, device)?,
        };
        let mut builder = Builder {
            graph: &graph,
            plan: &plan,
            shadows,
            bound: Vec::new(),
            in_arena: Vec::new(),
        };
        let (mut steps, mut cost_ns, mut was_long) = (Vec::new(), 0, false);
        let mut groups = groups.into_iter().peekable();
        let mut at = 0;
        while at < graph.nodes.len() {
            let (mut step, cost) = match groups.next_if(|group| group.first == at) {
                Some(group) => {
                    at = group.last + 1;
                    builder.fused_step(group)?
                }
                None => {
                    at += 1;
                    builder.step(at - 1)?
                }
            };
            cost_ns += cost;
            let is_long = cost >= MIN_BESIDE_NS && matches!(step.work, Work::Kernel(_));
            step.joins = is_long && was_long && follows(&plan.side_by_side, step.node);
            was_long = is_long;
            steps.push(step);
        }
        let mut results = Vec::new();
        for view in &graph.outputs {
            let taken_on = graph
                .inputs
                .iter()
                .find(|input| input.written == Some(view.buffer));
            let (buffer, is_constant) = match (taken_on, graph.input_of(view.buffer)) {
                (Some(input), _) => (input.buffer, false),
                (None, Some(i)) => (
                    view.buffer,
                    matches!(graph.inputs[i].source, Source::Constant(_)),
                ),
                (None, None) => (view.buffer, false),
            };
            let TensorRef::Bound(i) = builder.tensor(view, buffer)? else {
                return Err(unplaced(&graph));
            };
            results.push(match is_constant {
                true => ResultRef::CopyOf(i),
                false => ResultRef::Bound(i),
            });
        }
        let mut written = Vec::new();
        for input in &graph.inputs {
            if let Some(last) = input.written
                && plan.locations[last.0 as usize] != plan.locations[input.buffer.0 as usize]
            {
                written.push((builder.bytes(last)?, builder.bytes(input.buffer)?));
            }
        }
        let (bound, in_arena) = (builder.bound, builder.in_arena);
        Ok(Executable {
            graph,
            plan,
            steps,
            bound,
            in_arena,
            results,
            written,
            arenas: Mutex::new(Vec::new()),
            device,
            cost_ns,
            arena_bytes,
            workspace_bytes: AtomicUsize::new(0),
        })
    }

    /// The compiled graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Estimated time of a run on one core.
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// The memory plan.
    pub fn memory(&self) -> &MemoryPlan {
        &self.plan
    }

    /// Working memory of the kernels in the last run, beyond the plan: by how much the arena was larger, and the most that one step allocated besides, such
    /// as blocks of fused operators and results of operators that are called. All allocations of a step are added up, also those that were freed before
    /// others were made, such as those of each turn of a loop. 0 before the first run.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that a run's arena will have. After the first run the arena also has room for the working memory of kernels.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes.load(Ordering::Relaxed)
    }

    /// The number of steps, and the number of nodes that were fused into steps of other nodes.
    pub fn num_steps(&self) -> usize {
        self.steps.len()
    }

    /// An arena that no other run uses.
    pub(crate) fn take_arena(&self) -> Result<Arena> {
        if let Some(arena) = self.arenas.lock().pop() {
            return Ok(arena);
        }
        let storage = Storage::allocate(self.arena_bytes(), self.device)?;
        let tensor = |(_, layout, dtype, is_read_only): &(usize, Layout, DType, bool)| {
            let made = Tensor::new(storage.clone(), layout.clone(), *dtype)?;
            Ok(made.locked(*is_read_only))
        };
        Ok(Arena {
            tensors: self.in_arena.iter().map(tensor).collect::<Result<_>>()?,
            storage: storage.clone(),
            kept: Mutex::default(),
        })
    }
}

/// Copies between tensors of a run.
pub(crate) fn copy(from: &Tensor, to: &Tensor) -> Result<()> {
    cpu::copy(from, to, &mxnet_core::Pool)
}
