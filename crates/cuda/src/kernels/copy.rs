//! Copies, conversions and fills, and the operators that are composed of them: concatenate, pad, roll, repeat.

use mxnet_core::{KernelContext, Result, device_kernels};
use mxnet_kernels::copy::border_runs;
use mxnet_tensor::{DType, DeviceKind, Dims, Layout, Scalar, Strides, Tensor};
use smallvec::{SmallVec, smallvec};

use super::map::{self, Function, Input};
use super::operand::Operand;

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    for op in ["duplicate", "copy_in_order", "copy", "cast", "astype"] {
        device_kernels::register(op, kind, 0, |context| {
            copy_input(context, 0, context.output(0))
        })?;
    }
    device_kernels::register("flatten", kind, 0, flatten)?;
    device_kernels::register("concatenate", kind, 0, concatenate)?;
    device_kernels::register("pad_constant", kind, 0, pad_constant)?;
    device_kernels::register("pad_border", kind, 0, pad_border)?;
    device_kernels::register("unslice", kind, 0, unslice)?;
    device_kernels::register("rotate", kind, 0, rotate)?;
    device_kernels::register("repeat", kind, 0, repeat)?;
    device_kernels::register("complex_of", kind, 0, complex_of)
}

/// The dtype that stands for all dtypes of its size in kernels that only move elements.
fn copy_dtype(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        8 => DType::U64,
        _ => DType::C128,
    }
}

/// The identity function, with conversion to another dtype.
fn copy_function(to: DType) -> Function<'static> {
    Function {
        name: "move",
        results: &["a"],
        compute: to,
        natives: smallvec![to],
        out_natives: smallvec![to],
        counts: false,
    }
}

/// Copies `from`, broadcast to the shape of `to` and converted to its dtype.
pub(super) fn copy(context: &KernelContext, from: &Tensor, to: &Tensor) -> Result<()> {
    let from = Operand::with_layout(from, from.layout().broadcast_to(to.shape())?);
    copy_operand(context, from, Operand::of(to))
}

/// Copies elements between operands of equal shape, converted to the dtype of `to`.
pub(super) fn copy_operand(
    context: &KernelContext,
    mut from: Operand,
    mut to: Operand,
) -> Result<()> {
    if from.dtype == to.dtype {
        let dtype = copy_dtype(to.dtype);
        (from.dtype, to.dtype) = (dtype, dtype);
    }
    let shape = to.shape.clone();
    map::run(
        context,
        &copy_function(to.dtype),
        &shape,
        &[to],
        &[Input::Array(from)],
        &[],
    )
}

/// Sets all elements to a number.
pub(super) fn fill(context: &KernelContext, to: &Tensor, number: Scalar) -> Result<()> {
    let function = copy_function(to.dtype());
    map::run(
        context,
        &function,
        to.shape(),
        &[Operand::of(to)],
        &[Input::Number(number)],
        &[],
    )
}

/// Copies input `i`, which may be a scalar.
fn copy_input(context: &KernelContext, i: usize, to: &Tensor) -> Result<()> {
    match context.number(i) {
        Some(number) => fill(context, to, number),
        None => copy(context, context.input(i), to),
    }
}

fn flatten(context: &KernelContext) -> Result<()> {
    let (shape, out) = (context.input(0).shape(), context.output(0));
    let layout = match context.str("order") {
        "F" => Layout::fortran(shape),
        _ => Layout::contiguous(shape),
    };
    copy_input(
        context,
        0,
        &out.with_layout(layout.with_offset(out.layout().offset())),
    )
}

