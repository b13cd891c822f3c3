//! Properties that operators declare in addition to their kernels: floating-point errors, folds, probes for the standard tests.

use std::ops::Range;

use mxnet_tensor::Scalar;

use crate::opdef::*;

/// Which floating-point errors an operator can have, besides a NaN or an infinity that no operand had.
#[derive(Clone, Copy, Debug)]
pub struct FpErrors {
    /// The operator's name in warnings; if empty, its own.
    pub name: &'static str,
    /// Where an infinity means division by zero instead of overflow.
    pub pole: Pole,
    /// Whether a result that is too small for its dtype is an underflow.
    pub shrinks: bool,
    /// Whether a zero operand with a tiny result can be an underflow, as in `exp`.
    pub counts_zeros: bool,
    /// Whether integers are divided by the second operand, which may be zero.
    pub divides: bool,
    /// Whether the smallest integer divided by -1 overflows.
    pub quotient: bool,
    /// Whether floats are converted to integers, which may not hold them.
    pub converts: bool,
    /// Whether no errors are reported.
    pub silent: bool,
}

impl FpErrors {
    /// NaN is an invalid value and an infinity an overflow.
    pub const DEFAULT: FpErrors = FpErrors {
        name: "",
        pole: Pole::None,
        shrinks: false,
        counts_zeros: false,
        divides: false,
        quotient: false,
        converts: false,
        silent: false,
    };
    /// As [`FpErrors::DEFAULT`], with this name in warnings.
    pub const fn named(name: &'static str) -> FpErrors {
        FpErrors {
            name,
            ..FpErrors::DEFAULT
        }
    }
}

/// Where an infinity is a division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pole {
    /// Nowhere.
    None,
    /// Where this operand is zero.
    ZeroOf(usize),
    /// Every infinity is one.
    Everywhere,
}

/// How an operator of two arrays is folded over an axis (`ufunc.reduce`, `ufunc.accumulate`).
#[derive(Clone, Copy)]
pub struct Fold {
    /// Identity element, which is also the result for no elements.
    pub identity: Option<Scalar>,
    /// Whether elements may be folded in any order, and therefore over several axes at once.
    pub reorders: bool,
    /// The operator with reduction kernels, if there is one: `sum` for `add`.
    pub reduce: Option<&'static OpDef>,
    /// The operator with kernels for `accumulate`, if there is one: `cumsum` for `add`.
    pub accumulate: Option<&'static OpDef>,
}

impl Fold {
    /// From the first element to the last; no elements are an error.
    pub const ORDERED: Fold = Fold {
        identity: None,
        reorders: false,
        reduce: None,
        accumulate: None,
    };
    /// In any order; no elements are an error.
    pub const UNORDERED: Fold = Fold {
        reorders: true,
        ..Fold::ORDERED
    };

    /// In any order, with this identity element.
    pub const fn from(identity: Scalar) -> Fold {
        Fold {
            identity: Some(identity),
            ..Fold::UNORDERED
        }
    }

    /// The same, reduced by an operator with its own kernels.
    pub const fn by(self, reduce: &'static OpDef) -> Fold {
        Fold {
            reduce: Some(reduce),
            ..self
        }
    }

    /// The same, accumulated by an operator with its own kernels.
    pub const fn steps_by(self, accumulate: &'static OpDef) -> Fold {
        Fold {
            accumulate: Some(accumulate),
            ..self
        }
    }
}

/// Inputs and reference for the standard tests of an operator.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Range from which real inputs are drawn.
    pub range: Range<f64>,
    /// Python expression of the reference, e.g. `scipy.special.erf`; if empty, the NumPy function of the same name.
    pub oracle: &'static str,
    /// Units in the last place allowed in float32 for values of moderate size.
    pub ulp32: u32,
    /// Python expressions of argument lists, evaluated by the tests with helpers `f(shape)`, `i(shape, hi)`, `b(shape)`; if empty, elementwise
    /// operands.
    pub calls: &'static [&'static str],
}

impl Probe {
    /// Values in [-2, 2), NumPy's function of the same name, 2 ulp.
    pub const STANDARD: Probe = Probe {
        range: -2.0..2.0,
        oracle: "",
        ulp32: 2,
        calls: &[],
    };

    /// [`Probe::STANDARD`] with inputs from another range.
    pub const fn over(range: Range<f64>) -> Probe {
        Probe {
            range,
            ..Probe::STANDARD
        }
    }

    /// [`Probe::STANDARD`] with these argument lists.
    pub const fn calls(calls: &'static [&'static str]) -> Probe {
        Probe {
            calls,
            ..Probe::STANDARD
        }
    }

    /// The same with another reference.
    pub const fn against(self, oracle: &'static str) -> Probe {
        Probe {
            range: self.range.start..self.range.end,
            oracle,
            ulp32: self.ulp32,
            calls: self.calls,
        }
    }

    /// The same with inputs from another range.
    pub const fn within(self, range: Range<f64>) -> Probe {
        Probe {
            range,
            oracle: self.oracle,
            ulp32: self.ulp32,
            calls: self.calls,
        }
    }

    /// The same with another tolerance.
    pub const fn ulp(self, ulp32: u32) -> Probe {
        Probe {
            range: self.range.start..self.range.end,
            oracle: self.oracle,
            ulp32,
            calls: self.calls,
        }
    }
}
