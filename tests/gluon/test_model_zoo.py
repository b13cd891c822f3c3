"""The model zoo: sizes of the published networks, small ones computed and trained, weights of local files."""

import copy
import math

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np
from mxnet.gluon.model_zoo import vision

# Numbers in all parameters of the published networks of 1000 classes, running statistics included.
COUNTS = {
    "alexnet": 61_100_840,
    "resnet18_v1": 11_699_112,
    "resnet34_v1": 21_814_696,
    "resnet50_v1": 25_629_032,
    "resnet101_v1": 44_695_144,
    "resnet152_v1": 60_404_072,
    "resnet18_v2": 11_695_796,
    "resnet34_v2": 21_811_380,
    "resnet50_v2": 25_595_060,
    "resnet101_v2": 44_639_412,
    "resnet152_v2": 60_329_140,
    "vgg11": 132_863_336,
    "vgg13": 133_047_848,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "vgg11_bn": 132_874_344,
    "vgg13_bn": 133_059_624,
    "vgg16_bn": 138_374_440,
    "vgg19_bn": 143_689_256,
    "densenet121": 8_062_504,
    "densenet161": 28_900_936,
    "densenet169": 14_307_880,
    "densenet201": 20_242_984,
    "squeezenet1.0": 1_248_424,
    "squeezenet1.1": 1_235_496,
    "inceptionv3": 23_869_000,
    "mobilenet1.0": 4_253_864,
    "mobilenet0.75": 2_601_976,
    "mobilenet0.5": 1_342_536,
    "mobilenet0.25": 475_544,
    "mobilenetv2_1.0": 3_539_136,
    "mobilenetv2_0.75": 2_653_864,
    "mobilenetv2_0.5": 1_983_104,
    "mobilenetv2_0.25": 1_526_856,
}
# The authors count what is trained.
TRAINED = {"mobilenetv3_large": 5_483_032, "mobilenetv3_small": 2_542_856}


@pytest.mark.parametrize("name", COUNTS)
def test_networks_have_the_published_number_of_parameters(name):
    net = vision.get_model(name)
    # An image without values: shapes are found and nothing is computed.
    net.setattr("grad_req", "null")
    net.initialize(mx.init.Zero())
    size = 299 if name == "inceptionv3" else 224
    assert net(mx._core.abstract_array((2, 3, size, size), "float32")).shape == (2, 1000)
    assert sum(math.prod(p.shape) for p in net.collect_params().values()) == COUNTS[name]


@pytest.mark.parametrize("name", TRAINED)
def test_networks_have_the_published_number_of_trained_parameters(name):
    net = vision.get_model(name)
    net.initialize(mx.init.Zero())
    assert net(mx._core.abstract_array((2, 3, 224, 224), "float32")).shape == (2, 1000)
    trained = [p for p in net.collect_params().values() if p.grad_req != "null"]
    assert sum(math.prod(p.shape) for p in trained) == TRAINED[name]


def trained_nets():
    for block in (vision.BasicBlockV1, vision.BottleneckV1):
        yield vision.ResNetV1(block, [1, 2], [8, 8, 16], classes=3, thumbnail=True)
        yield vision.ResNetV1(block, [1, 1], [8, 16, 16], classes=3)
    for block in (vision.BasicBlockV2, vision.BottleneckV2):
        yield vision.ResNetV2(block, [1, 2], [8, 8, 16], classes=3, thumbnail=True)
        yield vision.ResNetV2(block, [1, 1], [8, 16, 16], classes=3)
    yield vision.VGG([1, 2], [4, 8], classes=3)
    yield vision.VGG([1, 2], [4, 8], classes=3, batch_norm=True)
    yield vision.MobileNet(0.25, classes=3)


