"""The CUDA devices without kernels of their own: memory, streams, copies, exchange, the cache of kernels, failures.

Every program runs in a process of its own whose driver is the emulator; its memory faults when the host touches it.
"""

import os
import pathlib
import subprocess
import sys

import pytest

import cuda_emulator

pytestmark = pytest.mark.skipif(not cuda_emulator.is_available(), reason="needs g++")
# Settings of the emulator that a real GPU does not have.
emulated = pytest.mark.skipif(cuda_emulator.uses_gpu(), reason="needs the emulator")

HEAD = """
import os, sys, threading
import numpy
import mxnet as mx
from mxnet import _core, np
GPU = mx.gpu(0)
IS_EMULATED = os.environ.get("MXNET_TEST_GPU") != "1"

def on_gpu(*shape, device=GPU, start=0):
    count = int(numpy.prod(shape))
    return np.array(numpy.arange(start, start + count, dtype="float32").reshape(shape)).to_device(device)

def raises(kind, function, *words):
    try:
        function()
    except kind as error:
        text = str(error)
        assert all(word in text for word in words), text
        return text
    raise AssertionError(f"{kind.__name__} was not raised")
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The folder that kernels are kept in; the tests of this file share it."""
    return tmp_path_factory.mktemp("cache")


def environment(cache, given=(), **settings):
    return {**cuda_emulator.environment(**settings), "XDG_CACHE_HOME": str(cache), **dict(given)}


