"""Data for detection."""

from mxnet.gluon.contrib.data import vision

__all__ = ["vision"]
