//! Vectors of signed keys: the AVX2 and AVX-512 operations that sorting networks and partitions need.
//!
//! The methods are `#[inline(always)]` bodies without target features: they are only called from functions that
//! `quicksort` compiles for the instruction set in question.

use std::arch::x86_64::*;

/// A vector register of keys.
///
/// # Safety
/// Every method needs the instruction set of the type; pointers are valid for [`Lanes::LEN`] keys, at any alignment.
pub(super) trait Lanes {
    type Key: Copy + Ord;
    type Vector: Copy;
    const LEN: usize;
    const LARGEST: Self::Key;
    unsafe fn load(from: *const Self::Key) -> Self::Vector;
    unsafe fn store(to: *mut Self::Key, v: Self::Vector);
    unsafe fn splat(key: Self::Key) -> Self::Vector;
    unsafe fn min(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn max(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The lanes in reverse order.
    unsafe fn backwards(v: Self::Vector) -> Self::Vector;
    /// Compare-exchange of lane i with lane `i ^ X`; the smaller key goes to the lower lane. `X` is below `LEN`.
    unsafe fn ordered<const X: usize>(v: Self::Vector) -> Self::Vector;
    /// Writes the keys below the pivot (`EQUAL`: and those equal to it) to `below` and the others to `rest`, in their order. Both stores write a
    /// whole register, of which only the first keys are meaningful. Returns how many keys are below.
    unsafe fn split<const EQUAL: bool>(
        v: Self::Vector,
        pivot: Self::Vector,
        below: *mut Self::Key,
        rest: *mut Self::Key,
    ) -> usize;
}

/// Sixteen 32-bit keys, AVX-512.
pub(super) struct Avx512Keys32;
/// Eight 64-bit keys, AVX-512.
pub(super) struct Avx512Keys64;
/// Eight 32-bit keys, AVX2.
pub(super) struct Avx2Keys32;
/// Four 64-bit keys, AVX2.
pub(super) struct Avx2Keys64;

/// Constants of the compare-exchange with lane `i ^ X`.
struct Exchange<const X: usize>;

impl<const X: usize> Exchange<X> {
    /// Whether lane i is the upper one of its pair: it has the highest bit of `X`.
    const UPPER: [bool; 16] = {
        let mut upper = [false; 16];
        let mut i = 0;
        while i < 16 {
            upper[i] = X != 0 && i & (1 << X.ilog2()) != 0;
            i += 1;
        }
        upper
    };
    const MASK: u16 = {
        let (mut mask, mut i) = (0, 0);
        while i < 16 {
            mask |= (Self::UPPER[i] as u16) << i;
            i += 1;
        }
        mask
    };
    /// Source indices of the permutation of 32-bit lanes, and of the halves of 64-bit lanes.
    const FROM32: [i32; 16] = {
        let (mut from, mut i) = ([0; 16], 0);
        while i < 16 {
            from[i] = (i ^ X) as i32;
            i += 1;
        }
        from
    };
    const FROM64: [i64; 8] = {
        let (mut from, mut i) = ([0; 8], 0);
        while i < 8 {
            from[i] = ((i ^ X) & 7) as i64;
            i += 1;
        }
        from
    };
    const HALVES: [i32; 8] = {
        let (mut from, mut i) = ([0; 8], 0);
        while i < 8 {
            from[i] = (((i / 2) ^ X) & 3) as i32 * 2 + (i % 2) as i32;
            i += 1;
        }
        from
    };
    const UPPER32: [i32; 8] = {
        let (mut mask, mut i) = ([0; 8], 0);
        while i < 8 {
            mask[i] = -(Self::UPPER[i] as i32);
            i += 1;
        }
        mask
    };
    const UPPER64: [i64; 4] = {
        let (mut mask, mut i) = ([0; 4], 0);
        while i < 4 {
            mask[i] = -(Self::UPPER[i] as i64);
            i += 1;
        }
        mask
    };
}

macro_rules! wide {
    ($lanes:ty, $key:ty, $len:literal, $mask:ty, $from:ident, $load:ident, $store:ident, $set:ident, $min:ident, $max:ident,
     $permute:ident, $mask_max:ident, $less:ident, $most:ident, $compress:ident) => {
        impl Lanes for $lanes {
            type Key = $key;
            type Vector = __m512i;
            const LEN: usize = $len;
            const LARGEST: $key = <$key>::MAX;
            #[inline(always)]
            unsafe fn load(from: *const $key) -> __m512i {
                // SAFETY: the trait's contract.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(to: *mut $key, v: __m512i) {
                // SAFETY: the trait's contract.
                unsafe { $store(to, v) }
            }
            #[inline(always)]
            unsafe fn splat(key: $key) -> __m512i {
                // SAFETY: the trait's contract.
                unsafe { $set(key) }
            }
            #[inline(always)]
            unsafe fn min(a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: the trait's contract.
                unsafe { $min(a, b) }
            }
            #[inline(always)]
            unsafe fn max(a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: the trait's contract.
                unsafe { $max(a, b) }
            }
            #[inline(always)]
            unsafe fn backwards(v: __m512i) -> __m512i {
                // SAFETY: the trait's contract; the constant has the size of a register.
                unsafe { $permute($load(Exchange::<{ $len - 1 }>::$from.as_ptr()), v) }
            }
            #[inline(always)]
            unsafe fn ordered<const X: usize>(v: __m512i) -> __m512i {
                // SAFETY: the trait's contract; the constant has the size of a register.
                unsafe {
                    let other = $permute($load(Exchange::<X>::$from.as_ptr()), v);
                    $mask_max($min(v, other), Exchange::<X>::MASK as $mask, v, other)
                }
            }
            #[inline(always)]
            unsafe fn split<const EQUAL: bool>(
                v: __m512i,
                pivot: __m512i,
                below: *mut $key,
                rest: *mut $key,
            ) -> usize {
                // SAFETY: the trait's contract.
                unsafe {
                    let less = if EQUAL {
                        $most(v, pivot)
                    } else {
                        $less(v, pivot)
                    };
                    $store(below, $compress(less, v));
                    $store(rest, $compress(!less, v));
                    less.count_ones() as usize
                }
            }
        }
    };
}
wide!(
    Avx512Keys32,
    i32,
    16,
    __mmask16,
    FROM32,
    _mm512_loadu_epi32,
    _mm512_storeu_epi32,
    _mm512_set1_epi32,
    _mm512_min_epi32,
    _mm512_max_epi32,
    _mm512_permutexvar_epi32,
    _mm512_mask_max_epi32,
    _mm512_cmplt_epi32_mask,
    _mm512_cmple_epi32_mask,
    _mm512_maskz_compress_epi32
);
wide!(
    Avx512Keys64,
    i64,
    8,
    __mmask8,
    FROM64,
    _mm512_loadu_epi64,
    _mm512_storeu_epi64,
    _mm512_set1_epi64,
    _mm512_min_epi64,
    _mm512_max_epi64,
    _mm512_permutexvar_epi64,
    _mm512_mask_max_epi64,
    _mm512_cmplt_epi64_mask,
    _mm512_cmple_epi64_mask,
    _mm512_maskz_compress_epi64
);

/// For every set of eight lanes, the permutation that moves them to the front: eight lane numbers, those of the set first.
static FRONT32: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut at, mut i) = (0, 0);
        while i < 16 {
            // First the lanes of the set, then the others.
            let lane = i % 8;
            if (set >> lane & 1 == 1) == (i < 8) {
                table[set][at] = lane as u8;
                at += 1;
            }
            i += 1;
        }
        set += 1;
    }
    table
};

