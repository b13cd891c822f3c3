"""Conditions and loops: `cond`, `foreach`, `while_loop`."""

from mxnet.numpy_extension._control_flow import cond as cond
from mxnet.numpy_extension._control_flow import foreach as foreach
from mxnet.numpy_extension._control_flow import while_loop as while_loop

__all__ = ["cond", "foreach", "while_loop"]
