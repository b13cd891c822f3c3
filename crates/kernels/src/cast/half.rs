//! f16 and bf16: conversions to and from f32, and from f64 with a single rounding. Rounding is to nearest, ties to even.

use super::CastFn;
use crate::elem::Elem;
use crate::isa::Isa;

/// The function that converts between a 16-bit float and f32, f64 or another 16-bit float. `None` if there is no direct conversion.
pub(super) fn row(isa: Isa, from: Elem, to: Elem) -> Option<CastFn> {
    Some(match (from, to) {
        (Elem::F16, Elem::F16) | (Elem::BF16, Elem::BF16) => move16,
        (Elem::F16, Elem::F32) => pick(isa, f16_to_f32_base, FROM_F16),
        (Elem::F32, Elem::F16) => pick(isa, f32_to_f16_base, TO_F16),
        (Elem::BF16, Elem::F32) => pick(isa, bf16_to_f32_base, FROM_BF16),
        (Elem::F32, Elem::BF16) => pick(isa, f32_to_bf16_base, TO_BF16),
        (Elem::F64, Elem::F16) => pick(isa, f64_to_f16_base, WIDE_TO_F16),
        (Elem::F64, Elem::BF16) => pick(isa, f64_to_bf16_base, WIDE_TO_BF16),
        _ => return None,
    })
}

/// The AVX2 and AVX-512 functions; `None` on other architectures.
type X86Casts = Option<[CastFn; 2]>;

fn pick(isa: Isa, base: CastFn, x86: X86Casts) -> CastFn {
    match (isa, x86) {
        (Isa::Avx2, Some([avx2, _])) => avx2,
        (Isa::Avx512, Some([_, avx512])) => avx512,
        _ => base,
    }
}

/// # Safety
/// Same as for [`CastFn`].
unsafe fn move16(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, 2 * n) }
}

/// Value of an f16. The exponent field is rebiased; one exact subtraction then corrects subnormals.
#[inline(always)]
fn f16_to_f32(h: u16) -> f32 {
    // f16 has 5 exponent bits (bias 15) and 10 mantissa bits, f32 8 (127) and 23.
    const REBIAS: u32 = (127 - 15) << 23;
    const SUBNORMAL: u32 = (127 - 14) << 23; // 2^-14, the smallest normal f16
    let magnitude = (u32::from(h) & 0x7fff) << 13;
    let exponent = magnitude & 0x0f80_0000;
    let normal = magnitude + REBIAS;
    let special = (normal + REBIAS)
        | if magnitude > 0x0f80_0000 {
            0x0040_0000
        } else {
            0
        };
    let subnormal = (f32::from_bits(magnitude + SUBNORMAL) - f32::from_bits(SUBNORMAL)).to_bits();
    let bits = if exponent == 0x0f80_0000 {
        special
    } else if exponent == 0 {
        subnormal
    } else {
        normal
    };
    f32::from_bits(bits | (u32::from(h) & 0x8000) << 16)
}

/// Nearest f16, ties to even.
#[inline(always)]
fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Normal results: add half a unit in the last place (one less if the mantissa is even), then shift. A carry runs into the exponent.
    let odd = (magnitude >> 13) & 1;
    let normal = (magnitude
        .wrapping_sub((127 - 15) << 23)
        .wrapping_add(0x0fff + odd))
        >> 13;
    // Subnormal results: adding 1/2 aligns the unit 2^-24 with the last mantissa bit, so that the addition itself rounds.
    let subnormal = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    let value = if magnitude > 0x7f80_0000 {
        0x7e00 | (magnitude >> 13) & 0x03ff
    } else if magnitude >= 0x4780_0000 {
        0x7c00 // 2^16 and above, infinity
    } else if magnitude < 0x3880_0000 {
        subnormal // below 2^-14
    } else {
        normal
    };
    (value | sign) as u16
}

#[inline(always)]
fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}

