"""Networks of 8-bit integers beside the networks of floats that they come from."""

import logging

import numpy as onp
import pytest

import mxnet as mx
from mxnet import demo, gluon, np
from mxnet.contrib.quantization import CalibrationCollector, quantize_net
from mxnet.gluon import nn
from mxnet.gluon.data.vision import Digits

RNG = onp.random.default_rng(11)


def images(n, *shape):
    return np.array(RNG.normal(size=(n, *shape)).astype("float32"))


def network(*layers, shape=(3, 8, 8)):
    net = nn.HybridSequential()
    net.add(*layers)
    net.initialize(mx.init.Xavier())
    net(np.zeros((2, *shape)))
    for name, parameter in net.collect_params().items():
        if name.endswith(("gamma", "running_var")):
            parameter.set_data(np.array(RNG.uniform(0.5, 1.5, parameter.shape)))
        elif name.endswith(("beta", "running_mean", "bias")):
            parameter.set_data(np.array(RNG.uniform(-0.3, 0.3, parameter.shape)))
    return net


def small(**rest):
    return network(
        nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(),
        nn.Conv2D(6, 3, activation="relu"), nn.Flatten(), nn.Dense(5), **rest,
    )  # fmt: skip


def operators(net):
    """Operators of a quantised network, in order."""
    return [node["op"] for node in mx.graph.TracedGraph(net._graph._text)._document["nodes"]]


def cosine(a, b):
    a, b = a.asnumpy().ravel().astype("float64"), b.asnumpy().ravel().astype("float64")
    return a @ b / onp.sqrt((a @ a) * (b @ b))


@pytest.mark.parametrize("mode", ["none", "naive", "entropy"])
@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
@pytest.mark.parametrize("dtype", ["auto", "int8"])
def test_it_predicts_what_the_network_predicts(mode, granularity, dtype):
    net, x = small(), images(64, 3, 8, 8)
    quantized = quantize_net(net, dtype, quantize_granularity=granularity, calib_data=[x], calib_mode=mode)
    assert cosine(quantized(x), net(x)) > 0.998
    kinds = operators(quantized)
    assert [kind for kind in kinds if kind.startswith("int8")] == [
        "int8_convolution", "int8_pooling", "int8_convolution", "int8_fully_connected",
    ]  # fmt: skip
    assert not {"convolution", "fully_connected", "batch_norm_inference", "relu", "pooling"} & set(kinds)
    if mode != "none":
        assert kinds.count("quantize_int8") == 1
        assert len(kinds) == 5


def test_between_layers_are_integers_of_the_sign_of_their_ranges():
    net, x = small(), images(16, 3, 8, 8)
    found = {}
    for dtype in ("auto", "int8", "uint8"):
        quantized = quantize_net(net, dtype, calib_data=[x], calib_mode="naive")
        nodes = mx.graph.TracedGraph(quantized._graph._text).nodes
        found[dtype] = [node.outputs[0].dtype for node in nodes]
    assert found["auto"] == ["int8", "uint8", "uint8", "uint8", "float32"]
    assert found["int8"] == ["int8"] * 4 + ["float32"]
    assert found["uint8"] == ["uint8"] * 4 + ["float32"]


def test_weights_are_int8_and_have_a_range_for_each_filter():
    net = network(nn.Conv2D(4, 1, use_bias=False), shape=(3, 2, 2))
    weight = net[0].weight.data().asnumpy()
    weight[1] *= 100
    net[0].weight.set_data(np.array(weight))
    largest = abs(weight).reshape(4, -1).max(axis=1)
    for granularity in ("tensor-wise", "channel-wise"):
        quantized = quantize_net(net, quantize_granularity=granularity, data_shapes=[(1, 3, 2, 2)])
        parameters = quantized.collect_params()
        got, scale = parameters["0.weight_quantize"].data(), parameters["0.scale"].data().asnumpy()
        assert str(got.dtype) == "int8"
        want = largest / 127 if granularity == "channel-wise" else onp.full(4, largest.max() / 127)
        onp.testing.assert_allclose(scale, want, rtol=1e-6)
        onp.testing.assert_allclose(got.asnumpy() * scale[:, None, None, None], weight, atol=scale.max() / 2 * 1.0001)
    assert all(parameter.grad_req == "null" for parameter in parameters.values())


