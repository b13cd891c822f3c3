//! Trigonometric and hyperbolic functions, their inverses, angles.

use std::f64::consts::PI;

use mxnet_kernels::map;
use mxnet_tensor::{DType, Scalar};

use crate::Array;
use crate::args::Param;
use crate::autograd::GradContext;
use crate::elementwise::explog::SQRT;
use crate::error::Result;
use crate::opdef::{
    Amp, Cost, Cpu, Fold, Form, FpErrors, Grad, Keep, OpDef, Pole, Probe, Sparse, Surface,
};
use crate::types::{DTypes, Lift, Out, Types};

pub(crate) static OPS: &[&OpDef] = &[
    &SIN, &COS, &TAN, &ARCSIN, &ARCCOS, &ARCTAN, &SINH, &COSH, &TANH, &TANH_GRAD, &ARCSINH,
    &ARCCOSH, &ARCTANH, &DEG2RAD, &RAD2DEG, &ARCTAN2, &HYPOT, &PHASE, &ANGLE,
];

/// Default fields for functions of real and complex numbers.
const FUNCTION: OpDef = OpDef {
    types: Types::INEXACT,
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(200),
    ..OpDef::UNARY
};

/// Default fields for functions of real numbers.
const REAL: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    ..FUNCTION
};

/// Default fields for functions of two real numbers.
const REAL2: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(400),
    ..OpDef::BINARY
};

fn one_minus_square(x: &Array) -> Result<Array> {
    x.square()?.neg()?.shift(1.0)
}

fn square_sum(g: &GradContext) -> Result<Array> {
    g.input(0).square()?.add(&g.input(1).square()?)
}

/// Sine.
pub static SIN: OpDef = OpDef {
    name: "sin",
    surface: &[Surface::Np("sin")],
    doc: "Sine of every element, in radians.",
    example: "
        >>> np.sin([0.0, np.pi / 2])
        array([0., 1.])
    ",
    cpu: Cpu::Map(&map::SIN),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| g.input(0).cos()])),
    onnx: Some("Sin"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-4.0..4.0),
    ..FUNCTION
};

/// Cosine.
pub static COS: OpDef = OpDef {
    name: "cos",
    surface: &[Surface::Np("cos")],
    doc: "Cosine of every element, in radians.",
    example: "
        >>> np.cos([0.0, np.pi])
        array([ 1., -1.])
    ",
    cpu: Cpu::Map(&map::COS),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| g.input(0).sin()?.neg()])),
    onnx: Some("Cos"),
    probe: Probe::over(-4.0..4.0),
    ..FUNCTION
};

/// Tangent.
pub static TAN: OpDef = OpDef {
    name: "tan",
    surface: &[Surface::Np("tan")],
    doc: "Tangent of every element, in radians.",
    example: "
        >>> np.tan([0.0, 1.0])
        array([0.       , 1.5574079])
    ",
    cpu: Cpu::Map(&map::TAN),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).square()?.shift(1.0)])
    }),
    onnx: Some("Tan"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-1.25..1.25).ulp(3),
    ..FUNCTION
};

/// Inverse sine.
pub static ARCSIN: OpDef = OpDef {
    name: "arcsin",
    surface: &[Surface::Np("arcsin"), Surface::Np("asin")],
    doc: "Inverse sine of every element, in -pi/2..pi/2; NaN beyond -1..1.",
    example: "
        >>> np.arcsin([0.0, 1.0])
        array([0.       , 1.5707963])
    ",
    cpu: Cpu::Map(&map::ARCSIN),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| one_minus_square(g.input(0))?.unary(&SQRT)?.reciprocal()])
    }),
    onnx: Some("Asin"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-0.75..0.75),
    ..FUNCTION
};

/// Inverse cosine.
pub static ARCCOS: OpDef = OpDef {
    name: "arccos",
    surface: &[Surface::Np("arccos"), Surface::Np("acos")],
    doc: "Inverse cosine of every element, in 0..pi; NaN beyond -1..1.",
    example: "
        >>> np.arccos([1.0, 0.0])
        array([0.       , 1.5707964])
    ",
    cpu: Cpu::Map(&map::ARCCOS),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| {
            one_minus_square(g.input(0))?
                .unary(&SQRT)?
                .reciprocal()?
                .neg()
        }])
    }),
    onnx: Some("Acos"),
    probe: Probe::over(-0.75..0.75),
    ..FUNCTION
};

/// Inverse tangent.
pub static ARCTAN: OpDef = OpDef {
    name: "arctan",
    surface: &[Surface::Np("arctan"), Surface::Np("atan")],
    doc: "Inverse tangent of every element, in -pi/2..pi/2.",
    example: "
        >>> np.arctan([0.0, 1.0])
        array([0.       , 0.7853982])
    ",
    cpu: Cpu::Map(&map::ARCTAN),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).square()?.shift(1.0)?.reciprocal()])
    }),
    onnx: Some("Atan"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-0.75..4.0),
    ..FUNCTION
};

