//! The operators that this crate calls: sums of gradients, copies into given outputs, methods of `Array`.
//!
//! A crate of operators lists them in one static, which the linker collects. So this crate does not depend on the crates of operators.

use std::sync::OnceLock;

use linkme::distributed_slice;

use crate::opdef::OpDef;

/// The operators, one field for each use.
#[expect(missing_docs, reason = "each field is named like its operator")]
pub struct Builtins {
    pub absolute: &'static OpDef,
    pub add: &'static OpDef,
    pub astype: &'static OpDef,
    pub broadcast_to: &'static OpDef,
    pub cast: &'static OpDef,
    pub concatenate: &'static OpDef,
    pub conjugate: &'static OpDef,
    pub copied: &'static OpDef,
    pub copy: &'static OpDef,
    pub cos: &'static OpDef,
    pub divide: &'static OpDef,
    pub equal: &'static OpDef,
    pub exp: &'static OpDef,
    pub filled: &'static OpDef,
    pub floor_divide: &'static OpDef,
    pub index: &'static OpDef,
    pub isfinite: &'static OpDef,
    pub isinf: &'static OpDef,
    pub isnan: &'static OpDef,
    pub less: &'static OpDef,
    pub log: &'static OpDef,
    pub logical_and: &'static OpDef,
    pub logical_not: &'static OpDef,
    pub logical_or: &'static OpDef,
    pub matmul: &'static OpDef,
    pub maximum: &'static OpDef,
    pub mean: &'static OpDef,
    pub minimum: &'static OpDef,
    pub multiply: &'static OpDef,
    pub negative: &'static OpDef,
    pub power: &'static OpDef,
    pub real: &'static OpDef,
    pub reciprocal: &'static OpDef,
    pub reshape: &'static OpDef,
    pub row_sparse_sum: &'static OpDef,
    pub row_sparse_to_dense: &'static OpDef,
    pub sign: &'static OpDef,
    pub sin: &'static OpDef,
    pub sqrt: &'static OpDef,
    pub square: &'static OpDef,
    pub subtract: &'static OpDef,
    pub sum: &'static OpDef,
    pub tanh: &'static OpDef,
    pub to_device: &'static OpDef,
    pub transpose: &'static OpDef,
    pub window: &'static OpDef,
    pub window_assign: &'static OpDef,
}

/// Lists from the linked crates of operators; the first one is used.
#[distributed_slice]
pub static BUILTINS: [Builtins];

/// The operators that this crate calls.
///
/// # Panics
/// If no crate of operators is linked.
#[inline]
pub fn builtins() -> &'static Builtins {
    static FOUND: OnceLock<&'static Builtins> = OnceLock::new();
    FOUND.get_or_init(|| {
        BUILTINS
            .first()
            .expect("a crate of operators, `mxnet-ops`, is linked into the program")
    })
}
