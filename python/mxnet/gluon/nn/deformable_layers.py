"""Convolutions that compute from the image where their taps lie."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.nn.activations import optional_activation
from mxnet.gluon.nn.conv_layers import Size, sizes
from mxnet.gluon.parameter import Parameter
from mxnet.numpy import ndarray

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class DeformableConvolution(HybridBlock):
    """Convolution whose sampling positions are moved by offsets that another convolution computes.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size, strides, padding, dilation : int or sequence of 2 int
    groups : int
        Number of groups of channels that are convolved separately.
    num_deformable_group : int
        Groups of channels with taps of their own.
    layout : "NCHW"
    use_bias : bool
    in_channels : int
        0 to find it out from the first input.
    activation : str, optional
    weight_initializer, bias_initializer : Initializer or str, optional
    offset_weight_initializer, offset_bias_initializer : Initializer or str, optional
        Of the convolution that moves the taps; zeros leave them in place.
    offset_use_bias : bool

    Raises
    ------
    ValueError
        If a number does not fit the others, or `layout` is another one.

    Notes
    -----
    Source: J. Dai et al., "Deformable Convolutional Networks", 2017.

    Examples
    --------
    >>> net = mx.gluon.nn.DeformableConvolution(3, kernel_size=3, padding=1)
    >>> net.initialize()
    >>> net(np.ones((1, 2, 4, 5))).shape
    (1, 3, 4, 5)
    """

    # Numbers that the other convolution gives for each tap.
    _per_tap = 2

    def __init__(
        self,
        channels: int,
        kernel_size: Size = (1, 1),
        strides: Size = (1, 1),
        padding: Size = (0, 0),
        dilation: Size = (1, 1),
        groups: int = 1,
        num_deformable_group: int = 1,
        layout: str = "NCHW",
        use_bias: bool = True,
        in_channels: int = 0,
        activation: str | None = None,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        offset_weight_initializer: Any = "zeros",
        offset_bias_initializer: Any = "zeros",
        offset_use_bias: bool = True,
    ) -> None:
        if layout != "NCHW":
            raise ValueError(f"`layout` must be 'NCHW', found {layout!r}")
        if channels < 1 or groups < 1 or channels % groups:
            raise ValueError(f"`channels` ({channels}) must be a multiple of `groups` ({groups})")
        super().__init__()
        self._channels = channels
        self._kernel = sizes(kernel_size, 2, "kernel_size")
        self._strides = sizes(strides, 2, "strides")
        self._padding = sizes(padding, 2, "padding")
        self._dilation = sizes(dilation, 2, "dilation")
        self._groups = groups
        self._deformable_groups = num_deformable_group
        self._offsets = offsets = num_deformable_group * self._per_tap * self._kernel[0] * self._kernel[1]
        self.offset_weight = Parameter(
            "offset_weight",
            shape=(offsets, in_channels or -1, *self._kernel),
            init=offset_weight_initializer,
            allow_deferred_init=True,
        )
        self.offset_bias: Parameter | None = None
        if offset_use_bias:
            self.offset_bias = Parameter("offset_bias", shape=(offsets,), init=offset_bias_initializer)
        self.deformable_conv_weight = Parameter(
            "deformable_conv_weight",
            shape=(channels, in_channels // groups or -1, *self._kernel),
            init=weight_initializer,
            allow_deferred_init=True,
        )
        self.deformable_conv_bias: Parameter | None = None
        if use_bias:
            self.deformable_conv_bias = Parameter("deformable_conv_bias", shape=(channels,), init=bias_initializer)
        self.act = optional_activation(activation)

    def __repr__(self) -> str:
        known = max(self.offset_weight.shape[1], 0) if self.offset_weight.shape else 0
        parts = [f"{known or None} -> {self._channels}", f"kernel_size={self._kernel}", f"stride={self._strides}"]
        if any(self._padding):
            parts.append(f"padding={self._padding}")
        if self._dilation != (1, 1):
            parts.append(f"dilation={self._dilation}")
        if self._groups != 1:
            parts.append(f"groups={self._groups}")
        if self._deformable_groups != 1:
            parts.append(f"num_deformable_group={self._deformable_groups}")
        for name, bias in (("use_bias", self.deformable_conv_bias), ("offset_use_bias", self.offset_bias)):
            if bias is None:
                parts.append(f"{name}=False")
        return f"{type(self).__name__}({', '.join(parts)})"

    def infer_shape(self, x: ndarray, *args: Any) -> None:
        """Set the number of input channels.

        Parameters
        ----------
        x : ndarray, shape (n, c, h, w)
        """
        self.offset_weight.shape = (self._offsets, x.shape[1], *self._kernel)
        self.deformable_conv_weight.shape = (self._channels, x.shape[1] // self._groups, *self._kernel)

    def _offset(self, x: ndarray) -> ndarray:
        """Offsets (and mask logits, if modulated) of each kernel tap, by a plain convolution."""
        bias = None if self.offset_bias is None else self.offset_bias.data(x.device)
        found: ndarray = npx.convolution(
            x,
            self.offset_weight.data(x.device),
            bias,
            kernel=self._kernel,
            stride=self._strides,
            dilate=self._dilation,
            pad=self._padding,
            num_filter=self._offsets,
            no_bias=bias is None,
        )
        return found

    def _arguments(self, x: ndarray) -> dict[str, Any]:
        return {
            "weight": self.deformable_conv_weight.data(x.device),
            "bias": None if self.deformable_conv_bias is None else self.deformable_conv_bias.data(x.device),
            "kernel": self._kernel,
            "stride": self._strides,
            "dilate": self._dilation,
            "pad": self._padding,
            "num_filter": self._channels,
            "num_group": self._groups,
            "num_deformable_group": self._deformable_groups,
        }

    def _activated(self, x: ndarray) -> ndarray:
        y: ndarray = x if self.act is None else self.act(x)
        return y

    def forward(self, x: ndarray) -> ndarray:
        """Convolve a batch of images.

        Parameters
        ----------
        x : ndarray, shape (n, in_channels, h, w)

        Returns
        -------
        ndarray, shape (n, channels, out_h, out_w)
        """
        out: ndarray = npx.deformable_convolution(x, self._offset(x), **self._arguments(x))
        return self._activated(out)


class ModulatedDeformableConvolution(DeformableConvolution):
    """Deformable convolution whose samples are also weighted, by another convolution.

    Parameters
    ----------
    channels, kernel_size, strides, padding, dilation, groups, num_deformable_group, layout, use_bias, in_channels
        See `DeformableConvolution`.
    activation, weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer
        See `DeformableConvolution`.
    offset_use_bias : bool
        See `DeformableConvolution`.

    Notes
    -----
    The factor of a tap is twice a logistic function, 1 at 0. Source: X. Zhu et al., "Deformable ConvNets v2", 2019.

    Examples
    --------
    >>> net = mx.gluon.nn.ModulatedDeformableConvolution(3, kernel_size=3, padding=1)
    >>> net.initialize()
    >>> net(np.ones((1, 2, 4, 5))).shape
    (1, 3, 4, 5)
    """

    _per_tap = 3

    def forward(self, x: ndarray) -> ndarray:
        """Convolve a batch of images.

        Parameters
        ----------
        x : ndarray, shape (n, in_channels, h, w)

        Returns
        -------
        ndarray, shape (n, channels, out_h, out_w)
        """
        found = self._offset(x)
        taps = found.shape[1] // 3
        offset, mask = np.split(found, [2 * taps], axis=1)
        out: ndarray = npx.modulated_deformable_convolution(x, offset, npx.sigmoid(mask) * 2, **self._arguments(x))
        return self._activated(out)
