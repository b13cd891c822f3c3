//! Elementwise arithmetic: sums, products, quotients, remainders, extrema, signs.
//!
//! Integers wrap; integer division by zero gives 0; quotients and remainders have Python's signs unless the comment says C's.

#![allow(
    clippy::unnecessary_cast,
    clippy::absurd_extreme_comparisons,
    reason = "one expression serves every integer, signed or not"
)]

use super::OutElem::Same;
use super::math::Float;
use super::row::{
    Binary, Binary2, InnerLoops, Level, Params, Stored, Unary, Unary2, binary, binary_rows,
    binary2, bit, c64, c128, ternary_rows, unary, unary_rows, unary2,
};
use crate::Elem;
use crate::isa::Isa;
use crate::map::InnerLoop;

binary_rows! {
    /// `a + b`; booleans: or.
    ADD "add", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.wrapping_add(b) }
        [f32 f64 c64 c128] |a, b, _| -> T { a + b }
        [bit] |a, b, _| -> bool { a.get() | b.get() }
    }
    /// `a - b`.
    SUBTRACT "subtract", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.wrapping_sub(b) }
        [f32 f64 c64 c128] |a, b, _| -> T { a - b }
    }
    /// `a * b`; booleans: and.
    MULTIPLY "multiply", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.wrapping_mul(b) }
        [f32 f64 c64 c128] |a, b, _| -> T { a * b }
        [bit] |a, b, _| -> bool { a.get() & b.get() }
    }
    /// `a / b` of floats and complex numbers.
    DIVIDE "divide", Same, cost 2, params 0, heavy false, binary {
        [f32 f64] |a, b, _| -> T { a / b }
        [c64 c128] |a, b, _| -> T { super::complex::divide(a, b) }
    }
    /// The largest integer not above `a / b`, for integers of up to 32 bits.
    FLOOR_DIVIDE_OTHERS "floor_divide", Same, cost 8, params 0, heavy true, binary {
        [i8 i16 i32 u8 u16 u32] |a, b, _| -> T {
            let q = a.quotient(b);
            let r = a.wrapping_sub(q.wrapping_mul(b));
            #[allow(unused_comparisons, reason = "unsigned remainders are never negative")]
            let lower = (r != 0) & ((r < 0) != (b < 0));
            if b == 0 { 0 } else { q.wrapping_sub(lower as T) }
        }
    }
    /// Remainder of floor division, for integers of up to 32 bits; its sign is that of `b`.
    REMAINDER_OTHERS "remainder", Same, cost 8, params 0, heavy true, binary {
        [i8 i16 i32 u8 u16 u32] |a, b, _| -> T {
            let r = a.wrapping_sub(a.quotient(b).wrapping_mul(b));
            #[allow(unused_comparisons, reason = "unsigned remainders are never negative")]
            let lower = (r != 0) & ((r < 0) != (b < 0));
            if b == 0 { 0 } else { r.wrapping_add(if lower { b } else { 0 }) }
        }
    }
    /// Remainder of truncated division, for integers of up to 32 bits; its sign is that of `a`.
    FMOD_OTHERS "fmod", Same, cost 8, params 0, heavy true, binary {
        [i8 i16 i32 u8 u16 u32] |a, b, _| -> T {
            if b == 0 { 0 } else { a.wrapping_sub(a.quotient(b).wrapping_mul(b)) }
        }
    }
    /// The larger operand; NaN if either is.
    MAXIMUM "maximum", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.max(b) }
        [f32 f64] |a, b, _| -> T { if (a >= b) | a.is_nan() { a } else { b } }
        [c64 c128] |a, b, _| -> T { if super::complex::ge(a, b) | super::complex::is_nan(a) { a } else { b } }
        [bit] |a, b, _| -> bool { a.get() | b.get() }
    }
    /// The smaller operand; NaN if either is.
    MINIMUM "minimum", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.min(b) }
        [f32 f64] |a, b, _| -> T { if (a <= b) | a.is_nan() { a } else { b } }
        [c64 c128] |a, b, _| -> T { if super::complex::ge(b, a) | super::complex::is_nan(a) { a } else { b } }
        [bit] |a, b, _| -> bool { a.get() & b.get() }
    }
    /// The larger operand; if one is NaN, the other one.
    FMAX "fmax", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.max(b) }
        [f32 f64] |a, b, _| -> T { if (a >= b) | b.is_nan() { a } else { b } }
        [c64 c128] |a, b, _| -> T { if super::complex::ge(a, b) | super::complex::is_nan(b) { a } else { b } }
        [bit] |a, b, _| -> bool { a.get() | b.get() }
    }
    /// The smaller operand; if one is NaN, the other one.
    FMIN "fmin", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.min(b) }
        [f32 f64] |a, b, _| -> T { if (a <= b) | b.is_nan() { a } else { b } }
        [c64 c128] |a, b, _| -> T { if super::complex::ge(b, a) | super::complex::is_nan(b) { a } else { b } }
        [bit] |a, b, _| -> bool { a.get() & b.get() }
    }
    /// `a` with the sign of `b`.
    COPYSIGN "copysign", Same, cost 1, params 0, heavy false, binary {
        [f32 f64] |a, b, _| -> T { a.copysign(b) }
    }
    /// The next f32 or f64 from `a` towards `b`.
    NEXTAFTER_F32_F64 "nextafter", Same, cost 4, params 0, heavy true, binary {
        [f32 f64] |a, b, _| -> T {
            // Away from zero adds 1 to the bits, towards zero subtracts 1.
            let outward = (a < b) == (a > 0.0);
            let bits = if outward { a.to_bits().wrapping_add(1) } else { a.to_bits().wrapping_sub(1) };
            let near_zero = T::from_bits(1).copysign(b);
            let value = if a == 0.0 { near_zero } else { T::from_bits(bits) };
            let value = if a == b { b } else { value };
            if a.is_nan() | b.is_nan() { a + b } else { value }
        }
    }
    /// 0 for `a` below zero, `b` at zero, 1 above.
    HEAVISIDE "heaviside", Same, cost 1, params 0, heavy true, binary {
        [f32 f64] |a, b, _| -> T {
            let step = if a < 0.0 { 0.0 } else { 1.0 };
            let value = if a == 0.0 { b } else { step };
            if a.is_nan() { a } else { value }
        }
    }
    /// Greatest common divisor, not negative.
    GCD "gcd", Same, cost 60, params 0, heavy true, binary_one {
        [i8 i16 i32 i64] |a, b, _| -> T { gcd(a.unsigned_abs() as u64, b.unsigned_abs() as u64) as T }
        [u8 u16 u32 u64] |a, b, _| -> T { gcd(a as u64, b as u64) as T }
    }
    /// Least common multiple, not negative; 0 if either is.
    LCM "lcm", Same, cost 60, params 0, heavy true, binary_one {
        [i8 i16 i32 i64] |a, b, _| -> T { lcm(a.unsigned_abs() as u64, b.unsigned_abs() as u64) as T }
        [u8 u16 u32 u64] |a, b, _| -> T { lcm(a as u64, b as u64) as T }
    }
}

