"""Ragged arrays: rows of different lengths without padding.

>>> import mxnet as mx
>>> x = mx.ragged.array([[1.0, 2.0], [3.0]])
>>> mx.npx.softmax(x, axis=1)
ragged.array([[0.26894143, 0.7310586 ],
              [1.]])
"""

from mxnet.ragged._array import RaggedArray
from mxnet.ragged._build import array, from_dense, from_lengths
from mxnet.ragged._exchange import from_arrow, from_buffers, to_buffers
from mxnet.ragged._segments import (
    pool,
    segment_max,
    segment_mean,
    segment_min,
    segment_outer,
    segment_softmax,
    segment_sum,
)
from mxnet.ragged._table import names

__all__ = [
    "RaggedArray",
    "array",
    "from_arrow",
    "from_buffers",
    "from_dense",
    "from_lengths",
    "names",
    "pool",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_outer",
    "segment_softmax",
    "segment_sum",
    "to_buffers",
]
