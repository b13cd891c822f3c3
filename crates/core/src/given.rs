//! Outputs that the caller gives: whether they take the result, and how it gets there.

use mxnet_tensor::{Casting, DType, broadcast_shapes, can_cast};

use crate::args::ParamKind;
use crate::eager::{copy_into, copy_into_shared};
use crate::error::{Error, Result, Tuple};
use crate::invoke::Call;
use crate::opdef::Cpu;
use crate::{Array, Outputs, cpu};

/// Whether the kernel can write its result, of dtype `returned`, to the elements of `out`; else it is computed aside and copied.
pub(crate) fn takes_result(call: &Call, out: &Array, returned: DType) -> bool {
    let inputs = || call.inputs.iter().flatten();
    match call.op.cpu {
        // Loops write to any strides and dtype. Overlap would let an element be written before it is read, and halves are rounded before they go into
        // wider elements.
        Cpu::Map(_) => {
            !(matches!(returned, DType::F16 | DType::BF16) && out.dtype() != returned
                || out.shares_elements()
                || inputs().any(|x| {
                    cpu::overlaps(out.tensor(), x.tensor())
                        && !cpu::same_elements(out.tensor(), x.tensor())
                }))
        }
        _ => {
            out.dtype() == returned
                && out.layout().is_contiguous()
                && !call.inputs.iter().enumerate().any(|(i, x)| {
                    let same = |x: &Array| cpu::same_elements(out.tensor(), x.tensor());
                    x.is_some_and(|x| {
                        cpu::overlaps(out.tensor(), x.tensor())
                            && !(call.op.in_place && i == 0 && same(x))
                    })
                })
        }
    }
}

/// Outputs that `outs` already holds are copied there, unless they were computed there.
pub fn into_outs(call: &Call, results: Outputs) -> Result<Outputs> {
    if call.outs.is_empty() {
        return Ok(results);
    }
    results
        .into_iter()
        .enumerate()
        .map(|(i, result)| match call.outs.get(i).copied().flatten() {
            Some(out)
                if out.dtype() == result.dtype()
                    && cpu::same_elements(out.tensor(), result.tensor()) =>
            {
                Ok(result)
            }
            Some(out) => {
                let may_repeat = call.op.out_spreads || matches!(call.op.cpu, Cpu::Map(_));
                let spreads = may_repeat
                    && result.shape() != out.shape()
                    && broadcast_shapes(&[result.shape(), out.shape()])
                        .is_ok_and(|both| both.as_slice() == out.shape());
                let result = match spreads {
                    true => result.broadcast_to(out.shape())?,
                    false => result,
                };
                check_out(call, i, out, result.shape(), result.dtype())?;
                match out.shares_elements() {
                    true => copy_into_shared(&result, out)?,
                    false => copy_into(&result, out)?,
                }
                let (entry, seen) = (
                    result.entry().cloned(),
                    Array::from_tensor(out.tensor().clone()),
                );
                Ok(match entry {
                    Some((node, index)) => seen.with_entry(node, index),
                    None => seen,
                })
            }
            None => Ok(result),
        })
        .collect()
}

/// Which conversions from the result's dtype to that of `out` the call allows. Functions that join arrays do what their argument `casting` says;
/// their `out` has a dtype, beside which none can be asked for.
fn out_casting(call: &Call) -> Result<Casting> {
    let joins = (call.op.params.first()).is_some_and(|param| param.kind == ParamKind::Arrays);
    if !joins || !call.op.params.iter().any(|param| param.name == "casting") {
        return Ok(call.op.out_casting);
    }
    let cx = call.cx();
    if cx.dtype("dtype").is_some() {
        return Err(cx.dtype_error("takes `out` or `dtype`, not both: `out` has a dtype"));
    }
    Ok(cx.str("casting").parse().unwrap_or(call.op.out_casting))
}

pub(crate) fn check_out(
    call: &Call,
    i: usize,
    out: &Array,
    shape: &[usize],
    dtype: DType,
) -> Result<()> {
    if out.shape() != shape {
        let problem = format!(
            "non-broadcastable output operand: `out` has wrong shape {}, the result has shape {}",
            Tuple(out.shape()),
            Tuple(shape)
        );
        return Err(Error::shape(call.op.name, problem));
    }
    if call.op.out_held && !can_cast(out.dtype(), dtype, Casting::Safe) {
        let problem = format!(
            "cannot cast `out` from {} to {}, the dtype of the elements, under casting rule 'safe'",
            out.dtype().name(),
            dtype.name()
        );
        return Err(Error::dtype(call.op.name, problem));
    }
    let casting = out_casting(call)?;
    if !can_cast(dtype, out.dtype(), casting) {
        let problem = format!(
            "cannot cast output {i} from {} to {} under casting rule '{}'",
            dtype.name(),
            out.dtype().name(),
            casting.name()
        );
        return Err(Error::dtype(call.op.name, problem));
    }
    check_writable(call, out)
}

/// Refuses to write to an array that is read-only. Elements that share memory are computed aside, and written one after the other.
#[inline]
pub(crate) fn check_writable(call: &Call, out: &Array) -> Result<()> {
    match out.tensor().is_read_only() {
        true => out.check_writable(call.op.name, "output array"),
        false => Ok(()),
    }
}
