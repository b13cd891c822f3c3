//! Products of a sparse matrix with a dense one, and products of dense rows at stored positions.

use super::pattern::{Fault, OutOfRange, Pattern};
use super::value::{Operand, Value, output, per_isa_value, with_value};
use super::vector::vector_rows;
use crate::real::Shared;
use crate::{Elem, Threads, prefetch};

/// Partition of the rows of features: `heads` parts of `width` elements. A stored element has one value per head.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Number of parts.
    pub heads: usize,
    /// Elements of a part.
    pub width: usize,
}

impl Heads {
    fn len(self) -> usize {
        self.heads * self.width
    }
}

/// Elements of a row that are summed in registers.
const TILE: usize = 32;
/// Prefetch distance, in stored elements.
const AHEAD: usize = 8;

/// `out[i, h] = sum of data[k, h] * x[indices[k], h]` over the stored elements k of row i. Rows of `x` and `out` have `cut.heads * cut.width`
/// elements.
///
/// # Errors
/// An index that is not a row of `x`.
///
/// # Safety
/// `data` holds `cut.heads` elements of `elem` for each stored one; `x` holds whole rows; `out` has room for a row per row of the pattern. `elem` is
/// one of the types that sparse kernels compute in.
pub unsafe fn matmul_dense(
    threads: &dyn Threads,
    elem: Elem,
    pattern: &Pattern,
    cut: Heads,
    data: Operand,
    x: Operand,
    out: *mut u8,
) -> Result<(), Fault> {
    let len = cut.len();
    if len == 0 {
        return Ok(());
    }
    let found = OutOfRange::below(x.len / len);
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let (data, x) = unsafe { (data.as_slice::<T>(), x.as_slice::<T>()) };
        assert_eq!(data.len(), pattern.indices.len() * cut.heads);
        let to = Shared(out.cast::<T>());
        pattern.for_rows(threads, len, &|rows| {
            let (start, count) = (rows.start, rows.len());
            // SAFETY: runs of rows are disjoint.
            let out = unsafe { std::slice::from_raw_parts_mut(to.at(start * len), count * len) };
            if len == 1 {
                vector_rows::<T>(pattern, start, data, x, out, &found);
            } else {
                matrix_rows::<T>(pattern, start, cut, data, x, out, &found);
            }
        });
    });
    found.result()
}

per_isa_value! {
    /// A product with rows of features.
    fn matrix_rows<T>(pattern: &Pattern, start: usize, cut: Heads, data: &[T], x: &[T], out: &mut [T], found: &OutOfRange) = matrix_body
}

#[inline(always)]
fn matrix_body<T: Value>(
    pattern: &Pattern,
    start: usize,
    cut: Heads,
    data: &[T],
    x: &[T],
    out: &mut [T],
    found: &OutOfRange,
) {
    let len = cut.len();
    for (r, y) in out.chunks_exact_mut(len).enumerate() {
        let range = pattern.row(start + r);
        // Other code may write to the offsets meanwhile.
        if range.end > pattern.indices.len() {
            found.check(-1);
            return;
        }
        for h in 0..cut.heads {
            let mut first = h * cut.width;
            let end = first + cut.width;
            while first + TILE <= end {
                let mut lanes = [T::ZERO; TILE];
                for k in range.clone() {
                    ahead(pattern, k, x, len, first);
                    let Some(j) = found.check(pattern.indices[k]) else {
                        continue;
                    };
                    let a = data[k * cut.heads + h];
                    let from = &x[j * len + first..][..TILE];
                    for l in 0..TILE {
                        lanes[l] = lanes[l].plus(a.times(from[l]));
                    }
                }
                y[first..first + TILE].copy_from_slice(&lanes);
                first += TILE;
            }
            let rest = &mut y[first..end];
            if rest.is_empty() {
                continue;
            }
            rest.fill(T::ZERO);
            for k in range.clone() {
                ahead(pattern, k, x, len, first);
                let Some(j) = found.check(pattern.indices[k]) else {
                    continue;
                };
                let a = data[k * cut.heads + h];
                for (y, &x) in rest.iter_mut().zip(&x[j * len + first..]) {
                    *y = y.plus(a.times(x));
                }
            }
        }
    }
}

