//! Cumulative sums, products and extremes.
#![allow(unsafe_code)]

use mxnet_kernels::reduce::{Source, Target};
use mxnet_kernels::scan::{Direction, Scan, scan};
use mxnet_tensor::{Casting, Dims, Layout, Scalar};

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::{CallContext, CompositeContext, KernelContext};
use crate::elementwise::comparison::EQUAL;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::memory_order;
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Form, Grad, Inferred, Keep, OpDef, OutSpec, Probe, Surface, one_of};
use crate::reduce::fold::{accumulator, wider_out};
use crate::shape::{concatenate, flip, moveaxis, narrow};
use crate::{Array, Outputs, creation};

/// Default fields for cumulative reductions.
const RUNNING: OpDef = OpDef {
    about: &[
        ("reverse", "Whether to start at the end."),
        ("dtype", "Dtype of the computation and of the result."),
    ],
    returns: &[("ndarray", "Of the shape of `a`; one axis for `axis=None`.")],
    params: &[
        Param::array("a"),
        Param::optional("axis", ParamKind::Int),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
        Param::bool("reverse", false).keyword(),
    ],
    form: Form::Out,
    out_casting: Casting::Unsafe,
    infer: running,
    order: Some(|context| match context.is_none("axis") {
        true => None,
        false => memory_order::as_inputs(context),
    }),
    cost: Cost::PerKiB(120),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((2, 3, 4)), 1",
        "f((2, 3)), -1",
        "i((3, 4), 5), 1",
        "f((0,))",
    ]),
    batch: Batch::Axes("axis"),
    ..OpDef::DEFAULT
};

/// Cumulative sum.
pub static CUMSUM: OpDef = OpDef {
    name: "cumsum",
    surface: &[Surface::Np("cumsum"), Surface::Method("cumsum")],
    doc: "Sum of all elements up to each one along `axis` (over the flattened array for None). `reverse=True` starts at the end.",
    example: "
        >>> np.cumsum([1, 2, 3])
        array([1, 3, 6])
        >>> np.cumsum([[1, 2], [3, 4]], axis=0)
        array([[1, 2],
               [4, 6]])
    ",
    cpu: Cpu::Kernel(|context| run(context, Scan::Sum)),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        // Element j is in every sum from j on, so its gradient is the cumulative sum of the cotangents from the other end.
        let attrs = attributes(g.opt_int("axis"), !g.bool("reverse"));
        g.one(invoke1(&CUMSUM, &[g.dy(0)], &attrs)?.reshape(g.shape(0))?)
    }),
    ..RUNNING
};

/// Cumulative product.
pub static CUMPROD: OpDef = OpDef {
    name: "cumprod",
    surface: &[Surface::Np("cumprod"), Surface::Method("cumprod")],
    doc: "Product of all elements up to each one along `axis` (over the flattened array for None). `reverse=True` starts at the end.",
    example: "
        >>> np.cumprod([1, 2, 3, 4])
        array([ 1,  2,  6, 24])
    ",
    cpu: Cpu::Kernel(|context| run(context, Scan::Prod)),
    grad: Grad::Rule(Keep::inputs(1), |g| {
        // Brings the axis to the end and the scan to the forward direction.
        let (x, axis) = match g.opt_int("axis") {
            None => (g.input(0).reshape(&[g.input(0).len()])?, 0),
            Some(axis) => (g.input(0).clone(), axis),
        };
        let to_last_axis = |x: &Array| -> Result<Array> {
            let x = moveaxis(x, axis, -1)?;
            if g.bool("reverse") {
                flip(&x, &[-1])
            } else {
                Ok(x)
            }
        };
        let dy = to_last_axis(g.dy(0))?;
        let dx = product_slope(&to_last_axis(&x)?.astype(dy.dtype())?.conj()?, &dy)?;
        let dx = if g.bool("reverse") {
            flip(&dx, &[-1])?
        } else {
            dx
        };
        g.one(moveaxis(&dx, -1, axis)?.reshape(g.shape(0))?)
    }),
    ..RUNNING
};

