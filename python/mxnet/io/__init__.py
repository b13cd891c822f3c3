"""Iterators over batches: tuples of arrays, data first, then labels.

Each one begins anew by itself when it has come to its end. New programs use `mxnet.gluon.data`.
"""

from mxnet._renamed import attribute_finder
from mxnet.io.array_iter import NDArrayIter
from mxnet.io.data_iter import DataDesc, DataIter
from mxnet.io.file_iter import CSVIter, MNISTIter, MXDataIter
from mxnet.io.image_record_iter import ImageRecordIter
from mxnet.io.wrapped_iter import PrefetchingIter, ResizeIter

__all__ = [
    "CSVIter",
    "DataDesc",
    "DataIter",
    "ImageRecordIter",
    "MNISTIter",
    "MXDataIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]

__getattr__ = attribute_finder(__name__)
