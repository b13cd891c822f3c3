//! Operators as methods of `Array`, for gradient rules, composites and Rust services.

use std::sync::Arc;

use mxnet_tensor::{DType, Device, IndexItem, Scalar};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Value};
use crate::builtins::builtins;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::memory_order::has_order;
use crate::mode::Flags;
use crate::opdef::OpDef;
use crate::types::check_element;

/// Methods that call an operator of two arrays.
macro_rules! binary {
    ($($name:ident => $op:expr, $what:literal;)*) => { $(
        #[doc = concat!($what, ", element by element, operands broadcast.\n\n# Errors\nShapes that do not broadcast; dtypes the operator does not take.")]
        pub fn $name(&self, rhs: &Array) -> Result<Array> {
            invoke1($op, &[self, rhs], &Attrs::none())
        }
    )* };
}

/// Methods that call an operator of one array.
macro_rules! unary {
    ($($name:ident => $op:expr, $what:literal;)*) => { $(
        #[doc = concat!($what, ", element by element.\n\n# Errors\nDtypes the operator does not take.")]
        pub fn $name(&self) -> Result<Array> {
            invoke1($op, &[self], &Attrs::none())
        }
    )* };
}

impl Array {
    binary! {
        add => builtins().add, "Sum";
        sub => builtins().subtract, "Difference";
        mul => builtins().multiply, "Product";
        div => builtins().divide, "Quotient";
        floor_div => builtins().floor_divide, "Floor of the quotient";
        maximum => builtins().maximum, "Larger element";
        minimum => builtins().minimum, "Smaller element";
        pow => builtins().power, "Power";
    }

    unary! {
        neg => builtins().negative, "Minus";
        abs => builtins().absolute, "Absolute value";
        sign => builtins().sign, "Sign";
        square => builtins().square, "Square";
        reciprocal => builtins().reciprocal, "One over";
        exp => builtins().exp, "Exponential function";
        log => builtins().log, "Natural logarithm";
        sqrt => builtins().sqrt, "Square root";
        sin => builtins().sin, "Sine";
        cos => builtins().cos, "Cosine";
        tanh => builtins().tanh, "Hyperbolic tangent";
    }

