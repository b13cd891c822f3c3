//! Views given by strides alone (`as_strided`), their gradient, and assignment to them.
//!
//! Strides and offset count elements of the viewed array in C order, so that array must be contiguous.

use mxnet_tensor::{Layout, Scalar, Strides};

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::creation::dims;
use crate::error::{Error, Result};
use crate::invoke::{invoke, invoke1};
use crate::opdef::{Cpu, Grad, Grads, Keep, OpDef, Probe, Viewed, one};
use crate::types::Types;
use crate::{Args, Array, cpu, creation};

/// The elements at strided positions.
pub static WINDOW: OpDef = OpDef {
    name: "window",
    params: &[
        Param::array("x"),
        Param::required("shape", ParamKind::Ints),
        Param::required("strides", ParamKind::Ints),
        Param::required("offset", ParamKind::Int),
    ],
    doc: "View of the elements of `x`, which is in C order, at `offset` plus multiples of `strides`, in elements.",
    cpu: Cpu::View(|context| {
        if !context.layout.is_contiguous() {
            return Err(Error::value(context.op.name, "`x` is not in C order"));
        }
        let shape = dims(context.op.name, context.ints("shape"))?;
        let inner = within(&context.args, &shape, context.layout.len())?;
        let offset = inner.offset() + context.layout.offset();
        Ok(Viewed::Shared(inner.with_offset(offset)))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        // An axis of stride 0 repeats one element: its cotangents add up.
        let repeated: Vec<i64> = (0..)
            .zip(g.ints("strides").iter().zip(g.ints("shape")))
            .filter(|(_, (stride, n))| **stride == 0 && **n > 1)
            .map(|(axis, _)| axis)
            .collect();
        let dy = match repeated.is_empty() {
            true => g.dy(0).clone(),
            false => g.dy(0).sum(Some(&repeated), true)?,
        };
        g.one(invoke1(&WINDOW_SPREAD, &[&dy], &with_shape(g, g.shape(0)))?)
    }),
    probe: Probe::calls(&[
        "f((3, 4)), (2, 2), (4, 2), 1",
        "f((6,)), (2, 3), (0, -2), 5",
        "f((3, 4)), (0, 2), (4, 1), 0",
    ]),
    ..OpDef::VIEW
};

/// Zeros with elements at strided positions: the gradient of [`WINDOW`].
pub static WINDOW_SPREAD: OpDef = OpDef {
    name: "window_spread",
    params: &[
        Param::array("y"),
        Param::required("shape", ParamKind::Ints),
        Param::required("strides", ParamKind::Ints),
        Param::required("offset", ParamKind::Int),
    ],
    doc: "Array of `shape` with `y` at `offset` plus multiples of `strides`, in elements, and zeros elsewhere.",
    types: Types::First,
    infer: |context| {
        let shape = dims(context.op.name, context.ints("shape"))?;
        apart(context, &within(&context.args, context.shape(0), mxnet_tensor::checked_len(&shape)?)?)?;
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        cpu::fill(context.output(0), Scalar::I64(0), context.threads);
        write(context, 0)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(part(g, g.shape(0))?)),
    probe: Probe::calls(&["f((2, 2)), (3, 4), (4, 2), 1", "f((3,)), (6,), (-2,), 5"]).against(
        "lambda y, shape, strides, offset: (lambda z: (numpy.copyto(numpy.lib.stride_tricks.as_strided(z.ravel()[offset:], y.shape, \
         [8 * s for s in strides]), y), z)[1])(numpy.zeros(shape))",
    ),
    batch: Batch::Rule(|context| {
        let len = context.ints("shape").iter().product();
        let changes = [
            ("shape", context.prefixed("shape", &[context.size as i64])),
            ("strides", context.prefixed("strides", &[len])),
        ];
        context.call(&context.fronts()?, &context.with(&changes))
    }),
    ..OpDef::DEFAULT
};

/// A copy of an array with the elements at strided positions replaced.
pub static WINDOW_ASSIGN: OpDef = OpDef {
    name: "window_assign",
    params: &[
        Param::array("x"),
        Param::array("value"),
        Param::required("strides", ParamKind::Ints),
        Param::required("offset", ParamKind::Int),
    ],
    doc: "Copy of `x` with `value` at `offset` plus multiples of `strides`, in elements.",
    types: Types::First,
    infer: |context| {
        if context.dtype_of(1) != context.dtype_of(0) {
            return Err(context.dtype_error("the value must have the dtype of the array"));
        }
        apart(context, &within(&context.args, context.shape(1), context.input(0).len())?)?;
        context.same_as(0)
    },
    cpu: Cpu::Kernel(|context| {
        cpu::copy(context.input(0), context.output(0), context.threads)?;
        write(context, 1)
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let mut grads = Grads::from_elem(None, 2);
        if g.wants(0) {
            let none = creation::zeros(g.shape(1), g.dtype_of(1), g.device_of(1))?;
            let attrs = [g.get("strides").clone(), g.get("offset").clone()];
            let attrs: Attrs = attrs.into_iter().collect();
            grads[0] = invoke(&WINDOW_ASSIGN, &[g.dy(0), &none], &attrs)?.pop();
        }
        if g.wants(1) {
            grads[1] = Some(part(g, g.shape(1))?);
        }
        Ok(grads)
    }),
    probe: Probe::calls(&["f((3, 4)), f((2, 2)), (4, 2), 1", "f((6,)), f((3,)), (-2,), 5"]).against(
        "lambda x, v, strides, offset: (lambda z: (numpy.copyto(numpy.lib.stride_tricks.as_strided(z.ravel()[offset:], v.shape, \
         [z.itemsize * s for s in strides]), v), z)[1])(numpy.array(x, order='C'))",
    ),
    ..OpDef::DEFAULT
};

/// `strides` and `offset` of the call as a layout of `shape` within `len` elements.
fn within(args: &Args, shape: &[usize], len: usize) -> Result<Layout> {
    let strides: Strides = args.ints("strides").iter().map(|&s| s as isize).collect();
    let outside = |offset: i64| {
        let problem = format!(
            "strides {} from offset {offset} with shape {} exceed the {len} elements",
            crate::Tuple(args.ints("strides")),
            crate::Tuple(shape)
        );
        Error::index("window", problem)
    };
    let offset = args.int("offset");
    let at = usize::try_from(offset).map_err(|_| outside(offset))?;
    let layout = Layout::strided(shape, &strides, at)?;
    match layout.span() {
        Some((_, highest)) if highest >= len => Err(outside(offset)),
        _ => Ok(layout),
    }
}

/// An error if positions overlap: only distinct elements can be written.
fn apart(context: &CallContext, window: &Layout) -> Result<()> {
    match window.may_self_overlap() {
        true => Err(context.value_error("the strides address an element several times")),
        false => Ok(()),
    }
}

/// Copies input `i` to its positions in the output.
fn write(context: &KernelContext, i: usize) -> Result<()> {
    let (value, out) = (context.input(i), context.output(0));
    let window = within(&context.args, value.shape(), out.len())?;
    let offset = window.offset() + out.layout().offset();
    cpu::copy(
        value,
        &out.with_layout(window.with_offset(offset)),
        context.threads,
    )
}

/// The cotangent at the call's positions.
fn part(g: &GradContext, shape: &[usize]) -> Result<Array> {
    invoke1(&WINDOW, &[&g.dy(0).contiguous()?], &with_shape(g, shape))
}

fn with_shape(g: &GradContext, shape: &[usize]) -> Attrs {
    [
        Value::from(shape),
        g.get("strides").clone(),
        g.get("offset").clone(),
    ]
    .into_iter()
    .collect()
}
