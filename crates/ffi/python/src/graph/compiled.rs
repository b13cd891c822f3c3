//! Compiled graphs of traced functions: compiling, running, and their backward passes.

use std::collections::HashMap;
use std::sync::Arc;

use mxnet::core::autograd::{self as tape, CustomBackward, Leaf, Node, Retain, Through};
use mxnet::core::{Array, Error, Grads, Outputs, Result, mode};
use mxnet::graph::split::{Residual, Split, split};
use mxnet::graph::{Executable, Graph, Input, Options, RunDraws, Source, Template, passes};
use mxnet::tensor::Tensor;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::traced::TracedFunction;
use crate::array::PyArray;
use crate::error::raise;
use crate::typed::Get;

/// What an input of a graph is bound to at each call.
pub enum Binding {
    /// Argument `i`.
    Argument(usize),
    /// An array that the function captured.
    Array(Array),
    /// The gradient buffer of a captured variable; a backward pass may replace its memory.
    Gradient(Arc<Leaf>),
    /// The gradient buffer of argument `i`, a variable.
    GradientOf(usize),
}

/// The gradient of a compiled function.
struct Gradient {
    executable: Arc<Executable>,
    residuals: Vec<Residual>,
    /// Inputs with a gradient: arguments by index, and captured arrays.
    variables: Vec<(Option<usize>, Array)>,
    /// Indices of the results that propagate cotangents.
    heads: Vec<usize>,
    /// The function as traced. Second derivatives are computed from it, so that they add up as those of the function itself.
    traced: Arc<Graph>,
    /// For each input of `traced` that is not a constant: the index of its binding, or the array that it was traced with.
    inputs: Vec<TracedInput>,
}

/// How the array of an input of a traced graph is found.
#[derive(Clone)]
enum TracedInput {
    /// Index among the bindings of the compiled graph.
    Bound(usize),
    /// An array that the compiled graph does not need.
    Array(Array),
}

/// A traced function, compiled for arguments of one signature.
#[pyclass(frozen, module = "mxnet._core")]
pub struct CompiledGraph {
    executable: Arc<Executable>,
    bindings: Vec<Binding>,
    gradient: Option<Gradient>,
    num_outputs: usize,
    /// Whether an argument is also an array that the function captured.
    #[pyo3(get)]
    pub argument_is_captured: bool,
    /// Number of traced nodes, before passes removed any.
    #[pyo3(get)]
    num_traced_nodes: usize,
    /// Arrays whose values the function read during tracing, with their versions.
    seen: Vec<(Array, u64)>,
    /// Duration of tracing and compiling.
    #[pyo3(get)]
    pub seconds: f64,
    /// The template from which this graph for certain sizes was made.
    pub template: Option<Arc<Template>>,
}

/// Arrays with their names, in order.
pub(super) type NamedArrays = Vec<(String, Py<PyArray>)>;

/// The backward pass of one call.
pub struct Backward {
    pub executable: Arc<Executable>,
    /// Saved arrays that the gradient needs, with their versions.
    pub residuals: Vec<(Array, u64)>,
    /// The call, for second derivatives: it is repeated operator by operator.
    pub call: RecordedCall,
}

/// A call of a compiled function while recording.
pub struct RecordedCall {
    pub forward: Arc<Graph>,
    /// The arrays of all inputs that are not constants, as recorded.
    pub bindings: Vec<Array>,
    pub random: RunDraws,
    pub heads: Vec<usize>,
    pub variables: Vec<Array>,
    pub training: bool,
}

impl RecordedCall {
    /// The gradients, computed by recorded operators.
    fn differentiate(&self, dys: &[Array]) -> Result<Grads> {
        let bindings: SmallVec<[&Array; 16]> = self.bindings.iter().collect();
        let num_outputs = self.heads.iter().max().map_or(0, |last| last + 1);
        let outputs = self
            .forward
            .interpret(&bindings, num_outputs, Some(&self.random))?;
        let heads: SmallVec<[&Array; 4]> = self.heads.iter().map(|&i| &outputs[i]).collect();
        let variables: SmallVec<[&Array; 8]> = self.variables.iter().collect();
        let dys: SmallVec<[Option<&Array>; 4]> = dys.iter().map(Some).collect();
        let (keep, through) = (Retain::Yes, Through::Nothing);
        let training = self.training;
        let grads = tape::grad_within(&heads, &variables, &dys, keep, true, training, through)?;
        Ok(grads.into_iter().map(Some).collect())
    }
}

