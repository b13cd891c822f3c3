// Prepended to every kernel source: element types, exact conversions between them, index arithmetic, and reductions of a block.
//
// No CUDA header is included: NVRTC has the functions of C's <math.h> and of warps built in. Everything is in `namespace mx`. With
// MXNET_EMULATED the source is compiled for the host.

namespace mx {

#define MX_FN inline __device__

// ---- Element types. The names are those of the dtypes in Rust.

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

// A stored boolean. Memory of other libraries may hold bytes other than 0 and 1.
struct boolean {
    u8 byte;
    boolean() = default;
    __device__ boolean(bool x) : byte(x ? 1 : 0) {}
    __device__ operator bool() const { return byte != 0; }
};

// The same bits as another type of the same size.
template <class To, class From> MX_FN To bits_as(From x) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    union Both {
        From from;
        To to;
        __device__ Both() {}
    } both;
    both.from = x;
    return both.to;
}

#ifndef MXNET_EMULATED
MX_FN f32 f16_to_f32(u16 bits) {
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
MX_FN u16 f32_to_f16(f32 x) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#else
MX_FN f32 f16_to_f32(u16 bits) { return (f32)bits_as<_Float16>(bits); }
MX_FN u16 f32_to_f16(f32 x) { return bits_as<u16>((_Float16)x); }
#endif

// Nearest bfloat16, ties to even; NaN stays NaN.
MX_FN u16 f32_to_bf16(f32 x) {
    u32 bits = bits_as<u32>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)(bits >> 16 | 0x40u);
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// IEEE binary16; computes in f32.
struct f16 {
    u16 bits;
    f16() = default;
    explicit __device__ f16(f32 x) : bits(f32_to_f16(x)) {}
    __device__ operator f32() const { return f16_to_f32(bits); }
};

// The upper half of binary32; computes in f32.
struct bf16 {
    u16 bits;
    bf16() = default;
    explicit __device__ bf16(f32 x) : bits(f32_to_bf16(x)) {}
    __device__ operator f32() const { return bits_as<f32>((u32)bits << 16); }
};

template <class R> struct alignas(2 * sizeof(R)) complex {
    R re, im;
    complex() = default;
    __device__ complex(R re, R im) : re(re), im(im) {}
};
typedef complex<f32> c64;
typedef complex<f64> c128;

// Products and sums that are rounded separately, never fused.
#ifndef MXNET_EMULATED
MX_FN f32 mul(f32 a, f32 b) { return __fmul_rn(a, b); }
MX_FN f64 mul(f64 a, f64 b) { return __dmul_rn(a, b); }
MX_FN f32 sum(f32 a, f32 b) { return __fadd_rn(a, b); }
MX_FN f64 sum(f64 a, f64 b) { return __dadd_rn(a, b); }
#else
MX_FN f32 mul(f32 a, f32 b) { return a * b; }
MX_FN f64 mul(f64 a, f64 b) { return a * b; }
MX_FN f32 sum(f32 a, f32 b) { return a + b; }
MX_FN f64 sum(f64 a, f64 b) { return a + b; }
#endif

template <class R> MX_FN complex<R> operator+(complex<R> a, complex<R> b) {
    return complex<R>(a.re + b.re, a.im + b.im);
}
template <class R> MX_FN complex<R> operator-(complex<R> a, complex<R> b) {
    return complex<R>(a.re - b.re, a.im - b.im);
}
template <class R> MX_FN complex<R> operator-(complex<R> a) { return complex<R>(-a.re, -a.im); }
template <class R> MX_FN complex<R> operator*(complex<R> a, complex<R> b) {
    return complex<R>(sum(mul(a.re, b.re), -mul(a.im, b.im)), sum(mul(a.re, b.im), mul(a.im, b.re)));
}
template <class R> MX_FN complex<R> operator*(complex<R> a, R b) { return complex<R>(a.re * b, a.im * b); }
template <class R> MX_FN bool operator==(complex<R> a, complex<R> b) { return a.re == b.re && a.im == b.im; }
template <class R> MX_FN bool operator!=(complex<R> a, complex<R> b) { return !(a == b); }

// ---- Classes of types.

template <class A, class B> struct Same { static constexpr bool value = false; };
template <class A> struct Same<A, A> { static constexpr bool value = true; };
template <class A, class B> constexpr bool same = Same<A, B>::value;

template <class T> constexpr bool is_boolean = same<T, boolean>;
template <class T> constexpr bool is_half = same<T, f16> || same<T, bf16>;
template <class T> constexpr bool is_real = same<T, f32> || same<T, f64>;
template <class T> constexpr bool is_complex = same<T, c64> || same<T, c128>;
template <class T> constexpr bool is_signed = same<T, i8> || same<T, i16> || same<T, i32> || same<T, i64>;
template <class T> constexpr bool is_integer =
    is_signed<T> || same<T, u8> || same<T, u16> || same<T, u32> || same<T, u64>;

// The real type of a complex type; other types are unchanged.
template <class T> struct Real { typedef T type; };
template <class R> struct Real<complex<R>> { typedef R type; };
template <class T> using real = typename Real<T>::type;

// The compute type of an element type: f32 for f16 and bf16.
template <class T> struct Compute { typedef T type; };
template <> struct Compute<f16> { typedef f32 type; };
template <> struct Compute<bf16> { typedef f32 type; };
template <class T> using compute = typename Compute<T>::type;

// The unsigned type for wrapping integer arithmetic.
template <bool IS_LONG> struct Wrapping { typedef u32 type; };
template <> struct Wrapping<true> { typedef u64 type; };
template <class T> using wrapping = typename Wrapping<sizeof(T) == 8>::type;

// ---- Conversions. The rules are those of the CPU and of NumPy: floats to integers truncate; out-of-range values and NaN give what x86 gives (the
// minimum of 32 or 64 bits, then wrapped); complex to real drops the imaginary part; conversion to bool is `!= 0`.

MX_FN i64 truncate64(f64 x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (i64)x : (i64)(1ull << 63);
}
MX_FN i32 truncate32(f64 x) { return x > -2147483649.0 && x < 2147483648.0 ? (i32)x : (i32)(1u << 31); }
MX_FN u64 truncate_u64(f64 x) {
    if (x >= 9223372036854775808.0 && x < 18446744073709551616.0)
        return (u64)truncate64(x - 9223372036854775808.0) ^ (1ull << 63);
    return (u64)truncate64(x);
}

// f64 to f32 with rounding to odd, so that a later rounding to 16 bits gives the same result as a single rounding from f64.
MX_FN f32 to_odd(f64 x) {
    f32 near = (f32)x;
    f64 back = near;
    u32 bits = bits_as<u32>(near);
    if (x != x) return near;
    if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) bits -= 1;
    if (back != x) bits |= 1u;
    return bits_as<f32>(bits);
}

