// Functions of one element for every compute type; they correspond to the inner loops of elementwise operators on the CPU.
//
// Integers wrap; integer division by zero gives 0. Complex functions compute in f64.

namespace mx {

constexpr f64 PI = 3.14159265358979323846;
constexpr f64 HALF_PI = 1.57079632679489661923;
constexpr f64 LN_2 = 0.693147180559945309417;
constexpr f64 LOG2_E = 1.44269504088896340736;
constexpr f64 LOG10_E = 0.434294481903251827651;

template <class T> MX_FN T infinity() {
    if constexpr (same<T, f32>) return bits_as<f32>(0x7f800000u);
    else return bits_as<f64>(0x7ff0000000000000ull);
}
template <class T> MX_FN T not_a_number() {
    if constexpr (same<T, f32>) return bits_as<f32>(0x7fc00000u);
    else return bits_as<f64>(0x7ff8000000000000ull);
}

#define MX_REAL(name, single_name, double_name)                                                                          \
    MX_FN f32 name(f32 x) { return ::single_name(x); }                                                                   \
    MX_FN f64 name(f64 x) { return ::double_name(x); }
MX_REAL(exp_of, expf, exp)
MX_REAL(exp2_of, exp2f, exp2)
MX_REAL(expm1_of, expm1f, expm1)
MX_REAL(log_of, logf, log)
MX_REAL(log2_of, log2f, log2)
MX_REAL(log10_of, log10f, log10)
MX_REAL(log1p_of, log1pf, log1p)
MX_REAL(sqrt_of, sqrtf, sqrt)
MX_REAL(cbrt_of, cbrtf, cbrt)
MX_REAL(sin_of, sinf, sin)
MX_REAL(cos_of, cosf, cos)
MX_REAL(tan_of, tanf, tan)
MX_REAL(asin_of, asinf, asin)
MX_REAL(acos_of, acosf, acos)
MX_REAL(atan_of, atanf, atan)
MX_REAL(sinh_of, sinhf, sinh)
MX_REAL(cosh_of, coshf, cosh)
MX_REAL(tanh_of, tanhf, tanh)
MX_REAL(asinh_of, asinhf, asinh)
MX_REAL(acosh_of, acoshf, acosh)
MX_REAL(atanh_of, atanhf, atanh)
MX_REAL(floor_of, floorf, floor)
MX_REAL(ceil_of, ceilf, ceil)
MX_REAL(trunc_of, truncf, trunc)
MX_REAL(rint_of, rintf, rint)
MX_REAL(abs_of, fabsf, fabs)
MX_REAL(erf_of, erff, erf)
MX_REAL(erfc_of, erfcf, erfc)
MX_REAL(tgamma_of, tgammaf, tgamma)
#undef MX_REAL
#define MX_REAL2(name, single_name, double_name)                                                                         \
    MX_FN f32 name(f32 x, f32 y) { return ::single_name(x, y); }                                                         \
    MX_FN f64 name(f64 x, f64 y) { return ::double_name(x, y); }
MX_REAL2(pow_of, powf, pow)
MX_REAL2(fmod_of, fmodf, fmod)
MX_REAL2(atan2_of, atan2f, atan2)
MX_REAL2(copysign_of, copysignf, copysign)
#undef MX_REAL2
MX_FN f64 hypot_of(f64 x, f64 y) { return ::hypot(x, y); }
MX_FN f32 hypot_of(f32 x, f32 y) {
    // The squares are exact in f64 and cannot overflow there.
    f64 a = x, b = y;
    f32 root = (f32)::sqrt(a * a + b * b);
    return abs_of(x) == infinity<f32>() || abs_of(y) == infinity<f32>() ? infinity<f32>() : root;
}

template <class T> MX_FN bool is_nan_of(T x) { return x != x; }
template <class T> MX_FN bool is_infinite(T x) { return abs_of(x) == infinity<T>(); }
template <class T> MX_FN bool is_finite(T x) { return abs_of(x) < infinity<T>(); }
template <class T> MX_FN bool is_negative(T x) {
    if constexpr (same<T, f32>) return bits_as<u32>(x) >> 31;
    else return bits_as<u64>(x) >> 63;
}

// ---- Functions of complex numbers. Branch cuts and signed zeros are those of C99 (Annex G.6) and NumPy; the inverse functions use Kahan's formulas
// (Source: W. Kahan, Branch cuts for complex elementary functions, 1987).

MX_FN c128 wide(c64 z) { return c128(z.re, z.im); }
MX_FN c128 wide(c128 z) { return z; }
template <class C> MX_FN C narrow(c128 z) { return convert<C>(z); }

// Lexicographic order, real part first; false for NaN.
template <class R> MX_FN bool complex_less(complex<R> a, complex<R> b) {
    return (a.re < b.re && a.im == a.im && b.im == b.im) || (a.re == b.re && a.im < b.im);
}
template <class R> MX_FN bool complex_not_less(complex<R> a, complex<R> b) {
    return (a.re > b.re && a.im == a.im && b.im == b.im) || (a.re == b.re && a.im >= b.im);
}
template <class R> MX_FN bool is_nan_of(complex<R> z) { return z.re != z.re || z.im != z.im; }

namespace of_complex {

// Smith's method: scales by the larger part of the divisor, so that no square overflows.
MX_FN c128 divide(c128 a, c128 b) {
    f64 re = abs_of(b.re), im = abs_of(b.im);
    if (re >= im) {
        if (re == 0 && im == 0) return c128(a.re / re, a.im / re);
        f64 ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return c128((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
    }
    f64 ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return c128((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
}

MX_FN c128 reciprocal(c128 z) {
    if (abs_of(z.re) >= abs_of(z.im)) {
        f64 ratio = z.im / z.re, size = z.re + z.im * ratio;
        return c128(1 / size, -ratio / size);
    }
    f64 ratio = z.re / z.im, size = z.re * ratio + z.im;
    return c128(ratio / size, -1 / size);
}

MX_FN c128 sign(c128 z) {
    if (z.re == 0 && z.im == 0) return z;
    if (is_infinite(z.re) != is_infinite(z.im))
        return c128(copysign_of(is_infinite(z.re) ? 1.0 : 0.0, z.re), copysign_of(is_infinite(z.im) ? 1.0 : 0.0, z.im));
    f64 modulus = hypot_of(z.re, z.im);
    return c128(z.re / modulus, z.im / modulus);
}

// `i z` and `-i z`.
MX_FN c128 times_i(c128 z) { return c128(-z.im, z.re); }
MX_FN c128 times_minus_i(c128 z) { return c128(z.im, -z.re); }

MX_FN c128 exp(c128 z) {
    if (z.im == 0) return c128(exp_of(z.re), z.im);
    if (is_infinite(z.re) && !is_finite(z.im))
        return z.re < 0 ? c128(0, 0) : c128(z.re, not_a_number<f64>());
    f64 s = sin_of(z.im), c = cos_of(z.im);
    // exp overflows here, but its product with a small sine may not.
    if (z.re > 709 && z.re < 1500) {
        f64 first = exp_of(709.0), rest = exp_of(z.re - 709);
        return c128(first * c * rest, first * s * rest);
    }
    f64 modulus = exp_of(z.re);
    return c128(modulus * c, modulus * s);
}

MX_FN c128 exp2(c128 z) { return exp(c128(z.re * LN_2, z.im * LN_2)); }

MX_FN c128 expm1(c128 z) {
    f64 half = sin_of(0.5 * z.im);
    return c128(expm1_of(z.re) * cos_of(z.im) - 2 * half * half, exp_of(z.re) * sin_of(z.im));
}

// log |z|, without overflow, and without cancellation near the unit circle.
MX_FN f64 log_modulus(c128 z) {
    f64 re = abs_of(z.re), im = abs_of(z.im);
    f64 big = re > im || im != im ? re : im, small = re > im || im != im ? im : re;
    f64 modulus = hypot_of(re, im);
    if (modulus > 0.5 && modulus < 2) return 0.5 * log1p_of((big - 1) * (big + 1) + small * small);
    if (is_infinite(modulus) && is_finite(big)) return log_of(hypot_of(0.25 * re, 0.25 * im)) + 2 * LN_2;
    return log_of(modulus);
}

MX_FN c128 log(c128 z) { return c128(log_modulus(z), atan2_of(z.im, z.re)); }
MX_FN c128 log2(c128 z) { return log(z) * LOG2_E; }
MX_FN c128 log10(c128 z) { return log(z) * LOG10_E; }

MX_FN c128 log1p(c128 z) {
    bool near = abs_of(z.re) < 0.5 && abs_of(z.im) < 0.5;
    f64 modulus = near ? 0.5 * log1p_of(z.re * (2 + z.re) + z.im * z.im) : log_modulus(c128(1 + z.re, z.im));
    return c128(modulus, atan2_of(z.im, 1 + z.re));
}

MX_FN c128 sqrt(c128 z) {
    if (z.re == 0 && z.im == 0) return c128(0, z.im);
    if (is_infinite(z.im)) return c128(infinity<f64>(), z.im);
    if (is_infinite(z.re)) {
        if (z.re > 0) return c128(z.re, is_nan_of(z.im) ? z.im : copysign_of(0.0, z.im));
        return c128(is_nan_of(z.im) ? z.im : 0.0, copysign_of(infinity<f64>(), z.im));
    }
    // Scaled by powers of 4, whose square roots are exact.
    f64 scale = 1, back = 1, size = abs_of(z.re) > abs_of(z.im) ? abs_of(z.re) : abs_of(z.im);
    if (size > 1e300) {
        scale = 0.25;
        back = 2;
    } else if (size < 1e-290) {
        scale = 324518553658426726783156020576256.0; // 2^108
        back = 5.5511151231257827e-17;               // 2^-54
    }
    f64 re = z.re * scale, im = z.im * scale;
    f64 t = sqrt_of(0.5 * (abs_of(re) + hypot_of(re, im))), other = abs_of(im) / (2 * t);
    c128 root = re >= 0 ? c128(t, copysign_of(other, im)) : c128(other, copysign_of(t, im));
    return root * back;
}

// Small integer exponents by multiplication, as in NumPy.
MX_FN c128 power(c128 a, c128 b) {
    if (b.re == 0 && b.im == 0) return c128(1, 0);
    if (a.re == 0 && a.im == 0)
        return b.re > 0 ? c128(0, 0) : c128(not_a_number<f64>(), not_a_number<f64>());
    if (b.im == 0 && abs_of(b.re) < 100 && trunc_of(b.re) == b.re) {
        u32 count = (u32)abs_of(b.re);
        c128 value(1, 0), square = a;
        while (count > 0) {
            if (count & 1u) value = value * square;
            square = square * square;
            count >>= 1;
        }
        return b.re < 0 ? divide(c128(1, 0), value) : value;
    }
    return exp(b * log(a));
}

// Above this, exp overflows, although its product with a sine may not.
constexpr f64 LARGE = 709;

// exp(|x|) / 2 * factor, which overflows only if the result does.
MX_FN f64 half_exp(f64 x, f64 factor) {
    f64 half = exp_of(0.5 * abs_of(x));
    return 0.5 * half * factor * half;
}

MX_FN c128 sinh(c128 z) {
    if (z.im == 0) return c128(sinh_of(z.re), z.im);
    f64 s = sin_of(z.im), c = cos_of(z.im);
    if (z.re == 0) return c128(is_finite(z.im) ? z.re * c : z.re, s);
    if (is_infinite(z.re) && !is_finite(z.im)) return c128(infinity<f64>(), not_a_number<f64>());
    if (abs_of(z.re) > LARGE) return c128(half_exp(z.re, c) * copysign_of(1.0, z.re), half_exp(z.re, s));
    return c128(sinh_of(z.re) * c, cosh_of(z.re) * s);
}

MX_FN c128 cosh(c128 z) {
    if (z.im == 0) return c128(cosh_of(z.re), z.im * copysign_of(1.0, z.re));
    f64 s = sin_of(z.im), c = cos_of(z.im);
    if (z.re == 0) return c128(c, is_finite(z.im) ? z.re * s : 0.0);
    if (is_infinite(z.re) && !is_finite(z.im)) return c128(infinity<f64>(), not_a_number<f64>());
    if (abs_of(z.re) > LARGE) return c128(half_exp(z.re, c), half_exp(z.re, s) * copysign_of(1.0, z.re));
    return c128(cosh_of(z.re) * c, sinh_of(z.re) * s);
}

MX_FN c128 tanh(c128 z) {
    if (z.im == 0 && is_nan_of(z.re)) return z;
    if (!is_finite(z.im) && !is_infinite(z.re)) return c128(z.re == 0 ? z.re : not_a_number<f64>(), not_a_number<f64>());
    if (abs_of(z.re) > 22) {
        // The real part is 1 up to an error of 4 exp(-2 |x|), which is also the magnitude of the imaginary part.
        f64 s = is_finite(z.im) ? sin_of(z.im) : copysign_of(0.0, z.im), c = is_finite(z.im) ? cos_of(z.im) : 1.0;
        return c128(copysign_of(1.0, z.re), 4 * s * c * exp_of(-2 * abs_of(z.re)));
    }
    f64 t = tan_of(z.im), beta = 1 + t * t, s = sinh_of(z.re), rho = sqrt_of(1 + s * s);
    if (is_infinite(t)) return c128(rho / s, 1 / t);
    f64 scale = 1 / (1 + beta * s * s);
    return c128(beta * rho * s * scale, t * scale);
}

MX_FN c128 sin(c128 z) { return times_minus_i(sinh(times_i(z))); }
MX_FN c128 cos(c128 z) { return cosh(times_i(z)); }
MX_FN c128 tan(c128 z) { return times_minus_i(tanh(times_i(z))); }

// `asinh` of non-finite numbers.
MX_FN c128 asinh_non_finite(c128 z) {
    if (is_infinite(z.im)) {
        if (is_nan_of(z.re)) return c128(infinity<f64>(), not_a_number<f64>());
        f64 angle = is_infinite(z.re) ? 0.5 * HALF_PI : HALF_PI;
        return c128(copysign_of(infinity<f64>(), z.re), copysign_of(angle, z.im));
    }
    bool is_known = (is_infinite(z.re) && !is_nan_of(z.im)) || (is_nan_of(z.re) && z.im == 0);
    f64 im = is_known ? copysign_of(0.0, z.im) : not_a_number<f64>();
    return c128(is_infinite(z.re) ? z.re : not_a_number<f64>(), im);
}

MX_FN c128 asin(c128 z) {
    if (!is_finite(z.re) || !is_finite(z.im)) return times_minus_i(asinh_non_finite(times_i(z)));
    c128 a = sqrt(c128(1 - z.re, -z.im)), b = sqrt(c128(1 + z.re, z.im));
    return c128(atan2_of(z.re, (a * b).re), asinh_of(a.re * b.im - a.im * b.re));
}

MX_FN c128 acos(c128 z) {
    if (!is_finite(z.re) || !is_finite(z.im)) {
        f64 im = copysign_of(infinity<f64>(), -z.im), nan = not_a_number<f64>();
        if (is_infinite(z.im)) {
            if (is_finite(z.re)) return c128(HALF_PI, im);
            if (is_infinite(z.re)) return c128((z.re > 0 ? 0.5 : 1.5) * HALF_PI, im);
            return c128(nan, im);
        }
        if (z.re == 0) return c128(HALF_PI, nan);
        if (is_infinite(z.re) && is_nan_of(z.im)) return c128(nan, infinity<f64>());
        if (is_infinite(z.re)) return c128(z.re > 0 ? 0.0 : PI, im);
        return c128(nan, nan);
    }
    c128 a = sqrt(c128(1 - z.re, -z.im)), b = sqrt(c128(1 + z.re, z.im));
    return c128(2 * atan2_of(a.re, b.re), asinh_of(b.re * a.im - b.im * a.re));
}

MX_FN c128 acosh(c128 z) {
    if (!is_finite(z.re) || !is_finite(z.im)) {
        c128 w = acos(z);
        return c128(abs_of(w.im), copysign_of(w.re, z.im));
    }
    c128 a = sqrt(c128(z.re - 1, z.im)), b = sqrt(c128(z.re + 1, z.im));
    return c128(asinh_of(a.re * b.re + a.im * b.im), 2 * atan2_of(a.im, b.re));
}

MX_FN c128 asinh(c128 z) { return times_minus_i(asin(times_i(z))); }

MX_FN c128 atanh(c128 z) {
    // Odd in the real part. With |re| the argument of log1p stays away from -1, where it would cancel.
    f64 size = abs_of(z.re);
    if (!is_finite(z.re) || !is_finite(z.im)) {
        f64 re = z.re == 0 || is_infinite(z.re) || is_infinite(z.im) ? copysign_of(0.0, z.re) : not_a_number<f64>();
        bool is_right = is_infinite(z.im) || (is_infinite(z.re) && !is_nan_of(z.im));
        return c128(re, is_right ? copysign_of(HALF_PI, z.im) : not_a_number<f64>());
    }
    if (size > 1e100 || abs_of(z.im) > 1e100) {
        // The squares would overflow; the real part is that of 1 / z.
        f64 modulus = hypot_of(0.5 * size, 0.5 * z.im), re = 0.25 * (size / modulus) / modulus;
        return c128(copysign_of(re, z.re), copysign_of(HALF_PI, z.im));
    }
    f64 below = 1 - size;
    // If both are tiny, the square would underflow to zero.
    f64 re = below == 0 && abs_of(z.im) < 1e-100 ? 0.5 * (LN_2 - log_of(abs_of(z.im)))
                                                 : 0.25 * log1p_of(4 * size / (below * below + z.im * z.im));
    return c128(copysign_of(re, z.re), 0.5 * atan2_of(2 * z.im, below * (1 + size) - z.im * z.im));
}

MX_FN c128 atan(c128 z) { return times_minus_i(atanh(times_i(z))); }

} // namespace of_complex

// ---- Functions of real and of complex numbers.

#define MX_BOTH(name, of_real)                                                                                           \
    template <class T> MX_FN T name(T x) {                                                                               \
        if constexpr (is_complex<T>) return narrow<T>(of_complex::of_real(wide(x)));                                     \
        else return of_real##_of(x);                                                                                     \
    }
MX_BOTH(exp, exp)
MX_BOTH(exp2, exp2)
MX_BOTH(expm1, expm1)
MX_BOTH(log, log)
MX_BOTH(log2, log2)
MX_BOTH(log10, log10)
MX_BOTH(log1p, log1p)
MX_BOTH(sqrt, sqrt)
MX_BOTH(sin, sin)
MX_BOTH(cos, cos)
MX_BOTH(tan, tan)
MX_BOTH(arcsin, asin)
MX_BOTH(arccos, acos)
MX_BOTH(arctan, atan)
MX_BOTH(sinh, sinh)
MX_BOTH(cosh, cosh)
MX_BOTH(tanh, tanh)
MX_BOTH(arcsinh, asinh)
MX_BOTH(arccosh, acosh)
MX_BOTH(arctanh, atanh)
#undef MX_BOTH

// ---- Arithmetic.

template <class T> MX_FN T add(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a || (bool)b);
    else if constexpr (is_integer<T>) return (T)((wrapping<T>)a + (wrapping<T>)b);
    else return a + b;
}
template <class T> MX_FN T subtract(T a, T b) {
    if constexpr (is_integer<T>) return (T)((wrapping<T>)a - (wrapping<T>)b);
    else return a - b;
}
template <class T> MX_FN T multiply(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a && (bool)b);
    else if constexpr (is_integer<T>) return (T)((wrapping<T>)a * (wrapping<T>)b);
    else return a * b;
}
template <class T> MX_FN T divide(T a, T b) {
    if constexpr (is_complex<T>) return narrow<T>(of_complex::divide(wide(a), wide(b)));
    else return a / b;
}
template <class T> MX_FN T negative(T x) {
    if constexpr (is_integer<T>) return (T)(0 - (wrapping<T>)x);
    else return -x;
}
// Truncated quotient and remainder of integers; 0 for a zero divisor. The minimum divided by -1 wraps.
template <class T> MX_FN T quotient(T a, T b) {
    if (b == 0) return 0;
    if constexpr (is_signed<T>)
        if (b == -1) return negative(a);
    return (T)(a / b);
}
template <class T> MX_FN T left_over(T a, T b) {
    if (b == 0) return 0;
    if constexpr (is_signed<T>)
        if (b == -1) return 0;
    return (T)(a % b);
}
// Floor quotient, and the remainder with the sign of the divisor.
template <class T> struct Divided {
    T quotient, rest;
};
template <class T> MX_FN Divided<T> divmod(T a, T b) {
    if constexpr (is_integer<T>) {
        T q = quotient(a, b), r = left_over(a, b);
        if constexpr (is_signed<T>)
            if (r != 0 && (r < 0) != (b < 0)) return {(T)(q - 1), (T)(r + b)};
        return {q, r};
    } else {
        if (b == 0) return {a / b, not_a_number<T>()};
        T r = fmod_of(a, b), q = (a - r) / b;
        if (r == 0) {
            r = copysign_of((T)0, b);
        } else if ((b < 0) != (r < 0)) {
            q -= 1;
            r += b;
        }
        // q is an integer except for rounding.
        T whole = floor_of(q);
        if (q - whole > (T)0.5) whole += 1;
        return {q == 0 ? copysign_of((T)0, a / b) : whole, r};
    }
}
template <class T> MX_FN T floor_divide(T a, T b) { return divmod(a, b).quotient; }
template <class T> MX_FN T remainder(T a, T b) { return divmod(a, b).rest; }
template <class T> MX_FN T fmod(T a, T b) {
    if constexpr (is_integer<T>) return left_over(a, b);
    else return fmod_of(a, b);
}

// ---- Extrema.

template <class T> MX_FN bool not_less(T a, T b) {
    if constexpr (is_complex<T>) return complex_not_less(a, b);
    else return a >= b;
}
template <class T> MX_FN bool is_nan_element(T x) {
    if constexpr (is_real<T> || is_complex<T>) return is_nan_of(x);
    else return false;
}
template <class T> MX_FN T maximum(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a || (bool)b);
    else return not_less(a, b) || is_nan_element(a) ? a : b;
}
template <class T> MX_FN T minimum(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a && (bool)b);
    else return not_less(b, a) || is_nan_element(a) ? a : b;
}
template <class T> MX_FN T fmax(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a || (bool)b);
    else return not_less(a, b) || is_nan_element(b) ? a : b;
}
template <class T> MX_FN T fmin(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a && (bool)b);
    else return not_less(b, a) || is_nan_element(b) ? a : b;
}
template <class T> MX_FN T bound(T x, T low, T high) {
    if constexpr (is_integer<T>) {
        T raised = x > low ? x : low;
        return raised < high ? raised : high;
    } else {
        T raised = not_less(x, low) || is_nan_of(x) ? x : low;
        return not_less(high, raised) || is_nan_of(raised) ? raised : high;
    }
}

