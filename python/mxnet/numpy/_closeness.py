"""Comparison of whole arrays, and tests for real values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._comparing import objects
from mxnet.numpy._dtypes import kind_of, spelled
from mxnet.numpy._overriding import overridable

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]


def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether two arrays are equal up to a tolerance; see `isclose`.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float
        The elements may differ by ``atol + rtol * abs(b)``.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.allclose(mx.np.ones(3), 1 + 1e-6)
    True
    """
    return bool(_np["all"](_np["isclose"](a, b, rtol, atol, equal_nan)))


@overridable
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements.

    Parameters
    ----------
    a1, a2 : array_like
    equal_nan : bool
        Whether NaN equals NaN.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.array_equal([1, 2], mx.np.array([1, 2]))
    True
    >>> mx.np.array_equal([1, 2], [1])
    False
    """
    try:
        x, y = asarray(a1), asarray(a2)
    except (TypeError, OverflowError):
        mine, theirs = objects(a1), objects(a2)
        return mine.shape == theirs.shape and _are_equal(zip(mine.flat, theirs.flat, strict=True), equal_nan)
    except ValueError:
        return False
    if x.shape != y.shape:
        return False
    same = _np["equal"](x, y)
    if equal_nan:
        same = same | (_np["not_equal"](x, x) & _np["not_equal"](y, y))
    return bool(_np["all"](same))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> bool:
    """Whether two arrays have the same elements after broadcasting.

    Parameters
    ----------
    a1, a2 : array_like

    Returns
    -------
    bool
        False also for shapes that do not broadcast.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.array_equiv([1, 2], [[1, 2], [1, 2]])
    True
    """
    try:
        x, y = asarray(a1), asarray(a2)
    except (TypeError, OverflowError):
        try:
            return _are_equal(numpy.broadcast(objects(a1), objects(a2)))
        except ValueError:
            return False
    except ValueError:
        return False
    if x.shape != y.shape:
        try:
            numpy.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return False
    return bool(_np["all"](_np["equal"](x, y)))


def _are_equal(pairs: Iterable[tuple[Any, Any]], equal_nan: bool = False) -> bool:
    """Whether objects (other than numbers, text and None) are equal."""
    return all(bool(a == b) or (equal_nan and a != a and b != b) for a, b in pairs)


def _is_complex(x: ndarray) -> bool:
    return kind_of(x.dtype) == "c"


def iscomplexobj(x: object) -> bool:
    """Whether an array, or what would become one, has a complex dtype, whatever its elements are.

    Parameters
    ----------
    x : object
        The array, or what would become one.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.iscomplexobj(mx.np.zeros(2)), mx.np.iscomplexobj(1j)
    (False, True)
    """
    return kind_of(x.dtype if type(x) is ndarray else asarray(x).dtype) == "c"


def isrealobj(x: object) -> bool:
    """Whether an array, or what would become one, has a dtype that is not complex.

    Parameters
    ----------
    x : object
        The array, or what would become one.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.isrealobj(mx.np.zeros(2))
    True
    """
    return kind_of(x.dtype if type(x) is ndarray else asarray(x).dtype) != "c"


def real_if_close(a: ArrayLike, tol: float = 100) -> ndarray:
    """The real parts, if all imaginary parts are close to 0; else the array.

    Parameters
    ----------
    a : array_like
    tol : float
        In units of the machine epsilon of the dtype if above 1, else absolute.

    Returns
    -------
    ndarray
        Its dtype depends on values: they are waited for.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.real_if_close(mx.np.array([1 + 1e-9j, 2]))
    array([1., 2.])
    """
    values = a if type(a) is ndarray else asarray(a)
    if not _is_complex(values):
        return values
    limit = tol * float(numpy.finfo(values.dtype).eps) if tol > 1 else tol
    if bool(_np["all"](_np["less"](_np["abs"](_np["imag"](values)), limit))):
        return _np["real"](values)  # type: ignore[no-any-return]
    return values


def sort_complex(a: ArrayLike) -> ndarray:
    """Elements sorted along the last axis by real part, then by imaginary part, as complex numbers.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    ndarray
        complex128 for float64 and for wide integers in NumPy's promotion, else complex64. NumPy makes complex128 of
        float32 too.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.sort_complex(mx.np.array([3.0, 1.0]))
    array([1.+0.j, 3.+0.j])
    """
    values = _np["sort"](asarray(a))
    if _is_complex(values):
        return values  # type: ignore[no-any-return]
    narrow = ("int8", "int16", "uint8", "uint16")
    if _core.numpy_promotion():
        wide = spelled(values.dtype) not in narrow
    else:
        wide = spelled(values.dtype) == "float64"
    return _op["astype"](values, "complex128" if wide else "complex64")  # type: ignore[no-any-return]
