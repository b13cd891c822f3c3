"""Polynomials as sequences of coefficients, highest power first."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from numpy.exceptions import RankWarning
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._dtype_limits import finfo
from mxnet.numpy._dtypes import is_exact, kind_of, spelled

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]


def _coefficients(p: ArrayLike, name: str) -> ndarray:
    x = asarray(p)
    if x.ndim > 1:
        raise ValueError(f"{name}: coefficients have 1 axis, found {x.ndim}")
    return x if x.ndim else x.reshape(-1)


def polyval(p: ArrayLike, x: ArrayLike) -> ndarray:
    """Value of a polynomial, by Horner's rule.

    Parameters
    ----------
    p : array_like, shape (n, ...)
        Coefficients, the highest power first; several polynomials side by side along the axes behind the first.
    x : array_like
        Where it is evaluated; broadcast with a coefficient.

    Returns
    -------
    ndarray
        Shape of `x` broadcast with ``p[0]``, of the dtype that both promote to.

    Notes
    -----
    Differentiable in `p` and `x`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polyval([3, 0, 1], mx.np.array([5, 2]))
    array([76, 13])
    """
    coefficients, at = asarray(p), asarray(x)
    if coefficients.ndim == 0:
        coefficients = coefficients.reshape(-1)
    if coefficients.shape[0] == 0:
        return _np["zeros_like"](at)  # type: ignore[no-any-return]
    # The product of booleans and a number would not be a boolean.
    value = (_np["zeros_like"](at) if spelled(at.dtype) == "bool" else at * 0) + coefficients[0]
    for i in range(1, coefficients.shape[0]):
        value = value * at + coefficients[i]
    return value


def _of_one_length(a1: ArrayLike, a2: ArrayLike) -> tuple[ndarray, ndarray]:
    if isinstance(a1, ndarray) and isinstance(a2, ndarray) and a1.ndim > 0 and a1.shape == a2.shape:
        return a1, a2
    x, y = (_op["atleast_1d"](a) for a in (a1, a2))
    n = max(len(x), len(y))

    def filled(p: ndarray) -> ndarray:
        if len(p) == n:
            return p
        if p.ndim == 1:
            return _op["pad_constant"](p, (n - len(p), 0), 0)  # type: ignore[no-any-return]
        raise ValueError(f"polynomials side by side must have as many coefficients, found {len(p)} and {n}")

    return filled(x), filled(y)


def polyadd(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Sum of two polynomials.

    Parameters
    ----------
    a1, a2 : array_like
        Coefficients, the highest power first; of more than one axis, those of several polynomials side by side.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If polynomials side by side have fewer coefficients than the others.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polyadd([1, 2], [9, 5, 4])
    array([9, 6, 6])
    """
    x, y = _of_one_length(a1, a2)
    return x + y


