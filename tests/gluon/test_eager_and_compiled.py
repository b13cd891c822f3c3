"""Every layer, cell, loss and architecture gives the same operator by operator and as a compiled graph."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.gluon import loss as losses
from mxnet.gluon import nn, rnn
from mxnet.gluon.model_zoo import text, vision

GENERATOR = onp.random.default_rng(11)


def normal(*shape):
    return GENERATOR.normal(size=shape).astype("float32")


IMAGES, VOLUMES, SEQUENCE = normal(2, 4, 6, 6), normal(1, 8, 4, 4, 4), normal(2, 4, 7)
TIME = normal(5, 2, 3)
CLASSES = onp.array([1, 0], "int64")
SIGNS = onp.array([[1, -1, 1], [-1, -1, 1]], "float32")
TOKENS = onp.array([[1, 3, 2], [0, 2, 4]], "int64")

LAYERS = [
    (lambda: nn.Dense(3, activation="tanh"), IMAGES),
    (lambda: nn.Embedding(5, 3), TOKENS),
    (nn.Flatten, IMAGES),
    (nn.Identity, IMAGES),
    (lambda: nn.HybridLambda(lambda x: x * 2), IMAGES),
    (lambda: nn.Dropout(0.5), IMAGES),
    *((kind, IMAGES) for kind in (nn.ELU, nn.GELU, nn.SELU, nn.Mish, nn.SiLU, nn.Swish, nn.PReLU)),
    (lambda: nn.LeakyReLU(0.1), IMAGES),
    *((lambda kind=kind: nn.Activation(kind), IMAGES) for kind in ("relu", "sigmoid", "softrelu", "softsign", "tanh")),
    (nn.BatchNorm, IMAGES),
    (nn.SyncBatchNorm, IMAGES),
    (nn.InstanceNorm, IMAGES),
    (nn.LayerNorm, IMAGES),
    (lambda: nn.GroupNorm(2), IMAGES),
    (lambda: nn.Conv1D(4, 3, padding=1), SEQUENCE),
    (lambda: nn.Conv2D(4, 3, strides=2, groups=2), IMAGES),
    (lambda: nn.Conv3D(2, 2), VOLUMES),
    (lambda: nn.Conv1DTranspose(2, 3, strides=2), SEQUENCE),
    (lambda: nn.Conv2DTranspose(2, 3, strides=2), IMAGES),
    (lambda: nn.Conv3DTranspose(2, 2), VOLUMES),
    (lambda: nn.DeformableConvolution(2, kernel_size=(3, 3), padding=(1, 1)), IMAGES),
    (lambda: nn.ModulatedDeformableConvolution(2, kernel_size=(3, 3), padding=(1, 1)), IMAGES),
    *((kind, SEQUENCE) for kind in (nn.MaxPool1D, nn.AvgPool1D, nn.GlobalMaxPool1D, nn.GlobalAvgPool1D)),
    *((kind, IMAGES) for kind in (nn.MaxPool2D, nn.AvgPool2D, nn.GlobalMaxPool2D, nn.GlobalAvgPool2D)),
    *((kind, VOLUMES) for kind in (nn.MaxPool3D, nn.AvgPool3D, nn.GlobalMaxPool3D, nn.GlobalAvgPool3D)),
    (lambda: nn.ReflectionPad2D(2), IMAGES),
    (lambda: nn.PixelShuffle1D(2), SEQUENCE),
    (lambda: nn.PixelShuffle2D(2), IMAGES),
    (lambda: nn.PixelShuffle3D(2), VOLUMES),
    (lambda: nn.MultiHeadAttention(8, 2), normal(2, 5, 8)),
    (lambda: chained(nn.HybridSequential), IMAGES),
    (lambda: chained(nn.HybridConcatenate, axis=1), IMAGES),
    *((lambda kind=kind: kind(3, 2), TIME) for kind in (rnn.RNN, rnn.LSTM, rnn.GRU)),
    (lambda: rnn.LSTM(3, bidirectional=True, layout="NTC", projection_size=2), TIME),
]

CELLS = [
    *(lambda kind=kind: kind(3) for kind in (rnn.RNNCell, rnn.LSTMCell, rnn.GRUCell)),
    lambda: rnn.LSTMPCell(3, 2),
    lambda: rnn.ResidualCell(rnn.GRUCell(3)),
    lambda: rnn.ZoneoutCell(rnn.RNNCell(3), 0.3, 0.3),
    lambda: rnn.VariationalDropoutCell(rnn.RNNCell(3), 0.3, 0.3, 0.3),
    lambda: rnn.DropoutCell(0.3),
    lambda: stacked(rnn.SequentialRNNCell),
    lambda: stacked(rnn.HybridSequentialRNNCell),
    lambda: rnn.BidirectionalCell(rnn.LSTMCell(3), rnn.LSTMCell(3)),
]

CONVOLVED = [(getattr(rnn, f"Conv{axes}D{kind}Cell"), axes) for axes in (1, 2, 3) for kind in ("RNN", "LSTM", "GRU")]

PAIR = (normal(2, 3), normal(2, 3))
LOSSES = [
    (losses.L1Loss, PAIR),
    (losses.L2Loss, PAIR),
    (losses.HuberLoss, PAIR),
    (losses.SigmoidBCELoss, (PAIR[0], SIGNS > 0)),
    (losses.SigmoidBinaryCrossEntropyLoss, (PAIR[0], SIGNS > 0)),
    (losses.SoftmaxCELoss, (PAIR[0], CLASSES)),
    (lambda: losses.SoftmaxCrossEntropyLoss(sparse_label=False), (PAIR[0], abs(PAIR[1]))),
    (lambda: losses.KLDivLoss(from_logits=False), (PAIR[0], abs(PAIR[1]))),
    (losses.HingeLoss, (PAIR[0], SIGNS)),
    (losses.SquaredHingeLoss, (PAIR[0], SIGNS)),
    (losses.LogisticLoss, (PAIR[0], SIGNS)),
    (losses.TripletLoss, (*PAIR, normal(2, 3))),
    (losses.PoissonNLLLoss, (PAIR[0], abs(PAIR[1]))),
    (losses.CosineEmbeddingLoss, (*PAIR, SIGNS[:, 0])),
    (losses.SDMLLoss, PAIR),
    (losses.CTCLoss, (normal(2, 6, 5), onp.array([[1, 2], [2, -1]], "float32"))),
]

# Architectures, small: each class of blocks of the zoo once.
ZOO = [
    (lambda: vision.ResNetV1(vision.BasicBlockV1, [1, 1], [4, 4, 8], classes=3), normal(2, 3, 32, 32)),
    (lambda: vision.ResNetV2(vision.BottleneckV2, [1, 1], [4, 4, 8], classes=3), normal(2, 3, 32, 32)),
    (lambda: vision.ResNetV1(vision.BottleneckV1, [1], [4, 8], classes=3), normal(2, 3, 32, 32)),
    (lambda: vision.ResNetV2(vision.BasicBlockV2, [1], [4, 8], classes=3), normal(2, 3, 32, 32)),
    (lambda: vision.VGG([1, 1], [4, 8], classes=3, batch_norm=True), normal(1, 3, 8, 8)),
    (lambda: vision.DenseNet(4, 4, [2, 2], classes=3), normal(1, 3, 56, 56)),
    (lambda: vision.MobileNet(0.1, classes=3), normal(1, 3, 32, 32)),
    (lambda: vision.MobileNetV2(0.1, classes=3), normal(1, 3, 32, 32)),
    (lambda: text.BERT(7, 4, 8, 1, 2, 6), (TOKENS, onp.zeros_like(TOKENS), onp.array([3, 2]))),
    (lambda: text.GPT2(7, 4, 1, 2, 6), TOKENS),
    (lambda: text.T5(7, 4, 2, 8, 1, 2), (TOKENS, TOKENS, onp.array([3, 2]))),
]

# Not in the tables above, and why.
NEITHER_WAY = {
    "Block": "the base class",
    "HybridBlock": "the base class",
    "Sequential": "its children are compiled, each by itself",
    "Concatenate": "its children are compiled, each by itself",
    "Lambda": "runs any Python, so it is never compiled",
    "Loss": "the base class",
    "RecurrentCell": "the base class",
    "HybridRecurrentCell": "the base class",
    "ModifierCell": "the base class",
}


def chained(chain, **options):
    net = chain(**options)
    net.add(nn.Conv2D(2, 1), nn.Conv2D(3, 1))
    return net


def stacked(stack):
    cell = stack()
    cell.add(rnn.LSTMCell(3))
    cell.add(rnn.RNNCell(2))
    return cell


def flat(results):
    if isinstance(results, list | tuple):
        return [array for result in results for array in flat(result)]
    return [results]


def results(net, arrays, call, seed=3):
    """Outputs, gradients and running statistics of one training pass."""
    inputs = [np.array(x, dtype=x.dtype) for x in arrays]
    for x in inputs:
        if "float" in str(x.dtype):
            x.attach_grad()
    mx.random.seed(seed)
    with autograd.record():
        outputs = flat(call(net, *inputs))
    generator = onp.random.default_rng(1)
    heads = [np.array(generator.normal(size=y.shape), dtype=y.dtype) for y in outputs]
    autograd.backward(outputs, heads)
    found = [*outputs, *(x.grad for x in inputs if x.grad is not None)]
    for parameter in net.collect_params().values():
        found.append(parameter.data() if parameter.grad_req == "null" else parameter.grad())
    return [x.asnumpy() for x in found]


def check(make, arrays, call=lambda net, *inputs: net(*inputs)):
    arrays = arrays if isinstance(arrays, tuple) else (arrays,)
    mx.random.seed(0)
    net = make()
    net.initialize(mx.init.Normal(0.3))
    with autograd.pause():
        call(net, *(np.array(x, dtype=x.dtype) for x in arrays))
    before = {name: parameter.data().copy() for name, parameter in net.collect_params().items()}
    expected = results(net, arrays, call)
    net.hybridize()
    # The first call traces, the second one runs what was traced.
    for _ in range(2):
        for name, parameter in net.collect_params().items():
            parameter.set_data(before[name])
        found = results(net, arrays, call)
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            # Fused loops round in another order: a few units in the last place of the largest numbers.
            scale = max(1.0, float(abs(theirs).max(initial=0)))
            onp.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-5 * scale)


@pytest.mark.parametrize(("make", "data"), LAYERS)
def test_layers(make, data):
    check(make, data)


@pytest.mark.parametrize("make", CELLS)
def test_cells(make):
    def unrolled(cell, x):
        cell.reset()
        return cell.unroll(5, x, layout="TNC", merge_outputs=True)

    check(make, TIME, unrolled)


@pytest.mark.parametrize(("kind", "axes"), CONVOLVED)
def test_cells_that_convolve(kind, axes):
    shape = (2, *[4] * axes)

    def twice(cell, x):
        cell.reset()
        states = cell.begin_state(batch_size=2)
        for _ in range(2):
            y, states = cell(x, states)
        return [y, states]

    check(lambda: kind(shape, 3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1), normal(2, *shape), twice)


@pytest.mark.parametrize(("make", "data"), LOSSES)
def test_losses(make, data):
    check(make, data)


@pytest.mark.parametrize(("make", "data"), ZOO)
def test_architectures(make, data):
    check(make, data)


def test_every_block_is_in_a_table():
    made = [make() for make, _ in [*LAYERS, *LOSSES, *ZOO]]
    made += [make() for make in CELLS]
    seen = {kind for net in made for kind in kinds(net)} | {kind for kind, _ in CONVOLVED}
    public = [getattr(module, name) for module in (nn, rnn, losses, vision, text) for name in module.__all__]
    blocks = {kind for kind in public if isinstance(kind, type) and issubclass(kind, gluon.Block)}
    missing = {kind.__name__ for kind in blocks - seen} - NEITHER_WAY.keys()
    # Their own modules; the networks are too deep for small images.
    assert missing <= {"AlexNet", "Inception3", "SqueezeNet", "MobileNetV3"}


def kinds(net):
    found = {type(net)}
    for child in net._children.values():
        found |= kinds(child() if callable(child) and not isinstance(child, gluon.Block) else child)
    return found
