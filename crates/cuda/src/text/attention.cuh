// Attention, tile by tile, without storing the matrix of scores. T: elements; R: compute type.
//
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022. Gradients need no sums
// across blocks: in one pass each block has its own queries, in the other its own keys.

struct Attention {
    i64 batches, queries, keys, dim, value_dim, is_causal;
    f64 scale;
    const R* mask;              // added to the scores, or null
    i64 mask_row, mask_column;
    Walk mask_batch;            // `from`: where the mask of a batch begins

    __device__ const R* mask_of(i64 batch) const {
        if (!mask) return mask;
        i64 from, to;
        mask_batch.at(batch, from, to);
        return mask + from;
    }
    // A scaled product plus the mask; -infinity for keys that the query does not attend to.
    __device__ R score(R product, const R* of_batch, i64 query, i64 key) const {
        if (key >= keys || query >= queries || (is_causal && key > query)) return -infinity<R>();
        R score = product * (R)scale;
        if (of_batch) score += of_batch[query * mask_row + key * mask_column];
        return score;
    }
};

// Dot products of the rows of two tiles, 16 elements at a time: `sums[i][j]` is that of rows ty + 16 i of a and tx + 16 j of b.
template <int ROWS, int COLUMNS>
MX_FN void products(
    const T* a, i64 first_a, i64 rows_a, const T* b, i64 first_b, i64 rows_b, i64 dim,
    R (&tile_a)[16 * ROWS][17], R (&tile_b)[16 * COLUMNS][17], R (&sums)[ROWS][COLUMNS]
) {
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) sums[i][j] = 0;
    for (i64 start = 0; start < dim; start += 16) {
        __syncthreads();
        const i64 at = start + tx;
        for (int i = 0; i < ROWS; i++) {
            const i64 row = first_a + ty + 16 * i;
            tile_a[ty + 16 * i][tx] = row < rows_a && at < dim ? convert<R>(a[row * dim + at]) : (R)0;
        }
        for (int j = 0; j < COLUMNS; j++) {
            const i64 row = first_b + ty + 16 * j;
            tile_b[ty + 16 * j][tx] = row < rows_b && at < dim ? convert<R>(b[row * dim + at]) : (R)0;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; d++)
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) sums[i][j] += tile_a[ty + 16 * i][d] * tile_b[tx + 16 * j][d];
    }
}

