"""Key-value stores: sums of gradients over devices and processes, and parameters that are updated where they are kept.

`mx.gluon.Trainer` makes a store from the name that it is given. A program that sends other values calls `create`.
"""

from mxnet._renamed import attribute_finder
from mxnet.kvstore.base import KVStoreBase, create
from mxnet.kvstore.kvstore import KVStore

__all__ = ["KVStore", "KVStoreBase", "create"]

__getattr__ = attribute_finder(__name__)
