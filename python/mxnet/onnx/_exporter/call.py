"""One call of an operator, as its translation gets it."""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn

from mxnet.error import InternalError
from mxnet.onnx._exporter.builder import Builder, Value
from mxnet.onnx._exporter.graph import Node, Number

__all__ = ["Call"]


@dataclasses.dataclass
class Call:
    """What a translation gets: a node, and values for its operands.

    Attributes
    ----------
    b : Builder
    node : Node
    operands : list of Value, Number or None
    """

    b: Builder
    node: Node
    operands: list[Value | Number | None]

    @property
    def op(self) -> str:
        """Name of the operator."""
        return self.node.op

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or the default if it is not given."""
        found = self.node.attributes.get(name)
        return default if found is None else found

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first output."""
        return self.node.outputs[0].shape

    @property
    def dtype(self) -> str:
        """Dtype of the first output."""
        return self.node.outputs[0].dtype

    def has(self, at: int) -> bool:
        """Whether an operand is given."""
        return at < len(self.operands) and self.operands[at] is not None

    def value(self, at: int, dtype: str | None = None) -> Value:
        """Operand `at` as a value, converted to a dtype; numbers without one take that of the result."""
        operand = self.operands[at]
        if isinstance(operand, Number):
            return self.b.scalar(operand.value, dtype or operand.dtype or self.dtype)
        if operand is None:
            raise InternalError(f"export_model: operand {at} of `{self.op}` is missing")
        return operand if dtype is None else self.b.cast(operand, dtype)

    def optional(self, at: int, dtype: str | None = None) -> Value | None:
        """As `value`; None if the operand is not given."""
        return self.value(at, dtype) if self.has(at) else None

    def refuse(self, problem: str, instead: str) -> NoReturn:
        """Raise UnsupportedError that names the operator and its line."""
        self.node.refuse(problem, instead)
