"""Networks that are exported and imported again compute what they computed, and train as they trained."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.gluon import nn, rnn

NETWORKS = {
    "perceptron": (lambda: [nn.Dense(8, activation="relu"), nn.LayerNorm(), nn.Dense(3)], (4, 5)),
    "convolutions": (
        lambda: [nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(), nn.Dense(3)],
        (2, 3, 8, 8),
    ),
    "recurrent": (lambda: [rnn.LSTM(6, 2, bidirectional=True), nn.Dense(3, flatten=False)], (5, 2, 4)),
    "residual": (lambda: [gluon.model_zoo.vision.resnet18_v1(classes=5)], (1, 3, 32, 32)),
}


def network(name):
    make, shape = NETWORKS[name]
    mx.random.seed(3)
    net = nn.HybridSequential()
    net.add(*make())
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = np.random.normal(size=shape)
    net(x)
    return net, x


@pytest.mark.parametrize("name", list(NETWORKS))
def test_an_exported_network_is_imported_with_its_parameters(name, tmp_path):
    net, x = network(name)
    mx.onnx.export_model(net, onnx_file_path=tmp_path / "net.onnx")
    again = mx.onnx.import_to_gluon(tmp_path / "net.onnx")
    expected = net(x).asnumpy()
    # Products may add in another order: some units in the last place of the largest element.
    bound = 64 * numpy.finfo("float32").eps * numpy.abs(expected).max()
    numpy.testing.assert_allclose(again(x).asnumpy(), expected, rtol=0, atol=bound)
    if name != "recurrent":  # whose parameters are stored in the order of ONNX
        own = {key: p.data().asnumpy() for key, p in net.collect_params().items()}
        found = again.collect_params()
        for key, array in own.items():
            numpy.testing.assert_array_equal(found[key].data().asnumpy(), array)


@pytest.mark.parametrize("name", ["perceptron", "convolutions"])
def test_an_imported_network_has_the_gradients_of_the_exported_one(name, tmp_path):
    net, x = network(name)
    mx.onnx.export_model(net, onnx_file_path=tmp_path / "net.onnx")
    again = mx.onnx.import_to_gluon(tmp_path / "net.onnx")
    found = []
    for block in (net, again):
        with autograd.record():
            loss = (block(x) ** 2).sum()
        loss.backward()
        found.append({key: p.grad().asnumpy() for key, p in block.collect_params().items() if p.grad_req != "null"})
    assert set(found[0]) == set(found[1])
    for key, gradient in found[0].items():
        bound = 256 * numpy.finfo("float32").eps * max(numpy.abs(gradient).max(), 1)
        numpy.testing.assert_allclose(found[1][key], gradient, rtol=0, atol=bound)
