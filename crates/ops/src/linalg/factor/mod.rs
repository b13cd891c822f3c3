//! Factorisations and functions that are computed from them: inverses, determinants, singular values, eigenvalues.
//!
//! The kernels are those of `mxnet-linalg`. Calls wait for the result (`OpDef::waits`), so that a matrix that cannot be factored is an error at
//! the call. Gradient formulas follow the tape's convention for complex cotangents: dL = Re sum(conj(cotangent) * change).

mod bridge;
mod cholesky;
mod determinant;
mod eigen;
mod inverse;
mod matrix;
mod pinv;
mod qr;
mod svd;

pub use cholesky::*;
pub use determinant::*;
pub use eigen::*;
pub use inverse::*;
pub use pinv::*;
pub use qr::*;
pub use svd::*;

use mxnet_tensor::DType;

use crate::context::{CallContext, InferContext};
use crate::error::Result;
use crate::opdef::{Cost, OpDef};
use crate::types::{self, DTypes, Lift, Out, Types};

pub(crate) static OPS: &[&OpDef] = &[
    &INVERSE,
    &INV,
    &SOLVE_STACKS,
    &SOLVE,
    &SOLVE_TRIANGULAR,
    &CHOLESKY_LOWER,
    &CHOLESKY,
    &DET,
    &COFACTORS,
    &SLOGDET,
    &QR,
    &QR_RAW,
    &SVD,
    &SVDVALS,
    &EIGH,
    &EIGVALSH_OF,
    &EIGVALSH,
    &EIG_COMPLEX,
    &EIG,
    &EIGVALS_COMPLEX,
    &EIGVALS,
    &PINV,
];

/// Default fields for factorisations.
const FACTORISATION: OpDef = OpDef {
    types: Types::FACTORED,
    waits: true,
    cost: Cost::Of(cost_ns),
    amp: crate::opdef::Amp::WidenToF32,
    ..OpDef::DEFAULT
};

/// An estimate between the n^3 / 3 operations of a Cholesky factorisation and about 20 n^3 for singular values, at a few operations a nanosecond.
fn cost_ns(context: &InferContext) -> u64 {
    let shape = context.shape(0);
    let least = shape.iter().rev().take(2).min().copied().unwrap_or(0);
    shape
        .iter()
        .fold(least as u64 / 2, |ns, &n| ns.saturating_mul(n as u64))
}

/// The dtype that the call computes in.
fn factored(context: &CallContext) -> Result<DType> {
    let (op, lift) = (context.op.name, Lift::ToDefaultFloat);
    let (dtype, _) = types::resolve(op, DTypes::FACTORED, lift, Out::Same, context.inputs, None)?;
    Ok(dtype)
}

/// The dtype in which matrices of dtype `given` are factored, if real results have dtype `real`.
fn dtype_within(given: DType, real: DType) -> DType {
    if given.is_complex() {
        real.complex()
    } else {
        real
    }
}
