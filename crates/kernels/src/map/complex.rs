//! Functions of complex numbers. All compute in f64. c64 operands are converted to c128, so each part of their results is accurate to about half an
//! ulp, unless it nearly cancels.
//!
//! Branch cuts and signed zeros are those of C99 and NumPy. The inverse functions use Kahan's formulas, which keep small real and imaginary parts
//! accurate (Source: W. Kahan, Branch cuts for complex elementary functions, 1987).

use std::f64::consts::{FRAC_PI_2, LN_2, PI};

use num_complex::Complex;

use super::row::c128;

/// Type of the real and imaginary parts.
pub(crate) trait Part: Copy + PartialOrd {
    fn to_f64(self) -> f64;
    fn from_f64(x: f64) -> Self;
}

impl Part for f32 {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
}

impl Part for f64 {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
}

#[inline(always)]
fn to_c128<P: Part>(z: Complex<P>) -> c128 {
    c128::new(z.re.to_f64(), z.im.to_f64())
}

#[inline(always)]
fn from_c128<P: Part>(z: c128) -> Complex<P> {
    Complex::new(P::from_f64(z.re), P::from_f64(z.im))
}

/// A function of c128 applied to either complex type.
#[inline(always)]
pub(super) fn through<P: Part>(z: Complex<P>, f: fn(c128) -> c128) -> Complex<P> {
    from_c128(f(to_c128(z)))
}

/// Lexicographic order, real part first; false for NaN.
#[inline(always)]
pub(super) fn lt<P: Part>(a: Complex<P>, b: Complex<P>) -> bool {
    (a.re < b.re && !is_nan_part(a.im) && !is_nan_part(b.im)) || (a.re == b.re && a.im < b.im)
}

/// `a >= b` in the order of [`lt`].
#[inline(always)]
pub(super) fn ge<P: Part>(a: Complex<P>, b: Complex<P>) -> bool {
    (a.re > b.re && !is_nan_part(a.im) && !is_nan_part(b.im)) || (a.re == b.re && a.im >= b.im)
}

#[inline(always)]
fn is_nan_part<P: Part>(x: P) -> bool {
    x.to_f64().is_nan()
}

#[inline(always)]
pub(super) fn is_nan<P: Part>(z: Complex<P>) -> bool {
    is_nan_part(z.re) | is_nan_part(z.im)
}

#[inline(always)]
pub(super) fn is_true<P: Part>(z: Complex<P>) -> bool {
    (z.re.to_f64() != 0.0) | (z.im.to_f64() != 0.0)
}

/// `z / |z|`, 0 at 0.
pub(super) fn sign<P: Part>(z: Complex<P>) -> Complex<P> {
    let w = to_c128(z);
    if !is_true(z) {
        return z;
    }
    if w.re.is_infinite() != w.im.is_infinite() {
        let part = |x: f64| {
            if x.is_infinite() {
                1f64.copysign(x)
            } else {
                0f64.copysign(x)
            }
        };
        return from_c128(c128::new(part(w.re), part(w.im)));
    }
    let modulus = libm::hypot(w.re, w.im);
    from_c128(c128::new(w.re / modulus, w.im / modulus))
}

/// Quotient by Smith's method: scales by the larger part of the divisor, so that no square overflows.
#[inline(always)]
pub(super) fn divide<P: Part>(a: Complex<P>, b: Complex<P>) -> Complex<P> {
    let (a, b) = (to_c128(a), to_c128(b));
    let (re, im) = (b.re.abs(), b.im.abs());
    from_c128(if re >= im {
        if re == 0.0 && im == 0.0 {
            c128::new(a.re / re, a.im / re)
        } else {
            let ratio = b.im / b.re;
            let scale = 1.0 / (b.re + b.im * ratio);
            c128::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
        }
    } else {
        let ratio = b.re / b.im;
        let scale = 1.0 / (b.im + b.re * ratio);
        c128::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
    })
}

/// `1 / z`; NaN for 0, where the direction of the infinity is undefined.
pub(crate) fn reciprocal<P: Part>(z: Complex<P>) -> Complex<P> {
    let z = to_c128(z);
    from_c128(if z.re.abs() >= z.im.abs() {
        let ratio = z.im / z.re;
        let size = z.re + z.im * ratio;
        c128::new(1.0 / size, -ratio / size)
    } else {
        let ratio = z.re / z.im;
        let size = z.re * ratio + z.im;
        c128::new(ratio / size, -1.0 / size)
    })
}

