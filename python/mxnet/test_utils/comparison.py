"""Comparing arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp
from numpy.typing import NDArray

from mxnet import autograd
from mxnet.base import dtype_name
from mxnet.numpy import ndarray
from mxnet.test_utils.defaults import Tolerance, get_tols

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "checkShapes",
    "compare_ndarray_tuple",
    "locationError",
    "host",
    "same",
    "same_array",
]


def host(array: Any) -> NDArray[Any]:
    """Values in host memory; bfloat16 as float32."""
    if isinstance(array, ndarray):
        if dtype_name(array.dtype) == "bfloat16":
            array = array.astype("float32")
        values: NDArray[Any] = array.asnumpy()
        return values
    return onp.asarray(array)


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have equal shapes and values; NaN equals nothing.

    Parameters
    ----------
    a, b : array_like

    Returns
    -------
    bool

    Examples
    --------
    >>> mx.test_utils.same(np.ones(2), [1, 1])
    True
    """
    return onp.array_equal(host(a), host(b))


def same_array(array1: ndarray, array2: ndarray) -> bool:
    """Whether two arrays share memory, found out by a write to the first one that is taken back.

    Parameters
    ----------
    array1, array2 : ndarray, numeric dtype

    Returns
    -------
    bool

    Examples
    --------
    >>> x = np.zeros(4)
    >>> mx.test_utils.same_array(x, x[:]), mx.test_utils.same_array(x, x.copy())
    (True, False)
    """
    with autograd.pause():
        array1[:] = array1 + 1
        shared = same(array1, array2)
        array1[:] = array1 - 1
        return shared and same(array1, array2)


def _excess(a: NDArray[Any], b: NDArray[Any], rtol: float, atol: float, equal_nan: bool) -> NDArray[onp.float64]:
    """How many times the allowed difference is exceeded, element by element."""
    wide = onp.complex128 if onp.iscomplexobj(a) or onp.iscomplexobj(b) else onp.float64
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        # 64-bit integers do not survive float64; exact equality does.
        exact = a == b
    else:
        exact = onp.zeros(onp.broadcast_shapes(a.shape, b.shape), bool)
    left, right = a.astype(wide), b.astype(wide)
    with onp.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = onp.abs(left - right)
        allowed = atol + rtol * onp.abs(right)
        excess = onp.where(difference == 0, 0.0, difference / allowed)
    equal = exact | (left == right)
    if equal_nan:
        equal = equal | (onp.isnan(left) & onp.isnan(right))
    excess = onp.where(equal, 0.0, excess)
    found: NDArray[onp.float64] = onp.where(onp.isnan(excess), onp.inf, excess)
    return found


def almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)`` everywhere.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float, mapping of dtype names to float, or None
        By default those of the less exact dtype.
    equal_nan : bool
        Let NaN equal NaN.
    use_broadcast : bool
        Let shapes differ if they broadcast.

    Returns
    -------
    bool

    Examples
    --------
    >>> mx.test_utils.almost_equal([1.0, 2.0], [1.0, 2.0000001])
    True
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    left, right = host(a), host(b)
    if not use_broadcast and left.shape != right.shape:
        return False
    return bool((_excess(left, right, rtol, atol, equal_nan) <= 1).all())


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Check that ``abs(a - b) <= atol + rtol * abs(b)`` everywhere.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float, mapping of dtype names to float, or None
        By default those of the less exact dtype.
    names : tuple of str
        For the message.
    equal_nan : bool
        Let NaN equal NaN.
    use_broadcast : bool
        Let shapes differ if they broadcast.
    mismatches : tuple of int
        How many of the worst elements the message shows; the first number counts.

    Raises
    ------
    AssertionError
        With the number of wrong elements, and the place, values and difference of the worst ones.

    Examples
    --------
    >>> mx.test_utils.assert_almost_equal(np.ones(2), [1.0, 1.0], rtol=1e-6, atol=0)
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    left, right = host(a), host(b)
    if left.shape != right.shape:
        if not use_broadcast:
            raise AssertionError(f"{names[0]} has shape {left.shape}, {names[1]} has shape {right.shape}")
        try:
            onp.broadcast_shapes(left.shape, right.shape)
        except ValueError as error:
            raise AssertionError(
                f"{names[0]} of shape {left.shape} and {names[1]} of shape {right.shape} do not broadcast"
            ) from error
    excess = _excess(left, right, rtol, atol, equal_nan)
    wrong = int((excess > 1).sum())
    if not wrong:
        return
    left, right = onp.broadcast_to(left, excess.shape), onp.broadcast_to(right, excess.shape)
    lines = [
        f"{wrong} of {excess.size} elements differ by more than atol={atol:g} + rtol={rtol:g} * abs({names[1]}), "
        "the worst first:"
    ]
    for flat in excess.ravel().argsort(kind="stable")[::-1][: min(wrong, max(mismatches[0], 1))]:
        worst_index = tuple(int(i) for i in onp.unravel_index(flat, excess.shape))
        lines.append(
            f"  {worst_index}: {names[0]}={left[worst_index]!r} {names[1]}={right[worst_index]!r} "
            f"({excess[worst_index]:.4g} times what is allowed)"
        )
    raise AssertionError("\n".join(lines))