class Residual(gluon.HybridBlock):
    """A block with an addition, of which the shortcut may have a layer."""

    def __init__(self, channels, with_layer):
        super().__init__()
        self.first, self.second = (
            nn.Conv2D(channels, 3, padding=1, activation="relu"),
            nn.Conv2D(channels, 3, padding=1),
        )
        self.norm = nn.BatchNorm()
        self.shortcut = nn.Conv2D(channels, 1) if with_layer else nn.Identity()

    def forward(self, x):
        return mx.npx.relu(self.norm(self.second(self.first(x))) + self.shortcut(x))


@pytest.mark.parametrize("mode", ["none", "naive"])
def test_additions_and_relu_join_the_layer_before(mode):
    net = network(
        nn.Conv2D(4, 3, activation="relu"), Residual(4, False), Residual(6, True), nn.GlobalAvgPool2D(), nn.Dense(3)
    )
    x = images(16, 3, 8, 8)
    quantized = quantize_net(net, calib_data=[x], calib_mode=mode)
    assert not {"add", "relu", "convolution", "batch_norm_inference"} & set(operators(quantized))
    assert operators(quantized).count("int8_convolution") == 6
    assert cosine(quantized(x), net(x)) > 0.998


def test_results_of_layers_that_others_read_stay_floats():
    class Two(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.conv, self.dense = nn.Conv2D(4, 3, activation="relu"), nn.Dense(3)

        def forward(self, x):
            y = self.conv(x)
            return {"inner": y, "sum": (np.tanh(y).sum(), self.dense(y))}

    net, x = Two(), images(4, 2, 6, 6)
    net.initialize(mx.init.Xavier())
    want = net(x)
    quantized = quantize_net(net, calib_data=[x], calib_mode="naive")
    got = quantized(x)
    assert set(got) == {"inner", "sum"}
    assert str(got["inner"].dtype) == "float32"
    assert cosine(got["inner"], want["inner"]) > 0.999
    assert cosine(got["sum"][1], want["sum"][1]) > 0.998


def test_layers_of_one_and_three_axes_groups_and_channels_last():
    cases = [
        (network(nn.Conv1D(6, 3, groups=2), nn.MaxPool1D(), nn.Dense(3), shape=(4, 9)), (4, 9)),
        (network(nn.Conv3D(4, 2), nn.AvgPool3D(), nn.Dense(3), shape=(2, 5, 5, 5)), (2, 5, 5, 5)),
        (
            network(nn.Conv2D(8, 3, groups=8, in_channels=8), nn.BatchNorm(), nn.Conv2D(4, 1), shape=(8, 6, 6)),
            (8, 6, 6),
        ),
        (
            network(
                nn.Conv2D(8, 3, layout="NHWC"), nn.BatchNorm(axis=3), nn.MaxPool2D(layout="NHWC"), nn.Dense(3),
                shape=(6, 6, 3),
            ),
            (6, 6, 3),
        ),
        (network(nn.Dense(6, flatten=False, activation="relu"), nn.Dense(2, flatten=False), shape=(4, 5)), (4, 5)),
    ]  # fmt: skip
    for net, shape in cases:
        x = images(32, *shape)
        quantized = quantize_net(net, calib_data=[x], calib_mode="naive", quantize_granularity="channel-wise")
        assert cosine(quantized(x), net(x)) > 0.998
        assert not {"convolution", "fully_connected", "batch_norm_inference", "pooling"} & set(operators(quantized))


def test_excluded_layers_and_operators_stay_floats():
    net, x = small(), images(8, 3, 8, 8)

    def kinds(**rest):
        return operators(quantize_net(net, calib_data=[x], calib_mode="naive", **rest))

    assert "convolution" in kinds(exclude_layers=["0"])
    assert kinds(exclude_layers=["0"]).count("int8_convolution") == 1
    assert "fully_connected" in kinds(exclude_layers_match=["6"])
    assert kinds(exclude_operators=["Convolution"]).count("convolution") == 2
    assert "int8_fully_connected" in kinds(exclude_operators=["_npx_convolution"])
    assert "pooling" in kinds(exclude_operators=["pooling"])
    assert "pooling" in kinds(exclude_layers=["pooling0"])
    # All of them: the network of floats.
    everything = quantize_net(net, calib_data=[x], exclude_operators=["convolution", "fully_connected", "pooling"])
    assert (everything(x) == net(x)).all()


def test_smart_pools_integers_only_if_they_are_there():
    net, x = (
        network(nn.MaxPool2D(), nn.Conv2D(4, 3), nn.MaxPool2D(), nn.Dense(2), shape=(3, 12, 12)),
        images(8, 3, 12, 12),
    )
    found = {}
    for mode in ("full", "smart"):
        quantized = quantize_net(net, quantize_mode=mode, calib_data=[x], calib_mode="naive")
        found[mode] = [kind for kind in operators(quantized) if "pooling" in kind]
        assert cosine(quantized(x), net(x)) > 0.998
    assert found == {"full": ["int8_pooling"] * 2, "smart": ["pooling", "int8_pooling"]}


def test_it_is_hybridized_exported_and_read_for_any_number_of_images(tmp_path):
    net, x = small(), images(16, 3, 8, 8)
    quantized = quantize_net(net, calib_data=[x], calib_mode="naive")
    want = quantized(x)
    quantized.hybridize()
    assert (quantized(x) == want).all()
    assert (quantized(x[:3]) == want[:3]).all()
    files = quantized.export(tmp_path / "net")
    imported = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    assert (imported(x[:5]) == want[:5]).all()
    assert (mx.graph.load(*files)(x[:7]) == want[:7]).all()
    assert {str(parameter.dtype) for parameter in imported.collect_params().values()} == {"int8", "float32"}


def test_labels_and_other_arrays_of_batches_are_left_out():
    net, x = small(), images(20, 3, 8, 8)
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x, np.arange(20)), 8)
    quantized = quantize_net(net, calib_data=loader, calib_mode="naive")
    assert cosine(quantized(x), net(x)) > 0.998


