// Matrix products with any strides, including zero: batches, transposes and broadcast operands need no copies.

struct BatchItem {
    const T *a, *b;
};

struct Problem {
    i64 m, n, k, batches, splits, depth;
    i64 left_row, left_term, right_term, right_column;
    i64 shape[8], left_batch[8], right_batch[8];
    const T *a, *b, *bias;
    T* c;
    i64 axes, c_row;
    // Operations on a sum: bit 0, add a bias per column; bit 1, ReLU; bit 2, add the old element.
    i64 epilogue;

    __device__ i64 at(i64 batch, const i64* strides) const {
        i64 at = 0;
        for (int i = (int)axes - 1; i >= 0; i--) {
            at += batch % shape[i] * strides[i];
            batch /= shape[i];
        }
        return at;
    }
    __device__ BatchItem item(i64 batch) const { return BatchItem{a + at(batch, left_batch), b + at(batch, right_batch)}; }
    __device__ A left(const BatchItem& item, i64 row, i64 term) const {
        return left_of(convert<A>(item.a[row * left_row + term * left_term]));
    }
    __device__ A right(const BatchItem& item, i64 term, i64 column) const {
        return convert<A>(item.b[term * right_term + column * right_column]);
    }
    __device__ bool terms_are_near_left() const { return left_term == 1; }
    __device__ bool terms_are_near_right() const { return right_term == 1 && right_column != 1; }
    __device__ void put(i64 batch, i64 row, i64 column, A sum) const {
        if (epilogue & 1) sum = added(sum, convert<A>(bias[column]));
        T* to = c + (batch * m + row) * c_row + column;
        if (epilogue & 4) sum = added(sum, convert<A>(*to));
        if (epilogue & 2) sum = positive(sum);
        *to = convert<T>(sum);
    }
};
