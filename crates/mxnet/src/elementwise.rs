//! Methods that compute each element from the elements at the same position.

use mxnet_core::{Result, bind::Given};

use crate::array::{Array, call1};

/// Methods of one operand that call the operator of the same name.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => { impl Array { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`crate::Error::DType`] if the operator does not take this data type.
        pub fn $name(&self) -> Result<Array> {
            call1(stringify!($name), &[self.arg()], &[])
        }
    )* } };
}
unary!(
    /// The exponential of every element.
    exp,
    /// `exp(x) - 1` of every element, accurate near 0.
    expm1,
    /// The natural logarithm of every element.
    log,
    /// `log(1 + x)` of every element, accurate near 0.
    log1p,
    /// The square root of every element.
    sqrt,
    /// The square of every element.
    square,
    /// The absolute value of every element.
    absolute,
    /// -1, 0 or 1 for every element.
    sign,
    /// The largest integer that is not greater than the element.
    floor,
    /// The smallest integer that is not less than the element.
    ceil,
    /// The nearest integer; halves go to the even one.
    rint,
    /// The sine of every element.
    sin,
    /// The cosine of every element.
    cos,
    /// The hyperbolic tangent of every element.
    tanh,
    /// The error function of every element.
    erf,
    /// `1 / (1 + exp(-x))` of every element.
    sigmoid,
    /// The larger of 0 and every element.
    relu,
    /// Whether every element is not a number, as booleans.
    isnan,
    /// Whether every element is neither infinite nor not a number, as booleans.
    isfinite,
    /// Whether every element is 0, as booleans.
    logical_not,
);

/// Methods of two operands that call the operator of the same name.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => { impl Array { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`crate::Error::Shape`] if the shapes do not broadcast.
        pub fn $name<'a>(&self, rhs: impl Into<Given<'a>>) -> Result<Array> {
            call1(stringify!($name), &[self.arg(), rhs.into()], &[])
        }
    )* } };
}
binary!(
    /// The larger of every element and `rhs`, an array or a number.
    ///
    /// ```
    /// use mxnet::Array;
    ///
    /// # fn main() -> mxnet::Result<()> {
    /// let x = Array::from_slice(&[1.0_f32, -2.0, 3.0], &[3])?;
    /// assert_eq!(x.maximum(0.0)?.to_vec::<f32>()?, [1.0, 0.0, 3.0]);
    /// assert_eq!(x.less(&x.square()?)?.to_vec::<bool>()?, [false, true, true]);
    /// # Ok(())
    /// # }
    /// ```
    maximum,
    /// The smaller of every element and `rhs`.
    minimum,
    /// Every element raised to the power `rhs`.
    power,
    /// Whether every element equals `rhs`, as booleans.
    equal,
    /// Whether every element differs from `rhs`, as booleans.
    not_equal,
    /// Whether every element is less than `rhs`, as booleans.
    less,
    /// Whether every element is at most `rhs`, as booleans.
    less_equal,
    /// Whether every element is greater than `rhs`, as booleans.
    greater,
    /// Whether every element is at least `rhs`, as booleans.
    greater_equal,
    /// Whether every element and `rhs` are nonzero, as booleans.
    logical_and,
    /// Whether every element or `rhs` is nonzero, as booleans.
    logical_or,
);

impl Array {
    /// Elements raised to a power.
    ///
    /// # Errors
    /// A data type that the operator does not take.
    pub fn powf(&self, exponent: f64) -> Result<Array> {
        self.power(exponent)
    }

    /// Every element, but at least `low` and at most `high`: arrays or numbers. Bounds that are floats convert integers to floats.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the shapes do not broadcast.
    pub fn clip<'a>(&self, low: impl Into<Given<'a>>, high: impl Into<Given<'a>>) -> Result<Array> {
        call1("clip", &[self.arg(), low.into(), high.into()], &[])
    }
}

/// The elements of `x` where `condition` is nonzero, and those of `y` elsewhere. Both are arrays or numbers.
///
/// ```
/// use mxnet::{Array, where_};
///
/// # fn main() -> mxnet::Result<()> {
/// let x = Array::from_slice(&[1.0_f32, -2.0, 3.0], &[3])?;
/// assert_eq!(where_(&x.greater(0.0)?, &x, 9.0)?.to_vec::<f32>()?, [1.0, 9.0, 3.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`crate::Error::Shape`] if the shapes do not broadcast.
pub fn where_<'a>(
    condition: &Array,
    x: impl Into<Given<'a>>,
    y: impl Into<Given<'a>>,
) -> Result<Array> {
    call1("where", &[condition.arg(), x.into(), y.into()], &[])
}
