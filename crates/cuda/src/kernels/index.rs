//! Indexing with arrays, and writes through an index: `gather`, `scatter_add`, `index_assign`, `index_accumulate`, `index_spread`,
//! `diagonal_spread`, `window_spread`, `window_assign`.
//!
//! Sums into repeated elements do not depend on the order in which threads run: positions are sorted by their target, and one thread adds all values
//! of one target. For repeated assignments the last position wins, which is found by an integer maximum.

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::{DType, DeviceKind, IndexItem, Indexed, Layout, Scalar, Tensor};
use smallvec::SmallVec;

use super::operand::{
    self, Operand, PAIR, WALK, Walk, bytes, c_type, for_each, moved, report, source,
};
use super::order;
use crate::launch::{Arg, launch};

const INDEX: &str = include_str!("../text/index.cuh");
pub(super) const PLUS: &str = include_str!("../text/plus.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("gather", kind, 0, |context| {
        let (x, out) = (context.input(0), context.output(0));
        if out.is_empty() {
            return Ok(());
        }
        let plan = Plan::new(context, x, 1)?;
        let dense = Operand::of(out);
        let held = if plan.indices.len() > 1 {
            Some(plan.resolved(context)?)
        } else {
            None
        };
        let index_arrays = held
            .as_ref()
            .map_or_else(|| plan.of_axis(0, false), |[offsets, _]| resolved(offsets));
        let blocks = plan.blocks(&dense, index_arrays)?;
        let name = moved(x.dtype());
        let args = [
            plan.base(),
            Arg::Pointer(dense.ptr),
            Arg::Bytes(bytes(&blocks)),
        ];
        run(context, "GATHER", name, blocks.len(), &args)
    })?;
    add("scatter_add", kind, 0, |context| {
        operand::fill(context, &Operand::of(context.output(0)), Scalar::I64(0))?;
        accumulate(context, 0, 1)
    })?;
    add("index_accumulate", kind, 0, |context| {
        operand::copy(
            context,
            &Operand::input(context, 0)?,
            &Operand::of(context.output(0)),
        )?;
        accumulate(context, 1, 2)
    })?;
    add("index_assign", kind, 0, |context| {
        if !mxnet_core::cpu::same_elements(context.input(0), context.output(0)) {
            operand::copy(
                context,
                &Operand::input(context, 0)?,
                &Operand::of(context.output(0)),
            )?;
        }
        assign(context)
    })?;
    add("index_spread", kind, 0, |context| {
        let view = context
            .output(0)
            .layout()
            .index(context.index_items("key"))?
            .view;
        spread(context, view)
    })?;
    add("diagonal_spread", kind, 0, |context| {
        let [offset, first, second] =
            ["offset", "axis1", "axis2"].map(|name| context.int(name) as isize);
        spread(
            context,
            context.output(0).layout().diagonal(offset, first, second)?,
        )
    })?;
    add("window_spread", kind, 0, |context| {
        spread(context, window(context, 0)?)
    })?;
    add("window_assign", kind, 0, |context| {
        let out = context.output(0);
        operand::copy(context, &Operand::input(context, 0)?, &Operand::of(out))?;
        write(context, &Operand::input(context, 1)?, window(context, 1)?)
    })
}

/// Fills the output with zeros, then writes input 0 into a view of it.
fn spread(context: &KernelContext, view: Layout) -> Result<()> {
    operand::fill(context, &Operand::of(context.output(0)), Scalar::I64(0))?;
    write(context, &Operand::input(context, 0)?, view)
}

/// Copies a value, broadcast, to a view of the output.
fn write(context: &KernelContext, value: &Operand, view: Layout) -> Result<()> {
    let to = Operand::with_layout(context.output(0), view);
    let layout = value.layout()?.broadcast_to(&to.shape)?;
    let from = Operand::at(value.ptr, layout.shape(), layout.strides(), value.dtype);
    operand::copy(context, &from, &to)
}

/// The layout that the attributes `strides` and `offset` describe for the elements of input `i`.
fn window(context: &KernelContext, i: usize) -> Result<Layout> {
    let strides: SmallVec<[isize; 4]> = context
        .ints("strides")
        .iter()
        .map(|&s| s as isize)
        .collect();
    let offset = context.int("offset") as usize + context.output(0).layout().offset();
    Ok(Layout::strided(context.input(i).shape(), &strides, offset)?)
}

