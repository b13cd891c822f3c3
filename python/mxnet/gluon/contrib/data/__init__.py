"""Loaders of images, and of images with rectangles."""

from mxnet.gluon.contrib.data import vision

__all__ = ["vision"]