impl CustomBackward for Backward {
    fn backward(&self, _node: &Arc<Node>, dys: &[Array]) -> Result<Grads> {
        for (x, version) in &self.residuals {
            if x.tensor().storage().version() != *version {
                return Err(Error::autograd(
                    "backward",
                    "an array that the gradient of a compiled function needs was overwritten in place",
                )
                .with_hint("copy the array before changing it, or compute out of place"));
            }
        }
        if mode::is_recording() {
            return self.call.differentiate(dys);
        }
        let dense: Vec<Array> = dys.iter().map(Array::contiguous).collect::<Result<_>>()?;
        let residuals = self.residuals.iter().map(|(x, _)| x);
        let bindings: SmallVec<[&Array; 16]> = residuals.chain(&dense).collect();
        let grads = self.executable.run(&bindings)?;
        debug_assert_eq!(grads.len(), self.call.variables.len());
        Ok(grads.into_iter().map(Some).collect())
    }
}

impl TracedFunction {
    /// What is bound to an input; `None` for a constant.
    pub fn binding(&self, source: &Source) -> Option<Binding> {
        let x = match source {
            Source::Argument(i) => return Some(Binding::Argument(*i)),
            Source::Captured(x) => x,
            Source::Constant(_) => return None,
        };
        let leaf = (self.traced.recorded.iter()).find_map(|recorded| {
            let leaf = tape::gradient_of(&recorded.array)?;
            let is_it = Arc::ptr_eq(leaf.gradient().tensor().storage(), x.tensor().storage());
            is_it.then_some((recorded.argument, leaf))
        });
        Some(match leaf {
            Some((Some(i), _)) => Binding::GradientOf(i),
            Some((None, leaf)) => Binding::Gradient(leaf),
            None => Binding::Array(x.clone()),
        })
    }

    /// Compiles the traced graph, or `graph` for other sizes.
    ///
    /// # Errors
    /// The core's errors.
    pub fn compile(&self, graph: Graph, choice: &passes::Choice) -> Result<CompiledGraph> {
        let options = Options::of(choice);
        let num_traced_nodes = graph.nodes.len();
        let buffers: Vec<_> = (graph.inputs.iter())
            .filter(|input| !matches!(input.source, Source::Argument(k) if k >= self.num_arguments))
            .map(|input| input.buffer)
            .collect();
        let (mut forward, mut gradient) = match self.heads.is_empty() {
            true => (graph, None),
            false => {
                let training = passes::Training {
                    num_forward: self.traced.num_forward_nodes,
                    num_outputs: self.num_outputs,
                    num_arguments: self.num_arguments,
                };
                let graph = passes::within_budget(graph, Some(training), choice)?;
                let Split {
                    forward,
                    mut backward,
                    residuals,
                } = split(
                    graph,
                    self.traced.num_forward_nodes,
                    self.num_outputs,
                    self.num_arguments,
                );
                passes::optimise(&mut backward, choice)?;
                let executable = Arc::new(Executable::new(backward, options)?);
                let variables = self.variables.iter();
                let gradient = Gradient {
                    executable,
                    residuals,
                    variables: variables.map(|x| (x.argument, x.array.clone())).collect(),
                    heads: self.heads.clone(),
                    traced: Arc::new(forward.clone()),
                    inputs: Vec::new(),
                };
                (forward, Some(gradient))
            }
        };
        passes::optimise(&mut forward, choice)?;
        if gradient.is_none() {
            forward = passes::within_budget(forward, None, choice)?;
        }
        let executable = Executable::new(forward, options)?;
        if let Some(gradient) = &mut gradient {
            let is_bound = |input: &&Input| !matches!(input.source, Source::Constant(_));
            let bound: Vec<_> = executable.graph().inputs.iter().filter(is_bound).collect();
            let source_of = |input: &Input| match (
                bound.iter().position(|other| other.buffer == input.buffer),
                &input.source,
            ) {
                (Some(i), _) => Ok(TracedInput::Bound(i)),
                (None, Source::Captured(x)) => Ok(TracedInput::Array(x.clone())),
                (None, _) => Err(Error::internal("trace", "an argument is gone")),
            };
            let traced = gradient.traced.inputs.iter().filter(is_bound);
            gradient.inputs = traced.map(source_of).collect::<Result<_>>()?;
            // Passes remove unused inputs, so the residuals are found by the inputs' numbers.
            for residual in &mut gradient.residuals {
                if let Residual::Input(i) = residual {
                    let found =
                        (buffers.get(*i)).and_then(|&buffer| executable.graph().input_of(buffer));
                    *i = found.ok_or_else(|| {
                        Error::internal("trace", "the gradient needs an input that is gone")
                    })?;
                }
            }
        }
        let bindings = executable
            .graph()
            .inputs
            .iter()
            .filter_map(|x| self.binding(&x.source));
        Ok(CompiledGraph {
            bindings: bindings.collect(),
            executable: Arc::new(executable),
            gradient,
            num_outputs: self.num_outputs,
            argument_is_captured: self.traced.argument_is_captured,
            num_traced_nodes,
            seen: self.traced.seen.clone(),
            seconds: 0.0,
            template: None,
        })
    }
}

