//! `tile`, `repeat`, `roll` and constant padding.
#![allow(unsafe_code)]

use mxnet_kernels::copy::{Counts, repeat_rows};
use mxnet_tensor::{Dims, Layout, Scalar};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::{CallContext, CompositeContext, KernelContext};

use crate::error::Result;
use crate::index::{dense, scattered_slices};
use crate::invoke::invoke1;
use crate::memory_order;
use crate::opdef::{Cost, Cpu, Grad, Keep, OpDef, Probe, Surface, ZeroDimResult, one, one_of};
use crate::shape::narrow;
use crate::types::{Types, check_element};
use crate::{Outputs, cpu};

/// Pads with a constant. `np.pad` composes other modes of slices.
pub static PAD: OpDef = OpDef {
    name: "pad_constant",
    reports_as: Some("pad"),
    params: &[
        Param::array("array"),
        Param::required("pad_width", ParamKind::Ints),
        Param::required("value", ParamKind::Scalar),
    ],
    doc: "The array with `pad_width` = (before, after, before, after, ...) elements of `value` added along each axis.",
    infer: |context| {
        if let Some(value) = context.scalar("value") {
            check_element("pad", &value, context.dtype_of(0))?;
        }
        let (old, widths) = (context.shape(0), context.ints("pad_width"));
        if widths.len() != 2 * old.len() || widths.iter().any(|&width| width < 0) {
            let problem = format!("`pad_width` must have two numbers, not negative, for each of {} axes", old.len());
            return Err(context.shape_error(problem));
        }
        let sizes = old.iter().zip(widths.chunks(2));
        let shape = sizes.map(|(&n, p)| n.saturating_add(p[0] as usize).saturating_add(p[1] as usize));
        one_of(shape.collect::<Dims>(), context.dtype_of(0))
    },
    cpu: Cpu::Kernel(pad),
    order: Some(memory_order::as_inputs),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let mut dy = g.dy(0).clone();
        for (axis, p) in g.ints("pad_width").chunks(2).enumerate() {
            dy = narrow(&dy, axis, p[0] as usize, p[0] as usize + g.shape(0)[axis])?;
        }
        g.one(dy)
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&["f((2, 3)), (1, 0, 0, 2), 1.5", "f((2,)), (0, 0), 0"]).against(
        "lambda x, width, value: np.pad(x, [width[i : i + 2] for i in range(0, len(width), 2)], constant_values=value)",
    ),
    batch: Batch::Rule(|context| {
        let widths = context.prefixed("pad_width", &[0, 0]);
        context.call(&context.fronts()?, &context.with(&[("pad_width", widths)]))
    }),
    ..OpDef::DEFAULT
};

/// NumPy's `resize`.
pub static RESIZE: OpDef = OpDef {
    name: "resize",
    surface: &[Surface::Np("resize")],
    params: &[
        Param::array("a"),
        Param::required("new_shape", ParamKind::Ints),
    ],
    doc: "An array of another shape, filled with the elements in C order, repeated as often as needed; zeros if there are no elements.",
    about: &[("new_shape", "Shape of the result.")],
    returns: &[("ndarray", "Copy of shape `new_shape` and the dtype of `a`.")],
    raises: &[("ValueError", "If a size is negative.")],
    example: "
        >>> np.resize([1, 2, 3], (2, 2))
        array([[1, 2],
               [3, 1]])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, sizes) = (context.input(0), context.ints("new_shape"));
        if sizes.iter().any(|&n| n < 0) {
            return Err(context.value_error(format!(
                "sizes must not be negative, found {}",
                crate::Tuple(sizes)
            )));
        }
        let shape: Dims = sizes.iter().map(|&n| n as usize).collect();
        let (n, length) = (x.len(), shape.iter().product::<usize>());
        if n == 0 || length == 0 {
            return context.done(crate::creation::zeros(&shape, x.dtype(), x.device())?);
        }
        let flat = x.reshape(&[n])?;
        let filled = if length <= n {
            narrow(&flat, 0, 0, length)?.copy()?
        } else {
            let times = length.div_ceil(n);
            // A copy even where a broadcast view would do: the result must be writable.
            let repeated = flat
                .broadcast_to(&[times, n])?
                .copy()?
                .reshape(&[times * n])?;
            narrow(&repeated, 0, 0, length)?
        };
        context.done(filled.reshape(&shape)?)
    }),
    probe: Probe::calls(&[
        "f((2, 3)), (4, 2)",
        "f((5,)), 3",
        "i((3,), 9), (0, 2)",
        "f(()), (2, 2)",
        "f((0,)), 2",
        "f((2, 3)), ()",
    ]),
    ..OpDef::COMPOSITE
};

