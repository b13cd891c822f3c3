//! Programs of several graphs, for functions in which the shape of a result depends on values: the graph is split at such an operator. The operator
//! is called, and the next piece is compiled for the length that it found.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mxnet_core::mode::Scope;
use mxnet_core::{Array, Call, Error, Outputs, Result, Rng, RngState, eager};
use mxnet_tensor::{DType, Layout, Tensor};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::template::{Symbol, Template, depends_on_values};
use crate::compile::{Executable, Options};
use crate::ir::{BufferId, Graph, Input, Node, Operand, Source, View};
use crate::passes::{self, Choice};

/// A function whose graph is split into pieces.
pub struct Program {
    template: Arc<Template>,
    /// Nodes before this one belong to the function, later ones to its gradient.
    num_forward: usize,
    /// Results before this one belong to the function, later ones to its gradient.
    num_outputs: usize,
    /// Arguments from this one on are cotangents.
    num_arguments: usize,
    pieces: Vec<Piece>,
    options: Options,
    choice: Choice,
    made: Mutex<Vec<CacheEntry>>,
}

/// A cache entry: number of the piece, sizes, and the compiled result.
type CacheEntry = (usize, Vec<i64>, Arc<Compiled>);

/// A range of nodes that runs as one graph.
struct Piece {
    first: usize,
    /// The node after the last one: it is called separately. Or the number of nodes.
    end: usize,
    /// Buffers that are computed here and read by later pieces.
    gives: Vec<BufferId>,
    /// Numbers of the inputs that are written here.
    writes: Vec<usize>,
}

/// What is compiled for certain sizes.
enum Compiled {
    /// A piece, and the node that is called after it.
    Piece(Box<CompiledPiece>),
    /// The layouts of the results, and the gradient.
    End(Box<End>),
}

struct CompiledPiece {
    executable: Arc<Executable>,
    /// The buffer of each input that is not a constant.
    binds: Vec<BufferId>,
    call: Option<Node>,
    num_rng_blocks: u64,
}

struct End {
    /// The whole function as one graph.
    graph: Arc<Graph>,
    /// The gradient, and its arguments: buffers, then cotangents.
    backward: Option<(Arc<Executable>, Vec<BufferId>)>,
}

/// Largest number of compiled pieces and gradients in the cache.
const MAX_MADE: usize = 256;

/// The array of a buffer, and the view as which the graph knows it.
#[derive(Clone)]
struct HeldBuffer {
    array: Array,
    view: View,
}

/// Result of a run.
pub struct Finished {
    /// The results.
    pub outputs: Outputs,
    /// Random numbers: the first block of each piece, and the stream position of that block.
    pub random: Vec<(u64, RngState)>,
    /// The arrays that the gradient needs, in order, with their versions.
    pub residuals: Vec<(Array, u64)>,
    /// The gradient.
    pub backward: Option<Arc<Executable>>,
    /// The graph of the whole run.
    pub graph: Arc<Graph>,
}

fn bytes_of(graph: &Graph, buffer: BufferId) -> View {
    View {
        buffer,
        layout: Layout::contiguous(&[graph.buffer(buffer).len_bytes]),
        dtype: DType::U8,
        is_read_only: false,
    }
}

/// The elements of a view in a held buffer.
fn seen(held: &HeldBuffer, view: &View) -> Result<Array> {
    let start = |layout: &Layout, dtype: DType| (layout.offset() * dtype.size()) as isize;
    let shift =
        start(held.array.layout(), held.array.dtype()) - start(&held.view.layout, held.view.dtype);
    let offset = view.layout.offset() as isize + shift / view.dtype.size() as isize;
    let layout = view.layout.with_offset(offset.unsigned_abs());
    let storage = held.array.tensor().storage().clone();
    Ok(Array::from_tensor(
        Tensor::new(storage, layout, view.dtype)?.locked(view.is_read_only),
    ))
}

