//! Models: a graph and its arrays, read from files and called by services.

use std::collections::HashMap;
use std::sync::Arc;

use mxnet_core::{Array, Error, Outputs, Result, Tuple};
use mxnet_tensor::{DType, Layout};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::compile::{Executable, Options};
use crate::dynamic::Template;
use crate::ir::{Graph, Source};
use crate::passes;
use crate::verify::verify;

/// A graph and its arrays. Threads may run it at the same time; they share the arrays.
pub struct Model {
    traced: Compiled,
    /// The dependence on sizes, and the graphs compiled for certain sizes, most recently used last.
    template: Option<Template>,
    /// For each argument the axes that may have any length.
    dynamic_axes: Vec<Vec<usize>>,
    sized: Mutex<Vec<(Vec<i64>, Arc<Compiled>)>>,
}

/// Largest number of sizes for which compiled graphs are cached.
const MAX_SIZES: usize = 32;

/// A graph compiled for certain sizes.
struct Compiled {
    executable: Arc<Executable>,
    graph: Graph,
    /// For each input that is not a constant: an array, or the number of an argument.
    bindings: Vec<Binding>,
    arguments: Vec<Argument>,
}

enum Binding {
    Argument(usize),
    Array(Array),
}

/// Layout and dtype of an argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Shape and strides.
    pub layout: Layout,
    /// Data type.
    pub dtype: DType,
}

impl Model {
    /// Reads a graph from the text of its file. `arrays` has the arrays that it names.
    ///
    /// # Errors
    /// [`Error::Value`] for a graph that is damaged, of a newer version, or that needs operators or arrays that do not exist.
    pub fn new(text: &str, arrays: &HashMap<String, Array>) -> Result<Model> {
        let graph = Graph::from_json(text, &mut |name| arrays.get(name).cloned())?;
        let template = Template::from_text(&graph, text)?;
        let traced = Compiled::new(graph)?;
        let axes_of = |index| {
            let template = template.as_ref();
            template.map_or(Vec::new(), |template| template.dynamic_axes(index))
        };
        Ok(Model {
            dynamic_axes: (0..traced.arguments.len()).map(axes_of).collect(),
            template,
            traced,
            sized: Mutex::new(Vec::new()),
        })
    }

    /// Layouts and dtypes of the arguments. For an argument with [`Model::dynamic_axes`] the shape is an example.
    pub fn arguments(&self) -> &[Argument] {
        &self.traced.arguments
    }

    /// Axes of argument `index` that may have any length.
    pub fn dynamic_axes(&self, index: usize) -> &[usize] {
        self.dynamic_axes.get(index).map_or(&[], Vec::as_slice)
    }

    /// The graph as it was read.
    pub fn graph(&self) -> &Graph {
        &self.traced.graph
    }

    /// The graph for arguments of these shapes, before the passes: as it was read, or for the sizes of dynamic axes.
    ///
    /// # Errors
    /// [`Error::Shape`] if the graph is not valid for these sizes.
    pub fn graph_for(&self, shapes: &[&[usize]]) -> Result<Graph> {
        let Some(template) = &self.template else {
            return Ok(self.traced.graph.clone());
        };
        let graph = template.at(&template.sizes_of(shapes)?)?;
        verify(&graph)?;
        Ok(graph)
    }

    /// Runs the graph. The arguments must have the dtypes and shapes that it was traced with, except for dynamic axes.
    ///
    /// # Errors
    /// [`Error::Value`] for a wrong number of arguments, [`Error::Shape`], [`Error::DType`]; errors of kernels.
    pub fn run(&self, arguments: &[&Array]) -> Result<Outputs> {
        match self.compiled_for(arguments)? {
            Some(made) => made.run(arguments),
            None => self.traced.run(arguments),
        }
    }

    /// As [`Model::run`], but operator by operator: recorded for gradients, with `arrays` in place of the arrays of the file.
    ///
    /// # Errors
    /// As [`Model::run`].
    pub fn interpret(&self, arguments: &[&Array], arrays: &[&Array]) -> Result<Outputs> {
        match self.compiled_for(arguments)? {
            Some(made) => made.interpret(arguments, arrays),
            None => self.traced.interpret(arguments, arrays),
        }
    }

    /// Checks the number of axes, and the lengths of those that cannot have any length.
    fn check_shapes(&self, arguments: &[&Array]) -> Result<()> {
        for (i, (x, form)) in arguments.iter().zip(&self.traced.arguments).enumerate() {
            let (expected, is_dynamic) = (form.layout.shape(), |axis| {
                self.dynamic_axes(i).contains(&axis)
            });
            let mut pairs = x.shape().iter().zip(expected).enumerate();
            let fits = x.ndim() == expected.len()
                && pairs.all(|(axis, (found, expected))| found == expected || is_dynamic(axis));
            if !fits {
                let length = |(axis, n): (usize, &usize)| match is_dynamic(axis) {
                    true => "any".to_owned(),
                    false => n.to_string(),
                };
                let lengths: Vec<String> = expected.iter().enumerate().map(length).collect();
                let problem = format!(
                    "argument {i} must have shape ({}{}), found {}",
                    lengths.join(", "),
                    if lengths.len() == 1 { "," } else { "" },
                    Tuple(x.shape())
                );
                return Err(Error::shape("graph", problem));
            }
        }
        Ok(())
    }

