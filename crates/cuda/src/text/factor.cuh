// Factorisations of small and medium matrices: one block per matrix, one thread per column of the right-hand sides. T: f32, f64, c64 or c128.

MX_FN f32 size_of(f32 x) { return abs_of(x); }
MX_FN f64 size_of(f64 x) { return abs_of(x); }
template <class R> MX_FN R size_of(complex<R> x) { return hypot_of(x.re, x.im); }
MX_FN f32 conj_of(f32 x) { return x; }
MX_FN f64 conj_of(f64 x) { return x; }
template <class R> MX_FN complex<R> conj_of(complex<R> x) { return complex<R>(x.re, -x.im); }
MX_FN f32 real_of(f32 x) { return x; }
MX_FN f64 real_of(f64 x) { return x; }
template <class R> MX_FN R real_of(complex<R> x) { return x.re; }
MX_FN f32 over(f32 a, f32 b) { return a / b; }
MX_FN f64 over(f64 a, f64 b) { return a / b; }
// Complex quotient by Smith's method.
template <class R> MX_FN complex<R> over(complex<R> a, complex<R> b) {
    if (abs_of(b.re) >= abs_of(b.im)) {
        const R q = b.im / b.re, d = b.re + b.im * q;
        return complex<R>((a.re + a.im * q) / d, (a.im - a.re * q) / d);
    }
    const R q = b.re / b.im, d = b.re * q + b.im;
    return complex<R>((a.re * q + a.im) / d, (a.im * q - a.re) / d);
}

#ifdef CHOLESKY
extern "C" __global__ void kernel(const T* all, T* factors, i64 count, i64 n, u64* faults) {
    for (i64 at = blockIdx.x; at < count; at += gridDim.x) {
        const T* a = all + at * n * n;
        T* l = factors + at * n * n;
        for (i64 e = threadIdx.x; e < n * n; e += blockDim.x) l[e] = e / n >= e % n ? a[e] : convert<T>(0);
        __syncthreads();
        for (i64 j = 0; j < n; j++) {
            const real<T> pivot = real_of(l[j * n + j]);
            if (!(pivot > 0)) {
                if (threadIdx.x == 0) refuse(faults, at, j + 1);
                break;
            }
            const T root = convert<T>(sqrt_of(pivot));
            __syncthreads();
            for (i64 i = j + threadIdx.x; i < n; i += blockDim.x) l[i * n + j] = i == j ? root : over(l[i * n + j], root);
            __syncthreads();
            const i64 left = n - j - 1;
            for (i64 e = threadIdx.x; e < left * left; e += blockDim.x) {
                const i64 i = j + 1 + e / left, k = j + 1 + e % left;
                if (k <= i) l[i * n + k] = l[i * n + k] - l[i * n + j] * conj_of(l[k * n + j]);
            }
            __syncthreads();
        }
        __syncthreads();
    }
}
#endif

#ifdef LU
// LU factorisation with row exchanges, in place of `a`: `rows` is the permutation; `signs` is -1 for an odd number of exchanges.
// `singular` is the number of the first zero pivot, counted from 1, or 0; the factorisation continues with the columns after it.
extern "C" __global__ void kernel(T* all, i64* all_rows, i64* signs, i64* singular, i64 count, i64 n) {
    __shared__ real<T> most[256];
    __shared__ i64 pivot_rows[256];
    for (i64 at = blockIdx.x; at < count; at += gridDim.x) {
        T* a = all + at * n * n;
        i64* rows = all_rows + at * n;
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) rows[i] = i;
        if (threadIdx.x == 0) {
            signs[at] = 1;
            singular[at] = 0;
        }
        __syncthreads();
        for (i64 j = 0; j < n; j++) {
            real<T> best = -1;
            i64 pivot_row = j;
            for (i64 i = j + threadIdx.x; i < n; i += blockDim.x) {
                const real<T> own = size_of(a[i * n + j]);
                if (own > best || (own != own && best == best)) {
                    best = own;
                    pivot_row = i;
                }
            }
            most[threadIdx.x] = best;
            pivot_rows[threadIdx.x] = pivot_row;
            __syncthreads();
            for (int half = blockDim.x / 2; half > 0; half /= 2) {
                if (threadIdx.x < half) {
                    const real<T> a0 = most[threadIdx.x], b0 = most[threadIdx.x + half];
                    if (b0 > a0 || (b0 != b0 && a0 == a0) || (b0 == a0 && pivot_rows[threadIdx.x + half] < pivot_rows[threadIdx.x])) {
                        most[threadIdx.x] = b0;
                        pivot_rows[threadIdx.x] = pivot_rows[threadIdx.x + half];
                    }
                }
                __syncthreads();
            }
            const i64 chosen = pivot_rows[0];
            const bool is_zero = most[0] == 0;
            __syncthreads();
            if (is_zero) {
                if (threadIdx.x == 0 && singular[at] == 0) singular[at] = j + 1;
                continue;
            }
            if (chosen != j) {
                for (i64 k = threadIdx.x; k < n; k += blockDim.x) {
                    const T moved = a[j * n + k];
                    a[j * n + k] = a[chosen * n + k];
                    a[chosen * n + k] = moved;
                }
                if (threadIdx.x == 0) {
                    const i64 moved = rows[j];
                    rows[j] = rows[chosen];
                    rows[chosen] = moved;
                    signs[at] = -signs[at];
                }
            }
            __syncthreads();
            const T pivot = a[j * n + j];
            for (i64 i = j + 1 + threadIdx.x; i < n; i += blockDim.x) a[i * n + j] = over(a[i * n + j], pivot);
            __syncthreads();
            const i64 left = n - j - 1;
            for (i64 e = threadIdx.x; e < left * left; e += blockDim.x) {
                const i64 i = j + 1 + e / left, k = j + 1 + e % left;
                a[i * n + k] = a[i * n + k] - a[i * n + j] * a[j * n + k];
            }
            __syncthreads();
        }
        __syncthreads();
    }
}
#endif

