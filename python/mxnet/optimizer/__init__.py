"""Optimizers: rules that change weights by their gradients."""

from mxnet.optimizer.adaptive import AdaGrad, Adam, AdamW, RMSProp
from mxnet.optimizer.optimizer import Optimizer, create, register
from mxnet.optimizer.sgd import NAG, SGD
from mxnet.optimizer.updater import Updater, get_updater

__all__ = [
    "NAG",
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSProp",
    "Updater",
    "create",
    "get_updater",
    "register",
]
