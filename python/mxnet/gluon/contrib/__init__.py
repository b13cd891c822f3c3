"""The training loop with event handlers, and data for detection."""

from mxnet._renamed import attribute_finder
from mxnet.gluon.contrib import data, estimator

__all__ = ["data", "estimator"]

__getattr__ = attribute_finder(__name__)
