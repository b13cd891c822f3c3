"""Networks of published papers."""

from mxnet.gluon.model_zoo import text, vision

__all__ = ["text", "vision"]
