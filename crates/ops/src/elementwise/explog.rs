//! Exponentials, logarithms, powers and roots.

use std::f64::consts::{LN_2, LOG2_E, LOG10_E};

use mxnet_kernels::map;
use mxnet_tensor::{DType, Kind, Scalar};

use crate::Array;
use crate::autograd::GradContext;
use crate::context::KernelContext;
use crate::cpu;
use crate::elementwise::comparison::EQUAL;
use crate::elementwise::select::choose;
use crate::error::{Error, Result};
use crate::opdef::{
    Amp, Cost, Cpu, Fold, FpErrors, Grad, Grads, Keep, OpDef, Pole, Probe, Sparse, Surface,
};
use crate::types::{DTypes, Lift, Out, Types};

pub(crate) static OPS: &[&OpDef] = &[
    &EXP,
    &EXP2,
    &EXPM1,
    &LOG,
    &LOG2,
    &LOG10,
    &LOG1P,
    &SQRT,
    &CBRT,
    &RSQRT,
    &RCBRT,
    &LOGADDEXP,
    &LOGADDEXP2,
    &POWER,
    &FLOAT_POWER,
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

/// e to the power.
pub static EXP: OpDef = OpDef {
    name: "exp",
    surface: &[Surface::Np("exp")],
    doc: "e to the power of every element.",
    example: "
        >>> np.exp([0.0, 1.0])
        array([1.       , 2.7182817])
    ",
    fp_errors: FpErrors {
        shrinks: true,
        counts_zeros: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::EXP),
    grad: Grad::Rule(Keep::OUTPUTS, |g| g.slopes(&[&|| Ok(g.output(0).clone())])),
    onnx: Some("Exp"),
    probe: Probe::over(-4.0..4.0),
    ..FUNCTION
};

/// 2 to the power.
pub static EXP2: OpDef = OpDef {
    name: "exp2",
    surface: &[Surface::Np("exp2")],
    doc: "2 to the power of every element.",
    example: "
        >>> np.exp2([3, 0.5])
        array([8.       , 1.4142135])
    ",
    fp_errors: FpErrors {
        shrinks: true,
        counts_zeros: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::EXP2),
    grad: Grad::Rule(Keep::OUTPUTS, |g| g.slopes(&[&|| g.output(0).scale(LN_2)])),
    probe: Probe::over(-4.0..4.0),
    ..FUNCTION
};

/// exp(x) - 1.
pub static EXPM1: OpDef = OpDef {
    name: "expm1",
    surface: &[Surface::Np("expm1")],
    doc: "exp(x) - 1 of every element, accurate near 0.",
    example: "
        >>> np.expm1([0.0, 1e-6])
        array([0.0000000e+00, 1.0000005e-06])
    ",
    cpu: Cpu::Map(&map::EXPM1),
    grad: Grad::Rule(Keep::OUTPUTS, |g| g.slopes(&[&|| g.output(0).shift(1.0)])),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-1.5..1.5),
    ..FUNCTION
};

/// Natural logarithm.
pub static LOG: OpDef = OpDef {
    name: "log",
    surface: &[Surface::Np("log")],
    doc: "Natural logarithm of every element: NaN below 0, -inf at 0.",
    example: "
        >>> np.log([1.0, np.e, 0.0])
        array([  0.,   1., -inf])
    ",
    fp_errors: FpErrors {
        pole: Pole::Everywhere,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::LOG),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| g.input(0).reciprocal()])),
    onnx: Some("Log"),
    probe: Probe::over(0.25..4.0),
    ..FUNCTION
};

/// Logarithm to base 2.
pub static LOG2: OpDef = OpDef {
    name: "log2",
    surface: &[Surface::Np("log2")],
    doc: "Logarithm to base 2 of every element: NaN below 0, -inf at 0.",
    example: "
        >>> np.log2([1, 8, 0.5])
        array([ 0.,  3., -1.])
    ",
    fp_errors: FpErrors {
        pole: Pole::Everywhere,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::LOG2),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).reciprocal()?.scale(LOG2_E)])
    }),
    probe: Probe::over(0.25..4.0),
    ..FUNCTION
};

