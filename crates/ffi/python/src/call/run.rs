//! Runs an operator on bound operands, and decides whether the GIL is released meanwhile.

use mxnet::core::mode::Flags;
use mxnet::core::{Array, Attrs, Call, Cpu, OpDef, Outputs, dispatch_into};
use mxnet::tensor::DType;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::convert::{self, Operand};
use crate::error::raise;
use crate::gil_release::without_gil;

/// Owned copies of the arrays behind arguments.
pub(super) fn resolve_refs(inputs: &[Option<Operand>]) -> SmallVec<[Option<Array>; 4]> {
    inputs
        .iter()
        .map(|x| x.as_ref().map(Operand::array))
        .collect()
}

/// Whether an array is complete and so small that releasing the GIL would cost more than the work on it.
fn is_light(x: &Array) -> bool {
    const LIGHT_BYTES: usize = 4 << 10;
    x.is_ready() && x.len() * x.dtype().size() <= LIGHT_BYTES
}

/// Calls `body`, which works on these arrays. Releases the GIL unless all of them are light.
pub fn without_gil_unless_light<R: Send>(
    py: Python<'_>,
    arrays: &[&Array],
    body: impl FnOnce() -> R + Send,
) -> R {
    match arrays.iter().all(|x| is_light(x)) && !crate::engine::may_wait() {
        true => body(),
        false => without_gil(py, body),
    }
}

/// Whether all operands are complete and so small that releasing the GIL would cost more than the work on them.
fn are_light(py: Python<'_>, inputs: &[Option<Operand>]) -> bool {
    inputs.len() <= 4
        && inputs.iter().flatten().all(|x| match x {
            Operand::Object(object) => object.get().with(py, is_light),
            Operand::Converted(array) => is_light(array),
        })
}

/// Calls the operator. Releases the GIL if the call may wait or take long.
pub fn run(
    py: Python<'_>,
    op: &'static OpDef,
    inputs: &[Option<Operand>],
    attrs: &Attrs,
    outs: &[Option<Bound<'_, PyArray>>],
    dtype: Option<DType>,
) -> PyResult<Outputs> {
    let mut outputs = Outputs::new();
    run_into(py, op, inputs, attrs, outs, dtype, &mut outputs)?;
    Ok(outputs)
}

/// As [`run`], but pushes the outputs to `outputs`, which is empty. Moving an `Array` is expensive.
pub(super) fn run_into(
    py: Python<'_>,
    op: &'static OpDef,
    inputs: &[Option<Operand>],
    attrs: &Attrs,
    outs: &[Option<Bound<'_, PyArray>>],
    dtype: Option<DType>,
    outputs: &mut Outputs,
) -> PyResult<()> {
    let heavy = matches!(op.cpu, Cpu::Eager(..) | Cpu::Composite(_)) && !inputs.is_empty();
    let waits = op.waits && !inputs.is_empty();
    let may_wait = waits || heavy && !are_light(py, inputs) || crate::engine::may_wait();
    if may_wait || !outs.is_empty() || Flags::current().is_intercepted() {
        let arrays = resolve_refs(inputs);
        let targets: SmallVec<[Option<Array>; 1]> = outs
            .iter()
            .map(|o| o.as_ref().map(|o| o.get().array(py)))
            .collect();
        let mut body = || {
            let refs: SmallVec<[Option<&Array>; 8]> = arrays.iter().map(Option::as_ref).collect();
            let outs: SmallVec<[Option<&Array>; 1]> = targets.iter().map(Option::as_ref).collect();
            let call = Call {
                op,
                inputs: &refs,
                attrs,
                outs: &outs,
                dtype,
            };
            dispatch_into(&call, outputs)
        };
        let result = if may_wait {
            without_gil(py, body)
        } else {
            body()
        };
        return result.map_err(|e| raise(py, e));
    }
    // No Python code runs from here to the end of the call, so references to the arrays stay valid.
    let result = convert::with_arrays(inputs, |refs| {
        let call = Call {
            op,
            inputs: refs,
            attrs,
            outs: &[],
            dtype,
        };
        dispatch_into(&call, outputs)
    });
    result.map_err(|error| raise(py, error))
}
