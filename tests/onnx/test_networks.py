"""Networks of the model zoo and of the examples as exported models."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
import onnx_oracle
from mxnet.gluon.model_zoo import text, vision

EXAMPLES = Path(__file__).parents[2] / "examples"
# Relative to the largest result: rounding of some hundred layers of single precision.
TOLERANCE = 2e-5
# One of each architecture; the others differ in the number of layers. Sizes of images are the smallest that fit.
NETWORKS = {
    "alexnet": 64,
    "densenet121": 224,
    "inceptionv3": 299,
    "mobilenet0.25": 32,
    "mobilenetv2_0.25": 32,
    "mobilenetv3_small": 32,
    "resnet18_v1": 32,
    "resnet18_v2": 32,
    "resnet50_v1": 32,
    "squeezenet1.1": 64,
    "vgg11_bn": 32,
}
LARGE = ("alexnet", "densenet121", "inceptionv3", "resnet18_v2", "resnet50_v1", "vgg11_bn")


def images(count, size):
    return mx.np.array(np.random.default_rng(count).normal(size=(count, 3, size, size)).astype("float32"))


def numbers(*shape, high=50):
    return mx.np.array(np.random.default_rng(len(shape)).integers(0, high, shape).astype("int32"))


def check(net, path, *calls):
    """Compare the model with the network for several arguments."""
    for arrays in calls:
        wanted = net(*arrays)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        found, who = onnx_oracle.run(path, arrays)
        assert who == "onnxruntime"
        for y, want in zip(found, wanted, strict=True):
            scale = float(abs(want).max())
            np.testing.assert_allclose(y, want.asnumpy(), TOLERANCE, TOLERANCE * scale)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in NETWORKS]
)
def test_image_network_computes_the_same_for_any_number_of_images(name, tmp_path):
    mx.random.seed(1)
    net = vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(images(1, NETWORKS[name]))
    onnx_oracle.export(net, tmp_path / "one.onnx")
    check(net, tmp_path / "one.onnx", [images(1, NETWORKS[name])])
    model = onnx_oracle.export(net, tmp_path / "any.onnx", dynamic=True)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    parameters = {x.name for x in model.graph.initializer}
    # The first normalisation of this architecture has no factor: it computes with 1.
    assert set(net.collect_params()) - parameters <= {"features.0.gamma"}
    check(net, tmp_path / "any.onnx", [images(1, NETWORKS[name])], [images(3, NETWORKS[name])])


def test_decoder_computes_the_same_for_texts_of_any_length(tmp_path):
    net = text.GPT2(50, 32, 2, 4, 300)
    net.initialize()
    net.hybridize()
    net(numbers(2, 5))
    model = onnx_oracle.export(net, tmp_path / "gpt2.onnx", dynamic=True, dynamic_input_shapes=[("texts", "letters")])
    dims = model.graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["texts", "letters", 50]
    check(net, tmp_path / "gpt2.onnx", [numbers(2, 5)], [numbers(1, 8)], [numbers(3, 1)])


def test_encoder_with_padding_computes_the_same(tmp_path):
    net = text.BERT(50, 32, 64, 2, 4, 300)
    net.initialize()
    net.hybridize()
    example = [numbers(2, 5), numbers(2, 5, high=2), mx.np.array([3, 5], dtype="int32")]
    more = [numbers(3, 7), numbers(3, 7, high=2), mx.np.array([3, 5, 7], dtype="int32")]
    net(*example)
    free = [("n", "t"), ("n", "t"), ("n",)]
    onnx_oracle.export(net, tmp_path / "bert.onnx", dynamic=True, dynamic_input_shapes=free)
    check(net, tmp_path / "bert.onnx", example, more)


def test_encoder_and_decoder_with_relative_positions_compute_the_same(tmp_path):
    net = text.T5(50, 32, 8, 64, 2, 4, 8, 16)
    net.initialize()
    net.hybridize()
    net(numbers(2, 5), numbers(2, 6))
    onnx_oracle.export(net, tmp_path / "t5.onnx", dynamic=True, dynamic_input_shapes=[("n", "t"), ("n", "s")])
    check(net, tmp_path / "t5.onnx", [numbers(2, 5), numbers(2, 6)], [numbers(3, 7), numbers(3, 4)])


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def found(name):
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return found


def test_letters_of_the_lstm_example(example, tmp_path):
    net = example("char_lstm").CharLSTM(20, 8, 2, 0.0)
    net.initialize()
    net.hybridize()
    letters, states = numbers(2, 5, high=20), net.lstm.begin_state(2)
    want, new = net(letters, states)
    model = onnx_oracle.export(net, tmp_path / "lstm.onnx")
    assert [x.name for x in model.graph.input] == ["letters", "states_0", "states_1"]
    assert [x.name for x in model.graph.output] == ["output_0", "output_1_0", "output_1_1"]
    found, _ = onnx_oracle.run(tmp_path / "lstm.onnx", [letters, *states])
    for y, ours in zip(found, [want, *new], strict=True):
        np.testing.assert_allclose(y, ours.asnumpy(), TOLERANCE, TOLERANCE)


def test_lengths_of_the_tagging_example(example, tmp_path):
    net = example("tagging").Tagger(6)
    net.initialize()
    net.hybridize()
    example = [numbers(2, 5, high=20), mx.np.array([5, 2], dtype="int32")]
    net(*example)
    onnx_oracle.export(net, tmp_path / "tags.onnx", dynamic=True)
    check(net, tmp_path / "tags.onnx", example, [numbers(3, 5, high=20), mx.np.array([1, 5, 4], dtype="int32")])
