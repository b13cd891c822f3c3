"""Rows whose lengths follow from values, in compiled functions: the graph runs in pieces."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np, npx, ragged
from mxnet.gluon import nn, rnn


def attended(x):
    return npx.scaled_dot_product_attention(x, x, x)


def with_one_mask(r, v):
    mask = v > 0
    return r[mask] * np.expand_dims(v[mask], 2)


# r: (3, None, 4), v: (3, None) in the same rows, kept: bool (3,), order: a permutation of 0, 1, 2.
FUNCTIONS = {
    "mask": lambda r, v, kept, order: r[v > 0] * 2 + 1,
    "two arrays and a mask": lambda r, v, kept, order: with_one_mask(r, v),
    "mask of a mask": lambda r, v, kept, order: (lambda x: x[x[:, :, 0] > 0])(r[v > 0]),
    "lengths": lambda r, v, kept, order: r[v > 0].lengths(),
    "dense": lambda r, v, kept, order: r[v > 0].to_dense(),
    "mean": lambda r, v, kept, order: np.mean(r[v > -9], axis=1),
    "maximum": lambda r, v, kept, order: np.max(r[v > -9], axis=1),
    "position": lambda r, v, kept, order: np.argmax(r[v > -9], axis=1),
    "sum of the first axis": lambda r, v, kept, order: np.sum(r[v > 0], axis=0),
    "variance of the first axis": lambda r, v, kept, order: np.var(r[v > -9], axis=0),
    "softmax": lambda r, v, kept, order: (npx.softmax(r[v > 0], axis=1), npx.softmax(r[v > 0], axis=0)),
    "attention": lambda r, v, kept, order: attended(r[v > 0]),
    "slice": lambda r, v, kept, order: r[v > -1][:, 1:3],
    "slice backwards": lambda r, v, kept, order: r[v > -1][:, -1:0:-2],
    "last elements": lambda r, v, kept, order: r[v > -1][:, -2:],
    "one row": lambda r, v, kept, order: r[v > 0][-1],
    "rows of a slice": lambda r, v, kept, order: r[v > 0][1:],
    "sort": lambda r, v, kept, order: np.sort(v[v > 0]),
    "flip": lambda r, v, kept, order: np.flip(v[v > 0], axis=1),
    "join rows": lambda r, v, kept, order: np.concatenate([v[v > 0], v[v < 0]], axis=1),
    "join": lambda r, v, kept, order: np.concatenate([v[v > 0], v], axis=0),
    "rows of a mask": lambda r, v, kept, order: r[kept],
    "rows by index": lambda r, v, kept, order: (r[order], np.take(r, order, axis=0), r[order[0]]),
    "elements by index": lambda r, v, kept, order: np.take(r, (v > 0).astype("int64") - 1, axis=1, mode="clip"),
    "lengths of padded rows": lambda r, v, kept, order: ragged.from_dense(np.ones((3, 2, 2)), lengths=order) * 2,
    "mask of padded rows": lambda r, v, kept, order: ragged.from_dense(np.ones((3, 4)), mask=v.to_dense(length=4) > 0),
    "values and lengths": lambda r, v, kept, order: np.cumsum(ragged.from_lengths(np.arange(3), order), axis=1),
    "one number a row": lambda r, v, kept, order: r[v > 0] * order.reshape(3, 1, 1).astype("float32"),
}  # fmt: skip


def parts(x):
    if isinstance(x, tuple):
        return [part for item in x for part in parts(item)]
    return [*(o.asnumpy() for o in x.offsets), x.values.asnumpy()] if hasattr(x, "offsets") else [x.asnumpy()]


def arguments(rng, lengths):
    r = ragged.array([rng.normal(size=(n, 4)).astype("float32") for n in lengths])
    v = r.with_values(np.array(rng.normal(size=r.values.shape[0]).astype("float32")))
    return r, v, np.array(rng.random(3) > 0.5), np.array(rng.permutation(3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_give_the_rows_of_eager_calls(name):
    rng = numpy.random.default_rng(0)
    function = FUNCTIONS[name]
    compiled = mx.jit(function)
    for lengths in ((2, 3, 4), (2, 3, 4), (2, 3, 4), (5, 1, 3)):
        given = arguments(rng, lengths)
        for found, want in zip(parts(compiled(*given)), parts(function(*given)), strict=True):
            numpy.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    report = compiled.trace_report()
    assert len(report) == 2 and not any("note" in entry for entry in report)


class Masked(gluon.HybridBlock):
    """A network that leaves out elements of its rows."""

    def __init__(self, between):
        super().__init__()
        self.before = nn.Dense(4, flatten=False, in_units=4)
        self.between = between
        self.after = nn.Dense(2, flatten=False)

    def forward(self, r):
        h = self.before(r)
        return self.after(self.between(h[np.sum(r, axis=2) > -1.0]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LayerNorm(in_channels=4),
        lambda: rnn.LSTM(5, input_size=4, layout="NTC", bidirectional=True),
        lambda: nn.HybridLambda(attended),
    ],
    ids=["normalisation", "LSTM", "attention"],
)
def test_hybridized_networks_with_masks_train(make):
    found = []
    for hybridized in (False, True):
        mx.random.seed(0)
        rng = numpy.random.default_rng(1)
        net = Masked(make())
        net.initialize()
        if hybridized:
            net.hybridize()
        found.append([])
        for lengths in ((2, 3, 4), (2, 3, 4), (6, 1, 3)):
            r = arguments(rng, lengths)[0]
            r.attach_grad()
            with autograd.record():
                y = net(r)
                loss = np.square(np.sum(y, axis=1)).sum()
            loss.backward()
            grads = [p.grad().asnumpy() for p in net.collect_params().values()]
            found[-1] += [*parts(y), r.grad.values.asnumpy(), *grads]
    for eager, compiled in zip(*found, strict=True):
        # Sums over ten rows, rounded in another order, behind two layers.
        numpy.testing.assert_allclose(compiled, eager, rtol=0, atol=64 * 2.0**-24 * max(1, abs(eager).max()))


def test_lengths_are_checked_when_the_function_runs():
    with pytest.raises((ValueError, IndexError)):
        mx.jit(lambda x, n: ragged.from_dense(x, lengths=n) * 2)(np.ones((2, 3)), np.array([1, 4])).values.asnumpy()
    with pytest.raises(ValueError, match="last offset is 4, but there are 5 rows"):
        mx.jit(lambda x, n: np.sum(ragged.from_lengths(x, n), axis=1))(np.ones(5), np.array([1, 3])).asnumpy()
    with pytest.raises(mx.error.ShapeError, match="`lengths` must be 2 integers, found float32"):
        mx.jit(lambda x, n: ragged.from_dense(x, lengths=n))(np.ones((2, 3)), np.ones(2, dtype="float32"))


def test_offsets_are_checked_when_the_function_runs():
    summed = mx.jit(lambda x, offsets: np.sum(ragged.RaggedArray(x, offsets), axis=1))
    assert summed(np.arange(5.0), np.array([0, 2, 5])).tolist() == [1.0, 9.0]
    with pytest.raises(ValueError, match="offsets start with 0, found 1"):
        summed(np.arange(5.0), np.array([1, 3, 6])).asnumpy()
    doubled = mx.jit(lambda x, offsets: ragged.RaggedArray(x, offsets) * 2)
    assert doubled(np.arange(3.0), np.array([0, 2, 3])).tolist() == [[0.0, 2.0], [4.0]]
    for first in (1, -1):
        with pytest.raises(ValueError, match="must not be negative"):
            doubled(np.arange(3.0), np.array([first, first + 2, first + 3]))
    with pytest.raises(mx.error.DTypeError, match="offsets must be integers, found float32"):
        doubled(np.arange(3.0), np.array([0.0, 3.0]))


def test_a_mask_that_is_written_to_chooses_again():
    def function(v):
        mask = v > 0
        first = v[mask]
        mask.values[0] = False
        return first, v[mask]

    v = ragged.array([[1.0, -2.0, 3.0], [4.0]])
    for found, want in zip(mx.jit(function)(v), function(v), strict=True):
        assert found.tolist() == want.tolist()
    assert function(v)[1].tolist() == [[3.0], [4.0]]


def test_files_have_no_shapes_that_depend_on_values(tmp_path):
    net = Masked(nn.Dense(3, flatten=False))
    net.initialize()
    net.hybridize()
    net(ragged.array([numpy.ones((2, 4)), numpy.ones((1, 4))], dtype="float32"))
    with pytest.raises(RuntimeError, match="shapes of its results depend on values"):
        net.export(tmp_path / "net")
