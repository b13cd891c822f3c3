"""Networks that are exported, and imported again."""

import numpy as np
import pytest

import mxnet as mx
from mxnet import np as mnp
from mxnet.gluon import nn, rnn
from mxnet.gluon.model_zoo import text, vision


def data(*shape):
    return mnp.array(np.random.default_rng(sum(shape)).normal(size=shape).astype("float32"))


def convolutional():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(2), nn.Dense(5))
    return net, [data(2, 3, 8, 8)], [data(5, 3, 8, 8)]


def mobile():
    return vision.mobilenet_v2_0_25(classes=3), [data(1, 3, 32, 32)], [data(2, 3, 32, 32)]


def recurrent():
    net = nn.HybridSequential()
    net.add(rnn.LSTM(5, 2, layout="NTC", bidirectional=True), rnn.GRU(3, layout="NTC"), nn.Dense(2, flatten=False))
    return net, [data(2, 6, 4)], [data(3, 6, 4)]


def decoder():
    tokens = mnp.array([[1, 2, 3, 4], [5, 6, 7, 8]], dtype="int32")
    return text.GPT2(20, 16, 2, 4, 300), [tokens], [tokens[:1]]


@pytest.mark.parametrize("build", [convolutional, mobile, recurrent, decoder])
def test_imported_network_computes_the_same(build, tmp_path):
    net, arrays, others = build()
    mx.random.seed(1)
    net.initialize(mx.init.Normal(0.3))
    net.hybridize()
    net(*arrays)
    path = tmp_path / "net.onnx"
    mx.onnx.export_model(net, onnx_file_path=path, dynamic=True)
    again = mx.onnx.import_to_gluon(path)
    for given in (arrays, others):
        want = net(*given)
        np.testing.assert_allclose(again(*given).asnumpy(), want.asnumpy(), 1e-4, 1e-5)
    again.hybridize()
    np.testing.assert_allclose(again(*arrays).asnumpy(), net(*arrays).asnumpy(), 1e-4, 1e-5)
