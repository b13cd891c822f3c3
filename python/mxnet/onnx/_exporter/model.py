"""Nodes and constants as an ONNX model, and its file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mxnet._atomic_file import AtomicFile, write_atomically
from mxnet.base import PathLike
from mxnet.error import UnsupportedError
from mxnet.onnx._exporter.builder import Builder, Constant, Value

__all__ = ["OPSET", "Tensor", "make_model", "write_model"]

# Runtimes for later opsets read it, too.
OPSET = 21
# The first opset in which convolutions, pools and recurrent layers take bfloat16. Runtimes lack more of its operators.
_OPSET_OF_BFLOAT16 = 22

# Protocol buffers have at most 2 GiB.
_MAX_BYTES = (1 << 31) - (1 << 20)
# Smaller tensors stay in the model when the others are in a file of their own.
_MIN_EXTERNAL_BYTES = 1024

_TYPES = {
    "bool": "BOOL",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}


class Tensor(NamedTuple):
    """An argument or a result: lengths of axes are numbers or names."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


def _type(onnx: Any, dtype: str) -> int:
    return int(getattr(onnx.TensorProto, _TYPES.get(dtype, dtype.upper())))


def _attribute(onnx: Any, name: str, value: Any) -> Any:
    if isinstance(value, Value):
        assert value.constant is not None
        value = onnx.helper.make_tensor(
            "", _type(onnx, value.dtype), [max(value.size, 1)], value.constant.tobytes(), raw=True
        )
    elif name in ("to", "dtype"):
        value = _type(onnx, value)
    return onnx.helper.make_attribute(name, value)


def _initializer(onnx: Any, name: str, constant: Constant) -> Any:
    found = onnx.TensorProto(name=name, data_type=_type(onnx, constant.dtype), dims=constant.array.shape)
    found.raw_data = constant.array.tobytes()
    return found


def _unique(b: Builder) -> tuple[dict[str, Constant], dict[str, str]]:
    """The constants without repetitions, and what replaces those that are gone."""
    found: dict[str, Constant] = {}
    names: dict[Any, str] = {}
    other: dict[str, str] = {}
    for name, constant in b.constants.items():
        key = (constant.dtype, constant.array.shape, constant.array.tobytes()) if constant.array.size <= 64 else name
        if key in names:
            other[name] = names[key]
        else:
            names[key] = name
            found[name] = constant
    return found, other


def make_model(
    onnx: Any,
    b: Builder,
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    kept: Sequence[str],
    metadata: Mapping[str, str],
) -> Any:
    """The model of a translated graph.

    Parameters
    ----------
    onnx : module
    b : Builder
    name : str
        Of the graph.
    inputs, outputs : sequence of Tensor
    kept : sequence of str
        Names of constants that stay even if an equal one exists: parameters.
    metadata : mapping of str to str

    Returns
    -------
    onnx.ModelProto
    """
    from mxnet import __version__

    parameters = set(kept)
    others = {n: c for n, c in b.constants.items() if n not in parameters}
    whole = b.constants
    b.constants = others
    unique, replaced = _unique(b)
    b.constants = whole
    constants = {n: c for n, c in whole.items() if n in parameters or n in unique}
    nodes: list[Any] = []
    for node in b.nodes:
        made = onnx.NodeProto(
            op_type=node.op,
            name=f"{node.op}.{len(nodes)}",
            input=[replaced.get(x, x) for x in node.inputs],
            output=node.outputs,
        )
        made.attribute.extend(_attribute(onnx, key, value) for key, value in node.attributes.items())
        nodes.append(made)
    read = {x for node in nodes for x in node.input}
    information = [
        [onnx.helper.make_tensor_value_info(x.name, _type(onnx, x.dtype), x.shape) for x in tensors]
        for tensors in (inputs, outputs)
    ]
    opsets = [onnx.helper.make_opsetid("", _OPSET_OF_BFLOAT16 if "bfloat16" in b.dtypes else OPSET)]
    model = onnx.ModelProto(
        ir_version=onnx.helper.find_min_ir_version_for(opsets),
        producer_name="mxnet",
        producer_version=__version__,
    )
    model.opset_import.extend(opsets)
    graph = model.graph
    graph.name = name or "graph"
    graph.node.extend(nodes)
    graph.input.extend(information[0])
    graph.output.extend(information[1])
    graph.initializer.extend(_initializer(onnx, n, c) for n, c in constants.items() if n in read)
    for key, text in metadata.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, text
    return model


def write_model(onnx: Any, model: Any, path: PathLike, *, is_large: bool) -> None:
    """Check a model and write it, whole or not at all.

    Parameters
    ----------
    onnx : module
    model : onnx.ModelProto
        With `is_large` its tensors lose their elements.
    path : path
    is_large : bool
        Write the elements of tensors to ``<path>.data``. That file is written first.

    Raises
    ------
    UnsupportedError
        If the model has more than 2 GiB and is not `is_large`.
    OSError
        If a file cannot be written.
    """
    if is_large:
        _write_elements(model, f"{os.fspath(path)}.data")
    elif model.ByteSize() > _MAX_BYTES:
        raise UnsupportedError(
            f"export_model: the model has {model.ByteSize()} bytes, a file of ONNX at most {_MAX_BYTES}\n"
            "  hint: `large_model=True` writes the elements of tensors to a file of their own"
        )

    def write(temporary: str) -> None:
        Path(temporary).write_bytes(model.SerializeToString())
        # A model with elements in another file is checked where that file is.
        onnx.checker.check_model(temporary if is_large else model)

    write_atomically(path, write)


def _write_elements(model: Any, path: str) -> None:
    """Move the elements of tensors to a file of their own."""
    location = os.path.basename(path)
    moved = [x for x in model.graph.initializer if len(x.raw_data) >= _MIN_EXTERNAL_BYTES]
    file = AtomicFile(path)
    try:
        offset = 0
        for tensor in moved:
            data = tensor.raw_data
            padding = -offset % 4096
            file.write(bytes(padding) + data)
            offset += padding
            tensor.ClearField("raw_data")
            tensor.data_location = 1
            for key, text in (("location", location), ("offset", str(offset)), ("length", str(len(data)))):
                entry = tensor.external_data.add()
                entry.key, entry.value = key, text
            offset += len(data)
        file.close()
    finally:
        file.discard()
