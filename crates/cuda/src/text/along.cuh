// Operators with an index or a number per element. T: an unsigned integer of the elements' size.

#ifdef GATHER
// `walk.from` are offsets in x without the indexed axis, `walk.to` those in the result; indices are dense, in the order of the walk.
extern "C" __global__ void kernel(const T* x, const i64* indices, T* out, Walk walk, i64 size, i64 stride, u64* faults) {
    EACH(e, walk.n) {
        i64 from, to, i = indices[e];
        walk.at(e, from, to);
        if (i < 0) i += size;
        if (i >= 0 && i < size) out[to] = x[from + i * stride];
        else refuse(faults, size, indices[e]);
    }
}
#endif

#ifdef NUMBER
// Element offsets in the target of a scatter along an axis; OUTSIDE for an index out of range.
extern "C" __global__ void kernel(const i64* indices, i64* offsets, Walk walk, i64 size, i64 stride, u64* faults) {
    EACH(e, walk.n) {
        i64 from, to, i = indices[e];
        walk.at(e, from, to);
        if (i < 0) i += size;
        const bool is_inside = i >= 0 && i < size;
        if (!is_inside) refuse(faults, size, indices[e]);
        offsets[e] = is_inside ? from + i * stride : (i64)(1ull << 63);
    }
}
#endif

#ifdef CHOOSE
// Elements of one of several arrays, selected by `numbers`. This launch copies those of array `own`. Numbers outside of 0..count are errors.
extern "C" __global__ void kernel(const i64* numbers, const T* x, T* out, Walk walk, i64 own, i64 count, u64* faults) {
    EACH(e, walk.n) {
        i64 from, to;
        walk.at(e, from, to);
        const i64 number = numbers[e];
        if (number == own) out[to] = x[from];
        else if (number < 0 || number >= count) refuse(faults, number, count);
    }
}
#endif

#ifdef RESOLVE
// Positions on an axis of `size`. T: the type of the indices. Mode 0: negative indices count from the end; 1: modulo the size; 2: clipped.
extern "C" __global__ void kernel(const T* indices, i64* out, Walk walk, i64 size, i64 mode, u64* faults) {
    EACH(e, walk.n) {
        i64 from, to;
        walk.at(e, from, to);
        const T given = indices[from];
        // Unsigned numbers above the largest int64 are out of range for any axis.
        const bool is_huge = same<T, u64> && (u64)given >> 63 != 0;
        i64 i = is_huge ? 0x7fffffffffffffffLL : (i64)given;
        if (mode == 1) {
            i = is_huge ? (i64)((u64)given % (u64)size) : i % size;
            if (i < 0) i += size;
        } else if (mode == 2) {
            i = i < 0 ? 0 : i >= size ? size - 1 : i;
        } else if (i < -size || i >= size) {
            refuse(faults, i, size);
            i = 0;
        } else if (i < 0) {
            i += size;
        }
        out[to] = i;
    }
}
#endif

#ifdef ONE_HOT
extern "C" __global__ void kernel(const i64* indices, T* out, i64 rows, i64 depth, Number on, Number off) {
    const T yes = on.as<T>(), no = off.as<T>();
    EACH(e, rows * depth) out[e] = indices[e / depth] == e % depth ? yes : no;
}
#endif
