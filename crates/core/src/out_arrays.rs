//! Arrays given as `out`: whether a kernel can write to them directly, and copies otherwise.

use mxnet_tensor::{Casting, DType, broadcast_shapes, can_cast};

use crate::args::ParamKind;
use crate::eager::{copy_into, copy_into_shared};
use crate::error::{Error, Result, Tuple};
use crate::invoke::Call;
use crate::opdef::Cpu;
use crate::{Array, Outputs, cpu};

/// Whether the kernel can write its result, of dtype `returned`, directly to `out`. If not, it computes a new array, which is copied.
pub(crate) fn takes_result(call: &Call, out: &Array, returned: DType) -> bool {
    let inputs = || call.inputs.iter().flatten();
    match call.op.cpu {
        // Loops write to any strides and dtype. Excluded are overlapping operands, of which an element could be written before it is read, and
        // float16 or bfloat16 results for other dtypes, which must be rounded first.
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

/// Copies results to the arrays in `outs`, except those that were computed there.
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
                let may_repeat = call.op.out_broadcasts || matches!(call.op.cpu, Cpu::Map(_));
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

/// Which conversions from the result's dtype to the dtype of `out` the call allows. Functions that join arrays have an argument `casting`; with `out`
/// they take no `dtype`.
fn out_casting(call: &Call) -> Result<Casting> {
    let joins = (call.op.params.first()).is_some_and(|param| param.kind == ParamKind::Arrays);
    if !joins || !call.op.params.iter().any(|param| param.name == "casting") {
        return Ok(call.op.out_casting);
    }
    let context = call.context();
    if context.dtype("dtype").is_some() {
        return Err(context.dtype_error("takes `out` or `dtype`, not both: `out` has a dtype"));
    }
    Ok(context
        .str("casting")
        .parse()
        .unwrap_or(call.op.out_casting))
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

/// Refuses to write to a read-only array. Arrays whose elements share memory are allowed: the result is computed elsewhere and copied in order.
#[inline]
pub(crate) fn check_writable(call: &Call, out: &Array) -> Result<()> {
    match out.tensor().is_read_only() {
        true => out.check_writable(call.op.name, "output array"),
        false => Ok(()),
    }
}
