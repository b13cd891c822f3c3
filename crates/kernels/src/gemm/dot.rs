//! Inner products of dense vectors, in lanes that stay in registers.
//!
//! Lanes and their order are functions of the length alone: neither the instruction set nor threads change a bit.

use num_complex::Complex;

use super::small::Scalar;
use crate::isa::{Isa, isa};

/// Elements that have inner products.
pub(crate) trait Inner: Scalar {
    /// Sum of the products of the elements of `a`, conjugated if `CONJUGATED`, with those of `b`.
    ///
    /// # Safety
    /// `n` elements are readable at both.
    unsafe fn dot<const CONJUGATED: bool>(a: *const Self, b: *const Self, n: usize) -> Self;

    /// Sums of the products of four rows with one vector.
    ///
    /// # Safety
    /// `n` elements are readable at each of `rows` and at `x`.
    unsafe fn dots(rows: [*const Self; 4], x: *const Self, n: usize) -> [Self; 4];
}

/// Runs `$body` compiled for the instruction set in force.
macro_rules! compiled {
    ($body:ident, [$($use:tt)*], ($($arg:ident: $ty:ty),*) -> $ret:ty) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2($($arg: $ty),*) -> $ret {
            // SAFETY: forwarded.
            unsafe { $body::<$($use)*>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
        unsafe fn avx512($($arg: $ty),*) -> $ret {
            // SAFETY: forwarded.
            unsafe { $body::<$($use)*>($($arg),*) }
        }
        // SAFETY: `isa()` found the features; the rest is the caller's.
        unsafe {
            match isa() {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => avx512($($arg),*),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => avx2($($arg),*),
                _ => $body::<$($use)*>($($arg),*),
            }
        }
    }};
}

/// Lanes of one register of the widest kind, added up by halves.
macro_rules! joined {
    ($lanes:expr, $width:ident) => {{
        let mut lanes = $lanes;
        // Written out, so that no lane is named by a variable and all stay in registers.
        joined!(@ lanes, $width, 8);
        joined!(@ lanes, $width, 4);
        joined!(@ lanes, $width, 2);
        joined!(@ lanes, $width, 1);
        lanes[0]
    }};
    (@ $lanes:ident, $width:ident, $half:literal) => {
        if $width > $half {
            for l in 0..$half {
                $lanes[l] = $lanes[l] + $lanes[l + $half];
            }
        }
    };
}

macro_rules! inner {
    ($t:ty, $width:literal) => {
        impl Inner for $t {
            unsafe fn dot<const CONJUGATED: bool>(a: *const Self, b: *const Self, n: usize) -> Self {
                compiled!(real, [$t, $width], (a: *const $t, b: *const $t, n: usize) -> $t)
            }

            unsafe fn dots(rows: [*const Self; 4], x: *const Self, n: usize) -> [Self; 4] {
                compiled!(real_rows, [$t, $width], (rows: [*const $t; 4], x: *const $t, n: usize) -> [$t; 4])
            }
        }

        impl Inner for Complex<$t> {
            unsafe fn dot<const CONJUGATED: bool>(a: *const Self, b: *const Self, n: usize) -> Self {
                let (a, b) = (a.cast::<$t>(), b.cast::<$t>());
                let [aligned, crossed] = compiled!(parts, [$t, $width], (a: *const $t, b: *const $t, n: usize) -> [[$t; 2]; 2]);
                if CONJUGATED {
                    Complex::new(aligned[0] + aligned[1], crossed[0] - crossed[1])
                } else {
                    Complex::new(aligned[0] - aligned[1], crossed[0] + crossed[1])
                }
            }

            unsafe fn dots(rows: [*const Self; 4], x: *const Self, n: usize) -> [Self; 4] {
                // SAFETY: the caller's.
                rows.map(|row| unsafe { Self::dot::<false>(row, x, n) })
            }
        }
    };
}
inner!(f32, 16);
inner!(f64, 8);

/// What is left of a vector behind the last whole register, and zeros.
///
/// # Safety
/// `n < W` elements are readable at `x`.
#[inline(always)]
unsafe fn padded<T: Scalar, const W: usize>(x: *const T, n: usize) -> [T; W] {
    let mut rest = [T::from_real(0.0); W];
    for (l, slot) in rest.iter_mut().enumerate().take(n) {
        // SAFETY: l < n.
        *slot = unsafe { *x.add(l) };
    }
    rest
}