/// Default fields for cumulative reductions that ignore NaN.
const WITHOUT_NAN: OpDef = OpDef {
    about: &[("dtype", "Dtype of the computation and of the result.")],
    returns: RUNNING.returns,
    params: &[
        Param::array("a"),
        Param::optional("axis", ParamKind::Int),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
    ],
    form: Form::Out,
    out_casting: Casting::Unsafe,
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), 0",
        "f((2, 3, 4)), 1",
        "i((3, 4), 5), 1",
        "f((0,))",
    ]),
    ..OpDef::COMPOSITE
};

/// Cumulative sum in which NaN counts as 0.
pub static NANCUMSUM: OpDef = OpDef {
    name: "nancumsum",
    surface: &[Surface::Np("nancumsum")],
    doc: "Cumulative sums along `axis` (over the flattened array for None); NaN counts as 0.",
    example: "
        >>> np.nancumsum([1.0, np.nan, 2.0])
        array([1., 1., 3.])
    ",
    cpu: Cpu::Composite(|context| without_nan(context, &CUMSUM, 0)),
    ..WITHOUT_NAN
};

/// Cumulative product in which NaN counts as 1.
pub static NANCUMPROD: OpDef = OpDef {
    name: "nancumprod",
    surface: &[Surface::Np("nancumprod")],
    doc: "Cumulative products along `axis` (over the flattened array for None); NaN counts as 1.",
    example: "
        >>> np.nancumprod([2.0, np.nan, 3.0])
        array([2., 2., 6.])
    ",
    cpu: Cpu::Composite(|context| without_nan(context, &CUMPROD, 1)),
    ..WITHOUT_NAN
};

/// A running fold with `neutral` in the place of NaN.
fn without_nan(context: &CompositeContext, fold: &'static OpDef, neutral: i64) -> Result<Outputs> {
    let x = context.input(0);
    let filled = match x.dtype().is_inexact() {
        true => {
            let neutral = creation::full(&[], Scalar::I64(neutral), x.dtype(), x.device())?;
            choose(&x.binary(&EQUAL, x)?, x, &neutral)?
        }
        false => x.clone(),
    };
    let attrs: Attrs = [
        context.opt_int("axis").map_or(Value::None, Value::Int),
        context.dtype("dtype").map_or(Value::None, Value::DType),
        Value::Bool(false),
    ]
    .into_iter()
    .collect();
    context.done(invoke1(fold, &[&filled], &attrs)?)
}

/// Running products along an axis.
///
/// # Errors
/// [`crate::Error::Axis`] if there is no such axis; [`crate::Error::Memory`].
pub fn running_product(x: &Array, axis: i64) -> Result<Array> {
    invoke1(&CUMPROD, &[x], &attributes(Some(axis), false))
}

/// The gradient of cumulative products along the last axis with respect to the factors. It is computed without division, because factors may be 0:
/// the cotangent of x_i is the product of the factors before it times s_i = dy_i + x_(i+1) s_(i+1).
fn product_slope(x: &Array, dy: &Array) -> Result<Array> {
    let (last, n) = (x.ndim() - 1, x.shape()[x.ndim() - 1]);
    if n < 2 {
        return Ok(dy.clone());
    }
    // A parallel scan: after the step with distance d, s_i is the sum of its first 2 d terms, and factor_i the product of 2 d factors from x_(i+1)
    // on.
    let mut s = dy.clone();
    let mut factor = narrow(x, last, 1, n)?;
    let mut d = 1;
    while d < n {
        let more = factor.mul(&narrow(&s, last, d, n)?)?;
        let sums = narrow(&s, last, 0, n - d)?.add(&more)?;
        s = concatenate(&[&sums, &narrow(&s, last, n - d, n)?], last)?;
        if 2 * d < n {
            let (near, far) = (
                narrow(&factor, last, 0, n - 2 * d)?,
                narrow(&factor, last, d, n - d)?,
            );
            factor = near.mul(&far)?;
        }
        d *= 2;
    }
    let mut shape = Dims::from_slice(x.shape());
    shape[last] = 1;
    let one = creation::ones(&shape, x.dtype(), x.device())?;
    let attrs = attributes(Some(-1), false);
    let before = invoke1(&CUMPROD, &[&narrow(x, last, 0, n - 1)?], &attrs)?;
    concatenate(&[&one, &before], last)?.mul(&s)
}

