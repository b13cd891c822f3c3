//! Samples of the von Mises distribution.

use std::f64::consts::PI;

use super::Stream;
use super::source::{Source, fill_each};
use crate::{Elem, Threads};

/// Fills `n` contiguous elements of type `elem` with angles in [-pi, pi] around 0 and returns the number of counter blocks used, `n`.
/// `concentrations` has one element for all, or `n`; none is negative.
///
/// # Safety
/// `out` has room for `n` elements.
pub unsafe fn fill_angles(
    threads: &dyn Threads,
    stream: Stream,
    concentrations: &[f64],
    elem: Elem,
    n: usize,
    out: *mut u8,
) -> u64 {
    let of = |i: usize| match concentrations {
        [one] => *one,
        all => all[i],
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        fill_each(threads, stream, 80, elem, n, out, &|i, source| {
            von_mises(source, of(i))
        })
    }
}

/// Rejection from the wrapped Cauchy distribution. Source: Best and Fisher, "Efficient simulation of the von Mises distribution", 1979. Here e = r -
/// 1 replaces their r, and tangents of half angles replace their cosines, so that no digits are lost for small and large concentrations.
fn von_mises(source: &mut Source, kappa: f64) -> f64 {
    if kappa == 0.0 {
        return PI * (2.0 * source.unit() - 1.0);
    }
    // The distribution equals a normal one to within the rounding of the result.
    if kappa > 1e10 {
        return source.normals().0 / kappa.sqrt();
    }
    let root = (1.0 + 4.0 * kappa * kappa).sqrt();
    let tau = 1.0 + root;
    let sum = tau + (2.0 * tau).sqrt();
    let rho = 2.0 * kappa / sum;
    let rest = (1.0 + 1.0 / (root + 2.0 * kappa) + (2.0 * tau).sqrt()) / sum;
    let e = rest * rest / (2.0 * rho);
    let squeeze = (e / (2.0 + e)).sqrt();
    loop {
        let t = (0.5 * PI * source.unit()).tan();
        let c = kappa * e * ((2.0 + e) / (e + 2.0 / (1.0 + t * t)));
        let u = source.positive();
        if c * (2.0 - c) - u > 0.0 || (c / u).ln() + 1.0 - c >= 0.0 {
            let angle = 2.0 * (squeeze * t).atan();
            return if source.word() >> 63 == 0 {
                angle
            } else {
                -angle
            };
        }
    }
}
