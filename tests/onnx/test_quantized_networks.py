"""Networks of 8-bit integers as models: ONNX Runtime gives our results."""

import numpy
import pytest

import onnx_oracle
from mxnet import np, npx, random
from mxnet import onnx as mx_onnx
from mxnet.contrib.quantization import quantize_net
from mxnet.gluon import nn


class Residual(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2D(8, 3, padding=1, use_bias=False), nn.BatchNorm()
        self.second = nn.Conv2D(8, 3, padding=1, groups=2, use_bias=False)
        self.last = nn.BatchNorm()

    def forward(self, x):
        y = self.norm(self.first(x)).clip(0, None)
        return np.maximum(x + self.last(self.second(y)), 0)


@pytest.fixture(scope="module")
def network():
    random.seed(3)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, activation="relu"), nn.MaxPool2D(), Residual(), nn.AvgPool2D(), nn.Dense(5))
    net.initialize()
    images = np.random.normal(0, 1, (4, 3, 18, 18))
    net(images)
    return net, images


@pytest.mark.parametrize("dtype", ["int8", "uint8", "auto"])
@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
def test_calibrated_networks_give_their_results(network, dtype, granularity, tmp_path):
    net, images = network
    options = {"quantized_dtype": dtype, "quantize_granularity": granularity}
    small = quantize_net(net, calib_data=[images], calib_mode="naive", **options)
    small.hybridize()
    want = small(images).asnumpy()
    for dynamic in (False, True):
        path = tmp_path / f"{dynamic}.onnx"
        onnx_oracle.export(small, path, dynamic=dynamic)
        for x in [images, images[:1]] if dynamic else [images]:
            [found], by = onnx_oracle.run(path, [x])
            assert by == "onnxruntime"
            # The sums are exact; a level may differ where the factors are fused.
            numpy.testing.assert_allclose(found, want[: len(x)], 0, 0.02 * numpy.abs(want).max())
            assert (found == want[: len(x)]).mean() > 0.9
    again = mx_onnx.import_to_gluon(tmp_path / "False.onnx")
    numpy.testing.assert_allclose(again(images).asnumpy(), want, 0, 0.02 * numpy.abs(want).max())


def test_networks_that_find_ranges_themselves(network, tmp_path):
    net, images = network
    small = quantize_net(net, data_shapes=[images.shape])
    small.hybridize()
    want = small(images).asnumpy()
    onnx_oracle.export(small, tmp_path / "net.onnx")
    [found], _ = onnx_oracle.run(tmp_path / "net.onnx", [images])
    numpy.testing.assert_allclose(found, want, 0, 0.03 * numpy.abs(want).max())


def test_levels_of_nan_are_the_lowest(tmp_path):
    def levels(x):
        return npx.contrib_quantize_v2(x, "int8", -1.0, 1.0)[0]

    x = np.array([numpy.nan, numpy.inf, -numpy.inf, 0.5, -2.0])
    net, [want] = onnx_oracle.traced(levels, [x])
    onnx_oracle.export(net, tmp_path / "net.onnx")
    [found], _ = onnx_oracle.run(tmp_path / "net.onnx", [x])
    numpy.testing.assert_array_equal(found, want.asnumpy())
