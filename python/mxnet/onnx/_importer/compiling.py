"""From a model to a program: each node becomes a step, by the table of operators or by the body of its function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy

from mxnet.error import FileFormatError, UnsupportedError
from mxnet.onnx._importer import operators  # noqa: F401  # its import fills the table
from mxnet.onnx._importer.program import ConstantArray, OperatorStep, Program, ProgramStep
from mxnet.onnx._importer.reading import MAX_MESSAGE_BYTES, host_array
from mxnet.onnx._importer.table import OPERATORS, Call, Operator, dtype_of, is_narrow, type_name
from mxnet.onnx._package import onnx_package

__all__ = ["Compiler"]

# What to do without an operator, for those whose models can be written otherwise.
_ALTERNATIVES = {
    "ZipMap": "convert classifiers of scikit-learn with options={'zipmap': False}: the scores are an array then",
    "SVMClassifier": "there are no support vector machines",
    "SVMRegressor": "there are no support vector machines",
}

# Operators that read integers of two or four bits, which are in arrays of int8 and uint8, and their inputs that may be.
_NARROW_READERS = {"Cast": (0,), "CastLike": (0,), "DequantizeLinear": (0, 2), "Identity": (0,)}


class Compiler:
    """Translates the graphs of one model.

    Parameters
    ----------
    model : onnx.ModelProto
    outline : onnx.ModelProto
        See `read_model`.

    Attributes
    ----------
    initializers : dict of str to numpy.ndarray
        Of the main graph and of all graphs in its nodes.
    fixed : set of str
        Initializers that training does not change, because of what they are for.
    read : set of str
        Values that are read for something else than numbers on the host.
    """

    def __init__(self, model: Any, outline: Any) -> None:
        self.onnx = onnx_package("import_to_gluon")
        self.model = model
        self._outline = outline
        self.functions = {(body.domain, body.name, body.overload): body for body in model.functions}
        self.initializers: dict[str, numpy.ndarray] = {}
        self.fixed: set[str] = set()
        self.read: set[str] = set()
        self._narrow: set[str] = set()  # values of two or four bits
        self._missing: dict[str, str] = {}
        self._types: dict[str, Any] = {}

    def program(self) -> Program:
        """The program of the main graph. Its inputs are those without an initializer.

        Raises
        ------
        UnsupportedError
            If there are operators that cannot be computed; the message lists them.
        """
        self._types = self._inferred_types()
        opsets = {entry.domain: entry.version for entry in self.model.opset_import}
        opsets.setdefault("", opsets.get("ai.onnx", 1))
        program = self._graph(self.model.graph, opsets, is_main=True)
        if self._missing:
            listed = "\n  ".join(list(self._missing.values())[:8])
            raise UnsupportedError(
                f"import_to_gluon: {len(self._missing)} operators of the model cannot be computed:\n  {listed}\n"
                "  hint: functions of the model (`FunctionProto`) may define operators by others"
            )
        return program

    def _inferred_types(self) -> dict[str, Any]:
        """Types of the main graph's values, as far as they follow from the model."""
        model = self._outline
        try:
            if model.ByteSize() <= MAX_MESSAGE_BYTES:
                model = self.onnx.shape_inference.infer_shapes(model)
        except (self.onnx.shape_inference.InferenceError, ValueError):
            pass  # Without inferred types only some functions of ONNX are missing.
        graph = model.graph
        found = {value.name: value.type for value in (*graph.value_info, *graph.input, *graph.output)}
        for tensor in graph.initializer:
            found[tensor.name] = self.onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        return found

    # ---- graphs ----

    def _graph(self, graph: Any, opsets: Mapping[str, int], is_main: bool = False, bound: Any = None) -> Program:
        own: dict[str, numpy.ndarray] = {}
        for tensor in graph.initializer:
            own[tensor.name] = host_array(tensor, f"initializer `{tensor.name}`")
            if is_narrow(tensor.data_type):
                self._narrow.add(tensor.name)
        for value in graph.input:
            self._check_type(value)
        for sparse in graph.sparse_initializer:
            own[sparse.values.name] = self._dense(sparse)
        if is_main:
            self.initializers = own
        inputs = [value.name for value in graph.input if value.name not in own]
        outputs = [value.name for value in graph.output]
        steps = self._nodes(graph.node, opsets, outputs, bound or {})
        constants = {} if is_main else {name: ConstantArray(host) for name, host in own.items()}
        return Program(inputs, outputs, constants, steps)

    def _check_type(self, value: Any) -> None:
        """Refuse inputs of types that arrays do not have."""
        if value.type.WhichOneof("value") not in ("tensor_type", "sparse_tensor_type"):
            return
        number = value.type.tensor_type.elem_type
        if is_narrow(number):
            self._narrow.add(value.name)
        elif number and dtype_of(number) is None:
            raise UnsupportedError(
                f"import_to_gluon: input `{value.name}` is of {type_name(number)}, and there are no arrays of this type"
            )

    def _dense(self, sparse: Any) -> numpy.ndarray:
        """The elements of a sparse initializer, with its zeros."""
        what = f"initializer `{sparse.values.name}`"
        values, indices = host_array(sparse.values, what), host_array(sparse.indices, what)
        dense = numpy.zeros(tuple(sparse.dims), values.dtype)
        try:
            if indices.ndim == 2:
                dense[tuple(indices.T)] = values
            else:
                dense.reshape(-1)[indices] = values
        except (IndexError, ValueError) as error:
            raise FileFormatError(f"{what}: its indices do not fit its shape {dense.shape}: {error}") from error
        return dense

    def _nodes(
        self,
        nodes: Sequence[Any],
        opsets: Mapping[str, int],
        outputs: Iterable[str],
        bound: Mapping[str, Any],
    ) -> list[OperatorStep | ProgramStep]:
        used = set(outputs)
        for node in nodes:
            used.update(node.input)
        steps: list[OperatorStep | ProgramStep] = []
        captured: set[str] = set()
        for node in nodes:
            step = self._node(node, opsets, bound)
            if step is not None:
                steps.append(step)
                captured.update(step.captured)
        for step in steps:
            if isinstance(step, OperatorStep):
                flags = tuple(name != "" and (name in used or name in captured) for name in step.outputs)
                step.call.is_output_used = flags
        return steps

    def _node(
        self, node: Any, opsets: Mapping[str, int], bound: Mapping[str, Any]
    ) -> OperatorStep | ProgramStep | None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = opsets.get(domain, 1)
        body = self.functions.get((node.domain, node.op_type, node.overload))
        if body is not None:
            return self._called(node, domain, opset, body, bound)
        operator = OPERATORS.get((domain, node.op_type))
        if operator is not None:
            step = self._step(node, domain, opset, operator, opsets, bound)
            if operator.suits is None or operator.suits(step.call, tuple(map(bool, node.input))):
                return step
        body = self._function_of_onnx(node, domain, opset, bound)
        if body is not None:
            return self._called(node, domain, opset, body, bound)
        label = f"{domain or 'ai.onnx'}.{node.op_type}, opset {opset}"
        alternative = _ALTERNATIVES.get(node.op_type)
        schema = self._schema(domain, node.op_type, opset)
        if schema is not None and schema.has_context_dependent_function:
            alternative = "its function needs the types of its operands, which the model does not tell"
        self._missing.setdefault(label, f"node `{_name(node)}` ({label})" + (f": {alternative}" if alternative else ""))
        return None

    def _step(
        self,
        node: Any,
        domain: str,
        opset: int,
        operator: Operator,
        opsets: Mapping[str, int],
        bound: Mapping[str, Any],
    ) -> OperatorStep:
        attributes = self._defaults(domain, node.op_type, opset)
        what = f"node `{_name(node)}` ({domain or 'ai.onnx'}.{node.op_type}, opset {opset})"
        for index, name in enumerate(node.input):
            if name in self._narrow and index not in _NARROW_READERS.get(node.op_type, ()):
                raise UnsupportedError(
                    f"{what}: `{name}` has integers of two or four bits, which only {', '.join(_NARROW_READERS)} read"
                )
        captured: set[str] = set()
        for proto in _attributes(node, bound):
            if proto.type == self.onnx.AttributeProto.TENSOR and is_narrow(proto.t.data_type):
                self._narrow.update(node.output)
            value = self._attribute(proto, what, opsets, bound)
            attributes[proto.name] = value
            for program in value if isinstance(value, list) else [value]:
                if isinstance(program, Program):
                    captured |= program.captured
        call = Call(domain, node.op_type, _name(node), opset, attributes, tuple(map(bool, node.output)))
        step = OperatorStep(call, operator, node.input, node.output)
        step.captured = frozenset(captured)
        for index, name in enumerate(node.input):
            if -1 not in operator.host and index not in operator.host:
                self.read.add(name)
            if index in operator.fixed:
                self.fixed.add(name)
        self.read |= captured
        return step

    def _called(self, node: Any, domain: str, opset: int, body: Any, bound: Mapping[str, Any]) -> ProgramStep:
        """A call of a function; its body is translated for each call, with the attributes of the call."""
        given = {proto.name: proto for proto in body.attribute_proto}
        schema = self._schema(domain, node.op_type, opset)
        if schema is not None:
            defaults = ((name, attribute.default_value) for name, attribute in schema.attributes.items())
            given.update((name, value) for name, value in defaults if value.name)
        given.update((proto.name, proto) for proto in _attributes(node, bound))
        opsets = {entry.domain: entry.version for entry in body.opset_import}
        opsets.setdefault("", opset if not domain else opsets.get("ai.onnx", 1))
        pairs = zip(body.input, node.input, strict=False)
        self._narrow.update(inner for inner, outer in pairs if outer in self._narrow)
        steps = self._nodes(body.node, opsets, body.output, given)
        program = Program(body.input, body.output, {}, steps)
        self.read.update(node.input)
        return ProgramStep(
            f"node `{_name(node)}` ({domain or 'ai.onnx'}.{node.op_type})", program, node.input, node.output
        )

    def _function_of_onnx(self, node: Any, domain: str, opset: int, bound: Mapping[str, Any]) -> Any:
        """The body by which ONNX defines an operator; None if it has none."""
        schema = self._schema(domain, node.op_type, opset)
        if schema is None or schema.deprecated:
            return None
        found = None
        if schema.has_function:
            versions = [version for version in schema.function_opset_versions if version <= opset]
            found = schema.get_function_with_opset_version(versions[-1]) if versions else schema.function_body
        elif schema.has_context_dependent_function:
            kinds = [self._types.get(name) for name in node.input]
            if any(name and kind is None for name, kind in zip(node.input, kinds, strict=True)):
                return None
            versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
            if not versions:
                return None
            bare = self.onnx.NodeProto()
            bare.CopyFrom(node)
            del bare.attribute[:]
            bare.attribute.extend(_attributes(node, bound))
            types = [b"" if kind is None else kind.SerializeToString() for kind in kinds]
            text = schema.get_context_dependent_function_with_opset_version(
                versions[-1], bare.SerializeToString(), types
            )
            found = text or None
        if isinstance(found, bytes):
            body = self.onnx.FunctionProto()
            body.ParseFromString(found)
            return body
        return found

    # ---- attributes ----

    def _schema(self, domain: str, op_type: str, opset: int) -> Any:
        try:
            return self.onnx.defs.get_schema(op_type, opset, domain)
        except self.onnx.defs.SchemaError:
            return None

    def _defaults(self, domain: str, op_type: str, opset: int) -> dict[str, Any]:
        """The default values of an operator's attributes."""
        schema = self._schema(domain, op_type, opset)
        if schema is None:
            return {}
        defaults = ((name, attribute.default_value) for name, attribute in schema.attributes.items())
        return {name: self._attribute(value, op_type, {}, {}) for name, value in defaults if value.name}

    def _attribute(self, proto: Any, what: str, opsets: Mapping[str, int], bound: Mapping[str, Any]) -> Any:
        kinds = self.onnx.AttributeProto
        if proto.type == kinds.STRING:
            return proto.s.decode("utf-8", "replace")
        if proto.type == kinds.STRINGS:
            return [text.decode("utf-8", "replace") for text in proto.strings]
        if proto.type == kinds.TENSOR:
            return host_array(proto.t, f"{what}: attribute `{proto.name}`")
        if proto.type == kinds.TENSORS:
            return [host_array(tensor, f"{what}: attribute `{proto.name}`") for tensor in proto.tensors]
        if proto.type == kinds.SPARSE_TENSOR:
            return self._dense(proto.sparse_tensor)
        if proto.type == kinds.GRAPH:
            return self._graph(proto.g, opsets, bound=bound)
        if proto.type == kinds.GRAPHS:
            return [self._graph(graph, opsets, bound=bound) for graph in proto.graphs]
        if proto.type in (kinds.INTS, kinds.FLOATS):
            return list(self.onnx.helper.get_attribute_value(proto))
        if proto.type in (kinds.INT, kinds.FLOAT):
            return self.onnx.helper.get_attribute_value(proto)
        if proto.type == kinds.TYPE_PROTO:
            return proto.tp.SerializeToString()
        raise UnsupportedError(f"{what}: attribute `{proto.name}` is of a kind that is not supported")


def _name(node: Any) -> str:
    """What messages call a node: its name, or that of its first output."""
    return str(node.name or next((name for name in node.output if name), node.op_type))


def _attributes(node: Any, bound: Mapping[str, Any]) -> Iterable[Any]:
    """The attributes of a node. References to attributes of the function are replaced by those of its call."""
    for proto in node.attribute:
        if not proto.ref_attr_name:
            yield proto
        elif proto.ref_attr_name in bound:
            given = type(proto)()
            given.CopyFrom(bound[proto.ref_attr_name])
            given.name = proto.name
            yield given
