//! Logical operators; every non-zero element is true.

use mxnet_kernels::map;
use mxnet_tensor::Scalar;

use super::comparison::on_overflow;
use crate::opdef::{Cpu, Fold, Grad, OpDef, Probe, Surface};
use crate::reduce::{ALL, ANY};
use crate::types::Types;

pub(crate) static OPS: &[&OpDef] = &[&LOGICAL_AND, &LOGICAL_OR, &LOGICAL_XOR, &LOGICAL_NOT];

/// Default fields for binary logical operators.
const LOGIC: OpDef = OpDef {
    types: Types::COMPARE,
    grad: Grad::Stop("booleans have no gradient"),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::BINARY
};

/// Logical and.
pub static LOGICAL_AND: OpDef = OpDef {
    name: "logical_and",
    on_overflow: Some(on_overflow),
    surface: &[Surface::Np("logical_and")],
    doc: "Whether both elements are true, that is, not zero.",
    example: "
        >>> np.logical_and([True, True, False], [1, 0, 1])
        array([ True, False, False])
    ",
    cpu: Cpu::Map(&map::LOGICAL_AND),
    onnx: Some("And"),
    fold: Fold::from(Scalar::Bool(true)).by(&ALL),
    ..LOGIC
};

/// Logical or.
pub static LOGICAL_OR: OpDef = OpDef {
    name: "logical_or",
    on_overflow: Some(on_overflow),
    surface: &[Surface::Np("logical_or")],
    doc: "Whether at least one of the two elements is true, that is, not zero.",
    example: "
        >>> np.logical_or([True, False], [0, 0])
        array([ True, False])
    ",
    cpu: Cpu::Map(&map::LOGICAL_OR),
    onnx: Some("Or"),
    fold: Fold::from(Scalar::Bool(false)).by(&ANY),
    ..LOGIC
};

/// Logical exclusive or.
pub static LOGICAL_XOR: OpDef = OpDef {
    name: "logical_xor",
    on_overflow: Some(on_overflow),
    surface: &[Surface::Np("logical_xor")],
    doc: "Whether exactly one of the two elements is true, that is, not zero.",
    example: "
        >>> np.logical_xor([True, False], [1, 1])
        array([False,  True])
    ",
    cpu: Cpu::Map(&map::LOGICAL_XOR),
    onnx: Some("Xor"),
    fold: Fold::from(Scalar::Bool(false)),
    ..LOGIC
};

/// Logical not.
pub static LOGICAL_NOT: OpDef = OpDef {
    name: "logical_not",
    surface: &[Surface::Np("logical_not")],
    doc: "Whether each element is zero, that is, false.",
    example: "
        >>> np.logical_not([1, 0, 2])
        array([False,  True, False])
    ",
    cpu: Cpu::Map(&map::LOGICAL_NOT),
    onnx: Some("Not"),
    types: Types::COMPARE,
    grad: Grad::Stop("booleans have no gradient"),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::UNARY
};
