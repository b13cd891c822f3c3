//! Special functions, and functions of two integers. Functions of the representation of numbers are in `special/representation.rs`.

mod representation;

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use mxnet_kernels::map;
use mxnet_tensor::Scalar;

use crate::Array;
use crate::args::{Param, Value};
use crate::elementwise::comparison::EQUAL;
use crate::elementwise::rounding::{FLOOR, RINT};
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{
    Amp, Cost, Cpu, Fold, Form, Grad, Keep, OpDef, Probe, Sparse, Surface, ZeroDimResult,
};
use crate::types::{DTypes, Lift, Out, Types};
pub use representation::*;

pub(crate) static OPS: &[&OpDef] = &[
    &ERF,
    &ERFC,
    &ERFINV,
    &ERFCINV,
    &GAMMA,
    &GAMMALN,
    &DIGAMMA,
    &POLYGAMMA,
    &SINC,
    &REAL_SINC,
    &I0,
    &I1,
    &HEAVISIDE,
    &NEXTAFTER,
    &SPACING,
    &COPYSIGN,
    &LDEXP,
    &GCD,
    &LCM,
    &BITWISE_COUNT,
    &SIGNBIT,
    &ISNAN,
    &ISINF,
    &ISFINITE,
    &ISPOSINF,
    &ISNEGINF,
    &MODF,
    &FREXP,
    &MANTISSA,
    &EXPONENT,
];

/// Default fields for expensive functions of one real number.
const SPECIAL: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(4000),
    ..OpDef::UNARY
};

/// Error function.
pub static ERF: OpDef = OpDef {
    name: "erf",
    surface: &[Surface::Npx("erf")],
    doc: "Gauss error function of every element.\n\nSource: DLMF 7.2.1.",
    example: "
        >>> npx.erf(np.array([0.0, 0.5, 2.0]))
        array([0.       , 0.5204999, 0.9953223])
    ",
    cpu: Cpu::Map(&map::ERF),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).square()?.neg()?.exp()?.scale(FRAC_2_SQRT_PI)])
    }),
    onnx: Some("Erf"),
    sparse: Sparse::KeepsZero,
    probe: Probe::STANDARD.against("scipy.special.erf"),
    ..SPECIAL
};

/// Complementary error function.
pub static ERFC: OpDef = OpDef {
    name: "erfc",
    surface: &[Surface::Npx("erfc")],
    doc: "One minus the error function of every element, without cancellation.\n\nSource: DLMF 7.2.2.",
    example: "
        >>> npx.erfc(np.array([0.0, 1.0, 5.0]))
        array([1.0000000e+00, 1.5729921e-01, 1.5374597e-12])
    ",
    cpu: Cpu::Map(&map::ERFC),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).square()?.neg()?.exp()?.scale(-FRAC_2_SQRT_PI)])
    }),
    probe: Probe::STANDARD.against("scipy.special.erfc").ulp(4),
    ..SPECIAL
};

/// Inverse error function.
pub static ERFINV: OpDef = OpDef {
    name: "erfinv",
    surface: &[Surface::Npx("erfinv")],
    doc: "Inverse of the error function of every element: infinite at -1 and 1, NaN beyond.",
    example: "
        >>> npx.erfinv(np.array([-0.5, 0.0, 0.5]))
        array([-0.47693628,  0.        ,  0.47693628])
    ",
    cpu: Cpu::Map(&map::ERFINV),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).square()?.exp()?.scale(1.0 / FRAC_2_SQRT_PI)])
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::over(-0.75..0.75).against("scipy.special.erfinv"),
    ..SPECIAL
};