/// A captured array in the shape and dtype in which a node reads all of it; unchanged if no node does.
fn as_used(graph: &Graph, buffer: mxnet::graph::BufferId, bytes: &Array) -> Array {
    let len_bytes = graph.buffer(buffer).len_bytes;
    let operands = graph.nodes.iter().flat_map(|node| &node.inputs);
    let mut views = operands.filter_map(|operand| operand.view());
    let whole = views.find(|view| {
        view.buffer == buffer && view.layout.is_contiguous() && view.len_bytes() == len_bytes
    });
    let seen = whole.and_then(|view| {
        let storage = bytes.tensor().storage().clone();
        Tensor::new(storage, view.layout.clone(), view.dtype).ok()
    });
    seen.map_or_else(|| bytes.clone(), Array::from_tensor)
}

impl CompiledGraph {
    /// Whether the values that the function read during tracing are unchanged.
    pub fn is_current(&self) -> bool {
        self.seen
            .iter()
            .all(|(x, version)| x.tensor().storage().version() == *version)
    }

    /// Whether a run takes so long that the GIL should be released.
    pub fn is_long(&self) -> bool {
        /// Releasing and reacquiring the GIL takes some hundred nanoseconds.
        const LONG_NS: u64 = 20_000;
        self.executable.cost_ns() > LONG_NS
    }

    /// Whether an argument shares its storage with an array that the function captured, and one of them is written.
    pub fn meets_captured(&self, arguments: &[&Array]) -> bool {
        let inputs = self.executable.graph().inputs.iter();
        let bound = inputs.filter(|input| !matches!(input.source, Source::Constant(_)));
        let mut captured = self
            .bindings
            .iter()
            .zip(bound)
            .filter_map(|(binding, input)| match binding {
                Binding::Array(x) => Some((x, input.written.is_some())),
                _ => None,
            });
        let writes_argument =
            (self.bindings.iter().zip(&self.executable.graph().inputs)).any(|(binding, input)| {
                matches!(binding, Binding::Argument(_)) && input.written.is_some()
            });
        captured.any(|(x, is_written)| {
            (is_written || writes_argument)
                && arguments
                    .iter()
                    .any(|y| Arc::ptr_eq(x.tensor().storage(), y.tensor().storage()))
        })
    }