@pytest.mark.parametrize("net", list(trained_nets()), ids=lambda net: type(net).__name__)
def test_small_networks_learn_three_colours(net):
    mx.random.seed(3)
    net = copy.deepcopy(net)
    net.initialize(mx.init.Xavier())
    labels = onp.arange(12) % 3
    images = onp.random.RandomState(4).uniform(0, 0.1, (12, 3, 16, 16)).astype("float32")
    images[onp.arange(12), labels] += 1
    images, labels = np.array(images), np.array(labels)
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for _ in range(20):
        with mx.autograd.record():
            loss = loss_of(net(images), labels).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    # Every trained number takes part.
    for name, parameter in net.collect_params().items():
        if parameter.grad_req != "null":
            assert np.abs(parameter.grad()).sum() > 0, name


def test_residual_v1_is_its_formula():
    block = vision.BasicBlockV1(4, stride=2, downsample=True)
    block.initialize(mx.init.Normal(0.5))
    x = np.random.normal(size=(2, 3, 6, 6))
    expected = np.maximum(block.body(x) + block.downsample(x), 0)
    onp.testing.assert_array_equal(block(x), expected)
    assert expected.shape == (2, 4, 3, 3)


def test_residual_v2_is_its_formula():
    block = vision.BasicBlockV2(3, stride=1)
    block.initialize(mx.init.Normal(0.5))
    x = np.random.normal(size=(2, 3, 6, 6))
    inner = np.maximum(block.bn1(x), 0)
    inner = np.maximum(block.bn2(block.conv1(inner)), 0)
    onp.testing.assert_array_equal(block(x), block.conv2(inner) + x)


def test_weights_are_read_from_a_local_file(tmp_path):
    net = vision.alexnet(classes=7)
    net.initialize(mx.init.Normal(0.01))
    x = np.ones((1, 3, 63, 63))
    expected = net(x)
    net.save_parameters(str(tmp_path / "alexnet.safetensors"))
    for made in (
        vision.alexnet(pretrained=True, root=tmp_path, classes=7),
        vision.get_model("AlexNet", pretrained=True, root=str(tmp_path), classes=7),
    ):
        onp.testing.assert_array_equal(made(x), expected)
    with pytest.raises(Exception, match=r"output\.weight"):
        vision.alexnet(pretrained=True, root=tmp_path, classes=8)(x)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (vision.alexnet, "alexnet"),
        (vision.resnet18_v1, "resnet18_v1"),
        (vision.resnet50_v2, "resnet50_v2"),
        (vision.vgg11, "vgg11"),
        (vision.vgg11_bn, "vgg11_bn"),
    ],
)
def test_missing_files_are_named(make, name, tmp_path):
    kinds = rf"{name}\.safetensors, {name}\.params and {name}-<hash>\.params"
    with pytest.raises(FileNotFoundError, match=rf"{name}: .*{kinds} in '.*nothing is downloaded"):
        make(pretrained=True, root=tmp_path)


def test_one_of_several_files_of_weights_is_not_guessed(tmp_path):
    for digits in ("0a1b2c3d", "12345678"):
        (tmp_path / f"alexnet-{digits}.params").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"alexnet: .* one file .*alexnet-0a1b2c3d\.params, .*alexnet-12345678\.params"
    ):
        vision.alexnet(pretrained=True, root=tmp_path)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"get_model: `name` must be one of .*vgg19.* found 'resnet19_v1'"):
        vision.get_model("resnet19_v1")
    with pytest.raises(ValueError, match=r"get_resnet: `version` must be 1 or 2, found 3"):
        vision.get_resnet(3, 18)
    with pytest.raises(ValueError, match=r"get_resnet: `num_layers` .* found 19"):
        vision.get_resnet(1, 19)
    with pytest.raises(ValueError, match=r"get_vgg: `num_layers` .* found 12"):
        vision.get_vgg(12)
    with pytest.raises(ValueError, match=r"VGG: .* found 1 and 2"):
        vision.VGG([1], [2, 3])
    with pytest.raises(ValueError, match=r"ResNetV1: `channels` .* \(2\), found 2"):
        vision.ResNetV1(vision.BasicBlockV1, [1, 1], [8, 8])
    with pytest.raises(TypeError, match="colour"):
        vision.alexnet(colour=1)