/// # Safety
/// As for [`Inner::dot`].
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "lanes of three arrays by one number"
)]
unsafe fn real<T: Scalar, const W: usize>(a: *const T, b: *const T, n: usize) -> T {
    let mut sums = [[T::from_real(0.0); W]; 4];
    let mut i = 0;
    // SAFETY: all elements that are read lie below `n`.
    unsafe {
        macro_rules! add {
            ($sum:expr, $at:expr) => {
                for l in 0..W {
                    $sum[l] = $sum[l] + *a.add($at + l) * *b.add($at + l);
                }
            };
        }
        while i + 4 * W <= n {
            add!(sums[0], i);
            add!(sums[1], i + W);
            add!(sums[2], i + 2 * W);
            add!(sums[3], i + 3 * W);
            i += 4 * W;
        }
        while i + W <= n {
            add!(sums[0], i);
            i += W;
        }
        if i < n {
            let (a, b) = (
                padded::<T, W>(a.add(i), n - i),
                padded::<T, W>(b.add(i), n - i),
            );
            for l in 0..W {
                sums[1][l] = sums[1][l] + a[l] * b[l];
            }
        }
    }
    for l in 0..W {
        sums[0][l] = (sums[0][l] + sums[1][l]) + (sums[2][l] + sums[3][l]);
    }
    joined!(sums[0], W)
}

/// # Safety
/// As for [`Inner::dots`].
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "lanes of three arrays by one number"
)]
unsafe fn real_rows<T: Scalar, const W: usize>(
    rows: [*const T; 4],
    x: *const T,
    n: usize,
) -> [T; 4] {
    let mut sums = [[T::from_real(0.0); W]; 4];
    let mut i = 0;
    // SAFETY: all elements that are read lie below `n`.
    unsafe {
        macro_rules! add {
            ($r:literal, $row:expr, $x:expr) => {
                for l in 0..W {
                    sums[$r][l] = sums[$r][l] + *$row.add(l) * $x[l];
                }
            };
        }
        while i + W <= n {
            let x = *x.add(i).cast::<[T; W]>();
            add!(0, rows[0].add(i), x);
            add!(1, rows[1].add(i), x);
            add!(2, rows[2].add(i), x);
            add!(3, rows[3].add(i), x);
            i += W;
        }
        if i < n {
            let x = padded::<T, W>(x.add(i), n - i);
            let rest = rows.map(|row| padded::<T, W>(row.add(i), n - i));
            add!(0, rest[0].as_ptr(), x);
            add!(1, rest[1].as_ptr(), x);
            add!(2, rest[2].as_ptr(), x);
            add!(3, rest[3].as_ptr(), x);
        }
    }
    [
        joined!(sums[0], W),
        joined!(sums[1], W),
        joined!(sums[2], W),
        joined!(sums[3], W),
    ]
}

/// Of complex vectors, as rows of their parts: the sums of the products of real parts and of imaginary parts; and of real by imaginary
/// and imaginary by real parts.
///
/// # Safety
/// As for [`Inner::dot`]: `2 n` parts are readable at both.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "lanes of three arrays by one number"
)]
unsafe fn parts<T: Scalar, const W: usize>(a: *const T, b: *const T, n: usize) -> [[T; 2]; 2] {
    let zero = T::from_real(0.0);
    let (mut aligned, mut crossed) = ([[zero; W]; 2], [[zero; W]; 2]);
    let (mut i, n) = (0, 2 * n);
    // SAFETY: all parts that are read lie below `n`, which is even, as is `W`.
    unsafe {
        macro_rules! add {
            ($g:literal, $a:expr, $b:expr) => {
                for l in 0..W {
                    aligned[$g][l] = aligned[$g][l] + *$a.add(l) * *$b.add(l);
                    crossed[$g][l] = crossed[$g][l] + *$a.add(l) * *$b.add(l ^ 1);
                }
            };
        }
        while i + 2 * W <= n {
            add!(0, a.add(i), b.add(i));
            add!(1, a.add(i + W), b.add(i + W));
            i += 2 * W;
        }
        if i + W <= n {
            add!(0, a.add(i), b.add(i));
            i += W;
        }
        if i < n {
            let (a, b) = (
                padded::<T, W>(a.add(i), n - i),
                padded::<T, W>(b.add(i), n - i),
            );
            add!(1, a.as_ptr(), b.as_ptr());
        }
    }
    let pairs = |sums: [[T; W]; 2]| {
        let mut lanes = sums[0];
        for l in 0..W {
            lanes[l] = lanes[l] + sums[1][l];
        }
        let mut both = [zero; 2];
        for l in 0..W / 2 {
            both = [both[0] + lanes[2 * l], both[1] + lanes[2 * l + 1]];
        }
        both
    };
    [pairs(aligned), pairs(crossed)]
}
