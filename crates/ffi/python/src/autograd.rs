//! Recording, gradients and functions with gradients written in Python.

use std::sync::Arc;

use mxnet::core::autograd::{
    self as tape, Checkpoint, CustomBackward, FirstRun, GradReq, Node, Retain,
};
use mxnet::core::batching::Batching;
use mxnet::core::{Array, Error, Grads, mode};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::array::{Get, PyArray};
use crate::error::PythonFailure;
use crate::error::raise;
use crate::gil_release::{with_gil, with_python, without_gil};

fn grad_req(name: &str) -> PyResult<GradReq> {
    match name {
        "write" => Ok(GradReq::Write),
        "add" => Ok(GradReq::Add),
        "null" => Ok(GradReq::Null),
        other => Err(PyValueError::new_err(format!(
            "grad_req must be 'write', 'add' or 'null', not '{other}'"
        ))),
    }
}

/// `x.attach_grad(...)`.
pub fn attach(py: Python<'_>, x: &PyArray, req: &str, stype: Option<&str>) -> PyResult<()> {
    let attach = match stype {
        None | Some("default") => tape::attach_grad,
        Some("row_sparse") => tape::attach_row_grad,
        Some(stype) => {
            let problem = format!("gradient buffers of storage type '{stype}' do not exist");
            let error = Error::unsupported("attach_grad", problem)
                .with_hint("`stype` is 'default' for a dense gradient, or 'row_sparse'");
            return Err(raise(py, error));
        }
    };
    let mut array = x.array(py);
    attach(&mut array, grad_req(req)?).map_err(|error| raise(py, error))?;
    x.adopt(py, array);
    Ok(())
}

/// `x.grad`.
pub fn gradient(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let Some(leaf) = x.get().with(py, tape::gradient_of) else {
        return Ok(py.None());
    };
    let Some((indices, data)) = leaf.rows() else {
        return Ok(PyArray::wrap(py, leaf.gradient())?.into_any());
    };
    if mode::is_tracing() {
        let problem = "the rows of a row-sparse gradient are not known in a compiled function";
        let error = Error::unsupported("grad", problem)
            .with_hint("use a variable with a dense gradient (`grad_stype='default'`), or read `grad` outside the function");
        return Err(raise(py, error));
    }
    let shape = x.get().with(py, |x| PyTuple::new(py, x.shape()))?;
    let class = py.import("mxnet.sparse")?.getattr("row_sparse_array")?;
    let parts = (PyArray::wrap(py, data)?, PyArray::wrap(py, indices)?, shape);
    Ok(class.call_method1("_of", parts)?.unbind())
}

/// Sets the rows of the row-sparse gradient of `x`.
#[pyfunction]
pub fn set_row_gradient(
    x: &Bound<'_, PyArray>,
    indices: &Bound<'_, PyArray>,
    data: &Bound<'_, PyArray>,
) -> PyResult<()> {
    let py = x.py();
    let Some(leaf) = x.get().with(py, tape::gradient_of) else {
        return Err(raise(
            py,
            Error::autograd("set_row_gradient", "the array has no gradient"),
        ));
    };
    leaf.set_rows(&indices.get().array(py), &data.get().array(py))
        .map_err(|error| raise(py, error))
}

/// Arrays from one array or a sequence of arrays.
fn arrays<'py>(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Vec<Bound<'py, PyArray>>> {
    if let Ok(one) = object.cast::<PyArray>() {
        return Ok(vec![one.clone()]);
    }
    let wrong = |found: &Bound<'_, PyAny>| -> PyErr {
        let name = found
            .get_type()
            .name()
            .map(|n| n.to_string())
            .unwrap_or_default();
        PyTypeError::new_err(format!("{what} must be ndarrays, found '{name}'"))
    };
    let items = object.try_iter().map_err(|_| wrong(object))?;
    items
        .map(|item| item.and_then(|item| item.cast::<PyArray>().cloned().map_err(|_| wrong(&item))))
        .collect()
}

fn optional_arrays(object: Option<&Bound<'_, PyAny>>, len: usize) -> PyResult<Vec<Option<Array>>> {
    let Some(object) = object.filter(|o| !o.is_none()) else {
        return Ok(vec![None; len]);
    };
    let py = object.py();
    if let Ok(one) = object.cast::<PyArray>() {
        return Ok(vec![Some(one.get().array(py))]);
    }
    object
        .try_iter()?
        .map(|item| {
            let item = item?;
            if item.is_none() {
                Ok(None)
            } else {
                Ok(Some(item.cast::<PyArray>()?.get().array(py)))
            }
        })
        .collect()
}

fn retain(keep: bool) -> Retain {
    if keep { Retain::Yes } else { Retain::No }
}

