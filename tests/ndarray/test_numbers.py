"""Arrays of no axes do what NumPy's scalars do."""

import array
import collections
import datetime
import decimal
import fractions
import operator
import random

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np

SEQUENCES = [[0], [1, 2], (), (1, 2), bytearray(b"ab"), array.array("i", [1, 2]), collections.deque([1]), "ab", b"ab"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda x: type(x).__name__)
def test_integers_repeat_sequences_on_both_sides(dtype, sequence):
    values = [0, 1, 3]
    ours, theirs = np.array(values, dtype), onp.array(values, dtype)
    for i in range(3):
        for found, expected in (
            (sequence * ours[i], sequence * theirs[i]),
            (ours[i] * sequence, theirs[i] * sequence),
        ):
            assert type(found) is type(expected)
            assert found == expected
    grown = list(values)
    grown *= ours.max()
    assert grown == values * 3


def test_repeated_lists_keep_their_class_and_negative_numbers_empty_them():
    class Row(list):
        """A derived list."""

    assert [1] * np.array([-2])[0] == []
    assert Row([1]) * np.array([2])[0] == [1, 1]
    with pytest.raises(OverflowError):
        [1] * np.array([2**64 - 1], "uint64")[0]


def test_sequences_with_products_of_their_own_and_ranges_are_multiplied():
    class Row(list):
        """A list that says what a product is."""

        def __mul__(self, other):
            return "product"

        __rmul__ = __mul__

    two = np.array([2])[0]
    assert Row([1]) * two == "product"
    assert (range(3) * two).tolist() == (onp.int64(2) * range(3)).tolist()
    assert (two * onp.arange(3)).tolist() == [0, 2, 4]
    assert (np.arange(3) * [1, 2, 3]).tolist() == [0, 2, 6]
    assert np.multiply(two, [1, 2]).tolist() == [2, 4]
    # What constructors make is an array in NumPy, too.
    for module in (np, onp):
        assert (module.array(2) * [1, 2]).tolist() == ([1, 2] * module.array(2)).tolist() == [2, 4]
    assert (two + [1, 2]).tolist() == [3, 4]
    assert ([1, 2] - two).tolist() == [-1, 0]
    # NumPy refuses floats and truth values.
    assert (np.array([2.0])[0] * [1, 2]).tolist() == [2.0, 4.0]
    assert (np.array([True])[0] * [1, 2]).tolist() == [1, 2]


def test_what_repeats_lists_takes_an_element_for_a_size():
    counts = [0] * (np.array([2, 0, 2]).max() + 1)
    assert counts == [0, 0, 0]
    assert len(random.sample(range(10), np.array([3])[0])) == 3
    assert operator.mul([1], np.array([2])[0]) == [1, 1]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("value", [0, 4, 2.5])
def test_elements_have_what_numpys_numbers_have(dtype, value):
    ours, theirs = np.array([value], dtype)[0], onp.array([value], dtype)[0]
    assert ours.is_integer() is theirs.is_integer()
    for name in ("as_integer_ratio", "bit_count"):
        if hasattr(theirs, name):
            found = getattr(ours, name)()
            assert found == getattr(theirs, name)()
    if dtype == "float64":
        assert ours.hex() == theirs.hex()
    for name in ("numerator", "denominator"):
        assert hasattr(ours, name) == hasattr(theirs, name)
        assert getattr(ours, name, None) == getattr(theirs, name, None)


def test_squares_are_found_by_their_roots():
    with mx.util.np_default_dtype(True):
        squares = [n for n in range(50) if np.sqrt(n).is_integer()]
    assert squares == [0, 1, 4, 9, 16, 25, 36, 49]
    assert fractions.Fraction(*np.array([2.5])[0].as_integer_ratio()) == fractions.Fraction(5, 2)


def test_arrays_with_axes_have_nothing_of_the_kind():
    for name in ("is_integer", "as_integer_ratio", "bit_count", "numerator", "denominator", "hex"):
        assert not hasattr(np.arange(3), name)
        assert not hasattr(onp.arange(3), name)
    assert not hasattr(np.array([True])[0], "is_integer")


def test_complex_numbers_lose_their_imaginary_part_with_a_warning():
    x = np.array([1.5 + 2j])
    with pytest.warns(onp.exceptions.ComplexWarning):
        assert float(x[0]) == 1.5
    with pytest.warns(onp.exceptions.ComplexWarning):
        assert int(x[0]) == 1
    assert complex(x[0]) == 1.5 + 2j


def test_errors_about_formats_and_sums_with_text_say_what_is_wrong():
    for module in (np, onp):
        with pytest.raises(TypeError, match=r"unsupported format string passed to .*ndarray\.__format__"):
            f"{module.arange(3.0):.2f}"
    assert f"{np.array([1.0])[0]:.2f}" == "1.00"
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'ndarray' and 'str'"):
        np.arange(3) + "a"


@pytest.mark.parametrize(
    "name", ["absolute", "sign", "ceil", "floor", "square", "isinf", "invert", "negative", "positive", "sqrt", "exp2"]
)
@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_a_python_integer_beyond_int64_has_dtype_uint64(name, value):
    with mx.util.np_default_dtype(True), onp.errstate(all="ignore"):
        found, expected = getattr(np, name)(value), getattr(onp, name)(value)
    assert found.dtype == expected.dtype
    assert found.asnumpy() == expected


@pytest.mark.parametrize("operation", ["mul", "truediv", "floordiv", "add", "sub", "mod", "pow", "lt", "ge"])
@pytest.mark.parametrize(
    "other",
    [datetime.timedelta(hours=5), fractions.Fraction(7, 2), decimal.Decimal("2.5")],
    ids=lambda x: type(x).__name__,
)
@pytest.mark.parametrize("number", [3, 2.5])
def test_numbers_of_other_libraries_and_spans_of_time_meet_pythons_number(operation, other, number):
    operation = getattr(operator, operation)
    element = np.array([number], "float64" if isinstance(number, float) else "int64")[0]
    for ours, theirs in (((element, other), (number, other)), ((other, element), (other, number))):
        try:
            expected = operation(*theirs)
        except TypeError:
            with pytest.raises(TypeError):
                operation(*ours)
            continue
        found = operation(*ours)
        # The class of fractions computes their powers itself, in floats.
        assert type(found) is type(expected) or operation is operator.pow
        assert found == expected


def test_spans_of_time_are_multiplied_by_elements_as_numpys():
    span = datetime.timedelta(days=1)
    for dtype in ("int64", "float64"):
        ours, theirs = np.array([2, 3], dtype), onp.array([2, 3], dtype)
        assert span * ours[1] == span * theirs[1] == ours[1] * span == theirs[1] * span
        assert span / ours[0] == span / theirs[0]
    with pytest.raises(TypeError):
        span * np.arange(3)


@pytest.mark.parametrize("call", ["inv", "solve"])
def test_programs_find_numpys_words_about_singular_matrices(call):
    for module in (np, onp):
        operands = [module.zeros((2, 2))] + [module.ones(2)] * (call == "solve")
        with pytest.raises(onp.linalg.LinAlgError, match="Singular matrix"):
            getattr(module.linalg, call)(*operands)
