// Gather and scatter of blocks at positions.
//
// The offset of a position in the indexed array comes from `IndexArrays`. The elements of the block come from a `Walk`: `from` is the side that is dense
// in positions, `to` the indexed side. Elements are numbered by (outer part of the block, position, inner part of the block).

#define OUTSIDE ((i64)(1ull << 63))

struct IndexArrays {
    const i64* indices;     // for each position an index of an axis; if `size` is 0 an offset, OUTSIDE where an index was out of bounds
    i64 size, stride;       // of the indexed axis

    __device__ i64 at(i64 p) const {
        const i64 i = indices[p];
        return size == 0 ? i : (i < 0 ? i + size : i) * stride;
    }
    __device__ bool is_inside(i64 p) const {
        const i64 i = indices[p];
        return size == 0 ? i != OUTSIDE : i >= -size && i < size;
    }
};

struct Blocks {
    Walk block;
    IndexArrays index_arrays;
    i64 positions, step, inner;     // how many, the distance of two on their dense side, and elements of the inner part

    // Position of element `e`, and its offsets on both sides; the offset of the position itself on the indexed side is not included.
    __device__ i64 at(i64 e, i64& dense, i64& indexed) const {
        const i64 p = e / inner % positions;
        block.at(e / inner / positions * inner + e % inner, dense, indexed);
        dense += p * step;
        return p;
    }
};

#ifdef GATHER
extern "C" __global__ void kernel(const T* x, T* out, Blocks blocks, u64* faults) {
    EACH(e, blocks.block.n * blocks.positions) {
        i64 dense, indexed;
        const i64 p = blocks.at(e, dense, indexed);
        if (blocks.index_arrays.is_inside(p)) out[dense] = x[indexed + blocks.index_arrays.at(p)];
        else refuse(faults, blocks.index_arrays.size, blocks.index_arrays.indices[p]);
    }
}
#endif

#ifdef SET
// If several positions have one target, the last one is written: `last` has its position plus 1 for each target, `numbers` the target of each
// position.
extern "C" __global__ void kernel(const T* values, T* out, Blocks blocks, IndexArrays numbers, const u64* last, u64* faults) {
    EACH(e, blocks.block.n * blocks.positions) {
        i64 dense, indexed;
        const i64 p = blocks.at(e, dense, indexed);
        if (!blocks.index_arrays.is_inside(p)) refuse(faults, blocks.index_arrays.size, blocks.index_arrays.indices[p]);
        else if (last == 0 || last[numbers.at(p)] == (u64)p + 1) out[indexed + blocks.index_arrays.at(p)] = values[dense];
    }
}
#endif

#ifdef LAST
extern "C" __global__ void kernel(IndexArrays numbers, u64* last, i64 positions) {
    EACH(p, positions) if (numbers.is_inside(p)) atomicMax(&last[numbers.at(p)], (u64)p + 1);
}
#endif

#ifdef ADD
// `order` sorts the positions by target. The first position of a target adds all of its values, in their original order.
extern "C" __global__ void kernel(const T* values, T* out, Blocks blocks, IndexArrays numbers, const i64* order, u64* faults) {
    EACH(e, blocks.block.n * blocks.positions) {
        // Neighbouring threads process neighbouring elements of the block.
        const i64 slot = e / blocks.block.n, first = order[slot];
        if (!numbers.is_inside(first)) {
            refuse(faults, blocks.index_arrays.size, blocks.index_arrays.indices[first]);
            continue;
        }
        const i64 target = numbers.at(first);
        if (slot > 0 && numbers.is_inside(order[slot - 1]) && numbers.at(order[slot - 1]) == target) continue;
        i64 dense, indexed;
        blocks.block.at(e % blocks.block.n, dense, indexed);
        T* to = out + indexed + blocks.index_arrays.at(first);
        T sum = *to;
        for (i64 s = slot; s < blocks.positions; s++) {
            const i64 p = order[s];
            if (s > slot && numbers.at(p) != target) break;
            sum = plus(sum, values[dense + p * blocks.step]);
        }
        *to = sum;
    }
}
#endif

#ifdef NUMBER
// Adds the contribution of one index array to the offset and the target number of each position.
extern "C" __global__ void kernel(IndexArrays index_arrays, i64 count_behind, i64* offsets, i64* numbers, i64 positions, i64 is_first, u64* faults) {
    EACH(p, positions) {
        i64 offset = is_first ? 0 : offsets[p], number = is_first ? 0 : numbers[p];
        if (!index_arrays.is_inside(p)) {
            refuse(faults, index_arrays.size, index_arrays.indices[p]);
            offset = number = OUTSIDE;
        } else if (offset != OUTSIDE) {
            const i64 i = index_arrays.indices[p];
            offset += index_arrays.at(p);
            number += (i < 0 ? i + index_arrays.size : i) * count_behind;
        }
        offsets[p] = offset;
        numbers[p] = number;
    }
}
#endif
