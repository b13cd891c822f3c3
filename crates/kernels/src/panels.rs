//! Products with a matrix in panels: few rows by many columns, as in convolutions of few images and in fully connected layers.
//!
//! A panel has the elements of [`Micro::lanes`] columns, `[k][lane]`, so that a micro-kernel reads it from one end to the other. A micro-kernel
//! computes `rows x lanes` results in registers, `out[r][l] = sum over k of a[r][k] * panel[k][l]`. The rows of `a` may have any addresses.

use crate::isa::{Isa, isa};
use crate::real::{Real, normalised, per_isa};
use crate::{prefetch, scratch};

/// Steps of a panel that are used for all positions of a task before the next ones: with 32 f32 lanes, as much as a first-level cache holds.
pub(crate) const SLAB: usize = 256;
/// Largest number of positions in a task, a multiple of every number of rows.
pub(crate) const MAX_POSITIONS: usize = 120;
/// Multiply-adds that take one core about 10 us.
pub(crate) const TASK_WORK: usize = 1 << 19;

/// How far ahead panels are read into the first-level cache, in bytes: the processor's own prefetching stops at the end of a page.
#[cfg(target_arch = "x86_64")]
const PREFETCH_BYTES: usize = 8 << 10;

/// Largest number of lanes.
pub(crate) const MAX_LANES: usize = 32;
/// Largest number of rows that a micro-kernel takes.
pub(crate) const MAX_ROWS: usize = 12;
/// Number of panels that are multiplied by one row at the same time. The additions of a single panel would wait for each other.
pub(crate) const SIDE_BY_SIDE: usize = 4;

/// A part of the sum: for row `r` the elements from `a + rows[r]` on, and as many steps of a panel from `b` on.
#[derive(Clone, Copy)]
pub(crate) struct Segment<T> {
    pub a: *const T,
    pub b: *const T,
    pub steps: usize,
}

/// `(segments, offset of each row of a, result, elements from one row of the result to the next, whether to add to the result)`.
type Run<T> = unsafe fn(&[Segment<T>], &[usize; MAX_ROWS], *mut T, usize, bool);

/// `(row of a, panels, steps, results, to which the sums are added)`.
type RunPanels<T> = unsafe fn(*const T, &[*const T; SIDE_BY_SIDE], usize, &[*mut T; SIDE_BY_SIDE]);

/// The micro-kernels of an instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Micro<T: 'static> {
    /// Columns in a panel.
    pub lanes: usize,
    /// The micro-kernels for 1, 2, ... rows.
    runs: &'static [Run<T>],
    /// The micro-kernel for one row and several panels.
    run_panels: RunPanels<T>,
}

impl<T> Micro<T> {
    /// Largest number of rows.
    pub fn rows(&self) -> usize {
        self.runs.len()
    }

    /// Computes `count` rows.
    ///
    /// # Safety
    /// `1 <= count <= self.rows()`; every segment has its steps in each of these rows and in its panel; `out` has the rows, `stride` elements apart.
    pub unsafe fn run(
        &self,
        count: usize,
        segments: &[Segment<T>],
        rows: &[usize; MAX_ROWS],
        out: *mut T,
        stride: usize,
        add: bool,
    ) {
        // SAFETY: forwarded; the table has the kernels of the instruction set in use.
        unsafe { self.runs[count - 1](segments, rows, out, stride, add) }
    }

    /// Adds the product of one row and several panels to `out`, with the sums of [`Micro::run`].
    ///
    /// # Safety
    /// `a` has `steps` elements, each panel as many steps; each `out` has `self.lanes` elements, apart from the others.
    pub unsafe fn add_panels(
        &self,
        a: *const T,
        panels: &[*const T; SIDE_BY_SIDE],
        steps: usize,
        out: &[*mut T; SIDE_BY_SIDE],
    ) {
        // SAFETY: forwarded; the kernel is of the instruction set in use.
        unsafe { (self.run_panels)(a, panels, steps, out) }
    }
}

/// Element types with micro-kernels.
pub(crate) trait Panels: Real {
    /// The micro-kernels of an instruction set that the processor supports.
    fn kernels_of(isa: Isa) -> Micro<Self>;

