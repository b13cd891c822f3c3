//! Integers, slices, new axes and the ellipsis: views, and the way back.

use std::sync::Arc;

use mxnet_tensor::{IndexItem, Scalar};

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::cpu;
use crate::creation::dims;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Cuda, Grad, Keep, Onnx, OpDef, Probe, Viewed, one};
use crate::types::Types;

/// `x[key]` without arrays in the key.
pub static INDEX: OpDef = OpDef {
    name: "index",
    params: &[Param::array("x"), Param::required("key", ParamKind::Index)],
    doc: "View of the elements that `key` (integers, slices, `None` and one `...`) names.",
    cpu: Cpu::View(|cx| Ok(Viewed::Shared(cx.layout.index(cx.index("key"))?.view))),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [g.get("key").clone(), Value::from(g.shape(0))]
            .into_iter()
            .collect();
        g.one(invoke1(&INDEX_SPREAD, &[g.dy(0)], &attrs)?)
    }),
    onnx: Onnx::Node {
        ty: "Slice",
        since: 10,
    },
    probe: Probe::calls(&[
        "f((4, 5)), (slice(1, 3), slice(None, None, -2))",
        "f((4, 5)), 2",
        "f((2, 3, 4)), (Ellipsis, None, 1)",
        "f((0, 3)), slice(None)",
        "f(()), None",
    ])
    .against("lambda x, key: x[key]"),
    ..OpDef::VIEW
};

/// Zeros with `y` at the places that `key` names: the gradient of [`INDEX`].
pub static INDEX_SPREAD: OpDef = OpDef {
    name: "index_spread",
    params: &[
        Param::array("y"),
        Param::required("key", ParamKind::Index),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Array of `shape` with `y` at the places that `key` (without arrays) names and zeros elsewhere.",
    types: Types::First,
    infer: |cx| one(dims(cx.op.name, cx.ints("shape"))?),
    cpu: Cpu::Kernel(|cx| {
        let out = cx.output(0);
        cpu::fill(out, Scalar::I64(0), cx.threads);
        let view = out.layout().index(cx.index("key"))?.view;
        cpu::copy(cx.input(0), &out.with_layout(view), cx.threads)
    }),
    cuda: Cuda::None,
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [g.get("key").clone()].into_iter().collect();
        g.one(invoke1(&INDEX, &[g.dy(0)], &attrs)?)
    }),
    probe: Probe::calls(&[
        "f((2, 3)), (slice(1, 3), slice(None, None, -2)), (4, 5)",
        "f((5,)), 2, (4, 5)",
        "f((0,)), slice(3, 3), (4,)",
    ])
    .against("index_spread_reference"),
    ..OpDef::DEFAULT
};

impl Array {
    /// View of the elements that a key without arrays names.
    ///
    /// # Errors
    /// [`crate::Error::Index`] if the key does not fit the axes.
    pub fn index(&self, key: Arc<[IndexItem]>) -> Result<Array> {
        invoke1(&INDEX, &[self], &[Value::Index(key)].into_iter().collect())
    }
}
