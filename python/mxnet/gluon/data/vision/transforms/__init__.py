"""Transforms of images, as blocks. Those on pixels take (h, w, c) or (n, h, w, c)."""

from mxnet.gluon.data.vision.transforms.color import (
    Normalize,
    RandomBrightness,
    RandomColorJitter,
    RandomContrast,
    RandomGray,
    RandomHue,
    RandomLighting,
    RandomSaturation,
    ToTensor,
)
from mxnet.gluon.data.vision.transforms.compose import (
    Cast,
    Compose,
    HybridCompose,
    HybridRandomApply,
    RandomApply,
)
from mxnet.gluon.data.vision.transforms.geometry import (
    CenterCrop,
    CropResize,
    RandomCrop,
    RandomFlipLeftRight,
    RandomFlipTopBottom,
    RandomResizedCrop,
    RandomRotation,
    Resize,
    Rotate,
)

__all__ = [
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "HybridCompose",
    "HybridRandomApply",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomGray",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "ToTensor",
]
