//! Products of a sparse matrix with a vector.

use std::ops::Range;

use super::pattern::{OutOfRange, Pattern};
use super::value::Value;
use crate::prefetch;

/// Partial sums of a row: element k of a row is added to sum `k % LANES`, on every instruction set.
const LANES: usize = 16;
/// Stored elements per block; their products fit in the first-level cache. A multiple of `LANES`, so that parts of a long row begin with lane 0.
const BLOCK: usize = 4096;

/// Elements whose indices and values are prefetched at once.
const PREFETCHED: usize = 64;

/// Rows whose offsets are copied at once.
const BLOCK_ROWS: usize = 512;

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
        _ => body(&rows, out, &sum_rows),
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
    body(rows, out, &sum_rows);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
)]
fn avx512<T: Value>(rows: &Rows<T>, out: &mut [T]) {
    body(rows, out, &|offsets, products, out| {
        // SAFETY: the features of this function.
        unsafe { T::sum_rows_avx512(offsets, products, out) }
    });
}

/// Computes the products of the stored elements of some rows, which fit a block, and then sums them row by row with `sum`. Only the second loop
/// branches on the lengths of rows, which processors cannot predict.
#[inline(always)]
fn body<T: Value>(rows: &Rows<T>, out: &mut [T], sum: &impl Fn(&[i64], &[T], &mut [T])) {
    let offsets = &rows.pattern.offsets()[rows.start..=rows.start + out.len()];
    // `sum` may read `LANES` elements after the products of a row; their values have no effect.
    let mut products = [T::ZERO; BLOCK + LANES];
    // Other code may write to the offsets meanwhile: this copy is checked and used.
    let mut copied = [0; BLOCK_ROWS + 1];
    let mut r = 0;
    while r < out.len() {
        let most = BLOCK_ROWS.min(out.len() - r);
        copied[..=most].copy_from_slice(&offsets[r..=r + most]);
        let bounds = &copied[..=most];
        let mut fit = bounds[0] >= 0 && bounds[most] as usize <= rows.data.len();
        for k in 0..most {
            fit &= bounds[k] <= bounds[k + 1];
        }
        if !fit {
            rows.found.check(-1);
            return;
        }
        let first = bounds[0] as usize;
        let fits = |&end: &i64| end as usize - first <= BLOCK;
        let num_rows = bounds[1..].partition_point(fits);
        if num_rows == 0 {
            match long_row(rows, first..bounds[1] as usize, &mut products) {
                Some(found) => out[r] = found,
                None => return,
            }
            r += 1;
            continue;
        }
        let block = first..bounds[num_rows] as usize;
        let len = block.len();
        if !rows.multiply(block, &mut products[..len]) {
            return;
        }
        let bounds = &bounds[..=num_rows];
        sum(bounds, &products[..len + LANES], &mut out[r..r + num_rows]);
        r += num_rows;
    }
}

/// The sum of a row that does not fit a block; `None` if an index is out of range.
#[inline(always)]
fn long_row<T: Value>(
    rows: &Rows<T>,
    row: Range<usize>,
    products: &mut [T; BLOCK + LANES],
) -> Option<T> {
    let mut lanes = [T::ZERO; LANES];
    for start in row.clone().step_by(BLOCK) {
        let block = start..row.end.min(start + BLOCK);
        let len = block.len();
        if !rows.multiply(block, &mut products[..len]) {
            return None;
        }
        add(&mut lanes, products, len);
    }
    Some(total(lanes))
}

impl<T: Value> Rows<'_, T> {
    /// Products of the stored elements of `block`; false if an index is out of range.
    #[inline(always)]
    fn multiply(&self, block: Range<usize>, out: &mut [T]) -> bool {
        let (data, indices) = (&self.data[block.clone()], &self.pattern.indices[block]);
        multiply(data, indices, self.x, out, self.found)
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
    // As unsigned numbers negative indices are large. The inner loop has no branch for each element.
    let mut largest = 0;
    let parts = data.chunks(PREFETCHED).zip(indices.chunks(PREFETCHED));
    for ((data, indices), out) in parts.zip(out.chunks_mut(PREFETCHED)) {
        prefetch::stream(data);
        prefetch::stream(indices);
        let n = out.len();
        let (data, indices) = (&data[..n], &indices[..n]);
        for k in 0..n {
            let j = indices[k] as u64;
            largest = j.max(largest);
            // SAFETY: at most the last element's position.
            out[k] = data[k].times(unsafe { *x.get_unchecked(j.min(last as u64) as usize) });
        }
    }
    largest <= last as u64 || found.check(largest as i64).is_some()
}

/// Sum `r` of the products of row `r`, which begin at `offsets[r] - offsets[0]`. `LANES` elements follow the last product.
#[inline(always)]
pub(super) fn sum_rows<T: Value>(offsets: &[i64], products: &[T], out: &mut [T]) {
    for (bounds, y) in offsets.windows(2).zip(out) {
        let mut lanes = [T::ZERO; LANES];
        let row = &products[(bounds[0] - offsets[0]) as usize..];
        add(&mut lanes, row, (bounds[1] - bounds[0]) as usize);
        *y = total(lanes);
    }
}

