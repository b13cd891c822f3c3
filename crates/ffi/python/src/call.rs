//! The shared entry of every operator: one C function binds arguments to the operator's parameters, calls it, wraps the result.
//!
//! No Python frame stands between the caller and this file. What differs between operators is in their `OpDef`.

use std::ffi::{CStr, CString, c_char};
use std::fmt::Write;
use std::os::raw::c_int;
use std::ptr;

use mxnet::ops::{
    Array, Attrs, Call, Cpu, Default, Form, OpDef, Outputs, ParamKind, Surface, Value, ViewCx,
    Viewed, dispatch, registry,
};
use mxnet::tensor::{Casting, DType, can_cast};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::convert::{self, In};
use crate::error::raise;

/// An operator, ready to be called from Python.
pub struct Binding {
    /// The operator.
    pub op: &'static OpDef,
    /// Name under which it is exposed.
    name: &'static str,
    /// Interned names of the parameters, then of `out`, `where`, `casting`, `order`, `dtype` as far as the form has them.
    keywords: Vec<Py<PyAny>>,
    /// How many arguments may be given by position.
    positional: usize,
    /// The C method definition; Python keeps pointers into it.
    def: ffi::PyMethodDef,
}

// SAFETY: a binding never changes after it was made; the pointers in `def` are to leaked, constant text.
unsafe impl Send for Binding {}
// SAFETY: as above.
unsafe impl Sync for Binding {}

type Fast = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// Keywords that a form adds behind the parameters.
fn extra_keywords(op: &OpDef) -> &'static [&'static str] {
    match op.form {
        Form::Plain => &[],
        Form::Out if op.params.iter().any(|p| p.kind == ParamKind::Out) => &[],
        Form::Out => &["out"],
        Form::Ufunc => &["out", "where", "casting", "order", "dtype"],
    }
}

