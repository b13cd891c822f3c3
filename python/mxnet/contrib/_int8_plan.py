"""Which parts of a graph have 8-bit integers: layers with what follows them, pooling, and the values between."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Layer", "Plan", "Source"]

LAYERS = ("convolution", "fully_connected")
QUANTIZED = (*LAYERS, "pooling")
_NAMES = {
    "Convolution": "convolution",
    "_npx_convolution": "convolution",
    "FullyConnected": "fully_connected",
    "_npx_fully_connected": "fully_connected",
    "Pooling": "pooling",
    "_npx_pooling": "pooling",
}

View = dict[str, Any]


class Source:
    """The nodes of a graph's file, with who makes and who reads each buffer.

    Parameters
    ----------
    document : dict
        The graph's file as JSON.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.nodes: list[dict[str, Any]] = document["nodes"]
        self.arrays = {entry["buffer"]: entry["array"] for entry in document["inputs"] if "array" in entry}
        self.arguments = {entry["buffer"]: entry["argument"] for entry in document["inputs"] if "argument" in entry}
        self.definitions: dict[int, View] = {
            entry["buffer"]: entry["view"] for entry in document["inputs"] if "argument" in entry
        }
        self.producers: dict[int, int] = {}
        self.readers: dict[int, list[tuple[int, int]]] = {}
        self.results = {view["buffer"] for view in document["outputs"]}
        # Buffers that nodes change in part, or that come about so: their elements are not those of one value.
        self.versioned: set[int] = {
            entry["written"] for entry in document["inputs"] if entry.get("written") is not None
        }
        for at, node in enumerate(self.nodes):
            for view in node["outputs"]:
                self.producers[view["buffer"]] = at
                self.definitions[view["buffer"]] = view
            self.versioned.update(buffer for pair in node.get("versions") or () for buffer in pair)
            for number, operand in enumerate(node["inputs"]):
                if operand is not None and "view" in operand:
                    self.readers.setdefault(operand["view"]["buffer"], []).append((at, number))

    def view(self, node: dict[str, Any], number: int) -> View | None:
        """What a node reads as operand `number`; None if that is no array."""
        operand = node["inputs"][number] if number < len(node["inputs"]) else None
        return operand["view"] if operand is not None and "view" in operand else None

    def array_name(self, node: dict[str, Any], number: int) -> str | None:
        """The name of the parameter that is operand `number`; None if it is none."""
        view = self.view(node, number)
        return None if view is None else self.arrays.get(view["buffer"])

    def is_whole(self, view: View | None) -> bool:
        """Whether a view is that with which its buffer is defined, dense and float32."""
        if view is None or view["buffer"] not in self.definitions:
            return False
        whole = self.definitions[view["buffer"]]
        return all(view[key] == whole[key] for key in ("shape", "strides", "offset", "dtype")) and self.is_plain(
            view["buffer"]
        )

    def is_plain(self, buffer: int) -> bool:
        """Whether a buffer is a dense float32 value that nobody changes."""
        whole = self.definitions.get(buffer)
        if whole is None or whole["dtype"] != "float32" or whole["offset"] or buffer in self.versioned:
            return False
        step, strides = 1, []
        for n in reversed(whole["shape"]):
            strides.append(step)
            step *= n
        return all(
            n == 1 or a == b for n, a, b in zip(whole["shape"], whole["strides"], reversed(strides), strict=True)
        )

    def only_reader(self, buffer: int) -> tuple[int, int] | None:
        """The node that alone reads a buffer, and its operand; None if there are others or it is a result."""
        readers = self.readers.get(buffer, [])
        return readers[0] if len(readers) == 1 and buffer not in self.results else None


@dataclass
class Layer:
    """A layer and the nodes after it that are computed with it."""

    name: str
    node: int
    last: int
    """The node that makes the result."""
    result: int
    """Its buffer."""
    chain: list[int] = field(default_factory=list)
    """All nodes."""
    norm: dict[str, Any] | None = None
    addend: tuple[int, int] | None = None
    """The node of the addition, and the operand that is not the layer's result."""
    relu: bool = False


