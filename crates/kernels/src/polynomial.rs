//! Division of polynomials.

use num_complex::Complex;

use crate::Elem;
use crate::map::complex;

/// Element type of a coefficient.
trait Coefficient: Copy {
    fn reciprocal(self) -> Self;
    fn times(self, other: Self) -> Self;
    fn minus_product(self, a: Self, b: Self) -> Self;
}

macro_rules! coefficients {
    ($($t:ty, |$x:ident| $reciprocal:expr);*) => { $(impl Coefficient for $t {
        #[inline(always)]
        fn reciprocal(self) -> Self { let $x = self; $reciprocal }
        #[inline(always)]
        fn times(self, other: Self) -> Self { self * other }
        #[inline(always)]
        fn minus_product(self, a: Self, b: Self) -> Self { self - a * b }
    })* };
}
coefficients!(
    f32, |x| 1.0 / x;
    f64, |x| 1.0 / x;
    Complex<f32>, |z| complex::reciprocal(z);
    Complex<f64>, |z| complex::reciprocal(z)
);

/// Divides the polynomial with the `n` coefficients at `rest`, highest power first, by the one with the `m` coefficients at `divisor`. Overwrites
/// `rest` with the `n - m + 1` coefficients of the quotient, followed by the `m - 1` of the remainder.
///
/// # Safety
/// `elem` is F32, F64, C64 or C128; `1 <= m <= n`; both are contiguous and do not overlap.
///
/// # Panics
/// If `elem` is none of these types.
pub unsafe fn divide(elem: Elem, rest: *mut u8, n: usize, divisor: *const u8, m: usize) {
    let run = match elem {
        Elem::F32 => divide_of::<f32>,
        Elem::F64 => divide_of::<f64>,
        Elem::C64 => divide_of::<Complex<f32>>,
        Elem::C128 => divide_of::<Complex<f64>>,
        other => panic!("polynomials of {other:?} are not divided: the caller converts"),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { run(rest, n, divisor, m) }
}

/// # Safety
/// Same as for [`divide`], of elements of type `T`.
unsafe fn divide_of<T: Coefficient>(rest: *mut u8, n: usize, divisor: *const u8, m: usize) {
    // SAFETY: guaranteed by the caller.
    let (rest, divisor) = unsafe {
        (
            std::slice::from_raw_parts_mut(rest.cast::<T>(), n),
            std::slice::from_raw_parts(divisor.cast::<T>(), m),
        )
    };
    let scale = divisor[0].reciprocal();
    for k in 0..=n - m {
        let term = rest[k].times(scale);
        rest[k] = term;
        // Eliminates the highest coefficient: subtracts its multiple of the divisor from those that follow.
        for (x, &d) in rest[k + 1..k + m].iter_mut().zip(&divisor[1..]) {
            *x = x.minus_product(term, d);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotient_times_divisor_plus_remainder_is_the_dividend() {
        let dividend: Vec<f64> = (0..23).map(|i| f64::from(i * i % 7) - 2.5).collect();
        for m in [1, 2, 5, 22, 23] {
            let divisor: Vec<f64> = (0..m).map(|i| f64::from(i % 3) + 1.0).collect();
            let mut rest = dividend.clone();
            // SAFETY: lengths are those of the slices.
            unsafe {
                divide(
                    Elem::F64,
                    rest.as_mut_ptr().cast(),
                    rest.len(),
                    divisor.as_ptr().cast(),
                    divisor.len(),
                );
            }
            let count = rest.len() - divisor.len() + 1;
            let (quotient, remainder) = rest.split_at(count);
            for (t, &wanted) in dividend.iter().enumerate() {
                let product: f64 = (quotient.iter().enumerate())
                    .filter_map(|(k, q)| Some(q * divisor.get(t.checked_sub(k)?)?))
                    .sum();
                let left = t.checked_sub(count).map_or(0.0, |i| remainder[i]);
                assert!(
                    (product + left - wanted).abs()
                        < 1e-9 * quotient.iter().fold(1.0, |a, q| q.abs().max(a)),
                    "{m} coefficients: {product} + {left} at {t}, {wanted} was divided"
                );
            }
        }
    }
}
