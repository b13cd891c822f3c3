"""Loaders of images from record files and lists, and transforms of images together with the rectangles in them."""

from mxnet._renamed import attribute_finder
from mxnet.gluon.contrib.data.vision import dataloader, transforms
from mxnet.gluon.contrib.data.vision.dataloader import (
    ImageBboxDataLoader,
    ImageDataLoader,
    create_bbox_augment,
    create_image_augment,
)
from mxnet.gluon.contrib.data.vision.transforms.bbox import (
    ImageBboxCrop,
    ImageBboxRandomCropWithConstraints,
    ImageBboxRandomExpand,
    ImageBboxRandomFlipLeftRight,
    ImageBboxResize,
)

__all__ = [
    "ImageBboxCrop",
    "ImageBboxDataLoader",
    "ImageBboxRandomCropWithConstraints",
    "ImageBboxRandomExpand",
    "ImageBboxRandomFlipLeftRight",
    "ImageBboxResize",
    "ImageDataLoader",
    "create_bbox_augment",
    "create_image_augment",
    "dataloader",
    "transforms",
]

__getattr__ = attribute_finder(__name__)