impl Program {
    /// A program for a template with lengths that depend on values.
    ///
    /// # Errors
    /// The reason why it cannot run in pieces.
    pub fn new(
        template: Template,
        (num_forward, num_outputs, num_arguments): (usize, usize, usize),
        choice: Choice,
    ) -> std::result::Result<Program, String> {
        let graph = template.traced();
        if choice.memory_budget.is_some() {
            return Err("a memory budget requires a graph in one piece".to_owned());
        }
        if !graph.streams.is_empty() {
            return Err("it draws random numbers from a generator".to_owned());
        }
        if template.decides_by_results() {
            return Err("it branches on a length that is known only when it runs".to_owned());
        }
        let counted: HashSet<BufferId> = (template.symbols().iter())
            .filter_map(|symbol| match symbol {
                Symbol::Computed {
                    buffer,
                    depends_on_values: true,
                    ..
                } => Some(*buffer),
                _ => None,
            })
            .collect();
        let is_cut = |node: &Node| node.defines().any(|buffer| counted.contains(&buffer));
        if graph.nodes[num_forward..].iter().any(is_cut) {
            return Err("the shape of an array in its gradient depends on values".to_owned());
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut first = 0;
        for at in 0..=num_forward {
            if at < num_forward && !is_cut(&graph.nodes[at]) {
                continue;
            }
            let written = pieces.iter().flat_map(|piece| &piece.writes).copied();
            let written: HashSet<usize> = written.collect();
            pieces.push(piece(graph, first, at, &written, at == num_forward));
            first = at + 1;
        }
        Ok(Program {
            template: Arc::new(template),
            num_forward,
            num_outputs,
            num_arguments,
            pieces,
            options: Options::of(&choice),
            choice,
            made: Mutex::new(Vec::new()),
        })
    }

    /// The graph for all sizes.
    pub fn template(&self) -> &Arc<Template> {
        &self.template
    }

    /// The number of pieces.
    pub fn num_pieces(&self) -> usize {
        self.pieces.len()
    }

    /// What is compiled for piece `which` at these sizes; from the cache if possible.
    fn made(
        &self,
        which: usize,
        sizes: &[i64],
        make: impl FnOnce() -> Result<Compiled>,
    ) -> Result<Arc<Compiled>> {
        {
            let mut made = self.made.lock();
            let found = made
                .iter()
                .rposition(|(i, known, _)| *i == which && known == sizes);
            if let Some(at) = found {
                let entry = made.remove(at);
                let found = entry.2.clone();
                made.push(entry);
                return Ok(found);
            }
        }
        let new = Arc::new(make()?);
        let mut made = self.made.lock();
        let oldest = (made.len() >= MAX_MADE).then(|| made.remove(0));
        made.push((which, sizes.to_vec(), new.clone()));
        // It may call a module's code, which runs when the list is unlocked.
        drop(made);
        drop(oldest);
        Ok(new)
    }

    /// Runs the pieces. `sizes` are the sizes of the arguments; `bind` returns the array of input number `i`, which is not a constant.
    ///
    /// # Errors
    /// Errors of operators; an error if the graph is not valid for these sizes. The flag is true if nothing was written and no random number drawn so
    /// far.
    pub fn run(
        &self,
        sizes: &[i64],
        bind: &dyn Fn(usize) -> Option<Array>,
    ) -> std::result::Result<Finished, (Error, bool)> {
        let mut is_pure = true;
        self.run_pieces(sizes, bind, &mut is_pure)
            .map_err(|error| (error, is_pure))
    }

    fn run_pieces(
        &self,
        sizes: &[i64],
        bind: &dyn Fn(usize) -> Option<Array>,
        is_pure: &mut bool,
    ) -> Result<Finished> {
        let unbound = || Error::internal("graph", "an input is not bound");
        let mut sizes = sizes.to_vec();
        let mut held: HashMap<BufferId, HeldBuffer> = HashMap::new();
        let mut random = Vec::new();
        let mut first_block = 0;
        for (i, piece) in self.pieces.iter().enumerate() {
            let made = self.made(i, &sizes, || self.compile(piece, &sizes))?;
            let Compiled::Piece(compiled) = &*made else {
                return Err(unbound());
            };
            let graph = compiled.executable.graph();
            if i == 0 {
                for (k, input) in self.template.traced().inputs.iter().enumerate() {
                    let is_own = match input.source {
                        Source::Constant(_) => false,
                        Source::Argument(k) => k < self.num_arguments,
                        Source::Captured(_) => true,
                    };
                    if is_own {
                        let array = bind(k).ok_or_else(unbound)?;
                        let view = input.view.clone();
                        held.insert(input.buffer, HeldBuffer { array, view });
                    }
                }
            }
            let bindings = compiled.binds.iter();
            let bindings = bindings.map(|buffer| Some(held.get(buffer)?.array.clone()));
            let bindings: Option<SmallVec<[Array; 16]>> = bindings.collect();
            let bindings = bindings.ok_or_else(unbound)?;
            let bindings: SmallVec<[&Array; 16]> = bindings.iter().collect();
            *is_pure &= piece.writes.is_empty() && compiled.num_rng_blocks == 0;
            let (outputs, state) = compiled.executable.run_randomly(&bindings)?;
            if compiled.num_rng_blocks > 0 {
                random.push((first_block, state[0]));
            }
            first_block += compiled.num_rng_blocks;
            for &k in &piece.writes {
                // The input has been written: its array holds the newest version of the buffer.
                let input = &self.template.traced().inputs[k];
                if let (Some(last), Some(was)) = (input.written, held.get(&input.buffer)) {
                    let now = HeldBuffer {
                        view: View {
                            buffer: last,
                            ..was.view.clone()
                        },
                        array: was.array.clone(),
                    };
                    held.insert(last, now);
                }
            }
            for (&buffer, array) in piece.gives.iter().zip(outputs) {
                let view = bytes_of(graph, buffer);
                held.entry(buffer).or_insert(HeldBuffer { array, view });
            }
            let Some(node) = &compiled.call else {
                continue;
            };
            for (view, result) in node.outputs.iter().zip(self.call(node, &held)?) {
                let known = sizes.len();
                if let Some(Symbol::Computed {
                    buffer,
                    axis,
                    depends_on_values: true,
                }) = self.counted().nth(known - self.template.num_sizes())
                    && buffer == view.buffer
                {
                    sizes.push(result.shape()[axis] as i64);
                }
                let view = View {
                    buffer: view.buffer,
                    layout: Layout::contiguous(result.shape()),
                    ..view.clone()
                };
                let array = result.contiguous()?;
                held.insert(view.buffer, HeldBuffer { array, view });
            }
        }
        let made = self.made(self.pieces.len(), &sizes, || self.end(&sizes))?;
        let Compiled::End(end) = &*made else {
            return Err(unbound());
        };
        let result = |view: &View| -> Result<Array> {
            let constant = end.graph.input_of(view.buffer);
            let constant = constant.map(|i| &end.graph.inputs[i].source);
            if let Some(Source::Constant(x)) = constant {
                let held = HeldBuffer {
                    array: x.clone(),
                    view: bytes_of(&end.graph, view.buffer),
                };
                return seen(&held, view)?.copy();
            }
            seen(held.get(&view.buffer).ok_or_else(unbound)?, view)
        };
        let outputs = end.graph.outputs[..self.num_outputs].iter().map(result);
        let outputs = outputs.collect::<Result<Outputs>>()?;
        let mut residuals = Vec::new();
        for buffer in end.backward.iter().flat_map(|(_, needs)| needs) {
            let array = held.get(buffer).ok_or_else(unbound)?.array.detach();
            let version = array.tensor().storage().version();
            residuals.push((array, version));
        }
        Ok(Finished {
            outputs,
            random,
            residuals,
            backward: end
                .backward
                .as_ref()
                .map(|(executable, _)| executable.clone()),
            graph: end.graph.clone(),
        })
    }

    fn counted(&self) -> impl Iterator<Item = Symbol> + '_ {
        let is_counted = |symbol: &Symbol| {
            matches!(
                symbol,
                Symbol::Computed {
                    depends_on_values: true,
                    ..
                }
            )
        };
        self.template.symbols().iter().copied().filter(is_counted)
    }

