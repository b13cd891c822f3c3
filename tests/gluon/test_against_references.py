"""Every layer in float32 against its formula in float64, and against PyTorch where that is installed.

Compared are the result, and the gradients with respect to the input and to every parameter. Formulas have no gradient:
theirs are differences along random directions, which any wrong element changes.
"""

import importlib.util
import math

import numpy as onp
import pytest
import scipy.special

import mxnet as mx
from mxnet import autograd
from mxnet.gluon import nn, rnn
from reference_layers import (
    attention,
    batch_norm,
    channels_last,
    convolution,
    deformable,
    dense,
    elementwise,
    gelu,
    gelu_tanh,
    global_pooling,
    group_norm,
    gru_step,
    instance_norm,
    layer_norm,
    lstm_step,
    normalised,
    pixel_shuffle,
    pooling,
    recurrent,
    reflection,
    rnn_step,
    scaled,
    selu,
    softplus,
    transposed,
)  # fmt: skip

HAS_TORCH = importlib.util.find_spec("torch") is not None
EPS = float(onp.finfo("float32").eps)


class Case:
    """A layer, the shape of its input, its formula, and a function of torch, an input and parameters.

    `terms` bounds the number of roundings between an input and a result: additions in a row, times layers or steps.
    """

    def __init__(self, name, make, shape, formula, theirs=None, terms=100, low=-1.0):
        self.name, self.make, self.shape, self.formula = name, make, shape, formula
        self.theirs, self.terms, self.low = theirs, terms, low


def conv(axes, shape, last=False, kernel=3, **options):
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[axes]
    bias = options.pop("use_bias", True)
    layer = getattr(nn, f"Conv{axes}D")
    formula = convolution(axes, **options)

    def make():
        moved = "N" + layout[2:] + "C" if last else layout
        return layer(4, kernel, use_bias=bias, layout=moved, **options)

    def theirs(torch, x, p):
        call = getattr(torch.nn.functional, f"conv{axes}d")
        named = {"stride" if k == "strides" else k: v for k, v in options.items()}
        return call(x, p["weight"], p.get("bias"), **named)

    name = f"Conv{axes}D-{'last' if last else 'first'}-{kernel}-{options}-{bias}"
    taps = math.prod((kernel,) * axes if isinstance(kernel, int) else kernel)
    terms = 4 * taps * max(shape[1:2] + shape[-1:])
    return Case(name, make, shape, channels_last(formula) if last else formula, None if last else theirs, terms)


def back(axes, shape, last=False, kernel=3, **options):
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[axes]
    layer = getattr(nn, f"Conv{axes}DTranspose")
    formula = transposed(axes, **options)

    def make():
        return layer(4, kernel, layout="N" + layout[2:] + "C" if last else layout, **options)

    def theirs(torch, x, p):
        call = getattr(torch.nn.functional, f"conv_transpose{axes}d")
        named = {"stride" if k == "strides" else k: v for k, v in options.items()}
        return call(x, p["weight"], p["bias"], **named)

    name = f"Conv{axes}DTranspose-{'last' if last else 'first'}-{options}"
    return Case(name, make, shape, channels_last(formula) if last else formula, None if last else theirs, 400)


def pool(kind, axes, shape, size, strides, last=False, **options):
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[axes]
    layer = getattr(nn, f"{'Max' if kind == 'max' else 'Avg'}Pool{axes}D")
    formula = pooling(kind, size, strides, **options)

    def make():
        return layer(size, strides, layout="N" + layout[2:] + "C" if last else layout, **options)

    def theirs(torch, x, p):
        return getattr(torch.nn.functional, f"{kind}_pool{axes}d")(x, size, strides, **options)

    name = f"{layer.__name__}-{'last' if last else 'first'}-{size}-{strides}-{options}"
    return Case(name, make, shape, channels_last(formula) if last else formula, None if last else theirs, 40)


def whole(kind, axes, shape):
    name = f"Global{'Max' if kind == 'max' else 'Avg'}Pool{axes}D"

    def theirs(torch, x, p):
        return getattr(torch, "amax" if kind == "max" else "mean")(x, tuple(range(2, axes + 2)), keepdim=True)

    return Case(name, getattr(nn, name), shape, global_pooling(kind), theirs, 80)


