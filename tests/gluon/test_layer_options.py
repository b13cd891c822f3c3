"""Options of layers: channels last, padding on each side, projected and bounded LSTM states, lengths."""

import inspect

import numpy as onp
import pytest
import scipy.special

import mxnet as mx
from mxnet.gluon import nn, rnn
from mxnet.gluon._for_axes import for_axes
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

GENERATOR = onp.random.default_rng(5)


@pytest.mark.parametrize(
    ("make", "shape", "first", "last"),
    [
        (lambda layout: nn.Conv1D(4, 3, groups=2, padding=1, layout=layout), (2, 2, 6), "NCW", "NWC"),
        (lambda layout: nn.Conv2D(3, (2, 3), strides=2, layout=layout), (2, 2, 6, 5), "NCHW", "NHWC"),
        (lambda layout: nn.Conv3D(2, 2, dilation=2, layout=layout), (1, 2, 4, 3, 4), "NCDHW", "NDHWC"),
        (lambda layout: nn.Conv1DTranspose(3, 2, strides=2, layout=layout), (2, 2, 3), "NCW", "NWC"),
        (
            lambda layout: nn.Conv2DTranspose(3, 2, output_padding=1, strides=2, layout=layout),
            (1, 2, 3, 2),
            "NCHW",
            "NHWC",
        ),
        (lambda layout: nn.Conv3DTranspose(2, 2, layout=layout), (1, 2, 2, 2, 2), "NCDHW", "NDHWC"),
        (lambda layout: nn.MaxPool1D(2, layout=layout), (2, 3, 5), "NCW", "NWC"),
        (lambda layout: nn.AvgPool2D(3, 2, 1, layout=layout), (2, 3, 5, 4), "NCHW", "NHWC"),
        (lambda layout: nn.MaxPool3D(2, layout=layout), (1, 2, 4, 4, 2), "NCDHW", "NDHWC"),
        (lambda layout: nn.GlobalAvgPool2D(layout=layout), (2, 3, 4, 3), "NCHW", "NHWC"),
        (lambda layout: nn.GlobalMaxPool1D(layout=layout), (2, 3, 4), "NCW", "NWC"),
    ],
)
def test_channels_last_is_the_transposed_layer(make, shape, first, last):
    one, other = make(first), make(last)
    one.initialize(mx.init.Normal(1.0))
    other.initialize()
    x = GENERATOR.normal(size=shape).astype("float32")
    moved = onp.moveaxis(x, 1, -1)
    expected, found = one(mx.np.array(x)), other(mx.np.array(moved))
    for mine, theirs in zip(one.collect_params().values(), other.collect_params().values(), strict=True):
        values = mine.data().asnumpy()
        theirs.set_data(onp.moveaxis(values, 1, -1) if values.ndim > 1 else values)
    found = other(mx.np.array(moved)).asnumpy()
    # At most 24 products are added up in another order: some units in the last place of the largest.
    onp.testing.assert_allclose(onp.moveaxis(found, -1, 1), expected.asnumpy(), rtol=1e-5, atol=1e-5)
    assert f"layout={last}" in repr(other)


def test_other_layouts_are_refused_by_name():
    with pytest.raises(ValueError, match="`layout` must be 'NCHW' or 'NHWC', found 'CHWN'"):
        nn.Conv2D(1, 1, layout="CHWN")
    with pytest.raises(ValueError, match="`layout` must be 'NCW' or 'NWC', found 'NHWC'"):
        nn.MaxPool1D(layout="NHWC")


