// What a kernel text sees of CUDA C++ when the emulator's NVRTC compiles it for the processor of this machine.
//
// Included before the text, as a precompiled header. It defines no integer types of its own: texts must not either use <stdint.h> names.
#pragma once

#include <float.h>
#include <math.h>
#include <stdio.h>

#define MXNET_EMULATED 1
#define __CUDA_ARCH__ 800

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 { unsigned int x, y, z; };
struct dim3 { unsigned int x, y, z; };

namespace emulator {

// One thread of a block.
struct Thread {
    uint3 index;
    unsigned int lane;
};

// What the driver gives to a kernel: where it is, and how it waits.
struct Host {
    Thread* thread;
    uint3 block;
    dim3 block_size;
    dim3 grid_size;
    void* dynamic_shared;
    // Waits until all threads of the block are here, and returns the number of them whose flag was set.
    int (*sync_block)(int flag);
    // Gives 16 bytes to the lanes of the warp that the mask names, and takes those of lane `from`.
    void (*exchange)(unsigned int mask, unsigned int from, const void* given, void* taken);
    // The lanes of the mask whose flag is set.
    unsigned int (*ballot)(unsigned int mask, int flag);
    // Ends the process with a message about the kernel.
    void (*fail)(const char* problem);
};

extern "C" Host* emulator_host;

template <class T>
inline T exchange(unsigned int mask, unsigned int from, T value) {
    static_assert(sizeof(T) <= 16, "at most 16 bytes are exchanged");
    unsigned char given[16] = {}, taken[16];
    __builtin_memcpy(given, &value, sizeof(T));
    emulator_host->exchange(mask, from, given, taken);
    __builtin_memcpy(&value, taken, sizeof(T));
    return value;
}

inline unsigned int lane() { return emulator_host->thread->lane; }

}  // namespace emulator

#define threadIdx (emulator::emulator_host->thread->index)
#define blockIdx (emulator::emulator_host->block)
#define blockDim (emulator::emulator_host->block_size)
#define gridDim (emulator::emulator_host->grid_size)
#define warpSize 32

// Synchronisation.
inline void __syncthreads() { emulator::emulator_host->sync_block(0); }
inline int __syncthreads_count(int flag) { return emulator::emulator_host->sync_block(flag != 0); }
inline int __syncthreads_or(int flag) { return __syncthreads_count(flag) > 0; }
inline int __syncthreads_and(int flag) { return __syncthreads_count(flag == 0) == 0; }
inline void __syncwarp(unsigned int mask = 0xffffffffu) { emulator::emulator_host->ballot(mask, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __trap() { emulator::emulator_host->fail("__trap()"); }

// Warps.
template <class T>
inline T __shfl_sync(unsigned int mask, T value, int from, int width = 32) {
    unsigned int start = emulator::lane() / width * width;
    return emulator::exchange(mask, start + from % width, value);
}
template <class T>
inline T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32) {
    unsigned int lane = emulator::lane(), from = lane ^ bits;
    return emulator::exchange(mask, from / width > lane / width ? lane : from, value);
}
template <class T>
inline T __shfl_down_sync(unsigned int mask, T value, unsigned int by, int width = 32) {
    unsigned int lane = emulator::lane();
    return emulator::exchange(mask, lane % width + by < (unsigned int)width ? lane + by : lane, value);
}
template <class T>
inline T __shfl_up_sync(unsigned int mask, T value, unsigned int by, int width = 32) {
    unsigned int lane = emulator::lane();
    return emulator::exchange(mask, lane % width >= by ? lane - by : lane, value);
}
inline unsigned int __ballot_sync(unsigned int mask, int flag) {
    return emulator::emulator_host->ballot(mask, flag);
}
inline int __any_sync(unsigned int mask, int flag) { return __ballot_sync(mask, flag) != 0; }
inline int __all_sync(unsigned int mask, int flag) { return __ballot_sync(mask, !flag) == 0; }
inline unsigned int __activemask() { return 0xffffffffu; }

// Atomics: one thread runs at a time.
#define EMULATED_ATOMIC(name, T, expression)       \
    inline T name(T* address, T value) {           \
        T old = *address;                          \
        *address = (expression);                   \
        return old;                                \
    }
#define EMULATED_ATOMICS(T)                                        \
    EMULATED_ATOMIC(atomicAdd, T, old + value)                     \
    EMULATED_ATOMIC(atomicExch, T, value)                          \
    EMULATED_ATOMIC(atomicMax, T, old > value ? old : value)       \
    EMULATED_ATOMIC(atomicMin, T, old < value ? old : value)       \
    EMULATED_ATOMIC(atomicAnd, T, old & value)                     \
    EMULATED_ATOMIC(atomicOr, T, old | value)                      \
    EMULATED_ATOMIC(atomicXor, T, old ^ value)                     \
    inline T atomicCAS(T* address, T compare, T value) {           \
        T old = *address;                                          \
        if (old == compare) *address = value;                      \
        return old;                                                \
    }
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned int)
EMULATED_ATOMICS(long long)
EMULATED_ATOMICS(unsigned long long)
inline int atomicSub(int* address, int value) { return atomicAdd(address, -value); }
inline unsigned int atomicSub(unsigned int* address, unsigned int value) {
    return atomicAdd(address, 0u - value);
}
inline unsigned short atomicCAS(unsigned short* address, unsigned short compare, unsigned short value) {
    unsigned short old = *address;
    if (old == compare) *address = value;
    return old;
}
EMULATED_ATOMIC(atomicAdd, float, old + value)
EMULATED_ATOMIC(atomicAdd, double, old + value)
EMULATED_ATOMIC(atomicExch, float, value)
#undef EMULATED_ATOMICS
#undef EMULATED_ATOMIC

