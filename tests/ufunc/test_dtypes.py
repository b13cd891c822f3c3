"""Result dtypes of every function for every pair of dtypes and every kind of Python number, in both promotions."""

import itertools

import numpy as np
import pytest

import mxnet as mx
from probing import COMPLEX, ENTRIES, FLOATS, INTEGERS

NAMES = sorted(
    name for name in ENTRIES if isinstance(getattr(np, name, None), np.ufunc) and getattr(np, name).signature is None
)
DTYPES = ("bool", *INTEGERS, *(name for name in FLOATS if name != "bfloat16"), *COMPLEX)
# Of each kind, small and beyond what the small dtypes hold.
NUMBERS = [True, 0, 3, -3, 200, 300, -200, 70_000, 2**40, 2**63, 2.5, -2.5, 1e300, 1j]


def outcome(function, *operands):
    """Dtypes of the results, or the class of the refusal."""
    try:
        with np.errstate(all="ignore"):
            results = function(*operands)
            results = results if isinstance(results, tuple) else (results,)
            for result in results:
                if isinstance(result, mx.np.ndarray):
                    result.wait_to_read()
    except (TypeError, OverflowError, ValueError) as error:
        return next(c for c in (OverflowError, TypeError, ValueError) if isinstance(error, c)).__name__
    return tuple(str(result.dtype) for result in results)


def ones(dtype):
    """The same array for NumPy and for us."""
    x = np.ones(2, dtype)
    return x, mx.np.array(x)


@pytest.fixture
def numpys_promotion():
    before = mx._core.set_numpy_promotion(True)
    yield
    mx._core.set_numpy_promotion(before)


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_of_arrays_are_numpys(name, numpys_promotion):
    theirs, ours = getattr(np, name), getattr(mx.np, name)
    arrays = {dtype: ones(dtype) for dtype in DTYPES}
    different = []
    for dtypes in itertools.product(DTYPES, repeat=theirs.nin):
        wanted = outcome(theirs, *[arrays[d][0] for d in dtypes])
        for got in (
            outcome(ours, *[arrays[d][1] for d in dtypes]),
            # NumPy's arrays and scalars are arrays of their dtype.
            outcome(ours, arrays[dtypes[0]][1], *[arrays[d][0] for d in dtypes[1:]]),
            outcome(ours, *[arrays[d][0][0] for d in dtypes]),
        ):
            if got != wanted:
                different.append((dtypes, got, wanted))
    assert different == []


# Python integers that NumPy refuses although they have an answer, or takes although they do not fit, and what we do.
OTHERWISE = {
    ("logical_and", 2**63): ("bool",),
    ("logical_or", 2**63): ("bool",),
    ("logical_xor", 2**63): ("bool",),
    ("ldexp", 2**40): "OverflowError",
}


@pytest.mark.parametrize("name", [n for n in NAMES if getattr(np, n).nin == 2])
def test_dtypes_with_python_numbers_are_numpys(name, numpys_promotion):
    theirs, ours = getattr(np, name), getattr(mx.np, name)
    different = []
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        x, y = ones(dtype)
        for swap in (False, True):
            wanted = outcome(theirs, *((number, x) if swap else (x, number)))
            got = outcome(ours, *((number, y) if swap else (y, number)))
            if got != wanted and got != OTHERWISE.get((name, number)):
                different.append((dtype, number, swap, got, wanted))
    assert different == []


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_of_python_numbers_alone_are_numpys(name, numpys_promotion):
    theirs, ours = getattr(np, name), getattr(mx.np, name)
    different = []
    for numbers in itertools.product([True, 3, -3, 2.5, 1j], repeat=theirs.nin):
        wanted, got = outcome(theirs, *numbers), outcome(ours, *numbers)
        if got != wanted:
            different.append((numbers, got, wanted))
    assert different == []


@pytest.mark.parametrize("name", [n for n in NAMES if getattr(np, n).nin == 2])
def test_by_default_floats_stay_as_narrow_as_they_are(name):
    ours = getattr(mx.np, name)
    for integer, floating in itertools.product(DTYPES[1:9], ["float16", "float32", "float64", "complex64"]):
        x, y = mx.np.ones(2, dtype=integer), mx.np.ones(2, dtype=floating)
        for pair in ((x, y), (y, x)):
            got = outcome(ours, *pair)
            assert got in ("TypeError", ("bool",)) or set(got) == {floating} or name == "ldexp", (integer, floating)
    for number, kind in ((2.5, "float32"), (2, "int64"), (True, "bool")):
        got = outcome(ours, number, number)
        assert got == "TypeError" or set(got) <= {"bool", "int8", "float32", "int32", kind}
    assert outcome(mx.np.divide, mx.np.ones(2, dtype="int64"), 2) == ("float32",)
    assert outcome(mx.np.add, mx.np.ones(2, dtype="int64"), 2.5) == ("float32",)


@pytest.mark.parametrize(
    "sign", ["__add__", "__mul__", "__truediv__", "__pow__", "__lt__", "__floordiv__", "__lshift__"]
)
def test_operators_promote_as_functions_do(sign, numpys_promotion):
    different = []
    for a, b in itertools.product(DTYPES, repeat=2):
        (x, p), (y, q) = ones(a), ones(b)
        wanted = outcome(lambda x=x, y=y: getattr(x, sign)(y))
        got = outcome(lambda p=p, q=q: getattr(p, sign)(q))
        if got != wanted:
            different.append((a, b, got, wanted))
    assert different == []
