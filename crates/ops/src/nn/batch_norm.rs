//! Batch normalisation: one mean and variance for each channel. Normalisation of single samples is in `layer_norm.rs`.
#![allow(unsafe_code)]

use mxnet_kernels::norm::{self as kernel, BatchNorm, Statistics};
use mxnet_tensor::{DType, Dims, Tensor, normalize_axis};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::context::{CallContext, KernelContext};
use crate::error::{Error, Result, Tuple};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::nn::conv::NO_EFFECT;
use crate::nn::operand::{self, Staged};
use crate::opdef::{Amp, Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface};
use crate::{Array, Outputs};

pub(super) const NORM: OpDef = OpDef {
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(150),
    ..OpDef::DEFAULT
};

const NO_CALIBRATION: &str =
    "Must be None: it is the range of 8-bit results, which are not supported.";

/// Batch normalisation.
pub static BATCH_NORM: OpDef = OpDef {
    name: "batch_norm",
    surface: &[Surface::Npx("batch_norm")],
    params: &[
        Param::array("x"),
        Param::array("gamma"),
        Param::array("beta"),
        Param::array("running_mean"),
        Param::array("running_var"),
        Param::float("eps", 1e-3),
        Param::float("momentum", 0.9),
        Param::bool("fix_gamma", true),
        Param::bool("use_global_stats", false),
        Param::bool("output_mean_var", false),
        Param::int("axis", 1),
        Param::bool("cudnn_off", false),
        Param::optional("min_calib_range", ParamKind::Float),
        Param::optional("max_calib_range", ParamKind::Float),
    ],
    doc: "`(x - mean) / sqrt(var + eps) * gamma + beta`, with one mean, variance, gamma and beta for each position along `axis`. While training, \
        mean and variance are those of the batch (the variance is the mean squared deviation), and each running value becomes `momentum * running + \
        (1 - momentum) * batch`. Otherwise, and with `use_global_stats`, the running values are used. With `output_mean_var`, the mean and `1 / \
        sqrt(var + eps)` that were used are returned too.\n\nSource: Ioffe and Szegedy, Batch Normalization, 2015, algorithms 1 and 2.",
    about: &[
        ("gamma", "Scale of each channel."),
        ("beta", "Shift of each channel."),
        ("running_mean", "Mean of each channel, written while training."),
        ("running_var", "Variance of each channel, written while training."),
        ("eps", "Added to the variance."),
        ("momentum", "Factor of the previous running values."),
        ("fix_gamma", "Whether gamma counts as 1."),
        ("use_global_stats", "Whether the running values are used while training, too."),
        ("output_mean_var", "Whether mean and reciprocal deviation are returned too."),
        ("axis", "The axis of the channels."),
        ("cudnn_off", NO_EFFECT),
        ("min_calib_range", NO_CALIBRATION),
        ("max_calib_range", NO_CALIBRATION),
    ],
    returns: &[("ndarray", "Of the shape of `x`; with `output_mean_var` a tuple of three.")],
    raises: &[
        ("ValueError", "If a parameter does not have one element for each channel."),
    ],
    example: "
        >>> x = np.array([[1.0, 10.0], [3.0, 30.0]])
        >>> mean, variance = np.zeros(2), np.ones(2)
        >>> npx.batch_norm(x, np.ones(2), np.zeros(2), mean, variance, eps=0.0)
        array([[ 1., 10.],
               [ 3., 30.]])
        >>> with autograd.train_mode():
        ...     npx.batch_norm(x, np.ones(2), np.zeros(2), mean, variance, eps=0.0)
        array([[-1., -1.],
               [ 1.,  1.]])
        >>> mean
        array([0.2, 2. ])
    ",
    mutates: &[3, 4],
    cpu: Cpu::Composite(batch_norm),
    probe: Probe::calls(&[
        "f((4, 3)), f((3,)), f((3,)), np.ones((3,)), np.ones((3,)) * 3.0, fix_gamma=False",
        "f((2, 3, 4)), f((3,)), f((3,)), np.ones((3,)), np.ones((3,)) * 3.0",
        "f((2, 4, 3)), f((3,)), f((3,)), np.ones((3,)), np.ones((3,)) * 3.0, axis=-1, fix_gamma=False, output_mean_var=True",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Batch normalisation with the statistics of the batch.
pub static BATCH_NORM_TRAINING: OpDef = OpDef {
    name: "batch_norm_training",
    params: &[
        Param::array("x"),
        Param::optional_array("gamma"),
        Param::array("beta"),
        Param::array("running_mean"),
        Param::array("running_var"),
        Param::float("eps", 1e-3),
        Param::float("momentum", 0.9),
        Param::int("axis", 1),
    ],
    doc: "Result, mean, variance and inverse deviation of batch normalisation while training; updates the running statistics.",
    infer: |context| {
        let (dtype, c) = checked(context, &[1, 2, 3, 4])?;
        let per_channel = (Dims::from_slice(&[c]), operand::compute(dtype));
        let all = [
            (Dims::from_slice(context.shape(0)), dtype),
            per_channel.clone(),
            per_channel.clone(),
            per_channel,
        ];
        context.many(all)
    },
    cpu: Cpu::Kernel(train),
    grad: Grad::Fused(
        Keep {
            inputs: 0b11,
            outputs: 0b1110,
        },
        |g| {
            let gradients = if g.has_dy(1) || g.has_dy(2) || g.has_dy(3) {
                batch_slopes(g)?
            } else {
                fused_slopes(g, g.output(1), g.output(2), false)?
            };
            Ok(affine_grads(g, gradients))
        },
        |g| Ok(affine_grads(g, batch_slopes(g)?)),
    ),
    mutates: &[3, 4],
    probe: Probe::calls(&["f((4, 3)), f((3,)), f((3,)), np.zeros((3,)), np.ones((3,))"]).ulp(64),
    ..NORM
};

/// Batch normalisation with given statistics.
pub static BATCH_NORM_INFERENCE: OpDef = OpDef {
    name: "batch_norm_inference",
    params: &[
        Param::array("x"),
        Param::optional_array("gamma"),
        Param::array("beta"),
        Param::array("mean"),
        Param::array("var"),
        Param::float("eps", 1e-3),
        Param::int("axis", 1),
    ],
    doc: "Result and inverse deviation of batch normalisation with these statistics, through which no gradient flows.",
    infer: |context| {
        let (dtype, c) = checked(context, &[1, 2, 3, 4])?;
        context.many([
            (Dims::from_slice(context.shape(0)), dtype),
            (Dims::from_slice(&[c]), operand::compute(dtype)),
        ])
    },
    cpu: Cpu::Kernel(|context| {
        let (g, dtype) = channels(context)?;
        let x = operand::dense(context.input(0), dtype, context.threads)?;
        let [gamma, beta, mean, var] = four(context, [1, 2, 3, 4], dtype)?;
        let y = Staged::new(context.output(0), dtype)?;
        let at = |t: &Option<Tensor>| operand::pointer(t.as_ref()).cast_const();
        // SAFETY: 1. operands are dense, of `dtype`, with as many elements as the geometry says (inference checked). 2. the result overlaps none.
        unsafe {
            kernel::batch_norm_inference(
                context.threads,
                &g,
                x.data_ptr(),
                at(&gamma),
                at(&beta),
                at(&mean),
                at(&var),
                y.ptr(),
            )
        };
        inverse(context, var.as_ref(), context.output(1))?;
        y.finish(context.threads)
    }),
    grad: Grad::Fused(
        Keep {
            inputs: 0b11011,
            outputs: 0b10,
        },
        |g| {
            let gradients = fused_slopes(g, g.input(3), g.input(4), true)?;
            Ok(affine_grads(g, gradients))
        },
        |g| Ok(affine_grads(g, given_slopes(g)?)),
    ),
    probe: Probe::calls(&["f((4, 3)), f((3,)), f((3,)), np.ones((3,)), np.ones((3,)) * 3.0"])
        .ulp(64),
    ..NORM
};

/// Gradients of batch normalisation, fused in one kernel.
pub static BATCH_NORM_GRADIENT: OpDef = OpDef {
    name: "batch_norm_gradient",
    params: &[
        Param::array("x"),
        Param::array("dy"),
        Param::optional_array("gamma"),
        Param::array("mean"),
        Param::array("var"),
        Param::float("eps", 1e-3),
        Param::int("axis", 1),
        Param::bool("fixed", false),
    ],
    doc: "Gradients of batch normalisation with respect to x, gamma and beta; `fixed` for statistics that do not depend on x.",
    infer: |context| {
        let (dtype, c) = checked(context, &[2, 3, 4])?;
        if context.shape(1) != context.shape(0) {
            return Err(context.shape_error("`dy` must have the shape of `x`"));
        }
        let per_channel = (Dims::from_slice(&[c]), operand::compute(dtype));
        context.many([
            (Dims::from_slice(context.shape(0)), dtype),
            per_channel.clone(),
            per_channel,
        ])
    },
    cpu: Cpu::Kernel(|context| {
        let (g, dtype) = channels(context)?;
        let x = operand::dense(context.input(0), dtype, context.threads)?;
        let dy = operand::dense(context.input(1), dtype, context.threads)?;
        let [gamma, mean, var, _] = four(context, [2, 3, 4, usize::MAX], dtype)?;
        let dx = Staged::new(context.output(0), dtype)?;
        let statistics = if context.bool("fixed") {
            Statistics::Fixed
        } else {
            Statistics::Batch
        };
        let at = |t: &Option<Tensor>| operand::pointer(t.as_ref()).cast_const();
        // SAFETY: 1. operands are dense, of `dtype`, with as many elements as the geometry says (inference checked). 2. results overlap none.
        unsafe {
            kernel::batch_norm_backward(
                context.threads,
                &g,
                statistics,
                x.data_ptr(),
                dy.data_ptr(),
                at(&gamma),
                at(&mean),
                at(&var),
                dx.ptr(),
                context.output(1).data_ptr(),
                context.output(2).data_ptr(),
            );
        }
        dx.finish(context.threads)
    }),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    probe: Probe::calls(&["f((4, 3)), f((4, 3)), f((3,)), np.ones((3,)), np.ones((3,)) * 3.0"])
        .ulp(64),
    ..NORM
};

fn batch_norm(context: &CallContext) -> Result<Outputs> {
    for name in ["min_calib_range", "max_calib_range"] {
        if *context.get(name) != Value::None {
            return Err(Error::value(
                context.op.name,
                format!(
                    "`{name}` must be None: it is a range of 8-bit results, which are not supported"
                ),
            )
            .with_hint("`clip` the result to limit it"));
        }
    }
    let gamma = if context.bool("fix_gamma") {
        None
    } else {
        context.opt(1)
    };
    let inputs = [
        context.opt(0),
        gamma,
        context.opt(2),
        context.opt(3),
        context.opt(4),
    ];
    let (eps, axis) = (context.get("eps").clone(), context.get("axis").clone());
    let (y, mean, inverse) = if context.training && !context.bool("use_global_stats") {
        let attrs: Attrs = [eps, context.get("momentum").clone(), axis]
            .into_iter()
            .collect();
        let out = invoke_with(&BATCH_NORM_TRAINING, &inputs, &attrs)?;
        (out[0].clone(), out[1].clone(), out[3].clone())
    } else {
        let attrs: Attrs = [eps, axis].into_iter().collect();
        let out = invoke_with(&BATCH_NORM_INFERENCE, &inputs, &attrs)?;
        (out[0].clone(), context.input(3).clone(), out[1].clone())
    };
    Ok(if context.bool("output_mean_var") {
        SmallVec::from_iter([y, mean, inverse])
    } else {
        SmallVec::from_iter([y])
    })
}

fn train(context: &KernelContext) -> Result<()> {
    let (g, dtype) = channels(context)?;
    let x = operand::dense(context.input(0), dtype, context.threads)?;
    let [gamma, beta, ..] = four(context, [1, 2, usize::MAX, usize::MAX], dtype)?;
    let y = Staged::new(context.output(0), dtype)?;
    let (mean, var) = (context.output(1), context.output(2));
    let at = |t: &Option<Tensor>| operand::pointer(t.as_ref()).cast_const();
    // SAFETY: 1. operands are dense, of `dtype`, with as many elements as the geometry says (inference checked). 2. results overlap none.
    unsafe {
        kernel::batch_norm_training(
            context.threads,
            &g,
            x.data_ptr(),
            at(&gamma),
            at(&beta),
            y.ptr(),
            mean.data_ptr(),
            var.data_ptr(),
        );
    }
    inverse(context, Some(var), context.output(3))?;
    let momentum = context.float("momentum");
    for (running, batch) in [(context.input(3), mean), (context.input(4), var)] {
        let old = operand::dense(running, DType::F64, context.threads)?;
        let new = operand::dense(batch, DType::F64, context.threads)?;
        let moved = Staged::new(running, DType::F64)?;
        compute(moved.tensor(), [&old, &new], |[old, new]| {
            momentum * old + (1.0 - momentum) * new
        });
        moved.finish(context.threads)?;
    }
    y.finish(context.threads)
}

/// `1 / sqrt(var + eps)` of each channel.
fn inverse(context: &KernelContext, var: Option<&Tensor>, out: &Tensor) -> Result<()> {
    let eps = context.float("eps");
    let Some(var) = var else { return Ok(()) };
    let dtype = out.dtype();
    let var = operand::dense(var, dtype, context.threads)?;
    let staged = Staged::new(out, dtype)?;
    // SAFETY: dense vectors of this dtype, with an element for each channel.
    unsafe {
        kernel::over_deviations(
            elem(dtype),
            out.len(),
            std::ptr::null(),
            var.data_ptr(),
            eps,
            staged.ptr(),
        )
    };
    staged.finish(context.threads)
}

/// Computes each element of `to` from those of `from`: dense tensors of float64 of the same size. `to` may be one of `from`.
fn compute<const N: usize>(to: &Tensor, from: [&Tensor; N], f: impl Fn([f64; N]) -> f64) {
    let is_usable =
        |x: &Tensor| x.dtype() == DType::F64 && x.layout().is_contiguous() && x.len() == to.len();
    assert!(is_usable(to) && from.iter().all(|x| is_usable(x)));
    let (to_ptr, from) = (
        to.data_ptr().cast::<f64>(),
        from.map(|x| x.data_ptr().cast::<f64>()),
    );
    for i in 0..to.len() {
        // SAFETY: checked above: dense, of this type, and `i` inside; the caller holds the grants.
        unsafe { *to_ptr.add(i) = f(from.map(|x| *x.add(i))) };
    }
}

/// The data's dtype and number of channels; arguments `vectors` must have one element a channel.
fn checked(context: &CallContext, vectors: &[usize]) -> Result<(DType, usize)> {
    let dtype = operand::float_of(context, 0)?;
    let axis = context.axis("axis", 0)?;
    let c = context.shape(0)[axis];
    for &i in vectors {
        if let Some(vector) = context.opt(i).filter(|v| v.shape() != [c]) {
            let name = context.op.array_params().nth(i).map_or("", |p| p.name);
            return Err(context.shape_error(format!(
                "`{name}` has shape {}, needs ({c},): axis {axis} of the data",
                Tuple(vector.shape())
            )));
        }
    }
    Ok((dtype, c))
}

fn channels(context: &KernelContext) -> Result<(BatchNorm, DType)> {
    let axis = context.axis("axis", 0)?;
    let shape = context.input(0).shape();
    let dtype = operand::compute(context.output(0).dtype());
    let g = BatchNorm {
        elem: elem(dtype),
        n: shape[..axis].iter().product(),
        c: shape[axis],
        inner: shape[axis + 1..].iter().product(),
        epsilon: context.float("eps"),
    };
    Ok((g, dtype))
}

/// Dense copies of four arguments (or the arguments themselves); `None` for absent ones (index out of range of the inputs).
pub(super) fn four(
    context: &KernelContext,
    at: [usize; 4],
    dtype: DType,
) -> Result<[Option<Tensor>; 4]> {
    let [a, b, c, d] = at.map(|i| operand::dense_or_none(context.opt(i), dtype, context.threads));
    Ok([a?, b?, c?, d?])
}

fn per_channel_shape(g: &GradContext) -> Result<Dims> {
    let shape = g.shape(0);
    let axis = normalize_axis(g.int("axis") as isize, shape.len())?;
    Ok((0..shape.len())
        .map(|i| if i == axis { shape[i] } else { 1 })
        .collect())
}

fn all_but_channel(g: &GradContext) -> Result<SmallVec<[i64; 4]>> {
    let ndim = g.shape(0).len();
    let axis = normalize_axis(g.int("axis") as isize, ndim)?;
    Ok((0..ndim).filter(|&i| i != axis).map(|i| i as i64).collect())
}

/// dx, dgamma, dbeta as gradients of (x, gamma, beta, …).
pub(super) fn affine_grads(g: &GradContext, gradients: Outputs) -> Grads {
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    for (i, gradient) in gradients.into_iter().enumerate().take(3) {
        if g.wants(i) {
            grads[i] = Some(gradient);
        }
    }
    grads
}

/// Gradients of batch normalisation composed of differentiable operators. With h = (x - mean) * inverse and e = dy * gamma:
/// dx = inverse * (e - mean(e) - h mean(e h)), plus the cotangents of the returned statistics.
fn batch_slopes(g: &GradContext) -> Result<Outputs> {
    let shape = per_channel_shape(g)?;
    let axes = all_but_channel(g)?;
    let n =
        g.shape(0).iter().product::<usize>() as f64 / shape.iter().product::<usize>().max(1) as f64;
    let x = g.input(0).astype(g.output(1).dtype())?;
    let dy = g.dy(0).astype(g.output(1).dtype())?;
    let inverse = g.output(3).reshape(&shape)?;
    let centred = x.sub(&g.output(1).reshape(&shape)?)?;
    let hat = centred.mul(&inverse)?;
    let weighed = match g.opt_input(1) {
        Some(gamma) => dy.mul(&gamma.reshape(&shape)?)?,
        None => dy.clone(),
    };
    let inner = weighed
        .sub(&weighed.mean(Some(&axes), true)?)?
        .sub(&hat.mul(&weighed.mul(&hat)?.mean(Some(&axes), true)?)?)?;
    let mut dx = inner.mul(&inverse)?;
    if g.has_dy(1) {
        dx = dx.add(&g.dy(1).reshape(&shape)?.scale(1.0 / n)?)?;
    }
    if g.has_dy(2) {
        dx = dx.add(&g.dy(2).reshape(&shape)?.scale(2.0 / n)?.mul(&centred)?)?;
    }
    if g.has_dy(3) {
        // d inverse = -inverse^3 / 2 d var.
        let cube = inverse.mul(&inverse.square()?)?;
        dx = dx.sub(
            &g.dy(3)
                .reshape(&shape)?
                .scale(1.0 / n)?
                .mul(&cube)?
                .mul(&centred)?,
        )?;
    }
    let mut all = Outputs::new();
    all.push(dx);
    all.push(dy.mul(&hat)?.sum(Some(&axes), false)?);
    all.push(dy.sum(Some(&axes), false)?);
    Ok(all)
}

/// The gradients with respect to data, scale and shift for given statistics.
fn given_slopes(g: &GradContext) -> Result<Outputs> {
    let shape = per_channel_shape(g)?;
    let centred = g.input(0).sub(&g.input(3).reshape(&shape)?)?;
    let inverse = g.output(1).detach().reshape(&shape)?;
    let weighed = match g.opt_input(1) {
        Some(gamma) => inverse.mul(&gamma.reshape(&shape)?)?,
        None => inverse.clone(),
    };
    let axes = all_but_channel(g)?;
    let mut all = Outputs::new();
    all.push(g.dy(0).mul(&weighed)?);
    all.push(
        g.dy(0)
            .mul(&centred.mul(&inverse)?)?
            .sum(Some(&axes), false)?,
    );
    all.push(g.dy(0).sum(Some(&axes), false)?);
    Ok(all)
}

/// The gradients with respect to data, scale and shift, fused in one kernel; `fixed` if the statistics do not depend on the data.
fn fused_slopes(g: &GradContext, mean: &Array, var: &Array, fixed: bool) -> Result<Outputs> {
    let attrs: Attrs = [
        g.get("eps").clone(),
        g.get("axis").clone(),
        Value::Bool(fixed),
    ]
    .into_iter()
    .collect();
    let inputs = [
        Some(g.input(0)),
        Some(g.dy(0)),
        g.opt_input(1),
        Some(mean),
        Some(var),
    ];
    invoke_with(&BATCH_NORM_GRADIENT, &inputs, &attrs)
}
