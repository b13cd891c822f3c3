"""Each layer of Gluon as an exported model, for the sizes of the example and for any number of samples."""

import numpy as np
import pytest

import mxnet as mx
import onnx_oracle
from mxnet import autograd, gluon, npx
from mxnet.gluon import nn, rnn

# The sums of a layer are rounded in another order: some hundred steps of half an ulp, on results of size 1.
TOLERANCE = 2e-5


def data(*shape):
    return mx.np.array(np.random.default_rng(len(shape)).normal(size=shape).astype("float32"))


def whole(*shape):
    return mx.np.array(np.random.default_rng(1).integers(0, 5, shape).astype("int32"))


class Unrolled(gluon.HybridBlock):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        return self.cell.unroll(3, x, layout="NTC", merge_outputs=True)[0]


class WithStates(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.lstm = rnn.LSTM(5, 2)

    def forward(self, x, h, c):
        y, states = self.lstm(x, [h, c])
        return y, states


class WithLengths(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.lstm = rnn.LSTM(5, bidirectional=True, use_sequence_length=True)

    def forward(self, x, lengths):
        return self.lstm(x, sequence_length=lengths)


def concatenated():
    layers = nn.HybridConcatenate(axis=1)
    layers.add(nn.Dense(2), nn.Dense(3))
    return layers


def of_axes(n):
    x = (2, 4, *(7,) * n)
    convolution, transposed = getattr(nn, f"Conv{n}D"), getattr(nn, f"Conv{n}DTranspose")
    yield f"conv{n}d", convolution(6, 3, strides=2, padding=1, dilation=1, groups=2), [x]
    yield f"conv{n}d_transpose", transposed(6, 3, strides=2, padding=1, output_padding=1, groups=2), [x]
    for kind in ("Max", "Avg"):
        local, whole_image = getattr(nn, f"{kind}Pool{n}D"), getattr(nn, f"Global{kind}Pool{n}D")
        yield f"{kind}_pool{n}d", local(3, 2, 1), [x]
        yield f"{kind}_pool{n}d_ceil", local(3, 2, 1, ceil_mode=True), [(2, 3, *(8,) * n)]
        yield f"{kind}_global_pool{n}d", whole_image(), [x]
    yield f"pixel_shuffle{n}d", getattr(nn, f"PixelShuffle{n}D")(2), [(2, 8, *(3,) * n)]


def recurrent():
    for layer in (rnn.LSTM, rnn.GRU, rnn.RNN):
        for layout in ("TNC", "NTC"):
            for directions in (1, 2):
                net = layer(5, 2, layout=layout, bidirectional=directions == 2)
                yield f"{layer.__name__}_{layout}_{directions}", net, [(2, 3, 4)]
    for cell in (rnn.LSTMCell, rnn.GRUCell, rnn.RNNCell):
        yield cell.__name__, Unrolled(cell(5)), [(2, 3, 4)]
    yield "rnn_relu", rnn.RNN(5, activation="relu"), [(2, 3, 4)]
    yield "lstm_states", WithStates(), [(3, 2, 4), (2, 2, 5), (2, 2, 5)]
    yield "lstm_lengths", WithLengths(), [(4, 2, 4), mx.np.array([2, 4], dtype="int32")]


IMAGE = (2, 3, 9, 8)
LAYERS = [
    ("dense", nn.Dense(5, activation="sigmoid"), [(2, 3, 4)]),
    ("dense_of_last_axis", nn.Dense(5, flatten=False, activation="tanh"), [(2, 3, 4)]),
    ("dense_without_bias", nn.Dense(5, use_bias=False), [(2, 4)]),
    *(case for n in (1, 2, 3) for case in of_axes(n)),
    ("conv_channels_last", nn.Conv2D(4, 3, layout="NHWC"), [(2, 7, 8, 3)]),
    ("conv_transpose_channels_last", nn.Conv2DTranspose(4, 3, strides=2, layout="NHWC"), [(2, 7, 8, 3)]),
    ("pool_channels_last", nn.MaxPool2D(2, layout="NHWC"), [(2, 7, 8, 3)]),
    ("mean_without_padding", nn.AvgPool2D(3, 2, 1, count_include_pad=False), [IMAGE]),
    ("mean_without_padding_ceil", nn.AvgPool2D(3, 2, 1, ceil_mode=True, count_include_pad=False), [IMAGE]),
    ("batch_norm", nn.BatchNorm(), [IMAGE]),
    ("batch_norm_of_last_axis", nn.BatchNorm(axis=-1), [IMAGE]),
    ("layer_norm", nn.LayerNorm(), [(2, 3, 4)]),
    ("layer_norm_of_axis_1", nn.LayerNorm(axis=1), [(2, 3, 4)]),
    ("group_norm", nn.GroupNorm(3), [IMAGE]),
    ("instance_norm", nn.InstanceNorm(), [IMAGE]),
    ("embedding", nn.Embedding(10, 4), [whole(2, 3)]),
    ("flatten", nn.Flatten(), [IMAGE]),
    ("dropout", nn.Dropout(0.5), [(2, 3)]),
    *(
        (f"activation_{kind}", nn.Activation(kind), [(2, 3)])
        for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign", "log_sigmoid", "mish")
    ),
    ("leaky_relu", nn.LeakyReLU(0.1), [(2, 3, 4)]),
    ("prelu", nn.PReLU(), [(2, 3, 4)]),
    ("elu", nn.ELU(), [(2, 3, 4)]),
    ("selu", nn.SELU(), [(2, 3, 4)]),
    ("gelu", nn.GELU(), [(2, 3, 4)]),
    ("gelu_tanh", nn.GELU(approximation="tanh"), [(2, 3, 4)]),
    ("swish", nn.Swish(), [(2, 3, 4)]),
    ("reflection_pad", nn.ReflectionPad2D(2), [IMAGE]),
    ("concatenate", concatenated(), [(2, 4)]),
    ("attention", nn.MultiHeadAttention(16, 4), [(2, 5, 16)]),
    ("deformable", nn.DeformableConvolution(4, 3, padding=1), [IMAGE]),
    ("modulated_deformable", nn.ModulatedDeformableConvolution(4, 3, padding=1), [IMAGE]),
    *recurrent(),
]


def arrays_of(forms):
    return [data(*form) if isinstance(form, tuple) else form for form in forms]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("name", "net", "forms"), LAYERS, ids=[name for name, _, _ in LAYERS])
def test_layer_computes_the_same(name, net, forms, dynamic, tmp_path):
    mx.random.seed(1)
    net.initialize(mx.init.Uniform(0.5), force_reinit=True)
    net.hybridize()
    arrays = arrays_of(forms)
    with autograd.predict_mode():
        wanted = flat(net(*arrays))
    onnx_oracle.export(net, tmp_path / "layer.onnx", dynamic=dynamic)
    found, _ = onnx_oracle.run(tmp_path / "layer.onnx", arrays)
    assert [x.shape for x in found] == [x.shape for x in wanted]
    for y, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y, want.asnumpy(), TOLERANCE, TOLERANCE)