    /// Complex conjugate, element by element; a real array is returned as it is.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn conj(&self) -> Result<Array> {
        if self.dtype().is_complex() {
            invoke1(builtins().conjugate, &[self], &Attrs::none())
        } else {
            Ok(self.clone())
        }
    }

    /// Any operator of two arrays and no attributes.
    ///
    /// # Errors
    /// Whatever the operator rejects.
    pub fn binary(&self, op: &'static OpDef, rhs: &Array) -> Result<Array> {
        invoke1(op, &[self, rhs], &Attrs::none())
    }

    /// Any operator of one array and no attributes.
    ///
    /// # Errors
    /// Whatever the operator rejects.
    pub fn unary(&self, op: &'static OpDef) -> Result<Array> {
        invoke1(op, &[self], &Attrs::none())
    }

    /// Calls `op` with a real number as the second operand.
    ///
    /// # Errors
    /// Dtypes the operator does not take.
    pub fn with_scalar(&self, op: &'static OpDef, value: f64) -> Result<Array> {
        invoke1(
            op,
            &[self, &Array::weak_scalar(Scalar::F64(value))?],
            &Attrs::none(),
        )
    }

    /// The array times a real number.
    ///
    /// # Errors
    /// Dtypes the operator does not take.
    pub fn scale(&self, factor: f64) -> Result<Array> {
        self.with_scalar(builtins().multiply, factor)
    }

    /// The array plus a real number.
    ///
    /// # Errors
    /// Dtypes the operator does not take.
    pub fn shift(&self, term: f64) -> Result<Array> {
        self.with_scalar(builtins().add, term)
    }

    /// The elements with another shape: a view where possible.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of elements differs.
    pub fn reshape(&self, shape: &[usize]) -> Result<Array> {
        let sizes: SmallVec<[isize; 4]> = shape.iter().map(|&n| n as isize).collect();
        if Flags::current().allows_copies()
            && let Ok(Some(layout)) = self.layout().reshape(&sizes)
        {
            return Ok(self.seen_as(layout));
        }
        invoke1(
            builtins().reshape,
            &[self],
            &[Value::from(shape), Value::Word("C")].into_iter().collect(),
        )
    }

    /// View with the axes in this order; reversed for `None`.
    ///
    /// # Errors
    /// [`crate::Error::Axis`] if `axes` is not a permutation.
    pub fn transpose(&self, axes: Option<&[i64]>) -> Result<Array> {
        let signed: Option<SmallVec<[isize; 4]>> =
            axes.map(|axes| axes.iter().map(|&a| a as isize).collect());
        if Flags::current().allows_copies()
            && let Ok(layout) = self.layout().transpose(signed.as_deref())
        {
            return Ok(self.seen_as(layout));
        }
        invoke1(
            builtins().transpose,
            &[self],
            &[axes.map_or(Value::None, Value::from)]
                .into_iter()
                .collect(),
        )
    }

    /// View broadcast to this shape.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if it does not broadcast.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        if Flags::current().allows_copies()
            && let Ok(layout) = self.layout().broadcast_to(shape)
        {
            let repeated = self.tensor().with_layout(layout).locked(true);
            return Ok(Array::from_tensor(repeated));
        }
        invoke1(
            builtins().broadcast_to,
            &[self],
            &[Value::from(shape)].into_iter().collect(),
        )
    }

    /// A copy. `order` is its memory order: "C", "F", "A" (Fortran order if the array has it) or "K" (that of the array).
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn copy_in(&self, order: &str) -> Result<Array> {
        match word(order) {
            "C" => self.copy(),
            order => invoke1(
                builtins().copied,
                &[self],
                &[Value::Word(order)].into_iter().collect(),
            ),
        }
    }

    /// The array converted to `dtype`, in the memory order [`Array::copy_in`] describes; the array itself if it has the dtype.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn astype_in(&self, order: &str, dtype: DType) -> Result<Array> {
        if self.dtype() == dtype && !self.is_weak() {
            return Ok(self.clone());
        }
        let attrs = [
            Value::DType(dtype),
            Value::Word(word(order)),
            Value::Word("unsafe"),
            Value::Bool(true),
        ];
        invoke1(builtins().astype, &[self], &attrs.into_iter().collect())
    }

    /// Whether the array has this memory order; names as in [`Array::copy_in`].
    pub fn has_order(&self, order: &str) -> bool {
        has_order(self.layout(), order)
    }

    /// The array in this memory order: itself if it has the order, otherwise a copy.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn in_order(&self, order: &str) -> Result<Array> {
        if self.has_order(order) {
            Ok(self.clone())
        } else {
            self.copy_in(order)
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn copy(&self) -> Result<Array> {
        invoke1(builtins().copy, &[self], &Attrs::none())
    }

    /// The array in C order: itself if it is contiguous, otherwise a copy.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn contiguous(&self) -> Result<Array> {
        if self.layout().is_contiguous() {
            Ok(self.clone())
        } else {
            self.copy()
        }
    }

    /// The array on `device`: itself if it is there, otherwise a copy.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if there is no such device.
    pub fn to_device(&self, device: Device) -> Result<Array> {
        if self.device() == device {
            Ok(self.clone())
        } else {
            invoke1(
                builtins().to_device,
                &[self],
                &[Value::Device(device)].into_iter().collect(),
            )
        }
    }

    /// The array converted to `dtype`: itself if it has the dtype.
    ///
    /// # Errors
    /// [`crate::Error::Overflow`] if it is a Python integer beyond 64 bits and `dtype` does not hold it; [`crate::Error::Memory`].
    pub fn astype(&self, dtype: DType) -> Result<Array> {
        if self.dtype() == dtype && !self.is_weak() {
            return Ok(self.clone());
        }
        if let Some(value @ Scalar::Wide(_)) = self.number() {
            check_element("astype", &value, dtype)?;
        }
        invoke1(
            builtins().cast,
            &[self],
            &[Value::DType(dtype)].into_iter().collect(),
        )
    }

    /// Matrix product; leading axes broadcast.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the inner sizes differ.
    pub fn matmul(&self, rhs: &Array) -> Result<Array> {
        invoke1(builtins().matmul, &[self, rhs], &Attrs::none())
    }

    /// View with the last two axes swapped.
    ///
    /// # Errors
    /// [`crate::Error::Axis`] if there are fewer than two axes.
    pub fn swap_last(&self) -> Result<Array> {
        let n = self.ndim() as i64;
        if n >= 2 && Flags::current().allows_fast_path() {
            return Ok(self.seen_as(self.layout().swap_axes(-2, -1)?));
        }
        let axes: SmallVec<[i64; 4]> = (0..n - 2).chain([n - 1, n - 2]).collect();
        self.transpose(Some(&axes))
    }

    /// View of the elements that `key`, which has no arrays, selects.
    ///
    /// # Errors
    /// [`crate::Error::Index`] if the key does not fit the axes.
    pub fn index(&self, key: Arc<[IndexItem]>) -> Result<Array> {
        if Flags::current().allows_copies()
            && let Ok(found) = self.layout().index(&key)
        {
            return Ok(self.seen_as(found.view));
        }
        invoke1(
            builtins().index,
            &[self],
            &[Value::Index(key)].into_iter().collect(),
        )
    }

    /// Calls a reduction whose attributes are axes, dtype and `keepdims`.
    fn reduced(&self, op: &'static OpDef, axes: Option<&[i64]>, keepdims: bool) -> Result<Array> {
        let attrs: Attrs = [
            axes.map_or(Value::None, Value::from),
            Value::None,
            Value::Bool(keepdims),
        ]
        .into_iter()
        .collect();
        invoke1(op, &[self], &attrs)
    }

    /// Sum over these axes; `None` means all of them.
    ///
    /// # Errors
    /// [`crate::Error::Axis`] if an axis does not exist or repeats.
    pub fn sum(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Array> {
        self.reduced(builtins().sum, axes, keepdims)
    }

    /// Mean over these axes; `None` means all of them.
    ///
    /// # Errors
    /// [`crate::Error::Axis`] if an axis does not exist or repeats.
    pub fn mean(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Array> {
        self.reduced(builtins().mean, axes, keepdims)
    }

    /// View of the real parts.
    ///
    /// # Errors
    /// None.
    pub fn real_part(&self) -> Result<Array> {
        invoke1(builtins().real, &[self], &Attrs::none())
    }

    /// Power with a real exponent, element by element.
    ///
    /// # Errors
    /// Dtypes the operator does not take.
    pub fn power_of(&self, exponent: f64) -> Result<Array> {
        if exponent == 1.0 {
            return Ok(self.clone());
        }
        self.with_scalar(builtins().power, exponent)
    }
}

/// Sums `x` over the axes along which an array of `shape` was broadcast to the shape of `x`. The result has the shape `shape`.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn sum_to(x: &Array, shape: &[usize]) -> Result<Array> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    let lead = x.ndim() - shape.len();
    let axes: SmallVec<[i64; 4]> = (0..x.ndim())
        .filter(|&i| i < lead || shape[i - lead] == 1 && x.shape()[i] != 1)
        .map(|i| i as i64)
        .collect();
    x.sum(Some(&axes), true)?.reshape(shape)
}

/// The name of an order as a `'static` word of the operators.
fn word(order: &str) -> &'static str {
    match order {
        "F" => "F",
        "A" => "A",
        "K" => "K",
        _ => "C",
    }
}
