"""Graphs: read from files and called, printed, drawn, changed by passes. `HybridBlock.export` writes them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from mxnet import _core
from mxnet._atomic_file import write_atomically
from mxnet._graph_parts import Parts, flattened, is_kind, join
from mxnet._graph_passes import (
    PART_OPERATOR,
    bisect,
    passes,
    register_partitioner,
    register_pass,
    unregister_pass,
    without_pass,
)
from mxnet._graph_plot import plot, view
from mxnet._graph_view import GraphNode, GraphValue, TracedGraph
from mxnet._operator_watch import nan_check
from mxnet.base import PathLike
from mxnet.error import FileFormatError, UnsupportedError
from mxnet.numpy import ndarray

__all__ = [
    "Graph",
    "GraphNode",
    "GraphValue",
    "TracedGraph",
    "bisect",
    "load",
    "nan_check",
    "passes",
    "plot",
    "read",
    "register_partitioner",
    "register_pass",
    "unregister_pass",
    "view",
    "without_pass",
    "write",
]


class _Slot:
    """Stands for array number `index` of the results."""

    def __init__(self, index: int) -> None:
        self.index = index


def _described(value: Any, name: str) -> Any:
    """The form of nested results as JSON."""
    if isinstance(value, _Slot):
        return {"array": value.index}
    if isinstance(value, Parts):
        return {"parts": [value.kind, value.rest, [_described(item, name) for item in value.arrays]]}
    if isinstance(value, tuple | list):
        items = [_described(item, name) for item in value]
        return {"tuple": items} if isinstance(value, tuple) else {"list": items}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"export: `{name}` returns a dict with keys that are no strings, which a file cannot hold")
        return {"dict": {key: _described(item, name) for key, item in value.items()}}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"export: `{name}` returns a '{type(value).__name__}', which a file cannot hold")


def _checked(form: Any, num_arrays: int) -> None:
    """Refuse a form of results that `_described` did not write; ValueError."""
    if not (isinstance(form, dict) and len(form) == 1):
        raise ValueError(f"{form!r} is no form of results")
    ((kind, content),) = form.items()
    if kind == "array" and isinstance(content, int) and 0 <= content < num_arrays:
        return
    if kind == "value" and (content is None or isinstance(content, bool | int | float | str)):
        return
    if kind == "parts" and isinstance(content, list) and len(content) == 3 and is_kind(content[0]):
        items = list(content[2])
    elif kind == "dict" and isinstance(content, dict):
        items = list(content.values())
    elif kind in ("tuple", "list") and isinstance(content, list):
        items = content
    else:
        raise ValueError(f"{form!r} is no form of results")
    for item in items:
        _checked(item, num_arrays)


def _checked_arguments(forms: Any, inputs: Any) -> list[Any] | None:
    """Forms of arguments as `write` has them; ValueError if they are others."""
    if forms is None:
        return None
    num_arrays = sum("array" not in entry for entry in inputs)
    for form in forms:
        if form is not None:
            kind, _, count = form
            if not is_kind(kind) or not isinstance(count, int) or count < 1:
                raise ValueError(f"{form!r} is no form of an argument")
            num_arrays -= count - 1
    if num_arrays != len(forms):
        raise ValueError(f"the graph has {num_arrays - len(forms)} arguments more than its forms have")
    return list(forms)


def _built(form: Any, arrays: list[ndarray]) -> Any:
    """Nested results of a form."""
    ((kind, content),) = form.items()
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return {key: _built(item, arrays) for key, item in content.items()}
    if kind == "value":
        return content
    if kind == "parts":
        return join(Parts(content[0], content[1], tuple(_built(item, arrays) for item in content[2])))
    items = [_built(item, arrays) for item in content]
    return tuple(items) if kind == "tuple" else items


def document(found: Any, names: Mapping[int, str], name: str) -> tuple[dict[str, Any], list[tuple[str, ndarray]]]:
    """The entries of a file for a graph.

    Parameters
    ----------
    found : (_core.CompiledGraph, object)
        The graph, and its nested results with `slot(i)` in place of array i.
    names : mapping of int to str
        Names of known arrays by their storages.
    name : str
        What errors call the function.

    Returns
    -------
    (dict, list of (str, ndarray))
        The entries, and the arrays that the graph needs.
    """
    graph, results = found
    form = _described(results, name)
    text, arrays = graph.export(dict(names))
    operators: set[object] = set()

    def noted(entry: dict[str, Any]) -> dict[str, Any]:
        operators.add(entry.get("op"))
        return entry

    entries = json.loads(text, object_hook=noted) | {"results": form}
    if PART_OPERATOR in operators:
        raise UnsupportedError(
            f"{name}.export: a partitioner written in Python compiled a part of the graph, and a file does not hold "
            "its code; export the network without it, after `optimize_for(x, clear=True)`"
        )
    return entries, arrays


def _computed(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a document computes: without lines, and without modes of operators to which the mode makes no difference."""

    def without(node: dict[str, Any]) -> dict[str, Any]:
        is_added = "python" in node or "module" in node
        return {key: x for key, x in node.items() if key != "line" and (is_added or key != "training")}

    return {**document, "nodes": [without(node) for node in document["nodes"]]}


