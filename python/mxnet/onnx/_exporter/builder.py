"""Nodes of an ONNX graph under construction, and the values between them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

__all__ = ["FLOATS", "Builder", "Constant", "OnnxNode", "Value", "numpy_dtype"]

FLOATS = ("float16", "bfloat16", "float32", "float64")
# Dtypes in which runtimes select elements of others. Conversions are exact.
_SELECTED_AS = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64"}
_END = onp.iinfo(onp.int64).max


def numpy_dtype(dtype: str) -> onp.dtype[Any]:
    """The dtype in which NumPy holds constants: that of the name, uint16 for bfloat16."""
    return onp.dtype("uint16" if dtype == "bfloat16" else dtype)


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor between nodes.

    Attributes
    ----------
    name : str
        Empty for a constant that no node reads yet.
    shape : tuple of int
        At the size for which the graph is translated.
    dtype : str
    constant : numpy.ndarray or None
        The elements, if they are known at export (those of bfloat16 as uint16).
    is_parameter : bool
        Whether it keeps its name and its elements: it is not replaced by what is computed from it at export.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    constant: onp.ndarray | None = None
    is_parameter: bool = False

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclasses.dataclass
class OnnxNode:
    """A node; `source` is the line of the program that called its operator."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    source: str


@dataclasses.dataclass
class Constant:
    """An initializer. `infers` says that it is the target of a Reshape, where one length may be -1."""

    array: onp.ndarray
    dtype: str
    infers: bool = False


