//! Products of vectors, matrices and higher arrays, and factorisations.

mod along;
mod composed;
mod conjugated;
mod einsum;
mod factor;
mod norm;
mod product;

pub use along::*;
pub use composed::*;
pub use conjugated::*;
pub use einsum::*;
pub use factor::*;
pub use norm::*;
pub use product::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &MATMUL,
    &DOT,
    &INNER,
    &OUTER,
    &VDOT,
    &CONJUGATED_DOT,
    &VECDOT,
    &MATVEC,
    &VECMAT,
    &MATMUL_ALONG,
    &MATVEC_ALONG,
    &VECMAT_ALONG,
    &VECDOT_ALONG,
    &KRON,
    &TENSORDOT,
    &EINSUM,
    &MULTI_DOT,
    &MATRIX_POWER,
    &NORM,
    &VECTOR_NORM,
    &MATRIX_NORM,
    &MATRIX_RANK,
    &LSTSQ,
    &BATCH_DOT,
];

pub(crate) use factor::OPS as FACTORISATIONS;
