//! What entries declare beside their kernels: floating-point errors, folds, calls to probe them with.

use std::ops::Range;

use mxnet_tensor::Scalar;

use crate::opdef::*;

/// What floating-point errors of an operator are, beyond a NaN or an infinity that no operand had.
#[derive(Clone, Copy, Debug)]
pub struct Floats {
    /// What warnings call the operator; empty: its name.
    pub name: &'static str,
    /// Where an infinity is a division by zero, not an overflow.
    pub pole: Pole,
    /// Whether a result that is too small for its dtype counts as underflow.
    pub shrinks: bool,
    /// Whether a zero among the operands leaves a tiny result an underflow: `exp`.
    pub counts_zeros: bool,
    /// Whether integers divide, by a second operand that may be zero.
    pub divides: bool,
    /// Whether the lowest integer divided by -1 overflows.
    pub quotient: bool,
    /// Whether floats become integers, which some do not fit.
    pub converts: bool,
    /// Whether nothing is reported.
    pub silent: bool,
}

impl Floats {
    /// NaN is an invalid value and an infinity an overflow.
    pub const PLAIN: Floats = Floats {
        name: "",
        pole: Pole::None,
        shrinks: false,
        counts_zeros: false,
        divides: false,
        quotient: false,
        converts: false,
        silent: false,
    };
    /// The same, of an operator that warnings name so.
    pub const fn named(name: &'static str) -> Floats {
        Floats {
            name,
            ..Floats::PLAIN
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
    /// Wherever there is one.
    Everywhere,
}

/// What folding an operator of two arrays over an axis means.
#[derive(Clone, Copy)]
pub struct Fold {
    /// What leaves the other operand as it is, and so is the fold of nothing.
    pub identity: Option<Scalar>,
    /// Whether elements may be folded in any order, and so over several axes at once.
    pub reorders: bool,
    /// The operator that folds with kernels of its own: `sum` of `add`.
    pub reduce: Option<&'static OpDef>,
    /// The operator that keeps every step with kernels of its own: `cumsum` of `add`.
    pub accumulate: Option<&'static OpDef>,
}

impl Fold {
    /// From the first element to the last, and never of nothing.
    pub const ORDERED: Fold = Fold {
        identity: None,
        reorders: false,
        reduce: None,
        accumulate: None,
    };
    /// In any order, but never of nothing.
    pub const UNORDERED: Fold = Fold {
        reorders: true,
        ..Fold::ORDERED
    };

    /// In any order, starting with this.
    pub const fn from(identity: Scalar) -> Fold {
        Fold {
            identity: Some(identity),
            ..Fold::UNORDERED
        }
    }

    /// The same by an operator with kernels of its own.
    pub const fn by(self, reduce: &'static OpDef) -> Fold {
        Fold {
            reduce: Some(reduce),
            ..self
        }
    }

    /// The same, its steps by an operator with kernels of its own.
    pub const fn steps_by(self, accumulate: &'static OpDef) -> Fold {
        Fold {
            accumulate: Some(accumulate),
            ..self
        }
    }
}

/// What the standard tests feed an operator.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Range from which real inputs are drawn.
    pub range: Range<f64>,
    /// Python expression of the reference, e.g. `scipy.special.erf`; empty: the NumPy function of the same name.
    pub oracle: &'static str,
    /// Units in the last place allowed in float32 for values of moderate size.
    pub ulp32: u32,
    /// Python expressions of argument lists, evaluated by the tests with helpers `f(shape)`, `i(shape, hi)`, `b(shape)`; empty: elementwise operands.
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

    /// The same with other values.
    pub const fn over(range: Range<f64>) -> Probe {
        Probe {
            range,
            ..Probe::STANDARD
        }
    }

    /// Argument lists to call the operator with.
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

    /// The same with other values.
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
