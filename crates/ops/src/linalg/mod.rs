//! Products of vectors, matrices and higher arrays.

mod composed;
mod einsum;
mod product;

pub use composed::*;
pub use einsum::*;
pub use product::*;

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[
    &MATMUL,
    &DOT,
    &INNER,
    &OUTER,
    &VDOT,
    &VECDOT,
    &KRON,
    &TENSORDOT,
    &EINSUM,
    &MULTI_DOT,
    &MATRIX_POWER,
];
