"""The table that `Block.summary` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mxnet import autograd
from mxnet.numpy import ndarray

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["summary_table"]


def _shape_of(output: Any) -> str:
    if isinstance(output, ndarray):
        return str(tuple(output.shape))
    if isinstance(output, list | tuple):
        return "[" + ", ".join(_shape_of(part) for part in output) + "]"
    return type(output).__name__


def _named_blocks(block: Block, depth: int, name: str) -> Iterator[tuple[Block, str]]:
    yield block, "  " * depth + (f"{name}: " if name else "") + type(block).__name__
    for child_name, child in block._children.items():
        yield from _named_blocks(child, depth + 1, child_name)


def summary_table(block: Block, inputs: tuple[Any, ...]) -> str:
    """Run a block and describe all its parts.

    Parameters
    ----------
    block : Block
        Initialized.
    inputs : tuple
        Arguments of `forward`.

    Returns
    -------
    str
        One line for each part; sizes of shared parameters count once.
    """
    shapes: dict[int, str] = {}
    handles = []
    for part, _ in _named_blocks(block, 0, ""):

        def note(which: Block, args: tuple[Any, ...], output: Any) -> None:
            del args
            shapes[id(which)] = _shape_of(output)

        handles.append(part.register_forward_hook(note))
    try:
        with autograd.pause():
            block(*inputs)
    finally:
        for handle in handles:
            handle.detach()

    seen: set[int] = set()
    totals = {True: 0, False: 0}
    rows = []
    for part, label in _named_blocks(block, 0, ""):
        own = 0
        for parameter in part._reg_params.values():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                size = math.prod(parameter.shape or (0,))
                own += size
                totals[parameter.grad_req != "null"] += size
        rows.append((label, shapes.get(id(part), "-"), str(own)))
    rows.append(("trainable", "", str(totals[True])))
    rows.append(("fixed", "", str(totals[False])))

    header = ("layer", "output shape", "parameters")
    left = max(len(row[0]) for row in [header, *rows]) + 2
    middle = max(len(row[1]) for row in [header, *rows]) + 4
    lines = [f"{a:<{left}}{b:<{middle}}{c:>10}" for a, b, c in [header, *rows]]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-2], rule, *lines[-2:]])
