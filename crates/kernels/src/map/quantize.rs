//! Rounding of scaled floats to 8-bit integers.

use super::OutElem::Fixed;
use super::row::binary_rows;
use crate::elem::Elem;

binary_rows! {
    /// `x * factor` rounded to the nearest integer, ties to even, from -127 to 127; NaN becomes -127.
    QUANTIZE_I8 "quantize_int8", Fixed(Elem::I8), cost 1, params 0, heavy false, binary {
        [f32 f64] |x, factor, _| -> i8 { within(x * factor, -127.0, 127.0).round_ties_even() as i32 as i8 }
    }
    /// `x * factor` rounded to the nearest integer, ties to even, from 0 to 255; NaN becomes 0.
    QUANTIZE_U8 "quantize_uint8", Fixed(Elem::U8), cost 1, params 0, heavy false, binary {
        [f32 f64] |x, factor, _| -> u8 { within(x * factor, 0.0, 255.0).round_ties_even() as i32 as u8 }
    }
}

/// `x` within the bounds; NaN becomes the lower one.
#[inline(always)]
fn within<T: PartialOrd>(x: T, low: T, high: T) -> T {
    let x = if x > low { x } else { low };
    if x < high { x } else { high }
}
