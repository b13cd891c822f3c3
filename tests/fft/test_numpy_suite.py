"""NumPy's own tests of `numpy.fft`, from the installed NumPy, with our functions in the namespace's place."""

import functools
import importlib.util
import sys
import types

import numpy
import numpy.random
import numpy.testing  # both become attributes of NumPy before another module stands in its place
import pytest

import mxnet as mx

# Tests that do not hold for us, by a part of their name, and why.
NOT_OURS = {
    "longdouble": "there is no long double",
    "s_axes_none": "what NumPy deprecates (`s` without `axes`) raises no warning",
    "s_contains_none": "what NumPy deprecates (None in `s`) is an error",
    "long_short_reversed[float64]": "as above",
    "bad_out": "the error is of the same class, its words are ours",
    "fftn_out_and_s_interaction": "the error is of the same class, its words are ours",
    "long_short[float64]": "6 units are little for prime lengths; test_transforms.py derives what is allowed",
}


def ours(name):
    """Our function of this name with NumPy's arrays outside."""
    function = getattr(mx.np.fft, name)

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args, out=None, **kwargs):
        if out is None:
            return function(*args, **kwargs).asnumpy()
        target = mx.np.array(out, dtype=out.dtype)
        out[...] = function(*args, out=target, **kwargs).asnumpy()
        return out

    return call


class Namespace(types.ModuleType):
    """NumPy, but for `fft`."""

    fft = types.SimpleNamespace(**{name: ours(name) for name in mx.np.fft.__all__})

    def __getattr__(self, name):
        return getattr(numpy, name)


@pytest.fixture(autouse=True)
def numpy_promotion(request):
    """NumPy's tests expect NumPy's dtypes."""
    for part, reason in NOT_OURS.items():
        if part in request.node.name and "irfftn_out" not in request.node.name:
            pytest.skip(reason)
    before = mx.util.set_np_default_dtype(True)
    yield
    mx.util.set_np_default_dtype(before)


def adopt(module):
    """The test classes of one of NumPy's files, which find our functions where they look for NumPy's."""
    spec = importlib.util.find_spec(f"numpy.fft.tests.{module}")
    with open(spec.origin) as file:
        code = compile(file.read(), spec.origin, "exec")
    scope = {"__name__": module}
    real = sys.modules["numpy"]
    sys.modules["numpy"] = Namespace("numpy")
    sys.modules["numpy"].__path__ = real.__path__
    try:
        exec(code, scope)
    finally:
        sys.modules["numpy"] = real
    for name, value in scope.items():
        if name.startswith(("Test", "test_")):
            globals()[f"{name}_of_{module}"] = value


for file in ("test_pocketfft", "test_helper"):
    adopt(file)