impl Binding {
    fn leak(
        py: Python<'_>,
        op: &'static OpDef,
        name: &'static str,
        entry: Fast,
        skip_self: bool,
    ) -> PyResult<&'static Binding> {
        let mut keywords: Vec<Py<PyAny>> = Vec::new();
        for key in op
            .params
            .iter()
            .map(|p| p.name)
            .chain(extra_keywords(op).iter().copied())
        {
            keywords.push(pyo3::types::PyString::intern(py, key).into_any().unbind());
        }
        // `out` behind the parameters can be given by position unless a parameter before it cannot.
        let open = op.params.iter().filter(|p| !p.keyword_only).count();
        let trailing_out = !extra_keywords(op).is_empty() && open == op.params.len();
        let positional = open + usize::from(trailing_out);
        let doc = format!(
            "{name}{}\n--\n\n{}",
            signature(op, skip_self),
            docstring(op)
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
            op,
            name,
            keywords,
            positional,
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
        let default = match p.default {
            Default::Required => None,
            Default::None => Some("None".to_owned()),
            Default::Bool(x) => Some(if x { "True" } else { "False" }.to_owned()),
            Default::Int(x) => Some(x.to_string()),
            Default::Float(x) => Some(format!("{x:?}")),
            Default::Str(x) => Some(format!("'{x}'")),
            Default::Ints(x) => Some(mxnet::ops::Tuple(x).to_string()),
        };
        if let Some(default) = default {
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
                "out=None",
                "*",
                "where=True",
                "casting='same_kind'",
                "order='K'",
                "dtype=None",
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

fn docstring(op: &OpDef) -> String {
    use mxnet::ops::{Grad, Types};
    let mut text = op.doc.to_owned();
    if let Types::Promote { accepts, .. } = op.types {
        let names: Vec<&str> = accepts.iter().map(DType::name).collect();
        let _ = write!(text, "\n\nComputes in: {}.", names.join(", "));
    }
    match op.grad {
        Grad::Rule(..) | Grad::Derived => text.push_str("\nDifferentiable."),
        Grad::Stop(why) => {
            let _ = write!(text, "\nNot differentiable: {why}.");
        }
    }
    text
}

/// Arguments bound to parameters.
struct Bound_<'py> {
    inputs: SmallVec<[Option<In<'py>>; 4]>,
    attrs: Attrs,
    outs: SmallVec<[Option<Bound<'py, PyArray>>; 1]>,
    dtype: Option<DType>,
    mask: Option<Array>,
    casting: Casting,
    order: u8,
}

impl Bound_<'_> {
    fn new() -> Self {
        Bound_ {
            inputs: SmallVec::new(),
            attrs: Attrs::none(),
            outs: SmallVec::new(),
            dtype: None,
            mask: None,
            casting: Casting::SameKind,
            order: b'K',
        }
    }
}

/// Entry of functions: `slf` is the capsule that holds the binding.
unsafe extern "C" fn function_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the function object was made by `function` with a capsule around a leaked binding.
    let binding = unsafe { &*ffi::PyCapsule_GetPointer(slf, CAPSULE.as_ptr()).cast::<Binding>() };
    // SAFETY: Python calls with the lock held and `nargs` + number of keywords valid pointers.
    unsafe { enter(binding, args, nargs as usize, kwnames) }
}

const CAPSULE: &CStr = c"mxnet.op";

/// Runs a call and turns errors and panics into Python exceptions.
///
/// # Safety
/// The thread is attached to the interpreter; `args` holds `nargs` borrowed objects, followed by one for each name in `kwnames`.
unsafe fn enter(
    binding: &'static Binding,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: attached, by the contract.
    let py = unsafe { Python::assume_attached() };
    let run = || {
        // SAFETY: the pointers are valid and borrowed for the whole call, by the contract.
        let positional = if nargs == 0 {
            &[][..]
        } else {
            // SAFETY: the pointers are valid and borrowed for the whole call, by the contract.
            unsafe { std::slice::from_raw_parts(args, nargs) }
        };
        // SAFETY: as above: the keyword values follow the positional ones.
        let named = unsafe { Named::new(args.wrapping_add(nargs), kwnames) };
        call(py, binding, positional, &named)
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(Ok(object)) => object.into_ptr(),
        Ok(Err(error)) => {
            error.restore(py);
            ptr::null_mut()
        }
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            let error =
                mxnet::ops::Error::internal(binding.op.name, text.unwrap_or("panic").to_owned());
            raise(py, error).restore(py);
            ptr::null_mut()
        }
    }
}

/// Keyword arguments of a fast call.
struct Named {
    values: *const *mut ffi::PyObject,
    names: *mut ffi::PyObject,
    len: usize,
}

impl Named {
    /// # Safety
    /// `names` is null or a tuple of strings, with one borrowed object each at `values`.
    unsafe fn new(values: *const *mut ffi::PyObject, names: *mut ffi::PyObject) -> Named {
        // SAFETY: a tuple, by the contract.
        let len = if names.is_null() {
            0
        } else {
            // SAFETY: a tuple of names, by the contract.
            unsafe { ffi::PyTuple_Size(names) as usize }
        };
        Named { values, names, len }
    }

