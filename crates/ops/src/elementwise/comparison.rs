//! Comparisons.

use mxnet_kernels::map;
use mxnet_tensor::{DType, Kind, Scalar};

use super::logic::{LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR};
use crate::eager::into_outs;
use crate::error::{Error, Result};
use crate::invoke::Call;
use crate::opdef::{Cpu, Expansion, Grad, OnOverflow, OpDef, Probe, Surface};
use crate::types::Types;
use crate::{Array, Outputs};

pub(crate) static OPS: &[&OpDef] = &[
    &EQUAL,
    &NOT_EQUAL,
    &LESS,
    &LESS_EQUAL,
    &GREATER,
    &GREATER_EQUAL,
];

/// The result of comparing integers in `compute` with a Python integer out of range of `compute`: it does not depend on the elements. For
/// logical operators, the truth value of that integer. `None` for other operators.
pub(crate) fn on_overflow(call: &Call, compute: DType) -> Option<OnOverflow> {
    let [Some(a), Some(b)] = call.inputs else {
        return None;
    };
    let op = call.op;
    let (value, below) = match (a.number(), b.number()) {
        (Some(a), Some(b)) => return of_numbers(op, a, b).map(OnOverflow::Constant),
        // Whether the first operand lies below the second.
        (None, Some(b)) if a.dtype().is_integer() => (b, b.as_f64() > 0.0),
        (Some(a), None) if b.dtype().is_integer() => (a, a.as_f64() < 0.0),
        _ => return None,
    };
    if value.fits(compute) || value.kind() > Kind::Integer {
        return None;
    }
    Some(OnOverflow::Constant(match op.name {
        "equal" => false,
        "not_equal" => true,
        "less" | "less_equal" => below,
        "greater" | "greater_equal" => !below,
        "logical_and" | "logical_or" | "logical_xor" if matches!(value, Scalar::I64(_)) => {
            return Some(OnOverflow::True);
        }
        _ => return None,
    }))
}

/// The result of comparing two Python integers. `None` for other numbers and operators, and for two equal floats that stand for integers
/// beyond 64 bits.
fn of_numbers(op: &OpDef, a: Scalar, b: Scalar) -> Option<bool> {
    let order = match (whole(a)?, whole(b)?) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        // An integer beyond 64 bits, stored as a float, never equals one within 64 bits.
        _ => a.as_f64().partial_cmp(&b.as_f64())?,
    };
    if order.is_eq() && matches!((a, b), (Scalar::Wide(_), Scalar::Wide(_))) {
        return None;
    }
    Some(match op.name {
        "equal" => order.is_eq(),
        "not_equal" => order.is_ne(),
        "less" => order.is_lt(),
        "less_equal" => order.is_le(),
        "greater" => order.is_gt(),
        "greater_equal" => order.is_ge(),
        _ => return None,
    })
}

/// An integer (`Ok`), or the float that stands for an integer beyond 64 bits (`Err`); `None` for floats and complex numbers.
fn whole(x: Scalar) -> Option<std::result::Result<i128, f64>> {
    Some(match x {
        Scalar::U64(x) => Ok(x.into()),
        Scalar::I64(x) => Ok(x.into()),
        Scalar::Bool(x) => Ok(x.into()),
        Scalar::Wide(x) => Err(x),
        Scalar::F64(_) | Scalar::C128(_) => return None,
    })
}

fn is_signed(x: &Array) -> bool {
    x.dtype().is_signed() && x.dtype().is_integer() && !x.is_weak()
}

/// Whether the call compares signed integers with uint64, which have no common integer dtype.
fn mixes_signed_and_u64(call: &Call) -> bool {
    let [Some(a), Some(b)] = call.inputs else {
        return false;
    };
    let is_wide = |x: &Array| x.dtype() == DType::U64 && !x.is_weak();
    call.dtype.is_none() && (is_wide(a) && is_signed(b) || is_signed(a) && is_wide(b))
}

