"""Recurrent cells against NumPy, layers against cells."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd
from mxnet.gluon import rnn
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

LENGTH, BATCH, SIZE, HIDDEN = 4, 3, 2, 5
# Five roundings for each of four steps, values below 1.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}
X = onp.random.default_rng(1).normal(size=(LENGTH, BATCH, SIZE)).astype("float32")


def sigmoid(x):
    return 1 / (1 + onp.exp(-x))


def lstm_step(x, states, w, r, b, c):
    hidden, cell = states
    i, f, g, o = onp.split(x @ w.T + b + hidden @ r.T + c, 4, axis=1)
    cell = sigmoid(f) * cell + sigmoid(i) * onp.tanh(g)
    return [sigmoid(o) * onp.tanh(cell), cell]


def gru_step(x, states, w, r, b, c):
    (hidden,) = states
    xr, xz, xn = onp.split(x @ w.T + b, 3, axis=1)
    hr, hz, hn = onp.split(hidden @ r.T + c, 3, axis=1)
    update = sigmoid(xz + hz)
    return [(1 - update) * onp.tanh(xn + sigmoid(xr + hr) * hn) + update * hidden]


def rnn_step(x, states, w, r, b, c):
    return [onp.tanh(x @ w.T + b + states[0] @ r.T + c)]


@pytest.mark.parametrize(
    ("cell", "step"),
    [(rnn.LSTMCell(HIDDEN), lstm_step), (rnn.GRUCell(HIDDEN), gru_step), (rnn.RNNCell(HIDDEN), rnn_step)],
)
def test_cell_does_its_equations(cell, step):
    cell.initialize(mx.init.Normal(0.5), force_reinit=True)
    outputs, states = cell.unroll(LENGTH, mx.np.array(X), layout="TNC", merge_outputs=True)
    weights = [p.data().asnumpy().astype("float64") for p in cell.collect_params().values()]
    expected = [onp.zeros((BATCH, HIDDEN)) for _ in states]
    for t in range(LENGTH):
        expected = step(X[t], expected, *weights)
        assert_almost_equal(outputs.asnumpy()[t], expected[0], **TOLERANCE)
    for found, state in zip(states, expected, strict=True):
        assert_almost_equal(found, state, **TOLERANCE)


@pytest.mark.parametrize("klass", [rnn.RNNCell, rnn.GRUCell, rnn.LSTMCell])
def test_cell_gradients(klass):
    cell = klass(2, input_size=2)
    cell.initialize(mx.init.Normal(0.7))
    cell.cast("float64")
    check_numeric_gradient(
        lambda x: cell.unroll(3, x, merge_outputs=True)[0], [onp.random.default_rng(0).normal(size=(2, 3, 2))]
    )


LAYERS = {
    "lstm": (rnn.LSTM, rnn.LSTMCell, {}),
    "gru": (rnn.GRU, rnn.GRUCell, {}),
    "tanh": (rnn.RNN, rnn.RNNCell, {"activation": "tanh"}),
    "relu": (rnn.RNN, rnn.RNNCell, {"activation": "relu"}),
}


def stack_of_cells(layer, klass, kwargs, num_layers, bidirectional):
    """Cells with the parameters of a layer."""
    stack = rnn.HybridSequentialRNNCell()
    params = layer.collect_params()
    for number in range(num_layers):
        cells = []
        for direction in "lr"[: 1 + bidirectional]:
            cell = klass(HIDDEN, **kwargs)
            prefix = f"{direction}{number}_"
            cell.share_parameters({name: params[prefix + name] for name in cell.collect_params()})
            cells.append(cell)
        stack.add(rnn.BidirectionalCell(*cells) if bidirectional else cells[0])
    return stack


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_a_stack_of_cells(name, num_layers, bidirectional):
    layer_class, cell_class, kwargs = LAYERS[name]
    layer = layer_class(HIDDEN, num_layers, bidirectional=bidirectional, **kwargs)
    layer.initialize(mx.init.Normal(0.5))
    x = mx.np.array(X)
    output, states = layer(x, layer.begin_state(BATCH))
    assert output.shape == (LENGTH, BATCH, HIDDEN * (1 + bidirectional))
    assert all(state.shape == (num_layers * (1 + bidirectional), BATCH, HIDDEN) for state in states)
    expected = x
    for cell in stack_of_cells(layer, cell_class, kwargs, num_layers, bidirectional):
        expected, _ = cell.unroll(LENGTH, expected, layout="TNC", merge_outputs=True)
    assert_almost_equal(output, expected, **TOLERANCE)


@pytest.mark.parametrize("name", LAYERS)
def test_layer_gradient_is_that_of_the_cells(name):
    layer_class, cell_class, kwargs = LAYERS[name]
    layer = layer_class(HIDDEN, 2, **kwargs)
    layer.initialize(mx.init.Normal(0.5))
    layer(mx.np.array(X))
    stack = stack_of_cells(layer, cell_class, kwargs, 2, False)
    grads = []
    for run in (layer, lambda x: stack.unroll(LENGTH, x, layout="TNC", merge_outputs=True)[0]):
        with autograd.record():
            loss = mx.np.square(run(mx.np.array(X))).sum()
        loss.backward()
        grads.append({n: p.grad().asnumpy() for n, p in layer.collect_params().items()})
    for parameter in grads[0]:
        assert_almost_equal(grads[0][parameter], grads[1][parameter], **TOLERANCE)


def test_layouts_are_transposes():
    layer = rnn.LSTM(HIDDEN)
    layer.initialize(mx.init.Normal(0.5))
    expected = layer(mx.np.array(X)).asnumpy()
    turned = rnn.LSTM(HIDDEN, layout="NTC")
    turned.share_parameters(layer.collect_params())
    found = turned(mx.np.array(X.swapaxes(0, 1))).asnumpy()
    assert_almost_equal(found.swapaxes(0, 1), expected, **TOLERANCE)


def test_wrong_states_are_refused_with_their_shapes():
    layer = rnn.LSTM(HIDDEN)
    layer.initialize()
    with pytest.raises(ValueError, match=r"\(1, 3, 5\).*found \[\(1, 2, 5\)"):
        layer(mx.np.array(X), layer.begin_state(2))


def test_valid_length_masks_outputs_and_keeps_the_last_state():
    cell = rnn.LSTMCell(HIDDEN)
    cell.initialize(mx.init.Normal(0.5))
    lengths = [4, 1, 2]
    outputs, states = cell.unroll(LENGTH, mx.np.array(X), layout="TNC", valid_length=mx.np.array(lengths))
    full, _ = cell.unroll(LENGTH, mx.np.array(X), layout="TNC", merge_outputs=True)
    for sample, length in enumerate(lengths):
        assert_almost_equal(outputs.asnumpy()[:length, sample], full.asnumpy()[:length, sample], **TOLERANCE)
        assert (outputs.asnumpy()[length:, sample] == 0).all()
        assert_almost_equal(states[0].asnumpy()[sample], full.asnumpy()[length - 1, sample], **TOLERANCE)


def test_backward_direction_begins_at_the_valid_end():
    cell = rnn.BidirectionalCell(rnn.RNNCell(HIDDEN), rnn.RNNCell(HIDDEN))
    cell.initialize(mx.init.Normal(0.5))
    outputs, _ = cell.unroll(LENGTH, mx.np.array(X), layout="TNC", valid_length=mx.np.array([4, 2, 3]))
    alone, _ = cell.unroll(2, mx.np.array(X[:2, 1:2]), layout="TNC", merge_outputs=True)
    assert_almost_equal(outputs.asnumpy()[:2, 1:2], alone, **TOLERANCE)


def test_one_step_of_both_directions_makes_no_sense():
    cell = rnn.BidirectionalCell(rnn.RNNCell(HIDDEN), rnn.RNNCell(HIDDEN))
    with pytest.raises(NotImplementedError, match="unroll"):
        cell(mx.np.ones((1, 2)), [])


def test_residual_adds_the_input():
    inner = rnn.RNNCell(SIZE)
    cell = rnn.ResidualCell(inner)
    cell.initialize(mx.init.Normal(0.5))
    x = mx.np.array(X[0])
    with_input, _ = cell(x, cell.begin_state(BATCH))
    without, _ = inner(x, inner.begin_state(BATCH))
    assert_almost_equal(with_input, without.asnumpy() + X[0], **TOLERANCE)


def test_zoneout_keeps_old_states_while_training_only():
    inner = rnn.RNNCell(200)
    cell = rnn.ZoneoutCell(inner, zoneout_states=0.5)
    cell.initialize(mx.init.Normal(0.5))
    x, states = mx.np.array(X[0]), [mx.np.ones((BATCH, 200)) * 7]
    assert (cell(x, states)[1][0].asnumpy() != 7).all()
    with autograd.train_mode():
        kept = (cell(x, states)[1][0].asnumpy() == 7).mean()
    # Six standard deviations of 600 coin tosses.
    assert abs(kept - 0.5) < 6 * 0.5 / 600**0.5


def test_lists_of_steps_stay_lists():
    cell = rnn.GRUCell(HIDDEN)
    cell.initialize()
    outputs, _ = cell.unroll(LENGTH, [mx.np.array(step) for step in X])
    assert isinstance(outputs, list)
    assert len(outputs) == LENGTH
    with pytest.raises(ValueError, match="`length` is 9, but the inputs have 4 steps"):
        cell.unroll(9, mx.np.array(X), layout="TNC")


def test_variational_dropout_drops_the_same_in_every_step():
    class Copy(rnn.HybridRecurrentCell):
        def state_info(self, batch_size=0):
            return []

        def forward(self, inputs, states):
            return inputs, states

    cell = rnn.VariationalDropoutCell(Copy(), drop_inputs=0.5)
    x = mx.np.ones((1, 3, 100))
    with autograd.train_mode():
        first = cell.unroll(3, x, merge_outputs=True)[0].asnumpy()[0]
        second = cell.unroll(3, x, merge_outputs=True)[0].asnumpy()[0]
    assert (first[0] == first[1]).all()
    assert (first[0] == first[2]).all()
    assert 0 < (first[0] == 0).sum() < 100
    # Equal by chance once in 2**100 times.
    assert (first[0] != second[0]).any()
    assert (cell.unroll(3, x, merge_outputs=True)[0].asnumpy() == 1).all()
    with pytest.raises(ValueError, match=r"`drop_states` must be in \[0, 1\], found 1.5"):
        rnn.VariationalDropoutCell(Copy(), drop_states=1.5)
    with autograd.train_mode():
        assert (rnn.VariationalDropoutCell(Copy(), drop_inputs=1).unroll(3, x, merge_outputs=True)[0] == 0).all()


def bidirectional(n):
    return rnn.BidirectionalCell(rnn.GRUCell(n), rnn.GRUCell(n))


@pytest.mark.parametrize("kind", [rnn.SequentialRNNCell, rnn.HybridSequentialRNNCell])
@pytest.mark.parametrize("lengths", [None, [4, 2, 3]])
def test_stacks_of_bidirectional_cells_are_layers(kind, lengths):
    stack = kind()
    stack.add(bidirectional(3))
    stack.add(rnn.ResidualCell(bidirectional(3)))
    stack.add(rnn.DropoutCell(0.5))
    stack.initialize(mx.init.Normal(0.5))
    stack.hybridize()
    valid = None if lengths is None else mx.np.array(lengths)
    outputs, states = stack.unroll(LENGTH, mx.np.array(X), layout="TNC", merge_outputs=True, valid_length=valid)
    assert len(states) == 4
    expected, found = mx.np.array(X), []
    for number in range(2):
        layer = rnn.GRU(3, bidirectional=True, use_sequence_length=lengths is not None)
        layer.initialize()
        layer(expected, layer.begin_state(X.shape[1]), *([] if valid is None else [valid]))
        cell = stack[number] if number == 0 else stack[number].base_cell
        for side, part in (("l", cell.l_cell), ("r", cell.r_cell)):
            for name in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias"):
                getattr(layer, f"{side}0_{name}").set_data(getattr(part, name).data())
        below = expected
        expected, last = layer(expected, layer.begin_state(X.shape[1]), *([] if valid is None else [valid]))
        found += [*last[0]]
        if number == 1:
            inside = 1 if valid is None else mx.np.expand_dims(mx.np.arange(LENGTH).reshape((-1, 1)) < valid, -1)
            expected = (expected + below) * inside
    assert_almost_equal(outputs, expected, **TOLERANCE)
    for state, other in zip(states, found, strict=True):
        assert_almost_equal(state, other, **TOLERANCE)


@pytest.mark.parametrize("is_bidirect", [False, True])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda: rnn.RNNCell(4), 4),
        (lambda: rnn.LSTMCell(4), 16),
        (lambda: rnn.GRUCell(4), 12),
        (lambda: rnn.LSTMPCell(8, 4), 32),
        (lambda: rnn.ResidualCell(rnn.GRUCell(4)), 12),
        (lambda: rnn.ZoneoutCell(rnn.GRUCell(4)), 12),
        (lambda: rnn.VariationalDropoutCell(rnn.GRUCell(4)), 12),
    ],
)
def test_sizes_follow_from_the_place_in_a_stack(make, rows, layer, is_bidirect):
    """As MXNet 2 calls it: the first layer reads `x`, others one or two states."""
    cell = make()
    cell.infer_shape(layer, mx.np.ones((2, 3)), is_bidirect)
    weight = getattr(cell, "base_cell", cell).i2h_weight
    assert weight.shape == (rows, 3 if layer == 0 else 8 if is_bidirect else 4)


def test_stacks_tell_their_cells_their_places():
    x = mx.np.ones((2, 3))
    cell = bidirectional(4)
    cell.infer_shape(1, x, False)
    assert cell.l_cell.i2h_weight.shape == cell.r_cell.i2h_weight.shape == (12, 8)
    for kind in (rnn.SequentialRNNCell, rnn.HybridSequentialRNNCell):
        stack = kind()
        stack.add(rnn.LSTMCell(4))
        stack.add(rnn.DropoutCell(0.5))
        stack.add(rnn.GRUCell(4))
        stack.infer_shape(0, x, False)
        assert [stack[0].i2h_weight.shape, stack[2].i2h_weight.shape] == [(16, 3), (12, 4)]


@pytest.mark.parametrize("make", [rnn.GRUCell, bidirectional])
def test_steps_are_a_list_unless_lengths_are_given(make):
    """As in MXNet 2, whose programs read `outputs[-1]` for the last step."""
    cell = make(4)
    cell.initialize()
    x = mx.np.array(X).swapaxes(0, 1)
    merged, _ = cell.unroll(LENGTH, x, merge_outputs=True)
    steps, _ = cell.unroll(LENGTH, x)
    assert isinstance(steps, list) and len(steps) == LENGTH
    assert_almost_equal(mx.np.stack(steps, axis=1), merged, rtol=0, atol=0)
    assert cell.unroll(LENGTH, x, valid_length=mx.np.array([4, 2, 3]))[0].shape == merged.shape


@pytest.mark.parametrize("layout", ["TNC", "NTC"])
def test_dynamic_unroll_is_unroll(layout):
    cell = rnn.LSTMCell(HIDDEN)
    cell.initialize(mx.init.Normal(0.5))
    x = mx.np.array(X if layout == "TNC" else X.swapaxes(0, 1))
    begin, lengths = [mx.np.ones((BATCH, HIDDEN))] * 2, mx.np.array([1, 4, 2])
    outputs, states = rnn.rnn_cell.dynamic_unroll(cell, x, begin, layout=layout, valid_length=lengths)
    expected, last = cell.unroll(LENGTH, x, begin, layout, True, lengths)
    for found, wanted in zip([outputs, *states], [expected, *last], strict=True):
        assert (found == wanted).all()
    with autograd.train_mode():
        dropped, _ = rnn.rnn_cell.dynamic_unroll(cell, x, begin, drop_outputs=0.5, layout=layout)
        same, _ = rnn.rnn_cell.dynamic_unroll(cell, x, begin, drop_inputs=1e-9, layout=layout)
    # A feature is dropped at all steps or at none.
    is_zero = (dropped.asnumpy() == 0).sum(axis=layout.find("T"))
    assert set(is_zero.ravel().tolist()) == {0, LENGTH}
    assert_almost_equal(same, rnn.rnn_cell.dynamic_unroll(cell, x, begin, layout=layout)[0], **TOLERANCE)
