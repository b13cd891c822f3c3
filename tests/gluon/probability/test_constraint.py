"""Constraints accept what they should and refuse the rest, with the value that is wrong."""

import math

import pytest

import mxnet as mx
from mxnet.gluon import probability as mgp
from mxnet.gluon.probability import constraint as c

NAN, INFINITY = math.nan, math.inf
# Constraint, values it takes, values it refuses.
NUMBERS = [
    (c.Real(), [-1.5, 0.0, INFINITY], [NAN]),
    (c.Boolean(), [0.0, 1.0], [0.5, -1.0, 2.0, NAN]),
    (c.Interval(-1, 2), [-1.0, 0.5, 2.0], [-1.01, 2.01, NAN]),
    (c.OpenInterval(-1, 2), [-0.99, 1.99], [-1.0, 2.0, NAN]),
    (c.HalfOpenInterval(-1, 2), [-1.0, 1.99], [-1.01, 2.0, NAN]),
    (c.UnitInterval(), [0.0, 1.0], [-0.01, 1.01, NAN]),
    (c.GreaterThan(2), [2.01, INFINITY], [2.0, NAN]),
    (c.GreaterThanEq(2), [2.0], [1.99, NAN]),
    (c.LessThan(2), [1.99, -INFINITY], [2.0, NAN]),
    (c.LessThanEq(2), [2.0], [2.01, NAN]),
    (c.Positive(), [1e-30], [0.0, -1.0, NAN]),
    (c.NonNegative(), [0.0, 1.0], [-1e-30, NAN]),
    (c.IntegerInterval(-1, 2), [-1.0, 2.0], [0.5, -2.0, 3.0, NAN]),
    (c.IntegerOpenInterval(-1, 2), [0.0, 1.0], [0.5, -1.0, 2.0, NAN]),
    (c.IntegerHalfOpenInterval(-1, 2), [-1.0, 1.0], [0.5, -2.0, 2.0, NAN]),
    (c.IntegerGreaterThan(2), [3.0], [2.0, 2.5, NAN]),
    (c.IntegerGreaterThanEq(2), [2.0], [1.0, 2.5, NAN]),
    (c.IntegerLessThan(2), [1.0], [2.0, 1.5, NAN]),
    (c.IntegerLessThanEq(2), [2.0], [3.0, 1.5, NAN]),
    (c.PositiveInteger(), [1.0], [0.0, 0.5, NAN]),
    (c.NonNegativeInteger(), [0.0], [-1.0, 0.5, NAN]),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), NUMBERS, ids=lambda x: getattr(type(x), "__name__", ""))
def test_numbers(constraint, good, bad):
    array = mx.np.array(good)
    assert constraint.check(array) is array
    for value in good:
        assert constraint.check(value) is value
    for value in bad:
        shown = str(value).replace("+", r"\+")
        with pytest.raises(ValueError, match=f"{type(constraint).__name__}: values must be .*, found {shown}|numbers"):
            constraint.check(value)
        with pytest.raises(ValueError, match=type(constraint).__name__):
            constraint.check(mx.np.array([good[0], value]))


def test_integer_arrays():
    assert c.PositiveInteger().check(mx.np.array([1, 2])).dtype.kind == "i"
    with pytest.raises(ValueError, match="found 0"):
        c.PositiveInteger().check(mx.np.array([1, 0]))


def test_bounds_may_be_arrays():
    between = c.Interval(mx.np.array([0.0, 10.0]), mx.np.array([1.0, 11.0]))
    assert between.check(mx.np.array([0.5, 10.5])).shape == (2,)
    with pytest.raises(ValueError, match=r"found 0\.5"):
        between.check(mx.np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match=r"found 10\.5"):
        between.check(10.5)


MATRICES = [
    (c.Simplex(), [[0.25, 0.75], [0.0, 1.0]], [[0.25, 0.75], [0.5, 0.6]], [0.5, 0.6]),
    (c.Simplex(), [1.0], [[-0.5, 1.5]], [-0.5, 1.5]),
    (c.LowerTriangular(), [[1.0, 0.0], [2.0, -1.0]], [[1.0, 3.0], [2.0, -1.0]], [[1.0, 3.0], [2.0, -1.0]]),
    (c.LowerCholesky(), [[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [2.0, -1.0]], [[1.0, 0.0], [2.0, -1.0]]),
    (c.LowerCholesky(), [[1.0]], [[1.0, 0.5], [2.0, 1.0]], [[1.0, 0.5], [2.0, 1.0]]),
    (c.PositiveDefinite(), [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]),
    (c.PositiveDefinite(), [[3.0]], [[2.0, 1.0], [0.5, 2.0]], [[2.0, 1.0], [0.5, 2.0]]),
    (c.PositiveDefinite(), [[3.0]], [[1.0, 2.0]], [[1.0, 2.0]]),
    (c.LowerTriangular(), [[3.0]], [1.0, 2.0], [1.0, 2.0]),
]


@pytest.mark.parametrize(("constraint", "good", "bad", "event"), MATRICES)
def test_events(constraint, good, bad, event):
    good, bad = mx.np.array(good), mx.np.array(bad)
    assert constraint.check(good) is good
    with pytest.raises(ValueError) as caught:
        constraint.check(bad)
    assert str(caught.value).endswith(f"found {event}")


def test_simplex_allows_rounding():
    thirds = mx.np.full((100,), 0.01, dtype="float32")
    assert c.Simplex().check(thirds) is thirds
    with pytest.raises(ValueError, match="Simplex"):
        c.Simplex().check(thirds * 1.001)
    with pytest.raises(ValueError, match=r"found 1\.0"):
        c.Simplex().check(1.0)


def test_joined_and_stacked():
    both = c.Cat([c.Positive(), c.LessThan(0)], axis=-1, lengths=[2, 1])
    assert both.check(mx.np.array([[1.0, 2.0, -1.0]])).shape == (1, 3)
    with pytest.raises(ValueError, match=r"LessThan.*found 1\.0"):
        both.check(mx.np.array([[1.0, 2.0, 1.0]]))
    with pytest.raises(ValueError, match="axis -1 must have length 3, found 2"):
        both.check(mx.np.array([[1.0, 2.0]]))
    assert c.Cat([c.Positive(), c.Real()]).check(mx.np.array([1.0, -1.0])).shape == (2,)
    with pytest.raises(ValueError, match="2 constraints, found 1"):
        c.Cat([c.Positive(), c.Real()], lengths=[1])
    stacked = c.Stack([c.Positive(), c.LessThan(0)], axis=1)
    assert stacked.check(mx.np.array([[1.0, -1.0], [2.0, -2.0]])).shape == (2, 2)
    with pytest.raises(ValueError, match=r"Positive.*found -2\.0"):
        stacked.check(mx.np.array([[1.0, -1.0], [-2.0, -2.0]]))
    with pytest.raises(ValueError, match="axis 1 must have length 2, found 3"):
        stacked.check(mx.np.ones((2, 3)))
    for make in (c.Cat, c.Stack):
        with pytest.raises(TypeError, match="must hold constraints, found int"):
            make([1])


def test_dependent_constraints():
    assert c.is_dependent(mgp.Uniform.support) and c.is_dependent(mgp.Binomial.support)
    assert not c.is_dependent(mgp.Normal.support) and not c.is_dependent(mgp.Uniform(0.0, 1.0).support)
    with pytest.raises(ValueError, match="depends on other parameters"):
        mgp.Uniform.support.check(1.0)
    assert isinstance(c.dependent_property(lambda self: None), property)


def test_base_class_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="Constraint must define"):
        c.Constraint().check(1.0)