/// Inverse complementary error function.
pub static ERFCINV: OpDef = OpDef {
    name: "erfcinv",
    surface: &[Surface::Npx("erfcinv")],
    doc: "Inverse of `erfc` of every element: infinite at 0 and 2, NaN beyond. Small arguments keep their digits, subnormal ones three.",
    example: "
        >>> npx.erfcinv(np.array([1e-30, 0.5, 1.0]))
        array([8.148617 , 0.4769363, 0.       ])
    ",
    cpu: Cpu::Map(&map::ERFCINV),
    grad: Grad::Rule(Keep::OUTPUTS, |g| {
        g.slopes(&[&|| g.output(0).square()?.exp()?.scale(-1.0 / FRAC_2_SQRT_PI)])
    }),
    probe: Probe::over(0.25..1.75)
        .against("scipy.special.erfcinv")
        .ulp(4),
    ..SPECIAL
};

/// Gamma function.
pub static GAMMA: OpDef = OpDef {
    name: "gamma_function",
    surface: &[Surface::Npx("gamma")],
    doc: "Gamma function of every element: NaN at negative integers, infinite at 0.\n\nSource: DLMF 5.2.1.",
    example: "
        >>> npx.gamma(np.array([1.0, 5.0, 0.5]))
        array([ 1.       , 24.       ,  1.7724539])
    ",
    cpu: Cpu::Map(&map::GAMMA),
    grad: Grad::Rule(Keep::ALL, |g| {
        g.slopes(&[&|| g.output(0).mul(&g.input(0).unary(&DIGAMMA)?)])
    }),
    probe: Probe::over(0.5..4.0).against("scipy.special.gamma").ulp(4),
    ..SPECIAL
};

/// Logarithm of gamma.
pub static GAMMALN: OpDef = OpDef {
    name: "gammaln",
    surface: &[Surface::Npx("gammaln")],
    doc: "Logarithm of the absolute value of the gamma function of every element; infinite at integers not above 0.",
    example: "
        >>> npx.gammaln(np.array([5.0, 100.0]))
        array([  3.1780539, 359.13422  ])
    ",
    cpu: Cpu::Map(&map::LGAMMA),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| g.input(0).unary(&DIGAMMA)])
    }),
    probe: Probe::over(2.25..8.0)
        .against("lambda x: np.where(np.isneginf(x), np.inf, scipy.special.gammaln(x))"),
    ..SPECIAL
};

/// Derivative of gammaln.
pub static DIGAMMA: OpDef = OpDef {
    name: "digamma",
    surface: &[Surface::Npx("digamma")],
    doc: "Derivative of the logarithm of the gamma function, of every element; NaN at negative integers.\n\nSource: DLMF 5.2.2.",
    example: "
        >>> npx.digamma(np.array([1.0, 2.0]))
        array([-0.5772157 ,  0.42278433])
    ",
    cpu: Cpu::Map(&map::DIGAMMA),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| polygamma(g.input(0), 1)])),
    probe: Probe::over(3.0..8.0)
        .against("scipy.special.digamma")
        .ulp(3),
    ..SPECIAL
};

/// Derivatives of digamma.
pub static POLYGAMMA: OpDef = OpDef {
    name: "polygamma",
    form: Form::Out,
    params: &[Param::array("x"), Param::int("n", 1)],
    doc: "The `n`-th derivative of digamma of every element.\n\nSource: DLMF 5.15.",
    cpu: Cpu::Map(&map::POLYGAMMA),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        g.slopes(&[&|| polygamma(g.input(0), g.int("n") + 1)])
    }),
    probe: Probe::over(1.75..8.0).against("lambda x: scipy.special.polygamma(1, x)"),
    ..SPECIAL
};

fn polygamma(x: &Array, n: i64) -> Result<Array> {
    invoke1(&POLYGAMMA, &[x], &[Value::Int(n)].into_iter().collect())
}

