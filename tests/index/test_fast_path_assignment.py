"""Assignments of numbers and small arrays at integers and slices, which take a fast path, against NumPy."""

import itertools
import re
from typing import Any

import numpy as onp
import pytest

from mxnet import autograd, np, util

KEYS = [
    0,
    -1,
    7,
    slice(None),
    slice(1, None, 2),
    slice(None, None, -1),
    slice(5, 2),
    (1, 2),
    (0, slice(1, 3)),
    (slice(None), -1),
    (),
    (1, 2, 3),
]
NUMBERS = [3, -1, 2.5, float("nan"), float("inf"), 1j, True, 300, 2**40, 2**70]
DTYPES = ["bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64"]


def outcome(module: Any, array: Any, key: Any, value: Any) -> Any:
    try:
        array[key] = value
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins"), array.tolist()
    return array.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_numbers(dtype: str):
    for key, number, turned in itertools.product(KEYS, NUMBERS, (False, True)):
        theirs = onp.zeros((3, 4), dtype)
        ours = np.array(theirs)
        if turned:
            theirs, ours = theirs.T[:, ::-1], ours.T[:, ::-1]
        if key in (7, (1, 2, 3)) and number != 3:
            continue  # if two arguments are wrong, the error may name either
        want = outcome(onp, theirs, key, number)
        assert repr(outcome(np, ours, key, number)) == repr(want), (key, number, turned)


@pytest.mark.parametrize(
    ("dtype", "other"), [("float32", "float32"), ("float32", "int8"), ("int8", "float64"), ("bool", "bool")]
)
@pytest.mark.filterwarnings("ignore")
def test_arrays(dtype: str, other: str):
    shapes = [(), (1,), (4,), (2,), (3, 1), (3, 4), (1, 1, 4), (3,)]
    for key, shape in itertools.product(KEYS, shapes):
        if key == (1, 2) and shape:
            continue  # an array of one element may be assigned to a place here
        values = onp.arange(1, 1 + int(onp.prod(shape))).reshape(shape).astype(other)
        theirs = onp.zeros((3, 4), dtype)
        ours = np.array(theirs)
        want = outcome(onp, theirs, key, values)
        assert outcome(np, ours, key, np.array(values)) == want, (key, shape)


def test_parts_of_the_array_itself_and_locked_arrays():
    for key, text in [(slice(1, None), "x[:-1]"), (0, "x[1]"), (slice(None), "x[::-1]"), (2, "x[0]")]:
        theirs = onp.arange(5)
        ours = np.array(theirs)
        theirs[key] = eval(text, {"x": theirs})
        ours[key] = eval(text, {"x": ours})
        assert ours.tolist() == theirs.tolist()
    locked = np.broadcast_to(np.zeros(1), (3,))
    for value in (1, np.ones(3)):
        with pytest.raises(ValueError, match="read-only"):
            locked[0:3] = value
    with pytest.raises(ValueError, match="read-only"):
        locked.fill(2)


def test_recorded_assignments_take_the_general_path():
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        y[1] = 5.0
        y[2:] = np.array([7.0])
        total = (y * y).sum()
    total.backward()
    assert total.item() == 4 + 25 + 49
    assert x.grad.tolist() == [8, 0, 0]


@pytest.mark.parametrize(
    "text",
    ["np.sqrt(2.0)", "np.abs(-3)", "np.exp(1)", "np.floor(2.5)", "np.isnan(1.0)", "np.add(1, 2.5)", "np.maximum(3, 2)"],
)
def test_functions_of_numbers(text: str):
    got, want = eval(text, {"np": np}), eval(text, {"np": onp})
    assert isinstance(got, np.ndarray)
    assert got.shape == ()
    assert got.item() == pytest.approx(want.item(), rel=1e-6)
    assert got.dtype.kind == want.dtype.kind


@pytest.mark.parametrize(
    "text", ["np.sqrt('a')", "np.power(2, -1)", "np.left_shift(1.5, 2)", "np.bitwise_and(True, 2.0)", "np.invert(1.5)"]
)
def test_functions_refuse_numbers_as_numpys_do(text: str):
    with pytest.raises((TypeError, ValueError)) as theirs:
        eval(text, {"np": onp})
    with pytest.raises((TypeError, ValueError)) as ours:
        eval(text, {"np": np})
    assert isinstance(ours.value, TypeError) == isinstance(theirs.value, TypeError)