fn concatenate(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let mut start = 0;
    for (i, x) in context.inputs.iter().enumerate() {
        let Some(x) = x else { continue };
        let target = match context.is_none("axis") {
            // The flattened output has one axis.
            true => {
                let stop = start + x.len();
                let part =
                    out.layout()
                        .slice(0, Some(start as isize), Some(stop as isize), Some(1))?;
                start = stop;
                let step = part.strides().first().copied().unwrap_or(1);
                let strides: Strides = Layout::contiguous(x.shape())
                    .strides()
                    .iter()
                    .map(|s| s * step)
                    .collect();
                Layout::strided(x.shape(), &strides, part.offset())?
            }
            false => {
                let axis = context.axis("axis", 0)?;
                let stop = start + x.shape()[axis];
                let (from, to) = (start as isize, stop as isize);
                start = stop;
                out.layout()
                    .slice(axis as isize, Some(from), Some(to), Some(1))?
            }
        };
        copy_input(context, i, &out.with_layout(target))?;
    }
    Ok(())
}

/// (before, after) of each axis.
fn widths(context: &KernelContext) -> SmallVec<[(usize, usize); 4]> {
    let pairs = context.ints("pad_width").chunks(2);
    pairs.map(|p| (p[0] as usize, p[1] as usize)).collect()
}

/// The sub-box of a layout with these (first, length) ranges along the axes.
fn part(full: &Layout, ranges: impl Iterator<Item = (usize, usize)>) -> Result<Layout> {
    let mut layout = full.clone();
    for (axis, (first, len)) in ranges.enumerate() {
        let stop = first + len;
        layout = layout.slice(
            axis as isize,
            Some(first as isize),
            Some(stop as isize),
            Some(1),
        )?;
    }
    Ok(layout)
}

fn pad_constant(context: &KernelContext) -> Result<()> {
    let (x, out, widths) = (context.input(0), context.output(0), widths(context));
    let value = context.scalar("value").unwrap_or(Scalar::I64(0));
    // The borders of an axis span all later axes completely and the middle of the earlier ones, so that every element is written once.
    for (axis, &(before, after)) in widths.iter().enumerate() {
        let n = x.shape()[axis];
        for (first, len) in [(0, before), (before + n, after)] {
            let ranges = (widths.iter().enumerate()).map(|(i, w)| match i.cmp(&axis) {
                std::cmp::Ordering::Less => (w.0, x.shape()[i]),
                std::cmp::Ordering::Equal => (first, len),
                std::cmp::Ordering::Greater => (0, out.shape()[i]),
            });
            fill(
                context,
                &out.with_layout(part(out.layout(), ranges)?),
                value,
            )?;
        }
    }
    let ranges = widths.iter().zip(x.shape()).map(|(w, &n)| (w.0, n));
    copy_input(context, 0, &out.with_layout(part(out.layout(), ranges)?))
}

/// Copies the array into the output, then fills the borders within the output. Those of an axis include the borders that are already filled, which
/// gives the corners.
fn pad_border(context: &KernelContext) -> Result<()> {
    let (x, out, widths) = (context.input(0), context.output(0), widths(context));
    if out.is_empty() {
        return Ok(());
    }
    // The range along each axis that is filled: first element and length.
    let mut done: SmallVec<[(usize, usize); 4]> = widths
        .iter()
        .zip(x.shape())
        .map(|(w, &n)| (w.0, n))
        .collect();
    copy_input(
        context,
        0,
        &out.with_layout(part(out.layout(), done.iter().copied())?),
    )?;
    for (axis, &(before, after)) in widths.iter().enumerate() {
        for run in border_runs(context.str("mode"), before, x.shape()[axis], after) {
            let piece = |first: usize, step: isize| -> Result<Layout> {
                let whole = part(out.layout(), done.iter().copied())?;
                let (mut shape, mut strides) = (
                    Dims::from_slice(whole.shape()),
                    Strides::from_slice(whole.strides()),
                );
                let offset = whole.offset() as isize
                    + strides[axis] * (first as isize - done[axis].0 as isize);
                shape[axis] = run.len;
                strides[axis] *= step;
                Ok(Layout::strided(&shape, &strides, offset as usize)?)
            };
            let (from, to) = (piece(run.from, run.step)?, piece(run.to, 1)?);
            copy(context, &out.with_layout(from), &out.with_layout(to))?;
        }
        done[axis] = (0, out.shape()[axis]);
    }
    Ok(())
}

