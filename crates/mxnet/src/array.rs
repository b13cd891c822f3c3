//! The array of the Rust API: wraps a core array, with methods in Rust style.

use std::fmt;

use mxnet_core::bind::{self, Given};
use mxnet_core::{Element, Error, Result, creation, registry};
use mxnet_tensor::{DType, Device, Scalar};

use crate::index::IntoIndex;

/// An n-dimensional array. Clones share the elements, and so do views, which indexing and reshaping return.
#[derive(Clone)]
pub struct Array(mxnet_core::Array);

/// Calls the operator `name` of the registry with positional and named arguments, which are bound as in all other languages.
///
/// ```
/// use mxnet::{Array, call};
///
/// # fn main() -> mxnet::Result<()> {
/// let x = Array::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let y = call("sum", &[x.arg()], &[("axis", 1_i64.into()), ("keepdims", true.into())])?;
/// assert_eq!(y[0].shape(), [2, 1]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// There is no operator of this name; arguments do not fit; errors of the operator.
pub fn call(name: &str, positional: &[Given], named: &[(&str, Given)]) -> Result<Vec<Array>> {
    let op = registry::find(name).ok_or_else(|| {
        let problem = format!("there is no operator `{name}`");
        Error::value("call", problem)
    })?;
    let outputs = bind::call(op, positional, named)?;
    Ok(outputs.into_iter().map(Array).collect())
}

/// Calls an operator with one output.
pub(crate) fn call1(
    name: &'static str,
    positional: &[Given],
    named: &[(&str, Given)],
) -> Result<Array> {
    let mut outputs = call(name, positional, named)?;
    outputs.truncate(1);
    outputs
        .pop()
        .ok_or_else(|| Error::internal(name, "the operator returned no output"))
}

impl From<mxnet_core::Array> for Array {
    fn from(array: mxnet_core::Array) -> Array {
        Array(array)
    }
}

impl From<Array> for mxnet_core::Array {
    fn from(array: Array) -> mxnet_core::Array {
        array.0
    }
}

impl AsRef<mxnet_core::Array> for Array {
    fn as_ref(&self) -> &mxnet_core::Array {
        &self.0
    }
}

impl<'a> From<&'a Array> for Given<'a> {
    fn from(x: &'a Array) -> Given<'a> {
        Given::Array(&x.0)
    }
}

/// Methods that call the elementwise operator of the same name.
macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => { impl Array { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// A data type that the operator does not take.
        pub fn $name(&self) -> Result<Array> {
            call1(stringify!($name), &[self.arg()], &[])
        }
    )* } };
}
elementwise!(
    /// The exponential of every element.
    exp,
    /// The natural logarithm of every element.
    log,
    /// The square root of every element.
    sqrt,
    /// The square of every element.
    square,
    /// The absolute value of every element.
    absolute,
    /// The sine of every element.
    sin,
    /// The cosine of every element.
    cos,
    /// The hyperbolic tangent of every element.
    tanh,
    /// `1 / (1 + exp(-x))` of every element.
    sigmoid,
    /// The larger of 0 and every element.
    relu,
);

