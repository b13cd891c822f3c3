//! Indexing with integer arrays: gather, scatter and assignment. Gather and scatter are each other's gradients.
//!
//! The keys here are canonical (`expression` makes them): every index array has the broadcast shape of all index arrays and holds int64
//! positions in range; each is one `IndexItem::Array`. Of masks only 0-d ones remain, each with an array of zeros, one for each element selected.
#![allow(unsafe_code)]

use std::borrow::Cow;

use mxnet_kernels::index::{IndexAxis, Picked, Write, gather, scatter};
use mxnet_tensor::{DType, IndexItem, Indexed, Layout, Scalar, Tensor};
use smallvec::SmallVec;

use super::positions::{dense, positions};
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::{Batch, BatchContext};
use crate::context::{CallContext, KernelContext};
use crate::creation::dims;
use crate::elementwise::select::choose;
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, one};
use crate::types::Types;
use crate::{Array, cpu};
use crate::{Outputs, only};

const INDEXING: OpDef = OpDef {
    types: Types::First,
    cost: Cost::PerKiB(400),
    ..OpDef::DEFAULT
};

/// `x[key]` with index arrays.
pub static GATHER: OpDef = OpDef {
    name: "gather",
    params: &[
        Param::array("x"),
        Param::arrays("indices"),
        Param::required("key", ParamKind::Index),
    ],
    doc: "Copy of the elements that a canonical index expression selects.",
    infer: |context| {
        one(apply(context.input(0).layout(), context.index_items("key"), &layouts(context, 1))?.shape())
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        let plan = Plan::new(context, x, &tensors(context, 1))?;
        let (position, block) = plan.dense(out.layout(), elem(out.dtype()).size())?;
        // SAFETY: 1. indices are in range (`Plan`). 2. both layouts lie within their storages; the output was allocated for this call.
        unsafe { gather(context.threads, &plan.picked(x), plan.base, out.data_ptr(), position, &block) };
        Ok(())
    }),
    grad: Grad::Rule(Keep::inputs(!1), |g| {
        let dx = invoke1(
            &SCATTER_ADD,
            &operands(&[g.dy(0)], g, 1),
            &key_and_shape(g, g.shape(0)),
        )?;
        Ok(first(g, dx))
    }),
    probe: Probe::calls(&[
        "f((3, 4)), [i((2,), 4)], (slice(None), np.zeros((2,), dtype='int64'))",
        "f((2, 3, 5)), [i((2, 2), 3)], (slice(None), np.zeros((2, 2), dtype='int64'), slice(None, None, -2))",
    ])
    .against("lambda x, at, key: x[:, at[0], *key[2:]]"),
    batch: Batch::Rule(|context| {
        let (indices, key, axes) = batched_indices(context, context.result_shape(0).len())?;
        let mut arrays = indices;
        arrays.insert(0, context.front(0)?);
        let y = only(context.op(), context.call(&arrays, &context.with(&[("key", key)]))?)?;
        Ok(Outputs::from_iter([y.transpose(Some(&axes))?]))
    }),
    positions: &[1],
    ..INDEXING
};

/// Zeros to which `y` is added at the positions of the key.
pub static SCATTER_ADD: OpDef = OpDef {
    name: "scatter_add",
    params: &[
        Param::array("y"),
        Param::arrays("indices"),
        Param::required("key", ParamKind::Index),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Array of `shape`, zero except at the positions of a canonical index expression, where the elements of `y` are added. Repeated positions \
        are added in C order, so the result does not depend on the number of threads.",
    infer: |context| {
        let shape = dims(context.op.name, context.ints("shape"))?;
        mxnet_tensor::checked_len(&shape)?;
        let indices: SmallVec<[&Layout; 4]> = layouts(context, 1);
        check_value_shape(context, 0, &apply(&Layout::contiguous(&shape), context.index_items("key"), &indices)?)?;
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        cpu::fill(context.output(0), Scalar::I64(0), context.threads);
        write_blocks(context, Write::Add, context.input(0), &tensors(context, 1))
    }),
    grad: Grad::Rule(Keep::inputs(!1), |g| {
        let attrs: Attrs = [g.get("key").clone()].into_iter().collect();
        let dy = invoke1(&GATHER, &operands(&[g.dy(0)], g, 1), &attrs)?;
        Ok(first(g, dy))
    }),
    probe: Probe::calls(&[
        "f((3, 5)), [i((5,), 4)], (slice(None), np.zeros((5,), dtype='int64')), (3, 4)",
        "f((2, 3)), [i((2,), 3)], (np.zeros((2,), dtype='int64'),), (3, 3)",
    ])
    .against(
        "lambda y, at, key, shape: (lambda z: (numpy.add.at(z, (*key[:-1], at[0]), y), z)[1])(numpy.zeros(shape))",
    ),
    batch: Batch::Rule(|context| {
        let (indices, key, axes) = batched_indices(context, context.shape(0).len())?;
        let mut back: SmallVec<[i64; 8]> = axes.clone();
        for (i, &axis) in axes.iter().enumerate() {
            back[axis as usize] = i as i64;
        }
        let mut arrays = indices;
        let y = context.front(0)?.map(|y| y.transpose(Some(&back))).transpose()?;
        arrays.insert(0, y);
        let shape = context.prefixed("shape", &[context.size as i64]);
        context.call(&arrays, &context.with(&[("key", key), ("shape", shape)]))
    }),
    positions: &[1],
    ..INDEXING
};