/// `i z`.
fn times_i(z: c128) -> c128 {
    c128::new(-z.im, z.re)
}

/// `-i z`.
fn times_minus_i(z: c128) -> c128 {
    c128::new(z.im, -z.re)
}

pub(super) fn exp(z: c128) -> c128 {
    if z.im == 0.0 {
        return c128::new(libm::exp(z.re), z.im);
    }
    if z.re.is_infinite() && !z.im.is_finite() {
        return if z.re < 0.0 {
            c128::new(0.0, 0.0)
        } else {
            c128::new(z.re, f64::NAN)
        };
    }
    let (sin, cos) = libm::sincos(z.im);
    // exp overflows here, but its product with a small sine may not.
    if z.re > 709.0 && z.re < 1500.0 {
        let (first, rest) = (libm::exp(709.0), libm::exp(z.re - 709.0));
        return c128::new(first * cos * rest, first * sin * rest);
    }
    let modulus = libm::exp(z.re);
    c128::new(modulus * cos, modulus * sin)
}

pub(super) fn exp2(z: c128) -> c128 {
    exp(c128::new(
        z.re * std::f64::consts::LN_2,
        z.im * std::f64::consts::LN_2,
    ))
}

pub(super) fn expm1(z: c128) -> c128 {
    let half = libm::sin(0.5 * z.im);
    c128::new(
        libm::expm1(z.re) * libm::cos(z.im) - 2.0 * half * half,
        libm::exp(z.re) * libm::sin(z.im),
    )
}

/// log |z|, without overflow, and without cancellation near the unit circle.
fn log_modulus(z: c128) -> f64 {
    let (re, im) = (z.re.abs(), z.im.abs());
    let (big, small) = (re.max(im), re.min(im));
    let modulus = libm::hypot(re, im);
    if modulus > 0.5 && modulus < 2.0 {
        0.5 * libm::log1p((big - 1.0) * (big + 1.0) + small * small)
    } else if modulus.is_infinite() && big.is_finite() {
        libm::log(libm::hypot(0.25 * re, 0.25 * im)) + 2.0 * std::f64::consts::LN_2
    } else {
        libm::log(modulus)
    }
}

pub(super) fn log(z: c128) -> c128 {
    c128::new(log_modulus(z), libm::atan2(z.im, z.re))
}

pub(super) fn log2(z: c128) -> c128 {
    log(z) * std::f64::consts::LOG2_E
}

pub(super) fn log10(z: c128) -> c128 {
    log(z) * std::f64::consts::LOG10_E
}

pub(super) fn log1p(z: c128) -> c128 {
    let near = z.re.abs() < 0.5 && z.im.abs() < 0.5;
    let modulus = if near {
        0.5 * libm::log1p(z.re * (2.0 + z.re) + z.im * z.im)
    } else {
        log_modulus(c128::new(1.0 + z.re, z.im))
    };
    c128::new(modulus, libm::atan2(z.im, 1.0 + z.re))
}

