//! The inner product of complex vectors whose first operand is conjugated (`vdot`).
#![allow(unsafe_code)]

use mxnet_kernels::Elem;
use mxnet_kernels::gemm::{Epilogue, Matrix, Problem, conjugated_dot, gemm};
use mxnet_tensor::{Dims, Tensor};

use crate::Outputs;
use crate::args::Param;
use crate::autograd::GradCx;
use crate::batching::Batch;
use crate::context::{CallCx, KernelCx};
use crate::error::{Result, Tuple};
use crate::launch::elem;
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, one};
use crate::types::Types;

/// `vdot` of complex vectors: conjugates in the kernel, without a temporary array.
pub static CONJUGATED_DOT: OpDef = OpDef {
    name: "conjugated_dot",
    params: &[Param::array("a"), Param::array("b")],
    doc: "Sum of products of the conjugated elements of the vector `a` with those of the vector `b`.",
    types: Types::NUMERIC,
    infer: no_axes,
    cpu: Cpu::Kernel(conjugated),
    grad: Grad::Rule(Keep::INPUTS, |g: &GradCx| {
        let (a, b) = (g.input(0), g.input(1));
        let mut grads = Grads::new();
        grads.push(match g.wants(0) {
            true => Some(b.mul(&g.dy(0).conj()?)?),
            false => None,
        });
        grads.push(match g.wants(1) {
            true => Some(a.mul(g.dy(0))?),
            false => None,
        });
        Ok(grads)
    }),
    cost: Cost::Of(|cx| cx.shape(0).iter().product::<usize>() as u64 / 2),
    probe: Probe::calls(&[
        "c((3,)), c((3,))",
        "c((2500,)), c((2500,))",
        "c((40000,)), c((40000,))",
        "c((0,)), c((0,))",
    ])
    .against("lambda a, b: np.vdot(a, b)")
    .ulp(64),
    batch: Batch::Rule(|cx| {
        let (Some(a), Some(b)) = (cx.front(0)?, cx.front(1)?) else {
            return Err(cx.refused());
        };
        Ok(Outputs::from_iter([a
            .conj()?
            .mul(&b)?
            .sum(Some(&[1]), false)?]))
    }),
    ..OpDef::DEFAULT
};

fn no_axes(cx: &CallCx) -> Result<Inferred> {
    let (a, b) = (cx.shape(0), cx.shape(1));
    if a.len() != 1 || a != b {
        return Err(cx.shape_error(format!(
            "`a` has shape {} and `b` {}, two vectors of one length are needed",
            Tuple(a),
            Tuple(b)
        )));
    }
    one(Dims::new())
}

fn conjugated(cx: &KernelCx) -> Result<()> {
    let out = cx.output(0);
    let dtype = out.dtype();
    let a = operand::dense(cx.input(0), dtype, cx.threads)?;
    let b = operand::dense(cx.input(1), dtype, cx.threads)?;
    let (elem, n) = (elem(dtype), a.len());
    if matches!(elem, Elem::C64 | Elem::C128) {
        // SAFETY: both operands are dense, of one dtype and length (inference); the result is one element, allocated for this call.
        unsafe {
            conjugated_dot(
                cx.threads,
                elem,
                n,
                a.data_ptr(),
                b.data_ptr(),
                out.data_ptr(),
            );
        }
        return Ok(());
    }
    let step = dtype.size() as isize;
    let problem = Problem {
        elem,
        batch: &[],
        m: 1,
        n: 1,
        k: n,
        alpha: 1.0,
        beta: 0.0,
    };
    let matrix = |x: &Tensor| Matrix {
        ptr: x.data_ptr(),
        row_stride: step,
        col_stride: step,
        batch_strides: &[],
    };
    // SAFETY: as above.
    unsafe {
        gemm(
            cx.threads,
            &problem,
            &matrix(&a),
            &matrix(&b),
            &matrix(out),
            &Epilogue::NONE,
        );
    }
    Ok(())
}