/// Hyperbolic sine.
pub static SINH: OpDef = OpDef {
    name: "sinh",
    surface: &[Surface::Np("sinh")],
    doc: "Hyperbolic sine of every element.",
    example: "
        >>> np.sinh([0.0, 1.0])
        array([0.       , 1.1752012])
    ",
    cpu: Cpu::Map(&map::SINH),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| g.input(0).unary(&COSH)])),
    onnx: Some("Sinh"),
    sparse: Sparse::KeepsZero,
    ..FUNCTION
};

/// Hyperbolic cosine.
pub static COSH: OpDef = OpDef {
    name: "cosh",
    surface: &[Surface::Np("cosh")],
    doc: "Hyperbolic cosine of every element.",
    example: "
        >>> np.cosh([0.0, 1.0])
        array([1.       , 1.5430806])
    ",
    cpu: Cpu::Map(&map::COSH),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| g.input(0).unary(&SINH)])),
    onnx: Some("Cosh"),
    ..FUNCTION
};

/// Hyperbolic tangent.
pub static TANH: OpDef = OpDef {
    name: "tanh",
    surface: &[Surface::Np("tanh")],
    doc: "Hyperbolic tangent of every element.",
    example: "
        >>> np.tanh([0.0, 1.0])
        array([0.       , 0.7615942])
    ",
    cpu: Cpu::Map(&map::TANH),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        if g.output(0).dtype().is_complex() {
            return g.slopes(&[&|| one_minus_square(g.output(0))]);
        }
        g.elementwise(&[&|| g.dy(0).binary(&TANH_GRAD, g.output(0))])
    }),
    onnx: Some("Tanh"),
    sparse: Sparse::KeepsZero,
    ..FUNCTION
};

/// The cotangent of tanh, from that of its result and the result.
pub static TANH_GRAD: OpDef = OpDef {
    name: "tanh_grad",
    params: &[Param::array("dy"), Param::array("y")],
    doc: "dy (1 - y^2): the gradient of tanh in terms of its result.",
    types: Types::REAL_FLOAT,
    cpu: Cpu::Map(&map::TANH_GRAD),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.elementwise(&[&|| g.dy(0).binary(&TANH_GRAD, g.input(1)), &|| {
            g.dy(0).mul(g.input(0))?.mul(g.input(1))?.scale(-2.0)
        }])
    }),
    probe: Probe::over(-0.75..0.75).against("lambda dy, y: dy * (1 - y * y)"),
    ..OpDef::BINARY
};

/// Inverse hyperbolic sine.
pub static ARCSINH: OpDef = OpDef {
    name: "arcsinh",
    surface: &[Surface::Np("arcsinh"), Surface::Np("asinh")],
    doc: "Inverse hyperbolic sine of every element.",
    example: "
        >>> np.arcsinh([0.0, 1.0])
        array([0.       , 0.8813736])
    ",
    cpu: Cpu::Map(&map::ARCSINH),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).square()?.shift(1.0)?.unary(&SQRT)?.reciprocal()])
    }),
    onnx: Some("Asinh"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-0.75..2.0).ulp(3),
    ..FUNCTION
};

/// Inverse hyperbolic cosine.
pub static ARCCOSH: OpDef = OpDef {
    name: "arccosh",
    surface: &[Surface::Np("arccosh"), Surface::Np("acosh")],
    doc: "Inverse hyperbolic cosine of every element; NaN below 1.",
    example: "
        >>> np.arccosh([1.0, 2.0])
        array([0.      , 1.316958])
    ",
    cpu: Cpu::Map(&map::ARCCOSH),
    // Two roots instead of one of x^2 - 1: they do not cancel near 1 and have the right branch for complex numbers.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| {
            let (above, below) = (g.input(0).shift(1.0)?, g.input(0).shift(-1.0)?);
            above.unary(&SQRT)?.mul(&below.unary(&SQRT)?)?.reciprocal()
        }])
    }),
    onnx: Some("Acosh"),
    probe: Probe::over(1.25..4.0).ulp(3),
    ..FUNCTION
};

/// Inverse hyperbolic tangent.
pub static ARCTANH: OpDef = OpDef {
    name: "arctanh",
    surface: &[Surface::Np("arctanh"), Surface::Np("atanh")],
    doc: "Inverse hyperbolic tangent of every element; infinite at -1 and 1, NaN beyond.",
    example: "
        >>> np.arctanh([0.0, 0.5])
        array([0.        , 0.54930615])
    ",
    fp_errors: FpErrors {
        pole: Pole::Everywhere,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::ARCTANH),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| one_minus_square(g.input(0))?.reciprocal()])
    }),
    onnx: Some("Atanh"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-0.75..0.75).ulp(3),
    ..FUNCTION
};

