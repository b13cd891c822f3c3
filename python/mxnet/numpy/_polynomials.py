"""Polynomials as sequences of coefficients, the highest power first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]


def _coefficients(p: ArrayLike, name: str) -> ndarray:
    x = asarray(p)
    if x.ndim > 1:
        raise ValueError(f"{name}: coefficients have 1 axis, found {x.ndim}")
    return x.reshape(-1)


def polyval(p: ArrayLike, x: ArrayLike) -> ndarray:
    """Value of a polynomial, by Horner's rule.

    Parameters
    ----------
    p : array_like, shape (n,)
        Coefficients, the highest power first.
    x : array_like
        Where it is evaluated.

    Returns
    -------
    ndarray
        Shape of `x`, of the dtype that both promote to.

    Notes
    -----
    Differentiable in `p` and `x`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polyval([3, 0, 1], mx.np.array([5, 2]))
    array([76, 13])
    """
    coefficients, at = _coefficients(p, "polyval"), asarray(x)
    if coefficients.size == 0:
        return _np["zeros_like"](at)  # type: ignore[no-any-return]
    value = at * 0 + coefficients[0]
    for i in range(1, coefficients.size):
        value = value * at + coefficients[i]
    return value


def _of_one_length(a1: ArrayLike, a2: ArrayLike, name: str) -> tuple[ndarray, ndarray]:
    x, y = _coefficients(a1, name), _coefficients(a2, name)
    n = max(x.size, y.size)

    def filled(p: ndarray) -> ndarray:
        return p if p.size == n else _op["pad_constant"](p, (n - p.size, 0), 0)

    return filled(x), filled(y)


def polyadd(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Sum of two polynomials.

    Parameters
    ----------
    a1, a2 : array_like
        Coefficients, the highest power first.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polyadd([1, 2], [9, 5, 4])
    array([9, 6, 6])
    """
    x, y = _of_one_length(a1, a2, "polyadd")
    return x + y


def polysub(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Difference of two polynomials.

    Parameters
    ----------
    a1, a2 : array_like
        Coefficients, the highest power first.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polysub([2, 10, -2], [3, 10, -4])
    array([-1,  0,  2])
    """
    x, y = _of_one_length(a1, a2, "polysub")
    return x - y


def polymul(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Product of two polynomials.

    Parameters
    ----------
    a1, a2 : array_like
        Coefficients, the highest power first.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polymul([1, 2], [1, 3])
    array([1, 5, 6])
    """
    return _np["convolve"](_coefficients(a1, "polymul"), _coefficients(a2, "polymul"))  # type: ignore[no-any-return]


def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[ndarray, ndarray]:
    """Quotient and remainder of two polynomials.

    Parameters
    ----------
    u, v : array_like
        Coefficients of dividend and divisor, the highest power first.

    Returns
    -------
    (ndarray, ndarray)
        Quotient and remainder, in floats; the remainder without leading zeros, whose number depends on values.

    Raises
    ------
    ZeroDivisionError
        If the divisor is empty or its highest coefficient is 0.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    (array([1.5 , 1.75]), array([0.25]))
    """
    rest, divisor = _coefficients(u, "polydiv") * 1.0, _coefficients(v, "polydiv") * 1.0
    if divisor.size == 0 or bool(divisor[0] == 0):
        raise ZeroDivisionError("polydiv: the highest coefficient of the divisor is 0")
    scale = 1.0 / divisor[0]
    n = rest.size - divisor.size + 1
    terms = []
    for _ in range(n):
        term = rest[0] * scale
        terms.append(term)
        # The highest coefficient goes; what it took along is taken from those that follow.
        head = rest[1 : divisor.size] - term * divisor[1:]
        rest = _np["concatenate"]([head, rest[divisor.size :]])
    quotient = _np["stack"](terms) if terms else _np["zeros"]((1,), dtype=(rest * scale).dtype)
    nonzero = [i for i, x in enumerate(rest.asnumpy().tolist()) if abs(x) > 1e-14]
    if rest.size == 0:
        rest = _np["zeros"]((1,), dtype=quotient.dtype)
    else:
        rest = rest[min(nonzero[0] if nonzero else rest.size - 1, rest.size - 1) :]
    return quotient, rest


def polyder(p: ArrayLike, m: int = 1) -> ndarray:
    """Derivative of a polynomial.

    Parameters
    ----------
    p : array_like
        Coefficients, the highest power first.
    m : int
        Order of the derivative.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If `m` is negative.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polyder([1, 1, 1, 1])
    array([3, 2, 1])
    """
    if m < 0:
        raise ValueError(f"polyder: Order of derivative must be positive (see polyint), found {m}")
    result = _coefficients(p, "polyder")
    for _ in range(m):
        n = result.size - 1
        result = result[:-1] * _np["arange"](n, 0, -1)
    return result


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | Sequence[Any] | None = None) -> ndarray:
    """Integral of a polynomial.

    Parameters
    ----------
    p : array_like
        Coefficients, the highest power first.
    m : int
        How many times it is integrated.
    k : array_like, optional
        The `m` constants of integration, or one for all; 0 if left out.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If `m` is negative or there are neither one nor `m` constants.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polyint([6, 4, 2])
    array([2., 2., 2., 0.])
    """
    if m < 0:
        raise ValueError(f"polyint: Order of integral must be positive (see polyder), found {m}")
    result = _coefficients(p, "polyint")
    constants = _np["zeros"]((m,)) if k is None else asarray(k).reshape(-1)
    if constants.size == 1 and m > 1:
        constants = _np["broadcast_to"](constants, (m,))
    if constants.size < m:
        raise ValueError(
            f"polyint: k must be a scalar or a rank-1 array of length 1 or >m, found {constants.size} of {m}"
        )
    for i in range(m):
        result = _np["concatenate"]([result / _np["arange"](result.size, 0, -1), constants[i : i + 1]])
    return result


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> ndarray:
    """Vandermonde matrix: powers of each element as a row.

    Parameters
    ----------
    x : array_like, shape (n,)
    N : int, optional
        Number of columns; n if left out.
    increasing : bool
        Whether powers rise from left to right.

    Returns
    -------
    ndarray, shape (n, N)

    Raises
    ------
    ValueError
        If `x` does not have one axis.

    Notes
    -----
    Differentiable.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.vander(mx.np.array([1, 2, 3]), 3)
    array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]])
    """
    values = asarray(x)
    if values.ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array or sequence, found {values.ndim} axes")
    columns = values.size if N is None else N
    if columns < 0:
        raise ValueError(f"vander: negative dimensions are not allowed, found N = {columns}")
    if str(values.dtype) == "bool" or ("int" in str(values.dtype) and str(values.dtype) != "uint64"):
        values = _op["astype"](values, "int64")
    column = values.reshape((-1, 1))
    ones = _np["ones_like"](column)
    if columns == 0:
        return ones[:, :0]  # type: ignore[no-any-return]
    factors = _np["concatenate"]([ones, *[column] * (columns - 1)], 1)
    powers = _np["cumprod"](factors, axis=1)
    return powers if increasing else _np["flip"](powers, 1)  # type: ignore[no-any-return]
