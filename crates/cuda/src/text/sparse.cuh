// Compressed rows: row i has the stored elements offsets[i]..offsets[i + 1], each with a column in `indices`. Requires `segment.cuh`, whose
// `Segments` are the rows. T: elements, or an unsigned integer of their size; A: type of the sums.

#ifdef INVERT
// Rows of the stored elements in the order `order`, which sorts them by column, and the offset of each column.
extern "C" __global__ void kernel(const i64* indices, const i64* order, Segments g, i64* rows, i64* starts, i64 columns, u64* faults) {
    EACH(e, g.rows + columns + 1) {
        if (e < g.rows) {
            const i64 column = indices[e];
            if (column < 0 || column >= columns) refuse(faults, e, column, columns);
            if (rows) rows[e] = g.of(order[e]);
            continue;
        }
        const i64 column = e - g.rows;
        i64 low = 0, high = g.rows;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            if (indices[order[middle]] < column) low = middle + 1;
            else high = middle;
        }
        starts[column] = low;
    }
}
#endif

#ifdef FIND
// Positions of elements in a pattern with ascending columns per row, -1 if they are not there. Without `rows`, the elements are those of the first
// pattern.
extern "C" __global__ void kernel(const i64* columns, const i64* rows, Segments own, const i64* in_indices, Segments in, i64* out, i64 n) {
    EACH(e, n) {
        const i64 row = rows ? rows[e] : own.of(e), column = columns[e];
        out[e] = -1;
        if (row < 0 || row >= in.count) continue;
        i64 low = in.at(row), high = in.at(row + 1);
        const i64 end = high;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            if (in_indices[middle] < column) low = middle + 1;
            else high = middle;
        }
        if (low < end && in_indices[low] == column) out[e] = low;
    }
}
#endif

#ifdef GATHER_OR_ZERO
extern "C" __global__ void kernel(const T* x, const i64* positions, T* y, i64 n, i64 rows, i64 width, Number zero, u64* faults) {
    const T none = zero.as<T>();
    EACH(e, n * width) {
        const i64 at = positions[e / width];
        if (at >= rows) refuse(faults, e / width, at, rows);
        y[e] = at < 0 || at >= rows ? none : x[at * width + e % width];
    }
}
#endif

#ifdef SCATTER_OR_SKIP
// `order` sorts the positions; the first occurrence of a position adds all of its rows, in their original order.
extern "C" __global__ void kernel(const T* x, const i64* positions, const i64* order, T* y, i64 n, i64 rows, i64 width, u64* faults) {
    EACH(e, n * width) {
        const i64 slot = e / width, at = positions[order[slot]];
        if (at < 0) continue;
        if (at >= rows) {
            refuse(faults, order[slot], at, rows);
            continue;
        }
        if (slot > 0 && positions[order[slot - 1]] == at) continue;
        A sum = convert<A>(0);
        for (i64 s = slot; s < n && positions[order[s]] == at; s++) sum = added(sum, convert<A>(x[order[s] * width + e % width]));
        y[at * width + e % width] = convert<T>(sum);
    }
}
#endif

#ifdef MATMUL_DENSE
// Rows of x have `heads` parts of `width` elements; each stored element has one factor per part, or one for all if `heads` is 1.
extern "C" __global__ void kernel(const T* data, const i64* indices, Segments g, const T* x, T* y, i64 x_rows, i64 heads, i64 width, u64* faults) {
    EACH(e, g.count * heads * width) {
        const i64 row = e / (heads * width), at = e % (heads * width);
        A sum = convert<A>(0);
        for (i64 k = g.at(row); k < g.at(row + 1); k++) {
            const i64 column = indices[k];
            if (column < 0 || column >= x_rows) {
                refuse(faults, k, column, x_rows);
                continue;
            }
            multiply_add(sum, convert<A>(data[k * heads + at / width]), convert<A>(x[column * heads * width + at]));
        }
        y[e] = convert<T>(sum);
    }
}
#endif

#ifdef SAMPLED_DENSE
extern "C" __global__ void kernel(const T* x, const T* y, const i64* indices, Segments g, T* out, i64 y_rows, i64 heads, i64 width, u64* faults) {
    EACH(e, g.rows * heads) {
        const i64 k = e / heads, row = g.of(k), column = indices[k];
        A sum = convert<A>(0);
        if (column < 0 || column >= y_rows) {
            refuse(faults, k, column, y_rows);
        } else {
            const T* a = x + (row * heads + e % heads) * width;
            const T* b = y + (column * heads + e % heads) * width;
            for (i64 i = 0; i < width; i++) multiply_add(sum, convert<A>(a[i]), convert<A>(b[i]));
        }
        out[e] = convert<T>(sum);
    }
}
#endif

#ifdef TRANSPOSED_MATMUL
// `order` sorts the stored elements by column, `rows` has their rows in that order, and `starts` where each column begins.
extern "C" __global__ void kernel(const T* data, const i64* order, const i64* rows, const i64* starts, const T* x, T* y, i64 columns, i64 width) {
    EACH(e, columns * width) {
        const i64 column = e / width, at = e % width;
        A sum = convert<A>(0);
        for (i64 k = starts[column]; k < starts[column + 1]; k++)
            multiply_add(sum, convert<A>(data[order[k]]), convert<A>(x[rows[k] * width + at]));
        y[e] = convert<T>(sum);
    }
}
#endif

#ifdef SAMPLED_MATMUL
// The product of row i of the left matrix and row indices[k] of the right one, for each stored element k of row i. Columns need no order.
extern "C" __global__ void kernel(const T* lhs, const i64* lhs_indices, Segments lhs_rows, const T* rhs, const i64* rhs_indices, Segments rhs_rows,
                                  const i64* indices, Segments g, T* out, i64 columns, u64* faults) {
    EACH(k, g.rows) {
        const i64 row = g.of(k), other = indices[k];
        A sum = convert<A>(0);
        if (other < 0 || other >= rhs_rows.count || row >= lhs_rows.count) {
            refuse(faults, k, other, rhs_rows.count);
        } else {
            for (i64 p = lhs_rows.at(row); p < lhs_rows.at(row + 1); p++) {
                if (lhs_indices[p] < 0 || lhs_indices[p] >= columns) refuse(faults, p, lhs_indices[p], columns);
                for (i64 q = rhs_rows.at(other); q < rhs_rows.at(other + 1); q++)
                    if (lhs_indices[p] == rhs_indices[q]) multiply_add(sum, convert<A>(lhs[p]), convert<A>(rhs[q]));
            }
        }
        out[k] = convert<T>(sum);
    }
}
#endif