/// Default fields for the cumulative reductions of the array API.
const CUMULATIVE: OpDef = OpDef {
    out_casting: Casting::Unsafe,
    about: &[
        (
            "include_initial",
            "Whether the result begins with the value of an empty sequence.",
        ),
        ("dtype", "Dtype of the computation and of the result."),
    ],
    returns: &[(
        "ndarray",
        "Of the shape of `x`, one longer with `include_initial`.",
    )],
    raises: &[(
        "ValueError",
        "If `axis` is left out and there are several axes.",
    )],
    params: &[
        Param::array("x"),
        Param::optional("axis", ParamKind::Int).keyword(),
        Param::optional("dtype", ParamKind::DType).keyword(),
        Param::out().keyword(),
        Param::bool("include_initial", false).keyword(),
    ],
    form: Form::Out,
    probe: Probe::calls(&[
        "f((5,))",
        "f((3, 4)), axis=1, include_initial=True",
        "f((3, 4)), axis=-2",
        "i((2, 3), 4), axis=0, dtype='float32', include_initial=True",
        "f((0,)), include_initial=True",
    ]),
    ..OpDef::COMPOSITE
};

/// Cumulative sum of the array API.
pub static CUMULATIVE_SUM: OpDef = OpDef {
    name: "cumulative_sum",
    surface: &[Surface::Np("cumulative_sum")],
    doc: "Sum of all elements up to each one along `axis`, which is required unless there is only one axis. `include_initial=True` puts a 0 in front.",
    example: "
        >>> np.cumulative_sum([1, 2, 3], include_initial=True)
        array([0, 1, 3, 6])
    ",
    cpu: Cpu::Composite(|context| cumulative(context, &CUMSUM, Scalar::I64(0))),
    ..CUMULATIVE
};

/// Cumulative product of the array API.
pub static CUMULATIVE_PROD: OpDef = OpDef {
    name: "cumulative_prod",
    surface: &[Surface::Np("cumulative_prod")],
    doc: "Product of all elements up to each one along `axis`, which is required unless there is only one axis. `include_initial=True` puts a 1 in front.",
    example: "
        >>> np.cumulative_prod([1, 2, 3])
        array([1, 2, 6])
    ",
    cpu: Cpu::Composite(|context| cumulative(context, &CUMPROD, Scalar::I64(1))),
    ..CUMULATIVE
};

fn cumulative(context: &CompositeContext, fold: &'static OpDef, first: Scalar) -> Result<Outputs> {
    let x = match context.input(0) {
        // A 0-d array is treated as an array of one element.
        x if x.ndim() == 0 => x.reshape(&[1])?,
        x => x.clone(),
    };
    let ndim = x.ndim();
    if ndim > 1 && context.is_none("axis") {
        return Err(context.value_error(format!(
            "`axis` must be given for an array with {ndim} axes"
        )));
    }
    let axis = match context.opt_int("axis") {
        Some(axis) => mxnet_tensor::normalize_axis(axis as isize, ndim)?,
        None => 0,
    };
    let attrs: Attrs = [
        Value::Int(axis as i64),
        context.dtype("dtype").map_or(Value::None, Value::DType),
        Value::Bool(false),
    ]
    .into_iter()
    .collect();
    let steps = invoke1(fold, &[&x], &attrs)?;
    if !context.bool("include_initial") {
        return context.done(steps);
    }
    let mut shape = Dims::from_slice(steps.shape());
    shape[axis] = 1;
    let first = creation::full(&shape, first, steps.dtype(), steps.device())?;
    context.done(concatenate(&[&first, &steps], axis)?)
}

