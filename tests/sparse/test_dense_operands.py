"""Elementwise functions of sparse and dense arrays, and functions that are computed at stored elements."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, np, npx, sparse
from mxnet.error import UnsupportedError

FORMATS = ["csr", "csc", "coo", "bsr"]
RNG = numpy.random.default_rng(0)
# No -0.0: zeros that are not stored are positive.
X = numpy.round(RNG.normal(size=(6, 8)), 2) * (RNG.random((6, 8)) < 0.4) + 0.0
Y = numpy.round(RNG.normal(size=(6, 8)), 2)
FUNCTIONS = ["less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "logical_or"]
FUNCTIONS += ["maximum", "minimum", "arctan2", "hypot"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("format", FORMATS)
def test_functions_with_a_dense_array_are_dense(format, name):
    a, function, want = getattr(sparse, f"{format}_array")(np.array(X)), getattr(np, name), getattr(numpy, name)
    for found, expected in ((function(a, np.array(Y)), want(X, Y)), (function(np.array(Y), a), want(Y, X))):
        assert isinstance(found, np.ndarray)
        # Functions of the C library differ in the last bits.
        numpy.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-14)


def test_operators_compare_with_dense_arrays():
    a = sparse.csr_array(np.array(X))
    numpy.testing.assert_array_equal((a > np.array(Y)).asnumpy(), X > Y)
    numpy.testing.assert_array_equal((np.array(Y) >= a).asnumpy(), Y >= X)
    row = sparse.csr_array(np.array(X[:1]))
    numpy.testing.assert_array_equal(np.minimum(row, np.array(Y)).asnumpy(), numpy.minimum(X[:1], Y))
    cube = numpy.stack([X, -X])
    other = numpy.stack([Y, Y])
    numpy.testing.assert_array_equal((sparse.coo_array(np.array(cube)) < np.array(other)).asnumpy(), cube < other)


@pytest.mark.parametrize("format", FORMATS)
def test_logical_and_with_a_dense_array_stays_sparse(format):
    a = getattr(sparse, f"{format}_array")(np.array(X))
    found = np.logical_and(a, np.array(Y[:1] > 0))
    assert sparse.issparse(found)
    numpy.testing.assert_array_equal(found.todense().asnumpy(), numpy.logical_and(X, Y[:1] > 0))


def test_a_dense_operand_that_is_smaller_than_the_result_is_refused():
    a = sparse.csr_array(np.array(X))
    with pytest.raises(UnsupportedError, match=r"maximum: .* shape \(6, 8\), found \(1, 8\)"):
        np.maximum(a, np.array(Y[:1]))


def test_gradients_of_a_maximum_with_a_dense_array():
    a, y = sparse.csr_array(np.array(X)), np.array(Y)
    a.data.attach_grad()
    y.attach_grad()
    with autograd.record():
        np.maximum(a, y).sum().backward()
    numpy.testing.assert_array_equal(y.grad.asnumpy(), Y > X)
    numpy.testing.assert_array_equal(a.data.grad.asnumpy(), (X > Y)[X != 0])


VALUES = {
    "real": np.real,
    "imag": np.imag,
    "isnan": np.isnan,
    "isposinf": np.isposinf,
    "nan_to_num": np.nan_to_num,
    "leaky_relu": npx.leaky_relu,
    "gelu": npx.gelu,
    "activation": lambda x: npx.activation(x, "tanh"),
    "smooth_l1": npx.smooth_l1,
    "copy": np.copy,
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("format", FORMATS)
def test_functions_of_stored_elements(format, name):
    x = X.copy()
    x[x > 1.2] = numpy.nan if name in ("isnan", "nan_to_num") else numpy.inf if name == "isposinf" else 1.25
    a, function = getattr(sparse, f"{format}_array")(np.array(x)), VALUES[name]
    found, want = function(a), function(np.array(x))
    assert found.format == format and found.dtype == want.dtype
    numpy.testing.assert_array_equal(found.todense().asnumpy(), want.asnumpy())


def test_dropout_scales_or_drops_stored_elements():
    a = sparse.csr_array(np.array(X))
    assert (npx.dropout(a, 0.5).data == a.data).all()
    mx.random.seed(0)
    with autograd.record():
        found = npx.dropout(a, 0.5)
    kept = found.data.asnumpy()
    assert found.indices is a.indices and 0 < (kept == 0).sum() < kept.size
    numpy.testing.assert_array_equal(kept[kept != 0], 2 * a.data.asnumpy()[kept != 0])


def test_activations_that_are_not_zero_at_zero_are_refused():
    with pytest.raises(UnsupportedError, match=r"activation\(csr_array\).*not zero at zero"):
        npx.activation(sparse.csr_array(np.array(X)), "sigmoid")


def test_a_function_with_a_dense_array_is_computed_once_at_each_place():
    full = numpy.array([[2.0, 4.0], [5.0, 8.0]])
    x = np.ones((2, 2))
    x.attach_grad()
    with autograd.record(), np.errstate(all="raise"):
        loss = np.divide(x, sparse.csr_array(np.array(full))).sum()
    loss.backward()
    numpy.testing.assert_allclose(x.grad.asnumpy(), 1 / full, rtol=1e-6)


def test_the_sparse_array_may_be_given_by_keyword():
    a = sparse.csr_array(np.array([[-1.0, 0.0], [2.0, 0.0]]))
    assert npx.activation(data=a, act_type="relu").data.tolist() == [0, 2]
    assert np.real(val=a).data.tolist() == [-1, 2]
    assert npx.dropout(data=a, p=0.5).data.tolist() == [-1, 2]


def test_out_is_refused_and_left_alone():
    out = np.ones((2, 2), dtype="bool")
    a = sparse.csr_array(np.array([[-1.0, 0.0], [2.0, 0.0]]))
    for call in (lambda: np.isposinf(a, out), lambda: np.isposinf(a, out=out)):
        with pytest.raises(UnsupportedError, match="isposinf: sparse arrays take no `out`"):
            call()
    assert out.all()


def test_dropout_drops_elements_and_not_their_parts():
    mx.random.seed(0)
    places = (np.array([0, 0]), np.array([1, 1]))
    a = sparse.coo_array((np.array([1.0, 2.0]), places), shape=(1, 2))
    found = {npx.dropout(a, 0.5, "always").todense().asnumpy()[0, 1] for _ in range(40)}
    assert found == {0.0, 6.0}


def test_operands_of_elementwise_functions_may_be_given_by_name():
    a = sparse.csr_array(np.array(X))
    numpy.testing.assert_array_equal(np.subtract(x1=a, x2=np.array(Y)).asnumpy(), X - Y)
    numpy.testing.assert_array_equal(np.subtract(np.array(Y), x2=a).asnumpy(), Y - X)
    numpy.testing.assert_array_equal(npx.relu(data=a).toarray(), numpy.maximum(X, 0))
