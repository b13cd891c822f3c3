//! Generic folds with any binary operator: along the leading axis of dense rows (`ufunc.reduce`), at positions (`ufunc.at`), and with all
//! intermediate results (`ufunc.accumulate`).
//!
//! Sums, products and extrema have their own kernels in `reduce` and `scan`. The kernels here serve all other operators, for which the order of the
//! operands may matter.

use std::mem::MaybeUninit;

use super::row::{InnerLoop, InnerLoops};
use super::run_row;
use crate::cast::Cast;
use crate::elem::Elem;
use crate::isa::isa;

/// Bytes of accumulators that are folded into at once: two such tiles and a row stay in L1.
const TILE_BYTES: usize = 4 * 1024;

#[repr(C, align(64))]
struct Tile([u8; TILE_BYTES]);

/// Rows shorter than this are folded pairwise if the order does not matter: calls would cost more than elements.
const NARROW: usize = 64;

/// The operator's inner loop for a compute type.
fn row_of(rows: &'static InnerLoops, compute: Elem) -> InnerLoop {
    let Some(row) = (rows.get)(isa(), compute) else {
        panic!(
            "{} is not defined on {compute:?}: the caller checks `supports`",
            rows.name
        );
    };
    debug_assert!(
        rows.ins == 2
            && rows.outs == 1
            && rows.params == 0
            && rows.out_elem(compute).size() == compute.size(),
        "{} does not fold",
        rows.name
    );
    row
}

/// `acc[j] = op(acc[j], x[i][j])` for every row `i` in order. If `mask` is not null, elements of `x` whose mask is 0 are skipped.
///
/// # Safety
/// 1. `x` holds `rows_len` dense rows of `width` elements, `mask` (if not null) as many bytes; `acc` holds `width` elements and overlaps neither.
/// 2. The operator takes two elements of type `compute` and returns one of that type.
///
/// # Panics
/// If the operator is not defined on `compute`.
pub unsafe fn fold_rows(
    rows: &'static InnerLoops,
    compute: Elem,
    x: *const u8,
    mask: *const u8,
    rows_len: usize,
    width: usize,
    acc: *mut u8,
) {
    let row = row_of(rows, compute);
    let size = compute.size();
    let strides = [size as isize; 3];
    let mut tiles: [MaybeUninit<Tile>; 2] = [const { MaybeUninit::uninit() }; 2];
    let [a, b] = &mut tiles;
    let (mut now, mut next) = (a.as_mut_ptr().cast::<u8>(), b.as_mut_ptr().cast::<u8>());
    let step = TILE_BYTES / size;
    for first in (0..width).step_by(step) {
        let n = step.min(width - first);
        // SAFETY: 1. tiles hold `step >= n` elements. 2. columns `first..first + n` of every row lie within `x`, `mask` and `acc`.
        unsafe {
            std::ptr::copy_nonoverlapping(acc.add(first * size), now, n * size);
            for i in 0..rows_len {
                let at = i * width + first;
                let ptrs = [next, now, x.add(at * size).cast_mut()];
                row(ptrs.as_ptr(), strides.as_ptr(), n, std::ptr::null());
                if !mask.is_null() {
                    for j in 0..n {
                        if *mask.add(at + j) == 0 {
                            std::ptr::copy_nonoverlapping(
                                now.add(j * size),
                                next.add(j * size),
                                size,
                            );
                        }
                    }
                }
                std::mem::swap(&mut now, &mut next);
            }
            std::ptr::copy_nonoverlapping(now, acc.add(first * size), n * size);
        }
    }
}

/// [`fold_rows`] into the first row of `x`, in any order that is fast; overwrites the other rows.
///
/// # Safety
/// Same as for [`fold_rows`] without mask; `x` may be written and has at least one row.
///
/// # Panics
/// If the operator is not defined on `compute`.
pub unsafe fn fold_in_any_order(
    rows: &'static InnerLoops,
    compute: Elem,
    x: *mut u8,
    rows_len: usize,
    width: usize,
) {
    let size = compute.size();
    let strides = [size as isize; 3];
    let mut left = rows_len;
    // Combines the two halves: row i with row i + (left + 1) / 2.
    while left > 1 && width < NARROW {
        let upper = left.div_ceil(2);
        let n = (left - upper) * width;
        // SAFETY: both halves lie within `x`; the output is exactly the first operand, which `run_row` allows.
        unsafe {
            let ptrs = [x, x, x.add(upper * width * size)];
            run_row(rows, compute, n, &ptrs, &strides, &[]);
        }
        left = upper;
    }
    if left > 1 {
        // SAFETY: rows 1 to `left` follow the first one, which is the accumulator.
        unsafe {
            fold_rows(
                rows,
                compute,
                x.add(width * size),
                std::ptr::null(),
                left - 1,
                width,
                x,
            )
        };
    }
}

/// `y[0] = x[0]`, `y[i] = op(y[i - 1], x[i])` for rows `i`.
///
/// # Safety
/// 1. `x` and `y` are `rows_len` dense rows of `width` elements, which do not overlap.
/// 2. As for [`fold_rows`].
///
/// # Panics
/// If the operator is not defined on `compute`.
pub unsafe fn scan_rows(
    rows: &'static InnerLoops,
    compute: Elem,
    x: *const u8,
    rows_len: usize,
    width: usize,
    y: *mut u8,
) {
    if rows_len == 0 || width == 0 {
        return;
    }
    let row = row_of(rows, compute);
    let size = compute.size();
    let bytes = width * size;
    let strides = [size as isize; 3];
    // SAFETY: row `i` lies within each array; row `i` of `y` does not overlap row `i - 1`.
    unsafe {
        crate::copy::copy_row(x, y, bytes);
        for i in 1..rows_len {
            let ptrs = [
                y.add(i * bytes),
                y.add((i - 1) * bytes),
                x.add(i * bytes).cast_mut(),
            ];
            row(ptrs.as_ptr(), strides.as_ptr(), width, std::ptr::null());
        }
    }
}