/// `x.backward(...)`.
pub fn backward_of(
    slf: &Bound<'_, PyArray>,
    out_grad: Option<&Bound<'_, PyAny>>,
    retain_graph: bool,
    train_mode: bool,
) -> PyResult<()> {
    backward(slf.as_any(), out_grad, retain_graph, train_mode)
}

/// Gradients of every variable that the heads were computed from, into their buffers.
#[pyfunction]
#[pyo3(signature = (heads, head_grads = None, retain_graph = false, train_mode = true))]
pub fn backward(
    heads: &Bound<'_, PyAny>,
    head_grads: Option<&Bound<'_, PyAny>>,
    retain_graph: bool,
    train_mode: bool,
) -> PyResult<()> {
    let py = heads.py();
    let heads: Vec<Array> = arrays(heads, "heads")?
        .iter()
        .map(|x| x.get().array(py))
        .collect();
    let given = optional_arrays(head_grads, heads.len())?;
    if given.len() != heads.len() {
        return Err(PyValueError::new_err(format!(
            "{} head gradients for {} heads",
            given.len(),
            heads.len()
        )));
    }
    let run = || {
        let heads: Vec<&Array> = heads.iter().collect();
        let given: Vec<Option<&Array>> = given.iter().map(Option::as_ref).collect();
        tape::backward_to(&heads, &given, retain(retain_graph), train_mode)
    };
    let leaves = without_gil(py, run).map_err(|error| raise(py, error))?;
    if mode::is_tracing() {
        // A compiled graph writes the buffers at each run, without a backward pass.
        let marks = Py::new(py, FreshGradients(leaves))?;
        py.import("mxnet._jit")?
            .call_method1("at_each_call", (marks,))?;
    }
    Ok(())
}

/// A callable without arguments that marks these gradients as fresh.
#[pyclass(frozen, module = "mxnet._core")]
struct FreshGradients(Vec<Arc<tape::Leaf>>);

#[pymethods]
impl FreshGradients {
    fn __call__(&self) {
        self.0.iter().for_each(|leaf| leaf.set_fresh(true));
    }
}

/// Gradients of the heads with respect to the variables, as new arrays.
#[pyfunction]
#[pyo3(signature = (heads, variables, head_grads = None, retain_graph = None, create_graph = false, train_mode = true))]
pub fn grad(
    heads: &Bound<'_, PyAny>,
    variables: &Bound<'_, PyAny>,
    head_grads: Option<&Bound<'_, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    train_mode: bool,
) -> PyResult<Py<PyAny>> {
    let py = heads.py();
    let single = variables.is_instance_of::<PyArray>();
    let heads: Vec<Array> = arrays(heads, "heads")?
        .iter()
        .map(|x| x.get().array(py))
        .collect();
    let variables: Vec<Array> = arrays(variables, "variables")?
        .iter()
        .map(|x| x.get().array(py))
        .collect();
    let given = optional_arrays(head_grads, heads.len())?;
    if given.len() != heads.len() {
        return Err(PyValueError::new_err(format!(
            "{} head gradients for {} heads",
            given.len(),
            heads.len()
        )));
    }
    let keep = retain(retain_graph.unwrap_or(create_graph));
    let run = || {
        let heads: Vec<&Array> = heads.iter().collect();
        let variables: Vec<&Array> = variables.iter().collect();
        let given: Vec<Option<&Array>> = given.iter().map(Option::as_ref).collect();
        tape::grad(&heads, &variables, &given, keep, create_graph, train_mode)
    };
    let mut grads = without_gil(py, run).map_err(|error| raise(py, error))?;
    if single {
        let only = grads
            .pop()
            .ok_or_else(|| PyRuntimeError::new_err("no gradient"))?;
        return Ok(PyArray::wrap(py, only)?.into_any());
    }
    let grads: Vec<Py<PyArray>> = grads
        .into_iter()
        .map(|g| PyArray::wrap(py, g))
        .collect::<PyResult<_>>()?;
    Ok(PyList::new(py, grads)?.into_any().unbind())
}

