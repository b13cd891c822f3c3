"""NVIDIA's own compiler takes every kernel text. It needs no GPU: `pip install nvidia-cuda-nvrtc`, or -cu12."""

import ctypes
import os
import pathlib
import sys

import pytest

from mxnet import _core

ARCHS = ["sm_80", "sm_90"]


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
        self.newest = f"sm_{max(known)}"

    def log(self, text, arch):
        """What the compiler says of a text; empty if it takes it."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        made = self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        assert made == 0
        options = (ctypes.c_char_p * 2)(f"--gpu-architecture={arch}".encode(), b"--std=c++17")
        failed = self.nvrtc.nvrtcCompileProgram(program, 2, options)
        self.nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetProgramLog(program, log)
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return log.value.decode() if failed else ""


def test_keys_name_one_text_each():
    keys = [key for key, _ in _core.cuda_texts()]
    assert keys
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("file", nvrtc_files() or [pytest.param("", marks=pytest.mark.skip("needs NVRTC"))])
def test_nvrtc_takes_every_text(file):
    compiler = Compiler(file)
    problems = []
    for key, text in _core.cuda_texts():
        assert 'extern "C" __global__ void' in text
        for arch in [*ARCHS, compiler.newest]:
            if log := compiler.log(text, arch):
                problems.append(f"{key} for {arch}: {log}")
    assert not problems, f"{len(problems)} texts; the first: {problems[0]}"


def test_nvrtc_refuses_what_is_wrong():
    files = nvrtc_files()
    if not files:
        pytest.skip("needs NVRTC")
    assert "undefined" in Compiler(files[0]).log('extern "C" __global__ void kernel() { missing(); }', "sm_90")