    /// Runs the graph; records the call if gradients are recorded.
    pub fn run(&self, arguments: &[&Array]) -> Result<Outputs> {
        let held: SmallVec<[Option<Array>; 16]> = self
            .bindings
            .iter()
            .map(|binding| match binding {
                Binding::Gradient(leaf) => Some(leaf.gradient()),
                Binding::GradientOf(i) => {
                    tape::gradient_of(arguments[*i]).map(|leaf| leaf.gradient())
                }
                _ => None,
            })
            .collect();
        let bindings = self.bindings.iter().zip(&held).map(|(binding, held)| {
            Some(match binding {
                Binding::Argument(i) => arguments[*i],
                Binding::Array(x) => x,
                Binding::Gradient(_) | Binding::GradientOf(_) => held.as_ref()?,
            })
        });
        let bindings: Option<SmallVec<[&Array; 16]>> = bindings.collect();
        let bindings = bindings
            .ok_or_else(|| Error::autograd("jit", "an argument has lost its gradient buffer"))?;
        let (mut outputs, random) = {
            let _paused = mode::Scope::enter(false, mode::is_training());
            self.executable.run_randomly(&bindings)?
        };
        let Some(gradient) = &self.gradient else {
            outputs.truncate(self.num_outputs);
            return Ok(outputs);
        };
        let constant_free = |i: usize| {
            let inputs = &self.executable.graph().inputs;
            let before = inputs[..i]
                .iter()
                .filter(|input| matches!(input.source, Source::Constant(_)));
            i - before.count()
        };
        let residuals = gradient.residuals.iter().map(|residual| {
            let x = match residual {
                Residual::Input(i) => bindings[constant_free(*i)].detach(),
                Residual::Output(i) => outputs[*i].detach(),
            };
            let version = x.tensor().storage().version();
            (x, version)
        });
        let variables: Vec<&Array> = (gradient.variables.iter())
            .map(|(argument, array)| argument.map_or(array, |i| arguments[i]))
            .collect();
        let inputs = self.bindings.iter().zip(&bindings);
        let placed = inputs.map(|(binding, array)| match binding {
            Binding::Array(_) => bound_array(array, &variables),
            _ => (*array).clone(),
        });
        let placed: SmallVec<[Array; 16]> = placed.collect();
        let rule = Backward {
            residuals: residuals.collect(),
            executable: gradient.executable.clone(),
            call: RecordedCall {
                forward: gradient.traced.clone(),
                bindings: (gradient.inputs.iter())
                    .map(|input| match input {
                        TracedInput::Bound(i) => placed[*i].clone(),
                        TracedInput::Array(x) => x.clone(),
                    })
                    .collect(),
                random: RunDraws::of(&random),
                heads: gradient.heads.clone(),
                variables: variables.iter().map(|&x| x.clone()).collect(),
                training: mode::is_training(),
            },
        };
        outputs.truncate(self.num_outputs);
        let heads: Vec<Array> = gradient.heads.iter().map(|&i| outputs[i].clone()).collect();
        let name = &self.executable.graph().name;
        let recorded = tape::record_custom(name, &variables, heads, |_| true, Box::new(rule))?;
        for (&i, y) in gradient.heads.iter().zip(recorded) {
            outputs[i] = y;
        }
        Ok(outputs)
    }
}

/// The array that a captured array is bound to: the variable with the same storage if there is one, else itself.
pub fn bound_array(binding: &Array, variables: &[&Array]) -> Array {
    let mut same = variables.iter().filter(|x| {
        Arc::ptr_eq(x.tensor().storage(), binding.tensor().storage())
            && x.len() * x.dtype().size() == x.tensor().storage().len_bytes()
    });
    same.next()
        .map_or_else(|| binding.clone(), |x| (*x).clone())
}

#[pymethods]
impl CompiledGraph {
    /// The results of the function for these arguments, which must have the signature of the trace.
    fn __call__(
        &self,
        py: Python<'_>,
        arrays: Vec<Bound<'_, PyArray>>,
    ) -> PyResult<Vec<Py<PyArray>>> {
        let arrays: SmallVec<[Array; 8]> = arrays.iter().map(|x| x.get().array(py)).collect();
        let arguments: SmallVec<[&Array; 8]> = arrays.iter().collect();
        let mut outputs = self.run(&arguments).map_err(|error| raise(py, error))?;
        outputs.truncate(self.num_outputs);
        outputs.into_iter().map(|y| PyArray::wrap(py, y)).collect()
    }

