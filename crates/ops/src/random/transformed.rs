//! Distributions that are functions of uniform, normal, exponential, gamma and Poisson numbers.

use mxnet_tensor::{DType, default_int};

use crate::args::{Default, Param};
use crate::creation::dims;
use crate::elementwise::arithmetic::{
    ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, RECIPROCAL, SQUARE,
};
use crate::elementwise::comparison::LESS;
use crate::elementwise::explog::{EXP, EXPM1, LOG1P, POWER, SQRT};
use crate::elementwise::rounding::{CEIL, RINT};
use crate::error::{Error, Result};
use crate::nn::softmax;
use crate::opdef::{Cpu, Form, OpDef, Short, Surface};
use crate::random::continuous::{DEVICE, DISTRIBUTION, DTYPE, SIZE};
use crate::random::few::{Few, Handful};
use crate::random::parameter::{Drawing, Given, Samples, Sampling, Values};

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
    about: &[
        ("mean", "Mean of the logarithm."),
        (
            "sigma",
            "Standard deviation of the logarithm, not negative.",
        ),
    ],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.log(np.random.lognormal(1.0, 0.5, size=100000)).mean()), 1)
        1.0
    ",
    cpu: Cpu::Composite(|cx| cx.done(lognormal(cx)?)),
    short: Short::Samples(|few| lognormal(few)),
    ..DISTRIBUTION
};

fn lognormal<C: Drawing>(cx: &C) -> Result<C::X> {
    let mean = cx.given(0, 0.0)?;
    let sigma = cx.checked(1, 1.0, "sigma", "at least 0")?;
    let samples = cx.samples()?;
    let normal = samples.draw("normal", 0.0, 1.0)?;
    samples.shifted(normal, &mean, &sigma)?.unary(&EXP)
}

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
    about: &[("scale", "Mode, not negative.")],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.rayleigh(2.0, size=100000).mean()), 1)  # 2 * sqrt(pi / 2)
        2.5
    ",
    cpu: Cpu::Composite(|cx| cx.done(rayleigh(cx)?)),
    short: Short::Samples(|few| rayleigh(few)),
    ..DISTRIBUTION
};

fn rayleigh<C: Drawing>(cx: &C) -> Result<C::X> {
    let scale = cx.checked(0, 1.0, "scale", "at least 0")?;
    let samples = cx.samples()?;
    let length = samples.draw("exponential", 0.0, 2.0)?.unary(&SQRT)?;
    samples.shifted(length, &Given::Number(0.0), &scale)
}

/// What distributions of one shape parameter above 0 have in common.
const SHAPED: OpDef = OpDef {
    about: &[("a", "Shape parameter, above 0.")],
    params: &[Param::array("a"), SIZE, DTYPE, DEVICE, Param::out()],
    ..DISTRIBUTION
};

/// What samples with a shape parameter are made of: how they are drawn, the parameter, exponential numbers.
type Shaped<C> = (
    <C as Drawing>::Samples,
    Given<<C as Drawing>::X>,
    <C as Drawing>::X,
);

/// The parameter `a`, and exponential samples.
fn shaped<C: Drawing>(cx: &C) -> Result<Shaped<C>> {
    let a = cx.checked(0, 1.0, "a", "above 0")?;
    let samples = cx.samples()?;
    let exponential = samples.draw("exponential", 0.0, 1.0)?;
    Ok((samples, a, exponential))
}

/// Power of an exponential number.
pub static WEIBULL: OpDef = OpDef {
    name: "weibull",
    surface: &[Surface::NpRandom("weibull")],
    doc: "Samples of the Weibull distribution of shape parameter `a`, a number or an array, and scale 1. Differentiable with respect to it.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.weibull(1.0, size=100000).mean()), 1)
        1.0
    ",
    cpu: Cpu::Composite(|cx| cx.done(weibull(cx)?)),
    short: Short::Samples(|few| weibull(few)),
    ..SHAPED
};

fn weibull<C: Drawing>(cx: &C) -> Result<C::X> {
    let (samples, a, e) = shaped(cx)?;
    let exponent = samples.alone(&a)?.unary(&RECIPROCAL)?;
    e.binary(&POWER, &exponent)?.astype(samples.dtype())
}

/// Lomax.
pub static PARETO: OpDef = OpDef {
    name: "pareto",
    surface: &[Surface::NpRandom("pareto")],
    doc: "Samples of the Pareto distribution of the second kind (Lomax) of shape parameter `a`, a number or an array. Differentiable with respect to it.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.pareto(3.0, size=100000).mean()), 1)  # 1 / (3 - 1)
        0.5
    ",
    cpu: Cpu::Composite(|cx| cx.done(pareto(cx)?)),
    short: Short::Samples(|few| pareto(few)),
    ..SHAPED
};