def test_the_number_of_batches_is_bounded():
    class Counting(CalibrationCollector):
        def __init__(self):
            super().__init__()
            self.seen = []

        def collect(self, name, op_name, arr):
            self.seen.append((name, op_name, arr.shape))
            self.min_max_dict[name] = (-4.0, 4.0)

    net, x = small(), images(8, 3, 8, 8)
    collector = Counting()
    quantized = quantize_net(
        net, calib_data=iter([x, x[:4], x]), calib_mode="custom", num_calib_batches=2, LayerOutputCollector=collector
    )
    assert collector.include_layers == ["data", "0_output", "4_output"]
    assert [entry[:2] for entry in collector.seen[:3]] == [("data", ""), ("0_output", "relu"), ("4_output", "relu")]
    assert [entry[2][0] for entry in collector.seen] == [8] * 3 + [4] * 3
    levels = quantized.collect_params()["data.levels"].data().item()
    assert levels == pytest.approx(127 / 4)


def test_shapes_are_enough_without_calibration():
    net, x = small(), images(8, 3, 8, 8)
    for shapes in ([(1, 3, 8, 8)], [mx.io.DataDesc("data", (2, 3, 8, 8))]):
        assert cosine(quantize_net(net, data_shapes=shapes)(x), net(x)) > 0.998


def test_a_network_without_layers_and_values_of_zero():
    net = network(nn.Activation("relu"))
    x = images(2, 3, 8, 8)
    assert (quantize_net(net, calib_data=[x], calib_mode="naive")(x) == net(x)).all()
    net = small()
    net[0].weight.set_data(np.zeros((8, 3, 3, 3)))
    for mode in ("none", "naive"):
        quantized = quantize_net(net, calib_data=[np.zeros((2, 3, 8, 8))], calib_mode=mode)
        assert np.isfinite(quantized(x)).all()


