"""Splitting batches over devices, clipping gradients, hook handles, files from elsewhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from mxnet import numpy as np
from mxnet._caller_warning import warn_caller
from mxnet._renamed import attribute_finder, old_keywords
from mxnet._rnn_layout import packed_shapes
from mxnet.base import dtype_name
from mxnet.device import Device
from mxnet.gluon._downloads import check_sha1, download, replace_file
from mxnet.numpy import ndarray

__all__ = [
    "HookHandle",
    "check_sha1",
    "clip_global_norm",
    "download",
    "replace_file",
    "shape_is_known",
    "split_and_load",
    "split_data",
    "split_rnn_params",
]

__getattr__ = attribute_finder(__name__)


def shape_is_known(shape: Sequence[int] | None) -> bool:
    """Whether all sizes of a shape are known.

    Parameters
    ----------
    shape : sequence of int, optional
        -1 stands for a size that is not known.

    Returns
    -------
    bool

    Examples
    --------
    >>> mx.gluon.utils.shape_is_known((2, -1)), mx.gluon.utils.shape_is_known(())
    (False, True)
    """
    return shape is not None and all(size != -1 for size in shape)


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
        Insist on parts of equal size; without it the first parts have one sample more.

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
            "`even_split=False` allows parts that differ by one sample"
        )
    step, longer = divmod(size, num_slice)
    lead = (slice(None),) * (batch_axis % len(data.shape))
    starts = [step * number + min(number, longer) for number in range(num_slice + 1)]
    return [data[(*lead, slice(start, end))] for start, end in itertools.pairwise(starts)]


def split_rnn_params(
    param: ndarray,
    mode: str,
    num_layers: int,
    input_size: int,
    hidden_size: int,
    bidirectional: bool = False,
    projection_size: int | None = None,
) -> dict[str, ndarray]:
    """Cut the packed vector of parameters of `npx.rnn` into its weights and biases.

    Parameters
    ----------
    param : ndarray, shape (k,)
    mode : {"rnn_relu", "rnn_tanh", "lstm", "gru"}
    num_layers, input_size, hidden_size : int
    bidirectional : bool
    projection_size : int, optional
        Of the output of an LSTM.

    Returns
    -------
    dict of str to ndarray
        Views, by the names that the parameters have in `gluon.rnn.LSTM`, such as ``"l0_i2h_weight"``.

    Raises
    ------
    ValueError
        If `param` has another length, `mode` is unknown or a size is out of range.

    Examples
    --------
    >>> parts = mx.gluon.utils.split_rnn_params(np.arange(16), 'rnn_tanh', 1, 3, 2, False)
    Traceback (most recent call last):
    ...
    ValueError: split_rnn_params: `param` must have 14 numbers, found shape (16,)
    >>> parts = mx.gluon.utils.split_rnn_params(np.arange(14), 'rnn_tanh', 1, 3, 2)
    >>> parts['l0_h2h_weight']
    array([[6, 7],
           [8, 9]])
    """
    pieces = packed_shapes(mode, num_layers, input_size, hidden_size, bidirectional, projection_size)
    total = sum(math.prod(shape) for _, shape in pieces)
    if tuple(param.shape) != (total,):
        raise ValueError(f"split_rnn_params: `param` must have {total} numbers, found shape {tuple(param.shape)}")
    parts, start = {}, 0
    for name, shape in pieces:
        end = start + math.prod(shape)
        parts[name] = param[start:end].reshape(shape)
        start = end
    return parts


@old_keywords(ctx_list="device_list")
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


def clip_global_norm(arrays: Sequence[Any], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale arrays in place so that the root of the sum of all their squares is at most `max_norm`.

    Parameters
    ----------
    arrays : sequence of ndarray or row_sparse_array
        Usually gradients; at least one. Of row-sparse ones only the stored rows are read and scaled.
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
    arrays = [array if isinstance(array, ndarray) else array.data for array in arrays]
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
            warn_caller(f"the norm of the arrays is {found}; clipping makes them useless")
        elif found <= max_norm:
            return found
    # 1e-8 keeps a norm of zero from dividing by zero.
    scale = np.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        factor = scale if scale.device == array.device else np.array(scale, dtype=scale.dtype, device=array.device)
        array *= factor.astype(array.dtype)
    return found if check_isfinite else norm