/// Nearest bf16, ties to even; NaN stays NaN.
#[inline(always)]
fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x0040;
    (if bits & 0x7fff_ffff > 0x7f80_0000 {
        nan
    } else {
        rounded
    }) as u16
}

/// Converts f64 to f32 with rounding to odd, so that a later rounding to 16 bits gives the same result as a single rounding from f64.
#[inline(always)]
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    // If the nearest f32 has a larger magnitude than x, step back by one. An inexact result then gets its last bit set.
    let beyond = back.abs() > x.abs();
    let inexact = back != x && !x.is_nan();
    let truncated = near.to_bits().wrapping_sub(u32::from(beyond));
    f32::from_bits(truncated | u32::from(inexact))
}

#[inline(always)]
fn f64_to_f16(x: f64) -> u16 {
    f32_to_f16(to_odd(x))
}

#[inline(always)]
fn f64_to_bf16(x: f64) -> u16 {
    f32_to_bf16(to_odd(x))
}

macro_rules! rows {
    ($($function:ident: $from:ty => $to:ty, $base:ident $avx2:ident $avx512:ident $table:ident;)*) => { $(
        /// # Safety
        /// Same as for [`CastFn`].
        unsafe fn $base(src: *const u8, dst: *mut u8, n: usize) {
            for i in 0..n {
                // SAFETY: i < n.
                unsafe { *dst.cast::<$to>().add(i) = $function(*src.cast::<$from>().add(i)) };
            }
        }

        /// # Safety
        /// Same as for [`CastFn`].
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        unsafe fn $avx2(src: *const u8, dst: *mut u8, n: usize) {
            for i in 0..n {
                // SAFETY: i < n.
                unsafe { *dst.cast::<$to>().add(i) = $function(*src.cast::<$from>().add(i)) };
            }
        }

        /// # Safety
        /// Same as for [`CastFn`].
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        unsafe fn $avx512(src: *const u8, dst: *mut u8, n: usize) {
            for i in 0..n {
                // SAFETY: i < n.
                unsafe { *dst.cast::<$to>().add(i) = $function(*src.cast::<$from>().add(i)) };
            }
        }

        #[cfg(target_arch = "x86_64")]
        const $table: X86Casts = Some([$avx2, $avx512]);
        #[cfg(not(target_arch = "x86_64"))]
        const $table: X86Casts = None;
    )* };
}
rows! {
    bf16_to_f32: u16 => f32, bf16_to_f32_base bf16_to_f32_avx2 bf16_to_f32_avx512 FROM_BF16;
    f32_to_bf16: f32 => u16, f32_to_bf16_base f32_to_bf16_avx2 f32_to_bf16_avx512 TO_BF16;
    f64_to_f16: f64 => u16, f64_to_f16_base f64_to_f16_avx2 f64_to_f16_avx512 WIDE_TO_F16;
    f64_to_bf16: f64 => u16, f64_to_bf16_base f64_to_bf16_avx2 f64_to_bf16_avx512 WIDE_TO_BF16;
}

/// # Safety
/// Same as for [`CastFn`].
unsafe fn f16_to_f32_base(src: *const u8, dst: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *dst.cast::<f32>().add(i) = f16_to_f32(*src.cast::<u16>().add(i)) };
    }
}

/// # Safety
/// Same as for [`CastFn`].
unsafe fn f32_to_f16_base(src: *const u8, dst: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *dst.cast::<u16>().add(i) = f32_to_f16(*src.cast::<f32>().add(i)) };
    }
}

#[cfg(target_arch = "x86_64")]
const FROM_F16: X86Casts = Some([x86::f16_to_f32, x86::f16_to_f32]);
#[cfg(target_arch = "x86_64")]
const TO_F16: X86Casts = Some([x86::f32_to_f16, x86::f32_to_f16]);
#[cfg(not(target_arch = "x86_64"))]
const FROM_F16: X86Casts = None;
#[cfg(not(target_arch = "x86_64"))]
const TO_F16: X86Casts = None;