fn pareto<C: Drawing>(cx: &C) -> Result<C::X> {
    let (samples, a, e) = shaped(cx)?;
    e.with(&DIVIDE, &a)?.unary(&EXPM1)?.astype(samples.dtype())
}

/// Power of a uniform number.
pub static POWER_DISTRIBUTION: OpDef = OpDef {
    name: "random_power",
    surface: &[Surface::NpRandom("power")],
    doc: "Samples on [0, 1] of density a x^(a - 1), `a` a number or an array. Differentiable with respect to it.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.power(3.0, size=100000).mean()), 2)  # 3 / (3 + 1)
        0.75
    ",
    cpu: Cpu::Composite(|cx| cx.done(power(cx)?)),
    short: Short::Samples(|few| power(few)),
    ..SHAPED
};

fn power<C: Drawing>(cx: &C) -> Result<C::X> {
    let (samples, a, e) = shaped(cx)?;
    // A uniform number is exp(-e).
    let exponent = e.unary(&NEGATIVE)?.with(&DIVIDE, &a)?;
    exponent.unary(&EXP)?.astype(samples.dtype())
}

/// Normal number over the root of a chi-square number.
pub static STANDARD_T: OpDef = OpDef {
    name: "standard_t",
    surface: &[Surface::NpRandom("standard_t")],
    params: &[Param::array("df"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "Samples of Student's t distribution of `df` degrees of freedom, a number or an array. Differentiable with respect to it.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.standard_t(6.0, size=100000).var()), 1)  # 6 / (6 - 2)
        1.5
    ",
    cpu: Cpu::Composite(|cx| cx.done(standard_t(cx)?)),
    short: Short::Samples(|few| standard_t(few)),
    ..DISTRIBUTION
};

fn standard_t<C: Drawing>(cx: &C) -> Result<C::X> {
    let half = cx.checked(0, 1.0, "df", "above 0")?.half()?;
    let samples = cx.samples()?;
    let mean_square = samples.gamma(&half, false)?.with(&DIVIDE, &half)?;
    let root = mean_square.unary(&SQRT)?;
    let normal = samples.draw("normal", 0.0, 1.0)?;
    normal.div(&root)?.astype(samples.dtype())
}

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
    about: &[
        ("left", "Lower bound."),
        ("mode", "Where the peak is, between the bounds."),
        ("right", "Upper bound."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.triangular(0.0, 1.0, 5.0, size=100000).mean()), 1)
        2.0
    ",
    cpu: Cpu::Composite(|cx| cx.done(triangular(cx)?)),
    short: Short::Samples(|few| triangular(few)),
    ..DISTRIBUTION
};

fn triangular<C: Drawing>(cx: &C) -> Result<C::X> {
    let (left, mode, right) = (cx.given(0, 0.0)?, cx.given(1, 0.5)?, cx.given(2, 1.0)?);
    let samples = cx.samples()?;
    if let (Some(a), Some(b), Some(c)) = (left.number(), mode.number(), right.number()) {
        if !(a <= b && b <= c && a < c) {
            let problem = format!("`left` <= `mode` <= `right` must hold, found {a}, {b}, {c}");
            return Err(Error::value(cx.function().name, problem));
        }
        return samples.filled("triangular", [a, c, b]);
    }
    // Python numbers among arrays take the samples' dtype and not float64.
    let of = |x: &Given<C::X>| samples.operand(x);
    let (left, mode, right) = (of(&left)?, of(&mode)?, of(&right)?);
    let (width, before) = (right.sub(&left)?, mode.sub(&left)?);
    let u = samples.draw("uniform", 0.0, 1.0)?;
    let rising = left.add(&u.mul(&width)?.mul(&before)?.unary(&SQRT)?)?;
    let rest = u.unary(&NEGATIVE)?.with_number(&ADD, 1.0)?;
    let behind = right.sub(&mode)?;
    let falling = right.sub(&rest.mul(&width)?.mul(&behind)?.unary(&SQRT)?)?;
    let rises = u.mul(&width)?.binary(&LESS, &before)?;
    C::X::chosen(&rises, &rising, &falling)
}

/// Number of tries.
pub static GEOMETRIC: OpDef = OpDef {
    name: "geometric",
    surface: &[Surface::NpRandom("geometric")],
    params: &[Param::array("p"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "How many tries the first success takes when each succeeds with probability `p`, a number or an array. `dtype` is the default integer unless given.\n\n\
          Computed in float64: exact up to 2^53 tries.",
    about: &[("p", "Probability of a success, in (0, 1].")],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.geometric(0.25, size=100000).mean()), 1)
        4.0
    ",
    cpu: Cpu::Composite(|cx| cx.done(geometric(cx)?)),
    short: Short::Samples(|few| geometric(few)),
    ..DISTRIBUTION
};

fn geometric<C: Drawing>(cx: &C) -> Result<C::X> {
    let p = cx.checked(0, 0.5, "p", "in (0, 1]")?;
    let dtype = cx.asked().unwrap_or_else(default_int);
    let dtype = cx.samples_as(dtype)?.dtype();
    let samples = cx.samples_as(DType::F64)?;
    let failure = samples.operand(&p)?.unary(&NEGATIVE)?.unary(&LOG1P)?;
    let e = samples.draw("exponential", 0.0, 1.0)?;
    let tries = e.div(&failure.unary(&NEGATIVE)?)?.unary(&CEIL)?;
    let tries = tries.with_number(&MAXIMUM, 1.0)?;
    // What the dtype cannot count is its largest number that float64 has.
    let most = match dtype {
        DType::I64 => 9_223_372_036_854_774_784.0,
        DType::U64 => 18_446_744_073_709_549_568.0,
        dtype if dtype.is_integer() => {
            let bits = 8 * dtype.size() as i32 - i32::from(dtype.is_signed());
            2_f64.powi(bits) - 1.0
        }
        _ => return tries.astype(dtype),
    };
    tries.with_number(&MINIMUM, most)?.astype(dtype)
}

/// Chi-square, one of whose normal numbers is off the centre.
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
    doc: "Samples of the chi-square distribution of `df` degrees of freedom and non-centrality `nonc`, numbers or arrays that broadcast. Differentiable with respect to `df`, and \
          to `nonc` where `df` is above 1.\n\nSource: Johnson, Kotz and Balakrishnan, \"Continuous univariate distributions\" 2, 1995, chapter 29: a square of a normal number of mean sqrt(nonc) \
          and `df` - 1 further degrees of freedom; where `df` is at most 1, 2 k further degrees with k a Poisson number of mean `nonc` / 2. Computed in float64.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.noncentral_chisquare(3.0, 2.0, size=100000).mean()), 1)
        5.0
    ",
    cpu: Cpu::Composite(|cx| cx.done(noncentral_chisquare(cx)?)),
    short: Short::Samples(|few| noncentral_chisquare(few)),
    form: Form::Plain,
    ..DISTRIBUTION
};

