"""Graphs as Python objects: the view that passes and partitioners written in Python read and modify."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as onp

from mxnet import _core

__all__ = ["GraphNode", "GraphValue", "TracedGraph"]


_operators: dict[str, dict[str, Any]] = {}


def _operator(name: str) -> dict[str, Any]:
    """The registry entry of an operator; ValueError if there is none."""
    if name not in _operators:
        _operators.update((entry["name"], entry) for entry in _core.registry())
    if name not in _operators:
        # An operator that was added at run time; raises ValueError if there is none.
        _core.added_operator(name)
        return {"version": 1, "samples": False}
    return _operators[name]


class GraphValue:
    """A value in a graph: elements of a buffer that a node reads or writes.

    Attributes
    ----------
    buffer : int
        Number of the buffer. A buffer is written once, so its elements never change.
    shape, strides : tuple of int
        Strides count elements.
    offset : int
        First element.
    dtype : str
    """

    __slots__ = ("buffer", "dtype", "is_read_only", "offset", "shape", "strides")

    def __init__(
        self,
        buffer: int,
        shape: Sequence[int],
        dtype: str,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        is_read_only: bool = False,
    ) -> None:
        self.buffer, self.shape, self.dtype = buffer, tuple(shape), dtype
        dense = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))
        self.strides = dense if strides is None else tuple(strides)
        self.offset, self.is_read_only = offset, is_read_only

    def _key(self) -> tuple[Any, ...]:
        return self.buffer, self.shape, self.strides, self.offset, self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphValue) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"b{self.buffer}: {self.dtype} {self.shape}"

    @property
    def num_bytes(self) -> int:
        """Size of the elements in bytes."""
        return math.prod(self.shape) * onp.dtype("uint16" if self.dtype == "bfloat16" else self.dtype).itemsize

    def _document(self) -> dict[str, Any]:
        return {
            "buffer": self.buffer,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "offset": self.offset,
            "dtype": self.dtype,
            "read_only": self.is_read_only,
        }


def _value(entry: dict[str, Any]) -> GraphValue:
    read_only = bool(entry.get("read_only"))
    return GraphValue(
        entry["buffer"], entry["shape"], entry["dtype"], entry["strides"], entry["offset"], is_read_only=read_only
    )


def _python_value(value: Any) -> Any:
    """An attribute as a Python value."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind in ("float", "int", "bool", "dtype", "device"):
            return content
    return value


def _described(value: Any, before: Any) -> Any:
    """An attribute in the file format; `before` is its previous value."""
    if isinstance(value, float):
        return {"float": value}
    if isinstance(before, dict) and len(before) == 1 and not isinstance(value, dict):
        return {next(iter(before)): value}
    return list(value) if isinstance(value, tuple) else value


class GraphNode:
    """One call of an operator.

    Attributes
    ----------
    op : str
        Name of the operator.
    inputs : list of (GraphValue, int, float, bool, complex or None)
        Arrays, numbers, and None for an argument that was not given.
    outputs : list of GraphValue
    attributes : dict of str to object
    line : str or None
        The line of the program that called it.
    """

    def __init__(
        self,
        op: str,
        inputs: Sequence[Any],
        outputs: Sequence[GraphValue],
        attributes: dict[str, Any],
        line: str | None = None,
        document: dict[str, Any] | None = None,
    ) -> None:
        self.op, self.line = op, line
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.attributes = attributes
        self._before = document or {}

    def __repr__(self) -> str:
        outputs = ", ".join(map(repr, self.outputs))
        inputs = ", ".join(f"b{x.buffer}" if isinstance(x, GraphValue) else repr(x) for x in self.inputs)
        return f"{outputs} = {self.op}({inputs})"

    @property
    def writes_in_place(self) -> bool:
        """Whether the node changes a part of a buffer: such nodes cannot be replaced or moved to a subgraph."""
        return bool(self._before.get("versions")) or bool(self._before.get("assignment"))

    def _arrays(self) -> Iterator[GraphValue]:
        return (x for x in self.inputs if isinstance(x, GraphValue))

    def _document(self) -> dict[str, Any]:
        before = self._before
        old = before.get("attrs") or {}
        inputs: list[dict[str, Any] | None] = []
        known = before.get("inputs", [])
        for at, x in enumerate(self.inputs):
            was = known[at] if at < len(known) else None
            if isinstance(x, GraphValue):
                inputs.append({"view": x._document()})
            elif x is None:
                inputs.append(None)
            elif was is not None and "view" not in was and _number(was) == x:
                inputs.append(was)
            else:
                inputs.append({"number": _scalar(x)})
        return {
            "op": self.op,
            "version": before["version"] if before.get("op") == self.op else _operator(self.op)["version"],
            "attrs": {name: _described(value, old.get(name)) for name, value in self.attributes.items()},
            "inputs": inputs,
            "outputs": [y._document() for y in self.outputs],
            "versions": before.get("versions", []),
            "dtype": before.get("dtype") if before.get("op") == self.op else None,
            "training": before.get("training", False),
            "assignment": before.get("assignment", False),
            "rng_block": before.get("rng_block", 0),
            "rng_stream": before.get("rng_stream", 0),
            "line": self.line,
        }


