"""Image datasets and transforms."""

from mxnet.gluon.data.vision import transforms
from mxnet.gluon.data.vision.datasets import Digits
from mxnet.gluon.data.vision.image_datasets import ImageFolderDataset, ImageListDataset
from mxnet.gluon.data.vision.image_record import ImageRecordDataset

__all__ = ["Digits", "ImageFolderDataset", "ImageListDataset", "ImageRecordDataset", "transforms"]
