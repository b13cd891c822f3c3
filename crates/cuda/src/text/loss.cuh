// Cross entropy of dense rows with the classes last. T: elements; R: compute type.

#ifdef FORWARD
// One warp per row.
extern "C" __global__ void kernel(const T* x, const i64* labels, T* loss, T* lse, i64 rows, i64 len, i64 has_ignore, i64 ignore) {
    const int lane = threadIdx.x % 32;
    for (i64 row = blockIdx.x * (i64)(blockDim.x / 32) + threadIdx.x / 32; row < rows; row += gridDim.x * (i64)(blockDim.x / 32)) {
        const T* own = x + row * len;
        R most = -infinity<R>(), sum = 0;
        for (i64 c = lane; c < len; c += 32) {
            const R value = convert<R>(own[c]);
            most = value > most || value != value ? value : most;
        }
        for (int d = 16; d > 0; d /= 2) {
            const R other = __shfl_xor_sync(0xffffffffu, most, d);
            most = other > most || other != other ? other : most;
        }
        for (i64 c = lane; c < len; c += 32) sum += exp_of(convert<R>(own[c]) - most);
        for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (lane != 0) continue;
        const R total = most == -infinity<R>() || most == infinity<R>() ? most : most + log_of(sum);
        const i64 label = labels[row];
        lse[row] = convert<T>(total);
        loss[row] = convert<T>(
            has_ignore && label == ignore ? (R)0 : label >= 0 && label < len ? total - convert<R>(own[label]) : not_a_number<R>()
        );
    }
}
#endif

#ifdef GRADIENT
extern "C" __global__ void kernel(
    const T* x, const i64* labels, const R* lse, const R* dloss, T* dx, i64 rows, i64 len, i64 has_ignore, i64 ignore
) {
    EACH(e, rows * len) {
        const i64 row = e / len, label = labels[row];
        R slope = 0;
        if (!(has_ignore && label == ignore)) {
            const bool is_class = label >= 0 && label < len;
            const R share = exp_of(convert<R>(x[e]) - lse[row]) * dloss[row];
            slope = !is_class ? not_a_number<R>() : e % len == label ? share - dloss[row] : share;
        }
        dx[e] = convert<T>(slope);
    }
}
#endif