def activation(name, make, function, theirs, shape=(3, 5)):
    return Case(name, make, shape, elementwise(function), lambda torch, x, p: theirs(torch, x), 20)


def recurrent_layer(kind, step, layers, directions, layout="TNC"):
    hidden, options = 4, {"num_layers": layers, "bidirectional": directions == 2, "layout": layout}
    name = {"relu": "RNN", "tanh": "RNN"}.get(kind, kind)
    if name == "RNN":
        options["activation"] = kind

    def make():
        return getattr(rnn, name)(hidden, **options)

    def theirs(torch, x, p):
        extra = {"nonlinearity": kind} if name == "RNN" else {}
        layer = getattr(torch.nn, name)(
            x.shape[-1], hidden, layers, bidirectional=directions == 2, batch_first=layout == "NTC", **extra
        )
        values = {}
        for number in range(layers):
            for direction, suffix in zip("lr"[:directions], ("", "_reverse"), strict=False):
                for ours, of_them in (("i2h_weight", "weight_ih"), ("h2h_weight", "weight_hh"),
                                      ("i2h_bias", "bias_ih"), ("h2h_bias", "bias_hh")):  # fmt: skip
                    values[f"{of_them}_l{number}{suffix}"] = p[f"{direction}{number}_{ours}"]
        return torch.func.functional_call(layer, values, (x,))[0]

    shape = (5, 2, 3) if layout == "TNC" else (2, 5, 3)
    return Case(
        f"{kind}-{layers}-{directions}-{layout}", make, shape, recurrent(step, hidden, layers, directions, layout),
        theirs, 5 * layers * 40,
    )  # fmt: skip


def F(torch):
    return torch.nn.functional


STEPS = {
    "relu": rnn_step(lambda x: onp.maximum(x, 0)),
    "tanh": rnn_step(onp.tanh),
    "LSTM": lstm_step,
    "GRU": gru_step(4),
}

