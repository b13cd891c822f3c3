"""NumPy's functions and operators with our arrays among the operands: ours answer."""

import numpy as np
import pytest

import mxnet as mx

A = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def a():
    return mx.np.array(A)


OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "**": lambda x, y: x**y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "divmod": lambda x, y: divmod(x, y)[1],
}


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("other", [np.float32(2), np.float64(2), np.int64(2), np.full(3, 2, np.float32)], ids=repr)
def test_operators_with_numpy_on_either_side_stay_with_us(sign, other, a):
    apply = OPERATORS[sign]
    for ours, theirs in ((apply(a, other), apply(A, other)), (apply(other, a), apply(other, A))):
        assert isinstance(ours, mx.np.ndarray)
        assert np.allclose(ours.asnumpy(), theirs, rtol=1e-6)


def test_matrix_products_with_numpy_on_either_side_stay_with_us(a):
    for product in (a @ A.T, A.T @ a, np.matmul(A.T, a), np.matmul(a, A.T)):
        assert isinstance(product, mx.np.ndarray)
    assert np.allclose((A.T @ a).asnumpy(), A.T @ A)


def test_bits_with_numpy_on_either_side_stay_with_us():
    x, y = np.array([6, 3]), mx.np.array([5, 1])
    for apply in (lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: x << y, lambda x, y: x >> y):
        for p, q in ((x, y), (y, x)):
            assert isinstance(apply(p, q), mx.np.ndarray)
            assert apply(p, q).tolist() == apply(np.asarray(p), np.asarray(q)).tolist()


def test_numpys_elementwise_functions_and_their_methods_are_ours(a):
    assert isinstance(np.add(a, A), mx.np.ndarray)
    assert np.add(A, a).tolist() == (A + A).tolist()
    assert np.add.reduce(a).tolist() == A.sum(0).tolist()
    assert np.maximum.reduce(a, axis=1, keepdims=True, initial=4).tolist() == [[4], [6]]
    assert np.add.accumulate(a, axis=1).tolist() == A.cumsum(1).tolist()
    assert np.add.reduceat(a, [0, 2], axis=1).tolist() == np.add.reduceat(A, [0, 2], axis=1).tolist()
    assert np.multiply.outer(A[0], a[1]).tolist() == np.multiply.outer(A[0], A[1]).tolist()
    x = np.zeros(3, np.float32)
    np.add.at(x, [0, 0, 2], mx.np.array([1.0, 2.0, 3.0]))
    assert x.tolist() == [3, 0, 3]
    ours = mx.np.zeros(3)
    np.add.at(ours, [0, 0, 2], [1.0, 2.0, 3.0])
    assert ours.tolist() == [3, 0, 3]
    q, r = np.divmod(a, 2)
    assert isinstance(q, mx.np.ndarray)
    assert isinstance(r, mx.np.ndarray)


def test_numpys_functions_write_to_our_arrays_and_ours_to_numpys(a):
    ours = mx.np.zeros((2, 3))
    assert np.add(A, 1, out=ours) is ours
    assert ours.tolist() == (A + 1).tolist()
    theirs = np.zeros((2, 3), np.float32)
    assert np.add(a, 1, out=theirs) is theirs
    assert theirs.tolist() == (A + 1).tolist()
    theirs += a
    assert isinstance(theirs, np.ndarray)
    assert theirs.tolist() == (A + 1 + A).tolist()
    a += A
    assert isinstance(a, mx.np.ndarray)
    assert a.tolist() == (A + A).tolist()


def test_gradients_go_through_numpys_functions(a):
    a.attach_grad()
    with mx.autograd.record():
        y = np.sum(np.exp(a) * A)
    y.backward()
    assert np.allclose(a.grad.asnumpy(), np.exp(A) * A, rtol=1e-6)


def test_other_numpy_functions_are_ours(a):
    for call in (
        lambda x: np.concatenate([x, x]),
        lambda x: np.mean(x, axis=0),
        lambda x: np.sum(x, where=A > 2),
        lambda x: np.max(x, axis=1, initial=5),
        lambda x: np.std(x),
        lambda x: np.transpose(x),
        lambda x: np.where(A > 2, x, 0),
        lambda x: np.linalg.norm(x),
        lambda x: np.cumsum(x),
        lambda x: np.stack([x, A]),
    ):
        ours = call(a)
        assert isinstance(ours, mx.np.ndarray)
        assert np.allclose(ours.asnumpy(), call(A), rtol=1e-6)