/// Prefetches a row, because the rows of a sparse product may be anywhere in memory.
#[inline(always)]
fn ahead<T>(pattern: &Pattern, k: usize, x: &[T], len: usize, first: usize) {
    if let Some(&j) = pattern.indices.get(k + AHEAD) {
        let at = x
            .as_ptr()
            .wrapping_add((j as usize).wrapping_mul(len) + first);
        prefetch::line(at);
        prefetch::line(at.wrapping_byte_add(64));
    }
}

/// Sampled product: `out[k, h] = sum of x[i, h] * y[indices[k], h]` for the stored elements k of each row i.
///
/// # Errors
/// An index that is not a row of `y`.
///
/// # Safety
/// `x` holds a row of `cut.heads * cut.width` elements of `elem` for each row of the pattern; `y` holds whole rows; `out` has room for `cut.heads`
/// elements per stored one. `elem` is one of the types that sparse kernels compute in.
pub unsafe fn sampled_dense(
    threads: &dyn Threads,
    elem: Elem,
    pattern: &Pattern,
    cut: Heads,
    x: Operand,
    y: Operand,
    out: *mut u8,
) -> Result<(), Fault> {
    let len = cut.len();
    let stored = pattern.indices.len() * cut.heads;
    with_value!(elem, T => {
        if len == 0 {
            // SAFETY: guaranteed by the caller: `stored` elements.
            unsafe { output::<T>(out, stored) }.fill(T::ZERO);
            return Ok(());
        }
        let found = OutOfRange::below(y.len / len);
        // SAFETY: guaranteed by the caller.
        let (x, y) = unsafe { (x.as_slice::<T>(), y.as_slice::<T>()) };
        assert_eq!(x.len(), pattern.num_rows() * len);
        let to = Shared(out.cast::<T>());
        pattern.for_rows(threads, len, &|rows| {
            let (first, end) = (pattern.row(rows.start).start, pattern.row(rows.end - 1).end);
            // SAFETY: the stored elements of different runs of rows are disjoint.
            let out = unsafe {
                std::slice::from_raw_parts_mut(to.at(first * cut.heads), (end - first) * cut.heads)
            };
            sampled_rows::<T>(pattern, rows, cut, x, y, out, &found);
        });
        found.result()
    })
}

per_isa_value! {
    /// The sampled product for some rows.
    fn sampled_rows<T>(pattern: &Pattern, rows: std::ops::Range<usize>, cut: Heads, x: &[T], y: &[T], out: &mut [T], found: &OutOfRange) = sampled_body
}

#[inline(always)]
fn sampled_body<T: Value>(
    pattern: &Pattern,
    rows: std::ops::Range<usize>,
    cut: Heads,
    x: &[T],
    y: &[T],
    out: &mut [T],
    found: &OutOfRange,
) {
    const LANES: usize = 16;
    let len = cut.len();
    let mut out = out.chunks_exact_mut(cut.heads);
    for i in rows {
        let x = &x[i * len..][..len];
        for k in pattern.row(i) {
            ahead(pattern, k, y, len, 0);
            let Some(to) = out.next() else { return };
            let Some(j) = found.check(pattern.indices[k]) else {
                continue;
            };
            let y = &y[j * len..][..len];
            let parts = x.chunks_exact(cut.width).zip(y.chunks_exact(cut.width));
            for (to, (x, y)) in to.iter_mut().zip(parts) {
                let (xs, x_rest) = x.as_chunks::<LANES>();
                let (ys, y_rest) = y.as_chunks::<LANES>();
                let mut lanes = [T::ZERO; LANES];
                for (x, y) in xs.iter().zip(ys) {
                    for l in 0..LANES {
                        lanes[l] = lanes[l].plus(x[l].times(y[l]));
                    }
                }
                let mut step = LANES / 2;
                while step > 0 {
                    for l in 0..step {
                        lanes[l] = lanes[l].plus(lanes[l + step]);
                    }
                    step /= 2;
                }
                let rest = x_rest.iter().zip(y_rest);
                *to = rest.fold(lanes[0], |sum, (&x, &y)| sum.plus(x.times(y)));
            }
        }
    }
}
