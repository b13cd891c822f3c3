//! Conversions between element types, one row at a time and over N dimensions.
//!
//! The rules are NumPy's `astype`: floats to integers truncate, out-of-range values and NaN give what x86 gives (the
//! integer minimum through 64 bits, then wrapped); complex to real drops the imaginary part; anything to bool is `!= 0`.

mod half;

use crate::elem::Elem;
use crate::isa::{Isa, isa};
use crate::map::row::{bit, c64, c128};

/// Converts a row: `n` contiguous elements at `src` to `n` contiguous elements at `dst`.
///
/// # Safety
/// Both are valid for `n` elements, aligned, and do not overlap; the CPU has the instruction set that the function was chosen for.
pub type CastFn = unsafe fn(src: *const u8, dst: *mut u8, n: usize);

/// Conversion of one value.
pub(crate) trait To<U> {
    fn to(self) -> U;
}

macro_rules! int_casts {
    ($($t:ty)*) => { $(
        int_casts!(@to $t: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
        impl To<bool> for $t { #[inline(always)] fn to(self) -> bool { self != 0 } }
        impl To<c64> for $t { #[inline(always)] fn to(self) -> c64 { c64::new(self as f32, 0.0) } }
        impl To<c128> for $t { #[inline(always)] fn to(self) -> c128 { c128::new(self as f64, 0.0) } }
        impl To<$t> for bit { #[inline(always)] fn to(self) -> $t { self.get() as $t } }
    )* };
    (@to $t:ty: $($u:ty)*) => { $(impl To<$u> for $t { #[inline(always)] fn to(self) -> $u { self as $u } })* };
}
int_casts!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Truncation to 64 bits. Out-of-range values and NaN give the minimum, as x86's instruction does.
#[inline(always)]
fn truncate64(x: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) {
        // SAFETY: the value, truncated, is in range.
        unsafe { x.to_int_unchecked() }
    } else {
        i64::MIN
    }
}

/// Truncation to 32 bits. Out-of-range values and NaN give the minimum, as x86's instruction does.
#[inline(always)]
fn truncate32(x: f64) -> i32 {
    if x > -2_147_483_649.0 && x < 2_147_483_648.0 {
        // SAFETY: the value, truncated, is in range.
        unsafe { x.to_int_unchecked() }
    } else {
        i32::MIN
    }
}

/// [`truncate32`] of an f32, without a conversion to f64.
#[inline(always)]
fn truncate32_single(x: f32) -> i32 {
    if (-2_147_483_648.0..2_147_483_648.0).contains(&x) {
        // SAFETY: the value, truncated, is in range.
        unsafe { x.to_int_unchecked() }
    } else {
        i32::MIN
    }
}

/// Truncation to unsigned 64 bits: negative values wrap, out-of-range values give 2^63.
#[inline(always)]
fn truncate_u64(x: f64) -> u64 {
    const TWO63: f64 = 9_223_372_036_854_775_808.0;
    if (TWO63..2.0 * TWO63).contains(&x) {
        (truncate64(x - TWO63) as u64) ^ (1 << 63)
    } else {
        truncate64(x) as u64
    }
}

macro_rules! float_casts {
    ($($t:ty, $truncate32:ident);*) => { $(
        impl To<i8> for $t { #[inline(always)] fn to(self) -> i8 { $truncate32(self) as i8 } }
        impl To<i16> for $t { #[inline(always)] fn to(self) -> i16 { $truncate32(self) as i16 } }
        impl To<i32> for $t { #[inline(always)] fn to(self) -> i32 { $truncate32(self) } }
        impl To<i64> for $t { #[inline(always)] fn to(self) -> i64 { truncate64(self as f64) } }
        impl To<u8> for $t { #[inline(always)] fn to(self) -> u8 { $truncate32(self) as u8 } }
        impl To<u16> for $t { #[inline(always)] fn to(self) -> u16 { $truncate32(self) as u16 } }
        impl To<u32> for $t { #[inline(always)] fn to(self) -> u32 { truncate64(self as f64) as u32 } }
        impl To<u64> for $t { #[inline(always)] fn to(self) -> u64 { truncate_u64(self as f64) } }
        impl To<f32> for $t { #[inline(always)] fn to(self) -> f32 { self as f32 } }
        impl To<f64> for $t { #[inline(always)] fn to(self) -> f64 { self as f64 } }
        impl To<bool> for $t { #[inline(always)] fn to(self) -> bool { self != 0.0 } }
        impl To<c64> for $t { #[inline(always)] fn to(self) -> c64 { c64::new(self as f32, 0.0) } }
        impl To<c128> for $t { #[inline(always)] fn to(self) -> c128 { c128::new(self as f64, 0.0) } }
    )* };
}
float_casts!(f32, truncate32_single; f64, truncate32);

macro_rules! complex_casts {
    ($($t:ty)*) => { $(
        complex_casts!(@to $t: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
        impl To<bool> for $t { #[inline(always)] fn to(self) -> bool { (self.re != 0.0) | (self.im != 0.0) } }
        impl To<c64> for $t { #[inline(always)] fn to(self) -> c64 { c64::new(self.re as f32, self.im as f32) } }
        impl To<c128> for $t { #[inline(always)] fn to(self) -> c128 { c128::new(self.re as f64, self.im as f64) } }
    )* };
    (@to $t:ty: $($u:ty)*) => { $(impl To<$u> for $t { #[inline(always)] fn to(self) -> $u { self.re.to() } })* };
}
complex_casts!(c64 c128);

impl To<bool> for bit {
    #[inline(always)]
    fn to(self) -> bool {
        self.get()
    }
}
impl To<f32> for bit {
    #[inline(always)]
    fn to(self) -> f32 {
        f32::from(u8::from(self.get()))
    }
}
impl To<f64> for bit {
    #[inline(always)]
    fn to(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
}
impl To<c64> for bit {
    #[inline(always)]
    fn to(self) -> c64 {
        c64::new(self.to(), 0.0)
    }
}
impl To<c128> for bit {
    #[inline(always)]
    fn to(self) -> c128 {
        c128::new(self.to(), 0.0)
    }
}

/// # Safety
/// Same as for [`CastFn`].
#[inline(always)]
unsafe fn body<T: Copy + To<U>, U>(src: *const u8, dst: *mut u8, n: usize) {
    let (src, dst) = (src.cast::<T>(), dst.cast::<U>());
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *dst.add(i) = (*src.add(i)).to() };
    }
}

/// # Safety
/// Same as for [`CastFn`].
unsafe fn base<T: Copy + To<U>, U>(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: same contract.
    unsafe { body::<T, U>(src, dst, n) }
}

/// # Safety
/// Same as for [`CastFn`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
unsafe fn avx2<T: Copy + To<U>, U>(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: same contract.
    unsafe { body::<T, U>(src, dst, n) }
}

/// # Safety
/// Same as for [`CastFn`].
#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
)]
unsafe fn avx512<T: Copy + To<U>, U>(src: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: same contract.
    unsafe { body::<T, U>(src, dst, n) }
}

fn pick<T: Copy + To<U>, U>(isa: Isa) -> CastFn {
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Baseline => base::<T, U>,
        Isa::Avx2 => avx2::<T, U>,
        Isa::Avx512 => avx512::<T, U>,
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = isa;
        base::<T, U>
    }
}

fn from<T>(isa: Isa, to: Elem) -> Option<CastFn>
where
    T: Copy
        + To<bool>
        + To<i8>
        + To<i16>
        + To<i32>
        + To<i64>
        + To<u8>
        + To<u16>
        + To<u32>
        + To<u64>,
    T: To<f32> + To<f64> + To<c64> + To<c128>,
{
    Some(match to {
        Elem::Bool => pick::<T, bool>(isa),
        Elem::I8 => pick::<T, i8>(isa),
        Elem::I16 => pick::<T, i16>(isa),
        Elem::I32 => pick::<T, i32>(isa),
        Elem::I64 => pick::<T, i64>(isa),
        Elem::U8 => pick::<T, u8>(isa),
        Elem::U16 => pick::<T, u16>(isa),
        Elem::U32 => pick::<T, u32>(isa),
        Elem::U64 => pick::<T, u64>(isa),
        Elem::F32 => pick::<T, f32>(isa),
        Elem::F64 => pick::<T, f64>(isa),
        Elem::C64 => pick::<T, c64>(isa),
        Elem::C128 => pick::<T, c128>(isa),
        Elem::F16 | Elem::BF16 => return None,
    })
}

/// The function that converts between two types directly. `None` if the conversion needs an intermediate f32 or f64.
fn single_conversion(isa: Isa, from_elem: Elem, to: Elem) -> Option<CastFn> {
    if let Some(f) = half::row(isa, from_elem, to) {
        return Some(f);
    }
    match from_elem {
        Elem::Bool => from::<bit>(isa, to),
        Elem::I8 => from::<i8>(isa, to),
        Elem::I16 => from::<i16>(isa, to),
        Elem::I32 => from::<i32>(isa, to),
        Elem::I64 => from::<i64>(isa, to),
        Elem::U8 => from::<u8>(isa, to),
        Elem::U16 => from::<u16>(isa, to),
        Elem::U32 => from::<u32>(isa, to),
        Elem::U64 => from::<u64>(isa, to),
        Elem::F32 => from::<f32>(isa, to),
        Elem::F64 => from::<f64>(isa, to),
        Elem::C64 => from::<c64>(isa, to),
        Elem::C128 => from::<c128>(isa, to),
        Elem::F16 | Elem::BF16 => None,
    }
}

/// A conversion between two element types: one row function, or two with an intermediate f32 or f64 buffer.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    first: CastFn,
    second: Option<(CastFn, Elem)>,
    from: Elem,
    to: Elem,
}

/// Length of the intermediate buffer, in elements.
const MIDDLE: usize = 512;

impl Cast {
    /// The conversion from `from` to `to` for this CPU. Equal types give a plain copy.
    pub fn new(from: Elem, to: Elem) -> Cast {
        let isa = isa();
        if let Some(first) = single_conversion(isa, from, to) {
            return Cast {
                first,
                second: None,
                from,
                to,
            };
        }
        // f64 and c128 must reach f16 and bf16 with one rounding, so the intermediate type is f64. All others round to f32 first, as NumPy does.
        let middle = if matches!(from, Elem::F64 | Elem::C128) {
            Elem::F64
        } else {
            Elem::F32
        };
        let row = |a, b| {
            single_conversion(isa, a, b).expect("f32 and f64 convert to and from every element")
        };
        Cast {
            first: row(from, middle),
            second: Some((row(middle, to), middle)),
            from,
            to,
        }
    }

    /// Converts `n` contiguous elements.
    ///
    /// # Safety
    /// `src` and `dst` are valid for `n` elements of their types, aligned, and do not overlap.
    pub unsafe fn row(&self, src: *const u8, dst: *mut u8, n: usize) {
        let Some((second, middle)) = self.second else {
            // SAFETY: guaranteed by the caller; the function was chosen for this CPU.
            return unsafe { (self.first)(src, dst, n) };
        };
        let mut buffer = std::mem::MaybeUninit::<[f64; MIDDLE]>::uninit();
        let between = buffer.as_mut_ptr().cast::<u8>();
        debug_assert!(middle.size() <= 8);
        let mut at = 0;
        while at < n {
            let m = MIDDLE.min(n - at);
            // SAFETY: at + m <= n; the buffer holds MIDDLE elements of up to 8 bytes, and the first function fills what the second one reads.
            unsafe {
                (self.first)(src.add(at * self.from.size()), between, m);
                second(between, dst.add(at * self.to.size()), m);
            }
            at += m;
        }
    }
}

/// Converts an array of `shape`; strides in bytes, any sign, source strides may be 0.
///
/// # Safety
/// Both sides are valid and aligned for all elements at their strides. Destination elements are distinct and overlap no source element, except that
/// `dst` may be `src` itself if both types have equal size and each element is converted in place.
#[allow(clippy::too_many_arguments, reason = "two arrays and their shape")]
pub unsafe fn cast_nd(
    threads: &dyn crate::Threads,
    shape: &[usize],
    dst: *mut u8,
    dst_elem: Elem,
    dst_strides: &[isize],
    src: *const u8,
    src_elem: Elem,
    src_strides: &[isize],
) {
    use crate::map::Operand;
    let outs = [Operand {
        ptr: dst,
        elem: dst_elem,
        strides: dst_strides,
    }];
    let ins = [Operand {
        ptr: src.cast_mut(),
        elem: src_elem,
        strides: src_strides,
    }];
    // SAFETY: guaranteed by the caller.
    unsafe { crate::map::convert(threads, shape, &outs, &ins) }
}