    /// The graph for the sizes of these arguments; compiled, or from the cache.
    fn compiled_for(&self, arguments: &[&Array]) -> Result<Option<Arc<Compiled>>> {
        let Some(template) = &self.template else {
            return Ok(None);
        };
        self.traced.check_count(arguments)?;
        self.check_shapes(arguments)?;
        let shapes: SmallVec<[&[usize]; 8]> = arguments.iter().map(|x| x.shape()).collect();
        let sizes = template.sizes_of(&shapes)?;
        {
            let mut sized = self.sized.lock();
            if let Some(i) = sized.iter().rposition(|(known, _)| *known == sizes) {
                let entry = sized.remove(i);
                let made = entry.1.clone();
                sized.push(entry);
                return Ok(Some(made));
            }
        }
        let graph = template.at(&sizes)?;
        verify(&graph)?;
        let made = Arc::new(Compiled::new(graph)?);
        let mut sized = self.sized.lock();
        let oldest = (sized.len() >= MAX_SIZES).then(|| sized.remove(0));
        sized.push((sizes, made.clone()));
        // It may call a module's code, which runs when the list is unlocked.
        drop(sized);
        drop(oldest);
        Ok(Some(made))
    }
}

impl Compiled {
    fn new(graph: Graph) -> Result<Compiled> {
        let mut compiled = graph.clone();
        passes::optimise(&mut compiled, &passes::Choice::default())?;
        let mut arguments: Vec<Option<Argument>> = Vec::new();
        for input in &graph.inputs {
            if let Source::Argument(i) = input.source {
                // A file may name any number of arguments; more than there are inputs are refused.
                if i >= graph.inputs.len() {
                    return Err(crate::verify::wrong(format!(
                        "argument {i} exceeds the number of inputs"
                    )));
                }
                arguments.resize(arguments.len().max(i + 1), None);
                arguments[i] = Some(Argument {
                    layout: input.view.layout.clone(),
                    dtype: input.view.dtype,
                });
            }
        }
        let arguments: Option<Vec<Argument>> = arguments.into_iter().collect();
        let arguments =
            arguments.ok_or_else(|| crate::verify::wrong("an argument is missing".to_owned()))?;
        let bindings = compiled
            .inputs
            .iter()
            .filter_map(|input| match &input.source {
                Source::Argument(i) => Some(Binding::Argument(*i)),
                Source::Captured(x) => Some(Binding::Array(x.clone())),
                Source::Constant(_) => None,
            });
        Ok(Compiled {
            bindings: bindings.collect(),
            executable: Arc::new(Executable::new(compiled, Options::default())?),
            graph,
            arguments,
        })
    }

    fn run(&self, arguments: &[&Array]) -> Result<Outputs> {
        let given = self.fitted(arguments)?;
        let bindings: SmallVec<[&Array; 16]> = (self.bindings.iter())
            .map(|binding| match binding {
                Binding::Argument(i) => &given[*i],
                Binding::Array(x) => x,
            })
            .collect();
        self.executable.run(&bindings)
    }

    fn interpret(&self, arguments: &[&Array], arrays: &[&Array]) -> Result<Outputs> {
        let given = self.fitted(arguments)?;
        let mut arrays = arrays.iter();
        let mut bindings = SmallVec::<[&Array; 16]>::new();
        for input in &self.graph.inputs {
            bindings.push(match &input.source {
                Source::Argument(i) => &given[*i],
                Source::Captured(_) => match arrays.next() {
                    Some(x) => x,
                    None => {
                        return Err(Error::value(
                            "graph",
                            "there are fewer arrays than the graph needs",
                        ));
                    }
                },
                Source::Constant(_) => continue,
            });
        }
        self.graph
            .interpret(&bindings, self.graph.outputs.len(), None)
    }

    /// The arguments with the strides that the graph was traced with, copied if necessary.
    fn fitted(&self, arguments: &[&Array]) -> Result<SmallVec<[Array; 8]>> {
        self.check_count(arguments)?;
        let fit = |(i, (x, form)): (usize, (&&Array, &Argument))| {
            if x.dtype() != form.dtype {
                let problem = format!(
                    "argument {i} must be {}, found {}",
                    form.dtype.name(),
                    x.dtype().name()
                );
                return Err(Error::dtype("graph", problem));
            }
            if x.shape() != form.layout.shape() {
                let problem = format!(
                    "argument {i} must have shape {}, found {}",
                    Tuple(form.layout.shape()),
                    Tuple(x.shape())
                );
                return Err(Error::shape("graph", problem));
            }
            match x.layout().strides() == form.layout.strides() {
                true => Ok((*x).clone()),
                false => {
                    let dense = x.contiguous()?;
                    match dense.layout().strides() == form.layout.strides() {
                        true => Ok(dense),
                        false => Err(Error::shape(
                            "graph",
                            format!("argument {i} must have strides {:?}", form.layout.strides()),
                        )),
                    }
                }
            }
        };
        arguments
            .iter()
            .zip(&self.arguments)
            .enumerate()
            .map(fit)
            .collect()
    }

    fn check_count(&self, arguments: &[&Array]) -> Result<()> {
        if arguments.len() != self.arguments.len() {
            let problem = format!(
                "`{}` takes {} arrays, found {}",
                self.graph.name,
                self.arguments.len(),
                arguments.len()
            );
            return Err(Error::value("graph", problem));
        }
        Ok(())
    }
}
