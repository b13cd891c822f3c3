"""`reshape_like`, MXNet's reshape codes, slices and parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.base import DTypeLike
from mxnet.device import Device
from mxnet.numpy._axes import axis_of
from mxnet.numpy._overriding import overridable

__all__ = [
    "cast",
    "reshape",
    "slice",
    "slice_channel",
    "stop_gradient",
]

_np = _core.namespaces["numpy"]
_slice = slice


def _tuple(x: int | Sequence[int] | None) -> tuple[int, ...]:
    return () if x is None else (x,) if isinstance(x, int) else tuple(x)


@overridable
def stop_gradient(data: ArrayLike) -> ndarray:
    """The same elements, through which no gradient flows.

    Parameters
    ----------
    data : array_like

    Returns
    -------
    ndarray
        Shares the elements of `data`.

    Examples
    --------
    >>> x = np.array([2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = npx.stop_gradient(x * x) * x
    >>> y.backward()
    >>> x.grad
    array([4.])
    """
    return asarray(data).detach()


@overridable
def cast(data: ArrayLike, dtype: DTypeLike) -> ndarray:
    """The elements in another dtype; the gradient comes back in that of `data`.

    Parameters
    ----------
    data : array_like
    dtype : dtype

    Returns
    -------
    ndarray
        Of the shape of `data`.

    Examples
    --------
    >>> npx.cast(np.array([1.7, 2.2]), 'int32')
    array([1, 2], dtype=int32)
    """
    result: ndarray = asarray(data).astype(dtype)
    return result


def _resolve(shape: tuple[int, ...], codes: tuple[int, ...]) -> list[int]:
    """The lengths that the codes stand for; -1 is resolved later."""
    wanted: list[int] = []
    at = k = 0
    problem = f"reshape: `newshape` {codes} does not fit shape {shape}"

    def length() -> int:
        if at >= len(shape):
            raise ValueError(f"{problem}: code {codes[k]} at position {k} finds no axis left")
        return shape[at]

    while k < len(codes):
        code = codes[k]
        if code >= 0:
            wanted.append(code)
            at += 1
        elif code == -1:
            wanted.append(-1)
            at += 1
        elif code == -2:
            wanted.append(length())
            at += 1
        elif code == -3:
            if length() != 1:
                raise ValueError(f"{problem}: code -3 at position {k} skips axis {at} of length {length()}, not 1")
            at += 1
        elif code == -4:
            wanted += shape[at:]
            at = len(shape)
        elif code == -5:
            first = length()
            at += 1
            wanted.append(first * length())
            at += 1
        elif code == -6:
            pair = list(codes[k + 1 : k + 3])
            whole = length()
            if len(pair) != 2 or pair.count(-1) > 1 or min(pair, default=0) < -1:
                raise ValueError(f"{problem}: code -6 at position {k} takes two lengths, at most one of them -1")
            if -1 in pair:
                other = pair[1 - pair.index(-1)]
                pair[pair.index(-1)] = whole // other if other else 0
            if pair[0] * pair[1] != whole:
                raise ValueError(f"{problem}: code -6 at position {k} cannot split {whole} into {codes[k + 1 : k + 3]}")
            wanted += pair
            at += 1
            k += 2
        else:
            raise ValueError(f"{problem}: {code} at position {k} is no code; they go from -1 to -6")
        k += 1
    return wanted


def reshape(a: ArrayLike, newshape: int | Sequence[int], reverse: bool = False, order: str = "C") -> ndarray:
    """Reshape with codes that refer to the axes of the input.

    Parameters
    ----------
    a : array_like
    newshape : int or sequence of int
        Lengths, or codes: -1 what the others leave (once), -2 the length of this axis, -3 skip this axis of length 1,
        -4 all axes that are left, -5 the product of this axis and the next, -6 followed by two lengths (one may be -1)
        split this axis.
    reverse : bool
        Read shape and codes from the right.
    order : {'C'}
        The order in which elements are read and placed.

    Returns
    -------
    ndarray
        A view where possible.

    Raises
    ------
    ValueError
        If a code does not fit, or the number of elements differs.

    Examples
    --------
    >>> x = mx.np.zeros((2, 3, 8))
    >>> mx.npx.reshape(x, (-2, -2, 2, -1)).shape
    (2, 3, 2, 4)
    >>> mx.npx.reshape(x, (-5, -4)).shape
    (6, 8)
    >>> mx.npx.reshape(x, (-2, -2, -6, -1, 4)).shape
    (2, 3, 2, 4)
    """
    x = asarray(a)
    if order != "C":
        raise ValueError(f"reshape: `order` must be 'C', found {order!r}")
    codes = _tuple(newshape)
    if reverse:
        # The two lengths after -6 belong to it, in either direction.
        turned: list[int] = []
        rest = list(codes)
        while rest:
            code = rest.pop(0)
            turned = [code, *reversed(rest[:2]), *turned] if code == -6 else [code, *turned]
            rest = rest[2:] if code == -6 else rest
        wanted = _resolve(x.shape[::-1], tuple(turned))[::-1]
    else:
        wanted = _resolve(x.shape, codes)
    result: ndarray = x.reshape(tuple(wanted))
    return result


def slice(
    data: ArrayLike,
    begin: int | Sequence[int | None] | None,
    end: int | Sequence[int | None] | None,
    step: int | Sequence[int | None] | None = (),
) -> ndarray:
    """Cut the first axes as ``data[begin[0]:end[0]:step[0], ...]`` does.

    Parameters
    ----------
    data : array_like
    begin, end : sequence of int or None
        One entry an axis, as many of both and at most one for each axis of `data`.
    step : sequence of int or None, optional
        As many as `begin`, or none for steps of 1.

    Returns
    -------
    ndarray
        A view.

    Raises
    ------
    ValueError
        If the numbers of entries do not fit.

    Examples
    --------
    >>> npx.slice(np.array([[1, 2, 3], [4, 5, 6]]), begin=(0, 1), end=(2, 3))
    array([[2, 3],
           [5, 6]])
    """
    x = asarray(data)
    parts = [tuple(part) if isinstance(part, Sequence) else (part,) for part in (begin, end, step)]
    if not parts[2]:
        parts[2] = (None,) * len(parts[0])
    if len({len(part) for part in parts}) != 1 or len(parts[0]) > x.ndim:
        raise ValueError(
            f"slice: `begin` {parts[0]}, `end` {parts[1]} and `step` {parts[2]} must have one entry each "
            f"for up to {x.ndim} axes"
        )
    result: ndarray = x[tuple(_slice(*part) for part in zip(*parts, strict=True))]
    return result


def slice_channel(data: ArrayLike, num_outputs: int, axis: int = 1, squeeze_axis: bool = False) -> Any:
    """Cut an axis into equal parts.

    Parameters
    ----------
    data : array_like
    num_outputs : int
        How many parts; divides the length of the axis.
    axis : int
    squeeze_axis : bool
        Leave the axis out; its parts then have length 1.

    Returns
    -------
    list of ndarray, or ndarray if `num_outputs` is 1
        Views.

    Raises
    ------
    ValueError
        If the parts would not be equal, or not of length 1 with `squeeze_axis`.

    Examples
    --------
    >>> npx.slice_channel(np.array([[1, 2], [3, 4]]), num_outputs=2, axis=1, squeeze_axis=True)
    [array([1, 3]), array([2, 4])]
    """
    x = asarray(data)
    axis = axis_of("slice_channel", axis, x.ndim)
    length = x.shape[axis]
    if num_outputs < 1 or length % num_outputs:
        raise ValueError(f"slice_channel: axis {axis} has length {length}, which {num_outputs} parts do not divide")
    if squeeze_axis and length != num_outputs:
        raise ValueError(
            f"slice_channel: `squeeze_axis` needs parts of length 1, found {length // num_outputs} "
            f"along axis {axis} of {x.shape}"
        )
    width = length // num_outputs
    front = (_slice(None),) * axis
    # An integer in a key drops the axis.
    keys = [i if squeeze_axis else _slice(i * width, (i + 1) * width) for i in range(num_outputs)]
    parts = [x[(*front, key)] for key in keys]
    return parts[0] if num_outputs == 1 else parts
