//! Convolution in one to three dimensions, and its two gradients, which are each other's gradients too. The transposed convolution is in
//! `conv/transposed.rs`.
#![allow(unsafe_code)]

mod geometry;
mod normalised;
mod transposed;

use mxnet_kernels::conv::{self, Conv, Epilogue, Weights};
use mxnet_tensor::{Dims, Tensor};
use smallvec::SmallVec;

use crate::args::{Args, Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::elementwise::network::RELU_GRAD;
use crate::error::{Result, Tuple};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::nn::conv_batch;
use crate::nn::linear::check_bias;
use crate::nn::operand::{self, Form, Staged};
use crate::opdef::{Amp, Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface, one};
use crate::types::Types;
use crate::workspace;
use crate::{Array, only};

pub(super) use geometry::{
    Case, channels_first, channels_first_layout, extents, is_channels_last, sizes, spatial_axes,
};
pub use normalised::CONVOLUTION_BATCH_NORM;
pub use transposed::DECONVOLUTION;

/// Values of the attribute `layout`: the position of the channels.
pub(super) const LAYOUTS: &[&str] = &["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"];

/// Description of parameters that choose an algorithm of MXNet 2.
pub(super) const NO_EFFECT: &str = "Accepted for compatibility with MXNet 2; has no effect.";

pub(super) const STRIDE: Param = Param::optional("stride", ParamKind::Ints);
pub(super) const DILATE: Param = Param::optional("dilate", ParamKind::Ints);
pub(super) const PAD: Param = Param::optional("pad", ParamKind::Ints);
pub(super) const GROUPS: Param = Param::int("num_group", 1);
pub(super) const LAYOUT: Param = Param::optional("layout", ParamKind::Choice(LAYOUTS));
// MXNet 2 chooses its algorithms by these.
const WORKSPACE: Param = Param::int("workspace", 1024);
const CUDNN_TUNE: Param = Param::optional(
    "cudnn_tune",
    ParamKind::Choice(&["off", "limited_workspace", "fastest"]),
);
const CUDNN_OFF: Param = Param::bool("cudnn_off", false);

/// Parameters of a convolution: its arrays, the attributes of every convolution, others behind `pad`, and others at the end.
macro_rules! conv_params {
    ($($array:expr),*; $($behind_pad:expr),*; $($last:expr),*) => {
        &[
            $($array,)*
            Param::optional("kernel", ParamKind::Ints),
            STRIDE,
            DILATE,
            PAD,
            $($behind_pad,)*
            Param::optional("num_filter", ParamKind::Int),
            GROUPS,
            WORKSPACE,
            Param::bool("no_bias", false),
            CUDNN_TUNE,
            CUDNN_OFF,
            LAYOUT,
            $($last,)*
        ]
    };
}
use conv_params;

/// Default fields for the four operators of this file.
const CONV: OpDef = OpDef {
    about: &[
        ("data", "The images, (n, c, [d, [h,]] w)."),
        (
            "weight",
            "The filters, `(num_filter, c / num_group, *kernel)`.",
        ),
        ("bias", "One number for each filter."),
        (
            "kernel",
            "Sizes of the filters; those of `weight` for None.",
        ),
        ("stride", "Distance between windows, 1 for None."),
        (
            "dilate",
            "Distance between the elements of a window, 1 for None.",
        ),
        ("pad", "Zeros on both sides of each axis, none for None."),
        (
            "num_filter",
            "Number of filters; that of `weight` for None.",
        ),
        (
            "num_group",
            "Number of groups of channels that are convolved separately.",
        ),
        ("workspace", NO_EFFECT),
        ("no_bias", "Whether there is no bias."),
        ("cudnn_tune", NO_EFFECT),
        ("cudnn_off", NO_EFFECT),
        (
            "layout",
            "Order of the axes of `data`; the channels first for None.",
        ),
    ],
    returns: &[("ndarray", "Of shape (n, num_filter, ...).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    types: Types::REAL_FLOAT,
    amp: Amp::Narrow,
    ..OpDef::DEFAULT
};

/// Convolution.
pub static CONVOLUTION: OpDef = OpDef {
    name: "convolution",
    surface: &[Surface::Npx("convolution")],
    params: conv_params![Param::array("data"), Param::array("weight"), Param::optional_array("bias");;],
    doc: "Convolution (cross-correlation) over one to three spatial axes. `data` is (n, c, [d, [h,]] w) and `weight` `(num_filter, c / num_group, \
          *kernel)`; with the layouts NWC, NHWC and NDHWC the channels are the last axis of both. `stride` and `dilate` are 1 by default, `pad` zeros are added on both sides of each axis. `kernel` and `num_filter` are taken from the weight by default.",
    example: "
        >>> data = np.arange(5, dtype='float32').reshape(1, 1, 5)
        >>> weight = np.array([[[1.0, 0.0, -1.0]]])
        >>> npx.convolution(data, weight, kernel=(3,), num_filter=1, no_bias=True)
        array([[[-2., -2., -2.]]])
        >>> npx.convolution(data, weight, kernel=(3,), pad=(1,), stride=(2,), num_filter=1, no_bias=True)
        array([[[-1., -2.,  3.]]])
    ",
    infer: |context| {
        let weight = context.shape(1);
        let case = Case::of(context, context.shape(0), weight)?;
        if let Some(kernel) = context.opt_ints("kernel") {
            let found: SmallVec<[i64; 3]> = case.kernel().iter().map(|&k| k as i64).collect();
            if kernel != &found[..]
                && !(context.is_single("kernel") && found.iter().all(|&k| k == kernel[0]))
            {
                return Err(context.shape_error(format!(
                    "`kernel` is {}, the weight has kernel {}",
                    Tuple(kernel),
                    Tuple(&found)
                )));
            }
        }
        if let Some(filters) = context.opt_int("num_filter").filter(|&n| n != weight[0] as i64) {
            return Err(context.shape_error(format!(
                "`num_filter` is {filters}, the first axis of `weight` has size {}",
                weight[0]
            )));
        }
        check_bias(context, 2, weight[0])?;
        case.output()
    },
    cpu: Cpu::Kernel(|context| convolve(context, None, None, false)),
    grad: Grad::Rule(Keep::inputs(0b11), |g| gradients(g, g.dy(0))),
    cost: Cost::Of(|context| Case::of(context, context.shape(0), context.shape(1)).map_or(0, |case| case.cost_ns())),
    probe: Probe::calls(&[
        "f((2, 3, 7)), f((4, 3, 3)), f((4,)), (3,)",
        "f((2, 4, 6, 5)), f((6, 2, 3, 2)), f((6,)), (3, 2), (2, 1), (1, 2), (1, 1), 6, 2",
        "f((1, 2, 4, 5, 3)), f((3, 2, 2, 2, 2)), None, (2, 2, 2), no_bias=True, pad=(1, 0, 1)",
        "f((2, 6, 5, 3)), f((4, 3, 3, 3)), f((4,)), (3, 3), layout='NHWC'",
        "f((0, 3, 7)), f((4, 3, 3)), no_bias=True",
    ])
    .ulp(64),
    batch: Batch::Rule(conv_batch::batched),
    ..CONV
};

/// Convolution fused with relu. A graph pass replaces the two operators by it.
pub static CONVOLUTION_RELU: OpDef = OpDef {
    name: "convolution_relu",
    params: CONVOLUTION.params,
    doc: "`relu(convolution(data, weight, bias))`, bit for bit the result of the two operators.",
    infer: CONVOLUTION.infer,
    cpu: Cpu::Kernel(|context| convolve(context, None, None, true)),
    grad: Grad::Rule(
        Keep {
            inputs: 0b11,
            outputs: 0b1,
        },
        |g| gradients(g, &g.dy(0).binary(&RELU_GRAD, g.output(0))?),
    ),
    cost: CONVOLUTION.cost,
    probe: Probe::calls(&[
        "f((2, 4, 6, 5)), f((6, 2, 3, 2)), f((6,)), (3, 2), (2, 1), (1, 2), (1, 1), 6, 2",
    ])
    .ulp(64),
    ..CONV
};

/// A convolution and what follows it, see [`Epilogue`]. The vectors of `norm` are dense, of the dtype in which the result is computed, with an element
/// for each filter.
fn convolve(
    context: &KernelContext,
    norm: Option<[*const u8; 3]>,
    addend: Option<&Tensor>,
    relu: bool,
) -> Result<()> {
    let case = Case::of(
        &context.args,
        context.input(0).shape(),
        context.input(1).shape(),
    )?;
    let y = context.output(0);
    let dtype = operand::compute(y.dtype());
    let geometry = Conv {
        elem: elem(dtype),
        ..case.conv
    };
    let x = operand::dense(&case.first(context.input(0))?, dtype, context.threads)?;
    let weight = case.first(context.input(1))?;
    let dense = || operand::dense(&weight, dtype, context.threads);
    let packed = match conv::packed_form(&geometry) {
        None => None,
        Some(form) => {
            let pack = |to: *mut u8| {
                let w = dense()?;
                // SAFETY: the weights are dense and of the geometry's extents; `to` has the size of the form.
                unsafe { conv::pack(context.threads, &geometry, w.data_ptr(), to) };
                Ok(())
            };
            operand::packed(
                context,
                &weight,
                Form::Convolution,
                dtype,
                &form.key,
                form.len_bytes,
                pack,
            )?
        }
    };
    let w = match &packed {
        Some(_) => None,
        None => Some(dense()?),
    };
    let weights = match (&packed, &w) {
        (Some(packed), _) => Weights::Packed(packed.ptr()),
        (None, w) => Weights::Dense(operand::pointer(w.as_ref())),
    };
    let bias = operand::dense_or_none(context.opt(2), dtype, context.threads)?;
    let addend = addend.map(|x| operand::dense(&case.first(x)?, dtype, context.threads));
    let addend = addend.transpose()?;
    let epilogue = Epilogue {
        norm,
        addend: addend.as_ref().map(|x| x.data_ptr().cast_const()),
        relu,
    };
    let out = Staged::new(&case.first(y)?, dtype)?;
    // SAFETY: 1. operands are dense, of `dtype` and of the extents that the geometry was made from; packed weights are in its form; those of `norm`
    // are the caller's promise. 2. the result overlaps none of them.
    unsafe {
        conv::forward(
            context.threads,
            &geometry,
            x.data_ptr(),
            weights,
            operand::pointer(bias.as_ref()),
            out.ptr(),
            epilogue,
        );
    }
    out.finish(context.threads)
}

/// The gradients of a convolution, given the cotangent of its result.
fn gradients(g: &GradContext, dy: &Array) -> Result<Grads> {
    let attrs = |shape: &[usize]| geometry(&g.args, shape);
    let (x, w) = (g.input(0), g.input(1));
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    if g.wants(0) {
        grads[0] = Some(call(
            &CONVOLUTION_DATA_GRADIENT,
            &[Some(dy), Some(w), None],
            &attrs(x.shape()),
        )?);
    }
    if g.wants(1) {
        grads[1] = Some(call(
            &CONVOLUTION_WEIGHT_GRADIENT,
            &[Some(x), Some(dy)],
            &attrs(w.shape()),
        )?);
    }
    if g.wants(2) {
        grads[2] = Some(per_channel(g, dy)?);
    }
    Ok(grads)
}

/// The adjoint of a convolution with respect to its data: the gradient of the data, and the transposed convolution.
pub static CONVOLUTION_DATA_GRADIENT: OpDef = OpDef {
    name: "convolution_data_gradient",
    params: &[
        Param::array("dy"),
        Param::array("weight"),
        Param::optional_array("bias"),
        Param::required("shape", ParamKind::Ints),
        STRIDE,
        DILATE,
        PAD,
        GROUPS,
        LAYOUT,
    ],
    doc: "Gradient of `convolution` with respect to its data of shape `shape`, given the result's cotangent `dy`; plus `bias`, one per channel of the data.",
    infer: |context| {
        let shape = target(context);
        let case = Case::of(context, &shape, context.shape(1))?;
        case.expect(context, "dy", 0)?;
        context.check_shape(2, &[case.conv.in_channels])?;
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let dx = context.output(0);
        let case = Case::of(&context.args, dx.shape(), context.input(1).shape())?;
        let dtype = operand::compute(dx.dtype());
        let dy = operand::dense(&case.first(context.input(0))?, dtype, context.threads)?;
        let w = operand::dense(&case.first(context.input(1))?, dtype, context.threads)?;
        let bias = operand::dense_or_none(context.opt(2), dtype, context.threads)?;
        let out = Staged::new(&case.first(dx)?, dtype)?;
        let geometry = Conv {
            elem: elem(dtype),
            ..case.conv
        };
        // SAFETY: 1. operands are dense, of `dtype` and of the extents that the geometry was made from. 2. the result overlaps none of them.
        unsafe {
            conv::data_gradient(
                context.threads,
                &geometry,
                dy.data_ptr(),
                w.data_ptr(),
                operand::pointer(bias.as_ref()),
                out.ptr(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::inputs(0b11), |g| {
        let (dy, w, ddx) = (g.input(0), g.input(1), g.dy(0));
        let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
        if g.wants(0) {
            grads[0] = Some(convolve_like(g, ddx, w)?);
        }
        if g.wants(1) {
            let attrs = geometry(&g.args, w.shape());
            grads[1] = Some(call(
                &CONVOLUTION_WEIGHT_GRADIENT,
                &[Some(ddx), Some(dy)],
                &attrs,
            )?);
        }
        if g.wants(2) {
            grads[2] = Some(per_channel(g, ddx)?);
        }
        Ok(grads)
    }),
    cost: Cost::Of(|context| {
        Case::of(context, &target(context), context.shape(1)).map_or(0, |case| case.cost_ns())
    }),
    probe: Probe::calls(&[
        "f((2, 4, 5)), f((4, 3, 3)), f((3,)), (2, 3, 7)",
        "f((2, 4, 2, 2)), f((4, 1, 3, 3)), None, (2, 2, 5, 6), (2, 2), (1, 1), (0, 0), 2",
    ])
    .ulp(64),
    batch: Batch::Rule(conv_batch::batched),
    ..CONV
};

/// The gradient of a convolution with respect to its weight.
pub static CONVOLUTION_WEIGHT_GRADIENT: OpDef = OpDef {
    name: "convolution_weight_gradient",
    params: &[
        Param::array("data"),
        Param::array("dy"),
        Param::required("shape", ParamKind::Ints),
        STRIDE,
        DILATE,
        PAD,
        GROUPS,
        LAYOUT,
    ],
    doc: "Gradient of `convolution` with respect to its weight of shape `shape`, given its data and the result's cotangent `dy`.",
    infer: |context| {
        let shape = target(context);
        let case = Case::of(context, context.shape(0), &shape)?;
        case.expect(context, "dy", 1)?;
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let dw = context.output(0);
        let case = Case::of(&context.args, context.input(0).shape(), dw.shape())?;
        let dtype = operand::compute(dw.dtype());
        let x = operand::dense(&case.first(context.input(0))?, dtype, context.threads)?;
        let dy = operand::dense(&case.first(context.input(1))?, dtype, context.threads)?;
        let out = Staged::new(&case.first(dw)?, dtype)?;
        let geometry = Conv {
            elem: elem(dtype),
            ..case.conv
        };
        let scratch = workspace::take(conv::weight_gradient_scratch_bytes(&geometry))?;
        // SAFETY: 1. operands are dense, of `dtype` and of the extents that the geometry was made from. 2. the result and the scratch, which has
        // the size the kernel asks for, overlap none of them.
        unsafe {
            conv::weight_gradient(
                context.threads,
                &geometry,
                x.data_ptr(),
                dy.data_ptr(),
                out.ptr(),
                scratch.data_ptr(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::inputs(0b11), |g| {
        let (x, dy, ddw) = (g.input(0), g.input(1), g.dy(0));
        let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
        if g.wants(0) {
            let attrs = geometry(&g.args, x.shape());
            grads[0] = Some(call(
                &CONVOLUTION_DATA_GRADIENT,
                &[Some(dy), Some(ddw), None],
                &attrs,
            )?);
        }
        if g.wants(1) {
            grads[1] = Some(convolve_like(g, x, ddw)?);
        }
        Ok(grads)
    }),
    cost: Cost::Of(|context| {
        Case::of(context, context.shape(0), &target(context)).map_or(0, |case| case.cost_ns())
    }),
    probe: Probe::calls(&[
        "f((2, 3, 7)), f((2, 4, 5)), (4, 3, 3)",
        "f((2, 2, 5, 6)), f((2, 4, 2, 2)), (4, 1, 3, 3), (2, 2), (1, 1), (0, 0), 2",
    ])
    .ulp(64),
    batch: Batch::Rule(conv_batch::batched_groups),
    ..CONV
};

/// Attribute `shape` of the gradients.
fn target(context: &CallContext) -> Dims {
    context
        .ints("shape")
        .iter()
        .map(|&d| d.max(0) as usize)
        .collect()
}

/// Attributes of the gradient operators: the target's shape, then the geometry of the call.
fn geometry(args: &Args, shape: &[usize]) -> Attrs {
    let given =
        ["stride", "dilate", "pad", "num_group", "layout"].map(|name| args.get(name).clone());
    [Value::from(shape)].into_iter().chain(given).collect()
}

/// The convolution of `data` and `weight` with the attributes of the gradient call `g`.
fn convolve_like(g: &GradContext, data: &Array, weight: &Array) -> Result<Array> {
    let [stride, dilate, pad, groups, layout] =
        ["stride", "dilate", "pad", "num_group", "layout"].map(|name| g.get(name).clone());
    let attrs: Attrs = [
        Value::None,
        stride,
        dilate,
        pad,
        Value::None,
        groups,
        Value::from(WORKSPACE.default),
        Value::Bool(true),
        Value::None,
        Value::Bool(false),
        layout,
    ]
    .into_iter()
    .collect();
    call(&CONVOLUTION, &[Some(data), Some(weight), None], &attrs)
}

/// Sums over all axes but the channel axis.
fn per_channel(g: &GradContext, y: &Array) -> Result<Array> {
    let ndim = y.ndim();
    let channel = if is_channels_last(&g.args, ndim - 2)? {
        ndim - 1
    } else {
        1
    };
    let axes: SmallVec<[i64; 4]> = (0..ndim)
        .filter(|&a| a != channel)
        .map(|a| a as i64)
        .collect();
    y.sum(Some(&axes), false)
}

fn call(op: &'static OpDef, inputs: &[Option<&Array>], attrs: &Attrs) -> Result<Array> {
    only(op, invoke_with(op, inputs, attrs)?)
}
