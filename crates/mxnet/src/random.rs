//! Random arrays. All threads share one stream; the same seed gives the same numbers for any number of threads.

use mxnet_core::Result;
use mxnet_tensor::DType;

use crate::array::{Array, call1};

/// Restarts the stream.
pub fn seed(seed: u64) {
    mxnet_core::rng::seed(seed);
}

fn sizes(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&n| n as i64).collect()
}

/// Uniform numbers in `[low, high)`.
///
/// # Errors
/// [`crate::Error::DType`] if `dtype` is not a float.
pub fn uniform(low: f64, high: f64, shape: &[usize], dtype: DType) -> Result<Array> {
    let size = sizes(shape);
    let named = [("size", size.as_slice().into()), ("dtype", dtype.into())];
    call1("uniform", &[low.into(), high.into()], &named)
}

/// Normal numbers of this mean and standard deviation.
///
/// # Errors
/// [`crate::Error::DType`] if `dtype` is not a float, [`crate::Error::Value`] for a negative deviation.
pub fn normal(mean: f64, deviation: f64, shape: &[usize], dtype: DType) -> Result<Array> {
    let size = sizes(shape);
    let named = [("size", size.as_slice().into()), ("dtype", dtype.into())];
    call1("normal", &[mean.into(), deviation.into()], &named)
}

/// The numbers from 0 to `n - 1` in random order, int64.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn permutation(n: usize) -> Result<Array> {
    call1("permutation", &[(n as i64).into()], &[])
}
