"""Models from files: checked before anything is computed, external data only from the model's own folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy

from mxnet.error import FileFormatError, UnsupportedError
from mxnet.onnx._importer.table import NARROW_DTYPES, dtype_of, type_name
from mxnet.onnx._package import onnx_package

__all__ = ["MAX_MESSAGE_BYTES", "host_array", "name_of_type", "read_model"]

# What the functions of a model may be, whose calls are followed: bounds for hostile files.
_MAX_DEPTH = 64
_MAX_NODES = 200_000
# Bytes of a message that protobuf can write, which the checker and shape inference need.
MAX_MESSAGE_BYTES = 2**31 - 1


def read_model(model_file: Any, function: str, with_data: bool = True) -> tuple[Any, Any]:
    """A model, checked, with its external data.

    Parameters
    ----------
    model_file : path, file object, bytes or onnx.ModelProto
    function : str
        What errors call the function.
    with_data : bool
        Whether external data are read.

    Returns
    -------
    model : onnx.ModelProto
    outline : onnx.ModelProto
        The model without initializers whose data are in files; they are inputs there. Tools that write the model to
        one message, which has at most 2 GiB, get this one.

    Raises
    ------
    ImportError
        If the package `onnx` is not installed.
    FileNotFoundError
        If there is no such file.
    TypeError
        If `model_file` is something else.
    FileFormatError
        If it is no valid model, or its external data lies outside its folder, is missing or has another size.
    """
    onnx = onnx_package(function)
    folder: Path | None = None
    if isinstance(model_file, onnx.ModelProto):
        model = onnx.ModelProto()
        model.CopyFrom(model_file)
    else:
        if isinstance(model_file, str | os.PathLike):
            path = Path(os.fspath(model_file))
            content: Any = path.read_bytes()
            folder = path.parent
        elif isinstance(model_file, bytes | bytearray | memoryview):
            content = bytes(model_file)
        elif hasattr(model_file, "read"):
            content = model_file.read()
            if not isinstance(content, bytes):
                raise TypeError(f"{function}: the file object must be open for bytes, found '{type(content).__name__}'")
        else:
            raise TypeError(
                f"{function}: `model_file` must be a path, a file object, bytes or an onnx.ModelProto, "
                f"found '{type(model_file).__name__}'"
            )
        model = onnx.ModelProto()
        try:
            model.ParseFromString(content)
        except Exception as error:  # protobuf's `DecodeError`; its package is not imported here
            if type(error).__name__ != "DecodeError":
                raise
            raise FileFormatError(f"{function}: this is no ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise FileFormatError(f"{function}: this is no ONNX model: it has no graph")
    _check_calls(model, function)
    outline = _outline(onnx, model)
    if outline.ByteSize() <= MAX_MESSAGE_BYTES:
        try:
            onnx.checker.check_model(outline)
        except (onnx.checker.ValidationError, ValueError) as error:
            raise FileFormatError(f"{function}: the model is not valid: {error}") from error
    if with_data:
        _read_external_data(onnx, model, folder, function)
    return model, outline


def _check_calls(model: Any, function: str) -> None:
    """Refuse functions of the model that call themselves, or whose calls are too many to be followed."""
    bodies = {(body.domain, body.name, body.overload): body for body in model.functions}
    sizes: dict[Any, int] = {}
    active: set[Any] = set()

    def num_nodes(nodes: Any) -> int:
        total = 0
        for node in nodes:
            total += 1
            for attribute in node.attribute:
                graphs = [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs
                total += sum(num_nodes(graph.node) for graph in graphs)
            key = (node.domain, node.op_type, node.overload)
            if key in bodies:
                total += size(key)
            if total > _MAX_NODES:
                raise FileFormatError(
                    f"{function}: with all calls of functions the model has more than {_MAX_NODES} nodes"
                )
        return total

    def size(key: Any) -> int:
        if key not in sizes:
            if key in active or len(active) > _MAX_DEPTH:
                name = f"{key[0]}.{key[1]}"
                raise FileFormatError(
                    f"{function}: the model's function `{name}` calls itself, or is called more than {_MAX_DEPTH} deep"
                )
            active.add(key)
            sizes[key] = num_nodes(bodies[key].node)
            active.remove(key)
        return sizes[key]

    num_nodes(model.graph.node)


def _outline(onnx: Any, model: Any) -> Any:
    """The model without initializers of the main graph whose data are in files."""
    external = onnx.TensorProto.EXTERNAL
    elsewhere = [tensor for tensor in model.graph.initializer if tensor.data_location == external]
    if not elsewhere:
        return model
    outline = onnx.ModelProto()
    outline.CopyFrom(model)
    graph = outline.graph
    kept = [tensor for tensor in graph.initializer if tensor.data_location != external]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    known = {value.name for value in graph.input}
    for tensor in elsewhere:
        if tensor.name not in known:
            kind = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            graph.input.append(kind)
    return outline


def _tensors(graph: Any) -> Any:
    """All tensors of a graph and of the graphs in its nodes."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    yield from _tensors_of_nodes(graph.node)


