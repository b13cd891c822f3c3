//! Powers, roots, exponentials and logarithms.

use super::OutElem::Same;
use super::complex;
use super::math::Float;
use super::row::{Binary, Level, Params, Rows, Stored, binary, binary_rows, c64, c128, unary_rows};
use crate::Elem;
use crate::isa::Isa;
use crate::map::RowFn;

unary_rows! {
    /// Square root; NaN below zero.
    SQRT "sqrt", Same, cost 2, params 0, unary {
        [f32 f64] |x, _| -> T { x.sqrt() }
        [c64 c128] |x, _| -> T { complex::through(x, complex::sqrt) }
    }
    /// `1 / sqrt(x)`.
    RSQRT "rsqrt", Same, cost 4, params 0, unary {
        [f32] |x, _| -> T { (1.0 / f64::from(x).sqrt()) as f32 }
        [f64] |x, _| -> T { 1.0 / x.sqrt() }
    }
    /// Cube root.
    CBRT "cbrt", Same, cost 12, params 0, unary {
        [f32] |x, _| -> T { cbrt32::<L>(x) }
        [f64] |x, _| -> T { libm::cbrt(x) }
    }
    /// `1 / cbrt(x)`.
    RCBRT "rcbrt", Same, cost 14, params 0, unary {
        [f32] |x, _| -> T { (1.0 / f64::from(cbrt32::<L>(x))) as f32 }
        [f64] |x, _| -> T { 1.0 / libm::cbrt(x) }
    }
    /// `e^x`.
    EXP "exp", Same, cost 4, params 0, unary {
        [f32 f64] |x, _| -> T { Float::exp::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::exp) }
    }
    /// `2^x`.
    EXP2 "exp2", Same, cost 4, params 0, unary {
        [f32 f64] |x, _| -> T { Float::exp2::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::exp2) }
    }
    /// `e^x - 1`, accurate near 0.
    EXPM1 "expm1", Same, cost 4, params 0, unary {
        [f32 f64] |x, _| -> T { Float::expm1::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::expm1) }
    }
    /// Natural logarithm.
    LOG "log", Same, cost 4, params 0, unary {
        [f32 f64] |x, _| -> T { Float::log::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::log) }
    }
    /// Logarithm to base 2.
    LOG2 "log2", Same, cost 6, params 0, unary {
        [f32 f64] |x, _| -> T { Float::log2::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::log2) }
    }
    /// Logarithm to base 10.
    LOG10 "log10", Same, cost 6, params 0, unary {
        [f32 f64] |x, _| -> T { Float::log10::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::log10) }
    }
    /// `log(1 + x)`, accurate near 0.
    LOG1P "log1p", Same, cost 8, params 0, unary {
        [f32 f64] |x, _| -> T { Float::log1p::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::log1p) }
    }
}

binary_rows! {
    /// `a^b`; integers wrap, and a negative integer exponent gives what truncation leaves of the power.
    POWER "power", Same, cost 12, params 0, heavy true, binary {
        [i8 i16 i32 i64] |a, b, _| -> T {
            if b >= 0 {
                wrapping_power(a as i64 as u64, b as u64) as T
            } else if a == 1 {
                1
            } else if a == -1 {
                if b & 1 == 0 { 1 } else { -1 }
            } else {
                0
            }
        }
        [u8 u16 u32 u64] |a, b, _| -> T { wrapping_power(a as u64, b as u64) as T }
        [f32 f64] |a, b, _| -> T { Float::pow::<L>(a, b) }
        [c64 c128] |a, b, _| -> T { complex::power(a, b) }
    }
    /// `a^b` of floats and complex numbers.
    FLOAT_POWER "float_power", Same, cost 12, params 0, heavy true, binary {
        [f32 f64] |a, b, _| -> T { Float::pow::<L>(a, b) }
        [c64 c128] |a, b, _| -> T { complex::power(a, b) }
    }
    /// `log(e^a + e^b)`.
    LOGADDEXP "logaddexp", Same, cost 12, params 0, heavy true, binary {
        [f32] |a, b, _| -> T { log_add_exp::<L>(f64::from(a), f64::from(b)) as f32 }
        [f64] |a, b, _| -> T { log_add_exp::<L>(a, b) }
    }
    /// `log2(2^a + 2^b)`.
    LOGADDEXP2 "logaddexp2", Same, cost 12, params 0, heavy true, binary {
        [f32] |a, b, _| -> T { log_add_exp2::<L>(f64::from(a), f64::from(b)) as f32 }
        [f64] |a, b, _| -> T { log_add_exp2::<L>(a, b) }
    }
    /// `sqrt(a^2 + b^2)` without overflow.
    HYPOT "hypot", Same, cost 3, params 0, heavy true, binary {
        [f32 f64] |a, b, _| -> T { Float::hypot::<L>(a, b) }
    }
}

/// Square and multiply, modulo 2^64 (and so modulo every smaller width).
fn wrapping_power(mut base: u64, mut exponent: u64) -> u64 {
    let mut value = 1u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            value = value.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    value
}

/// Equal operands, infinities among them, differ by 0.
#[inline(always)]
fn log_add_exp<L: Level>(a: f64, b: f64) -> f64 {
    let big = if (a >= b) | a.is_nan() { a } else { b };
    let gap = if a == b { 0.0 } else { (a - b).abs() };
    big + Float::log1p::<L>(Float::exp::<L>(-gap))
}

/// As [`log_add_exp`], to base 2.
#[inline(always)]
fn log_add_exp2<L: Level>(a: f64, b: f64) -> f64 {
    let big = if (a >= b) | a.is_nan() { a } else { b };
    let gap = if a == b { 0.0 } else { (a - b).abs() };
    big + Float::log1p::<L>(Float::exp2::<L>(-gap)) * std::f64::consts::LOG2_E
}

/// The exponential of a third of the logarithm, in f64.
#[inline(always)]
fn cbrt32<L: Level>(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let root = Float::exp2::<L>(Float::log2::<L>(a) * (1.0 / 3.0)) as f32;
    root.copysign(x)
}

struct Ldexp;

macro_rules! ldexp {
    ($($t:ty)*) => { $(
        impl Binary<$t> for Ldexp {
            type Rhs = i32;
            type Out = $t;
            const PARAMS: usize = 0;
            const HEAVY: bool = true;
            #[inline(always)]
            fn apply<L: Level>(a: $t, b: i32, _: Params) -> $t {
                libm::ldexp(f64::from(a), b) as $t
            }
        }
    )* };
}
ldexp!(f32 f64);

/// `a * 2^b`; the second input is i32.
pub static LDEXP: Rows = Rows {
    name: "ldexp",
    outs: 1,
    ins: 2,
    out: Same,
    in_elems: [None, Some(Elem::I32), None],
    params: 0,
    cost: 6,
    get: ldexp_row,
};

fn ldexp_row(isa: Isa, elem: Elem) -> Option<RowFn> {
    if elem == <f32 as Stored>::ELEM {
        return Some(binary::<f32, Ldexp>(isa));
    }
    (elem == <f64 as Stored>::ELEM).then(|| binary::<f64, Ldexp>(isa))
}
