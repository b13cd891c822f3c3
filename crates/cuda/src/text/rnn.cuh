// Steps of recurrent layers between the matrix products. T: f32 or f64. One thread per hidden unit and sequence; the gates of a unit are `hidden`
// elements apart. CELL: LSTM 0, GRU 1, tanh 2, relu 3.

MX_FN T sigmoid(T x) { return (T)1 / ((T)1 + exp_of(-x)); }

#ifdef BIAS
// Initialises every row of the pre-activations with both biases; for the GRU's n, with that of the input only, and its hidden product with the other.
extern "C" __global__ void kernel(const T* bi, const T* bh, T* sums, T* extra, i64 rows, i64 width, i64 hidden) {
    EACH(e, rows * width) {
        const i64 unit = e % width;
        const bool is_apart = CELL == 1 && unit >= 2 * hidden;
        const T own = bi ? bi[unit] : (T)0, other = bh ? bh[unit] : (T)0;
        sums[e] = is_apart ? own : own + other;
        if (is_apart) extra[e / width * hidden + unit - 2 * hidden] = other;
    }
}
#endif

#ifdef CHECK
extern "C" __global__ void kernel(u64* report, const i64* lengths, i64 batch, i64 time) {
    EACH(b, batch) {
        if (lengths[b] < 0 || lengths[b] > time) report_fault(report, b, lengths[b], 0);
    }
}
#endif

#ifdef ENDS
// Sets the results after the ends of sequences to the state, or to 0 if it is null.
extern "C" __global__ void kernel(const i64* lengths, const T* state, T* y, i64 time, i64 batch, i64 hidden) {
    EACH(e, time * batch * hidden) {
        const i64 own = e % (batch * hidden);
        if (e / (batch * hidden) >= lengths[own / hidden]) y[e] = state ? state[own] : (T)0;
    }
}
#endif

#ifdef FORWARD
// `extra`: the cell states of this step (LSTM), or the hidden product of n (GRU). Null operands are 0.
extern "C" __global__ void kernel(T* sums, T* extra, const T* h_before, const T* c_before, T* y, const i64* lengths, i64 t,
                                  i64 batch, i64 hidden) {
    EACH(e, batch * hidden) {
        if (lengths && t >= lengths[e / hidden]) {
            // After the end of the sequence the state is unchanged.
            y[e] = h_before ? h_before[e] : (T)0;
            if (CELL == 0) extra[e] = c_before ? c_before[e] : (T)0;
            continue;
        }
        T* gates = sums + e / hidden * hidden * (CELL == 0 ? 4 : CELL == 1 ? 3 : 1) + e % hidden;
        if (CELL == 0) {
            const T i = sigmoid(gates[0]), f = sigmoid(gates[hidden]), g = tanh_of(gates[2 * hidden]), o = sigmoid(gates[3 * hidden]);
            const T c = f * (c_before ? c_before[e] : (T)0) + i * g;
            gates[0] = i;
            gates[hidden] = f;
            gates[2 * hidden] = g;
            gates[3 * hidden] = o;
            extra[e] = c;
            y[e] = o * tanh_of(c);
        } else if (CELL == 1) {
            const T r = sigmoid(gates[0]), z = sigmoid(gates[hidden]), n = tanh_of(r * extra[e] + gates[2 * hidden]);
            gates[0] = r;
            gates[hidden] = z;
            gates[2 * hidden] = n;
            y[e] = z * ((h_before ? h_before[e] : (T)0) - n) + n;
        } else if (CELL == 2) {
            y[e] = tanh_of(gates[0]);
        } else {
            y[e] = gates[0] < 0 ? (T)0 : gates[0];
        }
    }
}
#endif

#ifdef BACKWARD
// Replaces the gates by the cotangents of their pre-activations, and `dh` and `dc` by the part of the old states' cotangents that needs no product.
extern "C" __global__ void kernel(
    T* sums, T* extra, const T* h_before, const T* c_before, const T* y, const T* dy, T* dh, T* dc, const i64* lengths, i64 t,
    i64 batch, i64 hidden
) {
    EACH(e, batch * hidden) {
        T* gates = sums + e / hidden * hidden * (CELL == 0 ? 4 : CELL == 1 ? 3 : 1) + e % hidden;
        if (lengths && t >= lengths[e / hidden]) {
            // After the end of the sequence: the cotangents of the states pass unchanged.
            for (i64 gate = 0; gate < (CELL == 0 ? 4 : CELL == 1 ? 3 : 1); ++gate) gates[gate * hidden] = 0;
            if (CELL == 1) extra[e] = 0;
            continue;
        }
        const T slope = dh[e] + dy[e];
        T direct = 0;
        if (CELL == 0) {
            const T i = gates[0], f = gates[hidden], g = gates[2 * hidden], o = gates[3 * hidden], t = tanh_of(extra[e]);
            const T cell = dc[e] + slope * o * ((T)1 - t * t);
            gates[0] = cell * g * i * ((T)1 - i);
            gates[hidden] = cell * (c_before ? c_before[e] : (T)0) * f * ((T)1 - f);
            gates[2 * hidden] = cell * i * ((T)1 - g * g);
            gates[3 * hidden] = slope * t * o * ((T)1 - o);
            dc[e] = cell * f;
        } else if (CELL == 1) {
            const T r = gates[0], z = gates[hidden], n = gates[2 * hidden], before = h_before ? h_before[e] : (T)0;
            const T dn = slope * ((T)1 - z) * ((T)1 - n * n);
            gates[0] = dn * extra[e] * r * ((T)1 - r);
            gates[hidden] = slope * (before - n) * z * ((T)1 - z);
            gates[2 * hidden] = dn;
            extra[e] = dn * r;
            direct = slope * z;
        } else if (CELL == 2) {
            gates[0] = slope * ((T)1 - y[e] * y[e]);
        } else {
            gates[0] = y[e] > 0 ? slope : (T)0;
        }
        dh[e] = direct;
    }
}
#endif