/// A copy of `x` with some elements replaced.
pub static INDEX_ASSIGN: OpDef = OpDef {
    name: "index_assign",
    params: &[
        Param::array("x"),
        Param::array("value"),
        Param::arrays("indices"),
        Param::required("key", ParamKind::Index),
        Param::bool("unique", false),
    ],
    doc: "Copy of `x` with `value` at the positions of a canonical index expression. `value` has the shape of `x[key]` and the dtype of `x`. If \
        several values have the same position, the last one in C order is written, and only that one has a gradient. `unique` says that no position \
        repeats.",
    infer: |context| same_elements_fit(context),
    cpu: Cpu::Kernel(assign_kernel),
    grad: Grad::Rule(Keep::inputs(!3), |g| {
        let mut grads = Grads::from_elem(None, g.num_inputs());
        let key: Attrs = [g.get("key").clone()].into_iter().collect();
        if g.wants(0) {
            let none = crate::creation::zeros(g.shape(1), g.dtype_of(1), g.device_of(1))?;
            let attrs: Attrs = [g.get("key").clone(), Value::Bool(true)].into_iter().collect();
            grads[0] = Some(invoke1(&INDEX_ASSIGN, &operands(&[g.dy(0), &none], g, 2), &attrs)?);
        }
        if g.wants(1) {
            grads[1] = Some(if g.num_inputs() == 2 {
                invoke1(&super::INDEX, &[g.dy(0)], &key)?
            } else {
                let dy = invoke1(&GATHER, &operands(&[g.dy(0)], g, 2), &key)?;
                if g.bool("unique") { dy } else { without_overwritten(g, &dy)? }
            });
        }
        Ok(grads)
    }),
    probe: Probe::calls(&[
        "f((3, 5)), f((3, 4)), [i((4,), 5)], (slice(None), np.zeros((4,), dtype='int64'))",
        "f((3, 2)), f((2, 2)), [i((2,), 3)], (np.zeros((2,), dtype='int64'),)",
        "f((3, 2)), f((2,)), [], (slice(0, 2), 1)",
    ])
    .against(
        "lambda x, v, at, key: (lambda z: (z.__setitem__((*key[:-1], at[0]) if at else key, v), z)[1])(x.copy())",
    ),
    positions: &[2],
    ..INDEXING
};

/// A copy of `x` with values added at some positions.
pub static INDEX_ADD: OpDef = OpDef {
    name: "index_accumulate",
    params: &[
        Param::array("x"),
        Param::array("value"),
        Param::arrays("indices"),
        Param::required("key", ParamKind::Index),
    ],
    doc: "Copy of `x` to which `value` was added at the positions of a canonical index expression. Repeated positions accumulate.",
    infer: |context| same_elements_fit(context),
    cpu: Cpu::Kernel(|context| {
        cpu::copy(context.input(0), context.output(0), context.threads)?;
        write_blocks(context, Write::Add, context.input(1), &tensors(context, 2))
    }),
    grad: Grad::Rule(Keep::inputs(!3), |g| {
        let mut grads = Grads::from_elem(None, g.num_inputs());
        if g.wants(0) {
            grads[0] = Some(g.dy(0).clone());
        }
        if g.wants(1) {
            let key: Attrs = [g.get("key").clone()].into_iter().collect();
            grads[1] = Some(invoke1(&GATHER, &operands(&[g.dy(0)], g, 2), &key)?);
        }
        Ok(grads)
    }),
    probe: Probe::calls(&[
        "f((3, 5)), f((3, 4)), [i((4,), 5)], (slice(None), np.zeros((4,), dtype='int64'))",
        "f((3, 2)), f((2, 2)), [i((2,), 3)], (np.zeros((2,), dtype='int64'),)",
    ])
    .against(
        "lambda x, v, at, key: (lambda z: (numpy.add.at(z, (*key[:-1], at[0]), v), z)[1])(x.copy())",
    ),
    positions: &[2],
    ..INDEXING
};

