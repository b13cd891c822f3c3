//! Division of polynomials, given as sequences of coefficients.
#![allow(unsafe_code)]

use mxnet_kernels::copy::copy_row;
use mxnet_kernels::polynomial::divide;
use mxnet_tensor::Dims;
use smallvec::SmallVec;

use super::convolve::{Shifts, sequences, slid};
use crate::Array;
use crate::args::{Attrs, Param};
use crate::autograd::GradContext;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::nn::operand::{Staged, compute, dense};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, one};
use crate::shape::{concatenate, flip, narrow};
use crate::types::Types;

/// The kernel of `polydiv`.
pub static POLYNOMIAL_DIVISION: OpDef = OpDef {
    name: "polynomial_division",
    params: &[Param::array("u"), Param::array("v")],
    doc: "The n - m + 1 coefficients of the quotient of two polynomials of n and m coefficients, highest power first, followed by the m - 1 of the \
        remainder.",
    types: Types::INEXACT,
    infer: |context| {
        sequences(context)?;
        let (n, m) = (context.input(0).len(), context.input(1).len());
        if m > n {
            return Err(context.shape_error(format!(
                "`v` has {m} coefficients, more than the {n} of `u`"
            )));
        }
        one(Dims::from_slice(&[n]))
    },
    cpu: Cpu::Kernel(|context| {
        let dtype = compute(context.output(0).dtype());
        let out = Staged::new(context.output(0), dtype)?;
        let dividend = dense(context.input(0), dtype, context.threads)?;
        let divisor = dense(context.input(1), dtype, context.threads)?;
        // SAFETY: all are dense and of one dtype, which is not a 16-bit float; the output has as many elements as `u`, at least those of `v`
        // (inference), and overlaps no input.
        unsafe {
            let bytes = dividend.len() * dtype.size();
            copy_row(dividend.data_ptr(), out.ptr(), bytes);
            divide(
                elem(dtype),
                out.ptr(),
                dividend.len(),
                divisor.data_ptr(),
                divisor.len(),
            );
        }
        out.finish(context.threads)
    }),
    grad: Grad::Rule(Keep::ALL, gradients),
    // For a short divisor, each product depends on the one before it.
    cost: Cost::Of(|context| (context.input(0).len() as u64).saturating_mul(context.input(1).len() as u64)),
    probe: Probe::calls(&[
        "f((5,)), f((3,))",
        "f((4,)), f((4,))",
        "f((6,)), f((1,))",
        "c((5,)), c((2,))",
        "i((6,), 9), f((3,))",
    ])
    .within(0.5..1.5)
    .against("lambda u, v: numpy.concatenate([numpy.polydiv(u, v)[0], numpy.convolve(numpy.polydiv(u, v)[0], -v)[len(u) - len(v) + 1:] + u[len(u) - len(v) + 1:]])")
    .ulp(64),
    ..OpDef::DEFAULT
};

/// With `u[t] = sum of q[k] v[t - k]`, plus a coefficient of the remainder for the last m - 1 of them: let l be the cotangents of `u`. Their end
/// equals the cotangents of the remainder. The elements before it follow from `sum of l[t] v[t - k]` = the cotangent of `q[k]`: this is a division by
/// the same polynomial, backwards, that starts from the known end. The cotangent of `v[j]` is `-sum of l[t] q[t - j]`.
fn gradients(g: &GradContext) -> Result<Grads> {
    let v = g.input(1).reshape(&[g.input(1).len()])?.conj()?;
    let (n, m) = (g.dy(0).len(), v.len());
    let known = m - 1;
    let backwards = flip(g.dy(0), &[0])?;
    let divided = if known == 0 {
        backwards
    } else {
        // The dividend that corresponds to the known end of l, and space for a remainder that is not used.
        let start = slid(
            &narrow(&backwards, 0, 0, known)?,
            &v,
            &Shifts {
                before: known,
                count: m,
                reversed: true,
                conjugated: false,
            },
        )?;
        let start = narrow(&start, 0, 0, known)?;
        let rest = narrow(&backwards, 0, known, n)?;
        let zeros = start.scale(0.0)?;
        concatenate(&[&start, &rest, &zeros], 0)?
    };
    let solved = invoke1(&POLYNOMIAL_DIVISION, &[&divided, &v], &Attrs::none())?;
    let du = flip(&narrow(&solved, 0, 0, n)?, &[0])?;
    let back =
        |dx: Array, i: usize| -> Result<Array> { dx.reshape(g.shape(i))?.astype(g.dtype_of(i)) };
    let mut grads: Grads = SmallVec::from_iter([None, None]);
    if g.wants(1) {
        let quotient = narrow(g.output(0), 0, 0, n - known)?;
        let along = Shifts {
            before: 0,
            count: m,
            reversed: false,
            conjugated: true,
        };
        grads[1] = Some(back(slid(&du, &quotient, &along)?.neg()?, 1)?);
    }
    if g.wants(0) {
        grads[0] = Some(back(du, 0)?);
    }
    Ok(grads)
}
