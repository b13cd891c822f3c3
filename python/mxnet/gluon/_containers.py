"""A warning for blocks in lists and dictionaries, which are not registered as children."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mxnet._caller_warning import warn_caller

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["warn_of_unregistered"]

# Attributes of every block that hold registered parameters and children.
_OWN = {"_children", "_reg_params", "_forward_hooks", "_forward_pre_hooks", "_op_hooks"}


def warn_of_unregistered(block: Block, kind: type[Block]) -> None:
    """Warn of blocks that attributes hold in lists, tuples or dictionaries and that are no one's children.

    Parameters
    ----------
    block : Block
        It and all blocks below are looked at.
    kind : type
        The class of blocks.
    """
    registered = {id(part) for part in block._blocks()}
    for part in block._blocks():
        for name, value in vars(part).items():
            if name in _OWN or not isinstance(value, list | tuple | dict):
                continue
            lost = [inner for inner in _inside(value) if isinstance(inner, kind) and id(inner) not in registered]
            if lost:
                first = type(lost[0]).__name__
                which = f"1 block ({first})" if len(lost) == 1 else f"{len(lost)} blocks ({first} the first)"
                warn_caller(
                    f"{type(part).__name__}.{name} holds {which} without registration: parameters in it are neither "
                    "initialized nor trained nor saved; use `register_child` or nn.Sequential"
                )


def _inside(value: Any) -> Iterator[Any]:
    """All objects in a container, including nested containers."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, str | bytes):
        return
    for part in value:
        if isinstance(part, list | tuple | dict):
            yield from _inside(part)
        else:
            yield part
