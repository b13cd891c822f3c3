//! Incomplete gamma and beta functions, which are the distribution functions of gamma and beta samples, their inverses and their derivatives.

use mxnet_kernels::map;
use mxnet_tensor::Scalar;

use crate::Array;
use crate::args::{Attrs, Param, Value};
use crate::autograd::GradContext;
use crate::elementwise::arithmetic::RECIPROCAL;
use crate::elementwise::comparison::EQUAL;
use crate::elementwise::explog::LOG1P;
use crate::elementwise::select::choose;
use crate::elementwise::special::DIGAMMA;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::opdef::{Amp, Cost, Cpu, Form, Grad, Grads, Keep, OpDef, Probe, Surface};
use crate::types::Types;

pub(crate) static OPS: &[&OpDef] = &[
    &GAMMAINC,
    &GAMMAINCC,
    &GAMMAINCINV,
    &GAMMAINCCINV,
    &GAMMAINC_SLOPE,
    &GAMMA_DENSITY,
    &GAMMA_SLOPE,
    &BETAINC,
    &BETAINCC,
    &BETAINCINV,
    &BETAINCCINV,
    &BETAINC_SLOPE_A,
    &BETAINC_SLOPE_B,
    &BETA_DENSITY,
];

/// Default fields for functions of the gamma family.
const GAMMA_FAMILY: OpDef = OpDef {
    types: Types::REAL_FLOAT,
    params: &[Param::array("a"), Param::array("x")],
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(60_000),
    ..OpDef::BINARY
};

/// Default fields for functions of the beta family.
const BETA_FAMILY: OpDef = OpDef {
    params: &[Param::array("a"), Param::array("b"), Param::array("x")],
    ..GAMMA_FAMILY
};

const SHAPE: (&str, &str) = ("a", "Shape parameter, at least 0.");
const SHAPES: [(&str, &str); 2] = [
    ("a", "First shape parameter, at least 0."),
    ("b", "Second shape parameter, at least 0."),
];
const PROBABILITY: &str = "Probability, from 0 to 1.";

/// Calls of functions of two numbers. In float64 they are nearer to the true values than SciPy's, so only float32 is compared in ulp.
const GAMMA_PROBE: Probe = Probe::calls(&[
    "f((3, 4)), f((3, 4))",
    "f((3, 1)) * 9, f((4,))",
    "f(()), f(())",
    "f((0,)), f((0,))",
])
.within(0.25..4.0)
.ulp(4);

fn on(op: &'static OpDef, inputs: &[&Array]) -> Result<Array> {
    invoke1(op, inputs, &Attrs::none())
}

/// Lower incomplete gamma function.
pub static GAMMAINC: OpDef = OpDef {
    name: "gammainc",
    surface: &[Surface::Npx("gammainc")],
    doc: "Regularised lower incomplete gamma function P(a, x), element by element: the integral of t^(a - 1) exp(-t) from 0 to `x`, over gamma(a). It is \
          the probability of a gamma sample of shape `a` and scale 1 to be at most `x`. Computed in float64; the relative error is about 1e-13 for float64 \
          operands where `a` is below 1e6, also in the tails. NaN for negative operands and where both are 0, or both infinite.\n\n\
          Sources: DLMF 8.2.4, 8.7.1, 8.11.4; Takahasi and Mori, 1974, for large `a`.",
    about: &[SHAPE, ("x", "Upper end of the integral, at least 0.")],
    example: "
        >>> npx.gammainc(2.0, np.array([0.0, 1.0, 4.0]))
        array([0.        , 0.26424113, 0.90842181])
    ",
    cpu: Cpu::Map(&map::GAMMAINC),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (a, x) = (g.input(0), g.input(1));
        g.slopes(&[&|| on(&GAMMAINC_SLOPE, &[a, x]), &|| {
            on(&GAMMA_DENSITY, &[a, x])
        }])
    }),
    probe: GAMMA_PROBE.against("scipy.special.gammainc"),
    ..GAMMA_FAMILY
};

