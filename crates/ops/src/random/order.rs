//! Random orders.

use mxnet_tensor::DType;

use crate::args::{Attrs, Param, Value};
use crate::invoke::invoke1;
use crate::opdef::{Cpu, OpDef, Surface};
use crate::random::continuous::DISTRIBUTION;
use crate::random::draw::{RANDOM_ORDER, RANDOM_REORDERED};

/// A random order.
pub static PERMUTATION: OpDef = OpDef {
    name: "permutation",
    surface: &[Surface::NpRandom("permutation")],
    params: &[Param::array("x")],
    doc: "The slices of an array along its first axis in random order, each order equally likely; for an integer, the integers below it.",
    cpu: Cpu::Composite(|cx| {
        let x = cx.input(0);
        if x.ndim() > 0 {
            return cx.done(invoke1(&RANDOM_REORDERED, &[x], &Attrs::none())?);
        }
        if !x.dtype().is_integer() {
            return Err(cx.dtype_error("`x` must be an integer or an array with at least one axis"));
        }
        let n = x.item()?.as_i64();
        if n < 0 {
            return Err(cx.value_error(format!("`x` must be at least 0, found {n}")));
        }
        let attrs: Attrs = [
            Value::from(&[n][..]),
            Value::DType(DType::I64),
            Value::Device(x.device()),
        ]
        .into_iter()
        .collect();
        cx.done(invoke1(&RANDOM_ORDER, &[], &attrs)?)
    }),
    ..DISTRIBUTION
};
