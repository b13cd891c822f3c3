//! Distributions that are functions of uniform, normal, exponential, gamma and Poisson numbers.

use mxnet_tensor::default_int;

use crate::args::{Default, Param};
use crate::creation::dims;
use crate::cx::CompositeCx;
use crate::elementwise::comparison::LESS;
use crate::elementwise::explog::{EXP, EXPM1, LOG1P, POWER, SQRT};
use crate::elementwise::rounding::CEIL;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::opdef::{Cpu, Form, OpDef, Surface};
use crate::random::continuous::{DEVICE, DISTRIBUTION, DTYPE, SIZE};
use crate::random::draw::rejecting;
use crate::random::parameter::{Given, Samples, asked, check, given};
use crate::{Array, Outputs};

/// Exponential of a normal number.
pub static LOGNORMAL: OpDef = OpDef {
    name: "lognormal",
    surface: &[Surface::NpRandom("lognormal")],
    params: &[
        Param::array("mean").or(Default::Float(0.0)),
        Param::array("sigma").or(Default::Float(1.0)),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Samples whose logarithm is normal of mean `mean` and standard deviation `sigma`, numbers or arrays that broadcast. Differentiable with respect to both.",
    cpu: Cpu::Composite(|cx| {
        let (mean, sigma) = (given(cx, 0, 0.0)?, given(cx, 1, 1.0)?);
        check(cx, "sigma", &sigma, "at least 0", |s| s >= 0.0)?;
        let samples = Samples::of(cx)?;
        let normal = samples.shifted(&samples.draw("normal", 0.0, 1.0)?, &mean, &sigma)?;
        cx.done(normal.unary(&EXP)?)
    }),
    ..DISTRIBUTION
};

/// Length of a normal vector in the plane.
pub static RAYLEIGH: OpDef = OpDef {
    name: "rayleigh",
    surface: &[Surface::NpRandom("rayleigh")],
    params: &[
        Param::array("scale").or(Default::Float(1.0)),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Samples of the Rayleigh distribution of mode `scale`, a number or an array. Differentiable with respect to it.",
    cpu: Cpu::Composite(|cx| {
        let scale = given(cx, 0, 1.0)?;
        check(cx, "scale", &scale, "at least 0", |s| s >= 0.0)?;
        let samples = Samples::of(cx)?;
        let length = samples.draw("exponential", 0.0, 2.0)?.unary(&SQRT)?;
        cx.done(samples.shifted(&length, &Given::Number(0.0), &scale)?)
    }),
    ..DISTRIBUTION
};

/// What distributions of one shape parameter above 0 have in common.
const SHAPED: OpDef = OpDef {
    params: &[Param::array("a"), SIZE, DTYPE, DEVICE, Param::out()],
    ..DISTRIBUTION
};

/// The parameter `a`, and exponential samples.
fn shaped(cx: &CompositeCx) -> Result<(Samples, Given, Array)> {
    let a = given(cx, 0, 1.0)?;
    check(cx, "a", &a, "above 0", |a| a > 0.0)?;
    let samples = Samples::of(cx)?;
    let exponential = samples.draw("exponential", 0.0, 1.0)?;
    Ok((samples, a, exponential))
}

/// Power of an exponential number.
pub static WEIBULL: OpDef = OpDef {
    name: "weibull",
    surface: &[Surface::NpRandom("weibull")],
    doc: "Samples of the Weibull distribution of shape parameter `a`, a number or an array, and scale 1. Differentiable with respect to it.",
    cpu: Cpu::Composite(|cx| {
        let (samples, a, e) = shaped(cx)?;
        cx.done(
            e.binary(&POWER, &a.array()?.reciprocal()?)?
                .astype(samples.dtype)?,
        )
    }),
    ..SHAPED
};

/// Lomax.
pub static PARETO: OpDef = OpDef {
    name: "pareto",
    surface: &[Surface::NpRandom("pareto")],
    doc: "Samples of the Pareto distribution of the second kind (Lomax) of shape parameter `a`, a number or an array. Differentiable with respect to it.",
    cpu: Cpu::Composite(|cx| {
        let (samples, a, e) = shaped(cx)?;
        cx.done(e.div(&a.array()?)?.unary(&EXPM1)?.astype(samples.dtype)?)
    }),
    ..SHAPED
};

/// Power of a uniform number.
pub static POWER_DISTRIBUTION: OpDef = OpDef {
    name: "random_power",
    surface: &[Surface::NpRandom("power")],
    doc: "Samples on [0, 1] of density a x^(a - 1), `a` a number or an array. Differentiable with respect to it.",
    cpu: Cpu::Composite(|cx| {
        let (samples, a, e) = shaped(cx)?;
        // A uniform number is exp(-e).
        cx.done(
            e.neg()?
                .div(&a.array()?)?
                .unary(&EXP)?
                .astype(samples.dtype)?,
        )
    }),
    ..SHAPED
};

/// Normal number over the root of a chi-square number.
pub static STANDARD_T: OpDef = OpDef {
    name: "standard_t",
    surface: &[Surface::NpRandom("standard_t")],
    params: &[Param::array("df"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "Samples of Student's t distribution of `df` degrees of freedom, a number or an array.",
    cpu: Cpu::Composite(|cx| {
        let df = given(cx, 0, 1.0)?;
        check(cx, "df", &df, "above 0", |d| d > 0.0)?;
        let samples = Samples::of(cx)?;
        let half = df.array()?.scale(0.5)?;
        let gamma = rejecting(
            "gamma",
            &half,
            &samples.shape,
            samples.dtype,
            samples.device,
        )?;
        let root = gamma.div(&half)?.unary(&SQRT)?;
        cx.done(
            samples
                .draw("normal", 0.0, 1.0)?
                .div(&root)?
                .astype(samples.dtype)?,
        )
    }),
    ..DISTRIBUTION
};

/// Inverse of the triangle's distribution function.
pub static TRIANGULAR: OpDef = OpDef {
    name: "triangular",
    surface: &[Surface::NpRandom("triangular")],
    params: &[
        Param::array("left"),
        Param::array("mode"),
        Param::array("right"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Samples of the triangular distribution from `left` over its peak at `mode` to `right`, numbers or arrays that broadcast.",
    cpu: Cpu::Composite(triangular),
    ..DISTRIBUTION
};

fn triangular(cx: &CompositeCx) -> Result<Outputs> {
    let (left, mode, right) = (given(cx, 0, 0.0)?, given(cx, 1, 0.5)?, given(cx, 2, 1.0)?);
    if let (Some(a), Some(b), Some(c)) = (left.number(), mode.number(), right.number())
        && !(a <= b && b <= c && a < c)
    {
        return Err(cx.value_error(format!(
            "`left` <= `mode` <= `right` must hold, found {a}, {b}, {c}"
        )));
    }
    let samples = Samples::of(cx)?;
    // Arrays, so that Python numbers among them take the samples' dtype and not float64.
    let of = |x: &Given| x.array()?.astype(samples.dtype);
    let (left, mode, right) = (of(&left)?, of(&mode)?, of(&right)?);
    let width = right.sub(&left)?;
    let u = samples.draw("uniform", 0.0, 1.0)?;
    let rising = left.add(&u.mul(&width)?.mul(&mode.sub(&left)?)?.unary(&SQRT)?)?;
    let rest = u.neg()?.shift(1.0)?;
    let falling = right.sub(&rest.mul(&width)?.mul(&right.sub(&mode)?)?.unary(&SQRT)?)?;
    let before = u.mul(&width)?.binary(&LESS, &mode.sub(&left)?)?;
    cx.done(choose(&before, &rising, &falling)?)
}

/// Number of tries.
pub static GEOMETRIC: OpDef = OpDef {
    name: "geometric",
    surface: &[Surface::NpRandom("geometric")],
    params: &[Param::array("p"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "How many tries the first success takes when each succeeds with probability `p`, a number or an array. `dtype` is the default integer unless given.\n\n\
          Computed in float64: exact up to 2^53 tries.",
    cpu: Cpu::Composite(|cx| {
        let p = given(cx, 0, 0.5)?;
        check(cx, "p", &p, "in (0, 1]", |p| p > 0.0 && p <= 1.0)?;
        let dtype = asked(cx).unwrap_or_else(default_int);
        let samples = Samples::with_dtype(cx, mxnet_tensor::DType::F64)?;
        let p = p.array()?.astype(samples.dtype)?;
        let e = samples.draw("exponential", 0.0, 1.0)?;
        let tries = e.div(&p.neg()?.unary(&LOG1P)?.neg()?)?.unary(&CEIL)?;
        let one = Array::scalar(mxnet_tensor::Scalar::F64(1.0), samples.dtype)?;
        cx.done(tries.maximum(&one)?.astype(dtype)?)
    }),
    ..DISTRIBUTION
};

/// Poisson number of a gamma mean.
pub static NEGATIVE_BINOMIAL: OpDef = OpDef {
    name: "negative_binomial",
    surface: &[Surface::NpRandom("negative_binomial")],
    params: &[
        Param::array("n"),
        Param::array("p"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "How many failures come before `n` successes when each try succeeds with probability `p`, numbers or arrays that broadcast, as a Poisson number whose mean is a \
          gamma number. `dtype` is the default integer unless given.",
    cpu: Cpu::Composite(|cx| {
        let (n, p) = (given(cx, 0, 1.0)?, given(cx, 1, 0.5)?);
        check(cx, "n", &n, "above 0", |n| n > 0.0)?;
        check(cx, "p", &p, "in (0, 1]", |p| p > 0.0 && p <= 1.0)?;
        let dtype = asked(cx).unwrap_or_else(default_int);
        let samples = Samples::with_dtype(cx, mxnet_tensor::DType::F64)?;
        let p = p.array()?.astype(samples.dtype)?;
        let gamma = rejecting(
            "gamma",
            &n.array()?,
            &samples.shape,
            samples.dtype,
            samples.device,
        )?;
        let mean = gamma.mul(&p.neg()?.shift(1.0)?.div(&p)?)?;
        cx.done(rejecting(
            "poisson",
            &mean,
            &samples.shape,
            dtype,
            samples.device,
        )?)
    }),
    ..DISTRIBUTION
};

/// Chi-square with a Poisson number of further degrees of freedom.
pub static NONCENTRAL_CHISQUARE: OpDef = OpDef {
    name: "noncentral_chisquare",
    surface: &[Surface::NpRandom("noncentral_chisquare")],
    params: &[
        Param::array("df"),
        Param::array("nonc"),
        SIZE,
        DTYPE,
        DEVICE,
    ],
    doc: "Samples of the chi-square distribution of `df` degrees of freedom and non-centrality `nonc`, numbers or arrays that broadcast.",
    cpu: Cpu::Composite(|cx| {
        let samples = Samples::of(cx)?;
        cx.done(noncentral(cx, &samples, "df", 1)?.astype(samples.dtype)?)
    }),
    form: Form::Plain,
    ..DISTRIBUTION
};

/// Quotient of a non-central and a central chi-square number.
pub static NONCENTRAL_F: OpDef = OpDef {
    name: "noncentral_f",
    surface: &[Surface::NpRandom("noncentral_f")],
    params: &[
        Param::array("dfnum"),
        Param::array("dfden"),
        Param::array("nonc"),
        SIZE,
        DTYPE,
        DEVICE,
    ],
    doc: "Samples of the F distribution of `dfnum` and `dfden` degrees of freedom and non-centrality `nonc`, numbers or arrays that broadcast.",
    cpu: Cpu::Composite(|cx| {
        let samples = Samples::of(cx)?;
        let (m, n) = (given(cx, 0, 1.0)?, given(cx, 1, 1.0)?);
        check(cx, "dfden", &n, "above 0", |d| d > 0.0)?;
        let above = noncentral(cx, &samples, "dfnum", 2)?.div(&m.array()?)?;
        let half = n.array()?.scale(0.5)?;
        let below = rejecting(
            "gamma",
            &half,
            &samples.shape,
            mxnet_tensor::DType::F64,
            samples.device,
        )?;
        cx.done(above.mul(&half)?.div(&below)?.astype(samples.dtype)?)
    }),
    form: Form::Plain,
    ..DISTRIBUTION
};

/// Non-central chi-square samples in float64; parameter 0 are the degrees of freedom, parameter `at` the non-centrality.
fn noncentral(cx: &CompositeCx, samples: &Samples, name: &str, at: usize) -> Result<Array> {
    let (df, nonc) = (given(cx, 0, 1.0)?, given(cx, at, 0.0)?);
    check(cx, name, &df, "above 0", |d| d > 0.0)?;
    check(cx, "nonc", &nonc, "at least 0", |d| d >= 0.0)?;
    let wide = mxnet_tensor::DType::F64;
    let pairs = rejecting(
        "poisson",
        &nonc.array()?.scale(0.5)?,
        &samples.shape,
        wide,
        samples.device,
    )?;
    let shape = pairs.add(&df.array()?.scale(0.5)?)?;
    rejecting("gamma", &shape, &samples.shape, wide, samples.device)?.scale(2.0)
}

/// First passage of a Brownian motion with drift.
pub static WALD: OpDef = OpDef {
    name: "wald",
    surface: &[Surface::NpRandom("wald")],
    params: &[
        Param::array("mean"),
        Param::array("scale"),
        SIZE,
        DTYPE,
        DEVICE,
    ],
    doc: "Samples of the inverse Gaussian distribution of mean `mean` and scale `scale`, numbers or arrays that broadcast.\n\n\
          Source: Michael, Schucany and Haas, 1976, computed in float64.",
    cpu: Cpu::Composite(|cx| {
        let (mean, scale) = (given(cx, 0, 1.0)?, given(cx, 1, 1.0)?);
        check(cx, "mean", &mean, "above 0", |x| x > 0.0)?;
        check(cx, "scale", &scale, "above 0", |x| x > 0.0)?;
        let dtype = Samples::of(cx)?.dtype;
        let samples = Samples::with_dtype(cx, mxnet_tensor::DType::F64)?;
        let mean = mean.array()?.astype(samples.dtype)?;
        let scale = scale.array()?.astype(samples.dtype)?;
        let y = samples.draw("normal", 0.0, 1.0)?.square()?.mul(&mean)?;
        let root = y.mul(&scale)?.scale(4.0)?.add(&y.square()?)?.unary(&SQRT)?;
        let slope = mean.div(&scale)?.scale(0.5)?;
        // The smaller root of a quadratic; the other is mean^2 / x.
        let x = mean.add(&slope.mul(&y.sub(&root)?)?)?;
        let share = mean.div(&mean.add(&x)?)?;
        let first = samples.draw("uniform", 0.0, 1.0)?.binary(&LESS, &share)?;
        cx.done(choose(&first, &x, &mean.square()?.div(&x)?)?.astype(dtype)?)
    }),
    form: Form::Plain,
    ..DISTRIBUTION
};

/// Shares of gamma numbers in their sum.
pub static DIRICHLET: OpDef = OpDef {
    name: "dirichlet",
    surface: &[Surface::NpRandom("dirichlet")],
    params: &[Param::array("alpha"), SIZE, DTYPE],
    doc: "Samples of the Dirichlet distribution with the k parameters `alpha`, shape (k,): k shares that sum to 1. The result has shape `size` + (k,).",
    cpu: Cpu::Composite(|cx| {
        let alpha = cx.input(0);
        let &[k] = alpha.shape() else {
            return Err(cx.shape_error("`alpha` must have one axis"));
        };
        let dtype = asked(cx).unwrap_or(match alpha.dtype().is_float() {
            true => alpha.dtype(),
            false => mxnet_tensor::default_float(),
        });
        if !dtype.is_float() {
            return Err(cx.dtype_error(format!("samples are floats, not {}", dtype.name())));
        }
        let mut shape = dims(cx.op.name, cx.ints("size"))?;
        shape.push(k);
        let gamma = rejecting("gamma", alpha, &shape, dtype, alpha.device())?;
        cx.done(gamma.div(&gamma.sum(Some(&[-1]), true)?)?)
    }),
    form: Form::Plain,
    ..DISTRIBUTION
};