/// Logarithm to base 10.
pub static LOG10: OpDef = OpDef {
    name: "log10",
    surface: &[Surface::Np("log10")],
    doc: "Logarithm to base 10 of every element: NaN below 0, -inf at 0.",
    example: "
        >>> np.log10([1, 1000])
        array([0., 3.])
    ",
    fp_errors: FpErrors {
        pole: Pole::Everywhere,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::LOG10),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).reciprocal()?.scale(LOG10_E)])
    }),
    probe: Probe::over(0.25..4.0),
    ..FUNCTION
};

/// log(1 + x).
pub static LOG1P: OpDef = OpDef {
    name: "log1p",
    surface: &[Surface::Np("log1p")],
    doc: "log(1 + x) of every element, accurate near 0.",
    example: "
        >>> np.log1p([0.0, 1e-6])
        array([0.000000e+00, 9.999995e-07])
    ",
    fp_errors: FpErrors {
        pole: Pole::Everywhere,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::LOG1P),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).shift(1.0)?.reciprocal()])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-0.5..3.0),
    ..FUNCTION
};

/// Square root.
pub static SQRT: OpDef = OpDef {
    name: "sqrt",
    surface: &[Surface::Np("sqrt")],
    doc: "Square root of every element that is not negative; NaN for negative real numbers.",
    example: "
        >>> np.sqrt([4, 2])
        array([2.       , 1.4142135])
    ",
    cpu: Cpu::Map(&map::SQRT),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).reciprocal()?.scale(0.5)])
    }),
    onnx: Some("Sqrt"),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(0.25..4.0).ulp(0),
    ..FUNCTION
};

/// Cube root.
pub static CBRT: OpDef = OpDef {
    name: "cbrt",
    surface: &[Surface::Np("cbrt")],
    doc: "Cube root of every element.",
    example: "
        >>> np.cbrt([27.0, -8.0])
        array([ 3., -2.])
    ",
    cpu: Cpu::Map(&map::CBRT),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).square()?.reciprocal()?.scale(1.0 / 3.0)])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(0.25..4.0).ulp(1),
    ..REAL
};

/// One over the square root.
pub static RSQRT: OpDef = OpDef {
    name: "rsqrt",
    surface: &[Surface::Npx("rsqrt")],
    doc: "One over the square root of every element.",
    example: "
        >>> npx.rsqrt(np.array([4.0, 16.0]))
        array([0.5 , 0.25])
    ",
    cpu: Cpu::Map(&map::RSQRT),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).square()?.mul(g.output(0))?.scale(-0.5)])
    }),
    probe: Probe::over(0.25..4.0)
        .against("lambda x: 1 / np.sqrt(x)")
        .ulp(1),
    ..REAL
};

/// One over the cube root.
pub static RCBRT: OpDef = OpDef {
    name: "rcbrt",
    surface: &[Surface::Npx("rcbrt")],
    doc: "One over the cube root of every element.",
    example: "
        >>> npx.rcbrt(np.array([8.0, 27.0]))
        array([0.5       , 0.33333334])
    ",
    cpu: Cpu::Map(&map::RCBRT),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).square()?.square()?.scale(-1.0 / 3.0)])
    }),
    probe: Probe::over(0.25..4.0)
        .against("lambda x: 1 / np.cbrt(x)")
        .ulp(1),
    ..REAL
};

/// Logarithm of a sum of exponentials.
pub static LOGADDEXP: OpDef = OpDef {
    name: "logaddexp",
    surface: &[Surface::Np("logaddexp")],
    doc: "log(exp(x1) + exp(x2)), element by element, without overflow.",
    example: "
        >>> np.logaddexp(1000.0, 1000.0)
        array(1000.6932)
    ",
    cpu: Cpu::Map(&map::LOGADDEXP),
    grad: Grad::Rule(Keep::ALL, |g| {
        g.slopes(&[&|| g.input(0).sub(g.output(0))?.exp(), &|| {
            g.input(1).sub(g.output(0))?.exp()
        }])
    }),
    probe: Probe::over(0.25..2.0),
    fold: Fold::from(Scalar::F64(f64::NEG_INFINITY)),
    ..REAL2
};

/// Logarithm to base 2 of a sum of powers of 2.
pub static LOGADDEXP2: OpDef = OpDef {
    name: "logaddexp2",
    surface: &[Surface::Np("logaddexp2")],
    doc: "log2(2**x1 + 2**x2), element by element, without overflow.",
    example: "
        >>> np.logaddexp2(3, 3)
        array(4.)
    ",
    cpu: Cpu::Map(&map::LOGADDEXP2),
    grad: Grad::Rule(Keep::ALL, |g| {
        g.slopes(&[&|| g.input(0).sub(g.output(0))?.unary(&EXP2), &|| {
            g.input(1).sub(g.output(0))?.unary(&EXP2)
        }])
    }),
    probe: Probe::over(0.25..2.0),
    fold: Fold::from(Scalar::F64(f64::NEG_INFINITY)),
    ..REAL2
};

