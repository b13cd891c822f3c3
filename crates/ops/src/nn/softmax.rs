//! Softmax and its logarithm, with lengths, temperatures and masks.
#![allow(unsafe_code)]

use mxnet_kernels::softmax::{self as kernel, Kind, Softmax};
use mxnet_tensor::{DType, Dims, Scalar, Tensor};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::elementwise::comparison::LESS;
use crate::elementwise::select::choose;
use crate::error::{Result, Tuple};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::nn::operand::{self, Staged};
use crate::opdef::{Amp, Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface, one_of};
use crate::{Array, creation, only};

const TEMPERATURE: Param = Param::optional("temperature", ParamKind::Float);
const USE_LENGTH: Param = Param::bool("use_length", false);
const DTYPE: Param = Param::optional("dtype", ParamKind::DType);

/// Default fields for softmax and its logarithm.
const SOFTMAX_LIKE: OpDef = OpDef {
    about: &[
        ("length", "Number of elements of each row that take part."),
        ("temperature", "Divisor of the data, 1 for None."),
        ("use_length", "Whether `length` is used."),
    ],
    returns: &[("ndarray", "Of the shape of `data`.")],
    raises: &[
        (
            "ValueError",
            "If `length` does not have the shape of `data` without the axis.",
        ),
        ("TypeError", "If `dtype` is not a real float."),
    ],
    params: &[
        Param::array("data"),
        Param::int("axis", -1),
        Param::optional_array("length"),
        TEMPERATURE,
        USE_LENGTH,
        DTYPE,
    ],
    infer: shape_and_dtype,
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(600),
    parallel: true,
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((2, 3, 4)), 1, temperature=2.5",
        "f((3, 4)), -1, i((3,), 4), use_length=True",
        "f((2, 3, 4)), 1, i((2, 4), 3), None, True",
        "i((3, 4), 5)",
        "f((0, 4))",
    ])
    .ulp(16),
    ..OpDef::DEFAULT
};

/// Exponentials that add up to 1.
pub static SOFTMAX: OpDef = OpDef {
    name: "softmax",
    surface: &[Surface::Npx("softmax")],
    params: &[
        Param::array("data"),
        Param::optional_array("length").swaps_if_integer(),
        Param::int("axis", -1),
        TEMPERATURE,
        USE_LENGTH,
        DTYPE,
    ],
    doc: "`exp(x / temperature)`, divided by its sum along `axis`. With `use_length`, `length` (the data's shape without `axis`, integers) says how many \
          elements of each row take part; the others are 0. `dtype` is that of the result. An integer as the second positional argument is `axis`: \
          `softmax(x, 0)` and `softmax(x, None, 0)` are the same call.",
    example: "
        >>> npx.softmax(np.array([0.0, 1.0, 2.0]))
        array([0.09003057, 0.24472848, 0.66524094])
        >>> npx.softmax(np.array([0.0, 1.0, 2.0]), temperature=10.0)
        array([0.3006096, 0.332225 , 0.3671654])
    ",
    cpu: Cpu::Kernel(|context| run(context, Kind::Softmax)),
    grad: Grad::Fused(
        Keep {
            inputs: 0b10,
            outputs: 1,
        },
        |g| fused_slope(g, Kind::Softmax),
        |g| slope(g, Kind::Softmax),
    ),
    batch: Batch::Axes("axis"),
    positions: &[1],
    ..SOFTMAX_LIKE
};

/// Logarithm of softmax.
pub static LOG_SOFTMAX: OpDef = OpDef {
    name: "log_softmax",
    surface: &[Surface::Npx("log_softmax")],
    doc: "Logarithm of `softmax`, computed without over- or underflow. Elements beyond `length` are 0.",
    example: "
        >>> npx.log_softmax(np.array([0.0, 1.0, 2.0]))
        array([-2.407606  , -1.4076059 , -0.40760595])
    ",
    cpu: Cpu::Kernel(|context| run(context, Kind::LogSoftmax)),
    grad: Grad::Fused(
        Keep::ALL,
        |g| fused_slope(g, Kind::LogSoftmax),
        |g| slope(g, Kind::LogSoftmax),
    ),
    batch: Batch::Axes("axis"),
    positions: &[1],
    ..SOFTMAX_LIKE
};

