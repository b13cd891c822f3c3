"""The equations of convolutional recurrent cells, for any number of axes; `conv_rnn_cell.py` has the public classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import numpy_extension as npx
from mxnet.gluon.nn.conv_layers import Size, sizes
from mxnet.gluon.parameter import Parameter
from mxnet.gluon.rnn.rnn_cell import HybridRecurrentCell, StateInfo, States
from mxnet.numpy import ndarray

__all__ = [
    "ConvGRU",
    "ConvLSTM",
    "ConvRNN",
]


class ConvCell(HybridRecurrentCell):
    """A cell whose gates are convolutions of the input and of the first state.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, <sizes>)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NC<axes>"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.
    """

    _num_axes: int  # set by `for_axes`
    _num_gates: int
    _num_states = 1

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = 0,
        i2h_dilate: Size = 1,
        h2h_dilate: Size = 1,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str | None = None,
        activation: str = "tanh",
    ) -> None:
        name, num_axes = type(self).__name__, self._num_axes
        layout = "NC" + "DHW"[3 - num_axes :]
        if conv_layout not in (None, layout):
            raise ValueError(f"{name}: `conv_layout` must be {layout!r}, found {conv_layout!r}")
        if len(input_shape) != num_axes + 1 or min(input_shape) < 1:
            raise ValueError(
                f"{name}: `input_shape` must be {num_axes + 1} positive sizes, {layout[1:]}, found {tuple(input_shape)}"
            )
        if hidden_channels < 1:
            raise ValueError(f"{name}: `hidden_channels` must be positive, found {hidden_channels}")
        super().__init__()
        self._input_shape = tuple(input_shape)
        self._hidden_channels = hidden_channels
        self._layout = layout
        self._activation = activation
        self._i2h_kernel = sizes(i2h_kernel, num_axes, "i2h_kernel")
        self._h2h_kernel = sizes(h2h_kernel, num_axes, "h2h_kernel")
        self._i2h_pad = sizes(i2h_pad, num_axes, "i2h_pad")
        self._i2h_dilate = sizes(i2h_dilate, num_axes, "i2h_dilate")
        self._h2h_dilate = sizes(h2h_dilate, num_axes, "h2h_dilate")
        if any(size % 2 == 0 for size in self._h2h_kernel):
            raise ValueError(f"{name}: sizes of `h2h_kernel` must be odd, found {self._h2h_kernel}")
        # The recurrent convolution preserves the size of the state.
        self._h2h_pad = tuple(d * (k - 1) // 2 for k, d in zip(self._h2h_kernel, self._h2h_dilate, strict=True))
        self._spatial = tuple(
            size + 2 * pad - dilate * (kernel - 1)
            for size, pad, dilate, kernel in zip(
                input_shape[1:], self._i2h_pad, self._i2h_dilate, self._i2h_kernel, strict=True
            )
        )
        if min(self._spatial) < 1:
            raise ValueError(
                f"{name}: `i2h_kernel` {self._i2h_kernel} with `i2h_dilate` {self._i2h_dilate} and `i2h_pad` "
                f"{self._i2h_pad} does not fit into `input_shape` {self._input_shape}"
            )
        self._rows = rows = self._num_gates * hidden_channels
        self.i2h_weight = Parameter(
            "i2h_weight", shape=(rows, input_shape[0], *self._i2h_kernel), init=i2h_weight_initializer
        )
        self.h2h_weight = Parameter(
            "h2h_weight", shape=(rows, hidden_channels, *self._h2h_kernel), init=h2h_weight_initializer
        )
        self.i2h_bias = Parameter("i2h_bias", shape=(rows,), init=i2h_bias_initializer)
        self.h2h_bias = Parameter("h2h_bias", shape=(rows,), init=h2h_bias_initializer)

    def __repr__(self) -> str:
        parts = [f"{self._input_shape[0]} -> {self._hidden_channels}"]
        parts += [f"i2h_kernel={self._i2h_kernel}", f"h2h_kernel={self._h2h_kernel}"]
        for name, default in (("i2h_pad", 0), ("i2h_dilate", 1), ("h2h_dilate", 1)):
            value = getattr(self, f"_{name}")
            if set(value) != {default}:
                parts.append(f"{name}={value}")
        if self._activation != "tanh":
            parts.append(f"activation={self._activation!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def state_info(self, batch_size: int = 0) -> StateInfo:
        shape = (batch_size, self._hidden_channels, *self._spatial)
        return [{"shape": shape, "__layout__": self._layout} for _ in range(self._num_states)]

    def _gates(self, inputs: ndarray, hidden: ndarray) -> tuple[ndarray, ndarray]:
        if tuple(inputs.shape[1:]) != self._input_shape:
            raise ValueError(
                f"{type(self).__name__}: inputs of shape {tuple(inputs.shape)} do not fit `input_shape` "
                f"{self._input_shape}"
            )
        device, ones = inputs.device, (1,) * len(self._spatial)
        from_input = npx.convolution(
            inputs,
            self.i2h_weight.data(device),
            self.i2h_bias.data(device),
            kernel=self._i2h_kernel,
            stride=ones,
            dilate=self._i2h_dilate,
            pad=self._i2h_pad,
            num_filter=self._rows,
            num_group=1,
            no_bias=False,
            layout=self._layout,
        )
        from_hidden = npx.convolution(
            hidden,
            self.h2h_weight.data(device),
            self.h2h_bias.data(device),
            kernel=self._h2h_kernel,
            stride=ones,
            dilate=self._h2h_dilate,
            pad=self._h2h_pad,
            num_filter=self._rows,
            num_group=1,
            no_bias=False,
            layout=self._layout,
        )
        return from_input, from_hidden

    def _part(self, gates: ndarray, number: int) -> ndarray:
        size = self._hidden_channels
        return gates[:, number * size : (number + 1) * size]


class ConvRNN(ConvCell):
    """A convolutional recurrent cell with any number of spatial axes.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, with one gate.
    """

    _num_gates = 1

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step.

        Parameters
        ----------
        inputs : ndarray, shape ``(n, *input_shape)``
        states : list of one ndarray, shape (n, hidden_channels, ...)

        Returns
        -------
        output : ndarray, shape (n, hidden_channels, ...)
        states : list of ndarray
        """
        from_input, from_hidden = self._gates(inputs, states[0])
        output = npx.activation(from_input + from_hidden, act_type=self._activation)
        return output, [output]