// The smallest and the largest value of a type: neutral elements of extrema.
template <class T> MX_FN T lowest() {
    if constexpr (is_complex<T>) return T(-infinity<real<T>>(), -infinity<real<T>>());
    else if constexpr (is_real<T>) return -infinity<T>();
    else if constexpr (is_signed<T>) return (T)((wrapping<T>)1 << (sizeof(T) * 8 - 1));
    else return T(0);
}
template <class T> MX_FN T highest() {
    if constexpr (is_complex<T>) return T(infinity<real<T>>(), infinity<real<T>>());
    else if constexpr (is_real<T>) return infinity<T>();
    else if constexpr (is_boolean<T>) return T(true);
    else return (T)~lowest<T>();
}
// NaN for types that have it, else `otherwise`: neutral element of extrema that ignore NaN.
template <class T> MX_FN T nothing(T otherwise) {
    if constexpr (is_real<T>) return not_a_number<T>();
    else return otherwise;
}

// ---- Signs and parts.

template <class T> MX_FN real<T> absolute(T x) {
    if constexpr (is_complex<T>) return hypot_of(x.re, x.im);
    else if constexpr (is_real<T>) return abs_of(x);
    else if constexpr (is_signed<T>) return x < 0 ? negative(x) : x;
    else return x;
}
template <class T> MX_FN T sign(T x) {
    if constexpr (is_complex<T>) return narrow<T>(of_complex::sign(wide(x)));
    else if constexpr (is_real<T>) return x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x;
    else if constexpr (is_signed<T>) return (T)((x > 0) - (x < 0));
    else return (T)(x > 0);
}
// Integers truncate; 1 / 0 is x86's conversion of infinity: the minimum for int32 and int64, 0 for other integers.
template <class T> MX_FN T reciprocal(T x) {
    if constexpr (is_complex<T>) return narrow<T>(of_complex::reciprocal(wide(x)));
    else if constexpr (is_real<T>) return 1 / x;
    else if constexpr (is_signed<T> && sizeof(T) >= 4)
        return x == 1 || x == -1 ? x : x == 0 ? (T)((wrapping<T>)1 << (sizeof(T) * 8 - 1)) : (T)0;
    else if constexpr (is_signed<T>) return x == 1 || x == -1 ? x : (T)0;
    else return (T)(x == 1);
}
template <class T> MX_FN real<T> squared_size(T x) {
    if constexpr (is_complex<T>) return x.re * x.re + x.im * x.im;
    else return multiply(x, x);
}
// Division by a count.
template <class T> MX_FN T over(T x, f64 count) {
    if constexpr (is_complex<T>) return T(x.re / (real<T>)count, x.im / (real<T>)count);
    else return (T)(x / (T)count);
}
template <class T> MX_FN T square(T x) { return multiply(x, x); }
template <class T> MX_FN T conjugate(T x) {
    if constexpr (is_complex<T>) return T(x.re, -x.im);
    else return x;
}
template <class T> MX_FN real<T> phase(T x) {
    if constexpr (is_complex<T>) return atan2_of(x.im, x.re);
    else return atan2_of((T)0, x);
}
template <class T> MX_FN T modf_fraction(T x) { return copysign_of(is_infinite(x) ? (T)0 : x - trunc_of(x), x); }

