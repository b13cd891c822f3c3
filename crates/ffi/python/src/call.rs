//! The shared entry of every operator: arguments are bound to the operator's parameters, the operator is called, the result wrapped.
//!
//! No Python frame stands between the caller and this file. What differs between operators is in their `OpDef`.

mod arguments;
mod binding;
mod description;
mod draw;
mod entry;
mod front;
mod result;
mod short;

use mxnet::ops::shape::{ASTYPE, ASTYPE_OF};
use mxnet::ops::{
    Array, Attrs, Call, Cpu, Form, OfNumber, OpDef, Outputs, ParamKind, Quick, Value, ViewCx,
    Viewed, Warned, Warning, constant, default_dtype, dispatch, quick, quick_into,
};
use mxnet::tensor::{Casting, DType, Scalar};
use pyo3::IntoPyObjectExt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::cell::Look;
use crate::convert::{self, In};
use crate::error::raise;
use crate::exchange;
use crate::making;
use crate::operators::{is_equality, quick_binary, quick_unary, unlike};
use arguments::{Arguments, bind};
use result::{finish_as, finish_into};

pub use arguments::Named;
pub use binding::{Binding, Fast, documentation, signature};
pub use entry::{as_function, binding_of, enter, guarded, guarded_or, register};
pub use front::{Alone, before};
pub use result::{finish, finish_of};

