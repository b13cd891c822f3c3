// Normalisation of rows of `len` elements. `X` is the type of the data, `Y` that of the result, `T` the compute type.

namespace mx {

// The affine parameter of element `i` of a row: one per element, or one per `inner` elements (a channel) of the row's group.
MX_FN i64 parameter_of(i64 row, i64 i, i64 len, i64 groups, i64 inner) {
    return groups == 0 ? i : row % groups * (len / inner) + i / inner;
}

// y = (x - mean) * inverse * gamma + beta, inverse = 1 / sqrt(var + epsilon), var the mean square of x - mean. One block per row.
MX_FN void row_norm(const X *x, const T *gamma, const T *beta, Y *y, T *mean, T *inverse, i64 rows, i64 len, i64 groups, i64 inner, bool is_centred, f64 epsilon) {
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const i64 start = row * len;
        T centre = 0;
        if (is_centred) {
            for (i64 i = threadIdx.x; i < len; i += blockDim.x) centre += convert<T>(x[start + i]);
            centre = fold_block_all(centre, (T)0, Add()) / (T)len;
        }
        T squares = 0;
        for (i64 i = threadIdx.x; i < len; i += blockDim.x) {
            const T distance = convert<T>(x[start + i]) - centre;
            squares += distance * distance;
        }
        squares = fold_block_all(squares, (T)0, Add());
        const T scale = (T)(1 / ::sqrt((f64)squares / (f64)len + epsilon));
        for (i64 i = threadIdx.x; i < len; i += blockDim.x) {
            const i64 p = parameter_of(row, i, len, groups, inner);
            T value = (convert<T>(x[start + i]) - centre) * scale;
            if (gamma != nullptr) value *= gamma[p];
            if (beta != nullptr) value += beta[p];
            y[start + i] = convert<Y>(value);
        }
        if (threadIdx.x == 0) {
            mean[row] = centre;
            inverse[row] = scale;
        }
    }
}

// dx = inverse (g - hat mean(g hat) - mean(g)) with g = dy gamma and hat = (x - mean) inverse; without the last mean if rows are not centred.
MX_FN void row_norm_gradient(const X *x, const X *dy, const T *gamma, const T *mean, const T *inverse, Y *dx, i64 rows, i64 len, i64 groups, i64 inner, bool is_centred) {
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const i64 start = row * len;
        const T centre = is_centred ? mean[row] : (T)0, scale = inverse[row];
        T along = 0, total = 0;
        for (i64 i = threadIdx.x; i < len; i += blockDim.x) {
            T g = convert<T>(dy[start + i]);
            if (gamma != nullptr) g *= gamma[parameter_of(row, i, len, groups, inner)];
            along += g * ((convert<T>(x[start + i]) - centre) * scale);
            total += g;
        }
        along = fold_block_all(along, (T)0, Add()) / (T)len;
        total = is_centred ? fold_block_all(total, (T)0, Add()) / (T)len : (T)0;
        for (i64 i = threadIdx.x; i < len; i += blockDim.x) {
            T g = convert<T>(dy[start + i]);
            if (gamma != nullptr) g *= gamma[parameter_of(row, i, len, groups, inner)];
            const T hat = (convert<T>(x[start + i]) - centre) * scale;
            dx[start + i] = convert<Y>((g - hat * along - total) * scale);
        }
    }
}

} // namespace mx
