//! Index arrays on their way into kernels: dense, and in range whatever the caller of an internal operator gave.
#![allow(unsafe_code)]

use std::borrow::Cow;

use mxnet_kernels::Threads;
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

/// Whether the elements of a dense int64 tensor, which are complete, lie in `0..size`.
pub(super) fn all_in_range(x: &Tensor, size: usize, threads: &dyn Threads) -> bool {
    debug_assert!(x.dtype() == DType::I64 && x.layout().is_contiguous());
    // SAFETY: the tensor has that many int64 elements from its first on.
    unsafe { mxnet_kernels::index::all_below(threads, x.data_ptr().cast(), x.len(), size) }
}

/// A dense tensor of positions in `0..size`.
///
/// # Errors
/// [`Error::Index`] for a position outside: gather and scatter take none that `resolved` did not make.
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
    if !all_in_range(&dense, size, threads) {
        // SAFETY: dense int64 elements, whose reading the engine granted for this operation; the tensor outlives the slice.
        let values =
            unsafe { std::slice::from_raw_parts(dense.data_ptr().cast::<u64>(), dense.len()) };
        // As unsigned numbers, negative positions are large ones.
        let largest = values.iter().max().copied().unwrap_or(0);
        let problem = format!(
            "position {} is outside an axis of size {size}",
            largest as i64
        );
        return Err(Error::index(op, problem));
    }
    Ok(dense)
}
