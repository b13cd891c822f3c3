"""Ragged arrays in compiled functions: values are an argument, lengths are part of the signature."""

import numpy

import mxnet as mx
from mxnet import autograd, gluon, np, npx, ragged

RNG = numpy.random.default_rng(0)


def rows(*lengths, width=3):
    return ragged.array([RNG.normal(size=(n, width)).astype("float32") for n in lengths])


def test_results_are_those_of_eager_calls():
    def function(r):
        return npx.softmax(r * 2, axis=1), np.sum(r, axis=1), {"lengths": r.lengths()}

    r = rows(2, 0, 4)
    compiled = mx.jit(function)
    for _ in range(2):
        (soft, total, others), (want, summed, _) = compiled(r), function(r)
        assert isinstance(soft, ragged.RaggedArray) and soft.shape == r.shape
        numpy.testing.assert_array_equal(soft.offsets[0].asnumpy(), [0, 2, 2, 6])
        # One compiled loop may round a product and a sum together.
        numpy.testing.assert_allclose(soft.values.asnumpy(), want.values.asnumpy(), rtol=1e-6)
        numpy.testing.assert_allclose(total.asnumpy(), summed.asnumpy(), rtol=1e-6)
        numpy.testing.assert_array_equal(others["lengths"].asnumpy(), [2, 0, 4])


def test_one_graph_for_each_raggedness():
    traces = []

    @mx.jit
    def function(r):
        traces.append(tuple(r._partitions[0].lengths.tolist()))
        return r * 2

    for lengths in ((1, 2), (2, 1), (1, 2)):
        r = rows(*lengths)
        numpy.testing.assert_array_equal(function(r).values.asnumpy(), 2 * r.values.asnumpy())
    assert traces == [(1, 2), (2, 1)]


def test_gradients_flow_to_the_values():
    r = rows(3, 1, 2)
    r.values.attach_grad()
    found = []
    for f in (lambda r: np.square(npx.softmax(r, axis=1)), mx.jit(lambda r: np.square(npx.softmax(r, axis=1)))):
        with autograd.record():
            y = f(r)
            total = y.values.sum()
        total.backward()
        found.append(r.values.grad.asnumpy())
    numpy.testing.assert_allclose(*found, rtol=1e-5, atol=1e-7)


def test_hybridized_layers_train_on_ragged_input():
    r = rows(2, 3, 1)
    grads = []
    for hybridized in (False, True):
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(4, flatten=False, in_units=3, activation="tanh"), gluon.nn.Dense(2, flatten=False))
        mx.random.seed(0)
        net.initialize()
        if hybridized:
            net.hybridize()
        with autograd.record():
            y = net(r)
            loss = np.square(np.sum(y, axis=1)).sum()
        loss.backward()
        assert isinstance(y, ragged.RaggedArray)
        grads.append([p.grad().asnumpy() for p in net.collect_params().values()])
    for eager, compiled in zip(*grads, strict=True):
        # Sums of six terms, rounded in another order.
        numpy.testing.assert_allclose(compiled, eager, rtol=0, atol=12 * 2.0**-24 * abs(eager).max())
