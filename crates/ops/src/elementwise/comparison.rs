//! Comparisons.

use mxnet_kernels::map;
use mxnet_tensor::{DType, Scalar};

use crate::cpu::read_scalar;
use crate::invoke::Call;
use crate::opdef::{Cpu, Cuda, Grad, Onnx, OpDef, Probe, Surface};
use crate::types::Types;

pub(crate) static OPS: &[&OpDef] = &[
    &EQUAL,
    &NOT_EQUAL,
    &LESS,
    &LESS_EQUAL,
    &GREATER,
    &GREATER_EQUAL,
];

/// What becomes of a Python number that integers cannot hold.
pub(crate) enum Beyond {
    /// The result is this everywhere.
    Answer(bool),
    /// The number counts as true.
    True,
}

/// What comparing integers in `compute` with a Python number beyond their range gives, whatever they are, or what the number means to
/// logic; `None` for other operators.
pub(crate) fn beyond(call: &Call, compute: DType) -> Option<Beyond> {
    let [Some(a), Some(b)] = call.inputs else {
        return None;
    };
    let (number, other) = if b.is_weak() { (b, a) } else { (a, b) };
    let value = read_scalar(number.tensor());
    if !number.is_weak() || !other.dtype().is_integer() || value.fits(compute) {
        return None;
    }
    let is_large = value.as_f64() > 0.0;
    // Whether the first operand lies below the second.
    let below = is_large == b.is_weak();
    let op = call.op;
    Some(Beyond::Answer(match op.name {
        "equal" => false,
        "not_equal" => true,
        "less" | "less_equal" => below,
        "greater" | "greater_equal" => !below,
        "logical_and" | "logical_or" | "logical_xor" if matches!(value, Scalar::I64(_)) => {
            return Some(Beyond::True);
        }
        _ => return None,
    }))
}

/// What comparisons have in common.
const COMPARISON: OpDef = OpDef {
    types: Types::COMPARE,
    grad: Grad::Stop("piecewise constant"),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::BINARY
};

/// Where elements of the two arrays are equal.
pub static EQUAL: OpDef = OpDef {
    name: "equal",
    surface: &[Surface::Np("equal")],
    doc: "Where elements of the two arrays are equal; NaN equals nothing.",
    example: "
        >>> np.equal([1, 2, 3], [1, 0, 3])
        array([ True, False,  True])
    ",
    cpu: Cpu::Map(&map::EQUAL),
    cuda: Cuda::Expr("x == y"),
    onnx: Onnx::Node {
        ty: "Equal",
        since: 11,
    },
    ..COMPARISON
};

/// Where elements of the two arrays differ.
pub static NOT_EQUAL: OpDef = OpDef {
    name: "not_equal",
    surface: &[Surface::Np("not_equal")],
    doc: "Where elements of the two arrays differ; NaN differs from everything.",
    example: "
        >>> np.not_equal([1, 2, 3], [1, 0, 3])
        array([False,  True, False])
    ",
    cpu: Cpu::Map(&map::NOT_EQUAL),
    cuda: Cuda::Expr("x != y"),
    onnx: Onnx::None,
    ..COMPARISON
};

/// Where elements of the first array lie below those of the second. Complex numbers compare by real, then by imaginary part.
pub static LESS: OpDef = OpDef {
    name: "less",
    surface: &[Surface::Np("less")],
    doc: "Where elements of the first array lie below those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.less([1, 2, 3], 2)
        array([ True, False, False])
    ",
    cpu: Cpu::Map(&map::LESS),
    cuda: Cuda::Expr("x < y"),
    onnx: Onnx::Node {
        ty: "Less",
        since: 9,
    },
    ..COMPARISON
};

/// Where elements of the first array do not lie above those of the second. Complex numbers compare by real, then by imaginary part.
pub static LESS_EQUAL: OpDef = OpDef {
    name: "less_equal",
    surface: &[Surface::Np("less_equal")],
    doc: "Where elements of the first array do not lie above those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.less_equal([1, 2, 3], 2)
        array([ True,  True, False])
    ",
    cpu: Cpu::Map(&map::LESS_EQUAL),
    cuda: Cuda::Expr("x <= y"),
    onnx: Onnx::Node {
        ty: "LessOrEqual",
        since: 12,
    },
    ..COMPARISON
};

/// Where elements of the first array lie above those of the second. Complex numbers compare by real, then by imaginary part.
pub static GREATER: OpDef = OpDef {
    name: "greater",
    surface: &[Surface::Np("greater")],
    doc: "Where elements of the first array lie above those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.greater([1, 2, 3], 2)
        array([False, False,  True])
    ",
    cpu: Cpu::Map(&map::GREATER),
    cuda: Cuda::Expr("x > y"),
    onnx: Onnx::Node {
        ty: "Greater",
        since: 9,
    },
    ..COMPARISON
};

/// Where elements of the first array do not lie below those of the second. Complex numbers compare by real, then by imaginary part.
pub static GREATER_EQUAL: OpDef = OpDef {
    name: "greater_equal",
    surface: &[Surface::Np("greater_equal")],
    doc: "Where elements of the first array do not lie below those of the second. Complex numbers compare by real, then by imaginary part.",
    example: "
        >>> np.greater_equal([1, 2, 3], 2)
        array([False,  True,  True])
    ",
    cpu: Cpu::Map(&map::GREATER_EQUAL),
    cuda: Cuda::Expr("x >= y"),
    onnx: Onnx::Node {
        ty: "GreaterOrEqual",
        since: 12,
    },
    ..COMPARISON
};
