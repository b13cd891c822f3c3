//! `vdot`: the inner product of dense complex vectors with the first one conjugated.
//!
//! The partition into parts and lanes and the order of additions depend only on the length: the result is the same bit for bit for every instruction
//! set and number of threads.

use num_complex::Complex;

use super::unpacked::Scalar;
use crate::isa::{Isa, isa};
use crate::{Elem, Threads};

/// Elements of a part; one task sums one part.
const PART: usize = 16 * 1024;

/// Writes to `out` the sum over i of `conj(a[i]) * b[i]` for `n` dense elements of type `elem`, C64 or C128.
///
/// # Safety
/// `n` elements are readable at both; `out` has room for one and does not overlap them.
///
/// # Panics
/// If `elem` is neither `C64` nor `C128`.
pub unsafe fn conjugated_dot(
    threads: &dyn Threads,
    elem: Elem,
    n: usize,
    a: *const u8,
    b: *const u8,
    out: *mut u8,
) {
    // SAFETY: same contract.
    unsafe {
        match elem {
            Elem::C64 => dot::<f32>(threads, n, a.cast(), b.cast(), out.cast()),
            Elem::C128 => dot::<f64>(threads, n, a.cast(), b.cast(), out.cast()),
            other => panic!("{other:?} has no conjugate: the caller takes `gemm`"),
        }
    }
}

unsafe fn dot<T: Part>(
    threads: &dyn Threads,
    n: usize,
    a: *const T,
    b: *const T,
    out: *mut Complex<T>,
) {
    let parts = n.div_ceil(PART);
    let zero = Complex::new(T::from_real(0.0), T::from_real(0.0));
    let mut sums = crate::scratch::filled(parts, zero);
    let (a, b, base) = (a as usize, b as usize, sums.as_mut_ptr() as usize);
    let task = |part: usize| {
        let first = part * PART;
        // SAFETY: the part lies inside both vectors (two numbers per element); every task writes its own sum.
        unsafe {
            let sum = T::sum(
                (a as *const T).add(2 * first),
                (b as *const T).add(2 * first),
                PART.min(n - first),
            );
            *(base as *mut Complex<T>).add(part) = sum;
        }
    };
    if parts > 1 {
        threads.run(parts, &task);
    } else {
        (0..parts).for_each(task);
    }
    let total = sums
        .into_iter()
        .reduce(|x, y| Complex::new(x.re + y.re, x.im + y.im));
    // SAFETY: `out` has room for one element.
    unsafe { *out = total.unwrap_or(zero) };
}

/// Real type of the real and imaginary parts.
trait Part: Scalar {
    /// Sum over `n` elements with interleaved real and imaginary parts.
    ///
    /// # Safety
    /// `2 n` parts are readable at both.
    unsafe fn sum(a: *const Self, b: *const Self, n: usize) -> Complex<Self>;
}

macro_rules! part {
    ($t:ty, $width:literal) => {
        impl Part for $t {
            unsafe fn sum(a: *const $t, b: *const $t, n: usize) -> Complex<$t> {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2(a: *const $t, b: *const $t, n: usize) -> [[$t; 2]; 2] {
                    // SAFETY: same contract.
                    unsafe { products::<$t, $width>(a, b, n) }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
                unsafe fn avx512(a: *const $t, b: *const $t, n: usize) -> [[$t; 2]; 2] {
                    // SAFETY: same contract.
                    unsafe { products::<$t, $width>(a, b, n) }
                }
                // SAFETY: `isa()` found the features; same contract.
                let [aligned, crossed] = unsafe {
                    match isa() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => avx512(a, b, n),
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => avx2(a, b, n),
                        _ => products::<$t, $width>(a, b, n),
                    }
                };
                Complex::new(aligned[0] + aligned[1], crossed[0] - crossed[1])
            }
        }
    };
}
part!(f32, 16);
part!(f64, 8);

/// Sums of `re * re` and `im * im` products, and of `re * im` and `im * re` products.
///
/// # Safety
/// Same as for [`Part::sum`].
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "lanes of several arrays by one number"
)]
unsafe fn products<T: Scalar, const W: usize>(a: *const T, b: *const T, n: usize) -> [[T; 2]; 2] {
    let zero = T::from_real(0.0);
    let (mut aligned, mut crossed) = ([[zero; W]; 2], [[zero; W]; 2]);
    let (mut i, n) = (0, 2 * n);
    // SAFETY: all parts that are read lie below `n`; `n` and `W` are even.
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
        for l in 0..n - i {
            aligned[1][l] = aligned[1][l] + *a.add(i + l) * *b.add(i + l);
            crossed[1][l] = crossed[1][l] + *a.add(i + l) * *b.add((i + l) ^ 1);
        }
    }
    let pairs = |sums: [[T; W]; 2]| {
        let mut both = [zero; 2];
        for l in 0..W / 2 {
            both[0] = both[0] + (sums[0][2 * l] + sums[1][2 * l]);
            both[1] = both[1] + (sums[0][2 * l + 1] + sums[1][2 * l + 1]);
        }
        both
    };
    [pairs(aligned), pairs(crossed)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Serial;
    use crate::reduce::fixtures::Noise;
    use crate::threads::Scoped;

    fn run<T: Part + Default>(threads: &dyn Threads, elem: Elem, a: &[T], b: &[T]) -> Complex<T> {
        let mut out = Complex::new(T::default(), T::default());
        // SAFETY: both vectors have as many elements; the result is a variable.
        unsafe {
            let to = (&raw mut out).cast();
            conjugated_dot(
                threads,
                elem,
                a.len() / 2,
                a.as_ptr().cast(),
                b.as_ptr().cast(),
                to,
            );
        }
        out
    }

    #[test]
    fn sums_agree_with_a_reference_loop_on_any_number_of_threads() {
        let mut noise = Noise(5);
        for n in [0, 1, 3, 7, 8, 9, 31, 33, 1000, PART, PART + 1, 3 * PART + 5] {
            let mut numbers = || (0..2 * n).map(|_| noise.unit()).collect::<Vec<f64>>();
            let (a, b) = (numbers(), numbers());
            let mut want = Complex::new(0.0, 0.0);
            for i in 0..n {
                let of = |x: &[f64]| Complex::new(x[2 * i], x[2 * i + 1]);
                want += of(&a).conj() * of(&b);
            }
            let got = run(&Serial, Elem::C128, &a, &b);
            assert!(
                (got - want).norm() <= 1e-12 * (1.0 + n as f64),
                "{n}: {got} {want}"
            );
            assert_eq!(run(&Scoped(3), Elem::C128, &a, &b), got);
            let single = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
            let (a, b) = (single(&a), single(&b));
            let half = run(&Serial, Elem::C64, &a, &b);
            let apart = Complex::new(f64::from(half.re), f64::from(half.im)) - want;
            assert!(
                apart.norm() <= 1e-5 * (1.0 + n as f64),
                "{n}: {half} {want}"
            );
            assert_eq!(run(&Scoped(4), Elem::C64, &a, &b), half);
        }
    }
}
