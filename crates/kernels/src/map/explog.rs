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
        [f32] |x, _| -> T { cbrt32(x) }
        [f64] |x, _| -> T { libm::cbrt(x) }
    }
    /// `1 / cbrt(x)`.
    RCBRT "rcbrt", Same, cost 14, params 0, unary {
        [f32] |x, _| -> T { (1.0 / f64::from(cbrt32(x))) as f32 }
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

/// A guess from the exponent, one step of Halley's iteration and a last one whose residual is exact. Error below 0.6 ulp.
#[inline(always)]
fn cbrt32(x: f32) -> f32 {
    /// Two thirds of the exponent's bias, less what makes the guess best (W. Kahan).
    const GUESS: i32 = 709_958_130;
    // Away from both ends, where the residual would be subnormal and the sums below overflow: by 2^24, and the root by 2^8.
    let (small, large) = (x.abs() < 1e-30, x.abs() > 1e36);
    let up = if small { 16_777_216.0 } else { 1.0 };
    let a = x.abs() * if large { 1.0 / 16_777_216.0 } else { up };
    let back = if small { 1.0 / 256.0 } else { 1.0 };
    let back = if large { 256.0 } else { back };
    // SAFETY: a third of the bits of a positive float fits.
    let third = unsafe { (a.to_bits() as i32 as f32 * (1.0 / 3.0)).to_int_unchecked::<i32>() };
    let t = f32::from_bits(third.wrapping_add(GUESS) as u32);
    let cube = t * t * t;
    let t = t * ((cube + 2.0 * a) / (2.0 * cube + a));
    let wide = f64::from(t);
    let residual = (f64::from(a) - wide * wide * wide) as f32;
    let cube = t * t * t;
    let root = t + t * (residual / (2.0 * cube + a));
    let root = (root * back).copysign(x);
    if (a > 0.0) & (a < f32::INFINITY) {
        root
    } else {
        x
    }
}

struct Ldexp;

impl Binary<f32> for Ldexp {
    type Rhs = i32;
    type Out = f32;
    const PARAMS: usize = 0;
    const HEAVY: bool = true;
    #[inline(always)]
    fn apply<L: Level>(a: f32, b: i32, _: Params) -> f32 {
        // Exact in f64, whose exponents reach further than any of f32 by any of these.
        let power = f64::from_bits(((b.clamp(-300, 300) + 1023) as u64) << 52);
        (f64::from(a) * power) as f32
    }
}

impl Binary<f64> for Ldexp {
    type Rhs = i32;
    type Out = f64;
    const PARAMS: usize = 0;
    const HEAVY: bool = true;
    #[inline(always)]
    fn apply<L: Level>(a: f64, b: i32, _: Params) -> f64 {
        let power = |n: i32| f64::from_bits(((n + 1023) as u64) << 52);
        // Downwards in steps that leave 53 bits above the subnormal numbers, so that only the last one rounds.
        let step = |n: i32| {
            if n > 1023 {
                1023
            } else if n < -1022 {
                -969
            } else {
                0
            }
        };
        let b = b.clamp(-3000, 3100);
        let first = step(b);
        let second = step(b - first);
        let last = (b - first - second).clamp(-1022, 1023);
        a * power(first) * power(second) * power(last)
    }
}

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
