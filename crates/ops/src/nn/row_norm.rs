//! Normalisation of rows of consecutive elements: the operator with a kernel that layer, group, instance and RMS normalisation call, and its gradient.
#![allow(unsafe_code)]

use mxnet_kernels::norm::{self as kernel, Affine, Centre, RowNorm};
use mxnet_tensor::{DType, Dims, Tensor};

use crate::Outputs;
use crate::args::{Args, Attrs, Param, ParamKind};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::error::{Result, Tuple};
use crate::invoke::invoke_with;
use crate::launch::elem;
use crate::nn::batch_norm::{NORM, affine_grads, four};
use crate::nn::operand::{self, Staged};
use crate::opdef::{Cpu, Grad, Keep, OpDef, Probe};
use crate::workspace;

/// Normalisation of rows of `len` consecutive elements.
pub static ROW_NORM: OpDef = OpDef {
    name: "row_norm",
    params: &[
        Param::array("x"),
        Param::optional_array("gamma"),
        Param::optional_array("beta"),
        Param::required("len", ParamKind::Int),
        Param::int("groups", 0),
        Param::int("inner", 1),
        Param::bool("centred", true),
        Param::float("eps", 1e-5),
    ],
    doc: "Result, mean and inverse deviation of rows of `len` elements in C order. Without `groups`, gamma and beta have an element for each of a row; \
          with them, row r is group `r % groups` of a sample, and gamma and beta have an element for each `inner` elements of a sample. Rows that are \
          not `centred` have mean 0.",
    infer: |context| {
        let dtype = operand::float_of(context, 0)?;
        let (total, len) = (context.input(0).len(), context.int("len").max(0) as usize);
        let rows = total.checked_div(len).unwrap_or(0);
        let needed = geometry(&context.args, total, operand::compute(dtype)).parameters();
        for i in [1, 2] {
            if let Some(vector) = context
                .opt(i)
                .filter(|v| v.len() != needed || v.ndim() != 1)
            {
                let name = ["gamma", "beta"][i - 1];
                return Err(context.shape_error(format!(
                    "`{name}` has shape {}, needs ({needed},)",
                    Tuple(vector.shape())
                )));
            }
        }
        let statistics = (Dims::from_slice(&[rows]), operand::compute(dtype));
        context.many([
            (Dims::from_slice(context.shape(0)), dtype),
            statistics.clone(),
            statistics,
        ])
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = operand::compute(context.output(0).dtype());
        let x = operand::dense(context.input(0), dtype, context.threads)?;
        let [gamma, beta, ..] = four(context, [1, 2, usize::MAX, usize::MAX], dtype)?;
        let y = Staged::new(context.output(0), dtype)?;
        let at = |t: &Option<Tensor>| operand::pointer(t.as_ref()).cast_const();
        let g = geometry(&context.args, x.len(), dtype);
        // SAFETY: 1. operands are dense, of `dtype`, with as many elements as the geometry says (inference checked). 2. results overlap none.
        unsafe {
            kernel::row_norm(
                context.threads,
                &g,
                x.data_ptr(),
                at(&gamma),
                at(&beta),
                y.ptr(),
                context.output(1).data_ptr(),
                context.output(2).data_ptr(),
            );
        }
        y.finish(context.threads)
    }),
    grad: Grad::Fused(
        Keep {
            inputs: 0b11,
            outputs: 0b110,
        },
        |g| {
            let gradients = if g.has_dy(1) || g.has_dy(2) {
                row_slopes(g)?
            } else {
                let attrs: Attrs = ["len", "groups", "inner", "centred", "eps"]
                    .iter()
                    .map(|name| g.get(name).clone())
                    .collect();
                let inputs = [
                    Some(g.input(0)),
                    Some(g.dy(0)),
                    g.opt_input(1),
                    Some(g.output(1)),
                    Some(g.output(2)),
                ];
                invoke_with(&ROW_NORM_GRADIENT, &inputs, &attrs)?
            };
            Ok(affine_grads(g, gradients))
        },
        |g| Ok(affine_grads(g, row_slopes(g)?)),
    ),
    probe: Probe::calls(&[
        "f((3, 4)), f((4,)), f((4,)), 4",
        "f((2, 4, 3)), f((4,)), None, 6, 2, 3",
    ])
    .ulp(64),
    batch: Batch::Rule(
        |context| match context.is_batched(1) || context.is_batched(2) {
            true => Err(context.refused()),
            false => context.call_with_first(0),
        },
    ),
    ..NORM
};

