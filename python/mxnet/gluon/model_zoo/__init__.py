"""Networks of published papers."""

from mxnet.gluon.model_zoo import vision

__all__ = ["vision"]