/// Upper incomplete gamma function.
pub static GAMMAINCC: OpDef = OpDef {
    name: "gammaincc",
    surface: &[Surface::Npx("gammaincc")],
    doc: "Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), element by element, without cancellation; see `gammainc`.\n\n\
          Sources: DLMF 8.2.4, 8.9.2; Takahasi and Mori, 1974, for large `a`.",
    about: &[SHAPE, ("x", "Lower end of the integral, at least 0.")],
    example: "
        >>> npx.gammaincc(2.0, np.array([0.0, 1.0, 40.0]))
        array([1.00000000e+00, 7.35758882e-01, 1.74186625e-16])
    ",
    cpu: Cpu::Map(&map::GAMMAINCC),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (a, x) = (g.input(0), g.input(1));
        g.slopes(&[&|| on(&GAMMAINC_SLOPE, &[a, x])?.neg(), &|| {
            on(&GAMMA_DENSITY, &[a, x])?.neg()
        }])
    }),
    probe: GAMMA_PROBE.against("scipy.special.gammaincc"),
    ..GAMMA_FAMILY
};

/// Quantile of the gamma distribution.
pub static GAMMAINCINV: OpDef = OpDef {
    name: "gammaincinv",
    surface: &[Surface::Npx("gammaincinv")],
    params: &[Param::array("a"), Param::array("y")],
    doc: "Inverse of `gammainc` with respect to its second argument, element by element: the x with P(a, x) = `y`, by Newton's method on the logarithm of \
          the smaller tail. NaN where `y` is no probability.",
    about: &[SHAPE, ("y", PROBABILITY)],
    example: "
        >>> npx.gammaincinv(2.0, np.array([0.0, 0.5, 1.0]))
        array([0.        , 1.67834699,        inf])
    ",
    cpu: Cpu::Map(&map::GAMMAINCINV),
    grad: Grad::Rule(Keep::ALL, |g| {
        let (a, x) = (g.input(0), g.output(0));
        g.slopes(&[&|| gamma_slope(a, x), &|| {
            on(&GAMMA_DENSITY, &[a, x])?.unary(&RECIPROCAL)
        }])
    }),
    probe: GAMMA_PROBE
        .within(0.125..0.875)
        .against("scipy.special.gammaincinv"),
    ..GAMMA_FAMILY
};

/// Quantile of the gamma distribution, from above.
pub static GAMMAINCCINV: OpDef = OpDef {
    name: "gammainccinv",
    surface: &[Surface::Npx("gammainccinv")],
    params: &[Param::array("a"), Param::array("y")],
    doc: "Inverse of `gammaincc` with respect to its second argument, element by element: the x with Q(a, x) = `y`; see `gammaincinv`.",
    about: &[SHAPE, ("y", PROBABILITY)],
    example: "
        >>> npx.gammainccinv(2.0, np.array([0.0, 0.5, 1e-20]))
        array([        inf,  1.67834699, 49.96740379])
    ",
    cpu: Cpu::Map(&map::GAMMAINCCINV),
    grad: Grad::Rule(Keep::ALL, |g| {
        let (a, x) = (g.input(0), g.output(0));
        g.slopes(&[&|| gamma_slope(a, x), &|| {
            on(&GAMMA_DENSITY, &[a, x])?.unary(&RECIPROCAL)?.neg()
        }])
    }),
    probe: GAMMA_PROBE
        .within(0.125..0.875)
        .against("scipy.special.gammainccinv"),
    ..GAMMA_FAMILY
};

fn gamma_slope(a: &Array, x: &Array) -> Result<Array> {
    invoke1(
        &GAMMA_SLOPE,
        &[a, x],
        &[Value::Bool(false)].into_iter().collect(),
    )
}

/// The gradients of a derivative with respect to one of the first `num_shapes` inputs, which are shape parameters; `by_x` is the derivative with respect to
/// the last input.
fn of_slope(
    name: &'static str,
    g: &GradContext,
    num_shapes: usize,
    by_x: &dyn Fn() -> Result<Array>,
) -> Result<Grads> {
    if (0..num_shapes).any(|i| g.wants(i)) {
        let problem = "derivatives of distribution functions with respect to shape parameters are of first order only";
        return Err(Error::autograd(name, problem));
    }
    let mut grads: Grads = (0..num_shapes).map(|_| None).collect();
    grads.push(Some(g.fitted(g.dy(0).mul(&by_x()?)?, num_shapes)?));
    Ok(grads)
}

