"""Tables of the parts of networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mxnet import _core, autograd
from mxnet._renamed import attribute_finder
from mxnet.gluon._summary import block_rows
from mxnet.gluon.block import Block

__all__ = ["print_summary"]

__getattr__ = attribute_finder(__name__)

_COLUMNS = ("layer (type)", "output shape", "parameters", "previous layer")


def print_summary(
    symbol: Block,
    shape: Mapping[str, Sequence[int]] | Sequence[int] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print the parts of a network: paths, types, output shapes, numbers of parameters and what ran before them.

    Parameters
    ----------
    symbol : Block
        A network.
    shape : tuple of int, or mapping of str to tuple of int
        Shape of the input, or of each input by its name in `forward`. Nothing is computed: shapes are found out from
        arrays without values.
    line_length : int
        Length of a line in letters.
    positions : sequence of 4 float
        Where columns end, as parts of the line; from 0 to 1, rising.

    Raises
    ------
    TypeError
        If `symbol` is no block.
    ValueError
        If `shape` is missing, or `positions` are not four rising numbers.

    Examples
    --------
    >>> net = mx.gluon.nn.HybridSequential()
    >>> net.add(mx.gluon.nn.Dense(3), mx.gluon.nn.Dense(2))
    >>> net.initialize()
    >>> mx.visualization.print_summary(net, (1, 4), line_length=72)
    ________________________________________________________________________
    layer (type)                   output shape  parame previous layer
    ========================================================================
    0 (Dense)                      (1, 3)        15
    ________________________________________________________________________
    1 (Dense)                      (1, 2)        8      0
    ========================================================================
    parameters: 23
    ________________________________________________________________________
    """
    if not isinstance(symbol, Block):
        raise TypeError(f"print_summary: `symbol` must be a Block, found {type(symbol).__name__}")
    if shape is None:
        raise ValueError("print_summary: `shape` must be given: sizes of a network follow from its input")
    ends = [int(line_length * position) for position in positions]
    if len(ends) != len(_COLUMNS) or sorted(set(ends)) != ends:
        raise ValueError(f"print_summary: `positions` must be {len(_COLUMNS)} rising numbers, found {tuple(positions)}")
    rows, total = _described(symbol, shape)
    print("_" * line_length)
    print(_line(_COLUMNS, ends))
    print("=" * line_length)
    for number, row in enumerate(rows):
        print(_line(row, ends))
        print(("=" if number + 1 == len(rows) else "_") * line_length)
    print(f"parameters: {total}")
    print("_" * line_length)


def _described(net: Block, shape: Mapping[str, Sequence[int]] | Sequence[int]) -> tuple[list[tuple[str, ...]], int]:
    def abstract(sizes: Sequence[int]) -> Any:
        return _core.abstract_array(tuple(sizes), "float32")

    with autograd.pause():
        if isinstance(shape, Mapping):
            found = block_rows(net, (), {name: abstract(sizes) for name, sizes in shape.items()})
        else:
            found = block_rows(net, (abstract(shape),), {})
    rows: list[tuple[str, ...]] = []
    total, previous = 0, ""
    for row in found:
        total += row.parameters
        if row.is_leaf:
            path = row.path or row.kind
            rows.append((f"{path} ({row.kind})", row.output, str(row.parameters), previous))
            previous = path
    return rows, total


def _line(texts: Sequence[str], ends: Sequence[int]) -> str:
    line = ""
    for text, end in zip(texts, ends, strict=True):
        line = (line + text)[: end - 1].ljust(end)
    return line.rstrip()
