"""Convolution and its transpose: values against slow loops and SciPy, layouts, dtypes, errors."""

import numpy as onp
import pytest
from scipy import signal

import mxnet as mx
import windows
from mxnet import _core, np, npx

RNG = onp.random.default_rng(7)


def random(*shape):
    return RNG.uniform(-1, 1, shape)


def conv(x, w, bias=None, **keywords):
    given = [np.array(a, dtype="float64") for a in (x, w, bias) if a is not None]
    return npx.convolution(*given, no_bias=bias is None, **keywords).asnumpy()


CASES = [
    ((2, 3, 9), (4, 3, 3), (1,), (1,), (0,), 1),
    ((2, 4, 9), (6, 2, 2), (3,), (2,), (2,), 2),
    ((1, 3, 6, 7), (2, 3, 3, 2), (1, 1), (1, 1), (0, 0), 1),
    ((2, 4, 7, 5), (4, 1, 3, 3), (2, 1), (1, 1), (1, 2), 4),
    ((3, 6, 8, 8), (9, 2, 1, 1), (1, 1), (1, 1), (0, 0), 3),
    ((1, 2, 9, 9), (3, 2, 3, 2), (2, 3), (2, 3), (3, 1), 1),
    ((2, 2, 4, 5, 3), (3, 2, 2, 3, 2), (1, 2, 1), (1, 1, 1), (0, 1, 1), 1),
    ((1, 4, 5, 4, 4), (4, 2, 3, 1, 2), (2, 1, 2), (1, 2, 1), (1, 0, 0), 2),
]


@pytest.mark.parametrize(("x", "w", "stride", "dilate", "pad", "groups"), CASES)
def test_it_is_the_sum_over_windows(x, w, stride, dilate, pad, groups):
    x, w, bias = random(*x), random(*w), random(w[0])
    got = conv(
        x, w, bias, kernel=w.shape[2:], stride=stride, dilate=dilate, pad=pad, num_filter=len(w), num_group=groups
    )
    onp.testing.assert_allclose(got, windows.convolution(x, w, bias, stride, dilate, pad, groups), rtol=0, atol=1e-12)


def test_it_is_scipys_correlation():
    x, w = random(1, 1, 20, 30), random(1, 1, 5, 4)
    onp.testing.assert_allclose(conv(x, w)[0, 0], signal.correlate(x[0, 0], w[0, 0], "valid"), atol=1e-12)


