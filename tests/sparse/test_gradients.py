"""Gradients with respect to stored values and dense operands, against those of dense arrays and slopes."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, np, sparse


def dense(shape, seed, density=0.4):
    rng = numpy.random.default_rng(seed)
    return rng.uniform(0.5, 2, shape) * (rng.random(shape) < density)


def compare(function, *matrices, formats=("csr", "csc", "coo"), dense_operands=()):
    """Gradients of a function of sparse arrays are those of dense ones, at the stored places."""
    for format in formats:
        sparse_inputs = [np.array(x) for x in matrices]
        arrays = [getattr(sparse, f"{format}_array")(x) for x in sparse_inputs]
        operands = [np.array(x) for x in dense_operands]
        for x in (*arrays, *operands):
            x.attach_grad()
        with autograd.record():
            y = function(*arrays, *operands)
            y = y.todense() if sparse.issparse(y) else y
            (y * y).sum().backward()
        dense_x = [np.array(x) for x in (*matrices, *dense_operands)]
        for x in dense_x:
            x.attach_grad()
        with autograd.record():
            y = function(*dense_x)
            (y * y).sum().backward()
        # Sums of some tens of products of numbers up to 2^4: 1e-12 is a thousand of their roundings.
        for a, x, values in zip(arrays, dense_x, matrices, strict=False):
            want = x.grad.asnumpy() * (values != 0)
            numpy.testing.assert_allclose(a.grad.todense().asnumpy(), want, rtol=1e-12, atol=1e-12)
        for a, x in zip(operands, dense_x[len(matrices) :], strict=True):
            numpy.testing.assert_allclose(a.grad.asnumpy(), x.grad.asnumpy(), rtol=1e-12, atol=1e-12)


def test_product_with_a_vector():
    compare(lambda a, v: a @ v, dense((5, 7), 1), dense_operands=[dense(7, 2, 1)])


def test_product_with_a_matrix():
    compare(lambda a, v: a @ v, dense((5, 7), 1), dense_operands=[dense((7, 40), 2, 1)])


def test_product_of_a_dense_matrix():
    compare(lambda a, v: v @ a, dense((5, 7), 1), dense_operands=[dense((3, 5), 2, 1)])


def test_product_of_sparse_matrices():
    compare(lambda a, b: a @ b, dense((5, 7), 1), dense((7, 6), 2))


def test_products_of_blocks():
    blocks = numpy.kron(dense((2, 3), 1), numpy.ones((2, 2)))
    compare(lambda a, v: a @ v, blocks, formats=["bsr"], dense_operands=[dense((6, 2), 2, 1)])


@pytest.mark.parametrize("function", [np.add, np.subtract, np.multiply, np.maximum])
def test_functions_of_two_sparse_arrays(function):
    compare(function, dense((5, 7), 1), dense((5, 7), 2))
    compare(function, dense((5, 7), 1), dense((1, 7), 2), formats=["csr"])


def test_functions_with_dense_arrays():
    compare(lambda a, x: a * x, dense((5, 7), 1), dense_operands=[dense((5, 7), 2, 1)])
    compare(lambda a, x: a / x, dense((5, 7), 1), dense_operands=[dense(7, 2, 1)])
    compare(lambda a, x: a + x, dense((5, 7), 1), dense_operands=[dense((5, 7), 2, 1)])


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions(name, axis):
    compare(lambda a: getattr(a, name)(axis=axis), dense((5, 7), 1, 0.7))


def test_rearranging():
    x = dense((5, 7), 1)
    compare(lambda a: a[[3, 0, 3]], x)
    compare(lambda a: a[1:4, 2:6], x)
    compare(lambda a: a.T, x)
    compare(lambda a: np.sin(a), x)
    compare(lambda a: np.concatenate([a, a], axis=1), x)
    compare(lambda a: a.diagonal(1), x, formats=["csr"])
    compare(lambda a: np.tril(a), x)


def test_sampled_product_and_second_order():
    rng = numpy.random.default_rng(0)
    m = sparse.csr_array(np.array(dense((4, 5), 3)))
    x, y = np.array(rng.normal(size=(4, 3))), np.array(rng.normal(size=(5, 3)))
    x.attach_grad()
    with autograd.record():
        z = (sparse.sampled_matmul(x, y, m).data ** 2).sum()
        (first,) = autograd.grad([z], [x], create_graph=True)
        (first**2).sum().backward()
    pattern = m.todense().asnumpy()

    def slope(x):
        return 2 * (pattern**2 * (x @ y.asnumpy().T)) @ y.asnumpy()

    # z is quadratic, so its gradient g is linear in x and the gradient of g.g is 2 g'(g).
    want = 2 * slope(slope(x.asnumpy()))
    numpy.testing.assert_allclose(x.grad.asnumpy(), want, rtol=1e-10)


def test_complex_values():
    rng = numpy.random.default_rng(0)
    pattern = rng.random((3, 4)) < 0.6
    x = (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))) * pattern
    v = np.array(rng.normal(size=4) + 1j * rng.normal(size=4))
    a, dense_x = sparse.csr_array(np.array(x)), np.array(x)
    a.attach_grad()
    dense_x.attach_grad()
    for m in (a, dense_x):
        with autograd.record():
            y = m @ v
            (y * y.conj()).real.sum().backward()
    numpy.testing.assert_allclose(a.grad.todense().asnumpy(), dense_x.grad.asnumpy() * pattern, rtol=1e-12)


def test_duplicates_each_have_their_gradient():
    a = sparse.csr_array(([1.0, 2.0, 3.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    a.attach_grad()
    with autograd.record():
        (a @ np.array([1.0, 10.0])).sum().backward()
    assert a.grad.data.tolist() == [10.0, 10.0, 1.0]


def test_index_arrays_that_were_overwritten_are_an_error_not_a_fault():
    a = sparse.csr_array(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    a.indices[0] = 7
    with pytest.raises(IndexError, match="7"):
        (a @ np.ones(2)).wait_to_read()
    a.indices[0] = 0
    a.indptr[1] = 9
    with pytest.raises(mx.error.ValueError, match="decrease"):
        (a @ np.ones(2)).wait_to_read()
