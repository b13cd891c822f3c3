"""Gradients in one and two bits: the arithmetic of MXNet, element by element, and the bits that are sent."""

import numpy as onp
import pytest

import mxnet as mx
from compression_oracle import quantized
from mxnet import np
from mxnet.error import UnsupportedError
from mxnet.kvstore._compression import Compression

CASES = [("1bit", 0.0), ("1bit", -0.5), ("1bit", 2.0), ("2bit", 0.5), ("2bit", 0.001), ("2bit", 3.0)]


@pytest.mark.parametrize(("kind", "threshold"), CASES)
@pytest.mark.parametrize("shape", [(), (1,), (4,), (13, 7)])
def test_values_and_residuals_are_those_of_a_loop(kind, threshold, shape):
    compression = Compression({"type": kind, "threshold": threshold})
    rng = onp.random.default_rng(1)
    residual = onp.zeros(shape, "float32")
    for _ in range(5):
        gradient = rng.standard_normal(shape).astype("float32")
        expected = quantized(kind, threshold, gradient, residual)
        found = compression.quantize("key", np.array(gradient))
        assert found.asnumpy().tobytes() == expected.tobytes()
        codes = compression.pack(found)
        assert codes.size == compression.num_bytes(found.size)
        assert compression.unpack(codes, found.size).tobytes() == expected.tobytes()


def test_the_bits_are_those_of_mxnet():
    # Two bits for each element, the first in the highest bits: 11 positive, 10 negative, 00 zero.
    two = Compression({"type": "2bit"})
    assert two.threshold == 0.5
    values = two.quantize(0, np.array([0.5, -0.5, 0.0, 0.7, -9.0]))
    assert two.pack(values).tolist() == [0b11100011, 0b10000000]
    # One bit for each element: 1 above the threshold.
    one = Compression({"type": "1bit", "threshold": 0.0})
    values = one.quantize(0, np.array([1.0, -1.0, 0.0, 3.0, 2.0, -5.0, 0.1, 0.2, 4.0]))
    assert one.pack(values).tolist() == [0b10011011, 0b10000000]
    assert one._residuals[0].asnumpy()[[0, 3, 5]].tolist() == [0, 2, -4]


def test_what_is_lost_is_sent_later():
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": 1.0})
    store.init(0, np.zeros(3))
    total = np.zeros(3)
    gradient, out = np.array([0.25, -0.5, 0.0]), np.zeros(3)
    for _ in range(8):
        store.pushpull(0, gradient, out=out)
        total += out
    assert total.asnumpy().tolist() == [2, -4, 0]


def test_a_store_compresses_the_values_of_each_device():
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("w", np.zeros(2))
    out = np.zeros(2)
    parts = [np.array([0.3, 0.6]), np.array([0.3, 5.0], device=mx.cpu(1))]
    store.pushpull("w", parts, out=out)
    assert out.asnumpy().tolist() == [0, 1]
    store.pushpull("w", parts, out=out)
    assert out.asnumpy().tolist() == [1, 1]
    # A single value is not sent.
    store.pushpull("w", np.array([0.3, 0.6]), out=out)
    assert out.asnumpy().tolist() == [onp.float32(0.3), onp.float32(0.6)]


@pytest.mark.parametrize(
    ("params", "error", "said"),
    [
        ({}, ValueError, "'1bit' or '2bit', found None"),
        ({"type": "3bit"}, ValueError, "found '3bit'"),
        ({"type": "2bit", "threshold": 0}, ValueError, "found 0.0"),
        ({"type": "2bit", "threshold": float("nan")}, ValueError, "found nan"),
        ({"type": "1bit", "treshold": 1}, ValueError, "treshold"),
        ("2bit", TypeError, "found str"),
    ],
)
def test_wrong_parameters_are_refused(params, error, said):
    with pytest.raises(error, match=said):
        mx.kv.create("device").set_gradient_compression(params)


def test_only_float32_is_compressed():
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit"})
    store.init(0, np.zeros(3, dtype="float64"))
    with pytest.raises(UnsupportedError, match="key 0 has dtype float64"):
        store.push(0, np.zeros(3, dtype="float64"))
    store.init(1, np.zeros((3, 1)))
    value = mx.sparse.row_sparse_array(([[0.25]], [1]), shape=(3, 1))
    store.push(1, value)
    out = np.zeros((3, 1))
    store.pull(1, out=out)
    assert out.asnumpy().tolist() == [[0], [0.25], [0]]
