//! Random arrays. All threads share one stream; the same seed gives the same numbers for any number of threads.
//!
//! ```
//! use mxnet::{DType, random};
//!
//! # fn main() -> mxnet::Result<()> {
//! random::seed(7);
//! let first = random::normal(0.0, 1.0, &[2, 3], DType::F32)?.to_vec::<f32>()?;
//! random::seed(7);
//! assert_eq!(random::normal(0.0, 1.0, &[2, 3], DType::F32)?.to_vec::<f32>()?, first);
//! let dice = random::integers(1, 7, &[100])?;
//! assert!(dice.min()?.item()? >= 1.0 && dice.max()?.item()? <= 6.0);
//! # Ok(())
//! # }
//! ```

use mxnet_core::Result;
use mxnet_tensor::DType;

use crate::array::{Array, call1};
use crate::construct::sizes;

/// Restarts the stream.
pub fn seed(seed: u64) {
    mxnet_core::rng::seed(seed);
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

/// Integers from `low` to `high - 1`, each as likely as the others, int64.
///
/// # Errors
/// [`crate::Error::Value`] if `high` is not greater than `low`.
pub fn integers(low: i64, high: i64, shape: &[usize]) -> Result<Array> {
    let size = sizes(shape);
    let named = [
        ("size", size.as_slice().into()),
        ("dtype", DType::I64.into()),
    ];
    call1("randint", &[low.into(), high.into()], &named)
}

/// Ones with this probability, zeros otherwise.
///
/// # Errors
/// [`crate::Error::Value`] for a probability below 0 or above 1.
pub fn bernoulli(probability: f64, shape: &[usize], dtype: DType) -> Result<Array> {
    let size = sizes(shape);
    let named = [("size", size.as_slice().into()), ("dtype", dtype.into())];
    call1("bernoulli", &[probability.into()], &named)
}

/// The numbers from 0 to `n - 1` in random order, int64.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn permutation(n: usize) -> Result<Array> {
    call1("permutation", &[(n as i64).into()], &[])
}
