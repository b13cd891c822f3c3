//! Constructors of arrays: from numbers, filled, ranges, joined from other arrays.

use mxnet_core::bind::Given;
use mxnet_core::{Array as Core, Result, creation};
use mxnet_tensor::{DType, Device, Scalar};

use crate::array::{Array, call1};

/// Sizes as the attribute of an operator.
pub(crate) fn sizes(shape: &[usize]) -> Vec<i64> {
    let size = |&n: &usize| i64::try_from(n).unwrap_or(i64::MAX);
    shape.iter().map(size).collect()
}

impl Array {
    /// A 0-d array.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn scalar(value: f64, dtype: DType) -> Result<Array> {
        Core::scalar(Scalar::F64(value), dtype).map(Array::from)
    }

    /// Zeros.
    ///
    /// # Errors
    /// [`crate::Error::Memory`]; [`crate::Error::Shape`] if the number of elements overflows.
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Array> {
        creation::zeros(shape, dtype, Device::cpu(0)).map(Array::from)
    }

    /// Ones.
    ///
    /// # Errors
    /// As [`Array::zeros`].
    pub fn ones(shape: &[usize], dtype: DType) -> Result<Array> {
        creation::ones(shape, dtype, Device::cpu(0)).map(Array::from)
    }

    /// The same number everywhere.
    ///
    /// # Errors
    /// As [`Array::zeros`].
    pub fn full(shape: &[usize], value: f64, dtype: DType) -> Result<Array> {
        let shape = sizes(shape);
        let positional = [shape.as_slice().into(), value.into()];
        call1("full", &positional, &[("dtype", dtype.into())])
    }

    /// The numbers `start`, `start + step`, … below `stop` (above it, for a negative step).
    ///
    /// ```
    /// use mxnet::{Array, DType};
    ///
    /// # fn main() -> mxnet::Result<()> {
    /// assert_eq!(Array::arange(0.0, 2.0, 0.5, DType::F32)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 1.5]);
    /// assert_eq!(Array::arange(3.0, 0.0, -1.0, DType::I64)?.to_vec::<i64>()?, [3, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::ZeroDivision`] for a step of 0; [`crate::Error::Value`] for an infinite bound; [`crate::Error::Memory`].
    pub fn arange(start: f64, stop: f64, step: f64, dtype: DType) -> Result<Array> {
        let positional = [start.into(), stop.into(), step.into()];
        call1("arange", &positional, &[("dtype", dtype.into())])
    }

    /// `num` numbers from `start` to `stop`, both included, at equal distances.
    ///
    /// # Errors
    /// As [`Array::zeros`].
    pub fn linspace(start: f64, stop: f64, num: usize, dtype: DType) -> Result<Array> {
        let num = i64::try_from(num).unwrap_or(i64::MAX);
        let positional = [start.into(), stop.into(), num.into()];
        call1("linspace", &positional, &[("dtype", dtype.into())])
    }

    /// The identity matrix with `n` rows.
    ///
    /// # Errors
    /// As [`Array::zeros`].
    pub fn eye(n: usize, dtype: DType) -> Result<Array> {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        call1("eye", &[n.into()], &[("dtype", dtype.into())])
    }

    /// Zeros of the same shape, data type and device.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn zeros_like(&self) -> Result<Array> {
        call1("zeros_like", &[self.arg()], &[])
    }

    /// Ones of the same shape, data type and device.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn ones_like(&self) -> Result<Array> {
        call1("ones_like", &[self.arg()], &[])
    }
}

/// Calls an operator of a list of arrays and an axis.
fn joined(op: &'static str, arrays: &[&Array], axis: i64) -> Result<Array> {
    let list: Vec<Option<&Core>> = arrays.iter().map(|x| Some((*x).as_ref())).collect();
    call1(op, &[Given::Arrays(&list)], &[("axis", axis.into())])
}

/// Joins arrays along an existing axis.
///
/// ```
/// use mxnet::{Array, DType, concatenate, stack};
///
/// # fn main() -> mxnet::Result<()> {
/// let (x, y) = (Array::zeros(&[2, 3], DType::F32)?, Array::ones(&[2, 3], DType::F32)?);
/// assert_eq!(concatenate(&[&x, &y], 1)?.shape(), [2, 6]);
/// assert_eq!(stack(&[&x, &y], 0)?.shape(), [2, 2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for no arrays, [`crate::Error::Shape`] if their other sizes differ, [`crate::Error::Axis`].
pub fn concatenate(arrays: &[&Array], axis: i64) -> Result<Array> {
    joined("concatenate", arrays, axis)
}

/// Joins arrays of one shape along a new axis.
///
/// # Errors
/// As [`concatenate`].
pub fn stack(arrays: &[&Array], axis: i64) -> Result<Array> {
    joined("stack", arrays, axis)
}
