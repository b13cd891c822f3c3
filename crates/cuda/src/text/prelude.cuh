// Types and functions that all kernels share. No header of CUDA is included: NVRTC needs no other file.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

// Reports a wrong value to the host; the first report counts. `slot` comes from `launch::fault`.
__device__ inline void report_fault(u64* slot, i64 first, i64 second, i64 third) {
    if (atomicCAS(slot, 0ULL, 1ULL) == 0ULL) {
        slot[1] = (u64)first;
        slot[2] = (u64)second;
        slot[3] = (u64)third;
    }
}
