//! The short ways of `x[index]` and `x[mask]`: dense arrays, nothing recorded, no operators in between.
#![allow(unsafe_code)]

use mxnet_engine::engine;
use mxnet_kernels::index::{mask_starts, select};
use mxnet_tensor::{DType, DeviceKind, Dims, Tensor};

use crate::Array;
use crate::eager::Pool;
use crate::error::Result;
use crate::interp::Flags;

/// Up to this many bytes of result checking and copying at once cost less than operators.
const SMALL_BYTES: usize = 16 * 1024;

/// Whether both are dense arrays of the CPU and nothing records or intercepts.
fn is_open(x: &Array, y: &Array) -> bool {
    let dense = |x: &Array| {
        x.layout().is_contiguous() && x.device().kind() == DeviceKind::Cpu && !x.is_weak()
    };
    Flags::current().is_plain() && dense(x) && dense(y)
}

/// `x[index]` for few rows. `None`: take the general way, which also says what is wrong.
pub(super) fn rows(x: &Array, index: &Array) -> Result<Option<Array>> {
    let Some((&len, rest)) = x.shape().split_first() else {
        return Ok(None);
    };
    let width = rest.iter().product::<usize>() * x.dtype().size();
    let n = index.len();
    if index.dtype() != DType::I64
        || n * width > SMALL_BYTES
        || n > SMALL_BYTES / 8
        || !is_open(x, index)
    {
        return Ok(None);
    }
    let reads = [x.tensor().storage().var(), index.tensor().storage().var()];
    let same = std::ptr::eq(reads[0], reads[1]);
    let Some(guard) = engine().try_acquire(
        &reads[..if same { 1 } else { 2 }],
        &[],
        (n * width) as u64 + 1,
    ) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    // SAFETY: dense int64 elements, which `guard` grants to read.
    let positions =
        unsafe { std::slice::from_raw_parts(index.tensor().data_ptr().cast::<i64>(), n) };
    let resolved = |i: i64| if i < 0 { i.wrapping_add(len as i64) } else { i };
    if positions.iter().any(|&i| resolved(i) as u64 >= len as u64) {
        return Ok(None);
    }
    let mut shape = Dims::from_slice(index.shape());
    shape.extend_from_slice(rest);
    let result = Tensor::empty(&shape, x.dtype(), x.device())?;
    let (src, dst) = (x.tensor().data_ptr(), result.data_ptr());
    macro_rules! copy {
        ($word:ty) => {
            for (p, &i) in positions.iter().enumerate() {
                // SAFETY: positions lie in `0..len`; both arrays are dense, with rows as wide as this word.
                unsafe { *dst.cast::<$word>().add(p) = *src.cast::<$word>().add(resolved(i) as usize) };
            }
        };
    }
    match (width, x.dtype().size()) {
        (1, _) => copy!(u8),
        (2, 2) => copy!(u16),
        (4, 4) => copy!(u32),
        (8, 8) => copy!(u64),
        _ => {
            for (p, &i) in positions.iter().enumerate() {
                // SAFETY: as above, row by row.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        src.add(resolved(i) as usize * width),
                        dst.add(p * width),
                        width,
                    )
                };
            }
        }
    }
    drop(guard);
    Ok(Some(Array::from_tensor(result)))
}

/// `x[mask]` for a mask of the array's shape. `None`: take the general way.
pub(super) fn masked(x: &Array, mask: &Array) -> Result<Option<Array>> {
    if mask.dtype() != DType::Bool
        || mask.shape() != x.shape()
        || x.ndim() == 0
        || !is_open(x, mask)
    {
        return Ok(None);
    }
    mask.wait_to_read()?;
    x.wait_to_read()?;
    let (n, size) = (x.len(), x.dtype().size());
    let bytes = mask.tensor().data_ptr();
    // SAFETY: the mask is dense and complete.
    let (starts, count) = unsafe { mask_starts(&Pool, bytes, n) };
    let result = Tensor::empty(&[count], x.dtype(), x.device())?;
    // SAFETY: both arrays are dense, complete and of one length; the result has room for what the mask lets through and is known to nobody else.
    unsafe {
        select(
            &Pool,
            size,
            n,
            bytes,
            &starts,
            x.tensor().data_ptr(),
            result.data_ptr(),
        )
    };
    Ok(Some(Array::from_tensor(result)))
}
