//! Attention within segments.
#![allow(unsafe_code)]

use mxnet_core::args::{Attrs, Param};
use mxnet_core::autograd::GradContext;
use mxnet_core::context::{CallContext, KernelContext};
use mxnet_core::launch::elem;
use mxnet_core::opdef::{Amp, Cost, Cpu, Grad, Grads, Keep, OpDef, Probe};
use mxnet_core::types::Types;
use mxnet_core::{Array, Error, Result, invoke_with};
use mxnet_kernels::attention::{self as kernel, Attention, Pattern, Saved};
use mxnet_ops::creation;
use mxnet_ops::elementwise::comparison::LESS;
use mxnet_ops::elementwise::select::choose;
use mxnet_ops::linalg::flops_ns;
use mxnet_ops::nn::attention_slopes;
use mxnet_ops::nn::operand::{self, Staged};
use mxnet_tensor::{DType, Dims, Scalar, Tensor};
use smallvec::SmallVec;

use crate::expand::{pad, unpad};
use crate::offsets::{Offsets, count};

/// Attention of the queries of each segment to its keys.
pub static RAGGED_ATTENTION: OpDef = OpDef {
    name: "ragged_attention",
    params: &[
        Param::array("q"),
        Param::array("k"),
        Param::array("v"),
        Param::array("q_offsets"),
        Param::array("k_offsets"),
        Param::bool("is_causal", false),
        Param::float("scale", 1.0),
    ],
    doc: "`softmax(scale * q @ k.T) @ v` within each segment and head: queries `(rows, heads, d)`, keys `(others, heads, d)`, values \
          `(others, heads, e)`; and the logarithm of the sum of the exponentials of each query's scores, `(rows, heads)`. Queries and keys have \
          the same number of segments. The result of a query without keys is 0.",
    types: Types::REAL_FLOAT,
    infer: |context| {
        check(context, [3, 4])?;
        let (q, v) = (context.shape(0), context.shape(2));
        let dtype = operand::float_promoted(context, 3)?;
        context.many([
            (Dims::from_slice(&[q[0], q[1], v[2]]), dtype),
            (Dims::from_slice(&[q[0], q[1]]), operand::compute(dtype)),
        ])
    },
    cpu: Cpu::Kernel(forward),
    grad: Grad::Fused(
        Keep {
            inputs: 0b11111,
            outputs: 0b11,
        },
        fused,
        composed,
    ),
    amp: Amp::Narrow,
    cost: Cost::Of(|context| attention_ns(context, 3, 1)),
    probe: Probe::calls(&[
        "f((5, 2, 3)), f((6, 2, 3)), f((6, 2, 2)), np.array([0, 2, 5]), np.array([0, 4, 6])",
        "f((5, 1, 2)), f((5, 1, 2)), f((5, 1, 2)), np.array([0, 2, 5]), np.array([0, 2, 5]), True, 0.5",
    ])
    .ulp(64),
    positions: &[3, 4],
    ..OpDef::DEFAULT
};

/// The gradients of attention within segments.
pub static RAGGED_ATTENTION_GRADIENT: OpDef = OpDef {
    name: "ragged_attention_gradient",
    params: &[
        Param::array("q"),
        Param::array("k"),
        Param::array("v"),
        Param::array("out"),
        Param::array("lse"),
        Param::array("dout"),
        Param::array("q_offsets"),
        Param::array("k_offsets"),
        Param::bool("is_causal", false),
        Param::float("scale", 1.0),
    ],
    doc: "Gradients of `ragged_attention` with respect to queries, keys and values, given its results and the cotangent of the first.",
    infer: |context| {
        check(context, [6, 7])?;
        let (q, v) = (context.shape(0), context.shape(2));
        let result = [q[0], q[1], v[2]];
        if context.shape(3) != result || context.shape(5) != result || context.shape(4) != &q[..2] {
            return Err(context.shape_error(
                "results and cotangent have the shapes of the results of `ragged_attention`",
            ));
        }
        let dtype = context.dtype_of(3);
        context.many([0, 1, 2].map(|i| (Dims::from_slice(context.shape(i)), dtype)))
    },
    cpu: Cpu::Kernel(backward),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    cost: Cost::Of(|context| attention_ns(context, 6, 3)),
    probe: Probe::calls(&[
        "f((3, 1, 2)), f((4, 1, 2)), f((4, 1, 2)), f((3, 1, 2)), f((3, 1)), f((3, 1, 2)), np.array([0, 3]), np.array([0, 4])",
    ])
    .ulp(64),
    positions: &[6, 7],
    ..OpDef::DEFAULT
};

