"""Elementwise functions: applied to the values, after the operands have been aligned to the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray


def broadcast_operand(r: RaggedArray, x: Any, name: str) -> Any:
    """A dense operand shaped to broadcast to the values of `r`: a scalar, a uniform part, or a row for each row."""
    shape = tuple(x.shape)
    uniform = r.values.ndim - 1
    if len(shape) <= uniform:
        return x
    if len(shape) > r.ndim:
        raise error.ShapeError(f"{name}: an operand of shape {shape} does not broadcast to {r.shape}")
    shape = (1,) * (r.ndim - len(shape)) + shape
    lead = shape[: 1 + r.num_ragged]
    for axis, size in enumerate(lead[1:], 1):
        if size != 1:
            raise error.ShapeError(
                f"{name}: axis {axis} is ragged in shape {r.shape}, so it must be 1 in the dense operand, found {size}"
                f"; ragged.from_dense makes a ragged array of it"
            )
    tail = shape[1 + r.num_ragged :]
    count = r._partitions[0].count
    if r._partitions[0].is_traced:
        # Without a condition on the number of rows, so that a graph for any number serves one row, too.
        x = np.broadcast_to(x.reshape((lead[0], *tail)), (count, *tail))
    elif lead[0] == count:
        x = x.reshape((count, *tail))
    elif lead[0] == 1:
        return x.reshape(tail)
    else:
        raise error.ShapeError(f"{name}: {lead[0]} rows of the dense operand for {count} ragged rows")
    for partition in r._partitions:
        x = partition.expand(x)
    return x


def aligned(operands: Sequence[Any], name: str) -> tuple[RaggedArray, list[Any]]:
    """The ragged operand whose rows the result has, and all operands as arrays that broadcast to its values."""
    first = next((x for x in operands if isinstance(x, RaggedArray)), None)
    if first is None:
        raise error.UnsupportedError(f"{name}: no ragged array among the operands, but another argument is one")
    found: list[Any] = []
    for x in operands:
        if isinstance(x, RaggedArray):
            first._check_same(x, name)
            if x.ndim != first.ndim:
                raise error.ShapeError(
                    f"{name}: ragged operands of {first.ndim} and {x.ndim} axes; give the uniform axes that are "
                    f"missing the size 1"
                )
            found.append(x.values)
        elif isinstance(x, ndarray | onp.ndarray | onp.generic | list | tuple):
            dense = x if isinstance(x, ndarray) else _core.asarray(x)
            found.append(broadcast_operand(first, dense, name) if dense.ndim else x)
        else:
            found.append(x)
    return first, found


def _target(first: RaggedArray, out: Any, name: str) -> Any:
    if not isinstance(out, RaggedArray):
        raise error.UnsupportedError(f"{name}: `out` must be a ragged array, found {type(out).__name__!r}")
    first._check_same(out, name)
    return out.values


def elementwise(
    function: Callable[..., Any], name: str, operands: Sequence[Any], rest: Sequence[Any], named: dict[str, Any]
) -> Any:
    """Calls an elementwise function: `operands` are arrays and numbers, `rest` and `named` further arguments."""
    first, values = aligned(operands, name)
    named = dict(named)
    out = named.pop("out", None)
    outs: tuple[Any, ...] = out if isinstance(out, tuple) else (() if out is None else (out,))
    outs = () if all(x is None for x in outs) else outs
    if outs:
        targets = tuple(None if x is None else _target(first, x, name) for x in outs)
        named["out"] = targets if len(targets) > 1 else targets[0]
    where = named.get("where")
    if isinstance(where, RaggedArray):
        first._check_same(where, name)
        named["where"] = where.values
    result = function(*values, *rest, **named)
    if outs and len(outs) == 1:
        return outs[0]
    if isinstance(result, tuple):
        return tuple(first.with_values(x) for x in result)
    return first.with_values(result)
