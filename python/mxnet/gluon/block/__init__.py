"""Blocks: the building parts of networks."""

from mxnet.gluon.block.base import Block
from mxnet.gluon.block.hybrid import HybridBlock

__all__ = ["Block", "HybridBlock"]
