"""Layers on ragged sequences against the same layers on padded ones."""

import numpy as onp
import pytest
from tests.support import slopes

import mxnet as mx
from mxnet import error, gluon, np, npx, ragged
from mxnet.gluon import nn

RNG = onp.random.default_rng(35)
LENGTHS = [5, 0, 2, 7, 2]


def sequences(channels=4, lengths=LENGTHS):
    padded = RNG.normal(size=(len(lengths), max(lengths), channels))
    return ragged.from_dense(np.array(padded), lengths=lengths)


def rows_of(dense, lengths=LENGTHS):
    return [x[:n] for x, n in zip(dense.asnumpy(), lengths, strict=True)]


def same(r, rows, atol=1e-14):
    for got, want in zip(r, rows, strict=True):
        onp.testing.assert_allclose(got.asnumpy(), want, atol=atol)


def test_affine_maps_and_norms():
    x = sequences()
    w, b = np.array(RNG.normal(size=(3, 4))), np.array(RNG.normal(size=3))
    same(
        npx.fully_connected(x, w, b, no_bias=False, flatten=False),
        rows_of(npx.fully_connected(x.to_dense(), w, b, no_bias=False, flatten=False)),
    )
    gamma, beta = np.array(RNG.normal(size=4)), np.array(RNG.normal(size=4))
    same(npx.layer_norm(x, gamma, beta), rows_of(npx.layer_norm(x.to_dense(), gamma, beta)))
    same(npx.rms_norm(x, gamma), rows_of(npx.rms_norm(x.to_dense(), gamma)))
    with pytest.raises(ValueError, match="pass flatten=False"):
        npx.fully_connected(x, w, b)
    with pytest.raises(error.UnsupportedError, match="is ragged; gamma has one size"):
        npx.layer_norm(x, gamma, beta, axis=1)


def test_softmax_over_ragged_and_uniform_axes():
    x = sequences()
    same(npx.softmax(x), [onp.exp(p) / onp.exp(p).sum(-1, keepdims=True) for p in rows_of(x.to_dense())])
    same(npx.softmax(x, axis=1), [onp.exp(p) / onp.exp(p).sum(0) for p in rows_of(x.to_dense())])
    half = [onp.exp(p / 2) / onp.exp(p / 2).sum(0) for p in rows_of(x.to_dense())]
    same(npx.softmax(x, axis=1, temperature=2.0), half)
    same(npx.log_softmax(x, 1, temperature=2.0), [onp.log(p) for p in half], atol=1e-13)


@pytest.mark.parametrize("heads", [None, 2])
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_of_sequences(heads, is_causal):
    q, k = sequences(), sequences(lengths=[3, 2, 0, 9, 1])
    v = k.with_values(k.values * 2)
    if heads:
        q, k, v = (x.reshape(5, None, heads, 2) for x in (q, k, v))
    got = npx.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    for i in range(5):
        parts = [x[i].swapaxes(0, 1) if heads else x[i] for x in (q, k, v)]
        want = npx.scaled_dot_product_attention(*parts, is_causal=is_causal)
        want = want.swapaxes(0, 1) if heads else want
        onp.testing.assert_allclose(got[i].asnumpy(), want.asnumpy(), atol=1e-14)


def test_attention_of_sequences_is_checked():
    q, k = sequences(), sequences(lengths=[3, 2, 0, 9, 1])
    with pytest.raises(ValueError, match="the raggedness differs"):
        npx.scaled_dot_product_attention(q, k, q)
    with pytest.raises(ValueError, match="5 sequences of queries and 2 of keys"):
        npx.scaled_dot_product_attention(q, k[:2], k[:2])
    with pytest.raises(error.UnsupportedError, match=r"\(ragged, ragged, ragged, dense\)"):
        npx.scaled_dot_product_attention(q, q, q, np.ones((5, 5)))


