//! Products of segments with one matrix per segment.
#![allow(unsafe_code)]

use mxnet_core::args::Param;
use mxnet_core::launch::elem;
use mxnet_core::opdef::{Amp, Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, one_of};
use mxnet_core::types::Types;
use mxnet_core::{Array, Attrs, Result, Value, invoke1};
use mxnet_kernels::segment::{matmul, outer};
use mxnet_ops::linalg::flops_ns;
use mxnet_ops::nn::operand::{self, Staged};
use mxnet_tensor::Dims;
use smallvec::smallvec;

use crate::offsets::{Offsets, count, rows};

/// Rows times the matrix of their segment.
pub static RAGGED_MATMUL: OpDef = OpDef {
    name: "ragged_matmul",
    params: &[
        Param::array("values"),
        Param::array("matrices"),
        Param::array("offsets"),
        Param::bool("transpose", false),
    ],
    doc: "Rows `values[r] @ matrices[s]` of each segment `s`: values `(rows, k)`, matrices `(segments, k, n)`, or `(segments, n, k)` if `transpose`.",
    types: Types::REAL_FLOAT,
    infer: |context| {
        let (total, segments) = (rows(context, 0)?, count(context, 2)?);
        let ([_, k], &[s, a, b]) = (context.shape(0), context.shape(1)) else {
            return Err(
                context.shape_error("values have axes (rows, k), matrices (segments, k, n)")
            );
        };
        let (inner, columns) = if context.bool("transpose") {
            (b, a)
        } else {
            (a, b)
        };
        if s != segments || inner != *k {
            return Err(context.shape_error(format!(
                "{segments} segments of rows of {k} elements need as many matrices with {k} rows, found {s} with {inner}"
            )));
        }
        one_of(
            Dims::from_slice(&[total, columns]),
            operand::float_promoted(context, 2)?,
        )
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = operand::compute(context.output(0).dtype());
        let x = operand::dense(context.input(0), dtype, context.threads)?;
        let w = operand::dense(context.input(1), dtype, context.threads)?;
        let offsets = Offsets::read(context, 2, x.shape()[0])?;
        let out = Staged::new(context.output(0), dtype)?;
        let g = offsets.segments(x.shape()[1]);
        // SAFETY: 1. the offsets are checked. 2. operands are dense, of `dtype`, and fit by inference. 3. no overlap.
        unsafe {
            matmul(
                context.threads,
                &g,
                out.tensor().shape()[1],
                context.bool("transpose"),
                elem(dtype),
                x.data_ptr(),
                w.data_ptr(),
                out.ptr(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (x, w, offsets) = (g.input(0), g.input(1), g.input(2));
        let is_transposed = g.bool("transpose");
        let mut grads: Grads = smallvec![None, None, None];
        if g.wants(0) {
            grads[0] = Some(g.fitted(multiply(g.dy(0), w, offsets, !is_transposed)?, 0)?);
        }
        if g.wants(1) {
            let dw = match is_transposed {
                true => outer_of(g.dy(0), x, offsets)?,
                false => outer_of(x, g.dy(0), offsets)?,
            };
            grads[1] = Some(g.fitted(dw, 1)?);
        }
        Ok(grads)
    }),
    amp: Amp::Narrow,
    cost: Cost::Of(|context| {
        flops_ns(2 * context.shape(0)[0] * context.shape(1)[1..].iter().product::<usize>())
    }),
    probe: Probe::calls(&[
        "f((5, 2)), f((2, 2, 3)), np.array([0, 2, 5])",
        "f((5, 2)), f((2, 3, 2)), np.array([0, 0, 5]), True",
    ])
    .ulp(32),
    positions: &[2],
    ..OpDef::DEFAULT
};

/// Sums of outer products over each segment: the transposed rows times other rows.
pub static RAGGED_OUTER: OpDef = OpDef {
    name: "ragged_outer",
    params: &[
        Param::array("lhs"),
        Param::array("rhs"),
        Param::array("offsets"),
    ],
    doc: "`lhs[s].T @ rhs[s]` of the rows of each segment: `(rows, k)` and `(rows, n)` give `(segments, k, n)`, 0 for empty segments.",
    types: Types::REAL_FLOAT,
    infer: |context| {
        let segments = count(context, 2)?;
        let (&[rows, k], &[others, n]) = (context.shape(0), context.shape(1)) else {
            return Err(context.shape_error("both have axes (rows, columns)"));
        };
        if rows != others {
            return Err(context.shape_error(format!("{rows} rows and {others} rows")));
        }
        one_of(
            Dims::from_slice(&[segments, k, n]),
            operand::float_promoted(context, 2)?,
        )
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = operand::compute(context.output(0).dtype());
        let x = operand::dense(context.input(0), dtype, context.threads)?;
        let y = operand::dense(context.input(1), dtype, context.threads)?;
        let offsets = Offsets::read(context, 2, x.shape()[0])?;
        let out = Staged::new(context.output(0), dtype)?;
        let g = offsets.segments(x.shape()[1]);
        // SAFETY: 1. the offsets are checked. 2. operands are dense, of `dtype`, with equally many rows. 3. no overlap.
        unsafe {
            outer(
                context.threads,
                &g,
                y.shape()[1],
                elem(dtype),
                x.data_ptr(),
                y.data_ptr(),
                out.ptr(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (x, y, offsets) = (g.input(0), g.input(1), g.input(2));
        let mut grads: Grads = smallvec![None, None, None];
        if g.wants(0) {
            grads[0] = Some(g.fitted(multiply(y, g.dy(0), offsets, true)?, 0)?);
        }
        if g.wants(1) {
            grads[1] = Some(g.fitted(multiply(x, g.dy(0), offsets, false)?, 1)?);
        }
        Ok(grads)
    }),
    amp: Amp::Narrow,
    cost: Cost::Of(|context| flops_ns(2 * context.input(0).len() * context.shape(1)[1])),
    probe: Probe::calls(&["f((5, 2)), f((5, 3)), np.array([0, 2, 2, 5])"]).ulp(32),
    positions: &[2],
    ..OpDef::DEFAULT
};

fn multiply(x: &Array, w: &Array, offsets: &Array, is_transposed: bool) -> Result<Array> {
    let attrs: Attrs = [Value::Bool(is_transposed)].into_iter().collect();
    invoke1(&RAGGED_MATMUL, &[x, w, offsets], &attrs)
}

fn outer_of(x: &Array, y: &Array, offsets: &Array) -> Result<Array> {
    invoke1(&RAGGED_OUTER, &[x, y, offsets], &Attrs::none())
}