/// sin(pi x) / (pi x).
pub static SINC: OpDef = OpDef {
    name: "sinc",
    surface: &[Surface::Np("sinc")],
    params: &[Param::array("x")],
    doc: "sin(pi x) / (pi x) of every element, 1 at 0. Accurate near the roots, which are the integers.",
    returns: &[("ndarray", "Of the shape of `x`.")],
    example: "
        >>> np.sinc([0.0, 0.5, 1.5])
        array([ 1.        ,  0.63661975, -0.21220659])
    ",
    form: Form::ParamsOnly,
    cpu: Cpu::Composite(|context| {
        let x = context
            .input(0)
            .mul(&Array::weak_scalar(Scalar::F64(1.0))?)?;
        if x.dtype().is_float() {
            return context.done(x.unary(&REAL_SINC)?);
        }
        let (zero, one) = (
            Array::weak_scalar(Scalar::F64(0.0))?,
            Array::weak_scalar(Scalar::F64(1.0))?,
        );
        let at_zero = x.binary(&EQUAL, &zero)?;
        let (angle, sign) = half_turn(&x)?;
        let sine = angle.sin()?.mul(&sign)?;
        let below = choose(&at_zero, &one, &x.scale(PI)?)?;
        context.done(choose(&at_zero, &one, &sine.div(&below)?)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((50,)) * 4",
        "f(())",
        "f((0,))",
        "c((4,))",
        "np.array([0.0, 1.0, -2.0])",
    ])
    .ulp(4),
    ..OpDef::COMPOSITE
};

/// sin(pi x) / (pi x) of real numbers.
pub static REAL_SINC: OpDef = OpDef {
    name: "real_sinc",
    doc: "sin(pi x) / (pi x) of every real element, 1 at 0.",
    cpu: Cpu::Map(&map::SINC),
    grad: Grad::Rule(Keep::ALL, |g| {
        g.slopes(&[&|| {
            // (cos(pi x) - sinc(x)) / x.
            let (x, zero) = (g.input(0), Array::weak_scalar(Scalar::F64(0.0))?);
            let (angle, sign) = half_turn(x)?;
            let at_zero = x.binary(&EQUAL, &zero)?;
            let below = choose(&at_zero, &Array::weak_scalar(Scalar::F64(1.0))?, x)?;
            let slope = angle.cos()?.mul(&sign)?.sub(g.output(0))?.div(&below)?;
            choose(&at_zero, &zero, &slope)
        }])
    }),
    // NumPy's result is not exactly 0 at the roots.
    probe: Probe::over(0.25..3.0)
        .against(
            "lambda x: np.where(x == 0, 1, np.sin(np.pi * (x - np.rint(x))) * (1 - 2 * (np.rint(x) % 2)) / (np.pi * np.where(x == 0, 1, x)))",
        )
        .ulp(4),
    ..SPECIAL
};

/// Range reduction for sine and cosine of pi x: the angle pi (x - n), where n is the integer nearest to the real part, and the sign (-1)^n.
/// x - n is exact.
fn half_turn(x: &Array) -> Result<(Array, Array)> {
    let nearest = if x.dtype().is_complex() {
        x.real_part()?.unary(&RINT)?
    } else {
        x.unary(&RINT)?
    };
    // (-1)^n = 1 - 2 (n mod 2).
    let even = nearest.scale(0.5)?.unary(&FLOOR)?.scale(2.0)?;
    let sign = nearest.sub(&even)?.scale(-2.0)?.shift(1.0)?;
    Ok((x.sub(&nearest)?.scale(PI)?, sign))
}

/// Modified Bessel function of order 0.
pub static I0: OpDef = OpDef {
    name: "i0",
    doc: "Modified Bessel function of the first kind, of order 0, of every element.\n\nSource: DLMF 10.25.2 up to 20, 10.40.1 beyond.",
    zero_dim: ZeroDimResult::Array,
    cpu: Cpu::Map(&map::I0),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| g.input(0).unary(&I1)])),
    probe: Probe::over(-4.0..30.0).against("scipy.special.i0").ulp(8),
    ..SPECIAL
};

