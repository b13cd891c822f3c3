"""Dtypes under NumPy's rules are NumPy's: Python numbers and lists beside arrays, and functions of one array."""

import numpy
import pytest

import mxnet as mx

DTYPES = ["bool", "int8", "uint8", "uint64", "float16", "float32", "complex64"]
NUMBERS = [2, 2.0, 2j, True, [1, 2, 3], [1.5, 2.0, 3.0]]
# What NumPy does by accident: imaginary parts of distances are dropped, a difference of truth values is an error.
SKIPPED = {
    ("np.gradient(A, B)", "2j"),
    ("np.arange(A[0], A[2])", "bool"),
    ("np.arange(A[0], A[2])", "complex64"),
    ("np.arange(A[0], A[2])", "complex128"),
}

# `A` is an array and `B` a number, and the other way round.
PAIRS = """
np.dot(A, B)
np.inner(A, B)
np.outer(A, B)
np.kron(A, B)
np.tensordot(A, B, 0)
np.convolve(A, B)
np.append(A, B)
np.concatenate([A, B], axis=None)
np.hstack([A, B])
np.union1d(A, B)
np.intersect1d(A, B)
np.setdiff1d(A, B)
np.setxor1d(A, B)
np.isin(A, B)
np.where([True, False, True], A, B)
np.clip(A, B, B)
np.clip(A, B, None)
np.clip(A, None, B)
np.interp(A, A, A)
np.polyadd(A, B)
np.polymul(A, B)
np.meshgrid(A, B)[0]
np.linspace(A, B, 3)
np.logspace(A, B, 3)
np.geomspace(A, B, 3)
np.gradient(A, B)
np.average(A, weights=B)
np.full_like(A, B)
np.r_[A, B]
np.add.outer(A, B)
np.multiply.outer(A, B)
np.divide.outer(A, B)
np.maximum.outer(A, B)
np.hypot.outer(A, B)
np.bitwise_or.outer(A, B)
np.less.outer(A, B)
np.isclose(A, B)
np.quantile(A, B)
np.add(A, B)
np.divide(A, B)
np.power(A, B)
""".strip().splitlines()

SINGLE = """
np.around(A)
np.round(A, 1)
np.vander(A)
np.poly(A)
np.polyval(A, A)
np.polyfit(A, A, 1)
np.histogram([1, 2, 2], 2, weights=A)[0]
np.arange(A[0], A[2])
np.quantile(A, 0.5)
np.percentile(A, 50, method='lower')
np.nanquantile(A, 0.5)
np.gradient(A)
np.select([[True, False, True], [True, True, False]], [A, 1.5])
np.select([[True, False, True]], [A], 1.5)
np.choose(A, [[1, 2, 3]] * 4)
np.unravel_index(A, (4, 4))[0]
np.ravel_multi_index((A, A), (4, 4))
np.place(np.array([1, 2, 3]), [True, False, True], A)
""".strip().splitlines()


@pytest.fixture(autouse=True)
def numpy_mode():
    before = mx._core.set_numpy_promotion(True)
    yield
    mx._core.set_numpy_promotion(before)


def outcome(text, np, dtype, number=None, swapped=False):
    """The dtype that comes out and its values, or that there is a TypeError."""
    array = np.array([0, 1, 1] if dtype == "bool" else [1, 2, 3], dtype=dtype)
    operands = {"A": number, "B": array} if swapped else {"A": array, "B": number}
    try:
        with numpy.errstate(all="ignore"):
            result = eval(text, {"np": np, **operands})
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        return "refused", type(error).__mro__
    if result is None:
        return None, None
    return str(numpy.dtype(result.dtype)), numpy.asarray(result)


def check(text, dtype, *more):
    theirs, ours = outcome(text, numpy, dtype, *more), outcome(text, mx.np, dtype, *more)
    assert ours[0] == theirs[0], (text, dtype, *more, ours, theirs)
    if theirs[0] not in ("refused", None):
        digits = {"float16": 2e-3, "complex64": 1e-5, "float32": 1e-5}.get(theirs[0], 1e-12)
        numpy.testing.assert_allclose(ours[1], theirs[1], rtol=digits, atol=digits, err_msg=text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", PAIRS)
def test_numbers_beside_arrays_promote_as_in_numpy(text):
    for dtype in DTYPES:
        for number in NUMBERS:
            if (text, str(number)) in SKIPPED:
                continue
            check(text, dtype, number)
            if "gradient" not in text and "average" not in text and "quantile" not in text:
                check(text, dtype, number, True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", SINGLE)
def test_arrays_of_every_dtype_give_numpys(text):
    for dtype in [*DTYPES, "int32", "int64", "float64", "complex128"]:
        if (text, dtype) not in SKIPPED:
            check(text, dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_reciprocal_of_zero_is_numpys(dtype):
    zeros = numpy.array([0, 1, 2, 0], dtype)
    with numpy.errstate(all="ignore"):
        theirs = numpy.reciprocal(zeros)
    with mx.np.errstate(all="ignore"):
        assert mx.np.reciprocal(mx.np.array(zeros)).tolist() == theirs.tolist()


@pytest.mark.parametrize(
    "call",
    [
        "np.asarray(x, x)",
        "np.asanyarray(x, x)",
        "np.ascontiguousarray(x, x)",
        "np.asfortranarray(x, x)",
        "np.require(x, x)",
        "np.asarray_chkfinite(x, x)",
        "np.zeros(3, x)",
        "x.astype(x)",
    ],
)
def test_an_array_is_no_dtype(call):
    for np in (numpy, mx.np):
        with pytest.raises(TypeError):
            eval(call, {"np": np, "x": np.arange(3.0)})


def test_uint64_beside_int64_members():
    members = mx.np.array([1, 2**63 + 1], dtype="uint64")
    assert mx.np.isin(members, 1).tolist() == [True, False]
    assert mx.np.isin(members, [[1, -1]]).tolist() == [True, False]
    assert mx.np.isin(mx.np.array([[1, -1]]), members).tolist() == [[True, False]]
