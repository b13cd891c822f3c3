// Forward and backward variables of connectionist temporal classification, in f64 and log space; one block per sample, one thread per state.
// Source: A. Graves et al., "Connectionist Temporal Classification", 2006, equations 6 to 16.

struct Ctc {
    i64 batch, states, padded, rows;
    const f64* emitted;
    const i64 *may_skip, *num_states, *frames;
};

MX_FN f64 add_logs(f64 a, f64 b) {
    const f64 low = a < b ? a : b, high = a < b ? b : a;
    return low == -infinity<f64>() ? high : high + log1p_of(exp_of(low - high));
}

extern "C" __global__ void kernel(Ctc g, i64 is_ragged, f64* alpha, f64* beta, const f64* dloss, f64* out, f64 never, u64* faults) {
    const f64 none = -infinity<f64>();
    for (i64 n = blockIdx.x; n < g.batch; n += gridDim.x) {
        // Row of frame t: first + t * step.
        i64 first = n, step = g.batch, len = g.padded, frames;
        if (is_ragged) {
            first = g.frames[n];
            step = 1;
            frames = len = g.frames[n + 1] - first;
            const bool is_wrong = len < 0 || (n == 0 && first != 0) || first < 0 || first + len > g.rows || (n + 1 == g.batch && first + len != g.rows);
            if (is_wrong) {
                if (threadIdx.x == 0) refuse(faults, n);
                continue;
            }
        } else {
            frames = g.frames[n] < 0 ? 0 : g.frames[n] < len ? g.frames[n] : len;
        }
        const i64 count = g.num_states[n] < 1 ? 1 : g.num_states[n] < g.states ? g.num_states[n] : g.states;
        const i64* skips = g.may_skip + n * g.states;
        for (i64 t = 0; t < frames; t++) {
            const i64 at = (first + t * step) * g.states, last = at - step * g.states;
            for (i64 s = threadIdx.x; s < count; s += blockDim.x) {
                f64 sum = none;
                if (t == 0) {
                    sum = s < 2 ? 0.0 : none;
                } else {
                    sum = alpha[last + s];
                    if (s > 0) sum = add_logs(sum, alpha[last + s - 1]);
                    if (s > 1 && skips[s] != 0) sum = add_logs(sum, alpha[last + s - 2]);
                }
                alpha[at + s] = sum + g.emitted[at + s];
            }
            __syncthreads();
        }
        f64 total = count == 1 ? 0.0 : none;
        if (frames > 0) {
            const i64 last = (first + (frames - 1) * step) * g.states;
            total = add_logs(alpha[last + count - 1], count > 1 ? alpha[last + count - 2] : none);
        }
        if (!dloss) {
            if (threadIdx.x == 0) out[n] = total == none ? never : -total;
            __syncthreads();
            continue;
        }
        for (i64 t = frames - 1; t >= 0; t--) {
            const i64 at = (first + t * step) * g.states, next = at + step * g.states;
            for (i64 s = threadIdx.x; s < count; s += blockDim.x) {
                f64 sum;
                if (t == frames - 1) {
                    sum = s + 2 >= count ? 0.0 : none;
                } else {
                    sum = beta[next + s] + g.emitted[next + s];
                    if (s + 1 < count) sum = add_logs(sum, beta[next + s + 1] + g.emitted[next + s + 1]);
                    if (s + 2 < count && skips[s + 2] != 0) sum = add_logs(sum, beta[next + s + 2] + g.emitted[next + s + 2]);
                }
                beta[at + s] = sum;
            }
            __syncthreads();
        }
        for (i64 t = 0; t < len; t++) {
            const i64 at = (first + t * step) * g.states;
            for (i64 s = threadIdx.x; s < g.states; s += blockDim.x) {
                const bool counts = t < frames && s < count && total > none;
                out[at + s] = counts ? -dloss[n] * exp_of(alpha[at + s] + beta[at + s] - total) : 0.0;
            }
        }
        __syncthreads();
    }
}