    /// Calls the operator of a node whose result has a shape that depends on values.
    fn call(&self, node: &Node, held: &HashMap<BufferId, HeldBuffer>) -> Result<Outputs> {
        let mut arrays: SmallVec<[Option<Array>; 4]> = SmallVec::new();
        for operand in &node.inputs {
            arrays.push(match operand {
                Operand::Absent => None,
                Operand::View(view) => {
                    let held = held.get(&view.buffer);
                    let held = held.ok_or_else(|| {
                        Error::internal("graph", "a buffer is read before it is defined")
                    })?;
                    Some(seen(held, view)?)
                }
                Operand::Number(value) => Some(Array::weak_scalar(*value)?),
                Operand::Constant(value, dtype) => Some(Array::constant(*value, *dtype)?),
            });
        }
        let inputs: SmallVec<[Option<&Array>; 4]> = arrays.iter().map(Option::as_ref).collect();
        let _scope = Scope::enter(false, node.training);
        eager::run(&Call {
            op: node.op,
            inputs: &inputs,
            attrs: &node.attrs,
            outs: &[],
            dtype: node.dtype,
        })
    }

    fn compile(&self, piece: &Piece, sizes: &[i64]) -> Result<Compiled> {
        let whole = self
            .template
            .up_to(sizes, (piece.end + 1).min(self.num_forward))?;
        let nodes = whole.nodes[piece.first..piece.end].to_vec();
        let call = match piece.end < self.num_forward {
            true => whole.nodes.get(piece.end).cloned(),
            false => None,
        };
        let (mut defined, mut inputs) = (HashSet::new(), Vec::new());
        let mut needs: Vec<BufferId> = Vec::new();
        let traced = self.template.traced();
        for node in &nodes {
            needs.extend(node.reads().filter(|buffer| !defined.contains(buffer)));
            defined.extend(node.defines());
        }
        for &k in &piece.writes {
            needs.push(traced.inputs[k].buffer);
            needs.extend(
                traced.inputs[k]
                    .written
                    .filter(|last| !defined.contains(last)),
            );
        }
        let mut known = HashSet::new();
        needs.retain(|buffer| known.insert(*buffer));
        for buffer in needs {
            // If an earlier piece has written this buffer to an input, the input's array holds it.
            let became = traced.inputs.iter().position(|x| x.written == Some(buffer));
            let became = became.filter(|k| self.writer(*k) < piece.first);
            let own = whole.input_of(buffer).or(became);
            inputs.push(match own {
                Some(k) => {
                    let is_written = piece.writes.contains(&k) && whole.inputs[k].buffer == buffer;
                    Input {
                        buffer,
                        view: View {
                            buffer,
                            ..whole.inputs[k].view.clone()
                        },
                        written: whole.inputs[k].written.filter(|_| is_written),
                        source: whole.inputs[k].source.clone(),
                    }
                }
                None => Input {
                    buffer,
                    source: Source::Argument(self.num_arguments + inputs.len()),
                    view: self.held_view(&whole, buffer),
                    written: None,
                },
            });
        }
        let first_block = (nodes.iter())
            .filter(|node| matches!(node.op.rng, Rng::Blocks(_)))
            .map(|node| node.rng_block)
            .min()
            .unwrap_or(0);
        let mut num_rng_blocks = 0;
        let mut graph = Graph {
            outputs: (piece.gives.iter())
                .map(|&buffer| bytes_of(&whole, buffer))
                .collect(),
            inputs,
            nodes,
            ..whole.clone()
        };
        for node in &mut graph.nodes {
            if let Rng::Blocks(blocks) = node.op.rng {
                node.rng_block -= first_block;
                let len = node.outputs.first().map_or(0, |y| y.layout.len());
                num_rng_blocks = num_rng_blocks.max(node.rng_block + blocks(len as u64));
            }
        }
        graph.num_rng_blocks = num_rng_blocks;
        passes::optimise(&mut graph, &self.choice)?;
        let executable = Arc::new(Executable::new(graph, self.options)?);
        let inputs = executable.graph().inputs.iter();
        let bound = inputs.filter(|input| !matches!(input.source, Source::Constant(_)));
        Ok(Compiled::Piece(Box::new(CompiledPiece {
            binds: bound.map(|input| input.buffer).collect(),
            executable: executable.clone(),
            call,
            num_rng_blocks,
        })))
    }

