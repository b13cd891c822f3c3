//! Methods that combine the elements along axes.

use mxnet_core::Result;

use crate::array::{Array, call1};

/// Reductions of all elements, and over axes.
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
        /// Over `axes`, which are removed; [`Array::expand_dims`] puts one back.
        ///
        /// # Errors
        /// [`crate::Error::Axis`] for an axis out of range or repeated; as the reduction of the whole array.
        pub fn $over(&self, axes: &[i64]) -> Result<Array> {
            call1($op, &[self.arg()], &[("axis", axes.into())])
        }
    )* } };
}
reductions!(
    /// The sum of the elements.
    sum sum_over "sum",
    /// The product of the elements.
    prod prod_over "prod",
    /// The mean of the elements.
    mean mean_over "mean",
    /// The variance of the elements: the mean squared distance from the mean.
    var var_over "var",
    /// The standard deviation: the square root of the variance.
    std std_over "std",
    /// The largest element.
    max max_over "max",
    /// The smallest element.
    min min_over "min",
    /// Whether an element is nonzero, as a boolean.
    any any_over "any",
    /// Whether all elements are nonzero, as a boolean.
    all all_over "all",
);

/// Methods along one axis that call the operator of the same name.
macro_rules! along {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => { impl Array { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`crate::Error::Axis`] for an axis out of range.
        pub fn $name(&self, axis: i64) -> Result<Array> {
            call1(stringify!($name), &[self.arg()], &[("axis", axis.into())])
        }
    )* } };
}
along!(
    /// Indices of the largest elements along an axis, int64.
    argmax,
    /// Indices of the smallest elements along an axis, int64.
    argmin,
    /// The elements in ascending order along an axis.
    sort,
    /// The indices that sort the elements along an axis, int64.
    argsort,
    /// Sums of the elements up to each place along an axis.
    cumsum,
    /// `exp(x) / sum(exp(x))` along an axis.
    softmax,
    /// The logarithm of [`Array::softmax`].
    log_softmax,
);
