//! Sums, differences, products.

use super::OutElem::Same;
use super::row::{binary_rows, bit, c64, c128};

binary_rows! {
    /// `a + b`; integers wrap, booleans: or.
    ADD "add", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.wrapping_add(b) }
        [f32 f64 c64 c128] |a, b, _| -> T { a + b }
        [bit] |a, b, _| -> bool { a.get() | b.get() }
    }
    /// `a - b`; integers wrap.
    SUBTRACT "subtract", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.wrapping_sub(b) }
        [f32 f64 c64 c128] |a, b, _| -> T { a - b }
    }
    /// `a * b`; integers wrap, booleans: and.
    MULTIPLY "multiply", Same, cost 1, params 0, heavy false, binary {
        [i8 i16 i32 i64 u8 u16 u32 u64] |a, b, _| -> T { a.wrapping_mul(b) }
        [f32 f64 c64 c128] |a, b, _| -> T { a * b }
        [bit] |a, b, _| -> bool { a.get() & b.get() }
    }
}
