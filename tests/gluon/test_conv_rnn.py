"""Convolutional and projected recurrent cells against float64 loops, and the packed vector of parameters."""

import itertools

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import rnn
from mxnet.test_utils import check_numeric_gradient

BATCH, STEPS, IN, HIDDEN = 2, 3, 2, 3
# Three steps of sums of at most 60 products, in float64.
TOLERANCE = {"rtol": 1e-11, "atol": 1e-12}


def sigmoid(x):
    return 1 / (1 + onp.exp(-x))


def convolved(x, weight, bias, pad, dilate):
    """Cross-correlation with stride 1, one output element at a time."""
    axes = x.ndim - 2
    x = onp.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    kernel = weight.shape[2:]
    out = [x.shape[2 + a] - dilate[a] * (kernel[a] - 1) for a in range(axes)]
    result = onp.zeros((x.shape[0], weight.shape[0], *out))
    for place in itertools.product(*map(range, out)):
        window = x[(..., *(slice(p, p + d * (k - 1) + 1, d) for p, d, k in zip(place, dilate, kernel, strict=True)))]
        result[(..., *place)] = onp.tensordot(window.reshape(x.shape[0], -1), weight.reshape(weight.shape[0], -1).T, 1)
    return result + bias.reshape(-1, *[1] * axes)


def rnn_step(x, h, states):
    return [onp.tanh(x + h)]


def lstm_step(x, h, states):
    i, f, g, o = onp.split(x + h, 4, axis=1)
    cell = sigmoid(f) * states[1] + sigmoid(i) * onp.tanh(g)
    return [sigmoid(o) * onp.tanh(cell), cell]


def gru_step(x, h, states):
    (xr, xz, xn), (hr, hz, hn) = onp.split(x, 3, axis=1), onp.split(h, 3, axis=1)
    update = sigmoid(xz + hz)
    return [(1 - update) * onp.tanh(xn + sigmoid(xr + hr) * hn) + update * states[0]]


STEP = {"RNN": rnn_step, "LSTM": lstm_step, "GRU": gru_step}


def wide(cell):
    cell.initialize(mx.init.Normal(0.4), force_reinit=True)
    cell.cast("float64")
    generator = onp.random.default_rng(3)
    for name, parameter in cell.collect_params().items():
        if name.endswith("bias"):
            parameter.set_data(generator.normal(size=parameter.shape))
    return [parameter.data().asnumpy() for parameter in cell.collect_params().values()]


