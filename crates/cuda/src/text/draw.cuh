// Random fills: every thread computes the samples of whole counter blocks. T: elements; R: compute type; DISTRIBUTION: a function below.

struct Stream {
    u64 seed, offset;
    __device__ Words block(u64 i, u64 retry = 0) const { return philox(offset + i, retry, seed); }
};

#ifdef DISTRIBUTION
typedef Exact<R> E;
typedef Sample<R> S;

struct Numbers { f64 a, b, c; };

MX_FN E uniform(S::Word w, Numbers n) { return E((R)n.a) + E((R)(n.b - n.a)) * S::unit(w); }
MX_FN E bernoulli(S::Word w, Numbers n) { return S::unit(w).x < (R)n.a ? (R)1 : (R)0; }
// Dropout: elements that remain are multiplied by `b`.
MX_FN E mask(S::Word w, Numbers n) { return S::unit(w).x < (R)n.a ? (R)n.b : (R)0; }
MX_FN E exponential(S::Word w, Numbers n) { return E((R)-n.b) * ln(S::positive(w)); }
MX_FN E laplace(S::Word w, Numbers n) {
    const E x = E((R)-n.b) * ln(S::positive(w & ~(S::Word)1));
    return w & 1 ? -x : x;
}
MX_FN E logistic(S::Word w, Numbers n) { return E((R)n.b) * (ln(S::inner(w)) + -ln(S::inner(~w))); }
MX_FN E gumbel(S::Word w, Numbers n) {
    const E e = -ln(S::positive(w));
    return E((R)-n.b) * ln(e.x > S::least_step().x ? e : S::least_step());
}
MX_FN E triangular(S::Word w, Numbers n) {
    const E left = (R)n.a, right = (R)n.b, mode = (R)n.c, width = right + -left, before = mode + -left, behind = right + -mode, u = S::unit(w);
    const bool rises = (u * width).x < before.x;
    const E part = rises ? u : E(1) + -u, side = rises ? before : behind, root = S::root(part * width * side);
    return rises ? left + root : right + -root;
}
// Box and Muller, 1958: consecutive samples are the cosine and the sine of one pair of words.
MX_FN void normal(S::Word first, S::Word second, Numbers n, E& a, E& b) {
    const E radius = E((R)n.b) * S::root(E(-2) * ln(S::positive(first)));
    E cos, sin;
    S::cos_sin(S::unit(second), cos, sin);
    a = E((R)n.a) + radius * cos;
    b = E((R)n.a) + radius * sin;
}

extern "C" __global__ void kernel(T* out, i64 n, Stream stream, Numbers numbers) {
    EACH(block, (n + S::PER_BLOCK - 1) / S::PER_BLOCK) {
        const Words words = stream.block((u64)block);
        E samples[S::PER_BLOCK];
#pragma unroll
        for (int i = 0; i < S::PER_BLOCK; i++) {
#ifdef PAIRS
            if (i % 2 == 0) normal(S::word(words, i), S::word(words, i + 1), numbers, samples[i], samples[i + 1]);
#else
            samples[i] = DISTRIBUTION(S::word(words, i), numbers);
#endif
        }
#pragma unroll
        for (int i = 0; i < S::PER_BLOCK; i++) {
            const i64 e = block * S::PER_BLOCK + i;
            if (e < n) out[e] = convert<T>(samples[i].x);
        }
    }
}
#endif

// An integer below `range` (0 represents 2^64) from a 64-bit word, or from further attempts of the same counter. Source: Lemire, 2019.
MX_FN u64 below(u64 range, const Stream& stream, u64 block, int half) {
    u64 word = stream.block(block).half(half);
    if (range == 0) return word;
    if (word * range < range) {
        const u64 threshold = (0 - range) % range;
        for (u64 retry = 1; word * range < threshold; retry++) word = stream.block(block, retry).half(half);
    }
    return __umul64hi(word, range);
}

