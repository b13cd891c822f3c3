// Offsets of element number `e`, in C order, in two arrays of one shape and any strides.
struct Walk {
    i64 n, axes, shape[64], from[64], to[64];

    __device__ void at(i64 e, i64& from_at, i64& to_at) const {
        i64 f = 0, t = 0;
        if (n <= 0xffffffffLL) {
            u32 rest = (u32)e;
            for (int i = (int)axes - 1; i > 0; i--) {
                const u32 len = (u32)shape[i], k = rest % len;
                rest /= len;
                f += k * from[i];
                t += k * to[i];
            }
            f += rest * from[0];
            t += rest * to[0];
        } else {
            i64 rest = e;
            for (int i = (int)axes - 1; i > 0; i--) {
                const i64 k = rest % shape[i];
                rest /= shape[i];
                f += k * from[i];
                t += k * to[i];
            }
            f += rest * from[0];
            t += rest * to[0];
        }
        from_at = f;
        to_at = t;
    }
};

#define EACH(e, n) for (i64 e = blockIdx.x * (i64)blockDim.x + threadIdx.x; e < (n); e += gridDim.x * (i64)blockDim.x)