@pytest.mark.parametrize(("layout", "first"), [("NWC", "NCW"), ("NHWC", "NCHW"), ("NDHWC", "NCDHW")])
def test_channels_may_be_the_last_axis(layout, first):
    spatial = len(layout) - 2
    x, w = random(2, 4, *[5] * spatial), random(6, 2, *[3] * spatial)
    want = conv(x, w, num_group=2, layout=first, pad=[1] * spatial)
    got = conv(onp.moveaxis(x, 1, -1), onp.moveaxis(w, 1, -1), num_group=2, layout=layout, pad=[1] * spatial)
    onp.testing.assert_allclose(onp.moveaxis(got, -1, 1), want, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_float_type_gives_itself(dtype):
    x, w = (np.array(random(*shape), dtype=dtype) for shape in ((2, 3, 6, 6), (4, 3, 3, 3)))
    y = npx.convolution(x, w, no_bias=True)
    assert str(y.dtype) == dtype
    x, w = (a.asnumpy().astype(float) for a in (x, w))
    want, sizes = windows.convolution(x, w), windows.convolution(abs(x), abs(w))
    # One rounding of the result, and 27 products and sums in float32 (float64 for float64).
    eps = float(np.finfo(dtype).eps)
    bound = eps / 2 * abs(want) + 27 * min(eps, 2**-23) / 2 * sizes
    assert (abs(y.asnumpy().astype(float) - want) <= bound).all()


def test_one_number_serves_all_spatial_axes():
    x, w = random(1, 2, 7, 7), random(3, 2, 3, 3)
    onp.testing.assert_array_equal(conv(x, w, stride=2, pad=1), conv(x, w, stride=(2, 2), pad=(1, 1)))


def test_an_empty_batch_gives_an_empty_result_and_zero_gradients():
    x, w = np.zeros((0, 3, 5, 5)), np.ones((4, 3, 3, 3))
    w.attach_grad()
    with mx.autograd.record():
        y = npx.convolution(x, w, no_bias=True)
    y.backward()
    assert y.shape == (0, 4, 3, 3)
    assert not w.grad.asnumpy().any()


@pytest.mark.parametrize(
    ("x", "w", "keywords", "error", "message"),
    [
        ((2, 3, 5), (4, 2, 3), {}, ValueError, r"weight. is for 2 channels \(1 groups of 2\), the data have 3"),
        (
            (2, 3, 5),
            (4, 3, 7),
            {},
            ValueError,
            "kernel of size 7, dilated to 7, does not fit spatial axis 0 of size 5 with padding 0",
        ),
        ((2, 3), (4, 3), {}, ValueError, "data have 2 axes, needs 3 to 5"),
        ((2, 3, 5), (4, 3, 3), {"stride": 0}, ValueError, "`stride` contains 0, must be at least 1"),
        ((2, 3, 5), (4, 3, 3), {"pad": (1, 1)}, ValueError, "`pad` has 2 numbers, the data have 1 spatial axes"),
        ((2, 3, 5), (4, 3, 3), {"kernel": (2,)}, ValueError, r"`kernel` is \(2,\), the weight has kernel \(3,\)"),
        (
            (2, 3, 5),
            (4, 3, 3),
            {"num_filter": 5},
            ValueError,
            "`num_filter` is 5, the first axis of `weight` has size 4",
        ),
        (
            (2, 3, 5),
            (4, 3, 3),
            {"num_group": 2},
            ValueError,
            "`num_group` is 2, which does not divide 3 channels and 4 filters",
        ),
        ((2, 3, 5), (4, 3, 3), {"layout": "NHWC"}, ValueError, "layout NHWC is for 4 axes, the data have 3"),
    ],
)
def test_what_does_not_fit_is_said_in_numbers(x, w, keywords, error, message):
    with pytest.raises(error, match=message):
        npx.convolution(np.zeros(x), np.zeros(w), no_bias=True, **keywords)


def test_a_missing_or_superfluous_bias_is_an_error():
    x, w, b = np.zeros((1, 2, 5)), np.zeros((3, 2, 3)), np.zeros((3,))
    with pytest.raises(ValueError, match="`no_bias` is False, but no `bias` is given"):
        npx.convolution(x, w)
    with pytest.raises(ValueError, match="a `bias` is given, but `no_bias` is True"):
        npx.convolution(x, w, b, no_bias=True)
    with pytest.raises(ValueError, match=r"`bias` has shape \(2,\), needs \(3,\)"):
        npx.convolution(x, w, np.zeros((2,)))


TRANSPOSED = [
    ((2, 4, 5), (4, 3, 3), (1,), (0,), (0,), (1,), 1),
    ((2, 4, 5), (4, 3, 3), (2,), (1,), (1,), (2,), 2),
    ((1, 3, 4, 5), (3, 2, 4, 3), (2, 3), (1, 0), (1, 2), (1, 1), 1),
    ((1, 2, 3, 3, 2), (2, 2, 2, 2, 3), (2, 1, 2), (0, 1, 1), (1, 0, 1), (1, 1, 1), 1),
]


@pytest.mark.parametrize(("x", "w", "stride", "pad", "adj", "dilate", "groups"), TRANSPOSED)
def test_transposed_convolution_scatters_the_kernel(x, w, stride, pad, adj, dilate, groups):
    x, w = random(*x), random(*w)
    y = npx.deconvolution(
        np.array(x, dtype="float64"),
        np.array(w, dtype="float64"),
        stride=stride,
        pad=pad,
        adj=adj,
        dilate=dilate,
        num_group=groups,
        no_bias=True,
    )
    want = windows.transposed_convolution(x, w, stride, pad, adj, dilate, groups)
    onp.testing.assert_allclose(y.asnumpy(), want, atol=1e-12)


def test_transposed_convolution_reaches_the_target_shape():
    x, w = np.ones((1, 2, 3, 3)), np.ones((2, 2, 4, 4))
    for target in ((8, 8), (7, 6), (5, 8), (9, 9)):
        y = npx.deconvolution(x, w, stride=(2, 2), target_shape=target, no_bias=True)
        assert y.shape == (1, 2, *target)
    with pytest.raises(ValueError, match="asks for 10 on spatial axis 0, at most 9"):
        npx.deconvolution(x, w, stride=(2, 2), target_shape=(10, 8), no_bias=True)
    with pytest.raises(ValueError, match="`adj` is 2 on spatial axis 0, must be less than its stride 2"):
        npx.deconvolution(x, w, stride=(2, 2), adj=(2, 0), no_bias=True)


def test_transposed_convolution_is_the_transpose():
    x, y, w = random(2, 3, 9, 8), random(2, 4, 5, 3), random(4, 3, 3, 4)
    keywords = {"stride": (2, 2), "pad": (1, 0), "no_bias": True}
    forth = npx.convolution(np.array(x, dtype="float64"), np.array(w, dtype="float64"), **keywords).asnumpy()
    back = npx.deconvolution(np.array(y, dtype="float64"), np.array(w, dtype="float64"), **keywords).asnumpy()
    assert forth.shape == y.shape
    assert back.shape == x.shape
    assert abs((forth * y).sum() - (x * back).sum()) < 1e-10


def test_the_bias_gradient_of_many_images_is_their_sum():
    bias = np.zeros((20,))
    bias.attach_grad()
    x, w = np.ones((128, 1, 28, 28)), np.zeros((20, 1, 5, 5))
    with mx.autograd.record():
        y = npx.convolution(x, w, bias)
    y.backward()
    assert bias.grad.asnumpy().tolist() == [128 * 24 * 24] * 20


@pytest.mark.parametrize(("x", "w", "stride", "dilate", "pad", "groups"), CASES)
def test_relu_behind_it_has_the_bits_of_both(x, w, stride, dilate, pad, groups):
    x, w, bias = (np.array(random(*shape), dtype="float32") for shape in (x, w, w[:1]))
    bias[0] = onp.nan
    keywords = {"stride": stride, "dilate": dilate, "pad": pad, "num_group": groups}
    both = npx.relu(npx.convolution(x, w, bias, **keywords)).asnumpy()
    found = _core.namespaces["op"]["convolution_relu"](x, w, bias, **keywords).asnumpy()
    assert found.tobytes() == both.tobytes()
    want = windows.convolution(*(a.asnumpy().astype("float64") for a in (x, w, bias)), stride, dilate, pad, groups)
    # Sums of products of numbers up to 1.
    terms = w[0].size + 1
    onp.testing.assert_allclose(found, onp.maximum(want, 0), rtol=0, atol=terms * terms * 2.0**-24)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("x", "w", "stride", "dilate", "pad", "groups"), CASES)