    /// The micro-kernels in use.
    fn kernels() -> Micro<Self> {
        Self::kernels_of(isa())
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! micro {
    ($name:ident, $panels:ident, $t:ty, $features:literal, 2 x $width:literal, $zero:ident, $load:ident, $splat:ident, $fma:ident, $add:ident, $store:ident) => {
        /// # Safety
        /// The processor has the features; the contract of [`Micro::run`].
        #[target_feature(enable = $features)]
        unsafe fn $name<const R: usize>(
            segments: &[Segment<$t>],
            rows: &[usize; MAX_ROWS],
            out: *mut $t,
            stride: usize,
            add: bool,
        ) {
            use std::arch::x86_64::*;
            let mut acc = [[$zero(); 2]; R];
            // SAFETY: the caller's promise.
            unsafe {
                for &Segment { a, mut b, steps } in segments {
                    let mut at = [a; R];
                    for r in 0..R {
                        at[r] = a.wrapping_add(rows[r]);
                    }
                    for step in 0..steps {
                        for half in [b, b.wrapping_add($width)] {
                            prefetch::line(half.wrapping_byte_add(PREFETCH_BYTES));
                        }
                        let (low, high) = ($load(b), $load(b.wrapping_add($width)));
                        for r in 0..R {
                            let x = $splat(*at[r].add(step));
                            acc[r][0] = $fma(x, low, acc[r][0]);
                            acc[r][1] = $fma(x, high, acc[r][1]);
                        }
                        b = b.wrapping_add(2 * $width);
                    }
                }
                for r in 0..R {
                    for half in 0..2 {
                        let out = out.add(r * stride + half * $width);
                        let sum = acc[r][half];
                        $store(out, if add { $add($load(out), sum) } else { sum });
                    }
                }
            }
        }

        /// # Safety
        /// The processor has the features; the contract of [`Micro::add_panels`].
        #[target_feature(enable = $features)]
        unsafe fn $panels(
            a: *const $t,
            panels: &[*const $t; SIDE_BY_SIDE],
            steps: usize,
            out: &[*mut $t; SIDE_BY_SIDE],
        ) {
            use std::arch::x86_64::*;
            let mut acc = [[$zero(); 2]; SIDE_BY_SIDE];
            // SAFETY: the caller's promise.
            unsafe {
                for step in 0..steps {
                    let x = $splat(*a.add(step));
                    for p in 0..SIDE_BY_SIDE {
                        let b = panels[p].add(step * 2 * $width);
                        acc[p][0] = $fma(x, $load(b), acc[p][0]);
                        acc[p][1] = $fma(x, $load(b.add($width)), acc[p][1]);
                    }
                }
                for p in 0..SIDE_BY_SIDE {
                    for half in 0..2 {
                        let out = out[p].add(half * $width);
                        $store(out, $add($load(out), acc[p][half]));
                    }
                }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
micro!(f32_avx512, f32_panels_avx512, f32, "avx512f", 2 x 16, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_storeu_ps);
#[cfg(target_arch = "x86_64")]
micro!(f64_avx512, f64_panels_avx512, f64, "avx512f", 2 x 8, _mm512_setzero_pd, _mm512_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_storeu_pd);
#[cfg(target_arch = "x86_64")]
micro!(f32_avx2, f32_panels_avx2, f32, "avx2,fma", 2 x 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_storeu_ps);
#[cfg(target_arch = "x86_64")]
micro!(f64_avx2, f64_panels_avx2, f64, "avx2,fma", 2 x 4, _mm256_setzero_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_storeu_pd);

/// Columns in a panel for other instruction sets.
const PORTABLE_LANES: usize = 8;

/// # Safety
/// The contract of [`Micro::run`].
unsafe fn portable<T: Real, const R: usize>(
    segments: &[Segment<T>],
    rows: &[usize; MAX_ROWS],
    out: *mut T,
    stride: usize,
    add: bool,
) {
    const L: usize = PORTABLE_LANES;
    let mut acc = [[T::ZERO; L]; R];
    // SAFETY: the caller's promise.
    unsafe {
        for &Segment { a, mut b, steps } in segments {
            for step in 0..steps {
                let lanes = b.cast::<[T; L]>().read();
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = *a.add(rows[r] + step);
                    for l in 0..L {
                        acc[l] = x.fma::<false>(lanes[l], acc[l]);
                    }
                }
                b = b.wrapping_add(L);
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for (l, &sum) in acc.iter().enumerate() {
                let out = out.add(r * stride + l);
                *out = if add { *out + sum } else { sum };
            }
        }
    }
}

/// # Safety
/// The contract of [`Micro::add_panels`].
unsafe fn portable_panels<T: Real>(
    a: *const T,
    panels: &[*const T; SIDE_BY_SIDE],
    steps: usize,
    out: &[*mut T; SIDE_BY_SIDE],
) {
    for (&b, &out) in panels.iter().zip(out) {
        // SAFETY: the caller's promise.
        unsafe { portable::<T, 1>(&[Segment { a, b, steps }], &[0; MAX_ROWS], out, 0, true) }
    }
}

macro_rules! panels {
    ($t:ty, $avx512:ident $panels512:ident $lanes512:literal, $avx2:ident $panels2:ident $lanes2:literal) => {
        impl Panels for $t {
            fn kernels_of(isa: Isa) -> Micro<$t> {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => Micro {
                        lanes: $lanes512,
                        runs: &[
                            $avx512::<1>,
                            $avx512::<2>,
                            $avx512::<3>,
                            $avx512::<4>,
                            $avx512::<5>,
                            $avx512::<6>,
                            $avx512::<7>,
                            $avx512::<8>,
                            $avx512::<9>,
                            $avx512::<10>,
                            $avx512::<11>,
                            $avx512::<12>,
                        ],
                        run_panels: $panels512,
                    },
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => Micro {
                        lanes: $lanes2,
                        runs: &[
                            $avx2::<1>, $avx2::<2>, $avx2::<3>, $avx2::<4>, $avx2::<5>, $avx2::<6>,
                        ],
                        run_panels: $panels2,
                    },
                    _ => Micro {
                        lanes: PORTABLE_LANES,
                        runs: &[
                            portable::<$t, 1>,
                            portable::<$t, 2>,
                            portable::<$t, 3>,
                            portable::<$t, 4>,
                        ],
                        run_panels: portable_panels::<$t>,
                    },
                }
            }
        }
    };
}
panels!(f32, f32_avx512 f32_panels_avx512 32, f32_avx2 f32_panels_avx2 16);
panels!(f64, f64_avx512 f64_panels_avx512 16, f64_avx2 f64_panels_avx2 8);

/// A part of a sum: where it begins in the data of a position and in a panel, and how many steps it has.
pub(crate) struct Part {
    pub data: usize,
    pub step: usize,
    pub steps: usize,
}

/// All parts of the sums for some rows, a slab of the panel after the other.
///
/// # Safety
/// The rows of `source` and the panel have the parts; `out` has `rows.len()` rows of `lanes` elements.
pub(crate) unsafe fn multiply<T: Panels>(
    micro: &Micro<T>,
    parts: &[Vec<Part>],
    source: *const T,
    panel: *const T,
    rows: &[usize],
    out: *mut T,
) {
    let tiles = rows.len().div_ceil(micro.rows());
    let per_tile = rows.len().div_ceil(tiles);
    let mut segments = Vec::new();
    scratch::reserve(&mut segments, SLAB);
    for (slab, parts) in parts.iter().enumerate() {
        segments.clear();
        segments.extend(parts.iter().map(|part| Segment {
            a: source.wrapping_add(part.data),
            b: panel.wrapping_add(part.step * micro.lanes),
            steps: part.steps,
        }));
        for (tile, of) in rows.chunks(per_tile).enumerate() {
            let mut offsets = [0; MAX_ROWS];
            offsets[..of.len()].copy_from_slice(of);
            let out = out.wrapping_add(tile * per_tile * micro.lanes);
            // SAFETY: the caller's promise.
            unsafe { micro.run(of.len(), &segments, &offsets, out, micro.lanes, slab > 0) };
        }
    }
}

/// Adds the bias to rows of `lanes` elements, normalises them and applies ReLU. The vectors (`bias`, which may be null; mean, factor and shift of
/// `norm`) have an element for each of the first `count` lanes.
///
/// # Safety
/// The rows are readable and writable, the vectors readable.
pub(crate) unsafe fn finish<T: Real>(
    out: *mut T,
    rows: usize,
    lanes: usize,
    bias: *const T,
    norm: Option<[*const T; 3]>,
    count: usize,
    relu: bool,
) {
    let mut memory = [[T::ZERO; MAX_LANES]; 4];
    let [addends, vectors @ ..] = &mut memory;
    // SAFETY: the caller's promise.
    unsafe {
        if !bias.is_null() {
            std::ptr::copy_nonoverlapping(bias, addends.as_mut_ptr(), count);
        }
        for (from, to) in norm.iter().flatten().zip(&mut *vectors) {
            std::ptr::copy_nonoverlapping(*from, to.as_mut_ptr(), count);
        }
        let bias = (!bias.is_null()).then_some(&*addends);
        finish_rows(out, rows, lanes, bias, norm.map(|_| &*vectors), relu);
    }
}

per_isa! {
    /// [`finish`] with vectors for every lane.
    ///
    /// # Safety
    /// As there.
    unsafe fn finish_rows<T>(out: *mut T, rows: usize, lanes: usize, bias: Option<&[T; MAX_LANES]>, norm: Option<&[[T; MAX_LANES]; 3]>, relu: bool) = finish_body
}

#[inline(always)]
unsafe fn finish_body<T: Real, const FMA: bool>(
    out: *mut T,
    rows: usize,
    lanes: usize,
    bias: Option<&[T; MAX_LANES]>,
    norm: Option<&[[T; MAX_LANES]; 3]>,
    relu: bool,
) {
    for r in 0..rows {
        // SAFETY: a row; the caller's promise.
        let row = unsafe { std::slice::from_raw_parts_mut(out.add(r * lanes), lanes) };
        if let Some(bias) = bias {
            for l in 0..lanes.min(MAX_LANES) {
                row[l] += bias[l];
            }
        }
        if let Some([mean, factor, shift]) = norm {
            for l in 0..lanes.min(MAX_LANES) {
                row[l] = normalised::<T, FMA>(row[l], [mean[l], factor[l], shift[l]]);
            }
        }
        if relu {
            for x in row {
                *x = crate::real::relu(*x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Values;

    fn every_micro_kernel_sums_its_segments<T: Panels>() {
        for level in [Isa::Baseline, Isa::Avx2, Isa::Avx512] {
            if level > isa() {
                continue;
            }
            let micro = T::kernels_of(level);
            for count in 1..=micro.rows() {
                for (parts, steps) in [(0, 1), (1, 1), (1, 7), (3, 5)] {
                    let mut values = Values((count + parts) as u64);
                    let (lanes, stride) = (micro.lanes, micro.lanes + 3);
                    let a: Vec<T> = values.integers(parts * steps * MAX_ROWS + 1);
                    let b: Vec<T> = values.integers(parts * steps * lanes + 1);
                    // The rows in reverse order.
                    let mut rows = [0; MAX_ROWS];
                    for (r, row) in rows.iter_mut().enumerate() {
                        *row = (MAX_ROWS - 1 - r) * parts * steps;
                    }
                    let segments: Vec<_> = (0..parts)
                        .map(|part| Segment {
                            a: a[part * steps..].as_ptr(),
                            b: b[part * steps * lanes..].as_ptr(),
                            steps,
                        })
                        .collect();
                    for add in [false, true] {
                        let mut out = vec![T::ONE; count * stride];
                        // SAFETY: the processor has the features; the vectors hold all steps, and `out` the rows.
                        unsafe {
                            micro.run(count, &segments, &rows, out.as_mut_ptr(), stride, add)
                        };
                        for r in 0..count {
                            for l in 0..lanes {
                                let sum: f64 = (0..parts * steps)
                                    .map(|k| a[rows[r] + k].to_f64() * b[k * lanes + l].to_f64())
                                    .sum();
                                let want = sum + if add { 1.0 } else { 0.0 };
                                let found = out[r * stride + l].to_f64();
                                assert_eq!(found, want, "{level:?} {count} {parts} {r} {l}");
                            }
                            assert!(out[r * stride + lanes..][..3].iter().all(|x| *x == T::ONE));
                        }
                    }
                }
            }
        }
    }

    /// Panels side by side give the bits of one panel after the other.
    fn panels_side_by_side_are_single_ones<T: Panels>() {
        for level in [Isa::Baseline, Isa::Avx2, Isa::Avx512] {
            if level > isa() {
                continue;
            }
            let micro = T::kernels_of(level);
            let lanes = micro.lanes;
            for steps in [0, 1, 2, 33] {
                let mut values = Values(steps as u64 + 1);
                let a: Vec<T> = values.take(steps);
                let b: Vec<T> = values.take(SIDE_BY_SIDE * steps * lanes);
                let of = |p: usize| b[p * steps * lanes..].as_ptr();
                let mut want: Vec<T> = values.take(SIDE_BY_SIDE * lanes);
                let mut found = want.clone();
                let to: [*mut T; SIDE_BY_SIDE] =
                    std::array::from_fn(|p| found[p * lanes..].as_mut_ptr());
                // SAFETY: the processor has the features; the vectors hold all steps and all results.
                unsafe {
                    micro.add_panels(a.as_ptr(), &std::array::from_fn(of), steps, &to);
                    for p in 0..SIDE_BY_SIDE {
                        let segment = Segment {
                            a: a.as_ptr(),
                            b: of(p),
                            steps,
                        };
                        let out = want[p * lanes..].as_mut_ptr();
                        micro.run(1, &[segment], &[0; MAX_ROWS], out, lanes, true);
                    }
                }
                assert!(found == want, "{level:?} {steps}");
            }
        }
    }

    #[test]
    fn micro_kernels_of_f32() {
        every_micro_kernel_sums_its_segments::<f32>();
        panels_side_by_side_are_single_ones::<f32>();
    }

    #[test]
    fn micro_kernels_of_f64() {
        every_micro_kernel_sums_its_segments::<f64>();
        panels_side_by_side_are_single_ones::<f64>();
    }
}
