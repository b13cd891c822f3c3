"""Pooling over one to three axes."""

from __future__ import annotations

from mxnet import numpy_extension as npx
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

    def __init__(
        self,
        num_axes: int,
        pool_size: Size,
        strides: Size | None,
        padding: Size,
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str,
        count_include_pad: bool = True,
    ) -> None:
        check_layout(layout, num_axes)
        super().__init__()
        self._kernel = sizes(pool_size, num_axes, "pool_size")
        self._strides = self._kernel if strides is None else sizes(strides, num_axes, "strides")
        self._padding = sizes(padding, num_axes, "padding")
        self._ceil_mode = ceil_mode
        self._global_pool = global_pool
        self._pool_type = pool_type
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


class MaxPool1D(_Pooling):
    """Maximum over windows of 1 axis.

    Parameters
    ----------
    pool_size : int or sequence of 1 int
    strides : int or sequence of 1 int, optional
        `pool_size` by default.
    padding : int or sequence of 1 int
        On each side; never the maximum.
    layout : {"NCW", "NWC"}
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

    Examples
    --------
    >>> mx.gluon.nn.MaxPool1D(pool_size=2)(np.array([[[1.0, 3.0, 5.0, 9.0]]]))
    array([[[3., 9.]]])
    """

    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(1, pool_size, strides, padding, ceil_mode, False, "max", layout)