def test_batch_normalisation_behind_it_has_the_bits_of_both(x, w, stride, dilate, pad, groups, relu):
    x, w, bias, gamma, beta, mean = (np.array(random(*shape), dtype="float32") for shape in (x, w, *4 * [w[:1]]))
    var = np.abs(np.array(random(w.shape[0]), dtype="float32"))
    bias[0] = onp.nan
    keywords = {"stride": stride, "dilate": dilate, "pad": pad, "num_group": groups}
    y = npx.batch_norm(npx.convolution(x, w, bias, **keywords), gamma, beta, mean, var, fix_gamma=False, eps=1e-3)
    both = (npx.relu(y) if relu else y).asnumpy()
    fused = _core.namespaces["op"]["convolution_batch_norm"]
    found = fused(x, w, bias, gamma, beta, mean, var, **keywords, eps=1e-3, relu=relu).asnumpy()
    assert found.tobytes() == both.tobytes()
    addend = np.array(random(*y.shape), dtype="float32")
    both = (npx.relu(y + addend) if relu else y + addend).asnumpy()
    # Also of an addend that is not in C order.
    for given in (addend, np.ascontiguousarray(addend.T).T):
        found = fused(x, w, bias, gamma, beta, mean, var, given, **keywords, eps=1e-3, relu=relu).asnumpy()
        assert found.tobytes() == both.tobytes()
    with pytest.raises(ValueError, match=r"convolution_batch_norm: `mean` has shape \(0,\), needs"):
        fused(x, w, bias, gamma, beta, mean[:0], var, **keywords)
    with pytest.raises(
        ValueError, match=r"convolution_batch_norm: `addend` has shape \(1,.*, the convolution's result"
    ):
        fused(x, w, bias, gamma, beta, mean, var, np.ones((1,) * (y.ndim + 1)), **keywords)


def test_relu_behind_an_empty_convolution_bounds_the_bias():
    x, w, bias = np.zeros((2, 0, 4)), np.zeros((3, 0, 2)), np.array([-1.0, 0.5, -0.0])
    found = _core.namespaces["op"]["convolution_relu"](x, w, bias)
    assert found.asnumpy().tobytes() == npx.relu(npx.convolution(x, w, bias)).asnumpy().tobytes()