// ---- Powers.

template <class T> MX_FN T power(T a, T b) {
    if constexpr (is_complex<T>) {
        return narrow<T>(of_complex::power(wide(a), wide(b)));
    } else if constexpr (is_real<T>) {
        return pow_of(a, b);
    } else {
        if constexpr (is_signed<T>)
            if (b < 0) return a == 1 ? (T)1 : a == -1 ? (T)(b & 1 ? -1 : 1) : (T)0;
        u64 base = (u64)(i64)a, exponent = (u64)b, value = 1;
        if constexpr (!is_signed<T>) base = (u64)a;
        while (exponent > 0) {
            if (exponent & 1u) value *= base;
            base *= base;
            exponent >>= 1;
        }
        return (T)value;
    }
}
template <class T> MX_FN T rsqrt(T x) {
    if constexpr (same<T, f32>) return (f32)(1 / ::sqrt((f64)x));
    else return 1 / ::sqrt(x);
}
template <class T> MX_FN T rcbrt(T x) { return (T)(1 / (f64)cbrt_of(x)); }
// The difference of equal operands is taken as 0, also for infinities.
MX_FN f64 log_add_exp(f64 a, f64 b) {
    return maximum(a, b) + log1p_of(exp_of(-(a == b ? 0.0 : abs_of(a - b))));
}
MX_FN f64 log_add_exp2(f64 a, f64 b) {
    return maximum(a, b) + log1p_of(exp2_of(-(a == b ? 0.0 : abs_of(a - b)))) * LOG2_E;
}
template <class T> MX_FN T logaddexp(T a, T b) { return (T)log_add_exp(a, b); }
template <class T> MX_FN T logaddexp2(T a, T b) { return (T)log_add_exp2(a, b); }

