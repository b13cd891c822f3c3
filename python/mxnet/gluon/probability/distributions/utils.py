"""Special functions, conversions of probabilities and shapes that distributions share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any, TypeVar

import numpy as onp

from mxnet import autograd
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.numpy import ndarray

__all__ = [
    "cached_property",
    "constraint_check",
    "digamma",
    "erf",
    "erfinv",
    "gammaln",
    "logit2prob",
    "prob2logit",
    "sample_n_shape_converter",
]

T = TypeVar("T")


class cached_property(functools.cached_property[T]):  # noqa: N801
    """A property that is computed once for each object and then kept.

    Do not use it for what depends on arrays with gradients: the value that is kept belongs to the recording in which it
    was computed.

    Parameters
    ----------
    func : callable of the object

    Examples
    --------
    >>> from mxnet.gluon.probability import cached_property
    >>> class Circle:
    ...     radius = 2
    ...     @cached_property
    ...     def area(self):
    ...         return 3 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, 'area' in vars(circle)
    (12, True)
    """

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)


def constraint_check() -> Callable[[Any, str], Any]:
    """Function that raises unless a condition holds.

    Returns
    -------
    callable of (condition, message)
        `condition` is a bool or an array of bool; ValueError with `message` is raised if any element is false. True is
        returned otherwise. The values are read, so the call waits for them.

    Examples
    --------
    >>> from mxnet.gluon.probability import constraint_check
    >>> constraint_check()(np.array([1.0, 2.0]) > 0, "must be positive")
    array(True)
    """

    def check(condition: Any, message: str) -> Any:
        if isinstance(condition, bool):
            if not condition:
                raise ValueError(message)
            return True
        return npx.constraint_check(condition, message)

    return check


def _of_numbers_too(function: Callable[..., Any], of_number: Callable[[float], float] | None) -> Callable[[Any], Any]:
    def compute(value: Any) -> Any:
        if not isinstance(value, Number):
            return function(value)
        if of_number is not None:
            return of_number(value)  # type: ignore[arg-type]
        return float(function(np.array(value, dtype="float64")))

    return compute


def erf() -> Callable[[Any], Any]:
    """The error function, for arrays and for numbers.

    Returns
    -------
    callable of ndarray or float
        Its result has the kind of its argument.

    Examples
    --------
    >>> from mxnet.gluon.probability import erf
    >>> erf()(0.0), erf()(np.array([0.0]))
    (0.0, array([0.]))
    """
    return _of_numbers_too(npx.erf, math.erf)


def erfinv() -> Callable[[Any], Any]:
    """The inverse of the error function, for arrays and for numbers.

    Returns
    -------
    callable of ndarray or float
        Its result has the kind of its argument.

    Examples
    --------
    >>> from mxnet.gluon.probability import erfinv
    >>> erfinv()(0.0), erfinv()(np.array([0.0]))
    (0.0, array([0.]))
    """
    return _of_numbers_too(npx.erfinv, None)


def gammaln() -> Callable[[Any], Any]:
    """The logarithm of the absolute value of the gamma function, for arrays and for numbers.

    Returns
    -------
    callable of ndarray or float
        Its result has the kind of its argument.

    Examples
    --------
    >>> from mxnet.gluon.probability import gammaln
    >>> gammaln()(1.0), gammaln()(np.array([1.0]))
    (0.0, array([0.]))
    """
    return _of_numbers_too(npx.gammaln, None)


def digamma() -> Callable[[Any], Any]:
    """The derivative of `gammaln`, for arrays and for numbers.

    Returns
    -------
    callable of ndarray or float
        Its result has the kind of its argument.

    Examples
    --------
    >>> from mxnet.gluon.probability import digamma
    >>> round(digamma()(1.0), 6)  # minus Euler's constant
    -0.577216
    """
    return _of_numbers_too(npx.digamma, None)


def prob2logit(prob: ndarray, binary: bool = True) -> ndarray:
    """Logits of probabilities.

    Parameters
    ----------
    prob : ndarray
        From 0 to 1.
    binary : bool
        Whether `prob` is the probability of one of two outcomes and not of one class of many.

    Returns
    -------
    ndarray
        ``log(prob / (1 - prob))``, or ``log(prob)`` for classes; infinite at the ends.

    Examples
    --------
    >>> from mxnet.gluon.probability import prob2logit
    >>> prob2logit(np.array([0.5]))
    array([0.])
    """
    prob = np.asarray(prob)
    return np.log(prob) - np.log1p(-prob) if binary else np.log(prob)


def logit2prob(logit: ndarray, binary: bool = True) -> ndarray:
    """Probabilities of logits.

    Parameters
    ----------
    logit : ndarray
        Shape (..., k) for classes.
    binary : bool
        Whether `logit` belongs to one of two outcomes and not to classes in the last axis.

    Returns
    -------
    ndarray
        ``sigmoid(logit)``, or the softmax along the last axis.

    Examples
    --------
    >>> from mxnet.gluon.probability import logit2prob
    >>> logit2prob(np.array([0.0]))
    array([0.5])
    """
    logit = np.asarray(logit)
    return npx.sigmoid(logit) if binary else npx.softmax(logit, axis=-1)


def sample_n_shape_converter(size: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """The `size` of `sample_n` as a tuple.

    Parameters
    ----------
    size : int, tuple of int or None

    Returns
    -------
    tuple of int
        Empty for None.

    Raises
    ------
    TypeError
        If `size` is none of these.
    ValueError
        If a length is negative.

    Examples
    --------
    >>> from mxnet.gluon.probability import sample_n_shape_converter
    >>> sample_n_shape_converter(3), sample_n_shape_converter(None)
    ((3,), ())
    """
    if size is None:
        return ()
    try:
        shape = (size,) if isinstance(size, int | onp.integer) else tuple(size)
        lengths = tuple(length.__index__() for length in shape)
    except (TypeError, AttributeError) as error:
        raise TypeError(f"sample: `size` must be an int or a tuple of int, found {size!r}") from error
    if any(length < 0 for length in lengths):
        raise ValueError(f"sample: `size` must not be negative, found {size!r}")
    return lengths


# ---- for the distributions only ----


def float_arrays(owner: str, named: Mapping[str, Any]) -> dict[str, ndarray]:
    """Parameters as arrays of one floating dtype: that of the arrays among them, the default for numbers alone."""
    arrays: dict[str, ndarray | float] = {}
    for name, value in named.items():
        if isinstance(value, bool | str) or value is None:
            raise TypeError(f"{owner}: `{name}` must be an array or a number, found {value!r}")
        arrays[name] = value if isinstance(value, int | float | ndarray) else np.array(value)
    given = [array for array in arrays.values() if isinstance(array, ndarray)]
    for name, array in arrays.items():
        if isinstance(array, ndarray) and onp.dtype(array.dtype).kind in "cOSU":
            raise TypeError(f"{owner}: `{name}` must be real, found dtype {array.dtype}")
    floating = [array for array in given if is_floating(array)]
    dtype = np.result_type(*floating) if floating else np.array(0.0).dtype
    device = given[0].device if given else None
    result: dict[str, ndarray] = {}
    for name, array in arrays.items():
        if isinstance(array, ndarray):
            result[name] = array if array.dtype == dtype else array.astype(dtype)
        else:
            result[name] = np.array(array, dtype=dtype, device=device)
    return result


def is_floating(array: ndarray) -> bool:
    """Whether the dtype is a floating one, bfloat16 included."""
    return onp.dtype(array.dtype).kind not in "biuc"


def one_of(owner: str, prob: Any, logit: Any) -> dict[str, Any]:
    """The one of `prob` and `logit` that is given, under the name of its attribute."""
    if (prob is None) == (logit is None):
        found = "neither" if prob is None else "both"
        raise ValueError(f"{owner}: exactly one of `prob` and `logit` must be given, found {found}")
    return {"_logit": logit} if prob is None else {"_prob": prob}


def where(condition: ndarray, x: ndarray, y: ndarray) -> ndarray:
    """`x` where the condition holds, else `y`."""
    chosen: ndarray = np.where(condition, x, y)
    return chosen


def sum_last(x: ndarray, num_axes: int) -> ndarray:
    """Sum over the last `num_axes` axes."""
    if num_axes <= 0:
        return x
    total: ndarray = x.sum(axis=tuple(range(-num_axes, 0)))
    return total


def xlogy(x: ndarray, y: ndarray) -> ndarray:
    """``x * log(y)``, 0 where both are 0; no NaN comes into gradients there."""
    both = (x == 0) & (y == 0)
    return where(both, np.zeros_like(y), x) * np.log(where(both, np.ones_like(y), y))


def xlog1py(x: ndarray, y: ndarray) -> ndarray:
    """``x * log(1 + y)``, 0 where both factors are 0 times infinity; no NaN comes into gradients there."""
    both = (x == 0) & (y == -1)
    return where(both, np.zeros_like(y), x) * np.log1p(where(both, np.zeros_like(y), y))


def softplus(x: ndarray) -> ndarray:
    """``log(1 + exp(x))`` without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def betaln(a: ndarray, b: ndarray) -> ndarray:
    """Logarithm of the beta function."""
    return npx.gammaln(a) + npx.gammaln(b) - npx.gammaln(a + b)