/// Derivative of the gamma distribution function with respect to the shape.
pub static GAMMAINC_SLOPE: OpDef = OpDef {
    name: "gammainc_slope",
    doc: "Derivative of `gammainc` with respect to `a`: the same series, fraction or integral, differentiated term by term.",
    cpu: Cpu::Map(&map::GAMMAINC_SLOPE),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (a, x) = (g.input(0), g.input(1));
        of_slope("gammainc_slope", g, 1, &|| {
            on(&GAMMA_DENSITY, &[a, x])?.mul(&x.log()?.sub(&a.unary(&DIGAMMA)?)?)
        })
    }),
    ..GAMMA_FAMILY
};

/// Density of the gamma distribution.
pub static GAMMA_DENSITY: OpDef = OpDef {
    name: "gamma_density",
    doc: "Derivative of `gammainc` with respect to `x`: x^(a - 1) exp(-x) / gamma(a), accurate for large `a`.\n\nSource: Loader, \"Fast and accurate \
          computation of binomial probabilities\", 2000.",
    cpu: Cpu::Map(&map::GAMMA_DENSITY),
    cost: Cost::PerKiB(20_000),
    grad: Grad::Rule(Keep::ALL, |g| {
        let (a, x, density) = (g.input(0), g.input(1), g.output(0));
        g.slopes(&[
            &|| density.mul(&x.log()?.sub(&a.unary(&DIGAMMA)?)?),
            &|| density.mul(&a.shift(-1.0)?.div(x)?.shift(-1.0)?),
        ])
    }),
    probe: GAMMA_PROBE
        .against("lambda a, x: np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))"),
    ..GAMMA_FAMILY
};

/// Derivative of gamma samples with respect to their shape parameter.
pub static GAMMA_SLOPE: OpDef = OpDef {
    name: "gamma_slope",
    params: &[
        Param::array("parameter"),
        Param::array("sample"),
        Param::bool("log", false),
    ],
    form: Form::Out,
    doc: "Derivative of gamma samples of scale 1 (with `log`, of their logarithms) with respect to the shape parameter, at a constant value of the \
          distribution function.\n\nSource: Figurnov, Mohamed and Mnih, \"Implicit reparameterization gradients\", 2018.",
    cpu: Cpu::Map(&map::GAMMA_SLOPE),
    grad: Grad::Rule(Keep::NOTHING, |_| {
        let problem = "gradients of gamma samples by the shape parameter are of first order only";
        Err(Error::autograd("gamma_slope", problem))
    }),
    probe: Probe::calls(&["f((2, 3)), f((2, 3))", "f((2, 3)), f((2, 3)), True"]).within(0.5..2.0),
    ..GAMMA_FAMILY
};

/// Incomplete beta function.
pub static BETAINC: OpDef = OpDef {
    name: "betainc",
    surface: &[Surface::Npx("betainc")],
    doc: "Regularised incomplete beta function, element by element: the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to `x`, over the integral from 0 to 1. \
          It is the probability of a beta sample to be at most `x`. Computed in float64; the relative error is about 1e-12 for float64 operands where `a` and \
          `b` are below 1e6, also in the tail near 0; `betaincc` is the other tail. NaN where a parameter is negative or `x` is not from 0 to \
          1.\n\n\
          Sources: DLMF 8.17.2, 8.17.7; DiDonato and Morris, 1992; Takahasi and Mori, 1974, for large parameters.",
    about: &[
        SHAPES[0],
        SHAPES[1],
        ("x", "Upper end of the integral, from 0 to 1."),
    ],
    example: "
        >>> npx.betainc(2.0, 3.0, np.array([0.0, 0.25, 1.0]))
        array([0.        , 0.26171875, 1.        ])
    ",
    cpu: Cpu::Map(&map::BETAINC),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let inputs = [g.input(0), g.input(1), g.input(2)];
        g.slopes(&[
            &|| on(&BETAINC_SLOPE_A, &inputs),
            &|| on(&BETAINC_SLOPE_B, &inputs),
            &|| on(&BETA_DENSITY, &inputs),
        ])
    }),
    probe: BETA_PROBE.against("scipy.special.betainc"),
    ..BETA_FAMILY
};

