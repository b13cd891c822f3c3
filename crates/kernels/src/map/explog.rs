//! Powers, roots, exponentials and logarithms.

use super::OutElem::Same;
use super::complex;
use super::math::Float;
use super::row::{
    Binary, InnerLoops, Level, Params, Stored, binary, binary_rows, c64, c128, unary_rows,
};
use crate::Elem;
use crate::isa::Isa;
use crate::map::InnerLoop;

unary_rows! {
    /// Square root; NaN for negative numbers.
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
    CBRT "cbrt", Same, cost 5, params 0, unary {
        [f32] |x, _| -> T { cbrt32::<L>(x) }
        [f64] |x, _| -> T { cbrt64::<L>(x) }
    }
    /// `1 / cbrt(x)`.
    RCBRT "rcbrt", Same, cost 14, params 0, unary {
        [f32] |x, _| -> T { (1.0 / f64::from(cbrt32::<L>(x))) as f32 }
        [f64] |x, _| -> T { 1.0 / cbrt64::<L>(x) }
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

/// Power by squaring, modulo 2^64 (and so modulo 2^bits of every smaller type).
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

/// `log(e^a + e^b)`. The difference of equal operands is taken as 0, also for infinities.
#[inline(always)]
fn log_add_exp<L: Level>(a: f64, b: f64) -> f64 {
    let big = if (a >= b) | a.is_nan() { a } else { b };
    let gap = if a == b { 0.0 } else { (a - b).abs() };
    big + Float::log1p::<L>(Float::exp::<L>(-gap))
}

/// `log2(2^a + 2^b)`, see [`log_add_exp`].
#[inline(always)]
fn log_add_exp2<L: Level>(a: f64, b: f64) -> f64 {
    let big = if (a >= b) | a.is_nan() { a } else { b };
    let gap = if a == b { 0.0 } else { (a - b).abs() };
    big + Float::log1p::<L>(Float::exp2::<L>(-gap)) * std::f64::consts::LOG2_E
}

/// 4/3 of f32's exponent bias, minus a constant that minimises the error of the guess of a reciprocal cube root.
const RCBRT_GUESS: i32 = 0x54a2_fa8c;
/// The same for the upper halves of the bits of f64.
const RCBRT_GUESS64: i32 = 0x553f_09fc;

/// A reciprocal cube root of a positive number, which is off by less than 4 %.
#[inline(always)]
fn rcbrt_guess32(a: f32) -> f32 {
    // SAFETY: a third of the bits of a positive float fits in an i32.
    let third = unsafe { (a.to_bits() as i32 as f32 * (1.0 / 3.0)).to_int_unchecked::<i32>() };
    f32::from_bits(RCBRT_GUESS.wrapping_sub(third) as u32)
}

/// The same for f64.
#[inline(always)]
fn rcbrt_guess64(a: f64) -> f64 {
    let upper = (a.to_bits() >> 32) as i32;
    // SAFETY: a third of these bits fits in an i32.
    let third = unsafe { (f64::from(upper) * (1.0 / 3.0)).to_int_unchecked::<i32>() };
    f64::from_bits(u64::from(RCBRT_GUESS64.wrapping_sub(third) as u32) << 32)
}

/// `a - t^3` without fused operations.
#[inline(always)]
fn cbrt_residual32(a: f32, t: f32) -> f32 {
    let wide = f64::from(t);
    (f64::from(a) - wide * wide * wide) as f32
}

/// The same for f64, from the root that `libm` computes.
#[inline(always)]
fn cbrt_residual64(a: f64, t: f64) -> f64 {
    3.0 * t * t * (libm::cbrt(a) - t)
}

/// The cube root: its reciprocal by two iterations from an initial guess, without a division, and a last step with an exact residual. Error below
/// 0.6 ulp.
macro_rules! cube_root {
    ($name:ident, $t:ty, $guess:ident, $residual:ident, small $small:expr, large $large:expr, scale 2^$scale:literal) => {
        #[inline(always)]
        fn $name<L: Level>(x: $t) -> $t {
            // Very small and very large arguments are scaled, where the residual would be subnormal or a sum would overflow.
            const UP: $t = (1_u64 << $scale) as $t;
            const BACK: $t = (1_u64 << ($scale / 3)) as $t;
            let (small, large) = (x.abs() < $small, x.abs() > $large);
            let up = if small { UP } else { 1.0 };
            let a = x.abs() * if large { 1.0 / UP } else { up };
            let back = if small { 1.0 / BACK } else { 1.0 };
            let back = if large { BACK } else { back };
            let y = $guess(a);
            // (1 - r)^(-1/3) = 1 + r/3 + 2/9 r^2 + 14/81 r^3 + …: |r| < 0.11, then 1e-4.
            let r = (y * y * y).mul_sum::<L>(-a, 1.0);
            let q = r.mul_sum::<L>(r.mul_sum::<L>(14.0 / 81.0, 2.0 / 9.0), 1.0 / 3.0);
            let y = (y * r).mul_sum::<L>(q, y);
            let r = (y * y * y).mul_sum::<L>(-a, 1.0);
            let y = (y * r).mul_sum::<L>(r.mul_sum::<L>(2.0 / 9.0, 1.0 / 3.0), y);
            let z = y * y;
            let t = a * z;
            let residual = if L::FMA {
                // t^3 = cube + rest; the rest includes the rounding error of the square, times t.
                let square = t * t;
                let cube = square * t;
                let rest = t.mul_add(t, -square).mul_add(t, square.mul_add(t, -cube));
                (a - cube) - rest
            } else {
                $residual(a, t)
            };
            let root = (residual * (1.0 / 3.0)).mul_sum::<L>(z, t);
            let root = (root * back).copysign(x);
            if (a > 0.0) & (a < <$t>::INFINITY) {
                root
            } else {
                x
            }
        }
    };
}
cube_root!(cbrt32, f32, rcbrt_guess32, cbrt_residual32, small 1e-30, large 1e36, scale 2^24);
cube_root!(cbrt64, f64, rcbrt_guess64, cbrt_residual64, small 1e-280, large 1e300, scale 2^60);

/// `power` of every element type but bool.
struct Power;

macro_rules! powers {
    ($([$($t:ty)*] |$a:ident, $b:ident| $e:block)*) => { $($(
        impl Binary<$t> for Power {
            type Rhs = $t;
            type Out = $t;
            const PARAMS: usize = 0;
            const HEAVY: bool = true;
            #[inline(always)]
            fn apply<L: Level>($a: $t, $b: $t, _: Params) -> $t $e
        }
    )*)* };
}
powers! {
    [i8 i16 i32 i64] |a, b| {
        if b >= 0 {
            wrapping_power(a as i64 as u64, b as u64) as _
        } else if a == 1 {
            1
        } else if a == -1 {
            if b & 1 == 0 { 1 } else { -1 }
        } else {
            0
        }
    }
    [u8 u16 u32 u64] |a, b| { wrapping_power(a as u64, b as u64) as _ }
    [c64 c128] |a, b| { complex::power(a, b) }
}

macro_rules! float_powers {
    ($($t:ty)*) => { $(
        impl Binary<$t> for Power {
            type Rhs = $t;
            type Out = $t;
            const PARAMS: usize = 0;
            const HEAVY: bool = true;
            const HAS_SUBDOMAIN: bool = true;
            #[inline(always)]
            fn apply<L: Level>(a: $t, b: $t, _: Params) -> $t {
                Float::pow::<L>(a, b)
            }
            #[inline(always)]
            fn is_in_subdomain<L: Level>(a: $t, b: $t) -> bool {
                Float::is_pow_of_positive(a, b)
            }
            #[inline(always)]
            fn apply_in_subdomain<L: Level>(a: $t, b: $t, _: Params) -> $t {
                Float::pow_of_positive::<L>(a, b)
            }
        }
    )* };
}
float_powers!(f32 f64);

/// `a^b`. Integers wrap; a negative integer exponent gives the truncated power.
pub static POWER: InnerLoops = InnerLoops {
    name: "power",
    outs: 1,
    ins: 2,
    out: Same,
    in_elems: [None; 3],
    params: 0,
    cost: 8,
    in_place: 0,
    get: power_row,
};

/// `a^b` for floats and complex numbers.
pub static FLOAT_POWER: InnerLoops = InnerLoops {
    name: "float_power",
    get: float_power_row,
    ..POWER
};

fn power_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    Some(match elem {
        Elem::I8 => binary::<i8, Power>(isa),
        Elem::I16 => binary::<i16, Power>(isa),
        Elem::I32 => binary::<i32, Power>(isa),
        Elem::I64 => binary::<i64, Power>(isa),
        Elem::U8 => binary::<u8, Power>(isa),
        Elem::U16 => binary::<u16, Power>(isa),
        Elem::U32 => binary::<u32, Power>(isa),
        Elem::U64 => binary::<u64, Power>(isa),
        _ => return float_power_row(isa, elem),
    })
}

fn float_power_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    Some(match elem {
        Elem::F32 => binary::<f32, Power>(isa),
        Elem::F64 => binary::<f64, Power>(isa),
        Elem::C64 => binary::<c64, Power>(isa),
        Elem::C128 => binary::<c128, Power>(isa),
        _ => return None,
    })
}

