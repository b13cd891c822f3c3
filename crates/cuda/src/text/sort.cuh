// Merge sort of rows: tiles of TILE elements in shared memory, then pairs of sorted runs. T: keys. With POSITIONS, positions in the row are moved
// along. Equal elements keep their order, so the result is unique.

// Whether a comes before b; NaN is above all numbers; complex numbers compare by their real parts first.
template <class R> MX_FN bool is_nan_key(R x) {
    if constexpr (is_half<R>) return (f32)x != (f32)x;
    else if constexpr (is_real<R>) return x != x;
    else return false;
}
template <class R> MX_FN bool less(R a, R b) {
    if constexpr (is_half<R>) return (f32)a < (f32)b || (is_nan_key(b) && !is_nan_key(a));
    else if constexpr (is_boolean<R>) return !(bool)a && (bool)b;
    else return a < b || (is_nan_key(b) && !is_nan_key(a));
}
template <class R> MX_FN bool less(complex<R> a, complex<R> b) {
    // Classes: numbers, then those with a NaN imaginary part only, real part only, both.
    const int class_a = (a.re != a.re ? 2 : 0) + (a.im != a.im ? 1 : 0), class_b = (b.re != b.re ? 2 : 0) + (b.im != b.im ? 1 : 0);
    if (class_a != class_b) return class_a < class_b;
    if (class_a == 0) return a.re < b.re || (a.re == b.re && a.im < b.im);
    if (class_a == 1) return a.re < b.re;
    if (class_a == 2) return a.im < b.im;
    return false;
}
// Whether it is NaN, or a complex number with a NaN part.
template <class R> MX_FN bool is_nan_element(R x) { return is_nan_key(x); }
template <class R> MX_FN bool is_nan_element(complex<R> x) { return x.re != x.re || x.im != x.im; }
MX_FN bool before(T a, T b) { return DESCENDING ? less(b, a) : less(a, b); }

#ifdef TILE
// Sorts each tile of each row by Batcher's bitonic network. `positions` are those of the elements in their row, or null.
struct Slot {
    T key;
    i64 position;
};
MX_FN bool comes_before(const Slot& a, const Slot& b) {
    // Padding after the end of a row has position -1.
    if (a.position < 0 || b.position < 0) return b.position < 0 && a.position >= 0;
    if (before(a.key, b.key)) return true;
    if (before(b.key, a.key)) return false;
    return a.position < b.position;
}
extern "C" __global__ void kernel(const T* x, T* keys, i64* positions, i64 rows, i64 n) {
    __shared__ Slot slots[TILE];
    const i64 tiles = (n + TILE - 1) / TILE;
    for (i64 tile = blockIdx.x; tile < rows * tiles; tile += gridDim.x) {
        const i64 row = tile / tiles, start = tile % tiles * TILE;
        for (int i = threadIdx.x; i < TILE; i += TILE / 2) {
            const i64 at = start + i;
            slots[i].position = at < n ? at : -1;
            if (at < n) slots[i].key = x[row * n + at];
        }
        __syncthreads();
        for (int run = 2; run <= TILE; run *= 2)
            for (int distance = run / 2; distance > 0; distance /= 2) {
                const int t = threadIdx.x, i = 2 * t - t % distance, j = i + distance;
                const bool rises = (i & run) == 0;
                const Slot a = slots[i], b = slots[j];
                if (comes_before(b, a) == rises) {
                    slots[i] = b;
                    slots[j] = a;
                }
                __syncthreads();
            }
        for (int i = threadIdx.x; i < TILE; i += TILE / 2) {
            const i64 at = start + i;
            if (at >= n) continue;
            if (keys) keys[row * n + at] = slots[i].key;
            if (positions) positions[row * n + at] = slots[i].position;
        }
        __syncthreads();
    }
}
#endif

#ifdef MERGE
// Merges neighbouring runs of `width`: the new position of an element is its index in its run plus the number of elements of the other run before it.
extern "C" __global__ void kernel(const T* keys, const i64* positions, T* to_keys, i64* to_positions, i64 rows, i64 n, i64 width) {
    EACH(e, rows * n) {
        const i64 row = e / n * n, i = e % n, run = i / width, first = run / 2 * 2 * width;
        const bool is_left = run % 2 == 0;
        const i64 other = is_left ? first + width : first;
        const i64 end = is_left ? (other + width < n ? other + width : n) : first + width;
        const T key = keys[row + i];
        i64 low = other, high = end > other ? end : other;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            const T found = keys[row + middle];
            const bool is_before = is_left ? before(found, key) : !before(key, found);
            if (is_before) low = middle + 1;
            else high = middle;
        }
        const i64 to = row + first + (i - run * width) + (low - other);
        if (to_keys) to_keys[to] = key;
        if (to_positions) to_positions[to] = positions[row + i];
    }
}
#endif

#ifdef PICK
// Elements of sorted rows at `ranks`, which are the same for all rows or separate for each. With `spreads_nan`, a row with a NaN gives NaN for all.
extern "C" __global__ void kernel(const T* sorted, const i64* ranks, T* out, i64 rows, i64 n, i64 count, i64 is_each, i64 spreads_nan, u64* faults) {
    EACH(e, rows * count) {
        const i64 row = e / count;
        i64 rank = ranks[is_each ? e : e % count];
        if (rank < 0) rank += n;
        if (rank < 0 || rank >= n) {
            refuse(faults, n, ranks[is_each ? e : e % count]);
            continue;
        }
        const T last = sorted[row * n + n - 1];
        out[e] = spreads_nan && is_nan_element(last) ? last : sorted[row * n + rank];
    }
}
#endif

#ifdef SEARCH
// Insertion positions of values in ascending keys: before equal keys, or after them if `right`.
extern "C" __global__ void kernel(const T* sorted, i64 n, const T* values, i64* out, i64 m, i64 right) {
    EACH(e, m) {
        const T value = values[e];
        i64 low = 0, high = n;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            if (right ? !less(value, sorted[middle]) : less(sorted[middle], value)) low = middle + 1;
            else high = middle;
        }
        out[e] = low;
    }
}
#endif

#ifdef CONTAINS
// Whether values equal one of the ascending keys. NaN equals nothing.
extern "C" __global__ void kernel(const T* sorted, i64 n, const T* values, boolean* out, i64 m) {
    EACH(e, m) {
        const T value = values[e];
        i64 low = 0, high = n;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            if (less(sorted[middle], value)) low = middle + 1;
            else high = middle;
        }
        out[e] = boolean(low < n && !is_nan_element(value) && !less(value, sorted[low]));
    }
}
#endif

#ifdef BINS
// Bin numbers between ascending edges, or the number of elements per bin: 0 before the first edge, the number of edges after the last and for NaN.
extern "C" __global__ void kernel(const T* x, i64 m, const T* edges, i64 n, i64* numbers, u64* counts) {
    EACH(e, m) {
        const T value = x[e];
        i64 low = 0, high = n;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            if (!less(value, edges[middle])) low = middle + 1;
            else high = middle;
        }
        // The last bin includes its right edge.
        if (low == n && !is_nan_element(value) && !less(edges[n - 1], value)) low = n - 1;
        if (numbers) numbers[e] = low;
        else if (low > 0 && low < n) atomicAdd(&counts[low - 1], 1ull);
    }
}
#endif

#ifdef MASK
// Marks the elements at the first `k` positions of each row.
extern "C" __global__ void kernel(const i64* positions, boolean* out, i64 rows, i64 n, i64 k) {
    EACH(e, rows * k) out[e / k * n + positions[e / k * n + e % k]] = boolean(true);
}
#endif
