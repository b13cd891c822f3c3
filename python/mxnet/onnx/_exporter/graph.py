"""Graphs of one size, as the exporter reads them from the text of a file."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn

import numpy as onp

from mxnet import _core
from mxnet.device import cpu
from mxnet.error import UnsupportedError
from mxnet.numpy import ndarray

__all__ = ["Graph", "Input", "Node", "Number", "View", "fold_constants", "to_numpy"]

# Results up to this size are computed at export even if their operands are smaller.
_MAX_FOLDED_BYTES = 1 << 16


class View(NamedTuple):
    """Elements of a buffer; strides and offset count elements."""

    buffer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def is_dense(self) -> bool:
        """Whether it is in C order without gaps, apart from its offset."""
        expected = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and stride != expected:
                return self.size == 0
            expected *= n
        return True


class Number(NamedTuple):
    """A Python number as an operand; `dtype` is None if it takes the dtype of the other operands."""

    value: Any
    dtype: str | None


@dataclasses.dataclass
class Input:
    """An argument of the function, or an array that it found."""

    view: View
    argument: int | None
    array: str
    is_written: bool


@dataclasses.dataclass
class Node:
    """One call of an operator."""

    op: str
    attributes: dict[str, Any]
    inputs: list[View | Number | None]
    outputs: list[View]
    versions: list[tuple[int, int]]
    is_assignment: bool
    dtype: str | None
    training: bool
    caller: str
    line: str
    promotion: str
    used: list[bool] = dataclasses.field(default_factory=list)

    def refuse(self, problem: str, instead: str) -> NoReturn:
        """Raise UnsupportedError that names the operator and its line.

        Parameters
        ----------
        problem : str
            What ONNX does not have.
        instead : str
            What the user can do.
        """
        at = f"\n  called at {self.line}" if self.line else ""
        raise UnsupportedError(f"export_model: `{self.caller}`: {problem}{at}\n  hint: {instead}")


def _real(text: str) -> float:
    return float(onp.uint64(int(text)).view(onp.float64))


def _attribute(value: Any) -> Any:
    """An attribute as a Python value."""
    if not isinstance(value, dict) or len(value) != 1:
        return [_attribute(item) for item in value] if isinstance(value, list) else value
    ((kind, content),) = value.items()
    if kind in ("float", "real", "wide"):
        return float(content)
    if kind == "complex":
        return complex(*map(float, content))
    # Index expressions, whose items tell apart slices and arrays by their kind.
    return value if kind in ("slice", "array", "mask", "index") else content


def _number(value: Mapping[str, Any]) -> Any:
    """The number of an operand; floats are given by their bits."""
    ((kind, content),) = value.items()
    if kind == "complex":
        return complex(*map(_real, content))
    return _real(content) if kind in ("real", "wide") else content


def _view(entry: Mapping[str, Any]) -> View:
    return View(entry["buffer"], tuple(entry["shape"]), tuple(entry["strides"]), entry["offset"], entry["dtype"])


def _operand(entry: Mapping[str, Any] | None) -> View | Number | None:
    if entry is None:
        return None
    if "view" in entry:
        return _view(entry["view"])
    if "number" in entry:
        return Number(_number(entry["number"]), None)
    return Number(_number(entry["constant"]), entry["dtype"])


class Graph:
    """A graph whose sizes are all known.

    Attributes
    ----------
    document : dict
        The entries of the file.
    inputs : list of Input
    nodes : list of Node
    outputs : list of View
    """

    def __init__(self, text: str) -> None:
        self.document: dict[str, Any] = json.loads(text)
        promotion = self.document["promotion"]
        self.inputs = [
            Input(_view(x["view"]), x.get("argument"), x.get("array", ""), x.get("written") is not None)
            for x in self.document["inputs"]
        ]
        self.nodes = [
            Node(
                x["op"],
                {name: _attribute(value) for name, value in (x["attrs"] or {}).items()},
                [_operand(operand) for operand in x["inputs"]],
                [_view(y) for y in x["outputs"]],
                [(old, new) for old, new in x["versions"]],
                bool(x["assignment"]),
                x["dtype"],
                bool(x["training"]),
                x.get("caller") or x["op"],
                x.get("line") or "",
                promotion,
            )
            for x in self.document["nodes"]
        ]
        self.outputs = [_view(y) for y in self.document["outputs"]]
        read = {y.buffer for y in self.outputs}
        for node in reversed(self.nodes):
            node.used = [y.buffer in read or bool(node.versions) for y in node.outputs]
            if any(node.used):
                read |= {x.buffer for x in node.inputs if isinstance(x, View)} | {old for old, _ in node.versions}
        self.nodes = [node for node in self.nodes if any(node.used)]


def to_numpy(array: ndarray) -> onp.ndarray:
    """The elements; those of bfloat16 as uint16, because NumPy has no such type."""
    host = array.to_device(cpu())
    return (host.view("uint16") if str(array.dtype) == "bfloat16" else host).asnumpy()


def _size(dtype: str) -> int:
    return 2 if dtype == "bfloat16" else onp.dtype(dtype).itemsize


def fold_constants(
    graphs: Sequence[Graph], arrays: Mapping[str, ndarray], is_fixed: Mapping[str, bool]
) -> dict[int, tuple[View, onp.ndarray]]:
    """Compute what depends on constants and parameters only, and remove its nodes.

    Parameters
    ----------
    graphs : sequence of Graph
        The same graph at several sizes. A node is removed if it is the same in all of them.
    arrays : mapping of str to ndarray
        The arrays that the graphs need.
    is_fixed : mapping of str to bool
        For each of them, whether it is the same at all sizes.

    Returns
    -------
    dict of int to (View, ndarray)
        For each computed buffer that is still read the view with which it is defined, and its elements.
    """
    first = graphs[0]
    known = {x.view.buffer for x in first.inputs if x.argument is None and not x.is_written and is_fixed[x.array]}
    random = _random_operators()
    folded: list[int] = []
    views = list(zip(*(graph.nodes for graph in graphs), strict=True)) if _have_equal_length(graphs) else []
    for at, nodes in enumerate(views):
        node = nodes[0]
        read = [x for x in node.inputs if isinstance(x, View)]
        if node.versions or node.op in random or any(x.buffer not in known for x in read):
            continue
        if any(_described(other) != _described(node) for other in nodes[1:]):
            continue
        made = sum(y.size * _size(y.dtype) for y in node.outputs)
        if made > max(_MAX_FOLDED_BYTES, 2 * sum(x.size * _size(x.dtype) for x in read)):
            continue
        folded.append(at)
        known |= {y.buffer for y in node.outputs}
    if not folded:
        return {}
    chosen = set(folded)
    removed = [first.nodes[at] for at in folded]
    for graph in graphs:
        graph.nodes = [node for at, node in enumerate(graph.nodes) if at not in chosen]
    read_by_others = {y.buffer for y in first.outputs}
    for node in first.nodes:
        read_by_others |= {x.buffer for x in node.inputs if isinstance(x, View)} | {old for old, _ in node.versions}
    results = [y for node in removed for y in node.outputs if y.buffer in read_by_others]
    return dict(zip((y.buffer for y in results), _run(first, removed, results, arrays), strict=True))


def _have_equal_length(graphs: Sequence[Graph]) -> bool:
    return len({len(graph.nodes) for graph in graphs}) == 1


def _described(node: Node) -> Any:
    return node.op, node.attributes, node.inputs, node.outputs, node.dtype


@cache
def _random_operators() -> set[str]:
    return {entry["name"] for entry in _core.registry() if entry["samples"]}


def _run(
    graph: Graph, nodes: Sequence[Node], results: Sequence[View], arrays: Mapping[str, ndarray]
) -> list[tuple[View, onp.ndarray]]:
    """The results of some nodes of a graph that need no arguments."""
    if not results:
        return []
    made = {y.buffer for node in nodes for y in node.outputs}
    read = {x.buffer for node in nodes for x in node.inputs if isinstance(x, View)} - made
    entries = {entry["outputs"][0]["buffer"]: entry for entry in graph.document["nodes"]}
    document = {
        **graph.document,
        "version": 1,
        "inputs": [entry for entry in graph.document["inputs"] if entry["buffer"] in read],
        "nodes": [entries[node.outputs[0].buffer] for node in nodes],
        "outputs": [
            {**view._asdict(), "shape": list(view.shape), "strides": list(view.strides), "read_only": False}
            for view in results
        ],
    }
    document.pop("dynamic", None)
    found = _core.LoadedGraph(json.dumps(document), dict(arrays)).run([])
    return [(view, to_numpy(array)) for view, array in zip(results, found, strict=True)]