/// Compares signed integers with uint64 exactly: float64 would round.
fn compare_signed_with_u64(call: &Call) -> Result<Outputs> {
    let [Some(a), Some(b)] = call.inputs else {
        return Err(Error::internal(
            call.op.name,
            "a comparison has two operands",
        ));
    };
    let swapped = is_signed(b);
    // The result where the signed operand is negative.
    let below = match call.op.name {
        "equal" => false,
        "not_equal" => true,
        "less" | "less_equal" => !swapped,
        _ => swapped,
    };
    let signed = if swapped { b } else { a };
    let zero = Array::weak_scalar(Scalar::I64(0))?;
    let magnitude = signed.astype(DType::U64)?;
    let negative = signed.binary(&LESS, &zero)?;
    let compared = match swapped {
        true => a.binary(call.op, &magnitude)?,
        false => magnitude.binary(call.op, b)?,
    };
    let result = match below {
        true => compared.binary(&LOGICAL_OR, &negative)?,
        false => compared.binary(&LOGICAL_AND, &negative.unary(&LOGICAL_NOT)?)?,
    };
    into_outs(call, Outputs::from_buf([result]))
}

/// Default fields for comparisons.
const COMPARISON: OpDef = OpDef {
    types: Types::COMPARE,
    expands: Some(|call| {
        mixes_signed_and_u64(call).then_some(compare_signed_with_u64 as Expansion)
    }),
    on_overflow: Some(on_overflow),
    grad: Grad::Stop("piecewise constant"),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::BINARY
};

/// Whether elements of the two arrays are equal.
pub static EQUAL: OpDef = OpDef {
    name: "equal",
    surface: &[Surface::Np("equal")],
    doc: "Whether elements of the two arrays are equal; NaN equals nothing.",
    example: "
        >>> np.equal([1, 2, 3], [1, 0, 3])
        array([ True, False,  True])
    ",
    cpu: Cpu::Map(&map::EQUAL),
    onnx: Some("Equal"),
    ..COMPARISON
};

/// Whether elements of the two arrays differ.
pub static NOT_EQUAL: OpDef = OpDef {
    name: "not_equal",
    surface: &[Surface::Np("not_equal")],
    doc: "Whether elements of the two arrays differ; NaN differs from everything.",
    example: "
        >>> np.not_equal([1, 2, 3], [1, 0, 3])
        array([False,  True, False])
    ",
    cpu: Cpu::Map(&map::NOT_EQUAL),
    ..COMPARISON
};

/// Whether elements of the first array are less than those of the second. Complex numbers compare by real, then by imaginary part.
pub static LESS: OpDef = OpDef {
    name: "less",
    surface: &[Surface::Np("less")],
    doc: "Whether elements of the first array are less than those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.less([1, 2, 3], 2)
        array([ True, False, False])
    ",
    cpu: Cpu::Map(&map::LESS),
    onnx: Some("Less"),
    ..COMPARISON
};

/// Whether elements of the first array are at most those of the second. Complex numbers compare by real, then by imaginary part.
pub static LESS_EQUAL: OpDef = OpDef {
    name: "less_equal",
    surface: &[Surface::Np("less_equal")],
    doc: "Whether elements of the first array are at most those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.less_equal([1, 2, 3], 2)
        array([ True,  True, False])
    ",
    cpu: Cpu::Map(&map::LESS_EQUAL),
    onnx: Some("LessOrEqual"),
    ..COMPARISON
};

/// Whether elements of the first array are greater than those of the second. Complex numbers compare by real, then by imaginary part.
pub static GREATER: OpDef = OpDef {
    name: "greater",
    surface: &[Surface::Np("greater")],
    doc: "Whether elements of the first array are greater than those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.greater([1, 2, 3], 2)
        array([False, False,  True])
    ",
    cpu: Cpu::Map(&map::GREATER),
    onnx: Some("Greater"),
    ..COMPARISON
};

/// Whether elements of the first array are at least those of the second. Complex numbers compare by real, then by imaginary part.
pub static GREATER_EQUAL: OpDef = OpDef {
    name: "greater_equal",
    surface: &[Surface::Np("greater_equal")],
    doc: "Whether elements of the first array are at least those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.greater_equal([1, 2, 3], 2)
        array([False,  True,  True])
    ",
    cpu: Cpu::Map(&map::GREATER_EQUAL),
    onnx: Some("GreaterOrEqual"),
    ..COMPARISON
};
