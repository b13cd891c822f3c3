//! Distributions that are functions of uniform, normal, exponential, gamma and Poisson samples.

use mxnet_tensor::{DType, default_int};

use super::parameter::{SamplerContext, WithParameter};
use crate::Array;
use crate::args::{Default, Param};
use crate::context::CompositeContext;
use crate::creation::dims;
use crate::elementwise::arithmetic::{
    ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, RECIPROCAL, SQUARE,
};
use crate::elementwise::comparison::LESS;
use crate::elementwise::explog::{EXP, EXPM1, LOG1P, POWER, SQRT};
use crate::elementwise::rounding::{CEIL, RINT};
use crate::elementwise::select::choose;
use crate::error::{Error, Result};
use crate::nn::softmax;
use crate::opdef::{Cpu, Form, OpDef, Surface};
use crate::random::continuous::{DEVICE, DISTRIBUTION, DTYPE, SIZE};
use crate::random::parameter::{Parameter, Samples, alone};

/// Exponential of a normal sample.
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
    cpu: Cpu::Composite(|context| {
        let mean = context.parameter(0, 0.0)?;
        let sigma = context.checked(1, 1.0, "sigma", "at least 0")?;
        let samples = context.samples()?;
        let normal = samples.draw("normal", 0.0, 1.0)?;
        context.done(samples.shifted(normal, &mean, &sigma)?.unary(&EXP)?)
    }),
    ..DISTRIBUTION
};

/// Length of a 2-d normal vector.
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
    cpu: Cpu::Composite(|context| {
        let scale = context.checked(0, 1.0, "scale", "at least 0")?;
        let samples = context.samples()?;
        let length = samples.draw("exponential", 0.0, 2.0)?.unary(&SQRT)?;
        context.done(samples.shifted(length, &Parameter::Number(0.0), &scale)?)
    }),
    ..DISTRIBUTION
};

/// Default fields for distributions with one positive shape parameter.
const SHAPED: OpDef = OpDef {
    about: &[("a", "Shape parameter, above 0.")],
    params: &[Param::array("a"), SIZE, DTYPE, DEVICE, Param::out()],
    ..DISTRIBUTION
};

/// Properties of the samples, the shape parameter, and exponential samples.
type Shaped = (Samples, Parameter, Array);

/// The shape parameter `a`, and exponential samples.
fn shaped(context: &CompositeContext) -> Result<Shaped> {
    let a = context.checked(0, 1.0, "a", "above 0")?;
    let samples = context.samples()?;
    let exponential = samples.draw("exponential", 0.0, 1.0)?;
    Ok((samples, a, exponential))
}

/// Power of an exponential sample.
pub static WEIBULL: OpDef = OpDef {
    name: "weibull",
    surface: &[Surface::NpRandom("weibull")],
    doc: "Samples of the Weibull distribution of shape parameter `a`, a number or an array, and scale 1. Differentiable with respect to it.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.weibull(1.0, size=100000).mean()), 1)
        1.0
    ",
    cpu: Cpu::Composite(|context| {
        let (samples, a, e) = shaped(context)?;
        let exponent = alone(&a)?.unary(&RECIPROCAL)?;
        context.done(e.binary(&POWER, &exponent)?.astype(samples.dtype)?)
    }),
    ..SHAPED
};

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
    cpu: Cpu::Composite(|context| {
        let (samples, a, e) = shaped(context)?;
        context.done(
            e.with_parameter(&DIVIDE, &a)?
                .unary(&EXPM1)?
                .astype(samples.dtype)?,
        )
    }),
    ..SHAPED
};

/// Power of a uniform sample.
pub static POWER_DISTRIBUTION: OpDef = OpDef {
    name: "random_power",
    surface: &[Surface::NpRandom("power")],
    doc: "Samples on [0, 1] of density a x^(a - 1), `a` a number or an array. Differentiable with respect to it.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.power(3.0, size=100000).mean()), 2)  # 3 / (3 + 1)
        0.75
    ",
    cpu: Cpu::Composite(|context| {
        let (samples, a, e) = shaped(context)?;
        // With an exponential sample e, exp(-e) is a uniform sample.
        let exponent = e.unary(&NEGATIVE)?.with_parameter(&DIVIDE, &a)?;
        context.done(exponent.unary(&EXP)?.astype(samples.dtype)?)
    }),
    ..SHAPED
};