@pytest.mark.parametrize(
    ("rest", "error", "text"),
    [
        ({"quantized_dtype": "int4"}, ValueError, "one of 'auto', 'int8', 'uint8', found 'int4'"),
        ({"quantize_mode": "half"}, ValueError, "'full', 'smart', found 'half'"),
        ({"quantize_granularity": "row"}, ValueError, "found 'row'"),
        ({"calib_mode": "kl"}, ValueError, "found 'kl'"),
        ({"calib_mode": "naive"}, ValueError, "needs `calib_data`"),
        ({"calib_mode": "custom", "calib_data": [np.ones(1)]}, ValueError, "needs `LayerOutputCollector`"),
        ({"calib_mode": "custom", "calib_data": [1], "LayerOutputCollector": 3}, TypeError, "found 'int'"),
        ({"data_shapes": [(1, 3, 8, 8)], "exclude_layers": ["9"]}, ValueError, "'9'; the layers are '0', 'pooling0'"),
        ({"data_shapes": [(1, 3, 8, 8)], "exclude_operators": ["tanh"]}, ValueError, "has 'tanh'"),
        ({"data_shapes": [(1, 3, 8, 8)], "num_calib_batches": 0}, ValueError, "is 0, must be at least 1"),
        ({"data_shapes": [(1, 3, 8, 8)], "device": mx.gpu(0)}, mx.error.UnsupportedError, "pass `device=mx.cpu"),
        ({"calib_data": []}, ValueError, "has no batch"),
        ({}, ValueError, "give `data_shapes`, or `calib_data`"),
        ({"data_shapes": [(1, 4, 8, 8)]}, ValueError, "channels"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(rest, error, text):
    with pytest.raises(error, match=text):
        quantize_net(small(), **rest)


def test_values_without_a_range_are_named():
    class Nothing(CalibrationCollector):
        def collect(self, name, op_name, arr):
            pass

    with pytest.raises(ValueError, match="3 values have no range after 1 batches, the first is 'data'"):
        quantize_net(small(), calib_data=[images(2, 3, 8, 8)], calib_mode="custom", LayerOutputCollector=Nothing())


def test_the_logger_is_told_what_happens(caplog):
    caplog.set_level(logging.DEBUG)
    x = images(4, 3, 8, 8)
    logger = logging.getLogger("quantization")
    quantize_net(small(), calib_data=[[x, np.ones(4)]], calib_mode="entropy", exclude_layers=["6"], logger=logger)
    text = caplog.text
    assert "layers that stay as they are: 6" in text
    assert "does not take 2 arrays" in text
    assert "0_output: from 0" in text
    assert "ranges of 2 values from 1 batches" in text


def test_digits_are_recognized_as_well():
    mx.random.seed(2)
    net = demo.build()
    net.initialize(mx.init.Xavier())
    net.hybridize()

    def data(train):
        pixels = onp.stack([image for image, _ in Digits(train=train)]).transpose(0, 3, 1, 2)
        return np.array(pixels.astype("float32") / 16), np.array(
            [label for _, label in Digits(train=train)], dtype="int32"
        )

    x, y = data(True)
    loss, trainer = (
        gluon.loss.SoftmaxCrossEntropyLoss(),
        gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3}),
    )
    for _ in range(2):
        for first in range(0, len(x), 64):
            with mx.autograd.record():
                batch_loss = loss(net(x[first : first + 64]), y[first : first + 64])
            batch_loss.backward()
            trainer.step(batch_loss.shape[0])
    images_, labels = data(False)

    def accuracy(of):
        return float((of(images_).argmax(axis=1) == labels).astype("float32").mean())

    exact = accuracy(net)
    assert exact > 0.9
    for mode in ("naive", "entropy"):
        quantized = quantize_net(net, calib_data=[x[:256]], calib_mode=mode)
        assert accuracy(quantized) > exact - 0.01


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenet0_25"])
def test_networks_of_the_model_zoo_keep_their_direction(name):
    mx.random.seed(3)
    net = getattr(gluon.model_zoo.vision, name)(classes=50)
    net.initialize(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))
    x = images(2, 3, 64, 64)
    quantized = quantize_net(net, calib_data=[x], calib_mode="naive", quantize_granularity="channel-wise")
    assert cosine(quantized(x), net(x)) > 0.99
    assert not {"convolution", "fully_connected", "batch_norm_inference"} & set(operators(quantized))