template <class To, class From> MX_FN To convert(From x) {
    if constexpr (same<To, From>) {
        return x;
    } else if constexpr (is_complex<To> && is_complex<From>) {
        return To((real<To>)x.re, (real<To>)x.im);
    } else if constexpr (is_complex<To>) {
        return To(convert<real<To>>(x), (real<To>)0);
    } else if constexpr (is_complex<From> && is_boolean<To>) {
        return To(x.re != 0 || x.im != 0);
    } else if constexpr (is_complex<From>) {
        return convert<To>(x.re);
    } else if constexpr (is_half<From>) {
        return convert<To>((f32)x);
    } else if constexpr (is_boolean<From>) {
        return convert<To>((u8)((bool)x ? 1 : 0));
    } else if constexpr (is_boolean<To>) {
        return To(x != 0);
    } else if constexpr (is_half<To> && same<From, f64>) {
        return To(to_odd(x));
    } else if constexpr (is_half<To>) {
        return To((f32)x);
    } else if constexpr (is_real<From> && is_integer<To>) {
        if constexpr (same<To, u64>) return truncate_u64((f64)x);
        else if constexpr (same<To, u32> || same<To, i64>) return (To)truncate64((f64)x);
        else return (To)truncate32((f64)x);
    } else {
        return (To)x;
    }
}