/// Binds, calls, wraps.
fn call(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Py<PyAny>> {
    let op = binding.op;
    if op.form == Form::Ufunc
        && named.len == 0
        && let Some(result) = quick_call(py, op, positional)?
    {
        return Ok(result);
    }
    if op.form == Form::Ufunc
        && named.len + positional.len() == op.params.len() + 1
        && let Some(result) = quick_out(py, op, positional, named)?
    {
        return Ok(result);
    }
    if op.form == Form::Ufunc
        && named.len > 0
        && let Some(result) = crate::ufunc::keyed(py, op, positional, named)?
    {
        return Ok(result);
    }
    if op.form == Form::Ufunc
        && let Some(result) = crate::ufunc::overridden(py, binding, positional, named)?
    {
        return Ok(result);
    }
    if let Some(result) = short::call(py, binding, positional, named)? {
        return Ok(result);
    }
    if let (Some(what), &[number], 0) = (op.of_number, positional, named.len) {
        // SAFETY: a borrowed argument of the running call.
        let number = unsafe { Bound::from_borrowed_ptr(py, number) };
        if let Some(answer) = of_number(what, &number)? {
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
    if !op.core.is_empty()
        && let Some(result) = crate::ufunc::overridden(py, binding, positional, named)?
    {
        return Ok(result);
    }
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
        return finish_as(py, op, &inputs, outputs);
    }
    if op.form == Form::Ufunc {
        return crate::ufunc::general(py, binding, positional, named);
    }
    let mut bound = Arguments::new();
    let op = bind(py, binding, positional, named, &mut bound)?;
    let result = execute(py, op, &mut bound)?;
    if std::ptr::eq(op, &ASTYPE) || std::ptr::eq(op, &ASTYPE_OF) {
        warn_of_lost_parts(py, &bound)?;
    }
    match binding.subok {
        Some(at) => in_class_of_input(py, result, &bound, at),
        None => Ok(result),
    }
}

/// What a Python number answers; `None` for anything else.
fn of_number(what: OfNumber, number: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let is_number = !number.is_exact_instance_of::<PyArray>()
        && (number.is_exact_instance_of::<PyFloat>()
            || number.is_instance_of::<PyInt>()
            || number.is_exact_instance_of::<PyComplex>());
    if !is_number {
        return Ok(None);
    }
    let py = number.py();
    Ok(Some(match what {
        OfNumber::Real => number.getattr("real")?.unbind(),
        OfNumber::Imag => number.getattr("imag")?.unbind(),
        OfNumber::IsReal => number.getattr("imag")?.eq(0)?.into_py_any(py)?,
    }))
}

/// Warns if a conversion has dropped imaginary parts.
fn warn_of_lost_parts(py: Python<'_>, bound: &Arguments) -> PyResult<()> {
    let (Some(Some(x)), Some(&Value::DType(to))) =
        (bound.inputs.first(), bound.attrs.values().first())
    else {
        return Ok(());
    };
    exchange::check_real(py, x.array().dtype(), to)
}

/// `subok=True`: the result has the class of the first argument, if that is derived from ndarray.
fn in_class_of_input(
    py: Python<'_>,
    result: Py<PyAny>,
    bound: &Arguments,
    at: usize,
) -> PyResult<Py<PyAny>> {
    let (Some(Value::Bool(true)), Some(Some(In::Held(x)))) =
        (bound.attrs.values().get(at), bound.inputs.first())
    else {
        return Ok(result);
    };
    let class = x.get_type();
    let derived = !class.is(py.get_type::<PyArray>());
    match result.bind(py).cast::<PyArray>() {
        Ok(made) if derived && !made.get_type().is(&class) => {
            let object = making::wrap_as(&class, made.get().array(py))?;
            Ok(object.into_any())
        }
        _ => Ok(result),
    }
}

/// The short way of elementwise functions, as the operators of arrays take it; `None` if it is not open.
#[inline]
fn quick_call(
    py: Python<'_>,
    op: &'static OpDef,
    positional: &[*mut ffi::PyObject],
) -> PyResult<Option<Py<PyAny>>> {
    // SAFETY: borrowed arguments of the running call.
    let object = |i: usize| unsafe { Bound::from_borrowed_ptr(py, positional[i]) };
    match (positional.len(), op.params.len()) {
        (1, 1) => match object(0).cast::<PyArray>() {
            Ok(x) => quick_unary(x, op),
            Err(_) => quick_numbers(py, op, &[object(0)]),
        },
        (2, 2) => {
            let (a, b) = (object(0), object(1));
            match (a.cast::<PyArray>(), b.cast::<PyArray>()) {
                (Ok(a), _) => quick_binary(a, op, &b, false),
                (_, Ok(b)) => quick_binary(b, op, &a, true),
                _ => quick_numbers(py, op, &[a, b]),
            }
        }
        _ => Ok(None),
    }
}

/// The short way with nothing but `out=` behind the operands: arrays, or an array and a number; `None` if it is not open.
#[inline]
fn quick_out(
    py: Python<'_>,
    op: &'static OpDef,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Option<Py<PyAny>>> {
    // SAFETY: borrowed arguments of the running call.
    let borrowed = |p| unsafe { Bound::<PyAny>::from_borrowed_ptr(py, p) };
    let (positional, out) = match (named.len, positional.split_last()) {
        (1, _) => {
            let (name, out) = named.get(0);
            if !borrowed(name).eq("out")? {
                return Ok(None);
            }
            (positional, borrowed(out))
        }
        (0, Some((&out, rest))) => (rest, borrowed(out)),
        _ => return Ok(None),
    };
    let Ok(out) = out.cast_exact::<PyArray>() else {
        return Ok(None);
    };
    if positional.len() != op.params.len() || positional.len() > 2 {
        return Ok(None);
    }
    // SAFETY: as above.
    let objects = positional
        .iter()
        .map(|&p| unsafe { Bound::<PyAny>::from_borrowed_ptr(py, p) });
    let objects: SmallVec<[Bound<'_, PyAny>; 2]> = objects.collect();
    // Read before anything is looked at: to find that an integer is beyond 64 bits may collect garbage.
    let mut numbers = [const { None::<Scalar> }; 2];
    for (number, object) in numbers.iter_mut().zip(&objects) {
        if !object.is_instance_of::<PyArray>() {
            *number = convert::number(object)?;
            if number.is_none() {
                return Ok(None);
            }
        }
    }
    let looks: SmallVec<[Option<Look<'_, Array>>; 2]> = objects
        .iter()
        .map(|x| x.cast::<PyArray>().ok().map(|x| x.get().look(py)))
        .collect();
    let mut operands = [Quick::Number(&Scalar::Bool(false)); 2];
    for (slot, both) in operands.iter_mut().zip(looks.iter().zip(&numbers)) {
        match both {
            (Some(x), _) => *slot = Quick::Array(x),
            (None, Some(number)) => *slot = Quick::Number(number),
            (None, None) => return Ok(None),
        }
    }
    let done = quick_into(op, &operands[..objects.len()], &out.get().look(py))
        .map_err(|error| raise(py, error))?;
    Ok(done.then(|| out.clone().into_any().unbind()))
}

/// The same of Python numbers: the first one becomes an array of the dtype that they have together.
#[inline]
fn quick_numbers(
    py: Python<'_>,
    op: &'static OpDef,
    objects: &[Bound<'_, PyAny>],
) -> PyResult<Option<Py<PyAny>>> {
    let mut numbers = SmallVec::<[Scalar; 2]>::new();
    for object in objects {
        match convert::number(object)? {
            Some(Scalar::Wide(_) | Scalar::U64(_)) | None => return Ok(None),
            Some(number) => numbers.push(number),
        }
    }
    let kind = numbers.iter().map(|number| number.kind()).max();
    let (Some(&first), Some(kind)) = (numbers.first(), kind) else {
        return Ok(None);
    };
    let made = constant(&[], Some(first), default_dtype(kind));
    let Some(first) = made.map_err(|error| raise(py, error))? else {
        return Ok(None);
    };
    let mut operands = SmallVec::<[Quick; 2]>::from_iter([Quick::Array(&first)]);
    operands.extend(numbers[1..].iter().map(Quick::Number));
    match quick(op, &operands).map_err(|error| raise(py, error))? {
        Some(array) => Ok(Some(PyArray::wrap_result(py, array)?.into_any())),
        None => Ok(None),
    }
}

/// A view of an array at hand while nothing records or intercepts: its layout is all there is to compute. `None`: take the general way,
/// which also words the errors.
#[inline]
fn quick_view(
    py: Python<'_>,
    op: &'static OpDef,
    bound: &Arguments,
) -> Option<PyResult<Py<PyAny>>> {
    let (Cpu::View(view), [Some(In::Held(x))]) = (op.cpu, &bound.inputs[..]) else {
        return None;
    };
    if !bound.outs.is_empty() || !mxnet::ops::interp::Flags::current().is_plain() {
        return None;
    }
    let look = x.get().look(py);
    let args = mxnet::ops::Args {
        params: op.params,
        attrs: &bound.attrs,
    };
    let seen = view(&ViewCx {
        op,
        layout: look.layout(),
        args,
    });
    let made = match seen {
        Ok(Viewed::Shared(layout)) => {
            look.end();
            PyArray::shown(py, &layout, x)
        }
        Ok(Viewed::Locked(layout)) => {
            let locked = Array::from_tensor(look.tensor().with_layout(layout).locked(true));
            look.end();
            PyArray::wrap_of(py, locked, x)
        }
        _ => return None,
    };
    Some(made.map(Py::into_any))
}

/// Calls, and wraps or writes what comes out.
fn execute<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    bound: &mut Arguments<'py>,
) -> PyResult<Py<PyAny>> {
    if let Some(view) = quick_view(py, op, bound) {
        return view;
    }
    for out in bound.outs.iter().flatten() {
        out.get().check_writable(py)?;
    }
    if let Some(warns) = op.warns {
        warn_of(py, op, bound, warns)?;
    }
    if op.out_casting == Casting::Unsafe || has(op, "ddof") {
        make_real(py, op, bound)?;
    }
    let outputs = run(py, op, &bound.inputs, &bound.attrs, &bound.outs, None)?;
    if !bound.outs.is_empty() {
        return finish_into(py, op, outputs, &bound.outs);
    }
    finish_as(py, op, &bound.inputs, outputs)
}

/// Warns if there is reason to. What is wrong with the call is left for the call to say.
fn warn_of(py: Python<'_>, op: &'static OpDef, bound: &Arguments, warns: Warning) -> PyResult<()> {
    let attrs = &bound.attrs;
    let ask = |refs: &[Option<&Array>]| {
        let call = Call {
            op,
            inputs: refs,
            attrs,
            outs: &[],
            dtype: None,
        };
        warns(&call.cx())
    };
    // Only a mask is looked at, and may have to be waited for.
    let told = match bound.inputs.iter().flatten().count() {
        0 | 1 => convert::with_arrays(&bound.inputs, ask),
        _ => {
            let arrays = resolve_refs(&bound.inputs);
            py.detach(|| ask(&arrays.iter().map(Option::as_ref).collect::<Vec<_>>()))
        }
    };
    match told {
        Ok(Some(told)) => {
            let errors = py.import("mxnet.numpy._errors")?;
            let told = match told {
                Warned::Runtime(sentence) => (sentence, false),
                Warned::Deprecated(sentence) => (sentence, true),
            };
            errors.call_method1("warn_of", told).map(|_| ())
        }
        Ok(None) | Err(_) => Ok(()),
    }
}

fn has(op: &OpDef, name: &str) -> bool {
    op.params.iter().any(|param| param.name == name)
}

/// Complex elements that are asked for in a real dtype are converted before anything is computed of them, with NumPy's warning.
fn make_real<'py>(py: Python<'py>, op: &'static OpDef, bound: &mut Arguments<'py>) -> PyResult<()> {
    let Some(Some(x)) = bound.inputs.first() else {
        return Ok(());
    };
    let is_complex = match x {
        In::Held(object) => object.get().with(py, |x| x.dtype().is_complex()),
        In::Made(array) => array.dtype().is_complex(),
    };
    if op.out_held
        && is_complex
        && let Some(Some(out)) = bound.outs.first()
    {
        let to = out.get().with(py, Array::dtype);
        return exchange::check_real(py, x.array().dtype(), to);
    }
    if !is_complex || !has(op, "dtype") {
        return Ok(());
    }
    let args = mxnet::ops::Args {
        params: op.params,
        attrs: &bound.attrs,
    };
    match args.dtype("dtype") {
        Some(dtype) if !dtype.is_complex() && dtype != DType::Bool => {
            crate::exchange::discards_imaginary_part(py)?;
            // Variances are real by themselves; it is the mean that loses its imaginary part.
            if has(op, "ddof") {
                return Ok(());
            }
            let real = x.array().astype(dtype).map_err(|error| raise(py, error))?;
            bound.inputs[0] = Some(In::Made(real));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Owned copies of the arrays behind arguments.
fn resolve_refs(inputs: &[Option<In>]) -> SmallVec<[Option<Array>; 4]> {
    inputs.iter().map(|x| x.as_ref().map(In::array)).collect()
}

/// Whether an array is at hand and so small that giving the interpreter's lock back would cost more than working on it.
fn is_light(x: &Array) -> bool {
    const LIGHT_BYTES: usize = 4 << 10;
    x.is_ready() && x.len() * x.dtype().size() <= LIGHT_BYTES
}

/// Does something with these arrays, without the interpreter's lock unless all are light.
pub fn beside_lock<R: Send>(
    py: Python<'_>,
    arrays: &[&Array],
    body: impl FnOnce() -> R + Send,
) -> R {
    match arrays.iter().all(|x| is_light(x)) && !crate::engine::may_wait() {
        true => body(),
        false => py.detach(body),
    }
}

/// Whether the operands are at hand and so small that giving the interpreter's lock back would cost more than working on them.
fn are_light(py: Python<'_>, inputs: &[Option<In>]) -> bool {
    inputs.len() <= 4
        && inputs.iter().flatten().all(|x| match x {
            In::Held(object) => object.get().with(py, is_light),
            In::Made(array) => is_light(array),
        })
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
    let waits = op.waits && !inputs.is_empty();
    let may_wait = waits || heavy && !are_light(py, inputs) || crate::engine::may_wait();
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