/// Degrees to radians.
pub static DEG2RAD: OpDef = OpDef {
    name: "deg2rad",
    surface: &[Surface::Np("deg2rad"), Surface::Np("radians")],
    doc: "Degrees to radians, element by element.",
    example: "
        >>> np.deg2rad([0, 180])
        array([0.       , 3.1415927])
    ",
    cpu: Cpu::Map(&map::DEG2RAD),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.elementwise(&[&|| g.dy(0).scale(PI / 180.0)])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-200.0..200.0).ulp(1),
    ..REAL
};

/// Radians to degrees.
pub static RAD2DEG: OpDef = OpDef {
    name: "rad2deg",
    surface: &[Surface::Np("rad2deg"), Surface::Np("degrees")],
    doc: "Radians to degrees, element by element.",
    example: "
        >>> np.rad2deg([0.0, np.pi])
        array([  0., 180.])
    ",
    cpu: Cpu::Map(&map::RAD2DEG),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        g.elementwise(&[&|| g.dy(0).scale(180.0 / PI)])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-200.0..200.0).ulp(1),
    ..REAL
};

/// Angle of the point (x2, x1).
pub static ARCTAN2: OpDef = OpDef {
    name: "arctan2",
    surface: &[Surface::Np("arctan2"), Surface::Np("atan2")],
    doc: "Angle of the point (x2, x1), in radians: the inverse tangent of x1/x2 in the right quadrant.",
    example: "
        >>> np.arctan2([1.0, -1.0], [1.0, -1.0])
        array([ 0.7853982, -2.3561945])
    ",
    cpu: Cpu::Map(&map::ARCTAN2),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(1).div(&square_sum(g)?), &|| {
            g.input(0).div(&square_sum(g)?)?.neg()
        }])
    }),
    probe: Probe::over(0.25..2.0),
    ..REAL2
};

/// Euclidean distance from the origin.
pub static HYPOT: OpDef = OpDef {
    name: "hypot",
    surface: &[Surface::Np("hypot")],
    doc: "Distance of the point (x1, x2) from the origin, without intermediate overflow.",
    example: "
        >>> np.hypot([3, 5], [4, 12])
        array([ 5., 13.])
    ",
    cpu: Cpu::Map(&map::HYPOT),
    grad: Grad::Rule(Keep::ALL, |g| {
        g.slopes(&[&|| g.input(0).div(g.output(0)), &|| {
            g.input(1).div(g.output(0))
        }])
    }),
    probe: Probe::over(0.25..2.0),
    fold: Fold::from(Scalar::I64(0)),
    ..REAL2
};

/// Angle of complex numbers in radians.
pub static PHASE: OpDef = OpDef {
    name: "phase",
    params: &[Param::array("z")],
    doc: "Angle of every element in the complex plane, in radians, in -pi..pi.",
    types: Types::Promote {
        accepts: DTypes::INEXACT,
        lift: Lift::ToFloat,
        out: Out::Real,
    },
    cpu: Cpu::Map(&map::ANGLE),
    // The angle changes by Im(dz / z), so dy goes to dy * conj(-i / z) = i dy / conj(z); on the real line it is constant.
    grad: Grad::Rule(Keep::INPUTS, |g| {
        if !g.dtype_of(0).is_complex() {
            return Ok(smallvec::smallvec![None]);
        }
        g.elementwise(&[&|| {
            let i = Array::weak_scalar(mxnet_tensor::Scalar::C128(num_complex::Complex::new(
                0.0, 1.0,
            )))?;
            g.dy(0).mul(&i)?.div(&g.input(0).conj()?)
        }])
    }),
    probe: Probe::over(0.25..2.0).against("np.angle"),
    ..OpDef::UNARY
};

/// Angle of complex numbers.
pub static ANGLE: OpDef = OpDef {
    name: "angle",
    surface: &[Surface::Np("angle")],
    params: &[Param::array("z"), Param::bool("deg", false)],
    doc: "Angle of every element in the complex plane, in radians in [-pi, pi], or in degrees with `deg`. For real numbers it is 0, or pi below 0.",
    about: &[
        ("z", "The numbers."),
        ("deg", "Whether the angle is in degrees."),
    ],
    returns: &[("ndarray", "Of real dtype and the shape of `z`.")],
    example: "
        >>> np.angle([1 + 1j, -2.0], deg=True)
        array([ 45., 180.])
    ",
    form: Form::ParamsOnly,
    cpu: Cpu::Composite(|context| {
        // Booleans have the angle of the integers 0 and 1.
        let z = context.input(0);
        let angle = match z.dtype() {
            DType::Bool => z.astype(DType::I64)?.unary(&PHASE)?,
            _ => z.unary(&PHASE)?,
        };
        context.done(if context.bool("deg") {
            angle.unary(&RAD2DEG)?
        } else {
            angle
        })
    }),
    probe: Probe::calls(&[
        "c((3, 4))",
        "c((5,)), True",
        "f((4,))",
        "c(())",
        "i((4,))",
        "b((3,))",
    ]),
    ..OpDef::COMPOSITE
};
