"""Operators on 8-bit integers against sums over all products, and the formulas of their ranges."""

import itertools

import numpy as onp
import pytest

import mxnet as mx
import windows
from mxnet import _core, np, npx

op = _core.namespaces["op"]
RNG = onp.random.default_rng(28)


def integers(dtype, *shape):
    info = onp.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def one(x):
    return np.array([x], dtype="float32")


def conv_sums(x, w, stride, pad, dilate, groups):
    """Sums of products of a two-dimensional convolution, int64."""
    x = onp.pad(x.astype("int64"), ((0, 0), (0, 0), (pad[0], pad[0]), (pad[1], pad[1])))
    n, channels, height, width = x.shape
    filters, per_group, kh, kw = w.shape
    reach = [dilate[0] * (kh - 1) + 1, dilate[1] * (kw - 1) + 1]
    oh, ow = (height - reach[0]) // stride[0] + 1, (width - reach[1]) // stride[1] + 1
    y = onp.zeros((n, filters, oh, ow), "int64")
    for f, i, j in itertools.product(range(filters), range(kh), range(kw)):
        first = f // (filters // groups) * per_group
        rows = slice(i * dilate[0], i * dilate[0] + (oh - 1) * stride[0] + 1, stride[0])
        columns = slice(j * dilate[1], j * dilate[1] + (ow - 1) * stride[1] + 1, stride[1])
        taken = x[:, first : first + per_group, rows, columns]
        y[:, f] += onp.einsum("nchw,c->nhw", taken, w[f, :, i, j].astype("int64"))
    assert channels == groups * per_group
    return y


