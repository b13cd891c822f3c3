"""The C library: built once, loaded by ctypes, and programs compiled against it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "crates" / "ffi" / "c" / "include"
TARGET = ROOT / "target" / "develop"


@cache
def library() -> Path:
    """The shared library, built if `MXNET_LIBRARY` names none; skips where no Rust compiler is."""
    if given := os.environ.get("MXNET_LIBRARY"):
        return Path(given)
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed, so libmxnet cannot be built")
    command = ["cargo", "build", "--profile", "develop", "--locked", "--quiet", "-p", "mxnet-c"]
    subprocess.run(command, cwd=ROOT, check=True)
    return TARGET / "libmxnet.so"


def tool(name: str) -> str:
    """The path of a compiler or interpreter; skips where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(command: list[str], **options: Any) -> str:
    """Run a program to its end and return what it printed; its standard error is in the failure."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Value(ctypes.Union):
    _fields_ = (
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("text", ctypes.c_char_p),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("array", ctypes.c_uint64),
        ("arrays", ctypes.POINTER(ctypes.c_uint64)),
        ("reals", ctypes.POINTER(ctypes.c_double)),
        ("pointer", ctypes.c_void_p),
    )


class Arg(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("len", ctypes.c_size_t),
        ("value", Value),
    )


class Outputs(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("arrays", ctypes.POINTER(ctypes.c_uint64)),
        ("capacity", ctypes.c_size_t),
        ("len", ctypes.c_size_t),
    )


class Fault(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("status", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("op", ctypes.c_char_p),
        ("message", ctypes.c_char_p),
        ("hint", ctypes.c_char_p),
    )