// ---- Rounding.

#define MX_ROUND(name)                                                                                                   \
    template <class T> MX_FN T name(T x) {                                                                               \
        if constexpr (is_real<T>) return name##_of(x);                                                                   \
        else return x;                                                                                                   \
    }
MX_ROUND(floor)
MX_ROUND(ceil)
MX_ROUND(trunc)
#undef MX_ROUND
template <class T> MX_FN T rint(T x) {
    if constexpr (is_complex<T>) return T(rint_of(x.re), rint_of(x.im));
    else if constexpr (is_real<T>) return rint_of(x);
    else return x;
}
// rint(x * scale) / scale if `before` is 0, else rint(x / scale) * scale.
template <class T> MX_FN T round_scaled(T x, f64 scale, f64 before) {
    T s = (T)scale;
    return before == 0 ? rint_of(x * s) / s : rint_of(x / s) * s;
}

// ---- Comparisons and logic.

template <class T> MX_FN bool less(T a, T b) {
    if constexpr (is_complex<T>) return complex_less(a, b);
    else if constexpr (is_boolean<T>) return !(bool)a && (bool)b;
    else return a < b;
}
template <class T> MX_FN bool less_equal(T a, T b) {
    if constexpr (is_complex<T>) return complex_not_less(b, a);
    else if constexpr (is_boolean<T>) return !(bool)a || (bool)b;
    else return a <= b;
}
template <class T> MX_FN bool equal(T a, T b) {
    if constexpr (is_boolean<T>) return (bool)a == (bool)b;
    else return a == b;
}
template <class T> MX_FN bool is_true(T x) { return (bool)convert<boolean>(x); }
template <class T> MX_FN bool isnan(T x) {
    if constexpr (is_real<T> || is_complex<T>) return is_nan_of(x);
    else return false;
}
template <class T> MX_FN bool isinf(T x) {
    if constexpr (is_complex<T>) return is_infinite(x.re) || is_infinite(x.im);
    else if constexpr (is_real<T>) return is_infinite(x);
    else return false;
}
template <class T> MX_FN bool isfinite(T x) {
    if constexpr (is_complex<T>) return is_finite(x.re) && is_finite(x.im);
    else if constexpr (is_real<T>) return is_finite(x);
    else return true;
}