/// The gradient of softmax and log-softmax, in one pass.
pub static SOFTMAX_GRADIENT: OpDef = OpDef {
    name: "softmax_gradient",
    params: &[
        Param::array("y"),
        Param::array("dy"),
        Param::int("axis", -1),
        Param::optional_array("length"),
        Param::optional("temperature", ParamKind::Float),
        Param::bool("log", false),
    ],
    doc: "Gradient of `softmax`, or of `log_softmax` if `log`, given its result `y` and the cotangent `dy`.",
    infer: |context| {
        context.check_shape(1, context.shape(0))?;
        check_lengths(context, 2, context.axis("axis", 0)?)?;
        context.same_as(0)
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let kind = if context.bool("log") {
            Kind::LogSoftmax
        } else {
            Kind::Softmax
        };
        let dtype = operand::compute(out.dtype());
        let y = operand::dense(context.input(0), dtype, context.threads)?;
        let dy = operand::dense(context.input(1), dtype, context.threads)?;
        let lengths = operand::dense_or_none(context.opt(2), DType::I32, context.threads)?;
        let dx = Staged::new(out, dtype)?;
        let geometry = rows(context, &y)?;
        // SAFETY: 1. operands are dense, of `dtype` and of the shape that the geometry was made from; a length for each row. 2. no overlap.
        unsafe {
            kernel::softmax_backward(
                context.threads,
                &geometry,
                kind,
                y.data_ptr(),
                dy.data_ptr(),
                operand::pointer(lengths.as_ref()).cast(),
                dx.ptr(),
            );
        }
        dx.finish(context.threads)
    }),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    cost: Cost::PerKiB(200),
    probe: Probe::calls(&["f((3, 4)), f((3, 4))", "f((3, 4)), f((3, 4)), 0, log=True"]).ulp(16),
    batch: Batch::Axes("axis"),
    positions: &[2],
    ..OpDef::DEFAULT
};

/// Parameters of the masked forms.
const MASKED: OpDef = OpDef {
    about: &[
        ("mask", "Booleans, which broadcast."),
        ("temperature", "Divisor of the data, 1 for None."),
        (
            "normalize",
            "Has no effect: the largest element is always subtracted.",
        ),
    ],
    returns: &[("ndarray", "Of the shape of `data`.")],
    raises: &[("ValueError", "If `mask` does not broadcast to `data`.")],
    params: &[
        Param::array("data"),
        Param::array("mask"),
        Param::int("axis", -1),
        Param::float("temperature", 1.0).or_none(),
        Param::bool("normalize", true),
    ],
    probe: Probe::calls(&["f((3, 4)), b((3, 4))", "f((2, 3, 4)), b((2, 1, 4)), 1, 2.0"]).ulp(16),
    ..OpDef::COMPOSITE
};

/// Softmax of some elements.
pub static MASKED_SOFTMAX: OpDef = OpDef {
    name: "masked_softmax",
    surface: &[Surface::Npx("masked_softmax")],
    doc: "Softmax along `axis` of the elements where `mask` (broadcast) is true; the others are 0, also in rows without any true element. The largest \
          element is always subtracted before the exponential.",
    example: "
        >>> npx.masked_softmax(np.array([0.0, 1.0, 2.0]), np.array([True, True, False]))
        array([0.26894143, 0.7310586 , 0.        ])
    ",
    cpu: Cpu::Composite(|context| context.done(masked(context, &SOFTMAX, 0.0)?)),
    ..MASKED
};