fn unslice(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    fill(context, out, Scalar::I64(0))?;
    let end = context.opt_int("end").map(|e| e as isize);
    let (axis, begin) = (context.int("axis") as isize, context.int("begin") as isize);
    let target = out.layout().slice(axis, Some(begin), end, Some(1))?;
    copy_input(context, 0, &out.with_layout(target))
}

fn rotate(context: &KernelContext) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    match x.is_empty() {
        true => Ok(()),
        false => swap_parts(context, context.ints("starts"), 0, x.layout(), out.layout()),
    }
}

/// Swaps the two parts of the axes from `axis` on, recursively, between views that are already split along the earlier axes.
fn swap_parts(
    context: &KernelContext,
    starts: &[i64],
    axis: usize,
    from: &Layout,
    to: &Layout,
) -> Result<()> {
    let Some(&start) = starts.get(axis) else {
        let (x, out) = (context.input(0), context.output(0));
        return copy(
            context,
            &x.with_layout(from.clone()),
            &out.with_layout(to.clone()),
        );
    };
    let (n, start) = (from.shape()[axis] as isize, start as isize);
    if start == 0 {
        return swap_parts(context, starts, axis + 1, from, to);
    }
    for (first, end, target) in [(start, n, 0), (0, start, n - start)] {
        let part = |layout: &Layout, first, end| {
            layout.slice(axis as isize, Some(first), Some(end), Some(1))
        };
        let (from, to) = (
            part(from, first, end)?,
            part(to, target, target + end - first)?,
        );
        swap_parts(context, starts, axis + 1, &from, &to)?;
    }
    Ok(())
}

/// Repeats each element: for every run of equal counts, a copy of elements that are broadcast along a new axis.
fn repeat(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    if out.is_empty() {
        return Ok(());
    }
    let x = Operand::dense(context, 0, context.input(0).dtype())?;
    let (blocks, n, width): (usize, usize, usize) = match context.is_none("axis") {
        true => (1, x.len(), 1),
        false => {
            let (outer, inner) = x.shape.split_at(context.axis("axis", 0)?);
            (
                outer.iter().product(),
                inner[0],
                inner[1..].iter().product(),
            )
        }
    };
    let repeats = context.ints("repeats");
    let count = |i: usize| repeats[if repeats.len() == 1 { 0 } else { i }] as usize;
    let (size, rows) = (x.dtype.size(), out.len() / (blocks * width));
    let (mut first, mut done) = (0, 0);
    while first < n {
        let times = count(first);
        let mut end = if repeats.len() == 1 { n } else { first + 1 };
        while end < n && count(end) == times {
            end += 1;
        }
        // (block, element, repetition, row), where the repetitions have stride 0.
        let (len, width_step) = (end - first, width as isize);
        let shape = [blocks, len, times, width];
        let from = [(n * width) as isize, width_step, 0, 1];
        let to = [
            (rows * width) as isize,
            times as isize * width_step,
            width_step,
            1,
        ];
        let start = x.ptr + (first * width * size) as u64;
        let target = out.data_ptr() as u64 + (done * width * size) as u64;
        copy_operand(
            context,
            Operand::at(start, &shape, &from, x.dtype),
            Operand::at(target, &shape, &to, x.dtype),
        )?;
        (first, done) = (end, done + len * times);
    }
    Ok(())
}

fn complex_of(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let (compute, part) = (out.dtype(), out.dtype().real());
    let function = Function {
        name: "complex_of",
        results: &["T(a, b)"],
        compute,
        natives: smallvec![part, part],
        out_natives: smallvec![compute],
        counts: false,
    };
    let ins = [
        Input::of(context, 0, out.shape())?,
        Input::of(context, 1, out.shape())?,
    ];
    map::run(
        context,
        &function,
        out.shape(),
        &[Operand::of(out)],
        &ins,
        &[],
    )
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for to in DType::ALL {
        for from in DType::ALL {
            map::conversion_texts(&copy_function(to), from, all);
        }
    }
}
