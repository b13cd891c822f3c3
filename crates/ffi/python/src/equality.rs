//! `==` and `!=`, which accept any object, also one that holds no numbers.

use mxnet::core::OpDef;
use mxnet::ops::elementwise::comparison;
use pyo3::prelude::*;

/// Whether the operator is `==` or `!=`, which accept any object.
pub fn is_equality(op: &'static OpDef) -> bool {
    std::ptr::eq(op, &raw const comparison::EQUAL)
        || std::ptr::eq(op, &raw const comparison::NOT_EQUAL)
}

/// Elementwise `==` or `!=` with an object that does not hold numbers.
#[cold]
pub fn unlike(
    x: &Bound<'_, PyAny>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let module = x.py().import("mxnet.numpy._comparing")?;
    module
        .call_method1("unlike", (x, other, op.name))
        .map(Bound::unbind)
}