/// An index applied to a tensor, as in `ops` for the CPU: index arrays of equal shape, one per indexed axis.
struct Plan<'a> {
    indexed: Indexed,
    indices: SmallVec<[Operand<'a>; 4]>,
    view: Tensor,
    positions: usize,
}

/// Argument of the kernels: one index array, or the combined offsets of all (`index.cuh`).
#[repr(C)]
#[derive(Clone, Copy)]
struct IndexArrays {
    indices: u64,
    size: i64,
    stride: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Blocks {
    block: Walk,
    index_arrays: IndexArrays,
    positions: i64,
    step: i64,
    inner: i64,
}

impl Blocks {
    fn len(&self) -> usize {
        (self.block.n * self.positions) as usize
    }
}

impl<'a> Plan<'a> {
    /// The index of the call applied to `x`; index arrays are inputs from `first` on.
    fn new(context: &KernelContext<'a>, x: &Tensor, first: usize) -> Result<Plan<'a>> {
        let key = context.index_items("key");
        let given = &context.inputs[first..];
        let is_array = |item: &IndexItem| matches!(item, IndexItem::Array { .. });
        let has_arrays = key.iter().any(is_array);
        let counts: SmallVec<[usize; 2]> = (key.iter())
            .filter(|item| is_array(item) || matches!(item, IndexItem::Mask { .. }))
            .zip(given.iter().flatten())
            .filter(|(item, _)| !is_array(item))
            .map(|(_, x)| if has_arrays { 1 } else { x.len() })
            .collect();
        let indexed = x.layout().index_counted(key, &counts)?;
        let Some(advanced) = &indexed.advanced else {
            return Err(Error::internal(
                context.op.name,
                "the key has no index arrays",
            ));
        };
        let positions: usize = advanced.shape.iter().product();
        let mut indices = SmallVec::new();
        for i in first..context.inputs.len() {
            let index = Operand::dense(context, i, DType::I64)?;
            if index.len() != positions {
                let problem = format!(
                    "{} positions in index array {}, not {positions}",
                    index.len(),
                    i - first
                );
                return Err(Error::shape(context.op.name, problem));
            }
            indices.push(index);
        }
        if indices.len() != advanced.indices.len() {
            let problem = format!(
                "the key has {} index arrays, {} were given",
                advanced.indices.len(),
                indices.len()
            );
            return Err(Error::internal(context.op.name, problem));
        }
        let view = x.with_layout(indexed.view.clone());
        Ok(Plan {
            indexed,
            indices,
            view,
            positions,
        })
    }

    /// Address of the first element of the view.
    fn base(&self) -> Arg<'static> {
        Arg::Pointer(self.view.data_ptr() as u64)
    }

    /// Size and stride of the axis that index array `i` indexes.
    fn axis(&self, i: usize) -> (i64, i64) {
        let axis = self
            .indexed
            .advanced
            .as_ref()
            .map_or(0, |a| a.indices[i].axis);
        let layout = self.view.layout();
        (layout.shape()[axis] as i64, layout.strides()[axis] as i64)
    }

    /// The argument for one index array; with `numbered`, offsets are in units of the axis instead of elements.
    fn of_axis(&self, i: usize, numbered: bool) -> IndexArrays {
        let (size, stride) = self.axis(i);
        IndexArrays {
            indices: self.indices[i].ptr,
            size,
            stride: if numbered { 1 } else { stride },
        }
    }

    /// Number of distinct positions that the index arrays can select.
    fn num_positions(&self) -> usize {
        (0..self.indices.len())
            .map(|i| self.axis(i).0 as usize)
            .product()
    }

    /// Element offsets and target numbers of all positions, combined from all index arrays.
    fn resolved(&self, context: &KernelContext<'a>) -> Result<[Operand<'a>; 2]> {
        let offsets = Operand::new(context, &[self.positions], DType::I64)?;
        let numbers = Operand::new(context, &[self.positions], DType::I64)?;
        for i in 0..self.indices.len() {
            let behind: i64 = (i + 1..self.indices.len())
                .map(|k| self.axis(k).0)
                .product();
            let index_arrays = self.of_axis(i, false);
            let args = [
                Arg::Bytes(bytes(&index_arrays)),
                Arg::I64(behind),
                Arg::Pointer(offsets.ptr),
                Arg::Pointer(numbers.ptr),
                Arg::I64(self.positions as i64),
                Arg::I64(i64::from(i == 0)),
            ];
            run(context, "NUMBER", "u8", self.positions, &args)?;
        }
        Ok([offsets, numbers])
    }

