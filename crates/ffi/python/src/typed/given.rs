//! Argument binding of methods by their text signature.

use std::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::keywords::Keywords;

/// Largest number of parameters of a method.
const MAX_PARAMS: usize = 6;

/// A method's parameters, parsed from its text signature.
pub struct Signature {
    pub method: &'static str,
    /// Name of each parameter.
    params: [&'static str; MAX_PARAMS],
    /// Number of parameters.
    len: usize,
    /// Number of leading parameters without a default.
    required: usize,
    /// Number of positional-only parameters.
    positional_only: usize,
    /// Number of parameters that can be given by position.
    positional: usize,
    /// Whether it has `*args`.
    takes_rest: bool,
    /// Whether it has `**kwargs`.
    takes_others: bool,
}

impl Signature {
    /// Parses a text signature such as `"($self, a, /, b=None, *, c=1)"`. No default may contain a comma.
    pub const fn of(method: &'static str, text: &'static str) -> Signature {
        let mut found = Signature {
            method,
            params: [""; MAX_PARAMS],
            len: 0,
            required: 0,
            positional_only: 0,
            positional: usize::MAX,
            takes_rest: false,
            takes_others: false,
        };
        let bytes = text.as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            let (mut end, mut name_len) = (at, 0);
            while !matches!(bytes[end], b',' | b')') {
                if name_len == 0 && bytes[end] == b'=' {
                    name_len = end - at;
                }
                end += 1;
            }
            match bytes[at] {
                b'$' | b')' => {}
                b'/' => found.positional_only = found.len,
                b'*' if bytes[at + 1] == b'*' => found.takes_others = true,
                b'*' => {
                    found.positional = found.len;
                    found.takes_rest = end > at + 1;
                }
                _ => {
                    let param = text.split_at(end).0.split_at(at).1;
                    found.params[found.len] = match name_len {
                        0 => param,
                        _ => param.split_at(name_len).0,
                    };
                    found.len += 1;
                    if name_len == 0 {
                        found.required = found.len;
                    }
                }
            }
            at = end + 2;
        }
        if found.positional > found.len {
            found.positional = found.len;
        }
        found
    }

    /// Associates the arguments of a call with the parameters, and calls `run` if they are valid.
    #[inline]
    pub fn call<'a, 'py: 'a, R>(
        &'static self,
        py: Python<'py>,
        positional: &'a [*mut ffi::PyObject],
        named: &Keywords,
        run: impl for<'b> FnOnce(&Given<'b, 'py>) -> PyResult<R>,
    ) -> PyResult<R> {
        let (own, rest) = positional.split_at(positional.len().min(self.positional));
        let fits = own.len() >= self.required && (rest.is_empty() || self.takes_rest);
        let mut given = Given {
            signature: self,
            py,
            own,
            rest,
            others: None,
        };
        if named.len == 0 && fits {
            return run(&given);
        }
        let mut values = [ptr::null_mut(); MAX_PARAMS];
        given.others = self.sort(py, &given, named, &mut values)?;
        given.own = &values;
        run(&given)
    }

    /// Stores positional and keyword arguments at the indices of their parameters. Returns the other keyword arguments.
    #[cold]
    #[inline(never)]
    fn sort<'py>(
        &self,
        py: Python<'py>,
        given: &Given<'_, 'py>,
        named: &Keywords,
        values: &mut [*mut ffi::PyObject; MAX_PARAMS],
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        if !given.rest.is_empty() && !self.takes_rest {
            return Err(self.wrong(format!(
                "takes {} positional arguments but {} were given",
                self.positional,
                given.own.len() + given.rest.len(),
            )));
        }
        values[..given.own.len()].copy_from_slice(given.own);
        let mut others = None;
        for i in 0..named.len {
            let (name, value) = named.get(i);
            // SAFETY: name and value of a keyword of the running call.
            let (name, object) = unsafe {
                (
                    Borrowed::<PyAny>::from_ptr(py, name),
                    Borrowed::<PyAny>::from_ptr(py, value),
                )
            };
            let name = name.cast::<PyString>()?;
            let text = name.to_str()?;
            let known = self.params[..self.len].iter().position(|&p| p == text);
            match known.filter(|&at| at >= self.positional_only) {
                Some(at) if values[at].is_null() => values[at] = value,
                Some(_) => {
                    return Err(self.wrong(format!("got multiple values for argument '{text}'")));
                }
                None if self.takes_others => others
                    .get_or_insert_with(|| PyDict::new(py))
                    .set_item(name, object)?,
                None => {
                    return Err(self.wrong(format!("got an unexpected keyword argument '{text}'")));
                }
            }
        }
        match (0..self.required).find(|&i| values[i].is_null()) {
            Some(i) => {
                let name = self.params[i];
                Err(self.wrong(format!("missing required argument: '{name}'")))
            }
            None => Ok(others),
        }
    }

    fn wrong(&self, what: String) -> PyErr {
        PyTypeError::new_err(format!("{}() {what}", self.method))
    }
}

