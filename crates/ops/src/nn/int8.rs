//! Layers of 8-bit integers: convolutions, fully connected layers and pooling, with exact 32-bit sums that the kernels scale and round.
//!
//! The public functions `npx.quantized_*` are compositions of these operators; quantised networks call them.
#![allow(unsafe_code)]

use mxnet_kernels::Elem;
use mxnet_kernels::conv::Conv;
use mxnet_kernels::int8::{self, Data, Epilogue, Output, Weights};
use mxnet_kernels::pool::Kind;
use mxnet_tensor::{DType, Dims, Layout, Tensor};
use smallvec::SmallVec;

use crate::args::{Param, ParamKind};
use crate::context::{CallContext, KernelContext};
use crate::error::{Result, Tuple};
use crate::launch::elem;
use crate::linalg::flops_ns;
use crate::nn::conv::{Case, DILATE, GROUPS, LAYOUT, PAD, STRIDE};
use crate::nn::operand::{self, Form};
use crate::nn::pool;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe, one_of};
use crate::types::Types;

const DATA: Param = Param::array("data");
const WEIGHT: Param = Param::array("weight");
const SCALE: Param = Param::optional_array("scale");
const BIAS: Param = Param::optional_array("bias");
const ADDEND: Param = Param::optional_array("addend");
const DATA_SCALE: Param = Param::optional_array("data_scale");
const RELU: Param = Param::bool("relu", false);
const ADDEND_SCALE: Param = Param::float("addend_scale", 1.0);
const DTYPE: Param = Param::required("dtype", ParamKind::DType);

/// Default fields for the layers.
const LAYER: OpDef = OpDef {
    about: &[
        ("data", "int8 or uint8."),
        ("weight", "int8."),
        (
            "scale",
            "One float32, or one for each output channel. Without it, results are the int32 sums.",
        ),
        ("bias", "One float32 for each output channel."),
        ("addend", "Of the result's shape: float32, int8 or uint8."),
        ("data_scale", "One float32."),
        ("relu", "Whether negative results become 0."),
        ("addend_scale", "The factor of `addend`."),
        ("dtype", "int32 for sums; float32, int8 or uint8."),
    ],
    types: Types::Infer,
    grad: Grad::Stop("piecewise constant"),
    ..OpDef::DEFAULT
};

/// Convolution of 8-bit integers.
pub static INT8_CONVOLUTION: OpDef = OpDef {
    name: "int8_convolution",
    params: &[
        DATA, WEIGHT, SCALE, BIAS, ADDEND, DATA_SCALE, STRIDE, DILATE, PAD, GROUPS, LAYOUT, RELU, ADDEND_SCALE, DTYPE,
    ],
    doc: "`convolution(data, weight)` of 8-bit integers, exact in int32, or `sums * scale * data_scale + bias + addend * addend_scale`, computed in \
          float32 in this order. Results of 8 bits are rounded to the nearest integer, ties to even, and saturate at -127 and 127, or 0 and 255.",
    infer: |context| {
        let case = Case::of(context, context.shape(0), context.shape(1))?;
        inferred(context, case.result(), context.shape(1)[0])
    },
    cpu: Cpu::Kernel(|context| {
        let case = Case::of(&context.args, context.input(0).shape(), context.input(1).shape())?;
        let weight = || case.first(context.input(1));
        layer(context, &case.conv, case.first(context.input(0))?, &weight, case.channels_last)
    }),
    cost: Cost::Of(|context| Case::of(context, context.shape(0), context.shape(1)).map_or(0, |case| case.cost_ns() / 4)),
    probe: Probe::calls(&[
        "f((2, 3, 7)).astype('int8'), f((4, 3, 3)).astype('int8'), dtype='int32'",
        "f((2, 6, 5, 3)).astype('int8'), f((4, 3, 3, 3)).astype('int8'), layout='NHWC', dtype='int32'",
    ])
    .within(-100.0..100.0),
    ..LAYER
};

