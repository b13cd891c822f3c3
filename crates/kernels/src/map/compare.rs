//! Comparisons, logical and bitwise operators, rounding, and classification of floats.

use super::OutElem::{Bool, Fixed, Same};
use super::complex;
use super::row::{
    InnerLoops, Level, Stored, Ternary, binary_rows, bit, c64, c128, ternary, unary_rows,
};
use crate::Elem;
use crate::isa::Isa;
use crate::map::InnerLoop;

binary_rows! {
    /// `a == b`.
    EQUAL "equal", Bool, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128] |a, b, _| -> bool { a == b }
        [bit] |a, b, _| -> bool { a.get() == b.get() }
    }
    /// `a != b`.
    NOT_EQUAL "not_equal", Bool, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128] |a, b, _| -> bool { a != b }
        [bit] |a, b, _| -> bool { a.get() != b.get() }
    }
    /// `a < b`; complex numbers by real, then imaginary part.
    LESS "less", Bool, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64] |a, b, _| -> bool { a < b }
        [c64 c128] |a, b, _| -> bool { complex::lt(a, b) }
        [bit] |a, b, _| -> bool { !a.get() & b.get() }
    }
    /// `a <= b`; complex numbers by real, then imaginary part.
    LESS_EQUAL "less_equal", Bool, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64] |a, b, _| -> bool { a <= b }
        [c64 c128] |a, b, _| -> bool { complex::ge(b, a) }
        [bit] |a, b, _| -> bool { !a.get() | b.get() }
    }
    /// `a > b`; complex numbers by real, then imaginary part.
    GREATER "greater", Bool, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64] |a, b, _| -> bool { a > b }
        [c64 c128] |a, b, _| -> bool { complex::lt(b, a) }
        [bit] |a, b, _| -> bool { a.get() & !b.get() }
    }
    /// `a >= b`; complex numbers by real, then imaginary part.
    GREATER_EQUAL "greater_equal", Bool, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64] |a, b, _| -> bool { a >= b }
        [c64 c128] |a, b, _| -> bool { complex::ge(a, b) }
        [bit] |a, b, _| -> bool { a.get() | !b.get() }
    }
    /// Whether both are nonzero.
    LOGICAL_AND "logical_and", Bool, cost 1, params 0, heavy true, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> bool { (a != 0) & (b != 0) }
        [f32 f64] |a, b, _| -> bool { (a != 0.0) & (b != 0.0) }
        [c64 c128] |a, b, _| -> bool { complex::is_true(a) & complex::is_true(b) }
        [bit] |a, b, _| -> bool { a.get() & b.get() }
    }
    /// Whether at least one is nonzero.
    LOGICAL_OR "logical_or", Bool, cost 1, params 0, heavy true, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> bool { (a != 0) | (b != 0) }
        [f32 f64] |a, b, _| -> bool { (a != 0.0) | (b != 0.0) }
        [c64 c128] |a, b, _| -> bool { complex::is_true(a) | complex::is_true(b) }
        [bit] |a, b, _| -> bool { a.get() | b.get() }
    }
    /// Whether exactly one is nonzero.
    LOGICAL_XOR "logical_xor", Bool, cost 1, params 0, heavy true, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> bool { (a != 0) ^ (b != 0) }
        [f32 f64] |a, b, _| -> bool { (a != 0.0) ^ (b != 0.0) }
        [c64 c128] |a, b, _| -> bool { complex::is_true(a) ^ complex::is_true(b) }
        [bit] |a, b, _| -> bool { a.get() ^ b.get() }
    }
    /// Bitwise and.
    BITWISE_AND "bitwise_and", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a & b }
        [bit] |a, b, _| -> bool { a.get() & b.get() }
    }
    /// Bitwise or.
    BITWISE_OR "bitwise_or", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a | b }
        [bit] |a, b, _| -> bool { a.get() | b.get() }
    }
    /// Bitwise exclusive or.
    BITWISE_XOR "bitwise_xor", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a ^ b }
        [bit] |a, b, _| -> bool { a.get() ^ b.get() }
    }
    /// `a << b`; 0 where `b` is negative or at least the number of bits.
    LEFT_SHIFT "left_shift", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T {
            if (b as u64) < u64::from(T::BITS) { a.wrapping_shl(b as u32) } else { 0 }
        }
    }
    /// Arithmetic `a >> b`; 0 or -1, by the sign of `a`, where `b` is negative or at least the number of bits.
    RIGHT_SHIFT "right_shift", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64] |a, b, _| -> T {
            let within = (b as u64) < u64::from(T::BITS);
            a.wrapping_shr(if within { b as u32 } else { T::BITS - 1 })
        }
        [u8 u16 u32 u64] |a, b, _| -> T {
            if (b as u64) < u64::from(T::BITS) { a.wrapping_shr(b as u32) } else { 0 }
        }
    }
}