CASES = [
    Case(
        "Dense",
        lambda: nn.Dense(3),
        (4, 2, 3),
        dense(),
        lambda t, x, p: F(t).linear(x.flatten(1), p["weight"], p["bias"]),
    ),
    Case(
        "Dense-tanh-rows",
        lambda: nn.Dense(3, "tanh", flatten=False),
        (2, 4, 3),
        dense(onp.tanh, False),
        lambda t, x, p: t.tanh(F(t).linear(x, p["weight"], p["bias"])),
    ),
    Case(
        "Dense-sigmoid-no-bias",
        lambda: nn.Dense(3, "sigmoid", use_bias=False),
        (4, 3),
        dense(scipy.special.expit),
        lambda t, x, p: t.sigmoid(x @ p["weight"].T),
    ),
    Case("Flatten", nn.Flatten, (2, 3, 2), lambda x, p: x.reshape(2, 6), lambda t, x, p: x.flatten(1)),
    Case("Identity", nn.Identity, (2, 3), lambda x, p: x, lambda t, x, p: x),
    Case("Dropout-of-0", lambda: nn.Dropout(0.0), (2, 3), lambda x, p: x, lambda t, x, p: F(t).dropout(x, 0.0)),
    conv(1, (2, 2, 7)),
    conv(1, (2, 4, 9), strides=2, padding=2, dilation=2, groups=2),
    conv(1, (2, 7, 4), last=True, padding=1),
    conv(2, (2, 3, 6, 5)),
    conv(2, (2, 3, 6, 5), kernel=1, use_bias=False),
    conv(2, (2, 4, 7, 6), kernel=(3, 2), strides=(2, 1), padding=(1, 2), dilation=(1, 2), groups=4),
    conv(2, (1, 4, 6, 6), strides=2, padding=1, groups=2),
    conv(2, (2, 6, 5, 4), last=True, strides=(1, 2), padding=1, groups=2),
    conv(3, (1, 2, 4, 4, 3), kernel=2, padding=1, strides=(2, 1, 1)),
    conv(3, (1, 2, 5, 4, 4), kernel=2, dilation=2, groups=2),
    conv(3, (1, 3, 4, 3, 2), last=True, kernel=2),
    back(1, (2, 2, 5), strides=2, padding=1, output_padding=1),
    back(1, (2, 4, 5), dilation=2, groups=2),
    back(2, (2, 3, 4, 3)),
    back(2, (2, 4, 4, 3), strides=(2, 3), padding=(1, 0), output_padding=(1, 2), groups=2),
    back(2, (1, 4, 3, 3), strides=2, dilation=(2, 1)),
    back(3, (1, 2, 3, 2, 3), strides=2, output_padding=1, kernel=2),
    pool("max", 1, (2, 3, 7), (3,), (2,), padding=1),
    pool("avg", 1, (2, 3, 7), (3,), (2,), padding=1, count_include_pad=False),
    pool("max", 2, (2, 3, 6, 7), (2, 3), (2, 2), padding=(0, 1)),
    pool("max", 2, (2, 3, 6, 7), (3, 2), (2, 2), ceil_mode=True),
    pool("max", 2, (2, 6, 7, 3), (3, 2), (2, 2), last=True),
    pool("avg", 2, (2, 3, 6, 7), (2, 3), (1, 2), padding=(1, 1)),
    pool("avg", 2, (2, 3, 6, 7), (3, 3), (2, 2), padding=(1, 1), ceil_mode=True),
    pool("avg", 2, (2, 3, 6, 7), (3, 3), (2, 2), padding=(1, 1), ceil_mode=True, count_include_pad=False),
    pool("avg", 2, (2, 6, 7, 3), (2, 2), (2, 2), last=True, count_include_pad=False, padding=1),
    pool("max", 3, (1, 2, 4, 4, 5), (2, 2, 2), (2, 1, 2)),
    pool("avg", 3, (1, 2, 4, 4, 5), (2, 2, 3), (2, 2, 2), padding=(1, 0, 1)),
    whole("max", 1, (2, 3, 4)),
    whole("max", 2, (2, 3, 4, 3)),
    whole("max", 3, (1, 2, 3, 2, 3)),
    whole("mean", 1, (2, 3, 4)),
    whole("mean", 2, (2, 3, 4, 3)),
    whole("mean", 3, (1, 2, 3, 2, 3)),
    activation("relu", lambda: nn.Activation("relu"), lambda x: onp.maximum(x, 0), lambda t, x: t.relu(x)),
    activation("sigmoid", lambda: nn.Activation("sigmoid"), scipy.special.expit, lambda t, x: t.sigmoid(x)),
    activation(
        "log_sigmoid", lambda: nn.Activation("log_sigmoid"), lambda x: -softplus(-x), lambda t, x: F(t).logsigmoid(x)
    ),
    activation("tanh", lambda: nn.Activation("tanh"), onp.tanh, lambda t, x: t.tanh(x)),
    activation("softrelu", lambda: nn.Activation("softrelu"), softplus, lambda t, x: F(t).softplus(x)),
    activation(
        "softsign", lambda: nn.Activation("softsign"), lambda x: x / (1 + abs(x)), lambda t, x: F(t).softsign(x)
    ),
    activation("mish", lambda: nn.Activation("mish"), lambda x: x * onp.tanh(softplus(x)), lambda t, x: F(t).mish(x)),
    activation("Mish", nn.Mish, lambda x: x * onp.tanh(softplus(x)), lambda t, x: F(t).mish(x)),
    activation(
        "ELU", lambda: nn.ELU(0.7), lambda x: onp.where(x > 0, x, 0.7 * onp.expm1(x)), lambda t, x: F(t).elu(x, 0.7)
    ),
    activation("SELU", nn.SELU, selu, lambda t, x: F(t).selu(x)),
    activation("GELU", nn.GELU, gelu, lambda t, x: F(t).gelu(x)),
    activation("GELU-tanh", lambda: nn.GELU("tanh"), gelu_tanh, lambda t, x: F(t).gelu(x, approximate="tanh")),
    activation("SiLU", nn.SiLU, lambda x: x * scipy.special.expit(x), lambda t, x: F(t).silu(x)),
    activation(
        "Swish", lambda: nn.Swish(1.5), lambda x: x * scipy.special.expit(1.5 * x), lambda t, x: x * t.sigmoid(1.5 * x)
    ),
    activation(
        "LeakyReLU",
        lambda: nn.LeakyReLU(0.2),
        lambda x: onp.where(x > 0, x, 0.2 * x),
        lambda t, x: F(t).leaky_relu(x, 0.2),
    ),
    Case(
        "PReLU",
        lambda: nn.PReLU(in_channels=3),
        (2, 3, 4),
        lambda x, p: onp.where(x > 0, x, p["alpha"].reshape(3, 1) * x),
        lambda t, x, p: F(t).prelu(x, p["alpha"]),
    ),
    Case(
        "BatchNorm",
        lambda: nn.BatchNorm(epsilon=1e-3),
        (4, 3, 2, 3),
        batch_norm(epsilon=1e-3),
        lambda t, x, p: F(t).batch_norm(x, None, None, p["gamma"], p["beta"], True, eps=1e-3),
    ),
    Case("BatchNorm-last", lambda: nn.BatchNorm(axis=-1), (4, 2, 3), batch_norm(-1)),
    Case(
        "BatchNorm-rows",
        nn.BatchNorm,
        (6, 4),
        batch_norm(),
        lambda t, x, p: F(t).batch_norm(x, None, None, p["gamma"], p["beta"], True),
    ),
    Case(
        "BatchNorm-plain",
        lambda: nn.BatchNorm(center=False, scale=False),
        (4, 3, 2),
        lambda x, p: normalised(x, (0, 2), 1e-5),
        lambda t, x, p: F(t).batch_norm(x, None, None, None, None, True),
    ),
    Case(
        "SyncBatchNorm",
        nn.SyncBatchNorm,
        (4, 3, 2, 3),
        batch_norm(),
        lambda t, x, p: F(t).batch_norm(x, None, None, p["gamma"], p["beta"], True),
    ),
    Case(
        "BatchNorm-global",
        lambda: nn.BatchNorm(use_global_stats=True),
        (4, 3, 5),
        lambda x, p: scaled(
            (x - p["running_mean"].reshape(3, 1)) / onp.sqrt(p["running_var"].reshape(3, 1) + 1e-5), p, 1
        ),
        lambda t, x, p: F(t).batch_norm(x, p["running_mean"], p["running_var"], p["gamma"], p["beta"]),
    ),
    Case(
        "InstanceNorm",
        lambda: nn.InstanceNorm(scale=True, epsilon=1e-3),
        (2, 3, 4, 3),
        instance_norm(epsilon=1e-3),
        lambda t, x, p: F(t).instance_norm(x, None, None, p["gamma"], p["beta"], eps=1e-3),
    ),
    Case("InstanceNorm-last", lambda: nn.InstanceNorm(axis=2, scale=True), (2, 4, 3), instance_norm(2)),
    Case(
        "LayerNorm",
        nn.LayerNorm,
        (4, 3, 6),
        layer_norm(),
        lambda t, x, p: F(t).layer_norm(x, (6,), p["gamma"], p["beta"]),
    ),
    Case("LayerNorm-axis", lambda: nn.LayerNorm(axis=1, epsilon=1e-2), (4, 6, 3), layer_norm(1, 1e-2)),
    Case(
        "LayerNorm-plain",
        lambda: nn.LayerNorm(center=False, scale=False),
        (4, 6),
        lambda x, p: normalised(x, -1, 1e-5),
        lambda t, x, p: F(t).layer_norm(x, (6,)),
    ),
    Case(
        "GroupNorm",
        lambda: nn.GroupNorm(2, epsilon=1e-3),
        (2, 4, 3),
        group_norm(2, 1e-3),
        lambda t, x, p: F(t).group_norm(x, 2, p["gamma"], p["beta"], 1e-3),
    ),
    Case(
        "ReflectionPad2D",
        lambda: nn.ReflectionPad2D(2),
        (2, 2, 4, 3),
        reflection(2, 2, 2, 2),
        lambda t, x, p: F(t).pad(x, (2, 2, 2, 2), "reflect"),
    ),
    Case(
        "ReflectionPad2D-sides",
        lambda: nn.ReflectionPad2D((0, 0, 0, 0, 1, 3, 2, 0)),
        (2, 2, 4, 4),
        reflection(2, 0, 1, 3),
        lambda t, x, p: F(t).pad(x, (2, 0, 1, 3), "reflect"),
    ),
    Case("PixelShuffle1D", lambda: nn.PixelShuffle1D(2), (2, 4, 3), pixel_shuffle((2,))),
    Case(
        "PixelShuffle2D",
        lambda: nn.PixelShuffle2D(2),
        (2, 8, 3, 2),
        pixel_shuffle((2, 2)),
        lambda t, x, p: F(t).pixel_shuffle(x, 2),
    ),
    Case("PixelShuffle2D-sides", lambda: nn.PixelShuffle2D((2, 3)), (1, 6, 3, 2), pixel_shuffle((2, 3))),
    Case("PixelShuffle3D", lambda: nn.PixelShuffle3D((1, 2, 2)), (1, 8, 2, 2, 2), pixel_shuffle((1, 2, 2))),
    Case(
        "MultiHeadAttention",
        lambda: nn.MultiHeadAttention(6, 2),
        (2, 4, 6),
        attention(2),
        lambda t, x, p: torch_attention(t, x, p),
    ),
    Case(
        "DeformableConvolution",
        lambda: nn.DeformableConvolution(2, (3, 3), 1, 1),
        (1, 2, 4, 3),
        deformable(False, 1, 1),
    ),
    Case(
        "DeformableConvolution-strides",
        lambda: nn.DeformableConvolution(2, (2, 2), 2, 1),
        (1, 2, 4, 3),
        deformable(False, 2, 1),
    ),
    Case(
        "ModulatedDeformableConvolution",
        lambda: nn.ModulatedDeformableConvolution(2, (3, 3), 1, 1),
        (1, 2, 4, 3),
        deformable(True, 1, 1),
    ),
    *(
        recurrent_layer(kind, step, layers, directions, layout)
        for kind, step in STEPS.items()
        for layers, directions, layout in ((1, 1, "TNC"), (2, 1, "NTC"), (1, 2, "NTC"), (2, 2, "TNC"))
    ),
]