/// Right operands of an operator that is applied at positions.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// The first operand, of type `compute`.
    pub ptr: *const u8,
    /// Bytes between operands; 0 if one operand serves all positions.
    pub stride: isize,
}

/// `a[p] = op(a[p], b[j])` for each position `p`, in order and once per occurrence; `a[p] = op(a[p])` without `right`.
///
/// # Safety
/// 1. `positions` holds `n` element indices that are in range of `a`; `right` holds `n` elements.
/// 2. The operator takes one or two elements of type `compute` and returns one of that type, or of a type that converts to `elem`.
///
/// # Panics
/// If the operator is not defined on `compute`.
pub unsafe fn at_positions(
    rows: &'static InnerLoops,
    compute: Elem,
    a: *mut u8,
    elem: Elem,
    positions: *const i64,
    n: usize,
    right: Option<Right>,
) {
    if elem == compute
        && let Some(right) = right
        // SAFETY: guaranteed by the caller.
        && unsafe { fold_common(rows.name, elem, a, positions, n, right) }
    {
        return;
    }
    let Some(row) = (rows.get)(isa(), compute) else {
        panic!(
            "{} is not defined on {compute:?}: the caller checks `supports`",
            rows.name
        );
    };
    let out = rows.out_elem(compute);
    let widen = (elem != compute).then(|| Cast::new(elem, compute));
    let narrow = (out != elem).then(|| Cast::new(out, elem));
    let strides = [0_isize; 3];
    // Buffers for one element of any type each: the result, and the left operand in the compute type.
    let mut elements = [[0_u64; 2]; 2];
    let [result, left] = &mut elements;
    let (result, left) = (
        result.as_mut_ptr().cast::<u8>(),
        left.as_mut_ptr().cast::<u8>(),
    );
    for j in 0..n {
        // SAFETY: 1. the position lies within `a`, `j` within `right`. 2. `result` and `left` have room for one element of any type, and an inner
        // loop of length 1 reads and writes one element.
        unsafe {
            let address = a.add(*positions.add(j) as usize * elem.size());
            let first = match widen {
                Some(cast) => {
                    cast.row(address, left, 1);
                    left
                }
                None => address,
            };
            let second = right.map_or(std::ptr::null_mut(), |r| {
                r.ptr.offset(j as isize * r.stride).cast_mut()
            });
            let ptrs = [result, first, second];
            row(ptrs.as_ptr(), strides.as_ptr(), 1, std::ptr::null());
            match narrow {
                Some(cast) => cast.row(result, address, 1),
                None => std::ptr::copy_nonoverlapping(result, address, elem.size()),
            }
        }
    }
}

/// Inlined loops for common operators on common types. Returns whether this was one of them.
///
/// # Safety
/// Same as for [`at_positions`].
unsafe fn fold_common(
    name: &str,
    elem: Elem,
    a: *mut u8,
    positions: *const i64,
    n: usize,
    right: Right,
) -> bool {
    macro_rules! by_type {
        ($($elem:ident $t:ty: $add:expr, $sub:expr, $mul:expr, $max:expr, $min:expr;)*) => {
            match (elem, name) {
                $(
                // SAFETY: guaranteed by the caller; `$t` is what `elem` stores.
                (Elem::$elem, "add") => unsafe { each::<$t>(a, positions, n, right, $add) },
                // SAFETY: guaranteed by the caller; `$t` is what `elem` stores.
                (Elem::$elem, "subtract") => unsafe { each::<$t>(a, positions, n, right, $sub) },
                // SAFETY: guaranteed by the caller; `$t` is what `elem` stores.
                (Elem::$elem, "multiply") => unsafe { each::<$t>(a, positions, n, right, $mul) },
                // SAFETY: guaranteed by the caller; `$t` is what `elem` stores.
                (Elem::$elem, "maximum") => unsafe { each::<$t>(a, positions, n, right, $max) },
                // SAFETY: guaranteed by the caller; `$t` is what `elem` stores.
                (Elem::$elem, "minimum") => unsafe { each::<$t>(a, positions, n, right, $min) },
                )*
                _ => return false,
            }
        };
    }
    by_type! {
        F32 f32: |a, b| a + b, |a, b| a - b, |a, b| a * b,
            |a, b| if (a >= b) | a.is_nan() { a } else { b }, |a, b| if (a <= b) | a.is_nan() { a } else { b };
        F64 f64: |a, b| a + b, |a, b| a - b, |a, b| a * b,
            |a, b| if (a >= b) | a.is_nan() { a } else { b }, |a, b| if (a <= b) | a.is_nan() { a } else { b };
        I32 i32: i32::wrapping_add, i32::wrapping_sub, i32::wrapping_mul, i32::max, i32::min;
        I64 i64: i64::wrapping_add, i64::wrapping_sub, i64::wrapping_mul, i64::max, i64::min;
    }
    true
}

/// # Safety
/// Same as for [`at_positions`]; the elements are of type `T`.
#[inline(always)]
unsafe fn each<T: Copy>(
    a: *mut u8,
    positions: *const i64,
    n: usize,
    right: Right,
    apply: impl Fn(T, T) -> T,
) {
    let a = a.cast::<T>();
    for j in 0..n {
        // SAFETY: the position lies within `a`, `j` within `right`.
        unsafe {
            let address = a.add(*positions.add(j) as usize);
            *address = apply(
                *address,
                *right.ptr.offset(j as isize * right.stride).cast::<T>(),
            );
        }
    }
}
