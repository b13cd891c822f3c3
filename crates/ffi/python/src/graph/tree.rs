//! Structure of the arguments and results of a traced function: arrays in nested tuples, lists and dictionaries, and other objects among them.

use std::sync::Arc;

use mxnet::core::Array;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType,
};
use smallvec::SmallVec;

use super::sized::{CallSizes, DynamicAxes};
use super::watch;
use crate::array::{PyArray, as_array};
use crate::once_box::interned;
use crate::typed::Get;

/// The structure of nested values.
pub enum Tree {
    /// Array number `i`, and whether it stands for a NumPy scalar.
    Array(usize, bool),
    /// A tuple.
    Tuple(Vec<Tree>),
    /// A named tuple.
    Named(Py<PyAny>, Vec<Tree>),
    /// A list.
    List(Vec<Tree>),
    /// A dictionary: keys and values.
    Dict(Vec<(Py<PyAny>, Tree)>),
    /// An object that consists of arrays, such as a sparse or ragged array: its class, its other data, its arrays.
    Parts(Py<PyAny>, Py<PyAny>, Vec<Tree>),
    /// A dataclass instance: its class, names and values of its fields.
    Fields(Py<PyAny>, Vec<(Py<PyAny>, Tree)>),
    /// Any other object.
    Static(Py<PyAny>),
}

/// A signature: calls with the same signature can use the same graph.
#[derive(Default)]
pub struct Signature {
    /// Shapes and dtypes of arrays, numbers, and the structure.
    pub words: SmallVec<[u64; 48]>,
    /// Objects that are compared with `==`.
    pub objects: SmallVec<[Py<PyAny>; 2]>,
}

// Tags of words.
const ARRAY: u64 = 1;
const TUPLE: u64 = 2;
const NAMED: u64 = 3;
const LIST: u64 = 4;
const DICT: u64 = 5;
const NONE: u64 = 6;
const BOOL: u64 = 7;
const INT: u64 = 8;
const FLOAT: u64 = 9;
const OBJECT: u64 = 10;
const PARTS: u64 = 11;

