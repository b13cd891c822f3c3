"""Networks of published papers."""

from mxnet._renamed import attribute_finder
from mxnet.gluon.model_zoo import text, vision

__all__ = ["text", "vision"]

__getattr__ = attribute_finder(__name__)
