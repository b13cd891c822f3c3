//! Copies and views of small arrays, and new arrays that something at hand fills: no inference, no queue, no allocation but the result's.

use mxnet_engine::engine;
use mxnet_kernels::cast::Cast;
use mxnet_tensor::{DType, DeviceKind, Layout, Source, Tensor, checked_len};

use super::SMALL_LEN;
use crate::Array;
use crate::cpu::copy_few;
use crate::error::Result;
use crate::interp::Flags;
use crate::launch::elem;
use crate::opdef::Copied;

/// The elements of a small array in C order, in memory of their own and as `dtype`, if nobody records and nobody writes them. `None`: take the
/// general way.
///
/// # Errors
/// [`crate::Error::Memory`].
#[inline]
pub fn duplicate(x: &Array, dtype: DType) -> Result<Option<Array>> {
    let flags = Flags::current();
    let is_open = match dtype == x.dtype() {
        true => flags.may_move(),
        false => flags.is_plain() && x.layout().is_contiguous(),
    };
    if !is_open || x.is_weak() {
        return Ok(None);
    }
    small_copy(x, dtype)
}

/// The elements of a small array in Fortran order, in memory of their own. `None`: take the general way.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn duplicate_fortran(x: &Array) -> Result<Option<Array>> {
    if !Flags::current().may_move() || x.is_weak() {
        return Ok(None);
    }
    copy_as(x, x.dtype(), Layout::fortran(x.shape()))
}

/// A copy that nobody else sees, under another layout of all its elements: no view.
pub(crate) fn relaid(copy: &Array, layout: Layout) -> Result<Array> {
    let storage = copy.tensor().storage().clone();
    Ok(Array::from_tensor(Tensor::new(
        storage,
        layout,
        copy.dtype(),
    )?))
}

/// How the elements of an array in C order are seen along one axis, if they may be and nothing is recorded.
#[inline]
pub fn flat_layout(x: &Array, copied: Copied) -> Option<Layout> {
    let is_seen = copied == Copied::WhereNeeded
        && Flags::current().may_move()
        && !x.is_weak()
        && x.layout().is_contiguous();
    is_seen.then(|| x.layout().as_row())
}

/// The elements of a small array along one axis, in C order and memory of their own. `None`: take the general way.
///
/// # Errors
/// [`crate::Error::Memory`].
#[inline]
pub fn flat(x: &Array) -> Result<Option<Array>> {
    if !Flags::current().may_move() || x.is_weak() {
        return Ok(None);
    }
    let Some(copy) = small_copy(x, x.dtype())? else {
        return Ok(None);
    };
    relaid(&copy, Layout::contiguous(&[copy.len()])).map(Some)
}

/// The elements in C order and memory of their own; converted only if they lie in C order.
#[inline]
fn small_copy(x: &Array, dtype: DType) -> Result<Option<Array>> {
    copy_as(x, dtype, Layout::contiguous(x.shape()))
}

/// The elements in memory of their own, under a dense layout; converted only if both lie in C order.
#[inline]
fn copy_as(x: &Array, dtype: DType, layout: Layout) -> Result<Option<Array>> {
    let n = x.len();
    if n > SMALL_LEN || x.device().kind() != DeviceKind::Cpu {
        return Ok(None);
    }
    let Some(guard) = engine().try_acquire(&[x.tensor().storage().var()], &[], n as u64 + 1) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let is_straight = x.layout().is_contiguous() && layout.is_contiguous();
    let result = Tensor::empty_as(layout, dtype, x.device())?;
    let (from, to) = (elem(x.dtype()), elem(dtype));
    let (src, dst) = (x.tensor().data_ptr(), result.data_ptr());
    // SAFETY: 1. the source's layout lies within its storage; the result is new, dense and has `n` elements. 2. `guard` grants the read; the
    // result is known to nobody else.
    unsafe {
        if !is_straight {
            copy_few(
                x.shape(),
                from.size(),
                (src, x.layout().strides()),
                (dst, result.layout().strides()),
            );
        } else if from == to {
            std::ptr::copy_nonoverlapping(src, dst, n * from.size());
        } else {
            Cast::new(from, to).row(src, dst, n);
        }
    }
    drop(guard);
    Ok(Some(Array::from_tensor(result)))
}

/// A new array of this shape and dtype that `work` fills, given where the elements of `x` and of the result are, if `x` is small, dense in C
/// order, not empty and at hand, and `work` answers that it did. `None`: take the general way.
#[inline]
pub(crate) fn small(
    x: &Array,
    shape: &[usize],
    dtype: DType,
    work: impl FnOnce(*const u8, *mut u8) -> bool,
) -> Result<Option<Array>> {
    if x.len() > SMALL_LEN {
        return Ok(None);
    }
    at_hand(x, x.len(), shape, dtype, work)
}

/// As [`small`], of an array of any size, if `work` looks at `count` of its elements only.
#[inline]
pub(crate) fn at_hand(
    x: &Array,
    count: usize,
    shape: &[usize],
    dtype: DType,
    work: impl FnOnce(*const u8, *mut u8) -> bool,
) -> Result<Option<Array>> {
    if x.is_empty()
        || x.is_weak()
        || x.device().kind() != DeviceKind::Cpu
        || !x.layout().is_contiguous()
    {
        return Ok(None);
    }
    let var = x.tensor().storage().var();
    let Some(guard) = engine().try_acquire(&[var], &[], count as u64 + 1) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let result = Source::fresh(checked_len(shape)?, dtype, x.device())?;
    let done = work(x.tensor().data_ptr(), result.storage().ptr());
    drop(guard);
    // The array last, so that it is made where it is returned: every move of what was just written waits.
    Ok(done.then(|| Array::from_tensor(result.dense(shape))))
}