@pytest.mark.parametrize("kind", STEP)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutional_cell_does_its_equations(kind, axes):
    pad, dilate, inner = (1, 0, 1)[:axes], (2, 1, 1)[:axes], (1, 2, 1)[:axes]
    i2h, h2h = (2, 3, 2)[:axes], (3, 3, 1)[:axes]
    spatial = (5, 6, 3)[:axes]
    klass = getattr(rnn, f"Conv{axes}D{kind}Cell")
    cell = klass((IN, *spatial), HIDDEN, i2h, h2h, i2h_pad=pad, i2h_dilate=dilate, h2h_dilate=inner)
    w, r, b, c = wide(cell)
    x = onp.random.default_rng(axes).normal(size=(BATCH, STEPS, IN, *spatial))
    outputs, states = cell.unroll(STEPS, mx.np.array(x, dtype="float64"), merge_outputs=True)
    out = tuple(s + 2 * p - d * (k - 1) for s, p, d, k in zip(spatial, pad, dilate, i2h, strict=True))
    same = tuple(d * (k - 1) // 2 for d, k in zip(inner, h2h, strict=True))
    expected = [onp.zeros((BATCH, HIDDEN, *out)) for _ in states]
    assert [info["shape"] for info in cell.state_info(BATCH)] == [state.shape for state in expected]
    for t in range(STEPS):
        from_input = convolved(x[:, t], w, b, pad, dilate)
        expected = STEP[kind](from_input, convolved(expected[0], r, c, same, inner), expected)
        onp.testing.assert_allclose(outputs[:, t].asnumpy(), expected[0], **TOLERANCE)
    for found, state in zip(states, expected, strict=True):
        onp.testing.assert_allclose(found.asnumpy(), state, **TOLERANCE)


def test_activation_of_a_convolutional_cell():
    cell = rnn.Conv1DRNNCell((IN, 4), HIDDEN, 1, 1, activation="relu")
    w, _, b, c = wide(cell)
    x = onp.random.default_rng(0).normal(size=(BATCH, IN, 4))
    zeros = cell.begin_state(BATCH, dtype="float64")
    output, _ = cell(mx.np.array(x, dtype="float64"), zeros)
    expected = onp.maximum(convolved(x, w, b, (0,), (1,)) + c[:, None], 0)
    onp.testing.assert_allclose(output.asnumpy(), expected, **TOLERANCE)


@pytest.mark.parametrize("kind", STEP)
def test_gradients_of_a_convolutional_cell(kind):
    cell = getattr(rnn, f"Conv1D{kind}Cell")((1, 4), 2, 3, 3, i2h_pad=1)
    wide(cell)

    def run(x):
        outputs, _ = cell.unroll(2, x, merge_outputs=True)
        return outputs

    x = mx.np.array(onp.random.default_rng(1).normal(size=(1, 2, 1, 4)), dtype="float64")
    check_numeric_gradient(run, [x])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((IN, 4), HIDDEN, 1, 2), r"Conv1DGRUCell: sizes of `h2h_kernel` must be odd, found \(2,\)"),
        (((IN, 4), HIDDEN, 5, 1), r"`i2h_kernel` \(5,\) .* does not fit into `input_shape` \(2, 4\)"),
        (((IN,), HIDDEN, 1, 1), r"`input_shape` must be 2 positive sizes, CW, found \(2,\)"),
        (((IN, 4), 0, 1, 1), r"`hidden_channels` must be positive, found 0"),
        (((IN, 4), HIDDEN, (1, 1), 1), r"`i2h_kernel` must be a number or 1 numbers"),
    ],
)
def test_sizes_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        rnn.Conv1DGRUCell(*arguments)


def test_layout_and_inputs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="`conv_layout` must be 'NCHW', found 'NHWC'"):
        rnn.Conv2DRNNCell((1, 3, 3), 2, 1, 1, conv_layout="NHWC")
    cell = rnn.Conv1DRNNCell((IN, 4), HIDDEN, 1, 1)
    cell.initialize()
    with pytest.raises(ValueError, match=r"inputs of shape \(1, 2, 5\) do not fit `input_shape` \(2, 4\)"):
        cell(mx.np.ones((1, IN, 5)), cell.begin_state(1))


def test_projected_cell_does_its_equations():
    cell = rnn.LSTMPCell(4, 2)
    cell.initialize()
    cell.infer_shape(mx.np.ones((1, IN)))
    w, r, p, b, c = wide(cell)
    assert (w.shape, r.shape, p.shape) == ((16, IN), (16, 2), (2, 4))
    x = onp.random.default_rng(9).normal(size=(STEPS, BATCH, IN))
    outputs, states = cell.unroll(STEPS, mx.np.array(x, dtype="float64"), layout="TNC", merge_outputs=True)
    projected, inner = onp.zeros((BATCH, 2)), onp.zeros((BATCH, 4))
    for t in range(STEPS):
        hidden, inner = lstm_step(x[t] @ w.T + b, projected @ r.T + c, [None, inner])
        projected = hidden @ p.T
        onp.testing.assert_allclose(outputs[t].asnumpy(), projected, **TOLERANCE)
    onp.testing.assert_allclose(states[0].asnumpy(), projected, **TOLERANCE)
    onp.testing.assert_allclose(states[1].asnumpy(), inner, **TOLERANCE)