/// Fully connected layer of 8-bit integers.
pub static INT8_FULLY_CONNECTED: OpDef = OpDef {
    name: "int8_fully_connected",
    params: &[
        DATA,
        WEIGHT,
        SCALE,
        BIAS,
        ADDEND,
        DATA_SCALE,
        Param::bool("flatten", true),
        RELU,
        ADDEND_SCALE,
        DTYPE,
    ],
    doc: "`data @ weight.T` of 8-bit integers, exact in int32, or `sums * scale * data_scale + bias + addend * addend_scale` as in `int8_convolution`. \
          With `flatten`, `data` (n, ...) is reshaped to (n, k); without, it is (..., k).",
    infer: |context| {
        let (conv, shape) = affine(
            context,
            context.shape(0),
            context.shape(1),
            context.bool("flatten"),
        )?;
        inferred(context, shape, conv.out_channels)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, weight) = (context.input(0), context.input(1));
        let hidden = weight.shape()[0];
        let k = weight.shape()[1];
        let rows = context.output(0).len().checked_div(hidden).unwrap_or(0);
        // (rows, k, 1) and (hidden, k, 1).
        let strided =
            |x: &Tensor, n: usize| match x.layout().reshape(&[n as isize, k as isize, 1])? {
                Some(layout) => Ok(x.with_layout(layout)),
                None => Ok(operand::dense(x, x.dtype(), context.threads)?
                    .with_layout(Layout::contiguous(&[n, k, 1]))),
            };
        let conv = product(rows, k, hidden);
        layer(
            context,
            &conv,
            strided(x, rows)?,
            &|| strided(weight, hidden),
            true,
        )
    }),
    cost: Cost::Of(|context| {
        flops_ns(context.input(0).len() * context.shape(1).first().copied().unwrap_or(0) / 2)
    }),
    probe: Probe::calls(&[
        "f((2, 3)).astype('int8'), f((4, 3)).astype('int8'), dtype='int32'",
        "f((2, 3, 5)).astype('int8'), f((4, 5)).astype('int8'), flatten=False, dtype='int32'",
    ])
    .within(-100.0..100.0),
    ..LAYER
};

/// A matrix product as a convolution of one position for each row.
fn product(rows: usize, k: usize, hidden: usize) -> Conv {
    Conv {
        elem: Elem::I8,
        n: rows,
        groups: 1,
        in_channels: k,
        out_channels: hidden,
        input: [1; 3],
        output: [1; 3],
        kernel: [1; 3],
        stride: [1; 3],
        pad: [0; 3],
        dilation: [1; 3],
    }
}

/// Geometry and the result's shape of a fully connected layer.
fn affine(
    context: &CallContext,
    x: &[usize],
    weight: &[usize],
    flatten: bool,
) -> Result<(Conv, Dims)> {
    let [hidden, k] = *weight else {
        return Err(context.shape_error(format!(
            "`weight` has {} axes, needs 2: (num_hidden, k)",
            weight.len()
        )));
    };
    let Some((&last, lead)) = x.split_last() else {
        return Err(context.shape_error("`data` has 0 axes, at least 1 is needed"));
    };
    let found = if flatten {
        x[1..].iter().product()
    } else {
        last
    };
    if found != k {
        let what = if flatten {
            "elements of a sample of `data`"
        } else {
            "last axis of `data`"
        };
        return Err(context.shape_error(format!(
            "{what} (size {found}) must equal the last axis of `weight` (size {k})"
        )));
    }
    let mut shape = if flatten {
        Dims::from_slice(&x[..1])
    } else {
        Dims::from_slice(lead)
    };
    let rows = shape.iter().product();
    shape.push(hidden);
    Ok((product(rows, k, hidden), shape))
}