/// Gradients of row normalisation, fused in one kernel.
pub static ROW_NORM_GRADIENT: OpDef = OpDef {
    name: "row_norm_gradient",
    params: &[
        Param::array("x"),
        Param::array("dy"),
        Param::optional_array("gamma"),
        Param::array("mean"),
        Param::array("inverse"),
        Param::required("len", ParamKind::Int),
        Param::int("groups", 0),
        Param::int("inner", 1),
        Param::bool("centred", true),
        Param::float("eps", 1e-5),
    ],
    doc: "Gradients of `row_norm` with respect to x, gamma and beta.",
    infer: |context| {
        let dtype = operand::float_of(context, 0)?;
        let g = geometry(&context.args, context.input(0).len(), dtype);
        let needed = g.parameters();
        context.check_shape(1, context.shape(0))?;
        context.check_shape(2, &[needed])?;
        context.check_shape(3, &[g.rows])?;
        context.check_shape(4, &[g.rows])?;
        let parameters = (Dims::from_slice(&[needed]), operand::compute(dtype));
        context.many([
            (Dims::from_slice(context.shape(0)), dtype),
            parameters.clone(),
            parameters,
        ])
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = operand::compute(context.output(0).dtype());
        let x = operand::dense(context.input(0), dtype, context.threads)?;
        let dy = operand::dense(context.input(1), dtype, context.threads)?;
        let [gamma, mean, inverse, _] = four(context, [2, 3, 4, usize::MAX], dtype)?;
        let dx = Staged::new(context.output(0), dtype)?;
        let at = |t: &Option<Tensor>| operand::pointer(t.as_ref()).cast_const();
        let g = geometry(&context.args, x.len(), dtype);
        let scratch = workspace::take(kernel::row_norm_backward_scratch_bytes(&g))?;
        // SAFETY: 1. operands are dense, of `dtype`, with as many elements as the geometry says (inference of the forward call checked), the scratch
        // has the size the kernel asks for. 2. results overlap none.
        unsafe {
            kernel::row_norm_backward(
                context.threads,
                &g,
                x.data_ptr(),
                dy.data_ptr(),
                at(&gamma),
                at(&mean),
                at(&inverse),
                dx.ptr(),
                context.output(1).data_ptr(),
                context.output(2).data_ptr(),
                scratch.data_ptr(),
            );
        }
        dx.finish(context.threads)
    }),
    grad: Grad::Stop("gradients of gradients are composed of other operators"),
    probe: Probe::calls(&["f((3, 4)), f((3, 4)), f((4,)), f((3,)), f((3,)), 4"]).ulp(64),
    ..NORM
};

fn geometry(args: &Args, total: usize, dtype: DType) -> RowNorm {
    let size = |name: &str| args.int(name).max(0) as usize;
    let (len, groups) = (size("len"), size("groups"));
    RowNorm {
        elem: elem(operand::compute(dtype)),
        rows: total.checked_div(len).unwrap_or(0),
        len,
        centre: if args.bool("centred") {
            Centre::Mean
        } else {
            Centre::Zero
        },
        affine: if groups == 0 {
            Affine::PerElement
        } else {
            Affine::PerChannel {
                groups,
                inner: size("inner").max(1),
            }
        },
        epsilon: args.float("eps"),
    }
}

/// Gradients of row normalisation composed of differentiable operators. The data is reshaped to (samples, groups, channels of a group, inner).
fn row_slopes(g: &GradContext) -> Result<Outputs> {
    let (len, groups) = (g.int("len") as usize, g.int("groups").max(0) as usize);
    let inner = if groups == 0 {
        1
    } else {
        g.int("inner").max(1) as usize
    };
    let per_sample = groups.max(1);
    let rows = g.output(1).len();
    let full = [rows / per_sample, per_sample, len / inner, inner];
    let one_each = [rows / per_sample, per_sample, 1, 1];
    let parameters = [1, per_sample, len / inner, 1];
    let work = g.output(1).dtype();
    let x = g.input(0).astype(work)?.reshape(&full)?;
    let dy = g.dy(0).astype(work)?.reshape(&full)?;
    let inverse = g.output(2).reshape(&one_each)?;
    let centred_rows = g.bool("centred");
    let centred = if centred_rows {
        x.sub(&g.output(1).reshape(&one_each)?)?
    } else {
        x
    };
    let hat = centred.mul(&inverse)?;
    let weighed = match g.opt_input(1) {
        Some(gamma) => dy.mul(&gamma.reshape(&parameters)?)?,
        None => dy.clone(),
    };
    let row = Some(&[2_i64, 3][..]);
    let mut inner_part = weighed.sub(&hat.mul(&weighed.mul(&hat)?.mean(row, true)?)?)?;
    if centred_rows {
        inner_part = inner_part.sub(&weighed.mean(row, true)?)?;
    }
    let mut dx = inner_part.mul(&inverse)?;
    let share = 1.0 / len as f64;
    if g.has_dy(1) && centred_rows {
        dx = dx.add(&g.dy(1).reshape(&one_each)?.scale(share)?)?;
    }
    if g.has_dy(2) {
        let cube = inverse.mul(&inverse.square()?)?;
        dx = dx.sub(
            &g.dy(2)
                .reshape(&one_each)?
                .scale(share)?
                .mul(&cube)?
                .mul(&centred)?,
        )?;
    }
    // Without groups, gamma and beta have one element for each element of a row; with groups, one for each channel.
    let others: &[i64] = if groups == 0 { &[0, 1, 3] } else { &[0, 3] };
    let size = if groups == 0 {
        len
    } else {
        groups * len / inner
    };
    let mut all = Outputs::new();
    all.push(dx.reshape(g.shape(0))?);
    all.push(dy.mul(&hat)?.sum(Some(others), false)?.reshape(&[size])?);
    all.push(dy.sum(Some(others), false)?.reshape(&[size])?);
    Ok(all)
}