impl Signature {
    /// Whether the calls of both signatures can use the same graph.
    pub fn is_same(&self, other: &Signature, py: Python<'_>) -> PyResult<bool> {
        if self.words != other.words || self.objects.len() != other.objects.len() {
            return Ok(false);
        }
        for (a, b) in self.objects.iter().zip(&other.objects) {
            let (a, b) = (a.bind(py), b.bind(py));
            let is_equal = a.is(b) || a.get_type().is(b.get_type()) && a.eq(b)?;
            if !is_equal {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds which arrays share a storage, and their offsets; returns whether any do.
    pub fn push_sharing(&mut self, py: Python<'_>, arrays: &[Bound<'_, PyArray>]) -> bool {
        let before = self.words.len();
        let location = |x: &Array| {
            (
                Arc::as_ptr(x.tensor().storage()) as usize,
                x.layout().offset(),
            )
        };
        let locations: SmallVec<[(usize, usize); 8]> =
            arrays.iter().map(|x| x.get().with(py, location)).collect();
        for (i, (storage, offset)) in locations.iter().enumerate() {
            if let Some(first) = locations[..i]
                .iter()
                .position(|(other, _)| other == storage)
            {
                self.words.push((first as u64) << 32 | i as u64);
                self.words.push(locations[first].1 as u64);
                self.words.push(*offset as u64);
            }
        }
        self.words.len() > before
    }

    /// `symbols` has the index of the length for each dynamic axis.
    fn push_array(&mut self, x: &Array, symbols: &[Option<usize>]) {
        /// Flag of a word that holds the index of a dynamic length.
        const SYMBOL: u64 = 1 << 63;
        let is_sized = symbols.iter().any(Option::is_some);
        let device = x.device();
        let is_recorded = u64::from(x.edge().is_some());
        self.words.push(
            ARRAY
                | (x.dtype() as u64) << 8
                | (device.kind().index() as u64) << 16
                | (x.ndim() as u64) << 24
                | u64::from(device.id()) << 32
                | is_recorded << 56
                | u64::from(x.tensor().is_read_only()) << 57
                | u64::from(is_sized) << 58,
        );
        if is_sized {
            let dims = x.shape().iter().zip(symbols);
            let word = |(&n, symbol): (&usize, &Option<usize>)| match symbol {
                Some(symbol) => SYMBOL | *symbol as u64,
                None => n as u64,
            };
            self.words.extend(dims.map(word));
            return;
        }
        self.words.extend(x.shape().iter().map(|&n| n as u64));
        self.words
            .extend(x.layout().strides().iter().map(|&n| n as u64));
    }
}

/// Flattens nested values.
pub struct Flattener<'py, 'a> {
    /// The arrays, in order.
    pub arrays: SmallVec<[Bound<'py, PyArray>; 8]>,
    /// The signature of the call; not used for results.
    pub signature: Option<Signature>,
    /// The dynamic axes, and the lengths found so far.
    pub sizes: Option<(&'a DynamicAxes, CallSizes)>,
}

impl<'py> Flattener<'py, '_> {
    fn array(&mut self, x: &Array) -> PyResult<()> {
        let symbols = match &mut self.sizes {
            Some((dynamic, sizes)) => sizes.add(dynamic, self.arrays.len(), x)?,
            None => Vec::new(),
        };
        if let Some(signature) = &mut self.signature {
            signature.push_array(x, &symbols);
        }
        Ok(())
    }

    fn word(&mut self, word: u64) {
        if let Some(signature) = &mut self.signature {
            signature.words.push(word);
        }
    }

    fn object(&mut self, object: &Bound<'py, PyAny>) {
        if let Some(signature) = &mut self.signature {
            signature.words.push(OBJECT);
            signature.objects.push(object.clone().unbind());
        }
    }

    /// Flattens a value. Its structure is only returned if `with_tree`.
    ///
    /// # Errors
    /// `TypeError` for arguments that cannot be compared because they have no hash.
    pub fn flatten(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Tree> {
        if let Some(array) = as_array(value) {
            self.array(&array.get().borrow(value.py()))?;
            self.arrays.push(array.clone());
            return Ok(Tree::Array(self.arrays.len() - 1, array.get().is_scalar()));
        }
        if let Some(number) = watch::python_number(value)? {
            return self.flatten(&number);
        }
        if value.is_none() {
            self.word(NONE);
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            self.word(TUPLE | (tuple.len() as u64) << 8);
            let items = tuple.iter().map(|item| self.flatten(&item));
            return Ok(Tree::Tuple(items.collect::<PyResult<_>>()?));
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            self.word(LIST | (list.len() as u64) << 8);
            let items = list.iter().map(|item| self.flatten(&item));
            return Ok(Tree::List(items.collect::<PyResult<_>>()?));
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            self.word(DICT | (dict.len() as u64) << 8);
            let mut items = Vec::with_capacity(dict.len());
            for (key, item) in dict.iter() {
                self.object(&key);
                items.push((key.unbind(), self.flatten(&item)?));
            }
            return Ok(Tree::Dict(items));
        } else if value.is_exact_instance_of::<PyBool>() {
            self.word(BOOL | u64::from(value.is_truthy()?) << 8);
        } else if value.is_exact_instance_of::<PyFloat>() {
            self.word(FLOAT);
            self.word(value.extract::<f64>()?.to_bits());
        } else if value.is_exact_instance_of::<PyInt>() {
            match value.extract::<i64>() {
                Ok(number) => {
                    self.word(INT);
                    self.word(number as u64);
                }
                Err(_) => self.object(value),
            }
        } else if value.is_instance_of::<PyTuple>() && value.hasattr("_fields")? {
            let class = value.get_type().into_any();
            let tuple = value.cast::<PyTuple>()?;
            self.word(NAMED | (tuple.len() as u64) << 8);
            self.object(&class);
            let items = tuple.iter().map(|item| self.flatten(&item));
            return Ok(Tree::Named(class.unbind(), items.collect::<PyResult<_>>()?));
        } else if !value.is_exact_instance_of::<PyString>()
            && value
                .get_type()
                .hasattr(interned!(value.py(), "_graph_parts"))?
        {
            let parts = value.call_method0(interned!(value.py(), "_graph_parts"))?;
            let (rest, arrays): (Bound<'py, PyAny>, Bound<'py, PyTuple>) = parts.extract()?;
            let class = value.get_type().into_any();
            self.word(PARTS | (arrays.len() as u64) << 8);
            self.object(&class);
            self.object(&rest);
            let items = arrays.iter().map(|item| self.flatten(&item));
            let items = items.collect::<PyResult<_>>()?;
            return Ok(Tree::Parts(class.unbind(), rest.unbind(), items));
        } else {
            if self.signature.is_some() && !value.is_exact_instance_of::<PyString>() {
                value.hash().map_err(|_| {
                    let name = value.get_type().name().map(|n| n.to_string()).unwrap_or_default();
                    PyTypeError::new_err(format!(
                        "jit: an argument of type '{name}' cannot be compared between calls, because it has no hash\n  hint: pass arrays as \
                         `mx.np.array(...)`, other values as numbers, strings or tuples"
                    ))
                })?;
            }
            if self.signature.is_none()
                && value.hasattr("__dataclass_fields__")?
                && !value.is_instance_of::<PyType>()
                && holds_stand_in(value, 0)?
            {
                let names = value
                    .getattr("__dataclass_fields__")?
                    .cast_into::<PyDict>()?;
                let mut fields = Vec::with_capacity(names.len());
                for name in names.keys() {
                    let item = value.getattr(name.cast::<PyString>()?)?;
                    fields.push((name.unbind(), self.flatten(&item)?));
                }
                return Ok(Tree::Fields(value.get_type().into_any().unbind(), fields));
            }
            // An object that holds arrays would keep those of the trace.
            if self.signature.is_none()
                && (value.hasattr("__array_function__")? || holds_stand_in(value, 0)?)
            {
                let name = value.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "jit: a function returned a '{name}', which holds arrays that a graph does not see\n  hint: return the arrays \
                     that it is made of"
                )));
            }
            self.object(value);
        }
        Ok(Tree::Static(value.clone().unbind()))
    }
}

/// Whether an object that is not one of the containers above has abstract arrays of a trace among its items or attributes.
fn holds_stand_in(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
    /// Depth to which nested containers are searched.
    const MAX_DEPTH: usize = 4;
    if let Some(array) = as_array(value) {
        return Ok(array.get().with(value.py(), Array::is_abstract));
    }
    let any = |items: Bound<'_, PyAny>| -> PyResult<bool> {
        for item in items.try_iter()? {
            if holds_stand_in(&item?, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    if depth > MAX_DEPTH || value.is_instance_of::<PyType>() {
        return Ok(false);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return any(dict.values().into_any());
    }
    let is_sequence = value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>();
    if is_sequence && any(value.clone())? {
        return Ok(true);
    }
    match value.getattr_opt("__dict__")? {
        Some(attributes) if !value.is_callable() => match attributes.cast::<PyDict>() {
            Ok(attributes) => any(attributes.values().into_any()),
            Err(_) => Ok(false),
        },
        _ => Ok(false),
    }
}

impl Tree {
    /// Whether two results have the same structure.
    pub fn is_same(&self, other: &Tree, py: Python<'_>) -> PyResult<bool> {
        let all = |a: &[Tree], b: &[Tree]| -> PyResult<bool> {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !a.is_same(b, py)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        Ok(match (self, other) {
            (Tree::Array(i, a), Tree::Array(k, b)) => i == k && a == b,
            (Tree::Tuple(a), Tree::Tuple(b)) | (Tree::List(a), Tree::List(b)) => all(a, b)?,
            (Tree::Named(a, x), Tree::Named(b, y)) => a.is(b) && all(x, y)?,
            (Tree::Dict(a), Tree::Dict(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for ((a, x), (b, y)) in a.iter().zip(b) {
                    if !a.bind(py).eq(b)? || !x.is_same(y, py)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Tree::Fields(a, x), Tree::Fields(b, y)) => {
                let mut is_same = a.is(b) && x.len() == y.len();
                for ((_, x), (_, y)) in x.iter().zip(y) {
                    is_same = is_same && x.is_same(y, py)?;
                }
                is_same
            }
            (Tree::Parts(a, rest, x), Tree::Parts(b, other, y)) => {
                a.is(b) && rest.bind(py).eq(other)? && all(x, y)?
            }
            (Tree::Static(a), Tree::Static(b)) => a.is(b) || a.bind(py).eq(b)?,
            _ => false,
        })
    }

    /// The values with this structure around the given arrays.
    pub fn build(
        &self,
        py: Python<'_>,
        array: &mut dyn FnMut(usize, bool) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let mut all = |items: &[Tree]| -> PyResult<Vec<Py<PyAny>>> {
            items.iter().map(|item| item.build(py, array)).collect()
        };
        Ok(match self {
            Tree::Array(i, is_scalar) => array(*i, *is_scalar)?,
            Tree::Tuple(items) => PyTuple::new(py, all(items)?)?.into_any().unbind(),
            Tree::List(items) => PyList::new(py, all(items)?)?.into_any().unbind(),
            Tree::Named(class, items) => class.call1(py, PyTuple::new(py, all(items)?)?)?,
            Tree::Parts(class, rest, items) => {
                let arrays = PyTuple::new(py, all(items)?)?;
                class.call_method1(py, interned!(py, "_of_graph_parts"), (rest, arrays))?
            }
            Tree::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, item) in items {
                    dict.set_item(key, item.build(py, array)?)?;
                }
                dict.into_any().unbind()
            }
            Tree::Fields(class, items) => {
                // Constructed as `copy.copy` does, which also works for frozen dataclasses.
                let object = py.import("builtins")?.getattr("object")?;
                let made = object.call_method1("__new__", (class,))?;
                for (name, item) in items {
                    let item = item.build(py, array)?;
                    object.call_method1("__setattr__", (&made, name, item))?;
                }
                made.unbind()
            }
            Tree::Static(value) => value.clone_ref(py),
        })
    }
}
