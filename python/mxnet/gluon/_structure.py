"""A textual description of a network, by which a parameter file is matched with a network."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mxnet import _core
from mxnet._atomic_file import write_atomically
from mxnet.base import PathLike
from mxnet.error import FileFormatError

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["check", "describe", "files", "write"]


def files(prefix: PathLike) -> tuple[str, str]:
    """The files with a prefix: structure and parameters."""
    name = os.fspath(prefix)
    return f"{name}-model.json", f"{name}-model.params"


def describe(block: Block) -> dict[str, Any]:
    """Class, own parameters and children of a block, as JSON data."""
    return {
        "class": type(block).__name__,
        "parameters": list(block._reg_params),
        "children": {name: describe(child) for name, child in block._children.items()},
    }


def write(block: Block, path: str) -> None:
    """Write the description of a block atomically."""
    text = json.dumps(describe(block), indent=1)

    def into(name: str) -> None:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)

    write_atomically(path, into)


def check(block: Block, path: str) -> None:
    """Compare a block with the description in a file.

    Raises
    ------
    FileFormatError
        If the file holds no description.
    ValueError
        With the first place where the block differs.
    """
    _core.check_file(path)
    with open(path, encoding="utf-8") as file:
        try:
            saved = json.load(file)
        except ValueError as error:
            raise FileFormatError(f"{path!r} is no description of a network: {error}") from error
    if not isinstance(saved, dict) or set(saved) != {"class", "parameters", "children"}:
        raise FileFormatError(f"{path!r} is no description of a network")
    difference = _difference(saved, describe(block), "the network")
    if difference is not None:
        raise ValueError(f"{path!r} describes another network: {difference}")


def _difference(saved: dict[str, Any], found: dict[str, Any], path: str) -> str | None:
    for key in ("class", "parameters"):
        if saved[key] != found[key]:
            return f"{key} of {path} should be {saved[key]}, found {found[key]}"
    if list(saved["children"]) != list(found["children"]):
        return f"children of {path} should be {list(saved['children'])}, found {list(found['children'])}"
    for name, child in saved["children"].items():
        difference = _difference(child, found["children"][name], f"{name!r} in {path}")
        if difference is not None:
            return difference
    return None
