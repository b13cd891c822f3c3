//! Losses: cross entropy with integer labels, connectionist temporal classification and others that need a kernel.
#![allow(unsafe_code)]

use mxnet_kernels::softmax::{self as kernel, Softmax};
use mxnet_tensor::{DType, Dims, Scalar, Tensor};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::elementwise::comparison::{EQUAL, LESS};
use crate::elementwise::select::choose;
use crate::error::{Result, Tuple};
use crate::invoke::{invoke, invoke1};
use crate::launch::elem;
use crate::nn::operand::{self, Staged};
use crate::nn::softmax::softmax;
use crate::opdef::{Amp, Cost, Cpu, Form, Grad, Grads, Keep, OpDef, Probe, Surface};
use crate::{Array, creation, only};

const PARAMS: &[Param] = &[
    Param::array("data"),
    Param::array("label"),
    Param::int("axis", -1),
    Param::optional("ignore", ParamKind::Int),
];

/// The negative log-probability of one class.
pub static SPARSE_CROSS_ENTROPY: OpDef = OpDef {
    name: "sparse_cross_entropy",
    reports_as: Some("SoftmaxCrossEntropyLoss"),
    params: PARAMS,
    doc: "Minus the logarithm of the softmax of `data` along `axis` at the class that `label` (the data's shape without the axis) names. A label out of range gives NaN, the label `ignore` gives 0.",
    cpu: Cpu::Composite(|context| {
        let found = invoke(
            &CROSS_ENTROPY,
            &[context.input(0), context.input(1)],
            context.args.attrs,
        )?;
        context.done(only(&CROSS_ENTROPY, found)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), i((3,), 4)",
        "f((2, 4, 3)), i((2, 3), 4), 1",
        "f((3, 4)), i((3,), 4), -1, 0",
    ])
    .ulp(16),
    positions: &[1],
    ..OpDef::COMPOSITE
};

/// Cross entropy and log-sum-exp.
pub static CROSS_ENTROPY: OpDef = OpDef {
    name: "cross_entropy",
    params: PARAMS,
    doc: "Result of `sparse_cross_entropy` and the logarithm of the sum of exponentials of each row.",
    infer: |context| {
        let rows = rows_of(context, 0, 1)?;
        let dtype = operand::float_of(context, 0)?;
        context.many([(rows.clone(), dtype), (rows, dtype)])
    },
    cpu: Cpu::Kernel(|context| {
        let (loss, lse) = (context.output(0), context.output(1));
        let dtype = operand::compute(loss.dtype());
        let x = operand::dense(
            &axis_last(context, context.input(0))?,
            dtype,
            context.threads,
        )?;
        let labels = operand::dense(context.input(1), DType::I64, context.threads)?;
        let (loss, lse) = (Staged::new(loss, dtype)?, Staged::new(lse, dtype)?);
        // SAFETY: 1. rows are dense and of `dtype`, with one label, loss and sum each (inference checked). 2. results overlap nothing.
        unsafe {
            kernel::cross_entropy(
                context.threads,
                &rows(&x),
                x.data_ptr(),
                labels.data_ptr().cast(),
                context.opt_int("ignore"),
                loss.ptr(),
                lse.ptr(),
            );
        }
        loss.finish(context.threads)?;
        lse.finish(context.threads)
    }),
    grad: Grad::Fused(
        Keep {
            inputs: 0b11,
            outputs: 0b10,
        },
        |g| {
            let mut grads: Grads = SmallVec::from_elem(None, 2);
            grads[0] = Some(if g.has_dy(1) || !g.input(0).dtype().is_float() {
                slope(g)?
            } else {
                let attrs: Attrs = [g.get("axis").clone(), g.get("ignore").clone()]
                    .into_iter()
                    .collect();
                let inputs = [g.input(0), g.input(1), g.output(1), g.dy(0)];
                only(
                    &CROSS_ENTROPY_GRADIENT,
                    invoke(&CROSS_ENTROPY_GRADIENT, &inputs, &attrs)?,
                )?
            });
            Ok(grads)
        },
        |g| Ok(SmallVec::from_iter([Some(slope(g)?), None])),
    ),
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(500),
    probe: Probe::calls(&["f((3, 4)), i((3,), 4)"]).ulp(16),
    batch: Batch::Axes("axis"),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// The gradient of cross entropy, in one pass.
pub static CROSS_ENTROPY_GRADIENT: OpDef = OpDef {
    name: "cross_entropy_gradient",
    params: &[
        Param::array("data"),
        Param::array("label"),
        Param::array("lse"),
        Param::array("dloss"),
        Param::int("axis", -1),
        Param::optional("ignore", ParamKind::Int),
    ],
    doc: "Gradient of `sparse_cross_entropy` with respect to `data`, given its log-sum-exp and the loss's cotangent.",
    infer: |context| {
        let rows = rows_of(context, 0, 1)?;
        context.check_shape(2, &rows)?;
        context.check_shape(3, &rows)?;
        context.same_as(0)
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let dtype = operand::compute(out.dtype());
        let x = operand::dense(
            &axis_last(context, context.input(0))?,
            dtype,
            context.threads,
        )?;
        let labels = operand::dense(context.input(1), DType::I64, context.threads)?;
        let lse = operand::dense(context.input(2), dtype, context.threads)?;
        let dloss = operand::dense(context.input(3), dtype, context.threads)?;
        let dx = Staged::new(&axis_last(context, out)?, dtype)?;
        // SAFETY: 1. rows are dense and of `dtype`, with one label, sum and cotangent each (those of the forward call). 2. the result overlaps nothing.
        unsafe {
            kernel::cross_entropy_backward(
                context.threads,
                &rows(&x),
                x.data_ptr(),
                labels.data_ptr().cast(),
                context.opt_int("ignore"),
                lse.data_ptr(),
                dloss.data_ptr(),
                dx.ptr(),
            );
        }
        dx.finish(context.threads)
    }),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    cost: Cost::PerKiB(500),
    probe: Probe::calls(&["f((3, 4)), i((3,), 4), f((3,)), f((3,))"]).ulp(16),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Smooth L1 (Huber) loss: quadratic near zero, linear outside.
pub static SMOOTH_L1: OpDef = OpDef {
    name: "smooth_l1",
    surface: &[Surface::Npx("smooth_l1")],
    params: &[Param::array("data"), Param::float("scalar", 1.0)],
    doc: "With s = `scalar`: `(s x)^2 / 2` where `|x| < 1 / s^2`, else `|x| - 1 / (2 s^2)`, element by element.\n\nSource: Girshick, Fast R-CNN, \
        2015, equation 3 (for s = 1).",
    about: &[("scalar", "The s of the formula.")],
    returns: &[("ndarray", "Of the shape of `data`.")],
    example: "
        >>> npx.smooth_l1(np.array([-3.0, 0.5, 1.0]))
        array([2.5  , 0.125, 0.5  ])
    ",
    form: Form::Out,
    cpu: Cpu::Composite(|context| {
        let s2 = context.float("scalar").powi(2);
        let x = context.input(0).astype(operand::float_of(context, 0)?)?;
        let size = x.abs()?;
        let near = size.with_scalar(&LESS, 1.0 / s2)?;
        context.done(choose(
            &near,
            &x.square()?.scale(0.5 * s2)?,
            &size.shift(-0.5 / s2)?,
        )?)
    }),
    probe: Probe::calls(&["f((3, 4))", "f((3, 4)), 2.0"]),
    ..OpDef::COMPOSITE
};

/// The shape of argument `data` without the class axis. An error unless argument `label` has it.
fn rows_of(context: &CallContext, data: usize, label: usize) -> Result<Dims> {
    let axis = context.axis("axis", data)?;
    let rows: Dims = context
        .shape(data)
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != axis)
        .map(|(_, &n)| n)
        .collect();
    if context.shape(label) != rows.as_slice() {
        return Err(context.shape_error(format!(
            "`label` has shape {}, needs {}: the shape of the data without axis {axis}",
            Tuple(context.shape(label)),
            Tuple(&rows)
        )));
    }
    Ok(rows)
}

