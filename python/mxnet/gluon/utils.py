"""Splitting batches over devices, clipping gradients, hook handles."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.device import Device
from mxnet.numpy import ndarray

__all__ = ["HookHandle", "clip_global_norm", "split_and_load", "split_data"]


class HookHandle:
    """Removes a hook, by `detach` or at the end of a ``with`` block.

    Examples
    --------
    >>> net = mx.gluon.nn.Identity()
    >>> handle = net.register_forward_hook(lambda block, inputs, output: print('called'))
    >>> with handle:
    ...     _ = net(np.ones(1))
    called
    >>> _ = net(np.ones(1))
    """

    _numbers = itertools.count()

    def __init__(self) -> None:
        self._hooks: dict[int, Any] | None = None
        self._number = -1

    def attach(self, hooks_dict: dict[int, Any], hook: Any) -> None:
        """Add a hook.

        Parameters
        ----------
        hooks_dict : dict
            Where the hook goes.
        hook : callable

        Raises
        ------
        RuntimeError
            If the handle has a hook already.
        """
        if self._hooks is not None:
            raise RuntimeError("the handle is attached already")
        self._hooks = hooks_dict
        self._number = next(self._numbers)
        hooks_dict[self._number] = hook

    def detach(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hooks is not None:
            self._hooks.pop(self._number, None)
            self._hooks = None

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(
        self, ptype: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()


def split_data(data: ndarray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[ndarray]:
    """Cut a batch into parts.

    Parameters
    ----------
    data : ndarray
    num_slice : int
        At least 1.
    batch_axis : int
    even_split : bool
        Insist on parts of equal size; without it the last part takes the rest.

    Returns
    -------
    list of ndarray
        `num_slice` parts along `batch_axis`.

    Raises
    ------
    ValueError
        If the batch has fewer samples than parts, or parts of unequal size are needed and `even_split` is on.
    """
    size = data.shape[batch_axis]
    if num_slice < 1 or size < num_slice:
        raise ValueError(f"cannot split {size} samples along axis {batch_axis} into {num_slice} parts")
    if even_split and size % num_slice:
        raise ValueError(
            f"{size} samples along axis {batch_axis} cannot be split evenly into {num_slice} parts; "
            "`even_split=False` allows a larger last part"
        )
    step = size // num_slice
    lead = (slice(None),) * (batch_axis % len(data.shape))
    ends = [*range(step, step * num_slice, step), size]
    return [data[(*lead, slice(step * number, end))] for number, end in enumerate(ends)]


def split_and_load(
    data: Any, device_list: Sequence[Device], batch_axis: int = 0, even_split: bool = True
) -> list[ndarray]:
    """Cut a batch into one part per device and copy each there.

    Parameters
    ----------
    data : array_like
    device_list : sequence of Device
    batch_axis, even_split
        See `split_data`.

    Returns
    -------
    list of ndarray

    Raises
    ------
    ValueError
        See `split_data`.
    """
    array = data if isinstance(data, ndarray) else np.array(data, device=device_list[0])
    parts = [array] if len(device_list) == 1 else split_data(array, len(device_list), batch_axis, even_split)
    return [
        part if part.device == device else np.array(part, dtype=part.dtype, device=device)
        for part, device in zip(parts, device_list, strict=True)
    ]


def clip_global_norm(arrays: Sequence[ndarray], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale arrays in place so that the root of the sum of all their squares is at most `max_norm`.

    Parameters
    ----------
    arrays : sequence of ndarray
        Usually gradients; at least one.
    max_norm : float
        Positive.
    check_isfinite : bool
        Warn if the norm is infinite or NaN; this waits for the result.

    Returns
    -------
    float or ndarray
        The norm before; an array of shape ``()`` if `check_isfinite` is off, so that nothing waits.

    Raises
    ------
    ValueError
        If there are no arrays, or `max_norm` is not positive.

    Notes
    -----
    Squares are summed in float32, or in float64 for float64 arrays.
    """
    if not arrays:
        raise ValueError("`arrays` must not be empty")
    if not max_norm > 0:
        raise ValueError(f"`max_norm` must be positive, found {max_norm}")
    squares = [
        np.square(array if dtype_name(array.dtype) == "float64" else array.astype("float32")).sum() for array in arrays
    ]
    total = squares[0]
    for square in squares[1:]:
        here = square.device == total.device
        total = total + (square if here else np.array(square, dtype=square.dtype, device=total.device))
    norm = np.sqrt(total)
    if check_isfinite:
        found = float(norm.asnumpy())
        if not math.isfinite(found):
            warnings.warn(f"the norm of the arrays is {found}; clipping makes them useless", stacklevel=2)
        elif found <= max_norm:
            return found
    # 1e-8 keeps a norm of zero from dividing by zero.
    scale = np.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        factor = scale if scale.device == array.device else np.array(scale, dtype=scale.dtype, device=array.device)
        array *= factor.astype(array.dtype)
    return found if check_isfinite else norm
