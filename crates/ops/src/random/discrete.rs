//! Distributions of integers and booleans.

use mxnet_tensor::{DType, Kind, Scalar, default_int};

use super::parameter::SamplerContext;
use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::context::CompositeContext;
use crate::creation::dims;
use crate::elementwise::comparison::LESS;
use crate::elementwise::explog::LOG;
use crate::error::{Error, Result};
use crate::index::take_along_axis;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, OpDef, Surface};
use crate::random::choice::{
    RANDOM_CATEGORICAL, RANDOM_DIFFERENT, RANDOM_MULTIVARIATE_HYPERGEOMETRIC,
};
use crate::random::continuous::{DEVICE, DISTRIBUTION, DTYPE, SIZE};
use crate::random::draw::{RANDOM_INTEGERS, RANDOM_INTEGERS_BETWEEN, fits, wide};
use crate::random::parameter::{Parameter, Samples};
use crate::{Array, Outputs, interrupt, memory};

/// Uniformly distributed integers.
pub static RANDINT: OpDef = OpDef {
    name: "randint",
    surface: &[Surface::NpRandom("randint")],
    params: &[
        Param::array("low"),
        Param::optional_array("high"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Integers from `low` (0 if only one bound is given) to `high`, which is not included, each equally likely. The bounds are integers or integer arrays that \
          broadcast. `dtype` is the default integer unless given.\n\nBounds in arrays are checked when the integers are drawn: the error appears where the result is read.",
    about: &[
        (
            "low",
            "Smallest integer, or the bound if it is the only one.",
        ),
        ("high", "Bound, which is not reached."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> x = np.random.randint(1, 7, size=1000)
        >>> int(x.min()), int(x.max())
        (1, 6)
    ",
    cpu: Cpu::Composite(|context| randint(context, false)),
    ..DISTRIBUTION
};

/// [`RANDINT`] whose upper bound may be included.
pub static INTEGERS: OpDef = OpDef {
    name: "integers",
    params: &[
        Param::array("low"),
        Param::optional_array("high"),
        SIZE,
        DTYPE,
        Param::bool("endpoint", false),
        DEVICE,
    ],
    doc: "Integers from `low` (0 if only one bound is given) to `high`, which is included if `endpoint` is true, each equally likely.",
    cpu: Cpu::Composite(|context| randint(context, context.bool("endpoint"))),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

fn randint(context: &CompositeContext, endpoint: bool) -> Result<Outputs> {
    let dtype = context.requested_dtype().unwrap_or_else(default_int);
    if !dtype.is_integer() && dtype != DType::Bool {
        return Err(context.dtype_error(format!("samples are integers, not {}", dtype.name())));
    }
    for x in context.inputs.iter().flatten() {
        if x.kind() > Kind::Integer {
            return Err(context.dtype_error("bounds must be integers"));
        }
    }
    let samples = context.samples_as(dtype)?;
    let (low, high) = match context.opt(1) {
        Some(high) => (Some(context.input(0)), high),
        None => (None, context.input(0)),
    };
    if !(low.is_none_or(Array::is_weak) && high.is_weak()) {
        let wide = |x: &Array| {
            let dtype = match x.dtype() {
                DType::U64 => DType::U64,
                _ => DType::I64,
            };
            x.astype(dtype)?.broadcast_to(&samples.shape)
        };
        let low = match low {
            Some(low) => wide(low)?,
            None => wide(&Array::weak_scalar(Scalar::I64(0))?)?,
        };
        let attrs: Attrs = [Value::Bool(endpoint), Value::DType(dtype)]
            .into_iter()
            .collect();
        let bounds = [&low, &wide(high)?];
        return context.done(invoke1(&RANDOM_INTEGERS_BETWEEN, &bounds, &attrs)?);
    }
    let number = |x: &Array| x.number().map_or_else(|| x.item(), Ok);
    let numbers = (low.map_or(Ok(Scalar::I64(0)), number)?, number(high)?);
    let (low, last) = bounds(context.op, numbers, endpoint, dtype)?;
    // Each bound fits int64 or uint64.
    let bound = |x: i128| i64::try_from(x).map_or(Scalar::U64(x as u64), Scalar::I64);
    let attrs: Attrs = [
        Value::from(samples.shape.as_slice()),
        Value::Scalar(bound(low)),
        Value::Scalar(bound(last)),
        Value::DType(dtype),
        Value::Device(samples.device),
    ]
    .into_iter()
    .collect();
    context.done(invoke1(&RANDOM_INTEGERS, &[], &attrs)?)
}

/// The first and the last integer between two bounds. An error if there is none, or if `dtype` does not have them.
fn bounds(
    of: &'static OpDef,
    (low, high): (Scalar, Scalar),
    endpoint: bool,
    dtype: DType,
) -> Result<(i128, i128)> {
    let (first, high) = (wide(low), wide(high));
    let last = high - i128::from(!endpoint);
    if first > last {
        let sign = if endpoint { ">" } else { ">=" };
        let problem = format!("low {sign} high: {first} and {high}");
        return Err(Error::value(of.name, problem));
    }
    for (name, bound) in [("low", first), ("high", last)] {
        if !fits(bound, dtype) {
            let problem = format!(
                "{name} is out of bounds for {}: the integers would be {first} to {last}",
                dtype.name()
            );
            return Err(Error::value(of.name, problem));
        }
    }
    Ok((first, last))
}

/// Poisson: counts of independent events.
pub static POISSON: OpDef = OpDef {
    name: "poisson",
    surface: &[Surface::NpRandom("poisson")],
    params: &[
        Param::array("lam").or(Default::Float(1.0)),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Samples of the Poisson distribution of mean `lam`, a number or an array. `dtype` is the default integer unless given.\n\n\
          Sources: Walker's tables, 1977, for a numeric mean up to about 150, else sequential search below a mean of 10, Hörmann's PTRS (1993) above.",
    about: &[("lam", "Mean, not negative.")],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.poisson(4.0, size=100000).mean()), 1)
        4.0
    ",
    cpu: Cpu::Composite(|context| {
        let lam = context.checked(0, 1.0, "lam", "from 0 to 9.2233720064847708e18")?;
        context.done(integers_of(context)?.counts("poisson", &[&lam])?)
    }),
    ..DISTRIBUTION
};

/// Integer samples of a call: `dtype`, else the default integer.
fn integers_of(context: &CompositeContext) -> Result<Samples> {
    context.samples_as(context.requested_dtype().unwrap_or_else(default_int))
}

/// Default fields for distributions of trials with a success probability.
const TRIES: OpDef = OpDef {
    about: &[
        (
            "n",
            "Number of trials; for `negative_binomial` the number of successes.",
        ),
        ("p", "Probability of a success."),
    ],
    params: &[
        Param::array("n"),
        Param::array("p"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    ..DISTRIBUTION
};

/// Number of successes in `n` trials.
pub static BINOMIAL: OpDef = OpDef {
    name: "binomial",
    surface: &[Surface::NpRandom("binomial")],
    doc: "Number of successes in `n` trials with success probability `p`, numbers or arrays that broadcast. `dtype` is the default integer unless given.\n\n\
          Sources: Walker's tables, 1977, for numbers with few likely values, else sequential search below a mean of 10, Hörmann's BTRS (1993) above.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.binomial(10, 0.3, size=100000).mean()), 1)
        3.0
    ",
    cpu: Cpu::Composite(|context| {
        let n = context.checked(0, 0.0, "n", "a whole number of at least 0")?;
        let p = context.checked(1, 0.0, "p", "in [0, 1]")?;
        context.done(integers_of(context)?.counts("binomial", &[&n, &p])?)
    }),
    ..TRIES
};

/// Failures before the `n`th success.
pub static NEGATIVE_BINOMIAL: OpDef = OpDef {
    name: "negative_binomial",
    surface: &[Surface::NpRandom("negative_binomial")],
    doc: "Number of failures before `n` successes, in trials with success probability `p`, numbers or arrays that broadcast. `dtype` is the default integer unless given.\n\n\
          Sources: Walker's tables, 1977, for numbers with few likely values, else a Poisson number whose mean is a gamma number.",
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.negative_binomial(3, 0.5, size=100000).mean()), 1)
        3.0
    ",
    cpu: Cpu::Composite(|context| {
        let n = context.checked(0, 1.0, "n", "above 0")?;
        let p = context.checked(1, 0.5, "p", "in (0, 1]")?;
        context.done(integers_of(context)?.counts("negative_binomial", &[&n, &p])?)
    }),
    ..TRIES
};

/// Hypergeometric: number of good items in a sample without replacement.
pub static HYPERGEOMETRIC: OpDef = OpDef {
    name: "hypergeometric",
    surface: &[Surface::NpRandom("hypergeometric")],
    params: &[
        Param::array("ngood"),
        Param::array("nbad"),
        Param::array("nsample"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "Number of good items among `nsample` items drawn without replacement from `ngood` good and `nbad` bad ones, numbers or arrays that \
          broadcast. `dtype` is the default integer unless given.\n\n\
          Sources: Walker's tables, 1977, for numbers with few likely values, else sequential search below a mean of 10, Stadlober's HRUA (1990) above.",
    about: &[
        ("ngood", "Number of good items."),
        ("nbad", "Number of bad items."),
        ("nsample", "Number of items drawn."),
    ],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.hypergeometric(10, 30, 8, size=100000).mean()), 1)
        2.0
    ",
    cpu: Cpu::Composite(|context| {
        let rule = "a whole number from 0 to 10**9";
        let good = context.checked(0, 0.0, "ngood", rule)?;
        let bad = context.checked(1, 0.0, "nbad", rule)?;
        let sample = context.checked(2, 0.0, "nsample", "a whole number of at least 0")?;
        context.done(integers_of(context)?.counts("hypergeometric", &[&good, &bad, &sample])?)
    }),
    ..DISTRIBUTION
};

/// Zipf's law.
pub static ZIPF: OpDef = OpDef {
    name: "zipf",
    surface: &[Surface::NpRandom("zipf")],
    params: &[Param::array("a"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "Integers k from 1 on with probabilities proportional to k^-a, `a` above 1, a number or an array. `dtype` is the default integer unless given.\n\n\
          Source: Devroye, 1986, X.6.1.",
    about: &[("a", "Exponent, above 1.")],
    example: "
        >>> np.random.seed(1)
        >>> x = np.random.zipf(2.0, size=100000)
        >>> int(x.min()), round(float((x == 1).mean()), 1)  # 6 / pi^2
        (1, 0.6)
    ",
    cpu: Cpu::Composite(|context| {
        let a = context.checked(0, 2.0, "a", "above 1")?;
        context.done(integers_of(context)?.counts("zipf", &[&a])?)
    }),
    ..DISTRIBUTION
};

/// Logarithmic series.
pub static LOGSERIES: OpDef = OpDef {
    name: "logseries",
    surface: &[Surface::NpRandom("logseries")],
    params: &[Param::array("p"), SIZE, DTYPE, DEVICE, Param::out()],
    doc: "Integers k from 1 on with probabilities proportional to p^k / k, `p` in [0, 1), a number or an array. `dtype` is the default integer unless given.\n\n\
          Source: Kemp, 1981.",
    about: &[("p", "Parameter in [0, 1).")],
    example: "
        >>> np.random.seed(1)
        >>> round(float(np.random.logseries(0.5, size=100000).mean()), 1)
        1.4
    ",
    cpu: Cpu::Composite(|context| {
        let p = context.checked(0, 0.5, "p", "in [0, 1)")?;
        context.done(integers_of(context)?.counts("logseries", &[&p])?)
    }),
    ..DISTRIBUTION
};

/// True with a probability.
pub static BERNOULLI: OpDef = OpDef {
    name: "bernoulli",
    params: &[
        Param::optional_array("prob"),
        Param::optional_array("logit"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "1 with probability `prob`, or with the probability whose logit is `logit`, else 0. Exactly one of the two must be given, a number or an \
          array. `dtype` is the default float unless given.",
    about: &[
        ("prob", "Probability of a 1."),
        ("logit", "Its logit, log(p / (1 - p))."),
    ],
    raises: &[(
        "ValueError",
        "If both or neither of `prob` and `logit` are given, or a probability is not in [0, 1].",
    )],
    example: "
        >>> np.random.seed(1)
        >>> round(float(npx.random.bernoulli(0.3, size=100000).mean()), 1)
        0.3
    ",
    cpu: Cpu::Composite(bernoulli),
    ..DISTRIBUTION
};

fn bernoulli(context: &CompositeContext) -> Result<Outputs> {
    let dtype = context
        .requested_dtype()
        .unwrap_or_else(mxnet_tensor::default_float);
    let samples = context.samples_as(dtype)?;
    // The comparison is in float32 or float64, whatever the dtype of the result.
    let floats = |x: &Array| Samples {
        shape: samples.shape.clone(),
        dtype: if x.dtype() == DType::F64 && !x.is_weak() {
            DType::F64
        } else {
            DType::F32
        },
        device: samples.device,
    };
    match (context.opt(0), context.opt(1)) {
        (Some(prob), None) => {
            match context.check("prob", context.parameter(0, 0.5)?, "in [0, 1]")? {
                Parameter::Number(p) => context.done(samples.draw("bernoulli", p, 1.0)?),
                Parameter::Elements(p) => {
                    let u = floats(prob).draw("uniform", 0.0, 1.0)?;
                    context.done(u.binary(&LESS, &p)?.astype(dtype)?)
                }
            }
        }
        (None, Some(logit)) => {
            // A logistic sample (the difference of two Gumbel samples) is less than x with the probability whose logit is x.
            let floats = floats(logit);
            let noise = floats
                .draw("gumbel", 0.0, 1.0)?
                .sub(&floats.draw("gumbel", 0.0, 1.0)?)?;
            context.done(noise.binary(&LESS, logit)?.astype(dtype)?)
        }
        (Some(_), Some(_)) => {
            Err(context.value_error("`prob` and `logit` are both given, exactly one is needed"))
        }
        (None, None) => {
            Err(context.value_error("neither `prob` nor `logit` is given, exactly one is needed"))
        }
    }
}

/// Number of items of each color in samples drawn without replacement.
pub static MULTIVARIATE_HYPERGEOMETRIC: OpDef = OpDef {
    name: "multivariate_hypergeometric",
    params: &[
        Param::array("colors"),
        Param::required("nsample", ParamKind::Int),
        SIZE,
        Param::choice("method", &["marginals", "count"], "marginals"),
    ],
    doc: "Number of items of each of k colors among `nsample` items drawn without replacement from `colors`, shape (k,), integers that sum to less \
          than 10**9. The result has shape `size` + (k,), dtype int64. 'marginals' draws one conditional count after the other, 'count' draws the \
          items one by one and counts them.",
    cpu: Cpu::Composite(|context| {
        let (colors, sample) = (context.input(0), context.int("nsample"));
        let &[k] = colors.shape() else {
            return Err(context.shape_error("`colors` must have one axis"));
        };
        if !colors.dtype().is_integer() {
            return Err(context.dtype_error("`colors` must be integers"));
        }
        if sample < 0 {
            return Err(
                context.value_error(format!("`nsample` must be at least 0, found {sample}"))
            );
        }
        let mut shape = dims(context.op.name, context.ints("size"))?;
        let rows: usize = shape.iter().product();
        shape.push(k);
        if context.str("method") == "count" {
            return context.done(counted(context, sample, rows)?.reshape(&shape)?);
        }
        let attrs: Attrs = [Value::Int(sample), Value::Int(rows as i64)]
            .into_iter()
            .collect();
        let kernel = &RANDOM_MULTIVARIATE_HYPERGEOMETRIC;
        let drawn = invoke1(kernel, &[colors], &attrs)?;
        context.done(drawn.reshape(&shape)?)
    }),
    form: Form::ParamsOnly,
    positions: &[0],
    ..DISTRIBUTION
};

/// `rows` samples of `sample` items each, drawn one by one; counts the items of each color.
fn counted(context: &CompositeContext, sample: i64, rows: usize) -> Result<Array> {
    let colors: Vec<i64> = context.input(0).astype(DType::I64)?.to_vec()?;
    if let Some(at) = colors.iter().position(|x| *x < 0) {
        return Err(context.value_error(format!(
            "`colors` must be at least 0, found {} at element {at}",
            colors[at]
        )));
    }
    let all = colors.iter().fold(0_i64, |sum, x| sum.saturating_add(*x));
    if all >= 1_000_000_000 {
        return Err(context.value_error(format!("sum(colors) is {all}, must be below 10**9")));
    }
    if sample > all {
        return Err(context.value_error(format!(
            "`nsample` is {sample}, above sum(colors), which is {all}"
        )));
    }
    // Items are numbered color by color: the color of an item is the number of colors that end at or before it.
    let sums = colors.iter().scan(0, |end, x| {
        *end += x;
        Some(*end)
    });
    let ends = memory::collected(context.op.name, colors.len(), sums)?;
    let len = rows.saturating_mul(colors.len());
    let mut counts = memory::collected(context.op.name, len, std::iter::repeat_n(0_i64, len))?;
    let attrs: Attrs = [
        Value::Int(all),
        Value::Int(sample),
        Value::Device(context.input(0).device()),
    ]
    .into_iter()
    .collect();
    for row in counts.chunks_exact_mut(colors.len().max(1)) {
        let taken: Vec<i64> = invoke1(&RANDOM_DIFFERENT, &[], &attrs)?.to_vec()?;
        for thing in taken {
            row[ends.partition_point(|end| *end <= thing)] += 1;
        }
    }
    Array::from_slice(&counts, &[rows, colors.len()])
}

/// Class indices drawn with the probabilities in each row.
pub static CATEGORICAL: OpDef = OpDef {
    name: "categorical",
    params: &[
        Param::array("data"),
        Param::ints("shape", &[]),
        Param::bool("get_prob", false),
        DTYPE,
    ],
    doc: "Classes drawn with the probabilities in the last axis of `data`, shape (..., k), which need not sum to 1. The result has shape (...,) + `shape` and dtype int32 \
          unless `dtype` is given. With `get_prob` the logarithms of the drawn classes' probabilities come as a second result, differentiable with respect to `data`.",
    about: &[
        ("data", "Probabilities, (..., k)."),
        ("shape", "Shape of the samples for each row."),
        (
            "get_prob",
            "Whether the logarithms of their probabilities are returned too.",
        ),
        ("dtype", "Type of the classes, int32 for None."),
    ],
    returns: &[(
        "ndarray",
        "Of shape (...,) + `shape`; with `get_prob` a tuple of two.",
    )],
    raises: &[(
        "ValueError",
        "If `data` has no axis, or a row holds no probabilities.",
    )],
    example: "
        >>> npx.random.categorical(np.array([[0.0, 1.0], [1.0, 0.0]]), shape=(3,))
        array([[1, 1, 1],
               [0, 0, 0]], dtype=int32)
    ",
    cpu: Cpu::Composite(|context| {
        let data = context.input(0);
        let Some((&k, rows)) = data.shape().split_last() else {
            return Err(context.shape_error("`data` must have at least one axis"));
        };
        let dtype = context.requested_dtype().unwrap_or(DType::I32);
        if !dtype.is_integer() {
            return Err(context.dtype_error(format!("classes are integers, not {}", dtype.name())));
        }
        let own = dims(context.op.name, context.ints("shape"))?;
        let shape: Vec<usize> = rows.iter().chain(&own).copied().collect();
        let (count, draws): (usize, usize) = (rows.iter().product(), own.iter().product());
        let flat = data.reshape(&[count, k])?;
        let attrs: Attrs = [Value::Int(draws as i64)].into_iter().collect();
        let weights = flat.detach().astype(DType::F64)?;
        let drawn = invoke1(&RANDOM_CATEGORICAL, &[&weights], &attrs)?;
        let mut results = Outputs::new();
        results.push(drawn.astype(dtype)?.reshape(&shape)?);
        if context.bool("get_prob") {
            let chosen = take_along_axis(&flat, &drawn, 1, "raise")?;
            results.push(chosen.unary(&LOG)?.reshape(&shape)?);
        }
        Ok(results)
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

/// The elements as probabilities, and their sum. The call waits for them.
pub(super) fn probabilities(context: &CompositeContext, p: &Array) -> Result<(Vec<f64>, f64)> {
    let p = p.detach().astype(DType::F64)?;
    // `read` waits on this thread, which is also the one that interpreters watch for reads of values.
    drop(p.read()?);
    let (p, odd, sum) = interrupt::run_on_new_thread(8 * p.len() as u64, move || {
        let p: Vec<f64> = p.to_vec()?;
        let odd = p.iter().position(|x| !(0.0..=1.0 + 1e-6).contains(x));
        let sum = p.iter().sum();
        Ok::<_, crate::Error>((p, odd, sum))
    })??;
    match odd {
        Some(at) => {
            Err(context.value_error(format!("probability {at} is {}, not in [0, 1]", p[at])))
        }
        None => Ok((p, sum)),
    }
}