// A scalar operand, as the bits of its dtype: an argument of the launch.
struct Number {
    u64 words[2];
    template <class T> __device__ T as() const {
        union Both {
            u64 words[2];
            T value;
            __device__ Both() {}
        } both;
        both.words[0] = words[0];
        both.words[1] = words[1];
        return both.value;
    }
};

// ---- Vectors in memory: `V` elements that are loaded and stored at once, aligned to their size up to 16 bytes.

template <class T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Vector { T at[V]; };

// ---- Index arithmetic.

// Maximum number of axes of an array in a launch. The host loops over further ones.
constexpr int MAX_AXES = 8;

// Shape and strides (in elements) of `N` operands; axes are merged where all operands allow it. The last axis is the fastest.
template <int N> struct Strided {
    i64 shape[MAX_AXES];
    i64 strides[N][MAX_AXES];
    i64 num_axes;
};

// Offsets of all operands at element `i` in C order. `I` is u32 if all values fit.
template <class I, int N> MX_FN void offsets_of(const Strided<N> &over, u64 i, i64 (&offsets)[N]) {
    for (int k = 0; k < N; k++) offsets[k] = 0;
    I left = (I)i;
    for (int axis = (int)over.num_axes - 1; axis > 0; axis--) {
        I size = (I)over.shape[axis], rest = left / size;
        i64 at = (i64)(left - rest * size);
        left = rest;
        for (int k = 0; k < N; k++) offsets[k] += at * over.strides[k][axis];
    }
    if (over.num_axes > 0)
        for (int k = 0; k < N; k++) offsets[k] += (i64)left * over.strides[k][0];
}

// Index of this thread, and number of all threads, of one-dimensional launches.
MX_FN u64 thread_index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
MX_FN u64 num_threads() { return (u64)gridDim.x * blockDim.x; }

// Reports an invalid value to the host; only the first report is stored. `slot` comes from `launch::fault`.
MX_FN void report_fault(u64 *slot, i64 first, i64 second, i64 third) {
    if (atomicCAS(slot, 0ull, 1ull) == 0ull) {
        slot[1] = (u64)first;
        slot[2] = (u64)second;
        slot[3] = (u64)third;
    }
}

// ---- Reductions over the threads of a warp and of a block. All threads must take part. The order is fixed.

template <class T> MX_FN T shuffle_down(T x, int distance) {
    if constexpr (sizeof(T) < 4) {
        union Both { T value; u32 word; __device__ Both() {} } both;
        both.word = 0;
        both.value = x;
        both.word = __shfl_down_sync(0xffffffffu, both.word, distance);
        return both.value;
    } else {
        constexpr int WORDS = (int)(sizeof(T) / 4);
        static_assert(sizeof(T) % 4 == 0, "whole words are moved");
        union Both { T value; u32 words[WORDS]; __device__ Both() {} } both;
        both.value = x;
        for (int w = 0; w < WORDS; w++) both.words[w] = __shfl_down_sync(0xffffffffu, both.words[w], distance);
        return both.value;
    }
}

// Combines the values of all threads of a one-dimensional block, whose size is a multiple of 32; thread 0 gets the result.
template <class T, class F> MX_FN T fold_block(T x, T neutral, F combine) {
    __shared__ Vector<T, 32> partial;
    int lane = (int)(threadIdx.x % 32u), warp = (int)(threadIdx.x / 32u), num_warps = (int)((blockDim.x + 31u) / 32u);
    for (int distance = 16; distance > 0; distance /= 2) x = combine(x, shuffle_down(x, distance));
    __syncthreads();
    if (lane == 0) partial.at[warp] = x;
    __syncthreads();
    if (warp == 0) {
        x = lane < num_warps ? partial.at[lane] : neutral;
        for (int distance = 16; distance > 0; distance /= 2) x = combine(x, shuffle_down(x, distance));
    }
    return x;
}

// `fold_block` whose result every thread gets.
template <class T, class F> MX_FN T fold_block_all(T x, T neutral, F combine) {
    __shared__ Vector<T, 1> result;
    x = fold_block(x, neutral, combine);
    if (threadIdx.x == 0) result.at[0] = x;
    __syncthreads();
    x = result.at[0];
    __syncthreads();
    return x;
}

struct Add {
    template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};

} // namespace mx