unary_rows! {
    /// `-x`.
    NEGATIVE "negative", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> T { x.wrapping_neg() }
        [f32 f64 c64 c128] |x, _| -> T { -x }
    }
    /// `x`.
    POSITIVE "positive", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128] |x, _| -> T { x }
        [bit] |x, _| -> bool { x.get() }
    }
    /// Absolute value; for complex numbers the modulus.
    ABSOLUTE "absolute", super::OutElem::Real, cost 1, params 0, unary {
        [i8 i16 i32 i64] |x, _| -> T { x.wrapping_abs() }
        [u8 u16 u32 u64] |x, _| -> T { x }
        [f32 f64] |x, _| -> T { x.abs() }
        [c64] |x, _| -> f32 { Float::hypot::<L>(x.re, x.im) }
        [c128] |x, _| -> f64 { Float::hypot::<L>(x.re, x.im) }
        [bit] |x, _| -> bool { x.get() }
    }
    /// Absolute value of floats.
    FABS "fabs", Same, cost 1, params 0, unary {
        [f32 f64] |x, _| -> T { x.abs() }
    }
    /// -1, 0 or 1; NaN for NaN; for complex numbers `x / |x|`, and 0 at 0.
    SIGN "sign", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64] |x, _| -> T { T::from(x > 0) - T::from(x < 0) }
        [u8 u16 u32 u64] |x, _| -> T { T::from(x > 0) }
        [f32 f64] |x, _| -> T {
            let sign = if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 };
            if x.is_nan() { x } else { sign }
        }
        [c64 c128] |x, _| -> T { super::complex::sign(x) }
    }
    /// `1 / x`. Integers truncate; 1 / 0 is x86's conversion of infinity: the minimum for int32 and int64, 0 for other integers.
    RECIPROCAL "reciprocal", Same, cost 2, params 0, unary {
        [i8 i16] |x, _| -> T { if (x == 1) | (x == -1) { x } else { 0 } }
        [i32 i64] |x, _| -> T { if (x == 1) | (x == -1) { x } else if x == 0 { T::MIN } else { 0 } }
        [u8 u16 u32 u64] |x, _| -> T { T::from(x == 1) }
        [f32 f64] |x, _| -> T { 1.0 / x }
        [c64 c128] |x, _| -> T { super::complex::reciprocal(x) }
    }
    /// `x * x`.
    SQUARE "square", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> T { x.wrapping_mul(x) }
        [f32 f64 c64 c128] |x, _| -> T { x * x }
    }
    /// Complex conjugate; the identity for real numbers.
    CONJUGATE "conjugate", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64] |x, _| -> T { x }
        [c64 c128] |x, _| -> T { T::new(x.re, -x.im) }
    }
    /// Real part.
    REAL "real", super::OutElem::Real, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64] |x, _| -> T { x }
        [c64] |x, _| -> f32 { x.re }
        [c128] |x, _| -> f64 { x.re }
    }
    /// Imaginary part; 0 for real numbers.
    IMAG "imag", super::OutElem::Real, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |_x, _| -> T { 0 }
        [f32 f64] |_x, _| -> T { 0.0 }
        [c64] |x, _| -> f32 { x.im }
        [c128] |x, _| -> f64 { x.im }
    }
}