    fn get(&self, i: usize) -> (*mut ffi::PyObject, *mut ffi::PyObject) {
        debug_assert!(i < self.len);
        // SAFETY: `i < len`, by the contract of `new`.
        unsafe {
            (
                ffi::PyTuple_GetItem(self.names, i as ffi::Py_ssize_t),
                *self.values.add(i),
            )
        }
    }
}

/// Binds, calls, wraps.
fn call(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Py<PyAny>> {
    let op = binding.op;
    // Two arrays (or an array and a number) and nothing else: what most calls are.
    if named.len == 0
        && positional.len() == op.params.len()
        && op.params.len() <= 2
        && op.params.iter().all(|p| p.kind == ParamKind::Array)
    {
        let mut inputs = SmallVec::<[Option<In>; 4]>::new();
        for (&object, param) in positional.iter().zip(op.params) {
            inputs.push(convert::array_argument(py, op, param, object)?);
        }
        let outputs = run(py, op, &inputs, &Attrs::none(), &[], None)?;
        return finish_as(py, op, inputs.len(), outputs);
    }
    let mut bound = Bound_::new();
    bind(py, binding, positional, named, &mut bound)?;
    execute(py, op, &mut bound)
}

/// Associates each argument with its parameter.
fn bind<'py>(
    py: Python<'py>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
    bound: &mut Bound_<'py>,
) -> PyResult<()> {
    let op = binding.op;
    let gathered = gather_variadic(py, op, positional)?;
    let shortened: SmallVec<[*mut ffi::PyObject; 4]>;
    let positional = match &gathered {
        Some((at, tuple)) => {
            shortened = positional[..*at]
                .iter()
                .copied()
                .chain([tuple.as_ptr()])
                .collect();
            &shortened[..]
        }
        None => positional,
    };
    if positional.len() > binding.positional {
        let (most, given) = (binding.positional, positional.len());
        return Err(PyTypeError::new_err(format!(
            "{}() takes at most {most} positional arguments ({given} given)",
            binding.name
        )));
    }
    let mut slots: SmallVec<[*mut ffi::PyObject; 12]> =
        SmallVec::from_elem(ptr::null_mut(), binding.keywords.len());
    slots[..positional.len()].copy_from_slice(positional);
    for i in 0..named.len {
        let (name, value) = named.get(i);
        let Some(at) = find(binding, name) else {
            // SAFETY: keyword names are strings that live as long as the call.
            let name = unsafe { Bound::from_borrowed_ptr(py, name) };
            return Err(PyTypeError::new_err(format!(
                "{}() got an unexpected keyword argument '{name}'",
                binding.name
            )));
        };
        if !slots[at].is_null() {
            let key = binding.keywords[at].bind(py);
            return Err(PyTypeError::new_err(format!(
                "{}() got multiple values for argument '{key}'",
                binding.name
            )));
        }
        slots[at] = value;
    }
    for (param, &slot) in op.params.iter().zip(&slots) {
        if slot.is_null() {
            match (param.kind, param.default) {
                (_, Default::Required) => {
                    return Err(PyTypeError::new_err(format!(
                        "{}() missing required argument: '{}'",
                        binding.name, param.name
                    )));
                }
                (ParamKind::Array, _) => bound.inputs.push(None),
                (ParamKind::Arrays | ParamKind::Out, _) => {}
                (_, default) => bound.attrs.push(Value::from(default)),
            }
            continue;
        }
        match param.kind {
            ParamKind::Array => bound
                .inputs
                .push(convert::array_argument(py, op, param, slot)?),
            ParamKind::Arrays => convert::arrays_argument(py, op, param, slot, &mut bound.inputs)?,
            ParamKind::Out => {
                // SAFETY: a borrowed argument of the running call.
                let value = unsafe { Bound::from_borrowed_ptr(py, slot) };
                if !value.is_none() {
                    bound.outs = convert::outs_argument(op, &value)?;
                }
            }
            _ => bound.attrs.push(convert::attribute(py, op, param, slot)?),
        }
    }
    for (i, key) in extra_keywords(op).iter().enumerate() {
        let slot = slots[op.params.len() + i];
        if slot.is_null() {
            continue;
        }
        // SAFETY: a borrowed argument of the running call.
        let value = unsafe { Bound::from_borrowed_ptr(py, slot) };
        if value.is_none() {
            continue;
        }
        match *key {
            "out" => bound.outs = convert::outs_argument(op, &value)?,
            "where" => bound.mask = convert::where_argument(op, &value)?,
            "casting" => bound.casting = convert::casting_argument(op, &value)?,
            "order" => bound.order = convert::order_argument(op, &value)?,
            _ => bound.dtype = Some(convert::dtype(&value)?),
        }
    }
    Ok(())
}

/// `x.reshape(2, 3)`: several integers where one variadic parameter stands become its tuple. Answers its position and the tuple.
fn gather_variadic<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    positional: &[*mut ffi::PyObject],
) -> PyResult<Option<(usize, Bound<'py, PyTuple>)>> {
    let Some(at) = op.params.iter().position(|p| p.variadic) else {
        return Ok(None);
    };
    if positional.len() < at + 2 {
        return Ok(None);
    }
    // SAFETY: borrowed arguments of the running call.
    let items = positional[at..]
        .iter()
        .map(|&p| unsafe { Bound::from_borrowed_ptr(py, p) });
    let items: SmallVec<[Bound<'_, PyAny>; 4]> = items.collect();
    if !items.iter().all(|item| item.extract::<i64>().is_ok()) {
        return Ok(None);
    }
    Ok(Some((at, PyTuple::new(py, items)?)))
}

fn find(binding: &Binding, name: *mut ffi::PyObject) -> Option<usize> {
    // Names in calls are interned like ours: nearly always the pointers are the same.
    if let Some(at) = binding.keywords.iter().position(|k| k.as_ptr() == name) {
        return Some(at);
    }
    // SAFETY: both are strings; comparing strings runs no foreign code and cannot fail for strings.
    binding
        .keywords
        .iter()
        .position(|k| unsafe { ffi::PyUnicode_Compare(k.as_ptr(), name) == 0 as c_int })
}

/// A view of an array at hand while nothing records or intercepts: its layout is all there is to compute. `None`: take the general way,
/// which also words the errors.
#[inline]
fn quick_view(py: Python<'_>, op: &'static OpDef, bound: &Bound_) -> Option<PyResult<Py<PyAny>>> {
    let (Cpu::View(view), [Some(In::Held(x))]) = (op.cpu, &bound.inputs[..]) else {
        return None;
    };
    if !bound.outs.is_empty() || !mxnet::ops::interp::Flags::current().is_plain() {
        return None;
    }
    let array = {
        let look = x.get().look(py);
        let args = mxnet::ops::Args {
            params: op.params,
            attrs: &bound.attrs,
        };
        let Ok(Viewed::Shared(layout)) = view(&ViewCx {
            op,
            layout: look.layout(),
            args,
        }) else {
            return None;
        };
        Array::from_tensor(look.tensor().with_layout(layout))
    };
    Some(PyArray::wrap(py, array).map(Py::into_any))
}

/// Calls with the less common keywords.
fn execute<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    bound: &mut Bound_<'py>,
) -> PyResult<Py<PyAny>> {
    if let Some(view) = quick_view(py, op, bound) {
        return view;
    }
    if op.form == Form::Ufunc && bound.casting != Casting::SameKind {
        check_casting(py, op, bound)?;
    }
    if bound.mask.is_some() || !matches!(bound.order, b'K' | b'A') {
        return execute_with_options(py, op, bound);
    }
    let outputs = run(
        py,
        op,
        &bound.inputs,
        &bound.attrs,
        &bound.outs,
        bound.dtype,
    )?;
    if !bound.outs.is_empty() {
        return finish_into(py, outputs, &bound.outs);
    }
    finish_as(py, op, bound.inputs.iter().flatten().count(), outputs)
}

