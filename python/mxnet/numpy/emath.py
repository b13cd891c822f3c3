"""Functions whose results are complex where the real function is undefined: `sqrt(-1)` is `1j`.

They look at the elements to know which dtype the result has, and so wait for them. Differentiable.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

__all__ = ["arccos", "arcsin", "arctanh", "log", "log2", "log10", "logn", "power", "sqrt"]


def _complex(x: ndarray) -> ndarray:
    single = str(x.dtype) in ("float16", "bfloat16", "float32", "int8", "int16", "uint8", "uint16")
    result: ndarray = _op["astype"](x, "complex64" if single else _core.default_dtype("c"))
    if str(x.dtype) == "float64":
        result = _op["astype"](x, "complex128")
    return result


def _is_real(x: ndarray) -> bool:
    return not str(x.dtype).startswith("complex")


def _not_negative(x: ArrayLike) -> ndarray:
    """Complex if any element is below 0."""
    array = asarray(x)
    return _complex(array) if _is_real(array) and bool(_np["any"](array < 0)) else array


def _within_one(x: ArrayLike) -> ndarray:
    """Complex if any element is beyond -1 or 1."""
    array = asarray(x)
    return _complex(array) if _is_real(array) and bool(_np["any"](_np["abs"](array) > 1)) else array


def sqrt(x: ArrayLike) -> ndarray:
    """Square root.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element is negative.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.sqrt([-1.0, 4.0])
    array([0.+1.j, 2.+0.j])
    """
    return _np["sqrt"](_not_negative(x))  # type: ignore[no-any-return]


def log(x: ArrayLike) -> ndarray:
    """Natural logarithm.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element is negative, whose imaginary part is pi then.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.log(-1.0)
    array(0.+3.1415927j)
    """
    return _np["log"](_not_negative(x))  # type: ignore[no-any-return]


def log10(x: ArrayLike) -> ndarray:
    """Logarithm to base 10.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element is negative.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.log10(100.0)
    array(2.)
    """
    return _np["log10"](_not_negative(x))  # type: ignore[no-any-return]


def log2(x: ArrayLike) -> ndarray:
    """Logarithm to base 2.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element is negative.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.log2(8.0)
    array(3.)
    """
    return _np["log2"](_not_negative(x))  # type: ignore[no-any-return]


def logn(n: ArrayLike, x: ArrayLike) -> ndarray:
    """Logarithm to base `n`.

    Parameters
    ----------
    n : array_like
        Bases.
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element or a base is negative.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.logn(2.0, [4.0, 8.0])
    array([2., 3.])
    """
    return log(x) / log(n)


def power(x: ArrayLike, p: ArrayLike) -> ndarray:
    """`x` to the power `p`.

    Parameters
    ----------
    x : array_like
        Bases.
    p : array_like
        Exponents; integers to negative ones are floats.

    Returns
    -------
    ndarray
        Complex if a base is negative.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.power([2, 4], -2)
    array([0.25  , 0.0625])
    """
    base, exponent = _not_negative(x), asarray(p)
    if "int" in str(exponent.dtype) and bool(_np["any"](exponent < 0)):
        exponent = exponent * 1.0
    return _np["power"](base, exponent)  # type: ignore[no-any-return]


def arccos(x: ArrayLike) -> ndarray:
    """Inverse cosine.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element is beyond -1 or 1.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.arccos(1.0)
    array(0.)
    """
    return _np["arccos"](_within_one(x))  # type: ignore[no-any-return]


def arcsin(x: ArrayLike) -> ndarray:
    """Inverse sine.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element is beyond -1 or 1.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.arcsin(0.0)
    array(0.)
    """
    return _np["arcsin"](_within_one(x))  # type: ignore[no-any-return]


def arctanh(x: ArrayLike) -> ndarray:
    """Inverse hyperbolic tangent.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    ndarray
        Complex if an element is beyond -1 or 1.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.emath.arctanh(0.0)
    array(0.)
    """
    return _np["arctanh"](_within_one(x))  # type: ignore[no-any-return]