#ifdef SOLVE
// Solutions from LU factors; without `b`, for the identity (the inverse). A singular matrix is an error, or gives NaN if `allows_singular`.
extern "C" __global__ void kernel(
    const T* all, const i64* all_rows, const i64* singular, const T* b, T* x, i64 count, i64 n, i64 columns, i64 allows_singular, u64* faults
) {
    EACH(e, count * columns) {
        const i64 at = e / columns, column = e % columns;
        const T* lu = all + at * n * n;
        const i64* rows = all_rows + at * n;
        T* own = x + at * n * columns + column;
        if (singular[at]) {
            if (!allows_singular) refuse(faults, at, singular[at]);
            for (i64 i = 0; i < n; i++) own[i * columns] = convert<T>(not_a_number<real<T>>());
            continue;
        }
        for (i64 i = 0; i < n; i++) {
            T sum = b ? b[(at * n + rows[i]) * columns + column] : convert<T>(rows[i] == column ? 1 : 0);
            for (i64 k = 0; k < i; k++) sum = sum - lu[i * n + k] * own[k * columns];
            own[i * columns] = sum;
        }
        for (i64 i = n - 1; i >= 0; i--) {
            T sum = own[i * columns];
            for (i64 k = i + 1; k < n; k++) sum = sum - lu[i * n + k] * own[k * columns];
            own[i * columns] = over(sum, lu[i * n + i]);
        }
    }
}
#endif

#ifdef TRIANGULAR
extern "C" __global__ void kernel(const T* all, const T* b, T* x, i64 count, i64 n, i64 columns, i64 lower, u64* faults) {
    EACH(e, count * columns) {
        const i64 at = e / columns, column = e % columns;
        const T* a = all + at * n * n;
        const T* right = b + at * n * columns + column;
        T* own = x + at * n * columns + column;
        for (i64 step = 0; step < n; step++) {
            const i64 i = lower ? step : n - 1 - step;
            T sum = right[i * columns];
            for (i64 k = lower ? 0 : i + 1; k < (lower ? i : n); k++) sum = sum - a[i * n + k] * own[k * columns];
            if (size_of(a[i * n + i]) == 0) refuse(faults, at, i + 1);
            own[i * columns] = over(sum, a[i * n + i]);
        }
    }
}
#endif

#ifdef DET
// Determinants from LU factors; with `logs`, their signs and the logarithms of their magnitudes.
extern "C" __global__ void kernel(const T* all, const i64* signs, const i64* singular, T* out, real<T>* logs, i64 count, i64 n) {
    EACH(at, count) {
        const T* lu = all + at * n * n;
        T product = convert<T>(signs[at]);
        real<T> log = 0;
        for (i64 i = 0; i < n; i++) {
            const T pivot = lu[i * n + i];
            if (logs) {
                const real<T> size = size_of(pivot);
                log += log_of(size);
                product = product * over(pivot, convert<T>(size));
            } else {
                product = product * pivot;
            }
        }
        if (singular[at]) {
            product = convert<T>(0);
            log = -infinity<real<T>>();
        }
        out[at] = product;
        if (logs) logs[at] = log;
    }
}
#endif