/// Makes arrays variables with these gradient buffers.
#[pyfunction]
#[pyo3(signature = (variables, gradients, grad_reqs = None))]
pub fn mark_variables(
    variables: &Bound<'_, PyAny>,
    gradients: &Bound<'_, PyAny>,
    grad_reqs: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let py = variables.py();
    let variables = arrays(variables, "variables")?;
    let gradients = arrays(gradients, "gradients")?;
    let reqs: Vec<String> = match grad_reqs {
        None => vec!["write".to_owned(); variables.len()],
        Some(reqs) => reqs
            .extract::<String>()
            .map(|one| vec![one; variables.len()])
            .or_else(|_| reqs.extract())?,
    };
    if gradients.len() != variables.len() || reqs.len() != variables.len() {
        let problem = format!(
            "{} variables, {} gradients, {} grad_reqs",
            variables.len(),
            gradients.len(),
            reqs.len()
        );
        return Err(PyValueError::new_err(problem));
    }
    // All are checked before any is changed.
    for (i, (gradient, req)) in gradients.iter().zip(&reqs).enumerate() {
        if grad_req(req)? != GradReq::Null {
            (gradient.get().array(py))
                .check_writable("mark_variables", &format!("`gradients[{i}]`"))
                .map_err(|error| raise(py, error))?;
        }
    }
    for ((x, gradient), req) in variables.iter().zip(&gradients).zip(&reqs) {
        let mut array = x.get().array(py);
        tape::mark_variable(&mut array, gradient.get().array(py), grad_req(req)?)
            .map_err(|error| raise(py, error))?;
        x.get().adopt(py, array);
    }
    Ok(())
}

/// A backward function written in Python.
struct PythonRule {
    call: Py<PyAny>,
    /// Weak references to the arrays that `forward` returned. While `call` runs, they are outputs of the node.
    outputs: Py<PyList>,
}

/// Wraps a Python exception as an error of the core.
fn passed_on(error: PyErr) -> Error {
    Error::Failed(mxnet::engine::Failure::new(
        Box::new(PythonFailure(error)),
        "",
    ))
}

impl CustomBackward for PythonRule {
    fn backward(&self, node: &Arc<Node>, dys: &[Array]) -> mxnet::core::Result<Grads> {
        with_gil(|py| {
            let run = || -> PyResult<Grads> {
                let dys: Vec<Py<PyArray>> = dys
                    .iter()
                    .map(|dy| PyArray::wrap(py, dy.clone()))
                    .collect::<PyResult<_>>()?;
                let mut attached = Attached(py, Vec::new());
                for (i, output) in self.outputs.bind(py).iter().enumerate() {
                    if let Ok(y) = output.call0()?.cast_into::<PyArray>() {
                        let array = y.get().array(py).with_entry(node.clone(), i as u32);
                        y.get().adopt(py, array);
                        attached.1.push(y);
                    }
                }
                let result = self.call.bind(py).call1(PyTuple::new(py, dys)?)?;
                Ok(optional_arrays(Some(&result), 0)?.into_iter().collect())
            };
            run().map_err(passed_on)
        })
    }
}

/// Makes the arrays outputs of a node until this is dropped. If they stayed outputs, a function that stores them would keep itself alive.
struct Attached<'py>(Python<'py>, Vec<Bound<'py, PyArray>>);

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        for y in &self.1 {
            let array = y.get().array(self.0).detach();
            y.get().adopt(self.0, array);
        }
    }
}

/// Records `outputs`, computed from `inputs` while not recording, as results of one operation whose gradient `backward` computes. Those at the
/// positions `constant` are not recorded. `kept` holds weak references to the outputs, and may change later.
#[pyfunction]
pub fn custom_function(
    name: &str,
    inputs: &Bound<'_, PyAny>,
    outputs: &Bound<'_, PyAny>,
    backward: Py<PyAny>,
    constant: Vec<usize>,
    kept: Py<PyList>,
) -> PyResult<Py<PyAny>> {
    let py = inputs.py();
    let inputs: Vec<Array> = arrays(inputs, "inputs")?
        .iter()
        .map(|x| x.get().array(py))
        .collect();
    let outputs: Vec<Array> = arrays(outputs, "outputs")?
        .iter()
        .map(|x| x.get().array(py))
        .collect();
    let refs: Vec<&Array> = inputs.iter().collect();
    let rule = PythonRule {
        call: backward,
        outputs: kept,
    };
    mode::check_custom(name, &refs).map_err(|error| raise(py, error))?;
    let is_constant = |i| constant.contains(&i);
    let recorded = tape::record_custom(name, &refs, outputs, |i| !is_constant(i), Box::new(rule))
        .map_err(|error| raise(py, error))?;
    wrapped(py, recorded)
}

fn wrapped(py: Python<'_>, arrays: Vec<Array>) -> PyResult<Py<PyAny>> {
    let arrays: Vec<Py<PyArray>> = arrays
        .into_iter()
        .map(|y| PyArray::wrap(py, y))
        .collect::<PyResult<_>>()?;
    Ok(PyList::new(py, arrays)?.into_any().unbind())
}

/// Sequence number of the recorded call that computed an array, and the index of its result; None if it is not recorded.
#[pyfunction]
pub fn tape_entry(array: &Bound<'_, PyArray>) -> Option<(u64, u32)> {
    let array = array.get().array(array.py());
    array.entry().map(|(node, index)| (node.seq(), *index))
}

