"""Whatever NumPy makes an array of is an operand, an argument, an index and a value to assign."""

import array as pyarray
import enum
from collections import UserList, deque

import numpy as onp
import pytest

import mxnet as mx
from both import both, outcome
from mxnet import np


class Sequence:
    """Items by number, and how many: no more is needed."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Protocol:
    """An array by `__array__` alone."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return onp.array(self.values, dtype)


class Interface:
    """An array by `__array_interface__` alone."""

    def __init__(self, values):
        self.values = onp.array(values)
        self.__array_interface__ = self.values.__array_interface__


class Capsules:
    """An array by DLPack alone."""

    def __init__(self, values):
        self.values = onp.array(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Colour(enum.IntEnum):
    BLUE = 2


class Metres(float):
    pass


# Every one of them holds 0, 1 and 2.
LIKES = {
    "range": range(3),
    "deque": deque([0, 1, 2]),
    "array.array": pyarray.array("d", [0, 1, 2]),
    "array.array of integers": pyarray.array("i", [0, 1, 2]),
    "bytearray": bytearray([0, 1, 2]),
    "memoryview": memoryview(bytes([0, 1, 2])),
    "UserList": UserList([0, 1, 2]),
    "sequence": Sequence(0, 1, 2),
    "sequence of floats": Sequence(0.0, 1.0, 2.0),
    "__array__": Protocol([0, 1, 2]),
    "__array_interface__": Interface([0.0, 1.0, 2.0]),
    "subclass of list": type("Row", (list,), {})([0, 1, 2]),
    "namedtuple": __import__("collections").namedtuple("P", "x y z")(0, 1, 2),
    "numpy.ndarray": onp.array([0, 1, 2], "int16"),
}

EXPRESSIONS = [
    "x + v",
    "v - x",
    "x / v",
    "v ** x",
    "x @ v",
    "v @ x",
    "x == v",
    "v == x",
    "x != v",
    "x < v",
    "divmod(x, v + x)",
    "np.sin(v)",
    "np.add(v, v)",
    "np.add(x, v, out=x)",
    "np.sum(v)",
    "np.sort(v)",
    "np.mean(v)",
    "np.where(v, v, x)",
    "np.concatenate([v, [1]])",
    "np.stack([v, v])",
    "np.dot(v, v)",
    "np.einsum('i,i', v, v)",
    "np.clip(v, 1, v)",
    "np.take(x, [0, 2])",
    "np.interp(v, v, v)",
    "np.searchsorted(v, v)",
    "np.cumsum(v)",
    "np.full((2, 3), v)",
    "np.array(v)",
    "np.array([v, v])",
    "np.array([[1, 2, 3], v])",
    "np.asarray(v, dtype='float64')",
    "np.isin(x, v)",
    "np.unique(v)",
    "np.median(v)",
    "np.diff(v)",
    "np.outer(v, v)",
    "np.pad(v, 1)",
    "np.maximum.reduce(v)",
    "np.allclose(v, x)",
    "np.array_equal(v, x)",
    "np.linalg.norm(v)",
    "np.fft.fft(v)",
    "x.dot(v)",
    "x.searchsorted(v)",
    "np.broadcast_to(v, (2, 3))",
    "np.polyval(v, 2)",
    "np.histogram(v, bins=v)[0]",
    "np.trapezoid(v)",
    "np.gradient(v)",
    "np.average(v, weights=[1, 2, 3])",
    "np.quantile(v, 0.5)",
    "np.kron(v, v)",
    "np.cross(v, v)",
    "np.insert(x, 1, v)",
    "np.append(x, v)",
    "np.roll(v, 1)",
    "np.meshgrid(v, v)[0]",
    "np.nonzero(v)",
    "np.count_nonzero(v)",
    "np.round(v)",
    "np.prod(v)",
    "np.any(v)",
    "np.argmax(v)",
    "np.ptp(v)",
    "np.cov(v)",
    "np.convolve(v, v)",
    "np.reshape(v, (3, 1))",
    "np.transpose(v)",
    "np.expand_dims(v, 0)",
    "np.atleast_2d(v)",
    "np.tile(v, 2)",
    "np.repeat(v, 2)",
    "np.tri(3) * v",
    "np.select([v], [v])",
    "v in x",
]


@pytest.mark.parametrize("kind", LIKES)
def test_array_likes_are_operands_and_arguments(kind):
    for expression in EXPRESSIONS:
        both(expression, rtol=1e-12, x=onp.array([3.0, 1.0, 2.0]), v=LIKES[kind])


@pytest.mark.parametrize("kind", LIKES)
def test_array_likes_are_indices(kind):
    # Those that hold floats are an error for both.
    for expression in ("x[v]", "x[v, v]", "x[:, v]", "x[v, 1]"):
        if not isinstance(LIKES[kind], tuple) or expression == "x[v, 1]":
            both(expression, x=onp.arange(9.0).reshape(3, 3), v=LIKES[kind])


@pytest.mark.parametrize(
    "key", ["'a'", "b'a'", "{0}", "{0: 1}", "1.5", "deque([0.5])", "Sequence('a')", "object()", "[2**70]"]
)
def test_what_holds_no_integers_is_no_index(key):
    names = {"deque": deque, "Sequence": Sequence}
    _, theirs = outcome(f"x[{key}]", onp, {"x": onp.ones(3), **names})
    _, ours = outcome(f"x[{key}]", np, {"x": np.ones(3), **names})
    assert isinstance(theirs, IndexError)
    assert isinstance(ours, IndexError)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("kind", LIKES)
def test_array_likes_are_values_to_assign(kind, dtype):
    ours, theirs = np.zeros((2, 3), dtype=dtype), onp.zeros((2, 3), dtype)
    ours[1] = LIKES[kind]
    theirs[1] = LIKES[kind]
    assert onp.array_equal(ours.asnumpy(), theirs)
    ours[:, [True, False, True]] = deque([4, 5])
    theirs[:, [True, False, True]] = deque([4, 5])
    assert onp.array_equal(ours.asnumpy(), theirs)


def test_objects_with_dlpack_alone_are_array_likes():
    v = Capsules([0.0, 1.0, 2.0])
    assert np.add(np.ones(3), v).tolist() == [1, 2, 3]
    assert (np.ones(3) == v).tolist() == [False, True, False]
    assert np.array([v, v]).shape == (2, 3)
    x = np.zeros(3)
    x[:] = v
    assert x.tolist() == [0, 1, 2]


def test_lists_of_floats_are_assigned_in_the_precision_of_the_array():
    x = np.zeros(2, dtype="float64")
    x[:] = [0.1, 0.2]
    assert x.tolist() == [0.1, 0.2]


@pytest.mark.parametrize("value", ["{1: 2}", "{1, 2}", "'a'", "b'ab'", "None", "object()", "(i for i in [1])"])
@pytest.mark.parametrize("expression", ["x + {}", "np.sin({})", "np.sqrt({})", "x @ {}"])
def test_what_is_no_array_is_a_type_error(value, expression):
    text = expression.replace("{}", value)
    with pytest.raises(TypeError):
        eval(text, {"np": np, "x": np.ones(2)})


def test_numbers_of_derived_classes_are_arrays_of_their_own_dtype():
    for expression in (
        "x * v",
        "v + x",
        "np.array(v)",
        "np.array([v, 1])",
        "x == v",
        "np.full(2, v)",
        "np.maximum(v, x)",
    ):
        for v in (Colour.BLUE, Metres(1.5), type("Whole", (int,), {})(3), type("Plane", (complex,), {})(1j)):
            for dtype in ("int8", "float32", "float64"):
                both(expression, x=onp.ones(2, dtype), v=v)
    both("x[v - 1]", x=onp.arange(3), v=Colour.BLUE)
    both("np.arange(v)", v=Colour.BLUE)


def test_gradients_flow_through_arrays_in_other_sequences():
    a, b = np.array(2.0), np.array(3.0)
    a.attach_grad()
    b.attach_grad()
    with mx.autograd.record():
        y = (np.array([1.0, 10.0]) * Sequence(a, b)).sum()
    y.backward()
    assert (a.grad.item(), b.grad.item()) == (1, 10)


def test_a_class_of_higher_priority_answers_itself():
    class First(Sequence):
        __array_priority__ = 10.0

        def __radd__(self, other):
            return "mine"

        def __eq__(self, other):
            return "same"

        __hash__ = None

    for module in (np, onp):
        assert module.ones(2) + First(1, 2) == "mine"
        assert (module.ones(2) == First(1, 2)) == "same"
    assert np.add(np.ones(2), First(1, 2)).tolist() == [2, 3]
