//! The short ways of what a function of two arrays can do besides being called: small dense arrays at hand, nothing recorded. `None`: take the
//! general way, which also says what is wrong.
#![allow(unsafe_code)]

use mxnet_engine::engine;
use mxnet_kernels::Serial;
use mxnet_kernels::map::Rows;
use mxnet_tensor::{Casting, DType, DeviceKind, Dims, Tensor, can_cast};
use smallvec::SmallVec;

use super::kernels::segment;
use crate::eager::elem;
use crate::error::Result;
use crate::interp::Flags;
use crate::opdef::{Cpu, OpDef, Short};
use crate::quick::{self, Quick, SMALL_LEN, duplicate};
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

/// The function of every element of `a` and every one of `b`, of one dtype.
///
/// # Errors
/// As [`reduce_few`].
pub fn outer_few(op: &'static OpDef, a: &Array, b: &Array) -> Result<Option<Array>> {
    let Types::Promote { accepts, lift, out } = op.types else {
        return Ok(None);
    };
    let (dtype, n, m) = (a.dtype(), a.len(), b.len());
    let is_open = |x: &Array| {
        x.ndim() > 0
            && x.len() <= SMALL_LEN
            && !x.is_weak()
            && x.device().kind() == DeviceKind::Cpu
            && x.layout().is_contiguous()
    };
    if !Flags::current().is_plain()
        || lift == Lift::ToWidestFloat
        || !accepts.has(dtype)
        || b.dtype() != dtype
        || !is_open(a)
        || !is_open(b)
        || a.device() != b.device()
        || n * m > SMALL_LEN
    {
        return Ok(None);
    }
    let row = rows_of(op).and_then(|rows| (rows.get)(mxnet_kernels::isa::isa(), elem(dtype)));
    let Some(row) = row else { return Ok(None) };
    let reads = [a.tensor().storage().var(), b.tensor().storage().var()];
    let is_lone = std::ptr::eq(reads[0], reads[1]);
    let cost = (n * m) as u64 + 1;
    let Some(guard) = engine().try_acquire(&reads[usize::from(is_lone)..], &[], cost) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let mut shape = Dims::from_slice(a.shape());
    shape.extend_from_slice(b.shape());
    let returned = out.of(dtype);
    let result = Tensor::empty(&shape, returned, a.device())?;
    let (size, wide) = (dtype.size(), returned.size());
    let (x, y, z) = (
        a.tensor().data_ptr(),
        b.tensor().data_ptr(),
        result.data_ptr(),
    );
    let strides = [wide as isize, 0, size as isize];
    for i in 0..if m == 0 { 0 } else { n } {
        let ptrs = [z.wrapping_add(i * m * wide), x.wrapping_add(i * size), y];
        // SAFETY: 1. one element of `a`, the `m` dense ones of `b`, and as many of the result, of the row's types. 2. `guard` grants the reads; the
        // result is known to nobody else.
        unsafe { row(ptrs.as_ptr(), strides.as_ptr(), m, std::ptr::null()) };
    }
    drop(guard);
    Ok(Some(Array::from_tensor(result)))
}

/// The function computed in `dtype`, to which the operands are converted under the rule 'same_kind'.
///
/// # Errors
/// As [`reduce_few`].
pub fn call_in(op: &'static OpDef, operands: &[&Array], dtype: DType) -> Result<Option<Array>> {
    if !Flags::current().is_plain()
        || !accepts(op, dtype)
        || op.refuses.is_some()
        || !operands.iter().all(|x| {
            !x.is_weak() && x.len() <= SMALL_LEN && can_cast(x.dtype(), dtype, Casting::SameKind)
        })
    {
        return Ok(None);
    }
    let mut converted: SmallVec<[Option<Array>; 2]> = SmallVec::new();
    for x in operands {
        converted.push(match x.dtype() == dtype {
            true => None,
            false => match duplicate(x, dtype)? {
                Some(x) => Some(x),
                None => return Ok(None),
            },
        });
    }
    let both = operands.iter().zip(&converted);
    let operands: SmallVec<[Quick; 2]> = both
        .map(|(x, converted)| Quick::Array(converted.as_ref().unwrap_or(x)))
        .collect();
    quick::quick(op, &operands)
}
