"""Arrays of few elements, and comparisons of them with NumPy's."""

import numpy

from mxnet import autograd

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
REAL = [dtype for dtype in DTYPES if not dtype.startswith("complex")]
LARGE = 5000  # elements: above every limit of the paths for few elements


def values(dtype, *shape, seed=0):
    rng = numpy.random.default_rng(seed)
    x = rng.integers(0, 5, shape)
    if numpy.dtype(dtype).kind in "fc":
        x = x - 2 + rng.integers(0, 4, shape) / 4
    if numpy.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(0, 4, shape)
    return x.astype(dtype)


def views(x):
    """The array as it lies, and as views that are not dense."""
    yield x
    yield x.T
    yield x[::-1]
    yield x[:, ::2]
    yield x[1:, 1:]
    yield x[:0]


def same(got, want):
    want = numpy.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    numpy.testing.assert_array_equal(got.asnumpy(), want)


def both_ways(call):
    """What a call gives at once and what it gives while recording."""
    eager = call()
    with autograd.record():
        recorded = call()
    return eager, recorded
