"""Sparse arrays in compiled functions: their parts are arguments."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, np, npx, sparse

RNG = numpy.random.default_rng(0)


def matrix(seed: int, shape=(6, 5)):
    """As many stored elements for each seed, at other places."""
    rng = numpy.random.default_rng(seed)
    dense = numpy.zeros(shape)
    dense.ravel()[rng.choice(dense.size, 9, replace=False)] = rng.uniform(0.5, 1, 9)
    return dense


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "row_sparse"])
def test_results_are_those_of_eager_calls(format):
    v = np.array(RNG.normal(size=(5, 3)))

    @mx.jit
    def function(x, v):
        return np.tanh(x) * 2, x @ v

    dense = matrix(1)
    x = getattr(sparse, f"{format}_array")(np.array(dense))
    for _ in range(2):
        y, product = function(x, v)
        assert type(y) is type(x)
        numpy.testing.assert_allclose(y.todense().asnumpy(), 2 * numpy.tanh(dense), rtol=1e-14)
        numpy.testing.assert_allclose(product.asnumpy(), dense @ v.asnumpy(), rtol=1e-13)


def test_one_graph_serves_other_patterns_of_as_many_elements():
    traces = []

    @mx.jit
    def function(x, v):
        traces.append(x.nnz)
        return x @ v

    v = np.array(RNG.normal(size=5))
    for seed in (1, 2, 3):
        dense = matrix(seed)
        got = function(sparse.csr_array(np.array(dense)), v)
        numpy.testing.assert_allclose(got.asnumpy(), dense @ v.asnumpy(), rtol=1e-13)
    assert traces == [9]
    function(sparse.csr_array(np.array(numpy.eye(6, 5))), v)
    assert traces == [9, 5]


def test_gradients_flow_to_stored_values_and_dense_operands():
    x = sparse.csr_array(np.array(matrix(4)))
    v = np.array(RNG.normal(size=(5, 2)))
    x.attach_grad()
    v.attach_grad()

    def function(x, v):
        return np.square(x @ v).sum()

    found = []
    for f in (function, mx.jit(function)):
        with autograd.record():
            y = f(x, v)
        y.backward()
        found.append((x.grad.data.asnumpy(), v.grad.asnumpy()))
    for eager, compiled in zip(*found, strict=True):
        numpy.testing.assert_allclose(compiled, eager, rtol=1e-13)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, y: np.maximum(a, a.T.T * 2),
        lambda a, y: np.maximum(a, y),
        lambda a, y: np.fmod(a, 2),
        lambda a, y: a[np.array([0, 2, -1])],
        lambda a, y: a[:, [1, 0]],
        lambda a, y: npx.leaky_relu(a),
    ],
)
def test_checks_of_values_are_made_while_a_function_is_traced(function):
    rng = numpy.random.default_rng(0)
    x = rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.5)
    a, y = sparse.csr_array(np.array(x)), np.array(rng.normal(size=(4, 5)))
    want, compiled = function(a, y), mx.jit(function)
    for _ in range(2):
        found = compiled(a, y)
        assert sparse.issparse(found) == sparse.issparse(want)
        dense = [z.todense() if sparse.issparse(z) else z for z in (found, want)]
        numpy.testing.assert_array_equal(*(z.asnumpy() for z in dense))


def test_functions_whose_number_of_elements_depends_on_values():
    x = sparse.csr_array(np.array(matrix(5, (5, 5))))

    @mx.jit
    def function(x):
        return (x @ x + x) * 2

    for _ in range(2):
        want = matrix(5, (5, 5))
        numpy.testing.assert_allclose(function(x).todense().asnumpy(), 2 * (want @ want + want), rtol=1e-13)