def test_functions_we_lack_say_so(a):
    with pytest.raises(TypeError, match=r"numpy\.busday_count has no counterpart.*asnumpy"):
        np.busday_count(a, a)
    with pytest.raises(TypeError, match=r"'isnat' has no counterpart.*asnumpy"):
        np.isnat(a)


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f.erf(x),
        lambda f, x: f.jv(2, x),
        lambda f, x: f.betainc(x, x[0], 0.5),
        lambda f, x: f.sici(x.T[1:]),
        lambda f, x: f.gammaln(x[1, 1]),
        lambda f, x: f.expit(x, where=x > 2, out=x * 0)[1:],
        lambda f, x: f.xlogy.outer(x[0], x[1]),
        lambda f, x: f.expit(x, dtype="float64"),
    ],
)
def test_functions_of_other_libraries_compute_on_the_elements(a, call):
    special = pytest.importorskip("scipy.special")
    got, want = call(special, a), call(special, A)
    for x, y in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        assert isinstance(x, mx.np.ndarray)
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x.asnumpy(), y)


def test_functions_of_other_libraries_write_to_out_and_are_not_recorded(a):
    special = pytest.importorskip("scipy.special")
    out = mx.np.zeros_like(a.T)
    assert special.erf(a, out=out.T) is not None
    np.testing.assert_array_equal(out.T.asnumpy(), special.erf(A))
    a.attach_grad()
    with pytest.raises(TypeError, match=r"erf.*no gradient here.*detach"), mx.autograd.record():
        special.erf(a)
    with pytest.raises(TypeError, match=r"at writes to arrays of NumPy only"):
        special.erf.at(a, 0)


def test_arrays_of_other_libraries_are_left_to_them(a):
    class Other:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return f"{ufunc.__name__} by other"

        def __array_function__(self, func, types, args, kwargs):
            return f"{func.__name__} by other"

    assert np.add(a, Other()) == "add by other"
    assert np.concatenate([a, Other()]) == "concatenate by other"


def test_array_protocol_shares_copies_and_converts(a):
    assert np.asarray(a).tolist() == A.tolist()
    shared = np.asarray(a)
    a[0, 0] = 50
    assert shared[0, 0] == 50
    assert np.array(a, copy=True)[0, 0] == 50
    assert np.asarray(a, dtype="float64").dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(a, dtype="float64", copy=False)


def test_the_namespace_of_the_array_api(a):
    assert a.__array_namespace__() is mx.np
    assert a.__array_namespace__(api_version="2023.12") is mx.np
    with pytest.raises(ValueError, match=r"2019\.01.*2024\.12"):
        a.__array_namespace__(api_version="2019.01")
    assert a.__array_priority__ > 0


class Answering(np.lib.mixins.NDArrayOperatorsMixin):
    """Says what it was asked."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc, method, len(inputs), sorted(kwargs)


def test_methods_ask_the_operands_of_other_classes():
    other, x, add = Answering(), mx.np.ones(3), mx.np.add
    assert add.reduce(other) == (add, "reduce", 1, [])
    assert add.reduce(other, 0, None, None, True) == (add, "reduce", 1, ["axis", "dtype", "keepdims"])
    assert add.reduce(x, out=other) == (add, "reduce", 1, ["out"])
    assert add.accumulate(other, axis=0) == (add, "accumulate", 1, ["axis"])
    assert add.reduceat(other, [0, 1]) == (add, "reduceat", 2, [])
    assert add.outer(x, other) == (add, "outer", 2, [])
    assert add.at(x, [0], other) == (add, "at", 3, [])
    assert add.reduce(x).item() == 3


def test_numpys_arrays_take_ours_as_bounds_masks_and_values():
    host, x = np.array([1.0, 5.0, 2.0]), mx.np.array([1.0, 5.0, 2.0])
    clipped = host.clip(mx.np.array(1.5), 3)
    assert isinstance(clipped, mx.np.ndarray)
    assert clipped.tolist() == [1.5, 3, 2]
    np.putmask(host, x > 1, 0)
    assert host.tolist() == [1, 0, 0]
    np.place(host, x > 1, mx.np.array([7.0, 8.0]))
    assert host.tolist() == [1, 7, 8]
