// Convolution and its gradients as implicit matrix products: operands are read in place. T: elements; one of FORWARD, DATA, WEIGHT.
//   FORWARD  y  = w x:   (filters, channels * taps) x (channels * taps, positions of the result), for each image and group
//   DATA     dx = w' dy: (channels, filters * taps) x (filters * taps, positions of the data), for each image and group
//   WEIGHT   dw = dy x': (filters, images * positions) x (images * positions, channels * taps), for each group

struct BatchItem {
    i64 image, group;
};

struct Problem {
    i64 m, n, k, batches, splits, depth;
    i64 images, groups;
    i64 channels, filters;      // of a group
    i64 relu;                   // whether negative results become 0
    i64 input[3], output[3], kernel[3], stride[3], pad[3], dilation[3];
    const T *x, *w, *y, *bias;
    T* out;

    __device__ i64 in_len() const { return input[0] * input[1] * input[2]; }
    __device__ i64 out_len() const { return output[0] * output[1] * output[2]; }
    __device__ i64 taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    __device__ BatchItem item(i64 batch) const {
#ifdef WEIGHT
        return BatchItem{0, batch};
#else
        return BatchItem{batch / groups, batch % groups};
#endif
    }
    // The input element of a channel that a tap of the kernel reads for a position of the result; 0 outside.
    __device__ A data(const BatchItem& item, i64 image, i64 channel, u32 tap, u32 at) const {
        i64 offset = ((image * groups + item.group) * channels + channel) * input[0];
        u32 taps_left = (u32)taps(), positions_left = (u32)out_len();
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            taps_left /= (u32)kernel[axis];
            positions_left /= (u32)output[axis];
            const i64 i = (i64)(at / positions_left) * stride[axis] - pad[axis] + (i64)(tap / taps_left) * dilation[axis];
            at %= positions_left;
            tap %= taps_left;
            if (i < 0 || i >= input[axis]) return convert<A>(0);
            offset = axis == 0 ? offset + i : offset * input[axis] + i;
        }
        return convert<A>(x[offset]);
    }
    // The element of the result to which an input position contributes through a tap; 0 if there is none.
    __device__ A result(const BatchItem& item, i64 filter, u32 tap, u32 at) const {
        i64 offset = ((item.image * groups + item.group) * filters + filter) * output[0];
        u32 taps_left = (u32)taps(), positions_left = (u32)in_len();
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            taps_left /= (u32)kernel[axis];
            positions_left /= (u32)input[axis];
            const i64 from = (i64)(at / positions_left) + pad[axis] - (i64)(tap / taps_left) * dilation[axis];
            at %= positions_left;
            tap %= taps_left;
            if (from < 0 || from % stride[axis] != 0 || from / stride[axis] >= output[axis]) return convert<A>(0);
            const i64 i = from / stride[axis];
            offset = axis == 0 ? offset + i : offset * output[axis] + i;
        }
        return convert<A>(y[offset]);
    }
#ifdef FORWARD
    __device__ A left(const BatchItem& item, i64 row, i64 term) const {
        return convert<A>(w[(item.group * filters + row) * k + term]);
    }
    __device__ A right(const BatchItem& item, i64 term, i64 column) const {
        const u32 taps = (u32)this->taps();
        return data(item, item.image, (u32)term / taps, (u32)term % taps, (u32)column);
    }
    __device__ bool terms_are_near_left() const { return true; }
    __device__ bool terms_are_near_right() const { return false; }
    __device__ void put(i64 batch, i64 row, i64 column, A sum) const {
        const i64 filter = batch % groups * filters + row;
        if (bias) sum = added(sum, convert<A>(bias[filter]));
        if (relu) sum = positive(sum);
        out[(batch / groups * groups * filters + filter) * n + column] = convert<T>(sum);
    }
#endif
#ifdef DATA
    __device__ A left(const BatchItem& item, i64 row, i64 term) const {
        const u32 taps = (u32)this->taps();
        return convert<A>(w[((item.group * filters + (u32)term / taps) * channels + row) * taps + (u32)term % taps]);
    }
    __device__ A right(const BatchItem& item, i64 term, i64 column) const {
        const u32 taps = (u32)this->taps();
        return result(item, (u32)term / taps, (u32)term % taps, (u32)column);
    }
    __device__ bool terms_are_near_left() const { return false; }
    __device__ bool terms_are_near_right() const { return false; }
    __device__ void put(i64 batch, i64 row, i64 column, A sum) const {
        const i64 channel = batch % groups * channels + row;
        if (bias) sum = added(sum, convert<A>(bias[channel]));
        out[(batch / groups * groups * channels + channel) * n + column] = convert<T>(sum);
    }
#endif
#ifdef WEIGHT
    __device__ A left(const BatchItem& item, i64 row, i64 term) const {
        const i64 positions = out_len();
        return convert<A>(y[((term / positions * groups + item.group) * filters + row) * positions + term % positions]);
    }
    __device__ A right(const BatchItem& item, i64 term, i64 column) const {
        const i64 positions = out_len();
        const u32 taps = (u32)this->taps();
        return data(item, term / positions, (u32)column / taps, (u32)column % taps, (u32)(term % positions));
    }
    __device__ bool terms_are_near_left() const { return true; }
    __device__ bool terms_are_near_right() const { return true; }
    __device__ void put(i64 batch, i64 row, i64 column, A sum) const {
        out[(batch * filters + row) * n + column] = convert<T>(sum);
    }
#endif
};
