//! Division of floats, and of 64-bit integers, with loops for the operands that vector instructions divide exactly: 64-bit integers through f64,
//! because CPUs have no vector division of integers, and floats by one fused multiplication and addition.

use super::OutElem::Same;
use super::arith::{FLOOR_DIVIDE_OTHERS, FMOD_OTHERS, REMAINDER_OTHERS};
use super::math::Float;
use super::row::{Binary, InnerLoop, InnerLoops, Level, Params, binary};
use crate::Elem;
use crate::isa::Isa;

/// The largest integer not above `a / b`.
pub static FLOOR_DIVIDE: InnerLoops = InnerLoops {
    name: "floor_divide",
    get: |isa, elem| rows::<FloorDivide>(&FLOOR_DIVIDE_OTHERS, isa, elem),
    ..DIVISION
};

/// Remainder of floor division; its sign is that of `b`.
pub static REMAINDER: InnerLoops = InnerLoops {
    name: "remainder",
    get: |isa, elem| rows::<Remainder>(&REMAINDER_OTHERS, isa, elem),
    ..DIVISION
};

/// Remainder of truncated division; its sign is that of `a`.
pub static FMOD: InnerLoops = InnerLoops {
    name: "fmod",
    get: |isa, elem| rows::<Fmod>(&FMOD_OTHERS, isa, elem),
    ..DIVISION
};

const DIVISION: InnerLoops = InnerLoops {
    name: "",
    outs: 1,
    ins: 2,
    out: Same,
    in_elems: [None; 3],
    params: 0,
    cost: 8,
    in_place: 0,
    get: |_, _| None,
};

fn rows<O>(others: &InnerLoops, isa: Isa, elem: Elem) -> Option<InnerLoop>
where
    O: Binary<i64> + Binary<u64> + Binary<f32> + Binary<f64>,
{
    match elem {
        Elem::I64 => Some(binary::<i64, O>(isa)),
        Elem::U64 => Some(binary::<u64, O>(isa)),
        Elem::F32 => Some(binary::<f32, O>(isa)),
        Elem::F64 => Some(binary::<f64, O>(isa)),
        _ => (others.get)(isa, elem),
    }
}

struct FloorDivide;
struct Remainder;
struct Fmod;

/// Whether `x` is below 2^52, so that f64 represents it and the numbers around it.
#[inline(always)]
fn is_small(x: u64) -> bool {
    x < 1 << 52
}

/// Whether both magnitudes are below 2^52 and the divisor is not 0. Then the floor of the quotient rounded to f64 is exact: a quotient that is not an
/// integer differs from every integer by at least `1 / b`, which is more than the rounding error.
#[inline(always)]
fn are_exact_in_f64(a: i64, b: i64) -> bool {
    is_small(a.unsigned_abs()) & is_small(b.unsigned_abs()) & (b != 0)
}

#[inline(always)]
fn quotient(a: i64, b: i64) -> f64 {
    a as f64 / b as f64
}

/// Converts a quotient of operands that satisfy [`are_exact_in_f64`], after rounding to an integer.
#[inline(always)]
fn exact_integer(x: f64) -> i64 {
    // SAFETY: its magnitude is below 2^52.
    unsafe { x.to_int_unchecked() }
}

/// The floor of the quotient of operands that satisfy [`are_exact_in_f64`].
#[inline(always)]
fn floor_quotient(a: i64, b: i64) -> i64 {
    exact_integer(quotient(a, b).floor())
}

macro_rules! divisions {
    ($t:ty, |$x:ident, $y:ident| $is_in_subdomain:expr; $($op:ty: |$a:ident, $b:ident| $general:expr, $in_subdomain:expr;)*) => { $(impl Binary<$t> for $op {
        type Rhs = $t;
        type Out = $t;
        const PARAMS: usize = 0;
        const HEAVY: bool = true;
        const HAS_SUBDOMAIN: bool = true;
        #[inline(always)]
        fn apply<L: Level>($a: $t, $b: $t, _: Params) -> $t {
            $general
        }
        #[inline(always)]
        fn is_in_subdomain<L: Level>($x: $t, $y: $t) -> bool {
            $is_in_subdomain
        }
        #[inline(always)]
        fn apply_in_subdomain<L: Level>($a: $t, $b: $t, _: Params) -> $t {
            $in_subdomain
        }
    })* };
}

divisions! { i64, |a, b| are_exact_in_f64(a, b);
    FloorDivide: |a, b| match b {
        0 => 0,
        _ => {
            let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
            if (r != 0) & ((r < 0) != (b < 0)) { q - 1 } else { q }
        }
    }, floor_quotient(a, b);
    Remainder: |a, b| match b {
        0 => 0,
        _ => {
            let r = a.wrapping_rem(b);
            if (r != 0) & ((r < 0) != (b < 0)) { r + b } else { r }
        }
    }, a.wrapping_sub(floor_quotient(a, b).wrapping_mul(b));
    Fmod: |a, b| match b {
        0 => 0,
        _ => a.wrapping_rem(b),
    }, a.wrapping_sub(exact_integer(quotient(a, b).trunc()).wrapping_mul(b));
}

// Numbers below 2^52 are the same in i64.
divisions! { u64, |a, b| is_small(a) & is_small(b) & (b != 0);
    FloorDivide: |a, b| a.checked_div(b).unwrap_or(0), floor_quotient(a as i64, b as i64) as u64;
    Remainder: |a, b| a.checked_rem(b).unwrap_or(0), a - floor_quotient(a as i64, b as i64) as u64 * b;
    Fmod: |a, b| a.checked_rem(b).unwrap_or(0), a - floor_quotient(a as i64, b as i64) as u64 * b;
}

macro_rules! float_divisions {
    ($($t:ty)*) => { $(
        divisions! { $t, |a, b| L::FMA & <$t as Float>::is_fused_fmod_exact(a, b);
            FloorDivide: |a, b| Float::divmod::<L>(a, b).0, Float::fused_divmod(a, b).0;
            Remainder: |a, b| Float::divmod::<L>(a, b).1, Float::fused_divmod(a, b).1;
            Fmod: |a, b| Float::fmod::<L>(a, b), Float::fused_fmod(a, b);
        }
    )* };
}
float_divisions!(f32 f64);