/// `casting=`: every input must reach the dtype computed in under the rule.
fn check_casting(py: Python<'_>, op: &'static OpDef, bound: &Bound_) -> PyResult<()> {
    let inputs = resolve_refs(&bound.inputs);
    let refs: SmallVec<[Option<&Array>; 4]> = inputs.iter().map(Option::as_ref).collect();
    let target = bound.dtype.unwrap_or_else(|| mxnet::ops::promoted(&refs));
    for x in refs.iter().flatten().filter(|x| !x.is_weak()) {
        if !can_cast(x.dtype(), target, bound.casting) {
            let problem = format!(
                "cannot cast from {} to {} under the casting rule asked for",
                x.dtype().name(),
                target.name()
            );
            return Err(raise(py, mxnet::ops::Error::dtype(op.name, problem)));
        }
    }
    Ok(())
}

/// `where=` and `order=`: the plain result first, then the masked or reordered copy of it.
fn execute_with_options<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    bound: &mut Bound_<'py>,
) -> PyResult<Py<PyAny>> {
    let Bound_ {
        inputs,
        attrs,
        outs,
        dtype,
        mask,
        order,
        ..
    } = bound;
    let mut outputs = run(py, op, inputs, attrs, &[], *dtype)?;
    for (i, y) in outputs.iter_mut().enumerate() {
        if let Some(mask) = &mask {
            let base = match outs.get(i).and_then(Option::as_ref) {
                Some(out) => out.get().array(py),
                None => Array::uninitialised(y.shape(), y.dtype(), y.device())
                    .map_err(|e| raise(py, e))?,
            };
            *y = mxnet::ops::elementwise::select::choose(mask, y, &base)
                .map_err(|e| raise(py, e))?;
        }
        *y = convert::in_order(y, *order).map_err(|e| raise(py, e))?;
    }
    if outs.iter().any(Option::is_some) {
        for (y, out) in outputs.iter().zip(outs.iter()) {
            if let Some(out) = out {
                let target = out.get().array(py);
                mxnet::ops::shape::assign(&target, y).map_err(|e| raise(py, e))?;
            }
        }
        let mut outs: Vec<Bound<'_, PyArray>> = outs.iter().flatten().cloned().collect();
        return match (outs.len(), outs.pop()) {
            (1, Some(y)) => Ok(y.into_any().unbind()),
            (_, last) => {
                outs.extend(last);
                Ok(PyTuple::new(py, outs)?.into_any().unbind())
            }
        };
    }
    finish(py, outputs)
}