def test_reflection_takes_eight_numbers():
    x = GENERATOR.normal(size=(1, 2, 4, 5)).astype("float32")
    found = nn.ReflectionPad2D((0, 0, 0, 0, 1, 3, 2, 0))(mx.np.array(x))
    assert (found.asnumpy() == onp.pad(x, ((0, 0), (0, 0), (1, 3), (2, 0)), mode="reflect")).all()
    assert repr(nn.ReflectionPad2D((0, 0, 0, 0, 1, 3, 2, 0))) == "ReflectionPad2D((0, 0, 0, 0, 1, 3, 2, 0))"
    assert repr(nn.ReflectionPad2D(2)) == "ReflectionPad2D(2)"
    with pytest.raises(ValueError, match="8 numbers that begin with four zeros"):
        nn.ReflectionPad2D((1, 0, 0, 0, 1, 1, 1, 1))
    with pytest.raises(ValueError, match="4 by 5 are too small to reflect 4 pixels"):
        nn.ReflectionPad2D((0, 0, 0, 0, 0, 4, 0, 0))(mx.np.array(x))


def lstm_by_hand(x, h, c, w, r, p, b, low=-onp.inf, high=onp.inf):
    """One layer in float64: gates input, forget, cell, output; `p` projects the output."""
    outputs = []
    for step in x:
        i, f, g, o = onp.split(step @ w.T + h @ r.T + b, 4, axis=1)
        c = scipy.special.expit(f) * c + scipy.special.expit(i) * onp.tanh(g)
        c = onp.clip(c, low, high)
        h = scipy.special.expit(o) * onp.tanh(c)
        h = h if p is None else h @ p.T
        outputs.append(h)
    return onp.stack(outputs), h, c


@pytest.mark.parametrize("projection", [None, 2])
@pytest.mark.parametrize("clip", [None, 0.1])
def test_lstm_with_projection_and_bounds_is_its_formula(projection, clip):
    bounds = {} if clip is None else {"state_clip_min": -clip, "state_clip_max": clip, "state_clip_nan": True}
    layer = rnn.LSTM(3, projection_size=projection, h2r_weight_initializer=mx.init.Normal(0.7), **bounds)
    layer.initialize(mx.init.Normal(0.8))
    layer.cast("float64")
    x = GENERATOR.normal(size=(5, 2, 4))
    states = layer.begin_state(2, dtype="float64")
    assert [state.shape for state in states] == [(1, 2, projection or 3), (1, 2, 3)]
    found, (h, c) = layer(mx.np.array(x), states)
    values = {name: parameter.data().asnumpy() for name, parameter in layer.collect_params().items()}
    limit = onp.inf if clip is None else clip
    expected, last, cell = lstm_by_hand(
        x, states[0].asnumpy()[0], states[1].asnumpy()[0], values["l0_i2h_weight"], values["l0_h2h_weight"],
        values.get("l0_h2r_weight"), values["l0_i2h_bias"] + values["l0_h2h_bias"], -limit, limit,
    )  # fmt: skip
    for mine, theirs in ((found, expected), (h[0], last), (c[0], cell)):
        onp.testing.assert_allclose(mine.asnumpy(), theirs, rtol=1e-12, atol=1e-14)
    if clip is not None:
        assert onp.abs(c.asnumpy()).max() == clip


def test_projected_layers_stack_in_both_directions_with_gradients():
    layer = rnn.LSTM(3, num_layers=2, bidirectional=True, projection_size=2)
    layer.initialize(mx.init.Normal(0.5))
    layer.cast("float64")
    x = GENERATOR.normal(size=(3, 2, 2))
    assert layer(mx.np.array(x)).shape == (3, 2, 4)
    check_numeric_gradient(layer, [x], rtol=1e-6, atol=1e-8)
    assert layer.collect_params()["r1_h2r_weight"].shape == (2, 3)


@pytest.mark.parametrize("kind", [rnn.RNN, rnn.LSTM, rnn.GRU])
def test_use_sequence_length_asks_for_lengths(kind):
    layer = kind(3, use_sequence_length=True, bidirectional=True)
    layer.initialize()
    x = mx.np.array(GENERATOR.normal(size=(4, 2, 2)).astype("float32"))
    found = layer(x, sequence_length=mx.np.array([2, 4])).asnumpy()
    alone = layer(x[:2, :1], sequence_length=mx.np.array([2])).asnumpy()
    assert (found[2:, 0] == 0).all()
    onp.testing.assert_allclose(found[:2, :1], alone, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match=rf"{kind.__name__}: `use_sequence_length` asks for `sequence_length`"):
        layer(x)


