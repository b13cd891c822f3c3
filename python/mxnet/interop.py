"""Introduces our arrays to packages that keep a list of the kinds of array they know.

Most packages need no introduction: those that follow the array API standard ask an array for its namespace, those that
call NumPy functions reach ours through NumPy's protocols.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from mxnet import numpy as np

__all__ = ["use_einops"]


def use_einops() -> None:
    """Make einops take our arrays in ``einops.rearrange``, ``reduce``, ``repeat``, ``einsum``, ``pack`` and ``unpack``.

    Calling it again does nothing. ``einops.array_api`` works without it.

    Raises
    ------
    ImportError
        If einops is not installed.
    """
    backends = importlib.import_module("einops._backends")
    # Not the public part of einops, which has no way to add a kind of array but to be a subclass of this class.
    if any(known.framework_name == "mxnet" for known in backends.AbstractBackend.__subclasses__()):
        return

    class Backend(backends.AbstractBackend):  # type: ignore[misc, name-defined]
        """What einops asks of arrays, answered by mx.np."""

        framework_name = "mxnet"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, np.ndarray)

        def from_numpy(self, x: Any) -> np.ndarray:
            return np.array(x, dtype=x.dtype)

        def to_numpy(self, x: np.ndarray) -> Any:
            return x.asnumpy()

        def arange(self, start: int, stop: int) -> Any:
            return np.arange(start, stop)

        def stack_on_zeroth_dimension(self, tensors: list[np.ndarray]) -> Any:
            return np.stack(tensors)

        def tile(self, x: np.ndarray, repeats: Sequence[int]) -> Any:
            return np.tile(x, repeats)

        def concat(self, tensors: list[np.ndarray], axis: int) -> Any:
            return np.concatenate(tensors, axis=axis)

        def is_float_type(self, x: np.ndarray) -> bool:
            return x.dtype.kind not in "biu"

        def add_axis(self, x: np.ndarray, new_position: int) -> Any:
            return np.expand_dims(x, new_position)

        def einsum(self, pattern: str, *x: np.ndarray) -> Any:
            return np.einsum(pattern, *x)

    # The class lives as long as einops does, which finds it among the subclasses.
    vars(backends)["_mxnet_backend"] = Backend
