"""The emulator of a CUDA device does what a device does, so that tests on it mean something."""

import ctypes
import subprocess
import sys

import pytest

import cuda_emulator

pytestmark = pytest.mark.skipif(cuda_emulator.compiler() is None, reason="needs g++")

# A driver program: its own process, since a driver stays loaded.
HEAD = """
import ctypes, sys
import numpy
cuda = ctypes.CDLL("libcuda.so.1")
nvrtc = ctypes.CDLL("libnvrtc.so.13")
u64, size = ctypes.c_uint64, ctypes.c_size_t

def call(function, *arguments):
    error = function(*arguments)
    assert error == 0, (function.__name__, error)

def context(device=0):
    made = ctypes.c_void_p()
    call(cuda.cuInit, 0)
    call(cuda.cuDevicePrimaryCtxRetain, ctypes.byref(made), device)
    call(cuda.cuCtxSetCurrent, made)

def compiled(text):
    program, length = ctypes.c_void_p(), size()
    call(nvrtc.nvrtcCreateProgram, ctypes.byref(program), text.encode(), b"t.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_80")
    error = nvrtc.nvrtcCompileProgram(program, 1, options)
    call(nvrtc.nvrtcGetProgramLogSize, program, ctypes.byref(length))
    log = ctypes.create_string_buffer(length.value)
    call(nvrtc.nvrtcGetProgramLog, program, log)
    assert error == 0, log.value.decode()
    call(nvrtc.nvrtcGetCUBINSize, program, ctypes.byref(length))
    image = ctypes.create_string_buffer(length.value)
    call(nvrtc.nvrtcGetCUBIN, program, image)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call(cuda.cuModuleLoadData, ctypes.byref(module), image)
    call(cuda.cuModuleGetFunction, ctypes.byref(function), module, b"kernel")
    return function

def block(count):
    address = u64()
    call(cuda.cuMemAlloc_v2, ctypes.byref(address), size(count))
    return address

def to_device(values):
    address = block(values.nbytes)
    call(cuda.cuMemcpyHtoD_v2, address, values.ctypes.data_as(ctypes.c_void_p), size(values.nbytes))
    return address

def to_host(address, shape, dtype):
    values = numpy.empty(shape, dtype)
    call(cuda.cuMemcpyDtoH_v2, values.ctypes.data_as(ctypes.c_void_p), address, size(values.nbytes))
    return values

def launch(function, grid, threads, arguments, shared=0):
    params = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
    call(cuda.cuLaunchKernel, function, *grid, *threads, shared, None, params, None)
"""


def run(program, fails=None, **settings):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        env=cuda_emulator.environment(**settings),
        capture_output=True,
        text=True,
        timeout=120,
    )
    if fails is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert fails in done.stderr
    return done.stdout


def test_a_sum_by_shared_memory_barriers_and_shuffles():
    run('''
context()
kernel = compiled("""
extern "C" __global__ void kernel(const float* x, float* sums, int n) {
    extern __shared__ __align__(16) float of_warps[];
    __shared__ int barriers;
    if (threadIdx.x == 0) barriers = 0;
    __syncthreads();
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) {
        of_warps[threadIdx.x / 32] = sum;
        atomicAdd(&barriers, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0;
        for (int i = 0; i < barriers; ++i) all += of_warps[i];
        sums[blockIdx.x] = all;
    }
}
""")
x = numpy.arange(1000, dtype=numpy.float32)
sums = block(4 * 3)
n = ctypes.c_int(x.size)
launch(kernel, (3, 1, 1), (96, 1, 1), [to_device(x), sums, n], shared=16 * 4)
assert to_host(sums, 3, "float32").sum() == x.sum()
''')


