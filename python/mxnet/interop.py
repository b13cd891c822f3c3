"""Introduces our arrays to packages that keep a list of the kinds of array they know.

Most packages need no introduction: those that follow the array API standard ask an array for its namespace, those that
call NumPy functions reach ours through NumPy's protocols.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from mxnet import _core
from mxnet import numpy as np

__all__ = ["use_autoray", "use_einops"]


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


def use_autoray() -> None:
    """Give autoray, and so quimb and cotengra, the functions of its backend ``mxnet`` that `mx.np` has otherwise.

    autoray calls `mx.np` for our arrays without this. Some algorithms also need ``linalg.svd`` with reduced factors,
    ``complex`` of two parts, ``scipy.linalg.solve_triangular``, and ``to_device``. Calling it again does nothing.

    Raises
    ------
    ImportError
        If autoray is not installed.
    """
    autoray = importlib.import_module("autoray")

    def svd(a: np.ndarray, full_matrices: bool = False, **options: Any) -> Any:
        return np.linalg.svd(a, full_matrices=full_matrices, **options)

    def join(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
        return real + 1j * imag

    def solve_triangular(a: np.ndarray, b: np.ndarray, trans: int | str = 0, lower: bool = False) -> np.ndarray:
        if trans not in (0, 1, 2, "N", "T", "C"):
            raise ValueError(f"solve_triangular: `trans` must be 0, 1, 2, 'N', 'T' or 'C', found {trans!r}")
        if trans not in (0, "N"):
            a, lower = a.mT.conj() if trans in (2, "C") else a.mT, not lower
        columns = b[..., None] if b.ndim == 1 else b
        x: np.ndarray = _core.namespaces["op"]["solve_triangular"](a, columns, lower)
        return x[..., 0] if b.ndim == 1 else x

    def to_device(x: np.ndarray, device: Any) -> np.ndarray:
        return x if device is None else x.to_device(device)

    functions = {"linalg.svd": svd, "complex": join, "scipy.linalg.solve_triangular": solve_triangular}
    for name, function in functions.items():
        autoray.register_function("mxnet", name, function)
    autoray.to_device.register("mxnet")(to_device)
