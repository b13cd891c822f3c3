//! Rounding to integers and to decimals.

use mxnet_kernels::map;
use mxnet_tensor::{DType, Promotion, Scalar, promotion};

use crate::Array;
use crate::args::{Param, Value};
use crate::elementwise::arithmetic::DIVIDE;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, Grad, Keep, OpDef, Probe, Sparse, Surface};
use crate::types::{DTypes, Lift, Out, Types};

pub(crate) static OPS: &[&OpDef] = &[
    &FLOOR,
    &CEIL,
    &TRUNC,
    &FIX,
    &RINT,
    &ROUND_STE,
    &SIGN_STE,
    &ROUND,
    &ROUND_SCALED,
];

/// Default fields for rounding to integers. Integers and booleans pass unchanged.
const ROUNDING: OpDef = OpDef {
    types: Types::Promote {
        accepts: DTypes::REAL,
        lift: Lift::No,
        out: Out::Same,
    },
    grad: Grad::Stop("piecewise constant"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-4.0..4.0).ulp(0),
    ..OpDef::UNARY
};

/// Largest integer not above each element.
pub static FLOOR: OpDef = OpDef {
    name: "floor",
    surface: &[Surface::Np("floor")],
    doc: "Largest integer not above every element.",
    example: "
        >>> np.floor([-1.5, 1.5])
        array([-2.,  1.])
    ",
    cpu: Cpu::Map(&map::FLOOR),
    onnx: Some("Floor"),
    ..ROUNDING
};

/// Smallest integer not below each element.
pub static CEIL: OpDef = OpDef {
    name: "ceil",
    surface: &[Surface::Np("ceil")],
    doc: "Smallest integer not below every element.",
    example: "
        >>> np.ceil([-1.5, 1.5])
        array([-1.,  2.])
    ",
    cpu: Cpu::Map(&map::CEIL),
    onnx: Some("Ceil"),
    ..ROUNDING
};

/// Integer part.
pub static TRUNC: OpDef = OpDef {
    name: "trunc",
    surface: &[Surface::Np("trunc")],
    doc: "Every element without its fraction: the nearest integer towards zero.",
    example: "
        >>> np.trunc([-1.5, 1.5])
        array([-1.,  1.])
    ",
    cpu: Cpu::Map(&map::TRUNC),
    ..ROUNDING
};

/// Integer part; NumPy's alias of `trunc`.
pub static FIX: OpDef = OpDef {
    name: "fix",
    surface: &[Surface::Np("fix")],
    form: Form::Out,
    doc: "Every element without its fraction: the nearest integer towards zero. The same as `trunc`.",
    example: "
        >>> np.fix([-1.5, 1.5])
        array([-1.,  1.])
    ",
    cpu: Cpu::Map(&map::TRUNC),
    ..ROUNDING
};

/// Nearest integer.
pub static RINT: OpDef = OpDef {
    name: "rint",
    surface: &[Surface::Np("rint")],
    doc: "Nearest integer to every element, ties to even. Both parts of complex numbers are rounded.",
    example: "
        >>> np.rint([0.5, 1.5, 2.6])
        array([0., 2., 3.])
    ",
    types: Types::INEXACT,
    cpu: Cpu::Map(&map::RINT),
    onnx: Some("Round"),
    ..ROUNDING
};

/// Default fields for rounding functions with a straight-through gradient.
const STRAIGHT: OpDef = OpDef {
    params: &[Param::array("data")],
    form: Form::ParamsOnly,
    types: Types::REAL_FLOAT,
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(g.dy(0).clone())),
    ..ROUNDING
};

/// Nearest integer, with a straight-through gradient.
pub static ROUND_STE: OpDef = OpDef {
    name: "round_ste",
    surface: &[Surface::Npx("round_ste")],
    doc: "Nearest integer to every element, ties to even, with the gradient of the identity (straight-through estimator).\n\n\
          Source: Bengio, Leonard and Courville, \"Estimating or propagating gradients through stochastic neurons\", 2013.",
    example: "
        >>> x = np.array([0.4, 1.6])
        >>> x.attach_grad()
        >>> with autograd.record():
        ...     y = npx.round_ste(x)
        >>> y.backward()
        >>> y, x.grad
        (array([0., 2.]), array([1., 1.]))
    ",
    cpu: Cpu::Map(&map::RINT),
    probe: Probe::over(-3.0..3.0).against("numpy.rint"),
    ..STRAIGHT
};

