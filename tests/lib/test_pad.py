"""Every mode of padding against NumPy, and gradients of borders."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st

import mxnet as mx
from both import both

A = numpy.array([[3.0, -1.0, 4.0, 1.5], [5.0, -9.0, 2.0, 6.5], [0.5, 2.5, 8.0, -7.0]])
I = numpy.array([[3, -1, 4], [5, -9, 2]])
MODES = ["constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("x", [A, I, A.astype("float32").T, A[0], numpy.array(3.0), I.astype("uint8")])
@pytest.mark.parametrize("width", [1, (2, 3), 9])
def test_border_is_numpys(mode, x, width):
    # Means and ramps are sums in another order: a few roundings of numbers up to 10.
    both(f"np.pad(x, {width}, mode='{mode}')", x=x, rtol=1e-6 if x.dtype == "float32" else 1e-14)


@pytest.mark.parametrize(
    "arguments",
    [
        "((1, 2), (0, 3)), 'constant', constant_values=((1, 2), (3, 4))",
        "((1, 2), (0, 3)), constant_values=(5, 6)",
        "((1,), (2,)), constant_values=7",
        "2, 'constant', constant_values=1.9",
        "{0: 1, -1: (0, 2)}, 'edge'",
        "((1, 2), (0, 3)), 'linear_ramp', end_values=((1, -2), (30, 4))",
        "3, 'linear_ramp', end_values=(5, -6)",
        "2, 'mean', stat_length=2",
        "2, 'maximum', stat_length=((1, 2), (3, 1))",
        "2, 'minimum', stat_length=(1, 99)",
        "2, 'median', stat_length=3",
        "2, 'maximum', stat_length=0",
        "2, 'mean', stat_length=-1",
        "7, 'reflect', reflect_type='odd'",
        "7, 'symmetric', reflect_type='odd'",
        "(1, 11), 'reflect', reflect_type='odd'",
        "1, 'reflect', reflect_type='other'",
        "1, 'other'",
        "1, 'edge', constant_values=3",
        "1, 'constant', stat_length=3",
        "-1",
        "1.5",
        "((1, 2), (3, 4), (5, 6))",
        "0, 'edge'",
    ],
)
@pytest.mark.parametrize("x", [A, I])
def test_options_are_numpys(arguments, x):
    if arguments.endswith("reflect_type='other'"):
        # NumPy takes every other word for 'even'.
        with pytest.raises(ValueError, match="'even' or 'odd'"):
            mx.np.pad(mx.np.array(x), 1, mode="reflect", reflect_type="other")
        return
    both(f"np.pad(x, {arguments})", x=x, rtol=1e-14)


@hypothesis.settings(max_examples=150)
@hypothesis.given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.sampled_from(MODES[7:] + ["edge"]), st.data())
def test_borders_of_any_width(shape, mode, data):
    width = [data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9))) for _ in shape]
    reflect = {"reflect_type": data.draw(st.sampled_from(["even", "odd"]))} if mode in MODES[7:9] else {}
    x = numpy.random.default_rng(len(shape)).integers(-9, 9, shape)
    both("np.pad(x, width, mode=mode, **reflect)", x=x, width=width, mode=mode, reflect=reflect)


def test_callables_get_vectors_to_change():
    def border(vector, widths, axis, options):
        vector[: widths[0]] = options["value"] + axis
        if widths[1]:
            vector[-widths[1] :] = -1

    found = mx.np.pad(mx.np.array(I), ((1, 2), (2, 0)), border, value=10)
    numpy.testing.assert_array_equal(found.asnumpy(), numpy.pad(I, ((1, 2), (2, 0)), border, value=10))


def test_empty_borders_keep_the_middle():
    found = mx.np.pad(mx.np.array(A), ((1, 0), (2, 1)), "empty")
    assert found.shape == (4, 7)
    numpy.testing.assert_array_equal(found[1:, 2:-1].asnumpy(), A.astype("float64"))


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "mean", "linear_ramp"])
def test_axes_without_elements_cannot_be_padded(mode):
    with pytest.raises(ValueError, match="axis 1 has size 0"):
        mx.np.pad(mx.np.zeros((2, 0)), 1, mode=mode)
    assert mx.np.pad(mx.np.zeros((2, 0)), ((1, 1), (0, 0)), mode=mode).shape == (4, 0)
    assert mx.np.pad(mx.np.zeros((2, 0)), 1).tolist() == [[0, 0]] * 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reflect", ["even", "odd"])
def test_gradients_go_to_the_elements_a_border_is_made_of(mode, reflect):
    options = {"reflect_type": reflect} if mode in ("reflect", "symmetric") else {}
    width = ((2, 5), (1, 6))
    x = mx.np.array(A, dtype="float64")
    x.attach_grad()
    weights = numpy.random.default_rng(1).standard_normal((10, 11))
    with mx.autograd.record():
        head = (mx.np.pad(x, width, mode=mode, **options) * mx.np.array(weights)).sum()
    head.backward()
    slope = numpy.zeros_like(A)
    for at in numpy.ndindex(A.shape):
        step = numpy.zeros_like(A)
        step[at] = 1e-3
        ends = [(numpy.pad(A + s * step, width, mode=mode, **options) * weights).sum() for s in (1, -1)]
        slope[at] = (ends[0] - ends[1]) / 2e-3
    # Padding is linear in between ties, so central differences are exact up to rounding of sums of 110 numbers.
    numpy.testing.assert_allclose(x.grad.asnumpy(), slope, atol=1e-10)
