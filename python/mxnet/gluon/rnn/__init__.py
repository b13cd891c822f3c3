"""Recurrent layers and cells."""

from mxnet.gluon.rnn.combined_cell import BidirectionalCell, HybridSequentialRNNCell, SequentialRNNCell
from mxnet.gluon.rnn.modifier_cell import DropoutCell, ModifierCell, ResidualCell, VariationalDropoutCell, ZoneoutCell
from mxnet.gluon.rnn.rnn_cell import GRUCell, HybridRecurrentCell, LSTMCell, RecurrentCell, RNNCell
from mxnet.gluon.rnn.rnn_layer import GRU, LSTM, RNN

__all__ = [
    "BidirectionalCell",
    "DropoutCell",
    "GRU",
    "GRUCell",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTM",
    "LSTMCell",
    "ModifierCell",
    "RNN",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "VariationalDropoutCell",
    "ZoneoutCell",
]