/// Reductions over axes.
macro_rules! reductions {
    ($($(#[$doc:meta])* $whole:ident $over:ident $op:literal),* $(,)?) => { impl Array { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// A data type that the operator does not take; an empty array, for reductions without an identity.
        pub fn $whole(&self) -> Result<Array> {
            call1($op, &[self.arg()], &[])
        }

        $(#[$doc])*
        /// Over `axes`, which are removed.
        ///
        /// # Errors
        /// An axis out of range or repeated; as the reduction of the whole array.
        pub fn $over(&self, axes: &[i64]) -> Result<Array> {
            call1($op, &[self.arg()], &[("axis", axes.into())])
        }
    )* } };
}
reductions!(
    /// The sum of the elements.
    sum sum_over "sum",
    /// The mean of the elements.
    mean mean_over "mean",
    /// The largest element.
    max max_over "max",
    /// The smallest element.
    min min_over "min",
);

impl Array {
    /// The array as an argument of [`call`].
    pub fn arg(&self) -> Given<'_> {
        Given::Array(&self.0)
    }

    /// An array of these elements in C order, on the CPU.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of elements is not that of `shape`.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> Result<Array> {
        mxnet_core::Array::from_slice(elements, shape).map(Array)
    }

    /// A 0-d array.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn scalar(value: f64, dtype: DType) -> Result<Array> {
        mxnet_core::Array::scalar(Scalar::F64(value), dtype).map(Array)
    }

    /// Zeros.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Shape`] if the number of elements overflows.
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Array> {
        creation::zeros(shape, dtype, Device::cpu(0)).map(Array)
    }

    /// Ones.
    ///
    /// # Errors
    /// As [`Array::zeros`].
    pub fn ones(shape: &[usize], dtype: DType) -> Result<Array> {
        creation::ones(shape, dtype, Device::cpu(0)).map(Array)
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.0.ndim()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The data type.
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.0.device()
    }

    /// The elements in C order. Waits until they are computed.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` is not the element type; the failure of the operation that should have computed them.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.0.to_vec()
    }

    /// The only element as a real number.
    ///
    /// # Errors
    /// [`Error::Value`] if there is not exactly one.
    pub fn item(&self) -> Result<f64> {
        self.0.item().map(|value| value.as_f64())
    }

    /// Waits until the elements are computed.
    ///
    /// # Errors
    /// The failure of the operation that should have computed them.
    pub fn wait(&self) -> Result<()> {
        self.0.wait_to_read()
    }

    /// The elements in another shape: a view if possible, otherwise a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of elements differs.
    pub fn reshape(&self, shape: &[usize]) -> Result<Array> {
        self.0.reshape(shape).map(Array)
    }

    /// A view with the axes in reverse order.
    ///
    /// # Errors
    /// None.
    pub fn t(&self) -> Result<Array> {
        self.0.transpose(None).map(Array)
    }

    /// A view with the axes in this order.
    ///
    /// # Errors
    /// [`Error::Axis`].
    pub fn transpose(&self, axes: &[i64]) -> Result<Array> {
        self.0.transpose(Some(axes)).map(Array)
    }

    /// The elements converted to another data type.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn astype(&self, dtype: DType) -> Result<Array> {
        self.0.astype(dtype).map(Array)
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn copy(&self) -> Result<Array> {
        self.0.copy().map(Array)
    }

    /// The array on this device.
    ///
    /// # Errors
    /// [`Error::Device`] if the device does not exist.
    pub fn to_device(&self, device: Device) -> Result<Array> {
        #[cfg(feature = "cuda")]
        if device.kind() == mxnet_tensor::DeviceKind::Gpu {
            mxnet_cuda::register()?;
        }
        self.0.to_device(device).map(Array)
    }

    /// The matrix product; leading axes are broadcast.
    ///
    /// # Errors
    /// [`Error::Shape`] if the inner axes differ.
    pub fn matmul(&self, rhs: &Array) -> Result<Array> {
        self.0.matmul(&rhs.0).map(Array)
    }

    /// Elements raised to a power.
    ///
    /// # Errors
    /// A data type that the operator does not take.
    pub fn powf(&self, exponent: f64) -> Result<Array> {
        call1("power", &[self.arg(), exponent.into()], &[])
    }

    /// Indices of the largest elements along an axis.
    ///
    /// # Errors
    /// [`Error::Axis`].
    pub fn argmax(&self, axis: i64) -> Result<Array> {
        call1("argmax", &[self.arg()], &[("axis", axis.into())])
    }

    /// `exp(x) / sum(exp(x))` along an axis.
    ///
    /// # Errors
    /// [`Error::Axis`].
    pub fn softmax(&self, axis: i64) -> Result<Array> {
        call1("softmax", &[self.arg()], &[("axis", axis.into())])
    }

    /// The logarithm of [`Array::softmax`].
    ///
    /// # Errors
    /// [`Error::Axis`].
    pub fn log_softmax(&self, axis: i64) -> Result<Array> {
        call1("log_softmax", &[self.arg()], &[("axis", axis.into())])
    }

    /// For each position of the other axes, the element of the last axis at `index`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn pick(&self, index: &Array) -> Result<Array> {
        call1("pick", &[self.arg(), index.arg()], &[])
    }

    /// Elementwise comparison for equality.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn equal(&self, rhs: &Array) -> Result<Array> {
        call1("equal", &[self.arg(), rhs.arg()], &[])
    }

    /// A view selected by integers, ranges and [`crate::NewAxis`]; missing trailing axes are whole.
    ///
    /// ```
    /// use mxnet::{Array, NewAxis};
    ///
    /// # fn main() -> mxnet::Result<()> {
    /// let x = Array::from_slice(&[1_i64, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.at(1)?.to_vec::<i64>()?, [4, 5, 6]);
    /// assert_eq!(x.at((.., 1..))?.to_vec::<i64>()?, [2, 3, 5, 6]);
    /// assert_eq!(x.at((-1, ..2))?.to_vec::<i64>()?, [4, 5]);
    /// assert_eq!(x.at((NewAxis, 0))?.shape(), [1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if an index is out of range.
    pub fn at(&self, index: impl IntoIndex) -> Result<Array> {
        self.0.index(index.into_index().into()).map(Array)
    }

    /// Writes `values`, broadcast, to the elements of the array. If it is a view, the viewed array changes.
    ///
    /// # Errors
    /// [`Error::Shape`] if they do not broadcast; [`Error::Value`] if the array is read-only.
    pub fn assign(&self, values: &Array) -> Result<()> {
        call("positive", &[values.arg()], &[("out", self.arg())]).map(drop)
    }

    /// Makes it a variable with a gradient buffer of zeros.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn attach_grad(&mut self) -> Result<()> {
        mxnet_core::autograd::attach_grad(&mut self.0, mxnet_core::autograd::GradReq::Write)
    }

    /// The gradient of a variable.
    ///
    /// # Errors
    /// [`Error::Autograd`] if it has none.
    pub fn grad(&self) -> Result<Array> {
        let leaf = mxnet_core::autograd::gradient_of(&self.0);
        let leaf = leaf.ok_or_else(|| {
            let error = Error::autograd("grad", "the array has no gradient");
            error.with_hint("call attach_grad() before recording")
        })?;
        Ok(Array(leaf.gradient()))
    }

    /// Sends gradients to every variable that the array was computed from.
    ///
    /// # Errors
    /// [`Error::Autograd`] if it was not recorded.
    pub fn backward(&self) -> Result<()> {
        let retain = mxnet_core::autograd::Retain::No;
        mxnet_core::autograd::backward(&[&self.0], &[None], retain, true)
    }

    /// The same elements, outside any recorded graph.
    #[must_use]
    pub fn detach(&self) -> Array {
        Array(self.0.detach())
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