def assert_allclose(a: Any, b: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True) -> None:
    """As `assert_almost_equal`, with NumPy's defaults.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float
    equal_nan : bool
        Let NaN equal NaN.

    Raises
    ------
    AssertionError
        If elements differ by more than is allowed.

    Examples
    --------
    >>> mx.test_utils.assert_allclose([1.0, 2.0], [1.0, 2.1], rtol=0.1)
    """
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None, names: tuple[str, str] = ("a", "b")
) -> None:
    """As `assert_almost_equal`, but elements that are NaN in either array do not count.

    Parameters
    ----------
    a, b : array_like, same shape
    rtol, atol : float, mapping of dtype names to float, or None
    names : tuple of str

    Raises
    ------
    AssertionError
        If elements differ by more than is allowed.

    Examples
    --------
    >>> mx.test_utils.assert_almost_equal_ignore_nan([1.0, np.nan], [1.0, 5.0])
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    left, right = host(a), host(b)
    counted = ~(onp.isnan(left) | onp.isnan(right))
    assert_almost_equal(left[counted], right[counted], rtol, atol, names)


def checkShapes(a: Any, b: Any) -> None:
    """Check that two arrays have the same shape.

    Parameters
    ----------
    a, b : array_like

    Raises
    ------
    AssertionError
        If the shapes differ.

    Examples
    --------
    >>> mx.test_utils.checkShapes(np.zeros((2, 3)), np.ones((2, 3)))
    """
    shapes = onp.shape(host(a)), onp.shape(host(b))
    if shapes[0] != shapes[1]:
        raise AssertionError(f"the shapes differ: {shapes[0]} and {shapes[1]}")


def locationError(a: Any, b: Any, index: tuple[int, ...], names: Sequence[str], maxError: bool = False) -> str:
    """Describe where two arrays differ.

    Parameters
    ----------
    a, b : array_like
    index : tuple of int
        Where.
    names : sequence of two str
        Names of the arrays.
    maxError : bool
        Say that it is the largest difference.

    Returns
    -------
    str

    Examples
    --------
    >>> mx.test_utils.locationError(np.array([1.0]), np.array([2.0]), (0,), ("found", "expected"))
    'Location of error: (0,), found=1.00000000, expected=2.00000000'
    """
    which = "maximum error" if maxError else "error"
    values = ", ".join(f"{name}={float(host(x)[index]):.8f}" for name, x in zip(names, (a, b), strict=True))
    return f"Location of {which}: {index}, {values}"


def assert_exception(f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Check that a call raises, now or when its result is waited for.

    Parameters
    ----------
    f : callable
    exception_type : exception class
    *args, **kwargs
        Arguments of `f`.

    Raises
    ------
    AssertionError
        If nothing is raised.

    Examples
    --------
    >>> mx.test_utils.assert_exception(np.reshape, ValueError, np.ones(3), (2, 2))
    """
    try:
        result = f(*args, **kwargs)
        if isinstance(result, ndarray):
            result.wait_to_read()
    except exception_type:
        return
    raise AssertionError(f"{f!r} did not raise {exception_type.__name__}")


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """As `assert_almost_equal`, for arrays in nested tuples or lists.

    Parameters
    ----------
    t1, t2 : None, array_like, or tuple or list of these
    rtol, atol : float, mapping of dtype names to float, or None

    Raises
    ------
    AssertionError
        If the nesting differs, or elements differ by more than is allowed.

    Examples
    --------
    >>> mx.test_utils.compare_ndarray_tuple((np.ones(2), [np.zeros(1)]), (np.ones(2), [np.zeros(1)]))
    """
    if isinstance(t1, tuple | list):
        if not isinstance(t2, tuple | list) or len(t1) != len(t2):
            raise AssertionError(f"a sequence of {len(t1)} is compared with {type(t2).__name__}")
        for left, right in zip(t1, t2, strict=True):
            compare_ndarray_tuple(left, right, rtol, atol)
    elif t1 is None or t2 is None:
        if t1 is not t2:
            raise AssertionError(f"{type(t1).__name__} is compared with {type(t2).__name__}")
    else:
        assert_almost_equal(t1, t2, rtol, atol)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    etol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """As `assert_almost_equal`, but a part of the elements may be wrong.

    Parameters
    ----------
    a, b : array_like
    rtol, atol, names, equal_nan, mismatches
        See `assert_almost_equal`.
    etol : float, optional
        Largest part of wrong elements, from 0 to 1; 0 by default.

    Raises
    ------
    AssertionError
        If more elements are wrong.

    Examples
    --------
    >>> mx.test_utils.assert_almost_equal_with_err([1.0, 2.0, 3.0], [1.0, 2.0, 9.0], etol=0.5)
    """
    tolerances = get_tols(a, b, rtol, atol)
    excess = _excess(host(a), host(b), *tolerances, equal_nan)
    if excess.size and (excess > 1).mean() > (etol or 0.0):
        assert_almost_equal(a, b, rtol, atol, names, equal_nan, mismatches=mismatches)
