//! The types that sparse kernels compute in, and the dispatch from `Elem`.

#[cfg(target_arch = "x86_64")]
use super::vector::avx512;
#[cfg(target_arch = "x86_64")]
use super::vector::sum_rows;
use crate::reduce::number::Complex;

/// A number type with products and sums. Integers wrap.
pub(crate) trait Value: Copy + PartialEq + PartialOrd + Send + Sync + 'static {
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;

    /// [`sum_rows`] with masked loads, where the type has them.
    ///
    /// # Safety
    /// The processor has AVX-512 (F, DQ, VL) and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    unsafe fn sum_rows_avx512(offsets: &[i64], products: &[Self], out: &mut [Self]) {
        sum_rows(offsets, products, out);
    }
}

macro_rules! floats {
    ($($t:ty: $sum_rows:ident),*) => { $(impl Value for $t {
        const ZERO: Self = 0.0;
        #[inline(always)]
        fn plus(self, other: Self) -> Self { self + other }
        #[inline(always)]
        fn minus(self, other: Self) -> Self { self - other }
        #[inline(always)]
        fn times(self, other: Self) -> Self { self * other }

        #[cfg(target_arch = "x86_64")]
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        unsafe fn sum_rows_avx512(offsets: &[i64], products: &[Self], out: &mut [Self]) {
            avx512::$sum_rows(offsets, products, out);
        }
    })* };
}
floats!(f32: sum_rows_f32, f64: sum_rows_f64);

macro_rules! integers {
    ($($t:ty),*) => { $(impl Value for $t {
        const ZERO: Self = 0;
        #[inline(always)]
        fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
        #[inline(always)]
        fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
        #[inline(always)]
        fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
    })* };
}
integers!(i64, u64);

macro_rules! complex {
    ($($t:ty),*) => { $(impl Value for Complex<$t> {
        const ZERO: Self = Complex { re: 0.0, im: 0.0 };
        #[inline(always)]
        fn plus(self, other: Self) -> Self { Complex { re: self.re + other.re, im: self.im + other.im } }
        #[inline(always)]
        fn minus(self, other: Self) -> Self { Complex { re: self.re - other.re, im: self.im - other.im } }
        #[inline(always)]
        fn times(self, other: Self) -> Self {
            Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
        }
    })* };
}
complex!(f32, f64);

/// Dense input of a kernel, in the type that it computes in.
#[derive(Clone, Copy)]
pub struct Operand {
    /// First element.
    pub ptr: *const u8,
    /// Number of elements.
    pub len: usize,
}

impl Operand {
    /// # Safety
    /// `len` elements of `T` can be read at `ptr`, aligned, during the lifetime of the slice.
    pub(crate) unsafe fn as_slice<'a, T>(self) -> &'a [T] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }
    }
}

/// `len` elements of `T` at `ptr` as a mutable slice.
///
/// # Safety
/// The elements are aligned and nobody else accesses them.
pub(crate) unsafe fn output<'a, T>(ptr: *mut u8, len: usize) -> &'a mut [T] {
    if len == 0 {
        return &mut [];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(ptr.cast(), len) }
}

/// Memory for a sparse result, allocated once its number of elements is known.
pub struct Output {
    /// Values.
    pub data: *mut u8,
    /// Columns.
    pub indices: *mut i64,
}

/// Runs `$body` with `$T` naming the type that values of `$elem` are computed in: f32, f64, c64, c128, i64 or u64.
macro_rules! with_value {
    ($elem:expr, $T:ident => $body:expr) => {{
        use $crate::reduce::number::Complex;
        match $elem {
            $crate::Elem::F32 => {
                type $T = f32;
                $body
            }
            $crate::Elem::F64 => {
                type $T = f64;
                $body
            }
            $crate::Elem::I64 => {
                type $T = i64;
                $body
            }
            $crate::Elem::U64 => {
                type $T = u64;
                $body
            }
            $crate::Elem::C64 => {
                type $T = Complex<f32>;
                $body
            }
            $crate::Elem::C128 => {
                type $T = Complex<f64>;
                $body
            }
            other => panic!("sparse kernels do not compute in {other:?}"),
        }
    }};
}
pub(crate) use with_value;

/// Defines `$name`, which runs the generic `$body` compiled for the CPU's instruction set.
macro_rules! per_isa_value {
    ($(#[$doc:meta])* fn $name:ident<$T:ident>($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "a row's operands are slices")]
        fn $name<$T: $crate::sparse::value::Value>($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe")]
            #[allow(clippy::too_many_arguments, reason = "a row's operands are slices")]
            fn avx2<$T: $crate::sparse::value::Value>($($arg: $ty),*) {
                $body::<$T>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            #[allow(clippy::too_many_arguments, reason = "a row's operands are slices")]
            fn avx512<$T: $crate::sparse::value::Value>($($arg: $ty),*) {
                $body::<$T>($($arg),*)
            }
            match $crate::isa::isa() {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `isa()` found the features.
                $crate::isa::Isa::Avx512 => unsafe { avx512::<$T>($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `isa()` found the features.
                $crate::isa::Isa::Avx2 => unsafe { avx2::<$T>($($arg),*) },
                _ => $body::<$T>($($arg),*),
            }
        }
    };
}
pub(crate) use per_isa_value;
