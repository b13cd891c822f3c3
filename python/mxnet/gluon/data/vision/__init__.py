"""Image datasets and transforms."""

from mxnet.gluon.data.vision import transforms
from mxnet.gluon.data.vision.cifar import CIFAR10, CIFAR100
from mxnet.gluon.data.vision.datasets import Digits
from mxnet.gluon.data.vision.image_datasets import ImageFolderDataset, ImageListDataset
from mxnet.gluon.data.vision.image_record import ImageRecordDataset
from mxnet.gluon.data.vision.mnist import MNIST, FashionMNIST

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "Digits",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageListDataset",
    "ImageRecordDataset",
    "MNIST",
    "transforms",
]