fn noncentral_chisquare<C: Drawing>(cx: &C) -> Result<C::X> {
    let dtype = cx.samples()?.dtype();
    noncentral(cx, "df", 1)?.astype(dtype)
}

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
    doc: "Samples of the F distribution of `dfnum` and `dfden` degrees of freedom and non-centrality `nonc`, numbers or arrays that broadcast. Differentiable with respect to the \
          degrees of freedom, and to `nonc` where `dfnum` is above 1. Computed in float64.",
    example: "
        >>> np.random.seed(1)
        >>> np.random.noncentral_f(3.0, 20.0, 2.0, size=4).shape
        (4,)
    ",
    cpu: Cpu::Composite(|cx| cx.done(noncentral_f(cx)?)),
    short: Short::Samples(|few| noncentral_f(few)),
    form: Form::Plain,
    ..DISTRIBUTION
};

fn noncentral_f<C: Drawing>(cx: &C) -> Result<C::X> {
    let dtype = cx.samples()?.dtype();
    let half = cx.checked(1, 1.0, "dfden", "above 0")?.half()?;
    let above = noncentral(cx, "dfnum", 2)?.with(&DIVIDE, &cx.given(0, 1.0)?)?;
    let below = cx.samples_as(DType::F64)?.gamma(&half, false)?;
    above.with(&MULTIPLY, &half)?.div(&below)?.astype(dtype)
}

/// Non-central chi-square samples in float64; parameter 0 are the degrees of freedom, parameter `at` the non-centrality.
fn noncentral<C: Drawing>(cx: &C, name: &'static str, at: usize) -> Result<C::X> {
    let df = cx.checked(0, 1.0, name, "above 0")?;
    let nonc = cx.checked(at, 0.0, "nonc", "at least 0")?;
    let samples = cx.samples_as(DType::F64)?;
    let shifted = |rest: &Given<C::X>| {
        let normal = samples.draw("normal", 0.0, 1.0)?;
        let square = normal
            .add(&samples.alone(&nonc)?.unary(&SQRT)?)?
            .unary(&SQUARE)?;
        square.add(&samples.gamma(&rest.half()?, false)?.scale(2.0)?)
    };
    let mixed = |df: &Given<C::X>| {
        let pairs = samples.counts("poisson", &[&nonc.half()?])?;
        let shape = pairs.with(&ADD, &df.half()?)?;
        samples.gamma(&Given::Elements(shape), false)?.scale(2.0)
    };
    match &df {
        Given::Number(k) if *k > 1.0 => shifted(&Given::Number(k - 1.0)),
        Given::Number(_) => mixed(&df),
        Given::Elements(k) => {
            let k = k.astype(DType::F64)?;
            let rest = k.with_number(&ADD, -1.0)?.with_number(&MAXIMUM, 0.0)?;
            let is_many = samples.operand(&Given::Number(0.0))?.binary(&LESS, &rest)?;
            C::X::chosen(&is_many, &shifted(&Given::Elements(rest))?, &mixed(&df)?)
        }
    }
}

