"""Padding by flat pairs of widths."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mxnet._core import asarray, ndarray
from mxnet.numpy._padding import pad as _pad

__all__ = ["pad"]


def pad(data: ArrayLike, mode: str, pad_width: Sequence[int], constant_value: float = 0) -> ndarray:
    """Add elements before and behind those of each axis.

    Parameters
    ----------
    data : array_like
    mode : {'constant', 'edge', 'reflect'}
        What is added: `constant_value`, the outermost element, or the elements mirrored at the outermost one.
    pad_width : sequence of int
        Two widths for each axis, before and behind, one axis after the other; none negative.
    constant_value : float

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the widths do not fit, or there is nothing to repeat or to mirror.

    Examples
    --------
    >>> mx.npx.pad(mx.np.array([1.0, 2.0, 3.0]), "reflect", (2, 1)).tolist()
    [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    """
    x = asarray(data)
    widths = tuple(pad_width)
    if mode not in ("constant", "edge", "reflect"):
        raise ValueError(f"pad: `mode` must be 'constant', 'edge' or 'reflect', found {mode!r}")
    if len(widths) != 2 * x.ndim or min(widths, default=0) < 0:
        raise ValueError(
            f"pad: `pad_width` must be {2 * x.ndim} widths of at least 0 for shape {x.shape}, found {widths}"
        )
    pairs = [widths[i : i + 2] for i in range(0, len(widths), 2)]
    if not pairs:
        return x
    if mode == "constant":
        return _pad(x, pairs, mode, constant_values=constant_value)
    return _pad(x, pairs, mode)