pub(super) fn sqrt(z: c128) -> c128 {
    if z.re == 0.0 && z.im == 0.0 {
        return c128::new(0.0, z.im);
    }
    if z.im.is_infinite() {
        return c128::new(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() {
        let side = if z.im.is_nan() { f64::NAN } else { 0.0 };
        return if z.re > 0.0 {
            c128::new(
                z.re,
                if z.im.is_nan() {
                    z.im
                } else {
                    0f64.copysign(z.im)
                },
            )
        } else {
            c128::new(side, f64::INFINITY.copysign(z.im))
        };
    }
    // Scaled by powers of 4, whose square roots are exact.
    let scale = if z.re.abs().max(z.im.abs()) > 1e300 {
        (0.25, 2.0)
    } else if z.re.abs().max(z.im.abs()) < 1e-290 {
        (2f64.powi(108), 2f64.powi(-54))
    } else {
        (1.0, 1.0)
    };
    let (re, im) = (z.re * scale.0, z.im * scale.0);
    let t = (0.5 * (re.abs() + libm::hypot(re, im))).sqrt();
    let other = im.abs() / (2.0 * t);
    let root = if re >= 0.0 {
        c128::new(t, other.copysign(im))
    } else {
        c128::new(other, t.copysign(im))
    };
    root * scale.1
}

/// `a^b`; small integer exponents by multiplication, as in NumPy.
pub(super) fn power<P: Part>(a: Complex<P>, b: Complex<P>) -> Complex<P> {
    let (a, b) = (to_c128(a), to_c128(b));
    if b.re == 0.0 && b.im == 0.0 {
        return from_c128(c128::new(1.0, 0.0));
    }
    if a.re == 0.0 && a.im == 0.0 {
        let nan = c128::new(f64::NAN, f64::NAN);
        return from_c128(if b.re > 0.0 { c128::new(0.0, 0.0) } else { nan });
    }
    if b.im == 0.0 && b.re.abs() < 100.0 && b.re.trunc() == b.re {
        let mut count = b.re.abs() as u32;
        let (mut value, mut square) = (c128::new(1.0, 0.0), a);
        while count > 0 {
            if count & 1 == 1 {
                value *= square;
            }
            square *= square;
            count >>= 1;
        }
        return from_c128(if b.re < 0.0 {
            divide(c128::new(1.0, 0.0), value)
        } else {
            value
        });
    }
    from_c128(exp(b * log(a)))
}

// Infinities, NaNs and signs of zeros follow C (ISO/IEC 9899, Annex G.6).

pub(super) fn sinh(z: c128) -> c128 {
    if z.im == 0.0 {
        return c128::new(libm::sinh(z.re), z.im);
    }
    let (sin, cos) = libm::sincos(z.im);
    if z.re == 0.0 {
        let re = if z.im.is_finite() { z.re * cos } else { z.re };
        return c128::new(re, sin);
    }
    if z.re.is_infinite() && !z.im.is_finite() {
        return c128::new(f64::INFINITY, f64::NAN);
    }
    if z.re.abs() > LARGE {
        let (re, im) = (half_exp(z.re, cos), half_exp(z.re, sin));
        return c128::new(re * 1f64.copysign(z.re), im);
    }
    c128::new(libm::sinh(z.re) * cos, libm::cosh(z.re) * sin)
}

/// Above this, exp overflows, although its product with a sine may not.
const LARGE: f64 = 709.0;

/// `exp(|x|) / 2 * factor`, which overflows only if the result does.
fn half_exp(x: f64, factor: f64) -> f64 {
    let half = libm::exp(0.5 * x.abs());
    0.5 * half * factor * half
}

pub(super) fn cosh(z: c128) -> c128 {
    if z.im == 0.0 {
        return c128::new(libm::cosh(z.re), z.im * 1f64.copysign(z.re));
    }
    let (sin, cos) = libm::sincos(z.im);
    if z.re == 0.0 {
        let im = if z.im.is_finite() { z.re * sin } else { 0.0 };
        return c128::new(cos, im);
    }
    if z.re.is_infinite() && !z.im.is_finite() {
        return c128::new(f64::INFINITY, f64::NAN);
    }
    if z.re.abs() > LARGE {
        let (re, im) = (half_exp(z.re, cos), half_exp(z.re, sin));
        return c128::new(re, im * 1f64.copysign(z.re));
    }
    c128::new(libm::cosh(z.re) * cos, libm::sinh(z.re) * sin)
}

pub(super) fn tanh(z: c128) -> c128 {
    if z.im == 0.0 && z.re.is_nan() {
        return z;
    }
    if !z.im.is_finite() && !z.re.is_infinite() {
        let re = if z.re == 0.0 { z.re } else { f64::NAN };
        return c128::new(re, f64::NAN);
    }
    if z.re.abs() > 22.0 {
        // The real part is 1 up to an error of 4 exp(-2 |x|), which is also the magnitude of the imaginary part.
        let (sin, cos) = if z.im.is_finite() {
            libm::sincos(z.im)
        } else {
            (0f64.copysign(z.im), 1.0)
        };
        return c128::new(
            1f64.copysign(z.re),
            4.0 * sin * cos * libm::exp(-2.0 * z.re.abs()),
        );
    }
    let t = libm::tan(z.im);
    let beta = 1.0 + t * t;
    let s = libm::sinh(z.re);
    let rho = (1.0 + s * s).sqrt();
    if t.is_infinite() {
        return c128::new(rho / s, 1.0 / t);
    }
    let scale = 1.0 / (1.0 + beta * s * s);
    c128::new(beta * rho * s * scale, t * scale)
}

pub(super) fn sin(z: c128) -> c128 {
    times_minus_i(sinh(times_i(z)))
}

pub(super) fn cos(z: c128) -> c128 {
    cosh(times_i(z))
}

pub(super) fn tan(z: c128) -> c128 {
    times_minus_i(tanh(times_i(z)))
}

/// sqrt(1 - z) and sqrt(1 + z), keeping the sign of a zero imaginary part.
fn roots(z: c128) -> (c128, c128) {
    (
        sqrt(c128::new(1.0 - z.re, -z.im)),
        sqrt(c128::new(1.0 + z.re, z.im)),
    )
}

pub(super) fn asin(z: c128) -> c128 {
    if !z.is_finite() {
        return times_minus_i(asinh_non_finite(times_i(z)));
    }
    let (a, b) = roots(z);
    c128::new(
        libm::atan2(z.re, (a * b).re),
        libm::asinh(a.re * b.im - a.im * b.re),
    )
}

pub(super) fn acos(z: c128) -> c128 {
    if !z.is_finite() {
        let im = f64::INFINITY.copysign(-z.im);
        return match (z.re, z.im.is_infinite()) {
            (re, true) if re.is_finite() => c128::new(FRAC_PI_2, im),
            (re, true) if re.is_infinite() => {
                c128::new(if re > 0.0 { 0.5 } else { 1.5 } * FRAC_PI_2, im)
            }
            (_, true) => c128::new(f64::NAN, im),
            (0.0, false) => c128::new(FRAC_PI_2, f64::NAN),
            (re, false) if re.is_infinite() && z.im.is_nan() => c128::new(f64::NAN, f64::INFINITY),
            (re, false) if re.is_infinite() => c128::new(if re > 0.0 { 0.0 } else { PI }, im),
            (_, false) => c128::new(f64::NAN, f64::NAN),
        };
    }
    let (a, b) = roots(z);
    c128::new(
        2.0 * libm::atan2(a.re, b.re),
        libm::asinh(b.re * a.im - b.im * a.re),
    )
}

pub(super) fn acosh(z: c128) -> c128 {
    if !z.is_finite() {
        let w = acos(z);
        return c128::new(w.im.abs(), w.re.copysign(z.im));
    }
    let a = sqrt(c128::new(z.re - 1.0, z.im));
    let b = sqrt(c128::new(z.re + 1.0, z.im));
    c128::new(
        libm::asinh(a.re * b.re + a.im * b.im),
        2.0 * libm::atan2(a.im, b.re),
    )
}

/// `asinh` of non-finite numbers.
fn asinh_non_finite(z: c128) -> c128 {
    if z.im.is_infinite() {
        let angle = match z.re {
            re if re.is_nan() => return c128::new(f64::INFINITY, f64::NAN),
            re if re.is_infinite() => 0.5 * FRAC_PI_2,
            _ => FRAC_PI_2,
        };
        return c128::new(f64::INFINITY.copysign(z.re), angle.copysign(z.im));
    }
    let is_known = z.re.is_infinite() && !z.im.is_nan() || z.re.is_nan() && z.im == 0.0;
    let im = if is_known {
        0f64.copysign(z.im)
    } else {
        f64::NAN
    };
    c128::new(if z.re.is_infinite() { z.re } else { f64::NAN }, im)
}

pub(super) fn asinh(z: c128) -> c128 {
    times_minus_i(asin(times_i(z)))
}

pub(super) fn atanh(z: c128) -> c128 {
    // Odd in the real part. With |re| the argument of log1p stays away from -1, where it would cancel.
    let size = z.re.abs();
    if !z.is_finite() {
        let re = match z.re == 0.0 || z.re.is_infinite() || z.im.is_infinite() {
            true => 0f64.copysign(z.re),
            false => f64::NAN,
        };
        let im = match z.im.is_infinite() || z.re.is_infinite() && !z.im.is_nan() {
            true => FRAC_PI_2.copysign(z.im),
            false => f64::NAN,
        };
        return c128::new(re, im);
    }
    if size > 1e100 || z.im.abs() > 1e100 {
        // The squares would overflow; the real part is that of 1 / z.
        let modulus = libm::hypot(0.5 * size, 0.5 * z.im);
        let re = 0.25 * (size / modulus) / modulus;
        return c128::new(re.copysign(z.re), FRAC_PI_2.copysign(z.im));
    }
    let below = 1.0 - size;
    let re = match below == 0.0 && z.im.abs() < 1e-100 {
        // The square would underflow to zero.
        true => 0.5 * (LN_2 - libm::log(z.im.abs())),
        false => 0.25 * libm::log1p(4.0 * size / (below * below + z.im * z.im)),
    };
    c128::new(
        re.copysign(z.re),
        0.5 * libm::atan2(2.0 * z.im, below * (1.0 + size) - z.im * z.im),
    )
}

pub(super) fn atan(z: c128) -> c128 {
    times_minus_i(atanh(times_i(z)))
}
