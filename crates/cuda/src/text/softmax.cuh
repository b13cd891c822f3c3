// Softmax and cross entropy of rows. Row `r` is the `len` elements at (r / inner, ., r % inner). `X` is the type of the data, `Y` that of the
// result, `T` the compute type.

namespace mx {

// A block of threads per row.
struct ByBlock {
    static __device__ i64 first_row() { return blockIdx.x; }
    static __device__ i64 rows_apart() { return gridDim.x; }
    static __device__ i64 first() { return threadIdx.x; }
    static __device__ i64 apart() { return blockDim.x; }
    template <class F> static __device__ T fold(T x, T neutral, F combine) { return fold_block_all(x, neutral, combine); }
    static __device__ bool writes() { return threadIdx.x == 0; }
};

// A thread per row.
struct ByThread {
    static __device__ i64 first_row() { return (i64)thread_index(); }
    static __device__ i64 rows_apart() { return (i64)num_threads(); }
    static __device__ i64 first() { return 0; }
    static __device__ i64 apart() { return 1; }
    template <class F> static __device__ T fold(T x, T, F) { return x; }
    static __device__ bool writes() { return true; }
};

struct Larger {
    __device__ T operator()(T s, T t) const { return s > t ? s : t; }
};

MX_FN i64 start_of(i64 row, i64 len, i64 inner) { return row / inner * len * inner + row % inner; }

MX_FN i64 length_of(const i64 *lengths, i64 row, i64 len) {
    if (lengths == nullptr) return len;
    const i64 n = lengths[row];
    return n < 0 ? 0 : n < len ? n : len;
}

// The maximum of the scaled elements. With a negative scale (temperature) this is the minimum of the elements.
template <class By> MX_FN T largest(const X *x, i64 n, i64 inner, T scale) {
    T most = -infinity<T>();
    for (i64 i = By::first(); i < n; i += By::apart()) {
        const T value = convert<T>(x[i * inner]) * (scale < 0 ? (T)-1 : (T)1);
        most = value > most ? value : most;
    }
    most = By::fold(most, -infinity<T>(), Larger());
    return scale < 0 ? -most : most;
}

template <class By> MX_FN T sum_of_exponentials(const X *x, i64 n, i64 inner, T most, T scale) {
    T total = 0;
    for (i64 i = By::first(); i < n; i += By::apart()) total += exp_of((convert<T>(x[i * inner]) - most) * scale);
    return By::fold(total, (T)0, Add());
}

template <class By, bool LOG>
MX_FN void softmax(const X *x, const i64 *lengths, Y *y, f64 temperature, i64 rows, i64 len, i64 inner) {
    const T scale = (T)(1 / temperature);
    for (i64 row = By::first_row(); row < rows; row += By::rows_apart()) {
        const i64 start = start_of(row, len, inner), n = length_of(lengths, row, len);
        const T most = largest<By>(x + start, n, inner, scale);
        const T total = sum_of_exponentials<By>(x + start, n, inner, most, scale);
        const T log_total = log_of(total), factor = 1 / total;
        for (i64 i = By::first(); i < len; i += By::apart()) {
            T value = 0;
            if (i < n) {
                const T shifted = (convert<T>(x[start + i * inner]) - most) * scale;
                value = LOG ? shifted - log_total : exp_of(shifted) * factor;
            }
            y[start + i * inner] = convert<Y>(value);
        }
    }
}

// dx = y (dy - sum(dy y)) / temperature; for log-softmax dx = (dy - exp(y) sum(dy)) / temperature.
template <class By, bool LOG>
MX_FN void softmax_gradient(const X *y, const X *dy, const i64 *lengths, Y *dx, f64 temperature, i64 rows, i64 len, i64 inner) {
    const T scale = (T)(1 / temperature);
    for (i64 row = By::first_row(); row < rows; row += By::rows_apart()) {
        const i64 start = start_of(row, len, inner), n = length_of(lengths, row, len);
        T total = 0;
        for (i64 i = By::first(); i < n; i += By::apart()) {
            const T slope = convert<T>(dy[start + i * inner]);
            total += LOG ? slope : slope * convert<T>(y[start + i * inner]);
        }
        total = By::fold(total, (T)0, Add());
        for (i64 i = By::first(); i < len; i += By::apart()) {
            T value = 0;
            if (i < n) {
                const T result = convert<T>(y[start + i * inner]), slope = convert<T>(dy[start + i * inner]);
                value = (LOG ? slope - exp_of(result) * total : result * (slope - total)) * scale;
            }
            dx[start + i * inner] = convert<Y>(value);
        }
    }
}

// Minus the log-softmax at the label, and the log-sum-exp. An invalid label gives NaN.
template <class By>
MX_FN void cross_entropy(const X *x, const i64 *labels, Y *loss, Y *lse, bool has_ignored, i64 ignored, i64 rows, i64 len, i64 inner) {
    for (i64 row = By::first_row(); row < rows; row += By::rows_apart()) {
        const i64 start = start_of(row, len, inner), label = labels[row];
        const T most = largest<By>(x + start, len, inner, (T)1);
        const T total = sum_of_exponentials<By>(x + start, len, inner, most, (T)1);
        if (!By::writes()) continue;
        const T sum_log = most + log_of(total);
        T value = not_a_number<T>();
        if (has_ignored && label == ignored) value = 0;
        else if (label >= 0 && label < len) value = sum_log - convert<T>(x[start + label * inner]);
        loss[row] = convert<Y>(value);
        lse[row] = convert<Y>(sum_log);
    }
}

template <class By>
MX_FN void cross_entropy_gradient(const X *x, const i64 *labels, const X *lse, const X *dloss, Y *dx, bool has_ignored, i64 ignored, i64 rows, i64 len, i64 inner) {
    for (i64 row = By::first_row(); row < rows; row += By::rows_apart()) {
        const i64 start = start_of(row, len, inner), label = labels[row];
        const bool counts = !(has_ignored && label == ignored), is_class = label >= 0 && label < len;
        const T sum_log = convert<T>(lse[row]), slope = convert<T>(dloss[row]);
        for (i64 i = By::first(); i < len; i += By::apart()) {
            T value = slope * exp_of(convert<T>(x[start + i * inner]) - sum_log);
            if (i == label) value -= slope;
            if (!is_class) value = not_a_number<T>();
            if (!counts) value = 0;
            dx[start + i * inner] = convert<Y>(value);
        }
    }
}

} // namespace mx
