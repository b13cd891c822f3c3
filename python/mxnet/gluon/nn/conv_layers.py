"""Convolutions and transposed convolutions of one to three axes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from mxnet import numpy_extension as npx
from mxnet._renamed import attribute_finder
from mxnet.gluon._counts import count_of
from mxnet.gluon._for_axes import for_axes
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.nn.activations import optional_activation
from mxnet.gluon.parameter import Parameter
from mxnet.numpy import ndarray

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]

__getattr__ = attribute_finder(__name__, "mxnet.gluon.nn")

Size = int | Sequence[int]


def sizes(value: Size, num_axes: int, name: str) -> tuple[int, ...]:
    """One size for each axis: a number stands for all of them.

    Parameters
    ----------
    value : int or sequence of int
    num_axes : int
    name : str
        The argument, for the message.

    Returns
    -------
    tuple of int

    Raises
    ------
    TypeError
        If it is something else.
    ValueError
        If a sequence has another length.
    """
    try:
        found = (
            (operator.index(value),) * num_axes
            if not isinstance(value, Iterable)
            else tuple(map(operator.index, value))
        )
    except TypeError:
        raise TypeError(f"`{name}` must be an integer or {num_axes} integers, found {value!r}") from None
    if len(found) != num_axes:
        raise ValueError(f"`{name}` must be a number or {num_axes} numbers, found {found}")
    return found


def check_layout(layout: str, num_axes: int) -> None:
    """Refuse orders of axes that no kernel knows.

    Parameters
    ----------
    layout : str
        The channels come second or last.
    num_axes : int
        Number of axes of an image.

    Raises
    ------
    ValueError
        If it is another order.
    """
    spatial = "DHW"[3 - num_axes :]
    if layout not in ("NC" + spatial, "N" + spatial + "C"):
        raise ValueError(f"`layout` must be {'NC' + spatial!r} or {'N' + spatial + 'C'!r}, found {layout!r}")


class _Conv(HybridBlock):
    """All convolutions; `_transposed` ones run backwards."""

    _num_axes: int  # set by `for_axes`
    _transposed = False

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size,
        padding: Size,
        output_padding: Size,
        dilation: Size,
        groups: int,
        layout: str | None,
        activation: str | None,
        use_bias: bool,
        weight_initializer: Any,
        bias_initializer: Any,
        in_channels: int,
    ) -> None:
        num_axes = self._num_axes
        layout = "NC" + "DHW"[3 - num_axes :] if layout is None else layout
        check_layout(layout, num_axes)
        name = type(self).__name__
        channels, groups = count_of(name, "channels", channels), count_of(name, "groups", groups)
        in_channels = count_of(name, "in_channels", in_channels, 0)
        if channels % groups or in_channels % groups:
            raise ValueError(
                f"`channels` ({channels}) and `in_channels` ({in_channels}) must be multiples of `groups` ({groups})"
            )
        super().__init__()
        self._channels = channels
        self._in_channels = in_channels
        self._groups = groups
        self._layout = layout
        self._kernel = sizes(kernel_size, num_axes, "kernel_size")
        self._strides = sizes(strides, num_axes, "strides")
        self._padding = sizes(padding, num_axes, "padding")
        self._output_padding = sizes(output_padding, num_axes, "output_padding")
        self._dilation = sizes(dilation, num_axes, "dilation")
        self.weight = Parameter(
            "weight",
            shape=self._weight_shape(in_channels),
            init=weight_initializer,
            allow_deferred_init=True,
        )
        self.bias: Parameter | None = None
        if use_bias:
            self.bias = Parameter("bias", shape=(channels,), init=bias_initializer)
        self.act = optional_activation(activation)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        """Channels behind the kernel's axes if they are so in the layout."""
        if self._transposed:
            first, second = in_channels or -1, self._channels // self._groups
        else:
            first, second = self._channels, in_channels // self._groups or -1
        return (first, *self._kernel, second) if self._layout[-1] == "C" else (first, second, *self._kernel)

    def __repr__(self) -> str:
        parts = [f"{self._in_channels or None} -> {self._channels}", f"kernel_size={self._kernel}"]
        parts.append(f"stride={self._strides}")
        if any(self._padding):
            parts.append(f"padding={self._padding}")
        if any(self._output_padding):
            parts.append(f"output_padding={self._output_padding}")
        if any(step != 1 for step in self._dilation):
            parts.append(f"dilation={self._dilation}")
        if self._groups != 1:
            parts.append(f"groups={self._groups}")
        if self._layout[-1] == "C":
            parts.append(f"layout={self._layout}")
        if self.bias is None:
            parts.append("bias=False")
        if self.act is not None:
            parts.append(repr(self.act))
        return f"{type(self).__name__}({', '.join(parts)})"

    def infer_shape(self, x: ndarray, *args: Any) -> None:
        """Set the number of input channels.

        Parameters
        ----------
        x : ndarray, shape (n, c, ...), or (n, ..., c) with that layout

        Raises
        ------
        ValueError
            If the number of channels is not a multiple of the number of groups.
        """
        # Ragged sequences are (n, length, channels), the length having no size.
        channels = x.shape[-1 if None in x.shape else self._layout.index("C")]
        if channels % self._groups:
            raise ValueError(f"{channels} channels cannot be cut into {self._groups} groups")
        self._in_channels = channels
        self.weight.shape = self._weight_shape(channels)

    def forward(self, x: ndarray) -> ndarray:
        """Convolve a batch.

        Parameters
        ----------
        x : ndarray, shape (n, in_channels, ...), or (n, ..., in_channels) with that layout

        Returns
        -------
        ndarray, shape (n, channels, ...), or (n, ..., channels)
        """
        device = x.device
        weight = self.weight.data(device)
        bias = None if self.bias is None else self.bias.data(device)
        if self._transposed:
            out = npx.deconvolution(
                x,
                weight,
                bias,
                kernel=self._kernel,
                stride=self._strides,
                dilate=self._dilation,
                pad=self._padding,
                adj=self._output_padding,
                num_filter=self._channels,
                num_group=self._groups,
                no_bias=bias is None,
                layout=self._layout,
            )
        else:
            out = npx.convolution(
                x,
                weight,
                bias,
                kernel=self._kernel,
                stride=self._strides,
                dilate=self._dilation,
                pad=self._padding,
                num_filter=self._channels,
                num_group=self._groups,
                no_bias=bias is None,
                layout=self._layout,
            )
        return out if self.act is None else self.act(out)


