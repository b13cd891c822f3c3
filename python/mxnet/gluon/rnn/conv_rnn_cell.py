"""Recurrent cells whose affine maps are convolutions."""

from __future__ import annotations

from mxnet.gluon._for_axes import for_axes
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


@for_axes(1, i2h_pad=(0,), i2h_dilate=(1,), h2h_dilate=(1,), conv_layout="NCW")
class Conv1DRNNCell(ConvRNN):
    """``h' = activation(W * x + b + R * h + c)`` with convolutions over one axis.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv1DRNNCell((2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4)
    """


@for_axes(2, i2h_pad=(0, 0), i2h_dilate=(1, 1), h2h_dilate=(1, 1), conv_layout="NCHW")
class Conv2DRNNCell(ConvRNN):
    """``h' = activation(W * x + b + R * h + c)`` with convolutions over two axes.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv2DRNNCell((2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4)
    """


@for_axes(3, i2h_pad=(0, 0, 0), i2h_dilate=(1, 1, 1), h2h_dilate=(1, 1, 1), conv_layout="NCDHW")
class Conv3DRNNCell(ConvRNN):
    """``h' = activation(W * x + b + R * h + c)`` with convolutions over three axes.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv3DRNNCell((2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4, 4)
    """


@for_axes(1, i2h_pad=(0,), i2h_dilate=(1,), h2h_dilate=(1,), conv_layout="NCW")
class Conv1DLSTMCell(ConvLSTM):
    """Long short-term memory with convolutions over one axis, gates in the order input, forget, cell, output.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv1DLSTMCell((2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4)
    """


@for_axes(2, i2h_pad=(0, 0), i2h_dilate=(1, 1), h2h_dilate=(1, 1), conv_layout="NCHW")
class Conv2DLSTMCell(ConvLSTM):
    """Long short-term memory with convolutions over two axes, gates in the order input, forget, cell, output.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv2DLSTMCell((2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4)
    """


@for_axes(3, i2h_pad=(0, 0, 0), i2h_dilate=(1, 1, 1), h2h_dilate=(1, 1, 1), conv_layout="NCDHW")
class Conv3DLSTMCell(ConvLSTM):
    """Long short-term memory with convolutions over three axes, gates in the order input, forget, cell, output.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv3DLSTMCell((2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4, 4)
    """


@for_axes(1, i2h_pad=(0,), i2h_dilate=(1,), h2h_dilate=(1,), conv_layout="NCW")
class Conv1DGRUCell(ConvGRU):
    """Gated recurrent unit with convolutions over one axis, gates in the order reset, update, candidate.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv1DGRUCell((2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4)
    """


@for_axes(2, i2h_pad=(0, 0), i2h_dilate=(1, 1), h2h_dilate=(1, 1), conv_layout="NCHW")
class Conv2DGRUCell(ConvGRU):
    """Gated recurrent unit with convolutions over two axes, gates in the order reset, update, candidate.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv2DGRUCell((2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4)
    """


@for_axes(3, i2h_pad=(0, 0, 0), i2h_dilate=(1, 1, 1), h2h_dilate=(1, 1, 1), conv_layout="NCDHW")
class Conv3DGRUCell(ConvGRU):
    """Gated recurrent unit with convolutions over three axes, gates in the order reset, update, candidate.

    Examples
    --------
    >>> cell = mx.gluon.rnn.Conv3DGRUCell((2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(np.ones((1, 2, 6, 6, 6)), cell.begin_state(batch_size=1))
    >>> output.shape
    (1, 3, 4, 4, 4)
    """
