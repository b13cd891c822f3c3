"""Builds the emulator of a CUDA driver and compiler, and runs programs that find it in the place of NVIDIA's.

The emulator (`tests/device/emulator`) computes on the processor: a GPU's results without a GPU. It needs `g++`.
`python tests/support/cuda_emulator.py COMMAND...` runs a command with emulated GPUs. With MXNET_TEST_GPU=1 the programs
of tests run on the GPUs of this machine instead.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "device" / "emulator"
# How the emulator's NVRTC compiles texts: the precompiled header has to be made the same way.
TEXT_FLAGS = [
    "-std=c++17",
    "-O0",
    "-w",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-exceptions",
    "-fno-rtti",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-gnu-unique",
]
LIBRARY_FLAGS = ["-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]


def compiler():
    """The C++ compiler, or None where the machine has none."""
    return shutil.which(os.environ.get("MXNET_EMULATOR_CXX", "g++"))


def uses_gpu():
    """Whether the programs of tests run on the GPUs of this machine."""
    return os.environ.get("MXNET_TEST_GPU") == "1"


def is_available():
    """Whether programs can run on a GPU, or on an emulated one."""
    return uses_gpu() or compiler() is not None


def build():
    """The folder with `libcuda.so.1` and `libnvrtc.so.13`, built where its sources changed."""
    cxx = compiler()
    if cxx is None:
        raise RuntimeError("the emulator of a CUDA device needs g++")
    digest = hashlib.sha256(cxx.encode())
    for path in [pathlib.Path(__file__), *sorted(SOURCES.iterdir())]:
        digest.update(path.read_bytes())
    root = SOURCES.parents[2] / "target" / "emulator"
    folder = root / digest.hexdigest()[:16]
    if folder.exists():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(dir=root))
    header = shutil.copy(SOURCES / "device.h", made)
    commands = [
        [cxx, *TEXT_FLAGS, "-x", "c++-header", header, "-o", f"{header}.gch"],
        *(
            [cxx, *LIBRARY_FLAGS, SOURCES / source, "-o", made / name, "-ldl", "-lpthread"]
            for source, name in [("driver.cpp", "libcuda.so.1"), ("nvrtc.cpp", "libnvrtc.so.13")]
        ),
    ]
    for command in commands:
        subprocess.run(command, check=True)
    try:
        made.rename(folder)
    except OSError:
        # Another process was faster.
        shutil.rmtree(made)
    return folder


def environment(**settings):
    """The environment of a process whose GPUs are emulated; settings as `driver.cpp` names them."""
    if uses_gpu():
        return dict(os.environ)
    folder = build()
    known = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        **os.environ,
        # Kernels that this emulator has compiled are for it alone.
        "XDG_CACHE_HOME": str(folder / "cache"),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, known)),
        **{f"MXNET_EMULATOR_{name.upper()}": str(value) for name, value in settings.items()},
    }


if __name__ == "__main__":
    os.execvpe(sys.argv[1], sys.argv[1:], environment())
