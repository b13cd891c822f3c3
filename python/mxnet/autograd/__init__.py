"""Recording of operations, gradients of any order, and functions made of them."""

from mxnet._renamed import attribute_finder
from mxnet.autograd._derivatives import hessian, jacobian, jvp, vjp
from mxnet.autograd._function import Function
from mxnet.autograd._recording import (
    backward,
    grad,
    is_recording,
    is_training,
    mark_variables,
    pause,
    predict_mode,
    record,
    set_recording,
    set_training,
    train_mode,
)
from mxnet.autograd._vmap import vmap

__all__ = [
    "Function",
    "backward",
    "grad",
    "hessian",
    "is_recording",
    "is_training",
    "jacobian",
    "jvp",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
    "vjp",
    "vmap",
]

__getattr__ = attribute_finder(__name__)
