//! Products with an operand whose rows are a power of two apart. The micro-kernels read 48 rows together. Rows that are 1 or 2 KiB apart map to the
//! same few cache sets and evict each other before a line is used up. So the rows are first copied to a buffer with a padded row stride.

use std::cell::RefCell;

use super::{GemmFloat, Tile};

/// Rows whose distance is a multiple of this many bytes share cache sets.
const PERIOD_BYTES: usize = 1024;
/// Largest number of rows that are read together.
const ROWS: usize = 48;
/// Largest number of uses of each copied row for which copying pays.
const MAX_USES: usize = 256;
/// Largest buffer for copies that a thread keeps.
const MAX_BYTES: usize = 1 << 20;

thread_local! {
    static COPY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether copying pays for `rows` rows of `len` elements, `stride` elements apart and used `uses` times each.
fn is_worthwhile<T>(rows: usize, len: usize, (step, stride): (isize, isize), uses: usize) -> bool {
    let bytes = stride.unsigned_abs() * size_of::<T>();
    step == 1
        && stride > 0
        && bytes.is_multiple_of(PERIOD_BYTES)
        && (8..=MAX_USES).contains(&uses)
        && rows >= ROWS / 2
        && len * size_of::<T>() >= PERIOD_BYTES
        && (len + 64) * ROWS * size_of::<T>() <= MAX_BYTES
}

/// If copying pays, computes the product part by part from copied rows with `multiply`. Returns whether it did.
///
/// # Safety
/// Same as for `dense`.
pub(super) unsafe fn multiply<T: GemmFloat>(t: &Tile<T>, multiply: unsafe fn(&Tile<T>)) -> bool {
    let (rows_of_b, rows_of_a) = (t.c_strides.1 == 1, t.c_strides.0 == 1);
    let of_b = rows_of_b && is_worthwhile::<T>(t.n, t.k, t.b_strides, t.m);
    let of_a = !rows_of_b
        && rows_of_a
        && is_worthwhile::<T>(t.m, t.k, (t.a_strides.1, t.a_strides.0), t.n);
    if !of_a && !of_b {
        return false;
    }
    // One cache line more than a row, so that consecutive rows begin in consecutive sets.
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
            // SAFETY: rows `first..first + count` belong to the operand and their copies are in the buffer; the part of C has the rows or columns of
            // the same indices.
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
