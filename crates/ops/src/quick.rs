//! New arrays of small shapes, and copies of small arrays (`copies.rs`): made at the call, without inference and queue.
#![allow(unsafe_code)]

mod copies;

use mxnet_tensor::{DType, DeviceKind, Layout, Scalar, Source, Tensor, checked_len};

use crate::Array;
use crate::cpu::fill;
use crate::error::Result;
use crate::index::keeps;
use crate::interp::{Flags, current_device};
use crate::launch::Pool;

pub(crate) use copies::{at_hand, small};
pub use copies::{duplicate, duplicate_fortran, flat, flat_layout};

/// Up to this many elements the set-up of the general driver costs more than the work.
pub(crate) const SMALL_LEN: usize = 4096;

/// Up to this many undefined elements are made at once; of more, the general way words that there is no memory for them.
const UNDEFINED_LEN: usize = 1 << 24;

/// An operand: an array, or a Python number, which promotes by its kind only.
#[derive(Clone, Copy)]
pub enum Quick<'a> {
    /// An array.
    Array(&'a Array),
    /// A number, where it is: moving one costs more than looking at it, since it was written in parts a moment ago.
    Number(&'a Scalar),
}

/// A small contiguous array on the CPU with all elements equal, or one of undefined elements for `None`. `None`: take the general way.
///
/// # Errors
/// [`crate::Error::Memory`].
#[inline]
pub fn constant(shape: &[usize], value: Option<Scalar>, dtype: DType) -> Result<Option<Array>> {
    let Some(source) = constant_elements(shape, value, dtype)? else {
        return Ok(None);
    };
    let tensor = source.seen(Layout::contiguous(shape))?;
    Ok(Some(Array::from_tensor(tensor)))
}

/// The elements of such an array, in C order: what the caller writes to its place itself.
///
/// # Errors
/// [`crate::Error::Memory`].
#[inline]
pub fn constant_elements(
    shape: &[usize],
    value: Option<Scalar>,
    dtype: DType,
) -> Result<Option<Source>> {
    let device = current_device();
    // Nothing flows back into a constant, so recording makes no difference.
    if Flags::current().is_stacked() || device.kind() != DeviceKind::Cpu {
        return Ok(None);
    }
    let len = match checked_len(shape) {
        // Nothing has to be done for elements that are undefined.
        Ok(len) if len <= SMALL_LEN || value.is_none() && len <= UNDEFINED_LEN => len,
        _ => return Ok(None),
    };
    if value.is_some_and(|v| v.kind() > dtype.kind() || !v.fits(dtype) || !keeps(dtype, &v)) {
        return Ok(None);
    }
    if let Some(value) = value.filter(|value| !matches!(value, Scalar::I64(0))) {
        let row = Tensor::empty(&[len], dtype, device)?;
        fill(&row, value, &Pool);
        return Ok(Some(row.into_source()));
    }
    let source = Source::fresh(len, dtype, device)?;
    if value.is_some() {
        // SAFETY: `len` elements, which nobody else knows yet; zero is all-zero bits in every dtype.
        unsafe { source.storage().ptr().write_bytes(0, len * dtype.size()) };
    }
    Ok(Some(source))
}