/// Power.
pub static POWER: OpDef = OpDef {
    name: "power",
    surface: &[Surface::Np("power"), Surface::Np("pow")],
    doc: "First array to the power of the second, element by element. Integers wrap. A negative number to a fractional power is NaN.",
    raises: &[(
        "ValueError",
        "If integers are raised to a negative integer.",
    )],
    example: "
        >>> np.power([1, 2, 3], 2)
        array([1, 4, 9])
        >>> np.power([4.0, 9.0], 0.5)
        array([2., 3.])
    ",
    types: Types::Promote {
        accepts: DTypes::NUMBER,
        lift: Lift::BoolToI8,
        out: Out::Same,
    },
    refuses: Some(negative_exponents),
    fp_errors: FpErrors {
        shrinks: true,
        pole: Pole::ZeroOf(0),
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::POWER),
    grad: Grad::Rule(Keep::ALL, power_gradients),
    onnx: Some("Pow"),
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(400),
    probe: Probe::over(0.5..3.0).ulp(3),
    ..OpDef::BINARY
};

/// Power of floats.
pub static FLOAT_POWER: OpDef = OpDef {
    name: "float_power",
    surface: &[Surface::Np("float_power")],
    doc: "First array to the power of the second, element by element, computed in floats also for integers. With NumPy's promotion the result is \
        float64 or complex128.",
    example: "
        >>> np.float_power([2, 4], -1)
        array([0.5 , 0.25])
    ",
    types: Types::Promote {
        accepts: DTypes::INEXACT,
        lift: Lift::ToWidestFloat,
        out: Out::Same,
    },
    fp_errors: FpErrors {
        pole: Pole::ZeroOf(0),
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Map(&map::FLOAT_POWER),
    grad: Grad::Rule(Keep::ALL, power_gradients),
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(400),
    probe: Probe::over(0.5..3.0).ulp(3),
    ..OpDef::BINARY
};

/// An error for integers with negative exponents, as in NumPy.
fn negative_exponents(context: &KernelContext, compute: DType) -> Result<()> {
    let exponents = context.input(1);
    if !compute.is_integer()
        || !compute.is_signed()
        || context.output(0).is_empty()
        || cpu::smallest_integer(exponents, context.threads) >= 0
    {
        return Ok(());
    }
    Err(Error::value(
        context.op.name,
        "Integers to negative integer powers are not allowed.",
    )
    .with_hint("make one of them a float"))
}

/// d(x^y) = y x^(y-1) dx + x^y log(x) dy.
fn power_gradients(g: &GradContext) -> Result<Grads> {
    let (x, y) = (g.input(0), g.input(1));
    g.slopes(&[
        &|| match scalar_value(y) {
            Some(2.0) => x.scale(2.0),
            Some(c) if c != 0.0 => x.power_of(c - 1.0)?.scale(c),
            _ => {
                // x^0 is constant, but 0 * 0^-1 is NaN: the slope is set to 0 where y is 0.
                let slope = x.binary(&POWER, &y.shift(-1.0)?)?.mul(y)?;
                let zero = Array::constant(Scalar::I64(0), slope.dtype())?;
                choose(&y.with_scalar(&EQUAL, 0.0)?, &zero, &slope)
            }
        },
        &|| {
            // log(0) is -inf, but 0^y is constant for y > 0. The slope at y = 0 is set to 0, too.
            let out = g.output(0);
            let is_zero = x.with_scalar(&EQUAL, 0.0)?;
            let one = Array::constant(Scalar::I64(1), out.dtype())?;
            let base = choose(&is_zero, &one, &x.astype(out.dtype())?)?;
            out.mul(&base.log()?)
        },
    ])
}

/// The value of a real Python number; `None` for arrays.
fn scalar_value(x: &Array) -> Option<f64> {
    let real = |value: &Scalar| matches!(value.kind(), Kind::Integer | Kind::Float);
    x.number().filter(real).map(|value| value.as_f64())
}
