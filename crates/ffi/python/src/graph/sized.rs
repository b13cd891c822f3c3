//! Functions of arrays with dynamic axes: traced at three sizes, compiled for each size that occurs.

use std::sync::{Arc, Mutex, PoisonError};

use mxnet::core::Array;
use mxnet::graph::passes::Choice;
use mxnet::graph::{Program, Sample, Source, Template, fit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::compiled::CompiledGraph;
use super::pieces::SplitFunction;
use super::traced::TracedFunction;

/// Dynamic axes of an array, each with its name if it has one; the lengths of the other axes; the name of the dtype.
pub type Axes = (
    Vec<(usize, Option<String>)>,
    Option<Vec<Option<usize>>>,
    Option<String>,
);

/// The dynamic axes of the arrays among the arguments.
#[derive(Clone)]
pub struct DynamicAxes {
    axes: Vec<Axes>,
    /// Whether the first entry applies to all arrays.
    is_for_all: bool,
}

impl DynamicAxes {
    /// Dynamic axes of all arrays, or of each array.
    pub fn new(axes: Vec<Axes>, is_for_all: bool) -> DynamicAxes {
        DynamicAxes { axes, is_for_all }
    }

    /// The dynamic axes of array `i`.
    fn of(&self, i: usize) -> Option<&Axes> {
        self.axes.get(if self.is_for_all { 0 } else { i })
    }
}

/// An error unless the array has the declared number of axes, lengths and dtype.
fn check(x: &Array, i: usize, axes: &Axes) -> PyResult<()> {
    let (_, shape, dtype) = axes;
    let fits = shape.as_ref().is_none_or(|shape| {
        shape.len() == x.ndim()
            && shape
                .iter()
                .zip(x.shape())
                .all(|(said, n)| said.is_none_or(|said| said == *n))
    });
    if fits
        && dtype
            .as_deref()
            .is_none_or(|dtype| dtype == x.dtype().name())
    {
        return Ok(());
    }
    let said = shape.iter().flatten();
    let said: Vec<String> = said
        .map(|n| n.map_or("any".to_owned(), |n| n.to_string()))
        .collect();
    Err(PyValueError::new_err(format!(
        "jit: array {i} must have shape ({}){}, found {} {}",
        said.join(", "),
        dtype
            .as_ref()
            .map_or(String::new(), |dtype| format!(" and dtype {dtype}")),
        x.dtype().name(),
        mxnet::core::Tuple(x.shape()),
    )))
}

/// Identity of a length: axes with the same name have one length; unnamed axes share one if they are equally long.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Name(String),
    Len(usize),
}

/// The dynamic lengths of a call.
#[derive(Default)]
pub struct CallSizes {
    keys: Vec<Key>,
    /// The lengths.
    pub sizes: Vec<i64>,
    /// For each length, one axis that has it.
    pub positions: Vec<(usize, usize)>,
    /// For each dynamic axis: index of the array, axis, index of the length.
    axes: Vec<(usize, usize, usize)>,
    /// Whether an array is not in C order.
    pub has_strides: bool,
}

impl CallSizes {
    /// Adds the lengths of array `i`. Returns the index of the length of each dynamic axis.
    ///
    /// # Errors
    /// `ValueError` if one name has two lengths.
    pub fn add(
        &mut self,
        dynamic: &DynamicAxes,
        i: usize,
        x: &Array,
    ) -> PyResult<Vec<Option<usize>>> {
        let mut found = vec![None; x.ndim()];
        let Some(axes) = dynamic.of(i) else {
            return Ok(found);
        };
        check(x, i, axes)?;
        for (axis, name) in &axes.0 {
            let Some(&len) = x.shape().get(*axis) else {
                continue;
            };
            let key = match name {
                Some(name) => Key::Name(name.clone()),
                None => Key::Len(len),
            };
            let known = self.keys.iter().position(|known| *known == key);
            let symbol = known.unwrap_or_else(|| {
                self.keys.push(key);
                self.sizes.push(len as i64);
                self.positions.push((i, *axis));
                self.keys.len() - 1
            });
            if self.sizes[symbol] != len as i64 {
                let (first, at) = self.positions[symbol];
                return Err(PyValueError::new_err(format!(
                    "jit: length {:?} is {} on axis {at} of array {first} and {len} on axis {axis} of array {i}",
                    name.as_deref().unwrap_or(""),
                    self.sizes[symbol],
                )));
            }
            found[*axis] = Some(symbol);
            self.axes.push((i, *axis, symbol));
        }
        if found.iter().any(Option::is_some) && !x.layout().is_contiguous() {
            self.has_strides = true;
        }
        Ok(found)
    }

