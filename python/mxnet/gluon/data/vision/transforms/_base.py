"""Base classes of transforms: their `repr` shows their arguments, and they take arrays of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet._argument_repr import argument_repr
from mxnet.gluon.block import Block, HybridBlock

__all__ = ["HybridTransform", "TakesNumpy", "Transform"]


class TakesNumpy(HybridBlock):
    """A hybrid block that makes arrays of the arrays of NumPy that it is given: samples of datasets often are such."""

    _takes_numpy = True

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = tuple(np.array(x) if isinstance(x, onp.ndarray) else x for x in args)
        return super()._run(given, kwargs)


class Transform(Block):
    """A block without parameters or children whose `repr` shows its arguments."""

    def __repr__(self) -> str:
        return argument_repr(self)


class HybridTransform(TakesNumpy):
    """A hybrid block without parameters or children whose `repr` shows its arguments."""

    def __repr__(self) -> str:
        return argument_repr(self)
