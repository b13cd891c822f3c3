"""Every kernel text for CUDA devices compiles with NVIDIA's compiler, for every dtype it is made for.

The compiler is that of the pip package `nvidia-cuda-nvrtc`, or -cu12, and needs no GPU. Where it is missing nothing is
compiled: `make texts` installs it. The default test compiles a sample of the texts.
"""

import concurrent.futures
import ctypes
import os
import pathlib
import sys

import pytest

from mxnet import _core

# What kernels must run on: the oldest card that is supported, and the ones that were added since.
ARCHITECTURES = ("80", "90", "newest")
# Of so many texts in order one is compiled by the default test. Texts of one operator follow one another.
SAMPLE = 41


def nvrtc_files():
    """Compilers of NVIDIA's: the one that MXNET_TEST_NVRTC names, and those of pip's packages."""
    if named := os.environ.get("MXNET_TEST_NVRTC"):
        return [named]
    folders = [pathlib.Path(folder) / "nvidia" for folder in sys.path]
    return sorted(str(file) for folder in folders for file in folder.glob("*/lib/libnvrtc.so.1?"))


class Compiler:
    """NVRTC by its C functions."""

    def __init__(self, file):
        self.nvrtc = ctypes.CDLL(file)
        count = ctypes.c_int()
        assert self.nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) == 0
        known = (ctypes.c_int * count.value)()
        assert self.nvrtc.nvrtcGetSupportedArchs(known) == 0
        self.newest = str(max(known))

    def log(self, text, architecture):
        """What the compiler says of a text that it refuses; empty if it takes it."""
        if architecture == "newest":
            architecture = self.newest
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        made = self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        assert made == 0
        options = (ctypes.c_char_p * 2)(f"--gpu-architecture=sm_{architecture}".encode(), b"--std=c++17")
        failed = self.nvrtc.nvrtcCompileProgram(program, 2, options)
        self.nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetProgramLog(program, log)
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return log.value.decode() if failed else ""


def refused(file, texts, architecture):
    """Keys of texts that do not compile, with the first lines of what the compiler says."""
    compiler = Compiler(file)
    # Calls through ctypes let other threads run.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        logs = pool.map(lambda text: compiler.log(text[1], architecture), texts)
        return [f"{key}: {log[:1000]}" for (key, _), log in zip(texts, logs, strict=True) if log]


compilers = pytest.mark.parametrize("file", nvrtc_files() or [pytest.param("", marks=pytest.mark.skip("needs NVRTC"))])


def test_keys_name_one_text_each():
    texts = _core.cuda_texts()
    keys = [key for key, _ in texts]
    assert len(keys) > 1000
    assert len(keys) == len(set(keys))
    assert all('extern "C" __global__ void kernel(' in text for _, text in texts)
    assert not any("#include" in text for _, text in texts)


@compilers
def test_nvrtc_refuses_what_is_wrong(file):
    assert "undefined" in Compiler(file).log('extern "C" __global__ void kernel() { missing(); }', "90")


@compilers
def test_nvrtc_takes_a_sample_of_all_texts(file):
    assert refused(file, _core.cuda_texts()[::SAMPLE], "80") == []


@compilers
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc_takes_every_text(file, architecture):
    assert refused(file, _core.cuda_texts(), architecture) == []
