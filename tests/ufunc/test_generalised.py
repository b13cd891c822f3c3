"""Products of vectors and matrices as objects: generalised functions."""

import inspect
import pickle

import numpy
import pytest

import mxnet as mx
from both import both

np = mx.np
NAMES = ["matmul", "vecdot", "matvec", "vecmat"]


@pytest.mark.parametrize("name", NAMES)
def test_products_say_what_numpys_say(name):
    ours, theirs = getattr(np, name), getattr(numpy, name)
    assert isinstance(ours, np.ufunc)
    for attribute in ("__name__", "nin", "nout", "nargs", "identity", "signature"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert repr(ours) == repr(theirs)
    mine = {text for text in ours.types if "E" not in text}
    assert mine == {text for text in theirs.types if not set(text) & set("gGOqQ")}
    assert ours.__doc__.startswith(f"{name}{inspect.signature(ours)}\n\n")
    assert pickle.loads(pickle.dumps(ours)) is ours


@pytest.mark.parametrize(
    "expression",
    [
        "np.{}.reduce(A)",
        "np.{}.accumulate(A)",
        "np.{}.reduceat(A, [0])",
        "np.{}.outer(A, A)",
        "np.{}.at(A, [0], A)",
        "np.{}.resolve_dtypes((np.dtype('f4'), np.dtype('f8'), None))",
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_what_works_on_elements_is_refused_as_by_numpy(name, expression):
    both(expression.format(name), A=numpy.eye(3))


@pytest.mark.parametrize(
    "expression",
    [
        "np.matmul(A, B, dtype='f4')",
        "np.matmul(A, B, dtype='i8', casting='unsafe')",
        "np.matmul(A, B, casting='no')",
        "np.matmul(A, B, out=np.zeros((2, 2), 'f4'))",
        "np.matmul(A, B, out=np.zeros((2, 2), 'i8'), casting='unsafe')",
        "np.matmul(A, B, order='Q')",
        "np.matmul(A, B, subok=False)",
        "np.vecdot(A, A, dtype='f4')",
        "np.vecdot(A, A, casting='unsafe', out=np.zeros(2, int))",
        "np.matvec(A, A[0], casting='same_kind', dtype='f4')",
        "np.vecmat(A[:, 0], A, dtype='f4', order='C')",
    ],
)
def test_keywords_are_numpys(expression):
    a = numpy.array([[1.5, 2, 3], [4, 5, 6]])
    both(expression, A=a, B=a.T.copy(), rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "int64"},
        {"dtype": "float16", "casting": "safe"},
        {"out": np.zeros((2, 2), dtype="int64")},
        {"out": np.zeros((2, 2), dtype="float16"), "casting": "safe"},
    ],
)
def test_casts_that_the_rule_does_not_allow_are_refused(options):
    with pytest.raises(mx.error.UFuncTypeError, match="cannot cast o"):
        np.matmul(np.ones((2, 2)), np.ones((2, 2)), **options)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_results_lie_in_the_order_asked_for(order):
    for a in (numpy.ones((3, 4)), numpy.asfortranarray(numpy.ones((3, 4)))):
        theirs = numpy.matmul(a, a.T.copy("A"), order=order)
        ours = np.matmul(np.array(a), np.array(a.T.copy("A")), order=order)
        if order in "CF":
            assert ours.flags.c_contiguous == theirs.flags.c_contiguous
        assert ours.tolist() == theirs.tolist()


class Answers:
    """Answers in the place of functions."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc.__name__, method, len(inputs), sorted(kwargs)


@pytest.mark.parametrize("name", NAMES)
def test_operands_of_other_classes_answer(name):
    x = np.ones((2, 2))
    assert getattr(np, name)(x, Answers()) == (name, "__call__", 2, [])
    assert getattr(np, name)(Answers(), x, out=x) == (name, "__call__", 2, ["out"])
    assert x @ Answers() == ("matmul", "__call__", 2, [])


def test_the_functions_of_linalg_are_no_ufuncs():
    assert not isinstance(np.linalg.matmul, np.ufunc)
    assert np.linalg.matmul([[1, 2]], [1, 1]).tolist() == [3]