def test_bounds_come_together():
    with pytest.raises(ValueError, match="given together"):
        rnn.LSTM(3, state_clip_min=-1.0)
    with pytest.raises(ValueError, match="given together"):
        rnn.LSTM(3, state_clip_nan=True)
    with pytest.raises(ValueError, match="`projection_size` must be at least 1 or None, found 0"):
        rnn.LSTM(3, projection_size=0)


@pytest.mark.parametrize("cell", [rnn.RNNCell(3), rnn.LSTMCell(3), rnn.GRUCell(3)])
def test_cells_take_the_place_in_a_stack(cell):
    x = mx.np.ones((2, 5))
    for layer, both, expected in ((0, False, 5), (1, False, 3), (2, True, 6)):
        twin = type(cell)(3)
        twin.infer_shape(layer, x, both)
        assert twin.i2h_weight.shape[1] == expected


def test_lstmp_cells_take_the_place_in_a_stack():
    cell = rnn.LSTMPCell(4, 3)
    cell.infer_shape(1, mx.np.ones((2, 5)), True)
    assert cell.i2h_weight.shape == (16, 6)


def test_sync_batch_norm_is_batch_norm_on_one_device():
    x = mx.np.array(GENERATOR.normal(size=(4, 3, 2)).astype("float32"))
    nets = [nn.BatchNorm(), nn.SyncBatchNorm(num_devices=1)]
    outputs = []
    for net in nets:
        net.initialize()
        with mx.autograd.record():
            outputs.append(net(x).asnumpy())
    assert (outputs[0] == outputs[1]).all()
    assert (nets[0].running_var.data().asnumpy() == nets[1].running_var.data().asnumpy()).all()
    with pytest.raises(ValueError, match=r"`num_devices` must be 1 or the number of processes \(1\), found 2"):
        nn.SyncBatchNorm(num_devices=2)


def test_layers_of_axes_have_defaults_of_all_kinds_of_arguments():
    class Shared:
        _num_axes: int

        def __init__(self, size, stride=1, *, padding=0, layout):
            self.made = (size, stride, padding, layout)

    @for_axes(2, size=(3, 3), layout="NCHW")
    class Layer(Shared):
        """A layer."""

    assert str(inspect.signature(Layer)) == "(size=(3, 3), stride=1, *, padding=0, layout='NCHW')"
    assert Layer().made == ((3, 3), 1, 0, "NCHW")
    assert Layer(2, padding=1).made == (2, 1, 1, "NCHW")


def test_recurrent_layers_may_drop_all_between_layers():
    layer = rnn.LSTM(3, num_layers=2, dropout=1.0)
    layer.initialize()
    x = mx.np.array(onp.random.default_rng(1).normal(size=(4, 2, 5)))
    with mx.autograd.record():
        found = layer(x)
    blank = rnn.LSTM(3, num_layers=2)
    blank.initialize()
    blank(x)
    for name, parameter in layer.collect_params().items():
        blank.collect_params()[name].set_data(parameter.data())
    blank.collect_params()["l1_i2h_weight"].set_data(mx.np.zeros((12, 3)))
    assert_almost_equal(found, blank(x), rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match=r"`dropout` must be in \[0, 1\], found 1.5"):
        rnn.GRU(3, dropout=1.5)


def test_defaults_of_layers_for_some_axes_are_parameters():
    with pytest.raises(TypeError, match=r"no parameter of the constructor is called \['sise'\]"):
        for_axes(2, sise=3)(type("Layer", (nn.Conv2D,), {"__doc__": "A layer."}))