def polysub(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Difference of two polynomials.

    Parameters
    ----------
    a1, a2 : array_like
        Coefficients, the highest power first; of more than one axis, those of several polynomials side by side.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If polynomials side by side have fewer coefficients than the others.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polysub([2, 10, -2], [3, 10, -4])
    array([-1,  0,  2])
    """
    x, y = _of_one_length(a1, a2)
    return x - y


def _trimmed(p: ArrayLike, name: str) -> ndarray:
    """The coefficients without leading zeros; a single zero if all are zero."""
    x = _coefficients(p, name)
    if x.size and x[0] != 0:
        return x
    found = _np["flatnonzero"](x)
    return x[int(found[0]) :] if found.size else _np["zeros"]((1,), dtype=x.dtype)


def polymul(a1: ArrayLike, a2: ArrayLike) -> ndarray:
    """Product of two polynomials.

    Parameters
    ----------
    a1, a2 : array_like
        Coefficients, the highest power first.

    Returns
    -------
    ndarray
        Leading zeros of the factors do not count, for which the call waits for them.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polymul([1, 2], [1, 3])
    array([1, 5, 6])
    """
    return _np["convolve"](_trimmed(a1, "polymul"), _trimmed(a2, "polymul"))  # type: ignore[no-any-return]


def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[ndarray, ndarray]:
    """Quotient and remainder of two polynomials.

    Parameters
    ----------
    u, v : array_like
        Coefficients of dividend and divisor, the highest power first.

    Returns
    -------
    (ndarray, ndarray)
        Quotient and remainder, in floats; the remainder without leading zeros (up to 1e-8), whose number depends on
        values.

    Raises
    ------
    IndexError
        If one of them is empty.

    Notes
    -----
    A highest coefficient of 0 in the divisor is divided by, with a warning, as in NumPy.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    (array([1.5 , 1.75]), array([0.25]))
    """
    rest, divisor = _coefficients(u, "polydiv") * 1.0, _coefficients(v, "polydiv") * 1.0
    if rest.size == 0 or divisor.size == 0:
        raise IndexError(f"polydiv: polynomials of {rest.size} and {divisor.size} coefficients")
    count = rest.size - divisor.size + 1
    if bool(divisor[0] == 0):
        # Division by 0 goes through every step, with the warnings or errors that the caller has enabled.
        scale, rest, steps = 1.0 / divisor[0], rest + 0.0 * divisor[0], []
        for k in range(count):
            steps.append(scale * rest[k])
            end = k + divisor.size
            rest = _np["concatenate"]([rest[:k], rest[k:end] - steps[-1] * divisor, rest[end:]])
        return _np["stack"](steps) if steps else _np["zeros"]((1,), dtype=rest.dtype), rest
    if count > 0:
        both = _op["polynomial_division"](rest, divisor)
        quotient, rest = both[:count], both[count:]
    else:
        quotient = _np["zeros"]((1,), dtype=_core.result_type([rest.dtype, divisor.dtype]))
        rest = _op["astype"](rest, quotient.dtype)
    if rest.size == 0:
        return quotient, _np["zeros"]((1,), dtype=quotient.dtype)
    # Coefficients this close to 0 count as leading zeros.
    counts = [i for i, x in enumerate(rest.asnumpy().tolist()) if not abs(x) <= 1e-8]
    return quotient, rest[counts[0] if counts else rest.size - 1 :]


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
    # The derivative of a constant is zero, and so are all further ones.
    for _ in range(min(m, result.size)):
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


def poly(seq_of_zeros: ArrayLike) -> ndarray:
    """The polynomial with these roots, or the characteristic polynomial of a matrix.

    Parameters
    ----------
    seq_of_zeros : array_like, shape (n,) or (n, n)
        Roots, or a matrix, whose eigenvalues they are.

    Returns
    -------
    ndarray, shape (n + 1,)
        Coefficients, the highest power first, which is 1. Real if complex roots come in conjugate pairs.

    Raises
    ------
    ValueError
        For other shapes.

    Notes
    -----
    Differentiable in the roots. Complex roots are compared with their conjugates, which waits for them. Difference: no
    roots give an array, too, where NumPy gives a number.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.poly([1.0, 2.0])
    array([ 1., -3.,  2.])
    """
    zeros = asarray(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.size:
        zeros = _core.namespaces["linalg"]["eigvals"](zeros)
    elif zeros.ndim == 0 and zeros.size:
        zeros = zeros.reshape(1)
    elif zeros.ndim != 1:
        raise ValueError(f"poly: input must be 1d or non-empty square 2d array, found shape {zeros.shape}")
    zeros = zeros * 1.0
    if _core.numpy_promotion() and spelled(zeros.dtype) in ("float16", "bfloat16"):
        zeros = _op["astype"](zeros, "float64")
    result: ndarray = _np["ones"]((1,), dtype=zeros.dtype)
    factors = _np["stack"]([_np["ones_like"](zeros), -zeros], 1)
    for i in range(zeros.size):
        result = _np["convolve"](result, factors[i])
    if kind_of(zeros.dtype) == "c":
        ordered = [_np["sort"](one) for one in (zeros, _np["conjugate"](zeros))]
        if bool(_np["all"](ordered[0] == ordered[1])):
            result = _np["real"](result).copy()
    return result


def roots(p: ArrayLike) -> ndarray:
    """Roots of a polynomial: the eigenvalues of its companion matrix.

    Parameters
    ----------
    p : array_like, shape (n,)
        Coefficients, the highest power first.

    Returns
    -------
    ndarray
        As many roots as the degree, which leading zeros do not count for; complex, or real if all of them are.

    Raises
    ------
    ValueError
        If `p` has more than one axis.

    Notes
    -----
    Waits for the coefficients: how many roots there are depends on them. Multiple roots are inaccurate: rounding of
    size e moves a root of multiplicity m by the order of e to the power of 1/m.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.roots([1.0, -3.0, 2.0])
    array([2., 1.])
    """
    coefficients = _coefficients(p, "roots")
    nonzero = [i for i, c in enumerate(coefficients.tolist()) if c != 0]
    if not nonzero:
        return _np["empty"]((0,), dtype=(coefficients * 1.0).dtype)  # type: ignore[no-any-return]
    at_zero = coefficients.size - 1 - nonzero[-1]
    own = coefficients[nonzero[0] : nonzero[-1] + 1] * 1.0
    found = _np["empty"]((0,), dtype=own.dtype)
    if own.size > 1:
        below = _np["eye"](own.size - 2, own.size - 1, dtype=own.dtype)
        companion = _np["concatenate"]([(-own[1:] / own[0]).reshape((1, -1)), below])
        found = _core.namespaces["linalg"]["eigvals"](companion)
        if str(found.dtype).startswith("complex") and not bool(_np["any"](_np["imag"](found) != 0)):
            found = _np["real"](found).copy()
    return _np["concatenate"]([found, _np["zeros"]((at_zero,), dtype=found.dtype)])  # type: ignore[no-any-return]


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial that fits points best: the sum of squared errors is least.

    Parameters
    ----------
    x : array_like, shape (m,)
        Where the points are.
    y : array_like, shape (m,) or (m, k)
        Their values, of k polynomials.
    deg : int
        Degree.
    rcond : float, optional
        Singular values smaller than this part of the largest count as 0; m times the dtype's `eps` if left out.
    full : bool
        Whether to return the diagnostics of the decomposition, too.
    w : array_like, shape (m,), optional
        Weights of the errors before they are squared: 1 / standard deviation.
    cov : bool or 'unscaled'
        Whether to return the covariance of the coefficients: scaled such that the errors' variance is what is left, or
        unscaled, if `w` is known to be right.

    Returns
    -------
    p : ndarray, shape (deg + 1,) or (deg + 1, k)
        Coefficients, the highest power first.
    residuals, rank, singular_values, rcond
        With `full`: as of `linalg.lstsq`, of columns scaled to length 1.
    V : ndarray, shape (deg + 1, deg + 1) or (deg + 1, deg + 1, k)
        With `cov`; (deg + 1, deg + 1, 1) for k polynomials if it is 'unscaled', since they share it.

    Raises
    ------
    TypeError
        If shapes do not fit, or there are no points; by NumPy's rules, for float16.
    ValueError
        For a negative degree; for `cov` with no more points than coefficients.

    Warns
    -----
    RankWarning
        If the coefficients are not determined, unless `full`.

    Notes
    -----
    Differentiable in `y` and `w`, and in `x`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.array([0.0, 1.0, 2.0, 3.0])
    >>> mx.np.round(mx.np.polyfit(x, 2 * x + 1, 1), 3)
    array([2., 1.])
    """
    at, values = asarray(x) * 1.0, asarray(y) * 1.0
    if _core.numpy_promotion() and "float16" in (spelled(at.dtype), spelled(values.dtype)):
        raise TypeError("array type float16 is unsupported in linalg")
    if deg < 0:
        raise ValueError(f"polyfit: expected deg >= 0, found {deg}")
    if at.ndim != 1:
        raise TypeError(f"polyfit: expected 1D vector for x, found {at.ndim} axes")
    if at.size == 0:
        raise TypeError("polyfit: expected non-empty vector for x")
    if values.ndim not in (1, 2):
        raise TypeError(f"polyfit: expected 1D or 2D array for y, found {values.ndim} axes")
    if values.shape[0] != at.shape[0]:
        raise TypeError(f"polyfit: expected x and y to have same length, found {at.shape[0]} and {values.shape[0]}")
    order = deg + 1
    powers, right = _np["vander"](at, order), values
    if w is not None:
        weights = asarray(w) * 1.0
        if weights.ndim != 1:
            raise TypeError(f"polyfit: expected a 1-d array for weights, found {weights.ndim} axes")
        if weights.shape[0] != at.shape[0]:
            raise TypeError(
                f"polyfit: expected w and y to have the same length, found {weights.shape[0]} and {at.shape[0]}"
            )
        powers = powers * weights.reshape((-1, 1))
        right = right * (weights if right.ndim == 1 else weights.reshape((-1, 1)))
    if rcond is None:
        rcond = at.size * finfo(at.dtype).eps
    # Columns of equal norm make the matrix as well-conditioned as scaling can.
    scale = _np["sqrt"](_np["sum"](powers * powers, axis=0))
    solution, residuals, rank, singular = _core.namespaces["linalg"]["lstsq"](powers / scale, right, rcond)
    found = solution / (scale if solution.ndim == 1 else scale.reshape((-1, 1)))
    if not full and int(rank) != order:
        warnings.warn("Polyfit may be poorly conditioned", RankWarning, stacklevel=2)
    if full:
        return found, residuals, rank, singular, rcond
    if not cov:
        return found
    scaled = powers / scale
    base = _core.namespaces["linalg"]["inv"](_np["matmul"](scaled.T, scaled)) / _np["outer"](scale, scale)
    if cov == "unscaled":
        return found, base if values.ndim == 1 else base.reshape((order, order, 1))
    if at.size <= order:
        raise ValueError(
            f"polyfit: the number of data points must exceed order to scale the covariance matrix, found {at.size} "
            f"points and {order} coefficients"
        )
    error = right - _np["matmul"](powers, found)
    factor = _np["sum"](error * error, axis=0) / (at.size - order)
    return found, base * factor if values.ndim == 1 else base.reshape((order, order, 1)) * factor
