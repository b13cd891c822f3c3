"""Sums of products, and matrix powers: calling conventions that only Python can express."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import asarray, ascontiguousarray, asfortranarray, ndarray
from mxnet.numpy._dtypes import result_type, spelled
from mxnet.numpy._overriding import overridable
from mxnet.numpy._paths import Contraction, pairs_of, subscripts_of
from mxnet.numpy._writing import deliver

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]
_EINSUM = _op["einsum"]

Axes = int | tuple[int, ...] | None
Order = float | str | None


@overridable
def einsum(
    *operands: Any,
    out: ndarray | None = None,
    dtype: DTypeLike | None = None,
    order: str = "K",
    casting: str = "safe",
    optimize: bool | str | Sequence[Any] = True,
) -> ndarray:
    """Sums of products of the operands over named axes.

    Parameters
    ----------
    *operands
        Subscripts such as ``'ij,jk->ik'`` and an array for each part of them; or an array, a list of integers that name
        its axes, the next array, and so on, and the list of the result's axes at the end.
    out : ndarray, optional
        Where the result goes. The operands are converted to the dtype that they promote to with that of `out`.
    dtype : dtype, optional
        What it is computed in, and the dtype of the result.
    order : {'C', 'F', 'A', 'K'}
        Memory order of the result: 'C', 'F', 'A' ('F' if all operands are in Fortran order) or 'K' (any order).
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}
        Which casts of operands `dtype` may ask for; casts to `out` are of the same kind, or unsafe if this is.
    optimize : bool, 'greedy', 'optimal', pair or list
        In which order pairs are contracted: the order that keeps results small, from left to right (False), the one of
        fewest operations ('optimal'), within a bound of memory, or as a path says: see `einsum_path`.

    Returns
    -------
    ndarray
        Of the dtype that the operands promote to.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands; for another `order` or `casting`.
    TypeError
        If `dtype` or `out` needs a cast that `casting` forbids.
    KeyError
        For an unknown word as `optimize`.
    RuntimeError
        If a given path does not leave one operand.

    Notes
    -----
    Differences: the default of `optimize` is True; in NumPy it is False. Results differ by rounding only.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.einsum("ij,j->i", mx.np.ones((2, 3)), mx.np.arange(3))
    array([3., 3.])
    """
    has_defaults = out is None and dtype is None and optimize is True and order == "K" and casting == "safe"
    if has_defaults and len(operands) > 1 and type(operands[0]) is str:
        contracted: ndarray = _EINSUM(operands[0], operands[1:])
        return contracted
    subscripts, arrays = subscripts_of(operands, "einsum")
    if order not in ("C", "F", "A", "K", "c", "f", "a", "k"):
        raise ValueError(f"einsum: `order` must be one of 'C', 'F', 'A', 'K', found {order!r}")
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"einsum: casting must be 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', found {casting!r}")
    if dtype is not None:
        arrays = [_cast(asarray(operand), dtype, casting) for operand in arrays]
    elif isinstance(out, ndarray):
        common = result_type(*map(asarray, arrays), out.dtype)
        arrays = [asarray(operand, common) for operand in arrays]
    pairs = None
    if optimize == "optimal" or isinstance(optimize, (list, tuple)):
        contraction = Contraction.of(subscripts, [asarray(x).shape for x in arrays])
        pairs = pairs_of(contraction.path(optimize), len(arrays))
    greedy = optimize not in (False, None)
    if out is not None and casting == "unsafe":
        return deliver("einsum", _op["astype"](_op["einsum"](subscripts, arrays, greedy, pairs), out.dtype), out)
    result: ndarray = _op["einsum"](subscripts, arrays, greedy, pairs, out=out)
    fortran = order in ("F", "f") or (order in ("A", "a") and all(_is_fortran_order(x) for x in arrays))
    if out is not None or order in ("K", "k"):
        return result
    ordered: ndarray = asfortranarray(result) if fortran else ascontiguousarray(result).reshape(result.shape)
    return ordered


def _is_fortran_order(x: ArrayLike) -> bool:
    return bool(asarray(x).flags.f_contiguous)


def _cast(x: ndarray, dtype: DTypeLike, casting: str) -> ndarray:
    if not _core.can_cast(x.dtype, dtype, casting):
        raise TypeError(f"einsum: cannot cast an operand from {x.dtype} to {dtype} under casting rule {casting!r}")
    result: ndarray = _op["astype"](x, dtype)
    return result


def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int | Sequence[int]] = 2) -> ndarray:
    """Sum of products over several axes of both arrays.

    Parameters
    ----------
    a, b : array_like
    axes : int or pair
        The number of last axes of `a` and first axes of `b`, none if negative; or the axes of each: ints, or sequences
        of equal length.

    Returns
    -------
    ndarray
        Shape: the remaining axes of `a`, then those of `b`.

    Raises
    ------
    ValueError
        If paired axes differ in size.

    Examples
    --------
    >>> np.tensordot([[1, 2], [3, 4]], [[5, 6], [7, 8]], axes=1)
    array([[19, 22],
           [43, 50]])
    >>> np.tensordot([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    array(70)
    """
    if isinstance(axes, int):
        axes = (range(-axes, 0), range(axes))
    first, second = axes
    pair = [(part,) if isinstance(part, int) else tuple(part) for part in (first, second)]
    result: ndarray = _op["tensordot"](a, b, *pair)
    return result


def matrix_power(a: ArrayLike, n: int) -> ndarray:
    """Square matrices multiplied with themselves, by repeated squaring.

    Parameters
    ----------
    a : array_like, shape (..., m, m)
    n : int
        Number of factors: the identity for 0, powers of the inverse for negative ones. It may exceed 64 bits.

    Returns
    -------
    ndarray, shape (..., m, m)

    Raises
    ------
    LinAlgError
        If the matrices are not square; for negative `n`, if one has no inverse.
    TypeError
        If `n` is no integer.

    Notes
    -----
    Differentiable.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.linalg.matrix_power(mx.np.array([[1, 1], [0, 1]]), 5)
    array([[1, 5],
           [0, 1]])
    """
    if not hasattr(n, "__index__"):
        raise TypeError("matrix_power: exponent must be an integer")
    exponent = operator.index(n)
    result: ndarray
    if abs(exponent) < 1 << 62:
        result = _op["matrix_power"](a, exponent)
        return result
    # Exponents beyond 62 bits are computed as powers of powers.
    high, low = divmod(abs(exponent), 1 << 62)
    base = asarray(a) if exponent > 0 else _op["matrix_power"](a, -1)
    result = _np["matmul"](matrix_power(matrix_power(base, 1 << 61), 2 * high), _op["matrix_power"](base, low))
    return result