/// Student's t: a normal sample over the square root of a chi-square sample divided by its degrees of freedom.
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
    cpu: Cpu::Composite(|context| {
        let half = context.checked(0, 1.0, "df", "above 0")?.half()?;
        let samples = context.samples()?;
        let mean_square = samples
            .gamma(&half, false)?
            .with_parameter(&DIVIDE, &half)?;
        let root = mean_square.unary(&SQRT)?;
        let normal = samples.draw("normal", 0.0, 1.0)?;
        context.done(normal.div(&root)?.astype(samples.dtype)?)
    }),
    ..DISTRIBUTION
};

/// Triangular, by inversion of the distribution function.
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
    doc: "Samples of the triangular distribution on [left, right] with its peak at `mode`, numbers or arrays that broadcast.",
    about: &[
        ("left", "Lower bound."),
        ("mode", "Position of the peak, between the bounds."),
        ("right", "Upper bound."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.triangular(0.0, 1.0, 5.0, size=100000).mean()), 1)
        2.0
    ",
    cpu: Cpu::Composite(|context| {
        let (left, mode, right) = (
            context.parameter(0, 0.0)?,
            context.parameter(1, 0.5)?,
            context.parameter(2, 1.0)?,
        );
        let samples = context.samples()?;
        if let (Some(a), Some(b), Some(c)) = (left.number(), mode.number(), right.number()) {
            if !(a <= b && b <= c && a < c) {
                let problem = format!("`left` <= `mode` <= `right` must hold, found {a}, {b}, {c}");
                return Err(Error::value(context.op.name, problem));
            }
            return context.done(samples.filled("triangular", [a, c, b])?);
        }
        // A Python number takes the dtype of the samples instead of float64.
        let of = |x: &Parameter| samples.operand(x);
        let (left, mode, right) = (of(&left)?, of(&mode)?, of(&right)?);
        let (width, before) = (right.sub(&left)?, mode.sub(&left)?);
        let u = samples.draw("uniform", 0.0, 1.0)?;
        let rising = left.add(&u.mul(&width)?.mul(&before)?.unary(&SQRT)?)?;
        let rest = u.unary(&NEGATIVE)?.with_scalar(&ADD, 1.0)?;
        let behind = right.sub(&mode)?;
        let falling = right.sub(&rest.mul(&width)?.mul(&behind)?.unary(&SQRT)?)?;
        let rises = u.mul(&width)?.binary(&LESS, &before)?;
        context.done(choose(&rises, &rising, &falling)?)
    }),
    ..DISTRIBUTION
};

/// Number of trials until the first success.
pub static GEOMETRIC: OpDef = OpDef {
    name: "geometric",
    surface: &[Surface::NpRandom("geometric")],
    params: &[Param::array("p"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "Number of trials up to and including the first success, each with success probability `p`, a number or an array. `dtype` is the default \
        integer unless given.\n\n\
          Computed in float64: exact up to 2^53 trials.",
    about: &[("p", "Probability of a success, in (0, 1].")],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.geometric(0.25, size=100000).mean()), 1)
        4.0
    ",
    cpu: Cpu::Composite(|context| {
        let p = context.checked(0, 0.5, "p", "in (0, 1]")?;
        let dtype = context.requested_dtype().unwrap_or_else(default_int);
        let dtype = context.samples_as(dtype)?.dtype;
        let samples = context.samples_as(DType::F64)?;
        let failure = samples.operand(&p)?.unary(&NEGATIVE)?.unary(&LOG1P)?;
        let e = samples.draw("exponential", 0.0, 1.0)?;
        let tries = e.div(&failure.unary(&NEGATIVE)?)?.unary(&CEIL)?;
        let tries = tries.with_scalar(&MAXIMUM, 1.0)?;
        // Samples out of range of the dtype are clipped to its largest value that float64 represents.
        let most = match dtype {
            DType::I64 => 9_223_372_036_854_774_784.0,
            DType::U64 => 18_446_744_073_709_549_568.0,
            dtype if dtype.is_integer() => {
                let bits = 8 * dtype.size() as i32 - i32::from(dtype.is_signed());
                2_f64.powi(bits) - 1.0
            }
            _ => return context.done(tries.astype(dtype)?),
        };
        context.done(tries.with_scalar(&MINIMUM, most)?.astype(dtype)?)
    }),
    ..DISTRIBUTION
};

