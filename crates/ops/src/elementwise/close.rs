//! `isclose`.

use mxnet_tensor::{DType, Scalar};

use crate::Array;
use crate::args::{Default, Param};
use crate::elementwise::arithmetic::{ADD, MULTIPLY};
use crate::elementwise::bitwise::{BITWISE_AND, BITWISE_OR};
use crate::elementwise::comparison::{EQUAL, LESS_EQUAL};
use crate::elementwise::special::{ISFINITE, ISNAN};
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::types::promoted;

pub(crate) static OPS: &[&OpDef] = &[&ISCLOSE];

/// Whether two arrays are equal up to a tolerance.
pub static ISCLOSE: OpDef = OpDef {
    name: "isclose",
    surface: &[Surface::Np("isclose")],
    params: &[
        Param::array("a"),
        Param::array("b"),
        Param::array("rtol").or(Default::Float(1e-5)),
        Param::array("atol").or(Default::Float(1e-8)),
        Param::bool("equal_nan", false),
    ],
    doc: "Whether `abs(a - b) <= atol + rtol * abs(b)`, element by element. An infinity is close only to an equal infinity, and NaN only to NaN, if \
          `equal_nan`.\n\nInteger operands are compared as float64.",
    about: &[
        ("a", "First operand."),
        ("b", "Second operand, the reference; the two broadcast."),
        (
            "rtol",
            "Relative tolerance, a number or an array with one for each element.",
        ),
        (
            "atol",
            "Absolute tolerance, a number or an array with one for each element.",
        ),
        ("equal_nan", "Whether NaN is close to NaN."),
    ],
    returns: &[(
        "ndarray",
        "bool, of the shape to which the operands broadcast.",
    )],
    raises: &[
        ("ValueError", "If the shapes do not broadcast."),
        ("TypeError", "If a tolerance is not real."),
    ],
    example: "
        >>> np.isclose([1.0, 2.0], [1.0 + 1e-6, 2.1])
        array([ True, False])
        >>> np.isclose(np.nan, np.nan, equal_nan=True)
        array(True)
    ",
    cpu: Cpu::Composite(|context| {
        let (a, b) = (context.input(0).detach(), context.input(1).detach());
        let dtype = match promoted(&[Some(context.input(0)), Some(context.input(1))]) {
            exact if !exact.is_inexact() => DType::F64,
            inexact => inexact,
        };
        let (a, b) = (a.astype(dtype)?, b.astype(dtype)?);
        let tolerance = |i: usize, default: f64| match context.opt(i) {
            Some(given) if given.dtype().is_complex() => {
                Err(context.dtype_error("tolerances must be real"))
            }
            // A Python number stays a scalar and takes the dtype of the operands.
            Some(given) if given.is_weak() => Ok(given.clone()),
            Some(given) => Ok(given.detach()),
            None => Array::weak_scalar(Scalar::F64(default)),
        };
        let limit = b.abs()?.binary(&MULTIPLY, &tolerance(2, 1e-5)?)?;
        let limit = limit.binary(&ADD, &tolerance(3, 1e-8)?)?;
        let near = a.sub(&b)?.abs()?.binary(&LESS_EQUAL, &limit)?;
        let mut close = near
            .binary(&BITWISE_AND, &b.unary(&ISFINITE)?)?
            .binary(&BITWISE_OR, &a.binary(&EQUAL, &b)?)?;
        if context.bool("equal_nan") {
            let both = a.unary(&ISNAN)?.binary(&BITWISE_AND, &b.unary(&ISNAN)?)?;
            close = close.binary(&BITWISE_OR, &both)?;
        }
        context.done(close)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), f((4,))",
        "f((3,)), f((3,)), 0.5, 0.1",
        "f((3,)), f((3,)), f((3,)), f((2, 1))",
        "np.array([1.0, nan, inf, -inf, inf]), np.array([1.0 + 1e-6, nan, inf, inf, 3.0])",
        "np.array([1.0, nan, inf]), np.array([1.0 + 1e-3, nan, 1.0]), 1e-2, 0.0, True",
        "i((5,), 3), i((5,), 3)",
        "c((3,)), c((3,)), 0.5",
    ]),
    ..OpDef::COMPOSITE
};
