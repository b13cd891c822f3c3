"""`==` and `!=` with anything: elementwise, as in NumPy."""

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from unittest import mock

import numpy as onp
import pytest

from both import both, outcome
from mxnet import np

OTHERS = [
    "None",
    "'a'",
    "b'a'",
    "{}",
    "{1, 2}",
    "object",
    "object()",
    "slice(1)",
    "Decimal(1)",
    "Fraction(1)",
    "['a', 'b']",
    "['a', 'b', 'c']",
    "[None, 2]",
    "[[None, 2], [1, None]]",
    "numpy.array(['1', '2'])",
    "numpy.array([1, None], dtype=object)",
    "numpy.str_('a')",
    "numpy.datetime64('2020')",
    "range(2)",
    "[1, 2]",
    "1.0",
]
# NumPy's own names, which `both` does not take for an array that is to be copied.
NUMPY = SimpleNamespace(**{name: value for name, value in vars(onp).items() if name != "copy"})
NAMES = {"Decimal": Decimal, "Fraction": Fraction, "numpy": NUMPY}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("expression", ["x == {}", "x != {}", "{} == x", "{} != x", "{} in x", "y == {}", "z != {}"])
def test_equality_is_elementwise(expression, other):
    text = expression.replace("{}", other, 1)
    names = {"x": onp.array([1, 2]), "y": onp.array(1.0), "z": onp.zeros((0, 2), "float32")}
    both(text, **names, **NAMES)


@pytest.mark.parametrize(
    "expression",
    [
        "np.equal([1, 2], None)",
        "np.not_equal([1, 2], None)",
        "np.equal(None, [1, 2])",
        "np.equal(None, None)",
        "np.equal([1, 2], 'a')",
        "np.not_equal([1, 2], ['a', 'b'])",
        "x < None",
        "x >= 'a'",
        "np.array_equal(x, None)",
        "np.array_equal(x, ['a', 'b'])",
        "np.array_equiv(x, 'a')",
        "(x == None).any()",
        "x[x != None]",
    ],
)
def test_functions_of_what_is_no_number(expression):
    if "'a'" in expression and "array_eq" not in expression:
        with pytest.raises(TypeError):
            eval(expression, {"np": np, "x": np.array([1, 2])})
    else:
        both(expression, x=onp.array([1, 2]))


def test_a_class_that_knows_arrays_answers_itself():
    class Whole:
        def __eq__(self, other):
            return ("whole", type(other).__name__)

        __hash__ = None

    assert (np.ones(2) == Whole()) == ("whole", "ndarray")
    assert np.ones(2) == mock.ANY


def test_shapes_that_do_not_broadcast_are_an_error():
    for module in (np, onp):
        _, error = outcome("x == ['a', 'b', 'c']", module, {"x": module.ones(2)})
        assert isinstance(error, ValueError)
        assert "(2,)" in str(error) or "shape" in str(error)


def test_lists_of_differing_lengths_are_an_error():
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.ones(2) == [1, [2]]  # noqa: B015
