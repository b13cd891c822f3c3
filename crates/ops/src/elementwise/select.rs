//! Choosing between elements.

use mxnet_kernels::map;

use crate::Array;
use crate::args::{Attrs, Param};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Cuda, Grad, Keep, Onnx, OpDef, Probe};
use crate::types::Types;

pub(crate) static OPS: &[&OpDef] = &[&WHERE];

/// One array or the other.
pub static WHERE: OpDef = OpDef {
    name: "where",
    params: &[
        Param::array("condition"),
        Param::array("x"),
        Param::array("y"),
    ],
    doc: "Elements of `x` where `condition` is not zero, of `y` elsewhere.",
    types: Types::Choose,
    cpu: Cpu::Map(&map::WHERE),
    cuda: Cuda::Expr("x ? y : z"),
    grad: Grad::Rule(Keep::inputs(1), |g| {
        let zero = Array::scalar(mxnet_tensor::Scalar::I64(0), g.dy(0).dtype())?;
        let condition = g.input(0);
        let mut grads = g.elementwise(&[])?;
        grads.push(None);
        grads.push(if g.wants(1) {
            Some(g.fitted(choose(condition, g.dy(0), &zero)?, 1)?)
        } else {
            None
        });
        grads.push(if g.wants(2) {
            Some(g.fitted(choose(condition, &zero, g.dy(0))?, 2)?)
        } else {
            None
        });
        Ok(grads)
    }),
    onnx: Onnx::Node {
        ty: "Where",
        since: 9,
    },
    probe: Probe::calls(&[
        "b((2, 3)), f((2, 3)), f((2, 3))",
        "b((3,)), f((2, 3)), 1.5",
        "b(()), f((2, 1)), f((3,))",
    ]),
    ..OpDef::UNARY
};

/// Elements of `x` where `condition` is true, of `y` elsewhere.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn choose(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    invoke1(&WHERE, &[condition, x, y], &Attrs::none())
}
