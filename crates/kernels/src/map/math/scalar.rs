//! hypot and the remainder of division. Large quotients use the slow exact algorithm.

use super::Float;
use crate::map::row::Level;

/// Error below 1.5 ulp; no intermediate overflow or underflow.
#[inline(always)]
pub(super) fn hypot<L: Level>(a: f64, b: f64) -> f64 {
    let (a, b) = (a.abs(), b.abs());
    let big = if a > b { a } else { b };
    let small = if a > b { b } else { a };
    // Powers of two that keep the squares far from overflow and underflow.
    let scale = if big > 1e150 {
        f64::from_bits((1023 - 600) << 52)
    } else if big < 1e-150 {
        f64::from_bits((1023 + 600) << 52)
    } else {
        1.0
    };
    let (x, y) = (big * scale, small * scale);
    let root = x.mul_sum::<L>(x, y * y).sqrt() / scale;
    if (a == f64::INFINITY) | (b == f64::INFINITY) {
        f64::INFINITY
    } else if a.is_nan() | b.is_nan() {
        f64::NAN
    } else {
        root
    }
}

/// C's remainder, exact.
#[inline(always)]
pub(super) fn fmod<L: Level>(a: f64, b: f64) -> f64 {
    if L::FMA && is_fused_fmod_exact(a, b) {
        fused_fmod(a, b)
    } else {
        a % b
    }
}

/// Whether [`fused_fmod`] is exact: the quotient has at most 52 bits, and the products with `b` are normal numbers.
#[inline(always)]
pub(super) fn is_fused_fmod_exact(a: f64, b: f64) -> bool {
    ((a / b).abs() < 4_503_599_627_370_496.0) & (b.abs() < 1e300) & (b.abs() > 1e-290)
}

/// C's remainder of operands that satisfy [`is_fused_fmod_exact`]. The fused `a - q b` is exact, or off by exactly one `b`.
#[inline(always)]
pub(super) fn fused_fmod(a: f64, b: f64) -> f64 {
    let r = (-(a / b).trunc()).mul_add(b, a);
    let r = if (r != 0.0) & ((r < 0.0) != (a < 0.0)) {
        r + b.copysign(a)
    } else {
        r
    };
    r.copysign(a)
}

macro_rules! divmod {
    ($name:ident, $floored:ident, $t:ty) => {
        /// Floor quotient and the remainder with `b`'s sign, as Python and NumPy define them for floats.
        #[inline(always)]
        pub(super) fn $name<L: Level>(a: $t, b: $t) -> ($t, $t) {
            if b == 0.0 {
                return (a / b, <$t>::NAN);
            }
            $floored(a, b, <$t as Float>::fmod::<L>(a, b))
        }

        /// The same from C's remainder `r`; `b` is not 0.
        #[inline(always)]
        pub(super) fn $floored(a: $t, b: $t, r: $t) -> ($t, $t) {
            let q = (a - r) / b;
            let (q, r) = if r == 0.0 {
                (q, (0.0 as $t).copysign(b))
            } else if (b < 0.0) != (r < 0.0) {
                (q - 1.0, r + b)
            } else {
                (q, r)
            };
            // q is an integer except for rounding.
            let floor = q.floor();
            let floor = if q - floor > 0.5 { floor + 1.0 } else { floor };
            (
                if q == 0.0 {
                    (0.0 as $t).copysign(a / b)
                } else {
                    floor
                },
                r,
            )
        }
    };
}
divmod!(divmod64, floored64, f64);
divmod!(divmod32, floored32, f32);