    /// The first node of the piece that writes an input.
    fn writer(&self, input: usize) -> usize {
        let mut pieces = self.pieces.iter();
        let found = pieces.find(|piece| piece.writes.contains(&input));
        found.map_or(usize::MAX, |piece| piece.first)
    }

    /// The view as which a buffer of an earlier piece, or of a node between pieces, is stored.
    fn held_view(&self, whole: &Graph, buffer: BufferId) -> View {
        let mut called = whole.nodes.iter().filter(|node| depends_on_values(node));
        let is_cut = |node: &&Node| {
            self.pieces.iter().any(|piece| {
                whole
                    .nodes
                    .get(piece.end)
                    .is_some_and(|other| std::ptr::eq(other, *node))
            })
        };
        let of_call = called.find_map(|node| {
            let view = node.outputs.iter().find(|view| view.buffer == buffer);
            view.filter(|_| is_cut(&node)).cloned()
        });
        of_call.unwrap_or_else(|| bytes_of(whole, buffer))
    }

    fn end(&self, sizes: &[i64]) -> Result<Compiled> {
        let whole = self.template.at(sizes)?;
        let mut graph = whole.clone();
        graph.nodes.truncate(self.num_forward);
        let is_cotangent =
            |input: &Input| matches!(input.source, Source::Argument(i) if i >= self.num_arguments);
        graph.inputs.retain(|input| !is_cotangent(input));
        graph.outputs.truncate(self.num_outputs);
        if whole.outputs.len() == self.num_outputs {
            let backward = None;
            let graph = Arc::new(graph);
            return Ok(Compiled::End(Box::new(End { graph, backward })));
        }
        let nodes = whole.nodes[self.num_forward..].to_vec();
        let mut made: HashSet<BufferId> = nodes.iter().flat_map(Node::defines).collect();
        let mut inputs: Vec<Input> = Vec::new();
        let mut needs = Vec::new();
        let outputs = whole.outputs[self.num_outputs..].to_vec();
        let cotangents: Vec<&Input> = whole.inputs.iter().filter(|x| is_cotangent(x)).collect();
        made.extend(cotangents.iter().map(|input| input.buffer));
        let read = nodes
            .iter()
            .flat_map(|node| node.reads().collect::<Vec<_>>());
        for buffer in read.chain(outputs.iter().map(|view| view.buffer)) {
            if !made.insert(buffer) {
                continue;
            }
            let input = whole.input_of(buffer).map(|k| whole.inputs[k].clone());
            match input {
                Some(input) if matches!(input.source, Source::Constant(_)) => inputs.push(Input {
                    written: None,
                    ..input
                }),
                input => {
                    let written = whole.inputs.iter().find(|x| x.written == Some(buffer));
                    let view = match input.as_ref().or(written) {
                        Some(input) => View {
                            buffer,
                            ..input.view.clone()
                        },
                        None => self.held_view(&whole, buffer),
                    };
                    inputs.push(Input {
                        buffer,
                        source: Source::Argument(needs.len()),
                        view,
                        written: None,
                    });
                    needs.push(buffer);
                }
            }
        }
        for (k, input) in cotangents.iter().enumerate() {
            inputs.push(Input {
                source: Source::Argument(needs.len() + k),
                written: None,
                ..(*input).clone()
            });
        }
        let first_block = (nodes.iter())
            .filter(|node| matches!(node.op.rng, Rng::Blocks(_)))
            .map(|node| node.rng_block)
            .min()
            .unwrap_or(whole.num_rng_blocks);
        let mut backward = Graph {
            name: format!("gradient of {}", whole.name),
            num_rng_blocks: whole.num_rng_blocks - first_block,
            nodes,
            inputs,
            outputs,
            ..whole.clone()
        };
        for node in &mut backward.nodes {
            node.rng_block = node.rng_block.saturating_sub(first_block);
        }
        passes::optimise(&mut backward, &self.choice)?;
        let executable = Arc::new(Executable::new(backward, self.options)?);
        let backward = Some((executable, needs));
        let graph = Arc::new(graph);
        Ok(Compiled::End(Box::new(End { graph, backward })))
    }
}

