"""Names of parameters, which files of MXNet 2.0.0b1 have: they are as that version showed them."""

import hashlib

import pytest

from mxnet import np
from mxnet.gluon import nn, rnn
from mxnet.gluon.model_zoo import vision

# Number of names, and the first digits of the SHA-256 of the sorted names, one a line.
NETWORKS = {
    "alexnet": (16, "c1fadb6d4824b471"),
    "densenet121": (606, "b0ba53572c1b6e30"),
    "densenet201": (1006, "efe26199f89ee67a"),
    "inceptionv3": (472, "ef2bb7aafe7c75cd"),
    "mobilenet1.0": (137, "5062a14957991b3a"),
    "mobilenetv2_1.0": (266, "aed4ad06b87aacbc"),
    "resnet50_v1": (299, "ce65d465d134eabb"),
    "resnet34_v2": (178, "cd5132942edb1950"),
    "resnet152_v2": (769, "b310c3e2274da731"),
    "squeezenet1.0": (52, "dd956d7d0670852a"),
    "squeezenet1.1": (52, "378923ba3bf527f4"),
    "vgg11": (22, "4508fbd2f0d8cff7"),
    "vgg19_bn": (102, "3470e7735cdd6b54"),
}

CELL = ["i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias"]
LAYERS = [
    (lambda: nn.PReLU(), ["alpha"]),
    (lambda: nn.InstanceNorm(), ["gamma", "beta"]),
    (lambda: nn.Dense(3, activation="relu"), ["weight", "bias"]),
    (
        lambda: nn.DeformableConvolution(3, 3),
        ["offset_weight", "offset_bias", "deformable_conv_weight", "deformable_conv_bias"],
    ),
    (
        lambda: nn.ModulatedDeformableConvolution(3, 3),
        ["offset_weight", "offset_bias", "deformable_conv_weight", "deformable_conv_bias"],
    ),
    (lambda: rnn.LSTMCell(4), CELL),
    (lambda: rnn.LSTMPCell(4, 2), ["i2h_weight", "h2h_weight", "h2r_weight", "i2h_bias", "h2h_bias"]),
    (lambda: rnn.Conv2DLSTMCell((2, 8, 8), 3, 3, 3, 1), CELL),
    (lambda: rnn.ZoneoutCell(rnn.LSTMCell(4), 0.1), [f"base_cell.{name}" for name in CELL]),
    (lambda: rnn.VariationalDropoutCell(rnn.LSTMCell(4), 0.1), [f"base_cell.{name}" for name in CELL]),
    (
        lambda: rnn.BidirectionalCell(rnn.LSTMCell(4), rnn.LSTMCell(4)),
        [f"{side}_cell.{name}" for side in "lr" for name in CELL],
    ),
]


@pytest.mark.parametrize("name", NETWORKS)
def test_names_of_networks(name):
    names = sorted(vision.get_model(name).collect_params())
    assert (len(names), hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]) == NETWORKS[name]


@pytest.mark.parametrize(("make", "names"), LAYERS)
def test_names_of_layers(make, names):
    assert list(make().collect_params()) == names


@pytest.mark.parametrize("ending", [".params", "-0a1b2c3d.params", ".safetensors"])
def test_pretrained_files_of_older_programs_are_found(tmp_path, ending):
    net = vision.squeezenet1_1(classes=3)
    net.initialize()
    x = np.random.uniform(size=(1, 3, 32, 32))
    expected = net(x)
    net.save_parameters(tmp_path / f"squeezenet1.1{ending}")
    assert (vision.squeezenet1_1(classes=3, pretrained=True, root=tmp_path)(x) == expected).all()
