// Pooling over one to three spatial axes, one thread per output element. T: elements; R: compute type; one of FORWARD, GRADIENT, SELECT.

enum { MAX, SUM, AVERAGE, AVERAGE_WITH_PAD, NORM };

struct Pool {
    i64 planes, kind, p;
    i64 input[3], output[3], kernel[3], stride[3], pad[3], pad_end[3];

    // Range of input positions that window `i` along an axis covers.
    __device__ void span(int axis, i64 i, i64& start, i64& end) const {
        start = i * stride[axis] - pad[axis];
        end = start + kernel[axis];
        start = start < 0 ? 0 : start > input[axis] ? input[axis] : start;
        end = end < 0 ? 0 : end > input[axis] ? input[axis] : end;
    }
    // Divisor of window `i` along an axis.
    __device__ i64 count(int axis, i64 i) const {
        i64 start, end;
        span(axis, i, start, end);
        if (kind == AVERAGE_WITH_PAD) {
            start = i * stride[axis];
            const i64 last = input[axis] + pad[axis] + pad_end[axis];
            end = start + kernel[axis] < last ? start + kernel[axis] : last;
            if (end < start) end = start;
        }
        return end - start;
    }
    __device__ R scale(const i64 (&at)[3]) const {
        if (kind != AVERAGE && kind != AVERAGE_WITH_PAD) return (R)1;
        const i64 n = count(0, at[0]) * count(1, at[1]) * count(2, at[2]);
        return (R)1 / (R)(n < 1 ? 1 : n);
    }
    __device__ i64 in_len() const { return input[0] * input[1] * input[2]; }
    __device__ i64 out_len() const { return output[0] * output[1] * output[2]; }
    // Position of the first maximum of a window (NaN counts as maximum); -1 for an empty window.
    __device__ i64 largest(const T* x, const i64 (&at)[3]) const {
        i64 start[3], end[3], best = -1;
        R most = 0;
        for (int axis = 0; axis < 3; axis++) span(axis, at[axis], start[axis], end[axis]);
        for (i64 d = start[0]; d < end[0]; d++)
            for (i64 h = start[1]; h < end[1]; h++)
                for (i64 w = start[2]; w < end[2]; w++) {
                    const i64 here = (d * input[1] + h) * input[2] + w;
                    const R value = convert<R>(x[here]);
                    if (best < 0 || value > most || (value != value && most == most)) {
                        best = here;
                        most = value;
                    }
                }
        return best;
    }
};

MX_FN void split(i64 e, const i64 (&shape)[3], i64 (&at)[3]) {
    at[2] = e % shape[2];
    at[1] = e / shape[2] % shape[1];
    at[0] = e / shape[2] / shape[1] % shape[0];
}
// x^p for p >= 1, by repeated squaring.
MX_FN R power(R x, i64 p) {
    R result = 1;
    for (; p > 0; p >>= 1) {
        if (p & 1) result *= x;
        x *= x;
    }
    return result;
}

#ifdef FORWARD
extern "C" __global__ void kernel(const T* data, T* out, Pool pool) {
    EACH(e, pool.planes * pool.out_len()) {
        i64 at[3], start[3], end[3];
        split(e, pool.output, at);
        const T* x = data + e / pool.out_len() * pool.in_len();
        if (pool.kind == MAX) {
            const i64 best = pool.largest(x, at);
            out[e] = best < 0 ? convert<T>(-infinity<R>()) : x[best];
            continue;
        }
        R total = 0;
        for (int axis = 0; axis < 3; axis++) pool.span(axis, at[axis], start[axis], end[axis]);
        for (i64 d = start[0]; d < end[0]; d++)
            for (i64 h = start[1]; h < end[1]; h++)
                for (i64 w = start[2]; w < end[2]; w++) {
                    const R value = convert<R>(x[(d * pool.input[1] + h) * pool.input[2] + w]);
                    total += pool.kind == NORM ? power(value < 0 ? -value : value, pool.p) : value;
                }
        if (pool.kind == NORM) total = pool.p == 1 ? total : pool.p == 2 ? sqrt_of(total) : pow_of(total, (R)1 / (R)pool.p);
        out[e] = convert<T>(total * pool.scale(at));
    }
}
#endif

#ifdef GRADIENT
// Each input element sums over the windows that cover it, in their order.
extern "C" __global__ void kernel(const T* dy, const T* data, T* out, Pool pool) {
    EACH(e, pool.planes * pool.in_len()) {
        i64 at[3], first[3], last[3];
        split(e, pool.input, at);
        const i64 plane = e / pool.in_len();
        for (int axis = 0; axis < 3; axis++) {
            const i64 x = at[axis] + pool.pad[axis], from = x - pool.kernel[axis] + 1;
            first[axis] = from <= 0 ? 0 : (from + pool.stride[axis] - 1) / pool.stride[axis];
            last[axis] = x / pool.stride[axis] < pool.output[axis] ? x / pool.stride[axis] : pool.output[axis] - 1;
        }
        R total = 0;
        for (i64 d = first[0]; d <= last[0]; d++)
            for (i64 h = first[1]; h <= last[1]; h++)
                for (i64 w = first[2]; w <= last[2]; w++) {
                    const i64 window[3] = {d, h, w};
                    const R slope = convert<R>(dy[plane * pool.out_len() + (d * pool.output[1] + h) * pool.output[2] + w]);
                    if (pool.kind == MAX) {
                        if (pool.largest(data + plane * pool.in_len(), window) == e % pool.in_len()) total += slope;
                    } else {
                        total += slope * pool.scale(window);
                    }
                }
        out[e] = convert<T>(total);
    }
}
#endif

#ifdef SELECT
extern "C" __global__ void kernel(const T* values, const T* data, T* out, Pool pool) {
    EACH(e, pool.planes * pool.out_len()) {
        i64 at[3];
        split(e, pool.output, at);
        const i64 plane = e / pool.out_len() * pool.in_len(), best = pool.largest(data + plane, at);
        out[e] = best < 0 ? convert<T>((R)0) : values[plane + best];
    }
}
#endif