/// Modified Bessel function of order 1.
pub static I1: OpDef = OpDef {
    name: "i1",
    doc: "Modified Bessel function of the first kind, of order 1, of every element.\n\nSource: DLMF 10.25.2 up to 20, 10.40.1 beyond.",
    cpu: Cpu::Map(&map::I1),
    grad: Grad::Rule(Keep::ALL, |g| {
        g.slopes(&[&|| {
            // I1' = I0 - I1 / x, which is 1/2 at 0 (DLMF 10.29.3).
            let x = g.input(0);
            let at_zero = x.binary(&EQUAL, &Array::weak_scalar(Scalar::F64(0.0))?)?;
            let below = choose(&at_zero, &Array::weak_scalar(Scalar::F64(1.0))?, x)?;
            let part = choose(
                &at_zero,
                &Array::weak_scalar(Scalar::F64(0.5))?,
                &g.output(0).div(&below)?,
            )?;
            x.unary(&I0)?.sub(&part)
        }])
    }),
    probe: Probe::over(-4.0..30.0).against("scipy.special.i1").ulp(8),
    ..SPECIAL
};

/// Heaviside step function.
pub static HEAVISIDE: OpDef = OpDef {
    name: "heaviside",
    surface: &[Surface::Np("heaviside")],
    doc: "0 where `x1` is below zero, 1 where it is above, `x2` where it is zero.",
    example: "
        >>> np.heaviside([-1.0, 0.0, 2.0], 0.5)
        array([0. , 0.5, 1. ])
    ",
    types: Types::REAL_FLOAT,
    cpu: Cpu::Map(&map::HEAVISIDE),
    grad: Grad::Rule(Keep::inputs(1), |g| {
        if !g.wants(1) {
            return Ok(smallvec::smallvec![None, None]);
        }
        let step = g
            .input(0)
            .with_scalar(&EQUAL, 0.0)?
            .astype(g.dy(0).dtype())?;
        Ok(smallvec::smallvec![
            None,
            Some(g.fitted(g.dy(0).mul(&step)?, 1)?)
        ])
    }),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::BINARY
};

/// Default fields for functions of two integers.
const DIVISORS: OpDef = OpDef {
    types: Types::same(DTypes::INT),
    grad: Grad::Stop("integers have no gradient"),
    cost: Cost::PerKiB(2000),
    probe: Probe::over(0.0..100.0).ulp(0),
    ..OpDef::BINARY
};

/// Greatest common divisor.
pub static GCD: OpDef = OpDef {
    name: "gcd",
    surface: &[Surface::Np("gcd")],
    doc: "Greatest common divisor of the absolute values, element by element. If one number is 0, it is the absolute value of the other.",
    example: "
        >>> np.gcd([12, 17], 18)
        array([6, 1])
    ",
    cpu: Cpu::Map(&map::GCD),
    fold: Fold::from(Scalar::I64(0)),
    ..DIVISORS
};

/// Least common multiple.
pub static LCM: OpDef = OpDef {
    name: "lcm",
    surface: &[Surface::Np("lcm")],
    doc: "Least common multiple of the absolute values, element by element; 0 if one number is 0. It wraps like products.",
    example: "
        >>> np.lcm([4, 6], 10)
        array([20, 30])
    ",
    cpu: Cpu::Map(&map::LCM),
    ..DIVISORS
};

/// Number of one bits.
pub static BITWISE_COUNT: OpDef = OpDef {
    name: "bitwise_count",
    surface: &[Surface::Np("bitwise_count")],
    doc: "Number of one bits of the absolute value of every element, as uint8.",
    example: "
        >>> np.bitwise_count([7, 8, -1])
        array([3, 1, 1], dtype=uint8)
    ",
    types: Types::Promote {
        accepts: DTypes::INT,
        lift: Lift::BoolToI8,
        out: Out::Fixed(mxnet_tensor::DType::U8),
    },
    cpu: Cpu::Map(&map::BITWISE_COUNT),
    grad: Grad::Stop("integers have no gradient"),
    probe: Probe::STANDARD.ulp(0),
    ..OpDef::UNARY
};