def test_gradients_of_the_projected_cell():
    cell = rnn.LSTMPCell(3, 2, input_size=2)
    wide(cell)
    x = mx.np.array(onp.random.default_rng(2).normal(size=(1, 2, 2)), dtype="float64")
    check_numeric_gradient(lambda x: cell.unroll(2, x, merge_outputs=True)[0], [x])
    with autograd.record():
        cell.unroll(2, x, merge_outputs=True)[0].sum().backward()
    assert all(float(abs(p.grad()).sum()) > 0 for p in cell.collect_params().values())


def test_projected_cell_refuses_sizes_below_one():
    with pytest.raises(ValueError, match="LSTMPCell: `projection_size` must be positive, found 0"):
        rnn.LSTMPCell(3, 0)


@pytest.mark.parametrize("klass", [rnn.SequentialRNNCell, rnn.HybridSequentialRNNCell])
def test_a_stack_of_cells_finds_out_its_sizes(klass):
    stack = klass()
    stack.add(rnn.LSTMPCell(4, 2))
    stack.add(rnn.GRUCell(3))
    stack.initialize()
    stack.infer_shape(mx.np.ones((1, 5)), stack.begin_state(1))
    assert stack[0].i2h_weight.shape == (16, 5)
    assert stack[1].i2h_weight.shape == (9, 2)


# ---- the packed vector ----


@pytest.mark.parametrize("layer", [rnn.LSTM, rnn.GRU, rnn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_parameters_are_cut_into_those_of_the_layer(layer, bidirectional):
    net = layer(3, num_layers=2, bidirectional=bidirectional, input_size=4)
    net.initialize(mx.init.Normal(1.0))
    packed = net._packed(mx.np.ones((1, 1, 4)))
    parts = gluon.utils.split_rnn_params(packed, net._mode, 2, 4, 3, bidirectional)
    own = net.collect_params()
    assert set(parts) == set(own)
    assert all((parts[name] == own[name].data()).all() for name in own)


def test_pieces_of_a_projected_layer():
    total = 2 * (12 * (5 + 2) + 2 * 3 + 24)
    parts = gluon.utils.split_rnn_params(mx.np.arange(total), "lstm", 1, 5, 3, True, 2)
    shapes = {name: part.shape for name, part in parts.items()}
    assert shapes["r0_h2r_weight"] == (2, 3)
    assert shapes["l0_h2h_weight"] == (12, 2)
    assert sum(part.size for part in parts.values()) == total


def test_every_piece_gets_its_own_initializer():
    rule = mx.init.RNNFused(
        "lstm",
        2,
        3,
        bidirectional=True,
        i2h_weight_initializer=mx.init.Constant(1.0),
        h2h_weight_initializer=mx.init.Constant(2.0),
        i2h_bias_initializer=mx.init.Constant(3.0),
    )
    rule.set_initializer(mx.init.One())
    total = 2 * (12 * (4 + 3) + 24) + 2 * (12 * (6 + 3) + 24)
    packed = mx.np.full((total,), 9.0)
    rule("anything", packed)
    values = {"i2h_weight": 1.0, "h2h_weight": 2.0, "i2h_bias": 3.0, "h2h_bias": 0.0}
    for name, part in gluon.utils.split_rnn_params(packed, "lstm", 2, 4, 3, True).items():
        assert (part == values[name[3:]]).all(), name


def test_lengths_that_fit_no_input_are_refused():
    with pytest.raises(ValueError, match="a packed vector of 15 numbers fits no input size"):
        mx.init.RNNFused("rnn_tanh", 1, 2)("w", mx.np.zeros(15))
    with pytest.raises(ValueError, match=r"`param` must have 14 numbers, found shape \(15,\)"):
        gluon.utils.split_rnn_params(mx.np.zeros(15), "rnn_tanh", 1, 3, 2)
    with pytest.raises(ValueError, match="`mode` must be one of rnn_relu, rnn_tanh, lstm, gru, found 'lsmt'"):
        mx.init.RNNFused("lsmt", 1, 2)
    with pytest.raises(ValueError, match="`projection_size` is for the mode 'lstm' only, found 2 with 'gru'"):
        mx.init.RNNFused("gru", 1, 3, projection_size=2)