def run(program, cache, given=(), **settings):
    # Python 3.12 and later warn at each fork beside threads.
    fork_warning = "ignore:This process:DeprecationWarning"
    done = subprocess.run(
        [sys.executable, "-W", fork_warning, "-c", HEAD + program],
        env=environment(cache, given, **settings),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    return done.stdout


def test_copies_keep_every_bit(cache):
    run(
        """
if IS_EMULATED:
    assert mx.num_gpus() == 2 and mx.util.get_gpu_count() == 2
    assert mx.util.get_cuda_compute_capability(GPU) == 80
OTHER = mx.gpu(mx.num_gpus() - 1)
for dtype in ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]:
    host = numpy.arange(24).reshape(2, 3, 4).astype(dtype)
    there = np.array(host).to_device(GPU)
    assert there.device == GPU and there.dtype == dtype and there.shape == (2, 3, 4)
    back = there.to_device(mx.cpu())
    assert back.device == mx.cpu() and numpy.array_equal(back.asnumpy(), host)
    assert numpy.array_equal(there.asnumpy(), host)
# Longer than one part that goes through pinned memory, and not a multiple of it.
long = numpy.random.default_rng(0).integers(0, 255, size=(5 << 20) + 123, dtype="uint8")
assert numpy.array_equal(np.array(long).to_device(GPU).asnumpy(), long)
for empty in [(0,), (3, 0)]:
    assert np.zeros(empty).to_device(GPU).asnumpy().shape == empty
# From device to device, with work in flight before and behind.
x = on_gpu(1000)
for _ in range(20):
    x = (x + x).to_device(OTHER)
    x = x.to_device(GPU)
assert numpy.array_equal(x.asnumpy(), numpy.arange(1000, dtype="float32") * 2**20)
if mx.num_gpus() > 1:
    raises(mx.error.DeviceError, lambda: on_gpu(2) + on_gpu(2, device=OTHER), "gpu(0)", str(OTHER))
raises(mx.error.DeviceError, lambda: on_gpu(2).to_device(mx.gpu(99)), "gpu(99)", f"there are {mx.num_gpus()} devices")
""",
        cache,
        delay=200,
    )


def test_blocks_are_used_again_while_the_host_runs_ahead(cache):
    """Every step of the loop frees what work in flight still uses: the stream's order makes that safe."""
    run(
        """
one, x = on_gpu(256), on_gpu(256)
for _ in range(300):
    x = x + one
assert numpy.array_equal(x.asnumpy(), numpy.arange(256, dtype="float32") * 301)
in_use, kept, peak, allocations, from_driver = _core.device_memory_stats(GPU)
assert allocations >= 302 and from_driver <= 6, (allocations, from_driver)
assert in_use == 2 * 1024 and peak <= 6 * 1024 and kept <= 4 * 1024
""",
        cache,
        delay=300,
    )


def test_waitall_waits_for_devices(cache):
    run(
        """
import time
x = on_gpu(16)
(x + x).asnumpy()
mx.waitall()
start = time.monotonic()
for _ in range(10):
    x = x + x
mx.waitall()
if IS_EMULATED:
    assert time.monotonic() - start > 10 * 0.005
assert numpy.array_equal(x.asnumpy(), numpy.arange(16, dtype="float32") * 2**10)
""",
        cache,
        delay=5000,
    )


def test_threads_hand_memory_on_in_order(cache):
    run(
        """
def work(start, results):
    one = on_gpu(64, start=start)
    x = one
    for _ in range(50):
        x = x + one
    results.append((start, x))

for _ in range(3):
    results = []
    threads = [threading.Thread(target=work, args=(i, results)) for i in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    for start, x in results:
        # Read on another thread than the one that computed it.
        expected = numpy.arange(start, start + 64, dtype="float32") * 51
        assert numpy.array_equal((x + x).asnumpy(), 2 * expected)
""",
        cache,
        delay=100,
    )


@emulated
def test_lack_of_memory_names_the_largest_holders(cache):
    run(
        """
free, total = mx.device.gpu_memory_info(0)
assert total == 64 << 20 and free <= total
big = [on_gpu(5 << 20), on_gpu(5 << 20)]
small = on_gpu(1 << 18)
text = raises(MemoryError, lambda: on_gpu(10 << 20), "gpu(0)", "cannot allocate 41943040 bytes")
lines = text.splitlines()
assert any(line.strip() == "2 x 20.0 MiB" for line in lines), text
assert any(line.strip() == "1 x 1.0 MiB" for line in lines), text
assert "of 64.0 MiB are free" in text
# Blocks that are kept make room for others.
del big
assert on_gpu(10 << 20).asnumpy()[-1] == (10 << 20) - 1
assert numpy.array_equal((small + small).asnumpy(), 2 * numpy.arange(1 << 18, dtype="float32"))
# The list names lines where these are kept.
mx.config.set("debug_lines", True)
held = on_gpu(5 << 20)
text = raises(MemoryError, lambda: [on_gpu(5 << 20) for _ in range(4)], "made at")
""",
        cache,
        memory=64,
    )


def test_the_cache_of_memory_is_given_back(cache):
    run(
        """
x = on_gpu(1 << 20)
del x
mx.waitall()
in_use, kept, *_ = _core.device_memory_stats(GPU)
assert in_use == 0 and kept >= 4 << 20
assert mx.device.gpu_memory_info(0)[0] <= mx.device.gpu_memory_info(0)[1] - (4 << 20)
GPU.empty_cache()
assert _core.device_memory_stats(GPU)[:2] == (0, 0)
if IS_EMULATED:
    assert mx.device.gpu_memory_info(0)[0] == mx.device.gpu_memory_info(0)[1]
raises(mx.error.DeviceError, mx.gpu(99).empty_cache, "gpu(99)")
raises(mx.error.DeviceError, lambda: mx.device.gpu_memory_info(99), "gpu(99)")
mx.cpu().empty_cache()
""",
        cache,
    )


def test_a_forked_process_cannot_use_the_gpu_and_gets_an_error(cache):
    run(
        """
x = on_gpu(8)
y = x + x
child = os.fork()
if child == 0:
    code = 1
    try:
        for use in [lambda: x + x, lambda: y.asnumpy(), lambda: on_gpu(4), GPU.empty_cache]:
            raises(mx.error.DeviceError, use, "forked", "spawn")
        assert (np.ones(3) + 1).sum() == 6
        del x, y
        code = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        sys.stdout.flush()
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
assert numpy.array_equal((y + x).asnumpy(), 3 * numpy.arange(8, dtype="float32"))
""",
        cache,
        delay=1000,
    )


def test_a_process_forked_before_the_first_use_may_use_the_gpu(cache):
    run(
        """
child = os.fork()
if child == 0:
    code = 1
    try:
        code = int((on_gpu(3) + on_gpu(3)).asnumpy().tolist() != [0, 2, 4])
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
assert (on_gpu(3) + on_gpu(3)).asnumpy().tolist() == [0, 2, 4]
""",
        cache,
    )


def test_the_process_ends_quietly_with_work_in_flight(cache):
    run(
        """
x = on_gpu(1 << 16)
keep = [x]
for _ in range(50):
    keep.append(keep[-1] + x)
thread = threading.Thread(target=lambda: keep.append(keep[-1] + x))
thread.start()
thread.join()
""",
        cache,
        delay=2000,
    )


SUM = "assert (on_gpu(4) + on_gpu(4)).asnumpy().tolist() == [0, 2, 4, 6]"
NO_COMPILER = {"MXNET_EMULATOR_CXX": "no-such-compiler"}


@emulated
def test_a_compiled_kernel_serves_other_processes(tmp_path):
    run(SUM, tmp_path)
    (kept,) = (tmp_path / "mxnet" / "kernels").iterdir()
    # The compiler is found, but compiles nothing: what runs comes from the file.
    run(SUM, tmp_path, NO_COMPILER)
    whole = kept.read_bytes()
    for damaged in [b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), b"x" * len(whole)]:
        kept.write_bytes(damaged)
        run("raises(RuntimeError, lambda: on_gpu(4) + on_gpu(4), 'add', 'does not compile')", tmp_path, NO_COMPILER)
        run(SUM, tmp_path)
        run(SUM, tmp_path, NO_COMPILER)
    off = tmp_path / "off"
    run(SUM, off, {"MXNET_KERNEL_CACHE": "0"})
    assert not off.exists()


