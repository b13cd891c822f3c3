"""Translation of a graph: buffers become values, nodes are translated by the table of their operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as onp

from mxnet.error import InternalError, UnsupportedError
from mxnet.onnx._exporter import views
from mxnet.onnx._exporter.builder import Builder, Value
from mxnet.onnx._exporter.call import Call
from mxnet.onnx._exporter.graph import Graph, Node, View
from mxnet.onnx._exporter.operators import reason, translation

__all__ = ["translate"]

_WITHOUT_VALUES = ("complex64", "complex128")


def translate(
    graph: Graph,
    b: Builder,
    arguments: Sequence[str],
    constants: Mapping[int, tuple[View, onp.ndarray, str]],
) -> list[Value]:
    """Translate all nodes of a graph.

    Parameters
    ----------
    graph : Graph
    b : Builder
        Receives the nodes.
    arguments : sequence of str
        A name for each argument.
    constants : mapping of int to (View, ndarray, str)
        For each buffer that is known at export its definition, its elements, and its name if it is a parameter.

    Returns
    -------
    list of Value
        The results.

    Raises
    ------
    UnsupportedError
        If ONNX cannot express a node.
    """
    return _Translation(graph, b, arguments, constants).run()


class _Translation:
    def __init__(
        self,
        graph: Graph,
        b: Builder,
        arguments: Sequence[str],
        constants: Mapping[int, tuple[View, onp.ndarray, str]],
    ) -> None:
        self._graph = graph
        self._b = b
        self._buffers: dict[int, tuple[Value, View]] = {}
        self._read: dict[View, Value] = {}
        for x in graph.inputs:
            if x.argument is not None:
                self._check_dtype(x.view, None)
                value = Value(arguments[x.argument], x.view.shape, x.view.dtype)
                b.shapes[value.name] = value.shape
                dense = x.view._replace(strides=_dense(x.view.shape), offset=0)
                self._buffers[x.view.buffer] = value, dense
        for buffer, (view, array, name) in constants.items():
            value = Value(name, view.shape, view.dtype, array, is_parameter=bool(name))
            self._buffers[buffer] = value, view

    @staticmethod
    def _check_dtype(view: View, node: Node | None) -> None:
        if view.dtype in _WITHOUT_VALUES:
            problem = f"ONNX has no operators for {view.dtype}"
            instead = "compute with real and imaginary parts as two arrays"
            if node is not None:
                node.refuse(problem, instead)
            raise UnsupportedError(f"export_model: an argument: {problem}\n  hint: {instead}")

    def run(self) -> list[Value]:
        for node in self._graph.nodes:
            self._b.source = node.line
            self._add(node)
        self._b.source = ""
        return [self._value(view, None) for view in self._graph.outputs]

    def _value(self, view: View, node: Node | None) -> Value:
        """The elements of a view."""
        if view in self._read:
            return self._read[view]
        self._check_dtype(view, node)
        value, definition = self._buffers[view.buffer]
        problem = ""
        if view.dtype != definition.dtype:
            problem = f"it reads {definition.dtype} elements as {view.dtype}"
        else:
            found = views.read(self._b, value, definition, view)
            if found is not None:
                self._read[view] = found
                return found
            problem = f"no ONNX operators give its view of shape {view.shape} and strides {view.strides}"
        instead = "copy the array, or index it by an array of positions"
        if node is not None:
            node.refuse(problem, instead)
        raise UnsupportedError(f"export_model: a result: {problem}\n  hint: {instead}")

    def _add(self, node: Node) -> None:
        for view in node.outputs:
            self._check_dtype(view, node)
        translated = translation(node.op)
        if translated is None:
            node.refuse(*reason(node.op))
        operands = [self._value(x, node) if isinstance(x, View) else x for x in node.inputs]
        results = translated(Call(self._b, node, operands))
        if isinstance(results, Value):
            results = [results]
        if node.versions and not node.is_assignment:
            node.refuse("it writes to one of its operands", "export the network without it")
        for view, used, value in zip(node.outputs, node.used, results, strict=False):
            if used and value is not None:
                self._define(node, view, self._fitted(node, view, value))

    def _fitted(self, node: Node, view: View, value: Value) -> Value:
        """A result in the dtype and the shape of the operator's result."""
        value = self._b.cast(value, view.dtype)
        if value.shape != view.shape:
            if not node.is_assignment:
                raise InternalError(
                    f"export_model: `{node.op}` was translated to shape {value.shape}, expected {view.shape}"
                )
            value = self._b.expand(value, view.shape)
        return value

    def _define(self, node: Node, view: View, value: Value) -> None:
        if not node.versions:
            self._buffers[view.buffer] = views.upright(self._b, value, view)
            return
        old, new = node.versions[0]
        before, definition = self._buffers[old]
        if definition.dtype == view.dtype and len(node.versions) == 1:
            found = views.assign(self._b, before, definition, value, view)
            if found is not None:
                self._buffers[new] = found, definition._replace(buffer=new)
                return
        node.refuse(
            f"no ONNX operators write its view of shape {view.shape} and strides {view.strides}",
            "make a new array, for example by `np.where` or `np.concatenate`",
        )


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, stride = [], 1
    for n in reversed(shape):
        strides.append(stride)
        stride *= n
    return tuple(reversed(strides))
