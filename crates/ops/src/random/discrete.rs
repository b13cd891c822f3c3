//! Distributions of integers and truth values.

use mxnet_tensor::{DType, Scalar, default_int};

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::creation::dims;
use crate::cx::CompositeCx;
use crate::elementwise::comparison::LESS;
use crate::elementwise::explog::LOG;
use crate::error::Result;
use crate::index::take_along_axis;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, OpDef, Surface};
use crate::random::continuous::{DEVICE, DISTRIBUTION, DTYPE, SIZE};
use crate::random::draw::{
    COUNT_ROWS, RANDOM_BINOMIAL, RANDOM_CATEGORICAL, RANDOM_INTEGERS, RANDOM_INTEGERS_BETWEEN,
    rejecting,
};
use crate::random::parameter::{Given, Samples, asked, check, given};
use crate::{Array, Outputs};

/// Integers, each equally likely.
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
    cpu: Cpu::Composite(randint),
    ..DISTRIBUTION
};

fn randint(cx: &CompositeCx) -> Result<Outputs> {
    let dtype = asked(cx).unwrap_or_else(default_int);
    if !dtype.is_integer() && dtype != DType::Bool {
        return Err(cx.dtype_error(format!("samples are integers, not {}", dtype.name())));
    }
    for x in cx.inputs.iter().flatten() {
        if x.dtype().is_inexact() {
            return Err(cx.dtype_error("bounds must be integers"));
        }
    }
    let samples = Samples::with_dtype(cx, dtype)?;
    let zero = Array::weak_scalar(Scalar::I64(0))?;
    let (low, high) = match cx.opt(1) {
        Some(high) => (cx.input(0), high),
        None => (&zero, cx.input(0)),
    };
    if !(low.is_weak() && high.is_weak()) {
        let wide = |x: &Array| x.astype(DType::I64)?.broadcast_to(&samples.shape);
        let attrs: Attrs = [Value::DType(dtype)].into_iter().collect();
        return cx.done(invoke1(
            &RANDOM_INTEGERS_BETWEEN,
            &[&wide(low)?, &wide(high)?],
            &attrs,
        )?);
    }
    let (low, high) = (low.item()?, high.item()?);
    let number = |x: Scalar| match x {
        Scalar::U64(x) => i128::from(x),
        other => i128::from(other.as_i64()),
    };
    if number(low) >= number(high) {
        return Err(cx.value_error(format!("low >= high: {} and {}", number(low), number(high))));
    }
    let last = match i64::try_from(number(high) - 1) {
        Ok(last) => Scalar::I64(last),
        // Above the range of i64, so it fits u64.
        Err(_) => Scalar::U64((number(high) - 1) as u64),
    };
    for (name, bound) in [("low", low), ("high", last)] {
        if !bound.fits(dtype) {
            return Err(cx.value_error(format!(
                "{name} is out of bounds for {}: the integers would be {} to {}",
                dtype.name(),
                number(low),
                number(last)
            )));
        }
    }
    let attrs: Attrs = [
        Value::from(samples.shape.as_slice()),
        Value::Scalar(low),
        Value::Scalar(last),
        Value::DType(dtype),
        Value::Device(samples.device),
    ]
    .into_iter()
    .collect();
    cx.done(invoke1(&RANDOM_INTEGERS, &[], &attrs)?)
}

/// Counts of rare events.
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
          Sources: Knuth, TAOCP 3.4.1 below a mean of 10, Hörmann's PTRS (1993) above.",
    cpu: Cpu::Composite(|cx| {
        let lam = given(cx, 0, 1.0)?;
        check(cx, "lam", &lam, "at least 0", |x| x >= 0.0)?;
        let samples = Samples::with_dtype(cx, asked(cx).unwrap_or_else(default_int))?;
        cx.done(rejecting(
            "poisson",
            &lam.array()?,
            &samples.shape,
            samples.dtype,
            samples.device,
        )?)
    }),
    ..DISTRIBUTION
};

