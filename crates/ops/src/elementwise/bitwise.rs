//! Bitwise operators on integers and booleans.

use mxnet_kernels::map;
use mxnet_tensor::Scalar;

use crate::opdef::{Cpu, Fold, Grad, OpDef, Probe, Surface};
use crate::types::Types;

pub(crate) static OPS: &[&OpDef] = &[
    &BITWISE_AND,
    &BITWISE_OR,
    &BITWISE_XOR,
    &INVERT,
    &LEFT_SHIFT,
    &RIGHT_SHIFT,
];

const DISCRETE: Grad = Grad::Stop("defined on integers only");

/// Bits set in both arrays.
pub static BITWISE_AND: OpDef = OpDef {
    name: "bitwise_and",
    surface: &[Surface::Np("bitwise_and")],
    doc: "Bits set in both arrays; for booleans, whether both are true.",
    example: "
        >>> np.bitwise_and([12, 10], 6)
        array([4, 2])
    ",
    types: Types::BITS,
    cpu: Cpu::Map(&map::BITWISE_AND),
    grad: DISCRETE,
    onnx: Some("BitwiseAnd"),
    probe: Probe::over(0.0..8.0).ulp(0),
    fold: Fold::from(Scalar::I64(-1)),
    ..OpDef::BINARY
};

/// Bits set in either array.
pub static BITWISE_OR: OpDef = OpDef {
    name: "bitwise_or",
    surface: &[Surface::Np("bitwise_or")],
    doc: "Bits set in either array; for booleans, whether either is true.",
    example: "
        >>> np.bitwise_or([12, 10], 1)
        array([13, 11])
    ",
    types: Types::BITS,
    cpu: Cpu::Map(&map::BITWISE_OR),
    grad: DISCRETE,
    onnx: Some("BitwiseOr"),
    probe: Probe::over(0.0..8.0).ulp(0),
    fold: Fold::from(Scalar::I64(0)),
    ..OpDef::BINARY
};

/// Bits set in exactly one of the arrays.
pub static BITWISE_XOR: OpDef = OpDef {
    name: "bitwise_xor",
    surface: &[Surface::Np("bitwise_xor")],
    doc: "Bits set in exactly one of the arrays; for booleans, whether they differ.",
    example: "
        >>> np.bitwise_xor([12, 10], 6)
        array([10, 12])
    ",
    types: Types::BITS,
    cpu: Cpu::Map(&map::BITWISE_XOR),
    grad: DISCRETE,
    onnx: Some("BitwiseXor"),
    probe: Probe::over(0.0..8.0).ulp(0),
    fold: Fold::from(Scalar::I64(0)),
    ..OpDef::BINARY
};

/// All bits flipped.
pub static INVERT: OpDef = OpDef {
    name: "invert",
    surface: &[
        Surface::Np("invert"),
        Surface::Np("bitwise_not"),
        Surface::Np("bitwise_invert"),
    ],
    doc: "Every bit inverted; for booleans, `not`.",
    example: "
        >>> np.invert([0, 5])
        array([-1, -6])
        >>> np.invert([True, False])
        array([False,  True])
    ",
    types: Types::BITS,
    cpu: Cpu::Map(&map::INVERT),
    grad: DISCRETE,
    onnx: Some("BitwiseNot"),
    probe: Probe::over(0.0..8.0).ulp(0),
    ..OpDef::UNARY
};

/// Bits shifted left by the second array.
pub static LEFT_SHIFT: OpDef = OpDef {
    name: "left_shift",
    surface: &[Surface::Np("left_shift"), Surface::Np("bitwise_left_shift")],
    doc: "Bits shifted left by the second array; 0 if that is at least the number of bits.",
    example: "
        >>> np.left_shift([1, 3], [4, 1])
        array([16,  6])
    ",
    types: Types::INTEGER,
    cpu: Cpu::Map(&map::LEFT_SHIFT),
    grad: DISCRETE,
    probe: Probe::over(0.0..8.0).ulp(0),
    ..OpDef::BINARY
};

/// Bits shifted right by the second array.
pub static RIGHT_SHIFT: OpDef = OpDef {
    name: "right_shift",
    surface: &[
        Surface::Np("right_shift"),
        Surface::Np("bitwise_right_shift"),
    ],
    doc: "Bits shifted right by the second array, filled with the sign bit.",
    example: "
        >>> np.right_shift([16, -16], 2)
        array([ 4, -4])
    ",
    types: Types::INTEGER,
    cpu: Cpu::Map(&map::RIGHT_SHIFT),
    grad: DISCRETE,
    probe: Probe::over(0.0..8.0).ulp(0),
    ..OpDef::BINARY
};