/// Checks the operands and gives the result's dtype.
fn inferred(context: &CallContext, shape: Dims, channels: usize) -> Result<Inferred> {
    if !matches!(context.dtype_of(0), DType::I8 | DType::U8) {
        return Err(context.dtype_error(format!(
            "`data` is {}, must be int8 or uint8",
            context.dtype_of(0).name()
        )));
    }
    if context.dtype_of(1) != DType::I8 {
        return Err(context.dtype_error(format!(
            "`weight` is {}, must be int8",
            context.dtype_of(1).name()
        )));
    }
    let dtype = context.dtype("dtype").unwrap_or(DType::I32);
    match (dtype, context.opt(2)) {
        (DType::I32, None) => {}
        (DType::F32 | DType::I8 | DType::U8, Some(_)) => {}
        _ => {
            return Err(context.value_error(format!(
                "results of dtype {} {} `scale`: they are int32 without it, and float32, int8 or uint8 with it",
                dtype.name(),
                if context.opt(2).is_some() { "with" } else { "without" }
            )));
        }
    }
    for (i, name) in [(2, "scale"), (3, "bias"), (5, "data_scale")] {
        let Some(x) = context.opt(i) else { continue };
        if x.dtype() != DType::F32 {
            return Err(
                context.dtype_error(format!("`{name}` is {}, must be float32", x.dtype().name()))
            );
        }
        let needed = if name == "data_scale" { 1 } else { channels };
        if x.len() != needed && !(name == "scale" && x.len() == 1) || x.ndim() > 1 {
            return Err(context.shape_error(format!(
                "`{name}` has shape {}, needs ({needed},)",
                Tuple(x.shape())
            )));
        }
    }
    if let Some(x) = context.opt(4) {
        if x.shape() != shape.as_slice() {
            return Err(context.shape_error(format!(
                "`addend` has shape {}, the result has shape {}",
                Tuple(x.shape()),
                Tuple(&shape)
            )));
        }
        if !matches!(x.dtype(), DType::F32 | DType::I8 | DType::U8) {
            return Err(context.dtype_error(format!(
                "`addend` is {}, must be float32, int8 or uint8",
                x.dtype().name()
            )));
        }
    }
    if dtype == DType::I32
        && (context.opt(3).is_some()
            || context.opt(4).is_some()
            || context.opt(5).is_some()
            || context.bool("relu"))
    {
        return Err(
            context.value_error("int32 sums have neither bias, addend, `data_scale` nor relu")
        );
    }
    one_of(shape, dtype)
}

/// Strides of a tensor of samples, channels and one to three spatial axes. Axes that it does not have have stride 0.
fn strides(x: &Tensor) -> [usize; 5] {
    let of = x.layout().strides();
    let mut all = [0; 5];
    all[0] = of[0].unsigned_abs();
    all[1] = of[1].unsigned_abs();
    for (to, &stride) in all[7 - of.len()..].iter_mut().zip(&of[2..]) {
        *to = stride.unsigned_abs();
    }
    all
}

/// The tensor itself if its strides are not negative, else a dense copy.
fn forwards(context: &KernelContext, x: Tensor) -> Result<Tensor> {
    match x.layout().strides().iter().all(|&stride| stride >= 0) {
        true => Ok(x),
        false => operand::dense(&x, x.dtype(), context.threads),
    }
}

/// Strides that the dense layout with these extents and the channels last has along axes of length 1, too: the kernel compares with them.
fn normalised(g: &Conv, mut strides: [usize; 5]) -> [usize; 5] {
    let [_, h, w] = g.input;
    let c = g.in_channels;
    let dense = [
        c * g.input.iter().product::<usize>(),
        1,
        h * w * c,
        w * c,
        c,
    ];
    let extents = [g.n, c, g.input[0], h, w];
    for a in 0..5 {
        if extents[a] == 1 {
            strides[a] = dense[a];
        }
    }
    strides
}

/// Runs a layer. Data and weights are views with the channels behind the samples.
fn layer(
    context: &KernelContext,
    g: &Conv,
    data: Tensor,
    weight: &dyn Fn() -> Result<Tensor>,
    channels_last: bool,
) -> Result<()> {
    let threads = context.threads;
    let x = forwards(context, data)?;
    let pack = |to: *mut u8| {
        let w = forwards(context, weight()?)?;
        let weights = Weights {
            ptr: w.data_ptr().cast(),
            strides: strides(&w),
        };
        // SAFETY: the weights have the geometry's extents; `to` has the size of the form.
        unsafe { int8::pack(threads, g, &weights, to) };
        Ok(())
    };
    let len = int8::packed_bytes(g);
    let key = int8::packed_key(g);
    let packed = operand::packed_or_own(
        context,
        context.input(1),
        Form::Int8,
        DType::I8,
        &key,
        len,
        pack,
    )?;
    let dense = |i: usize| operand::dense_or_none(context.opt(i), DType::F32, threads);
    let (scale, bias, data_scale) = (dense(2)?, dense(3)?, dense(5)?);
    let scale = scale
        .map(|x| per_channel(&x, g.out_channels))
        .unwrap_or_default();
    let addend = context
        .opt(4)
        .map(|x| operand::dense(x, x.dtype(), threads))
        .transpose()?;
    let y = context.output(0);
    let epilogue = Epilogue {
        scale: scale.as_ptr(),
        data_scale: data_scale.map_or(1.0, |x| per_channel(&x, 1)[0]),
        bias: operand::pointer(bias.as_ref()).cast_const().cast(),
        addend: addend
            .as_ref()
            .map(|x| (x.data_ptr().cast_const(), elem(x.dtype()))),
        addend_scale: context.float("addend_scale") as f32,
        relu: context.bool("relu"),
    };
    let staged = operand::Staged::new(y, y.dtype())?;
    let output = Output {
        ptr: staged.ptr(),
        elem: elem(y.dtype()),
        channels_last,
    };
    let data = Data {
        ptr: x.data_ptr(),
        strides: normalised(g, strides(&x)),
        is_signed: x.dtype() == DType::I8,
    };
    // SAFETY: 1. the data have the geometry's extents, and the weights are packed for it. 2. the result is dense and overlaps no operand. 3. inference
    // checked the sizes of vectors and addend.
    unsafe { int8::forward(threads, g, &data, packed.ptr(), &output, &epilogue) };
    staged.finish(threads)
}

