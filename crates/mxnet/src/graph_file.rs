//! Networks that Python exported, run without Python.

use std::collections::HashMap;
use std::path::Path;

use mxnet_core::{Error, Result};
use mxnet_graph::Model;

use crate::{Array, load};

/// A graph and its arrays, read from files. Several threads may run it at once; they share the arrays.
///
/// ```no_run
/// use mxnet::{Array, DType, Graph};
///
/// # fn main() -> mxnet::Result<()> {
/// let graph = Graph::load("model-symbol.json", "model-0000.params")?;
/// let image = Array::zeros(&[1, 3, 224, 224], DType::F32)?;
/// let scores = &graph.run(&[&image])?[0];
/// println!("{:?}", scores.to_vec::<f32>()?);
/// # Ok(())
/// # }
/// ```
pub struct Graph(Model);

impl Graph {
    /// Reads the files that `HybridBlock.export` wrote. Files can execute nothing but operators.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read; [`Error::Value`] for a graph that is damaged, of a newer version, or that needs operators or arrays
    /// that do not exist.
    pub fn load(symbol_file: impl AsRef<Path>, param_file: impl AsRef<Path>) -> Result<Graph> {
        let path = symbol_file.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::io("load", format!("{}: {error}", path.display())))?;
        let arrays = load(param_file)?;
        let arrays: HashMap<String, _> = arrays
            .into_iter()
            .map(|(name, x)| (name, x.into()))
            .collect();
        Ok(Graph(Model::new(&text, &arrays)?))
    }

    /// Shapes and dtypes of the arguments. For an argument with [`Graph::dynamic_axes`] the shape is an example.
    pub fn arguments(&self) -> Vec<(Vec<usize>, crate::DType)> {
        let forms = self.0.arguments().iter();
        forms
            .map(|form| (form.layout.shape().to_vec(), form.dtype))
            .collect()
    }

    /// Axes of argument `index` that may have any length.
    pub fn dynamic_axes(&self, index: usize) -> Vec<usize> {
        self.0.dynamic_axes(index).to_vec()
    }

    /// Runs the network. Returns its results in order.
    ///
    /// # Errors
    /// [`Error::Value`] for a wrong number of arguments, [`Error::Shape`] and [`Error::DType`] for arguments of another shape or dtype.
    pub fn run(&self, arguments: &[&Array]) -> Result<Vec<Array>> {
        let given: Vec<&mxnet_core::Array> = arguments.iter().map(|x| (*x).as_ref()).collect();
        Ok(self.0.run(&given)?.into_iter().map(Array::from).collect())
    }
}
