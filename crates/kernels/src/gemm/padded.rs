//! Products whose wide operand has rows a power of two apart. The micro-kernels read 48 of its rows side by side; rows 1 or 2 KiB apart share a
//! few sets of the cache and push each other out before a line is used up. They are copied first, to rows that are a little longer.

use std::cell::RefCell;

use super::{GemmFloat, Tile};

/// Rows this many bytes apart, or a multiple of it, share sets.
const PERIOD_BYTES: usize = 1024;
/// Rows that are read side by side, at most.
const ROWS: usize = 48;
/// Products with more rows of the other operand use each copied row so often that the copy no longer pays.
const MAX_USES: usize = 256;
/// Memory that a thread keeps for copies.
const MAX_BYTES: usize = 1 << 20;

thread_local! {
    static COPY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether `rows` rows of `len` elements, `stride` elements apart and used `uses` times each, are to be copied.
fn pays<T>(rows: usize, len: usize, (step, stride): (isize, isize), uses: usize) -> bool {
    let bytes = stride.unsigned_abs() * size_of::<T>();
    step == 1
        && stride > 0
        && bytes.is_multiple_of(PERIOD_BYTES)
        && (8..=MAX_USES).contains(&uses)
        && rows >= ROWS / 2
        && len * size_of::<T>() >= PERIOD_BYTES
        && (len + 64) * ROWS * size_of::<T>() <= MAX_BYTES
}

/// Computes the product part by part from copied rows, if that pays, by `multiply`; else says no.
///
/// # Safety
/// As `dense`'s.
pub(super) unsafe fn multiply<T: GemmFloat>(t: &Tile<T>, multiply: unsafe fn(&Tile<T>)) -> bool {
    let (rows_of_b, rows_of_a) = (t.c_strides.1 == 1, t.c_strides.0 == 1);
    let of_b = rows_of_b && pays::<T>(t.n, t.k, t.b_strides, t.m);
    let of_a = !rows_of_b && rows_of_a && pays::<T>(t.m, t.k, (t.a_strides.1, t.a_strides.0), t.n);
    if !of_a && !of_b {
        return false;
    }
    // A line more than a row: neighbours begin in the next set.
    let stride = t.k.next_multiple_of(64 / size_of::<T>()) + 64 / size_of::<T>();
    let (rows, from, apart) = match of_b {
        true => (t.n, t.b, t.b_strides.1),
        false => (t.m, t.a, t.a_strides.0),
    };
    let part = (MAX_BYTES / (stride * size_of::<T>()) / ROWS * ROWS).min(rows);
    COPY.with(|copy| {
        let Ok(mut copy) = copy.try_borrow_mut() else {
            return false;
        };
        let needed = part * stride * size_of::<T>() + align_of::<T>();
        let missing = needed.saturating_sub(copy.len());
        if copy.try_reserve_exact(missing).is_err() {
            return false;
        }
        let len = needed.max(copy.len());
        copy.resize(len, 0);
        let start = copy.as_ptr().align_offset(align_of::<T>());
        let to = copy.as_mut_ptr().wrapping_add(start).cast::<T>();
        for first in (0..rows).step_by(part) {
            let count = part.min(rows - first);
            // SAFETY: 1. rows `first..first + count` are the operand's, and their copies are in the memory. 2. the part's rows or columns of C are
            // those of the same numbers.
            unsafe {
                for row in 0..count {
                    let from = from.offset((first + row) as isize * apart);
                    std::ptr::copy_nonoverlapping(from, to.add(row * stride), t.k);
                }
                let stride = stride as isize;
                multiply(&match of_b {
                    true => Tile {
                        n: count,
                        b: to.cast_const(),
                        b_strides: (1, stride),
                        c: t.c.offset(first as isize * t.c_strides.1),
                        ..*t
                    },
                    false => Tile {
                        m: count,
                        a: to.cast_const(),
                        a_strides: (stride, 1),
                        c: t.c.offset(first as isize * t.c_strides.0),
                        ..*t
                    },
                });
            }
        }
        true
    })
}
