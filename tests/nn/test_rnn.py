"""Recurrent layers against loops over steps."""

import numpy as onp
import pytest

import mxnet as mx
import slopes
from mxnet import np, npx

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def sigmoid(x):
    return 1 / (1 + onp.exp(-x))


def step(mode, x, h, c, wi, wh, bi, bh):
    a, b = x @ wi.T + bi, h @ wh.T + bh
    n = h.shape[1]
    if mode == "lstm":
        i, f, g, o = (a[:, k * n : (k + 1) * n] + b[:, k * n : (k + 1) * n] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * onp.tanh(g)
        return sigmoid(o) * onp.tanh(c), c
    if mode == "gru":
        r, z = (sigmoid(a[:, k * n : (k + 1) * n] + b[:, k * n : (k + 1) * n]) for k in range(2))
        new = onp.tanh(a[:, 2 * n :] + r * b[:, 2 * n :])
        return (1 - z) * new + z * h, c
    return (onp.tanh(a + b) if mode == "rnn_tanh" else onp.maximum(a + b, 0)), c


def reference(mode, x, parameters, h0, c0, hidden, layers, directions, lengths=None):
    """One sample at a time, one step at a time."""
    time, batch, width = x.shape
    rows = GATES[mode] * hidden
    shapes = []
    for layer in range(layers):
        inputs = width if layer == 0 else directions * hidden
        shapes += [(rows, inputs), (rows, hidden)] * directions
    shapes += [(rows,)] * (2 * layers * directions)
    parts, at = [], 0
    for shape in shapes:
        size = int(onp.prod(shape))
        parts.append(parameters[at : at + size].reshape(shape))
        at += size
    assert at == len(parameters)
    biases = parts[2 * layers * directions :]
    hn, cn = h0.copy(), c0.copy()
    for layer in range(layers):
        y = onp.zeros((time, batch, directions * hidden))
        for direction in range(directions):
            k = layer * directions + direction
            for sample in range(batch):
                length = time if lengths is None else lengths[sample]
                h, c = h0[k, sample : sample + 1], c0[k, sample : sample + 1]
                for t in range(length) if direction == 0 else reversed(range(length)):
                    h, c = step(
                        mode, x[t, sample : sample + 1], h, c, *parts[2 * k : 2 * k + 2], *biases[2 * k : 2 * k + 2]
                    )
                    y[t, sample, direction * hidden : (direction + 1) * hidden] = h
                hn[k, sample], cn[k, sample] = h, c
        x = y
    return x, hn, cn


def case(mode, layers, directions, *, time=5, batch=3, width=4, hidden=6):
    rows, size = GATES[mode] * hidden, 0
    for layer in range(layers):
        size += directions * rows * ((width if layer == 0 else directions * hidden) + hidden + 2)
    shapes = ((time, batch, width), (size,), (layers * directions, batch, hidden), (layers * directions, batch, hidden))
    rng = onp.random.default_rng([len(mode), layers, directions])
    return [rng.uniform(-0.7, 0.7, shape) for shape in shapes], hidden


def run(mode, given, hidden, layers, directions, lengths=None, dtype="float64"):
    x, parameters, h0, c0 = (np.array(a, dtype=dtype) for a in given)
    return npx.rnn(
        x,
        parameters,
        h0,
        c0 if mode == "lstm" else None,
        None if lengths is None else np.array(lengths),
        mode=mode,
        state_size=hidden,
        num_layers=layers,
        bidirectional=directions == 2,
        state_outputs=True,
        use_sequence_length=lengths is not None,
    )


@pytest.mark.parametrize("lengths", [None, [5, 2, 5], [1, 0, 3]])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("mode", list(GATES))
def test_layers_are_loops_over_steps(mode, layers, directions, lengths):
    given, hidden = case(mode, layers, directions)
    want = reference(mode, *given, hidden, layers, directions, lengths)
    got = run(mode, given, hidden, layers, directions, lengths)
    assert len(got) == (3 if mode == "lstm" else 2)
    for g, w in zip(got, want, strict=False):
        onp.testing.assert_allclose(g.asnumpy(), w, atol=1e-12)


@pytest.mark.parametrize("mode", list(GATES))
def test_what_stands_behind_the_ends_takes_no_part(mode):
    given, hidden = case(mode, 2, 2)
    lengths = [5, 2, 0]
    x = given[0].copy()
    for i, length in enumerate(lengths):
        x[length:, i] = onp.nan
    want = reference(mode, *given, hidden, 2, 2, lengths)
    arrays = [np.array(a, dtype="float64") for a in (x, *given[1 : 4 if mode == "lstm" else 3])]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        got = layers_of(mode, hidden, 2, 2, lengths)(*arrays)
    mx.autograd.backward(got)
    for g, w in zip(got, want, strict=False):
        onp.testing.assert_allclose(g.asnumpy(), w, atol=1e-12)
    for a in arrays:
        assert onp.isfinite(a.grad.asnumpy()).all()
    assert not arrays[0].grad.asnumpy()[onp.isnan(x)].any()


def rounded(arrays, dtype):
    """The values of arrays in `dtype`, as float64."""
    return [np.array(a, dtype=dtype).asnumpy().astype(float) for a in arrays]


def bound_of(want, dtype):
    """Largest error of a few steps: one rounding of the result, the steps in float32 (float64 for float64).

    A step adds up to 12 products of numbers below 1 and calls functions whose slope is at most 1: up to 16 roundings
    in each of at most 5 steps.
    """
    eps = float(np.finfo(dtype).eps)
    return eps / 2 * abs(want) + 5 * 16 * min(eps, 2**-23) / 2


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_other_float_types_give_themselves(dtype):
    given, hidden = case("lstm", 1, 2)
    got = run("lstm", given, hidden, 1, 2, dtype=dtype)
    want = reference("lstm", *rounded(given, dtype), hidden, 1, 2)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == dtype
        assert (abs(g.asnumpy().astype(float) - w) <= bound_of(w, dtype)).all()


def test_dropout_works_between_layers_while_training():
    given, hidden = case("gru", 2, 1)
    x, parameters, h0, _ = (np.array(a) for a in given)
    keywords = {"mode": "gru", "state_size": hidden, "num_layers": 2, "p": 0.5}
    undropped = npx.rnn(x, parameters, h0, **keywords).asnumpy()
    with mx.autograd.train_mode():
        dropped = npx.rnn(x, parameters, h0, **keywords).asnumpy()
    onp.testing.assert_allclose(undropped, reference("gru", *given, hidden, 2, 1)[0], atol=1e-5)
    assert abs(undropped - dropped).max() > 1e-3


def test_the_graph_can_be_walked_twice():
    given, hidden = case("lstm", 1, 1)
    arrays = [np.array(a, dtype="float64") for a in given]
    arrays[1].attach_grad()
    grads = []
    with mx.autograd.record():
        y = npx.rnn(*arrays, mode="lstm", state_size=hidden, num_layers=1).sum()
    for _ in range(2):
        y.backward(retain_graph=True)
        grads.append(arrays[1].grad.asnumpy())
    onp.testing.assert_array_equal(*grads)
    assert grads[0].any()


def layers_of(mode, hidden, layers=1, directions=1, lengths=None, **more):
    """`npx.rnn` as a function of its float arrays, with all states as results."""
    keywords = {"mode": mode, "state_size": hidden, "num_layers": layers, "bidirectional": directions == 2}
    keywords |= {"state_outputs": True, "use_sequence_length": lengths is not None, **more}

    def function(x, parameters, h0, c0=None):
        return npx.rnn(x, parameters, h0, c0, None if lengths is None else np.array(lengths), **keywords)

    return function


@pytest.mark.parametrize("directions, lengths", [(1, None), (2, [3, 1])])
@pytest.mark.parametrize("mode", list(GATES))
def test_gradients_of_first_and_second_order_are_the_slopes(mode, directions, lengths):
    x, parameters, h0, c0 = case(mode, 1, directions)[0]
    # Away from the kinks of relu.
    arrays = [x[:3, :2], parameters, h0[:, :2], *([c0[:, :2]] if mode == "lstm" else [])]
    hidden = case(mode, 1, directions)[1]
    slopes.check(layers_of(mode, hidden, 1, directions, lengths), arrays, onp.random.default_rng(5))


@pytest.mark.parametrize("mode", list(GATES))
def test_recorded_and_fused_gradients_agree(mode):
    given, hidden = case(mode, 2, 2)
    arrays = [np.array(a, dtype="float64") for a in (given if mode == "lstm" else given[:3])]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        heads = layers_of(mode, hidden, 2, 2)(*arrays)
        composed = mx.autograd.grad(heads, arrays, create_graph=True)
    fused = mx.autograd.grad(heads, arrays)
    for c, f in zip(composed, fused, strict=True):
        onp.testing.assert_allclose(c.asnumpy(), f.asnumpy(), rtol=1e-12, atol=1e-13)


def projected(x, parameters, h, c, hidden, size, directions, low=-onp.inf, high=onp.inf):
    """One LSTM layer with projected states; its parameter vector has three weights a direction, then the biases."""
    rows, width = 4 * hidden, x.shape[2]
    shapes = [(rows, width), (rows, size), (size, hidden)] * directions + [(rows,)] * (2 * directions)
    parts, at = [], 0
    for shape in shapes:
        parts.append(parameters[at : at + onp.prod(shape)].reshape(shape))
        at += onp.prod(shape)
    assert at == len(parameters)
    y, hn, cn = onp.zeros((*x.shape[:2], directions * size)), [], []
    for k in range(directions):
        (wi, wh, wr), (bi, bh) = parts[3 * k : 3 * k + 3], parts[3 * directions + 2 * k :][:2]
        state, cell = h[k], c[k]
        for t in range(len(x))[:: 1 - 2 * k]:
            i, f, g, o = onp.split(x[t] @ wi.T + bi + state @ wh.T + bh, 4, axis=1)
            cell = onp.clip(sigmoid(f) * cell + sigmoid(i) * onp.tanh(g), low, high)
            state = (sigmoid(o) * onp.tanh(cell)) @ wr.T
            y[t, :, k * size : (k + 1) * size] = state
        hn.append(state)
        cn.append(cell)
    return y, onp.stack(hn), onp.stack(cn)


def projected_case(directions, *, time=4, batch=2, width=3, hidden=5, size=2):
    rng = onp.random.default_rng(directions)
    count = directions * (4 * hidden * (width + size + 2) + size * hidden)
    shapes = ((time, batch, width), (count,), (directions, batch, size), (directions, batch, hidden))
    return [rng.uniform(-0.9, 0.9, shape) for shape in shapes], hidden, size


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("directions", [1, 2])
def test_projected_states_are_the_output_times_a_weight(directions, dtype):
    given, hidden, size = projected_case(directions)
    function = layers_of("lstm", hidden, 1, directions, projection_size=size)
    got = function(*(np.array(a, dtype=dtype) for a in given))
    for g, w in zip(got, projected(*rounded(given, dtype), hidden, size, directions), strict=True):
        assert (g.dtype, g.shape) == (dtype, w.shape)
        assert (abs(g.asnumpy().astype(float) - w) <= bound_of(w, dtype)).all()


def test_gradients_through_projection_and_bounds_are_the_slopes():
    given, hidden, size = projected_case(2, time=3)
    slopes.check(layers_of("lstm", hidden, 1, 2, projection_size=size), given, onp.random.default_rng(1))
    # No cell state comes as near to these bounds as the differences step.
    bounds = {"lstm_state_clip_min": -0.25, "lstm_state_clip_max": 0.35}
    slopes.check(layers_of("lstm", hidden, 1, 2, projection_size=size, **bounds), given, onp.random.default_rng(1))


def test_two_projected_layers_are_one_on_the_other():
    given, hidden, size = projected_case(1, width=2)
    x, parameters, h, c = given
    weights = onp.split(parameters, [len(parameters) - 8 * hidden])
    both = onp.concatenate([weights[0], weights[0], weights[1], weights[1]])
    function = layers_of("lstm", hidden, 2, 1, projection_size=size)
    got = function(*(np.array(a, dtype="float64") for a in (x, both, h.repeat(2, 0), c.repeat(2, 0))))
    first = projected(*given, hidden, size, 1)
    second = projected(first[0], parameters, h, c, hidden, size, 1)
    onp.testing.assert_allclose(got[0].asnumpy(), second[0], atol=1e-12)
    onp.testing.assert_allclose(got[1].asnumpy(), onp.concatenate([first[1], second[1]]), atol=1e-12)


def test_the_cell_state_stays_within_its_bounds():
    given, hidden, size = projected_case(1)
    keywords = {"projection_size": size, "lstm_state_clip_min": -0.2, "lstm_state_clip_max": 0.1}
    got = layers_of("lstm", hidden, **keywords)(*(np.array(a, dtype="float64") for a in given))
    for g, w in zip(got, projected(*given, hidden, size, 1, -0.2, 0.1), strict=True):
        onp.testing.assert_allclose(g.asnumpy(), w, atol=1e-12)
    given[3][0, 0, 0] = onp.nan
    arrays = [np.array(a, dtype="float64") for a in given]
    assert onp.isnan(layers_of("lstm", hidden, **keywords)(*arrays)[2].asnumpy()).any()
    bounded = layers_of("lstm", hidden, lstm_state_clip_nan=True, **keywords)(*arrays)
    assert not any(onp.isnan(y.asnumpy()).any() for y in bounded)


@pytest.mark.parametrize(
    "mode, keywords, message",
    [
        ("gru", {"projection_size": 2}, "are for LSTM layers, not for 'gru'"),
        ("lstm", {"projection_size": 0}, "`projection_size` is 0, must be at least 1"),
        ("lstm", {"projection_size": 2}, r"`parameters` has shape \(\d+,\), these layers have \d+ parameters"),
        ("lstm", {"lstm_state_clip_min": -1.0}, "go together"),
        ("lstm", {"lstm_state_clip_min": 1.0, "lstm_state_clip_max": 0.5}, "is 1, above `lstm_state_clip_max`"),
        ("lstm", {"lstm_state_clip_nan": True}, "needs the bounds"),
    ],
)
def test_projection_and_bounds_say_what_does_not_fit(mode, keywords, message):
    given, hidden = case(mode, 1, 1)
    arrays = [np.array(a) for a in (given if mode == "lstm" else given[:3])]
    with pytest.raises(ValueError, match=message):
        layers_of(mode, hidden, **keywords)(*arrays)


def test_what_does_not_fit_is_said_in_numbers():
    x, h = np.zeros((3, 2, 4)), np.zeros((1, 2, 5))
    keywords = {"mode": "rnn_tanh", "state_size": 5, "num_layers": 1}
    with pytest.raises(ValueError, match=r"`parameters` has shape \(7,\), these layers have 55 parameters"):
        npx.rnn(x, np.zeros(7), h, **keywords)
    with pytest.raises(ValueError, match=r"`state` has shape \(2, 2, 5\), needs \(1, 2, 5\)"):
        npx.rnn(x, np.zeros(55), np.zeros((2, 2, 5)), **keywords)
    with pytest.raises(ValueError, match="only an LSTM has one"):
        npx.rnn(x, np.zeros(55), h, h, **keywords)
    with pytest.raises(ValueError, match=r"`sequence_length` 1 is 4, must be in 0..=3"):
        npx.rnn(x, np.zeros(55), h, None, np.array([1, 4]), use_sequence_length=True, **keywords)


@pytest.mark.parametrize("name", ["mode", "state_size", "num_layers"])
def test_what_must_be_given_is_asked_for(name):
    given = {"mode": "rnn_tanh", "state_size": 1, "num_layers": 1}
    del given[name]
    with pytest.raises(ValueError, match=f"`{name}` must be given"):
        npx.rnn(np.ones((2, 1, 1)), np.ones(4), np.zeros((1, 1, 1)), **given)