class MaxPool2D(_Pooling):
    """Maximum over windows of 2 axes.

    Parameters
    ----------
    pool_size : int or sequence of 2 int
    strides : int or sequence of 2 int, optional
        `pool_size` by default.
    padding : int or sequence of 2 int
        On each side; never the maximum.
    layout : {"NCHW", "NHWC"}
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

    Examples
    --------
    >>> mx.gluon.nn.MaxPool2D(pool_size=3, strides=2, padding=1)(np.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """

    def __init__(
        self,
        pool_size: Size = (2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        layout: str = "NCHW",
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(2, pool_size, strides, padding, ceil_mode, False, "max", layout)


class MaxPool3D(_Pooling):
    """Maximum over windows of 3 axes.

    Parameters
    ----------
    pool_size : int or sequence of 3 int
    strides : int or sequence of 3 int, optional
        `pool_size` by default.
    padding : int or sequence of 3 int
        On each side; never the maximum.
    layout : {"NCDHW", "NDHWC"}
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

    Examples
    --------
    >>> mx.gluon.nn.MaxPool3D(pool_size=2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    def __init__(
        self,
        pool_size: Size = (2, 2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
    ) -> None:
        super().__init__(3, pool_size, strides, padding, ceil_mode, False, "max", layout)


class AvgPool1D(_Pooling):
    """Mean over windows of 1 axis.

    Parameters
    ----------
    pool_size : int or sequence of 1 int
    strides : int or sequence of 1 int, optional
        `pool_size` by default.
    padding : int or sequence of 1 int
        On each side; zeros.
    layout : {"NCW", "NWC"}
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

    Examples
    --------
    >>> mx.gluon.nn.AvgPool1D(pool_size=2)(np.array([[[1.0, 3.0, 5.0, 9.0]]]))
    array([[[2., 7.]]])
    """

    def __init__(
        self,
        pool_size: Size = 2,
        strides: Size | None = None,
        padding: Size = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(1, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad)


class AvgPool2D(_Pooling):
    """Mean over windows of 2 axes.

    Parameters
    ----------
    pool_size : int or sequence of 2 int
    strides : int or sequence of 2 int, optional
        `pool_size` by default.
    padding : int or sequence of 2 int
        On each side; zeros.
    layout : {"NCHW", "NHWC"}
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

    Examples
    --------
    >>> mx.gluon.nn.AvgPool2D(pool_size=2)(np.ones((1, 3, 4, 4))).shape
    (1, 3, 2, 2)
    """

    def __init__(
        self,
        pool_size: Size = (2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(2, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad)


class AvgPool3D(_Pooling):
    """Mean over windows of 3 axes.

    Parameters
    ----------
    pool_size : int or sequence of 3 int
    strides : int or sequence of 3 int, optional
        `pool_size` by default.
    padding : int or sequence of 3 int
        On each side; zeros.
    layout : {"NCDHW", "NDHWC"}
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

    Examples
    --------
    >>> mx.gluon.nn.AvgPool3D(pool_size=2)(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    def __init__(
        self,
        pool_size: Size = (2, 2, 2),
        strides: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(3, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad)


class GlobalMaxPool1D(_Pooling):
    """Maximum over all positions; the 1 axis keeps size 1.

    Parameters
    ----------
    layout : {"NCW", "NWC"}
        Order of the axes.

    Raises
    ------
    ValueError
        If `layout` is another one.

    Examples
    --------
    >>> mx.gluon.nn.GlobalMaxPool1D()(np.array([[[1.0, 3.0, 5.0]]]))
    array([[[5.]]])
    """

    def __init__(self, layout: str = "NCW") -> None:
        super().__init__(1, 1, None, 0, False, True, "max", layout)


class GlobalMaxPool2D(_Pooling):
    """Maximum over all positions; the 2 axes keep size 1.

    Parameters
    ----------
    layout : {"NCHW", "NHWC"}
        Order of the axes.

    Raises
    ------
    ValueError
        If `layout` is another one.

    Examples
    --------
    >>> mx.gluon.nn.GlobalMaxPool2D()(np.ones((1, 3, 4, 4))).shape
    (1, 3, 1, 1)
    """

    def __init__(self, layout: str = "NCHW") -> None:
        super().__init__(2, 1, None, 0, False, True, "max", layout)


class GlobalMaxPool3D(_Pooling):
    """Maximum over all positions; the 3 axes keep size 1.

    Parameters
    ----------
    layout : {"NCDHW", "NDHWC"}
        Order of the axes.

    Raises
    ------
    ValueError
        If `layout` is another one.

    Examples
    --------
    >>> mx.gluon.nn.GlobalMaxPool3D()(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW") -> None:
        super().__init__(3, 1, None, 0, False, True, "max", layout)


class GlobalAvgPool1D(_Pooling):
    """Mean over all positions; the 1 axis keeps size 1.

    Parameters
    ----------
    layout : {"NCW", "NWC"}
        Order of the axes.

    Raises
    ------
    ValueError
        If `layout` is another one.

    Examples
    --------
    >>> mx.gluon.nn.GlobalAvgPool1D()(np.array([[[1.0, 3.0, 5.0]]]))
    array([[[3.]]])
    """

    def __init__(self, layout: str = "NCW") -> None:
        super().__init__(1, 1, None, 0, False, True, "avg", layout)


class GlobalAvgPool2D(_Pooling):
    """Mean over all positions; the 2 axes keep size 1.

    Parameters
    ----------
    layout : {"NCHW", "NHWC"}
        Order of the axes.

    Raises
    ------
    ValueError
        If `layout` is another one.

    Examples
    --------
    >>> mx.gluon.nn.GlobalAvgPool2D()(np.ones((1, 3, 4, 4))).shape
    (1, 3, 1, 1)
    """

    def __init__(self, layout: str = "NCHW") -> None:
        super().__init__(2, 1, None, 0, False, True, "avg", layout)


class GlobalAvgPool3D(_Pooling):
    """Mean over all positions; the 3 axes keep size 1.

    Parameters
    ----------
    layout : {"NCDHW", "NDHWC"}
        Order of the axes.

    Raises
    ------
    ValueError
        If `layout` is another one.

    Examples
    --------
    >>> mx.gluon.nn.GlobalAvgPool3D()(np.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW") -> None:
        super().__init__(3, 1, None, 0, False, True, "avg", layout)
