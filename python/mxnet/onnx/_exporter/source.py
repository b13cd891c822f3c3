"""What is exported: a network, or a graph from a file, with names for its arguments and results."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as onp

from mxnet import _core, autograd
from mxnet._jit import InputSpec
from mxnet.base import PathLike
from mxnet.error import UnsupportedError
from mxnet.gluon import HybridBlock, SymbolBlock
from mxnet.gluon._export import prediction_graph
from mxnet.graph import Graph, document, read
from mxnet.numpy import ndarray, zeros

__all__ = ["Source", "source_of"]


class Source(NamedTuple):
    """A graph with its arrays.

    Attributes
    ----------
    name : str
    text : str
        As a file has it.
    arrays : mapping of str to ndarray
    parameters : set of str
        Names of those arrays that are parameters.
    arguments : list of str
        A name for each argument.
    results : list of (str, int)
        A name for each result that is an array, and the number of the output.
    shapes : list of tuple of int or None
        Shapes of the arguments, if they are not those of the text.
    """

    name: str
    text: str
    arrays: Mapping[str, ndarray]
    parameters: set[str]
    arguments: list[str]
    results: list[tuple[str, int]]
    shapes: list[tuple[int, ...]] | None


def source_of(sym: Any, params: Any, shapes: Any, types: Sequence[Any], free: Any, *, is_dynamic: bool) -> Source:
    """The graph of what a caller of `export_model` gives.

    Parameters
    ----------
    sym : HybridBlock, Graph or path
    params : path, mapping of str to ndarray, or None
    shapes : sequence of tuple of int, or None
        Shapes of the arguments of a network; by default those of its last call.
    types : sequence of dtype
        Dtypes of these arguments.
    free : sequence of sequence, or None
        For each argument its lengths, None or a name for an axis that may have any.
    is_dynamic : bool
        Whether axes of a network's arguments may have any length.

    Returns
    -------
    Source

    Raises
    ------
    TypeError
        If `sym` or `params` is something else.
    RuntimeError
        If a network is not hybridized, or was not called and there are no shapes.
    UnsupportedError
        If the network takes or returns sparse or ragged arrays.
    """
    if isinstance(sym, SymbolBlock):
        _check_absent(params, "SymbolBlock")
        values = {name: parameter.data() for name, parameter in sym.collect_params().items()}
        return _of_graph(sym._graph, values, list(sym._input_names))
    if isinstance(sym, HybridBlock):
        _check_absent(params, "HybridBlock")
        return _of_block(sym, shapes, types, free, is_dynamic=is_dynamic)
    if isinstance(sym, Graph):
        _check_absent(params, "Graph")
        return _of_graph(sym, sym.arrays, None)
    if not isinstance(sym, str | os.PathLike):
        raise TypeError(
            f"export_model: `sym` must be a HybridBlock, a graph or the path of one, found '{type(sym).__name__}'"
        )
    return _of_file(sym, params)


def _check_absent(params: Any, kind: str) -> None:
    if params is not None:
        raise TypeError(f"export_model: a {kind} has its own parameters; `params` must be None")


def _of_file(path: PathLike, params: Any) -> Source:
    if isinstance(params, Mapping):
        graph = Graph(_text(path), params, os.fspath(path))
    elif params is None or isinstance(params, str | os.PathLike):
        graph = read(path, params)
    else:
        raise TypeError(f"export_model: `params` must be a path or a dict of arrays, found '{type(params).__name__}'")
    return _of_graph(graph, graph.arrays, None)


def _text(path: PathLike) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _of_graph(graph: Graph, arrays: Mapping[str, ndarray], names: list[str] | None) -> Source:
    if graph._forms is not None and any(form is not None for form in graph._forms):
        _refuse_parts()
    entries = json.loads(graph._text)
    count = len(graph.arguments)
    arguments = names or (["data"] if count == 1 else [f"data{i}" for i in range(count)])
    parameters = {x["array"] for x in entries["inputs"] if "array" in x and not x.get("constant")}
    form = entries.get("results") or {"list": [{"array": i} for i in range(len(entries["outputs"]))]}
    return Source(entries["name"], graph._text, arrays, parameters, arguments, list(_results(form, "output")), None)


def _refuse_parts() -> None:
    raise UnsupportedError(
        "export_model: ONNX has no sparse and no ragged arrays\n  hint: export a network of dense arrays"
    )


def _of_block(block: HybridBlock, shapes: Any, types: Sequence[Any], free: Any, *, is_dynamic: bool) -> Source:
    name = type(block).__name__
    if shapes is not None and block._compiled is not None:
        device = next((x.list_device()[0] for x in block.collect_params().values() if not x.is_deferred), None)
        arrays = [zeros(tuple(shape), dtype, device=device) for shape, dtype in zip(shapes, types, strict=True)]
        with autograd.pause(), autograd.predict_mode():
            block(*arrays)
    specs: list[InputSpec | None] | None = None
    if free is not None:
        _check_free(block, free)
        specs = [InputSpec(*(_spec(n, i, axis) for axis, n in enumerate(shape))) for i, shape in enumerate(free)]
    found, forms, (args, kwargs, _) = prediction_graph(
        block, block._compiled, f"export_model: {name}", specs, any_batch=is_dynamic
    )
    if forms is not None and any(form is not None for form in forms):
        _refuse_parts()
    parameters = block.collect_params()
    storages = {_core.storage_of(parameter.data()): key for key, parameter in parameters.items()}
    entries, arrays_by_name = document(found, storages, "export_model")
    values = {key: parameters[key].data() if key in parameters else array for key, array in arrays_by_name}
    kept = {x["array"] for x in entries["inputs"] if "array" in x and not x.get("constant")}
    count = len({x["argument"] for x in entries["inputs"] if "argument" in x})
    given = list(_named_arrays(block, args, kwargs))
    names = [x for x, _ in given]
    called: list[tuple[int, ...]] | None = [x for _, x in given]
    if len(given) != count:
        names, called = [f"data{i}" for i in range(count)], None
    return Source(name, json.dumps(entries), values, kept, names, list(_results(entries["results"], "output")), called)


def _check_free(block: HybridBlock, free: Any) -> None:
    """Refuse lengths that are not those of the arrays of the last call; ValueError."""
    last = None if block._compiled is None else block._compiled.last_arguments()
    if last is None:
        return
    arrays = [x for x in last[0] if isinstance(x, ndarray)]
    if len(free) != len(arrays):
        raise ValueError(
            f"export_model: the network takes {len(arrays)} arrays, found {len(free)} entries in `dynamic_input_shapes`"
        )
    for i, (shape, x) in enumerate(zip(free, arrays, strict=True)):
        if len(shape) != x.ndim or any(isinstance(n, int) and n != m for n, m in zip(shape, x.shape, strict=True)):
            raise ValueError(
                f"export_model: `dynamic_input_shapes` has {tuple(shape)} for argument {i}, which has shape {x.shape}"
            )


def _spec(length: Any, argument: int, axis: int) -> Any:
    return length if isinstance(length, int) else str(length or f"free {argument}.{axis}")


def _named_arrays(
    block: HybridBlock, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the arrays among the arguments, as `forward` calls them."""
    bound = inspect.signature(block.forward).bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        kind = inspect.signature(block.forward).parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            for key, item in value.items():
                yield from _nested(key, item)
        else:
            yield from _nested(name, value)


def _nested(name: str, value: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    if isinstance(value, ndarray):
        yield name, value.shape
    elif isinstance(value, tuple | list):
        for at, item in enumerate(value):
            yield from _nested(f"{name}_{at}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nested(f"{name}_{key}", item)


def _results(form: Any, path: str) -> Iterator[tuple[str, int]]:
    """Names of the arrays in nested results, and their numbers."""
    ((kind, content),) = form.items()
    if kind == "array":
        yield path, content
    elif kind == "dict":
        for key, item in content.items():
            yield from _results(item, key if path == "output" else f"{path}_{key}")
    elif kind in ("tuple", "list"):
        for at, item in enumerate(content):
            yield from _results(item, f"{path}_{at}")
    elif kind == "parts":
        _refuse_parts()


def dtype_name(dtype: Any) -> str:
    """The name of a dtype as users give it."""
    return "bfloat16" if str(dtype) == "bfloat16" else onp.dtype(dtype).name