def _bits(value: float) -> str:
    return str(int(onp.float64(value).view(onp.uint64)))


def _scalar(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, float):
        return {"real": _bits(value)}
    if isinstance(value, complex):
        return {"complex": [_bits(value.real), _bits(value.imag)]}
    raise TypeError(f"an input of a node must be a GraphValue, a number or None, found {type(value).__name__}")


def _float(text: str) -> float:
    return float(onp.uint64(int(text)).view(onp.float64))


def _number(entry: dict[str, Any] | None) -> Any:
    """The index of an operand."""
    if entry is None:
        return None
    ((kind, content),) = (entry.get("number") or entry["constant"]).items()
    if kind in ("bool", "int", "uint"):
        return content
    if kind == "complex":
        return complex(*map(_float, content))
    return _float(content)


class TracedGraph:
    """A graph that passes read and change. It is checked as a file is when the pass returns.

    Attributes
    ----------
    name : str
    nodes : list of GraphNode
        In execution order: each node comes after those whose results it reads.
    inputs : list of GraphValue
        Arguments and the arrays that the function found.
    outputs : list of GraphValue
    """

    def __init__(self, text: str) -> None:
        self._document = json.loads(text)
        self.name: str = self._document["name"]
        self.inputs = [_value(entry["view"]) for entry in self._document["inputs"]]
        self.outputs = [_value(entry) for entry in self._document["outputs"]]
        self.nodes = [
            GraphNode(
                entry["op"],
                [
                    _value(x["view"]) if x is not None and "view" in x else (None if x is None else _number(x))
                    for x in entry["inputs"]
                ],
                [_value(y) for y in entry["outputs"]],
                {name: _python_value(value) for name, value in (entry["attrs"] or {}).items()},
                entry.get("line"),
                entry,
            )
            for entry in self._document["nodes"]
        ]

    def __str__(self) -> str:
        lines = [f"graph {self.name}:", *(f"  {value!r}" for value in self.inputs)]
        lines += [f"  {node!r}" for node in self.nodes]
        return "\n".join([*lines, f"  return {', '.join(f'b{value.buffer}' for value in self.outputs)}"])

    def _text(self) -> str:
        nodes = [node._document() for node in self.nodes]
        outputs = [value._document() for value in self.outputs]
        return json.dumps(self._document | {"nodes": nodes, "outputs": outputs})

    def source(self, value: GraphValue) -> str | None:
        """Where an input comes from.

        Parameters
        ----------
        value : GraphValue

        Returns
        -------
        str or None
            ``"argument 0"``, ``"captured"``, ``"constant"``; None if a node makes it.
        """
        for entry in self._document["inputs"]:
            if entry["buffer"] == value.buffer:
                if "argument" in entry:
                    return f"argument {entry['argument']}"
                return "constant" if entry.get("constant") else "captured"
        return None

    def producer(self, value: GraphValue) -> GraphNode | None:
        """The node that makes a value; None for inputs.

        Parameters
        ----------
        value : GraphValue

        Returns
        -------
        GraphNode or None
        """
        for node in self.nodes:
            made = {y.buffer for y in node.outputs} | {new for _, new in node._before.get("versions", [])}
            if value.buffer in made:
                return node
        return None

    def consumers(self, value: GraphValue) -> list[GraphNode]:
        """The nodes that read a value's buffer.

        Parameters
        ----------
        value : GraphValue

        Returns
        -------
        list of GraphNode
        """
        return [node for node in self.nodes if value.buffer in {x.buffer for x in node._arrays()}]

    def new_value(self, shape: Sequence[int], dtype: Any) -> GraphValue:
        """A value of a new buffer, for the output of a new node.

        Parameters
        ----------
        shape : sequence of int
        dtype : dtype

        Returns
        -------
        GraphValue
        """
        name = dtype if dtype == "bfloat16" else onp.dtype(dtype).name
        value = GraphValue(len(self._document["buffers"]), shape, name)
        self._document["buffers"].append(value.num_bytes)
        return value

    def insert(self, before: GraphNode | None, node: GraphNode) -> GraphNode:
        """Put a node in front of another one, or at the end.

        Parameters
        ----------
        before : GraphNode or None
        node : GraphNode

        Returns
        -------
        GraphNode
            `node`.
        """
        at = len(self.nodes) if before is None else self.nodes.index(before)
        self.nodes.insert(at, node)
        return node

    def replace(
        self, node: GraphNode, op: str, inputs: Sequence[Any], attributes: dict[str, Any] | None = None
    ) -> GraphNode:
        """Let another operator make a node's outputs.

        Parameters
        ----------
        node : GraphNode
        op : str
            Name of an operator whose outputs have the same shapes and dtypes.
        inputs : sequence of GraphValue, number or None
        attributes : dict, optional

        Returns
        -------
        GraphNode
            The new node.

        Raises
        ------
        ValueError
            If the node changes a part of a buffer.
        """
        if node.writes_in_place:
            raise ValueError(f"replace: `{node.op}` changes a part of a buffer")
        # The kind of the previous attribute value determines how the new one is written.
        new = GraphNode(op, inputs, node.outputs, dict(attributes or {}), node.line)
        new._before = {"training": node._before.get("training", False)}
        if op == node.op:
            new._before |= {"attrs": node._before.get("attrs"), "op": op, "version": node._before["version"]}
        self.nodes[self.nodes.index(node)] = new
        return new

    def replace_value(self, old: GraphValue, new: GraphValue) -> None:
        """Let all nodes, and the results, that read `old` read `new`.

        Parameters
        ----------
        old, new : GraphValue
        """
        for node in self.nodes:
            node.inputs = [new if isinstance(x, GraphValue) and x == old else x for x in node.inputs]
        self.outputs = [new if value == old else value for value in self.outputs]

    def remove(self, node: GraphNode) -> None:
        """Take a node out.

        Parameters
        ----------
        node : GraphNode

        Raises
        ------
        ValueError
            If a node, or a result of the graph, reads its output.
        """
        for value in node.outputs:
            if self.consumers(value) or any(value.buffer == y.buffer for y in self.outputs):
                raise ValueError(f"remove: the graph reads b{value.buffer}, which `{node.op}` makes")
        self.nodes.remove(node)

    def _results(self) -> set[int]:
        written = [entry.get("written") for entry in self._document["inputs"]]
        return {value.buffer for value in self.outputs} | {buffer for buffer in written if buffer is not None}

    def subgraph(self, nodes: Iterable[GraphNode]) -> TracedGraph:
        """Some nodes as a graph of their own.

        Parameters
        ----------
        nodes : iterable of GraphNode
            Of this graph.

        Returns
        -------
        TracedGraph
            Its arguments are the values that the nodes read and others make, its outputs what others read.

        Raises
        ------
        ValueError
            If a node changes a part of a buffer or draws random numbers.
        """
        chosen = set(map(id, nodes))
        inside = [node for node in self.nodes if id(node) in chosen]
        for node in inside:
            if node.writes_in_place or _operator(node.op)["samples"]:
                raise ValueError(f"subgraph: `{node.op}` changes an array or draws random numbers")
        made = {y.buffer for node in inside for y in node.outputs}
        outside = [node for node in self.nodes if id(node) not in chosen]
        read = {x.buffer for node in outside for x in node._arrays()} | self._results()
        read |= {old for node in outside for old, _ in node._before.get("versions", [])}
        arguments = list(dict.fromkeys(x for node in inside for x in node._arrays() if x.buffer not in made))
        part = object.__new__(TracedGraph)
        part.name = f"{self.name}.{len(inside)}"
        buffers = list(self._document["buffers"])
        part.inputs, numbers = [], {}
        for value in arguments:
            numbers[value] = GraphValue(len(buffers), value.shape, value.dtype)
            buffers.append(value.num_bytes)
            part.inputs.append(numbers[value])
        part.outputs = [y for node in inside for y in node.outputs if y.buffer in read]
        part.nodes = []
        for node in inside:
            inputs = [numbers.get(x, x) if isinstance(x, GraphValue) else x for x in node.inputs]
            part.nodes.append(GraphNode(node.op, inputs, node.outputs, dict(node.attributes), node.line, node._before))
        part._document = {
            **self._document,
            "name": part.name,
            "num_rng_blocks": 0,
            "buffers": buffers,
            "inputs": [
                {"buffer": value.buffer, "argument": at, "view": value._document()}
                for at, value in enumerate(part.inputs)
            ],
        }
        return part

    def compile(self) -> Callable[..., list[Any]]:
        """A function that runs the graph; of graphs whose inputs are all arguments, as `subgraph` makes them.

        Returns
        -------
        callable
            Takes dense arrays of the shapes and dtypes of `inputs`; returns a list of arrays.

        Raises
        ------
        ValueError
            If the graph contradicts itself.
        """
        loaded = _core.LoadedGraph(self._text(), {})
        return lambda *arrays: loaded.run(list(arrays))
