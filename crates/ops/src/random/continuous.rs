//! Distributions of real numbers.

use mxnet_tensor::DType;

use super::parameter::{SamplerContext, WithParameter};
use crate::Array;
use crate::args::{Default, Param, ParamKind};
use crate::context::{CompositeContext, KernelContext};
use crate::elementwise::arithmetic::{DIVIDE, MULTIPLY};
use crate::elementwise::network::SIGMOID;
use crate::error::{Error, Result};
use crate::opdef::{Cpu, Form, OpDef, Rng, Surface, one_of};
use crate::random::draw::{DRAW, distribution, fill_output};
use crate::random::parameter::Parameter;

/// Default fields for distributions.
pub(super) const DISTRIBUTION: OpDef = OpDef {
    about: &[
        ("low", "Lower bound."),
        ("high", "Upper bound."),
        ("loc", "Location of the distribution."),
        ("scale", "Scale of the distribution; not negative."),
        ("shape", "Shape parameter; not negative."),
        ("df", "Degrees of freedom, above 0."),
        ("dfnum", "Degrees of freedom of the numerator, above 0."),
        ("dfden", "Degrees of freedom of the denominator, above 0."),
        ("nonc", "Non-centrality, not negative."),
        (
            "size",
            "Shape of the result; that to which the parameters broadcast for None.",
        ),
    ],
    returns: &[("ndarray", "Of shape `size`.")],
    raises: &[("ValueError", "If a parameter is out of its range.")],
    form: Form::Out,
    rng: Rng::Derived,
    ..OpDef::COMPOSITE
};

/// A parameter that is a number or an array.
const fn real(name: &'static str, default: f64) -> Param {
    Param::array(name).or(Default::Float(default))
}

pub(super) const SIZE: Param = Param::optional("size", ParamKind::Ints);
pub(super) const DTYPE: Param = Param::optional("dtype", ParamKind::DType);
pub(super) const DEVICE: Param = Param::optional("device", ParamKind::Device);