/// Owned copies of the arrays behind arguments.
fn resolve_refs(inputs: &[Option<In>]) -> SmallVec<[Option<Array>; 4]> {
    inputs.iter().map(|x| x.as_ref().map(In::array)).collect()
}

/// Calls the core. Operators that may wait or run long at the call do so without the interpreter's lock.
pub fn run(
    py: Python<'_>,
    op: &'static OpDef,
    inputs: &[Option<In>],
    attrs: &Attrs,
    outs: &[Option<Bound<'_, PyArray>>],
    dtype: Option<DType>,
) -> PyResult<Outputs> {
    let heavy = matches!(op.cpu, Cpu::Eager(_) | Cpu::Composite(_)) && !inputs.is_empty();
    let may_wait = heavy || crate::engine::may_wait();
    if may_wait || !outs.is_empty() {
        let arrays = resolve_refs(inputs);
        let targets: SmallVec<[Option<Array>; 1]> = outs
            .iter()
            .map(|o| o.as_ref().map(|o| o.get().array(py)))
            .collect();
        let body = || {
            let refs: SmallVec<[Option<&Array>; 8]> = arrays.iter().map(Option::as_ref).collect();
            let outs: SmallVec<[Option<&Array>; 1]> = targets.iter().map(Option::as_ref).collect();
            dispatch(&Call {
                op,
                inputs: &refs,
                attrs,
                outs: &outs,
                dtype,
            })
        };
        let result = if may_wait { py.detach(body) } else { body() };
        return result.map_err(|e| raise(py, e));
    }
    // No Python code runs from here to the end of the call, so the arrays can be looked at where they are.
    convert::with_arrays(inputs, |refs| {
        dispatch(&Call {
            op,
            inputs: refs,
            attrs,
            outs: &[],
            dtype,
        })
    })
    .map_err(|e| raise(py, e))
}

/// One output as it is, several as a tuple, none as `None`.
pub fn finish(py: Python<'_>, mut outputs: Outputs) -> PyResult<Py<PyAny>> {
    if outputs.is_empty() {
        return Ok(py.None());
    }
    if outputs.len() == 1
        && let Some(y) = outputs.pop()
    {
        return Ok(PyArray::wrap(py, y)?.into_any());
    }
    let items: Vec<Py<PyArray>> = outputs
        .into_iter()
        .map(|y| PyArray::wrap(py, y))
        .collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// As [`finish`], or always as a tuple if the operator says so.
fn finish_as(
    py: Python<'_>,
    op: &'static OpDef,
    given: usize,
    outputs: Outputs,
) -> PyResult<Py<PyAny>> {
    if !(op.always_tuple)(given) {
        return finish(py, outputs);
    }
    let items: Vec<Py<PyArray>> = outputs
        .into_iter()
        .map(|y| PyArray::wrap(py, y))
        .collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// Outputs that were written into given arrays take their place in the recorded graph too.
fn finish_into(
    py: Python<'_>,
    outputs: Outputs,
    outs: &[Option<Bound<'_, PyArray>>],
) -> PyResult<Py<PyAny>> {
    if outs.iter().all(Option::is_none) {
        return finish(py, outputs);
    }
    let mut results = Vec::new();
    for (i, y) in outputs.into_iter().enumerate() {
        match outs.get(i).and_then(Option::as_ref) {
            Some(out) => {
                if y.entry().is_some() {
                    out.get().adopt(py, y);
                }
                results.push(out.clone().unbind());
            }
            None => results.push(PyArray::wrap(py, y)?),
        }
    }
    if results.len() == 1
        && let Some(y) = results.pop()
    {
        return Ok(y.into_any());
    }
    Ok(PyTuple::new(py, results)?.into_any().unbind())
}

/// A Python function object that calls `op`.
fn function(py: Python<'_>, op: &'static OpDef, name: &'static str) -> PyResult<Py<PyAny>> {
    let binding = Binding::leak(py, op, name, function_entry, false)?;
    // SAFETY: 1. the binding is leaked, so the capsule and the method definition stay valid. 2. attached.
    unsafe {
        let capsule = Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCapsule_New(
                ptr::from_ref(binding).cast_mut().cast(),
                CAPSULE.as_ptr(),
                None,
            ),
        )?;
        let def = ptr::from_ref(&binding.def).cast_mut();
        Ok(Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCFunction_NewEx(def, capsule.as_ptr(), ptr::null_mut()),
        )?
        .unbind())
    }
}

/// Bindings of the methods, by number; each method's C function knows its number.
static METHODS: std::sync::OnceLock<Vec<&'static Binding>> = std::sync::OnceLock::new();

/// Entry of method number `N`: the array itself is the first argument.
unsafe extern "C" fn method_entry<const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls a method descriptor of `ndarray` with an `ndarray`, the lock held and valid argument pointers.
    unsafe { enter_method(N, slf, args, nargs as usize, kwnames) }
}

/// # Safety
/// As [`enter`]; `slf` is a borrowed object.
unsafe fn enter_method(
    number: usize,
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let Some(binding) = METHODS.get().and_then(|m| m.get(number)) else {
        return ptr::null_mut();
    };
    // SAFETY: a tuple of names or null.
    let names = if kwnames.is_null() {
        0
    } else {
        // SAFETY: a tuple of names, by the contract.
        unsafe { ffi::PyTuple_Size(kwnames) as usize }
    };
    let mut all = SmallVec::<[*mut ffi::PyObject; 8]>::new();
    all.push(slf);
    // SAFETY: `nargs + names` valid pointers, by the contract.
    all.extend((0..nargs + names).map(|i| unsafe { *args.add(i) }));
    // SAFETY: `all` holds one more positional argument than was given, then the keyword values.
    unsafe { enter(binding, all.as_ptr(), nargs + 1, kwnames) }
}

macro_rules! method_table {
    ($($row:literal)*) => { [$(
        method_entry::<{ $row * 8 }>, method_entry::<{ $row * 8 + 1 }>, method_entry::<{ $row * 8 + 2 }>, method_entry::<{ $row * 8 + 3 }>,
        method_entry::<{ $row * 8 + 4 }>, method_entry::<{ $row * 8 + 5 }>, method_entry::<{ $row * 8 + 6 }>, method_entry::<{ $row * 8 + 7 }>,
    )*] };
}

static ENTRIES: [Fast; 128] = method_table!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// Adds the operators' methods to the array class.
fn register_methods(py: Python<'_>, class: &Bound<'_, pyo3::types::PyType>) -> PyResult<()> {
    let mut bindings = Vec::new();
    for op in registry::all() {
        for surface in op.surface {
            let Surface::Method(name) = surface else {
                continue;
            };
            let Some(&entry) = ENTRIES.get(bindings.len()) else {
                return Err(pyo3::exceptions::PySystemError::new_err(
                    "more operator methods than entries: extend `ENTRIES`",
                ));
            };
            let binding = Binding::leak(py, op, name, entry, true)?;
            // SAFETY: the method definition is leaked; the class is a heap type of ours.
            let method = unsafe {
                let def = ptr::from_ref(&binding.def).cast_mut();
                Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), def))?
            };
            class.setattr(*name, method)?;
            bindings.push(binding);
        }
    }
    let _ = METHODS.set(bindings);
    Ok(())
}

/// Namespaces that operators appear in, by surface; every operator is in `op` under its own name.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    register_methods(py, &py.get_type::<PyArray>())?;
    let spaces = ["numpy", "linalg", "random", "npx", "op"].map(|name| (name, PyDict::new(py)));
    for op in registry::all() {
        spaces[4].1.set_item(op.name, function(py, op, op.name)?)?;
        for surface in op.surface {
            let (space, name) = match surface {
                Surface::Np(name) => (0, name),
                Surface::NpLinalg(name) => (1, name),
                Surface::NpRandom(name) => (2, name),
                Surface::Npx(name) => (3, name),
                Surface::Method(_) => continue,
            };
            spaces[space].1.set_item(*name, function(py, op, name)?)?;
        }
    }
    let all = PyDict::new(py);
    for (name, space) in spaces {
        all.set_item(name, space)?;
    }
    module.add("namespaces", all)
}