    /// The operand in the shape of the result, copied if the axes of its positions cannot be merged into one stride.
    fn dense_side(&self, context: &KernelContext<'a>, x: Operand<'a>) -> Result<Operand<'a>> {
        let (axis, count) = self.at();
        let own = Layout::strided(
            &x.shape[axis..axis + count],
            &x.strides[axis..axis + count],
            0,
        )?;
        let is_even = own.reshape(&[self.positions as isize])?.is_some();
        let dtype = x.dtype;
        if is_even {
            Ok(x)
        } else {
            x.into_dense(context, dtype)
        }
    }

    /// First axis and number of axes of the result that come from the index arrays.
    fn at(&self) -> (usize, usize) {
        (self.indexed.advanced.as_ref()).map_or((0, 0), |a| (a.axis, a.shape.len()))
    }

    /// Argument of the kernels: the block at every position, with a dense side in the shape of the result.
    fn blocks(&self, dense: &Operand, index_arrays: IndexArrays) -> Result<Blocks> {
        let (axis, count) = self.at();
        let of_block = |x: &[isize]| -> SmallVec<[isize; 4]> {
            x[..axis]
                .iter()
                .chain(&x[axis + count..])
                .copied()
                .collect()
        };
        let layout = self.view.layout();
        let kept: SmallVec<[usize; 4]> = match &self.indexed.advanced {
            Some(advanced) => advanced.kept_axes(layout.ndim()).collect(),
            None => SmallVec::new(),
        };
        let shape: SmallVec<[usize; 4]> = kept.iter().map(|&a| layout.shape()[a]).collect();
        let strides: SmallVec<[isize; 4]> = kept.iter().map(|&a| layout.strides()[a]).collect();
        let block = Walk::new(&shape, &of_block(&dense.strides), &strides);
        // Merges the axes of the positions.
        let own = Layout::strided(
            &dense.shape[axis..axis + count],
            &dense.strides[axis..axis + count],
            0,
        )?;
        let step = own.reshape(&[self.positions as isize])?;
        let step = step.ok_or_else(|| {
            Error::internal(
                "gather",
                "the positions of the values have no single stride",
            )
        })?;
        Ok(Blocks {
            block,
            index_arrays,
            positions: self.positions as i64,
            step: step.strides()[0] as i64,
            inner: shape[axis..].iter().product::<usize>() as i64,
        })
    }
}

/// The argument for combined offsets or target numbers.
fn resolved(x: &Operand) -> IndexArrays {
    IndexArrays {
        indices: x.ptr,
        size: 0,
        stride: 1,
    }
}

/// Writes input 1 into the indexed elements of the output.
fn assign(context: &KernelContext) -> Result<()> {
    let (value, out) = (Operand::input(context, 1)?, context.output(0));
    if context.inputs.len() == 2 {
        let view = out.layout().index(context.index_items("key"))?.view;
        return write(context, &value, view);
    }
    let plan = Plan::new(context, out, 2)?;
    let value = plan.dense_side(context, value)?;
    let held = if plan.indices.len() > 1 {
        Some(plan.resolved(context)?)
    } else {
        None
    };
    let (index_arrays, numbers) = match &held {
        Some([offsets, numbers]) => (resolved(offsets), resolved(numbers)),
        None => (plan.of_axis(0, false), plan.of_axis(0, true)),
    };
    let blocks = plan.blocks(&value, index_arrays)?;
    if blocks.len() == 0 {
        return Ok(());
    }
    let mut last = None;
    if plan.positions > 1 && !context.bool("unique") {
        let found = Operand::filled(context, &[plan.num_positions()], DType::U64, Scalar::I64(0))?;
        let args = [
            Arg::Bytes(bytes(&numbers)),
            Arg::Pointer(found.ptr),
            Arg::I64(plan.positions as i64),
        ];
        run(context, "LAST", "u8", plan.positions, &args)?;
        last = Some(found);
    }
    let args = [
        Arg::Pointer(value.ptr),
        plan.base(),
        Arg::Bytes(bytes(&blocks)),
        Arg::Bytes(bytes(&numbers)),
        Arg::Pointer(last.map_or(0, |last| last.ptr)),
    ];
    run(context, "SET", moved(out.dtype()), blocks.len(), &args)
}

