//! Fully connected layers: `x @ weight.T + bias`.
#![allow(unsafe_code)]

use mxnet_kernels::gemm::{Bias, Epilogue, current_library};
use mxnet_kernels::linear::Linear;
use mxnet_tensor::{DType, Dims, Tensor};
use smallvec::SmallVec;

use crate::args::{Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::{Batch, BatchContext};
use crate::context::{CallContext, KernelContext};
use crate::elementwise::network::RELU_GRAD;
use crate::error::Result;
use crate::launch::elem;
use crate::linalg::{flops_ns, multiply};
use crate::nn::operand::{self, Form, Staged};
use crate::opdef::{Amp, Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface, one};
use crate::types::Types;
use crate::{Array, Outputs};

/// An affine map of the last axis, or of all axes but the first as one.
pub static FULLY_CONNECTED: OpDef = OpDef {
    name: "fully_connected",
    surface: &[Surface::Npx("fully_connected")],
    params: &[
        Param::array("x"),
        Param::array("weight"),
        Param::optional_array("bias"),
        Param::optional("num_hidden", ParamKind::Int),
        Param::bool("no_bias", true),
        Param::bool("flatten", true),
    ],
    doc: "`x @ weight.T + bias`. `weight` is (num_hidden, k), `bias` (num_hidden,). With `flatten`, `x` (n, ...) is reshaped to (n, k) and the result is \
          (n, num_hidden); without, `x` is (..., k) and the result (..., num_hidden). `num_hidden=None` is taken from the weight.",
    about: &[
        ("weight", "(num_hidden, k)."),
        ("bias", "(num_hidden,)."),
        ("num_hidden", "Number of outputs, checked against `weight`."),
        ("no_bias", "Whether there is no bias."),
        ("flatten", "Whether all axes of `x` but the first count as one."),
    ],
    returns: &[("ndarray", "Of shape (n, num_hidden) or (..., num_hidden).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> npx.fully_connected(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]), num_hidden=2)
        array([[11., 17.]])
    ",
    types: Types::REAL_FLOAT,
    infer: affine_shape,
    cpu: Cpu::Kernel(|context| affine(context, false)),
    grad: Grad::Rule(Keep::inputs(0b11), |g| gradients(g, g.dy(0))),
    amp: Amp::Narrow,
    cost: Cost::Of(|context| {
        flops_ns(2 * context.input(0).len() * context.shape(1).first().copied().unwrap_or(0))
    }),
    probe: Probe::calls(&[
        "f((2, 3)), f((4, 3)), f((4,)), 4, False",
        "f((2, 3)), f((4, 3)), None, 4",
        "f((2, 3, 2)), f((4, 6)), f((4,)), 4, False",
        "f((2, 3, 5)), f((4, 5)), f((4,)), no_bias=False, flatten=False",
        "f((3, 2)).T, f((3, 4)).T",
        "f((0, 3)), f((4, 3)), f((4,)), no_bias=False",
    ])
    .ulp(16),
    batch: Batch::Rule(batched),
    ..OpDef::DEFAULT
};

/// The affine map fused with relu: relu runs while the results are in cache. A graph pass replaces the two operators by it.
pub static FULLY_CONNECTED_RELU: OpDef = OpDef {
    name: "fully_connected_relu",
    params: FULLY_CONNECTED.params,
    doc: "`relu(x @ weight.T + bias)`, bit for bit the result of the two operators.",
    types: Types::REAL_FLOAT,
    infer: affine_shape,
    cpu: Cpu::Kernel(|context| affine(context, true)),
    grad: Grad::Rule(
        Keep {
            inputs: 0b11,
            outputs: 0b1,
        },
        |g| gradients(g, &g.dy(0).binary(&RELU_GRAD, g.output(0))?),
    ),
    cost: FULLY_CONNECTED.cost,
    probe: Probe::calls(&["f((2, 3)), f((4, 3)), f((4,)), 4, False"])
        .against("lambda x, w, b, n, no_bias: np.maximum(x @ w.T + b, 0)")
        .ulp(16),
    ..OpDef::DEFAULT
};

fn affine(context: &KernelContext, relu: bool) -> Result<()> {
    let y = context.output(0);
    let dtype = y.dtype();
    let weight = operand::typed(context.input(1), dtype, context.threads)?;
    let (hidden, k) = (weight.shape()[0], weight.shape()[1]);
    let rows = y.len().checked_div(hidden).unwrap_or(0);
    let x = operand::typed(context.input(0), dtype, context.threads)?;
    let x = match x.layout().reshape(&[rows as isize, k as isize])? {
        Some(layout) => x.with_layout(layout),
        None => {
            let copy = operand::dense(&x, dtype, context.threads)?;
            let layout = mxnet_tensor::Layout::contiguous(&[rows, k]);
            copy.with_layout(layout)
        }
    };
    let bias = operand::dense_or_none(context.opt(2), dtype, context.threads)?;
    if matches!(dtype, DType::F32 | DType::F64) {
        let layer = Linear {
            elem: elem(dtype),
            rows,
            outputs: hidden,
            inputs: k,
        };
        if layer.fits() && current_library().is_none() {
            return with_packed_weights(context, &layer, &x, &weight, bias.as_ref(), relu);
        }
    }
    let epilogue = Epilogue {
        bias: bias
            .as_ref()
            .map_or(Bias::None, |b| Bias::PerColumn(b.data_ptr())),
        relu,
    };
    let transposed = weight.with_layout(weight.layout().transpose(None)?);
    multiply(context.threads, &x, &transposed, y, &epilogue)
}

/// The affine map with packed weights, for small numbers of rows.
fn with_packed_weights(
    context: &KernelContext,
    layer: &Linear,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    relu: bool,
) -> Result<()> {
    let (dtype, threads) = (weight.dtype(), context.threads);
    let is_usable = |x: &Tensor| x.layout().strides()[1] == 1 && x.layout().strides()[0] >= 0;
    let x = match is_usable(x) {
        true => x.clone(),
        false => operand::dense(x, dtype, threads)?,
    };
    let pack = |to: *mut u8| {
        let strides = weight.layout().strides();
        let weight = match strides.iter().all(|&stride| stride >= 0) {
            true => weight.clone(),
            false => operand::dense(weight, dtype, threads)?,
        };
        let strides = weight.layout().strides();
        let strides = (strides[0].unsigned_abs(), strides[1].unsigned_abs());
        // SAFETY: the weights have the layer's sizes; `to` has the bytes of their form.
        unsafe { layer.pack(threads, weight.data_ptr(), strides, to) };
        Ok(())
    };
    let (key, len) = ([layer.lanes()], layer.packed_bytes());
    let packed = operand::packed_or_own(
        context,
        context.input(1),
        Form::Linear,
        dtype,
        &key,
        len,
        pack,
    )?;
    let y = Staged::new(context.output(0), dtype)?;
    // SAFETY: the operands have the layer's sizes, and the result overlaps none.
    unsafe {
        layer.run(
            threads,
            x.data_ptr(),
            x.layout().strides()[0].unsigned_abs(),
            packed.ptr(),
            operand::pointer(bias),
            y.ptr(),
            relu,
        );
    }
    y.finish(threads)
}

/// The gradients, given the cotangent of the affine map.
fn gradients(g: &GradContext, dy: &Array) -> Result<Grads> {
    let (x, weight) = (g.input(0), g.input(1));
    let (hidden, k) = (weight.shape()[0], weight.shape()[1]);
    let rows = dy.len().checked_div(hidden).unwrap_or(0);
    let dy = dy.reshape(&[rows, hidden])?;
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    if g.wants(0) {
        grads[0] = Some(dy.matmul(weight)?.reshape(x.shape())?);
    }
    if g.wants(1) {
        grads[1] = Some(dy.transpose(None)?.matmul(&x.reshape(&[rows, k])?)?);
    }
    if g.wants(2) {
        grads[2] = Some(dy.sum(Some(&[0]), false)?);
    }
    Ok(grads)
}

fn affine_shape(context: &CallContext) -> Result<Inferred> {
    let (x, weight) = (context.shape(0), context.shape(1));
    let [hidden, k] = *weight else {
        return Err(context.shape_error(format!(
            "`weight` has {} axes, needs 2: (num_hidden, k)",
            weight.len()
        )));
    };
    if x.is_empty() {
        return Err(context.shape_error("`x` has 0 axes, at least 1 is needed"));
    }
    let flatten = context.bool("flatten");
    let found = if flatten {
        x[1..].iter().product()
    } else {
        x[x.len() - 1]
    };
    if found != k {
        let what = if flatten {
            "elements of a sample of `x`"
        } else {
            "last axis of `x`"
        };
        return Err(context.shape_error(format!(
            "{what} (size {found}) must equal the last axis of `weight` (size {k})"
        )));
    }
    if let Some(asked) = context
        .opt_int("num_hidden")
        .filter(|&n| n != hidden as i64)
    {
        return Err(context.shape_error(format!(
            "`num_hidden` is {asked}, the first axis of `weight` has size {hidden}"
        )));
    }
    check_bias(context, 2, hidden)?;
    if flatten {
        return one(Dims::from_slice(&[x[0], hidden]));
    }
    let mut shape: Dims = x.iter().copied().collect();
    shape[x.len() - 1] = hidden;
    one(shape)
}

/// Checks `bias` (argument `i`): absent if `no_bias`, else one element for each of `n` outputs.
pub(super) fn check_bias(context: &CallContext, i: usize, n: usize) -> Result<()> {
    match (context.opt(i), context.bool("no_bias")) {
        (Some(_), true) => Err(context
            .value_error("a `bias` is given, but `no_bias` is True")
            .with_hint("pass no_bias=False")),
        (None, false) => Err(context
            .value_error("`no_bias` is False, but no `bias` is given")
            .with_hint("pass no_bias=True")),
        (Some(bias), false) if bias.shape() != [n] => Err(context.shape_error(format!(
            "`bias` has shape {}, needs ({n},)",
            crate::Tuple(bias.shape())
        ))),
        _ => Ok(()),
    }
}

/// The affine map under `vmap`: one call if all examples share the weight, else a batched matrix product.
fn batched(context: &BatchContext) -> Result<Outputs> {
    let (shape, k) = (context.shape(0), context.shape(1)[1]);
    let lead = match context.bool("flatten") {
        true => &shape[..1],
        false => &shape[..shape.len() - 1],
    };
    let rows: usize = lead.iter().product();
    let Some(x) = context.front(0)? else {
        return Err(context.refused());
    };
    let x = x.reshape(&[context.size, rows, k])?;
    if !context.is_batched(1) && !context.is_batched(2) {
        let attrs = context.with(&[("flatten", Value::Bool(false))]);
        return context.call(
            &[Some(x), context.aligned(1, 2)?, context.aligned(2, 1)?],
            &attrs,
        );
    }
    let Some(weight) = context.front(1)? else {
        return Err(context.refused());
    };
    let y = x.matmul(&weight.swap_last()?)?;
    Ok(Outputs::from_iter([match context.front(2)? {
        Some(bias) => y.add(&bias.reshape(&[context.size, 1, context.shape(1)[0]])?)?,
        None => y,
    }]))
}