/// Number of successes.
pub static BINOMIAL: OpDef = OpDef {
    name: "binomial",
    surface: &[Surface::NpRandom("binomial")],
    params: &[
        Param::array("n"),
        Param::array("p"),
        SIZE,
        DTYPE,
        DEVICE,
        Param::out(),
    ],
    doc: "How many of `n` tries succeed when each does with probability `p`, numbers or arrays that broadcast. `dtype` is the default integer unless given.\n\n\
          Sources: Devroye, 1986, X.4 below a mean of 10, Hörmann's BTRS (1993) above.",
    cpu: Cpu::Composite(|cx| {
        let (n, p) = (given(cx, 0, 0.0)?, given(cx, 1, 0.0)?);
        check(cx, "n", &n, "a whole number of at least 0", |n| {
            n >= 0.0 && n.fract() == 0.0
        })?;
        check(cx, "p", &p, "in [0, 1]", |p| (0.0..=1.0).contains(&p))?;
        let samples = Samples::with_dtype(cx, asked(cx).unwrap_or_else(default_int))?;
        let fitted = |x: Array| {
            let x = x.detach();
            if x.len() == 1 {
                Ok(x)
            } else {
                x.broadcast_to(&samples.shape)
            }
        };
        let attrs: Attrs = [
            Value::from(samples.shape.as_slice()),
            Value::DType(samples.dtype),
            Value::Device(samples.device),
        ]
        .into_iter()
        .collect();
        let (n, p) = (fitted(n.array()?)?, fitted(p.array()?)?);
        cx.done(invoke1(&RANDOM_BINOMIAL, &[&n, &p], &attrs)?)
    }),
    ..DISTRIBUTION
};

/// Truth with a probability.
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
    doc: "1 with probability `prob`, or with the probability whose logit is `logit`, else 0. Exactly one of the two is given, a number or an array. `dtype` is the \
          default float unless given.",
    cpu: Cpu::Composite(bernoulli),
    ..DISTRIBUTION
};

fn bernoulli(cx: &CompositeCx) -> Result<Outputs> {
    let dtype = asked(cx).unwrap_or_else(mxnet_tensor::default_float);
    let samples = Samples::with_dtype(cx, dtype)?;
    // Compared in float32 or wider, whatever the dtype that holds 0 and 1.
    let floats = |x: &Array| Samples {
        shape: samples.shape.clone(),
        dtype: if x.dtype() == DType::F64 && !x.is_weak() {
            DType::F64
        } else {
            DType::F32
        },
        device: samples.device,
    };
    match (cx.opt(0), cx.opt(1)) {
        (Some(prob), None) => {
            let p = given(cx, 0, 0.5)?;
            check(cx, "prob", &p, "in [0, 1]", |p| (0.0..=1.0).contains(&p))?;
            if let Given::Number(p) = p {
                return cx.done(samples.draw("bernoulli", p, 1.0)?);
            }
            let u = floats(prob).draw("uniform", 0.0, 1.0)?;
            cx.done(u.binary(&LESS, prob)?.astype(dtype)?)
        }
        (None, Some(logit)) => {
            // A logistic number, the difference of two Gumbel numbers, is below x with the probability whose logit is x.
            let floats = floats(logit);
            let noise = floats
                .draw("gumbel", 0.0, 1.0)?
                .sub(&floats.draw("gumbel", 0.0, 1.0)?)?;
            cx.done(noise.binary(&LESS, logit)?.astype(dtype)?)
        }
        (Some(_), Some(_)) => {
            Err(cx.value_error("`prob` and `logit` are both given, exactly one is needed"))
        }
        (None, None) => {
            Err(cx.value_error("neither `prob` nor `logit` is given, exactly one is needed"))
        }
    }
}