fn pad(context: &KernelContext) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    cpu::fill(
        out,
        context.scalar("value").unwrap_or(Scalar::I64(0)),
        context.threads,
    );
    let mut target = out.layout().clone();
    for (axis, p) in context.ints("pad_width").chunks(2).enumerate() {
        let start = p[0] as isize;
        target = target.slice(
            axis as isize,
            Some(start),
            Some(start + x.shape()[axis] as isize),
            Some(1),
        )?;
    }
    cpu::copy(x, &out.with_layout(target), context.threads)
}

/// Rolls the elements along axes.
pub static ROLL: OpDef = OpDef {
    name: "roll",
    surface: &[Surface::Np("roll")],
    params: &[
        Param::array("a"),
        Param::required("shift", ParamKind::Ints).truncated(),
        Param::axes("axis"),
    ],
    doc: "Elements shifted along `axis` (the flattened array for None); elements shifted past one end re-enter at the other.",
    about: &[(
        "shift",
        "By how much, one number for all axes or one for each. Floats are truncated.",
    )],
    returns: &[("ndarray", "Of the shape and dtype of `a`.")],
    example: "
        >>> np.roll([1, 2, 3, 4], 1)
        array([4, 1, 2, 3])
        >>> np.roll([[1, 2], [3, 4]], 1, axis=0)
        array([[3, 4],
               [1, 2]])
    ",
    raises: &[("ValueError", "If the numbers of shifts and of axes differ.")],
    zero_dim: ZeroDimResult::Array,
    cpu: Cpu::Composite(roll),
    probe: Probe::calls(&[
        "f((5,)), 2",
        "f((2, 3)), 1",
        "f((2, 3)), -1, 1",
        "f((3, 4)), (1, 2), (0, 1)",
        "f((0,)), 3",
    ]),
    ..OpDef::COMPOSITE
};

fn roll(context: &CompositeContext) -> Result<Outputs> {
    let x = context.input(0);
    let shifts = context.ints("shift");
    // Element i of the result is element i + start of the input, modulo the length.
    let start = |n: usize, shift: i64| (-shift).rem_euclid(n.max(1) as i64);
    if context.is_none("axis") {
        let flat = x.reshape(&[x.len()])?;
        let starts = SmallVec::from_elem(start(x.len(), shifts.iter().sum()), 1);
        return context.done(rotated(&flat, starts)?.reshape(x.shape())?);
    }
    // If an axis is named several times, its shifts add up.
    let axes: SmallVec<[usize; 4]> = context
        .ints("axis")
        .iter()
        .map(|&a| Ok(mxnet_tensor::normalize_axis(a as isize, x.ndim())?))
        .collect::<Result<_>>()?;
    let count = axes.len().max(shifts.len());
    if axes.is_empty() || shifts.is_empty() {
        return match x.ndim() {
            0 => Err(context.value_error("a 0-d array has no axis to roll along")),
            _ => context.done(x.copy()?),
        };
    }
    if axes.len() != shifts.len() && axes.len() != 1 && shifts.len() != 1 {
        return Err(context.shape_error(format!(
            "{} shifts for {} axes",
            shifts.len(),
            axes.len()
        )));
    }
    let mut totals = SmallVec::<[i64; 4]>::from_elem(0, x.ndim());
    for i in 0..count {
        let axis = axes[if axes.len() == 1 { 0 } else { i }];
        totals[axis] += shifts[if shifts.len() == 1 { 0 } else { i }];
    }
    let starts = totals
        .iter()
        .zip(x.shape())
        .map(|(&shift, &n)| start(n, shift));
    context.done(rotated(x, starts.collect())?)
}

fn rotated(x: &Array, starts: SmallVec<[i64; 4]>) -> Result<Array> {
    invoke1(&ROTATE, &[x], &[Value::Ints(starts)].into_iter().collect())
}

