//! Vectors whose length depends on the data: [`Error::Memory`] if there is not enough memory, where `Vec` would end the process. Kernels have
//! `mxnet_kernels::scratch`, which panics, since they cannot return errors.

use crate::error::{Error, Result};

#[cold]
fn no_memory<T>(op: &'static str, len: usize) -> Error {
    let bytes = len.saturating_mul(size_of::<T>());
    Error::memory(op, format!("cannot allocate {bytes} bytes"))
}

/// An empty vector with room for `len` elements.
///
/// # Errors
/// [`Error::Memory`] of operator `op`.
pub fn with_capacity<T>(op: &'static str, len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    match all.try_reserve_exact(len) {
        Ok(()) => Ok(all),
        Err(_) => Err(no_memory::<T>(op, len)),
    }
}

/// Checks that `bytes` bytes can be allocated, before many small allocations, which end the process if they fail.
///
/// # Errors
/// [`Error::Memory`] of operator `op`.
pub fn check_available(op: &'static str, bytes: usize) -> Result<()> {
    let all = with_capacity::<u8>(op, bytes)?;
    // An allocation that nobody uses may be optimised away.
    std::hint::black_box(&all);
    Ok(())
}

/// The values of `of`, which are `len`.
///
/// # Errors
/// [`Error::Memory`] of operator `op`.
pub fn collected<T>(
    op: &'static str,
    len: usize,
    of: impl IntoIterator<Item = T>,
) -> Result<Vec<T>> {
    let mut all = with_capacity(op, len)?;
    all.extend(of);
    Ok(all)
}

/// As `to.push(value)`.
///
/// # Errors
/// [`Error::Memory`] of operator `op`; `to` is as before.
#[inline]
pub fn push<T>(op: &'static str, to: &mut Vec<T>, value: T) -> Result<()> {
    if to.len() == to.capacity() && to.try_reserve(1).is_err() {
        return Err(no_memory::<T>(op, to.len() + 1));
    }
    to.push(value);
    Ok(())
}