ternary_rows! {
    /// `a * b + c`, rounded twice, so that it equals `multiply` followed by `add`.
    MULTIPLY_ADD "multiply_add", cost 1 {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, c| { a.wrapping_mul(b).wrapping_add(c) }
        [f32 f64 c64 c128] |a, b, c| { a * b + c }
    }
    /// `x` clipped to `low..=high`; NaN stays NaN, and `high` wins where `low > high`.
    CLIP "clip", cost 1 {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, low, high| { x.max(low).min(high) }
        [f32 f64] |x, low, high| {
            let raised = if (x >= low) | x.is_nan() { x } else { low };
            if (raised <= high) | raised.is_nan() { raised } else { high }
        }
        [c64 c128] |x, low, high| {
            let raised = if super::complex::ge(x, low) | super::complex::is_nan(x) { x } else { low };
            if super::complex::ge(high, raised) | super::complex::is_nan(raised) { raised } else { high }
        }
    }
}

/// `nextafter` of a 16-bit float with this exponent mask, on its bits: the next f32 would round back to the same value.
struct NextHalf<const EXPONENT: u16>;

impl<const EXPONENT: u16> Binary<u16> for NextHalf<EXPONENT> {
    type Rhs = u16;
    type Out = u16;
    const PARAMS: usize = 0;
    const HEAVY: bool = true;
    #[inline(always)]
    fn apply<L: Level>(a: u16, b: u16, _: Params) -> u16 {
        let (size_a, size_b) = (a & 0x7fff, b & 0x7fff);
        if size_a > EXPONENT {
            return a;
        }
        if size_b > EXPONENT || a == b || (size_a | size_b) == 0 {
            return b;
        }
        if size_a == 0 {
            return (b & 0x8000) | 1;
        }
        let away = (a ^ b) & 0x8000 == 0 && size_b > size_a;
        if away { a + 1 } else { a - 1 }
    }
}

/// The next number from `a` towards `b`. Defined on all floats, including f16 and bf16.
pub static NEXTAFTER: InnerLoops = InnerLoops {
    name: "nextafter",
    outs: 1,
    ins: 2,
    out: Same,
    in_elems: [None; 3],
    params: 0,
    cost: 4,
    in_place: 0,
    get: nextafter_row,
};

fn nextafter_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    match elem {
        Elem::F16 => Some(binary::<u16, NextHalf<0x7c00>>(isa)),
        Elem::BF16 => Some(binary::<u16, NextHalf<0x7f80>>(isa)),
        _ => (NEXTAFTER_F32_F64.get)(isa, elem),
    }
}

/// `spacing` of a 16-bit float with this exponent mask and number of mantissa bits, on its bits.
struct SpacingHalf<const EXPONENT: u16, const MANTISSA: u16>;

impl<const EXPONENT: u16, const MANTISSA: u16> Unary<u16> for SpacingHalf<EXPONENT, MANTISSA> {
    type Out = u16;
    const PARAMS: usize = 0;
    #[inline(always)]
    fn apply<L: Level>(x: u16, _: Params) -> u16 {
        let (sign, size) = (x & 0x8000, x & 0x7fff);
        if size >= EXPONENT {
            // Infinities and NaN give a quiet NaN.
            return EXPONENT | (1 << (MANTISSA - 1));
        }
        if size == EXPONENT - 1 {
            return sign | EXPONENT;
        }
        let power = size >> MANTISSA;
        let distance = if power > MANTISSA {
            (power - MANTISSA) << MANTISSA
        } else {
            1 << power.saturating_sub(1)
        };
        sign | distance
    }
}

unary_rows! {
    /// `spacing` of f32 and f64.
    SPACING_F32_F64 "spacing", Same, cost 2, params 0, unary {
        [f32 f64] |x, _| -> T { T::from_bits(x.to_bits().wrapping_add(1)) - x }
    }
}