/// The piece with the nodes `first..end`; node `end` is called separately. Inputs in `written` have been written before it.
fn piece(
    graph: &Graph,
    first: usize,
    end: usize,
    written: &HashSet<usize>,
    is_last: bool,
) -> Piece {
    let reads = |nodes: &[Node]| -> HashSet<BufferId> {
        nodes
            .iter()
            .flat_map(|node| node.reads().collect::<Vec<_>>())
            .collect()
    };
    let defines = |nodes: &[Node]| -> Vec<BufferId> {
        nodes
            .iter()
            .flat_map(|node| node.defines().collect::<Vec<_>>())
            .collect()
    };
    let mut later = reads(&graph.nodes[end..]);
    let is_kept = |buffer: BufferId| {
        later.contains(&buffer) || graph.outputs.iter().any(|view| view.buffer == buffer)
    };
    let so_far: HashSet<BufferId> = defines(&graph.nodes[..end]).into_iter().collect();
    let mut writes = Vec::new();
    for (k, input) in graph.inputs.iter().enumerate() {
        let (Some(last), false) = (input.written, written.contains(&k)) else {
            continue;
        };
        // An input is written when no later node reads its old elements.
        if is_last || so_far.contains(&last) && !is_kept(input.buffer) {
            writes.push(k);
        }
    }
    later.extend(graph.results());
    let mut gives = defines(&graph.nodes[first..end]);
    // Buffers that are written to an input are read from the input's array.
    gives.retain(|buffer| {
        later.contains(buffer)
            && !writes
                .iter()
                .any(|&k| graph.inputs[k].written == Some(*buffer))
    });
    Piece {
        first,
        end,
        gives,
        writes,
    }
}
