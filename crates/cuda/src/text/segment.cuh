// Rows in segments of different sizes: segment s has the rows offsets[s]..offsets[s + 1] of dense rows. T: elements; R: compute type.

struct Segments {
    const i64* offsets;
    i64 count, rows, inner;

    // Invalid offsets are reported by the kernel with CHECK; here they are clamped, so that no access is out of bounds.
    __device__ i64 at(i64 s) const {
        const i64 offset = offsets[s];
        return offset < 0 ? 0 : offset > rows ? rows : offset;
    }
    // The segment of a row.
    __device__ i64 of(i64 row) const {
        i64 low = 0, high = count;
        while (low + 1 < high) {
            const i64 middle = low + (high - low) / 2;
            if (offsets[middle] <= row) low = middle;
            else high = middle;
        }
        // `low` is now after empty segments.
        return low;
    }
};

#ifdef CHECK
extern "C" __global__ void kernel(Segments g, u64* faults) {
    EACH(s, g.count + 1) {
        if (s == 0 && g.offsets[0] != 0) refuse(faults, 0, g.offsets[0]);
        else if (s > 0 && g.offsets[s] < g.offsets[s - 1]) refuse(faults, s, g.offsets[s], g.offsets[s - 1]);
        else if (s == g.count && g.offsets[s] != g.rows) refuse(faults, -1, g.offsets[s]);
    }
}
#endif

#ifdef FOLD
enum { SUM, PRODUCT, MAX, MIN };
template <class V> MX_FN bool is_better(V x, V y, i64 what) {
    if constexpr (is_complex<V>) return false;
    else {
        if (y != y) return false;
        return x != x || (what == MAX ? x > y : x < y);
    }
}
// One thread per column of a segment; rows are combined in order. `is_zero_of_none`: the extremum of an empty segment is 0, else the limit of the
// type. `positions`, if not null, gets the row of each extremum, -1 if there is none. For 64-bit integers, f16 and bf16, R is larger than T.
extern "C" __global__ void kernel(const T* x, R* out, i64* positions, Segments g, i64 what, i64 is_zero_of_none) {
    EACH(e, g.count * g.inner) {
        const i64 s = e / g.inner, first = g.at(s), end = g.at(s + 1);
        R total = convert<R>(what == PRODUCT ? 1 : 0);
        i64 position = -1;
        if (what >= MAX && !is_zero_of_none) total = what == MAX ? lowest<R>() : highest<R>();
        for (i64 row = first; row < end; row++) {
            const R value = convert<R>(x[row * g.inner + e % g.inner]);
            if (what == SUM) total = total + value;
            else if (what == PRODUCT) total = total * value;
            else if (position < 0 || is_better(value, total, what)) {
                total = value;
                position = row;
            }
        }
        out[e] = total;
        if (positions) positions[e] = position;
    }
}
#endif

#ifdef CUMSUM
// One thread per column of a segment.
extern "C" __global__ void kernel(const T* x, T* y, Segments g, i64 reverse) {
    EACH(e, g.count * g.inner) {
        const i64 first = g.at(e / g.inner), end = g.at(e / g.inner + 1);
        R total = convert<R>(0);
        for (i64 k = 0; k < end - first; k++) {
            const i64 at = (reverse ? end - 1 - k : first + k) * g.inner + e % g.inner;
            total = total + convert<R>(x[at]);
            y[at] = convert<T>(total);
        }
    }
}
#endif

#ifdef SOFTMAX
extern "C" __global__ void kernel(const T* x, T* y, Segments g, i64 is_log) {
    EACH(e, g.count * g.inner) {
        const i64 first = g.at(e / g.inner), end = g.at(e / g.inner + 1), column = e % g.inner;
        R most = -infinity<R>(), sum = 0;
        for (i64 row = first; row < end; row++) {
            const R value = convert<R>(x[row * g.inner + column]);
            most = value > most || value != value ? value : most;
        }
        for (i64 row = first; row < end; row++) sum += exp_of(convert<R>(x[row * g.inner + column]) - most);
        const R log_sum = log_of(sum);
        for (i64 row = first; row < end; row++) {
            const R value = convert<R>(x[row * g.inner + column]) - most;
            y[row * g.inner + column] = convert<T>(is_log ? value - log_sum : exp_of(value) / sum);
        }
    }
}
#endif

#ifdef SOFTMAX_GRADIENT
extern "C" __global__ void kernel(const T* y, const T* dy, T* dx, Segments g, i64 is_log) {
    EACH(e, g.count * g.inner) {
        const i64 first = g.at(e / g.inner), end = g.at(e / g.inner + 1), column = e % g.inner;
        R sum = 0;
        for (i64 row = first; row < end; row++) {
            const i64 at = row * g.inner + column;
            sum += is_log ? convert<R>(dy[at]) : convert<R>(dy[at]) * convert<R>(y[at]);
        }
        for (i64 row = first; row < end; row++) {
            const i64 at = row * g.inner + column;
            const R own = convert<R>(y[at]), slope = convert<R>(dy[at]);
            dx[at] = convert<T>(is_log ? slope - exp_of(own) * sum : own * (slope - sum));
        }
    }
}
#endif

#ifdef EXPAND
extern "C" __global__ void kernel(const T* x, T* y, Segments g) {
    EACH(e, g.rows * g.inner) y[e] = x[g.of(e / g.inner) * g.inner + e % g.inner];
}
#endif

#ifdef NUMBERS
extern "C" __global__ void kernel(i64* y, Segments g) {
    EACH(e, g.rows) y[e] = g.of(e);
}
#endif

#ifdef PAD
extern "C" __global__ void kernel(const T* x, T* y, Segments g, i64 length, Number fill) {
    const T filled = fill.as<T>();
    EACH(e, g.count * length * g.inner) {
        const i64 s = e / g.inner / length, row = g.at(s) + e / g.inner % length;
        y[e] = row < g.at(s + 1) ? x[row * g.inner + e % g.inner] : filled;
    }
}
#endif

#ifdef UNPAD
extern "C" __global__ void kernel(const T* x, T* y, Segments g, i64 length, Number fill) {
    const T filled = fill.as<T>();
    EACH(e, g.rows * g.inner) {
        const i64 s = g.of(e / g.inner), at = e / g.inner - g.at(s);
        y[e] = at >= 0 && at < length ? x[(s * length + at) * g.inner + e % g.inner] : filled;
    }
}
#endif

#ifdef MATMUL
// Rows (rows, k) times the matrix (k, n) of their segment, or its transpose (n, k).
extern "C" __global__ void kernel(const T* x, const T* w, T* y, Segments g, i64 n, i64 transposed) {
    const i64 k = g.inner;
    EACH(e, g.rows * n) {
        const i64 row = e / n, column = e % n;
        const T* own = w + g.of(row) * k * n;
        R sum = 0;
        for (i64 i = 0; i < k; i++) sum += convert<R>(x[row * k + i]) * convert<R>(own[transposed ? column * k + i : i * n + column]);
        y[e] = convert<T>(sum);
    }
}
#endif

#ifdef OUTER
extern "C" __global__ void kernel(const T* x, const T* z, T* y, Segments g, i64 n) {
    const i64 k = g.inner;
    EACH(e, g.count * k * n) {
        const i64 s = e / n / k, i = e / n % k, column = e % n;
        R sum = 0;
        for (i64 row = g.at(s); row < g.at(s + 1); row++) sum += convert<R>(x[row * k + i]) * convert<R>(z[row * n + column]);
        y[e] = convert<T>(sum);
    }
}
#endif
