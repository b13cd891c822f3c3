"""Networks: parameters, blocks, layers, losses, metrics, data and training."""

from mxnet._renamed import attribute_finder
from mxnet.gluon import contrib, data, loss, metric, model_zoo, nn, probability, rnn, utils
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
from mxnet.gluon.symbol_block import SymbolBlock
from mxnet.gluon.trainer import Trainer

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "Trainer",
    "contrib",
    "data",
    "loss",
    "metric",
    "model_zoo",
    "nn",
    "probability",
    "rnn",
    "utils",
]

__getattr__ = attribute_finder(__name__)
