//! The shared entry point of every operator: binds the arguments to the operator's parameters, calls it, and wraps the result.
//!
//! There is no Python frame between the caller and this file. Everything that is specific to an operator is in its `OpDef`.

mod arguments;
mod binding;
mod description;
mod entry;
mod one_arg_entry;
mod overriding;
mod result;
mod run;

use mxnet::core::mode::Flags;
use mxnet::core::{
    Array, Attrs, Call, Cpu, Form, OpDef, Outputs, ScalarPart, Value, ViewContext, Viewed, Warned,
    Warning, dispatch_into, registry,
};
use mxnet::ops::shape::{ASTYPE, ASTYPE_OF, ASTYPE_SHARING};
use mxnet::tensor::{Casting, DType};
use pyo3::IntoPyObjectExt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt};

use crate::array::{Get, PyArray, wrap_as};
use crate::convert::{self, Operand};
use crate::equality::{is_equality, unlike};
use crate::error::raise;
use crate::gil_cell::Ref;
use crate::gil_release::without_gil;
use crate::keywords::Keywords;
use crate::{interop, numbers};
use arguments::{Arguments, bind};
use result::{finish_as, finish_into};
use run::{resolve_refs, run_into};

pub use arguments::{warn_of_ctx, warn_of_older};
pub use binding::{Binding, FastCall, documentation, signature};
pub use entry::{as_function, binding_of, enter, function, function_binding, register_methods};
pub use one_arg_entry::{OneArg, with_one_arg_entry};
pub use result::{finish, finish_of};
pub use run::{run, without_gil_unless_light};

/// Conversions between dtypes, which warn if they discard imaginary parts.
const CONVERSIONS: [&OpDef; 3] = [&ASTYPE, &ASTYPE_OF, &ASTYPE_SHARING];

/// Binds, calls, wraps.
fn call(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Keywords,
) -> PyResult<Py<PyAny>> {
    let op = binding.op;
    if op.form == Form::Ufunc
        && let Some((operands, out)) = operands_and_out(binding, positional, named)
        && let Some(result) = elementwise(py, op, operands, out)?
    {
        return Ok(result);
    }
    if op.is_ufunc()
        && let Some(result) = crate::ufunc::overridden(py, binding, positional, named)?
    {
        return Ok(result);
    }
    if let (Some(what), &[number], 0) = (op.scalar_part, positional, named.len) {
        // SAFETY: a borrowed argument of the running call.
        let number = unsafe { Bound::from_borrowed_ptr(py, number) };
        if let Some(answer) = scalar_part(what, &number)? {
            return Ok(answer);
        }
    }
    if named.len == 0
        && is_equality(op)
        && let &[a, b] = positional
    {
        // SAFETY: borrowed arguments of the running call.
        let [a, b] = [a, b].map(|p| unsafe { Bound::from_borrowed_ptr(py, p) });
        if a.is_none() || b.is_none() {
            return unlike(&a, op, &b);
        }
    }
    let has_operands_only = named.len == 0 && binding.operands == Some(positional.len());
    if op.form == Form::Ufunc && !has_operands_only {
        return crate::ufunc::general(py, binding, positional, named);
    }
    let mut bound = Arguments::new(binding);
    let op = match bind(py, binding, positional, named, &mut bound) {
        Ok(op) => op,
        Err(error) => {
            let answer = overriding::answered(py, binding, positional, named)?;
            return answer.ok_or(error);
        }
    };
    let result = execute(py, op, &mut bound)?;
    if CONVERSIONS.iter().any(|known| std::ptr::eq(op, *known)) {
        warn_of_lost_parts(py, &bound)?;
    }
    match binding.subok {
        Some(at) => in_class_of_input(py, result, &bound, at),
        None => Ok(result),
    }
}

/// The largest number of operands of an elementwise operator.
const MAX_OPERANDS: usize = 3;

/// The operands of an elementwise function and the object given as `out`. `None` if there are other arguments.
#[inline]
fn operands_and_out<'a>(
    binding: &'static Binding,
    positional: &'a [*mut ffi::PyObject],
    named: &Keywords,
) -> Option<(&'a [*mut ffi::PyObject], Option<*mut ffi::PyObject>)> {
    let num_operands = binding.op.params.len();
    match (positional.len().checked_sub(num_operands)?, named.len) {
        (0, 0) => Some((positional, None)),
        (1, 0) => Some((&positional[..num_operands], Some(positional[num_operands]))),
        (0, 1) => {
            // `out` is the first keyword parameter after the operands. Names in calls are interned, so pointers are compared.
            let (name, out) = named.get(0);
            (binding.keywords[num_operands].as_ptr() == name).then_some((positional, Some(out)))
        }
        _ => None,
    }
}