class Plan:
    """What is quantised.

    Parameters
    ----------
    source : Source
    mode : {'full', 'smart'}
    excluded_layers, matches, excluded_operators : collection of str

    Raises
    ------
    ValueError
        If there is no such layer or operator.
    """

    def __init__(
        self,
        source: Source,
        mode: str,
        excluded_layers: Collection[str],
        matches: Collection[str],
        excluded_operators: Collection[str],
    ) -> None:
        self.source = source
        operators = {_NAMES.get(name, name) for name in excluded_operators}
        if unknown := sorted(operators - set(QUANTIZED)):
            raise ValueError(
                f"quantize_net: `exclude_operators` has {unknown[0]!r}; the operators that are quantised are "
                f"{', '.join(map(repr, QUANTIZED))}"
            )
        self.names = self._named()
        known = set(self.names.values())
        if missing := sorted(set(excluded_layers) - known):
            raise ValueError(
                f"quantize_net: `exclude_layers` has {missing[0]!r}; the layers are "
                f"{', '.join(map(repr, self.names.values()))}"
            )
        self.excluded = [
            name
            for at, name in self.names.items()
            if name in excluded_layers
            or any(text in name for text in matches)
            or self.source.nodes[at]["op"] in operators
        ]
        left_out = set(self.excluded)
        self.layers: dict[int, Layer] = {}
        for at, name in self.names.items():
            if name not in left_out and source.nodes[at]["op"] in LAYERS:
                layer = self._layer(at, name)
                if layer is not None:
                    self.layers[layer.last] = layer
        self.pools: set[int] = set()
        self._choose_pools(mode, left_out)

    def _named(self) -> dict[int, str]:
        """Names of the nodes that may be quantised: the path of the layer, or the operator and a number."""
        names: dict[int, str] = {}
        counts: dict[str, int] = {}
        for at, node in enumerate(self.source.nodes):
            if node["op"] not in QUANTIZED:
                continue
            weight = self.source.array_name(node, 1) if node["op"] in LAYERS else None
            base = re.sub(r"\.?weight$", "", weight or "")
            number = counts.get(base or node["op"], 0)
            counts[base or node["op"]] = number + 1
            if base:
                names[at] = base if number == 0 else f"{base}_{number}"
            else:
                names[at] = f"{node['op']}{number}"
        return names

    def _layer(self, at: int, name: str) -> Layer | None:
        """The layer of node `at` with the nodes that are computed with it; None if it cannot be quantised."""
        source = self.source
        node = source.nodes[at]
        data, weight = source.view(node, 0), source.view(node, 1)
        if data is None or weight is None or data["dtype"] != "float32" or weight["dtype"] != "float32":
            return None
        is_constant = all(source.array_name(node, i) is not None for i in (1, 2) if source.view(node, i) is not None)
        if not is_constant or data["buffer"] in source.arrays or not source.is_plain(data["buffer"]):
            return None
        if not _is_plain_array(weight):
            return None
        result = node["outputs"][0]["buffer"]
        layer = Layer(name, at, at, result, [at])
        layout = str(node["attrs"].get("layout") or "")
        axis = len(node["outputs"][0]["shape"]) - 1 if layout.endswith("C") or node["op"] == "fully_connected" else 1
        while (reader := source.only_reader(layer.result)) is not None:
            next_at, operand = reader
            after = source.nodes[next_at]
            if after.get("versions") or not source.is_whole(source.view(after, operand)):
                break
            if not self._joins(layer, after, operand, next_at, axis):
                break
            layer.chain.append(next_at)
            layer.last, layer.result = next_at, after["outputs"][0]["buffer"]
            if layer.relu:
                break
        return layer

    def _joins(self, layer: Layer, after: dict[str, Any], operand: int, at: int, axis: int) -> bool:
        """Makes a node a part of the layer. Returns whether that is possible."""
        source = self.source
        if after["op"] == "batch_norm_inference" and operand == 0 and len(layer.chain) == 1:
            vectors = [source.array_name(after, i) for i in range(1, 5) if source.view(after, i) is not None]
            unused = all(
                not source.readers.get(view["buffer"]) and view["buffer"] not in source.results
                for view in after["outputs"][1:]
            )
            found = int(after["attrs"]["axis"]) % len(after["outputs"][0]["shape"])
            if None in vectors or not unused or found != axis:
                return False
            layer.norm = after
            return True
        if after["op"] == "relu":
            layer.relu = True
            return True
        if after["op"] == "add" and layer.addend is None:
            other = source.view(after, 1 - operand)
            if other is None or not source.is_whole(other):
                return False
            is_like = other["shape"] == after["outputs"][0]["shape"]
            # The result of a later layer is not there yet: that layer adds.
            if not is_like or source.producers.get(other["buffer"], -1) > layer.node:
                return False
            layer.addend = (at, 1 - operand)
            return True
        return False

    def _choose_pools(self, mode: str, left_out: Collection[str]) -> None:
        """Pooling whose results a quantised layer reads."""
        source = self.source
        made = {layer.result for layer in self.layers.values()}
        for at in sorted(self.names, reverse=True):
            node = source.nodes[at]
            if node["op"] != "pooling" or self.names[at] in left_out:
                continue
            view = source.view(node, 0)
            if node["attrs"]["pool_type"] not in ("max", "avg") or not source.is_whole(view) or view is None:
                continue
            if not self.is_read_by_quantized(node["outputs"][0]["buffer"]):
                continue
            if mode == "full" or self._comes_from(view["buffer"], made):
                self.pools.add(at)

    def _comes_from(self, buffer: int, made: Collection[int]) -> bool:
        """Whether a value is a layer's result, or pooled of one."""
        while buffer not in made:
            at = self.source.producers.get(buffer)
            if at is None or self.source.nodes[at]["op"] != "pooling":
                return False
            view = self.source.view(self.source.nodes[at], 0)
            if view is None:
                return False
            buffer = view["buffer"]
        return True

    def is_read_by_quantized(self, buffer: int) -> bool:
        """Whether a quantised layer or pooling reads a value as its data."""
        heads = {layer.node for layer in self.layers.values()}
        return any(
            operand == 0 and (at in heads or at in self.pools) for at, operand in self.source.readers.get(buffer, [])
        )

    def is_read_by_others(self, buffer: int, added_as: str = "integers") -> bool:
        """Whether a value is a result, or a node reads it that takes floats; `added_as` says what additions take."""
        heads = {layer.node for layer in self.layers.values()}
        added = {layer.addend for layer in self.layers.values()} if added_as == "integers" else set()
        return buffer in self.source.results or any(
            not ((operand == 0 and (at in heads or at in self.pools)) or (at, operand) in added)
            for at, operand in self.source.readers.get(buffer, [])
        )

    def values(self) -> dict[int, tuple[str, str]]:
        """Name and operator of the values whose ranges are needed, by buffer."""
        source = self.source
        pooled = {source.nodes[at]["outputs"][0]["buffer"] for at in self.pools}
        made = {layer.result: layer.name for layer in self.layers.values()}
        found: dict[int, tuple[str, str]] = {}
        for buffer in source.definitions:
            if buffer in pooled or not self.is_read_by_quantized(buffer):
                continue
            if buffer in source.arguments:
                number = source.arguments[buffer]
                found[buffer] = ("data" if len(source.arguments) == 1 else f"data{number}", "")
            else:
                at = source.producers[buffer]
                name = made.get(buffer) or self.names.get(at) or f"{source.nodes[at]['op']}_{at}"
                found[buffer] = (f"{name}_output", source.nodes[at]["op"])
        return found


def _is_plain_array(view: View) -> bool:
    """Whether a parameter is read as a whole."""
    step = 1
    for n, stride in zip(reversed(view["shape"]), reversed(view["strides"]), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return not view["offset"]