/// Parameters and arguments that are probabilities.
const BETA_PROBE: Probe = Probe::calls(&[
    "f((3, 4)), f((3, 4)), f((3, 4))",
    "f((3, 1)), f((4,)), f(())",
    "f((0,)), f((0,)), f((0,))",
    "f((3, 4)) * 4, 2.5, f((3, 4))",
])
.within(0.125..0.875)
.ulp(4);

/// Complement of the incomplete beta function.
pub static BETAINCC: OpDef = OpDef {
    name: "betaincc",
    surface: &[Surface::Npx("betaincc")],
    doc: "Complement of the regularised incomplete beta function, 1 - I(x; a, b) = I(1 - x; b, a), element by element, without cancellation; see `betainc`.",
    about: &[
        SHAPES[0],
        SHAPES[1],
        ("x", "Lower end of the integral, from 0 to 1."),
    ],
    example: "
        >>> npx.betaincc(2.0, 3.0, np.array([0.0, 0.25, 1.0]))
        array([1.        , 0.73828125, 0.        ])
    ",
    cpu: Cpu::Map(&map::BETAINCC),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let inputs = [g.input(0), g.input(1), g.input(2)];
        g.slopes(&[
            &|| on(&BETAINC_SLOPE_A, &inputs)?.neg(),
            &|| on(&BETAINC_SLOPE_B, &inputs)?.neg(),
            &|| on(&BETA_DENSITY, &inputs)?.neg(),
        ])
    }),
    probe: BETA_PROBE.against("scipy.special.betaincc"),
    ..BETA_FAMILY
};

/// Quantile of the beta distribution.
pub static BETAINCINV: OpDef = OpDef {
    name: "betaincinv",
    surface: &[Surface::Npx("betaincinv")],
    params: &[Param::array("a"), Param::array("b"), Param::array("y")],
    doc: "Inverse of `betainc` with respect to its third argument, element by element: the x where the function is `y`, by Newton's method on the logarithm \
          of the smaller tail. NaN where `y` is no probability.",
    about: &[SHAPES[0], SHAPES[1], ("y", PROBABILITY)],
    example: "
        >>> npx.betaincinv(2.0, 3.0, np.array([0.0, 0.5, 1.0]))
        array([0.        , 0.38572757, 1.        ])
    ",
    cpu: Cpu::Map(&map::BETAINCINV),
    grad: Grad::Rule(Keep::ALL, |g| {
        quantile_slopes(g, &|| {
            on(&BETA_DENSITY, &[g.input(0), g.input(1), g.output(0)])
        })
    }),
    probe: BETA_PROBE.against("scipy.special.betaincinv"),
    ..BETA_FAMILY
};

/// Quantile of the beta distribution, from above.
pub static BETAINCCINV: OpDef = OpDef {
    name: "betainccinv",
    surface: &[Surface::Npx("betainccinv")],
    params: &[Param::array("a"), Param::array("b"), Param::array("y")],
    doc: "Inverse of `betaincc` with respect to its third argument, element by element; see `betaincinv`.",
    about: &[SHAPES[0], SHAPES[1], ("y", PROBABILITY)],
    example: "
        >>> npx.betainccinv(2.0, 3.0, np.array([0.0, 0.5, 1.0]))
        array([1.        , 0.38572757, 0.        ])
    ",
    cpu: Cpu::Map(&map::BETAINCCINV),
    grad: Grad::Rule(Keep::ALL, |g| {
        quantile_slopes(g, &|| {
            on(&BETA_DENSITY, &[g.input(0), g.input(1), g.output(0)])?.neg()
        })
    }),
    probe: BETA_PROBE.against("scipy.special.betainccinv"),
    ..BETA_FAMILY
};

