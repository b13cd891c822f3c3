"""Transforms of images together with the rectangles in them."""

from mxnet.gluon.contrib.data.vision.transforms import bbox

__all__ = ["bbox"]
