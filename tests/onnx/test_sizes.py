"""Models for any sizes: numbers that are computed of the lengths of axes."""

import numpy as np
import pytest

import mxnet as mx
import onnx_oracle
from mxnet import error, npx
from mxnet import np as mnp
from mxnet.gluon import nn
from mxnet.onnx._exporter.sizes import Lengths, _fit


def data(*shape):
    return mnp.array(np.random.default_rng(sum(shape)).normal(size=shape).astype("float32"))


def check(function, first, others, tmp_path, **options):
    """Export for the first arguments and compare for all."""
    net, _ = onnx_oracle.traced(function, first)
    model = onnx_oracle.export(net, tmp_path / "any.onnx", dynamic=True, **options)
    for arrays in (first, *others):
        want = function(*arrays)
        found, _ = onnx_oracle.run(tmp_path / "any.onnx", arrays)
        np.testing.assert_allclose(found[0], want.asnumpy(), 1e-5, 1e-5)
    return model


FUNCTIONS = {
    "reshape": lambda x: x.reshape(x.shape[0] * 2, -1),
    "flat": lambda x: x.reshape(-1),
    "heads": lambda x: x.reshape(x.shape[0], x.shape[1], 2, 2).transpose(0, 2, 1, 3),
    "slices": lambda x: x[1:, :-1, ::2] + x[:-1, 1:, 1::2],
    "flip": lambda x: x[::-1, ::-1],
    "last": lambda x: x[:, -1] + x[:, 0],
    "mean": lambda x: x.sum() / x.shape[0] + x.mean(axis=1),
    "deviation": lambda x: x.std(axis=(0, 1), ddof=1),
    "positions": lambda x: x + mnp.arange(x.shape[1])[:, None] * 2,
    "line": lambda x: mnp.linspace(0, 1, x.shape[0])[:, None, None] + x,
    "causal": lambda x: mnp.tril(mnp.matmul(x, x.transpose(0, 2, 1))),
    "eye": lambda x: mnp.matmul(x, x.transpose(0, 2, 1)) + mnp.eye(x.shape[1]),
    "concatenated": lambda x: mnp.concatenate([x, mnp.zeros_like(x), mnp.ones((1, *x.shape[1:]))]),
    "stack": lambda x: mnp.stack([x, x * 2], axis=1).reshape(-1, x.shape[2]),
    "repeat": lambda x: mnp.repeat(x, 2, axis=1) + mnp.tile(x, (1, 2, 1)),
    "pad": lambda x: mnp.pad(x, ((1, 0), (0, 2), (0, 0))),
    "roll": lambda x: mnp.roll(x, 1, axis=1),
    "broadcast": lambda x: mnp.broadcast_to(x[:1], x.shape) - x.mean(axis=0),
    "take": lambda x: mnp.take(x, mnp.array([0, 1, 1]), axis=1),
    "ends": lambda x: x[mnp.arange(x.shape[0]), x.shape[1] - 1],
    "one_hot": lambda x: npx.one_hot(mnp.argmax(x, axis=1), 4),
    "sort": lambda x: mnp.sort(x, axis=1),
    "assigned": lambda x: npx.index_update(x, mnp.array([[0, 1]]), x[0] * 0),
    "where": lambda x: mnp.where(x > 0, x, mnp.full(x.shape, 2.0)),
    "split": lambda x: mnp.split(x, 2, axis=2)[1] * x.shape[0] * x.shape[1],
    "einsum": lambda x: mnp.einsum("bij,bkj->bik", x, x),
    "cumsum": lambda x: mnp.cumsum(x, axis=0),
    "softmax": lambda x: npx.softmax(x, axis=0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_batch_and_steps(name, tmp_path):
    free = [(None, None, 4)]
    others = [[data(3, 2, 4)], [data(5, 7, 4)]]
    model = check(FUNCTIONS[name], [data(2, 3, 4)], others, tmp_path, dynamic_input_shapes=free)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["batch", "arrays_0_1", 4]


def test_write_in_place_to_a_range(tmp_path):
    def written(x):
        y = x * 1
        y[:, 0] = 5
        y[1:, :, 1:3] *= 2
        y += 1
        return y

    check(written, [data(2, 3, 4)], [[data(4, 3, 4)]], tmp_path)


def test_convolutions_over_images_of_any_size(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, strides=2), nn.MaxPool2D(2), nn.Conv2D(3, 3, padding=1), nn.GlobalAvgPool2D(), nn.Flatten())
    net.add(nn.Dense(2))
    net.initialize()
    net.hybridize()
    net(data(1, 3, 20, 24))
    free = [("n", 3, "h", "w")]
    onnx_oracle.export(net, tmp_path / "images.onnx", dynamic=True, dynamic_input_shapes=free)
    for shape in ((1, 3, 20, 24), (2, 3, 33, 18)):
        found, _ = onnx_oracle.run(tmp_path / "images.onnx", [data(*shape)])
        np.testing.assert_allclose(found[0], net(data(*shape)).asnumpy(), 1e-5, 1e-5)


def test_flattened_images_of_any_size_use_lengths_between_layers(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, strides=2), nn.MaxPool2D(2))
    net.add(nn.HybridLambda(lambda x: x.reshape(x.shape[0], x.shape[1], x.shape[2] * x.shape[3]).sum(axis=1)))
    net.initialize()
    net.hybridize()
    net(data(1, 3, 20, 24))
    onnx_oracle.export(net, tmp_path / "flat.onnx", dynamic=True, dynamic_input_shapes=[("n", 3, "h", "w")])
    for shape in ((1, 3, 20, 24), (2, 3, 37, 30), (2, 3, 24, 62)):
        found, _ = onnx_oracle.run(tmp_path / "flat.onnx", [data(*shape)])
        np.testing.assert_allclose(found[0], net(data(*shape)).asnumpy(), 1e-5, 1e-5)