// ---- Bits.

template <class T> MX_FN T bitwise_and(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a && (bool)b);
    else return (T)(a & b);
}
template <class T> MX_FN T bitwise_or(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a || (bool)b);
    else return (T)(a | b);
}
template <class T> MX_FN T bitwise_xor(T a, T b) {
    if constexpr (is_boolean<T>) return T((bool)a != (bool)b);
    else return (T)(a ^ b);
}
template <class T> MX_FN T invert(T x) {
    if constexpr (is_boolean<T>) return T(!(bool)x);
    else return (T)~x;
}
template <class T> MX_FN T left_shift(T a, T b) {
    return (u64)b < sizeof(T) * 8 ? (T)((wrapping<T>)a << (u32)b) : (T)0;
}
template <class T> MX_FN T right_shift(T a, T b) {
    bool within = (u64)b < sizeof(T) * 8;
    if constexpr (is_signed<T>) return (T)(a >> (within ? (u32)b : (u32)(sizeof(T) * 8 - 1)));
    else return within ? (T)(a >> (u32)b) : (T)0;
}
template <class T> MX_FN u8 bitwise_count(T x) {
    wrapping<T> left = (wrapping<T>)absolute(x);
    if constexpr (sizeof(T) < 4) left &= ((wrapping<T>)1 << sizeof(T) * 8) - 1;
    u8 count = 0;
    for (; left != 0; left &= left - 1) count++;
    return count;
}
MX_FN u64 gcd_of(u64 a, u64 b) {
    while (b != 0) {
        u64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
template <class T> MX_FN u64 size_of(T x) {
    if constexpr (is_signed<T>) return x < 0 ? 0 - (u64)(i64)x : (u64)x;
    else return (u64)x;
}
template <class T> MX_FN T gcd(T a, T b) { return (T)gcd_of(size_of(a), size_of(b)); }
template <class T> MX_FN T lcm(T a, T b) {
    u64 x = size_of(a), y = size_of(b);
    return x == 0 || y == 0 ? (T)0 : (T)(x / gcd_of(x, y) * y);
}

// ---- The bits of floats.

template <class T> MX_FN T copysign(T a, T b) { return copysign_of(a, b); }
template <class T> MX_FN T heaviside(T a, T b) { return is_nan_of(a) ? a : a == 0 ? b : a < 0 ? (T)0 : (T)1; }
template <class T> struct Bits {
    typedef u32 type;
};
template <> struct Bits<f64> {
    typedef u64 type;
};
template <> struct Bits<f16> {
    typedef u16 type;
};
template <> struct Bits<bf16> {
    typedef u16 type;
};
// The next number from `a` towards `b`. For 16-bit floats on their own bits: the next f32 would round back to the same value.
template <class T> MX_FN T nextafter(T a, T b) {
    typedef typename Bits<T>::type B;
    constexpr B SIGN = (B)((B)1 << (sizeof(B) * 8 - 1)), SIZE = (B)(SIGN - 1);
    if constexpr (is_half<T>) {
        constexpr B EXPONENT = same<T, f16> ? 0x7c00 : 0x7f80;
        B x = bits_as<B>(a), y = bits_as<B>(b), size_a = x & SIZE, size_b = y & SIZE;
        if (size_a > EXPONENT) return a;
        if (size_b > EXPONENT || x == y || (size_a | size_b) == 0) return b;
        if (size_a == 0) return bits_as<T>((B)((y & SIGN) | 1));
        bool away = ((x ^ y) & SIGN) == 0 && size_b > size_a;
        return bits_as<T>((B)(away ? x + 1 : x - 1));
    } else {
        if (is_nan_of(a) || is_nan_of(b)) return a + b;
        if (a == b) return b;
        if (a == 0) return copysign_of(bits_as<T>((B)1), b);
        // Away from zero adds 1 to the bits, towards zero subtracts 1.
        bool outward = (a < b) == (a > 0);
        return bits_as<T>((B)(outward ? bits_as<B>(a) + 1 : bits_as<B>(a) - 1));
    }
}
// The distance to the next number away from zero, with the sign of `x`.
template <class T> MX_FN T spacing(T x) {
    typedef typename Bits<T>::type B;
    if constexpr (is_half<T>) {
        constexpr B EXPONENT = same<T, f16> ? 0x7c00 : 0x7f80;
        constexpr int MANTISSA = same<T, f16> ? 10 : 7;
        B sign = bits_as<B>(x) & 0x8000, size = bits_as<B>(x) & 0x7fff;
        if (size >= EXPONENT) return bits_as<T>((B)(EXPONENT | 1 << (MANTISSA - 1)));
        if (size == EXPONENT - 1) return bits_as<T>((B)(sign | EXPONENT));
        int power = size >> MANTISSA;
        int distance = power > MANTISSA ? (power - MANTISSA) << MANTISSA : 1 << (power > 0 ? power - 1 : 0);
        return bits_as<T>((B)(sign | distance));
    } else {
        return bits_as<T>((B)(bits_as<B>(x) + 1)) - x;
    }
}
// frexp: mantissa with magnitude in [0.5, 1) and exponent; zeros, infinities and NaN are returned as they are.
template <class T> MX_FN T mantissa(T x, i32 &exponent) {
    typedef typename Bits<T>::type B;
    constexpr int MANTISSA = same<T, f32> ? 23 : 52;
    constexpr B FIELD = same<T, f32> ? 0xff : 0x7ff, HALF = (FIELD >> 1) - 1, FRACTION = ((B)1 << MANTISSA) - 1;
    constexpr B SIGN = (B)1 << (sizeof(B) * 8 - 1);
    exponent = 0;
    if (x == 0 || !is_finite(x)) return x;
    B bits = bits_as<B>(x);
    int shift = 0;
    if ((bits >> MANTISSA & FIELD) == 0) {
        // Scales subnormal numbers to normal ones.
        shift = MANTISSA + 1;
        bits = bits_as<B>((T)(x * (T)(1ull << (MANTISSA + 1))));
    }
    exponent = (i32)(bits >> MANTISSA & FIELD) - (i32)HALF - shift;
    return bits_as<T>((B)((bits & (FRACTION | SIGN)) | HALF << MANTISSA));
}
template <class T> MX_FN T mantissa(T x) {
    i32 exponent;
    return mantissa(x, exponent);
}
template <class T> MX_FN i32 exponent(T x) {
    i32 exponent;
    mantissa(x, exponent);
    return exponent;
}
MX_FN f64 power_of_two(i32 n) { return bits_as<f64>((u64)(n + 1023) << 52); }
MX_FN i32 between(i64 x, i32 low, i32 high) { return x < low ? low : x > high ? high : (i32)x; }
// `a` times 2^`b`.
template <class T> MX_FN T ldexp(T a, i64 b) {
    if constexpr (same<T, f32>) {
        // Exact in f64: its exponent range holds any f32 times any of these powers.
        return (f32)((f64)a * power_of_two(between(b, -300, 300)));
    } else {
        // Scales down in steps that leave 53 bits above the subnormal range, so that only the last step rounds.
        i32 left = between(b, -3000, 3100);
        f64 x = a;
        for (int k = 0; k < 2; k++) {
            i32 step = left > 1023 ? 1023 : left < -1022 ? -969 : 0;
            x *= power_of_two(step);
            left -= step;
        }
        return x * power_of_two(between(left, -1022, 1023));
    }
}

// ---- Special functions, computed in f64 where the CPU does.

template <class T> MX_FN T sinc(T x) {
    T nearest = rint_of(x), odd = nearest - 2 * floor_of(nearest * (T)0.5);
    T sine = sin_of((T)PI * (x - nearest)) * (1 - 2 * odd);
    return x == 0 ? (T)1 : sine / ((T)PI * x);
}
// The modified Bessel function of the first kind of order 0 or 1: power series (DLMF 10.25.2) up to 20, asymptotic series (10.40.1) above.
template <int ORDER> MX_FN f64 bessel(f64 x) {
    constexpr int TERMS = 36;
    if (is_nan_of(x)) return x;
    f64 size = abs_of(x), value = 1;
    if (size <= 20) {
        f64 square = 0.25 * size * size;
        for (int k = TERMS; k >= 1; k--) value = value * square / (f64)(k * (k + ORDER)) + 1;
        if (ORDER == 1) value *= 0.5 * size;
    } else {
        f64 inverse = 1 / size;
        for (int k = TERMS; k >= 1; k--) {
            f64 odd = 2 * k - 1;
            value = value * inverse * ((odd * odd - 4 * ORDER * ORDER) / (8 * k)) + 1;
        }
        // Multiplies twice by exp(x / 2), because exp(x) overflows before the result does. 2.5066... is the square root of 2 pi.
        f64 half = exp_of(0.5 * size);
        value = half * (half * (value / (2.5066282746310005 * sqrt_of(size))));
    }
    return ORDER == 1 ? copysign_of(value, x) : value;
}
constexpr f64 HALF_ROOT_PI = 0.886226925452758; // sqrt(pi)/2: the derivative of erfinv at 0
// The y above 0 with erf(y) = a and erfc(y) = rest. Halley's method, on erf near 0 and on erfc in the tails, so that both keep their relative accuracy.
MX_FN f64 erf_root(f64 a, f64 rest) {
    // Winitzki's approximation, accurate to 0.002 (Source: S. Winitzki, A handy approximation for the error function, 2008).
    f64 l = a < 0.5 ? log1p_of(-a * a) : log_of(rest) + log1p_of(a), b = 2 / (PI * 0.147) + 0.5 * l;
    f64 y = sqrt_of(sqrt_of(b * b - l / 0.147) - b);
    for (int k = 0; k < 4; k++) {
        f64 error = a < 0.5 ? erf_of(y) - a : rest - erfc_of(y);
        // For subnormal tails the exponential would overflow.
        f64 step = error * HALF_ROOT_PI * exp_of(y * y < 709 ? y * y : 709.0);
        y -= step / (1 + y * step);
    }
    return y;
}
MX_FN f64 erfinv_of(f64 x) {
    f64 a = abs_of(x);
    if (!(a < 1)) return a == 1 ? copysign_of(infinity<f64>(), x) : not_a_number<f64>();
    return a < 1e-9 ? x * HALF_ROOT_PI : copysign_of(erf_root(a, 1 - a), x);
}
MX_FN f64 erfcinv_of(f64 x) {
    if (!(x >= 0 && x <= 2)) return not_a_number<f64>();
    if (x >= 0.5 && x <= 1.5) return erfinv_of(1 - x);
    f64 tail = x < 1 ? x : 2 - x, sign = x < 1 ? 1 : -1;
    return sign * (tail == 0 ? infinity<f64>() : erf_root(1 - tail, tail));
}
// Recurrence up to 10, then the asymptotic series; reflection for negative arguments (DLMF 5.5.2, 5.5.4, 5.11.2).
MX_FN f64 digamma_of(f64 x) {
    if (is_nan_of(x) || x == -infinity<f64>()) return not_a_number<f64>();
    f64 value = 0;
    if (x <= 0) {
        if (x == 0) return copysign_of(infinity<f64>(), -x);
        if (trunc_of(x) == x) return not_a_number<f64>();
        // The fractional part keeps tan accurate for large arguments.
        value = -PI / tan_of(PI * (x - rint_of(x)));
        x = 1 - x;
    }
    while (x < 10) {
        value -= 1 / x;
        x += 1;
    }
    // Bernoulli numbers: B(2k) / 2k.
    const f64 series[7] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
    f64 z = 1 / (x * x), tail = 0;
    for (int k = 6; k >= 0; k--) tail = tail * z + series[k];
    return value + log_of(x) - 0.5 / x - tail * z;
}
// Larger orders overflow f64 for most arguments.
constexpr int MAX_ORDER = 60;
// pi d^n/dx^n cot(pi x), as a polynomial in c = cot(pi x): d c/dx = -pi (1 + c^2).
MX_FN f64 cotangent_derivative(int n, f64 x) {
    f64 c = 1 / tan_of(PI * (x - rint_of(x))), poly[MAX_ORDER + 2], next[MAX_ORDER + 2];
    for (int k = 0; k < MAX_ORDER + 2; k++) poly[k] = k == 1 ? 1.0 : 0.0;
    for (int step = 0; step < n; step++) {
        for (int k = 0; k < MAX_ORDER + 2; k++) next[k] = 0;
        for (int k = 1; k <= step + 1; k++) {
            next[k - 1] -= PI * k * poly[k];
            next[k + 1] -= PI * k * poly[k];
        }
        for (int k = 0; k < MAX_ORDER + 2; k++) poly[k] = next[k];
    }
    f64 total = 0;
    for (int k = MAX_ORDER + 1; k >= 0; k--) total = total * c + poly[k];
    return PI * total;
}
MX_FN f64 whole_power(f64 x, int n) {
    f64 value = 1;
    for (int left = n < 0 ? -n : n; left > 0; left >>= 1) {
        if (left & 1) value *= x;
        x *= x;
    }
    return n < 0 ? 1 / value : value;
}
// The derivative of digamma of order n: recurrence to larger arguments, then the asymptotic series; reflection for negative ones (DLMF 5.15.5,
// 5.15.6, 5.15.8, 24.2).
MX_FN f64 polygamma_of(int n, f64 x) {
    if (is_nan_of(x) || n <= 0 || n > MAX_ORDER) return not_a_number<f64>();
    // (-1)^(n+1): the sign of the result for positive x.
    f64 sign = n % 2 == 0 ? -1 : 1, reflected = 0;
    bool is_reflected = x <= 0;
    if (is_reflected) {
        if (trunc_of(x) == x) return n % 2 == 1 ? infinity<f64>() : not_a_number<f64>();
        // psi_n(1 - x) + (-1)^(n+1) psi_n(x) = (-1)^n pi d^n/dx^n cot(pi x).
        reflected = -sign * cotangent_derivative(n, x);
        x = 1 - x;
    }
    f64 factorial = 1, total = 0;
    for (int k = 2; k <= n; k++) factorial *= k;
    // The series below is accurate to 1e-17 from 15 + n on.
    while (x < 15.0 + n) {
        total += factorial * whole_power(x, -n - 1);
        x += 1;
    }
    const f64 bernoulli[8] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510};
    f64 tail = 1 + 0.5 * n / x, factor = 1;
    for (int k = 0; k < 8; k++) {
        int even = 2 * k + 2;
        factor *= (f64)((even + n - 2) * (even + n - 1)) / ((f64)(even * (even - 1)) * x * x);
        tail += bernoulli[k] * factor;
    }
    f64 value = sign * (total + factorial / n * whole_power(x, -n) * tail);
    return is_reflected ? sign * (reflected - value) : value;
}

// ---- Functions of neural networks.

template <class T> MX_FN T relu(T x) {
    if constexpr (is_real<T>) return x > 0 || is_nan_of(x) ? x : (T)0;
    else if constexpr (is_signed<T>) return x > 0 ? x : (T)0;
    else return x;
}
template <class T> MX_FN T sigmoid(T x) { return 1 / (1 + exp_of(-x)); }
// log(1 + exp(x)).
template <class T> MX_FN T softplus(T x) { return (x > 0 ? x : is_nan_of(x) ? x : (T)0) + log1p_of(exp_of(-abs_of(x))); }
// Clips to 0..=1; NaN stays NaN.
template <class T> MX_FN T unit(T x) { return x < 0 ? (T)0 : x > 1 ? (T)1 : x; }
// The normal distribution function.
template <class T> MX_FN T normal_cdf(T x) {
    // f32 is computed in f64, so that the argument of erfc is rounded only once.
    return (T)(0.5 * erfc_of(-(f64)x * 0.70710678118654752440));
}
constexpr f64 TWICE_ROOT = 1.5957691216057308;  // 2 sqrt(2 / pi)
constexpr f64 CUBIC = 0.044715;                 // Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016
constexpr f64 ROOT_TWO_PI = 0.3989422804014327; // 1 / sqrt(2 pi)
template <class T> MX_FN T gelu_erf_grad(T dy, T x) {
    T density = (T)ROOT_TWO_PI * exp_of((T)-0.5 * x * x);
    return dy * (x * density + normal_cdf(x));
}
// (1 + tanh(u)) / 2 = sigmoid(2 u), which does not cancel below 0.
template <class T> MX_FN T gelu_tanh(T x) { return x * sigmoid(x * ((T)(TWICE_ROOT * CUBIC) * (x * x) + (T)TWICE_ROOT)); }
template <class T> MX_FN T gelu_tanh_grad(T dy, T x) {
    T z = x * x, s = sigmoid(x * ((T)(TWICE_ROOT * CUBIC) * z + (T)TWICE_ROOT));
    T slope = x * ((T)(3 * TWICE_ROOT * CUBIC) * z + (T)TWICE_ROOT);
    return dy * (s * (1 + slope * (1 - s)));
}
template <class T> MX_FN T silu_grad(T dy, T x) {
    T s = sigmoid(x);
    return dy * (s * (1 + x * (1 - s)));
}
// With e = exp(x): tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2). From 20 on it is 1.
template <class T> MX_FN T mish(T x) {
    T e = exp_of(x > 20 ? (T)20 : x), w = e * (e + 2);
    return x * (w / (w + 2));
}

} // namespace mx
