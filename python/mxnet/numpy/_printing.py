"""Text of arrays, with NumPy's options and layout."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy
from numpy import (
    base_repr,
    binary_repr,
    get_printoptions,
    set_printoptions,
)
from numpy.typing import ArrayLike

from mxnet._core import asarray, ndarray, shortest_digits

__all__ = [
    "array2string",
    "array_repr",
    "array_str",
    "base_repr",
    "binary_repr",
    "format_float_positional",
    "format_float_scientific",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]


def _of_elements(function: Callable[..., str], is_scientific: bool) -> Callable[..., str]:
    """NumPy's function for numbers, extended to our arrays, which are converted to NumPy scalars first."""

    @functools.wraps(function)
    def formatted(x: Any, *args: Any, **kwargs: Any) -> str:
        if not args and not kwargs:
            text: str | None = shortest_digits(x, is_scientific)
            if text is not None:
                return text
        return function(x.asnumpy()[()] if isinstance(x, ndarray) else x, *args, **kwargs)

    return formatted


format_float_positional = _of_elements(numpy.format_float_positional, False)
format_float_scientific = _of_elements(numpy.format_float_scientific, True)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """Print options inside a ``with`` block.

    Parameters
    ----------
    *args, **kwargs
        As for `set_printoptions`.

    Returns
    -------
    context manager
        Gives the options as a dict.

    Examples
    --------
    >>> import mxnet as mx
    >>> with mx.np.printoptions(precision=2):
    ...     print(mx.np.array([3.14159]))
    [3.14]
    """
    return numpy.printoptions(*args, **kwargs)


def _printable(a: ArrayLike) -> Any:
    """A copy that NumPy prints with its options: of large arrays only the corners are defined."""
    array: Any = asarray(a)
    return array._printable_copy()


def array2string(a: ArrayLike, *args: Any, **kwargs: Any) -> str:
    """The elements of an array as text.

    Parameters
    ----------
    a : array_like
    *args, **kwargs
        `max_line_width`, `precision`, `suppress_small`, `separator`, `prefix` and, by name, `formatter`, `threshold`,
        `edgeitems`, `sign`, `floatmode`, `suffix`, `legacy`: as for `numpy.array2string`.

    Returns
    -------
    str

    Raises
    ------
    TypeError
        For other names.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.array2string(mx.np.array([1.5, 2.25]), separator=", ")
    '[1.5 , 2.25]'
    """
    # A call may print more elements than the options, by which `_printable` decides.
    has_own_limits = len(args) > 6 or not kwargs.keys().isdisjoint(("threshold", "edgeitems"))
    return numpy.array2string(asarray(a).asnumpy() if has_own_limits else _printable(a), *args, **kwargs)


def array_repr(
    arr: ndarray, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The text by which an array shows itself.

    Parameters
    ----------
    arr : ndarray
    max_line_width, precision : int, optional
    suppress_small : bool, optional
        Print numbers close to zero as zero.

    Returns
    -------
    str

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.array_repr(mx.np.array([1.25, 2]), precision=1)
    'array([1.2, 2. ])'
    """
    if max_line_width is None and precision is None and suppress_small is None:
        return repr(asarray(arr))
    with numpy.printoptions(precision=precision, suppress=suppress_small, linewidth=max_line_width):
        return repr(asarray(arr))


def array_str(
    a: ndarray, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The elements of an array as `str` shows them.

    Parameters
    ----------
    a : ndarray
    max_line_width, precision : int, optional
    suppress_small : bool, optional
        Print numbers close to zero as zero.

    Returns
    -------
    str

    Examples
    --------
    >>> np.array_str(np.array([1.5, 2.0]))
    '[1.5 2. ]'
    """
    return numpy.array_str(_printable(a), max_line_width, precision, suppress_small)