/// A view of a tensor like the data with the class axis moved to the end.
fn axis_last(context: &KernelContext, x: &Tensor) -> Result<Tensor> {
    let axis = context.axis("axis", 0)?;
    Ok(x.with_layout(x.layout().move_axis(&[axis as isize], &[-1])?))
}

fn rows(x: &Tensor) -> Softmax {
    let len = x.shape().last().copied().unwrap_or(1);
    Softmax {
        elem: elem(x.dtype()),
        outer: x.shape()[..x.ndim().saturating_sub(1)].iter().product(),
        len,
        inner: 1,
        temperature: 1.0,
    }
}

/// (softmax - one-hot) * dloss + softmax * dlse; ignored labels add nothing to the first term.
fn slope(g: &GradContext) -> Result<Array> {
    let (x, label) = (g.input(0), g.input(1).astype(DType::I64)?);
    let ndim = x.ndim();
    let axis = mxnet_tensor::normalize_axis(g.int("axis") as isize, ndim)?;
    let mut kept = Dims::from_slice(x.shape());
    kept[axis] = 1;
    let mut along: Dims = SmallVec::from_elem(1, ndim);
    along[axis] = x.shape()[axis];
    let p = softmax(x, axis as i64)?;
    let classes = creation::arange(x.shape()[axis], DType::I64)?.reshape(&along)?;
    let label = label.reshape(&kept)?;
    let hit = classes.binary(&EQUAL, &label)?.astype(p.dtype())?;
    let mut dloss = g.dy(0).reshape(&kept)?;
    if let Some(ignore) = g.opt_int("ignore") {
        let ignored = label.binary(&EQUAL, &Array::constant(Scalar::I64(ignore), DType::I64)?)?;
        dloss = choose(
            &ignored,
            &Array::constant(Scalar::I64(0), dloss.dtype())?,
            &dloss,
        )?;
    }
    let mut dx = p.sub(&hit)?.mul(&dloss)?;
    if g.has_dy(1) {
        dx = dx.add(&p.mul(&g.dy(1).reshape(&kept)?)?)?;
    }
    Ok(dx)
}

/// Cross entropy of the softmax of `data` along `axis`, at the classes that `label` names.
///
/// # Errors
/// Those of the operator.
pub fn sparse_cross_entropy(data: &Array, label: &Array, axis: i64) -> Result<Array> {
    let attrs: Attrs = [Value::Int(axis), Value::None].into_iter().collect();
    invoke1(&SPARSE_CROSS_ENTROPY, &[data, label], &attrs)
}
