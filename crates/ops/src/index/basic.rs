//! Basic indexing (integers, slices, new axes, ellipsis): views, and their gradients.

use mxnet_tensor::{IndexItem, Layout, Scalar};

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::cpu;
use crate::creation::dims;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Grad, Keep, OpDef, Probe, Viewed, one};
use crate::sum_to;
use crate::types::Types;

/// `x[key]` without arrays in the key.
pub static INDEX: OpDef = OpDef {
    name: "index",
    params: &[Param::array("x"), Param::required("key", ParamKind::Index)],
    doc: "View of the elements that `key` (integers, slices, `None` and one `...`) selects.",
    cpu: Cpu::View(|context| {
        Ok(Viewed::Shared(view(
            context.layout,
            context.index_items("key"),
        )?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [g.get("key").clone(), Value::from(g.shape(0))]
            .into_iter()
            .collect();
        g.one(invoke1(&INDEX_SPREAD, &[g.dy(0)], &attrs)?)
    }),
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

/// Zeros with `y` at the positions of `key`: the gradient of [`INDEX`].
pub static INDEX_SPREAD: OpDef = OpDef {
    name: "index_spread",
    params: &[
        Param::array("y"),
        Param::required("key", ParamKind::Index),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Array of `shape` with `y` at the elements that `key` (without arrays) selects and zeros elsewhere.",
    types: Types::First,
    infer: |context| {
        let shape = dims(context.op.name, context.ints("shape"))?;
        mxnet_tensor::checked_len(&shape)?;
        let view = view(&Layout::contiguous(&shape), context.index_items("key"))?;
        context.input(0).layout().broadcast_to(view.shape())?;
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let out = context.output(0);
        cpu::fill(out, Scalar::I64(0), context.threads);
        let view = view(out.layout(), context.index_items("key"))?;
        cpu::copy(context.input(0), &out.with_layout(view), context.threads)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [g.get("key").clone()].into_iter().collect();
        g.one(sum_to(&invoke1(&INDEX, &[g.dy(0)], &attrs)?, g.shape(0))?)
    }),
    probe: Probe::calls(&[
        "f((2, 3)), (slice(1, 3), slice(None, None, -2)), (4, 5)",
        "f((1, 3)), slice(1, 3), (4, 3)",
        "f((5,)), 2, (4, 5)",
        "f((0,)), slice(3, 3), (4,)",
    ])
    .against("lambda y, key, shape: (lambda z: (z.__setitem__(key, y), z)[1])(numpy.zeros(shape))"),
    batch: Batch::Rule(|context| {
        let changes = [
            ("key", key_of_batch(context.index_items("key"))),
            ("shape", context.prefixed("shape", &[context.size as i64])),
        ];
        context.call(&context.fronts()?, &context.with(&changes))
    }),
    ..OpDef::DEFAULT
};

/// The view of a key without arrays.
fn view(layout: &Layout, key: &[IndexItem]) -> Result<Layout> {
    let found = layout.index(key)?;
    match found.advanced {
        None => Ok(found.view),
        Some(_) => Err(Error::index("", "index arrays make no view")),
    }
}

/// The key for a batch: the whole batch axis, then the key of each example.
fn key_of_batch(key: &[IndexItem]) -> Value {
    let items: Vec<IndexItem> = std::iter::once(&IndexItem::ALL)
        .chain(key)
        .cloned()
        .collect();
    Value::Index(items.into())
}
