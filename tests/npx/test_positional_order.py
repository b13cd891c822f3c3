"""Arguments of `npx` functions in the order and under the names that they have in MXNet 2."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx

GENERATOR = onp.random.default_rng(3)
IMAGES = np.array(GENERATOR.normal(size=(1, 2, 4, 4)).astype("float32"))
FILTERS = np.array(GENERATOR.normal(size=(3, 2, 3, 3)).astype("float32"))
BACK = np.array(GENERATOR.normal(size=(2, 3, 3, 3)).astype("float32"))
LENGTHS = np.array([[1, 2, 3, 4], [4, 3, 2, 1]], dtype="int32").reshape(1, 2, 4)
OFFSETS, FACTORS = np.zeros((1, 18, 2, 2)), np.ones((1, 9, 2, 2))


@pytest.mark.parametrize(
    ("by_position", "by_name"),
    [
        (
            lambda: npx.convolution(IMAGES, FILTERS, None, (3, 3), (1, 1), (1, 1), (1, 1), 3, 1, 512, True),
            lambda: npx.convolution(IMAGES, FILTERS, kernel=(3, 3), pad=(1, 1), num_filter=3, no_bias=True),
        ),
        (
            lambda: npx.convolution(
                IMAGES,
                FILTERS,
                kernel=(3, 3),
                num_filter=3,
                cudnn_tune="off",
                cudnn_off=True,
                workspace=1,
                no_bias=True,
            ),
            lambda: npx.convolution(IMAGES, FILTERS, no_bias=True),
        ),
        (
            lambda: npx.deconvolution(
                IMAGES, BACK, None, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), None, 3, 1, 512, True, None, False, "NCHW"
            ),
            lambda: npx.deconvolution(IMAGES, BACK, stride=2, pad=1, adj=1, no_bias=True),
        ),
        (
            lambda: npx.pooling(IMAGES, (2, 2), (1, 1), (1, 1), "avg", "valid", False, True, None, False),
            lambda: npx.pooling(IMAGES, (2, 2), pad=(1, 1), pool_type="avg", count_include_pad=False, cudnn_off=True),
        ),
        (
            lambda: npx.deformable_convolution(
                IMAGES, OFFSETS, FILTERS, None, (3, 3), (1, 1), (1, 1), (0, 0), 3, 1, 1, 512, True, "NCHW"
            ),
            lambda: npx.convolution(IMAGES, FILTERS, no_bias=True),
        ),
        (
            lambda: npx.modulated_deformable_convolution(
                IMAGES, OFFSETS, FACTORS, FILTERS, None, (3, 3), (1, 1), (1, 1), (0, 0), 3, 1, 1, 512, True, 64, "NCHW"
            ),
            lambda: npx.convolution(IMAGES, FILTERS, no_bias=True),
        ),
        (lambda: npx.dropout(IMAGES, 0.5, "training", None, True), lambda: IMAGES),
        (
            lambda: npx.softmax(IMAGES, LENGTHS, -1, 2.0, True),
            lambda: npx.softmax(IMAGES, length=LENGTHS, axis=-1, temperature=2.0, use_length=True),
        ),
        (
            lambda: npx.softmax(IMAGES, LENGTHS, use_length=True),
            lambda: npx.softmax(IMAGES, length=LENGTHS, use_length=True),
        ),
        # An integer is an axis, wherever it stands.
        (lambda: npx.softmax(IMAGES, None, 1), lambda: npx.softmax(IMAGES, axis=1)),
        (lambda: npx.softmax(IMAGES, 1), lambda: npx.softmax(IMAGES, axis=1)),
        (
            lambda: npx.softmax(IMAGES, -1, LENGTHS, None, True),
            lambda: npx.softmax(IMAGES, length=LENGTHS, use_length=True),
        ),
        (
            lambda: npx.log_softmax(IMAGES, -1, LENGTHS, 2.0, True),
            lambda: npx.log_softmax(IMAGES, length=LENGTHS, axis=-1, temperature=2.0, use_length=True),
        ),
    ],
)
def test_order_of_arguments(by_position, by_name):
    # Offsets of zero take the products of a deformed convolution in another order.
    onp.testing.assert_allclose(by_position().asnumpy(), by_name().asnumpy(), rtol=1e-5, atol=1e-6)


def test_an_axis_is_given_once():
    with pytest.raises(TypeError, match=r"softmax\(\) got multiple values for argument 'axis'"):
        npx.softmax(IMAGES, 1, axis=1)
    with pytest.raises(TypeError, match=r"softmax\(\) got multiple values for argument 'length'"):
        npx.softmax(IMAGES, LENGTHS, length=LENGTHS)


@pytest.mark.parametrize("name", ["relu", "sigmoid", "erf", "erfinv", "gamma", "gammaln", "digamma", "softsign"])
def test_the_operand_is_also_called_data(name):
    function, x = getattr(npx, name), np.array([0.25, 0.5])
    assert (function(data=x) == function(x)).all()
    with pytest.raises(TypeError, match="multiple values for argument 'data'"):
        function(x, data=x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'data'"):
        np.exp(data=x)


def test_other_layouts_of_deformed_convolutions_are_refused():
    with pytest.raises(ValueError, match="`layout` must be 'NCHW', found 'NHWC'"):
        npx.deformable_convolution(IMAGES, OFFSETS, FILTERS, kernel=3, num_filter=3, no_bias=True, layout="NHWC")


def test_ragged_softmax_takes_the_axis_at_both_places():
    r = mx.ragged.array([[1.0, 2.0], [3.0]])
    for y in (npx.softmax(r, -1), npx.softmax(r, None, -1), npx.softmax(r, axis=-1)):
        assert [row.tolist() for row in y] == [npx.softmax(row).tolist() for row in r]