// Vector types.
#define EMULATED_VECTOR(T, name, alignment2, alignment4)                                        \
    struct __align__(alignment2) name##2 { T x, y; };                                           \
    struct name##3 { T x, y, z; };                                                              \
    struct __align__(alignment4) name##4 { T x, y, z, w; };                                     \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                  \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                          \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define uint3 emulated_uint3
EMULATED_VECTOR(signed char, char, 2, 4)
EMULATED_VECTOR(unsigned char, uchar, 2, 4)
EMULATED_VECTOR(short, short, 4, 8)
EMULATED_VECTOR(unsigned short, ushort, 4, 8)
EMULATED_VECTOR(int, int, 8, 16)
EMULATED_VECTOR(unsigned int, uint, 8, 16)
EMULATED_VECTOR(long long, longlong, 16, 16)
EMULATED_VECTOR(unsigned long long, ulonglong, 16, 16)
EMULATED_VECTOR(float, float, 8, 16)
EMULATED_VECTOR(double, double, 16, 16)
#undef uint3
#undef EMULATED_VECTOR

// Bits.
template <class To, class From>
inline To emulated_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "the same size");
    To result;
    __builtin_memcpy(&result, &value, sizeof(To));
    return result;
}
inline int __float_as_int(float x) { return emulated_bits<int>(x); }
inline unsigned int __float_as_uint(float x) { return emulated_bits<unsigned int>(x); }
inline float __int_as_float(int x) { return emulated_bits<float>(x); }
inline float __uint_as_float(unsigned int x) { return emulated_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned int __brev(unsigned int x) {
    unsigned int result = 0;
    for (int i = 0; i < 32; ++i) result |= (x >> i & 1u) << (31 - i);
    return result;
}
inline unsigned int __umulhi(unsigned int x, unsigned int y) { return (unsigned long long)x * y >> 32; }
inline int __mulhi(int x, int y) { return (long long)x * y >> 32; }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned __int128)x * y >> 64;
}
inline long long __mul64hi(long long x, long long y) { return (__int128)x * y >> 64; }
template <class T>
inline T __ldg(const T* address) { return *address; }

// Arithmetic that is never contracted, and functions that the C library lacks.
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline float rcbrtf(float x) { return 1 / cbrtf(x); }
inline double rcbrt(double x) { return 1 / cbrt(x); }
inline double sinpi(double x) { return sin(M_PI * x); }
inline double cospi(double x) { return cos(M_PI * x); }
inline float sinpif(float x) { return (float)sin(M_PI * x); }
inline float cospif(float x) { return (float)cos(M_PI * x); }

// Overloads of the device: `min` and `max` of numbers.
#define EMULATED_EXTREMES(T)                                       \
    inline T min(T x, T y) { return y < x ? y : x; }               \
    inline T max(T x, T y) { return x < y ? y : x; }
EMULATED_EXTREMES(int)
EMULATED_EXTREMES(unsigned int)
EMULATED_EXTREMES(long)
EMULATED_EXTREMES(unsigned long)
EMULATED_EXTREMES(long long)
EMULATED_EXTREMES(unsigned long long)
#undef EMULATED_EXTREMES
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }

// How the driver calls a kernel: the sizes of its parameters, and a call with pointers to them.
namespace emulator {

template <class... T>
struct Caller {
    static unsigned int sizes(const unsigned long** where) {
        static const unsigned long all[] = {sizeof(T)..., 0};
        *where = all;
        return sizeof...(T);
    }
    template <unsigned int... I>
    struct Positions {};
    template <unsigned int N, unsigned int... I>
    struct Count : Count<N - 1, N - 1, I...> {};
    template <unsigned int... I>
    struct Count<0, I...> {
        typedef Positions<I...> type;
    };
    template <unsigned int... I>
    static void call(void (*kernel)(T...), void** values, Positions<I...>) {
        kernel(*(T*)values[I]...);
    }
    static void run(void (*kernel)(T...), void** values) {
        call(kernel, values, typename Count<sizeof...(T)>::type());
    }
};
template <class... T>
inline unsigned int sizes_of(void (*)(T...), const unsigned long** where) {
    return Caller<T...>::sizes(where);
}
template <class... T>
inline void run(void (*kernel)(T...), void** values) {
    Caller<T...>::run(kernel, values);
}

}  // namespace emulator