@emulated
def test_processes_that_compile_at_once_do_not_disturb_each_other(tmp_path):
    command = [sys.executable, "-c", HEAD + SUM]
    started = [
        subprocess.Popen(command, env=environment(tmp_path), stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    # One is killed wherever it is by then.
    started[0].kill()
    for i, process in enumerate(started):
        _, errors = process.communicate(timeout=120)
        assert i == 0 or (process.returncode == 0 and not errors), errors
    # A file of a writer that was killed is no obstacle to the next one.
    folder = tmp_path / "mxnet" / "kernels"
    (kept,) = folder.glob("*.kernel")
    kept.rename(folder / f".{kept.name}.0.mxnet-tmp")
    run(SUM, tmp_path)
    assert kept.exists()
    run(SUM, tmp_path, NO_COMPILER)


def test_where_there_is_no_cache_folder_kernels_are_compiled(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    run(SUM, file)
    run(SUM, "relative", {"HOME": "nowhere"})


def test_memory_is_exchanged_without_a_copy(cache):
    run(
        """
x = on_gpu(2, 3)
assert x.__dlpack_device__() == (2, 0)
same = np.from_dlpack(x)
assert same.device == GPU and same.shape == (2, 3)
assert same.__cuda_array_interface__["data"] == x.__cuda_array_interface__["data"]
del x
assert numpy.array_equal((same + same).asnumpy(), 2 * numpy.arange(6, dtype="float32").reshape(2, 3))
# Work in flight comes before whatever the consumer enqueues: here on the stream that it names.
y = on_gpu(1 << 12)
for _ in range(30):
    y = y + y
facts = y.__cuda_array_interface__
assert facts["version"] == 3 and facts["shape"] == (1 << 12,) and facts["typestr"] == "<f4" and facts["stream"] > 2
for stream in [None, -1, 1, 2, facts["stream"]]:
    y.__dlpack__(stream=stream)
    y.__dlpack__(stream=stream, max_version=(1, 0))
raises(ValueError, lambda: y.__dlpack__(stream=0), "stream")
raises(ValueError, lambda: np.ones(2).__dlpack__(stream=1), "stream")
assert np.from_dlpack(y, copy=True).__cuda_array_interface__["data"] != facts["data"]

class Legacy:
    "A producer that knows the first version of the protocol."
    def __init__(self, array): self.array = array
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def __dlpack__(self, stream=None):
        assert stream > 2
        return self.array.__dlpack__(stream=stream)

taken = np.from_dlpack(Legacy(y))
assert numpy.array_equal(taken.asnumpy(), numpy.arange(1 << 12, dtype="float32") * 2**30)
# To the host by a copy.
assert np.from_dlpack(y, device=mx.cpu()).device == mx.cpu()
raises(mx.error.DeviceError, lambda: np.from_dlpack(y, device=mx.cpu(), copy=False))
if numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0":
    assert numpy.array_equal(numpy.from_dlpack(y, device="cpu"), y.asnumpy())
raises(BufferError, lambda: y.__dlpack__(dl_device=(1, 0), copy=False), "asked for")
raises(BufferError, lambda: y.__dlpack__(dl_device=(2, 99)), "asked for")
""",
        cache,
        delay=200,
    )


def test_the_host_gets_copies_and_never_the_memory(cache):
    run(
        """
import copy, pickle
x = on_gpu(2, 3)
host = numpy.arange(6, dtype="float32").reshape(2, 3)
assert numpy.array_equal(numpy.asarray(x), host) and numpy.array_equal(numpy.array(x, dtype="int64"), host)
assert x.tolist() == host.tolist() and x.tobytes() == host.tobytes() and float(x[1, 2]) == 5.0
assert numpy.array_equal(x[:, 1:].asnumpy(), host[:, 1:]) and numpy.array_equal(x.T.asnumpy(), host.T)
raises(BufferError, lambda: memoryview(x), "gpu(0)", "asnumpy")
raises(ValueError, lambda: numpy.asarray(x, copy=False), "gpu(0)")
assert not hasattr(x, "__array_interface__") and not hasattr(np.ones(2), "__cuda_array_interface__")
assert "device=gpu(0)" in repr(x)
again = pickle.loads(pickle.dumps(x))
assert numpy.array_equal(again.asnumpy(), host)
""",
        cache,
    )


@emulated
def test_the_libraries_are_named(cache, tmp_path):
    out = run(
        """
rows = {backend.name: backend for backend in mx.runtime.backends()}
for name in ["driver", "nvrtc"]:
    assert rows[name].kind == "cuda" and rows[name].is_loaded and rows[name].version == "13.0", rows[name]
assert rows["gpu"].is_loaded and rows["gpu"].reason == ""
assert mx.runtime.features().is_enabled("CUDA")
print(rows["nvrtc"].path)
""",
        cache,
    )
    assert out.strip() == "libnvrtc.so.13"
    # Only a driver: copies work, kernels say what is missing.
    folder = pathlib.Path(cuda_emulator.build())
    driver = tmp_path / "driver"
    driver.mkdir()
    (driver / "libcuda.so.1").symlink_to(folder / "libcuda.so.1")
    alone = {"LD_LIBRARY_PATH": str(driver), "CUDA_HOME": "", "CUDA_PATH": ""}
    run(
        """
rows = {backend.name: backend for backend in mx.runtime.backends()}
if not rows["nvrtc"].is_loaded:
    assert "pip install nvidia-cuda-nvrtc" in rows["nvrtc"].reason
    x = on_gpu(3)
    raises(mx.error.DeviceError, lambda: x + x, "add", "pip install nvidia-cuda-nvrtc")
    assert x.asnumpy().tolist() == [0, 1, 2]
""",
        cache,
        alone,
    )
    # As pip lays it out.
    package = tmp_path / "site" / "nvidia" / "cu13" / "lib"
    package.mkdir(parents=True)
    for file in folder.iterdir():
        (package / file.name).symlink_to(file)
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    out = run(
        "print({b.name: b for b in mx.runtime.backends()}['nvrtc'].path)\n" + SUM,
        tmp_path / "cache",
        {**alone, "PYTHONPATH": path},
    )
    assert out.strip().endswith("libnvrtc.so.13")


def test_importing_loads_no_library_of_nvidia(cache):
    run(
        """
def loaded():
    with open("/proc/self/maps") as maps:
        return {name for line in maps for name in ["libcuda", "libnvrtc"] if name in line}

assert not loaded()
x = np.ones((2, 3)) + 1
assert not loaded() and mx.current_device() == mx.cpu()
assert mx.num_gpus() >= 1
assert loaded() == {"libcuda"}
""",
        cache,
    )


def test_without_a_driver_the_error_says_what_is_missing(cache):
    # A machine with a driver hides its devices.
    given = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""), "CUDA_VISIBLE_DEVICES": ""}
    run(
        """
assert mx.num_gpus() == 0 and not mx.runtime.features().is_enabled("CUDA")
rows = {backend.name: backend for backend in mx.runtime.backends()}
assert not rows["gpu"].is_loaded and rows["gpu"].reason
for use in [lambda: np.zeros(2, device=GPU), lambda: np.ones(2).to_device(GPU), lambda: np.array([1], device=GPU),
            lambda: np.random.uniform(size=2, device=GPU), lambda: mx.device.gpu_memory_info(0), GPU.empty_cache]:
    text = raises(mx.error.DeviceError, use, "gpu(0) is not available", "driver")
assert raises(mx.error.DeviceError, lambda: np.ones(2).to_device(GPU)).startswith("to_device: ")
with GPU:
    raises(mx.error.DeviceError, lambda: np.zeros(2), "gpu(0) is not available")
""",
        cache,
        given,
    )
