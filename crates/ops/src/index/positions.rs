//! Index arrays for kernels: converted to dense arrays and checked, also if an internal operator is called with invalid ones.
#![allow(unsafe_code)]

use std::borrow::Cow;

use mxnet_kernels::Threads;
use mxnet_kernels::index::Mode;
use mxnet_tensor::{DType, Tensor};

use crate::cpu;
use crate::error::{Error, Result};

/// The tensor, or a dense copy of it.
pub(crate) fn dense<'a>(x: &'a Tensor, threads: &dyn Threads) -> Result<Cow<'a, Tensor>> {
    if x.layout().is_contiguous() {
        return Ok(Cow::Borrowed(x));
    }
    let copy = Tensor::empty(x.shape(), x.dtype(), x.device())?;
    cpu::copy(x, &copy, threads)?;
    Ok(Cow::Owned(copy))
}

/// Whether all elements of a dense int64 tensor lie in `0..size`. They must be complete.
pub(super) fn all_in_range(x: &Tensor, size: usize, threads: &dyn Threads) -> bool {
    debug_assert!(x.dtype() == DType::I64 && x.layout().is_contiguous());
    // SAFETY: the tensor has that many int64 elements from its first on.
    unsafe { mxnet_kernels::index::all_below(threads, x.data_ptr().cast(), x.len(), size) }
}

/// A dense tensor of positions in `0..size`; those in `-size..0` count from the end.
///
/// The call has already checked the positions. But if they needed no change, they are the user's own array, which may have been overwritten
/// since, so they are checked again.
///
/// # Errors
/// [`Error::Index`] for a position out of range.
pub(crate) fn positions<'a>(
    op: &'static str,
    x: &'a Tensor,
    size: usize,
    threads: &dyn Threads,
) -> Result<Cow<'a, Tensor>> {
    if x.dtype() != DType::I64 {
        return Err(Error::dtype(
            op,
            format!("positions must be int64, found {}", x.dtype().name()),
        ));
    }
    let dense = dense(x, threads)?;
    if all_in_range(&dense, size, threads) {
        return Ok(dense);
    }
    let wrapped = Tensor::empty(x.shape(), DType::I64, x.device())?;
    match super::resolve::run(threads, Mode::Raise, size, &dense, &wrapped) {
        Ok(()) => Ok(Cow::Owned(wrapped)),
        Err(bad) => Err(Error::index(
            op,
            format!("position {} is outside an axis of size {size}", bad.value),
        )),
    }
}