/// The distance to the next number away from zero, with the sign of `x`. Defined on all floats, including f16 and bf16.
pub static SPACING: InnerLoops = InnerLoops {
    name: "spacing",
    outs: 1,
    ins: 1,
    out: Same,
    in_elems: [None; 3],
    params: 0,
    cost: 2,
    in_place: 0,
    get: spacing_row,
};

fn spacing_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    match elem {
        Elem::F16 => Some(unary::<u16, SpacingHalf<0x7c00, 10>>(isa)),
        Elem::BF16 => Some(unary::<u16, SpacingHalf<0x7f80, 7>>(isa)),
        _ => (SPACING_F32_F64.get)(isa, elem),
    }
}

/// Integers whose truncated quotient can be computed in floating point, because CPUs have no vector division of integers.
///
/// A quotient `a / b` that is not an integer differs from every integer by at least `1 / b`. For 16-bit integers in f32 and 32-bit integers in f64,
/// that is more than the rounding error, so the truncated quotient is exact.
trait Quotient: Copy {
    /// The truncated quotient; unspecified if the divisor is 0.
    fn quotient(self, divisor: Self) -> Self;
}

macro_rules! quotients {
    ($($t:ty, $float:ty, $whole:ty);*) => { $(
        impl Quotient for $t {
            #[inline(always)]
            fn quotient(self, divisor: $t) -> $t {
                let divisor = if divisor == 0 { 1 } else { divisor };
                // SAFETY: the quotient is in the operands' range or, for the minimum divided by -1, one above it, which the wider integer type holds.
                unsafe { (self as $float / divisor as $float).to_int_unchecked::<$whole>() as $t }
            }
        }
    )* };
}
quotients!(i8, f32, i32; u8, f32, i32; i16, f32, i32; u16, f32, i32; i32, f64, i64; u32, f64, i64);

struct DivMod;

macro_rules! int_divmod {
    ($($t:ty)*) => { $(
        impl Binary2<$t> for DivMod {
            #[inline(always)]
            fn apply<L: Level>(a: $t, b: $t) -> ($t, $t) {
                if b == 0 {
                    return (0, 0);
                }
                let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
                #[allow(unused_comparisons, reason = "unsigned remainders are never negative")]
                let lower = (r != 0) & ((r < 0) != (b < 0));
                if lower { (q.wrapping_sub(1), r.wrapping_add(b)) } else { (q, r) }
            }
        }
    )* };
}
int_divmod!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float_divmod {
    ($($t:ty)*) => { $(
        impl Binary2<$t> for DivMod {
            #[inline(always)]
            fn apply<L: Level>(a: $t, b: $t) -> ($t, $t) {
                Float::divmod::<L>(a, b)
            }
        }
    )* };
}
float_divmod!(f32 f64);

/// Floor quotient and remainder.
pub static DIVMOD: InnerLoops = InnerLoops {
    name: "divmod",
    outs: 2,
    ins: 2,
    out: Same,
    in_elems: [None; 3],
    params: 0,
    cost: 8,
    in_place: 0,
    get: divmod_row,
};

fn divmod_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    macro_rules! choose {
        ($($t:ty)*) => { $(if elem == <$t as Stored>::ELEM { return Some(binary2::<$t, DivMod>(isa)); })* };
    }
    choose!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
    None
}

/// Fractional and integral part.
struct Modf;

macro_rules! modf {
    ($($t:ty)*) => { $(
        impl Unary2<$t> for Modf {
            #[inline(always)]
            fn apply<L: Level>(x: $t) -> ($t, $t) {
                let whole = x.trunc();
                let left = if x.is_infinite() { 0.0 } else { x - whole };
                (left.copysign(x), whole)
            }
        }
    )* };
}
modf!(f32 f64);

/// Fractional and integral part, both with the sign of `x`; the fractional part of an infinity is 0.
pub static MODF: InnerLoops = InnerLoops {
    name: "modf",
    outs: 2,
    ins: 1,
    out: Same,
    in_elems: [None; 3],
    params: 0,
    cost: 2,
    in_place: 0,
    get: modf_row,
};

fn modf_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    match elem {
        Elem::F32 => Some(unary2::<f32, Modf>(isa)),
        Elem::F64 => Some(unary2::<f64, Modf>(isa)),
        _ => None,
    }
}

/// Binary GCD: shifts and subtractions instead of divisions.
fn gcd(mut a: u64, mut b: u64) -> u64 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let twos = (a | b).trailing_zeros();
    a >>= a.trailing_zeros();
    while b != 0 {
        b >>= b.trailing_zeros();
        (a, b) = (a.min(b), a.abs_diff(b));
    }
    a << twos
}

fn lcm(a: u64, b: u64) -> u64 {
    if a == 0 || b == 0 {
        0
    } else {
        (a / gcd(a, b)).wrapping_mul(b)
    }
}