/// Adds input `value` to the indexed elements of the output; index arrays are inputs from `first` on.
fn accumulate(context: &KernelContext, value: usize, first: usize) -> Result<()> {
    let out = context.output(0);
    let value = Operand::typed(context, value, out.dtype())?;
    let plan = Plan::new(context, out, first)?;
    let value = plan.dense_side(context, value)?;
    let [offsets, numbers] = plan.resolved(context)?;
    let blocks = plan.blocks(&value, resolved(&offsets))?;
    add_at(
        context,
        &value,
        plan.view.data_ptr() as u64,
        &blocks,
        &numbers,
    )
}

/// Adds values to the targets in `numbers`; values for one target are added in the order of their positions.
fn add_at(
    context: &KernelContext,
    values: &Operand,
    target: u64,
    blocks: &Blocks,
    numbers: &Operand,
) -> Result<()> {
    if blocks.len() == 0 {
        return Ok(());
    }
    let order = order::argsorted(context, numbers, numbers.len(), order::Direction::Ascending)?;
    let numbers = resolved(numbers);
    let args = [
        Arg::Pointer(values.ptr),
        Arg::Pointer(target),
        Arg::Bytes(bytes(blocks)),
        Arg::Bytes(bytes(&numbers)),
        Arg::Pointer(order.ptr),
    ];
    run(context, "ADD", c_type(values.dtype), blocks.len(), &args)
}

/// Adds dense `values` to the elements of the output at offsets `at`.
pub(super) fn add_elements(context: &KernelContext, values: &Operand, at: &Operand) -> Result<()> {
    let blocks = Blocks {
        block: Walk::new(&[], &[], &[]),
        index_arrays: resolved(at),
        positions: values.len() as i64,
        step: 1,
        inner: 1,
    };
    add_at(
        context,
        values,
        context.output(0).data_ptr() as u64,
        &blocks,
        at,
    )
}

/// Copies the slices of `x` along its first axis at positions `at` to `out`.
pub(super) fn take_first(
    context: &KernelContext,
    x: &Operand,
    at: &Operand,
    out: &Operand,
) -> Result<()> {
    let blocks = Blocks {
        block: Walk::new(&out.shape[1..], &out.strides[1..], &x.strides[1..]),
        index_arrays: IndexArrays {
            indices: at.ptr,
            size: x.shape[0] as i64,
            stride: x.strides[0] as i64,
        },
        positions: at.len() as i64,
        step: out.strides[0] as i64,
        inner: out.shape[1..].iter().product::<usize>() as i64,
    };
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(out.ptr),
        Arg::Bytes(bytes(&blocks)),
    ];
    run(context, "GATHER", moved(x.dtype), blocks.len(), &args)
}

/// Launches a kernel of `index.cuh`; the fault argument is the last one.
fn run(context: &KernelContext, function: &str, name: &str, n: usize, args: &[Arg]) -> Result<()> {
    let mut args: SmallVec<[Arg; 8]> = args.iter().cloned().collect();
    if function != "LAST" {
        let op = context.op.name;
        args.push(report(context, move |[size, at, _]| outside(op, at, size))?);
    }
    launch(
        context,
        &key(function, name),
        || text(function, name),
        for_each(n),
        &args,
    )
}

/// The error for a position outside of an axis.
pub(super) fn outside(op: &'static str, at: i64, size: i64) -> Error {
    Error::index(
        op,
        format!("position {at} is outside an axis of size {size}"),
    )
}

fn key(function: &str, name: &str) -> String {
    format!("index_{}:{name}", function.to_lowercase())
}

fn text(function: &str, name: &str) -> String {
    source(&[
        PAIR,
        WALK,
        PLUS,
        operand::FAULT,
        &format!("typedef {name} T;\n#define {function}"),
        INDEX,
    ])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    let mut push =
        |function: &str, name: &str| all.push((key(function, name), text(function, name)));
    for name in operand::MOVED {
        push("GATHER", name);
        push("SET", name);
    }
    for dtype in DType::ALL {
        push("ADD", c_type(dtype));
    }
    push("LAST", "u8");
    push("NUMBER", "u8");
}