/// Logarithm of softmax of some elements.
pub static MASKED_LOG_SOFTMAX: OpDef = OpDef {
    name: "masked_log_softmax",
    surface: &[Surface::Npx("masked_log_softmax")],
    doc: "Logarithm of `masked_softmax`; masked elements are -inf. The largest element is always subtracted before the exponential.",
    example: "
        >>> npx.masked_log_softmax(np.array([0.0, 1.0, 2.0]), np.array([True, True, False]))
        array([-1.3132616 , -0.31326166,        -inf])
    ",
    cpu: Cpu::Composite(|context| context.done(masked(context, &LOG_SOFTMAX, f64::NEG_INFINITY)?)),
    ..MASKED
};

fn masked(context: &CallContext, op: &'static OpDef, outside: f64) -> Result<Array> {
    let (x, mask) = (context.input(0), context.input(1));
    let x = x.astype(operand::float_of(context, 0)?)?;
    let low = Array::constant(Scalar::F64(f64::NEG_INFINITY), x.dtype())?;
    let outside = Array::constant(Scalar::F64(outside), x.dtype())?;
    let attrs = attrs(
        context.int("axis"),
        context.get("temperature").clone(),
        false,
        Value::None,
    );
    let y = only(
        op,
        invoke_with(op, &[Some(&choose(mask, &x, &low)?), None], &attrs)?,
    )?;
    choose(mask, &y, &outside)
}

/// Attributes of [`SOFTMAX`] and [`LOG_SOFTMAX`].
fn attrs(axis: i64, temperature: Value, use_length: bool, dtype: Value) -> Attrs {
    [
        Value::Int(axis),
        temperature,
        Value::Bool(use_length),
        dtype,
    ]
    .into_iter()
    .collect()
}

/// Softmax along one axis.
pub(crate) fn softmax(x: &Array, axis: i64) -> Result<Array> {
    along(&SOFTMAX, x, axis)
}

/// The logarithm of softmax along one axis.
pub(crate) fn log_softmax(x: &Array, axis: i64) -> Result<Array> {
    along(&LOG_SOFTMAX, x, axis)
}

fn along(op: &'static OpDef, x: &Array, axis: i64) -> Result<Array> {
    let attrs = attrs(axis, Value::None, false, Value::None);
    only(op, invoke_with(op, &[Some(x), None], &attrs)?)
}

/// Checks that argument `i`, if it was given, has a length for each row along `axis`.
fn check_lengths(context: &CallContext, i: usize, axis: usize) -> Result<()> {
    let Some(length) = context.opt(i) else {
        return Ok(());
    };
    let rows: Dims = context
        .shape(0)
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != axis)
        .map(|(_, &n)| n)
        .collect();
    if length.shape() != rows.as_slice() {
        return Err(context.shape_error(format!(
            "`length` has shape {}, needs {}: the shape of the data without axis {axis}",
            Tuple(length.shape()),
            Tuple(&rows)
        )));
    }
    if !length.dtype().is_integer() {
        return Err(context.dtype_error(format!(
            "`length` is {}, needs integers",
            length.dtype().name()
        )));
    }
    Ok(())
}

fn shape_and_dtype(context: &CallContext) -> Result<Inferred> {
    let axis = context.axis("axis", 0)?;
    let mut dtype = operand::float_of(context, 0)?;
    if let Some(asked) = context.dtype("dtype") {
        if !asked.is_float() {
            return Err(context.dtype_error(format!(
                "the result cannot be {}: it is a real floating type",
                asked.name()
            )));
        }
        dtype = asked;
    }
    if let Some(t) = context
        .opt_float("temperature")
        .filter(|&t| t == 0.0 || t.is_nan())
    {
        return Err(context.value_error(format!("`temperature` is {t}")));
    }
    match (context.opt(1), context.bool("use_length")) {
        (None, true) => {
            return Err(context.value_error("`use_length` is True, but no `length` is given"));
        }
        (Some(_), false) => {
            return Err(context
                .value_error("a `length` is given, but `use_length` is False")
                .with_hint("pass use_length=True"));
        }
        (Some(_), true) => check_lengths(context, 1, axis)?,
        (None, false) => {}
    }
    one_of(Dims::from_slice(context.shape(0)), dtype)
}

