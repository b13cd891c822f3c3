// A tiled matrix product. The source before it defines T (elements), A (type of the sums), TILE_M, TILE_N, DEPTH, and `Problem` with
//   i64 m, n, k, batches, splits, depth        depth: terms of a split, a multiple of DEPTH
//   BatchItem item(i64 batch)                     data of one product of the batch
//   A left(BatchItem, i64 row, i64 term), A right(BatchItem, i64 term, i64 column), bool terms_are_near_left(), terms_are_near_right()
//   void put(i64 batch, i64 row, i64 column, A sum)
// `added` and `multiply_add` are those of `sums.cuh`. With several splits, the sums of each go to `partial`, (split, batch, row, column); the kernel
// with FINISH adds them in order.

#ifdef FINISH

extern "C" __global__ void kernel(Problem p, const A* partial) {
    const i64 count = p.batches * p.m * p.n;
    for (i64 e = blockIdx.x * (i64)blockDim.x + threadIdx.x; e < count; e += gridDim.x * (i64)blockDim.x) {
        A sum = partial[e];
        for (i64 split = 1; split < p.splits; split++) sum = added(sum, partial[split * count + e]);
        p.put(e / (p.m * p.n), e / p.n % p.m, e % p.n, sum);
    }
}

#else

#define THREADS 256
#define ROWS (TILE_M / 16)
#define COLUMNS (TILE_N / 16)
// Number of neighbouring columns that a thread reads at once.
#define WIDTH (COLUMNS < 4 ? COLUMNS : 4)
#define LOADS_M (TILE_M * DEPTH / THREADS)
#define LOADS_N (TILE_N * DEPTH / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS) kernel(Problem p, A* partial) {
    __shared__ A left[DEPTH][TILE_M + 4];
    __shared__ A right[DEPTH][TILE_N + 4];
    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
    const bool near_left = p.terms_are_near_left(), near_right = p.terms_are_near_right();
    const i64 tiles_m = (p.m + TILE_M - 1) / TILE_M, tiles_n = (p.n + TILE_N - 1) / TILE_N;
    const i64 tiles = tiles_m * tiles_n * p.splits * p.batches;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        i64 rest = tile;
        const i64 row0 = rest % tiles_m * TILE_M; rest /= tiles_m;
        const i64 column0 = rest % tiles_n * TILE_N; rest /= tiles_n;
        const i64 split = rest % p.splits, batch = rest / p.splits;
        const BatchItem item = p.item(batch);
        const i64 first = split * p.depth, last = first + p.depth < p.k ? first + p.depth : p.k;
        A sums[ROWS][COLUMNS];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) sums[i][j] = convert<A>(0);
        A next_left[LOADS_M], next_right[LOADS_N];
        for (i64 term = first - DEPTH; term < last; term += DEPTH) {
            // The next pieces are loaded while the current ones are multiplied.
            const i64 ahead = term + DEPTH;
            if (ahead < last) {
#pragma unroll
                for (int l = 0; l < LOADS_M; l++) {
                    const int e = thread + l * THREADS;
                    const i64 row = row0 + (near_left ? e / DEPTH : e % TILE_M), k = ahead + (near_left ? e % DEPTH : e / TILE_M);
                    next_left[l] = row < p.m && k < last ? p.left(item, row, k) : convert<A>(0);
                }
#pragma unroll
                for (int l = 0; l < LOADS_N; l++) {
                    const int e = thread + l * THREADS;
                    const i64 column = column0 + (near_right ? e / DEPTH : e % TILE_N), k = ahead + (near_right ? e % DEPTH : e / TILE_N);
                    next_right[l] = column < p.n && k < last ? p.right(item, k, column) : convert<A>(0);
                }
            }
            if (term >= first) {
#pragma unroll
                for (int d = 0; d < DEPTH; d++) {
                    A a[ROWS], b[COLUMNS];
#pragma unroll
                    for (int i = 0; i < ROWS; i++) a[i] = left[d][ty * ROWS + i];
#pragma unroll
                    for (int j = 0; j < COLUMNS; j++) b[j] = right[d][j / WIDTH * (16 * WIDTH) + tx * WIDTH + j % WIDTH];
#pragma unroll
                    for (int i = 0; i < ROWS; i++)
#pragma unroll
                        for (int j = 0; j < COLUMNS; j++) multiply_add(sums[i][j], a[i], b[j]);
                }
            }
            __syncthreads();
            if (ahead < last) {
#pragma unroll
                for (int l = 0; l < LOADS_M; l++) {
                    const int e = thread + l * THREADS;
                    left[near_left ? e % DEPTH : e / TILE_M][near_left ? e / DEPTH : e % TILE_M] = next_left[l];
                }
#pragma unroll
                for (int l = 0; l < LOADS_N; l++) {
                    const int e = thread + l * THREADS;
                    right[near_right ? e % DEPTH : e / TILE_N][near_right ? e / DEPTH : e % TILE_N] = next_right[l];
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                const i64 row = row0 + ty * ROWS + i, column = column0 + j / WIDTH * (16 * WIDTH) + tx * WIDTH + j % WIDTH;
                if (row < p.m && column < p.n) {
                    if (p.splits == 1) p.put(batch, row, column, sums[i][j]);
                    else partial[((split * p.batches + batch) * p.m + row) * p.n + column] = sums[i][j];
                }
            }
    }
}

#endif