/// Checks dtypes and shapes of queries, keys and values, and of the offsets at these positions.
fn check(context: &CallContext, offsets: [usize; 2]) -> Result<()> {
    let (&[_, heads, d], &[others, k_heads, k_d], &[v_rows, v_heads, _]) =
        (context.shape(0), context.shape(1), context.shape(2))
    else {
        return Err(
            context.shape_error("queries, keys and values have axes (rows, heads, channels)")
        );
    };
    if (heads, d) != (k_heads, k_d) || (others, heads) != (v_rows, v_heads) {
        return Err(context.shape_error(
            "queries (rows, heads, d) need keys (others, heads, d) and values (others, heads, e)",
        ));
    }
    let [q, k] = [count(context, offsets[0])?, count(context, offsets[1])?];
    if q != k {
        return Err(
            context.shape_error(format!("{q} segments of queries and {k} segments of keys"))
        );
    }
    Ok(())
}

fn attention_ns(context: &CallContext, offsets: usize, passes: usize) -> u64 {
    // Assumes segments of equal length. Unequal ones cost more, but then the call is so long that the estimate does not matter.
    let segments = context.input(offsets).len().saturating_sub(1).max(1);
    let keys = context.shape(1)[0].div_ceil(segments);
    passes as u64 * flops_ns(2 * (context.input(0).len() + context.input(2).len()) * keys)
}

fn geometry<'a>(
    context: &KernelContext,
    q_offsets: &'a Offsets,
    k_offsets: &'a Offsets,
    dtype: DType,
) -> Attention<'a> {
    let (q, v) = (context.input(0).shape(), context.input(2).shape());
    Attention {
        elem: elem(dtype),
        q_offsets: q_offsets.as_slice(),
        k_offsets: k_offsets.as_slice(),
        heads: q[1],
        dim: q[2],
        value_dim: v[2],
        scale: context.float("scale"),
        pattern: match context.bool("is_causal") {
            true => Pattern::Causal,
            false => Pattern::All,
        },
    }
}

fn forward(context: &KernelContext) -> Result<()> {
    let dtype = operand::compute(context.output(0).dtype());
    let dense: SmallVec<[Tensor; 3]> = (0..3)
        .map(|i| operand::dense(context.input(i), dtype, context.threads))
        .collect::<Result<_>>()?;
    let q_offsets = Offsets::read(context, 3, dense[0].shape()[0])?;
    let k_offsets = Offsets::read(context, 4, dense[1].shape()[0])?;
    let out = Staged::new(context.output(0), dtype)?;
    // SAFETY: 1. the offsets are checked, and equally many. 2. operands are dense, of `dtype`, and fit by inference. 3. results are this call's own.
    unsafe {
        kernel::forward(
            context.threads,
            &geometry(context, &q_offsets, &k_offsets, dtype),
            None,
            dense[0].data_ptr(),
            dense[1].data_ptr(),
            dense[2].data_ptr(),
            out.ptr(),
            context.output(1).data_ptr(),
        );
    }
    out.finish(context.threads)
}

fn backward(context: &KernelContext) -> Result<()> {
    let dtype = operand::compute(context.output(0).dtype());
    let dense: SmallVec<[Tensor; 6]> = (0..6)
        .map(|i| operand::dense(context.input(i), dtype, context.threads))
        .collect::<Result<_>>()?;
    let q_offsets = Offsets::read(context, 6, dense[0].shape()[0])?;
    let k_offsets = Offsets::read(context, 7, dense[1].shape()[0])?;
    let outs: SmallVec<[Staged; 3]> = (0..3)
        .map(|i| Staged::new(context.output(i), dtype))
        .collect::<Result<_>>()?;
    let at = |i: usize| dense[i].data_ptr().cast_const();
    let kept = Saved {
        q: at(0),
        k: at(1),
        v: at(2),
        out: at(3),
        lse: at(4),
        dout: at(5),
    };
    // SAFETY: as in `forward`; the other operands fit by inference.
    unsafe {
        kernel::backward(
            context.threads,
            &geometry(context, &q_offsets, &k_offsets, dtype),
            None,
            &kept,
            outs[0].ptr(),
            outs[1].ptr(),
            outs[2].ptr(),
        );
    }
    for out in outs {
        out.finish(context.threads)?;
    }
    Ok(())
}