def test_some_axes_stay_fixed(tmp_path):
    net, _ = onnx_oracle.traced(lambda x: x * 2, [data(2, 3, 4)])
    options = {"dynamic": True, "dynamic_input_shapes": [(2, None, 4)]}
    model = onnx_oracle.export(net, tmp_path / "some.onnx", **options)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == [2, "arrays_0_1", 4]


def test_attribute_that_depends_on_sizes_is_named(tmp_path):
    def pooled(x):
        return npx.pooling(x, (x.shape[2],), pool_type="avg")

    net, _ = onnx_oracle.traced(pooled, [data(2, 3, 8)])
    with pytest.raises(error.UnsupportedError, match=r"attribute `kernel_shape` of AveragePool depends on sizes"):
        onnx_oracle.export(net, tmp_path / "x.onnx", dynamic=True, dynamic_input_shapes=[(2, 3, None)])
    assert not (tmp_path / "x.onnx").exists()


def test_one_size_says_how_to_get_others(tmp_path):
    net = mx.gluon.rnn.LSTM(5, projection_size=3)
    net.initialize()
    net.hybridize()
    net(data(2, 3, 4))
    with pytest.raises(error.UnsupportedError, match=r"`dynamic=True`: the graph is for arrays of one size"):
        mx.onnx.export_model(net, onnx_file_path=tmp_path / "x.onnx", dynamic=True)


BACKWARDS = [
    (lambda x: x[::-1][1:][1:] * 2, (9, 4, 3, 2)),
    (lambda x: x[-2::-1] + 1, (9, 4, 3, 2)),
    (lambda x: x[3::-1] + 1, (9, 4)),
]


@pytest.mark.parametrize(("function", "lengths"), BACKWARDS)
def test_parts_that_run_backwards_may_be_empty(function, lengths, tmp_path):
    check(function, [data(7)], [[data(n)] for n in lengths], tmp_path)


def test_conditions_on_bounds_of_slices_are_in_the_metadata(tmp_path):
    net, _ = onnx_oracle.traced(lambda x: x[-3:, :4] * 2, [data(7, 5)])
    model = onnx_oracle.export(net, tmp_path / "x.onnx", dynamic=True, dynamic_input_shapes=[("rows", 5)])
    assert {x.key: x.value for x in model.metadata_props} == {"conditions": "rows >= 3"}


def test_conditions_on_lengths_are_in_the_metadata(tmp_path):
    def limited(x):
        return x * 2 if x.shape[0] * x.shape[1] > 100000 else x + 1

    net, _ = onnx_oracle.traced(limited, [data(2, 3)])
    free = [("rows", "columns")]
    model = onnx_oracle.export(net, tmp_path / "x.onnx", dynamic=True, dynamic_input_shapes=free)
    assert {x.key: x.value for x in model.metadata_props} == {"conditions": "rows * columns <= 100000"}


def test_expressions_are_exact():
    n, m = (2, 5, 7, 11, 13, 20), (3, 4, 9, 8, 21, 6)
    product = [x * y for x, y in zip(n, m, strict=True)]
    lengths = Lengths(3 * p - 2 * y + 1 for p, y in zip(product, m, strict=True))
    terms, divisor = _fit(lengths, [(0, 1), (0,), (1,)], [product, n, m])
    assert sorted(terms) == [(-2, (1,)), (1, ()), (3, (0, 1))]
    assert divisor == 1
    assert _fit([x // 2 for x in n], [(0,)], [n]) is None
    assert _fit([x // 2 for x in (2, 4, 8)], [(0,)], [(2, 4, 8)]) == ([(1, (0,))], 2)
    assert _fit((1, 4), [(0,)], [(2, 3)]) is None
