// Sums of products. Integers wrap; booleans are or-ed; f16 and bf16 are summed in f32.
// T: elements. A: sums, `Sums<T>`.

template <class T> struct SumOf { typedef wrapping<T> type; };
template <> struct SumOf<f16> { typedef f32 type; };
template <> struct SumOf<bf16> { typedef f32 type; };
template <> struct SumOf<f32> { typedef f32 type; };
template <> struct SumOf<f64> { typedef f64 type; };
template <> struct SumOf<c64> { typedef c64 type; };
template <> struct SumOf<c128> { typedef c128 type; };
typedef SumOf<T>::type A;

template <class R> MX_FN void multiply_add(complex<R>& sum, complex<R> a, complex<R> b) {
    sum.re += a.re * b.re;
    sum.re -= a.im * b.im;
    sum.im += a.re * b.im;
    sum.im += a.im * b.re;
}
template <class R> MX_FN void multiply_add(R& sum, R a, R b) {
    if constexpr (is_boolean<T>) sum |= a & b;
    else sum += a * b;
}
template <class R> MX_FN R added(R a, R b) {
    if constexpr (is_boolean<T>) return a | b;
    else return a + b;
}
template <class R> MX_FN complex<R> conjugate(complex<R> x) { return complex<R>(x.re, -x.im); }
template <class R> MX_FN R conjugate(R x) { return x; }
// ReLU: negative numbers and -0 become 0, NaN stays NaN.
template <class R> MX_FN complex<R> positive(complex<R> x) { return x; }
template <class R> MX_FN R positive(R x) { return x <= 0 ? (R)0 : x; }
