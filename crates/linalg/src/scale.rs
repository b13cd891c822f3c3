//! Scaling of matrices with very large or very small elements, whose squares, or complex quotients, would overflow or underflow. They are multiplied
//! by a power of two before the factorisation, which is exact, and the factors are scaled back.

use crate::memory::copied;
use crate::number::{MatrixElement, RealElement};

/// The power of two that scales the largest element so that squares are safe. 0 if no scaling is needed, and for zeros, infinities and NaNs.
pub(crate) fn exponent<T: MatrixElement>(a: &[T]) -> i32 {
    match size(a) {
        // Scales down no further than needed, to keep small elements.
        Some(found) if found > T::Re::SAFE => T::Re::SAFE - found,
        Some(found) if found < -T::Re::SAFE => -found,
        _ => 0,
    }
}

/// The power of two for elimination, which squares nothing: only complex quotients and reciprocals of numbers near zero can overflow.
pub(crate) fn exponent_for_elimination<T: MatrixElement>(a: &[T]) -> i32 {
    if T::IS_COMPLEX {
        return exponent(a);
    }
    size(a).map_or(0, |found| {
        if found < -T::Re::MIN_UNSCALED {
            -found
        } else {
            0
        }
    })
}

/// The exponent of the largest element; `None` for zeros, infinities and NaNs.
fn size<T: MatrixElement>(a: &[T]) -> Option<i32> {
    let zero = <T::Re as MatrixElement>::ZERO;
    let largest = a.iter().fold(zero, |largest, x| {
        let size = x.sum_of_parts();
        if size > largest { size } else { largest }
    });
    if largest == zero {
        return None;
    }
    // The sum of the parts' sizes may overflow: then the exponent is the largest one.
    if largest.is_number() {
        Some(largest.exponent())
    } else {
        a.iter().all(|x| x.is_number()).then_some(T::Re::LARGEST)
    }
}

/// Multiplies the elements by 2 to the power of `exponent`, which may exceed the range of the type.
pub(crate) fn multiply<T: MatrixElement>(x: &mut [T], exponent: i32) {
    // The factor is applied in steps that the type represents exactly; no intermediate result is subnormal unless the final one is.
    let mut left = exponent;
    while left != 0 {
        let step = left.clamp(-T::Re::STEP, T::Re::STEP);
        let factor = T::Re::power_of_two(step);
        x.iter_mut().for_each(|x| *x = x.times(factor));
        left -= step;
    }
}

/// A copy of the elements times 2 to the power of `exponent`; `None` for exponent 0.
pub(crate) fn multiplied<T: MatrixElement>(a: &[T], exponent: i32) -> Option<Vec<T>> {
    (exponent != 0).then(|| {
        let mut copy = copied(a);
        multiply(&mut copy, exponent);
        copy
    })
}