/// Cumulative maximum: `maximum.accumulate`.
pub static CUMMAX: OpDef = OpDef {
    name: "cummax",
    doc: "Largest of all elements up to each one along `axis` (over the flattened array for None); NaN from the first NaN on.",
    cpu: Cpu::Kernel(|context| run(context, Scan::Max)),
    grad: Grad::Stop("composed of its steps while a gradient is recorded"),
    infer: extreme,
    probe: Probe::calls(EXTREMES).against("lambda a, axis=None, **k: numpy.maximum.accumulate(a if axis is not None else a.ravel(), axis or 0)").ulp(0),
    ..RUNNING
};

/// Cumulative minimum: `minimum.accumulate`.
pub static CUMMIN: OpDef = OpDef {
    name: "cummin",
    doc: "Smallest of all elements up to each one along `axis` (over the flattened array for None); NaN from the first NaN on.",
    cpu: Cpu::Kernel(|context| run(context, Scan::Min)),
    grad: Grad::Stop("composed of its steps while a gradient is recorded"),
    infer: extreme,
    probe: Probe::calls(EXTREMES).against("lambda a, axis=None, **k: numpy.minimum.accumulate(a if axis is not None else a.ravel(), axis or 0)").ulp(0),
    ..RUNNING
};

const EXTREMES: &[&str] = &[
    "f((3, 4))",
    "f((3, 4)), 0",
    "f((2, 3, 4)), 1",
    "i((3, 4), 5), 1",
    "b((3, 4)), 1",
    "f((0,))",
];

/// As [`running`], but the dtype stays that of the input.
fn extreme(context: &CallContext) -> Result<Inferred> {
    let natural = context.dtype("dtype").unwrap_or(context.dtype_of(0));
    Ok(running(context)?
        .into_iter()
        .map(|spec| OutSpec {
            dtype: Some(natural),
            ..spec
        })
        .collect())
}

fn attributes(axis: Option<i64>, reverse: bool) -> Attrs {
    [
        axis.map_or(Value::None, Value::Int),
        Value::None,
        Value::Bool(reverse),
    ]
    .into_iter()
    .collect()
}

fn running(context: &CallContext) -> Result<Inferred> {
    let dtype = context
        .dtype("dtype")
        .or_else(|| wider_out(context))
        .unwrap_or_else(|| accumulator(context.dtype_of(0)));
    if context.is_none("axis") || context.is_axis_of_scalar("axis", context.shape(0).len()) {
        return one_of(Dims::from_slice(&[context.input(0).len()]), dtype);
    }
    context.axis("axis", 0)?;
    one_of(Dims::from_slice(context.shape(0)), dtype)
}

fn run(context: &KernelContext, fold: Scan) -> Result<()> {
    let (x, y) = (context.input(0), context.output(0));
    // Floats with an integer `dtype` are converted before they are summed, as in NumPy.
    let whole;
    let x = if x.dtype().is_inexact() && !y.dtype().is_inexact() {
        whole = operand::dense(x, y.dtype(), context.threads)?;
        &whole
    } else {
        x
    };
    let direction = if context.bool("reverse") {
        Direction::Reverse
    } else {
        Direction::Forward
    };
    // Without an axis the elements are taken in C order, so a strided array is copied first.
    let flat = context.is_none("axis") || x.shape().is_empty();
    let dense;
    let x = if flat && !x.layout().is_contiguous() {
        dense = mxnet_tensor::Tensor::empty(x.shape(), x.dtype(), x.device())?;
        crate::cpu::copy(x, &dense, context.threads)?;
        &dense
    } else {
        x
    };
    let layout = if flat {
        Layout::contiguous(&[x.len()]).with_offset(x.layout().offset())
    } else {
        x.layout().clone()
    };
    let axis = if flat { 0 } else { context.axis("axis", 0)? };
    let view = x.with_layout(layout);
    let source = Source {
        ptr: view.data_ptr(),
        elem: elem(x.dtype()),
        shape: view.shape(),
        strides: &view.byte_strides(),
    };
    let target = Target {
        ptr: y.data_ptr(),
        elem: elem(y.dtype()),
        strides: &y.byte_strides(),
    };
    // SAFETY: 1. both layouts lie within their storages. 2. the output was allocated for this call, so it overlaps nothing.
    unsafe { scan(context.threads, fold, direction, &source, axis, &target) };
    Ok(())
}