/// Noncentral chi-square: one of the normal samples has a non-zero mean.
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
    cpu: Cpu::Composite(|context| {
        let dtype = context.samples()?.dtype;
        context.done(
            half_noncentral(context, "df", 1)?
                .scale(2.0)?
                .astype(dtype)?,
        )
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

/// Quotient of a noncentral and a central chi-square sample.
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
    cpu: Cpu::Composite(|context| {
        let dtype = context.samples()?.dtype;
        let dfden = context.checked(1, 1.0, "dfden", "above 0")?;
        let above = half_noncentral(context, "dfnum", 2)?;
        // Half a central chi-square sample.
        let below = context
            .samples_as(DType::F64)?
            .gamma(&dfden.half()?, false)?;
        context.done(
            above
                .div(&below)?
                .with_parameter(&MULTIPLY, &dfden)?
                .with_parameter(&DIVIDE, &context.parameter(0, 1.0)?)?
                .astype(dtype)?,
        )
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

/// Halves of noncentral chi-square samples, in float64. Parameter 0 is the degrees of freedom, parameter `at` the noncentrality.
fn half_noncentral(context: &CompositeContext, name: &'static str, at: usize) -> Result<Array> {
    let df = context.checked(0, 1.0, name, "above 0")?;
    let nonc = context.checked(at, 0.0, "nonc", "at least 0")?.half()?;
    let samples = context.samples_as(DType::F64)?;
    let shifted = |rest: &Parameter| {
        let deviation = std::f64::consts::FRAC_1_SQRT_2;
        let normal = match &nonc {
            Parameter::Number(x) => samples.draw("normal", x.sqrt(), deviation)?,
            Parameter::Elements(x) => samples
                .draw("normal", 0.0, deviation)?
                .add(&x.unary(&SQRT)?)?,
        };
        normal
            .unary(&SQUARE)?
            .add(&samples.gamma(&rest.half()?, false)?)
    };
    let mixed = |df: &Parameter| {
        let pairs = samples.counts("poisson", &[&nonc])?;
        let shape = pairs.with_parameter(&ADD, &df.half()?)?;
        samples.gamma(&Parameter::Elements(shape), false)
    };
    match &df {
        Parameter::Number(k) if *k > 1.0 => shifted(&Parameter::Number(k - 1.0)),
        Parameter::Number(_) => mixed(&df),
        Parameter::Elements(k) => {
            let k = k.astype(DType::F64)?;
            let rest = k.with_scalar(&ADD, -1.0)?.with_scalar(&MAXIMUM, 0.0)?;
            let is_many = samples
                .operand(&Parameter::Number(0.0))?
                .binary(&LESS, &rest)?;
            choose(
                &is_many,
                &shifted(&Parameter::Elements(rest))?,
                &mixed(&df)?,
            )
        }
    }
}

/// Von Mises: angles on a circle.
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
        ("mu", "Mean direction."),
        ("kappa", "Concentration, not negative."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.vonmises(1.0, 10.0, size=100000).mean()), 1)
        1.0
    ",
    cpu: Cpu::Composite(|context| {
        let mu = context.parameter(0, 0.0)?;
        let kappa = context.checked(1, 1.0, "kappa", "at least 0")?;
        let samples = context.samples()?;
        let angle = samples.shifted(samples.angles(&kappa)?, &mu, &Parameter::Number(1.0))?;
        if mu.number() == Some(0.0) {
            return context.done(angle);
        }
        // Wraps the angle to [-pi, pi]. The number of turns is constant with respect to `mu`.
        let turns = angle.detach().scale(0.5 / std::f64::consts::PI)?;
        context.done(angle.sub(&turns.unary(&RINT)?.scale(std::f64::consts::TAU)?)?)
    }),
    ..DISTRIBUTION
};

/// Gamma samples divided by their sum.
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
    cpu: Cpu::Composite(|context| {
        let alpha = context.input(0);
        let &[k] = alpha.shape() else {
            return Err(context.shape_error("`alpha` must have one axis"));
        };
        if alpha.dtype().is_complex() {
            return Err(context.dtype_error("parameters of distributions are real"));
        }
        let dtype = context
            .requested_dtype()
            .unwrap_or(match alpha.dtype().is_float() {
                true => alpha.dtype(),
                false => mxnet_tensor::default_float(),
            });
        if !dtype.is_float() {
            return Err(context.dtype_error(format!("samples are floats, not {}", dtype.name())));
        }
        let mut shape = dims(context.op.name, context.ints("size"))?;
        shape.push(k);
        let samples = Samples {
            shape,
            dtype: DType::F64,
            device: alpha.device(),
        };
        let alpha = context.check("alpha", Parameter::Elements(alpha.clone()), "above 0")?;
        let logs = samples.gamma(&alpha, true)?;
        context.done(softmax(&logs, -1)?.astype(dtype)?)
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};
