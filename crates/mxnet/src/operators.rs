//! `+`, `-`, `*`, `/` for arrays, references to them, results of arrays, and numbers; negation. Each returns a result, and takes results as operands,
//! so that `(&a * &b + &c)?` works. (Rust does not allow a result with a number or with another result: `(&a * &b)? * 2.0`.)

use std::ops::{Add, Div, Mul, Neg, Sub};

use mxnet_core::{Result, bind::Given};

use crate::array::{Array, call1};

/// An operand: an array, or the result of an expression.
trait Operand {
    fn apply(self, f: impl FnOnce(Given) -> Result<Array>) -> Result<Array>;
}

impl Operand for &Array {
    fn apply(self, f: impl FnOnce(Given) -> Result<Array>) -> Result<Array> {
        f(self.arg())
    }
}

impl Operand for Array {
    fn apply(self, f: impl FnOnce(Given) -> Result<Array>) -> Result<Array> {
        f(self.arg())
    }
}

impl Operand for i64 {
    fn apply(self, f: impl FnOnce(Given) -> Result<Array>) -> Result<Array> {
        f(self.into())
    }
}

impl Operand for Result<Array> {
    fn apply(self, f: impl FnOnce(Given) -> Result<Array>) -> Result<Array> {
        f(self?.arg())
    }
}

impl Operand for f64 {
    fn apply(self, f: impl FnOnce(Given) -> Result<Array>) -> Result<Array> {
        f(self.into())
    }
}

fn binary(op: &'static str, lhs: impl Operand, rhs: impl Operand) -> Result<Array> {
    lhs.apply(|lhs| rhs.apply(|rhs| call1(op, &[lhs, rhs], &[])))
}

macro_rules! operator {
    ($trait:ident $method:ident $op:literal: $($lhs:ty, $rhs:ty);*) => { $(
        impl $trait<$rhs> for $lhs {
            type Output = Result<Array>;

            fn $method(self, rhs: $rhs) -> Result<Array> {
                binary($op, self, rhs)
            }
        }
    )* };
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:literal),*) => { $(
        operator!($trait $method $op: &Array, &Array; &Array, Array; Array, &Array; Array, Array;
            &Array, f64; Array, f64; f64, &Array; f64, Array; &Array, i64; Array, i64; i64, &Array; i64, Array;
            &Array, Result<Array>; Array, Result<Array>; Result<Array>, &Array; Result<Array>, Array);
    )* };
}
operators!(Add add "add", Sub sub "subtract", Mul mul "multiply", Div div "divide");

impl Neg for &Array {
    type Output = Result<Array>;

    fn neg(self) -> Result<Array> {
        call1("negative", &[self.arg()], &[])
    }
}

impl Neg for Array {
    type Output = Result<Array>;

    fn neg(self) -> Result<Array> {
        -&self
    }
}