#ifdef INTEGERS
// Integers of `low..low + range`: one word each if the range is up to 2^32, otherwise two.
extern "C" __global__ void kernel(T* out, i64 n, Stream stream, i64 low, u64 range) {
    const bool is_narrow = range != 0 && range <= 1ull << 32;
    EACH(e, n) {
        u64 drawn;
        if (is_narrow) {
            const u64 block = (u64)e / 4;
            u64 product = (u64)stream.block(block).at[e % 4] * range;
            if ((u32)product < range) {
                const u64 threshold = (1ull << 32) % range;
                for (u64 retry = 1; (u32)product < threshold; retry++) product = (u64)stream.block(block, retry).at[e % 4] * range;
            }
            drawn = product >> 32;
        } else {
            drawn = below(range, stream, (u64)e / 2, (int)(e % 2));
        }
        out[e] = convert<T>((i64)((u64)low + drawn));
    }
}
#endif

#ifdef BETWEEN
// An integer that may be of either 64-bit type.
struct Wide {
    u64 bits;
    bool is_negative;
    __device__ Wide(i64 x) : bits((u64)x), is_negative(x < 0) {}
    __device__ Wide(u64 x) : bits(x), is_negative(false) {}
    __device__ bool is_below(const Wide& other) const {
        return is_negative != other.is_negative ? is_negative : bits < other.bits;
    }
};
// L, H: types of the bounds. `least` and `most` are the limits of the result's type.
extern "C" __global__ void kernel(const L* low, const H* high, T* out, i64 n, Stream stream, i64 endpoint, i64 least, u64 most, u64* faults) {
    EACH(e, n) {
        const Wide a = low[e], b = high[e];
        const u64 last = b.bits - (endpoint ? 0 : 1);
        if (endpoint ? b.is_below(a) : !a.is_below(b)) {
            refuse(faults, 4 * e, (i64)a.bits, (i64)b.bits);
        } else if (a.is_below(Wide(least))) {
            refuse(faults, 4 * e + 1, (i64)a.bits, (i64)last);
        } else if (!b.is_negative && last > most) {
            refuse(faults, 4 * e + 2, (i64)a.bits, (i64)last);
        } else {
            out[e] = convert<T>((i64)(a.bits + below(last - a.bits + 1, stream, (u64)e / 2, (int)(e % 2))));
        }
    }
}
#endif

#ifdef COUNT_UP
extern "C" __global__ void kernel(i64* out, i64 n, i64 length) {
    EACH(e, n) out[e] = e % length;
}
#endif

#ifdef EXCHANGE
// Fisher-Yates shuffle from the end of each row. Each exchange depends on those before, so one thread does a row.
extern "C" __global__ void kernel(i64* all, i64 rows, i64 n, i64 count, Stream stream, i64* taken) {
    EACH(row, rows) {
        i64* own = all + row * n;
        const u64 first = (u64)row * ((n + 1) / 2);
        for (i64 draw = 0; draw < count; draw++) {
            const i64 last = n - 1 - draw;
            const i64 other = (i64)__umul64hi(stream.block(first + draw / 2).half((int)(draw % 2)), (u64)last + 1);
            const i64 moved = own[last];
            own[last] = own[other];
            own[other] = moved;
            if (taken) taken[draw] = own[last];
        }
    }
}
#endif

#ifdef CHECK
// Checks that parameters are not below `low` (or at it, if `is_above`), not above `high` (or at it, if `is_below`), and integers if `is_whole`.
extern "C" __global__ void kernel(const f64* x, i64 n, f64 low, f64 high, i64 is_above, i64 is_below, i64 is_whole, u64* faults) {
    EACH(e, n) {
        const f64 value = x[e];
        const bool is_fine = (is_above ? value > low : value >= low) && (is_below ? value < high : value <= high) && (!is_whole || ::trunc(value) == value);
        if (!is_fine) refuse(faults, e, bits_as<i64>(value));
    }
}
#endif