struct Ldexp;

impl Binary<f32> for Ldexp {
    type Rhs = i64;
    type Out = f32;
    const PARAMS: usize = 0;
    const HEAVY: bool = true;
    #[inline(always)]
    fn apply<L: Level>(a: f32, b: i64, _: Params) -> f32 {
        // Exact in f64: its exponent range holds any f32 times any of these powers.
        let power = f64::from_bits(((b.clamp(-300, 300) + 1023) as u64) << 52);
        (f64::from(a) * power) as f32
    }
}

impl Binary<f64> for Ldexp {
    type Rhs = i64;
    type Out = f64;
    const PARAMS: usize = 0;
    const HEAVY: bool = true;
    #[inline(always)]
    fn apply<L: Level>(a: f64, b: i64, _: Params) -> f64 {
        let power = |n: i32| f64::from_bits(((n + 1023) as u64) << 52);
        // Scales down in steps that leave 53 bits above the subnormal range, so that only the last step rounds.
        let step = |n: i32| {
            if n > 1023 {
                1023
            } else if n < -1022 {
                -969
            } else {
                0
            }
        };
        let b = b.clamp(-3000, 3100) as i32;
        let first = step(b);
        let second = step(b - first);
        let last = (b - first - second).clamp(-1022, 1023);
        a * power(first) * power(second) * power(last)
    }
}

/// `a * 2^b`; the second input is i64.
pub static LDEXP: InnerLoops = InnerLoops {
    name: "ldexp",
    outs: 1,
    ins: 2,
    out: Same,
    in_elems: [None, Some(Elem::I64), None],
    params: 0,
    cost: 6,
    in_place: 0,
    get: ldexp_row,
};

fn ldexp_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    if elem == <f32 as Stored>::ELEM {
        return Some(binary::<f32, Ldexp>(isa));
    }
    (elem == <f64 as Stored>::ELEM).then(|| binary::<f64, Ldexp>(isa))
}