class ConvLSTM(ConvCell):
    """A convolutional LSTM cell with any number of spatial axes.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, without peephole connections.
    """

    _num_gates = 4
    _num_states = 2

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step.

        Parameters
        ----------
        inputs : ndarray, shape ``(n, *input_shape)``
        states : list of two ndarray, shape (n, hidden_channels, ...)
            Output and cell.

        Returns
        -------
        output : ndarray, shape (n, hidden_channels, ...)
        states : list of ndarray
        """
        hidden, cell = states
        from_input, from_hidden = self._gates(inputs, hidden)
        gates = from_input + from_hidden
        write, keep, show = (npx.activation(self._part(gates, k), act_type="sigmoid") for k in (0, 1, 3))
        cell = keep * cell + write * npx.activation(self._part(gates, 2), act_type=self._activation)
        output = show * npx.activation(cell, act_type=self._activation)
        return output, [output, cell]


class ConvGRU(ConvCell):
    """A convolutional GRU cell with any number of spatial axes.

    Notes
    -----
    Source: N. Ballas et al., "Delving Deeper into Convolutional Networks for Learning Video Representations", 2015;
    the reset gate acts after the recurrent convolution, as in `GRUCell`.
    """

    _num_gates = 3

    def forward(self, inputs: ndarray, states: States) -> tuple[ndarray, States]:
        """Do one step.

        Parameters
        ----------
        inputs : ndarray, shape ``(n, *input_shape)``
        states : list of one ndarray, shape (n, hidden_channels, ...)

        Returns
        -------
        output : ndarray, shape (n, hidden_channels, ...)
        states : list of ndarray
        """
        hidden = states[0]
        x, h = self._gates(inputs, hidden)
        reset, update = (npx.activation(self._part(x, k) + self._part(h, k), act_type="sigmoid") for k in (0, 1))
        candidate = npx.activation(self._part(x, 2) + reset * self._part(h, 2), act_type=self._activation)
        output = (1.0 - update) * candidate + update * hidden
        return output, [output]
