//! Copies and views of small arrays, and new arrays that something at hand fills: no inference, no queue, no allocation but the result's.

use mxnet_engine::engine;
use mxnet_kernels::cast::Cast;
use mxnet_tensor::{DType, DeviceKind, Layout, Tensor};

use super::SMALL_LEN;
use crate::Array;
use crate::cpu::copy_few;
use crate::error::Result;
use crate::interp::Flags;
use crate::launch::elem;

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