def write(
    found: tuple[Any, Any],
    trained: tuple[Any, Any] | None,
    names: Mapping[int, str],
    parameters: Mapping[str, Any],
    files: tuple[PathLike, PathLike],
    name: str,
    forms: Sequence[Any] | None = None,
) -> str:
    """Write a compiled graph and its arrays.

    Parameters
    ----------
    found : (_core.CompiledGraph, object)
        The graph for prediction, and its nested results with `slot(i)` in place of array i.
    trained : (_core.CompiledGraph, object) or None
        The same for training mode. It is written if it differs.
    names : mapping of int to str
        Names of known arrays by their storages.
    parameters : mapping of str to Parameter
        The block's parameters by name: those whose values the graph needs are written as they are.
    files : tuple of path
        For the graph and for the arrays. Each is written whole or not at all, the arrays first.
    name : str
        What errors call the function.
    forms : sequence, optional
        For each argument of the function None, or the kind, what is no array, and the number of arrays of a sparse or
        ragged one. By default every argument is an array.

    Returns
    -------
    str
        Why the graph for training mode could not be written; empty if it was, and if it does not differ.

    Raises
    ------
    OSError
        If a file cannot be written.
    TypeError
        If the results hold something else than arrays, numbers, strings, tuples, lists and dicts of them.
    UnsupportedError
        If a partitioner of this process compiled a part of the graph: a file does not hold its code.
    """
    from mxnet.gluon._checkpoint import save_arrays

    entries, arrays = document(found, names, name)
    left_out = ""
    if trained is not None:
        try:
            other, others = document(trained, names, name)
        except UnsupportedError as error:
            other, others, left_out = entries, [], str(error)
        if _arguments(other) != _arguments(entries):
            left_out = "the two graphs differ in the lengths that their arguments may have"
        elif _computed(other) != _computed(entries):
            written, known = dict(arrays), set(names.values())
            new_names = {n: n if n in known else _name_of_constant(x, n, written, known) for n, x in others}
            for entry in other["inputs"]:
                if "array" in entry:
                    entry["array"] = new_names[entry["array"]]
            arrays = list({**written, **{new_names[n]: x for n, x in others}}.items())
            entries["training"] = other
    entries["trainable"] = [name for name, parameter in parameters.items() if parameter.grad_req != "null"]
    if forms is not None:
        entries["arguments"] = list(forms)
    values = {name: parameters[name].data() if name in parameters else array for name, array in arrays}
    symbol_file, param_file = files

    def write_text(path: str) -> None:
        Path(path).write_text(json.dumps(entries), encoding="utf-8")

    save_arrays(param_file, values, {"format": "mxnet"})
    write_atomically(symbol_file, write_text)
    return left_out


def _arguments(document: Mapping[str, Any]) -> Any:
    """What arrays a graph takes: numbers and shapes of arguments, and the axes that may have any length."""
    shapes = [(x["argument"], x["view"]["shape"], x["view"]["dtype"]) for x in document["inputs"] if "argument" in x]
    sizes = document.get("dynamic", {}).get("sizes", [])
    return sorted(shapes), [size for size in sizes if "argument" in size]


def _name_of_constant(array: ndarray, name: str, written: Mapping[str, ndarray], known: Collection[str]) -> str:
    """A name for an array of the training graph that is no parameter: that of an equal one of the first graph, if any.

    Both graphs number such arrays, so the numbers alone do not tell them apart.
    """
    for other, candidate in written.items():
        is_like = other not in known and (array.shape, array.dtype) == (candidate.shape, candidate.dtype)
        if is_like and array.tobytes() == candidate.tobytes():
            return other
    return f"training.{name}"


def slot(index: int) -> _Slot:
    """What stands for array number `index` of the results in `write`.

    Parameters
    ----------
    index : int

    Returns
    -------
    object
    """
    return _Slot(index)


