"""Optimizers: rules that change weights by their gradients."""

from mxnet.optimizer import contrib
from mxnet.optimizer.adaptive import AdaGrad, Adam, AdamW, RMSProp
from mxnet.optimizer.descent import DCASGD, SGLD, Ftrl, Signum
from mxnet.optimizer.layerwise import LAMB, LANS, LARS
from mxnet.optimizer.moments import FTML, AdaBelief, AdaDelta, Adamax, Nadam
from mxnet.optimizer.optimizer import Optimizer, create, register
from mxnet.optimizer.sgd import NAG, SGD
from mxnet.optimizer.updater import Updater, get_updater

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "LANS",
    "LARS",
    "NAG",
    "SGD",
    "SGLD",
    "AdaBelief",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Updater",
    "contrib",
    "create",
    "get_updater",
    "register",
]
