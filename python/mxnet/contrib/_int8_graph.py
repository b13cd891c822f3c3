"""The graph of a quantised network: layers of 8-bit integers in place of those of floats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.contrib._int8_plan import Layer, Plan, View

__all__ = ["rewritten", "with_values"]

_LEVELS = {"int8": 127.0, "uint8": 255.0}
_POOLING = (
    "kernel", "stride", "pad", "pool_type", "pooling_convention", "global_pool", "cudnn_off", "p_value",
    "count_include_pad", "layout",
)  # fmt: skip


def with_values(document: dict[str, Any], views: list[View]) -> dict[str, Any]:
    """The same graph with other results.

    Parameters
    ----------
    document : dict
        The file of a graph.
    views : list of dict
        Values of the graph, as they are defined.

    Returns
    -------
    dict
        The file of a graph that returns a list of these values.
    """
    new = {key: value for key, value in document.items() if key != "training"}
    new["outputs"] = views
    new["results"] = {"list": [{"array": at} for at in range(len(views))]}
    if "dynamic" in new:
        new["dynamic"] = {**new["dynamic"], "outputs": [{"numbers": [], "views": ["definition"]} for _ in views]}
    return new


@dataclass
class _Operand:
    """What a node reads, and how that depends on sizes: the rule of its view, and its numbers by position."""

    entry: dict[str, Any] | None
    rule: str = "fixed"
    numbers: list[tuple[int, Any]] = field(default_factory=list)

    def moved(self, buffer: int, dtype: str) -> _Operand:
        """The same elements of another buffer."""
        assert self.entry is not None
        return _Operand(_view_of(buffer, self.entry["view"], dtype), self.rule, self.numbers)


@dataclass
class _Int8:
    """A value of 8-bit integers: what 1 stands for is `size`, or an array in the graph if that is not known."""

    buffer: int
    dtype: str
    size: float = 0.0
    size_array: _Operand | None = None


def _view_of(buffer: int, view: View, dtype: str) -> dict[str, Any]:
    return {"view": {**view, "buffer": buffer, "dtype": dtype, "read_only": False}}


def _count_numbers(value: Any) -> int:
    """How many numbers of an attribute may depend on sizes."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return 0
    if isinstance(value, int):
        return 1
    if isinstance(value, list):
        return len(value)
    ((kind, content),) = value.items()
    if kind in ("float", "int"):
        return 1
    return len(content) if kind == "floats" else 0


def _view_numbers(rule: str, view: View) -> int:
    return {"contiguous": 1, "strided": 1 + len(view["shape"])}.get(rule, -len(view["shape"])) + len(view["shape"])