def test_warp_functions_keep_their_meaning():
    run('''
context()
kernel = compiled("""
extern "C" __global__ void kernel(int* out) {
    int i = threadIdx.x + threadIdx.y * blockDim.x, lane = i % 32;
    int* mine = out + i * 5;
    mine[0] = __shfl_down_sync(0xffffffffu, i, 3);
    mine[1] = __shfl_up_sync(0xffffffffu, i, 2);
    mine[2] = __shfl_sync(0xffffffffu, i, 7);
    mine[3] = (int)__ballot_sync(0xffffffffu, lane % 3 == 0);
    mine[4] = __syncthreads_count(i % 2);
}
""")
out = block(64 * 5 * 4)
launch(kernel, (1, 1, 1), (16, 4, 1), [out])
found = to_host(out, (64, 5), "int32")
i = numpy.arange(64)
lane = i % 32
assert (found[:, 0] == numpy.where(lane + 3 < 32, i + 3, i)).all()
assert (found[:, 1] == numpy.where(lane >= 2, i - 2, i)).all()
assert (found[:, 2] == i // 32 * 32 + 7).all()
assert (found[:, 3].astype("uint32") == sum(1 << k for k in range(0, 32, 3))).all()
assert (found[:, 4] == 32).all()
''')


def test_streams_and_events_order_work_that_is_done_later():
    run(
        """
context()
streams = [ctypes.c_void_p() for _ in range(2)]
for stream in streams:
    call(cuda.cuStreamCreate, ctypes.byref(stream), 1)
event = ctypes.c_void_p()
call(cuda.cuEventCreate, ctypes.byref(event), 2)
x = block(1 << 16)
host = numpy.zeros(1 << 16, numpy.uint8)
call(cuda.cuMemsetD8Async, x, 7, size(1 << 16), streams[0])
call(cuda.cuEventRecord, event, streams[0])
assert cuda.cuEventQuery(event) == 600
call(cuda.cuStreamWaitEvent, streams[1], event, 0)
call(cuda.cuMemcpyDtoHAsync_v2, host.ctypes.data_as(ctypes.c_void_p), x, size(1 << 16), streams[1])
call(cuda.cuStreamSynchronize, streams[1])
assert (host == 7).all()
assert cuda.cuEventQuery(event) == 0
""",
        delay=20_000,
    )


@pytest.mark.parametrize(
    "body, problem",
    [
        ("x[n] = 1;", "behind a block of 40 bytes"),
        ("if (threadIdx.x < 5) __syncthreads(); else __shfl_xor_sync(~0u, n, 1);", "wait for each"),
        ("if (threadIdx.x < 5) __shfl_xor_sync(~0u, n, 1);", "wait for each other forever"),
        ("__trap();", "__trap"),
    ],
)
def test_mistakes_of_kernels_end_the_process(body, problem):
    run(
        f'''
context()
kernel = compiled("""extern "C" __global__ void kernel(int* x, int n) {{ {body} }}""")
x = block(40)
launch(kernel, (1, 1, 1), (32, 1, 1), [x, ctypes.c_int(10)])
call(cuda.cuMemFree_v2, x)
''',
        fails=problem,
    )


def test_the_host_cannot_touch_memory_of_the_device():
    run(
        "import faulthandler; faulthandler.enable(); context(); ctypes.memset(block(40).value, 0, 1)",
        fails="Segmentation fault",
    )


def test_memory_ends_and_errors_are_those_of_the_driver():
    run(
        """
assert cuda.cuMemAlloc_v2(ctypes.byref(u64()), size(8)) == 3
context(1)
assert cuda.cuMemAlloc_v2(ctypes.byref(u64()), size(3 << 20)) == 2
first = block(1 << 20)
assert cuda.cuMemFree_v2(u64(first.value + 8)) == 1
call(cuda.cuMemFree_v2, first)
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(u64()), 5) == 101
program = ctypes.c_void_p()
call(nvrtc.nvrtcCreateProgram, ctypes.byref(program), b"oops", b"t.cu", 0, None, None)
assert nvrtc.nvrtcCompileProgram(program, 0, None) == 6
""",
        memory=2,
        devices=2,
    )


def test_the_names_are_those_of_the_library():
    library = ctypes.CDLL(str(cuda_emulator.build() / "libcuda.so.1"))
    version = ctypes.c_int()
    assert library.cuDriverGetVersion(ctypes.byref(version)) == 0
    assert version.value == 13000