/// A dense vector of `n` float32, or one number `n` times.
fn per_channel(x: &Tensor, n: usize) -> SmallVec<[f32; 64]> {
    // SAFETY: the dense float32 tensor has this many elements.
    let found = unsafe { std::slice::from_raw_parts(x.data_ptr().cast::<f32>(), x.len()) };
    match found {
        [one] => SmallVec::from_elem(*one, n),
        all => SmallVec::from_slice(all),
    }
}

/// Pooling of 8-bit integers.
pub static INT8_POOLING: OpDef = OpDef {
    name: "int8_pooling",
    params: pool::POOLING.params,
    doc: "`pooling` of int8 or uint8: maxima, or means rounded to the nearest integer, ties to even. Results have the dtype of `data`.",
    about: pool::POOLING.about,
    types: Types::Infer,
    infer: |context| {
        if !matches!(context.dtype_of(0), DType::I8 | DType::U8) {
            return Err(context.dtype_error(format!(
                "`data` is {}, must be int8 or uint8",
                context.dtype_of(0).name()
            )));
        }
        if !matches!(context.str("pool_type"), "max" | "avg") {
            return Err(context.value_error(format!(
                "`pool_type` is '{}', 8-bit integers have 'max' and 'avg'",
                context.str("pool_type")
            )));
        }
        one_of(
            pool::Case::of(context, context.shape(0))?.result(),
            context.dtype_of(0),
        )
    },
    cpu: Cpu::Kernel(|context| {
        let (x, y) = (context.input(0), context.output(0));
        let case = pool::Case::of(&context.args, x.shape())?;
        let last = |x: &Tensor| -> Result<Tensor> {
            let first = case.first(x)?;
            let axes: SmallVec<[isize; 5]> = [0]
                .into_iter()
                .chain(2..first.shape().len() as isize)
                .chain([1])
                .collect();
            Ok(first.with_layout(first.layout().transpose(Some(&axes))?))
        };
        let dense = operand::dense(&last(x)?, x.dtype(), context.threads)?;
        let staged = operand::Staged::new(&last(y)?, y.dtype())?;
        let (n, channels) = (case.shape[0], case.shape[1]);
        let geometry = mxnet_kernels::pool::Pool {
            planes: n,
            ..case.geometry(x.dtype())
        };
        debug_assert!(matches!(
            geometry.kind,
            Kind::Max | Kind::Average | Kind::AverageWithPad
        ));
        // SAFETY: dense tensors of this dtype and the geometry's extents with the channels last, which do not overlap.
        unsafe {
            int8::pool::forward(
                context.threads,
                &geometry,
                channels,
                x.dtype() == DType::I8,
                dense.data_ptr(),
                staged.ptr(),
            );
        }
        staged.finish(context.threads)
    }),
    grad: Grad::Stop("piecewise constant"),
    cost: Cost::PerKiB(600),
    probe: Probe::calls(&[
        "f((2, 3, 6, 5)).astype('int8'), (2, 3), (2, 1), (1, 1)",
        "f((2, 6, 5, 3)).astype('int8'), (2, 2), (2, 2), pool_type='avg', layout='NHWC'",
    ])
    .within(-100.0..100.0),
    ..OpDef::DEFAULT
};