/// Conversions with the F16C instructions, eight elements at a time.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    /// # Safety
    /// Same as for [`super::CastFn`].
    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn f16_to_f32(src: *const u8, dst: *mut u8, n: usize) {
        let (src, dst) = (src.cast::<u16>(), dst.cast::<f32>());
        let whole = n / 8 * 8;
        // SAFETY: indices stay below n; the tail goes through f16c one element at a time so that both give the same NaNs.
        unsafe {
            for i in (0..whole).step_by(8) {
                _mm256_storeu_ps(
                    dst.add(i),
                    _mm256_cvtph_ps(_mm_loadu_si128(src.add(i).cast())),
                );
            }
            let mut tail = [0u16; 8];
            tail[..n - whole]
                .copy_from_slice(std::slice::from_raw_parts(src.add(whole), n - whole));
            let mut wide = [0f32; 8];
            _mm256_storeu_ps(
                wide.as_mut_ptr(),
                _mm256_cvtph_ps(_mm_loadu_si128(tail.as_ptr().cast())),
            );
            std::ptr::copy_nonoverlapping(wide.as_ptr(), dst.add(whole), n - whole);
        }
    }

    /// # Safety
    /// Same as for [`super::CastFn`].
    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn f32_to_f16(src: *const u8, dst: *mut u8, n: usize) {
        let (src, dst) = (src.cast::<f32>(), dst.cast::<u16>());
        let whole = n / 8 * 8;
        // SAFETY: as above.
        unsafe {
            for i in (0..whole).step_by(8) {
                let narrow =
                    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(src.add(i)));
                _mm_storeu_si128(dst.add(i).cast(), narrow);
            }
            let mut tail = [0f32; 8];
            tail[..n - whole]
                .copy_from_slice(std::slice::from_raw_parts(src.add(whole), n - whole));
            let mut narrow = [0u16; 8];
            let lanes =
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(tail.as_ptr()));
            _mm_storeu_si128(narrow.as_mut_ptr().cast(), lanes);
            std::ptr::copy_nonoverlapping(narrow.as_ptr(), dst.add(whole), n - whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_widens_to_its_value() {
        for h in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(h), ::half::f16::from_bits(h).to_f32());
            assert!(
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                "{h:#06x}: {ours} {theirs}"
            );
        }
    }

    #[test]
    fn f32_to_16_bit_floats_matches_the_half_crate() {
        for bits in (0..=u32::MAX).step_by(4093) {
            let x = f32::from_bits(bits);
            if x.is_nan() {
                assert!(::half::f16::from_bits(f32_to_f16(x)).is_nan());
                assert!(::half::bf16::from_bits(f32_to_bf16(x)).is_nan());
                continue;
            }
            assert_eq!(
                f32_to_f16(x),
                ::half::f16::from_f32(x).to_bits(),
                "f16 of {x:e}"
            );
            assert_eq!(
                f32_to_bf16(x),
                ::half::bf16::from_f32(x).to_bits(),
                "bf16 of {x:e}"
            );
        }
    }

    #[test]
    fn doubles_round_once() {
        // Slightly above the midpoint of 1 and the next f16 or bf16, by less than f32 resolves: rounding twice would give 1.
        let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(
            ::half::f16::from_bits(f64_to_f16(x)).to_f64(),
            1.0 + 2f64.powi(-10)
        );
        let x = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!(
            ::half::bf16::from_bits(f64_to_bf16(x)).to_f64(),
            1.0 + 2f64.powi(-7)
        );
        assert_eq!(f64_to_f16(f64::INFINITY), 0x7c00);
        assert_eq!(f64_to_f16(1e300), 0x7c00);
        assert_eq!(f64_to_f16(-1e-300), 0x8000);
        assert_eq!(f64_to_f16(65_519.999_999), 0x7bff);
    }
}
