"""Image datasets and transforms."""

from mxnet.gluon.data.vision import transforms
from mxnet.gluon.data.vision.datasets import Digits

__all__ = ["Digits", "transforms"]
