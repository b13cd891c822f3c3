// The CPU's random streams: Philox 4x32-10, and samples that use a fixed share of one counter block. Every sum and product is rounded separately, so
// that samples equal the CPU's bit for bit.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

struct Words {
    u32 at[4];
    __device__ u64 half(int i) const { return (u64)at[2 * i] | (u64)at[2 * i + 1] << 32; }
};

MX_FN Words philox(u64 low, u64 high, u64 key) {
    u32 c0 = (u32)low, c1 = (u32)(low >> 32), c2 = (u32)high, c3 = (u32)(high >> 32), k0 = (u32)key, k1 = (u32)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const u64 a = (u64)c0 * 0xD2511F53u, b = (u64)c2 * 0xCD9E8D57u;
        c0 = (u32)(b >> 32) ^ c1 ^ k0;
        c2 = (u32)(a >> 32) ^ c3 ^ k1;
        c1 = (u32)b;
        c3 = (u32)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return Words{{c0, c1, c2, c3}};
}

// A number whose arithmetic is never fused.
template <class R> struct Exact {
    R x;
    Exact() = default;
    __device__ Exact(R x) : x(x) {}
    __device__ operator R() const { return x; }
};
template <class R> MX_FN Exact<R> operator+(Exact<R> a, Exact<R> b) { return sum(a.x, b.x); }
template <class R> MX_FN Exact<R> operator-(Exact<R> a, Exact<R> b) { return sum(a.x, -b.x); }
template <class R> MX_FN Exact<R> operator-(Exact<R> a) { return -a.x; }
template <class R> MX_FN Exact<R> operator*(Exact<R> a, Exact<R> b) { return mul(a.x, b.x); }
template <class R> MX_FN Exact<R> operator/(Exact<R> a, Exact<R> b) { return a.x / b.x; }
typedef Exact<f32> e32;
typedef Exact<f64> e64;

// Natural logarithm of a positive normal number: x = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m - 1) / (m + 1)) by its series.
MX_FN e32 ln(e32 x) {
    const i32 shifted = bits_as<i32>(x.x) - 0x3f3504f3, e = shifted >> 23;
    const e32 m = bits_as<f32>(bits_as<i32>(x.x) - (i32)((u32)e << 23)), s = (m - e32(1)) / (m + e32(1)), z = s * s;
    e32 p = 0.0f;
    for (int k = 11; k >= 1; k -= 2) p = p * z + e32(2.0f / (f32)k);
    return e32((f32)e) * e32(0.693147180559945309417f) + s * p;
}
MX_FN e64 ln(e64 x) {
    const i64 shifted = bits_as<i64>(x.x) - 0x3fe6a09e667f3bcdLL, e = shifted >> 52;
    const e64 m = bits_as<f64>(bits_as<i64>(x.x) - (i64)((u64)e << 52)), s = (m - e64(1)) / (m + e64(1)), z = s * s;
    e64 p = 0.0;
    for (int k = 23; k >= 1; k -= 2) p = p * z + e64(2.0 / (f64)k);
    return e64((f64)(i32)e) * e64(0.693147180559945309417) + s * p;
}

// Cosine and sine of 2 pi x for x in [0, 1): subtracts the nearest quarter turn, then Taylor series.
template <class R, int LAST, int SHIFT> MX_FN Exact<R> series(Exact<R> z) {
    Exact<R> sum = (R)0;
#pragma unroll
    for (int i = LAST; i >= 0; i--) {
        // 1 / (2 i + SHIFT)! with alternating signs.
        f64 factorial = 1;
#pragma unroll
        for (int k = 2; k <= 2 * i + SHIFT; k++) factorial *= k;
        sum = sum * z + Exact<R>((R)1 / (R)(i % 2 ? -factorial : factorial));
    }
    return sum;
}
template <class R, int SIN, int COS> MX_FN void cos_sin_turns(Exact<R> x, Exact<R>& cos_out, Exact<R>& sin_out) {
    typedef Exact<R> E;
    const i32 quarter = (i32)(R)(x * E(4) + E((R)0.5));
    const E r = (x - E((R)quarter) * E((R)0.25)) * E((R)(2.0 * (R)3.14159265358979323846)), z = r * r;
    const E cos = series<R, COS, 0>(z), sin = series<R, SIN, 1>(z) * r;
    E a = quarter & 1 ? sin : cos, b = quarter & 1 ? cos : sin;
    if ((quarter + 1) & 2) a = -a;
    if (quarter & 2) b = -b;
    cos_out = a;
    sin_out = b;
}

// Words of one sample as numbers: [0, 1) with all bits of the mantissa, (0, 1] and (0, 1) with full precision near 0.
template <class R> struct Sample;
template <> struct Sample<f32> {
    typedef u32 Word;
    static constexpr int PER_BLOCK = 4;
    static __device__ Word word(const Words& block, int i) { return block.at[i]; }
    static __device__ e32 unit(Word w) { return e32((f32)(w >> 8)) * e32(5.9604644775390625e-8f); }
    static __device__ e32 positive(Word w) { return (e32((f32)w) + e32(1)) * e32(2.3283064365386962890625e-10f); }
    static __device__ e32 inner(Word w) { return (e32((f32)w) + e32(0.5f)) * e32(2.3283064365386962890625e-10f); }
    static __device__ void cos_sin(e32 x, e32& cos, e32& sin) { cos_sin_turns<f32, 4, 5>(x, cos, sin); }
    static __device__ e32 root(e32 x) { return ::sqrtf(x.x); }
    static __device__ e32 least_step() { return 2.98023223876953125e-8f; }
};
template <> struct Sample<f64> {
    typedef u64 Word;
    static constexpr int PER_BLOCK = 2;
    static __device__ Word word(const Words& block, int i) { return block.half(i); }
    static __device__ e64 unit(Word w) { return e64((f64)(w >> 11)) * e64(1.1102230246251565404e-16); }
    static __device__ e64 positive(Word w) { return (e64((f64)w) + e64(1)) * e64(5.4210108624275221700e-20); }
    static __device__ e64 inner(Word w) { return (e64((f64)w) + e64(0.5)) * e64(5.4210108624275221700e-20); }
    static __device__ void cos_sin(e64 x, e64& cos, e64& sin) { cos_sin_turns<f64, 8, 8>(x, cos, sin); }
    static __device__ e64 root(e64 x) { return ::sqrt(x.x); }
    static __device__ e64 least_step() { return 5.5511151231257827021e-17; }
};
