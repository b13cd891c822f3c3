//! An operator as Python sees it: names of its parameters, signature, docstring, method definition.

use std::ffi::{CString, c_char};
use std::fmt::Write;

use mxnet::core::{Attrs, Default, Form, OpDef, Param, ParamKind, Value};
use pyo3::ffi;
use pyo3::prelude::*;

use super::description::docstring;

/// An operator, ready to be called from Python.
pub struct Binding {
    /// The operator.
    pub op: &'static OpDef,
    /// The operator whose parameters are shown: the extended form, if there is one.
    pub public: &'static OpDef,
    /// Name under which it is exposed.
    pub name: &'static str,
    /// Interned names of the parameters, then of what the form adds.
    pub keywords: Vec<Py<PyAny>>,
    /// How many arguments may be given by position.
    pub positional: usize,
    /// The parameter whose integers may be given as separate arguments.
    pub variadic: Option<usize>,
    /// Whether the extended form knows words that the plain one does not.
    pub has_more_words: bool,
    /// Whether a parameter asks for another one beside it.
    pub has_beside: bool,
    /// How many arrays a call gives that gives nothing else; `None` if it cannot.
    pub operands: Option<usize>,
    /// How many array parameters such a call leaves out.
    pub absent: usize,
    /// The attributes of such a call.
    pub defaults: Attrs,
    /// Where `subok` is among the attributes, if the operator has it.
    pub subok: Option<usize>,
    /// The C method definition; Python keeps pointers into it.
    pub def: ffi::PyMethodDef,
}

// SAFETY: a binding never changes after it was made; the pointers in `def` are to leaked, constant text.
unsafe impl Send for Binding {}
// SAFETY: as above.
unsafe impl Sync for Binding {}

pub type Fast = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// Keywords that a form adds behind the parameters.
pub fn extra_keywords(op: &OpDef) -> &'static [&'static str] {
    match op.form {
        Form::Plain => &[],
        Form::Out if op.params.iter().any(|p| p.kind == ParamKind::Out) => &[],
        Form::Out => &["out"],
        Form::Ufunc => &[
            "out",
            "where",
            "casting",
            "order",
            "dtype",
            "subok",
            "signature",
        ],
    }
}

impl Binding {
    pub fn leak(
        py: Python<'_>,
        op: &'static OpDef,
        name: &'static str,
        entry: Fast,
        skip_self: bool,
    ) -> PyResult<&'static Binding> {
        let public = op.extended.unwrap_or(op);
        let mut keywords: Vec<Py<PyAny>> = Vec::new();
        for key in public
            .params
            .iter()
            .map(|p| p.name)
            .chain(extra_keywords(public).iter().copied())
        {
            keywords.push(pyo3::types::PyString::intern(py, key).into_any().unbind());
        }
        // `out` behind the parameters can be given by position unless a parameter before it cannot.
        let open = public.params.iter().filter(|p| !p.keyword_only).count();
        let trailing_out = !extra_keywords(public).is_empty() && open == public.params.len();
        let positional = open + usize::from(trailing_out);
        let doc = format!(
            "{name}{}\n--\n\n{}",
            signature(public, skip_self),
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
        let is_operand = |p: &&Param| p.kind == ParamKind::Array && is_required(p);
        let operands = op.params.iter().take_while(is_operand).count();
        let rest = &op.params[operands..];
        let may_be_left_out = |p: &Param| p.kind != ParamKind::Arrays && !is_required(p);
        Ok(Box::leak(Box::new(Binding {
            op,
            operands: rest.iter().all(may_be_left_out).then_some(operands),
            absent: rest.iter().filter(|p| p.is_array()).count(),
            defaults: (rest.iter().filter(|p| p.is_attribute()))
                .map(|p| Value::from(p.default))
                .collect(),
            public,
            name,
            keywords,
            positional,
            variadic: public.params.iter().position(|p| p.variadic),
            has_more_words: (op.params.iter().zip(public.params)).any(|(plain, extended)| {
                matches!(plain.kind, ParamKind::Choice(_)) && plain.kind != extended.kind
            }),
            has_beside: public.params.iter().any(|p| p.beside.is_some()),
            subok: op
                .params
                .iter()
                .filter(|p| p.is_attribute())
                .position(|p| p.name == "subok"),
            def,
        })))
    }
}

fn is_required(param: &Param) -> bool {
    matches!(param.default, Default::Required)
}

fn leak_text(text: &str) -> PyResult<*const c_char> {
    Ok(CString::new(text)?.into_raw())
}

/// Default of a parameter as Python source.
pub fn default(param: &Param) -> Option<String> {
    match param.default {
        Default::Required => None,
        Default::None => Some("None".to_owned()),
        Default::Bool(x) => Some(if x { "True" } else { "False" }.to_owned()),
        Default::Int(x) => Some(x.to_string()),
        Default::Float(x) => Some(format!("{x:?}")),
        Default::Str(x) => Some(format!("'{x}'")),
        Default::Ints(x) => Some(mxnet::core::Tuple(x).to_string()),
    }
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
        Form::Plain => {}
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
    let Binding {
        op, public, name, ..
    } = binding;
    format!(
        "{name}{}\n\n{}",
        signature(public, false),
        docstring(op, false)
    )
}