/// The elements of an array as an input of a separate graph, which continues the array's graph if `is_connected`.
#[pyfunction]
pub fn graph_input(array: &Bound<'_, PyArray>, is_connected: bool) -> PyResult<Py<PyArray>> {
    let py = array.py();
    let input = tape::graph_input(&array.get().array(py), is_connected);
    PyArray::wrap(py, input.map_err(|error| raise(py, error))?)
}

/// A version number, which changes when the elements of an array are overwritten.
#[pyfunction]
pub fn version_of(array: &Bound<'_, PyArray>) -> u64 {
    let array = array.get().array(array.py());
    array.tensor().storage().version()
}

/// The second run of a Python function, in the backward pass of [`checkpoint`].
struct SecondRun {
    body: Py<PyAny>,
    first: Checkpoint,
}

impl CustomBackward for SecondRun {
    fn backward(&self, node: &Arc<Node>, dys: &[Array]) -> mxnet::core::Result<Grads> {
        with_python(|py| {
            self.first.pull_back(node, dys, || {
                let run = || results_of(self.body.bind(py));
                run().map_err(passed_on)
            })
        })
    }
}

/// The arrays that a callable without arguments returns.
fn results_of(body: &Bound<'_, PyAny>) -> PyResult<Vec<Array>> {
    let py = body.py();
    let results = arrays(&body.call0()?, "results")?;
    Ok(results.iter().map(|y| y.get().array(py)).collect())
}

/// Calls `body`, which returns arrays, without recording; the backward pass calls it again. Returns the arrays as results of one recorded operation.
#[pyfunction]
pub fn checkpoint(name: &str, body: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = body.py();
    let run = || results_of(body).map_err(passed_on);
    let (outputs, first) = FirstRun::of(name, run, Vec::clone).map_err(|error| raise(py, error))?;
    let inputs: Vec<Array> = first.inputs().cloned().collect();
    let refs: Vec<&Array> = inputs.iter().collect();
    let rule = SecondRun {
        body: body.clone().unbind(),
        first,
    };
    let recorded = tape::record_custom(name, &refs, outputs, |_| true, Box::new(rule))
        .map_err(|error| raise(py, error))?;
    wrapped(py, recorded)
}

/// Optional arrays.
type OptionalArrays = Vec<Option<Py<PyArray>>>;

/// Calls `body` with arrays that each stand for one example of the arrays in `batches`, whose first axis has length `size`. `body` returns arrays.
/// Returns, for each, the array of all examples (None if it is the same for all), and the list that `body` returned.
#[pyfunction]
pub fn batched(
    py: Python<'_>,
    size: usize,
    batches: &Bound<'_, PyAny>,
    body: &Bound<'_, PyAny>,
) -> PyResult<(OptionalArrays, Vec<Py<PyArray>>)> {
    let batches = arrays(batches, "batches")?;
    let batches: Vec<Array> = batches.iter().map(|x| x.get().array(py)).collect();
    let batches: Vec<&Array> = batches.iter().collect();
    let call = |examples: Vec<Array>| {
        let run = || -> PyResult<Vec<Array>> {
            let results = body.call1((wrapped(py, examples)?,))?;
            let results = arrays(&results, "results")?;
            Ok(results.iter().map(|y| y.get().array(py)).collect())
        };
        run().map_err(passed_on)
    };
    let (results, found) =
        Batching::run(size, &batches, call, Vec::clone).map_err(|error| raise(py, error))?;
    let wrap = |y: Array| PyArray::wrap(py, y);
    let found = found.into_iter().map(|y| y.map(wrap).transpose());
    let results = results.into_iter().map(wrap);
    Ok((
        found.collect::<PyResult<_>>()?,
        results.collect::<PyResult<_>>()?,
    ))
}

/// Whether `backward` has stored a gradient of each array since [`set_gradient_fresh`] last cleared the mark; false without a gradient buffer.
#[pyfunction]
pub fn are_gradients_fresh(arrays: Vec<Bound<'_, PyArray>>) -> Vec<bool> {
    let is_fresh = |x: &Bound<'_, PyArray>| {
        let leaf = tape::gradient_of(&x.get().array(x.py()));
        leaf.is_some_and(|leaf| leaf.is_fresh())
    };
    arrays.iter().map(is_fresh).collect()
}

/// Marks the gradients of `arrays` as fresh or not.
#[pyfunction]
pub fn set_gradient_fresh(arrays: Vec<Bound<'_, PyArray>>, fresh: bool) {
    for x in arrays {
        if let Some(leaf) = tape::gradient_of(&x.get().array(x.py())) {
            leaf.set_fresh(fresh);
        }
    }
}
