//! Trigonometric and hyperbolic functions, their inverses, and angle conversions.

use super::OutElem::{Real, Same};
use super::complex;
use super::math::Float;
use super::row::{
    InnerLoops, Level, Params, Stored, Unary, binary_rows, c64, c128, unary, unary_rows,
};
use crate::Elem;
use crate::isa::Isa;
use crate::map::InnerLoop;

/// Hyperbolic tangent.
pub static TANH: InnerLoops = InnerLoops {
    get: |isa, elem| match (isa, elem) {
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, Elem::F32) => Some(super::tanh::row),
        _ => (TANH_WITHOUT_TABLE.get)(isa, elem),
    },
    ..TANH_WITHOUT_TABLE
};

/// sin, cos and tan: a vector loop for moderate arguments, and exact range reduction for large ones.
macro_rules! circular {
    ($($(#[$doc:meta])* $name:ident $text:literal, $op:ident, $get:ident, $near:ident, $far:ident, $complex:path;)*) => { $(
        struct $op;
        circular!(@float $op $near $far f32 f64);
        circular!(@complex $op $complex, c64 c128);

        fn $get(isa: Isa, elem: Elem) -> Option<InnerLoop> {
            circular!(@get $op isa elem f32 f64 c64 c128);
            None
        }

        $(#[$doc])*
        pub static $name: InnerLoops = InnerLoops {
            name: $text, outs: 1, ins: 1, out: Same, in_elems: [None; 3], params: 0, cost: 5, in_place: 0, get: $get,
        };
    )* };
    (@float $op:ident $near:ident $far:ident $($t:ty)*) => { $(
        impl Unary<$t> for $op {
            type Out = $t;
            const PARAMS: usize = 0;
            const HAS_CORRECTION: bool = true;
            #[inline(always)]
            fn apply<L: Level>(x: $t, _: Params) -> $t {
                Float::$near::<L>(x)
            }
            #[inline(always)]
            fn needs_correction(x: $t) -> bool {
                x.is_far()
            }
            fn correct(x: $t, _: $t) -> $t {
                x.$far()
            }
        }
    )* };
    (@complex $op:ident $function:path, $($t:ty)*) => { $(
        impl Unary<$t> for $op {
            type Out = $t;
            const PARAMS: usize = 0;
            fn apply<L: Level>(x: $t, _: Params) -> $t {
                complex::through(x, $function)
            }
        }
    )* };
    (@get $op:ident $isa:ident $elem:ident $($t:ty)*) => { $(
        if $elem == <$t as Stored>::ELEM {
            return Some(unary::<$t, $op>($isa));
        }
    )* };
}
circular! {
    /// Sine; the argument is in radians.
    SIN "sin", Sin, sin_row, sin, sin_far, complex::sin;
    /// Cosine; the argument is in radians.
    COS "cos", Cos, cos_row, cos, cos_far, complex::cos;
    /// Tangent; the argument is in radians.
    TAN "tan", Tan, tan_row, tan, tan_far, complex::tan;
}

unary_rows! {
    /// Inverse sine, in [-pi/2, pi/2].
    ARCSIN "arcsin", Same, cost 8, params 0, unary {
        [f32 f64] |x, _| -> T { Float::asin::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::asin) }
    }
    /// Inverse cosine, in [0, pi].
    ARCCOS "arccos", Same, cost 8, params 0, unary {
        [f32 f64] |x, _| -> T { Float::acos::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::acos) }
    }
    /// Inverse tangent, in [-pi/2, pi/2].
    ARCTAN "arctan", Same, cost 8, params 0, unary {
        [f32 f64] |x, _| -> T { Float::atan::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::atan) }
    }
    /// Hyperbolic sine.
    SINH "sinh", Same, cost 8, params 0, unary {
        [f32 f64] |x, _| -> T { Float::sinh::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::sinh) }
    }
    /// Hyperbolic cosine.
    COSH "cosh", Same, cost 8, params 0, unary {
        [f32 f64] |x, _| -> T { Float::cosh::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::cosh) }
    }
    /// [`TANH`] without the AVX-512 table for f32.
    TANH_WITHOUT_TABLE "tanh", Same, cost 4, params 0, unary {
        [f32 f64] |x, _| -> T { Float::tanh::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::tanh) }
    }
    /// Inverse hyperbolic sine.
    ARCSINH "arcsinh", Same, cost 12, params 0, unary {
        [f32 f64] |x, _| -> T { Float::asinh::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::asinh) }
    }
    /// Inverse hyperbolic cosine; NaN below 1.
    ARCCOSH "arccosh", Same, cost 12, params 0, unary {
        [f32 f64] |x, _| -> T { Float::acosh::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::acosh) }
    }
    /// Inverse hyperbolic tangent.
    ARCTANH "arctanh", Same, cost 12, params 0, unary {
        [f32 f64] |x, _| -> T { Float::atanh::<L>(x) }
        [c64 c128] |x, _| -> T { complex::through(x, complex::atanh) }
    }
    /// Degrees to radians.
    DEG2RAD "deg2rad", Same, cost 1, params 0, unary {
        [f32] |x, _| -> T { x * (std::f64::consts::PI / 180.0) as f32 }
        [f64] |x, _| -> T { x * (std::f64::consts::PI / 180.0) }
    }
    /// Radians to degrees.
    RAD2DEG "rad2deg", Same, cost 1, params 0, unary {
        [f32] |x, _| -> T { x * (180.0 / std::f64::consts::PI) as f32 }
        [f64] |x, _| -> T { x * (180.0 / std::f64::consts::PI) }
    }
    /// Angle of a complex number in radians; for real numbers 0, or pi below zero.
    ANGLE "angle", Real, cost 8, params 0, unary {
        [f32 f64] |x, _| -> T { Float::atan2::<L>(0.0, x) }
        [c64] |x, _| -> f32 { Float::atan2::<L>(x.im, x.re) }
        [c128] |x, _| -> f64 { Float::atan2::<L>(x.im, x.re) }
    }
}

binary_rows! {
    /// Angle of the point (`b`, `a`) in radians.
    ARCTAN2 "arctan2", Same, cost 10, params 0, heavy true, binary {
        [f32 f64] |a, b, _| -> T { Float::atan2::<L>(a, b) }
    }
}
