//! Matrices whose elements are so large or so small that squares of them, or quotients of complex numbers, leave the range of the type are
//! multiplied by a power of two first, which rounds nothing, and their factors are multiplied back.

use crate::memory::copied;
use crate::number::{MatrixElement, RealElement};

/// The power of two that brings the largest element to where squares are safe; 0 if they are as it is, and for zeros, infinities and NaNs.
pub(crate) fn exponent<T: MatrixElement>(a: &[T]) -> i32 {
    match size(a) {
        // No further down than needed, for the sake of the small elements.
        Some(found) if found > T::Re::SAFE => T::Re::SAFE - found,
        Some(found) if found < -T::Re::SAFE => -found,
        _ => 0,
    }
}

/// The same for elimination, which squares nothing: only quotients of complex numbers, and reciprocals of what is nearly zero, leave the range.
pub(crate) fn of_elimination<T: MatrixElement>(a: &[T]) -> i32 {
    if T::IS_COMPLEX {
        return exponent(a);
    }
    size(a).map_or(0, |found| if found < -T::Re::TINY { -found } else { 0 })
}

/// The exponent of the largest element. `None` for zeros, infinities and NaNs.
fn size<T: MatrixElement>(a: &[T]) -> Option<i32> {
    let zero = <T::Re as MatrixElement>::ZERO;
    let largest = a.iter().fold(zero, |largest, x| {
        let size = x.taxicab();
        if size > largest { size } else { largest }
    });
    if largest == zero {
        return None;
    }
    // Sums of the parts' sizes may overflow: then the sizes are as large as can be.
    if largest.is_number() {
        Some(largest.exponent())
    } else {
        a.iter().all(|x| x.is_number()).then_some(T::Re::LARGEST)
    }
}

/// The elements times 2 to the power of `exponent`, which may be out of the range of the type.
pub(crate) fn multiply<T: MatrixElement>(x: &mut [T], exponent: i32) {
    // Powers that are exact in both types; between them nothing becomes subnormal that does not stay so.
    let mut left = exponent;
    while left != 0 {
        let step = left.clamp(-T::Re::STEP, T::Re::STEP);
        let factor = T::Re::power_of_two(step);
        x.iter_mut().for_each(|x| *x = x.times(factor));
        left -= step;
    }
}

/// A copy of the elements times 2 to the power of `exponent`; nothing for 0.
pub(crate) fn multiplied<T: MatrixElement>(a: &[T], exponent: i32) -> Option<Vec<T>> {
    (exponent != 0).then(|| {
        let mut copy = copied(a);
        multiply(&mut copy, exponent);
        copy
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn ordinary_matrices_are_left_alone() {
        assert_eq!(exponent(&[1.0_f64, -1e30, 0.0]), 0);
        assert_eq!(exponent(&[1e-3_f32, 300.0]), 0);
        assert_eq!(exponent::<f64>(&[]), 0);
        assert_eq!(exponent(&[0.0_f64, -0.0]), 0);
        assert_eq!(exponent(&[f64::INFINITY, 1.0]), 0);
    }

    #[test]
    fn the_largest_element_comes_where_squares_are_safe_and_goes_back() {
        for size in [5e-324_f64, 1e-310, 1e-200, 1e160, f64::MAX] {
            let a = [size, -size, 0.0];
            let e = exponent(&a);
            let mut scaled = multiplied(&a, e).unwrap_or_default();
            assert!((0.25..=1e61).contains(&scaled[0]), "{size}: {}", scaled[0]);
            multiply(&mut scaled, -e);
            assert_eq!(scaled, a);
        }
        let a = [Complex::new(f32::MAX, f32::MAX)];
        let mut scaled = multiplied(&a, exponent(&a)).unwrap_or_default();
        assert!(scaled[0].re <= 65536.0);
        multiply(&mut scaled, -exponent(&a));
        assert_eq!(scaled, a);
    }
}
