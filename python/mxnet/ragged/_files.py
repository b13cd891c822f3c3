"""Ragged arrays in files of named arrays: the parts of each are stored under derived names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mxnet import error
from mxnet.ragged._array import RaggedArray

_VALUES, _OFFSETS = "/ragged.values", "/ragged.offsets."


def parts(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Named arrays, ragged ones as their parts.

    Parameters
    ----------
    arrays : mapping of str to ndarray or RaggedArray

    Returns
    -------
    dict of str to ndarray
    """
    found: dict[str, Any] = {}
    for name, x in arrays.items():
        if isinstance(x, RaggedArray):
            found[name + _VALUES] = x.values
            found.update({f"{name}{_OFFSETS}{i}": offsets for i, offsets in enumerate(x.offsets)})
        else:
            found[name] = x
    return found


def joined(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Named arrays, parts of ragged ones put together.

    Parameters
    ----------
    arrays : mapping of str to ndarray

    Returns
    -------
    dict of str to ndarray or RaggedArray

    Raises
    ------
    ValueError
        If offsets are missing or malformed.
    """
    found: dict[str, Any] = {}
    for key, x in arrays.items():
        if key.endswith(_VALUES):
            name = key[: -len(_VALUES)]
            count = sum(other.startswith(name + _OFFSETS) for other in arrays)
            names = [f"{name}{_OFFSETS}{i}" for i in range(count)]
            if not count or any(other not in arrays for other in names):
                raise error.ValueError(f"load: the ragged array {name!r} lacks offsets")
            found[name] = RaggedArray(x, *(arrays[other] for other in names))
        elif _OFFSETS not in key:
            found[key] = x
    return found
