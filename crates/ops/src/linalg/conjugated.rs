//! The inner product of complex vectors whose first operand is conjugated (`vdot`).
#![allow(unsafe_code)]

use mxnet_kernels::Elem;
use mxnet_kernels::gemm::{Epilogue, Matrix, Problem, conjugated_dot, gemm};
use mxnet_tensor::{Dims, Tensor};

use crate::Outputs;
use crate::args::Param;
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
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
    grad: Grad::Rule(Keep::INPUTS, |g: &GradContext| {
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
    cost: Cost::Of(|context| context.shape(0).iter().product::<usize>() as u64 / 2),
    probe: Probe::calls(&[
        "c((3,)), c((3,))",
        "c((2500,)), c((2500,))",
        "c((40000,)), c((40000,))",
        "c((0,)), c((0,))",
    ])
    .against("lambda a, b: np.vdot(a, b)")
    .ulp(64),
    batch: Batch::Rule(|context| {
        let (Some(a), Some(b)) = (context.front(0)?, context.front(1)?) else {
            return Err(context.refused());
        };
        Ok(Outputs::from_iter([a
            .conj()?
            .mul(&b)?
            .sum(Some(&[1]), false)?]))
    }),
    ..OpDef::DEFAULT
};

fn no_axes(context: &CallContext) -> Result<Inferred> {
    let (a, b) = (context.shape(0), context.shape(1));
    if a.len() != 1 || a != b {
        return Err(context.shape_error(format!(
            "`a` has shape {} and `b` {}, two vectors of one length are needed",
            Tuple(a),
            Tuple(b)
        )));
    }
    one(Dims::new())
}

fn conjugated(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let dtype = out.dtype();
    let a = operand::dense(context.input(0), dtype, context.threads)?;
    let b = operand::dense(context.input(1), dtype, context.threads)?;
    let (elem, n) = (elem(dtype), a.len());
    if matches!(elem, Elem::C64 | Elem::C128) {
        // SAFETY: both operands are dense, of one dtype and length (inference); the result is one element, allocated for this call.
        unsafe {
            conjugated_dot(
                context.threads,
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
            context.threads,
            &problem,
            &matrix(&a),
            &matrix(&b),
            &matrix(out),
            &Epilogue::NONE,
        );
    }
    Ok(())
}
