// Boxes and regions of images. T: elements of images; R: compute type.

MX_FN f64 larger(f64 a, f64 b) { return a > b || b != b ? a : b; }
MX_FN f64 smaller(f64 a, f64 b) { return a < b || b != b ? a : b; }

#ifdef PAIRS
// Greedy matching of rows and columns in the order of their scores, each at most once: one thread per matrix. `order` sorts the scores of each
// matrix, best first.
extern "C" __global__ void kernel(
    const f64* scores, const i64* order, i64* columns, i64* rows, i64 batch, i64 n, i64 m, f64 threshold, i64 is_ascend, i64 limit
) {
    EACH(b, batch) {
        for (i64 i = 0; i < n; i++) columns[b * n + i] = -1;
        for (i64 j = 0; j < m; j++) rows[b * m + j] = -1;
        i64 found = 0;
        for (i64 k = 0; k < n * m && found < limit; k++) {
            const i64 at = order[b * n * m + k], i = at / m, j = at % m;
            const f64 score = scores[b * n * m + at];
            if (!(is_ascend ? score < threshold : score > threshold)) continue;
            if (columns[b * n + i] >= 0 || rows[b * m + j] >= 0) continue;
            columns[b * n + i] = j;
            rows[b * m + j] = i;
            found++;
        }
    }
}
#endif

#ifdef SCORES
// The scores for sorting boxes; -infinity for those that are not candidates.
extern "C" __global__ void kernel(const f64* boxes, f64* scores, i64 count, i64 k, i64 score, i64 of_class, i64 background, f64 valid) {
    EACH(e, count) {
        const f64* box = boxes + e * k;
        const bool is_candidate = box[score] > valid && !(of_class >= 0 && background >= 0 && box[of_class] == (f64)background);
        scores[e] = is_candidate ? box[score] : -infinity<f64>();
    }
}
#endif

#ifdef KEEP
struct Corners { f64 left, top, right, bottom; };
MX_FN Corners corners_of(const f64* box, i64 at, i64 is_center) {
    const f64 x = box[at], y = box[at + 1], z = box[at + 2], w = box[at + 3];
    if (!is_center) return Corners{x, y, z, w};
    return Corners{x - z / 2, y - w / 2, x + z / 2, y + w / 2};
}
MX_FN f64 area(f64 left, f64 top, f64 right, f64 bottom) { return mul(larger(right - left, 0.0), larger(bottom - top, 0.0)); }
// Intersection over union; 0 for boxes without area.
MX_FN f64 overlap(const Corners& a, const Corners& b) {
    const f64 shared = area(larger(a.left, b.left), larger(a.top, b.top), smaller(a.right, b.right), smaller(a.bottom, b.bottom));
    const f64 both = sum(sum(area(a.left, a.top, a.right, a.bottom), area(b.left, b.top, b.right, b.bottom)), -shared);
    return both > 0 ? shared / both : 0.0;
}
// Non-maximum suppression, one block per image: boxes in the order of their scores remove those that overlap them too much.
extern "C" __global__ void kernel(
    const f64* boxes, const f64* scores, const i64* order, i64* kept, u8* gone, i64 batch, i64 n, i64 k, i64 first, i64 of_class, i64 is_one_class,
    i64 is_center, f64 limit, i64 most
) {
    for (i64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const f64* own = boxes + b * n * k;
        i64 count = 0, candidates = 0;
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            gone[b * n + i] = 0;
            kept[b * n + i] = -1;
        }
        while (candidates < n && candidates < most && scores[b * n + order[b * n + candidates]] > -infinity<f64>()) candidates++;
        __syncthreads();
        for (i64 i = 0; i < candidates; i++) {
            if (!gone[b * n + i]) {
                const f64* box = own + order[b * n + i] * k;
                const Corners corners = corners_of(box, first, is_center);
                for (i64 j = i + 1 + threadIdx.x; j < candidates; j += blockDim.x) {
                    const f64* other = own + order[b * n + j] * k;
                    const bool are_rivals = is_one_class || box[of_class] == other[of_class];
                    if (are_rivals && overlap(corners, corners_of(other, first, is_center)) > limit) gone[b * n + j] = 1;
                }
                if (threadIdx.x == 0) kept[b * n + count] = order[b * n + i];
                count++;
            }
            __syncthreads();
        }
    }
}
#endif