    /// The graph as JSON, and the arrays that it needs besides its arguments, by name. `names` maps storages of known arrays to names; other arrays
    /// are called `captured.0` etc., constants `constant.0` etc.
    fn export(
        &self,
        py: Python<'_>,
        names: HashMap<usize, String>,
    ) -> PyResult<(String, NamedArrays)> {
        let template = self.template.as_ref();
        let graph = template.map_or(self.executable.graph(), |template| template.traced());
        if !graph.streams.is_empty() {
            let problem =
                "the function draws from a generator of its own, which a file cannot hold";
            let error = Error::unsupported("export", problem);
            let hint =
                "draw with the functions of `np.random`, or pass what is drawn as an argument";
            return Err(raise(py, error.with_hint(hint)));
        }
        let mut arrays: Vec<(String, Array)> = Vec::new();
        let mut bound = self.bindings.iter();
        let captured: Vec<Option<Array>> = (graph.inputs.iter())
            .map(|input| match input.source {
                // The arrays of a template are those of its trace.
                _ if template.is_some() => None,
                Source::Constant(_) => None,
                _ => match bound.next() {
                    Some(Binding::Gradient(leaf)) => Some(leaf.gradient()),
                    Some(Binding::Array(x)) => Some(x.clone()),
                    _ => None,
                },
            })
            .collect();
        let mut name_of = |i: usize, x: &Array| {
            let array = captured[i].as_ref().unwrap_or(x);
            let storage = Arc::as_ptr(array.tensor().storage()) as usize;
            let kind = match graph.inputs[i].source {
                Source::Constant(_) => "constant",
                _ => "captured",
            };
            let name = names.get(&storage).cloned();
            let name = name.unwrap_or_else(|| format!("{kind}.{i}"));
            arrays.push((name.clone(), as_used(graph, graph.inputs[i].buffer, array)));
            name
        };
        let text = match template {
            Some(template) => template.to_json(&mut name_of),
            None => graph.to_json(&mut name_of),
        };
        let wrapped = arrays
            .into_iter()
            .map(|(name, x)| Ok((name, PyArray::wrap(py, x.detach())?)));
        Ok((text, wrapped.collect::<PyResult<_>>()?))
    }

    /// The graph as text.
    fn __str__(&self) -> String {
        self.executable.graph().to_string()
    }

    /// The gradient as text; empty if there is none.
    #[getter]
    fn gradient_text(&self) -> String {
        let gradient = self.gradient.as_ref();
        gradient.map_or(String::new(), |x| x.executable.graph().to_string())
    }

    /// For the compiled graph and its gradient: number of nodes, number of steps, bytes of the arena, bytes without sharing.
    #[getter]
    fn sizes(&self) -> Vec<(usize, usize, usize, usize)> {
        let both = [
            Some(&self.executable),
            self.gradient.as_ref().map(|x| &x.executable),
        ];
        let sizes = both.into_iter().flatten().map(|x| {
            let memory = x.memory();
            (
                x.graph().nodes.len(),
                x.num_steps(),
                x.arena_bytes(),
                memory.unshared_bytes,
            )
        });
        sizes.collect()
    }

    /// Where the plan stores each buffer, as text; that of the gradient follows.
    #[getter]
    fn memory_plan(&self) -> String {
        let gradient = self.gradient.as_ref().map(|x| &*x.executable);
        let both = std::iter::once(&*self.executable).chain(gradient);
        both.map(|x| x.memory().describe(x.graph(), x.workspace_bytes()))
            .collect()
    }

    /// Peak bytes of a run by the plan, for the graph and for its gradient: intermediate and new results. The gradient's include the residuals of the
    /// graph.
    #[getter]
    fn planned_bytes(&self) -> Vec<usize> {
        let of = |x: &Executable| x.memory().peak_bytes(x.graph());
        let mut found = vec![of(&self.executable)];
        if let Some(gradient) = &self.gradient {
            let graph = self.executable.graph();
            let mut kept: Vec<_> = (gradient.residuals.iter())
                .filter_map(|residual| match residual {
                    Residual::Output(i) => Some(graph.outputs[*i].buffer),
                    Residual::Input(_) => None,
                })
                .collect();
            kept.sort_unstable();
            kept.dedup();
            let kept: usize = kept.iter().map(|&b| graph.buffer(b).len_bytes).sum();
            found.push(kept + of(&gradient.executable));
        }
        found
    }

    /// As `planned_bytes`, with the working memory of kernels, which is known after a run.
    #[getter]
    fn peak_bytes(&self) -> Vec<usize> {
        let gradient = self
            .gradient
            .as_ref()
            .map(|x| x.executable.workspace_bytes());
        let own = std::iter::once(self.executable.workspace_bytes()).chain(gradient);
        let planned = self.planned_bytes().into_iter();
        planned
            .zip(own)
            .map(|(planned, own)| planned + own)
            .collect()
    }

    /// Storages of the arrays that the function captured.
    #[getter]
    pub fn captured_storages(&self) -> Vec<usize> {
        let found = self.bindings.iter().filter_map(|binding| match binding {
            Binding::Array(x) => Some(Arc::as_ptr(x.tensor().storage()) as usize),
            _ => None,
        });
        found.collect()
    }
}