/// Splits every axis in two parts and swaps them.
pub static ROTATE: OpDef = OpDef {
    name: "rotate",
    params: &[
        Param::array("x"),
        Param::required("starts", ParamKind::Ints),
    ],
    doc: "The elements rotated so that, along axis i, they begin with element `starts[i]` and continue with the first one after the last.",
    infer: |context| match context.ints("starts").len() == context.shape(0).len() {
        true => context.same_as(0),
        false => Err(context.shape_error("`starts` must have one position for each axis")),
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (context.input(0), context.output(0));
        if x.is_empty() {
            return Ok(());
        }
        swap_parts(context, context.ints("starts"), 0, x.layout(), out.layout())
    }),
    order: Some(memory_order::as_inputs),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let starts = g.ints("starts").iter().zip(g.shape(0));
        let back = starts.map(|(&start, &n)| (n as i64 - start) % n.max(1) as i64);
        g.one(rotated(g.dy(0), back.collect())?)
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&["f((3, 4)), (1, 3)", "f((5,)), (0,)", "f((0, 2)), (0, 1)"])
        .against("lambda x, starts: numpy.roll(x, [-s for s in starts], list(range(x.ndim)))"),
    batch: Batch::Rule(|context| {
        let starts = context.prefixed("starts", &[0]);
        context.call(&context.fronts()?, &context.with(&[("starts", starts)]))
    }),
    ..OpDef::DEFAULT
};