def torch_attention(torch, x, p):
    weights = [p[f"{name}.weight"] for name in ("query", "key", "value")]
    biases = [p[f"{name}.bias"] for name in ("query", "key", "value")]
    found, _ = torch.nn.functional.multi_head_attention_forward(
        *[x.swapaxes(0, 1)] * 3, x.shape[-1], 2, torch.cat(weights), torch.cat(biases), None, None, False, 0.0,
        p["output.weight"], p["output.bias"], need_weights=False,
    )  # fmt: skip
    return found.swapaxes(0, 1)


def computed(case):
    """Input, parameters, cotangent, result and gradients of the layer in float32, as NumPy arrays."""
    generator = onp.random.default_rng([ord(c) for c in case.name])
    layer = case.make()
    layer.initialize()
    x = mx.np.array(generator.uniform(case.low, 1, case.shape).astype("float32"))
    layer(x)
    params = layer.collect_params()
    for name, parameter in params.items():
        if parameter.grad_req == "null" and not name.startswith("running"):
            continue  # Layers without a scale or a shift keep the neutral one.
        low = 0.3 if name.endswith("var") else -0.8
        parameter.set_data(mx.np.array(generator.uniform(low, 0.9, parameter.shape).astype("float32")))
    values = {name: parameter.data().asnumpy().astype("float64") for name, parameter in params.items()}
    x.attach_grad()
    with autograd.record():
        y = layer(x)
    assert y.dtype == onp.float32
    dy = generator.uniform(-1, 1, y.shape).astype("float32")
    y.backward(mx.np.array(dy))
    grads = {name: parameter.grad().asnumpy() for name, parameter in params.items() if parameter.grad_req != "null"}
    return x.asnumpy().astype("float64"), values, dy.astype("float64"), y.asnumpy(), {"": x.grad.asnumpy(), **grads}


