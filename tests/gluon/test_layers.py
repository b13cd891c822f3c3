"""Layers against NumPy written out, and their gradients against differences."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd
from mxnet.gluon import nn
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

EPS32 = onp.finfo("float32").eps


def sample(*shape, seed=0):
    return onp.random.default_rng(seed).normal(size=shape)


def checked_gradient(net, *shape):
    """The gradients of a layer in float64, input and parameters."""
    net.initialize(mx.init.Normal(0.5), force_reinit=True)
    x = sample(*shape)
    net.cast("float64")
    net(mx.np.array(x, dtype="float64"))
    # Central differences of smooth functions: error about eps**2 = 1e-10, rounding 1e-16 / 1e-5.
    check_numeric_gradient(net, [x], rtol=1e-6, atol=1e-8, use_forward_train=True)


def test_dense_is_an_affine_map():
    net = nn.Dense(3, in_units=4)
    net.initialize(mx.init.Normal(1.0))
    x = sample(2, 4).astype("float32")
    weight, bias = net.weight.data().asnumpy(), net.bias.data().asnumpy()
    # Sums of 4 products: a few units in the last place of the largest term.
    assert_almost_equal(net(mx.np.array(x)), x @ weight.T + bias, rtol=0, atol=16 * EPS32 * 8)


def test_dense_flattens_by_default():
    x = mx.np.ones((2, 3, 4))
    for flatten, expected in ((True, (2, 5)), (False, (2, 3, 5))):
        net = nn.Dense(5, flatten=flatten)
        net.initialize()
        assert net(x).shape == expected


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (nn.Dense(3, activation="tanh"), (2, 4)),
        (nn.Conv1D(2, 3, padding=1), (2, 3, 5)),
        (nn.Conv2D(4, (2, 3), strides=(2, 1), padding=1, groups=2), (2, 2, 5, 4)),
        (nn.Conv3D(2, 2), (1, 2, 3, 3, 3)),
        (nn.Conv2DTranspose(2, 3, strides=2, output_padding=1), (1, 2, 2, 3)),
        (nn.LayerNorm(), (3, 4)),
        (nn.GroupNorm(2), (2, 4, 3)),
        (nn.InstanceNorm(scale=True), (2, 3, 4)),
        (nn.GELU(), (3, 2)),
        (nn.SiLU(), (3, 2)),
        (nn.Mish(), (3, 2)),
        (nn.ELU(), (3, 2)),
        (nn.SELU(), (3, 2)),
        (nn.PReLU(in_channels=2), (3, 2)),
        (nn.LeakyReLU(0.1), (3, 2)),
        (nn.AvgPool2D(2, padding=1), (1, 2, 4, 4)),
        (nn.MaxPool2D(2), (1, 2, 4, 4)),
        (nn.GlobalAvgPool2D(), (2, 2, 3, 3)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Block) else None,
)
def test_gradients_agree_with_differences(net, shape):
    checked_gradient(net, *shape)


def test_conv2d_is_a_correlation():
    net = nn.Conv2D(2, kernel_size=(2, 3), strides=(1, 2), padding=(1, 0), dilation=(2, 1), in_channels=3)
    net.initialize(mx.init.Normal(1.0))
    x = sample(2, 3, 6, 7).astype("float32")
    weight = net.weight.data().asnumpy().astype("float64")
    padded = onp.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 1), (0, 0)))
    out_h, out_w = 6 + 2 - 2 - 1 + 1, (7 - 3) // 2 + 1
    expected = onp.zeros((2, 2, out_h, out_w))
    for i in range(out_h):
        for j in range(out_w):
            window = padded[:, :, i : i + 3 : 2, 2 * j : 2 * j + 3]
            expected[:, :, i, j] = onp.einsum("nchw,kchw->nk", window, weight)
    # 18 products of values up to about 3.
    assert_almost_equal(net(mx.np.array(x)), expected, rtol=0, atol=18 * 10 * EPS32)


def test_transposed_convolution_undoes_the_shape():
    down = nn.Conv2D(4, 3, strides=2, padding=1)
    up = nn.Conv2DTranspose(3, 3, strides=2, padding=1, output_padding=1)
    for net in (down, up):
        net.initialize()
    x = mx.np.ones((2, 3, 8, 6))
    assert down(x).shape == (2, 4, 4, 3)
    assert up(down(x)).shape == x.shape


def test_conv_refuses_channels_that_groups_do_not_divide():
    with pytest.raises(ValueError, match=r"multiples of `groups` \(2\)"):
        nn.Conv2D(3, 1, groups=2)
    net = nn.Conv2D(4, 1, groups=2)
    net.initialize()
    with pytest.raises(ValueError, match="3 channels cannot be cut into 2 groups"):
        net(mx.np.ones((1, 3, 2, 2)))


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (nn.MaxPool2D(2), [[5, 7], [13, 15]]),
        (nn.AvgPool2D(2), [[2.5, 4.5], [10.5, 12.5]]),
        (nn.GlobalMaxPool2D(), [[15]]),
        (nn.GlobalAvgPool2D(), [[7.5]]),
    ],
)
def test_pooling_of_counted_pixels(net, expected):
    x = mx.np.array(onp.arange(16.0, dtype="float32").reshape(1, 1, 4, 4))
    assert net(x).asnumpy()[0, 0].tolist() == expected


def test_pooling_with_ceil_mode_keeps_the_last_window():
    x = mx.np.ones((1, 1, 5, 5))
    assert nn.MaxPool2D(2)(x).shape == (1, 1, 2, 2)
    assert nn.MaxPool2D(2, ceil_mode=True)(x).shape == (1, 1, 3, 3)


def test_batch_norm_trains_on_the_batch_and_predicts_with_running_statistics():
    net = nn.BatchNorm(momentum=0.75)
    net.initialize()
    x = (3 * sample(50, 2) + 1).astype("float32")
    with autograd.record():
        y = net(mx.np.array(x))
    # Rounding of a mean of 50 numbers.
    assert_almost_equal(y.asnumpy().mean(axis=0), [0, 0], rtol=0, atol=50 * EPS32)
    variance = x.var(axis=0)
    assert_almost_equal(y.asnumpy().var(axis=0), variance / (variance + 1e-5), rtol=50 * EPS32, atol=0)
    assert_almost_equal(net.running_mean.data(), 0.25 * x.mean(axis=0), rtol=1e-5, atol=0)
    # The biased variance; two passes over 50 numbers.
    assert_almost_equal(net.running_var.data(), 0.75 + 0.25 * x.var(axis=0), rtol=50 * EPS32, atol=0)
    mean, var = net.running_mean.data().asnumpy(), net.running_var.data().asnumpy()
    assert_almost_equal(net(mx.np.array(x)), (x - mean) / onp.sqrt(var + 1e-5), rtol=1e-5, atol=1e-6)


def test_batch_norm_gradient():
    checked_gradient(nn.BatchNorm(), 5, 2, 3)


def test_batch_norm_stays_float32_when_the_network_becomes_half():
    net = nn.BatchNorm(in_channels=2)
    net.initialize()
    net.cast("float16")
    assert net.gamma.dtype == onp.float32


def test_layer_norm_normalises_rows():
    net = nn.LayerNorm()
    net.initialize()
    x = sample(3, 40).astype("float32")
    y = net(mx.np.array(x)).asnumpy()
    variance = x.var(axis=1)
    assert_almost_equal(y.mean(axis=1), onp.zeros(3), rtol=0, atol=40 * EPS32)
    assert_almost_equal(y.var(axis=1), variance / (variance + 1e-5), rtol=40 * EPS32, atol=0)


def test_dropout_drops_while_training_only():
    net = nn.Dropout(0.25)
    x = mx.np.ones((10000,))
    assert net(x).asnumpy().tolist() == x.asnumpy().tolist()
    with autograd.record():
        y = net(x).asnumpy()
    # Six standard deviations of a binomial count.
    assert abs((y == 0).mean() - 0.25) < 6 * (0.25 * 0.75 / 10000) ** 0.5
    assert set(onp.round(onp.unique(y), 5).tolist()) == {0.0, onp.round(onp.float32(1 / 0.75), 5).item()}
    with autograd.record():
        assert (nn.Dropout(1.0)(x) == 0).all()
    with pytest.raises(ValueError, match=r"\[0, 1\], found 1.5"):
        nn.Dropout(1.5)


def test_dropout_shares_fate_along_axes():
    with autograd.record():
        y = nn.Dropout(0.5, axes=(1,))(mx.np.ones((100, 4))).asnumpy()
    assert (y == y[:, :1]).all()
    assert 0 < (y[:, 0] == 0).sum() < 100


def test_embedding_gradient_counts_uses():
    net = nn.Embedding(4, 2)
    net.initialize()
    letters = mx.np.array([[1, 1], [3, 1]])
    with autograd.record():
        y = net(letters)
        total = y.sum()
    total.backward()
    assert y.shape == (2, 2, 2)
    assert net.weight.grad().asnumpy().tolist() == [[0, 0], [3, 3], [0, 0], [1, 1]]


def test_sequential_slices_and_counts():
    net = nn.Sequential()
    net.add(nn.Dense(3), nn.Flatten(), nn.Dense(2))
    assert len(net) == 3
    assert isinstance(net[1], nn.Flatten)
    assert [type(block).__name__ for block in net[::2]] == ["Dense", "Dense"]


def test_hybrid_sequential_refuses_blocks_that_are_not_hybrid():
    with pytest.raises(TypeError, match="takes hybrid blocks, found Lambda"):
        nn.HybridSequential().add(nn.Lambda("tanh"))


def test_concatenate_joins_outputs():
    net = nn.HybridConcatenate(axis=1)
    net.add(nn.Identity(), nn.HybridLambda(lambda x: 2 * x))
    assert net(mx.np.array([[1.0, 2.0]])).asnumpy().tolist() == [[1, 2, 2, 4]]


def test_lambda_by_name_and_its_refusal():
    assert nn.Lambda("tanh")(mx.np.zeros((1,))).item() == 0
    with pytest.raises(ValueError, match="'no_such_function'"):
        nn.Lambda("no_such_function")


@pytest.mark.parametrize("name", ["relu", "sigmoid", "log_sigmoid", "mish", "tanh", "softrelu", "softsign"])
def test_activation_values(name):
    x = onp.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    softplus = onp.log1p(onp.exp(x))
    expected = {
        "relu": onp.maximum(x, 0),
        "sigmoid": 1 / (1 + onp.exp(-x)),
        "log_sigmoid": -onp.log1p(onp.exp(-x)),
        "mish": x * onp.tanh(softplus),
        "tanh": onp.tanh(x),
        "softrelu": softplus,
        "softsign": x / (1 + abs(x)),
    }[name]
    assert_almost_equal(nn.Activation(name)(mx.np.array(x, dtype="float32")), expected, rtol=8 * EPS32, atol=EPS32)


def test_unknown_activation_is_refused():
    with pytest.raises(ValueError, match="'reulu'"):
        nn.Dense(2, activation="reulu")


def test_pixel_shuffle_puts_channels_side_by_side():
    x = onp.arange(2 * 12 * 2 * 3, dtype="float32").reshape(2, 12, 2, 3)
    y = nn.PixelShuffle2D((2, 3))(mx.np.array(x)).asnumpy()
    assert y.shape == (2, 2, 4, 9)
    for c, h, w in onp.ndindex(2, 4, 9):
        assert y[1, c, h, w] == x[1, 6 * c + 3 * (h % 2) + w % 3, h // 2, w // 3]
    assert nn.PixelShuffle1D(2)(mx.np.ones((1, 4, 3))).shape == (1, 2, 6)
    assert nn.PixelShuffle3D(2)(mx.np.ones((1, 8, 1, 2, 3))).shape == (1, 1, 2, 4, 6)
    with pytest.raises(ValueError, match=r"5 channels .* \(2, 2\)"):
        nn.PixelShuffle2D(2)(mx.np.ones((1, 5, 2, 2)))


def test_reflection_pad_mirrors_without_the_border():
    x = sample(1, 2, 3, 4).astype("float32")
    y = nn.ReflectionPad2D(2)(mx.np.array(x)).asnumpy()
    assert (y == onp.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect")).all()
    with pytest.raises(ValueError, match="3 by 4 are too small"):
        nn.ReflectionPad2D(3)(mx.np.array(x))
