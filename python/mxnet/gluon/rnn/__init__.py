"""Recurrent layers and cells."""

from mxnet.gluon.rnn.combined_cell import BidirectionalCell, HybridSequentialRNNCell, SequentialRNNCell
from mxnet.gluon.rnn.conv_rnn_cell import (
    Conv1DGRUCell,
    Conv1DLSTMCell,
    Conv1DRNNCell,
    Conv2DGRUCell,
    Conv2DLSTMCell,
    Conv2DRNNCell,
    Conv3DGRUCell,
    Conv3DLSTMCell,
    Conv3DRNNCell,
)
from mxnet.gluon.rnn.modifier_cell import DropoutCell, ModifierCell, ResidualCell, VariationalDropoutCell, ZoneoutCell
from mxnet.gluon.rnn.projected_cell import LSTMPCell
from mxnet.gluon.rnn.rnn_cell import GRUCell, HybridRecurrentCell, LSTMCell, RecurrentCell, RNNCell
from mxnet.gluon.rnn.rnn_layer import GRU, LSTM, RNN

__all__ = [
    "BidirectionalCell",
    "Conv1DGRUCell",
    "Conv1DLSTMCell",
    "Conv1DRNNCell",
    "Conv2DGRUCell",
    "Conv2DLSTMCell",
    "Conv2DRNNCell",
    "Conv3DGRUCell",
    "Conv3DLSTMCell",
    "Conv3DRNNCell",
    "DropoutCell",
    "GRU",
    "GRUCell",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTM",
    "LSTMCell",
    "LSTMPCell",
    "ModifierCell",
    "RNN",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "VariationalDropoutCell",
    "ZoneoutCell",
]
