"""Kernels of CUDA devices give what those of the CPU give, on a GPU that is emulated by the processor.

What is called and how results are compared is in `cuda_walk.py`. A share of the calls is made; with
MXNET_TEST_ALL_KERNELS all of them are, which takes many minutes: each kernel is compiled.
"""

import os
import pathlib
import subprocess
import sys

import pytest

import cuda_emulator

pytestmark = pytest.mark.skipif(cuda_emulator.compiler() is None, reason="needs g++")

ROOT = pathlib.Path(__file__).resolve().parents[2]
WALK = ROOT / "tests" / "support" / "cuda_walk.py"


def run(arguments, timeout):
    environment = cuda_emulator.environment()
    environment["PYTHONPATH"] = ":".join(
        str(ROOT / folder) for folder in ("tools", "tests/support", "tests/foreign", "python")
    )
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=timeout
    )


@pytest.mark.parametrize(("what", "share"), [("elementwise", 23), ("calls", 23), ("coverage", 23)])
def test_a_share_of_all_calls(what, share):
    done = run([WALK, what, str(share)], 300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif("MXNET_TEST_ALL_KERNELS" not in os.environ, reason="takes many minutes: set MXNET_TEST_ALL_KERNELS")
@pytest.mark.parametrize("what", ["elementwise", "calls", "coverage"])
def test_all_calls(what):
    done = run([WALK, what, "1"], 3000)
    assert done.returncode == 0, done.stdout + done.stderr


SUMS = """
import numpy
import mxnet as mx
from mxnet import np

gpu = mx.gpu(0)
rng = numpy.random.default_rng(0)
# Long sums are cut into parts, and parts do not depend on time: every run gives the same bits.
x = rng.normal(size=(3, 40000)).astype("float32")
there = np.array(x).to_device(gpu)
for axis in (None, 0, 1):
    exact = x.astype("float64").sum(axis)
    size = numpy.abs(x.astype("float64")).sum(axis)
    first = there.sum(axis).asnumpy()
    # Each of the additions on the longest way, 64 and the logarithm of the rest, rounds once.
    assert (numpy.abs(first - exact) <= 80 * 2.0**-24 * size).all(), axis
    assert first.tobytes() == there.sum(axis).asnumpy().tobytes()
assert (there.argmax(axis=1).asnumpy() == x.argmax(axis=1)).all()
assert int(there.argmax()) == x.argmax()
assert (np.cumsum(there.astype("int64"), axis=1).asnumpy() == x.astype("int64").cumsum(axis=1)).all()
assert (there.T.max(axis=0).asnumpy() == x.max(axis=1)).all()
# Many axes that do not follow one another: more than one launch walks over.
y = np.arange(3.0**10).reshape((3,) * 10)[(slice(None, None, 2),) * 10]
assert ((y.to_device(gpu).transpose() + 1).asnumpy() == y.asnumpy().transpose() + 1).all()
"""


def test_long_sums_are_exact_to_their_bound_and_the_same_at_every_run():
    done = run(["-c", SUMS], 300)
    assert done.returncode == 0, done.stdout + done.stderr


REFUSED = """
import mxnet as mx
from mxnet import np

gpu = mx.gpu(0)
x = np.array([2, 3], dtype="int32").to_device(gpu)
assert (x ** np.array([3, 0], dtype="int32").to_device(gpu)).tolist() == [8, 1]
half = np.array([1.0, 2.0], dtype="float16").to_device(gpu)
assert (half * 2.5 + 1).tolist() == [3.5, 6.0]
for exponents in (-1, np.array([1, -1], dtype="int32").to_device(gpu)):
    try:
        (x**exponents).tolist()
    except ValueError as error:
        assert "negative integer powers" in str(error), error
    else:
        raise AssertionError("a negative power of integers is no integer")
assert np.subtract.reduce(x, initial=10).tolist() == 5
"""


def test_negative_powers_of_integers_fail_where_they_are_read():
    done = run(["-c", REFUSED], 300)
    assert done.returncode == 0, done.stdout + done.stderr