def flat(results):
    return [results] if isinstance(results, mx.np.ndarray) else [x for part in results for x in flat(part)]


def test_projected_lstm_is_exported_for_one_size(tmp_path):
    net = rnn.LSTM(5, projection_size=3)
    net.initialize()
    net.hybridize()
    x = data(2, 3, 4)
    want = net(x)
    onnx_oracle.export(net, tmp_path / "lstm.onnx")
    found, _ = onnx_oracle.run(tmp_path / "lstm.onnx", [x])
    np.testing.assert_allclose(found[0], want.asnumpy(), TOLERANCE, TOLERANCE)


@pytest.mark.parametrize("kind", ["sum", "lp", "avg", "max"])
@pytest.mark.parametrize("convention", ["valid", "full", "same"])
@pytest.mark.parametrize("pad", [0, 1, 3])
def test_pools_of_all_conventions(kind, convention, pad, tmp_path):
    def pooled(x):
        return npx.pooling(x, (3, 2), (2, 3), (pad, 0), kind, convention, p_value=2)

    x = data(1, 2, 7, 8)
    net, wanted = onnx_oracle.traced(pooled, [x])
    onnx_oracle.export(net, tmp_path / "pool.onnx")
    found, _ = onnx_oracle.run(tmp_path / "pool.onnx", [x])
    # The maximum of a window without elements is minus infinity, in ONNX Runtime the smallest number.
    want = np.maximum(wanted[0].asnumpy(), np.finfo("float32").min)
    np.testing.assert_allclose(found[0], want, TOLERANCE, TOLERANCE)
