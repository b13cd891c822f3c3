"""Blocks that are chains or bundles of other blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, overload

from mxnet import numpy as np
from mxnet.gluon.block import Block, HybridBlock
from mxnet.numpy import ndarray

__all__ = ["Concatenate", "HybridConcatenate", "HybridSequential", "Sequential"]

_Self = TypeVar("_Self", bound="_Chain")


class _Chain(Block):
    """Calls blocks one after another; each gets the output of the one before."""

    def add(self, *blocks: Block) -> None:
        """Append blocks.

        Parameters
        ----------
        *blocks : Block

        Raises
        ------
        TypeError
            If one of `blocks` is no block; nothing is added then.
        """
        for block in blocks:
            if not isinstance(block, Block):
                raise TypeError(f"{type(self).__name__}.add: `blocks` must be blocks, found {type(block).__name__}")
        for block in blocks:
            self.register_child(block)

    def forward(self, x: Any, *args: Any) -> Any:
        """Run the blocks one after the other.

        Parameters
        ----------
        x : ndarray
        *args
            Further arguments of the first block. Where a block returns a tuple or list, its parts are the arguments of
            the next one.

        Returns
        -------
        object
            What the last block returns; `x` (with `args`, as a tuple) if there are no blocks.
        """
        for block in self._children.values():
            x = block(x, *args)
            args = ()
            if isinstance(x, tuple | list):
                x, args = x[0], tuple(x[1:])
        return (x, *args) if args else x

    @overload
    def __getitem__(self, key: int) -> Block: ...
    @overload
    def __getitem__(self: _Self, key: slice) -> _Self: ...
    def __getitem__(self, key: int | slice) -> Block:
        blocks = list(self._children.values())
        if not isinstance(key, slice):
            return blocks[key]
        part = type(self)()
        part.add(*blocks[key])
        return part

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._children.values())


class Sequential(_Chain):
    """Calls blocks one after another; each gets the output of the one before.

    Examples
    --------
    >>> import mxnet as mx
    >>> net = mx.gluon.nn.Sequential()
    >>> net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.Dense(2))
    >>> net.initialize()
    >>> net(mx.np.ones((1, 3))).shape
    (1, 2)
    """


class HybridSequential(_Chain, HybridBlock):
    """As `Sequential`, for hybrid blocks.

    Examples
    --------
    >>> from mxnet.gluon import nn
    >>> net = nn.HybridSequential()
    >>> net.add(nn.Dense(4), nn.Dense(2))
    >>> len(net[:1])
    1
    """

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Register a child block.

        Parameters
        ----------
        block : HybridBlock
        name : str, optional
            The number of children so far by default.

        Raises
        ------
        TypeError
            If `block` is not hybrid.
        """
        if not isinstance(block, HybridBlock):
            raise TypeError(f"{type(self).__name__} takes hybrid blocks, found {type(block).__name__}")
        super().register_child(block, name)


class Concatenate(Sequential):
    """Calls blocks with the same input and joins their outputs.

    Parameters
    ----------
    axis : int
        Axis along which the outputs are joined.

    Examples
    --------
    >>> net = mx.gluon.nn.Concatenate(axis=-1)
    >>> net.add(mx.gluon.nn.Identity(), mx.gluon.nn.Activation('relu'))
    >>> net(np.array([[-1.0, 2.0]]))
    array([[-1.,  2.,  0.,  2.]])
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"(axis={self.axis}", 1)

    def forward(self, x: ndarray, *args: Any) -> ndarray:
        """Run the blocks on the same input.

        Parameters
        ----------
        x : ndarray
        *args
            Further arguments of every block.

        Returns
        -------
        ndarray
            The outputs, joined along `axis`.
        """
        return np.concatenate([block(x, *args) for block in self._children.values()], axis=self.axis)


class HybridConcatenate(HybridSequential):
    """As `Concatenate`, for hybrid blocks.

    Parameters
    ----------
    axis : int
        Axis along which the outputs are joined.

    Examples
    --------
    >>> net = mx.gluon.nn.HybridConcatenate(axis=-1)
    >>> net.add(mx.gluon.nn.Identity(), mx.gluon.nn.Activation('relu'))
    >>> net(np.array([[-1.0, 2.0]]))
    array([[-1.,  2.,  0.,  2.]])
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"(axis={self.axis}", 1)

    def forward(self, x: ndarray, *args: Any) -> ndarray:
        """Run the blocks on the same input.

        Parameters
        ----------
        x : ndarray
        *args
            Further arguments of every block.

        Returns
        -------
        ndarray
            The outputs, joined along `axis`.
        """
        return np.concatenate([block(x, *args) for block in self._children.values()], axis=self.axis)