/// Angles.
pub static VONMISES: OpDef = OpDef {
    name: "vonmises",
    surface: &[Surface::NpRandom("vonmises")],
    params: &[
        Param::array("mu"),
        Param::array("kappa"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Angles in [-pi, pi] of the von Mises distribution around `mu` with concentration `kappa`, numbers or arrays that broadcast. Differentiable with respect to `mu`.\n\n\
          Source: Best and Fisher, 1979.",
    about: &[
        ("mu", "The angle around which they lie."),
        ("kappa", "Concentration, not negative."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.vonmises(1.0, 10.0, size=100000).mean()), 1)
        1.0
    ",
    cpu: Cpu::Composite(|cx| cx.done(vonmises(cx)?)),
    short: Short::Samples(|few| vonmises(few)),
    ..DISTRIBUTION
};

fn vonmises<C: Drawing>(cx: &C) -> Result<C::X> {
    let mu = cx.given(0, 0.0)?;
    let kappa = cx.checked(1, 1.0, "kappa", "at least 0")?;
    let samples = cx.samples()?;
    let angle = samples.shifted(samples.angles(&kappa)?, &mu, &Given::Number(1.0))?;
    if mu.number() == Some(0.0) {
        return Ok(angle);
    }
    // Whole turns off; how many they are does not move with `mu`.
    let turns = angle.detached()?.scale(0.5 / std::f64::consts::PI)?;
    angle.sub(&turns.unary(&RINT)?.scale(std::f64::consts::TAU)?)
}

/// Shares of gamma numbers in their sum.
pub static DIRICHLET: OpDef = OpDef {
    name: "dirichlet",
    surface: &[Surface::NpRandom("dirichlet")],
    params: &[Param::array("alpha"), SIZE, DTYPE],
    doc: "Samples of the Dirichlet distribution with the k parameters `alpha`, shape (k,): k shares that sum to 1. The result has shape `size` + (k,). \
          Differentiable with respect to `alpha`; computed from logarithms of gamma numbers in float64.",
    about: &[("alpha", "Parameters, (k,), above 0.")],
    returns: &[("ndarray", "Of shape `size + (k,)`.")],
    example: "
        >>> np.random.seed(1)
        >>> np.random.dirichlet([1.0, 2.0, 3.0], size=2).sum(axis=1).round(4)
        array([1., 1.])
    ",
    cpu: Cpu::Composite(|cx| {
        let alpha = cx.input(0);
        let &[k] = alpha.shape() else {
            return Err(cx.shape_error("`alpha` must have one axis"));
        };
        if alpha.dtype().is_complex() {
            return Err(cx.dtype_error("parameters of distributions are real"));
        }
        let dtype = cx.asked().unwrap_or(match alpha.dtype().is_float() {
            true => alpha.dtype(),
            false => mxnet_tensor::default_float(),
        });
        if !dtype.is_float() {
            return Err(cx.dtype_error(format!("samples are floats, not {}", dtype.name())));
        }
        let mut shape = dims(cx.op.name, cx.ints("size"))?;
        shape.push(k);
        let samples = Samples {
            of: cx.op,
            shape,
            dtype: DType::F64,
            device: alpha.device(),
        };
        let alpha = cx.check("alpha", Given::Elements(alpha.clone()), "above 0")?;
        let logs = samples.gamma(&alpha, true)?;
        cx.done(softmax(&logs, -1)?.astype(dtype)?)
    }),
    short: Short::Rows(few_shares),
    form: Form::Plain,
    ..DISTRIBUTION
};

/// [`DIRICHLET`] of a list.
fn few_shares<'a>(few: &Few<'a>) -> Result<Handful<'a>> {
    let dtype = few.samples()?.dtype();
    let alpha = few.check("alpha", few.repeated(), "above 0")?;
    let logs = few.samples_as(DType::F64)?.gamma(&alpha, true)?;
    few.shares(&logs).astype(dtype)
}
