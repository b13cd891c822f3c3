//! Softmax and log-softmax within segments.
#![allow(unsafe_code)]

use mxnet_core::args::Param;
use mxnet_core::autograd::GradContext;
use mxnet_core::context::KernelContext;
use mxnet_core::launch::elem;
use mxnet_core::opdef::{Amp, Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, one_of};
use mxnet_core::{Attrs, Result, Value, invoke1};
use mxnet_kernels::segment::{softmax, softmax_backward};
use mxnet_kernels::softmax::Kind;
use mxnet_ops::nn::operand::{self, Staged};
use mxnet_tensor::Dims;
use smallvec::smallvec;

use crate::expand::expand;
use crate::fold::sum;
use crate::offsets::{Offsets, count, row_len, rows};

/// The gradient needs the result and the offsets.
const KEEP: Keep = Keep {
    inputs: 0b10,
    outputs: 1,
};

/// Fields that both operators share.
const SOFTMAX_LIKE: OpDef = OpDef {
    params: &[Param::array("values"), Param::array("offsets")],
    infer: |context| {
        rows(context, 0)?;
        count(context, 1)?;
        one_of(
            Dims::from_slice(context.shape(0)),
            operand::float_of(context, 0)?,
        )
    },
    amp: Amp::WidenToF32,
    cost: Cost::PerKiB(600),
    probe: Probe::calls(&[
        "f((5, 2)), np.array([0, 2, 5])",
        "f((4,)), np.array([0, 0, 1, 4])",
    ])
    .ulp(16),
    positions: &[1],
    ..OpDef::DEFAULT
};

/// Softmax.
pub static RAGGED_SOFTMAX: OpDef = OpDef {
    name: "ragged_softmax",
    doc: "`exp(x)`, divided by its sum over the rows of the segment.",
    cpu: Cpu::Kernel(|context| run(context, Kind::Softmax)),
    grad: Grad::Fused(
        KEEP,
        |g| fused(g, Kind::Softmax),
        |g| composed(g, Kind::Softmax),
    ),
    ..SOFTMAX_LIKE
};

/// Log-softmax.
pub static RAGGED_LOG_SOFTMAX: OpDef = OpDef {
    name: "ragged_log_softmax",
    doc: "Logarithm of `ragged_softmax`, computed without overflow or underflow.",
    cpu: Cpu::Kernel(|context| run(context, Kind::LogSoftmax)),
    grad: Grad::Fused(
        KEEP,
        |g| fused(g, Kind::LogSoftmax),
        |g| composed(g, Kind::LogSoftmax),
    ),
    ..SOFTMAX_LIKE
};

/// The gradient of softmax and log-softmax, in one pass.
pub static RAGGED_SOFTMAX_GRADIENT: OpDef = OpDef {
    name: "ragged_softmax_gradient",
    params: &[
        Param::array("y"),
        Param::array("dy"),
        Param::array("offsets"),
        Param::bool("log", false),
    ],
    doc: "Gradient of `ragged_softmax`, or of `ragged_log_softmax` if `log`, given its result `y` and the cotangent `dy`.",
    infer: |context| {
        context.check_shape(1, context.shape(0))?;
        context.same_as(0)
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        let dtype = operand::compute(out.dtype());
        let y = operand::dense(context.input(0), dtype, context.threads)?;
        let dy = operand::dense(context.input(1), dtype, context.threads)?;
        let offsets = Offsets::read(context, 2, y.shape()[0])?;
        let dx = Staged::new(out, dtype)?;
        let g = offsets.segments(row_len(y.shape()));
        let kind = match context.bool("log") {
            true => Kind::LogSoftmax,
            false => Kind::Softmax,
        };
        // SAFETY: 1. the offsets are checked. 2. operands are dense, of `dtype` and of one shape. 3. no overlap.
        unsafe {
            softmax_backward(
                context.threads,
                &g,
                kind,
                elem(dtype),
                y.data_ptr(),
                dy.data_ptr(),
                dx.ptr(),
            );
        }
        dx.finish(context.threads)
    }),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    cost: Cost::PerKiB(200),
    probe: Probe::calls(&["f((4, 2)), f((4, 2)), np.array([0, 1, 4])"]).ulp(16),
    positions: &[2],
    ..OpDef::DEFAULT
};

fn run(context: &KernelContext, kind: Kind) -> Result<()> {
    let out = context.output(0);
    let dtype = operand::compute(out.dtype());
    let x = operand::dense(context.input(0), dtype, context.threads)?;
    let offsets = Offsets::read(context, 1, x.shape()[0])?;
    let y = Staged::new(out, dtype)?;
    let g = offsets.segments(row_len(x.shape()));
    // SAFETY: 1. the offsets are checked. 2. operands are dense, of `dtype` and of one shape. 3. no overlap.
    unsafe {
        softmax(
            context.threads,
            &g,
            kind,
            elem(dtype),
            x.data_ptr(),
            y.ptr(),
        )
    };
    y.finish(context.threads)
}

fn fused(g: &GradContext, kind: Kind) -> Result<Grads> {
    let attrs: Attrs = [Value::Bool(kind == Kind::LogSoftmax)]
        .into_iter()
        .collect();
    let inputs = [g.output(0), g.dy(0), g.input(1)];
    let dx = invoke1(&RAGGED_SOFTMAX_GRADIENT, &inputs, &attrs)?;
    Ok(smallvec![Some(g.fitted(dx, 0)?), None])
}

/// Softmax: dx = y (dy - sum(dy y)). Its logarithm: dx = dy - exp(y) sum(dy).
fn composed(g: &GradContext, kind: Kind) -> Result<Grads> {
    let (y, dy, offsets, total) = (g.output(0), g.dy(0), g.input(1), g.shape(0)[0]);
    let spread = |x| expand(&sum(x, offsets)?, offsets, total);
    let dx = match kind {
        Kind::Softmax => y.mul(&dy.sub(&spread(&dy.mul(y)?)?)?)?,
        Kind::LogSoftmax => dy.sub(&y.exp()?.mul(&spread(dy)?)?)?,
    };
    Ok(smallvec![Some(g.fitted(dx, 0)?), None])
}