/// Writes input 1 to output 0 at the positions of the key. If output 0 is not input 0 itself, input 0 is copied to it first; otherwise this is
/// the in-place assignment `target[key] = value`.
pub(super) fn assign_kernel(context: &KernelContext) -> Result<()> {
    if !cpu::same_elements(context.input(0), context.output(0)) {
        cpu::copy(context.input(0), context.output(0), context.threads)?;
    }
    write_blocks(context, Write::Set, context.input(1), &tensors(context, 2))
}

/// Inputs from index `from` on.
fn tensors<'a>(context: &KernelContext<'a>, from: usize) -> SmallVec<[&'a Tensor; 4]> {
    context.inputs[from..].iter().flatten().copied().collect()
}

/// `lead`, followed by the index arrays that the call saved, its inputs from index `from` on.
fn operands<'a>(lead: &[&'a Array], g: &'a GradContext, from: usize) -> SmallVec<[&'a Array; 4]> {
    let indices = (from..g.num_inputs()).map(|i| g.input(i));
    lead.iter().copied().chain(indices).collect()
}

fn key_and_shape(g: &GradContext, shape: &[usize]) -> Attrs {
    [g.get("key").clone(), Value::from(shape)]
        .into_iter()
        .collect()
}

/// A gradient for input 0 only.
fn first(g: &GradContext, gradient: Array) -> Grads {
    let mut grads = Grads::from_elem(None, g.num_inputs());
    grads[0] = Some(gradient);
    grads
}

/// The cotangent of assigned values: `dy`, but zero for values that a later one overwrote (repeated positions).
fn without_overwritten(g: &GradContext, dy: &Array) -> Result<Array> {
    // Assigns to each position the ordinal of its value, in the same way as the values. A value that finds its own ordinal there was the last one.
    let numbers = mxnet_kernels::scratch::collected(dy.len(), 0..dy.len() as i64);
    let numbers = Array::from_slice(&numbers, dy.shape())?;
    let winners = crate::creation::zeros(g.shape(0), DType::I64, g.device_of(0))?;
    let attrs: Attrs = [g.get("key").clone(), Value::Bool(false)]
        .into_iter()
        .collect();
    let winners = invoke1(
        &INDEX_ASSIGN,
        &operands(&[&winners, &numbers], g, 2),
        &attrs,
    )?;
    let key: Attrs = [g.get("key").clone()].into_iter().collect();
    let found = invoke1(&GATHER, &operands(&[&winners], g, 2), &key)?;
    let stayed = found.binary(&crate::elementwise::comparison::EQUAL, &numbers)?;
    choose(&stayed, dy, &Array::constant(Scalar::I64(0), dy.dtype())?)
}

/// Layouts of the arguments from index `from` on.
fn layouts<'a>(context: &CallContext<'a>, from: usize) -> SmallVec<[&'a Layout; 4]> {
    context.inputs[from..]
        .iter()
        .flatten()
        .map(|x| x.layout())
        .collect()
}

/// An error unless argument `i` has the shape of the indexed elements.
fn check_value_shape(context: &CallContext, i: usize, winners: &Indexed) -> Result<()> {
    let shape = winners.shape();
    if context.shape(i) == shape.as_slice() {
        return Ok(());
    }
    Err(context.shape_error(format!(
        "the values must have the shape {} of the indexed elements",
        crate::Tuple(&shape)
    )))
}

fn same_elements_fit(context: &CallContext) -> Result<crate::Inferred> {
    let winners = apply(
        context.input(0).layout(),
        context.index_items("key"),
        &layouts(context, 2),
    )?;
    check_value_shape(context, 1, &winners)?;
    if context.dtype_of(1) != context.dtype_of(0) {
        return Err(context.dtype_error("the values must have the dtype of the array"));
    }
    context.same_as(0)
}