class _Rewriter:
    """Builds the document of the new graph."""

    def __init__(
        self,
        plan: Plan,
        arrays: Mapping[str, ndarray],
        ranges: Mapping[str, tuple[float, float]] | None,
        dtype: str,
        granularity: str,
    ) -> None:
        self.plan, self.source = plan, plan.source
        self.ranges, self.dtype, self.granularity = ranges, dtype, granularity
        self.values = plan.values()
        document = self.source.document
        self.dynamic: dict[str, Any] | None = document.get("dynamic")
        self.buffers = list(document["buffers"])
        self.inputs = list(document["inputs"])
        self.input_rules = list(self.dynamic["inputs"]) if self.dynamic else []
        self.nodes: list[dict[str, Any]] = []
        self.rules: list[dict[str, Any]] = []
        self.arrays = dict(arrays)
        self.int8: dict[int, _Int8] = {}

    # ---- pieces of the document ----

    def new_view(self, shape: list[int], dtype: str) -> View:
        """A dense value of a new buffer."""
        buffer = len(self.buffers)
        self.buffers.append(math.prod(shape) * onp.dtype(dtype).itemsize)
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        return {
            "buffer": buffer, "dtype": dtype, "offset": 0, "read_only": False, "shape": shape, "strides": strides,
        }  # fmt: skip

    def array(self, name: str, value: ndarray) -> _Operand:
        """A new parameter of the graph."""
        free, number = name, 0
        while free in self.arrays:
            number += 1
            free = f"{name}_{number}"
        self.arrays[free] = value
        view = self.new_view(list(value.shape), str(value.dtype))
        size = self.buffers[view["buffer"]]
        stored = {**view, "dtype": "uint8", "shape": [size], "strides": [1]}
        self.inputs.append({"array": free, "buffer": view["buffer"], "view": stored})
        self.input_rules.append({"numbers": [], "views": ["fixed"]})
        return _Operand({"view": view})

    def operand(self, at: int, number: int) -> _Operand:
        """What a node of the old graph reads."""
        node = self.source.nodes[at]
        rules = iter(self.dynamic["nodes"][at]["views"]) if self.dynamic else iter(())
        first = sum(map(_count_numbers, node["attrs"].values()))
        first += sum(x is not None and "view" not in x for x in node["inputs"])
        for i, entry in enumerate(node["inputs"]):
            if entry is None or "view" not in entry:
                if i == number:
                    return _Operand(entry)
                continue
            rule = next(rules, "fixed")
            end = first + _view_numbers(rule, entry["view"])
            if i == number:
                known = self.dynamic["nodes"][at]["numbers"] if self.dynamic else []
                return _Operand(
                    entry, rule, [(position - first, x) for position, x in known if first <= position < end]
                )
            first = end
        return _Operand(None)

    def whole(self, view: View) -> _Operand:
        """A value as it is defined."""
        return _Operand({"view": view}, "definition")

    def emit(
        self, op: str, operands: list[_Operand], attrs: dict[str, Any], outputs: list[View], like: dict[str, Any]
    ) -> None:
        """A new node, in place of the node `like`."""
        first = sum(map(_count_numbers, attrs.values()))
        numbers = []
        views = []
        for operand in operands:
            if operand.entry is None:
                continue
            views.append(operand.rule)
            numbers += [[first + position, x] for position, x in operand.numbers]
            first += _view_numbers(operand.rule, operand.entry["view"])
        self.nodes.append(
            {
                "assignment": False, "attrs": attrs, "caller": like.get("caller"), "dtype": None,
                "inputs": [operand.entry for operand in operands], "line": like.get("line"), "op": op,
                "outputs": outputs, "rng_block": 0, "rng_stream": 0, "training": False, "version": 1, "versions": [],
            }
        )  # fmt: skip
        self.rules.append({"numbers": numbers, "views": views})

    # ---- values ----

    def chosen(self, buffer: int) -> tuple[str, float]:
        """Type of a value and what 1 stands for, by its range."""
        assert self.ranges is not None
        low, high = self.ranges[self.values[buffer][0]]
        dtype = self.dtype
        if dtype == "auto":
            dtype = "uint8" if low >= 0 else "int8"
        return dtype, max(abs(low), abs(high)) / _LEVELS[dtype]

    def integers(self, buffer: int, like: dict[str, Any]) -> _Int8:
        """A value as 8-bit integers; quantises it if it is not there."""
        if buffer in self.int8:
            return self.int8[buffer]
        whole = self.source.definitions[buffer]
        name = self.values[buffer][0]
        if self.ranges is None:
            dtype = self.dtype if self.dtype != "auto" else self._type_unmeasured(buffer)
            factor, size = self.new_view([1], "float32"), self.new_view([1], "float32")
            self.emit("quantization_scale", [self.whole(whole)], {"dtype": {"dtype": dtype}}, [factor, size], like)
            by, found = self.whole(factor), _Int8(0, dtype, size_array=self.whole(size))
        else:
            dtype, level = self.chosen(buffer)
            value = np.array([1 / level if level > 0 else 0.0], dtype="float32")
            by, found = self.array(f"{name}.levels", value), _Int8(0, dtype, level)
        target = self.new_view(list(whole["shape"]), dtype)
        found.buffer = target["buffer"]
        self.emit(f"quantize_{dtype}", [self.whole(whole), by], {}, [target], like)
        self.int8[buffer] = found
        return found

    def _type_unmeasured(self, buffer: int) -> str:
        """uint8 for what relu makes, through pooling; otherwise int8."""
        at = self.source.producers.get(buffer)
        while at is not None and self.source.nodes[at]["op"] == "pooling":
            view = self.source.view(self.source.nodes[at], 0)
            at = None if view is None else self.source.producers.get(view["buffer"])
        return "uint8" if at is not None and self.source.nodes[at]["op"] == "relu" else "int8"

    # ---- layers ----

    def weights(self, layer: Layer) -> tuple[ndarray, ndarray, ndarray | None]:
        """Weights of 8 bits, the size of a level (one for each filter) and the bias, normalisation included."""
        source, node = self.source, self.source.nodes[layer.node]

        def vector(of: dict[str, Any], number: int) -> ndarray | None:
            name = source.array_name(of, number)
            return None if name is None else self.arrays[name].astype("float64")

        view = source.view(node, 1)
        found = vector(node, 1)
        assert view is not None
        assert found is not None
        weight, bias = found.reshape(view["shape"]), vector(node, 2)
        along = (-1, *(1,) * (weight.ndim - 1))
        if layer.norm is not None:
            gamma, beta, mean, var = (vector(layer.norm, i) for i in range(1, 5))
            assert beta is not None
            assert mean is not None
            assert var is not None
            factor = 1 / np.sqrt(var + float(layer.norm["attrs"]["eps"]["float"]))
            factor = factor if gamma is None else gamma * factor
            weight = weight * factor.reshape(along)
            bias = beta + ((0 if bias is None else bias) - mean) * factor
        largest = np.abs(weight).reshape(weight.shape[0], -1).max(axis=1)
        if self.granularity == "tensor-wise":
            largest = np.full_like(largest, largest.max())
        size = largest / 127
        factor = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
        integers = np.clip(np.rint(weight * factor.reshape(along)), -127, 127).astype("int8")
        return integers, size, bias

    def layer(self, layer: Layer) -> None:
        """Emits a layer."""
        source, node = self.source, self.source.nodes[layer.node]
        like = source.nodes[layer.last]
        data_operand = self.operand(layer.node, 0)
        assert data_operand.entry is not None
        data = self.integers(data_operand.entry["view"]["buffer"], like)
        weight, size, bias = self.weights(layer)
        inner = self.ranges is not None and self.plan.is_read_by_quantized(layer.result)
        inner = inner and not self.plan.is_read_by_others(layer.result)
        result = source.definitions[layer.result]
        unit, dtype = 1.0, "float32"
        if inner:
            dtype, level = self.chosen(layer.result)
            unit = 1 / level if level > 0 else 0.0
            self.int8[layer.result] = _Int8(0, dtype, level)
            result = self.new_view(list(result["shape"]), dtype)
            self.int8[layer.result].buffer = result["buffer"]
        scale = size * unit * (data.size if data.size_array is None else 1.0)
        addend, addend_scale = _Operand(None), 1.0
        if layer.addend is not None:
            addend = self.operand(*layer.addend)
            assert addend.entry is not None
            known = self.int8.get(addend.entry["view"]["buffer"])
            if known is not None and known.size_array is None:
                addend, addend_scale = addend.moved(known.buffer, known.dtype), known.size
            addend_scale *= unit
        operands = [
            data_operand.moved(data.buffer, data.dtype),
            self.array(f"{layer.name}.weight_quantize", weight),
            self.array(f"{layer.name}.scale", scale.astype("float32")),
            _Operand(None)
            if bias is None
            else self.array(f"{layer.name}.bias_quantize", (bias * unit).astype("float32")),
            addend,
            data.size_array or _Operand(None),
        ]
        own = ("stride", "dilate", "pad", "num_group", "layout") if node["op"] == "convolution" else ("flatten",)
        attrs = {name: node["attrs"][name] for name in own}
        attrs |= {"relu": layer.relu, "addend_scale": {"float": float(addend_scale)}, "dtype": {"dtype": dtype}}
        self.emit(f"int8_{node['op']}", operands, attrs, [result], like)

    def pool(self, at: int) -> None:
        """Emits pooling."""
        node = self.source.nodes[at]
        data = self.operand(at, 0)
        assert data.entry is not None
        found = self.integers(data.entry["view"]["buffer"], node)
        old = node["outputs"][0]
        result = self.new_view(list(old["shape"]), found.dtype)
        attrs = {name: node["attrs"][name] for name in _POOLING}
        self.emit("int8_pooling", [data.moved(found.buffer, found.dtype)], attrs, [result], node)
        self.int8[old["buffer"]] = _Int8(result["buffer"], found.dtype, found.size, found.size_array)
        # Additions take integers whose scale is a number.
        added_as = "integers" if found.size_array is None else "floats"
        if self.plan.is_read_by_others(old["buffer"], added_as):
            size = found.size_array or self.array(
                f"{self.plan.names[at]}.scale", np.array([found.size], dtype="float32")
            )
            self.emit("multiply", [self.whole(result), size], {}, [old], node)

    def document(self) -> dict[str, Any]:
        """The file of the new graph."""
        source = self.source
        skipped = {at for layer in self.plan.layers.values() for at in layer.chain}
        for at, node in enumerate(source.nodes):
            if at in self.plan.layers:
                self.layer(self.plan.layers[at])
            elif at in self.plan.pools:
                self.pool(at)
            elif at not in skipped:
                self.nodes.append(node)
                self.rules.append(self.dynamic["nodes"][at] if self.dynamic else {})
        read = {x["view"]["buffer"] for node in self.nodes for x in node["inputs"] if x is not None and "view" in x}
        read |= source.results | {old for node in self.nodes for old, _ in node.get("versions") or ()}
        kept = [at for at, entry in enumerate(self.inputs) if "argument" in entry or entry["buffer"] in read]
        new = {key: value for key, value in source.document.items() if key != "training"}
        new |= {"buffers": self.buffers, "inputs": [self.inputs[at] for at in kept], "nodes": self.nodes}
        new["trainable"] = []
        if self.dynamic is not None:
            rules = [self.input_rules[at] for at in kept]
            new["dynamic"] = {**self.dynamic, "inputs": rules, "nodes": self.rules}
        return new


def rewritten(
    plan: Plan,
    arrays: Mapping[str, ndarray],
    ranges: Mapping[str, tuple[float, float]] | None,
    dtype: str,
    granularity: str,
) -> tuple[dict[str, Any], dict[str, ndarray]]:
    """The quantised graph.

    Parameters
    ----------
    plan : Plan
    arrays : mapping of str to ndarray
        Parameters of the graph.
    ranges : mapping of str to (float, float), or None
        Ranges of values by name; None: they are found when the graph runs.
    dtype : {'int8', 'uint8', 'auto'}
    granularity : {'tensor-wise', 'channel-wise'}

    Returns
    -------
    (dict, dict of str to ndarray)
        The file of the graph, and its parameters.
    """
    rewriter = _Rewriter(plan, arrays, ranges, dtype, granularity)
    document = rewriter.document()
    needed = {entry["array"] for entry in document["inputs"] if "array" in entry}
    return document, {name: array for name, array in rewriter.arrays.items() if name in needed}