/// Copies both parts of each axis from `axis` on. The views are already restricted along the axes before it.
fn swap_parts(
    context: &KernelContext,
    starts: &[i64],
    axis: usize,
    from: &Layout,
    to: &Layout,
) -> Result<()> {
    let Some(&start) = starts.get(axis) else {
        let (x, out) = (context.input(0), context.output(0));
        return cpu::copy(
            &x.with_layout(from.clone()),
            &out.with_layout(to.clone()),
            context.threads,
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

/// Repeats the whole array along axes.
pub static TILE: OpDef = OpDef {
    name: "tile",
    surface: &[Surface::Np("tile"), Surface::Method("tile")],
    params: &[Param::array("A"), Param::required("reps", ParamKind::Ints)],
    doc: "The array repeated as a whole `reps` times along each axis; missing axes are added in front.",
    about: &[("A", "The array."), ("reps", "How often, for each axis.")],
    returns: &[(
        "ndarray",
        "Copy of the dtype of `A`; its lengths are those of `A` times `reps`.",
    )],
    raises: &[("ValueError", "If a number in `reps` is negative.")],
    example: "
        >>> np.tile([1, 2], 2)
        array([1, 2, 1, 2])
        >>> np.tile([1, 2], (2, 1))
        array([[1, 2],
               [1, 2]])
    ",
    cpu: Cpu::Composite(tile),
    probe: Probe::calls(&[
        "f((2, 3)), 2",
        "f((3,)), (2, 2)",
        "f((2, 3)), (2, 1, 3)",
        "f((2,)), 0",
    ]),
    ..OpDef::COMPOSITE
};

fn tile(context: &CompositeContext) -> Result<Outputs> {
    let (x, reps) = (
        context.input(0),
        crate::creation::dims(context.op.name, context.ints("reps"))?,
    );
    let ndim = x.ndim().max(reps.len());
    let lead = |values: &[usize]| -> Dims {
        std::iter::repeat_n(1, ndim - values.len())
            .chain(values.iter().copied())
            .collect()
    };
    let (shape, reps) = (lead(x.shape()), lead(&reps));
    // (r0, n0, r1, n1, ...): the repeated axes are broadcast, then merged.
    let split: Dims = shape.iter().flat_map(|&n| [1, n]).collect();
    let wide: Dims = shape
        .iter()
        .zip(&reps)
        .flat_map(|(&n, &r)| [r, n])
        .collect();
    let full: Dims = shape.iter().zip(&reps).map(|(&n, &r)| n * r).collect();
    context.done(
        x.reshape(&split)?
            .broadcast_to(&wide)?
            .copy()?
            .reshape(&full)?,
    )
}

/// Repeats each element.
pub static REPEAT: OpDef = OpDef {
    name: "repeat",
    surface: &[Surface::Np("repeat"), Surface::Method("repeat")],
    params: &[
        Param::array("a"),
        Param::required("repeats", ParamKind::Ints).truncated(),
        Param::optional("axis", ParamKind::Int),
    ],
    doc: "Each element `repeats` times along `axis` (the flattened array for None): one number for all, or one for each position.",
    about: &[(
        "repeats",
        "How often, one number or one for each position. Floats are truncated.",
    )],
    returns: &[(
        "ndarray",
        "Copy of the dtype of `a`, longer along the axis.",
    )],
    raises: &[(
        "ValueError",
        "If `repeats` is negative or of another length.",
    )],
    example: "
        >>> np.repeat([1, 2], 2)
        array([1, 1, 2, 2])
        >>> np.repeat([1, 2, 3], [0, 1, 2])
        array([2, 3, 3])
    ",
    types: Types::First,
    infer: |context| {
        let (mut shape, axis) = rows_of(context)?;
        let (n, repeats) = (shape[axis], context.ints("repeats"));
        if let Some(bad) = repeats.iter().find(|&&times| times < 0) {
            return Err(context.value_error(format!("`repeats` must not be negative, found {bad}")));
        }
        shape[axis] = match *repeats {
            [times] => n.saturating_mul(times as usize),
            _ if repeats.len() != n => {
                return Err(context.shape_error(format!(
                    "{} repeats for axis {axis} of size {n}",
                    repeats.len()
                )));
            }
            _ => (repeats.iter()).fold(0, |sum, &times| sum.saturating_add(times as usize)),
        };
        one(shape)
    },
    cpu: Cpu::Kernel(|context| {
        let (x, out) = (dense(context.input(0), context.threads)?, context.output(0));
        if out.is_empty() {
            return Ok(());
        }
        let (blocks, n, width) = match context.is_none("axis") {
            true => (1, x.len(), 1),
            false => {
                let (outer, inner) = x.shape().split_at(context.axis("axis", 0)?);
                (
                    outer.iter().product(),
                    inner[0],
                    inner[1..].iter().product(),
                )
            }
        };
        let counts = match context.ints("repeats") {
            [times] => Counts::All(n, *times as usize),
            each => Counts::Each(each),
        };
        let row_bytes = width * x.dtype().size();
        // SAFETY: the input is dense; the output was allocated for this call, with the number of elements that inference counted.
        unsafe {
            repeat_rows(
                context.threads,
                row_bytes,
                blocks,
                counts,
                x.data_ptr(),
                out.data_ptr(),
            );
        }
        Ok(())
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let flat = [g.shape(0).iter().product()];
        let (shape, axis) = match g.opt_int("axis") {
            None => (&flat[..], 0),
            Some(axis) => {
                let axis = mxnet_tensor::normalize_axis(axis as isize, g.shape(0).len())?;
                (g.shape(0), axis)
            }
        };
        let n = shape[axis];
        if let [times] = *g.ints("repeats") {
            let mut wide = Dims::from_slice(shape);
            wide.insert(axis + 1, times as usize);
            let dx = g
                .dy(0)
                .reshape(&wide)?
                .sum(Some(&[axis as i64 + 1]), false)?;
            return g.one(dx.reshape(g.shape(0))?);
        }
        let mut positions = Vec::new();
        for (i, &times) in g.ints("repeats").iter().enumerate() {
            positions.extend(std::iter::repeat_n(i as i64, times as usize));
        }
        let positions = Array::from_slice(&positions, &[positions.len()])?;
        debug_assert_eq!(n, g.ints("repeats").len());
        g.one(scattered_slices(g.dy(0), &positions, axis, shape)?.reshape(g.shape(0))?)
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&[
        "f((2, 3)), 2",
        "f((2, 3)), 3, 0",
        "f((2, 3)), (1, 0, 2), 1",
        "f((3,)), 0",
        "f((2, 2)), (1, 0, 2, 3)",
    ]),
    batch: Batch::Axes("axis"),
    ..OpDef::DEFAULT
};

/// The shape of the repeated array, and the axis along which elements repeat.
fn rows_of(context: &CallContext) -> Result<(Dims, usize)> {
    match context.is_none("axis") {
        true => Ok((Dims::from_slice(&[context.input(0).len()]), 0)),
        false => Ok((Dims::from_slice(context.shape(0)), context.axis("axis", 0)?)),
    }
}

/// The array padded with `value`; `widths` has (before, after) for each axis.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn pad_with(x: &Array, widths: &[i64], value: Scalar) -> Result<Array> {
    invoke1(
        &PAD,
        &[x],
        &[Value::from(widths), Value::Scalar(value)]
            .into_iter()
            .collect(),
    )
}