class Builder:
    """Collects nodes and constants.

    Parameters
    ----------
    reserved : sequence of str
        Names that new values do not get.

    Attributes
    ----------
    nodes : list of OnnxNode
    constants : dict of str to Constant
        In the order in which they were first read.
    shapes : dict of str to tuple of int
        Shapes of the values that nodes make, and of arguments.
    dtypes : set of str
        Of all values that nodes make or read as constants.
    source : str
        Line of the program for which nodes are added.
    """

    def __init__(self, reserved: Sequence[str]) -> None:
        self.nodes: list[OnnxNode] = []
        self.constants: dict[str, Constant] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.source = ""
        # Dtypes of all values.
        self.dtypes: set[str] = set()
        # Results that have got their names.
        self.named: set[str] = set()
        self._taken = set(reserved)
        self._count = 0

    def new_name(self, stem: str) -> str:
        """A name that no other value has."""
        while True:
            self._count += 1
            name = f"{stem}_{self._count}"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def rename(self, old: str, new: str) -> None:
        """Give a value that a node makes the name of a result."""
        for node in self.nodes:
            node.inputs = [new if name == old else name for name in node.inputs]
            node.outputs = [new if name == old else name for name in node.outputs]
        self.named.add(new)

    # Constants.

    def constant(self, array: Any, dtype: str | None = None) -> Value:
        """A value whose elements are known."""
        found = onp.asarray(array)
        name = found.dtype.name if dtype is None else dtype
        if found.dtype != numpy_dtype(name):
            found = _converted(found, name)
        return Value("", found.shape, name, found)

    def scalar(self, number: Any, dtype: str) -> Value:
        """A constant without axes. Integers wrap as they do in arrays."""
        if dtype not in FLOATS and not isinstance(number, bool):
            bits = 8 * numpy_dtype(dtype).itemsize
            number = bool(number) if dtype == "bool" else int(number)
            if dtype != "bool":
                wrapped = number % (1 << bits)
                is_high = not dtype.startswith("u") and wrapped >= 1 << (bits - 1)
                number = wrapped - (1 << bits) if is_high else wrapped
        return self.constant(_converted(onp.asarray(number), dtype), dtype)

    def ints(self, numbers: Sequence[int]) -> Value:
        """A constant vector of int64."""
        return self.constant(onp.array(list(numbers), onp.int64).reshape(-1))

    def read(self, x: Value | None, infers: bool = False) -> str:
        """The name by which a node reads a value; constants become initializers."""
        if x is None:
            return ""
        if not x.name:
            x.name = self.new_name("constant")
        if x.constant is not None and x.name not in self.constants:
            self.constants[x.name] = Constant(x.constant, x.dtype, infers)
            self.dtypes.add(x.dtype)
        return x.name

    # Nodes.

    def nodes_of(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[tuple[tuple[int, ...], str] | None],
        **attributes: Any,
    ) -> list[Value]:
        """Add a node with several outputs, each of a shape and a dtype; None for one that is not needed."""
        names = [self.read(x, op == "Reshape" and at == 1) for at, x in enumerate(inputs)]
        while names and not names[-1]:
            names.pop()
        made = [Value("" if spec is None else self.new_name(op), *(spec or ((), ""))) for spec in outputs]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(OnnxNode(op, names, [y.name for y in made], given, self.source))
        for y in made:
            if y.name:
                self.shapes[y.name] = y.shape
                self.dtypes.add(y.dtype)
        return made

    def node(
        self, op: str, inputs: Sequence[Value | None], shape: Sequence[int], dtype: str, **attributes: Any
    ) -> Value:
        """Add a node with one output."""
        return self.nodes_of(op, inputs, [(tuple(shape), dtype)], **attributes)[0]

    def unary(self, op: str, x: Value, **attributes: Any) -> Value:
        """An elementwise node of one operand, whose result has the operand's dtype."""
        return self.node(op, [x], x.shape, x.dtype, **attributes)

    def binary(self, op: str, lhs: Value, rhs: Value, dtype: str | None = None, **attributes: Any) -> Value:
        """An elementwise node of two operands of one dtype, which broadcast."""
        shape = onp.broadcast_shapes(lhs.shape, rhs.shape)
        return self.node(op, [lhs, rhs], shape, dtype or lhs.dtype, **attributes)

    def compare(self, op: str, lhs: Value, rhs: Value) -> Value:
        """A comparison, whose result is bool."""
        return self.binary(op, lhs, rhs, "bool")

    def with_number(self, op: str, x: Value, number: Any) -> Value:
        """An elementwise node of a value and a number."""
        return self.binary(op, x, self.scalar(number, x.dtype))

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        """Elements of `x` where the condition holds, else of `y`."""
        shape = onp.broadcast_shapes(condition.shape, x.shape, y.shape)
        if x.dtype == "bool":
            first = self.binary("And", condition, x)
            return self.binary("Or", first, self.binary("And", self.unary("Not", condition), y))
        wide = _SELECTED_AS.get(x.dtype, x.dtype)
        found = self.node("Where", [condition, self.cast(x, wide), self.cast(y, wide)], shape, wide)
        return self.cast(found, x.dtype)

    def is_foldable(self, x: Value) -> bool:
        """Whether functions of the value are computed at export."""
        return x.constant is not None and not x.is_parameter

    def cast(self, x: Value, dtype: str) -> Value:
        """The value in another dtype."""
        if x.dtype == dtype:
            return x
        if x.constant is not None and self.is_foldable(x) and "bfloat16" not in (x.dtype, dtype):
            return self.constant(_converted(x.constant, dtype), dtype)
        if dtype == "bool" and x.dtype in FLOATS:
            # A conversion to bool must take NaN as true.
            return self.unary("Not", self.compare("Equal", x, self.scalar(0, x.dtype)))
        return self.node("Cast", [x], x.shape, dtype, to=dtype)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """The elements in another shape."""
        target = tuple(shape)
        if target == x.shape:
            return x
        if x.constant is not None and self.is_foldable(x):
            return self.constant(x.constant.reshape(target), x.dtype)
        # A length of 0 stands for that length, not for the length of the operand.
        allows_zero = 1 if 0 in target else None
        return self.node("Reshape", [x, self.ints(target)], target, x.dtype, allowzero=allows_zero)

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        """The axes in another order."""
        if list(axes) == list(range(x.ndim)):
            return x
        if x.constant is not None and self.is_foldable(x):
            return self.constant(onp.ascontiguousarray(x.constant.transpose(axes)), x.dtype)
        return self.node("Transpose", [x], [x.shape[axis] for axis in axes], x.dtype, perm=list(axes))

    def slice(self, x: Value, parts: Sequence[tuple[int, int, int]]) -> Value:
        """Elements `start`, `start + step`, ... of each axis, given as (start, number, step). Steps may be negative."""
        chosen = [axis for axis, (n, part) in enumerate(zip(x.shape, parts, strict=True)) if part != (0, n, 1)]
        if not chosen:
            return x
        inner = [axis for axis in chosen if parts[axis][2] < 0 and parts[axis][0] != x.shape[axis] - 1]
        if inner:
            # What steps backwards reach is cut out first: a start of -1, of no elements, would be the last one.
            regions, parts = [(0, n, 1) for n in x.shape], list(parts)
            for axis in inner:
                start, number, step = parts[axis]
                first = start + (number - 1) * step
                regions[axis] = (first, start + 1 - first, 1) if number else (0, start + 1, 1)
                parts[axis] = (regions[axis][1] - 1, number, step)
            return self.slice(self.slice(x, regions), parts)
        shape = tuple(number for _, number, _ in parts)
        starts, ends, steps = [], [], [parts[axis][2] for axis in chosen]
        for axis in chosen:
            start, number, step = parts[axis]
            end = start + number * step
            # Ends outside of the axis do not depend on its length: -1 would be the last element.
            ends.append(-_END if end < 0 else _END if end >= x.shape[axis] else end)
            starts.append(-1 if step < 0 and start == x.shape[axis] - 1 else start)
        if x.constant is not None and self.is_foldable(x):
            key = [slice(None)] * x.ndim
            for axis, start, end, step in zip(chosen, starts, ends, steps, strict=True):
                key[axis] = slice(start, None if end < 0 else end, step)
            return self.constant(onp.ascontiguousarray(x.constant[tuple(key)]), x.dtype)
        inputs = [x, self.ints(starts), self.ints(ends), self.ints(chosen)]
        if any(step != 1 for step in steps):
            inputs.append(self.ints(steps))
        return self.node("Slice", inputs, shape, x.dtype)

    def part(self, x: Value, axis: int, start: int, number: int, step: int = 1) -> Value:
        """`number` elements along one axis."""
        parts = [(0, n, 1) for n in x.shape]
        parts[axis] = (start, number, step)
        return self.slice(x, parts)

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """The value broadcast to a shape."""
        target = tuple(shape)
        return x if target == x.shape else self.node("Expand", [x, self.ints(target)], target, x.dtype)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """The values one after the other along an axis."""
        if len(values) == 1:
            return values[0]
        arrays = [x.constant for x in values if x.constant is not None and self.is_foldable(x)]
        if len(arrays) == len(values):
            return self.constant(onp.concatenate(arrays, axis), values[0].dtype)
        shape = list(values[0].shape)
        shape[axis] = sum(x.shape[axis] for x in values)
        return self.node("Concat", list(values), shape, values[0].dtype, axis=axis % len(shape))

    def reduce(self, op: str, x: Value, axes: Sequence[int], keepdims: bool = True) -> Value:
        """A reduction over axes; over none of them it is the identity for sums, products and extremes."""
        chosen = sorted(axis % x.ndim for axis in axes)
        shape = [1 if axis in chosen else n for axis, n in enumerate(x.shape) if keepdims or axis not in chosen]
        given = [x, self.ints(chosen)]
        return self.node(op, given, shape, x.dtype, keepdims=int(keepdims), noop_with_empty_axes=1)

    def full(self, shape: Sequence[int], number: Any, dtype: str) -> Value:
        """A value that is one number everywhere."""
        target = tuple(shape)
        fill = self.scalar(number, dtype)
        if not target:
            return fill
        if dtype == "bfloat16":
            return self.expand(fill, target)
        return self.node("ConstantOfShape", [self.ints(target)], target, dtype, value=fill)


def _converted(array: onp.ndarray, dtype: str) -> onp.ndarray:
    """An array in another dtype; bfloat16 as uint16, rounded to nearest even."""
    if dtype != "bfloat16":
        with onp.errstate(all="ignore"):
            return array.astype(dtype)
    if array.dtype == onp.uint16:
        return array
    bits = onp.asarray(array, onp.float32).view(onp.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(onp.uint16)
    is_nan = onp.isnan(onp.asarray(array, onp.float32))
    return onp.where(is_nan, onp.uint16(0x7FC0), rounded).astype(onp.uint16)