def close(found, expected, terms, what):
    """Within `terms` roundings of numbers as large as the largest expected one, or 1."""
    assert found.shape == expected.shape, what
    limit = terms * EPS * max(1.0, abs(expected).max(initial=0.0))
    assert abs(found - expected).max(initial=0.0) <= limit, what


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_formula_in_float64(case):
    x, values, dy, y, grads = computed(case)
    close(y, case.formula(x, values), case.terms, "result")
    generator = onp.random.default_rng(0)
    # The error of a central difference, step**2 in relation to the third derivative, is far below float32's.
    step = 1e-5
    for name, grad in grads.items():
        for _ in range(3):
            direction = generator.normal(size=grad.shape)

            def at(t, name=name, direction=direction):
                moved = {**values, "": x}
                moved[name] = moved[name] + t * direction
                return (case.formula(moved.pop(""), moved) * dy).sum()

            expected = (at(step) - at(-step)) / (2 * step)
            size = abs(direction).sum() * max(1.0, abs(grad).max(initial=0.0))
            assert abs((grad * direction).sum() - expected) <= case.terms * EPS * size, name


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is the oracle")
@pytest.mark.parametrize("case", [case for case in CASES if case.theirs], ids=lambda case: case.name)
def test_pytorch(case):
    import torch

    x, values, dy, y, grads = computed(case)
    data = torch.tensor(x, dtype=torch.float32, requires_grad=True)
    theirs = {
        name: torch.tensor(value, dtype=torch.float32, requires_grad=name in grads) for name, value in values.items()
    }
    result = case.theirs(torch, data, theirs)
    result.backward(torch.tensor(dy, dtype=torch.float32))
    # Both sides round.
    close(y, result.detach().numpy(), 2 * case.terms, "result")
    for name, grad in grads.items():
        leaf = theirs[name] if name else data
        expected = onp.zeros(grad.shape) if leaf.grad is None else leaf.grad.numpy()
        close(grad, expected, 2 * case.terms, name)


