"""Base classes of transforms, whose `repr` shows their arguments."""

from mxnet._argument_repr import argument_repr
from mxnet.gluon.block import Block, HybridBlock

__all__ = ["HybridTransform", "Transform"]


class Transform(Block):
    """A block without parameters or children whose `repr` shows its arguments."""

    def __repr__(self) -> str:
        return argument_repr(self)


class HybridTransform(HybridBlock):
    """A hybrid block without parameters or children whose `repr` shows its arguments."""

    def __repr__(self) -> str:
        return argument_repr(self)