CASES = [
    # data, filters, kernel, stride, pad, dilate, groups
    ((2, 3, 9, 8), 5, (3, 3), (2, 1), (1, 2), (1, 1), 1),
    ((1, 64, 7, 7), 34, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 4, 9, 9), 6, (3, 2), (1, 1), (0, 1), (2, 3), 2),
    ((2, 40, 6, 5), 40, (3, 3), (1, 2), (1, 1), (1, 1), 40),
]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("shape", "filters", "kernel", "stride", "pad", "dilate", "groups"), CASES)
def test_convolution_sums_are_exact_in_both_layouts(dtype, shape, filters, kernel, stride, pad, dilate, groups):
    x, w = integers(dtype, *shape), integers("int8", filters, shape[1] // groups, *kernel)
    want = conv_sums(x, w, stride, pad, dilate, groups)
    rest = {"stride": stride, "pad": pad, "dilate": dilate, "num_group": groups, "dtype": "int32"}
    got = op["int8_convolution"](np.array(x), np.array(w), **rest)
    assert got.dtype == onp.int32
    onp.testing.assert_array_equal(got.asnumpy(), want)
    last = (0, 2, 3, 1)
    views = np.array(x).transpose(*last), np.array(w).transpose(*last)
    for data, weight in (views, (views[0].copy(), views[1].copy())):
        got = op["int8_convolution"](data, weight, layout="NHWC", **rest)
        onp.testing.assert_array_equal(got.asnumpy().transpose(0, 3, 1, 2), want)


def test_convolution_of_reversed_data_and_of_one_and_three_axes():
    x, w = integers("int8", 2, 3, 8), integers("int8", 4, 3, 3)
    want = conv_sums(x[:, :, None, ::-1], w[:, :, None], (1, 1), (0, 1), (1, 1), 1)[:, :, 0]
    got = op["int8_convolution"](np.array(x)[:, :, ::-1], np.array(w), pad=(1,), dtype="int32")
    onp.testing.assert_array_equal(got.asnumpy(), want)
    x, w = integers("uint8", 1, 2, 3, 4, 5), integers("int8", 3, 2, 2, 3, 2)
    want = sum(
        conv_sums(x[:, :, d : d + 2][:, :, i], w[:, :, i], (1, 1), (0, 0), (1, 1), 1) for d, i in [(0, 0), (0, 1)]
    )
    got = op["int8_convolution"](np.array(x), np.array(w), dtype="int32")
    onp.testing.assert_array_equal(got.asnumpy()[:, :, 0], want)


@pytest.mark.parametrize("out", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("addend_dtype", [None, "float32", "int8", "uint8"])
def test_results_are_scaled_in_float32_and_rounded_to_even(out, relu, addend_dtype):
    x, w = integers("int8", 2, 5, 6, 7), integers("int8", 37, 5, 3, 3)
    sums = conv_sums(x, w, (1, 1), (1, 1), (1, 1), 1)
    scale = RNG.uniform(1e-4, 2e-3, 37).astype("float32")
    bias = RNG.uniform(-20, 20, 37).astype("float32")
    # Addition and multiplication of float32 in the order of the description: the same bits.
    want = sums.astype("float32") * (scale * onp.float32(0.5))[:, None, None] + bias[:, None, None]
    addend = None
    if addend_dtype is not None:
        addend = RNG.uniform(0, 100, sums.shape).astype(addend_dtype)
        want = want + addend.astype("float32") * onp.float32(0.25)
    if relu:
        want = onp.maximum(want, 0)
    if out != "float32":
        want = onp.clip(onp.rint(want), *((-127, 127) if out == "int8" else (0, 255)))
    got = op["int8_convolution"](
        np.array(x), np.array(w), np.array(scale), np.array(bias), None if addend is None else np.array(addend),
        one(0.5), pad=(1, 1), relu=relu, addend_scale=0.25, dtype=out,
    )  # fmt: skip
    assert str(got.dtype) == out
    onp.testing.assert_array_equal(got.asnumpy(), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("rows", "k", "hidden"), [(1, 7, 3), (33, 1030, 40), (5, 64, 96)])
def test_fully_connected_sums_are_exact(dtype, rows, k, hidden):
    x, w = integers(dtype, rows, k), integers("int8", hidden, k)
    want = x.astype("int64") @ w.astype("int64").T
    got = op["int8_fully_connected"](np.array(x), np.array(w), dtype="int32")
    onp.testing.assert_array_equal(got.asnumpy(), want)
    got = op["int8_fully_connected"](np.array(x.T.copy()).T, np.array(w.T.copy()).T, dtype="int32")
    onp.testing.assert_array_equal(got.asnumpy(), want)


def test_fully_connected_keeps_or_flattens_axes():
    x, w = integers("uint8", 2, 3, 5), integers("int8", 4, 5)
    got = op["int8_fully_connected"](np.array(x), np.array(w), flatten=False, dtype="int32")
    onp.testing.assert_array_equal(got.asnumpy(), x.astype("int64") @ w.astype("int64").T)
    w = integers("int8", 4, 15)
    got = op["int8_fully_connected"](np.array(x), np.array(w), dtype="int32")
    onp.testing.assert_array_equal(got.asnumpy(), x.reshape(2, 15).astype("int64") @ w.astype("int64").T)
    assert op["int8_fully_connected"](np.zeros((0, 5), "int8"), np.zeros((4, 5), "int8"), dtype="int32").shape == (0, 4)


def test_weights_that_were_written_are_packed_again():
    x, w = np.ones((1, 4), "int8"), np.ones((2, 4), "int8")
    for factor in (1, 1, 3):
        w[:] = factor
        assert op["int8_fully_connected"](x, w, dtype="int32").tolist() == [[4 * factor] * 2]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("convention", ["valid", "full", "same"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_pooling_is_that_of_floats_rounded_to_even(dtype, kind, convention, layout):
    x = integers(dtype, 2, 70, 8, 7)
    want = windows.pooling(x.astype("float64"), (3, 2), (2, 2), (1, 0), kind, convention, p=2)
    data, last = np.array(x), layout == "NHWC"
    got = op["int8_pooling"](
        data.transpose(0, 2, 3, 1) if last else data, (3, 2), (2, 2), (1, 0), kind, convention, layout=layout
    ).asnumpy()
    assert got.dtype == dtype
    onp.testing.assert_array_equal(got.transpose(0, 3, 1, 2) if last else got, onp.rint(want))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_the_scale_of_an_array_is_that_of_its_largest_number(dtype):
    levels = {"int8": 127, "uint8": 255}[dtype]
    x = RNG.uniform(-3, 2, 100_000).astype("float32")
    factor, size = op["quantization_scale"](np.array(x), dtype=dtype)
    most = abs(x).max()
    assert (factor.item(), size.item()) == (onp.float32(levels) / most, most / onp.float32(levels))
    factor, size = op["quantization_scale"](np.zeros(3), dtype=dtype)
    assert (factor.item(), size.item()) == (0, 0)


# ---- public functions ----


@pytest.mark.parametrize("low_high", [(-1.0, 2.0), (0.0, 2.0)])
@pytest.mark.parametrize("out_type", ["int8", "uint8"])
def test_quantize_rounds_to_the_levels_of_a_range(low_high, out_type):
    # These integers are those of MXNet 2.0.0b1.
    x = np.array([-1.0, -0.5, 0.0, 0.25, 0.3, 1.0, 2.0])
    got, low, high = npx.contrib_quantize(x, one(low_high[0]), one(low_high[1]), out_type=out_type)
    want = [-64, -32, 0, 16, 19, 64, 127] if out_type == "int8" else [0, 0, 0, 32, 38, 128, 255]
    assert (got.tolist(), str(got.dtype)) == (want, out_type)
    assert (low.tolist(), high.tolist()) == (([-2.0], [2.0]) if out_type == "int8" else ([low_high[0]], [2.0]))


def test_quantize_rounds_ties_to_even_and_nothing_to_zero():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.49, 127.0])
    assert npx.contrib_quantize(x, one(-127), one(127), "int8")[0].tolist() == [0, 2, 2, 0, -2, 3, 127]
    assert npx.contrib_quantize(np.zeros(2), one(0), one(0))[0].tolist() == [0, 0]


def test_quantize_v2_measures_or_takes_a_range():
    x = np.array([-1.0, 0.3, 2.0])
    got, low, high = npx.contrib_quantize_v2(x)
    assert (got.tolist(), low.tolist(), high.tolist()) == ([-64, 19, 127], [-2.0], [2.0])
    got, low, high = npx.contrib_quantize_v2(x, "auto", 0.0, 1.5)
    assert (str(got.dtype), got.tolist(), low.tolist(), high.tolist()) == ("uint8", [0, 51, 255], [0.0], [1.5])
    assert str(npx.contrib_quantize_v2(x, "auto", -1.0, 1.5)[0].dtype) == "int8"


def test_requantize_goes_by_real_numbers():
    # The first six results are those of MXNet 2.0.0b1.
    q = np.array([1000, -2000, 30000, 2000000, -40, 2**31 - 1], dtype="int32")
    got, low, high = npx.requantize(q, one(-1000), one(1000), min_calib_range=-0.02, max_calib_range=0.01)
    assert got.tolist() == [3, -6, 89, 127, 0, 127]
    onp.testing.assert_array_equal([low.item(), high.item()], onp.float32([-0.02, 0.02]))
    got, _, _ = npx.requantize(q, one(-1000), one(1000), "auto", 0.0, 0.01)
    assert (got.tolist(), str(got.dtype)) == ([12, 0, 255, 255, 0, 255], "uint8")
    got, _, high = npx.requantize(q[:2], one(-1000), one(1000))
    assert got.tolist() == [64, -127]
    assert high.item() == pytest.approx(2000 * 1000 / (2**31 - 1), rel=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_sums_of_layers_stand_for_real_products(dtype):
    levels = {"int8": 127, "uint8": 255}[dtype]
    x, w, b = integers(dtype, 2, 3, 5, 5), integers("int8", 4, 3, 3, 3), integers("int8", 4)
    args = [np.array(x), np.array(w), np.array(b), *map(one, (-1.0, 2.0, -0.5, 0.25, -0.1, 0.2))]
    got, low, high = npx.quantized_conv(*args, kernel=(3, 3), num_filter=4)
    size = 2 / levels * 0.5 / 127
    sums = conv_sums(x, w, (1, 1), (0, 0), (1, 1), 1)
    want = sums + onp.rint(b * (0.2 / 127 / size))[:, None, None]
    # A bias of half a level may round either way in float32.
    assert abs(got.asnumpy() - want).max() <= 1
    assert high.item() == -low.item() == pytest.approx(size * (2**31 - 1), rel=1e-6)
    args[0], args[1] = np.array(x[:, :, 0, 0]), np.array(w[:, :, 0, 0])
    got, low, high = npx.quantized_fully_connected(*args, num_hidden=4)
    want = x[:, :, 0, 0].astype("int64") @ w[:, :, 0, 0].astype("int64").T + onp.rint(b * (0.2 / 127 / size))
    assert abs(got.asnumpy() - want).max() <= 1
    assert high.item() == pytest.approx(size * (2**31 - 1), rel=1e-6)


def test_a_bias_of_channels_last_is_along_the_last_axis():
    x, w, b = integers("int8", 1, 4, 4, 3), integers("int8", 5, 1, 1, 3), onp.arange(5, dtype="int8")
    args = [np.array(x), np.array(w), np.array(b), *map(one, (-1, 1, -1, 1, -1 / 127, 1 / 127))]
    got = npx.quantized_conv(*args, layout="NHWC")[0].asnumpy()
    want = x.astype("int64") @ w[:, 0, 0].astype("int64").T + onp.arange(5)
    onp.testing.assert_array_equal(got, want)


def test_pooling_act_flatten_reshape_transpose_and_embedding_keep_ranges():
    x = np.array(integers("int8", 2, 3, 4, 4))
    low, high = one(-1), one(2)
    for got in (
        npx.quantized_pooling(x, low, high, kernel=(2, 2), pool_type="avg"),
        npx.quantized_pooling(x, low, high, global_pool=True),
        npx.quantized_act(x, low, high, act_type="relu"),
        npx.quantized_flatten(x, low, high),
        npx.quantized_reshape(x, low, high, newshape=(2, -1)),
        npx.quantized_transpose(x, low, high, axes=(0, 2, 3, 1)),
        npx.quantized_embedding(np.array([1, 0]), x[0, 0], low, high, 4, 4),
    ):
        assert (str(got[0].dtype), got[1].tolist(), got[2].tolist()) == ("int8", [-1.0], [2.0])
    values = x.asnumpy()
    onp.testing.assert_array_equal(npx.quantized_act(x, low, high)[0].asnumpy(), onp.maximum(values, 0))
    onp.testing.assert_array_equal(npx.quantized_flatten(x, low, high)[0].asnumpy(), values.reshape(2, -1))
    onp.testing.assert_array_equal(
        npx.quantized_embedding(np.array([1, 0]), x[0, 0], low, high)[0].asnumpy(), values[0, 0][[1, 0]]
    )
    # The means of MXNet 2.0.0b1: 2.5, -2.5, 0.75 and 0.5 are rounded to even.
    means = np.array([[1, 2, 3, 4], [-1, -2, -3, -4], [1, 1, 1, 0], [1, 1, 0, 0]], dtype="int8").reshape(1, 4, 2, 2)
    got, _, _ = npx.quantized_pooling(means, low, high, kernel=(2, 2), pool_type="avg")
    assert got.reshape(-1).tolist() == [2, -2, 1, 0]


def test_addition_and_multiplication_go_by_real_numbers():
    x, y = np.array([10, -20, 127], dtype="int8"), np.array([5, 50, 127], dtype="int8")
    ranges = list(map(one, (-1, 1, -2, 2)))
    got, low, high = npx.quantized_elemwise_add(x, y, *ranges)
    real = onp.array([10, -20, 127]) / 127 + onp.array([5, 50, 127]) * 2 / 127
    assert (str(got.dtype), low.item(), high.item()) == ("int32", -3.0, 3.0)
    onp.testing.assert_allclose(got.asnumpy().astype("float64") * 3 / (2**31 - 1), real, rtol=1e-6)
    # 8 and 32 are those of MXNet 2.0.0b1.
    assert npx.quantized_elemwise_add(x, y, *ranges, -2.5, 2.0)[0].tolist() == [8, 32, 127]
    u, v = x.astype("uint8"), y.astype("uint8")
    assert str(npx.quantized_elemwise_add(u, v, *ranges, 0.0, 2.5)[0].dtype) == "uint8"
    got, low, high = npx.quantized_elemwise_mul(x, y, *ranges)
    assert (got.tolist(), str(got.dtype)) == ([50, -1000, 16129], "int32")
    assert high.item() == pytest.approx(2 / 127**2 * (2**31 - 1), rel=1e-6)
    assert npx.quantized_elemwise_mul(x, y, *ranges, -2.0, 2.0)[0].tolist() == [0, -8, 127]
    real = npx.quantized_elemwise_mul(x, y, *ranges, enable_float_output=True)
    onp.testing.assert_allclose(real.asnumpy(), onp.array([50, -1000, 16129]) * 2 / 127**2, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, r: npx.contrib_quantize(x, r, r, "int16"), ValueError, "found 'int16'"),
        (lambda x, r: npx.contrib_quantize_v2(x, min_calib_range=1.0), ValueError, r"\(None\) is missing"),
        (lambda x, r: npx.requantize(x, r, r), TypeError, "`data` is float32, must be int32"),
        (lambda x, r: npx.quantized_act(x, r, r, "tanh"), ValueError, "found 'tanh'"),
        (lambda x, r: npx.quantized_pooling(x, r, r, (2,)), TypeError, "`data` is float32"),
        (lambda x, r: npx.quantized_pooling(x, r, r, p_value=2), mx.error.UnsupportedError, "`p_value` is 2"),
        (lambda x, r: npx.quantized_conv(x, x, None, r, r, r, r, no_bias=True), TypeError, "no ranges for dtype"),
        (lambda x, r: npx.quantized_elemwise_add(x, x, r, r, r, r), TypeError, "`lhs` is float32"),
        (lambda x, r: npx.quantized_elemwise_mul(x, x[0], r, r, r, r), ValueError, r"\(1, 2, 4\), `rhs` \(2, 4\)"),
        (lambda x, r: npx.quantized_embedding(r, x, r, r, 3, 4), ValueError, r"needs \(3, 4\)"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call(np.ones((1, 2, 4)), one(1))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"weight": np.ones((4, 5), "uint8")}, TypeError, "`weight` is uint8, must be int8"),
        ({"data": np.ones((2, 5))}, TypeError, "`data` is float32, must be int8 or uint8"),
        (
            {"weight": np.ones((4, 6), "int8")},
            ValueError,
            r"\(size 5\) must equal the last axis of `weight` \(size 6\)",
        ),
        ({"dtype": "int8"}, ValueError, "int8 without `scale`"),
        ({"scale": np.ones(3), "dtype": "int8"}, ValueError, r"`scale` has shape \(3,\), needs \(4,\)"),
        ({"scale": np.ones(4)}, ValueError, "int32 with `scale`"),
        ({"relu": True}, ValueError, "neither bias, addend"),
        ({"scale": np.ones(4), "addend": np.ones((2, 3)), "dtype": "float32"}, ValueError, r"has shape \(2, 3\)"),
    ],
)
def test_layers_check_their_operands(change, error, text):
    given = {"data": np.ones((2, 5), "int8"), "weight": np.ones((4, 5), "int8"), "dtype": "int32"} | change
    with pytest.raises(error, match=text):
        op["int8_fully_connected"](given.pop("data"), given.pop("weight"), **given)


def test_a_wrong_bias_or_size_is_named():
    x, w, r = np.ones((2, 5), "int8"), np.ones((4, 5), "int8"), one(1)
    with pytest.raises(ValueError, match="`num_hidden` is 3"):
        npx.quantized_fully_connected(x, w, None, r, r, r, r, num_hidden=3, no_bias=True)
    with pytest.raises(ValueError, match="`no_bias` is False, and no `bias` is given"):
        npx.quantized_fully_connected(x, w, None, r, r, r, r)
    with pytest.raises(ValueError, match="needs `min_bias` and `max_bias`"):
        npx.quantized_fully_connected(x, w, np.ones(4, "int8"), r, r, r, r)
    with pytest.raises(ValueError, match=r"`bias` has shape \(3,\), needs \(4,\)"):
        npx.quantized_fully_connected(x, w, np.ones(3, "int8"), r, r, r, r, r, r)
    with pytest.raises(ValueError, match=r"`kernel` is \(2,\), the weight has kernel \(3,\)"):
        npx.quantized_conv(
            np.ones((1, 2, 5), "int8"), np.ones((4, 2, 3), "int8"), None, r, r, r, r, kernel=2, no_bias=True
        )
