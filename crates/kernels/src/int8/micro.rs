//! Micro-kernels for sums of products of bytes: rows by lanes of 32-bit sums in registers.
//!
//! A step takes 32 bits of each row and of each lane: four bytes, or two numbers of 16 bits.

use crate::isa::{Isa, isa};
use crate::panels::MAX_ROWS;
use crate::prefetch;

/// Largest number of lanes.
pub(super) const MAX_LANES: usize = 32;

/// How far ahead panels are read into the first-level cache, in bytes.
#[cfg(target_arch = "x86_64")]
const PREFETCH_BYTES: usize = 8 << 10;

/// A part of the sum: for row `r` the words from `a + rows[r]` (in bytes) on, and as many steps of a panel from `b` on.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub a: *const u8,
    pub b: *const u32,
    pub steps: usize,
}

/// `(segments, offset of each row in bytes, sums, elements from one row of the sums to the next, whether to add to them)`.
type Run = unsafe fn(&[Segment], &[usize; MAX_ROWS], *mut i32, usize, bool);

/// The micro-kernels of an instruction set.
#[derive(Clone, Copy)]
pub(super) struct Micro {
    /// Sums that a row has in registers.
    pub lanes: usize,
    /// Size of an element of the data in bytes: 1 for unsigned bytes, 2 for 16 bits.
    pub elem_bytes: usize,
    /// The micro-kernels for 1, 2, ... rows.
    runs: &'static [Run],
}

impl Micro {
    /// Largest number of rows.
    pub fn rows(&self) -> usize {
        self.runs.len()
    }

    /// Elements in a word.
    pub fn in_word(&self) -> usize {
        size_of::<u32>() / self.elem_bytes
    }

    /// The word of the weights of a step, of which there are [`Micro::in_word`].
    pub fn word(&self, weights: [i8; 4]) -> u32 {
        match self.elem_bytes {
            1 => u32::from_le_bytes(weights.map(i8::cast_unsigned)),
            _ => {
                let [low, high] = [weights[0], weights[1]].map(|x| i16::from(x).to_le_bytes());
                u32::from_le_bytes([low[0], low[1], high[0], high[1]])
            }
        }
    }

    /// Computes `count` rows.
    ///
    /// # Safety
    /// `1 <= count <= self.rows()`; every segment has its steps in each of these rows and in its panel; `out` has the rows, `stride` elements apart.
    pub unsafe fn run(
        &self,
        count: usize,
        segments: &[Segment],
        rows: &[usize; MAX_ROWS],
        out: *mut i32,
        stride: usize,
        add: bool,
    ) {
        // SAFETY: forwarded; the table has the kernels of the instruction set in use.
        unsafe { self.runs[count - 1](segments, rows, out, stride, add) }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! micro {
    ($name:ident, $features:literal, 2 x $width:literal, $vector:ident, $zero:ident, $load:ident, $splat:ident, $mul_add:ident, $add:ident, $store:ident) => {
        /// # Safety
        /// The processor has the features; the contract of [`Micro::run`].
        #[target_feature(enable = $features)]
        unsafe fn $name<const R: usize>(
            segments: &[Segment],
            rows: &[usize; MAX_ROWS],
            out: *mut i32,
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
                        let low = $load(b.cast::<$vector>());
                        let high = $load(b.wrapping_add($width).cast::<$vector>());
                        for r in 0..R {
                            let x = $splat(at[r].add(step * 4).cast::<i32>().read_unaligned());
                            acc[r][0] = $mul_add(acc[r][0], x, low);
                            acc[r][1] = $mul_add(acc[r][1], x, high);
                        }
                        b = b.wrapping_add(2 * $width);
                    }
                }
                for r in 0..R {
                    for half in 0..2 {
                        let out = out.add(r * stride + half * $width).cast::<$vector>();
                        let sum = acc[r][half];
                        $store(out, if add { $add($load(out), sum) } else { sum });
                    }
                }
            }
        }
    };
}

