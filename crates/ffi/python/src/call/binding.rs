//! The Python side of an operator: names of its parameters, signature, docstring, method definition.

use std::ffi::{CString, c_char};
use std::fmt::Write;
use std::ops::Deref;

use mxnet::core::bind::{Signature, extra_keywords};
use mxnet::core::{Form, OpDef};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::description::{default, docstring};

/// An operator, prepared for calls from Python.
pub struct Binding {
    /// The language-independent signature of the binder.
    signature: Signature,
    /// Interned names of the parameters, then of those that the call form adds (`out`, …).
    pub keywords: Vec<Py<PyAny>>,
    /// The C method definition; Python keeps pointers into it.
    pub def: ffi::PyMethodDef,
}

impl Deref for Binding {
    type Target = Signature;

    fn deref(&self) -> &Signature {
        &self.signature
    }
}

// SAFETY: a binding never changes after construction; the pointers in `def` point to leaked, constant text.
unsafe impl Send for Binding {}
// SAFETY: as above.
unsafe impl Sync for Binding {}

pub type FastCall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

impl Binding {
    pub fn leak(
        py: Python<'_>,
        op: &'static OpDef,
        name: &'static str,
        entry: FastCall,
        skip_self: bool,
    ) -> PyResult<&'static Binding> {
        let signature = Signature::new(op, name);
        let names = signature.keywords.iter();
        let keywords = names
            .map(|name| PyString::intern(py, name).into_any().unbind())
            .collect();
        let doc = format!(
            "{name}{}\n--\n\n{}",
            self::signature(signature.public, skip_self),
            docstring(op, skip_self)
        );
        let def = ffi::PyMethodDef {
            ml_name: leak_text(name)?,
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunctionFastWithKeywords: entry,
            },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: leak_text(&doc)?,
        };
        Ok(Box::leak(Box::new(Binding {
            signature,
            keywords,
            def,
        })))
    }
}

fn leak_text(text: &str) -> PyResult<*const c_char> {
    Ok(CString::new(text)?.into_raw())
}

/// The signature as text, e.g. `(a, axis=None, *, keepdims=False)`.
pub fn signature(op: &OpDef, skip_self: bool) -> String {
    let mut text = String::from("(");
    let mut parts: Vec<String> = if skip_self {
        vec!["$self".into()]
    } else {
        Vec::new()
    };
    let mut keyword_only = false;
    let skip = usize::from(skip_self);
    for (i, p) in op.params.iter().enumerate().skip(skip) {
        if p.keyword_only && !keyword_only {
            keyword_only = true;
            parts.push("*".into());
        }
        let mut part = p.name.to_owned();
        if let Some(default) = default(p) {
            let _ = write!(part, "={default}");
        }
        parts.push(part);
        if op.form == Form::Ufunc && i + 1 == op.params.len() {
            parts.push("/".into());
        }
    }
    match op.form {
        Form::ParamsOnly => {}
        Form::Out => parts.extend(extra_keywords(op).iter().map(|key| format!("{key}=None"))),
        Form::Ufunc => parts.extend(
            [
                if mxnet::ops::ufunc::num_outputs(op) == 1 {
                    "out=None"
                } else {
                    "out=(None, None)"
                },
                "*",
                "where=True",
                "casting='same_kind'",
                "order='K'",
                "dtype=None",
                "subok=True",
                "signature=None",
            ]
            .map(String::from),
        ),
    }
    if op.form == Form::Ufunc && skip_self && op.params.len() == 1 {
        parts.insert(1, "/".into());
    }
    let _ = write!(text, "{})", parts.join(", "));
    text
}

/// Signature and docstring of a function object.
pub fn documentation(binding: &Binding) -> String {
    let Signature {
        op, public, name, ..
    } = &binding.signature;
    format!(
        "{name}{}\n\n{}",
        signature(public, false),
        docstring(op, false)
    )
}
