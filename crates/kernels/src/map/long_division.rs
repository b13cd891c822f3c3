//! Division of 64-bit integers through f64 where that is exact, because CPUs have no vector division of integers.

use super::OutElem::Same;
use super::arith::{FLOOR_DIVIDE_OTHERS, FMOD_OTHERS, REMAINDER_OTHERS};
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

fn rows<O: Binary<i64>>(others: &InnerLoops, isa: Isa, elem: Elem) -> Option<InnerLoop> {
    match elem {
        Elem::I64 => Some(binary::<i64, O>(isa)),
        _ => (others.get)(isa, elem),
    }
}

struct FloorDivide;
struct Remainder;
struct Fmod;

/// Whether both magnitudes are below 2^52 and the divisor is not 0. Then the floor of the quotient rounded to f64 is exact: a quotient that is not an
/// integer differs from every integer by at least `1 / b`, which is more than the rounding error.
#[inline(always)]
fn are_exact_in_f64(a: i64, b: i64) -> bool {
    const BOUND: i64 = 1 << 52;
    let is_exact = |x: i64| (x.wrapping_add(BOUND - 1) as u64) < 2 * BOUND as u64 - 1;
    is_exact(a) & is_exact(b) & (b != 0)
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
    ($($op:ty: |$a:ident, $b:ident| $by_i64:block, $by_f64:expr;)*) => { $(impl Binary<i64> for $op {
        type Rhs = i64;
        type Out = i64;
        const PARAMS: usize = 0;
        const HEAVY: bool = true;
        const HAS_SUBDOMAIN: bool = true;
        #[inline(always)]
        fn apply<L: Level>($a: i64, $b: i64, _: Params) -> i64 {
            if $b == 0 { 0 } else $by_i64
        }
        #[inline(always)]
        fn is_in_subdomain(a: i64, b: i64) -> bool {
            are_exact_in_f64(a, b)
        }
        #[inline(always)]
        fn apply_in_subdomain<L: Level>($a: i64, $b: i64, _: Params) -> i64 {
            $by_f64
        }
    })* };
}
divisions! {
    FloorDivide: |a, b| {
        let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
        if (r != 0) & ((r < 0) != (b < 0)) { q - 1 } else { q }
    }, floor_quotient(a, b);
    Remainder: |a, b| {
        let r = a.wrapping_rem(b);
        if (r != 0) & ((r < 0) != (b < 0)) { r + b } else { r }
    }, a.wrapping_sub(floor_quotient(a, b).wrapping_mul(b));
    Fmod: |a, b| { a.wrapping_rem(b) }, a.wrapping_sub(exact_integer(quotient(a, b).trunc()).wrapping_mul(b));
}