#ifdef FORWARD
// Each block computes 64 queries and a part of 64 elements of the values; blocks along y are parts.
extern "C" __global__ void __launch_bounds__(256) kernel(const T* q, const T* k, const T* v, T* out, R* lse, Attention g) {
    __shared__ R tile_q[64][17], tile_k[32][17], weights[64][33], values[32][64], most[64], total[64], factor[64];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const i64 tiles = (g.queries + 63) / 64, part = blockIdx.y * 64;
    for (i64 tile = blockIdx.x; tile < tiles * g.batches; tile += gridDim.x) {
        const i64 batch = tile / tiles, first = tile % tiles * 64;
        const R* mask = g.mask_of(batch);
        R sums[4][4];
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) sums[i][j] = 0;
        __syncthreads();
        if (threadIdx.x < 64) {
            most[threadIdx.x] = -infinity<R>();
            total[threadIdx.x] = 0;
        }
        const i64 seen = g.is_causal && first + 64 < g.keys ? first + 64 : g.keys;
        for (i64 start = 0; start < seen; start += 32) {
            R scores[4][2];
            products<4, 2>(q + batch * g.queries * g.dim, first, g.queries, k + batch * g.keys * g.dim, start, g.keys, g.dim, tile_q, tile_k, scores);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 2; j++)
                    weights[ty + 16 * i][tx + 16 * j] = g.score(scores[i][j], mask, first + ty + 16 * i, start + tx + 16 * j);
            for (int e = threadIdx.x; e < 32 * 64; e += 256) {
                const i64 key = start + e / 64, at = part + e % 64;
                values[e / 64][e % 64] = key < g.keys && at < g.value_dim ? convert<R>(v[(batch * g.keys + key) * g.value_dim + at]) : (R)0;
            }
            __syncthreads();
            // Four threads per row.
            const int row = threadIdx.x / 4, own = threadIdx.x % 4 * 8;
            R largest = most[row];
            for (int j = 0; j < 8; j++) largest = weights[row][own + j] > largest || weights[row][own + j] != weights[row][own + j] ? weights[row][own + j] : largest;
            for (int d = 1; d < 4; d *= 2) {
                const R other = __shfl_xor_sync(0xffffffffu, largest, d);
                largest = other > largest || other != other ? other : largest;
            }
            R added = 0;
            for (int j = 0; j < 8; j++) {
                const R weight = largest == -infinity<R>() ? (R)0 : exp_of(weights[row][own + j] - largest);
                weights[row][own + j] = weight;
                added += weight;
            }
            for (int d = 1; d < 4; d *= 2) added += __shfl_xor_sync(0xffffffffu, added, d);
            if (threadIdx.x % 4 == 0) {
                factor[row] = largest == -infinity<R>() ? (R)1 : exp_of(most[row] - largest);
                total[row] = total[row] * factor[row] + added;
                most[row] = largest;
            }
            __syncthreads();
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sums[i][j] *= factor[ty + 16 * i];
            for (int key = 0; key < 32; key++)
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++) sums[i][j] += weights[ty + 16 * i][key] * values[key][tx + 16 * j];
        }
        __syncthreads();
        for (int i = 0; i < 4; i++) {
            const i64 query = first + ty + 16 * i;
            if (query >= g.queries) continue;
            const R sum = total[ty + 16 * i], largest = most[ty + 16 * i];
            for (int j = 0; j < 4; j++) {
                const i64 at = part + tx + 16 * j;
                if (at < g.value_dim) out[(batch * g.queries + query) * g.value_dim + at] = convert<T>(sum == 0 ? (R)0 : sums[i][j] / sum);
            }
            if (part == 0 && tx == 0) lse[batch * g.queries + query] = sum == 0 ? -infinity<R>() : largest + log_of(sum);
        }
    }
}
#endif

#ifdef SHARES
// The dot product of each row's result and its cotangent; one warp per row.
extern "C" __global__ void kernel(const T* out, const T* dout, R* shares, i64 rows, i64 dim) {
    const int lane = threadIdx.x % 32;
    for (i64 row = blockIdx.x * (i64)(blockDim.x / 32) + threadIdx.x / 32; row < rows; row += gridDim.x * (i64)(blockDim.x / 32)) {
        R sum = 0;
        for (i64 at = lane; at < dim; at += 32) sum += convert<R>(out[row * dim + at]) * convert<R>(dout[row * dim + at]);
        for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (lane == 0) shares[row] = sum;
    }
}
#endif

