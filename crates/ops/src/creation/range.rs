//! `arange`, `linspace` and relatives.
#![allow(unsafe_code)]

use mxnet_kernels::sequence::{Ramps, ramps};
use mxnet_tensor::{
    DType, Device, Dims, Kind, Promotion, Scalar, broadcast_shapes, default_int, promote, promotion,
};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::{CallContext, CompositeContext, KernelContext};
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::nn::operand::{Staged, dense};
use crate::opdef::{Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface, one_of};
use crate::shape::{concatenate, narrow};
use crate::types::{check_element, dtype_of_number};
use crate::{Outputs, cpu};

/// A range with a step.
pub static ARANGE: OpDef = OpDef {
    name: "arange",
    surface: &[Surface::Np("arange")],
    params: &[
        Param::optional("start", ParamKind::Scalar).requires("stop"),
        Param::optional("stop", ParamKind::Scalar),
        Param::optional("step", ParamKind::Scalar),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Numbers from `start` (0 if only one bound is given) to `stop`, exclusive, in steps of `step`. Integers give int64, floats and integers \
          beyond int64 the default float. *Differs from NumPy*: integers beyond 64 bits are an error.",
    about: &[
        (
            "start",
            "First number, or the bound if it is the only argument.",
        ),
        ("stop", "Exclusive bound."),
        ("step", "Distance between the numbers, 1 for None."),
    ],
    returns: &[("ndarray", "Of shape `(ceil((stop - start) / step),)`.")],
    raises: &[
        ("ZeroDivisionError", "If `step` is 0."),
        (
            "OverflowError",
            "If the dtype does not hold the first two numbers, or a bound has more than 64 bits.",
        ),
    ],
    example: "
        >>> np.arange(5)
        array([0, 1, 2, 3, 4])
        >>> np.arange(0, 1, 0.25)
        array([0.  , 0.25, 0.5 , 0.75])
    ",
    infer: range,
    cpu: Cpu::Kernel(fill_range),
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(300),
    probe: Probe::calls(&[
        "5",
        "2, 7",
        "0, 1, 0.25",
        "5, 0, -2",
        "3, 3",
        "0, 4, dtype='float64'",
    ]),
    ..OpDef::DEFAULT
};

/// Start, stop and step of a range.
fn bounds(args: &crate::Args) -> (Scalar, Scalar, Scalar) {
    let step = args.scalar("step").unwrap_or(Scalar::I64(1));
    let zero = Scalar::I64(0);
    match (args.scalar("start"), args.scalar("stop")) {
        (start, Some(stop)) => (start.unwrap_or(zero), stop, step),
        (start, None) => (zero, start.unwrap_or(zero), step),
    }
}

fn range(context: &CallContext) -> Result<Inferred> {
    let (start, stop, step) = bounds(context);
    if context.is_none("start") && context.is_none("stop") {
        return Err(context.dtype_error("arange() requires stop to be specified"));
    }
    if step.as_f64() == 0.0 {
        return Err(Error::zero_division(
            context.op.name,
            "`step` must not be 0",
        ));
    }
    let all = [start, stop, step];
    let integers = all.map(as_i128);
    let len = match integers {
        [Some(a), Some(b), Some(s)] => {
            // A negative step is turned into a positive one by swapping the direction.
            let sign = s.signum();
            let (distance, s) = ((b - a) * sign, s * sign);
            usize::try_from((distance + s - 1).div_euclid(s).max(0)).unwrap_or(usize::MAX)
        }
        // Integers beyond 64 bits are stored as floats, so the length cannot be computed exactly.
        _ if all.iter().all(|x| x.kind() <= Kind::Integer) => {
            let problem = "a bound or the step is an integer beyond 64 bits";
            return Err(Error::overflow(context.op.name, problem));
        }
        _ => {
            // Integers are subtracted as integers: distinct ones may be equal as floats.
            let distance = match integers {
                [Some(a), Some(b), _] => (b - a) as f64,
                _ => stop.as_f64() - start.as_f64(),
            };
            let len = (distance / step.as_f64()).ceil();
            if len.is_nan() {
                return Err(
                    context.value_error("cannot compute length: a bound or the step is NaN")
                );
            }
            if len.is_infinite() {
                return Err(
                    context.value_error("maximum allowed size exceeded: a bound is infinite")
                );
            }
            len.max(0.0) as usize
        }
    };
    let own = |x: Scalar| match x {
        // NumPy's rules: uint64 elements with an int64 step promote to float64.
        Scalar::U64(_) if promotion() == Promotion::NumPy => DType::U64,
        other => dtype_of_number(other),
    };
    let natural = all
        .map(own)
        .into_iter()
        .fold(default_int(), |a, b| promote(a, b, promotion()));
    let dtype = context.dtype("dtype").unwrap_or(natural);
    if dtype == DType::Bool && len > 2 {
        return Err(context.dtype_error(format!(
            "a range of booleans has at most 2 elements, found {len}"
        )));
    }
    if dtype.is_integer() {
        // Only the first two elements are checked; later ones wrap around, as in NumPy.
        let second = match integers {
            [Some(a), _, Some(s)] => from_i128(a + s),
            _ => Scalar::F64(start.as_f64() + step.as_f64()),
        };
        for &value in [start, second].iter().take(len) {
            check_element(context.op.name, &value, dtype)?;
        }
    }
    one_of(Dims::from_slice(&[len]), dtype)
}

/// An integer within 64 bits, else `None`.
fn as_i128(x: Scalar) -> Option<i128> {
    match x {
        Scalar::U64(x) => Some(x.into()),
        other => other.to_i64().map(i128::from),
    }
}

/// The 64-bit pattern of an integer, or of a float truncated to an integer.
fn bit_pattern(x: Scalar) -> i64 {
    match x {
        Scalar::F64(x) if x > 0.0 => x as u64 as i64,
        other => other.as_i64(),
    }
}

/// An integer as a Python scalar.
fn from_i128(x: i128) -> Scalar {
    match (i64::try_from(x), u64::try_from(x)) {
        (Ok(x), _) => Scalar::I64(x),
        (_, Ok(x)) => Scalar::U64(x),
        _ => Scalar::Wide(x as f64),
    }
}

fn fill_range(context: &KernelContext) -> Result<()> {
    let (start, _, step) = bounds(context);
    let out = context.output(0);
    let integers = as_i128(start).is_some() && as_i128(step).is_some();
    if out.dtype().is_integer() || integers && !out.dtype().is_inexact() {
        // Integers of either sign are computed as 64-bit patterns. Floats are truncated first: the step is then the difference of the first
        // two elements, as in NumPy.
        let first = bit_pattern(start);
        let step = match integers {
            true => step.as_i64(),
            false => bit_pattern(Scalar::F64(start.as_f64() + step.as_f64())).wrapping_sub(first),
        };
        return cpu::generate(
            out,
            |i| first.wrapping_add(step.wrapping_mul(i as i64)),
            context.threads,
        );
    }
    let (first, step) = (start.as_f64(), step.as_f64());
    if !out.dtype().is_inexact() {
        // As in NumPy, the first two elements are truncated to integers, and the step is their difference.
        let (first, second) = (first as i64, (first + step) as i64);
        let step = second.wrapping_sub(first);
        return cpu::generate(
            out,
            |i| first.wrapping_add(step.wrapping_mul(i as i64)),
            context.threads,
        );
    }
    // As in NumPy, the step is the rounded difference of the first two elements.
    let step = (first + step) - first;
    cpu::generate(out, |i| first + step * i as f64, context.threads)
}

/// Evenly spaced numbers, given their count.
pub static LINSPACE: OpDef = OpDef {
    name: "linspace",
    surface: &[Surface::Np("linspace")],
    params: &[
        Param::array("start"),
        Param::array("stop"),
        Param::int("num", 50),
        Param::bool("endpoint", true),
        Param::bool("retstep", false),
        Param::optional("dtype", ParamKind::DType),
        Param::int("axis", 0),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "`num` evenly spaced numbers from `start` to `stop`, which is the last one unless `endpoint` is false. The bounds may be arrays: the numbers \
          then lie along `axis`. `retstep=True` also returns the spacing.",
    about: &[
        ("start", "First number."),
        ("stop", "Last number."),
        ("num", "How many."),
        ("endpoint", "Whether `stop` is the last one."),
        ("retstep", "Whether the spacing is returned too."),
    ],
    returns: &[(
        "ndarray",
        "The numbers, along `axis`; with `retstep` a tuple of them and their spacing.",
    )],
    raises: &[("ValueError", "If `num` is negative.")],
    example: "
        >>> np.linspace(0, 1, 5)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
        >>> np.linspace(0, 1, 4, endpoint=False)
        array([0.  , 0.25, 0.5 , 0.75])
    ",
    cpu: Cpu::Composite(linspace),
    probe: Probe::calls(&[
        "0, 1, 5",
        "1.0, 2.0, 4, False",
        "3, 3, 1",
        "0, 1, 0",
        "f((2,)), f((2,)), 3",
        "f((2,)), 5.0, 3, axis=-1",
    ]),
    ..OpDef::COMPOSITE
};

fn linspace(context: &CompositeContext) -> Result<Outputs> {
    let num = usize::try_from(context.int("num")).map_err(|_| {
        context.value_error(format!(
            "`num` must not be negative, found {}",
            context.int("num")
        ))
    })?;
    let (start, stop) = (context.input(0), context.input(1));
    let natural = crate::types::promoted(context.inputs);
    let natural = if natural.is_inexact() {
        natural
    } else {
        mxnet_tensor::default_float()
    };
    let dtype = context.dtype("dtype").unwrap_or(natural);
    let are_numbers = start.is_weak() && stop.is_weak() && !natural.is_complex();
    if are_numbers
        && dtype.is_float()
        && matches!(context.int("axis"), 0 | -1)
        && !context.bool("retstep")
    {
        return context.done(ramp(context, num, dtype)?);
    }
    let gaps = if context.bool("endpoint") {
        num.saturating_sub(1)
    } else {
        num
    };
    if !natural.is_complex() && dtype.is_float() && !context.bool("retstep") {
        let shape = broadcast_shapes(&[start.shape(), stop.shape()])?;
        let attrs: Attrs = [
            Value::Int(num as i64),
            Value::Bool(context.bool("endpoint")),
            Value::DType(dtype),
        ]
        .into_iter()
        .collect();
        let bounds = [start.broadcast_to(&shape)?, stop.broadcast_to(&shape)?];
        let points = invoke1(&RAMPS, &[&bounds[0], &bounds[1]], &attrs)?;
        return context.done(along(context, points)?);
    }
    // Computed in float64, so that the result is correctly rounded in every dtype.
    let wide = if natural.is_complex() {
        DType::C128
    } else {
        DType::F64
    };
    let (start, stop) = (start.astype(wide)?, stop.astype(wide)?);
    // A single point has no spacing: NaN, as in NumPy.
    let interval = stop.sub(&start)?;
    let step = match gaps {
        0 => interval.scale(f64::NAN)?,
        _ => interval.div(&Array::weak_scalar(Scalar::F64(gaps as f64))?)?,
    };
    let ndim = start.ndim().max(stop.ndim());
    let steps = if gaps == 0 {
        stop.sub(&start)?
    } else {
        step.clone()
    };
    let mut ramp_shape = Dims::from_elem(1, ndim + 1);
    ramp_shape[0] = num;
    let ramp = arange(num, wide)?.reshape(&ramp_shape)?;
    let mut points = ramp.mul(&steps)?.add(&start)?;
    if context.bool("endpoint") && num > 1 {
        // The last point is exactly `stop`.
        let mut last_shape: Dims = SmallVec::from_slice(&points.shape()[1..]);
        last_shape.insert(0, 1);
        let last = stop.broadcast_to(&last_shape)?;
        points = concatenate(&[&narrow(&points, 0, 0, num - 1)?, &last], 0)?;
    }
    points = along(context, points)?;
    if dtype.is_integer() {
        let one = Array::weak_scalar(Scalar::I64(1))?;
        points = points.floor_div(&one)?;
    }
    let points = points.astype(dtype)?;
    if context.bool("retstep") {
        return Ok(SmallVec::from_iter([points, step.astype(natural)?]));
    }
    context.done(points)
}

/// Moves the first axis of the points to `axis`. The result is in C order.
fn along(context: &CompositeContext, points: Array) -> Result<Array> {
    let axis = mxnet_tensor::normalize_axis(context.int("axis") as isize, points.ndim())?;
    if axis == 0 {
        return Ok(points);
    }
    let order: SmallVec<[i64; 4]> = (1..=axis)
        .chain([0])
        .chain(axis + 1..points.ndim())
        .map(|a| a as i64)
        .collect();
    points.transpose(Some(&order))?.copy()
}

/// Evenly spaced numbers between the elements of two arrays.
pub static RAMPS: OpDef = OpDef {
    name: "ramps",
    params: &[
        Param::array("start"),
        Param::array("stop"),
        Param::required("num", ParamKind::Int),
        Param::bool("endpoint", true),
        Param::optional("dtype", ParamKind::DType),
    ],
    doc: "`num` evenly spaced numbers along a new first axis from each element of `start` to that of `stop`, which is the last one if `endpoint`; \
        both have the same shape. They are computed in float64 and are float32 unless `dtype`, a float, is given.",
    infer: |context| {
        let num = context.int("num");
        if context.shape(0) != context.shape(1) || num < 0 {
            return Err(context.shape_error(format!(
                "`start` and `stop` must have the same shape, `num` must not be negative, found {num}"
            )));
        }
        let mut shape = Dims::from_slice(&[num as usize]);
        shape.extend_from_slice(context.shape(0));
        one_of(shape, context.dtype("dtype").unwrap_or(DType::F32))
    },
    cpu: Cpu::Kernel(|context| {
        let bounds = [0, 1].map(|i| dense(context.input(i), DType::F64, context.threads));
        let [start, stop] = bounds;
        let (start, stop) = (start?, stop?);
        let written = match context.output(0).dtype() {
            DType::F32 => DType::F32,
            _ => DType::F64,
        };
        let out = Staged::new(context.output(0), written)?;
        let rows = out.tensor().shape()[0];
        let what = Ramps {
            elem: elem(written),
            n: start.len(),
            rows,
            gaps: num_steps(rows, context.bool("endpoint")),
            ends_at_stop: context.bool("endpoint") && rows > 1,
        };
        // SAFETY: inference checked that the bounds are dense float64 of equal length. The output is dense, each of its rows has one element for
        // each bound, and it overlaps no input.
        unsafe {
            let (start, stop) = (start.data_ptr().cast(), stop.data_ptr().cast());
            ramps(context.threads, &what, start, stop, out.ptr());
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let dy = g.dy(0);
        let num = dy.shape()[0];
        let mut shape = Dims::from_elem(1, dy.ndim());
        shape[0] = num;
        // Weight of `stop` in each number; the weight of `start` is one minus it.
        let weight = arange(num, DType::F64)?.scale(spacing(num, g.bool("endpoint")))?;
        let weight = weight.reshape(&shape)?.astype(dy.dtype())?;
        let rest = Array::weak_scalar(Scalar::I64(1))?.sub(&weight)?;
        let mut grads = Grads::new();
        for (i, part) in [rest, weight].into_iter().enumerate() {
            grads.push(match g.wants(i) {
                true => Some(g.fitted(dy.mul(&part)?, i)?),
                false => None,
            });
        }
        Ok(grads)
    }),
    cost: Cost::Of(|context| (context.input(0).len() as u64).saturating_mul(context.int("num").max(0) as u64) / 4),
    probe: Probe::calls(&[
        "f((3,)), f((3,)), 4, True, 'float64'",
        "f((2, 2)), f((2, 2)), 3, False, 'float64'",
        "f((2,)), f((2,)), 1, True, 'float64'",
        "f((2,)), f((2,)), 0",
        "f((1100,)), f((1100,)), 70, True, 'float64'",
    ])
    .against("lambda start, stop, num, endpoint=True, dtype='float32': numpy.linspace(start, stop, num, endpoint, dtype=dtype)"),
    ..OpDef::DEFAULT
};

/// Spacing of `num` numbers as a fraction of the interval; 1 if there is only one.
fn spacing(num: usize, ends_at_stop: bool) -> f64 {
    1.0 / num_steps(num, ends_at_stop)
}

/// Number of steps in the interval, at least 1.
fn num_steps(num: usize, ends_at_stop: bool) -> f64 {
    (num - usize::from(ends_at_stop && num > 0)).max(1) as f64
}

/// `linspace` between two scalars, in one pass.
fn ramp(context: &CompositeContext, num: usize, dtype: DType) -> Result<Array> {
    let attrs: Attrs = [
        Value::Int(num as i64),
        Value::Float(context.input(0).item()?.as_f64()),
        Value::Float(context.input(1).item()?.as_f64()),
        Value::Bool(context.bool("endpoint")),
        Value::DType(dtype),
        context.get("device").clone(),
    ]
    .into_iter()
    .collect();
    invoke1(&RAMP, &[], &attrs)
}

/// Evenly spaced numbers between two scalars.
pub static RAMP: OpDef = OpDef {
    name: "ramp",
    params: &[
        Param::int("num", 50),
        Param::float("start", 0.0),
        Param::float("stop", 1.0),
        Param::bool("endpoint", true),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "`num` evenly spaced floats from `start` to `stop`, which is the last one if `endpoint` is true. Computed in float64.",
    infer: |context| {
        one_of(
            Dims::from_slice(&[context.int("num").max(0) as usize]),
            context
                .dtype("dtype")
                .unwrap_or_else(mxnet_tensor::default_float),
        )
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let (n, start, stop, endpoint) = (
            out.len(),
            context.float("start"),
            context.float("stop"),
            context.bool("endpoint"),
        );
        // The step is a quotient, as in NumPy: the product with a reciprocal would be rounded twice.
        let step = (stop - start) / num_steps(n, endpoint);
        let last = if endpoint && n > 1 { n - 1 } else { usize::MAX };
        cpu::generate(
            out,
            |i| {
                if i == last {
                    stop
                } else {
                    i as f64 * step + start
                }
            },
            context.threads,
        )
    }),
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(300),
    probe: Probe::calls(&["5, 0.0, 1.0", "4, 1.0, 2.0, False", "1, 3.0, 4.0", "0"]).against(
        "lambda num, start=0.0, stop=1.0, endpoint=True: np.linspace(start, stop, num, endpoint)",
    ),
    ..OpDef::DEFAULT
};

/// 0, 1, …, `n` - 1.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn arange(n: usize, dtype: DType) -> Result<Array> {
    invoke1(&ARANGE, &[], &range_of(n, dtype, Value::None))
}

/// 0, 1, …, `n` - 1 on a device.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn arange_on(n: usize, dtype: DType, device: Device) -> Result<Array> {
    invoke1(&ARANGE, &[], &range_of(n, dtype, Value::Device(device)))
}

/// Attributes of [`ARANGE`].
fn range_of(n: usize, dtype: DType, device: Value) -> Attrs {
    let (start, stop) = (Value::Int(0), Value::Int(n as i64));
    [start, stop, Value::None, Value::DType(dtype), device]
        .into_iter()
        .collect()
}
