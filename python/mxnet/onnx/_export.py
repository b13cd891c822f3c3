"""Export of networks as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as onp

from mxnet import _core
from mxnet._caller_warning import warn_caller
from mxnet.base import PathLike
from mxnet.error import UnsupportedError
from mxnet.numpy import ndarray
from mxnet.onnx._exporter import sizes
from mxnet.onnx._exporter.builder import Builder, Value
from mxnet.onnx._exporter.conditions import described
from mxnet.onnx._exporter.graph import Graph, View, fold_constants, to_numpy
from mxnet.onnx._exporter.model import OPSET, Tensor, make_model, write_model
from mxnet.onnx._exporter.operators import translated_names
from mxnet.onnx._exporter.source import Source, dtype_name, source_of
from mxnet.onnx._exporter.translate import translate
from mxnet.onnx._package import onnx_package

__all__ = ["export_model", "get_operator_support"]

# What is added to the lengths of the example for the sizes at which a graph is translated. A size at which something is
# equal by chance (a slice that is the whole axis) makes other nodes; then the next list is tried.
_STEPS = ((0, 1, 3, 4, 9, 20, 38, 67), (5, 6, 8, 15, 24, 41, 71, 104), (0, 1, 2, 3, 4, 5, 6, 7))
# Sizes that are needed to find how a number depends on them.
_MIN_SIZES = 4


def export_model(
    sym: Any,
    params: PathLike | Mapping[str, ndarray] | None = None,
    in_shapes: Sequence[Sequence[int]] | None = None,
    in_types: Any = onp.float32,
    onnx_file_path: PathLike = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Sequence[Sequence[int | str | None]] | None = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Sequence[Sequence[int]] | None = None,
    large_model: bool = False,
) -> str:
    """Write a network as an ONNX model, in prediction mode.

    Parameters
    ----------
    sym : HybridBlock, mx.graph.Graph or path
        A hybridized network, a graph that was read from a file, or the file ``<name>-symbol.json`` of
        `HybridBlock.export`.
    params : path or dict of str to ndarray, optional
        For a path `sym`: the file ``<name>-0000.params``, by default the newest one beside `sym`, or the arrays.
    in_shapes : list of tuple of int, optional
        Shapes of the arguments. By default those of the network's last call, or of the call that was exported.
    in_types : dtype or list of dtype
        Dtypes of the arguments: of all, or of each. They count if `in_shapes` is given; a graph from a file has dtypes
        of its own, which must be the same.
    onnx_file_path : path
        The file to write. It is replaced whole or not at all.
    verbose : bool
        Print the exported graph.
    dynamic : bool
        Let axes have any length: those of `dynamic_input_shapes`; by default the first axis of the arguments (number of
        samples), and the second of a first argument of three axes (number of steps), as far as the network can.
    dynamic_input_shapes : list of tuple, optional
        For each argument its lengths; None or a name for an axis that may have any. Axes of one name have one length.
    run_shape_inference : bool
        Add the shapes of all values between nodes to the model.
    input_type, input_shape : optional
        Older names of `in_types` and `in_shapes`.
    large_model : bool
        Write the elements of parameters to ``<onnx_file_path>.data``. Models above 2 GiB need it.

    Returns
    -------
    str
        `onnx_file_path`.

    Raises
    ------
    ImportError
        If the package `onnx` is not installed.
    UnsupportedError
        If ONNX cannot express an operator, or a number depends on the lengths of axes in a way that is not known. The
        message names the operator and the line that called it.
    RuntimeError
        If the network is not hybridized, or was not called and `in_shapes` is not given.
    ValueError
        If shapes or dtypes do not fit the network.
    OSError
        If the file cannot be written.

    Notes
    -----
    The model has opset 21, or 22 if it computes in bfloat16. Parameters have their structural names
    (``features.0.weight``), arguments the names that `forward` gives them, results ``output``, ``output_0`` and so on,
    or the keys of a dict. What depends on constants only is computed at export. Random numbers come from the runtime:
    the distributions are the same, the numbers are not. Indices that are out of bounds are errors in `mxnet`; a runtime
    may return any element.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2)
    >>> net.initialize(mx.init.One())
    >>> net.hybridize()
    >>> _ = net(np.ones((1, 3)))
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "dense.onnx")
    >>> path == mx.onnx.export_model(net, onnx_file_path=path, dynamic=True)
    True
    """
    if input_shape is not None:
        warn_caller("the argument 'input_shape' is deprecated; use 'in_shapes'", DeprecationWarning)
        in_shapes = input_shape if in_shapes is None else in_shapes
    if input_type is not None:
        warn_caller("the argument 'input_type' is deprecated; use 'in_types'", DeprecationWarning)
        in_types = input_type
    if dynamic_input_shapes is not None and not dynamic:
        raise ValueError("export_model: `dynamic_input_shapes` needs `dynamic=True`")
    onnx = onnx_package("export_model")
    count = len(in_shapes) if in_shapes is not None else 1
    types = list(in_types) if isinstance(in_types, list | tuple) else [in_types] * count
    if in_shapes is not None and len(types) != count:
        raise ValueError(f"export_model: {count} shapes in `in_shapes` and {len(types)} dtypes in `in_types`")
    source = source_of(sym, params, in_shapes, types, dynamic_input_shapes, is_dynamic=dynamic)
    made = _Export(source, in_shapes, types, is_dynamic=dynamic, free=dynamic_input_shapes)
    model = made.model(onnx)
    if run_shape_inference:
        model = onnx.shape_inference.infer_shapes(model)
    write_model(onnx, model, onnx_file_path, is_large=large_model)
    if verbose:
        print(onnx.printer.to_text(model.graph))
    return os.fspath(onnx_file_path)


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """Names of the operators that `export_model` translates.

    Parameters
    ----------
    opset_version : int, optional
        An opset of ONNX, at least 21: that of the models, which runtimes for later opsets read, too.

    Returns
    -------
    list of str
        As graphs name them (`mx.graph.Graph`). Operators that are made of others, and views, are exported as well.

    Raises
    ------
    ValueError
        For an opset before 21.

    Examples
    --------
    >>> "convolution" in mx.onnx.get_operator_support()
    True
    """
    if opset_version is not None and opset_version < OPSET:
        raise ValueError(f"get_operator_support: exported models have opset {OPSET}, found {opset_version}")
    return translated_names()


def _text_name(name: str, taken: set[str]) -> str:
    """A name that can be written as UTF-8 and that no other tensor has."""
    stem = name.encode("utf-8", "backslashreplace").decode() or "value"
    found, count = stem, 0
    while found in taken:
        count += 1
        found = f"{stem}.{count}"
    taken.add(found)
    return found


class _Export:
    """A source with the sizes for which it is exported."""

    def __init__(self, source: Source, shapes: Any, types: Sequence[Any], *, is_dynamic: bool, free: Any) -> None:
        self._source = source
        self._names = free
        # Arrays that are the same at all sizes, once they are read.
        self._read: dict[str, tuple[View, onp.ndarray, str]] = {}
        taken: set[str] = set()
        self._parameters = {name: _text_name(name, taken) for name in sorted(source.parameters)}
        self._arguments = [_text_name(name, taken) for name in source.arguments]
        self._results = [(_text_name(name, taken), number) for name, number in source.results]
        self._taken = taken
        self._loaded = _core.LoadedGraph(source.text, dict(source.arrays))
        traced = Graph(source.text)
        self._traced = traced
        self._views = {x.argument: x.view for x in traced.inputs if x.argument is not None}
        shown = source.shapes or [self._views[i].shape for i in range(len(source.arguments))]
        self._examples = [list(shape) for shape in shown]
        declared: list[tuple[list[int | None], str]] = self._loaded.arguments
        sizes_of_file = traced.document.get("dynamic", {}).get("sizes", [])
        self._sizes = [(x["argument"], x["axis"]) for x in sizes_of_file if "argument" in x]
        if shapes is not None:
            self._set_shapes(shapes, types, declared)
        self._free = self._free_axes(free) if is_dynamic else []

    def _set_shapes(self, shapes: Any, types: Sequence[Any], declared: list[tuple[list[int | None], str]]) -> None:
        if len(shapes) != len(declared):
            raise ValueError(f"export_model: the network takes {len(declared)} arrays, found {len(shapes)} shapes")
        for i, (shape, (lengths, dtype)) in enumerate(zip(shapes, declared, strict=True)):
            expected = tuple("any" if n is None else n for n in lengths)
            fits = len(shape) == len(lengths) and all(n in (None, m) for n, m in zip(lengths, shape, strict=True))
            if not fits:
                listed = ", ".join(map(str, expected))
                raise ValueError(f"export_model: argument {i} must have shape ({listed}), found {tuple(shape)}")
            if dtype_name(types[i]) != dtype:
                raise ValueError(f"export_model: argument {i} must be {dtype}, found {dtype_name(types[i])}")
            self._examples[i] = [int(n) for n in shape]

    def _free_axes(self, free: Any) -> list[int]:
        """Numbers of the sizes that stay open."""
        if not self._sizes:
            raise UnsupportedError(
                "export_model: `dynamic=True`: the graph is for arrays of one size\n"
                "  hint: `hybridize(dynamic=...)` says which axes may have any length; `trace_report` says why none can"
            )
        if free is None:
            return list(range(len(self._sizes)))
        if len(free) != len(self._examples):
            raise ValueError(
                f"export_model: the network takes {len(self._examples)} arrays, found {len(free)} entries in "
                "`dynamic_input_shapes`"
            )
        chosen = []
        for i, shape in enumerate(free):
            if len(shape) != len(self._examples[i]):
                raise ValueError(
                    f"export_model: argument {i} has {len(self._examples[i])} axes, found {len(shape)} in "
                    "`dynamic_input_shapes`"
                )
        for number, (argument, axis) in enumerate(self._sizes):
            length = free[argument][axis]
            if isinstance(length, int):
                self._examples[argument][axis] = length
            else:
                chosen.append(number)
        self._check_fixed(free)
        return chosen

    def _check_fixed(self, free: Any) -> None:
        """Refuse open axes that the graph fixes."""
        declared: list[tuple[list[int | None], str]] = self._loaded.arguments
        for i, (shape, (lengths, _)) in enumerate(zip(free, declared, strict=True)):
            for axis, (wanted, known) in enumerate(zip(shape, lengths, strict=True)):
                if known is not None and wanted != known:
                    found = "any length" if not isinstance(wanted, int) else str(wanted)
                    raise ValueError(f"export_model: axis {axis} of argument {i} has length {known}, found {found}")

    def model(self, onnx: Any) -> Any:
        """The ONNX model."""
        problem: sizes.StructureError | None = None
        for steps in _STEPS if self._free else _STEPS[:1]:
            try:
                return self._model_at(onnx, self._shapes_at(steps) if self._free else [self._examples])
            except sizes.StructureError as error:
                problem = error
        assert problem is not None
        raise problem

    def _shapes_at(self, steps: Sequence[int]) -> list[list[list[int]]]:
        """Shapes of the arguments at several sizes. Each open axis has another order of lengths."""
        found = []
        for at in range(len(steps)):
            shapes = [list(shape) for shape in self._examples]
            for number in self._free:
                argument, axis = self._sizes[number]
                step = steps[(at * (2 * number + 1) + 3 * number) % len(steps)]
                shapes[argument][axis] = max(shapes[argument][axis], 2) + step
            found.append(shapes)
        return found

    def _model_at(self, onnx: Any, all_shapes: Sequence[Sequence[Sequence[int]]]) -> Any:
        graphs: list[Graph] = []
        constants: list[dict[str, ndarray]] = []
        for shapes in all_shapes:
            try:
                text, own = self._loaded.for_shapes([list(shape) for shape in shapes])
            except (ValueError, IndexError):
                # The network is not for this size: it has a largest length, for example.
                if not self._free:
                    raise
                continue
            graphs.append(Graph(text))
            constants.append(dict(own))
        if self._free and len(graphs) < _MIN_SIZES:
            raise sizes.StructureError(
                f"export_model: of {len(all_shapes)} sizes that were tried the network has graphs for {len(graphs)}\n"
                "  hint: export with `dynamic=False`"
            )
        for x in graphs[0].inputs:
            if x.is_written:
                name = self._arguments[x.argument] if x.argument is not None else self._name_of(graphs[0], x.array)
                raise UnsupportedError(
                    f"export_model: the network writes to its argument or array `{name}`, which a model cannot\n"
                    "  hint: return the new elements"
                )
        arrays = self._arrays(graphs[0])
        is_fixed = {
            name: name not in constants[0] or all(_is_same(c[name], constants[0][name]) for c in constants[1:])
            for name in arrays
        }
        folded = fold_constants(graphs, arrays | constants[0], is_fixed)
        builders, results = [], []
        for graph, own in zip(graphs, constants, strict=True):
            b = Builder(sorted(self._taken))
            known = self._constants(graph, arrays, own)
            known |= {buffer: (view, array, "") for buffer, (view, array) in folded.items()}
            results.append(translate(graph, b, self._arguments, known))
            builders.append(b)
        views = [{x.argument: x.view for x in graph.inputs if x.argument is not None} for graph in graphs]
        lengths = {
            (i, axis): sizes.Lengths(view[i].shape[axis] for view in views)
            for i in range(len(self._arguments))
            for axis in range(len(views[0][i].shape))
        }
        open_axes = [(self._arguments[self._sizes[n][0]], self._sizes[n][1]) for n in self._free]
        b = sizes.merge(builders, open_axes)
        names = self._names_of_lengths(lengths)
        inputs = [
            Tensor(name, views[0][i].dtype, _lengths_of([view[i].shape for view in views], names, name))
            for i, name in enumerate(self._arguments)
        ]
        outputs = []
        for name, number in self._results:
            made = [result[number].shape for result in results]
            self._name_result(b, results[0][number], name)
            outputs.append(Tensor(name, results[0][number].dtype, _lengths_of(made, names, name)))
        kept = list(self._parameters.values())
        return make_model(onnx, b, self._source.name, inputs, outputs, kept, self._metadata(lengths, names))

    def _metadata(
        self, lengths: Mapping[tuple[int, int], sizes.Lengths], names: Mapping[sizes.Lengths, str]
    ) -> dict[str, str]:
        """The comparisons with lengths that `forward` made: the model is for sizes with the same results."""
        entries = self._traced.document.get("dynamic", {})
        if not self._free or not entries.get("conditions"):
            return {}
        symbols = []
        for size in entries["sizes"]:
            found = lengths.get((size.get("argument", -1), size["axis"]))
            own = f"length of axis {size['axis']} of a result"
            symbols.append(own if found is None else names.get(found, str(found[0])))
        return {"conditions": "; ".join(described(condition, symbols) for condition in entries["conditions"])}

    def _name_of(self, graph: Graph, number: str) -> str:
        """The name of an input in the file, given its name in a graph of one size."""
        return str(self._traced.document["inputs"][int(number)].get("array", ""))

    def _arrays(self, graph: Graph) -> dict[str, ndarray]:
        """The arrays of a graph of one size."""
        named = {x.array: self._name_of(graph, x.array) for x in graph.inputs if x.argument is None}
        return {number: self._source.arrays[name] for number, name in named.items()}

    def _constants(
        self, graph: Graph, arrays: Mapping[str, ndarray], own: Mapping[str, ndarray]
    ) -> dict[int, tuple[View, onp.ndarray, str]]:
        """Definitions and elements of the arrays that a graph needs, by buffer; `own` are those of its size only."""
        read: dict[int, list[View]] = {}
        for node in graph.nodes:
            for operand in node.inputs:
                if isinstance(operand, View):
                    read.setdefault(operand.buffer, []).append(operand)
        for view in graph.outputs:
            read.setdefault(view.buffer, []).append(view)
        found = {}
        for x in graph.inputs:
            buffer = x.view.buffer
            if x.argument is not None or buffer not in read:
                continue
            if x.array in self._read and x.array not in own:
                found[buffer] = self._read[x.array]
                continue
            array = own.get(x.array, arrays[x.array])
            elements, dtype = to_numpy(array), read[buffer][0].dtype
            shape = elements.shape
            if str(array.dtype) != dtype:
                kind = onp.dtype("uint16" if dtype == "bfloat16" else dtype)
                elements = onp.ascontiguousarray(elements).reshape(-1).view(onp.uint8).view(kind)
                whole = [v for v in read[buffer] if v.is_dense() and v.offset == 0 and v.size == elements.size]
                shape = whole[0].shape if whole else elements.shape
            definition = View(buffer, tuple(shape), _dense_strides(shape), 0, dtype)
            name = self._parameters.get(self._name_of(graph, x.array), "")
            found[buffer] = definition, elements.reshape(shape), name
            if x.array not in own:
                self._read[x.array] = found[buffer]
        return found

    def _names_of_lengths(self, lengths: Mapping[tuple[int, int], sizes.Lengths]) -> dict[sizes.Lengths, str]:
        """Names for the lengths of open axes."""
        names: dict[sizes.Lengths, str] = {}
        for number in self._free:
            argument, axis = self._sizes[number]
            given = self._names[argument][axis] if self._names is not None else None
            stem = given or ("batch" if axis == 0 else f"{self._arguments[argument]}_{axis}")
            names.setdefault(lengths[argument, axis], stem if stem not in names.values() else f"{stem}_{number}")
        return names

    @staticmethod
    def _name_result(b: Builder, value: Value, name: str) -> None:
        """Give a result its name."""
        made = next((node for node in b.nodes if value.name and value.name in node.outputs), None)
        if made is None or any(value.name == other for other in b.named):
            renamed = b.node("Identity", [value], value.shape, value.dtype)
            b.rename(renamed.name, name)
        else:
            b.rename(value.name, name)
            value.name = name


def _is_same(x: ndarray, y: ndarray) -> bool:
    return x.shape == y.shape and to_numpy(x).tobytes() == to_numpy(y).tobytes()


def _dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, stride = [], 1
    for n in reversed(shape):
        strides.append(stride)
        stride *= n
    return tuple(reversed(strides))


def _lengths_of(
    shapes: Sequence[tuple[int, ...]], names: Mapping[sizes.Lengths, str], tensor: str
) -> tuple[int | str, ...]:
    """A shape with names for lengths that differ."""
    found: list[int | str] = []
    for axis in range(len(shapes[0])):
        lengths = sizes.Lengths(shape[axis] for shape in shapes)
        found.append(lengths[0] if len(set(lengths)) == 1 else names.get(lengths, f"{tensor}_{axis}"))
    return tuple(found)
