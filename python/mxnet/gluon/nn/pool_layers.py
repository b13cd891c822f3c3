"""Pooling over one to three axes."""

from __future__ import annotations

from mxnet import numpy_extension as npx
from mxnet.gluon._for_axes import for_axes
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.nn.conv_layers import Size, check_layout, sizes
from mxnet.numpy import ndarray

__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
]


class _Pooling(HybridBlock):
    """All poolings."""

    _num_axes: int  # set by `for_axes`
    _pool_type: str
    _global_pool = False

    def __init__(
        self,
        pool_size: Size,
        strides: Size | None,
        padding: Size,
        ceil_mode: bool,
        layout: str | None,
        count_include_pad: bool = True,
    ) -> None:
        num_axes = self._num_axes
        layout = "NC" + "DHW"[3 - num_axes :] if layout is None else layout
        check_layout(layout, num_axes)
        super().__init__()
        self._kernel = sizes(pool_size, num_axes, "pool_size")
        self._strides = self._kernel if strides is None else sizes(strides, num_axes, "strides")
        self._padding = sizes(padding, num_axes, "padding")
        self._ceil_mode = ceil_mode
        self._layout = layout
        self._count_include_pad = count_include_pad

    def __repr__(self) -> str:
        parts = []
        if not self._global_pool:
            parts += [f"size={self._kernel}", f"stride={self._strides}", f"padding={self._padding}"]
            parts.append(f"ceil_mode={self._ceil_mode}")
        if not self._count_include_pad:
            parts.append("count_include_pad=False")
        if self._layout[-1] == "C":
            parts.append(f"layout={self._layout}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def forward(self, x: ndarray) -> ndarray:
        """Pool a batch.

        Parameters
        ----------
        x : ndarray, shape (n, c, ...), or (n, ..., c) with that layout

        Returns
        -------
        ndarray, shape (n, c, ...) or (n, ..., c), with sizes of 1 in place of the dots if pooling is global
        """
        return npx.pooling(
            x,
            kernel=self._kernel,
            stride=self._strides,
            pad=self._padding,
            pool_type=self._pool_type,
            pooling_convention="full" if self._ceil_mode else "valid",
            global_pool=self._global_pool,
            count_include_pad=self._count_include_pad,
            layout=self._layout,
        )


class _MaxPool(_Pooling):
    """What maximum poolings over any number of axes share.

    Parameters
    ----------
    pool_size : int or sequence of <n> int
    strides : int or sequence of <n> int, optional
        `pool_size` by default.
    padding : int or sequence of <n> int
        On each side; never the maximum.
    layout : {"NC<axes>", "N<axes>C"}
        Order of the axes.
    ceil_mode : bool
        Keep a last window that sticks out of the input.

    Raises
    ------
    ValueError
        If a sequence has a wrong length, or `layout` is another one.

    Notes
    -----
    Each size becomes ``(size + 2 * padding - pool_size) // strides + 1``, rounded up with `ceil_mode`.
    """

    _pool_type = "max"

    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        layout: str | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, layout)


class _AvgPool(_Pooling):
    """What mean poolings over any number of axes share.

    Parameters
    ----------
    pool_size : int or sequence of <n> int
    strides : int or sequence of <n> int, optional
        `pool_size` by default.
    padding : int or sequence of <n> int
        On each side; zeros.
    layout : {"NC<axes>", "N<axes>C"}
        Order of the axes.
    ceil_mode : bool
        Keep a last window that sticks out of the input.
    count_include_pad : bool
        Whether padded zeros count in the number by which the sum is divided.

    Raises
    ------
    ValueError
        If a sequence has a wrong length, or `layout` is another one.

    Notes
    -----
    Each size becomes ``(size + 2 * padding - pool_size) // strides + 1``, rounded up with `ceil_mode`.
    """

    _pool_type = "avg"

    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str | None = None,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, layout, count_include_pad)


class _GlobalPool(_Pooling):
    """What poolings over all positions share.

    Parameters
    ----------
    layout : {"NC<axes>", "N<axes>C"}
        Order of the axes.

    Raises
    ------
    ValueError
        If `layout` is another one.
    """

    _global_pool = True

    def __init__(self, layout: str | None = None) -> None:
        super().__init__(1, None, 0, False, layout)