/// Applies a canonical key to a layout.
fn apply(layout: &Layout, key: &[IndexItem], indices: &[&Layout]) -> Result<Indexed> {
    let has_arrays = key.iter().any(|i| matches!(i, IndexItem::Array { .. }));
    let counts: SmallVec<[usize; 2]> = key
        .iter()
        .filter(|i| matches!(i, IndexItem::Array { .. } | IndexItem::Mask { .. }))
        .zip(indices)
        .filter(|(i, _)| matches!(i, IndexItem::Mask { .. }))
        // Index arrays already have the broadcast shape; a 0-d mask beside them adds nothing to it.
        .map(|(_, x)| if has_arrays { 1 } else { x.len() })
        .collect();
    Ok(layout.index_counted(key, &counts)?)
}

/// A canonical key applied to a tensor: addresses of the indexed blocks.
struct Plan<'a> {
    indexed: Indexed,
    /// Owns the memory that `axes` points to.
    _indices: SmallVec<[Cow<'a, Tensor>; 4]>,
    axes: SmallVec<[IndexAxis; 4]>,
    base: *mut u8,
    positions: usize,
    block: SmallVec<[usize; 4]>,
    strides: SmallVec<[isize; 4]>,
}

impl<'a> Plan<'a> {
    fn new(context: &KernelContext, x: &Tensor, indices: &[&'a Tensor]) -> Result<Plan<'a>> {
        let key = context.index_items("key");
        let layouts: SmallVec<[&Layout; 4]> = indices.iter().map(|t| t.layout()).collect();
        let indexed = apply(x.layout(), key, &layouts)?;
        let size = x.dtype().size() as isize;
        let Some(advanced) = &indexed.advanced else {
            return Err(Error::index(context.op.name, "the key has no index arrays"));
        };
        if advanced.indices.len() != indices.len() {
            let problem = format!(
                "the key has {} index arrays, {} were given",
                advanced.indices.len(),
                indices.len()
            );
            return Err(Error::index(context.op.name, problem));
        }
        let view = &indexed.view;
        let whole: usize = advanced.shape.iter().product();
        let mut checked = SmallVec::<[Cow<'a, Tensor>; 4]>::new();
        for (at, &index) in advanced.indices.iter().zip(indices) {
            if index.len() != whole {
                let problem = format!(
                    "{} positions on axis {}, expected {whole}",
                    index.len(),
                    at.axis
                );
                return Err(Error::shape(context.op.name, problem));
            }
            let size = view.shape()[at.axis];
            checked.push(positions(context.op.name, index, size, context.threads)?);
        }
        let axes = advanced
            .indices
            .iter()
            .zip(&checked)
            .map(|(at, index)| IndexAxis {
                indices: index.data_ptr().cast(),
                stride: view.strides()[at.axis] * size,
            })
            .collect();
        let kept: SmallVec<[usize; 4]> = advanced.kept_axes(view.ndim()).collect();
        Ok(Plan {
            axes,
            base: x.with_layout(view.clone()).data_ptr(),
            positions: whole,
            block: kept.iter().map(|&a| view.shape()[a]).collect(),
            strides: kept.iter().map(|&a| view.strides()[a] * size).collect(),
            _indices: checked,
            indexed,
        })
    }

    fn picked(&self, x: &Tensor) -> Picked<'_> {
        Picked {
            elem: elem(x.dtype()),
            axes: &self.axes,
            positions: self.positions,
            block: &self.block,
            strides: &self.strides,
        }
    }

    /// Byte strides of the gathered or scattered values, which have the result's shape: of the positions, and of the block's axes.
    fn dense(&self, layout: &Layout, size: usize) -> Result<(isize, SmallVec<[isize; 4]>)> {
        let (axis, count) = positions_at(&self.indexed);
        let size = size as isize;
        let step = single_step(layout, axis, count).ok_or_else(|| {
            Error::internal(
                "gather",
                "the positions of the values have no single stride",
            )
        })?;
        let block = (0..layout.ndim())
            .filter(|i| !(axis..axis + count).contains(i))
            .map(|i| layout.strides()[i] * size);
        Ok((step * size, block.collect()))
    }
}

/// The first of the result's axes that come from index arrays, and their number.
pub(super) fn positions_at(indexed: &Indexed) -> (usize, usize) {
    indexed
        .advanced
        .as_ref()
        .map_or((0, 0), |a| (a.axis, a.shape.len()))
}

/// The single stride that walks `count` axes from `axis` on; `None` if there is none.
pub(super) fn single_step(layout: &Layout, axis: usize, count: usize) -> Option<isize> {
    let mut step = None;
    let mut expected = 0;
    for i in (axis..axis + count).rev() {
        let (len, stride) = (layout.shape()[i], layout.strides()[i]);
        if len == 0 {
            return Some(0);
        }
        if len == 1 {
            continue;
        }
        if step.is_some() && stride != expected {
            return None;
        }
        step = step.or(Some(stride));
        expected = stride * len as isize;
    }
    Some(step.unwrap_or(0))
}

/// Writes `value` to output 0 at the positions of the call's key.
fn write_blocks(
    context: &KernelContext,
    write: Write,
    value: &Tensor,
    indices: &[&Tensor],
) -> Result<()> {
    let out = context.output(0);
    if indices.is_empty() {
        let view = out.layout().index(context.index_items("key"))?.view;
        return cpu::copy(value, &out.with_layout(view), context.threads);
    }
    let plan = Plan::new(context, out, indices)?;
    let (axis, count) = positions_at(&plan.indexed);
    let value = match single_step(value.layout(), axis, count) {
        Some(_) => Cow::Borrowed(value),
        None => dense(value, context.threads)?,
    };
    let (position, block) = plan.dense(value.layout(), elem(value.dtype()).size())?;
    // SAFETY: 1. indices are in range (`Plan`). 2. both layouts lie within their storages. 3. the caller of the operator copied
    // values that overlap the output.
    unsafe {
        scatter(
            context.threads,
            write,
            &plan.picked(out),
            plan.base,
            value.data_ptr(),
            position,
            &block,
        );
    }
    Ok(())
}

/// Operands, index expression and axis order of a batched call.
type BatchedIndex = (Vec<Option<Array>>, Value, SmallVec<[i64; 8]>);

/// Index arrays and key of a batched call: an index array over the examples is prepended. Also the axis order that turns its result, which begins
/// with the axes of the index arrays, into a batch of results with `ndim` axes each.
fn batched_indices(context: &BatchContext, ndim: usize) -> Result<BatchedIndex> {
    let key = context.index_items("key");
    let is_array = |item: &IndexItem| matches!(item, IndexItem::Array { .. });
    if key
        .iter()
        .any(|item| !is_array(item) && !matches!(item, IndexItem::Slice { .. }))
    {
        return Err(context.refused());
    }
    let first = key.iter().position(is_array).unwrap_or(0);
    let last = key.iter().rposition(is_array).unwrap_or(0);
    // If slices separate the index arrays, their axes come first in the result (NumPy's rule).
    let at = if key[first..=last].iter().all(is_array) {
        first
    } else {
        0
    };
    let width = (1..context.num_inputs())
        .map(|i| context.shape(i).len())
        .max()
        .unwrap_or(0);
    let counts: Vec<i64> = (0..context.size as i64).collect();
    let column: Vec<usize> = std::iter::once(context.size)
        .chain(std::iter::repeat_n(1, width))
        .collect();
    let mut arrays = vec![Some(
        Array::from_slice(&counts, &column)?.to_device(context.device())?,
    )];
    for i in 1..context.num_inputs() {
        arrays.push(context.aligned(i, width)?);
    }
    // The kernel needs index arrays of one shape.
    let mut common = column;
    for x in arrays.iter().flatten() {
        let ahead = common.len() - x.ndim();
        for (to, &n) in common[ahead..].iter_mut().zip(x.shape()) {
            *to = if *to == 1 { n } else { *to };
        }
    }
    for x in arrays.iter_mut().flatten() {
        *x = x.broadcast_to(&common)?;
    }
    let mut shapes = arrays.iter().flatten().map(|x| IndexItem::Array {
        shape: x.shape().into(),
    });
    let mut items: Vec<IndexItem> = shapes.next().into_iter().collect();
    for item in key {
        let other = if is_array(item) { shapes.next() } else { None };
        items.push(other.unwrap_or_else(|| item.clone()));
    }
    drop(shapes);
    // (batch, indices.., before.., behind..) -> (batch, before.., indices.., behind..)
    let (at, width, ndim) = (at as i64, width as i64, ndim as i64);
    let axes = std::iter::once(0)
        .chain(1 + width..1 + width + at)
        .chain(1..1 + width)
        .chain(1 + width + at..1 + ndim)
        .collect();
    Ok((arrays, Value::Index(items.into()), axes))
}