/// Uniform between two bounds.
pub static UNIFORM: OpDef = OpDef {
    name: "uniform",
    raises: &[(
        "OverflowError",
        "If the difference of the bounds is not finite.",
    )],
    surface: &[Surface::NpRandom("uniform")],
    params: &[
        real("low", 0.0),
        real("high", 1.0),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Samples of the uniform distribution over [low, high). The bounds are numbers or arrays that broadcast; rounding may give `high` when the bounds are \
          not 0 and 1. Differentiable with respect to the bounds.",
    about: &[
        ("low", "Smallest value."),
        ("high", "Upper bound, which is not reached."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> x = np.random.uniform(-1, 1, size=1000)
        >>> x.shape, bool((x >= -1).all()), bool((x <= 1).all())
        ((1000,), True, True)
    ",
    cpu: Cpu::Composite(|context| {
        let (low, high) = (context.parameter(0, 0.0)?, context.parameter(1, 1.0)?);
        let samples = context.samples()?;
        if let (Some(low), Some(high)) = (low.number(), high.number()) {
            if !(high - low).is_finite() {
                let problem = format!("the range from {low} to {high} is not finite");
                return Err(Error::overflow(context.op.name, problem));
            }
            return context.done(samples.draw("uniform", low, high)?);
        }
        let width = Parameter::Elements(high.array()?.sub(&low.array()?)?);
        context.done(samples.shifted(samples.draw("uniform", 0.0, 1.0)?, &low, &width)?)
    }),
    ..DISTRIBUTION
};

/// Default fields for samplers without parameters, which one kernel draws.
const STANDARD: OpDef = OpDef {
    raises: &[],
    params: &[SIZE, DTYPE, DEVICE, Param::out()],
    infer: |context| {
        let samples = context.samples()?;
        one_of(samples.shape, samples.dtype)
    },
    cpu: Cpu::Kernel(|context| standard(context, "uniform")),
    grad: DRAW.grad,
    rng: DRAW.rng,
    cost: DRAW.cost,
    probe: DRAW.probe,
    ..DISTRIBUTION
};

fn standard(context: &KernelContext, name: &str) -> Result<()> {
    fill_output(context, distribution(name, [0.0, 1.0, 0.5]))
}

/// Uniform in [0, 1).
pub static RANDOM: OpDef = OpDef {
    name: "random",
    surface: &[Surface::NpRandom("random")],
    doc: "Samples of the uniform distribution over [0, 1).",
    example: "
        >>> np.random.seed(1)
        >>> np.random.random((2, 2)).shape
        (2, 2)
        >>> round(float(np.random.random(10000).mean()), 1)
        0.5
    ",
    ..STANDARD
};

/// Another name of [`RANDOM`].
pub static RANDOM_SAMPLE: OpDef = OpDef {
    name: "random_sample",
    surface: &[
        Surface::NpRandom("random_sample"),
        Surface::NpRandom("ranf"),
        Surface::NpRandom("sample"),
    ],
    doc: "Samples of the uniform distribution over [0, 1); another name of `random`.",
    example: "
        >>> np.random.random_sample(3).shape
        (3,)
    ",
    ..STANDARD
};

/// Default fields for samplers that take the shape as separate arguments.
const SPREAD: OpDef = OpDef {
    params: &[
        Param::ints("size", &[]).variadic(),
        DTYPE.keyword(),
        DEVICE.keyword(),
    ],
    form: Form::ParamsOnly,
    ..STANDARD
};

/// Uniform in [0, 1), the shape as separate arguments.
pub static RAND: OpDef = OpDef {
    name: "rand",
    surface: &[Surface::NpRandom("rand")],
    doc: "Samples of the uniform distribution over [0, 1): `rand(2, 3)` has shape (2, 3).",
    about: &[("size", "Lengths of the axes.")],
    example: "
        >>> np.random.rand(2, 3).shape
        (2, 3)
    ",
    ..SPREAD
};

/// Standard normal, the shape as separate arguments.
pub static RANDN: OpDef = OpDef {
    name: "randn",
    surface: &[Surface::NpRandom("randn")],
    doc: "Samples of the normal distribution of mean 0 and standard deviation 1: `randn(2, 3)` has shape (2, 3).",
    about: &[("size", "Lengths of the axes.")],
    example: "
        >>> np.random.randn(2, 3).shape
        (2, 3)
    ",
    cpu: Cpu::Kernel(|context| standard(context, "normal")),
    ..SPREAD
};

/// Standard normal.
pub static STANDARD_NORMAL: OpDef = OpDef {
    name: "standard_normal",
    surface: &[Surface::NpRandom("standard_normal")],
    doc: "Samples of the normal distribution of mean 0 and standard deviation 1.",
    example: "
        >>> np.random.seed(1)
        >>> x = np.random.standard_normal(10000)
        >>> abs(round(float(x.mean()), 1)), round(float(x.std()), 1)
        (0.0, 1.0)
    ",
    cpu: Cpu::Kernel(|context| standard(context, "normal")),
    ..STANDARD
};

/// Exponential of mean 1.
pub static STANDARD_EXPONENTIAL: OpDef = OpDef {
    name: "standard_exponential",
    surface: &[Surface::NpRandom("standard_exponential")],
    doc: "Samples of the exponential distribution of mean 1.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.standard_exponential(100000).mean()), 1)
        1.0
    ",
    cpu: Cpu::Kernel(|context| standard(context, "exponential")),
    ..STANDARD
};

/// Standard Cauchy: quotient of two normal samples.
pub static STANDARD_CAUCHY: OpDef = OpDef {
    name: "standard_cauchy",
    surface: &[Surface::NpRandom("standard_cauchy")],
    doc: "Samples of the Cauchy distribution of mode 0 and scale 1, as the quotient of two normal numbers.",
    example: "
        >>> np.random.seed(1)
        >>> abs(round(float(np.median(np.random.standard_cauchy(100000))), 1))
        0.0
    ",
    cpu: Cpu::Composite(|context| {
        let samples = context.samples()?;
        let above = samples.draw("normal", 0.0, 1.0)?;
        context.done(above.div(&samples.draw("normal", 0.0, 1.0)?)?)
    }),
    ..STANDARD
};

/// Default fields for distributions with a location and a scale.
const LOCATED: OpDef = OpDef {
    params: &[
        real("loc", 0.0),
        real("scale", 1.0),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    ..DISTRIBUTION
};

/// A standard sample times the scale, plus the location.
fn located(context: &CompositeContext, standard: &'static str) -> Result<Array> {
    let location = context.parameter(0, 0.0)?;
    let scale = context.checked(1, 1.0, "scale", "at least 0")?;
    let samples = context.samples()?;
    samples.shifted(samples.draw(standard, 0.0, 1.0)?, &location, &scale)
}

/// Normal.
pub static NORMAL: OpDef = OpDef {
    name: "normal",
    surface: &[Surface::NpRandom("normal")],
    doc: "Samples of the normal distribution of mean `loc` and standard deviation `scale`, numbers or arrays that broadcast. Differentiable with respect to both.\n\n\
          Source: Box and Muller, 1958.",
    about: &[
        ("loc", "Mean."),
        ("scale", "Standard deviation, not negative."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> x = np.random.normal(5.0, 2.0, size=100000)
        >>> round(float(x.mean()), 1), round(float(x.std()), 1)
        (5.0, 2.0)
        >>> np.random.normal([0.0, 100.0], 1.0, size=(3, 2)).shape
        (3, 2)
    ",
    cpu: Cpu::Composite(|context| {
        let location = context.parameter(0, 0.0)?;
        let scale = context.checked(1, 1.0, "scale", "at least 0")?;
        context.done(match (location.number(), scale.number()) {
            (Some(mean), Some(deviation)) => context.samples()?.draw("normal", mean, deviation),
            _ => located(context, "normal"),
        }?)
    }),
    ..LOCATED
};

/// Gumbel: limit distribution of maxima.
pub static GUMBEL: OpDef = OpDef {
    name: "gumbel",
    surface: &[Surface::NpRandom("gumbel")],
    doc: "Samples of the Gumbel distribution of mode `loc` and scale `scale`, numbers or arrays that broadcast. Differentiable with respect to both.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.gumbel(0.0, 1.0, size=100000).mean()), 1)  # Euler's constant
        0.6
    ",
    cpu: Cpu::Composite(|context| context.done(located(context, "gumbel")?)),
    ..LOCATED
};

/// Laplace: difference of two exponential samples.
pub static LAPLACE: OpDef = OpDef {
    name: "laplace",
    surface: &[Surface::NpRandom("laplace")],
    doc: "Samples of the Laplace distribution of mean `loc` and scale `scale`, numbers or arrays that broadcast. Differentiable with respect to both.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.abs(np.random.laplace(0.0, 2.0, size=100000)).mean()), 1)
        2.0
    ",
    cpu: Cpu::Composite(|context| context.done(located(context, "laplace")?)),
    ..LOCATED
};

/// Logistic: logit of a uniform sample.
pub static LOGISTIC: OpDef = OpDef {
    name: "logistic",
    surface: &[Surface::NpRandom("logistic")],
    doc: "Samples of the logistic distribution of mean `loc` and scale `scale`, numbers or arrays that broadcast. Differentiable with respect to both.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.logistic(3.0, 1.0, size=100000).mean()), 1)
        3.0
    ",
    cpu: Cpu::Composite(|context| context.done(located(context, "logistic")?)),
    ..LOCATED
};

/// Exponential.
pub static EXPONENTIAL: OpDef = OpDef {
    name: "exponential",
    surface: &[Surface::NpRandom("exponential")],
    params: &[real("scale", 1.0), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "Samples of the exponential distribution of mean `scale`, a number or an array. Differentiable with respect to it.",
    about: &[("scale", "Mean, not negative.")],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.exponential(2.0, size=100000).mean()), 1)
        2.0
    ",
    cpu: Cpu::Composite(|context| {
        let scale = context.checked(0, 1.0, "scale", "at least 0")?;
        let samples = context.samples()?;
        context.done(match scale.number() {
            Some(mean) => samples.draw("exponential", 0.0, mean)?,
            None => samples
                .draw("exponential", 0.0, 1.0)?
                .with_parameter(&MULTIPLY, &scale)?
                .astype(samples.dtype)?,
        })
    }),
    ..DISTRIBUTION
};

/// Gamma.
pub static GAMMA: OpDef = OpDef {
    name: "gamma",
    surface: &[Surface::NpRandom("gamma")],
    params: &[
        Param::array("shape"),
        real("scale", 1.0),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Samples of the gamma distribution of shape parameter `shape` and scale `scale`, numbers or arrays that broadcast. Differentiable with respect to both.\n\n\
          Sources: Marsaglia and Tsang, 2000; gradient: Figurnov, Mohamed and Mnih, 2018.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.gamma(2.0, 3.0, size=100000).mean()), 1)
        6.0
    ",
    cpu: Cpu::Composite(|context| {
        let shape = context.checked(0, 1.0, "shape", "at least 0")?;
        let scale = context.checked(1, 1.0, "scale", "at least 0")?;
        let samples = context.samples()?;
        context.done(samples.shifted(
            samples.gamma(&shape, false)?,
            &Parameter::Number(0.0),
            &scale,
        )?)
    }),
    ..DISTRIBUTION
};

/// Gamma with scale 1.
pub static STANDARD_GAMMA: OpDef = OpDef {
    name: "standard_gamma",
    surface: &[Surface::NpRandom("standard_gamma")],
    params: &[Param::array("shape"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "Samples of the gamma distribution of shape parameter `shape`, a number or an array, and scale 1. Differentiable with respect to the shape parameter.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.standard_gamma(4.0, size=100000).mean()), 1)
        4.0
    ",
    cpu: Cpu::Composite(|context| {
        let shape = context.checked(0, 1.0, "shape", "at least 0")?;
        context.done(context.samples()?.gamma(&shape, false)?)
    }),
    ..DISTRIBUTION
};

/// Chi-square: sum of squares of normal samples.
pub static CHISQUARE: OpDef = OpDef {
    name: "chisquare",
    surface: &[Surface::NpRandom("chisquare")],
    params: &[Param::array("df"), SIZE, DTYPE, DEVICE],
    doc: "Samples of the chi-square distribution of `df` degrees of freedom, a number or an array. Differentiable with respect to it.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.chisquare(3.0, size=100000).mean()), 1)
        3.0
    ",
    cpu: Cpu::Composite(|context| {
        let df = context.checked(0, 1.0, "df", "above 0")?;
        context.done(context.samples()?.gamma(&df.half()?, false)?.scale(2.0)?)
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

/// Beta: x / (x + y) for two gamma samples.
pub static BETA: OpDef = OpDef {
    name: "beta",
    surface: &[Surface::NpRandom("beta")],
    params: &[Param::array("a"), Param::array("b"), SIZE, DTYPE, DEVICE],
    doc: "Samples of the beta distribution with parameters `a` and `b`, numbers or arrays that broadcast, computed as x / (x + y) for two gamma \
        numbers, from their logarithms in float64. Differentiable with respect to both.",
    about: &[
        ("a", "First parameter, above 0."),
        ("b", "Second parameter, above 0."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.beta(1.0, 3.0, size=100000).mean()), 2)
        0.25
    ",
    cpu: Cpu::Composite(|context| {
        let a = context.checked(0, 1.0, "a", "above 0")?;
        let b = context.checked(1, 1.0, "b", "above 0")?;
        let dtype = context.samples()?.dtype;
        let wide = context.samples_as(DType::F64)?;
        let logit = wide.gamma(&a, true)?.sub(&wide.gamma(&b, true)?)?;
        context.done(logit.unary(&SIGMOID)?.astype(dtype)?)
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

/// F: quotient of two chi-square samples, each divided by its degrees of freedom.
pub static F: OpDef = OpDef {
    name: "f",
    surface: &[Surface::NpRandom("f")],
    params: &[
        Param::array("dfnum"),
        Param::array("dfden"),
        SIZE,
        DTYPE,
        DEVICE,
    ],
    doc: "Samples of Fisher's F distribution of `dfnum` and `dfden` degrees of freedom, numbers or arrays that broadcast. Differentiable with respect to both.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.f(5.0, 10.0, size=100000).mean()), 1)  # 10 / (10 - 2)
        1.2
    ",
    cpu: Cpu::Composite(|context| {
        let m = context.checked(0, 1.0, "dfnum", "above 0")?;
        let n = context.checked(1, 1.0, "dfden", "above 0")?;
        let samples = context.samples()?;
        let x = samples
            .gamma(&m.half()?, false)?
            .with_parameter(&DIVIDE, &m)?;
        let y = samples
            .gamma(&n.half()?, false)?
            .with_parameter(&DIVIDE, &n)?;
        context.done(x.div(&y)?.astype(samples.dtype)?)
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};