def _tensors_of_nodes(nodes: Any) -> Any:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for graph in attribute.graphs:
                yield from _tensors(graph)


def _read_external_data(onnx: Any, model: Any, folder: Path | None, function: str) -> None:
    """Read the tensors that lie in files beside the model into the model."""
    external = onnx.TensorProto.EXTERNAL
    tensors = [tensor for tensor in _tensors(model.graph) if tensor.data_location == external]
    for body in model.functions:
        tensors += [tensor for tensor in _tensors_of_nodes(body.node) if tensor.data_location == external]
    for tensor in tensors:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        where = f"{function}: the data of `{tensor.name}` is in the file {location!r}"
        if folder is None:
            raise FileFormatError(f"{where}, which is looked for beside the model: give the model's path")
        root = folder.resolve()
        path = (root / location).resolve()
        if not location or Path(location).is_absolute() or not path.is_relative_to(root):
            raise FileFormatError(f"{where}, which is not in the model's folder")
        if not path.is_file():
            raise FileFormatError(f"{where}, which does not exist")
        size = path.stat().st_size
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries.get("length", size - offset))
        except ValueError as error:
            raise FileFormatError(f"{where}, with an offset or a length that is no integer") from error
        if offset < 0 or length < 0 or offset + length > size:
            raise FileFormatError(f"{where}, of {size} bytes, which has no {length} bytes from {offset}")
        with path.open("rb") as file:
            file.seek(offset)
            tensor.raw_data = file.read(length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def host_array(tensor: Any, what: str) -> numpy.ndarray:
    """A tensor of a model as an array of NumPy.

    Parameters
    ----------
    tensor : onnx.TensorProto
        Integers of two or four bits become int8 or uint8.
    what : str
        What errors call it.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    UnsupportedError
        If arrays do not have its type.
    FileFormatError
        If its shape and its data do not fit.
    """
    numpy_helper = onnx_package("import_to_gluon").numpy_helper
    name = type_name(tensor.data_type)
    if dtype_of(tensor.data_type) is None and name not in NARROW_DTYPES:
        raise UnsupportedError(f"{what} is of {name}, and there are no arrays of this type")
    try:
        found: numpy.ndarray = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise FileFormatError(f"{what}: its data does not fit its shape {tuple(tensor.dims)}: {error}") from error
    return found.astype(NARROW_DTYPES[name]) if name in NARROW_DTYPES else found


def name_of_type(kind: Any) -> tuple[tuple[int | str | None, ...] | None, str]:
    """The shape and the dtype that a model declares for an input or an output.

    Parameters
    ----------
    kind : onnx.TypeProto

    Returns
    -------
    shape : tuple of int, str and None, or None
        A name for a size that may be any, None for a size that is not known; None if not even the number of axes is.
    dtype : str
        ``"sequence"``, ``"map"`` or ``"optional"`` for values that are no arrays.
    """
    form = kind.WhichOneof("value")
    if form not in ("tensor_type", "sparse_tensor_type"):
        return None, str(form or "unknown").removesuffix("_type")
    tensor = getattr(kind, form)
    dtype = type_name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return None, dtype
    sizes = {"dim_value": int, "dim_param": str}
    shape = tuple(
        sizes[which](getattr(dim, which)) if (which := dim.WhichOneof("value")) else None for dim in tensor.shape.dim
    )
    return shape, dtype