fn fused(g: &GradContext) -> Result<Grads> {
    let attrs: Attrs = [g.get("is_causal").clone(), g.get("scale").clone()]
        .into_iter()
        .collect();
    let inputs = [
        g.input(0),
        g.input(1),
        g.input(2),
        g.output(0),
        g.output(1),
        g.dy(0),
        g.input(3),
        g.input(4),
    ]
    .map(Some);
    let found = invoke_with(&RAGGED_ATTENTION_GRADIENT, &inputs, &attrs)?;
    wanted(g, found)
}

fn wanted(g: &GradContext, found: impl IntoIterator<Item = Array>) -> Result<Grads> {
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    for (i, dx) in found.into_iter().enumerate() {
        if g.wants(i) {
            grads[i] = Some(g.fitted(dx, i)?);
        }
    }
    Ok(grads)
}

/// Gradients of the gradient: segments are padded to one length, and the padding is masked.
fn composed(g: &GradContext) -> Result<Grads> {
    let dtype = operand::compute(g.output(0).dtype());
    let (q_offsets, k_offsets) = (g.input(3), g.input(4));
    let (q_length, k_length) = (longest(q_offsets)?, longest(k_offsets)?);
    // (rows, heads, d) -> (segments, heads, length, d)
    let padded = |x: &Array, offsets: &Array, length: usize| -> Result<Array> {
        pad(&x.astype(dtype)?, offsets, length)?.transpose(Some(&[0, 2, 1, 3]))
    };
    let operands = [
        padded(g.input(0), q_offsets, q_length)?,
        padded(g.input(1), k_offsets, k_length)?,
        padded(g.input(2), k_offsets, k_length)?,
        padded(g.dy(0), q_offsets, q_length)?,
    ];
    let lengths = differences(k_offsets)?;
    let key_positions = creation::arange(k_length, DType::I64)?;
    let number = |x: f64| Array::constant(Scalar::F64(x), dtype);
    let mask = choose(
        &key_positions.binary(&LESS, &lengths.reshape(&[lengths.len(), 1, 1, 1])?)?,
        &number(0.0)?,
        &number(f64::NEG_INFINITY)?,
    )?;
    let operands = [&operands[0], &operands[1], &operands[2], &operands[3]];
    let (is_causal, scale) = (g.bool("is_causal"), g.float("scale"));
    let [dq, dk, dv, _] = attention_slopes(operands, Some(&mask), is_causal, scale)?;
    let back = |x: &Array, offsets: &Array, i: usize| -> Result<Array> {
        let rows = x.transpose(Some(&[0, 2, 1, 3]))?;
        unpad(&rows, offsets, g.shape(i)[0])
    };
    let found = [
        back(&dq, q_offsets, 0)?,
        back(&dk, k_offsets, 1)?,
        back(&dv, k_offsets, 2)?,
    ];
    wanted(g, found)
}

fn values(offsets: &Array) -> Result<Vec<i64>> {
    offsets.detach().to_vec::<i64>()
}

/// Number of rows of the longest segment.
fn longest(offsets: &Array) -> Result<usize> {
    let longest = values(offsets)?.windows(2).map(|p| p[1] - p[0]).max();
    usize::try_from(longest.unwrap_or(0))
        .map_err(|_| Error::internal("ragged_attention", "offsets that decrease passed the check"))
}

/// Number of rows of each segment.
fn differences(offsets: &Array) -> Result<Array> {
    let n = offsets.len();
    let part = |from, to| mxnet_ops::shape::narrow(&offsets.detach(), 0, from, to);
    part(1, n)?.sub(&part(0, n - 1)?)
}