#ifdef BACKWARD
// Weights and gradients of the scores of 32 queries and 32 keys.
MX_FN void slopes_of(
    const T* q, const T* k, const T* v, const T* dout, const R* lse, const R* shares, const Attention& g, i64 batch, i64 query0, i64 key0, const R* mask,
    R (&tile_a)[32][17], R (&tile_b)[32][17], R (&weights)[32][33], R (&slopes)[32][33]
) {
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    R scores[2][2], falls[2][2];
    products<2, 2>(q + batch * g.queries * g.dim, query0, g.queries, k + batch * g.keys * g.dim, key0, g.keys, g.dim, tile_a, tile_b, scores);
    products<2, 2>(dout + batch * g.queries * g.value_dim, query0, g.queries, v + batch * g.keys * g.value_dim, key0, g.keys, g.value_dim, tile_a, tile_b, falls);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const i64 query = query0 + ty + 16 * i, key = key0 + tx + 16 * j;
            const R score = g.score(scores[i][j], mask, query, key);
            const R weight = score == -infinity<R>() ? (R)0 : exp_of(score - lse[batch * g.queries + query]);
            const R share = query < g.queries ? shares[batch * g.queries + query] : (R)0;
            weights[ty + 16 * i][tx + 16 * j] = weight;
            slopes[ty + 16 * i][tx + 16 * j] = score == -infinity<R>() ? (R)0 : weight * (falls[i][j] - share) * (R)g.scale;
        }
}
// Loads a part of 64 elements of 32 rows.
MX_FN void load(R (&to)[32][64], const T* x, i64 first, i64 rows, i64 part, i64 dim) {
    __syncthreads();
    for (int e = threadIdx.x; e < 32 * 64; e += 256) {
        const i64 row = first + e / 64, at = part + e % 64;
        to[e / 64][e % 64] = row < rows && at < dim ? convert<R>(x[row * dim + at]) : (R)0;
    }
    __syncthreads();
}
MX_FN void store(const R (&sums)[2][4], T* x, i64 first, i64 rows, i64 part, i64 dim) {
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            const i64 row = first + ty + 16 * i, at = part + tx + 16 * j;
            if (row < rows && at < dim) x[row * dim + at] = convert<T>(sums[i][j]);
        }
}
// Blocks along y are parts of 64 elements. `own_keys`: gradients of keys and values, otherwise of queries.
extern "C" __global__ void __launch_bounds__(256) kernel(
    const T* q, const T* k, const T* v, const T* dout, const R* lse, const R* shares, T* dq, T* dk, T* dv, Attention g, i64 own_keys
) {
    __shared__ R tile_a[32][17], tile_b[32][17], weights[32][33], slopes[32][33], rows[32][64];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const i64 count = own_keys ? g.keys : g.queries, tiles = (count + 31) / 32, part = blockIdx.y * 64;
    for (i64 tile = blockIdx.x; tile < tiles * g.batches; tile += gridDim.x) {
        const i64 batch = tile / tiles, first = tile % tiles * 32;
        const R* mask = g.mask_of(batch);
        R sums[2][4], value_sums[2][4];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 4; j++) sums[i][j] = value_sums[i][j] = 0;
        const i64 others = own_keys ? g.queries : g.keys;
        for (i64 start = 0; start < others; start += 32) {
            const i64 query0 = own_keys ? start : first, key0 = own_keys ? first : start;
            if (g.is_causal && key0 > query0 + 31) continue;
            __syncthreads();
            slopes_of(q, k, v, dout, lse, shares, g, batch, query0, key0, mask, tile_a, tile_b, weights, slopes);
            if (own_keys) {
                load(rows, dout + batch * g.queries * g.value_dim, start, g.queries, part, g.value_dim);
                for (int other = 0; other < 32; other++)
                    for (int i = 0; i < 2; i++)
                        for (int j = 0; j < 4; j++) value_sums[i][j] += weights[other][ty + 16 * i] * rows[other][tx + 16 * j];
                load(rows, q + batch * g.queries * g.dim, start, g.queries, part, g.dim);
                for (int other = 0; other < 32; other++)
                    for (int i = 0; i < 2; i++)
                        for (int j = 0; j < 4; j++) sums[i][j] += slopes[other][ty + 16 * i] * rows[other][tx + 16 * j];
            } else {
                load(rows, k + batch * g.keys * g.dim, start, g.keys, part, g.dim);
                for (int other = 0; other < 32; other++)
                    for (int i = 0; i < 2; i++)
                        for (int j = 0; j < 4; j++) sums[i][j] += slopes[ty + 16 * i][other] * rows[other][tx + 16 * j];
            }
        }
        if (own_keys) {
            store(sums, dk + batch * g.keys * g.dim, first, g.keys, part, g.dim);
            store(value_sums, dv + batch * g.keys * g.value_dim, first, g.keys, part, g.value_dim);
        } else {
            store(sums, dq + batch * g.queries * g.dim, first, g.queries, part, g.dim);
        }
        __syncthreads();
    }
}
#endif
