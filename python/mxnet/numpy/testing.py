"""Assertions about arrays, for users' tests: NumPy's, which get our arrays as NumPy's.

Each waits for the arrays it is given. bfloat16, which NumPy cannot compare, is compared as float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy
from numpy.testing import (
    IgnoreException,
    SkipTest,
    assert_,
    assert_no_gc_cycles,
    assert_no_warnings,
    assert_raises,
    assert_raises_regex,
    assert_string_equal,
    assert_warns,
    break_cycles,
    clear_and_catch_warnings,
    suppress_warnings,
    tempdir,
    temppath,
)

from mxnet._core import ndarray
from mxnet.base import dtype_name

__all__ = [
    "IgnoreException",
    "SkipTest",
    "assert_",
    "assert_allclose",
    "assert_almost_equal",
    "assert_approx_equal",
    "assert_array_almost_equal",
    "assert_array_almost_equal_nulp",
    "assert_array_equal",
    "assert_array_less",
    "assert_array_max_ulp",
    "assert_equal",
    "assert_no_gc_cycles",
    "assert_no_warnings",
    "assert_raises",
    "assert_raises_regex",
    "assert_string_equal",
    "assert_warns",
    "break_cycles",
    "clear_and_catch_warnings",
    "suppress_warnings",
    "tempdir",
    "temppath",
]


def _host(value: Any) -> Any:
    """`value` with NumPy's arrays in place of ours, within lists, tuples and dicts too."""
    if isinstance(value, ndarray):
        return (value.astype("float32") if dtype_name(value.dtype) == "bfloat16" else value).asnumpy()
    if type(value) in (list, tuple):
        return type(value)(_host(item) for item in value)
    if type(value) is dict:
        return {key: _host(item) for key, item in value.items()}
    return value


def _run_assertion(check: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Calls NumPy's assertion; the traceback of its failure ends with the caller."""
    __tracebackhide__ = True
    try:
        return check(*map(_host, args), **options)
    except AssertionError as error:
        raise AssertionError(*error.args) from None


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-7,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
    *,
    strict: bool = False,
) -> None:
    """Raise unless arrays are equal up to a tolerance: ``abs(actual - desired) <= atol + rtol * abs(desired)``.

    Parameters
    ----------
    actual, desired : array_like
        What was found, and what it should be.
    rtol, atol : float
        Tolerances. float32 has 7 digits: 1e-7, NumPy's own choice, is for float64.
    equal_nan : bool
        Whether NaN equals NaN.
    err_msg : str
        Added to the message.
    verbose : bool
        Whether the message shows the arrays.
    strict : bool
        Whether shapes and dtypes must be the same, numbers do not broadcast.

    Raises
    ------
    AssertionError
        If they differ.

    Examples
    --------
    >>> np.testing.assert_allclose(np.array([1.0, 2.0]), [1.0, 2.001], rtol=1e-2)
    """
    __tracebackhide__ = True
    check = numpy.testing.assert_allclose
    _run_assertion(check, actual, desired, rtol, atol, equal_nan, err_msg, verbose, strict=strict)


def assert_equal(actual: Any, desired: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False) -> None:
    """Raise unless two objects are equal: numbers, arrays, and lists, tuples and dicts of them.

    Parameters
    ----------
    actual, desired : object
        What was found, and what it should be.
    err_msg : str
        Added to the message.
    verbose : bool
        Whether the message shows the objects.
    strict : bool
        Whether shapes and dtypes of arrays must be the same.

    Raises
    ------
    AssertionError
        If they differ.

    Examples
    --------
    >>> np.testing.assert_equal({"x": np.array([1, 2])}, {"x": [1, 2]})
    """
    __tracebackhide__ = True
    _run_assertion(numpy.testing.assert_equal, actual, desired, err_msg, verbose, strict=strict)


def assert_array_equal(
    actual: Any, desired: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False
) -> None:
    """Raise unless arrays are equal; NaN equals NaN, and a number every element.

    Parameters
    ----------
    actual, desired : array_like
        What was found, and what it should be.
    err_msg : str
        Added to the message.
    verbose : bool
        Whether the message shows the arrays.
    strict : bool
        Whether shapes and dtypes must be the same, numbers do not broadcast.

    Raises
    ------
    AssertionError
        If they differ.

    Examples
    --------
    >>> np.testing.assert_array_equal(np.array([1, 2]), [1, 2])
    """
    __tracebackhide__ = True
    _run_assertion(numpy.testing.assert_array_equal, actual, desired, err_msg, verbose, strict=strict)