def quantile_of_counts(distribution: Any, p: ndarray, largest: ndarray | float = math.inf) -> ndarray:
    """The smallest count from 0 to `largest` whose `cdf` is at least `p`; NaN where `p` is no probability.

    Bisection between the bounds of Cantelli's inequality: a quantile is at most ``mean + stddev * sqrt(p / (1 - p))``
    and at least ``mean - stddev * sqrt((1 - p) / p)``. A step halves the difference of the bounds, or of their
    logarithms while one is more than four times the other; as many steps as the dtype has bits, and four more, reach
    one count.
    """
    with autograd.pause():
        mean, stddev = distribution.mean, distribution.stddev
        is_inside = (p > 0) & (p < 1)
        inner = where(is_inside, p, np.full_like(p, 0.5))
        # The count `low` is too small, or -1; `high` is large enough.
        low = np.maximum(np.floor(mean - stddev * np.sqrt((1 - inner) / inner)) - 1, -1)
        high = np.minimum(np.ceil(mean + stddev * np.sqrt(inner / (1 - inner))) + 1, largest)
        for _ in range(np.finfo(high.dtype).bits + 4):
            positive = np.maximum(low, 1)
            # Neither formula overflows.
            middle = where(
                high / 4 > positive,
                np.floor(np.sqrt(positive) * np.sqrt(high)),
                low + np.floor((high - low) / 2),
            )
            is_enough = distribution.cdf(middle) >= inner
            low, high = where(is_enough, low, middle), where(is_enough, middle, high)
        ends = where(p == 0, np.zeros_like(high), np.full_like(high, math.nan))
        ends = where(p == 1, np.zeros_like(high) + largest, ends)
        return where(is_inside, high, ends)


def smallest_normal(array: ndarray) -> float:
    """The smallest normal number of the dtype."""
    return float(np.finfo(array.dtype).smallest_normal)


def epsilon(array: ndarray) -> float:
    """The distance from 1 to the next number of the dtype."""
    return float(np.finfo(array.dtype).eps)


EULER = 0.5772156649015329  # minus the derivative of the gamma function at 1
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
