// Sums of products over short distances. T: elements; A: type of the sums.

#ifdef SLIDE
// y[k] = sum over j of x[k + j - before] * w[j]; w in reverse order if `reversed`, conjugated if `conjugated`.
extern "C" __global__ void kernel(const T* x, i64 n, const T* w, i64 m, T* y, i64 count, i64 before, i64 reversed, i64 conjugated) {
    EACH(k, count) {
        A sum = convert<A>(0);
        const i64 first = before - k > 0 ? before - k : 0, end = n + before - k < m ? n + before - k : m;
        for (i64 j = first; j < end; j++) {
            A weight = convert<A>(w[reversed ? m - 1 - j : j]);
            if (conjugated) weight = conjugate(weight);
            multiply_add(sum, convert<A>(x[k + j - before]), weight);
        }
        y[k] = convert<T>(sum);
    }
}
#endif

#ifdef WINDOW
struct Window {
    i64 batch, length, heads, dim, before, width;
    const i64* dilations;

    // The row of score j of a row; for `scatter`, the row whose score j belongs to it. -1 outside of the sequence.
    __device__ i64 other(i64 row, i64 j, bool scatter) const {
        const i64 i = row / heads % length, steps = scatter ? before - j : j - before, dilation = dilations[row % heads];
        // Larger than any distance of rows; excluded so that no product overflows.
        if (dilation > length || dilation < -length) return steps == 0 ? row : -1;
        const i64 away = dilation * steps;
        return i + away >= 0 && i + away < length ? row + away * heads : -1;
    }
};
#endif

#ifdef SCORES
extern "C" __global__ void kernel(const T* x, const T* y, T* out, Window g) {
    EACH(e, g.batch * g.length * g.heads * g.width) {
        const i64 row = e / g.width, other = g.other(row, e % g.width, false);
        A sum = 0;
        if (other >= 0)
            for (i64 d = 0; d < g.dim; d++) sum += convert<A>(x[row * g.dim + d]) * convert<A>(y[other * g.dim + d]);
        out[e] = convert<T>(sum);
    }
}
#endif

#ifdef SUMS
extern "C" __global__ void kernel(const T* scores, const T* x, T* out, Window g, i64 scatter) {
    EACH(e, g.batch * g.length * g.heads * g.dim) {
        const i64 row = e / g.dim;
        A sum = 0;
        for (i64 j = 0; j < g.width; j++) {
            const i64 other = g.other(row, j, scatter);
            if (other >= 0) sum += convert<A>(scores[(scatter ? other : row) * g.width + j]) * convert<A>(x[other * g.dim + e % g.dim]);
        }
        out[e] = convert<T>(sum);
    }
}
#endif