def assert_array_less(x: Any, y: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False) -> None:
    """Raise unless every element of `x` is below that of `y`.

    Parameters
    ----------
    x, y : array_like
        The smaller and the larger array.
    err_msg : str
        Added to the message.
    verbose : bool
        Whether the message shows the arrays.
    strict : bool
        Whether shapes and dtypes must be the same, numbers do not broadcast.

    Raises
    ------
    AssertionError
        If an element is not.

    Examples
    --------
    >>> np.testing.assert_array_less(np.array([1, 2]), 3)
    """
    __tracebackhide__ = True
    _run_assertion(numpy.testing.assert_array_less, x, y, err_msg, verbose, strict=strict)


def assert_almost_equal(actual: Any, desired: Any, decimal: int = 7, err_msg: str = "", verbose: bool = True) -> None:
    """Raise unless numbers or arrays differ by less than ``1.5 * 10**-decimal``; better use `assert_allclose`.

    Parameters
    ----------
    actual, desired : array_like
        What was found, and what it should be.
    decimal : int
        How many digits after the point agree.
    err_msg : str
        Added to the message.
    verbose : bool
        Whether the message shows the objects.

    Raises
    ------
    AssertionError
        If they differ by more.

    Examples
    --------
    >>> np.testing.assert_almost_equal(np.array([1.0, 2.0]).mean(), 1.5)
    """
    __tracebackhide__ = True
    _run_assertion(numpy.testing.assert_almost_equal, actual, desired, decimal, err_msg, verbose)


def assert_array_almost_equal(
    actual: Any, desired: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True
) -> None:
    """Raise unless arrays differ by less than ``1.5 * 10**-decimal``; better use `assert_allclose`.

    Parameters
    ----------
    actual, desired : array_like
        What was found, and what it should be.
    decimal : int
        How many digits after the point agree.
    err_msg : str
        Added to the message.
    verbose : bool
        Whether the message shows the arrays.

    Raises
    ------
    AssertionError
        If they differ by more.

    Examples
    --------
    >>> np.testing.assert_array_almost_equal(np.array([1.0, 2.0]), [1.0, 2.0000001])
    """
    __tracebackhide__ = True
    _run_assertion(numpy.testing.assert_array_almost_equal, actual, desired, decimal, err_msg, verbose)


def assert_approx_equal(
    actual: Any, desired: Any, significant: int = 7, err_msg: str = "", verbose: bool = True
) -> None:
    """Raise unless two numbers agree in some significant digits; better use `assert_allclose`.

    Parameters
    ----------
    actual, desired : number
        What was found, and what it should be.
    significant : int
        How many digits agree.
    err_msg : str
        Added to the message.
    verbose : bool
        Whether the message shows the numbers.

    Raises
    ------
    AssertionError
        If they differ in these digits.

    Examples
    --------
    >>> np.testing.assert_approx_equal(np.array(1234.5), 1234.0, significant=3)
    """
    __tracebackhide__ = True
    _run_assertion(numpy.testing.assert_approx_equal, actual, desired, significant, err_msg, verbose)


def assert_array_almost_equal_nulp(x: Any, y: Any, nulp: float = 1) -> None:
    """Raise unless arrays of floats differ by at most some units in the last place of the larger element.

    Parameters
    ----------
    x, y : array_like
        The arrays.
    nulp : float
        How many units.

    Raises
    ------
    AssertionError
        If they differ by more.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> np.testing.assert_array_almost_equal_nulp(x, x * (1 + 1e-7), nulp=2)
    """
    __tracebackhide__ = True
    _run_assertion(numpy.testing.assert_array_almost_equal_nulp, x, y, nulp)


def assert_array_max_ulp(a: Any, b: Any, maxulp: int = 1, dtype: Any = None) -> Any:
    """Raise unless at most some floats lie between the elements of two arrays.

    Parameters
    ----------
    a, b : array_like
        The arrays.
    maxulp : int
        How many floats.
    dtype : dtype, optional
        What they are compared in.

    Returns
    -------
    numpy.ndarray
        How many floats lie between them, by element: an array of NumPy's.

    Raises
    ------
    AssertionError
        If there are more.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> float(np.testing.assert_array_max_ulp(x, x).max())
    0.0
    """
    __tracebackhide__ = True
    return _run_assertion(numpy.testing.assert_array_max_ulp, a, b, maxulp, dtype)
