//! Random permutations and choices.

use mxnet_tensor::{DType, Device, Dims, Scalar};

use crate::args::{Attrs, Param, Value};
use crate::context::CompositeContext;
use crate::creation::dims;
use crate::error::{Error, Result};
use crate::index::{gather_along, take};
use crate::invoke::invoke1;
use crate::mode::current_device;
use crate::opdef::{Cpu, Form, OpDef, Surface};
use crate::order::SORT_ROWS;
use crate::random::choice::{RANDOM_CATEGORICAL, RANDOM_DIFFERENT, RANDOM_ORDER, RANDOM_REORDERED};
use crate::random::continuous::{DEVICE, DISTRIBUTION, SIZE};
use crate::random::discrete::probabilities;
use crate::random::draw::RANDOM_INTEGERS;
use crate::random::parameter::Samples;
use crate::{Array, Outputs, interrupt};

/// A random permutation.
pub static PERMUTATION: OpDef = OpDef {
    name: "permutation",
    surface: &[Surface::NpRandom("permutation")],
    params: &[Param::array("x")],
    doc: "The slices of an array along its first axis in random order, each order equally likely; for an integer, the integers below it.",
    about: &[("x", "An array, or the number of integers.")],
    raises: &[(
        "IndexError",
        "If `x` is neither an integer nor has an axis.",
    )],
    returns: &[("ndarray", "Of the shape and dtype of `x`.")],
    example: "
        >>> np.random.seed(1)
        >>> np.sort(np.random.permutation(5))
        array([0, 1, 2, 3, 4])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        if x.ndim() > 0 {
            return context.done(invoke1(&RANDOM_REORDERED, &[x], &Attrs::none())?);
        }
        if !x.dtype().is_integer() {
            return Err(Error::index(
                context.op.name,
                "`x` must be an integer or an array with at least one axis",
            ));
        }
        // There are no integers in 0..n for a negative n.
        let n = x.item()?.as_i64().max(0);
        let attrs: Attrs = [Value::from(&[n as usize][..]), Value::Device(device_of(x))]
            .into_iter()
            .collect();
        context.done(invoke1(&RANDOM_ORDER, &[], &attrs)?)
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

/// Rows permuted independently.
pub static RANDOM_PERMUTED: OpDef = OpDef {
    name: "random_permuted",
    reports_as: Some("permuted"),
    params: &[Param::array("x")],
    doc: "The elements along the last axis in random order, independently for each row.",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let Some((&n, lead)) = x.shape().split_last() else {
            return Err(context.shape_error("a 0-d array cannot be permuted"));
        };
        let rows = x.len() / n.max(1);
        let attrs: Attrs = [Value::from(&[rows, n][..]), Value::Device(device_of(x))]
            .into_iter()
            .collect();
        let order = invoke1(&RANDOM_ORDER, &[], &attrs)?.reshape(x.shape())?;
        context.done(gather_along(x, &order, lead.len())?)
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

/// The device of an array; the current device for a Python number.
fn device_of(x: &Array) -> Device {
    if x.is_weak() {
        current_device()
    } else {
        x.device()
    }
}

/// Elements chosen at random.
pub static CHOICE: OpDef = OpDef {
    name: "choice",
    surface: &[Surface::NpRandom("choice")],
    params: &[
        Param::array("a"),
        SIZE,
        Param::bool("replace", true),
        Param::optional_array("p"),
        DEVICE,
        Param::out(),
    ],
    doc: "Elements of the 1-D array `a`, or integers below the integer `a`, chosen with or without replacement, each with its probability in `p` (the same for all if \
          None). `p` is read, so the call waits for it.\n\nSource without replacement: Efraimidis and Spirakis, 2006 (the smallest of exponential numbers divided by \
          the probabilities).",
    about: &[
        ("a", "The elements, or their number."),
        (
            "replace",
            "Whether an element may be chosen more than once.",
        ),
        ("p", "Probabilities of the elements."),
    ],
    returns: &[("ndarray", "Of shape `size`.")],
    raises: &[(
        "ValueError",
        "If more elements are chosen than there are and `replace` is false, or `p` is not a probability vector of the right length.",
    )],
    example: "
        >>> np.random.seed(1)
        >>> np.sort(np.random.choice([10, 20, 30], size=3, replace=False))
        array([10, 20, 30])
    ",
    cpu: Cpu::Composite(|context| match context.input(0).ndim() {
        0 | 1 => choice(context, 0),
        _ => Err(context.shape_error("`a` must be an integer or an array with one axis")),
    }),
    ..DISTRIBUTION
};

/// Slices chosen at random.
pub static CHOOSE: OpDef = OpDef {
    name: "choose_slices",
    reports_as: Some("choice"),
    params: &[
        Param::array("a"),
        SIZE,
        Param::bool("replace", true),
        Param::optional_array("p"),
        Param::int("axis", 0),
        Param::bool("shuffle", true),
        DEVICE,
    ],
    doc: "As `choice`, of the slices of `a` along `axis`; the axes of `size` replace that axis. Without `shuffle` and replacement the slices keep \
        their order.",
    cpu: Cpu::Composite(|context| match context.input(0).ndim() {
        0 => choice(context, 0),
        _ => choice(context, context.axis("axis", 0)?),
    }),
    form: Form::ParamsOnly,
    ..DISTRIBUTION
};

fn choice(context: &CompositeContext, axis: usize) -> Result<Outputs> {
    let a = context.input(0);
    let n = match a.shape().get(axis) {
        Some(&n) => n as i64,
        None if a.dtype().is_integer() => a.item()?.as_i64(),
        None => {
            return Err(
                context.value_error("`a` must be an integer or an array with at least one axis")
            );
        }
    };
    let shape = dims(context.op.name, context.ints("size"))?;
    let count: usize = shape.iter().product();
    if n < 0 || n == 0 && count > 0 {
        return Err(context.value_error(format!("there are {n} elements to choose from")));
    }
    let n = n as usize;
    if !context.bool("replace") && count > n {
        return Err(context.value_error(format!(
            "cannot take {count} of {n} elements without replacement"
        )));
    }
    let device = context.device("device").unwrap_or_else(|| device_of(a));
    let chosen = match context.opt(1) {
        Some(p) => weighted(context, p, n, count)?,
        None if context.bool("replace") => {
            let attrs: Attrs = [
                Value::from(&[count][..]),
                Value::Scalar(Scalar::I64(0)),
                Value::Scalar(Scalar::I64((n as i64 - 1).max(0))),
                Value::DType(DType::I64),
                Value::Device(device),
            ]
            .into_iter()
            .collect();
            invoke1(&RANDOM_INTEGERS, &[], &attrs)?
        }
        None => {
            let attrs: Attrs = [
                Value::Int(n as i64),
                Value::Int(count as i64),
                Value::Device(device),
            ]
            .into_iter()
            .collect();
            invoke1(&RANDOM_DIFFERENT, &[], &attrs)?
        }
    };
    let has_order = context.op.params.iter().any(|p| p.name == "shuffle");
    let chosen = if has_order && !context.bool("shuffle") && !context.bool("replace") {
        let ascending: Attrs = [Value::Bool(false)].into_iter().collect();
        invoke1(&SORT_ROWS, &[&chosen], &ascending)?
    } else {
        chosen
    };
    let chosen = chosen.reshape(&shape)?;
    context.done(match a.ndim() {
        0 => chosen,
        _ => take(a, &chosen, axis, "raise")?,
    })
}

/// `count` indices with the probabilities `p`.
fn weighted(context: &CompositeContext, p: &Array, n: usize, count: usize) -> Result<Array> {
    if p.shape() != [n] {
        return Err(context.shape_error(format!("`p` must have shape ({n},)")));
    }
    let (weights, sum) = probabilities(context, p)?;
    // NumPy's tolerance: half of the digits of the dtype of the probabilities.
    let epsilon = match p.dtype() {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f32::EPSILON.into(),
    };
    if n > 0 && (sum - 1.0).abs() > epsilon.sqrt() {
        return Err(context.value_error(format!("probabilities do not sum to 1 but to {sum}")));
    }
    if context.bool("replace") {
        let weights = interrupt::run_on_new_thread(8 * n as u64, move || {
            Array::from_slice(&weights, &[1, n])
        })??;
        let attrs: Attrs = [Value::Int(count as i64)].into_iter().collect();
        return invoke1(&RANDOM_CATEGORICAL, &[&weights], &attrs)?.reshape(&[count]);
    }
    let possible = weights.iter().filter(|w| **w > 0.0).count();
    if possible < count {
        return Err(context.value_error(format!(
            "cannot take {count} elements without replacement: only {possible} have a probability above 0"
        )));
    }
    let samples = Samples {
        shape: Dims::from_slice(&[n]),
        dtype: DType::F64,
        device: p.device(),
    };
    let times = samples.draw("exponential", 0.0, 1.0)?;
    let times = times.to_vec::<f64>()?;
    // Estimated time of sorting.
    let cost_ns = 100 * n as u64;
    let chosen = interrupt::run_on_new_thread(cost_ns, move || {
        let possible = (times.into_iter().zip(&weights).zip(0..)).filter(|((_, w), _)| **w > 0.0);
        let mut times: Vec<(f64, i64)> = possible.map(|((time, w), i)| (time / w, i)).collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        (times[..count].iter().map(|&(_, i)| i)).collect::<Vec<i64>>()
    })?;
    Array::from_slice(&chosen, &[count])
}
