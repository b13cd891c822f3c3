"""Transforms of an image and of the rectangles in it."""

from mxnet.gluon.contrib.data.vision.transforms.bbox import utils
from mxnet.gluon.contrib.data.vision.transforms.bbox.bbox import (
    ImageBboxCrop,
    ImageBboxRandomCropWithConstraints,
    ImageBboxRandomExpand,
    ImageBboxRandomFlipLeftRight,
    ImageBboxResize,
)

__all__ = [
    "ImageBboxCrop",
    "ImageBboxRandomCropWithConstraints",
    "ImageBboxRandomExpand",
    "ImageBboxRandomFlipLeftRight",
    "ImageBboxResize",
    "utils",
]
