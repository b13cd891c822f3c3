//! Transposes of squares in registers.

use std::arch::x86_64::{
    _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpacklo_epi8,
    _mm_unpacklo_epi16, _mm256_castps_pd, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_permute2f128_pd,
    _mm256_storeu_pd, _mm256_unpackhi_pd, _mm256_unpackhi_ps, _mm256_unpacklo_pd,
    _mm256_unpacklo_ps,
};

/// Transposes a square whose rows fill one register each, by interleaving the first half of the rows with the second half log2(side) times.
macro_rules! transpose_by_interleaving {
    ($(#[$meta:meta])* $name:ident, $side:literal, $doublings:literal, $low:ident, $high:ident) => {
        $(#[$meta])*
        #[allow(clippy::needless_range_loop, reason = "lines of both sides by one number")]
        ///
        /// # Safety
        /// Both sides have as many rows of 16 bytes as the square's side.
        pub(super) unsafe fn $name(
            dst: *mut u8,
            dst_stride: isize,
            src: *const u8,
            src_stride: isize,
        ) {
            // SAFETY: guaranteed by the caller; the instructions are part of the architecture.
            unsafe {
                let mut lines = [_mm_loadu_si128(src.cast()); $side];
                for i in 1..$side {
                    lines[i] = _mm_loadu_si128(src.offset(src_stride * i as isize).cast());
                }
                for _ in 0..$doublings {
                    let before = lines;
                    for i in 0..$side / 2 {
                        lines[2 * i] = $low(before[i], before[i + $side / 2]);
                        lines[2 * i + 1] = $high(before[i], before[i + $side / 2]);
                    }
                }
                for i in 0..$side {
                    _mm_storeu_si128(dst.offset(dst_stride * i as isize).cast(), lines[i]);
                }
            }
        }
    };
}
transpose_by_interleaving!(
    /// 16 x 16 items of 1 byte.
    transpose_16x16, 16, 4, _mm_unpacklo_epi8, _mm_unpackhi_epi8
);
transpose_by_interleaving!(
    /// 8 x 8 items of 2 bytes.
    transpose_8x8_items16, 8, 3, _mm_unpacklo_epi16, _mm_unpackhi_epi16
);

/// 8 x 8 items of 4 bytes.
///
/// # Safety
/// The CPU has AVX2; both sides have eight rows of eight items.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn transpose_8x8(
    dst: *mut u8,
    dst_stride: isize,
    src: *const u8,
    src_stride: isize,
) {
    // Macros instead of closures or `map`: code that is not inlined into this function is compiled without AVX and passes vectors through memory.
    macro_rules! line {
        ($i:literal) => {
            _mm256_loadu_ps(src.offset(src_stride * $i).cast())
        };
    }
    macro_rules! pair {
        ($unpack:ident, $a:ident, $b:ident) => {
            _mm256_castps_pd($unpack($a, $b))
        };
    }
    macro_rules! put {
        ($i:literal, $half:literal, $a:ident, $b:ident) => {
            _mm256_storeu_pd(
                dst.offset(dst_stride * $i).cast(),
                _mm256_permute2f128_pd::<$half>($a, $b),
            )
        };
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (r0, r1, r2, r3) = (line!(0), line!(1), line!(2), line!(3));
        let (r4, r5, r6, r7) = (line!(4), line!(5), line!(6), line!(7));
        // Interleaves pairs of rows, then pairs of pairs, then halves.
        let (a0, a1) = (
            pair!(_mm256_unpacklo_ps, r0, r1),
            pair!(_mm256_unpackhi_ps, r0, r1),
        );
        let (a2, a3) = (
            pair!(_mm256_unpacklo_ps, r2, r3),
            pair!(_mm256_unpackhi_ps, r2, r3),
        );
        let (a4, a5) = (
            pair!(_mm256_unpacklo_ps, r4, r5),
            pair!(_mm256_unpackhi_ps, r4, r5),
        );
        let (a6, a7) = (
            pair!(_mm256_unpacklo_ps, r6, r7),
            pair!(_mm256_unpackhi_ps, r6, r7),
        );
        let (b0, b1) = (_mm256_unpacklo_pd(a0, a2), _mm256_unpackhi_pd(a0, a2));
        let (b2, b3) = (_mm256_unpacklo_pd(a1, a3), _mm256_unpackhi_pd(a1, a3));
        let (b4, b5) = (_mm256_unpacklo_pd(a4, a6), _mm256_unpackhi_pd(a4, a6));
        let (b6, b7) = (_mm256_unpacklo_pd(a5, a7), _mm256_unpackhi_pd(a5, a7));
        put!(0, 0x20, b0, b4);
        put!(1, 0x20, b1, b5);
        put!(2, 0x20, b2, b6);
        put!(3, 0x20, b3, b7);
        put!(4, 0x31, b0, b4);
        put!(5, 0x31, b1, b5);
        put!(6, 0x31, b2, b6);
        put!(7, 0x31, b3, b7);
    }
}

/// 4 x 4 items of 8 bytes.
///
/// # Safety
/// The CPU has AVX2; both sides have four rows of four items.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn transpose_4x4(
    dst: *mut u8,
    dst_stride: isize,
    src: *const u8,
    src_stride: isize,
) {
    macro_rules! line {
        ($i:literal) => {
            _mm256_loadu_pd(src.offset(src_stride * $i).cast())
        };
    }
    macro_rules! put {
        ($i:literal, $half:literal, $a:ident, $b:ident) => {
            _mm256_storeu_pd(
                dst.offset(dst_stride * $i).cast(),
                _mm256_permute2f128_pd::<$half>($a, $b),
            )
        };
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (r0, r1, r2, r3) = (line!(0), line!(1), line!(2), line!(3));
        let (a, b) = (_mm256_unpacklo_pd(r0, r1), _mm256_unpackhi_pd(r0, r1));
        let (c, d) = (_mm256_unpacklo_pd(r2, r3), _mm256_unpackhi_pd(r2, r3));
        put!(0, 0x20, a, c);
        put!(1, 0x20, b, d);
        put!(2, 0x31, a, c);
        put!(3, 0x31, b, d);
    }
}
