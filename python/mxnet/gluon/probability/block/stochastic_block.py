"""Blocks that gather losses while they run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

from mxnet.gluon.block import Block, HybridBlock

__all__ = ["StochasticBlock", "StochasticSequential"]

_Self = TypeVar("_Self", bound="StochasticSequential")


class StochasticBlock(HybridBlock):
    """A block whose `forward` gathers losses, such as the divergences of a variational model.

    `forward` is decorated with `StochasticBlock.collectLoss` and calls `add_loss`; after a call of the block the losses
    are in `losses`.

    Parameters
    ----------
    **kwargs
        Arguments of `HybridBlock`, which takes none; others are a TypeError.

    Examples
    --------
    >>> from mxnet.gluon.probability import Normal, StochasticBlock, kl_divergence
    >>> class Latent(StochasticBlock):
    ...     @StochasticBlock.collectLoss
    ...     def forward(self, loc, scale):
    ...         posterior = Normal(loc, scale)
    ...         self.add_loss(kl_divergence(posterior, Normal(np.zeros_like(loc), 1.0)))
    ...         return posterior.sample()
    >>> latent = Latent()
    >>> latent(np.array([2.0]), np.array([1.0])).shape, latent.losses
    ((1,), [array([2.])])
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._losses: list[Any] = []
        self._pending: list[Any] = []

    def add_loss(self, loss: Any) -> None:
        """Add a loss to those of the running call.

        Parameters
        ----------
        loss : ndarray
        """
        self._pending.append(loss)

    @staticmethod
    def collectLoss(func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator of `forward`: the losses become a second result, which the call of the block takes away.

        Parameters
        ----------
        func : callable
            The method `forward`.

        Returns
        -------
        callable
            Gives the result of `func` and the list of losses.
        """

        @functools.wraps(func)
        def forward(self: StochasticBlock, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
            self._pending = []
            out = func(self, *args, **kwargs)
            losses, self._pending = self._pending, []
            return out, losses

        forward._collects_losses = True  # type: ignore[attr-defined]
        return forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the block and keep its losses.

        Parameters
        ----------
        *args, **kwargs
            Arguments of `forward`.

        Returns
        -------
        object
            What the undecorated `forward` returns. Hooks see it together with the list of losses.

        Raises
        ------
        ValueError
            If `forward` is not decorated with `collectLoss`.
        """
        if not getattr(self.forward, "_collects_losses", False):
            raise ValueError(f"{type(self).__name__}.forward must be decorated with StochasticBlock.collectLoss")
        out, losses = super().__call__(*args, **kwargs)
        self._losses = losses
        return out

    @property
    def losses(self) -> list[Any]:
        """List of ndarray: losses of the last call."""
        return self._losses


class StochasticSequential(StochasticBlock):
    """Calls blocks one after another and gathers the losses of stochastic ones.

    Parameters
    ----------
    **kwargs
        Arguments of `HybridBlock`, which takes none; others are a TypeError.

    Examples
    --------
    >>> from mxnet.gluon.probability import StochasticBlock, StochasticSequential
    >>> class Squares(StochasticBlock):
    ...     @StochasticBlock.collectLoss
    ...     def forward(self, x):
    ...         self.add_loss((x**2).sum())
    ...         return 2 * x
    >>> net = StochasticSequential()
    >>> net.add(Squares(), mx.gluon.nn.Identity(), Squares())
    >>> net(np.array([1.0])), net.losses  # a list for each stochastic block
    (array([4.]), [[array(1.)], [array(4.)]])
    """

    def add(self, *blocks: Block) -> None:
        """Append blocks.

        Parameters
        ----------
        *blocks : HybridBlock

        Raises
        ------
        TypeError
            If one is not hybrid.
        """
        for block in blocks:
            if not isinstance(block, HybridBlock):
                raise TypeError(f"{type(self).__name__}.add: blocks must be hybrid, found {type(block).__name__}")
            self.register_child(block)

    @StochasticBlock.collectLoss
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
        tuple
            What the last block returns, and a list with the list of losses of each stochastic block.
        """
        for block in self._children.values():
            x = block(x, *args)
            args = ()
            if isinstance(x, tuple | list):
                x, args = x[0], tuple(x[1:])
            if isinstance(block, StochasticBlock):
                self.add_loss(block.losses)
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