@for_axes(1, layout="NCW")
class MaxPool1D(_MaxPool):
    """Max pooling: the maximum over windows of 1 axis.

    Examples
    --------
    >>> mx.gluon.nn.MaxPool1D(pool_size=2)(np.array([[[1.0, 3.0, 5.0, 9.0]]]))
    array([[[3., 9.]]])
    """


@for_axes(2, pool_size=(2, 2), layout="NCHW")
class MaxPool2D(_MaxPool):
    """Max pooling: the maximum over windows of 2 axes.

    Examples
    --------
    >>> mx.gluon.nn.MaxPool2D(pool_size=3, strides=2, padding=1)(np.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """


@for_axes(3, pool_size=(2, 2, 2), layout="NCDHW")
class MaxPool3D(_MaxPool):
    """Max pooling: the maximum over windows of 3 axes.

    Examples
    --------
    >>> mx.gluon.nn.MaxPool3D(pool_size=2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    # The order of the last two arguments is MXNet's.
    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str | None = None,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode)


@for_axes(1, layout="NCW")
class AvgPool1D(_AvgPool):
    """Average pooling: the mean over windows of 1 axis.

    Examples
    --------
    >>> mx.gluon.nn.AvgPool1D(pool_size=2)(np.array([[[1.0, 3.0, 5.0, 9.0]]]))
    array([[[2., 7.]]])
    """

    # The order of the last three arguments is MXNet's.
    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        layout: str | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, layout, count_include_pad)


@for_axes(2, pool_size=(2, 2), layout="NCHW")
class AvgPool2D(_AvgPool):
    """Average pooling: the mean over windows of 2 axes.

    Examples
    --------
    >>> mx.gluon.nn.AvgPool2D(pool_size=2)(np.ones((1, 3, 4, 4))).shape
    (1, 3, 2, 2)
    """


@for_axes(3, pool_size=(2, 2, 2), layout="NCDHW")
class AvgPool3D(_AvgPool):
    """Average pooling: the mean over windows of 3 axes.

    Examples
    --------
    >>> mx.gluon.nn.AvgPool3D(pool_size=2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """


@for_axes(1, layout="NCW")
class GlobalMaxPool1D(_GlobalPool):
    """Global max pooling: the maximum over all positions; the axis keeps size 1.

    Examples
    --------
    >>> mx.gluon.nn.GlobalMaxPool1D()(np.array([[[1.0, 3.0, 5.0]]]))
    array([[[5.]]])
    """

    _pool_type = "max"


@for_axes(2, layout="NCHW")
class GlobalMaxPool2D(_GlobalPool):
    """Global max pooling: the maximum over all positions; the 2 axes keep size 1.

    Examples
    --------
    >>> mx.gluon.nn.GlobalMaxPool2D()(np.ones((1, 3, 4, 4))).shape
    (1, 3, 1, 1)
    """

    _pool_type = "max"


@for_axes(3, layout="NCDHW")
class GlobalMaxPool3D(_GlobalPool):
    """Global max pooling: the maximum over all positions; the 3 axes keep size 1.

    Examples
    --------
    >>> mx.gluon.nn.GlobalMaxPool3D()(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 1, 1, 1)
    """

    _pool_type = "max"


@for_axes(1, layout="NCW")
class GlobalAvgPool1D(_GlobalPool):
    """Global average pooling: the mean over all positions; the axis keeps size 1.

    Examples
    --------
    >>> mx.gluon.nn.GlobalAvgPool1D()(np.array([[[1.0, 3.0, 5.0]]]))
    array([[[3.]]])
    """

    _pool_type = "avg"


@for_axes(2, layout="NCHW")
class GlobalAvgPool2D(_GlobalPool):
    """Global average pooling: the mean over all positions; the 2 axes keep size 1.

    Examples
    --------
    >>> mx.gluon.nn.GlobalAvgPool2D()(np.ones((1, 3, 4, 4))).shape
    (1, 3, 1, 1)
    """

    _pool_type = "avg"


@for_axes(3, layout="NCDHW")
class GlobalAvgPool3D(_GlobalPool):
    """Global average pooling: the mean over all positions; the 3 axes keep size 1.

    Examples
    --------
    >>> mx.gluon.nn.GlobalAvgPool3D()(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 1, 1, 1)
    """

    _pool_type = "avg"