    /// The sizes at which a function is traced.
    pub fn samples(&self) -> Option<[Vec<i64>; 3]> {
        /// Factors for the second and third sizes. No two rows have the same ratio, so that a number in the traces depends on one length in only one
        /// way.
        const STEPS: [(i64, i64); 6] = [(3, 10), (7, 16), (5, 11), (4, 17), (9, 13), (6, 19)];
        if self.sizes.is_empty() || self.sizes.len() > STEPS.len() {
            return None;
        }
        let first = self.sizes.iter().enumerate();
        // Lengths 0 and 1 are special: they broadcast, and their strides do not matter.
        let first: Vec<i64> = first
            .map(|(i, &n)| if n < 2 { 3 + i as i64 } else { n })
            .collect();
        let later = |step: fn(&(i64, i64)) -> i64| -> Vec<i64> {
            let steps = STEPS.iter().map(step);
            first.iter().zip(steps).map(|(n, step)| n + step).collect()
        };
        let (second, third) = (later(|x| x.0), later(|x| x.1));
        Some([first, second, third])
    }

    /// Shapes of the arrays at other sizes.
    pub fn shapes(&self, arrays: &[Array], sizes: &[i64]) -> Vec<Vec<usize>> {
        let mut shapes: Vec<Vec<usize>> = arrays.iter().map(|x| x.shape().to_vec()).collect();
        for &(array, axis, symbol) in &self.axes {
            shapes[array][axis] = sizes[symbol] as usize;
        }
        shapes
    }
}

/// The graph for certain sizes, or the reason why there is none.
type Made = Result<Arc<Py<CompiledGraph>>, String>;

/// A function with a template for all sizes.
pub struct SizedFunction {
    template: Arc<Template>,
    traced: TracedFunction,
    choice: Choice,
    /// Graphs by sizes, the most recently used last; for sizes without a graph, the reason why the template does not apply.
    made: Mutex<Vec<(Vec<i64>, Made)>>,
}

/// Number of sizes for which compiled graphs are cached.
const MAX_SIZES: usize = 32;

/// The template of three traces: as a whole, or in pieces.
pub enum Fitted {
    Sized(SizedFunction),
    Split(SplitFunction),
}

/// The template of three traces at these sizes of the arguments.
///
/// # Errors
/// Why there is none.
pub fn fitted(
    traces: [TracedFunction; 3],
    sizes: &[Vec<i64>; 3],
    positions: &[(usize, usize)],
    choice: Choice,
) -> Result<Fitted, String> {
    let sample = |i: usize| Sample {
        graph: &traces[i].traced.graph,
        sizes: &sizes[i],
        counted: &traces[i].traced.counted,
        decisions: &traces[i].decisions,
    };
    let template = fit([sample(0), sample(1), sample(2)], positions)?;
    let is_captured = traces.iter().any(|x| x.traced.argument_is_captured);
    if is_captured {
        return Err("an argument is also an array that the function captured".to_owned());
    }
    let num_forward = traces[0].traced.num_forward_nodes;
    if traces
        .iter()
        .any(|x| x.traced.num_forward_nodes != num_forward)
    {
        return Err("its gradient begins elsewhere at another size".to_owned());
    }
    let [mut traced, second, third] = traces;
    for other in [second, third] {
        traced.traced.seen.extend(other.traced.seen);
    }
    if traced.traced.counted.is_empty() {
        return Ok(Fitted::Sized(SizedFunction::new(template, traced, choice)));
    }
    let counts = (num_forward, traced.num_outputs, traced.num_arguments);
    let program = Program::new(template, counts, choice)?;
    Ok(Fitted::Split(SplitFunction::new(program, traced)))
}

