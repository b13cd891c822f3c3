"""Reductions that leave NaN out, against NumPy."""

import numpy
import pytest

import mxnet as mx
from both import both

GENERATOR = numpy.random.default_rng(5)
A = GENERATOR.standard_normal((3, 4, 5))
A[0, 1, 2] = A[2, 3] = A[:, 0, 0] = numpy.nan
C = A + 1j * GENERATOR.standard_normal(A.shape)
I = GENERATOR.integers(-9, 9, (3, 4))
# Sums of 60 numbers in another order.
ROUNDING = 60 * 2.0**-52

ARGUMENTS = [
    "A",
    "A, 0",
    "A, axis=(0, 2)",
    "A, axis=-1, keepdims=True",
    "A, keepdims=True",
    "I",
    "I, 1",
    "A > 0, 0",
    "A[:, :0], 1",
    "A[:, :0], 0",
    "A, 3",
    "[1.0, nan, 3.0]",
    "3.0",
    "A[2, 3]",
    "A.astype('float32'), 1",
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize(
    "function", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanargmax", "nanargmin"]
)
def test_reductions_agree(function, arguments):
    if "arg" in function and ("(0, 2)" in arguments or ("keepdims=True" in arguments and "axis" not in arguments)):
        pytest.skip("positions are along one axis")
    both(f"np.{function}({arguments})", A=A, I=I, rtol=1e-5 if "float32" in arguments else ROUNDING)


@pytest.mark.parametrize(
    "call",
    [
        "nansum(A, 0, dtype='float32')",
        "nansum(I, dtype='float64')",
        "nansum(A, 1, initial=10, where=A > 0)",
        "nansum(C, 1)",
        "nanprod(A, 1, initial=10, where=A > 0)",
        "nanprod(C, 1)",
        "nanmean(C, 1)",
        "nanmean(I, dtype='float32')",
        "nanmean(I, dtype='int64')",
        "nanmean(A, 1, where=A > 0)",
        "nanmean(I, 1, where=I > 0)",
        "nanvar(C, 1)",
        "nanvar(A, 1, ddof=1)",
        "nanvar(A, 1, correction=2)",
        "nanvar(A, 1, ddof=1, correction=2)",
        "nanvar(A, 1, ddof=4)",
        "nanvar(I, 1, ddof=1)",
        "nanvar(I, 1, ddof=4)",
        "nanvar(A, 1, where=A > 0)",
        "nanvar(A, 1, mean=np.nanmean(A, 1, keepdims=True))",
        "nanstd(A, (0, 1), ddof=1, keepdims=True)",
        "nanstd(np.arange(6).reshape(2, 3), dtype=int)",
        "nanstd(A, 1, correction=1)",
        "nanmax(A, 1, initial=0.5)",
        "nanmax(A, 1, initial=0.5, where=A < 0)",
        "nanmin(A, 1, initial=0.5)",
        "nanmin(I, 1, initial=3, where=I > 0)",
        "nanmax(A[:, :0], 1, initial=2)",
        "nanargmax(A[:, 1:3], 1)",
        "nanargmin(A[:, 1:3], axis=2, keepdims=True)",
        "nancumsum(A)",
        "nancumsum(A, 1)",
        "nancumsum(I, 0, dtype='float32')",
        "nancumprod(A, -1)",
        "nancumprod(I)",
    ],
)
def test_options_agree(call):
    both(f"np.{call}", A=A, I=I, C=C, rtol=1e-5 if "float32" in call else ROUNDING)


def test_results_go_to_out():
    out = mx.np.zeros(4)
    x = mx.np.array(A[0].T.copy())
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"):
        function = getattr(mx.np, name)
        assert function(x, 0, out=out) is out
        numpy.testing.assert_allclose(out.asnumpy(), getattr(numpy, name)(A[0].T, 0), rtol=1e-6)
    at = mx.np.zeros(4, "int64")
    assert mx.np.nanargmax(x, 0, out=at) is at
    running = mx.np.zeros(x.shape)
    assert mx.np.nancumsum(x, 0, out=running) is running
    with pytest.raises(ValueError, match=r"nanmean: `out` has shape \(4,\)"):
        mx.np.nanmean(x, 1, out=out)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
def test_nan_gets_no_gradient_and_the_others_their_slope(name):
    values = numpy.array([[3.0, numpy.nan, 1.0, -2.0], [numpy.nan, 5.0, 0.5, 4.0]])
    x = mx.np.array(values, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        head = (getattr(mx.np, name)(x, 1) * mx.np.array([1.0, 10.0])).sum()
    head.backward()
    slope = numpy.zeros_like(values)
    for at in zip(*numpy.nonzero(~numpy.isnan(values)), strict=True):
        ends = []
        for step in (1e-5, -1e-5):
            moved = values.copy()
            moved[at] += step
            ends.append((getattr(numpy, name)(moved, 1) * [1.0, 10.0]).sum())
        slope[at] = (ends[0] - ends[1]) / 2e-5
    # Second differences of numbers of size 10 over steps of 1e-5.
    numpy.testing.assert_allclose(x.grad.asnumpy(), slope, atol=1e-7)
