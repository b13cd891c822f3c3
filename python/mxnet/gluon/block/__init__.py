"""Blocks: the building parts of networks."""

from mxnet._renamed import attribute_finder
from mxnet.gluon.block.base import Block
from mxnet.gluon.block.hybrid import HybridBlock

__all__ = ["Block", "HybridBlock"]

__getattr__ = attribute_finder(__name__, "mxnet.gluon.symbol_block")
