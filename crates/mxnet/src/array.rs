//! The array of the Rust API: wraps a core array, with methods in Rust style.

use std::fmt;

use mxnet_core::autograd::GradReq;
use mxnet_core::bind::{self, Given};
use mxnet_core::{Element, Error, Result, registry};
use mxnet_tensor::{DType, Device};

use crate::construct::sizes;
use crate::index::IntoIndex;
use crate::runtime::register_devices;

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
    register_devices()?;
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

    /// The only element as a real number. Integers beyond 2^53 are rounded; [`Array::to_scalar`] returns them exactly.
    ///
    /// # Errors
    /// [`Error::Value`] if there is not exactly one.
    pub fn item(&self) -> Result<f64> {
        self.0.item().map(|value| value.as_f64())
    }

    /// The only element.
    ///
    /// # Errors
    /// [`Error::Value`] if there is not exactly one; [`Error::DType`] if `T` is not the element type.
    pub fn to_scalar<T: Element>(&self) -> Result<T> {
        let elements = self.0.to_vec::<T>()?;
        let problem = || format!("one element is needed, the array has {}", elements.len());
        match elements[..] {
            [only] => Ok(only),
            _ => Err(Error::value("to_scalar", problem())),
        }
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
        register_devices()?;
        self.0.to_device(device).map(Array)
    }

    /// The matrix product; leading axes are broadcast.
    ///
    /// # Errors
    /// [`Error::Shape`] if the inner axes differ.
    pub fn matmul(&self, rhs: &Array) -> Result<Array> {
        self.0.matmul(&rhs.0).map(Array)
    }

    /// The elements at these indices (integers, of any shape) along an axis, as a copy.
    ///
    /// ```
    /// use mxnet::Array;
    ///
    /// # fn main() -> mxnet::Result<()> {
    /// let x = Array::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let rows = Array::from_slice(&[1_i64, 0, 1], &[3])?;
    /// assert_eq!(x.take(&rows, 0)?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// let mask = x.greater(1.5)?;
    /// assert_eq!(x.masked(&mask)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] for an index out of range, [`Error::Axis`].
    pub fn take(&self, indices: &Array, axis: i64) -> Result<Array> {
        let named = [("axis", axis.into()), ("mode", "raise".into())];
        call1("take", &[self.arg(), indices.arg()], &named)
    }

    /// The elements where `mask`, of the same shape, is nonzero, as a copy with one axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ.
    pub fn masked(&self, mask: &Array) -> Result<Array> {
        if mask.shape() != self.shape() {
            let (found, own) = (
                mxnet_core::Tuple(mask.shape()),
                mxnet_core::Tuple(self.shape()),
            );
            let problem = format!("`mask` has shape {found}, the array has shape {own}");
            return Err(Error::shape("masked", problem));
        }
        call1("extract", &[mask.arg(), self.arg()], &[])
    }

    /// The array repeated to this shape, as a view that cannot be written.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        let shape = sizes(shape);
        call1("broadcast_to", &[self.arg(), shape.as_slice().into()], &[])
    }

    /// A view with a new axis of length 1.
    ///
    /// # Errors
    /// [`Error::Axis`].
    pub fn expand_dims(&self, axis: i64) -> Result<Array> {
        call1("expand_dims", &[self.arg(), [axis].as_slice().into()], &[])
    }

    /// A view without the axes of length 1.
    ///
    /// # Errors
    /// None.
    pub fn squeeze(&self) -> Result<Array> {
        call1("squeeze", &[self.arg()], &[])
    }

    /// For each position of the other axes, the element of the last axis at `index`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn pick(&self, index: &Array) -> Result<Array> {
        call1("pick", &[self.arg(), index.arg()], &[])
    }

    /// A view selected by integers, ranges, [`crate::step`], [`crate::NewAxis`] and [`crate::Ellipsis`]; missing trailing axes are whole. Negative
    /// positions count from the end. Integer and boolean arrays select copies: [`Array::take`], [`Array::masked`].
    ///
    /// ```
    /// use mxnet::{Array, Ellipsis, NewAxis, step};
    ///
    /// # fn main() -> mxnet::Result<()> {
    /// let x = Array::from_slice(&[1_i64, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.at(1)?.to_vec::<i64>()?, [4, 5, 6]);
    /// assert_eq!(x.at((.., 1..))?.to_vec::<i64>()?, [2, 3, 5, 6]);
    /// assert_eq!(x.at((-1, ..=1))?.to_vec::<i64>()?, [4, 5]);
    /// assert_eq!(x.at((Ellipsis, step(.., -2)))?.to_vec::<i64>()?, [3, 1, 6, 4]);
    /// assert_eq!(x.at((NewAxis, 0))?.shape(), [1, 3]);
    /// let rows = x.shape()[0];
    /// assert_eq!(x.at(rows - 1)?.to_vec::<i64>()?, [4, 5, 6]);
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
    /// ```
    /// use mxnet::{Array, DType};
    ///
    /// # fn main() -> mxnet::Result<()> {
    /// let x = Array::zeros(&[2, 3], DType::F32)?;
    /// x.at((.., 1))?.assign(&Array::full(&[2], 7.0, DType::F32)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 7.0, 0.0, 0.0, 7.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if they do not broadcast; [`Error::Value`] if the array is read-only.
    pub fn assign(&self, values: &Array) -> Result<()> {
        call("positive", &[values.arg()], &[("out", self.arg())]).map(drop)
    }

    /// Makes it a variable with a gradient buffer of zeros, to which each backward pass writes.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn attach_grad(&mut self) -> Result<()> {
        self.attach_grad_with(GradReq::Write)
    }

    /// Makes it a variable; says whether a backward pass writes its gradient or adds to it.
    ///
    /// ```
    /// use mxnet::{Array, GradReq, record};
    ///
    /// # fn main() -> mxnet::Result<()> {
    /// let mut x = Array::from_slice(&[3.0_f32], &[1])?;
    /// x.attach_grad_with(GradReq::Add)?;
    /// for _ in 0..2 {
    ///     record(|| x.square())?.backward()?;
    /// }
    /// assert_eq!(x.grad()?.to_vec::<f32>()?, [12.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn attach_grad_with(&mut self, req: GradReq) -> Result<()> {
        mxnet_core::autograd::attach_grad(&mut self.0, req)
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

    /// As [`Array::backward`], from this cotangent instead of ones.
    ///
    /// # Errors
    /// [`Error::Autograd`] if it was not recorded; [`Error::Shape`] if the cotangent has another shape.
    pub fn backward_from(&self, cotangent: &Array) -> Result<()> {
        let retain = mxnet_core::autograd::Retain::No;
        mxnet_core::autograd::backward(&[&self.0], &[Some(&cotangent.0)], retain, true)
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