/// Lengths of axes that depend on values at the three sizes, by their index.
pub const LENGTHS: [fn(usize) -> Option<usize>; 3] = [
    |i| STEPS_OF_LENGTHS.get(i).map(|_| 5 + 2 * i),
    |i| STEPS_OF_LENGTHS.get(i).map(|step| 5 + 2 * i + step.0),
    |i| STEPS_OF_LENGTHS.get(i).map(|step| 5 + 2 * i + step.1),
];

/// As for arguments, no two rows have the same ratio.
const STEPS_OF_LENGTHS: [(usize, usize); 12] = [
    (8, 19),
    (6, 23),
    (11, 15),
    (7, 25),
    (10, 21),
    (12, 17),
    (9, 29),
    (13, 22),
    (5, 31),
    (14, 27),
    (15, 20),
    (4, 33),
];

impl SizedFunction {
    /// A function with this template.
    fn new(template: Template, traced: TracedFunction, choice: Choice) -> SizedFunction {
        SizedFunction {
            template: Arc::new(template),
            traced,
            choice,
            made: Mutex::new(Vec::new()),
        }
    }

    /// Whether the values that the function read during tracing are unchanged.
    pub fn is_current(&self) -> bool {
        self.traced.is_current()
    }

    /// Storages of the arrays that the function captured.
    pub fn captured_storages(&self) -> Vec<usize> {
        let inputs = self.template.traced().inputs.iter();
        let found = inputs.filter_map(|input| match &input.source {
            Source::Captured(x) => Some(Arc::as_ptr(x.tensor().storage()) as usize),
            _ => None,
        });
        found.collect()
    }

    /// Why the template does not apply to some sizes.
    pub fn note(&self) -> Option<String> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().rev().find_map(|(sizes, graph)| {
            let error = graph.as_ref().err()?;
            Some(format!("sizes {sizes:?} have separate graphs: {error}"))
        })
    }

    /// Compiled graphs, the most recently used last.
    pub fn graphs(&self) -> Vec<Arc<Py<CompiledGraph>>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter()
            .filter_map(|(_, graph)| graph.clone().ok())
            .collect()
    }

    /// The graph for these sizes, compiled if necessary; `None` if the template does not apply to them.
    ///
    /// # Errors
    /// Errors of the core, except those about sizes.
    pub fn graph_at(
        &self,
        py: Python<'_>,
        sizes: &[i64],
    ) -> PyResult<Option<Arc<Py<CompiledGraph>>>> {
        {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(i) = made.iter().rposition(|(known, _)| known == sizes) {
                let found = made[i].1.clone().ok();
                if i + 1 < made.len() {
                    let entry = made.remove(i);
                    made.push(entry);
                }
                return Ok(found);
            }
        }
        let start = std::time::Instant::now();
        let compiled =
            (self.template.at(sizes)).and_then(|graph| self.traced.compile(graph, &self.choice));
        let graph = match compiled {
            Ok(mut graph) => {
                graph.seconds = start.elapsed().as_secs_f64();
                graph.template = Some(self.template.clone());
                Ok(Arc::new(Py::new(py, graph)?))
            }
            Err(error) => Err(error.to_string()),
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = (made.len() >= MAX_SIZES).then(|| made.remove(0));
        made.push((sizes.to_vec(), graph.clone()));
        // Its objects may run code of the user, which may need the lock.
        drop(made);
        drop(oldest);
        Ok(graph.ok())
    }
}
