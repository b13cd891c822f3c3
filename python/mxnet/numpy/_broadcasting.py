"""Broadcast shapes, and views with repeated or overlapping elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._axes import axes_of

_op = _core.namespaces["op"]


def broadcast_shapes(*args: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Parameters
    ----------
    *args : int or tuple of int

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        If they do not broadcast, or a size is negative.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.broadcast_shapes((6, 7), (5, 6, 1), 7)
    (5, 6, 7)
    """
    shapes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in args]
    ndim = max((len(shape) for shape in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if n < 0:
                raise ValueError(f"broadcast_shapes: sizes must not be negative, found {shape}")
            if n != 1:
                if result[i] not in (1, n):
                    found = ", ".join(map(str, shapes))
                    raise ValueError(f"broadcast_shapes: shapes {found} cannot be broadcast together")
                result[i] = n
    return tuple(result)


def broadcast_arrays(*args: ArrayLike, subok: bool = False) -> tuple[ndarray, ...]:
    """Views of arrays that all have the shape they broadcast to.

    Parameters
    ----------
    *args : array_like
    subok : bool
        Arrays have no subclasses that would be lost.

    Returns
    -------
    tuple of ndarray
        Views; they repeat elements, so do not write to them.

    Raises
    ------
    ValueError
        If they do not broadcast.

    Examples
    --------
    >>> import mxnet as mx
    >>> [x.shape for x in mx.np.broadcast_arrays([1, 2], [[3], [4], [5]])]
    [(3, 2), (3, 2)]
    """
    del subok
    arrays = tuple(asarray(x) for x in args)
    if len({x.shape for x in arrays}) < 2:
        return arrays
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(x if x.shape == shape else _op["broadcast_to"](x, shape) for x in arrays)


def sliding_window_view(
    x: ArrayLike,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> ndarray:
    """The windows that slide over an array.

    Parameters
    ----------
    x : array_like
    window_shape : int or tuple of int
        Size of the window along each axis it slides over.
    axis : int, tuple of int or None
        Those axes; None means all of them. An axis may be named several times.
    subok : bool
        Arrays have no subclasses that would be lost.
    writeable : bool
        Windows share elements, so they can be written to only if this is True. If several windows are assigned at
        once, a shared element keeps one of the values.

    Returns
    -------
    ndarray
        View; the axes of the windows stand behind those of `x`, which count the windows.

    Raises
    ------
    ValueError
        If a window is larger than its axis, or axes and sizes differ in number.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.lib.stride_tricks.sliding_window_view(mx.np.arange(4), 3)
    array([[0, 1, 2],
           [1, 2, 3]])
    """
    del subok
    array = asarray(x)
    sizes = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"sliding_window_view: `window_shape` cannot contain negative values, found {sizes}")
    if axis is None:
        axes: tuple[int, ...] = tuple(range(array.ndim))
        if len(sizes) != array.ndim:
            raise ValueError(
                "sliding_window_view: without `axis` one must provide window_shape for all dimensions of `x`, "
                f"{array.ndim}, found {len(sizes)}"
            )
    else:
        axes = axes_of("sliding_window_view", axis, array.ndim)
        if len(sizes) != len(axes):
            raise ValueError(
                "sliding_window_view: Must provide matching length window_shape and axis, "
                f"found {len(sizes)} and {len(axes)}"
            )
    return cast(ndarray, _op["sliding_windows"](array, sizes, axes, writeable))


def as_strided(
    x: ArrayLike,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> ndarray:
    """View of the memory of an array with any shape and strides.

    Parameters
    ----------
    x : array_like
        The view starts at its first element.
    shape : sequence of int, optional
        That of `x` by default.
    strides : sequence of int, optional
        In bytes, multiples of the size of an element; those of `x` by default.
    subok : bool
        Arrays have no subclasses that would be lost.
    writeable : bool
        Whether the view can be written to. Elements that share memory keep one of the values assigned to them.

    Returns
    -------
    ndarray
        View.

    Raises
    ------
    ValueError
        If the view would leave the memory of the array, or strides are not whole elements.

    Notes
    -----
    Differences: NumPy lets the view reach foreign memory. With a gradient being recorded, `x` must be in C order.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.lib.stride_tricks.as_strided(mx.np.arange(4), (2, 3), (8, 8))
    array([[0, 1, 2],
           [1, 2, 3]])
    """
    del subok
    array = asarray(x)
    sizes = array.shape if shape is None else tuple(shape)
    steps: Any = array.strides if strides is None else tuple(strides)
    if any(step % array.itemsize for step in steps):
        raise ValueError(
            f"as_strided: strides must be multiples of the {array.itemsize} bytes of an element, found {steps}"
        )
    if _core.is_recording() and array.strides != _op["empty"](array.shape, array.dtype).strides:
        raise ValueError("as_strided: while a gradient is recorded, the array must be in C order")
    elements = tuple(step // array.itemsize for step in steps)
    return cast(ndarray, _op["as_strided"](array, sizes, elements, writeable))
