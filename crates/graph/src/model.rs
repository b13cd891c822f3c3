//! A graph from a file with the arrays that it needs, to be called by services.

use std::collections::HashMap;
use std::sync::Arc;

use mxnet_core::{Array, Error, Outputs, Result, Tuple};
use mxnet_tensor::{DType, Layout};
use smallvec::SmallVec;

use crate::compile::{Executable, Options};
use crate::ir::{Graph, Source};
use crate::passes;

/// A graph and its arrays. Threads may run it at the same time; they share the arrays.
pub struct Model {
    executable: Arc<Executable>,
    graph: Graph,
    /// What is bound to each input that is no constant: an array, or argument `i`.
    bindings: Vec<Binding>,
    arguments: Vec<Argument>,
}

enum Binding {
    Argument(usize),
    Array(Array),
}

/// The form of an argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Shape and strides.
    pub layout: Layout,
    /// Data type.
    pub dtype: DType,
}

impl Model {
    /// Reads a graph from the text of its file. `arrays` has the arrays that it needs, by name.
    ///
    /// # Errors
    /// [`Error::Value`] for a graph that is damaged, of a newer version, or in need of operators or arrays that are not there.
    pub fn new(text: &str, arrays: &HashMap<String, Array>) -> Result<Model> {
        let graph = Graph::from_json(text, &mut |name| arrays.get(name).cloned())?;
        let mut compiled = graph.clone();
        passes::optimise(&mut compiled, |_| false);
        let mut arguments: Vec<Option<Argument>> = Vec::new();
        for input in &graph.inputs {
            if let Source::Argument(i) = input.source {
                // As many arguments as inputs, at most: a file may name any number.
                if i >= graph.inputs.len() {
                    return Err(crate::file::wrong(format!("argument {i} has no place")));
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
            arguments.ok_or_else(|| crate::file::wrong("an argument is missing".to_owned()))?;
        let bindings = compiled
            .inputs
            .iter()
            .filter_map(|input| match &input.source {
                Source::Argument(i) => Some(Binding::Argument(*i)),
                Source::Captured(x) => Some(Binding::Array(x.clone())),
                Source::Constant(_) => None,
            });
        Ok(Model {
            bindings: bindings.collect(),
            executable: Arc::new(Executable::new(compiled, Options::default())?),
            graph,
            arguments,
        })
    }

    /// The forms of the arguments.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The graph as it was read.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Results for these arguments, which have the dtypes and shapes that the graph was traced with.
    ///
    /// # Errors
    /// [`Error::Value`] for another number of arguments, [`Error::Shape`], [`Error::DType`]; what a kernel reports.
    pub fn run(&self, arguments: &[&Array]) -> Result<Outputs> {
        let given = self.fitted(arguments)?;
        let bindings: SmallVec<[&Array; 16]> = (self.bindings.iter())
            .map(|binding| match binding {
                Binding::Argument(i) => &given[*i],
                Binding::Array(x) => x,
            })
            .collect();
        self.executable.run(&bindings)
    }

    /// As [`Model::run`], operator by operator: recorded for gradients, with other arrays in place of those of the file.
    ///
    /// # Errors
    /// As [`Model::run`].
    pub fn interpret(&self, arguments: &[&Array], arrays: &[&Array]) -> Result<Outputs> {
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

    /// The arguments, with the strides that the graph needs.
    fn fitted(&self, arguments: &[&Array]) -> Result<SmallVec<[Array; 8]>> {
        if arguments.len() != self.arguments.len() {
            let problem = format!(
                "`{}` takes {} arrays, found {}",
                self.graph.name,
                self.arguments.len(),
                arguments.len()
            );
            return Err(Error::value("graph", problem));
        }
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
}