@pytest.mark.parametrize(
    "given", [{}, {"pad": 1}, {"pad": (2,), "stride": 2}, {"dilate": 2, "pad": 2}, {"num_group": 2, "pad": 1}]
)
def test_convolution_of_sequences(given):
    lengths = [5, 4, 7]
    x = sequences(lengths=lengths)
    w = np.array(RNG.normal(size=(6, 3, 4 // given.get("num_group", 1))))
    b = np.array(RNG.normal(size=6))
    got = npx.convolution(x, w, b, kernel=3, layout="NWC", **given)
    tuples = {
        key: value if key == "num_group" or isinstance(value, tuple) else (value,) for key, value in given.items()
    }
    for i in range(3):
        want = npx.convolution(x[i : i + 1].to_ndarray(), w, b, kernel=(3,), layout="NWC", **tuples)
        onp.testing.assert_allclose(got[i].asnumpy(), want[0].asnumpy(), atol=1e-14)
    turned = npx.convolution(x, w.swapaxes(1, 2), b, **given)
    onp.testing.assert_array_equal(turned.values.asnumpy(), got.values.asnumpy())
    with pytest.raises(ValueError, match="6 filters of 9 channels for 4 channels"):
        npx.convolution(x, np.ones((6, 3, 9)), layout="NWC")


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_recurrent_layers_of_sequences(mode, bidirectional, layers):
    x = sequences()
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    hidden, directions = 3, 1 + bidirectional
    count = sum(
        directions * gates * hidden * ((4 if layer == 0 else hidden * directions) + hidden + 2)
        for layer in range(layers)
    )
    parameters = np.array(RNG.normal(size=count))
    states = [np.array(RNG.normal(size=(layers * directions, 5, hidden))) for _ in range(1 + (mode == "lstm"))]
    named = {"mode": mode, "state_size": hidden, "num_layers": layers, "bidirectional": bidirectional}
    got = npx.rnn(x, parameters, *states, state_outputs=True, **named)
    padded = x.to_dense().swapaxes(0, 1)
    cell = states[1] if mode == "lstm" else None
    want = npx.rnn(
        padded, parameters, states[0], cell, x.lengths(), state_outputs=True, use_sequence_length=True, **named
    )
    same(got[0], rows_of(want[0].swapaxes(0, 1)))
    for a, b in zip(got[1:], want[1:], strict=True):
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=1e-14)


def test_gradients_of_layers():
    offsets = [0, 2, 2, 5]
    values = RNG.normal(size=(5, 2))

    def on(function):
        return lambda x, *others: function(ragged.RaggedArray(x, offsets), *others).values

    w = RNG.normal(size=(3, 3, 2))
    slopes.check(on(lambda r, w: npx.convolution(r, w, pad=1, layout="NWC")), [values, w], RNG)
    slopes.check(on(lambda r, w: npx.fully_connected(r, w, flatten=False)), [values, RNG.normal(size=(3, 2))], RNG)
    slopes.check(on(lambda r, k: npx.scaled_dot_product_attention(r, r, r.with_values(k))), [values, values * 2], RNG)
    parameters, state = RNG.normal(size=2 * 4 * 2 * (2 + 2 + 2)), RNG.normal(size=(2, 3, 2))

    def lstm(r, p, h, c):
        return npx.rnn(r, p, h, c, mode="lstm", state_size=2, num_layers=1, bidirectional=True)

    slopes.check(on(lstm), [values, parameters, state, state * 0.5], RNG)


def test_ctc_of_sequences():
    data, labels = sequences(lengths=[5, 7, 6]), ragged.array([[1, 2], [3], [2, 2, 1]])
    got = npx.ctc_loss(data, labels).asnumpy()
    for i in range(3):
        want = npx.ctc_loss(np.expand_dims(data[i], 1), np.expand_dims(labels[i], 0))
        onp.testing.assert_allclose(got[i], want.asnumpy()[0], rtol=1e-12)


def test_gluon_layers_take_sequences():
    x = sequences().astype("float32")
    tokens = ragged.array([[1, 2, 3], [0], [4, 4]])
    net = nn.HybridSequential()
    net.add(nn.Embedding(5, 6), nn.Dense(4, flatten=False, activation="relu"), nn.LayerNorm(), nn.Dropout(0.5))
    net.initialize()
    assert net(tokens).shape == (3, None, 4)
    same(net(tokens), rows_of(net(tokens.to_dense()), [3, 1, 2]), atol=1e-5)
    dense = nn.Dense(3)
    dense.initialize()
    with pytest.raises(ValueError, match="pass flatten=False"):
        dense(x)
    conv = nn.Conv1D(3, 3, padding=1)
    conv.initialize()
    got = conv(x)
    for i in (0, 3):
        onp.testing.assert_allclose(
            got[i].asnumpy(), conv(x[i : i + 1].to_ndarray().swapaxes(1, 2))[0].asnumpy().T, atol=1e-6
        )


@pytest.mark.parametrize("kind", [gluon.rnn.LSTM, gluon.rnn.GRU, gluon.rnn.RNN])
def test_gluon_recurrent_layers_take_sequences(kind):
    x = sequences().astype("float32")
    layer = kind(3, num_layers=2, bidirectional=True, layout="NTC")
    layer.initialize()
    got, states = layer(x, layer.begin_state(5))
    want, ends = layer(x.to_dense(), layer.begin_state(5), x.lengths())
    # Sums of some ten float32 products in another order.
    same(got, rows_of(want), atol=1e-5)
    for a, b in zip(states, ends, strict=True):
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=1e-5)
    assert layer(x).shape == (5, None, 6)
    other = kind(3)
    other.initialize()
    with pytest.raises(ValueError, match="need the layout 'NTC'"):
        other(x)


@pytest.mark.parametrize("is_causal", [False, True])
def test_multi_head_attention_is_that_of_each_sequence(is_causal):
    x = sequences(6).astype("float32")
    layer = nn.MultiHeadAttention(8, num_heads=2)
    layer.initialize(mx.init.Normal(0.5))
    got = layer(x, is_causal=is_causal)
    mask = np.array(onp.arange(max(LENGTHS)) < onp.array(LENGTHS)[:, None, None, None])
    want = layer(x.to_dense(), mask=mask, is_causal=is_causal)
    # Sums of some ten float32 products, in blocks of other sizes.
    same(got, rows_of(want), atol=1e-5)
    cross = layer(x, sequences(6, lengths=[1, 2, 3, 4, 5]).astype("float32"))
    assert cross.shape == (5, None, 8)
    with pytest.raises(ValueError, match=r"`units` \(7\) must be a positive multiple of `num_heads` \(2\)"):
        nn.MultiHeadAttention(7, 2)


def test_batches_without_padding():
    samples = [([1.0, 2.0], 0), ([], 1), ([3.0], 2)]
    batch, labels = gluon.data.batchify.Group(gluon.data.batchify.Ragged(), gluon.data.batchify.Stack())(samples)
    assert batch.tolist() == [[1, 2], [], [3]]
    assert labels.tolist() == [0, 1, 2]
    assert gluon.data.batchify.Ragged("int32")([onp.ones((2, 3)), onp.ones((1, 3))]).dtype == onp.int32
    assert gluon.data.batchify.Ragged()([np.ones(2), np.ones(1)]).tolist() == [[1, 1], [1]]
    with pytest.raises(ValueError, match="row 1 is a number"):
        gluon.data.batchify.Ragged()([[1.0], 2.0])
    with pytest.raises(ValueError, match="at least one sample"):
        gluon.data.batchify.Ragged()([])


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_make_ragged_batches(workers):
    data = gluon.data.SimpleDataset([onp.arange(n, dtype="float32") for n in (2, 0, 3, 1)])
    loader = gluon.data.DataLoader(
        data, batch_size=2, batchify_fn=gluon.data.batchify.Ragged(), num_workers=workers, thread_pool=True
    )
    assert [batch.tolist() for batch in loader] == [[[0, 1], []], [[0, 1, 2], [0]]]


def test_files_keep_rows(tmp_path):
    deep = ragged.array([[[1, 2], []], [[3]]])
    path = tmp_path / "arrays"
    npx.save(path, {"r": deep, "x": np.ones(2)})
    found = npx.load(path)
    assert found["r"].tolist() == deep.tolist()
    assert found["x"].tolist() == [1, 1]
    npx.save(path, ragged.array([[1.0], []]).astype("bfloat16"))
    assert npx.load(path).astype("float32").tolist() == [[1], []]


@pytest.mark.parametrize("kind", ["Max", "Avg"])
def test_pooling_layers_see_the_elements_of_rows_only(kind):
    rng = onp.random.default_rng(3)
    parts = [rng.normal(size=(n, 4)).astype("float32") for n in (5, 2, 7)]
    r = ragged.array(parts)
    whole = getattr(nn, f"Global{kind}Pool1D")(layout="NWC")
    windows = getattr(nn, f"{kind}Pool1D")(2, 1, 1, layout="NWC")
    for i, part in enumerate(parts):
        one = np.array(part[None])
        onp.testing.assert_allclose(whole(r)[i].asnumpy(), whole(one)[0].asnumpy(), rtol=1e-6)
        onp.testing.assert_allclose(windows(r)[i].asnumpy(), windows(one)[0].asnumpy(), rtol=1e-6)
    without = npx.pooling(r, kernel=3, pad=1, pool_type="avg", count_include_pad=False)
    want = npx.pooling(
        np.array(parts[0][None]), kernel=3, pad=1, pool_type="avg", count_include_pad=False, layout="NWC"
    )
    onp.testing.assert_allclose(without[0].asnumpy(), want[0].asnumpy(), rtol=1e-6)


def test_losses_of_ragged_labels_are_the_means_of_rows():
    rng = onp.random.default_rng(4)
    r = ragged.array([rng.normal(size=(n, 4)).astype("float32") for n in (5, 2, 7)])
    label = ragged.array([rng.integers(0, 4, n) for n in (5, 2, 7)])
    r.attach_grad()
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    with mx.autograd.record():
        found = loss(r, label)
    found.backward()
    for i in range(3):
        x = r[i].copy()
        x.attach_grad()
        with mx.autograd.record():
            want = loss(x, label[i]).mean()
        want.backward()
        onp.testing.assert_allclose(found[i].item(), want.item(), rtol=1e-6)
        onp.testing.assert_allclose(r.grad[i].asnumpy(), x.grad.asnumpy(), rtol=1e-5, atol=1e-7)
    for other in (mx.gluon.loss.L2Loss(), mx.gluon.loss.L1Loss(), mx.gluon.loss.HuberLoss()):
        found = other(r, r * 2)
        for i in range(3):
            onp.testing.assert_allclose(found[i].item(), other(r[i], r[i] * 2).mean().item(), rtol=1e-6)


def test_batch_normalisation_counts_elements_and_no_padding():
    r = ragged.array([onp.random.default_rng(5).normal(size=(n, 4)).astype("float32") for n in (5, 2, 7)])
    layer, other = nn.BatchNorm(axis=-1), nn.BatchNorm(axis=-1)
    for each, x in ((layer, r), (other, r.values)):
        each.initialize()
        with mx.autograd.record():
            each(x)
    onp.testing.assert_array_equal(layer.running_mean.data().asnumpy(), other.running_mean.data().asnumpy())
    onp.testing.assert_array_equal(layer(r).values.asnumpy(), other(r.values).asnumpy())
    other = nn.BatchNorm()
    other.initialize()
    with pytest.raises(mx.error.UnsupportedError, match=r"BatchNorm: axis 1 of shape .* is ragged"):
        other(r)
    with pytest.raises(mx.error.UnsupportedError, match="Flatten: rows of shape"):
        nn.Flatten()(r)
