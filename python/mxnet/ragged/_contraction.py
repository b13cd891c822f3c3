"""`einsum` with ragged operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._partition import Partition

_op = _core.namespaces["op"]


def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = True,
) -> Any:
    """Sums of products. Ragged operands have the labels of their first and ragged axes in common."""
    if out is not None:
        raise error.UnsupportedError("einsum: ragged arrays take no `out`")
    if order != "K":
        raise error.UnsupportedError(f"einsum: ragged arrays have the order 'K', found {order!r}")
    if not operands or not isinstance(operands[0], str):
        raise error.UnsupportedError("einsum: ragged operands take subscripts as text, such as 'bld,de->ble'")
    text, arrays = operands[0].replace(" ", ""), list(operands[1:])
    arrays = [x if isinstance(x, RaggedArray | ndarray) else _core.asarray(x) for x in arrays]
    labels, output = _labels(text, arrays)
    first, lead = _lead(text, labels, arrays)
    row = lead[-1]
    kept = _kept(text, lead, output)
    rest = output if not kept else "".join(label for label in output if label not in lead)
    has_defaults = dtype is None and casting == "safe" and optimize is True
    result = _by_kernel(first, labels, arrays, lead, kept, rest) if has_defaults else None
    if result is None:
        parts, values = [], []
        for own, x in zip(labels, arrays, strict=True):
            part, rows = _rows(first, lead, own, x)
            parts.append(part)
            values.append(rows)
        target = row + rest if kept else rest
        result = np.einsum(f"{','.join(parts)}->{target}", *values, dtype=dtype, casting=casting, optimize=optimize)
        # Sums over ragged axes, the innermost first.
        for partition in reversed(first._partitions[kept - 1 :] if kept else ()):
            result = _op["ragged_sum"](result, partition.offsets).astype(result.dtype, copy=False)
    if kept > 1:
        return RaggedArray(result, *first._partitions[: kept - 1])
    if kept == 1 and output[0] != lead[0]:
        result = np.einsum(f"{lead[0]}{rest}->{output}", result)
    return result


def _labels(text: str, arrays: Sequence[Any]) -> tuple[list[str], str]:
    """The labels of each operand and of the result."""
    if "." in text:
        raise error.UnsupportedError(f"einsum: ragged operands have a letter for each axis, found {text!r}")
    left, arrow, output = text.partition("->")
    labels = left.split(",")
    if len(labels) != len(arrays):
        raise error.ValueError(f"einsum: {text!r} names {len(labels)} operands, {len(arrays)} are given")
    if not arrow:
        output = "".join(sorted(label for label in set(left) - {","} if left.count(label) == 1))
    for i, (own, x) in enumerate(zip(labels, arrays, strict=True)):
        if len(own) != x.ndim:
            raise error.ShapeError(f"einsum: operand {i} of shape {x.shape} has {x.ndim} axes, found {own!r}")
    if len(set(output)) < len(output):
        raise error.ValueError(f"einsum: the output of {text!r} names an axis twice")
    return labels, output


def _lead(text: str, labels: Sequence[str], arrays: Sequence[Any]) -> tuple[RaggedArray, str]:
    """A ragged operand, and the labels of its first and its ragged axes, which all ragged operands have."""
    found = [(own, x) for own, x in zip(labels, arrays, strict=True) if isinstance(x, RaggedArray)]
    own, first = found[0]
    lead = own[: 1 + first.num_ragged]
    for its, x in found:
        if its[: 1 + x.num_ragged] != lead:
            raise error.UnsupportedError(
                f"einsum: in {text!r} ragged operands have the axes {lead!r} and {its[: 1 + x.num_ragged]!r}, not the "
                "same\n  hint: npx.scaled_dot_product_attention multiplies the elements of two rows with each other"
            )
        first._check_same(x, "einsum")
    for its, x in zip(labels, arrays, strict=True):
        behind = its[len(lead) :] if isinstance(x, RaggedArray) else its
        wrong = sorted(set(behind) & set(lead if isinstance(x, RaggedArray) else lead[1:]))
        if wrong or len(set(lead)) < len(lead):
            raise error.UnsupportedError(
                f"einsum: in {text!r} axis {(wrong or [lead])[0]!r} is ragged and stands in another place of an operand"
                "\n  hint: ragged.from_dense makes a ragged array of a padded one"
            )
    return first, lead


def _kept(text: str, lead: str, output: str) -> int:
    """How many of the leading axes the result has: the first ones."""
    kept = sum(label in output for label in lead)
    is_front = output[:kept] == lead[:kept] or (kept == 1 and lead[0] in output)
    if not is_front:
        raise error.UnsupportedError(
            f"einsum: the result of {text!r} has ragged axes, so it must begin with {lead[: max(kept, 2)]!r}"
        )
    return kept


def _rows(r: RaggedArray, lead: str, own: str, x: Any) -> tuple[str, ndarray]:
    """Labels and elements of an operand with one axis for all rows of the values in place of the leading ones."""
    if isinstance(x, RaggedArray):
        return lead[-1] + own[len(lead) :], x.values
    dense = x if isinstance(x, ndarray) else _core.asarray(x)
    if lead[0] not in own:
        return own, dense
    if own.count(lead[0]) > 1:
        dense = np.einsum(f"{own}->{lead[0]}{own.replace(lead[0], '')}", dense)
    else:
        dense = np.moveaxis(dense, own.index(lead[0]), 0)
    if dense.shape[0] != len(r):
        raise error.ShapeError(
            f"einsum: axis {lead[0]!r} has {len(r)} rows in one operand, {dense.shape[0]} in another"
        )
    for partition in r._partitions:
        dense = partition.expand(dense)
    return lead[-1] + own.replace(lead[0], ""), dense


def _by_kernel(
    r: RaggedArray, labels: Sequence[str], arrays: Sequence[Any], lead: str, kept: int, rest: str
) -> ndarray | None:
    """Two operands for which a kernel needs no memory for a matrix an element; None for others."""
    if len(arrays) != 2 or r.num_ragged != 1 or any(len(set(own)) < len(own) for own in labels):
        return None
    if any(x.dtype.kind not in "fV" for x in arrays):  # the kernels take real floats
        return None
    partition: Partition = r._partitions[0]
    is_ragged = [isinstance(x, RaggedArray) for x in arrays]
    if all(is_ragged):
        one, two = (own[2:] for own in labels)
        if kept != 1 or set(one) & set(two) or sorted(one + two) != sorted(rest):
            return None
        x, z = arrays[0].values, arrays[1].values
        total = x.shape[0]
        if not (x.size and z.size):
            return None
        found = _op["ragged_outer"](x.reshape((total, -1)), z.reshape((total, -1)), partition.offsets)
        found = found.reshape((len(r), *x.shape[1:], *z.shape[1:]))
        return np.einsum(f"{lead[0]}{one}{two}->{lead[0]}{rest}", found)
    at = is_ragged.index(True)
    own, its, w = labels[at][2:], labels[1 - at], arrays[1 - at]
    summed = set(own) & set(its)
    others = its.replace(lead[0], "")
    new = "".join(label for label in others if label not in summed)
    if kept != 2 or lead[0] not in its or summed != set(own) or not own or not new or sorted(new) != sorted(rest):
        return None
    x, w = arrays[at].values, w if isinstance(w, ndarray) else _core.asarray(w)
    if w.shape[its.index(lead[0])] != len(r) or not x.size:
        return None
    w = np.einsum(f"{its}->{lead[0]}{own}{rest}", w)
    tail = w.shape[1 + len(own) :]
    if w.shape[1 : 1 + len(own)] != x.shape[1:]:
        return None
    size = x.size // x.shape[0]
    found = _op["ragged_matmul"](x.reshape((x.shape[0], size)), w.reshape((len(r), size, -1)), partition.offsets)
    result: ndarray = found.reshape((x.shape[0], *tail))
    return result
