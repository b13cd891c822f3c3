//! Operators as methods of `Array`, for gradient rules, composites and Rust services.

use mxnet_tensor::Scalar;

use crate::Array;
use crate::args::Attrs;
use crate::elementwise::{arithmetic, explog, trig};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::OpDef;

/// Methods that call a two-operand operator.
macro_rules! binary {
    ($($name:ident => $op:expr, $what:literal;)*) => { $(
        #[doc = concat!($what, ", element by element, operands broadcast.\n\n# Errors\nShapes that do not broadcast; dtypes the operator does not take.")]
        pub fn $name(&self, rhs: &Array) -> Result<Array> {
            invoke1(&$op, &[self, rhs], &Attrs::none())
        }
    )* };
}

/// Methods that call a one-operand operator.
macro_rules! unary {
    ($($name:ident => $op:expr, $what:literal;)*) => { $(
        #[doc = concat!($what, ", element by element.\n\n# Errors\nDtypes the operator does not take.")]
        pub fn $name(&self) -> Result<Array> {
            invoke1(&$op, &[self], &Attrs::none())
        }
    )* };
}

impl Array {
    binary! {
        add => arithmetic::ADD, "Sum";
        sub => arithmetic::SUBTRACT, "Difference";
        mul => arithmetic::MULTIPLY, "Product";
        div => arithmetic::DIVIDE, "Quotient";
        floor_div => arithmetic::FLOOR_DIVIDE, "Floor of the quotient";
        maximum => arithmetic::MAXIMUM, "Larger element";
        minimum => arithmetic::MINIMUM, "Smaller element";
        pow => explog::POWER, "Power";
    }

    unary! {
        neg => arithmetic::NEGATIVE, "Minus";
        abs => arithmetic::ABSOLUTE, "Distance from zero";
        sign => arithmetic::SIGN, "Sign";
        square => arithmetic::SQUARE, "Product with itself";
        reciprocal => arithmetic::RECIPROCAL, "One over";
        exp => explog::EXP, "e to the power";
        log => explog::LOG, "Natural logarithm";
        sqrt => explog::SQRT, "Square root";
        sin => trig::SIN, "Sine";
        cos => trig::COS, "Cosine";
        tanh => trig::TANH, "Hyperbolic tangent";
    }

    /// Complex conjugate, element by element; real arrays are their own.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn conj(&self) -> Result<Array> {
        if self.dtype().is_complex() {
            invoke1(&arithmetic::CONJUGATE, &[self], &Attrs::none())
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

    /// This operator with a real number on the right.
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

    /// Times a real number.
    ///
    /// # Errors
    /// Dtypes the operator does not take.
    pub fn scale(&self, factor: f64) -> Result<Array> {
        self.with_scalar(&arithmetic::MULTIPLY, factor)
    }

    /// Plus a real number.
    ///
    /// # Errors
    /// Dtypes the operator does not take.
    pub fn shift(&self, term: f64) -> Result<Array> {
        self.with_scalar(&arithmetic::ADD, term)
    }
}
