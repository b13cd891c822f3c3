"""Weights of text networks from local safetensors files, with our names or those of Hugging Face's files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mxnet.base import PathLike
from mxnet.gluon._checkpoint import load_arrays
from mxnet.gluon.block import Block
from mxnet.gluon.model_zoo.vision._classifier import weights_folder
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

__all__ = ["Change", "Rule", "from_file", "translated"]

_Net = TypeVar("_Net", bound=Block)
# The conversion of an array: named arrays, given the groups that the pattern matched.
Change = Callable[[ndarray, Sequence[str]], Mapping[str, ndarray]]
# A pattern for a whole name, and our name for it with its groups; None drops the array.
Rule = tuple[str, str | Change | None]


def translated(arrays: Mapping[str, ndarray], rules: Sequence[Rule]) -> dict[str, ndarray]:
    """Arrays under our names.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    rules : sequence of (str, str or callable or None)
        The first pattern that fits a whole name decides.

    Returns
    -------
    dict of str to ndarray
        Names that fit no pattern stay.
    """
    found: dict[str, ndarray] = {}
    for name, array in arrays.items():
        for pattern, ours in rules:
            match = re.fullmatch(pattern, name)
            if match is None:
                continue
            if callable(ours):
                found.update(ours(array, match.groups()))
            elif ours is not None:
                found[match.expand(ours)] = array
            break
        else:
            found[name] = array
    return found


def from_file(net: _Net, name: str, rules: Sequence[Rule], root: PathLike | None, device: DeviceLike) -> _Net:
    """Read the weights of a network from ``<root>/<name>.safetensors``.

    Parameters
    ----------
    net : Block
    name : str
    rules : sequence
        See `translated`; for files whose names are not the network's.
    root : path, optional
        A folder, see `weights_folder`.
    device : Device or sequence of Device

    Returns
    -------
    Block
        `net`.

    Raises
    ------
    FileNotFoundError
        If there is no such file. Nothing is downloaded.
    FileFormatError, ValueError, TypeError
        See `Block.load_parameters`.
    """
    path = os.path.join(weights_folder(root), f"{name}.safetensors")
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"{name}: `pretrained=True` reads the local file {path!r}, which does not exist; nothing is downloaded"
        )
    arrays = load_arrays(path)
    if set(arrays) != set(net.collect_params()):
        arrays = translated(arrays, rules)
    net.load_dict(arrays, device=device, cast_dtype=True)
    return net