/// `sum` plus two products of 16 bits in each lane.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn pairs_avx512(
    sum: std::arch::x86_64::__m512i,
    x: std::arch::x86_64::__m512i,
    w: std::arch::x86_64::__m512i,
) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::{_mm512_add_epi32, _mm512_madd_epi16};
    _mm512_add_epi32(sum, _mm512_madd_epi16(x, w))
}

/// As [`pairs_avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn pairs_avx2(
    sum: std::arch::x86_64::__m256i,
    x: std::arch::x86_64::__m256i,
    w: std::arch::x86_64::__m256i,
) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::{_mm256_add_epi32, _mm256_madd_epi16};
    _mm256_add_epi32(sum, _mm256_madd_epi16(x, w))
}

#[cfg(target_arch = "x86_64")]
micro!(vnni, "avx512f,avx512bw,avx512vnni", 2 x 16, __m512i, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_dpbusd_epi32, _mm512_add_epi32, _mm512_storeu_si512);
#[cfg(target_arch = "x86_64")]
micro!(avx512, "avx512f,avx512bw", 2 x 16, __m512i, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_set1_epi32, pairs_avx512, _mm512_add_epi32, _mm512_storeu_si512);
#[cfg(target_arch = "x86_64")]
micro!(avx2, "avx2", 2 x 8, __m256i, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_set1_epi32, pairs_avx2, _mm256_add_epi32, _mm256_storeu_si256);

/// Lanes for other instruction sets.
const PORTABLE_LANES: usize = 8;

/// # Safety
/// The contract of [`Micro::run`].
unsafe fn portable<const R: usize>(
    segments: &[Segment],
    rows: &[usize; MAX_ROWS],
    out: *mut i32,
    stride: usize,
    add: bool,
) {
    const L: usize = PORTABLE_LANES;
    let mut acc = [[0i32; L]; R];
    // SAFETY: the caller's promise.
    unsafe {
        for &Segment { a, b, steps } in segments {
            for step in 0..steps {
                let lanes = b.add(step * L).cast::<[[i16; 2]; L]>().read();
                for (r, acc) in acc.iter_mut().enumerate() {
                    let at = a.wrapping_add(rows[r] + step * 4);
                    let [low, high] = at.cast::<[i16; 2]>().read_unaligned();
                    for l in 0..L {
                        let [w_low, w_high] = lanes[l];
                        let first = i32::from(low) * i32::from(w_low);
                        acc[l] += first + i32::from(high) * i32::from(w_high);
                    }
                }
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

/// The micro-kernels for `$f` of 1, 2, ... rows.
#[cfg(target_arch = "x86_64")]
macro_rules! up_to {
    ($f:ident: $($rows:literal)*) => { &[$($f::<$rows>),*] };
}

/// The micro-kernels of an instruction set that the processor supports; with AVX-512, those for four products of bytes if it has them and `in_fours`.
pub(super) fn kernels_of(level: Isa, in_fours: bool) -> Micro {
    match level {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if in_fours && std::is_x86_feature_detected!("avx512vnni") => Micro {
            lanes: 32,
            elem_bytes: 1,
            runs: up_to!(vnni: 1 2 3 4 5 6 7 8 9 10 11 12),
        },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => Micro {
            lanes: 32,
            elem_bytes: 2,
            runs: up_to!(avx512: 1 2 3 4 5 6 7 8 9 10 11 12),
        },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => Micro {
            lanes: 16,
            elem_bytes: 2,
            runs: up_to!(avx2: 1 2 3 4 5 6),
        },
        _ => Micro {
            lanes: PORTABLE_LANES,
            elem_bytes: 2,
            runs: &[portable::<1>, portable::<2>, portable::<3>, portable::<4>],
        },
    }
}

/// The micro-kernels in use.
pub(super) fn kernels() -> Micro {
    kernels_of(isa(), true)
}