/// Gradients of a quantile of the beta distribution; `by_x` is the derivative of the inverted function. Quantiles 0 and 1 do not depend on the shapes.
fn quantile_slopes(g: &GradContext, by_x: &dyn Fn() -> Result<Array>) -> Result<Grads> {
    let inputs = [g.input(0), g.input(1), g.output(0)];
    let by_shape = |slope: &'static OpDef| {
        let (x, zero) = (inputs[2], Array::weak_scalar(Scalar::F64(0.0))?);
        let is_end = x.sub(&x.square()?)?.binary(&EQUAL, &zero)?;
        let quotient = on(slope, &inputs)?
            .neg()?
            .div(&on(&BETA_DENSITY, &inputs)?)?;
        choose(&is_end, &zero, &quotient)
    };
    g.slopes(&[
        &|| by_shape(&BETAINC_SLOPE_A),
        &|| by_shape(&BETAINC_SLOPE_B),
        &|| by_x()?.unary(&RECIPROCAL),
    ])
}

/// The logarithm of x or 1 - x, minus its expectation under the beta distribution: digamma(`own`) - digamma(a + b).
fn log_excess(log: &Array, own: &Array, g: &GradContext) -> Result<Array> {
    let total = g.input(0).add(g.input(1))?.unary(&DIGAMMA)?;
    log.sub(&own.unary(&DIGAMMA)?)?.add(&total)
}

/// ln(1 - x).
fn log_rest(x: &Array) -> Result<Array> {
    x.neg()?.unary(&LOG1P)
}

/// Derivative of the beta distribution function with respect to the first shape.
pub static BETAINC_SLOPE_A: OpDef = OpDef {
    name: "betainc_slope_a",
    doc: "Derivative of `betainc` with respect to `a`: the same fraction or integral, differentiated term by term.",
    cpu: Cpu::Map(&map::BETAINC_SLOPE_A),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let inputs = [g.input(0), g.input(1), g.input(2)];
        of_slope("betainc_slope_a", g, 2, &|| {
            on(&BETA_DENSITY, &inputs)?.mul(&log_excess(&inputs[2].log()?, inputs[0], g)?)
        })
    }),
    ..BETA_FAMILY
};

/// Derivative of the beta distribution function with respect to the second shape.
pub static BETAINC_SLOPE_B: OpDef = OpDef {
    name: "betainc_slope_b",
    doc: "Derivative of `betainc` with respect to `b`: the same fraction or integral, differentiated term by term.",
    cpu: Cpu::Map(&map::BETAINC_SLOPE_B),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let inputs = [g.input(0), g.input(1), g.input(2)];
        of_slope("betainc_slope_b", g, 2, &|| {
            on(&BETA_DENSITY, &inputs)?.mul(&log_excess(&log_rest(inputs[2])?, inputs[1], g)?)
        })
    }),
    ..BETA_FAMILY
};

/// Density of the beta distribution.
pub static BETA_DENSITY: OpDef = OpDef {
    name: "beta_density",
    doc: "Derivative of `betainc` with respect to `x`: x^(a - 1) (1 - x)^(b - 1) over the beta function, accurate for large parameters.\n\nSource: Loader, \
          \"Fast and accurate computation of binomial probabilities\", 2000.",
    cpu: Cpu::Map(&map::BETA_DENSITY),
    cost: Cost::PerKiB(30_000),
    grad: Grad::Rule(Keep::ALL, |g| {
        let (a, b, x, density) = (g.input(0), g.input(1), g.input(2), g.output(0));
        g.slopes(&[
            &|| density.mul(&log_excess(&x.log()?, a, g)?),
            &|| density.mul(&log_excess(&log_rest(x)?, b, g)?),
            &|| {
                let above = b.shift(-1.0)?.div(&x.neg()?.shift(1.0)?)?;
                density.mul(&a.shift(-1.0)?.div(x)?.sub(&above)?)
            },
        ])
    }),
    probe: BETA_PROBE.against(
        "lambda a, b, x: np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - scipy.special.betaln(a, b))",
    ),
    ..BETA_FAMILY
};