/// Counts of categories.
pub static MULTINOMIAL: OpDef = OpDef {
    name: "multinomial",
    surface: &[Surface::NpRandom("multinomial")],
    params: &[
        Param::required("n", ParamKind::Int),
        Param::array("pvals"),
        SIZE,
    ],
    doc: "How often each of k categories comes up in `n` draws with the probabilities `pvals`, shape (k,). The result has shape `size` + (k,), dtype int64. The last \
          probability is what the others leave of 1.",
    cpu: Cpu::Composite(multinomial),
    form: Form::Plain,
    ..DISTRIBUTION
};

fn multinomial(cx: &CompositeCx) -> Result<Outputs> {
    let (n, pvals) = (cx.int("n"), cx.input(0));
    let &[k] = pvals.shape() else {
        return Err(cx.shape_error("`pvals` must have one axis"));
    };
    if n < 0 {
        return Err(cx.value_error(format!("`n` must be at least 0, found {n}")));
    }
    let mut p = probabilities(cx, pvals)?;
    let others: f64 = p.iter().take(k.saturating_sub(1)).sum();
    // NumPy's allowance for probabilities that were rounded to float32.
    if others > 1.0 + 1e-12 && others > 1.0 + f64::from(f32::EPSILON) * k as f64 {
        return Err(cx.value_error(format!("sum(pvals[:-1]) is {others}, above 1")));
    }
    if let Some(last) = p.last_mut() {
        *last = (1.0 - others).max(0.0);
    }
    let mut shape = dims(cx.op.name, cx.ints("size"))?;
    let rows: usize = shape.iter().product();
    shape.push(k);
    if k == 0 {
        return cx.done(crate::creation::zeros(&shape, DType::I64, pvals.device())?);
    }
    let weights = Array::from_slice(&p, &[1, k])?.broadcast_to(&[rows, k])?;
    let draws = invoke1(
        &RANDOM_CATEGORICAL,
        &[&weights],
        &[Value::Int(n)].into_iter().collect(),
    )?;
    let counts = invoke1(
        &COUNT_ROWS,
        &[&draws],
        &[Value::Int(k as i64)].into_iter().collect(),
    )?;
    cx.done(counts.reshape(&shape)?)
}

/// Classes drawn with the probabilities of rows.
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
    cpu: Cpu::Composite(|cx| {
        let data = cx.input(0);
        let Some((&k, rows)) = data.shape().split_last() else {
            return Err(cx.shape_error("`data` must have at least one axis"));
        };
        let dtype = asked(cx).unwrap_or(DType::I32);
        if !dtype.is_integer() {
            return Err(cx.dtype_error(format!("classes are integers, not {}", dtype.name())));
        }
        let own = dims(cx.op.name, cx.ints("shape"))?;
        let shape: Vec<usize> = rows.iter().chain(&own).copied().collect();
        let (count, draws): (usize, usize) = (rows.iter().product(), own.iter().product());
        let flat = data.reshape(&[count, k])?;
        let attrs: Attrs = [Value::Int(draws as i64)].into_iter().collect();
        let weights = flat.detach().astype(DType::F64)?;
        let drawn = invoke1(&RANDOM_CATEGORICAL, &[&weights], &attrs)?;
        let mut results = Outputs::new();
        results.push(drawn.astype(dtype)?.reshape(&shape)?);
        if cx.bool("get_prob") {
            let chosen = take_along_axis(&flat, &drawn, 1, "raise")?;
            results.push(chosen.unary(&LOG)?.reshape(&shape)?);
        }
        Ok(results)
    }),
    form: Form::Plain,
    ..DISTRIBUTION
};

/// The elements as probabilities. They are read, so the call waits for them.
pub(super) fn probabilities(cx: &CompositeCx, p: &Array) -> Result<Vec<f64>> {
    let p: Vec<f64> = p.detach().astype(DType::F64)?.to_vec()?;
    match p.iter().position(|x| !(0.0..=1.0 + 1e-6).contains(x)) {
        Some(at) => Err(cx.value_error(format!("probability {at} is {}, not in [0, 1]", p[at]))),
        None => Ok(p),
    }
}