#ifdef REGIONS
struct Regions {
    i64 images, channels, height, width, count, down, right;
    i64 samples, is_aligned, is_by_position;
    f64 scale;
    const f64* regions;

    // The image of a region; -1 if the index is out of range.
    __device__ i64 image(i64 r) const {
        const f64 image = regions[5 * r];
        return image >= 0 && image < (f64)images ? (i64)image : -1;
    }
    __device__ void check(i64 r, u64* faults) const {
        const f64 image = regions[5 * r];
        if (image >= (f64)images || image != image) refuse(faults, r, bits_as<i64>(image));
    }
    __device__ f64 edge(i64 r, int i) const { return mul(regions[5 * r + i], scale); }
};
#endif

#ifdef LARGEST
MX_FN i64 whole(f64 x) {
    const f64 rounded = ::round(x);
    return (i64)(rounded < -1e9 ? -1e9 : rounded > 1e9 ? 1e9 : rounded);
}
MX_FN i64 floor_div(i64 a, i64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
MX_FN void pixels(f64 first_edge, f64 last_edge, i64 b, i64 bins, i64 len, i64& start, i64& stop) {
    const i64 first = whole(first_edge), extent = whole(last_edge) - first + 1, size = extent < 1 ? 1 : extent;
    start = first + floor_div(b * size, bins);
    stop = first - floor_div(-(b + 1) * size, bins);
    start = start < 0 ? 0 : start > len ? len : start;
    stop = stop < 0 ? 0 : stop > len ? len : stop;
}
extern "C" __global__ void kernel(const T* data, i64* positions, Regions g, u64* faults) {
    EACH(e, g.count * g.channels * g.down * g.right) {
        const i64 right = e % g.right, down = e / g.right % g.down, channel = e / g.right / g.down % g.channels, r = e / g.right / g.down / g.channels;
        g.check(r, faults);
        const i64 image = g.image(r);
        i64 top, bottom, left, end, found = -1;
        pixels(g.edge(r, 2), g.edge(r, 4), down, g.down, g.height, top, bottom);
        pixels(g.edge(r, 1), g.edge(r, 3), right, g.right, g.width, left, end);
        if (image >= 0) {
            const T* plane = data + (image * g.channels + channel) * g.height * g.width;
            R best = 0;
            for (i64 y = top; y < bottom; y++)
                for (i64 x = left; x < end; x++) {
                    const R value = convert<R>(plane[y * g.width + x]);
                    if (found < 0 || value > best || (value != value && best == best)) {
                        found = y * g.width + x;
                        best = value;
                    }
                }
        }
        positions[e] = found;
    }
}
#endif

#ifdef MEANS
// First sample of a bin along an axis, distance between samples, number of samples.
MX_FN void samples_of(const Regions& g, i64 r, int axis, i64 b, f64& start, f64& step, i64& count) {
    const f64 first = g.edge(r, axis == 0 ? 2 : 1), last = g.edge(r, axis == 0 ? 4 : 3), extent = last - first;
    const f64 size = g.is_aligned ? extent : larger(extent, 1.0), bin = size / (f64)(axis == 0 ? g.down : g.right);
    const f64 needed = ::ceil(bin);
    count = g.samples > 0 ? g.samples : (i64)(needed < 1 || needed != needed ? 1.0 : needed > 1e6 ? 1e6 : needed);
    step = bin;
    start = sum(first - (g.is_aligned ? 0.5 : 0.0), mul((f64)b, bin));
}
MX_FN f64 sample(f64 start, f64 bin, i64 i, i64 count) { return sum(start, mul((f64)i + 0.5, bin) / (f64)count); }
// Pixel and weight for linear interpolation at x on an axis; false if x is more than a pixel outside.
MX_FN bool between(f64 x, i64 len, i64& low, f64& part) {
    if (len == 0 || !(x >= -1.0 && x <= (f64)len)) return false;
    x = x < 0 ? 0 : x > (f64)(len - 1) ? (f64)(len - 1) : x;
    low = (i64)x;
    part = x - (f64)low;
    return true;
}
MX_FN i64 channel_of(const Regions& g, i64 c, i64 b) { return g.is_by_position ? c * g.down * g.right + b : c; }
#endif

#ifdef ALIGN
extern "C" __global__ void kernel(const T* data, T* out, Regions g, i64 channels, u64* faults) {
    EACH(e, g.count * channels * g.down * g.right) {
        const i64 right = e % g.right, down = e / g.right % g.down, c = e / g.right / g.down % channels, r = e / g.right / g.down / channels;
        g.check(r, faults);
        const i64 image = g.image(r);
        f64 total = 0;
        if (image >= 0) {
            const T* plane = data + (image * g.channels + channel_of(g, c, down * g.right + right)) * g.height * g.width;
            f64 y0, y_bin, x0, x_bin;
            i64 ys, xs;
            samples_of(g, r, 0, down, y0, y_bin, ys);
            samples_of(g, r, 1, right, x0, x_bin, xs);
            for (i64 i = 0; i < ys; i++) {
                i64 y, x;
                f64 y_part, x_part, line = 0;
                if (!between(sample(y0, y_bin, i, ys), g.height, y, y_part)) continue;
                for (i64 j = 0; j < xs; j++) {
                    if (!between(sample(x0, x_bin, j, xs), g.width, x, x_part)) continue;
                    const i64 next_x = x_part > 0 ? x + 1 : x, next_y = y_part > 0 ? y + 1 : y;
                    const f64 above = (1 - x_part) * convert<f64>(plane[y * g.width + x]) + x_part * convert<f64>(plane[y * g.width + next_x]);
                    const f64 below = (1 - x_part) * convert<f64>(plane[next_y * g.width + x]) + x_part * convert<f64>(plane[next_y * g.width + next_x]);
                    line += (1 - y_part) * above + y_part * below;
                }
                total += line;
            }
            total /= (f64)ys * (f64)xs;
        }
        out[e] = convert<T>(total);
    }
}
#endif

#ifdef SPREAD
// Weight of one pixel in a bin, along one axis.
MX_FN f64 weight_of(const Regions& g, i64 r, int axis, i64 b, i64 pixel) {
    f64 start, bin, total = 0;
    i64 count;
    const i64 len = axis == 0 ? g.height : g.width;
    samples_of(g, r, axis, b, start, bin, count);
    for (i64 i = 0; i < count; i++) {
        i64 low;
        f64 part;
        if (!between(sample(start, bin, i, count), len, low, part)) continue;
        if (low == pixel) total += 1 - part;
        else if (low + 1 == pixel) total += part;
    }
    return total / (f64)count;
}
// Each pixel sums over the bins of all regions of its image, in their order.
extern "C" __global__ void kernel(const T* dy, T* out, Regions g, i64 channels, u64* faults) {
    EACH(e, g.images * g.channels * g.height * g.width) {
        const i64 x = e % g.width, y = e / g.width % g.height, channel = e / g.width / g.height % g.channels, image = e / g.width / g.height / g.channels;
        f64 total = 0;
        for (i64 r = 0; r < g.count; r++) {
            g.check(r, faults);
            if (g.image(r) != image) continue;
            for (i64 down = 0; down < g.down; down++) {
                const f64 row = weight_of(g, r, 0, down, y);
                if (row == 0) continue;
                for (i64 right = 0; right < g.right; right++) {
                    const i64 bin = down * g.right + right, bins = g.down * g.right;
                    if (g.is_by_position && channel % bins != bin) continue;
                    const i64 c = g.is_by_position ? channel / bins : channel;
                    total += row * weight_of(g, r, 1, right, x) * convert<f64>(dy[(r * channels + c) * bins + bin]);
                }
            }
        }
        out[e] = convert<T>(total);
    }
}
#endif
