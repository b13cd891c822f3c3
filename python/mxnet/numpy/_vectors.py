"""Cross products."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

_np = _core.namespaces["numpy"]


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> ndarray:
    """Cross products of vectors.

    Parameters
    ----------
    a, b : array_like
        Vectors of three elements along `axisa` and `axisb`; the other axes broadcast. Of two elements, the third is 0.
    axisa, axisb, axisc : int
        The axes of the vectors in `a`, in `b` and in the result.
    axis : int, optional
        All three of them.

    Returns
    -------
    ndarray
        Vectors of three elements; if both have two elements, the third one alone, without that axis.

    Raises
    ------
    ValueError
        If vectors have another number of elements.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.cross(mx.np.array([1, 0, 0]), mx.np.array([0, 1, 0]))
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = asarray(a), asarray(b)
    if not x.ndim or not y.ndim:
        raise ValueError("cross: At least one array has zero dimension, and vectors need one axis")
    x, y = _np["moveaxis"](x, axisa, -1), _np["moveaxis"](y, axisb, -1)
    sizes = (x.shape[-1], y.shape[-1])
    if not {2, 3}.issuperset(sizes):
        raise ValueError(f"cross: vectors have 2 or 3 elements, found {sizes[0]} and {sizes[1]}")

    x, y = _three(x, sizes == (2, 3)), _three(y, sizes == (3, 2))

    def part(i: int, j: int) -> ndarray:
        """x_i y_j - x_j y_i."""
        difference: ndarray = x[..., i] * y[..., j] - x[..., j] * y[..., i]
        return difference

    if sizes == (2, 2):
        return part(0, 1)
    product: ndarray = _np["stack"]([part(1, 2), part(2, 0), part(0, 1)], axis=axisc)
    return product


def _three(x: ndarray, is_planar: bool) -> ndarray:
    """The vectors, with a third element 0 if they have only two."""
    if not is_planar:
        return x
    longer: ndarray = _np["concatenate"]([x, _np["zeros_like"](x[..., :1])], axis=-1)
    return longer