def test_bytes_and_elements_of_a_row():
    theirs = onp.arange(12, dtype="int16").reshape(3, 4)
    for look in (lambda x: x, lambda x: x[1:], lambda x: x.T, lambda x: x[:, ::2], lambda x: x[:0]):
        a, x = look(theirs), look(np.array(theirs))
        for order in ("C", "F", "A"):
            assert x.tobytes(order) == a.tobytes(order)
        assert [v.item() for v in x.flat] == a.ravel().tolist()


def test_functions_that_give_arrays_back():
    x, row = np.ones((2, 3)), np.ones((2, 3)).T
    assert np.asarray(x) is x
    assert np.asanyarray(x) is x
    assert np.ascontiguousarray(x) is x
    assert np.asfortranarray(row) is row
    assert np.ascontiguousarray(row) is not row
    assert np.asfortranarray(x) is not x
    assert np.ascontiguousarray(np.array(2.0)).shape == (1,)
    assert np.asarray(x, dtype="float64").dtype == "float64"
    with pytest.raises(TypeError):
        np.asarray()


def test_results_of_fortran_operands_keep_their_order():
    theirs = onp.arange(6, dtype="float32").reshape(2, 3)
    x, a = np.array(theirs).T, theirs.T
    for y, b in (
        (x * 2, a * 2),
        (x + x, a + a),
        (np.exp(x), onp.exp(a)),
        (x > 1, a > 1),
        (x.astype("float16") * 2, a.astype("float16") * 2),
    ):
        # Only `exp` rounds: by up to two units in the last place.
        onp.testing.assert_allclose(y.asnumpy(), b, rtol=2.0**-22)
        assert y.strides == b.strides


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_numbers_where_a_mask_is_true(dtype: str):
    mask = onp.arange(12).reshape(3, 4) % 3 == 0
    for number, look in itertools.product(NUMBERS, (lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[1:])):
        theirs = onp.zeros((3, 4), dtype)
        ours = np.array(theirs)
        want = outcome(onp, look(theirs), look(mask), number)
        assert repr(outcome(np, look(ours), look(np.array(mask)), number)) == repr(want), number
        assert repr(ours.tolist()) == repr(theirs.tolist())
    truths = np.array([True, False])
    truths[truths] = False
    assert truths.tolist() == [False, False]


IN_PLACE = """
x += y; x -= 2; x *= y[0, 0]; x //= 2; x /= y; x **= 2; x %= y; x += y.T[:3]; x[:, 1:] += x[:, :-1];
x += x; x &= 3; x <<= 1
"""
OUTS = """
np.add(x, y, out=x); np.add(x, 2, out=z); np.subtract(3, x, out=z); np.multiply(x, x[0, 0], out=x);
np.sqrt(y, out=z); np.negative(x, out=x); np.less(x, y, out=t);
np.add(x[:, 1:], x[:, :-1], out=x[:, :-1]); np.add(x, y, out=z.T); np.maximum(x, y, out=w);
np.add(x, y, out=x[::-1])
"""


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("line", re.split(r";\s+", f"{IN_PLACE.strip()}; {OUTS.strip()}"))
@pytest.mark.filterwarnings("ignore")
def test_writing_into_arrays(line: str, dtype: str):
    def after(module: Any) -> Any:
        x = module.asarray(onp.arange(1, 13).reshape(3, 4).astype(dtype))
        y = module.asarray((onp.arange(12) % 5 + 1).reshape(3, 4).astype(dtype))
        names = {
            "np": module,
            "x": x,
            "y": y,
            "z": module.zeros((3, 4), dtype=dtype),
            "t": module.zeros((3, 4), dtype=bool),
        }
        names["w"] = module.zeros((3, 4), dtype="complex128")
        views = {name: names[name][1:] for name in "xzt"}
        try:
            exec(line, names)
        except (TypeError, ValueError) as error:
            return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return [
            onp.asarray(views[name]).astype("complex128").round(2 if dtype == "float16" else 4).tolist()
            for name in "xzt"
        ]

    with util.np_default_dtype(True):
        assert after(np) == after(onp)


def test_recorded_writes_take_the_general_path():
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        y += 1
        y *= x
        total = y.sum()
    total.backward()
    assert x.grad.tolist() == [5, 5, 5]
