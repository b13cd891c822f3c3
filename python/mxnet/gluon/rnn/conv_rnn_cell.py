"""Recurrent cells whose affine maps are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet.gluon.nn.conv_layers import Size
from mxnet.gluon.rnn._conv_equations import ConvGRU, ConvLSTM, ConvRNN

__all__ = [
    "Conv1DGRUCell",
    "Conv1DLSTMCell",
    "Conv1DRNNCell",
    "Conv2DGRUCell",
    "Conv2DLSTMCell",
    "Conv2DRNNCell",
    "Conv3DGRUCell",
    "Conv3DLSTMCell",
    "Conv3DRNNCell",
]


class Conv1DRNNCell(ConvRNN):
    """``h' = activation(W * x + b + R * h + c)`` with convolutions over one axis.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, with one gate.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv1DRNNCell((2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0,),
        i2h_dilate: Size = (1,),
        h2h_dilate: Size = (1,),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            1,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv2DRNNCell(ConvRNN):
    """``h' = activation(W * x + b + R * h + c)`` with convolutions over two axes.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, h, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCHW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, with one gate.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv2DRNNCell((2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0, 0),
        i2h_dilate: Size = (1, 1),
        h2h_dilate: Size = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCHW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            2,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv3DRNNCell(ConvRNN):
    """``h' = activation(W * x + b + R * h + c)`` with convolutions over three axes.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, d, h, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCDHW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, with one gate.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv3DRNNCell((2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0, 0, 0),
        i2h_dilate: Size = (1, 1, 1),
        h2h_dilate: Size = (1, 1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCDHW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            3,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv1DLSTMCell(ConvLSTM):
    """Long short-term memory with convolutions over one axis, gates in the order input, forget, cell, output.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, without peephole connections.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv1DLSTMCell((2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0,),
        i2h_dilate: Size = (1,),
        h2h_dilate: Size = (1,),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            1,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv2DLSTMCell(ConvLSTM):
    """Long short-term memory with convolutions over two axes, gates in the order input, forget, cell, output.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, h, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCHW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, without peephole connections.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv2DLSTMCell((2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0, 0),
        i2h_dilate: Size = (1, 1),
        h2h_dilate: Size = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCHW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            2,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv3DLSTMCell(ConvLSTM):
    """Long short-term memory with convolutions over three axes, gates in the order input, forget, cell, output.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, d, h, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCDHW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: X. Shi et al., "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015, without peephole connections.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv3DLSTMCell((2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0, 0, 0),
        i2h_dilate: Size = (1, 1, 1),
        h2h_dilate: Size = (1, 1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCDHW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            3,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv1DGRUCell(ConvGRU):
    """Gated recurrent unit with convolutions over one axis, gates in the order reset, update, candidate.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: N. Ballas et al., "Delving Deeper into Convolutional Networks for Learning Video Representations", 2015;
    the reset gate acts after the recurrent convolution, as in `GRUCell`.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv1DGRUCell((2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0,),
        i2h_dilate: Size = (1,),
        h2h_dilate: Size = (1,),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            1,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv2DGRUCell(ConvGRU):
    """Gated recurrent unit with convolutions over two axes, gates in the order reset, update, candidate.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, h, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCHW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: N. Ballas et al., "Delving Deeper into Convolutional Networks for Learning Video Representations", 2015;
    the reset gate acts after the recurrent convolution, as in `GRUCell`.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv2DGRUCell((2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0, 0),
        i2h_dilate: Size = (1, 1),
        h2h_dilate: Size = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCHW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            2,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )


class Conv3DGRUCell(ConvGRU):
    """Gated recurrent unit with convolutions over three axes, gates in the order reset, update, candidate.

    Parameters
    ----------
    input_shape : sequence of int
        ``(c, d, h, w)``, the shape of one sample.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or sequence of int
        Sizes of `h2h_kernel` are odd, as the recurrent convolution keeps the size of the state.
    i2h_pad, i2h_dilate, h2h_dilate : int or sequence of int
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {"NCDHW"}
    activation : str
        See `mxnet.gluon.nn.Activation`.

    Raises
    ------
    ValueError
        If a size is out of range, or the kernel does not fit into `input_shape`.

    Notes
    -----
    Source: N. Ballas et al., "Delving Deeper into Convolutional Networks for Learning Video Representations", 2015;
    the reset gate acts after the recurrent convolution, as in `GRUCell`.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv3DGRUCell((2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4, 4)
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Size,
        h2h_kernel: Size,
        i2h_pad: Size = (0, 0, 0),
        i2h_dilate: Size = (1, 1, 1),
        h2h_dilate: Size = (1, 1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCDHW",
        activation: str = "tanh",
    ) -> None:
        super().__init__(
            3,
            self._num_gates,
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            conv_layout,
            activation,
        )
