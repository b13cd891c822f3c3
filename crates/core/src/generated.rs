//! Arrays whose elements are functions of their position: `arange`, `linspace`, diagonals, slices of one value.
#![allow(unsafe_code)]

use mxnet_kernels::Elem;
use mxnet_tensor::{Scalar, Tensor};

use crate::error::Result;
use crate::launch::elem;

/// Types of values that [`generate`] takes.
pub trait Generated: Copy + Send + Sync {
    /// Their dtype in kernels.
    const ELEM: Elem;
}

impl Generated for i64 {
    const ELEM: Elem = Elem::I64;
}

impl Generated for f64 {
    const ELEM: Elem = Elem::F64;
}

/// Fills a dense tensor with a function of the position, converted to its dtype.
pub fn generate<T: Generated>(
    tensor: &Tensor,
    value: impl Fn(usize) -> T + Sync,
    threads: &dyn mxnet_kernels::Threads,
) -> Result<()> {
    const TILE: usize = 512;
    const TASK: usize = 32 * TILE;
    let (n, size) = (tensor.len(), tensor.dtype().size());
    let start = tensor.data_ptr() as usize;
    let convert = (T::ELEM != elem(tensor.dtype()))
        .then(|| mxnet_kernels::cast::Cast::new(T::ELEM, elem(tensor.dtype())));
    threads.run(n.div_ceil(TASK), &|task| {
        let mut tile = [std::mem::MaybeUninit::<T>::uninit(); TILE];
        for first in (task * TASK..n.min((task + 1) * TASK)).step_by(TILE) {
            let len = TILE.min(n - first);
            let out = (start + first * size) as *mut u8;
            let values = if convert.is_some() {
                tile.as_mut_ptr().cast::<T>()
            } else {
                out.cast()
            };
            // SAFETY: 1. the tensor is dense, so elements `first..first + len` lie at these bytes; tiles do not overlap.
            // 2. the tile has space for `len` elements, all of which are written before they are converted.
            unsafe {
                for i in 0..len {
                    *values.add(i) = value(first + i);
                }
                if let Some(convert) = &convert {
                    convert.row(values.cast(), out, len);
                }
            }
        }
    });
    Ok(())
}

/// Fills diagonal `k` of a dense matrix: 0 is the main diagonal, positive ones are above it.
pub fn fill_diagonal(tensor: &Tensor, value: Scalar, k: i64) {
    let (rows, columns) = (tensor.shape()[0], tensor.shape()[1]);
    let (row, column) = (k.min(0).unsigned_abs() as usize, k.max(0) as usize);
    let len = rows.saturating_sub(row).min(columns.saturating_sub(column));
    if len == 0 {
        return;
    }
    let size = tensor.dtype().size();
    let mut pattern = [0_u64; 2];
    let pattern = pattern.as_mut_ptr().cast::<u8>();
    // SAFETY: the pattern has 16 bytes, enough for every dtype; the diagonal's `len` elements lie inside the matrix, a row and a column apart.
    unsafe {
        value.write(tensor.dtype(), pattern);
        mxnet_kernels::copy::fill_nd(
            &mxnet_kernels::Serial,
            size,
            &[len],
            tensor.data_ptr().add((row * columns + column) * size),
            &[((columns + 1) * size) as isize],
            pattern,
        );
    }
}

/// Fills a range of every row (last axis) of a dense tensor.
pub fn fill_stretches(
    tensor: &Tensor,
    value: Scalar,
    stretch: impl Fn(usize) -> std::ops::Range<usize> + Sync,
    threads: &dyn mxnet_kernels::Threads,
) {
    const TASK: usize = 64 * 1024;
    let (size, columns) = (
        tensor.dtype().size(),
        tensor.shape().last().copied().unwrap_or(1),
    );
    let rows = tensor.len().checked_div(columns).unwrap_or(0);
    let start = tensor.data_ptr() as usize;
    let mut pattern = [0_u64; 2];
    // SAFETY: the pattern has 16 bytes, enough for every dtype.
    unsafe { value.write(tensor.dtype(), pattern.as_mut_ptr().cast()) };
    let height = (TASK / columns.max(1)).max(1);
    threads.run(rows.div_ceil(height), &|task| {
        for row in task * height..rows.min((task + 1) * height) {
            let stretch = stretch(row);
            let (first, end) = (stretch.start.min(columns), stretch.end.min(columns));
            let at = (start + (row * columns + first) * size) as *mut u8;
            // SAFETY: the range lies in its row, rows are disjoint; the pattern holds an element.
            unsafe {
                mxnet_kernels::copy::fill_nd(
                    &mxnet_kernels::Serial,
                    size,
                    &[end.saturating_sub(first)],
                    at,
                    &[size as isize],
                    pattern.as_ptr().cast(),
                );
            }
        }
    });
}