unary_rows! {
    /// Whether the element is zero.
    LOGICAL_NOT "logical_not", Bool, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> bool { x == 0 }
        [f32 f64] |x, _| -> bool { x == 0.0 }
        [c64 c128] |x, _| -> bool { !complex::is_true(x) }
        [bit] |x, _| -> bool { !x.get() }
    }
    /// Bitwise not; logical not for booleans.
    INVERT "invert", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> T { !x }
        [bit] |x, _| -> bool { !x.get() }
    }
    /// Number of one bits of the absolute value.
    BITWISE_COUNT "bitwise_count", Fixed(Elem::U8), cost 1, params 0, unary {
        [i8 i16 i32 i64] |x, _| -> u8 { x.unsigned_abs().count_ones() as u8 }
        [u8 u16 u32 u64] |x, _| -> u8 { x.count_ones() as u8 }
    }
    /// Whether the element is NaN.
    ISNAN "isnan", Bool, cost 1, params 0, unary {
        [bit i8 i16 i32 i64 u8 u16 u32 u64] |_x, _| -> bool { false }
        [f32 f64] |x, _| -> bool { x.is_nan() }
        [c64 c128] |x, _| -> bool { x.re.is_nan() | x.im.is_nan() }
    }
    /// Whether the element is infinite.
    ISINF "isinf", Bool, cost 1, params 0, unary {
        [bit i8 i16 i32 i64 u8 u16 u32 u64] |_x, _| -> bool { false }
        [f32 f64] |x, _| -> bool { x.is_infinite() }
        [c64 c128] |x, _| -> bool { x.re.is_infinite() | x.im.is_infinite() }
    }
    /// Whether the element is neither infinite nor NaN.
    ISFINITE "isfinite", Bool, cost 1, params 0, unary {
        [bit i8 i16 i32 i64 u8 u16 u32 u64] |_x, _| -> bool { true }
        [f32 f64] |x, _| -> bool { x.is_finite() }
        [c64 c128] |x, _| -> bool { x.re.is_finite() & x.im.is_finite() }
    }
    /// Whether the sign bit is set.
    SIGNBIT "signbit", Bool, cost 1, params 0, unary {
        [f32 f64] |x, _| -> bool { x.is_sign_negative() }
    }
    /// The largest integer not above `x`.
    FLOOR "floor", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> T { x }
        [f32 f64] |x, _| -> T { x.floor() }
        [bit] |x, _| -> bool { x.get() }
    }
    /// The smallest integer not below `x`.
    CEIL "ceil", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> T { x }
        [f32 f64] |x, _| -> T { x.ceil() }
        [bit] |x, _| -> bool { x.get() }
    }
    /// `x` truncated towards zero.
    TRUNC "trunc", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> T { x }
        [f32 f64] |x, _| -> T { x.trunc() }
        [bit] |x, _| -> bool { x.get() }
    }
    /// The nearest integer, ties to even.
    RINT "rint", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |x, _| -> T { x }
        [f32 f64] |x, _| -> T { x.round_ties_even() }
        [c64 c128] |x, _| -> T { T::new(x.re.round_ties_even(), x.im.round_ties_even()) }
    }
    /// `rint(x * p[0]) / p[0]` if `p[1]` is 0, else `rint(x / p[0]) * p[0]`.
    ROUND_SCALED "round_scaled", Same, cost 3, params 2, unary {
        [f32 f64] |x, p| -> T {
            let scale = p[0] as T;
            if p[1] == 0.0 { (x * scale).round_ties_even() / scale } else { (x / scale).round_ties_even() * scale }
        }
    }
}

struct Choose;

macro_rules! choose {
    ($($t:ty)*) => { $(
        impl Ternary<$t> for Choose {
            type First = bit;
            type Out = $t;
            #[inline(always)]
            fn apply<L: Level>(condition: bit, b: $t, c: $t) -> $t {
                if condition.get() { b } else { c }
            }
        }
    )* };
}
choose!(u8 u16 u32 u64 c128);

/// `b` where the condition (the first input, boolean) holds, else `c`. Defined on every element type, including f16 and bf16.
pub static WHERE: InnerLoops = InnerLoops {
    name: "where",
    outs: 1,
    ins: 3,
    out: Same,
    in_elems: [Some(<bit as Stored>::ELEM), None, None],
    params: 0,
    cost: 1,
    in_place: 0,
    get: where_row,
};

fn where_row(isa: Isa, elem: Elem) -> Option<InnerLoop> {
    Some(match elem.size() {
        1 => ternary::<u8, Choose>(isa),
        2 => ternary::<u16, Choose>(isa),
        4 => ternary::<u32, Choose>(isa),
        8 => ternary::<u64, Choose>(isa),
        _ => ternary::<c128, Choose>(isa),
    })
}