class _Convolution(_Conv):
    """What convolutions over any number of axes share.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size, strides, padding, dilation : int or sequence of <n> int
    groups : int
        Channels are cut into so many groups that do not see each other.
    layout : {"NC<axes>", "N<axes>C"}
        Order of the axes; with the channels last the weight has its input channels last, too.
    activation : str, optional
        See `Activation`.
    use_bias : bool
    weight_initializer, bias_initializer : Initializer or str, optional
    in_channels : int
        0 to find it out from the first input.

    Raises
    ------
    ValueError
        If a number does not fit the others, or `layout` is another one.

    Attributes
    ----------
    weight : Parameter, shape (channels, in_channels // groups, <sizes>)
    bias : Parameter, shape (channels,), or None

    Notes
    -----
    Maps ``(n, in_channels, <sizes>)`` to ``(n, channels, <sizes>)``; each size becomes
    ``(size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``.
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        layout: str | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            0,
            dilation,
            groups,
            layout,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            in_channels,
        )


@for_axes(1, layout="NCW")
class Conv1D(_Convolution):
    """Convolution over 1 axis.

    Examples
    --------
    >>> net = mx.gluon.nn.Conv1D(channels=1, kernel_size=2)
    >>> net.initialize('ones')
    >>> net(np.array([[[1.0, 2.0, 3.0]]]))
    array([[[3., 5.]]])
    """


@for_axes(2, strides=(1, 1), padding=(0, 0), dilation=(1, 1), layout="NCHW")
class Conv2D(_Convolution):
    """Convolution over 2 axes.

    Examples
    --------
    >>> net = mx.gluon.nn.Conv2D(channels=8, kernel_size=3, padding=1, strides=2)
    >>> net.initialize()
    >>> net(np.ones((2, 3, 16, 16))).shape
    (2, 8, 8, 8)
    """


@for_axes(3, strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), layout="NCDHW")
class Conv3D(_Convolution):
    """Convolution over 3 axes.

    Examples
    --------
    >>> net = mx.gluon.nn.Conv3D(channels=4, kernel_size=3)
    >>> net.initialize()
    >>> net(np.ones((1, 2, 5, 5, 5))).shape
    (1, 4, 3, 3, 3)
    """


class _TransposedConvolution(_Conv):
    """What transposed convolutions over any number of axes share.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size, strides, padding, output_padding, dilation : int or sequence of <n> int
    groups : int
        Channels are cut into so many groups that do not see each other.
    layout : {"NC<axes>", "N<axes>C"}
        Order of the axes; with the channels last the weight has its input channels last, too.
    activation : str, optional
        See `Activation`.
    use_bias : bool
    weight_initializer, bias_initializer : Initializer or str, optional
    in_channels : int
        0 to find it out from the first input.

    Raises
    ------
    ValueError
        If a number does not fit the others, or `layout` is another one.

    Attributes
    ----------
    weight : Parameter, shape (in_channels, channels // groups, <sizes>)
    bias : Parameter, shape (channels,), or None

    Notes
    -----
    Maps ``(n, in_channels, <sizes>)`` to ``(n, channels, <sizes>)``; each size becomes
    ``(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.
    """

    _transposed = True

    def __init__(
        self,
        channels: int,
        kernel_size: Size,
        strides: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        layout: str | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            output_padding,
            dilation,
            groups,
            layout,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            in_channels,
        )


@for_axes(1, layout="NCW")
class Conv1DTranspose(_TransposedConvolution):
    """Transposed convolution over 1 axis.

    Examples
    --------
    >>> net = mx.gluon.nn.Conv1DTranspose(channels=1, kernel_size=2, strides=2)
    >>> net.initialize('ones')
    >>> net(np.array([[[1.0, 2.0]]]))
    array([[[1., 1., 2., 2.]]])
    """


@for_axes(2, strides=(1, 1), padding=(0, 0), output_padding=(0, 0), dilation=(1, 1), layout="NCHW")
class Conv2DTranspose(_TransposedConvolution):
    """Transposed convolution over 2 axes.

    Examples
    --------
    >>> net = mx.gluon.nn.Conv2DTranspose(channels=4, kernel_size=2, strides=2)
    >>> net.initialize()
    >>> net(np.ones((1, 3, 8, 8))).shape
    (1, 4, 16, 16)
    """


@for_axes(3, strides=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), dilation=(1, 1, 1), layout="NCDHW")
class Conv3DTranspose(_TransposedConvolution):
    """Transposed convolution over 3 axes.

    Examples
    --------
    >>> net = mx.gluon.nn.Conv3DTranspose(channels=2, kernel_size=2, strides=2)
    >>> net.initialize()
    >>> net(np.ones((1, 3, 2, 2, 2))).shape
    (1, 2, 4, 4, 4)
    """
