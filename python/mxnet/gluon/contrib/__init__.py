"""The training loop with event handlers."""

from mxnet.gluon.contrib import estimator

__all__ = ["estimator"]
