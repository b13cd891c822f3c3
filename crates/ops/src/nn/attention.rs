//! Scaled dot-product attention: the fused operator, its gradient, and the gradient composed of differentiable operators.
#![allow(unsafe_code)]

use mxnet_kernels::attention::{self as kernel, Attention, Mask, Pattern, Saved};
use mxnet_tensor::{DType, Dims, Scalar, Tensor, broadcast_shapes};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, Value};
use crate::autograd::GradContext;
use crate::context::{CallContext, CompositeContext, KernelContext};
use crate::elementwise::comparison::{GREATER, GREATER_EQUAL};
use crate::elementwise::select::choose;
use crate::error::{Result, Tuple};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::linalg::flops_ns;
use crate::nn::operand::{self, Staged};
use crate::nn::softmax::softmax;
use crate::opdef::{Amp, Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, Surface};
use crate::types::Types;
use crate::{Array, creation};

/// Attention of queries to keys.
pub static SCALED_DOT_PRODUCT_ATTENTION: OpDef = OpDef {
    name: "scaled_dot_product_attention",
    surface: &[Surface::Npx("scaled_dot_product_attention")],
    params: &[
        Param::array("q"),
        Param::array("k"),
        Param::array("v"),
        Param::optional_array("mask"),
        Param::bool("is_causal", false),
    ],
    doc: "`softmax(q @ k.T / sqrt(d) + mask) @ v`: for each query, the mean of the values weighted by the scores of their keys. Leading axes \
          broadcast. The scores are computed block by block and not stored, so memory grows with the lengths, not with their product.\n\n\
          A query without any key gives zeros.\n\nRagged arrays (`mx.ragged`) of shape (n, length, d), or (n, length, heads, d), attend \
          within each of the n sequences; they take no `mask`.\n\nSource: Vaswani et al., Attention Is All You Need (2017), equation 1.",
    about: &[
        ("q", "Queries (..., l, d)."),
        ("k", "Keys (..., s, d)."),
        ("v", "Values (..., s, e)."),
        (
            "mask",
            "Broadcasts to (..., l, s). A boolean mask is true for the keys that a query attends to; numbers are added to the scores.",
        ),
        (
            "is_causal",
            "Query i attends to keys 0 to i only, whatever the lengths.",
        ),
    ],
    returns: &[("ndarray", "Of shape (..., l, e).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> k, v = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[10.0], [20.0]])
        >>> npx.scaled_dot_product_attention(np.zeros((2, 2)), k, v)  # all keys count alike
        array([[15.],
               [15.]])
        >>> npx.scaled_dot_product_attention(np.zeros((2, 2)), k, v, is_causal=True)
        array([[10.],
               [15.]])
    ",
    cpu: Cpu::Composite(attend),
    amp: Amp::Narrow,
    probe: Probe::calls(&[
        "f((4, 3)), f((5, 3)), f((5, 2))",
        "f((2, 4, 3)), f((2, 5, 3)), f((2, 5, 2)), None, True",
        "f((2, 2, 3, 3)), f((2, 1, 4, 3)), f((1, 1, 4, 2)), f((3, 4))",
        "f((2, 3, 2)), f((2, 4, 2)), f((2, 4, 2)), np.array([True, False, True, True])",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

fn attend(context: &CompositeContext) -> Result<crate::Outputs> {
    let shapes = [0, 1, 2].map(|i| context.shape(i));
    for (name, shape) in ["q", "k", "v"].iter().zip(shapes) {
        if shape.len() < 2 {
            return Err(context.shape_error(format!(
                "`{name}` has {} axes, needs at least 2: length and channels",
                shape.len()
            )));
        }
    }
    let [(q_lead, q), (k_lead, k), (v_lead, v)] = shapes.map(|s| s.split_at(s.len() - 2));
    if q[1] != k[1] || k[0] != v[0] {
        return Err(context.shape_error(format!(
            "queries have {} channels and keys {}; there are {} keys and {} values: both pairs must be equal",
            q[1], k[1], k[0], v[0]
        )));
    }
    let lead = broadcast_shapes(&[q_lead, k_lead, v_lead]).map_err(|_| {
        context
            .shape_error("axes before the last two broadcast, but those of `q`, `k` and `v` do not")
    })?;
    let whole = |x: &Array, tail: &[usize]| -> Result<Array> {
        let shape: Dims = lead.iter().chain(tail).copied().collect();
        match x.shape() == shape.as_slice() {
            true => Ok(x.clone()),
            false => x.broadcast_to(&shape),
        }
    };
    let mask = match context.opt(3) {
        None => None,
        Some(mask) => {
            let scores: Dims = lead.iter().copied().chain([q[0], k[0]]).collect();
            if !broadcasts(mask.shape(), &scores) {
                return Err(context.shape_error(format!(
                    "`mask` has shape {}, which does not broadcast to {}",
                    Tuple(mask.shape()),
                    Tuple(&scores)
                )));
            }
            Some(match mask.dtype() {
                DType::Bool => {
                    let dtype = operand::compute(operand::float_of(context, 0)?);
                    let number = |x: f64| Array::constant(Scalar::F64(x), dtype);
                    choose(mask, &number(0.0)?, &number(f64::NEG_INFINITY)?)?
                }
                _ => mask.clone(),
            })
        }
    };
    let scale = 1.0 / (q[1].max(1) as f64).sqrt();
    let attrs: Attrs = [Value::Bool(context.bool("is_causal")), Value::Float(scale)]
        .into_iter()
        .collect();
    let (q, k, v) = (
        whole(context.input(0), q)?,
        whole(context.input(1), k)?,
        whole(context.input(2), v)?,
    );
    let inputs = [Some(&q), Some(&k), Some(&v), mask.as_ref()];
    let mut found = invoke_with(&ATTENTION, &inputs, &attrs)?;
    found.truncate(1);
    Ok(found)
}

/// Whether `shape` broadcasts to `target`.
fn broadcasts(shape: &[usize], target: &[usize]) -> bool {
    shape.len() <= target.len()
        && (shape.iter().rev().zip(target.iter().rev())).all(|(&n, &m)| n == 1 || n == m)
}

/// Attention with operands of equal leading axes.
pub static ATTENTION: OpDef = OpDef {
    name: "attention",
    params: &[
        Param::array("q"),
        Param::array("k"),
        Param::array("v"),
        Param::optional_array("mask"),
        Param::bool("is_causal", false),
        Param::float("scale", 1.0),
    ],
    doc: "`softmax(scale * q @ k.T + mask) @ v`, and the logarithm of the sum of the exponentials of each query's scores.",
    types: Types::REAL_FLOAT,
    infer: attention_shapes,
    cpu: Cpu::Kernel(forward),
    grad: Grad::Fused(
        Keep {
            inputs: 0b1111,
            outputs: 0b11,
        },
        fused,
        composed,
    ),
    amp: Amp::Narrow,
    cost: Cost::Of(|context| attention_ns(context, 1)),
    probe: Probe::calls(&["f((2, 3, 2)), f((2, 4, 2)), f((2, 4, 3)), None, False, 0.5"]).ulp(64),
    ..OpDef::DEFAULT
};

/// The gradient of attention.
pub static ATTENTION_GRADIENT: OpDef = OpDef {
    name: "attention_gradient",
    params: &[
        Param::array("q"),
        Param::array("k"),
        Param::array("v"),
        Param::optional_array("mask"),
        Param::array("out"),
        Param::array("lse"),
        Param::array("dout"),
        Param::bool("is_causal", false),
        Param::float("scale", 1.0),
    ],
    doc: "Gradients of `attention` with respect to queries, keys and values, given its results and the cotangent of the first.",
    infer: |context| {
        check(context)?;
        let rows = &context.shape(0)[..context.shape(0).len() - 1];
        let values = context.shape(2).last().copied();
        let result: Dims = rows.iter().copied().chain(values).collect();
        if context.shape(4) != result.as_slice()
            || context.shape(6) != result.as_slice()
            || context.shape(5) != rows
        {
            return Err(context.shape_error(
                "results and cotangent have the shapes of the results of `attention`",
            ));
        }
        let dtype = context.dtype_of(4);
        context.many([0, 1, 2].map(|i| (Dims::from_slice(context.shape(i)), dtype)))
    },
    cpu: Cpu::Kernel(backward),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    cost: Cost::Of(|context| attention_ns(context, 3)),
    probe: Probe::calls(&["f((3, 2)), f((4, 2)), f((4, 2)), None, f((3, 2)), f((3,)), f((3, 2))"])
        .ulp(64),
    ..OpDef::DEFAULT
};

fn attention_shapes(context: &CallContext) -> Result<Inferred> {
    check(context)?;
    let dtype = operand::float_promoted(context, 3)?;
    let mut out = Dims::from_slice(context.shape(0));
    let axis = out.len() - 1;
    let rows = Dims::from_slice(&out[..axis]);
    out[axis] = context.shape(2)[context.shape(2).len() - 1];
    context.many([(out, dtype), (rows, operand::compute(dtype))])
}

fn attention_ns(context: &CallContext, passes: usize) -> u64 {
    let keys = context.shape(1)[context.shape(1).len() - 2];
    let value_dim = context.shape(2)[context.shape(2).len() - 1];
    let rows: usize = context.shape(0).iter().rev().skip(1).product();
    passes as u64 * flops_ns(2 * (context.input(0).len() + rows * value_dim) * keys)
}

/// Checks the preconditions of the kernels: equal leading axes, matching sizes, a mask that broadcasts to the scores.
fn check(context: &CallContext) -> Result<()> {
    let shapes = [0, 1, 2].map(|i| context.shape(i));
    if shapes.iter().any(|shape| shape.len() < 2) {
        return Err(context.shape_error("queries, keys and values have at least 2 axes"));
    }
    let [(q_lead, q), (k_lead, k), (v_lead, v)] = shapes.map(|s| s.split_at(s.len() - 2));
    if q_lead != k_lead || q_lead != v_lead || q[1] != k[1] || k[0] != v[0] {
        return Err(
            context.shape_error("queries (..., l, d) need keys (..., s, d) and values (..., s, e)")
        );
    }
    for i in 0..3 {
        operand::float_of(context, i)?;
    }
    let scores: Dims = q_lead.iter().copied().chain([q[0], k[0]]).collect();
    match context.opt(3) {
        Some(mask) if !broadcasts(mask.shape(), &scores) => {
            Err(context.shape_error(format!("`mask` does not broadcast to {}", Tuple(&scores))))
        }
        _ => Ok(()),
    }
}

/// The mask of a call as a kernel operand.
struct MaskOperand {
    tensor: Tensor,
    starts: Vec<isize>,
    strides: [isize; 2],
}

impl MaskOperand {
    fn of(context: &KernelContext, dtype: DType) -> Result<Option<MaskOperand>> {
        let Some(mask) = context.opt(3) else {
            return Ok(None);
        };
        let tensor = operand::typed(mask, dtype, context.threads)?;
        let (q, k) = (context.input(0).shape(), context.input(1).shape());
        let axes = q.len();
        let scores: Dims = q[..axes - 1].iter().copied().chain([k[axes - 2]]).collect();
        let layout = tensor.layout().broadcast_to(&scores)?;
        let strides = layout.strides();
        let (lead, tail) = strides.split_at(axes - 2);
        let mut starts = vec![0_isize];
        for (&n, &stride) in scores.iter().zip(lead) {
            starts = starts
                .iter()
                .flat_map(|&start| (0..n as isize).map(move |i| start + i * stride))
                .collect();
        }
        let strides = [tail[0], tail[1]];
        Ok(Some(MaskOperand {
            tensor,
            starts,
            strides,
        }))
    }

    fn mask(&self) -> Mask<'_> {
        Mask {
            ptr: self.tensor.data_ptr(),
            starts: &self.starts,
            row_stride: self.strides[0],
            col_stride: self.strides[1],
        }
    }
}

/// Offsets of segments of equal length.
fn even(count: usize, len: usize) -> Vec<i64> {
    (0..=count).map(|i| (i * len) as i64).collect()
}

fn segments(context: &KernelContext) -> [Vec<i64>; 2] {
    let (q, k) = (context.input(0).shape(), context.input(1).shape());
    let axes = q.len();
    let count = q[..axes - 2].iter().product();
    [even(count, q[axes - 2]), even(count, k[axes - 2])]
}

fn geometry<'a>(
    context: &KernelContext,
    offsets: &'a [Vec<i64>; 2],
    dtype: DType,
) -> Attention<'a> {
    let last = |i: usize| context.input(i).shape().last().copied().unwrap_or(0);
    Attention {
        elem: elem(dtype),
        q_offsets: &offsets[0],
        k_offsets: &offsets[1],
        heads: 1,
        dim: last(0),
        value_dim: last(2),
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
    let cover = MaskOperand::of(context, dtype)?;
    let offsets = segments(context);
    let out = Staged::new(context.output(0), dtype)?;
    // SAFETY: 1. operands are dense, of `dtype` and of matching shapes (the calling composite ensures this). 2. the mask broadcasts to the scores.
    // 3. the results were allocated for this call.
    unsafe {
        kernel::forward(
            context.threads,
            &geometry(context, &offsets, dtype),
            cover.as_ref().map(MaskOperand::mask).as_ref(),
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
    let dense: SmallVec<[Option<Tensor>; 7]> = (0..7)
        .map(|i| match i {
            3 => Ok(None),
            i => operand::dense(context.input(i), dtype, context.threads).map(Some),
        })
        .collect::<Result<_>>()?;
    let at = |i: usize| operand::pointer(dense[i].as_ref()).cast_const();
    let cover = MaskOperand::of(context, dtype)?;
    let offsets = segments(context);
    let outs: SmallVec<[Staged; 3]> = (0..3)
        .map(|i| Staged::new(context.output(i), dtype))
        .collect::<Result<_>>()?;
    let saved = Saved {
        q: at(0),
        k: at(1),
        v: at(2),
        out: at(4),
        lse: at(5),
        dout: at(6),
    };
    // SAFETY: as in `forward`; the other operands are its results and a cotangent of their shape.
    unsafe {
        kernel::backward(
            context.threads,
            &geometry(context, &offsets, dtype),
            cover.as_ref().map(MaskOperand::mask).as_ref(),
            &saved,
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
    // The gradient of the mask is that of the scores, which the kernel only has block by block: it is composed of operators.
    if g.wants(3) {
        return composed(g);
    }
    let attrs: Attrs = [g.get("is_causal").clone(), g.get("scale").clone()]
        .into_iter()
        .collect();
    let inputs = [
        Some(g.input(0)),
        Some(g.input(1)),
        Some(g.input(2)),
        g.opt_input(3),
        Some(g.output(0)),
        Some(g.output(1)),
        Some(g.dy(0)),
    ];
    let found = invoke_with(&ATTENTION_GRADIENT, &inputs, &attrs)?;
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    for (i, dx) in found.into_iter().enumerate() {
        if g.wants(i) {
            grads[i] = Some(g.fitted(dx, i)?);
        }
    }
    Ok(grads)
}

fn composed(g: &GradContext) -> Result<Grads> {
    let dtype = operand::compute(g.output(0).dtype());
    let wide = |x: &Array| x.astype(dtype);
    let mask = g.opt_input(3).map(wide).transpose()?;
    let [q, k, v, dout] = [g.input(0), g.input(1), g.input(2), g.dy(0)].map(wide);
    let found = attention_slopes(
        [&q?, &k?, &v?, &dout?],
        mask.as_ref(),
        g.bool("is_causal"),
        g.float("scale"),
    )?;
    let mut grads: Grads = SmallVec::from_elem(None, g.num_inputs());
    for (i, dx) in found.into_iter().enumerate() {
        if g.wants(i) {
            grads[i] = Some(g.fitted(dx, i)?);
        }
    }
    Ok(grads)
}

/// Gradients of attention with respect to queries, keys, values and scores, composed of differentiable operators. `[q, k, v, dout]` have shape
/// `(..., rows, channels)`. Keys whose mask is -inf are ignored.
///
/// # Errors
/// What the operators report.
pub fn attention_slopes(
    [q, k, v, dout]: [&Array; 4],
    mask: Option<&Array>,
    is_causal: bool,
    scale: f64,
) -> Result<[Array; 4]> {
    // A finite lower bound instead of -inf: a row of -inf would give NaN.
    let low = Array::constant(Scalar::F64(-1e30), q.dtype())?;
    let mut scores = q.matmul(&k.swap_last()?)?.scale(scale)?;
    if let Some(mask) = mask {
        scores = scores.add(mask)?.maximum(&low)?;
    }
    if is_causal {
        let axes = scores.ndim();
        let (rows, columns) = (scores.shape()[axes - 2], scores.shape()[axes - 1]);
        let row = creation::arange(rows, DType::I64)?.reshape(&[rows, 1])?;
        let column = creation::arange(columns, DType::I64)?;
        scores = choose(&row.binary(&GREATER_EQUAL, &column)?, &scores, &low)?;
    }
    let zero = Array::constant(Scalar::F64(0.0), q.dtype())?;
    let weights = choose(
        &scores.binary(&GREATER, &low)?,
        &softmax(&scores, -1)?,
        &zero,
    )?;
    let dv = weights.swap_last()?.matmul(dout)?;
    let dweights = dout.matmul(&v.swap_last()?)?;
    let shared = dweights.mul(&weights)?.sum(Some(&[-1]), true)?;
    let dscores = weights.mul(&dweights.sub(&shared)?)?;
    let dq = dscores.matmul(k)?.scale(scale)?;
    let dk = dscores.swap_last()?.matmul(q)?.scale(scale)?;
    Ok([dq, dk, dv, dscores])
}
