//! Products of a sparse matrix with a vector.

use super::pattern::{OutOfRange, Pattern};
use super::value::Value;

/// Sums that a row has side by side: element k of a row belongs to sum `k % LANES`, on every instruction set.
pub(super) const LANES: usize = 16;
/// Stored elements whose products are held at once, in the first-level cache; a multiple of `LANES`.
const BLOCK: usize = 4096;

/// A product of the rows from `start` on, one for each element of `out`, with the vector `x`, compiled for the instruction set in force.
pub(super) fn vector_rows<T: Value>(
    pattern: &Pattern,
    start: usize,
    data: &[T],
    x: &[T],
    out: &mut [T],
    found: &OutOfRange,
) {
    let rows = Rows {
        pattern,
        start,
        data,
        x,
        found,
    };
    match crate::isa::isa() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa()` found the features.
        crate::isa::Isa::Avx512 => unsafe { avx512(&rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa()` found the features.
        crate::isa::Isa::Avx2 => unsafe { avx2(&rows, out) },
        _ => body(&rows, out, &add_first),
    }
}

struct Rows<'a, T> {
    pattern: &'a Pattern<'a>,
    start: usize,
    data: &'a [T],
    x: &'a [T],
    found: &'a OutOfRange,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe")]
fn avx2<T: Value>(rows: &Rows<T>, out: &mut [T]) {
    body(rows, out, &add_first);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
)]
fn avx512<T: Value>(rows: &Rows<T>, out: &mut [T]) {
    body(rows, out, &|lanes, part, n| {
        // SAFETY: the features of this function.
        unsafe { T::add_first_avx512(lanes, part, n) }
    });
}

/// Products are computed for a block of stored elements, whose rows do not matter, and then summed row by row: rows of other lengths than the one
/// before mispredict no branch.
#[inline(always)]
fn body<T: Value>(
    rows: &Rows<T>,
    out: &mut [T],
    add: &impl Fn(&mut [T; LANES], &[T; LANES], usize),
) {
    let (pattern, start) = (rows.pattern, rows.start);
    // The last row may read `LANES` elements behind its products, which `add` leaves out.
    let mut products = [T::ZERO; BLOCK + LANES];
    let end = pattern.row(start + out.len() - 1).end;
    let mut held = 0..0;
    for (r, y) in out.iter_mut().enumerate() {
        let row = pattern.row(start + r);
        let mut lanes = [T::ZERO; LANES];
        let mut k = row.start;
        while k < row.end {
            // A row that does not end in the block begins one, so its sum does not depend on the rows before it.
            if row.end > held.end {
                held = k..end.min(k + BLOCK);
                let (data, indices) = (&rows.data[held.clone()], &pattern.indices[held.clone()]);
                if !multiply(
                    data,
                    indices,
                    rows.x,
                    &mut products[..held.len()],
                    rows.found,
                ) {
                    return;
                }
            }
            let stop = row.end.min(held.end);
            let parts = products[k - held.start..].as_chunks::<LANES>().0;
            let mut left = stop - k;
            for part in &parts[..left.div_ceil(LANES)] {
                add(&mut lanes, part, left.min(LANES));
                left = left.saturating_sub(LANES);
            }
            k = stop;
        }
        *y = total(lanes);
    }
}

/// `out[k] = data[k] * x[indices[k]]`, and whether all indices are in range.
#[inline(always)]
fn multiply<T: Value>(
    data: &[T],
    indices: &[i64],
    x: &[T],
    out: &mut [T],
    found: &OutOfRange,
) -> bool {
    let Some(last) = x.len().checked_sub(1) else {
        return found.are_in_range(indices);
    };
    let n = out.len();
    let (data, indices) = (&data[..n], &indices[..n]);
    // As unsigned numbers negative indices are large. No branch for each element: the loop is vectorised.
    let mut largest = 0;
    for k in 0..n {
        let j = indices[k] as u64;
        largest = j.max(largest);
        // SAFETY: at most the last element's position.
        out[k] = data[k].times(unsafe { *x.get_unchecked(j.min(last as u64) as usize) });
    }
    largest <= last as u64 || found.check(largest as i64).is_some()
}

/// `lanes[l] += part[l]` for the first `n` elements.
#[inline(always)]
pub(super) fn add_first<T: Value>(lanes: &mut [T; LANES], part: &[T; LANES], n: usize) {
    for l in 0..LANES {
        lanes[l] = lanes[l].plus(if l < n { part[l] } else { T::ZERO });
    }
}

/// The sum of the lanes, as a tree.
#[inline(always)]
fn total<T: Value>(mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] = lanes[l].plus(lanes[l + half]);
        }
        half /= 2;
    }
    lanes[0]
}