/// Sign, with a straight-through gradient.
pub static SIGN_STE: OpDef = OpDef {
    name: "sign_ste",
    surface: &[Surface::Npx("sign_ste")],
    doc: "-1, 0 or 1 for every element, with the gradient of the identity (straight-through estimator).\n\n\
          Source: Bengio, Leonard and Courville, \"Estimating or propagating gradients through stochastic neurons\", 2013.",
    example: "
        >>> x = np.array([-0.4, 1.6])
        >>> x.attach_grad()
        >>> with autograd.record():
        ...     y = npx.sign_ste(x)
        >>> y.backward()
        >>> y, x.grad
        (array([-1.,  1.]), array([1., 1.]))
    ",
    cpu: Cpu::Map(&map::SIGN),
    probe: Probe::over(-3.0..3.0).against("numpy.sign"),
    ..STRAIGHT
};

/// Nearest multiple of a power of ten.
pub static ROUND: OpDef = OpDef {
    name: "round",
    surface: &[
        Surface::Np("round"),
        Surface::Np("around"),
        Surface::Method("round"),
    ],
    params: &[Param::array("a"), Param::int("decimals", 0)],
    form: Form::Out,
    doc: "Every element rounded to `decimals` digits after the point; ties go to the even digit. Negative `decimals` round before the point, also \
        integers. The scale 10**decimals is itself rounded, as in NumPy.",
    about: &[(
        "decimals",
        "Number of digits after the point; if negative, before it.",
    )],
    returns: &[(
        "ndarray",
        "Of the shape and dtype of `a`; booleans become float16 by NumPy's rules.",
    )],
    raises: &[("OverflowError", "If `decimals` does not fit in 32 bits.")],
    example: "
        >>> np.round([0.5, 1.5, 2.567], 1)
        array([0.5, 1.5, 2.6])
        >>> np.round([1234, 5678], -2)
        array([1200, 5700])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, decimals) = (context.input(0), context.int("decimals"));
        if i32::try_from(decimals).is_err() {
            return Err(Error::overflow(
                context.op.name,
                format!("argument `decimals` must fit 32 bits, found {decimals}"),
            ));
        }
        if x.dtype().is_inexact() {
            return context.done(rounded(x, decimals)?);
        }
        if x.dtype() == DType::Bool && promotion() == Promotion::NumPy {
            return match decimals {
                0 => context.done(x.unary(&RINT)?),
                _ => Err(context.dtype_error("booleans can only be rounded to 0 decimals")),
            };
        }
        if decimals >= 0 || x.dtype() == DType::Bool {
            return context.done(x.copy_in("K")?);
        }
        context.done(rounded(&x.astype(DType::F64)?, decimals)?.astype(x.dtype())?)
    }),
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((5, 4)), 2",
        "f((7,)) * 100, -1",
        "i((7,), 1000), -2",
        "i((3,), 9), 1",
        "f(())",
        "f((0, 3)), decimals=1",
    ]),
    ..OpDef::COMPOSITE
};

/// Rounds floats to decimals in their own dtype.
static ROUND_SCALED: OpDef = OpDef {
    name: "round_scaled",
    params: &[
        Param::array("x"),
        Param::float("scale", 1.0),
        Param::float("before", 0.0),
    ],
    form: Form::ParamsOnly,
    types: Types::REAL_FLOAT,
    doc: "Nearest multiple of 1 / `scale` to every element, or of `scale` if `before` is not 0.",
    cpu: Cpu::Map(&map::ROUND_SCALED),
    probe: Probe::over(-4.0..4.0).against("numpy.rint").ulp(0),
    ..ROUNDING
};

fn rounded(x: &Array, decimals: i64) -> Result<Array> {
    if decimals == 0 {
        return x.unary(&RINT);
    }
    let scale = 10_f64.powi(decimals.unsigned_abs().min(400) as i32);
    if matches!(x.dtype(), DType::F32 | DType::F64) {
        let before = if decimals > 0 { 0.0 } else { 1.0 };
        let attrs = [Value::Float(scale), Value::Float(before)];
        return invoke1(&ROUND_SCALED, &[x], &attrs.into_iter().collect());
    }
    let scale = Array::weak_scalar(Scalar::F64(scale))?;
    if decimals > 0 {
        x.mul(&scale)?.unary(&RINT)?.binary(&DIVIDE, &scale)
    } else {
        x.binary(&DIVIDE, &scale)?.unary(&RINT)?.mul(&scale)
    }
}
