"""Checks of the arguments of functions on graphs."""

from __future__ import annotations

from typing import Any

from mxnet import error
from mxnet._core import asarray, ndarray
from mxnet.sparse._compressed import csr_array
from mxnet.sparse._parts import integers


def checked(g: Any, what: str) -> csr_array:
    if not isinstance(g, csr_array):
        raise error.UnsupportedError(f"{what}: a graph is a csr_array (see `from_edges`), found {type(g).__name__}")
    return g


def features(x: Any, count: int, what: str) -> ndarray:
    array = asarray(x)
    if array.ndim == 0 or array.shape[0] != count:
        raise error.ShapeError(f"{what} must have {count} rows, found shape {array.shape}")
    return array


def checked_nodes(nodes: Any, count: int, what: str) -> ndarray:
    chosen = integers(nodes, f"{what}: nodes")
    if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < count:
        bad = int(chosen.min()) if int(chosen.min()) < 0 else int(chosen.max())
        raise error.IndexError(f"{what}: node {bad} is out of range for a graph of {count} nodes")
    return chosen