class Graph:
    """A graph from a file, with its arrays; made by `load`.

    It runs without Python's interpreter, and several threads may call it at the same time. Calls are in prediction
    mode; `gluon.SymbolBlock` has the graph for training mode, too.

    Attributes
    ----------
    arguments : list of (list of int, str)
        Shape and dtype of each argument.
    arrays : dict of str to ndarray
        The arrays that the graph needs beside its arguments, by name.
    trainable : list of str
        Names of the arrays that were parameters with gradients.
    extra : list of str
        Names of arrays that came with the graph and that it does not need.
    """

    def __init__(self, text: str, arrays: Mapping[str, ndarray], source: str) -> None:
        try:
            document = json.loads(text)
            if isinstance(document, dict) and "arg_nodes" in document:
                raise FileFormatError(
                    f"{source!r} is a graph of an older MXNet, which cannot be read: write the network as a "
                    "HybridBlock, whose `load_parameters` reads the parameters of the graph"
                )
            inputs = document["inputs"]
            form = document.get("results")
            self.trainable: list[str] = list(document.get("trainable", []))
            self._trained: dict[str, Any] | None = document.get("training")
            others = [] if self._trained is None else self._trained["inputs"]
            needed = [entry["array"] for entry in (*inputs, *others) if "array" in entry]
            if form is not None:
                _checked(form, len(document["outputs"]))
            self._forms = _checked_arguments(document.get("arguments"), inputs)
            self._captured = [entry["array"] for entry in inputs if "array" in entry and not entry.get("constant")]
        except FileFormatError:
            raise
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise FileFormatError(f"{source!r} is damaged or no graph: {error!r}") from error
        missing = [name for name in needed if name not in arrays]
        if missing:
            raise FileFormatError(f"{source!r} needs arrays that are not there: {', '.join(missing[:5])}")
        self.arrays = {name: arrays[name] for name in needed}
        self.extra = [name for name in arrays if name not in self.arrays]
        try:
            self._loaded = _core.LoadedGraph(text, self.arrays)
        except ValueError as error:
            raise FileFormatError(f"{source!r}: {error}") from error
        self._form = form
        self._text = text
        self._source = source
        self.arguments: list[tuple[list[int], str]] = self._loaded.arguments

    def __call__(self, *arguments: Any) -> Any:
        """Run the graph.

        Parameters
        ----------
        *arguments : ndarray, sparray or RaggedArray
            In the dtypes and shapes that `arguments` says. Sparse and ragged ones may be given as their parts, too.

        Returns
        -------
        ndarray, sparray, RaggedArray or nested tuples, lists and dicts
            What the exported network returns.

        Raises
        ------
        ValueError
            If there are too many or too few arguments, or one has another shape.
        TypeError
            If an argument has another dtype.
        """
        return self._nested(self._loaded.run(self._flat_arrays(arguments)))

    def _interpret(self, arguments: tuple[Any, ...], values: Mapping[str, ndarray]) -> Any:
        """Run the graph operator by operator, with other values of its arrays."""
        return self._nested(
            self._loaded.interpret(self._flat_arrays(arguments), [values[name] for name in self._captured])
        )

    def _for_training(self) -> Graph | None:
        """The graph for training mode, if the file has one; FileFormatError if that is damaged."""
        if self._trained is None:
            return None
        document = self._trained | {"arguments": self._forms}
        return Graph(json.dumps(document), self.arrays, f"{self._source} (training)")

    @property
    def num_arguments(self) -> int:
        """Number of arguments of a call; sparse and ragged ones count once, but have several entries in `arguments`."""
        return len(self.arguments if self._forms is None else self._forms)

    def _flat_arrays(self, arguments: tuple[Any, ...]) -> list[ndarray]:
        return list(arguments) if self._forms is None else flattened(self._forms, arguments, "graph")

    def _nested(self, outputs: list[ndarray]) -> Any:
        if self._form is not None:
            return _built(self._form, outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __str__(self) -> str:
        return str(self._loaded)


def read(symbol_file: PathLike, param_file: PathLike | None) -> Graph:
    """Read a graph and its arrays.

    Parameters
    ----------
    symbol_file : path
    param_file : path, optional
        By default the one with the largest number among ``<name>-0000.params``, ... beside ``<name>-symbol.json``.

    Returns
    -------
    Graph

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    FileFormatError
        If a file is damaged, of a newer version or needs operators that are not there.
    """
    from mxnet.gluon._checkpoint import load_arrays

    source = os.fspath(symbol_file)
    _core.check_file(source)
    try:
        text = Path(source).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{source!r} is no text") from error
    if param_file is None:
        name = re.sub(r"-symbol\.json$", "", os.path.basename(source))
        folder = Path(source).parent
        found = sorted(path for path in folder.iterdir() if re.fullmatch(re.escape(name) + r"-\d+\.params", path.name))
        arrays = load_arrays(found[-1]) if found else {}
    else:
        arrays = load_arrays(param_file)
    return Graph(text, arrays, source)


def load(symbol_file: PathLike, param_file: PathLike | None = None) -> Graph:
    """Read what `HybridBlock.export` wrote, to be called; nothing in the files is executed but operators.

    Parameters
    ----------
    symbol_file : path
        ``<name>-symbol.json``.
    param_file : path, optional
        By default the one with the largest number among ``<name>-0000.params``, ... in the same folder.

    Returns
    -------
    Graph

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    FileFormatError
        If a file is damaged, of a newer version or needs operators that are not there.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2)
    >>> net.initialize(mx.init.One())
    >>> net.hybridize()
    >>> _ = net(np.ones((1, 3)))
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> files = net.export(os.path.join(folder, "dense"))
    >>> mx.graph.load(files[0])(np.ones((1, 3)))
    array([[3., 3.]])
    """
    return read(symbol_file, param_file)