/// The arguments of a call, indexed by parameter.
pub struct Given<'a, 'py> {
    signature: &'static Signature,
    py: Python<'py>,
    /// Arguments of the parameters, borrowed; null or past the end if missing.
    own: &'a [*mut ffi::PyObject],
    /// Arguments of `*args`, borrowed.
    rest: &'a [*mut ffi::PyObject],
    /// Arguments of `**kwargs`.
    pub others: Option<Bound<'py, PyDict>>,
}

impl<'a, 'py> Given<'a, 'py> {
    /// Argument `i`, unless it is missing.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        let object = *self.own.get(i)?;
        // SAFETY: null, or an argument of the running call, which outlives the result.
        unsafe { Borrowed::from_ptr_or_opt(self.py, object) }
    }

    /// Argument `i`, which is required.
    #[inline]
    pub fn need(&self, i: usize) -> Borrowed<'a, 'py, PyAny> {
        self.get(i).expect("a parameter without default is given")
    }

    /// Argument `i`, unless it is missing or None.
    #[inline]
    pub fn some(&self, i: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        self.get(i).filter(|x| !x.is_none())
    }

    /// Argument `i` as a `T`, unless it is missing or None.
    pub fn to<T: FromPyObject<'a, 'py>>(&self, i: usize) -> PyResult<Option<T>> {
        self.some(i).map(|value| self.read(i, value)).transpose()
    }

    /// Argument `i` as a `T`; `missing` if it is missing.
    pub fn or<T: FromPyObject<'a, 'py>>(&self, i: usize, missing: T) -> PyResult<T> {
        match self.get(i) {
            Some(value) => self.read(i, value),
            None => Ok(missing),
        }
    }

    fn read<T: FromPyObject<'a, 'py>>(
        &self,
        i: usize,
        value: Borrowed<'a, 'py, PyAny>,
    ) -> PyResult<T> {
        value.extract::<T>().map_err(|error| {
            let error: PyErr = error.into();
            match error.is_instance_of::<PyTypeError>(self.py) {
                true => {
                    let (name, what) = (self.signature.params[i], error.value(self.py));
                    PyTypeError::new_err(format!("argument '{name}': {what}"))
                }
                false => error,
            }
        })
    }

    /// The given arguments from `from` on, as a dictionary by name.
    pub fn by_name(&self, from: usize) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(self.py);
        for i in from..self.signature.len {
            if let Some(value) = self.get(i) {
                named.set_item(self.signature.params[i], value)?;
            }
        }
        Ok(named)
    }

    /// The arguments of `*args`.
    #[inline]
    pub fn rest(&self) -> impl ExactSizeIterator<Item = Borrowed<'a, 'py, PyAny>> + Clone {
        let py = self.py;
        // SAFETY: as above.
        (self.rest.iter()).map(move |&object| unsafe { Borrowed::from_ptr(py, object) })
    }

    /// The arguments of `*args` as a tuple.
    pub fn rest_tuple(&self) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(self.py, self.rest())
    }
}