/// The rows of a dense tensor, for the kernels.
fn rows(context: &KernelContext, x: &Tensor) -> Result<Softmax> {
    let axis = context.axis("axis", 0)?;
    let shape = x.shape();
    Ok(Softmax {
        elem: elem(x.dtype()),
        outer: shape[..axis].iter().product(),
        len: shape[axis],
        inner: shape[axis + 1..].iter().product(),
        temperature: context.opt_float("temperature").unwrap_or(1.0),
    })
}

fn run(context: &KernelContext, kind: Kind) -> Result<()> {
    let y = context.output(0);
    let dtype = operand::compute(y.dtype());
    let x = operand::dense(context.input(0), dtype, context.threads)?;
    let lengths = operand::dense_or_none(context.opt(1), DType::I32, context.threads)?;
    let out = Staged::new(y, dtype)?;
    let geometry = rows(context, &x)?;
    // SAFETY: 1. operands are dense, of `dtype` and of the shape that the geometry was made from; a length for each row. 2. no overlap.
    unsafe {
        kernel::softmax(
            context.threads,
            &geometry,
            kind,
            x.data_ptr(),
            operand::pointer(lengths.as_ref()).cast(),
            out.ptr(),
        );
    }
    out.finish(context.threads)
}

/// The gradient in one pass.
fn fused_slope(g: &GradContext, kind: Kind) -> Result<Grads> {
    let attrs: Attrs = [
        g.get("axis").clone(),
        g.get("temperature").clone(),
        Value::Bool(kind == Kind::LogSoftmax),
    ]
    .into_iter()
    .collect();
    let inputs = [Some(g.output(0)), Some(g.dy(0)), g.opt_input(1)];
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    grads[0] = Some(only(
        &SOFTMAX_GRADIENT,
        invoke_with(&SOFTMAX_GRADIENT, &inputs, &attrs)?,
    )?);
    Ok(grads)
}

/// Softmax: dx = y (dy - sum(dy y)) / t. Its logarithm: dx = (dy - p sum(dy)) / t, p being the softmax.
fn slope(g: &GradContext, kind: Kind) -> Result<Grads> {
    let length = g.opt_input(1);
    let (y, dy) = (g.output(0), g.dy(0));
    let axis = g.int("axis");
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    let dx = if kind == Kind::Softmax {
        y.mul(&dy.sub(&dy.mul(y)?.sum(Some(&[axis]), true)?)?)?
    } else {
        let attrs = attrs(
            axis,
            g.get("temperature").clone(),
            length.is_some(),
            g.get("dtype").clone(),
        );
        let p = only(
            &SOFTMAX,
            invoke_with(&SOFTMAX, &[Some(g.input(0)), length], &attrs)?,
        )?;
        let dy = match length {
            Some(length) => choose(
                &inside(length, y.shape(), axis)?,
                dy,
                &Array::constant(Scalar::I64(0), dy.dtype())?,
            )?,
            None => dy.clone(),
        };
        dy.sub(&p.mul(&dy.sum(Some(&[axis]), true)?)?)?
    };
    grads[0] = Some(match g.opt_float("temperature") {
        Some(t) => dx.scale(1.0 / t)?,
        None => dx,
    });
    Ok(grads)
}

/// Whether a position along `axis` is within its row's length; broadcasts to `shape`.
fn inside(length: &Array, shape: &[usize], axis: i64) -> Result<Array> {
    let axis = if axis < 0 {
        axis + shape.len() as i64
    } else {
        axis
    } as usize;
    let mut along: Dims = SmallVec::from_elem(1, shape.len());
    along[axis] = shape[axis];
    let mut rows = Dims::from_slice(shape);
    rows[axis] = 1;
    let positions = creation::arange(shape[axis], DType::I64)?.reshape(&along)?;
    positions.binary(&LESS, &length.astype(DType::I64)?.reshape(&rows)?)
}
