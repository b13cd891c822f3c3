"""Transforms of images together with the rectangles in them."""

from mxnet._renamed import attribute_finder
from mxnet.gluon.contrib.data.vision import transforms
from mxnet.gluon.contrib.data.vision.transforms.bbox import (
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
    "transforms",
]

__getattr__ = attribute_finder(__name__)