/// Calls an elementwise operator on arrays of exactly this class and Python numbers; `out` may be such an array. `None` for other objects, if the
/// call may wait, or if an interpreter intercepts it, which may run Python code.
#[inline]
pub fn elementwise(
    py: Python<'_>,
    op: &'static OpDef,
    objects: &[*mut ffi::PyObject],
    out: Option<*mut ffi::PyObject>,
) -> PyResult<Option<Py<PyAny>>> {
    if objects.len() > MAX_OPERANDS
        || crate::engine::may_wait()
        || Flags::current().is_intercepted()
    {
        return Ok(None);
    }
    // SAFETY: a borrowed argument of the running call.
    let borrowed = |object| unsafe { Borrowed::<PyAny>::from_ptr(py, object) };
    let out = match out.map(|out| borrowed(out).cast_exact::<PyArray>().map_err(|_| ())) {
        None => None,
        Some(Ok(out)) if matches!(op.cpu, Cpu::Map(rows) if rows.outs == 1) => {
            (*out).get().check_writable(py)?;
            Some(out)
        }
        Some(_) => return Ok(None),
    };
    // Numbers are converted before any array is borrowed: an integer beyond 64 bits raises an exception internally, which may run the garbage
    // collector.
    let mut numbers = [const { None::<Array> }; MAX_OPERANDS];
    let mut arrays = [const { None::<Borrowed<'_, '_, PyArray>> }; MAX_OPERANDS];
    for ((array, number), &object) in arrays.iter_mut().zip(&mut numbers).zip(objects) {
        let object = borrowed(object);
        match object.cast_exact::<PyArray>() {
            Ok(x) => *array = Some(x),
            Err(_) => match numbers::number(&object)? {
                Some(value) => {
                    let made = Array::weak_scalar(value).map_err(|error| raise(py, error))?;
                    *number = Some(made);
                }
                None => return Ok(None),
            },
        }
    }
    // No Python code runs from here to the end of the call, so references to the arrays stay valid.
    let mut outputs = Outputs::new();
    let result = {
        let mut borrows = [const { None::<Ref<'_, Array>> }; MAX_OPERANDS];
        let mut inputs = [None; MAX_OPERANDS];
        for (to, x) in borrows.iter_mut().zip(&arrays) {
            *to = x.as_ref().map(|x| (**x).get().borrow(py));
        }
        for ((input, x_ref), number) in inputs.iter_mut().zip(&borrows).zip(&numbers) {
            *input = x_ref.as_deref().or(number.as_ref());
        }
        let target = out.as_ref().map(|x| (**x).get().borrow(py));
        let outs = [target.as_deref()];
        let call = Call {
            op,
            inputs: &inputs[..objects.len()],
            attrs: &Attrs::none(),
            outs: if out.is_some() { &outs } else { &[] },
            dtype: None,
        };
        dispatch_into(&call, &mut outputs)
    };
    if let Err(error) = result {
        return Err(raise(py, error));
    }
    if let Some(out) = out
        && outputs.len() == 1
        && let Some(y) = outputs.pop()
    {
        (*out).get().adopt_written(py, y)?;
        return Ok(Some(out.to_owned().into_any().unbind()));
    }
    finish(py, op, &mut outputs).map(Some)
}

/// Result of the function for a Python number; `None` for any other object.
fn scalar_part(what: ScalarPart, number: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let is_number = !number.is_exact_instance_of::<PyArray>()
        && (number.is_exact_instance_of::<PyFloat>()
            || number.is_instance_of::<PyInt>()
            || number.is_exact_instance_of::<PyComplex>());
    if !is_number {
        return Ok(None);
    }
    let py = number.py();
    Ok(Some(match what {
        ScalarPart::Real => number.getattr("real")?.unbind(),
        ScalarPart::Imag => number.getattr("imag")?.unbind(),
        ScalarPart::IsReal => number.getattr("imag")?.eq(0)?.into_py_any(py)?,
    }))
}

/// Warns if a conversion discards imaginary parts.
fn warn_of_lost_parts(py: Python<'_>, bound: &Arguments) -> PyResult<()> {
    let (Some(Some(x)), Some(&Value::DType(to))) =
        (bound.inputs.first(), bound.attrs().values().first())
    else {
        return Ok(());
    };
    interop::check_real(py, x.dtype(), to)
}

/// `subok=True`: the result has the class of the first argument, if that class is derived from ndarray.
fn in_class_of_input(
    py: Python<'_>,
    result: Py<PyAny>,
    bound: &Arguments,
    at: usize,
) -> PyResult<Py<PyAny>> {
    let (Some(Value::Bool(true)), Some(Some(Operand::Object(x)))) =
        (bound.attrs().values().get(at), bound.inputs.first())
    else {
        return Ok(result);
    };
    let class = x.get_type();
    let derived = !class.is(py.get_type::<PyArray>());
    match result.bind(py).cast::<PyArray>() {
        Ok(made) if derived && !made.get_type().is(&class) => {
            let object = wrap_as(&class, made.get().array(py))?;
            Ok(object.into_any())
        }
        _ => Ok(result),
    }
}

/// The result of a view operator while no interpreter records or intercepts. The operator's rule gives the layout, and the object is constructed
/// around it; it may be the array itself. `None` if elements must be copied, and for errors, which the general path reports.
#[inline]
fn view(py: Python<'_>, op: &'static OpDef, bound: &Arguments) -> Option<PyResult<Py<PyAny>>> {
    let (Cpu::View(rule), [Some(Operand::Object(x))]) = (op.cpu, &bound.inputs[..]) else {
        return None;
    };
    if !bound.outs.is_empty() {
        return None;
    }
    let x_ref = x.get().borrow(py);
    let args = mxnet::core::Args {
        params: op.params,
        attrs: bound.attrs(),
    };
    let seen = rule(&ViewContext {
        op,
        layout: x_ref.layout(),
        dtype: x_ref.dtype(),
        args,
    });
    let allows_copies = Flags::current().allows_copies();
    let made = match seen {
        Ok(Viewed::Itself) => return Some(Ok(x.clone().into_any().unbind())),
        _ if !allows_copies => return None,
        Ok(Viewed::Shared(layout)) => {
            x_ref.end();
            PyArray::view_with_layout(py, &layout, x)
        }
        Ok(Viewed::Locked(layout)) => {
            if !x.get().is_scalar() {
                x_ref.end();
                return Some(PyArray::view_of_parts(py, &layout, None, true, x).map(Py::into_any));
            }
            let locked = Array::from_tensor(x_ref.tensor().with_layout(layout).locked(true));
            x_ref.end();
            PyArray::wrap_of(py, locked, x)
        }
        _ => return None,
    };
    Some(made.map(Py::into_any))
}

/// Calls the operator and wraps or writes its results.
fn execute<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    bound: &mut Arguments<'py>,
) -> PyResult<Py<PyAny>> {
    if let Some(view) = view(py, op, bound) {
        return view;
    }
    for out in bound.outs.iter().flatten() {
        out.get().check_writable(py)?;
    }
    if let Some(warns) = op.warns {
        warn_of(py, op, bound, warns)?;
    }
    make_real(py, op, bound)?;
    let (inputs, attrs, outs) = (&bound.inputs, bound.attrs(), &bound.outs);
    let mut outputs = Outputs::new();
    run_into(py, op, inputs, attrs, outs, None, &mut outputs)?;
    if !outs.is_empty() {
        return finish_into(py, op, outputs, outs);
    }
    finish_as(py, op, inputs, &mut outputs)
}

/// Emits the operator's warning, if it has one for these arguments. Errors in the arguments are left to the call.
fn warn_of(py: Python<'_>, op: &'static OpDef, bound: &Arguments, warns: Warning) -> PyResult<()> {
    let attrs = bound.attrs();
    let ask = |refs: &[Option<&Array>]| {
        let call = Call {
            op,
            inputs: refs,
            attrs,
            outs: &[],
            dtype: None,
        };
        warns(&call.context())
    };
    // Only a mask needs its values, which may have to be waited for.
    let warning = match bound.inputs.iter().flatten().count() {
        0 | 1 => convert::with_arrays(&bound.inputs, ask),
        _ => {
            let arrays = resolve_refs(&bound.inputs);
            without_gil(py, || {
                ask(&arrays.iter().map(Option::as_ref).collect::<Vec<_>>())
            })
        }
    };
    match warning {
        Ok(Some(warning)) => {
            let errors = py.import("mxnet.numpy._errors")?;
            let warning = match warning {
                Warned::Runtime(sentence) => (sentence, false),
                Warned::Deprecated(sentence) => (sentence, true),
            };
            errors.call_method1("warn_of", warning).map(|_| ())
        }
        Ok(None) | Err(_) => Ok(()),
    }
}

fn has(op: &OpDef, name: &str) -> bool {
    op.params.iter().any(|param| param.name == name)
}

/// Warns, as NumPy does, where a real `out` or `dtype` discards imaginary parts. A real `dtype` converts the elements before the computation.
fn make_real<'py>(py: Python<'py>, op: &'static OpDef, bound: &mut Arguments<'py>) -> PyResult<()> {
    let mut dtypes = bound.inputs.iter().flatten().map(Operand::dtype);
    let Some(complex) = dtypes.find(|dtype| dtype.is_complex()) else {
        return Ok(());
    };
    // Variances are real; they have no part that is discarded.
    let is_variance = has(op, "ddof");
    if op.out_casting != Casting::Unsafe && !is_variance {
        return Ok(());
    }
    let args = mxnet::core::Args {
        params: op.params,
        attrs: bound.attrs(),
    };
    let dtype = match has(op, "dtype") {
        true => args.dtype("dtype"),
        false => None,
    };
    if let Some(dtype) = dtype.filter(|dtype| !dtype.is_complex()) {
        if dtype == DType::Bool {
            return Ok(());
        }
        interop::discards_imaginary_part(py)?;
        // Only the mean loses its imaginary part.
        if is_variance {
            return Ok(());
        }
        if let Some(Some(x)) = bound.inputs.first() {
            let real = x.array().astype(dtype).map_err(|error| raise(py, error))?;
            bound.inputs[0] = Some(Operand::converted(real));
        }
        return Ok(());
    }
    match bound.outs.first() {
        Some(Some(out)) if !is_variance && !registry::base_form(op).reduces_to_truth() => {
            interop::check_real(py, complex, out.get().with(py, Array::dtype))
        }
        _ => Ok(()),
    }
}