def test_batch_norm_keeps_statistics_over_steps():
    layer = nn.BatchNorm(momentum=0.7, epsilon=1e-3)
    layer.initialize()
    generator, mean, variance = onp.random.default_rng(1), onp.zeros(3), onp.ones(3)
    for _ in range(5):
        x = generator.normal(0.5, 2, (4, 3, 6))
        with autograd.record():
            layer(mx.np.array(x.astype("float32")))
        mean = 0.7 * mean + 0.3 * x.mean((0, 2))
        variance = 0.7 * variance + 0.3 * x.var((0, 2))
    close(layer.running_mean.data().asnumpy(), mean, 100, "mean")
    close(layer.running_var.data().asnumpy(), variance, 100, "variance")
    x = generator.normal(size=(2, 3, 4))
    expected = (x - mean.reshape(3, 1)) / onp.sqrt(variance.reshape(3, 1) + 1e-3)
    close(layer(mx.np.array(x.astype("float32"))).asnumpy(), expected, 100, "prediction")


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is the oracle")
def test_batch_norm_keeps_the_statistics_of_pytorch():
    import torch

    layer, other = nn.BatchNorm(momentum=0.9), torch.nn.BatchNorm1d(3, momentum=0.1)
    layer.initialize()
    generator, count = onp.random.default_rng(1), 4 * 6
    variance = onp.ones(3)
    for _ in range(4):
        x = generator.normal(0.5, 2, (4, 3, 6)).astype("float32")
        with autograd.record():
            layer(mx.np.array(x))
        other.running_var[:] = torch.tensor(variance)
        other(torch.tensor(x))
        # PyTorch divides by one less for the variance that it keeps.
        variance = 0.9 * variance + (other.running_var.numpy() - 0.9 * variance) * (count - 1) / count
    close(layer.running_mean.data().asnumpy(), other.running_mean.numpy(), 100, "mean")
    close(layer.running_var.data().asnumpy(), variance, 100, "variance")


def test_every_layer_is_compared():
    seen = {type(layer) for case in CASES for layer in (case.make(),)}
    # Compositions of other layers, functions of the user, and layers whose results are integers' rows: see their tests.
    others = {
        nn.Block, nn.HybridBlock, nn.Sequential, nn.HybridSequential, nn.Concatenate, nn.HybridConcatenate, nn.Lambda,
        nn.HybridLambda, nn.Embedding,
    }  # fmt: skip
    assert {getattr(nn, name) for name in nn.__all__} - seen == others
    assert {rnn.RNN, rnn.LSTM, rnn.GRU} <= seen


def test_embedding_is_a_product_with_ones():
    layer = nn.Embedding(5, 3)
    layer.initialize(mx.init.Normal(1.0))
    tokens = onp.array([[1, 3, 1], [0, 4, 1]])
    weight = layer.weight.data().asnumpy()
    dy = onp.random.default_rng(2).normal(size=(2, 3, 3)).astype("float32")
    with autograd.record():
        y = layer(mx.np.array(tokens))
    y.backward(mx.np.array(dy))
    assert (y.asnumpy() == weight[tokens]).all()
    expected = onp.einsum("ijk,ijc->kc", onp.eye(5)[tokens], dy.astype("float64"))
    close(layer.weight.grad().asnumpy(), expected, 3, "weight")