/// Adds element k of the first `len` products to lane `k % LANES`. `LANES` elements follow them.
#[inline(always)]
fn add<T: Value>(lanes: &mut [T; LANES], products: &[T], len: usize) {
    let mut left = len;
    for part in &products.as_chunks::<LANES>().0[..len.div_ceil(LANES)] {
        // Selects per lane instead of looping over the row's own length.
        for l in 0..LANES {
            lanes[l] = lanes[l].plus(if l < left { part[l] } else { T::ZERO });
        }
        left = left.saturating_sub(LANES);
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

/// [`sum_rows`] with registers of 16 floats and masked loads, in the same order of additions.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    use std::arch::x86_64::*;

    /// The products of the row between two offsets.
    #[inline(always)]
    fn row_of<'a, T>(products: &'a [T], first: i64, bounds: &[i64]) -> &'a [T] {
        &products[(bounds[0] - first) as usize..(bounds[1] - first) as usize]
    }

    /// The 16 sums of a row. Lanes without an element hold 0, as those that `sum_rows` begins with.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn lanes_f32(row: &[f32]) -> __m512 {
        let load = |part: &[f32]| {
            let mask = _bzhi_u32(0xffff, part.len() as u32) as u16;
            // SAFETY: the mask has a bit for each element of the part.
            unsafe { _mm512_maskz_loadu_ps(mask, part.as_ptr()) }
        };
        // Rows of at most 16 elements need no loop.
        let (first, rest) = row.split_at(row.len().min(16));
        let mut sums = _mm512_add_ps(_mm512_setzero_ps(), load(first));
        for part in rest.chunks(16) {
            sums = _mm512_add_ps(sums, load(part));
        }
        sums
    }

    /// Lanes 0 to 3 after lanes 4 to 15 were added to them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn quarter_f32(row: &[f32]) -> __m128 {
        let sums = lanes_f32(row);
        let upper = _mm512_extractf32x8_ps::<1>(sums);
        let eight = _mm256_add_ps(_mm512_castps512_ps256(sums), upper);
        let upper = _mm256_extractf128_ps::<1>(eight);
        _mm_add_ps(_mm256_castps256_ps128(eight), upper)
    }

    /// The sums of four rows, each given by its four lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn totals_f32(rows: [__m128; 4]) -> __m128 {
        let pairs = |a, b| _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));
        let (first, second) = (pairs(rows[0], rows[1]), pairs(rows[2], rows[3]));
        let even = _mm_shuffle_ps::<0b10_00_10_00>(first, second);
        let odd = _mm_shuffle_ps::<0b11_01_11_01>(first, second);
        _mm_add_ps(even, odd)
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    pub(in super::super) fn sum_rows_f32(offsets: &[i64], products: &[f32], out: &mut [f32]) {
        let first = offsets[0];
        let (fours, rest) = out.as_chunks_mut::<4>();
        for (y, bounds) in fours.iter_mut().zip(offsets.windows(5).step_by(4)) {
            let row = |r: usize| quarter_f32(row_of(products, first, &bounds[r..r + 2]));
            let sums = totals_f32([row(0), row(1), row(2), row(3)]);
            // SAFETY: four floats.
            unsafe { _mm_storeu_ps(y.as_mut_ptr(), sums) };
        }
        let offsets = &offsets[4 * fours.len()..];
        for (bounds, y) in offsets.windows(2).zip(rest) {
            let sums = quarter_f32(row_of(products, first, bounds));
            *y = _mm_cvtss_f32(totals_f32([sums; 4]));
        }
    }

    /// Lanes 0 to 7 of a row after lanes 8 to 15 were added to them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn half_f64(row: &[f64]) -> __m512d {
        let (mut low, mut high) = (_mm512_setzero_pd(), _mm512_setzero_pd());
        for part in row.chunks(16) {
            let mask = _bzhi_u32(0xffff, part.len() as u32);
            let upper = part.as_ptr().wrapping_add(8);
            // SAFETY: the mask has a bit for each element of the part; nothing is read where it has none.
            unsafe {
                low = _mm512_add_pd(low, _mm512_maskz_loadu_pd(mask as u8, part.as_ptr()));
                high = _mm512_add_pd(high, _mm512_maskz_loadu_pd((mask >> 8) as u8, upper));
            }
        }
        _mm512_add_pd(low, high)
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    pub(in super::super) fn sum_rows_f64(offsets: &[i64], products: &[f64], out: &mut [f64]) {
        for (bounds, y) in offsets.windows(2).zip(out) {
            let eight = half_f64(row_of(products, offsets[0], bounds));
            let upper = _mm512_extractf64x4_pd::<1>(eight);
            let four = _mm256_add_pd(_mm512_castpd512_pd256(eight), upper);
            let upper = _mm256_extractf128_pd::<1>(four);
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), upper);
            *y = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
        }
    }
}