/// The same for four 64-bit lanes, as indices of 32-bit lanes.
static FRONT64: [[u8; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut set = 0;
    while set < 16 {
        let (mut at, mut i) = (0, 0);
        while i < 8 {
            let lane = i % 4;
            if (set >> lane & 1 == 1) == (i < 4) {
                table[set][2 * at] = 2 * lane as u8;
                table[set][2 * at + 1] = 2 * lane as u8 + 1;
                at += 1;
            }
            i += 1;
        }
        set += 1;
    }
    table
};

/// Permutes the lanes by a row of these tables.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn arranged(v: __m256i, order: &[u8; 8]) -> __m256i {
    // SAFETY: AVX2; the row has eight bytes.
    unsafe {
        let order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(order.as_ptr().cast()));
        _mm256_permutevar8x32_epi32(v, order)
    }
}

macro_rules! half {
    ($lanes:ty, $key:ty, $len:literal, $from:ident, $upper:ident, $set:ident, $greater:ident, $front:ident, $bits:ident, $cast:ident,
     $min:expr, $max:expr) => {
        impl Lanes for $lanes {
            type Key = $key;
            type Vector = __m256i;
            const LEN: usize = $len;
            const LARGEST: $key = <$key>::MAX;
            #[inline(always)]
            unsafe fn load(from: *const $key) -> __m256i {
                // SAFETY: the trait's contract.
                unsafe { _mm256_loadu_si256(from.cast()) }
            }
            #[inline(always)]
            unsafe fn store(to: *mut $key, v: __m256i) {
                // SAFETY: the trait's contract.
                unsafe { _mm256_storeu_si256(to.cast(), v) }
            }
            #[inline(always)]
            unsafe fn splat(key: $key) -> __m256i {
                // SAFETY: the trait's contract.
                unsafe { $set(key) }
            }
            #[inline(always)]
            unsafe fn min(a: __m256i, b: __m256i) -> __m256i {
                // SAFETY: the trait's contract.
                unsafe { $min(a, b) }
            }
            #[inline(always)]
            unsafe fn max(a: __m256i, b: __m256i) -> __m256i {
                // SAFETY: the trait's contract.
                unsafe { $max(a, b) }
            }
            #[inline(always)]
            unsafe fn backwards(v: __m256i) -> __m256i {
                // SAFETY: the trait's contract; the constant has the size of a register.
                unsafe {
                    let from = _mm256_loadu_si256(Exchange::<{ $len - 1 }>::$from.as_ptr().cast());
                    _mm256_permutevar8x32_epi32(v, from)
                }
            }
            #[inline(always)]
            unsafe fn ordered<const X: usize>(v: __m256i) -> __m256i {
                // SAFETY: the trait's contract; the constants have the size of a register.
                unsafe {
                    let from = _mm256_loadu_si256(Exchange::<X>::$from.as_ptr().cast());
                    let other = _mm256_permutevar8x32_epi32(v, from);
                    let upper = _mm256_loadu_si256(Exchange::<X>::$upper.as_ptr().cast());
                    _mm256_blendv_epi8(Self::min(v, other), Self::max(v, other), upper)
                }
            }
            #[inline(always)]
            unsafe fn split<const EQUAL: bool>(
                v: __m256i,
                pivot: __m256i,
                below: *mut $key,
                rest: *mut $key,
            ) -> usize {
                const ALL: usize = (1 << $len) - 1;
                // SAFETY: the trait's contract; a mask has `LEN` bits, so the table has a row for each.
                unsafe {
                    let less = if EQUAL {
                        $bits($cast($greater(v, pivot))) as usize & ALL ^ ALL
                    } else {
                        $bits($cast($greater(pivot, v))) as usize & ALL
                    };
                    Self::store(below, arranged(v, &$front[less]));
                    Self::store(rest, arranged(v, &$front[less ^ ALL]));
                    less.count_ones() as usize
                }
            }
        }
    };
}
half!(
    Avx2Keys32,
    i32,
    8,
    FROM32,
    UPPER32,
    _mm256_set1_epi32,
    _mm256_cmpgt_epi32,
    FRONT32,
    _mm256_movemask_ps,
    _mm256_castsi256_ps,
    _mm256_min_epi32,
    _mm256_max_epi32
);
half!(
    Avx2Keys64,
    i64,
    4,
    HALVES,
    UPPER64,
    _mm256_set1_epi64x,
    _mm256_cmpgt_epi64,
    FRONT64,
    _mm256_movemask_pd,
    _mm256_castsi256_pd,
    |a, b| _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b)),
    |a, b| _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b))
);
