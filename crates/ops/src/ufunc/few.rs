//! The short ways of what a function of two arrays can do besides being called: small dense arrays at hand, nothing recorded. `None`: take the
//! general way, which also says what is wrong.
#![allow(unsafe_code)]

use mxnet_kernels::Serial;
use mxnet_kernels::map::Rows;
use mxnet_tensor::{DType, Dims};

use super::kernels::segment;
use crate::error::Result;
use crate::interp::Flags;
use crate::launch::elem;
use crate::opdef::{Cpu, OpDef, Short};
use crate::quick;
use crate::reduce::{ALL, ANY, MAX, MIN, PROD, SUM};
use crate::types::{Lift, Out, Types};
use crate::{Array, cpu};

/// The fold of an array over one axis or all by a function that a reduction of its own stands for.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn reduce_few(op: &OpDef, x: &Array, axis: Option<isize>) -> Result<Option<Array>> {
    let fold = match op.name {
        "add" => &SUM,
        "multiply" => &PROD,
        "maximum" => &MAX,
        "minimum" => &MIN,
        "logical_and" => &ALL,
        "logical_or" => &ANY,
        _ => return Ok(None),
    };
    along(fold, x, axis)
}

/// The steps of a fold by a function that has an operator for them.
///
/// # Errors
/// As [`reduce_few`].
pub fn accumulate_few(op: &OpDef, x: &Array, axis: isize) -> Result<Option<Array>> {
    match op.fold.accumulate {
        Some(steps) if accepts(op, x.dtype()) => along(steps, x, Some(axis)),
        _ => Ok(None),
    }
}

fn along(op: &OpDef, x: &Array, axis: Option<isize>) -> Result<Option<Array>> {
    match op.short {
        Short::Along(way) if Flags::current().is_plain() => way(x, axis),
        _ => Ok(None),
    }
}

/// Whether the function is computed in a dtype, and gives it.
fn accepts(op: &OpDef, dtype: DType) -> bool {
    matches!(op.types, Types::Promote { accepts, lift, out: Out::Same } if accepts.has(dtype) && lift != Lift::ToWidestFloat)
}

/// The rows of a function of two operands of one dtype that refuses none.
fn rows_of(op: &OpDef) -> Option<&'static Rows> {
    match op.cpu {
        Cpu::Map(rows)
            if rows.ins == 2
                && rows.outs == 1
                && rows.params == 0
                && rows.in_elems.iter().all(Option::is_none)
                && op.refuses.is_none() =>
        {
            Some(rows)
        }
        _ => None,
    }
}

/// Segments of an axis, folded: those that begin at `starts`, by functions that fold in the dtype of the elements.
///
/// # Errors
/// As [`reduce_few`].
pub fn reduceat_few(
    op: &'static OpDef,
    x: &Array,
    starts: &[i64],
    axis: isize,
) -> Result<Option<Array>> {
    let ndim = x.ndim() as isize;
    let dtype = x.dtype();
    let Some(rows) = rows_of(op) else {
        return Ok(None);
    };
    // Sums of small integers are wider.
    let is_wider = dtype.kind() < mxnet_tensor::Kind::Float
        && !matches!(dtype, DType::I64 | DType::U64)
        && matches!(op.name, "add" | "multiply");
    if !Flags::current().is_plain()
        || !(-ndim..ndim).contains(&axis)
        || !accepts(op, dtype)
        || is_wider
        || cpu::row_elem(rows, dtype) != elem(dtype)
        || !rows.supports(elem(dtype))
        || rows.out_elem(elem(dtype)) != elem(dtype)
    {
        return Ok(None);
    }
    let axis = axis.rem_euclid(ndim) as usize;
    let len = x.shape()[axis];
    if starts.is_empty() || !starts.iter().all(|&s| (0..len as i64).contains(&s)) {
        return Ok(None);
    }
    let mut shape = Dims::from_slice(x.shape());
    shape[axis] = starts.len();
    let blocks: usize = shape[..axis].iter().product();
    let width: usize = shape[axis + 1..].iter().product();
    let bytes = width * dtype.size();
    quick::small(x, &shape, dtype, |src, dst| {
        for block in 0..blocks {
            for (j, &start) in starts.iter().enumerate() {
                let start = start as usize;
                let end = starts.get(j + 1).map_or(len, |&next| next as usize);
                let len_of_segment = end.saturating_sub(start).max(1);
                // SAFETY: 1. `small` gives dense elements: `blocks` times `len` rows of `width`, of which the segment's lie within block. 2. The
                // result has as many rows a block as there are starts. 3. The function's types were looked at above.
                unsafe {
                    let from = src.add((block * len + start) * bytes);
                    let to = dst.add((block * starts.len() + j) * bytes);
                    segment(&Serial, rows, dtype, from, len_of_segment, width, to);
                }
            }
        }
        true
    })
}
