"""The tables of `Block.summary` and `visualization.print_summary`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mxnet import _core, autograd
from mxnet._operator_watch import Scopes, operations
from mxnet.numpy import ndarray

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["BlockRow", "block_rows", "summary_table"]


@dataclass(frozen=True)
class BlockRow:
    """One row: a block of a network that has run."""

    path: str
    """Names of attributes joined by dots; empty for the network itself."""
    depth: int
    name: str
    kind: str
    output: str
    """Shape of the output, "-" if the block did not run."""
    parameters: int
    """Numbers in its own parameters that no block before has counted."""
    trainable: int
    is_leaf: bool
    flops: int
    """Floating-point operations of its own operators, without those of its children."""
    bytes: int
    """Bytes of the results of these operators."""


def _shape_of(output: Any) -> str:
    if isinstance(output, ndarray):
        return str(tuple(output.shape))
    if isinstance(output, list | tuple):
        return "[" + ", ".join(_shape_of(part) for part in output) + "]"
    if isinstance(output, Mapping):
        return "{" + ", ".join(f"{key}: {_shape_of(part)}" for key, part in output.items()) + "}"
    return type(output).__name__


def _named_blocks(block: Block, depth: int, path: str, name: str) -> Iterator[tuple[Block, int, str, str]]:
    yield block, depth, path, name
    for child_name, child in block._children.items():
        yield from _named_blocks(child, depth + 1, f"{path}.{child_name}" if path else child_name, child_name)


def block_rows(block: Block, inputs: tuple[Any, ...], named_inputs: Mapping[str, Any]) -> list[BlockRow]:
    """Run a block and describe it and all its parts, parents before children.

    Parameters
    ----------
    block : Block
        Initialized.
    inputs : tuple
    named_inputs : mapping
        Arguments of `forward`.

    Returns
    -------
    list of BlockRow
        Sizes of shared parameters count once.
    """
    shapes: dict[int, str] = {}
    handles = []
    for part in block._blocks():

        def note(which: Block, args: tuple[Any, ...], output: Any) -> None:
            del args
            shapes[id(which)] = _shape_of(output)

        handles.append(part.register_forward_hook(note))
    flops: dict[str, int] = {}
    sizes_in_bytes: dict[str, int] = {}
    scopes = Scopes(block)

    def count(op: str, operands: Sequence[ndarray], arrays: Sequence[ndarray]) -> None:
        shared = {_core.storage_of(x) for x in operands}
        if all(_core.storage_of(array) in shared for array in arrays):
            return  # A view: nothing is computed.
        path = scopes.path()
        flops[path] = flops.get(path, 0) + operations(
            op, [x.shape for x in operands], [array.shape for array in arrays]
        )
        sizes_in_bytes[path] = sizes_in_bytes.get(path, 0) + sum(array.nbytes for array in arrays)

    try:
        with autograd.pause():
            _core.with_op_hook(count, lambda: block(*inputs, **named_inputs))
    finally:
        scopes.close()
        for handle in handles:
            handle.detach()

    seen: set[int] = set()
    rows = []
    for part, depth, path, name in _named_blocks(block, 0, "", ""):
        new = [parameter for parameter in part._reg_params.values() if id(parameter) not in seen]
        seen.update(map(id, new))
        sizes = [(math.prod(parameter.shape or (0,)), parameter.grad_req != "null") for parameter in new]
        rows.append(
            BlockRow(
                path,
                depth,
                name,
                type(part).__name__,
                shapes.get(id(part), "-"),
                sum(size for size, _ in sizes),
                sum(size for size, is_trained in sizes if is_trained),
                not part._children,
                flops.get(path, 0),
                sizes_in_bytes.get(path, 0),
            )
        )
    return rows


def summary_table(block: Block, inputs: tuple[Any, ...]) -> str:
    """Run a block and describe its input and all its parts.

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
    found = block_rows(block, inputs, {})
    rows = [("input", _shape_of(inputs[0] if len(inputs) == 1 else inputs), "0", "", "")]
    for row in found:
        label = "  " * row.depth + (f"{row.name}: " if row.name else "") + row.kind
        rows.append((label, row.output, str(row.parameters), str(row.flops), str(row.bytes)))
    total, trainable = sum(row.parameters for row in found), sum(row.trainable for row in found)
    rows.append(("trainable", "", str(trainable), "", ""))
    rows.append(("fixed", "", str(total - trainable), "", ""))
    rows.append(("total", "", str(total), str(sum(row.flops for row in found)), str(sum(row.bytes for row in found))))

    header = ("layer", "output shape", "parameters", "FLOPs", "bytes")
    left = max(len(row[0]) for row in [header, *rows]) + 2
    middle = max(len(row[1]) for row in [header, *rows]) + 4
    last = [max(len(row[i]) for row in [header, *rows]) + 2 for i in (3, 4)]
    lines = [
        f"{a:<{left}}{b:<{middle}}{c:>10}{d:>{last[0]}}{e:>{last[1]}}".rstrip() for a, b, c, d, e in [header, *rows]
    ]
    rule = "-" * max(map(len, lines))
    return "\n".join([lines[0], rule, *lines[1:-3], rule, *lines[-3:]])
