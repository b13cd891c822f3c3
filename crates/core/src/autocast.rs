//! Automatic mixed precision: the casts of a call's floating-point operands to the precision that the mark of its operator asks for.
//!
//! The casts are ordinary calls, so that tapes and tracers see them. Operators that follow their operands get none: their type rules promote mixed
//! operands to the widest dtype. If such an operator is a composite, the calls of its body are cast instead.

use mxnet_tensor::DType;
use smallvec::SmallVec;

use crate::error::Result;
use crate::invoke::{Call, dispatch};
use crate::mode::CastScope;
use crate::opdef::{Amp, Cpu};
use crate::{Array, Outputs};

/// Executes a call with its operands cast; `half` is the dtype of operators that run in half precision.
#[inline(never)]
pub(crate) fn cast_and_call(call: &Call, half: DType) -> Result<Outputs> {
    let is_followed = call.op.amp == Amp::Follow;
    let _casts = match call.op.cpu {
        Cpu::Composite(_) if is_followed => CastScope::in_body_only(),
        _ => CastScope::off(),
    };
    let Some(dtype) = dtype_of(call, half) else {
        return dispatch(call);
    };
    let mut cast: SmallVec<[Option<Array>; 8]> = SmallVec::new();
    for (i, x) in call.inputs.iter().enumerate() {
        cast.push(match x {
            Some(x) if is_cast(x) && x.dtype() != dtype && !is_position(call, i) => {
                Some(x.astype(dtype)?)
            }
            _ => None,
        });
    }
    let inputs: SmallVec<[Option<&Array>; 8]> = (cast.iter().zip(call.inputs))
        .map(|(cast, &given)| cast.as_ref().or(given))
        .collect();
    dispatch(&Call {
        inputs: &inputs,
        ..*call
    })
}

/// The dtype that the operands are cast to. `None` if they stay as they are: the caller has chosen a dtype, an operand has more digits than float32, or
/// the call writes to an operand of another dtype.
fn dtype_of(call: &Call, half: DType) -> Option<DType> {
    let dtype = match call.op.amp {
        Amp::Narrow => half,
        Amp::WidenToF32 => DType::F32,
        Amp::Follow => return None,
    };
    let is_wide = |x: &&Array| !x.is_weak() && x.dtype().is_inexact() && !is_cast(x);
    let is_kept = call.dtype.is_some() || call.inputs.iter().flatten().any(is_wide);
    let changes_other = || {
        let context = call.context();
        let mut mutated = context.mutated();
        mutated.any(|(_, x)| is_cast(x) && x.dtype() != dtype)
    };
    (!is_kept && !changes_other()).then_some(dtype)
}

/// Whether an operand has a dtype that casts change. Python numbers have none of their own.
fn is_cast(x: &Array) -> bool {
    !x.is_weak() && matches!(x.dtype(), DType::F16 | DType::BF16 | DType::F32)
}

/// Whether operand `i` says where the operator reads or writes.
fn is_position(call: &Call, i: usize) -> bool {
    let context = call.context();
    (call.op.positions.iter()).any(|&p| context.arguments_of(p).contains(&i))
}
