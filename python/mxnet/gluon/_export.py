"""Export of a compiled block to files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mxnet import _core, autograd
from mxnet._autocast import autocast
from mxnet._caller_warning import warn_caller
from mxnet._core import ndarray
from mxnet._graph_parts import Parts, arguments_of, has_parts, join_traced, split
from mxnet._jit import Compiled, InputSpec
from mxnet.base import PathLike
from mxnet.error import UnsupportedError
from mxnet.gluon._graph_options import GraphOptions
from mxnet.numpy import zeros
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._traced import LongestUnknownError

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["prediction_graph", "write_graph"]

# Passes that prepare a graph for our kernels.
_OF_COMPILED_GRAPHS = (
    *("forward_copies", "remove_copies", "fuse_epilogues", "repeat_cheap_nodes", "gather_independent_nodes", "fuse"),
)


def write_graph(block: Block, compiled: Compiled | None, path: PathLike, epoch: int) -> tuple[str, str]:
    """Write the graph of a block's last call and its parameters.

    Parameters
    ----------
    block : Block
    compiled : Compiled or None
        The block's compiled `forward`; None if it is not hybridized.
    path : path
        The files are ``<path>-symbol.json`` and ``<path>-<epoch>.params`` (four digits).
    epoch : int

    Returns
    -------
    tuple of str
        The names of both files.

    Raises
    ------
    RuntimeError
        If the block is not hybridized or was not called yet, or shapes of its results depend on values.
    UnsupportedError
        If its last call was with ragged arrays and the number of rows of a result is made of their lengths, or a
        partitioner of this process compiled a part of its graph.
    """
    from mxnet import graph as graphs

    name = type(block).__name__
    found, forms, (args, kwargs, dtype) = prediction_graph(block, compiled, f"{name}.export")
    assert compiled is not None  # `prediction_graph` refuses other blocks
    options: GraphOptions = block._graph_options  # type: ignore[attr-defined]  # of hybrid blocks, which alone are compiled
    trained, problem = None, "shapes of its results depend on values"
    with autograd.pause(), autograd.train_mode(), autocast(dtype):
        try:
            trained, forms_in_training = _graph(compiled, args, kwargs, options, name)
        except Exception as error:  # noqa: BLE001  # `forward` may refuse training mode by any error; it is shown below
            problem = str(error)
    if trained is not None and forms_in_training != forms:
        trained, problem = None, "it needs the length of the longest row"
    parameters = block.collect_params()
    names = {_core.storage_of(parameter.data()): key for key, parameter in parameters.items()}
    files = f"{os.fspath(path)}-symbol.json", f"{os.fspath(path)}-{epoch:04d}.params"
    left_out = graphs.write(found, trained, names, parameters, files, name, forms)
    if trained is None or left_out:
        warn_caller(f"{name}.export: the file is for prediction, no graph for training mode: {left_out or problem}")
    return files


def prediction_graph(
    block: Block,
    compiled: Compiled | None,
    caller: str,
    specs: list[InputSpec | None] | None = None,
    *,
    any_batch: bool = True,
) -> tuple[Any, Any, Any]:
    """The graph of a block's last call in prediction mode.

    Parameters
    ----------
    block : Block
    compiled : Compiled or None
        The block's compiled `forward`; None if it is not hybridized.
    caller : str
        What errors call the function.
    specs : list of InputSpec or None, optional
        Which axes of the arguments may have any length. By default the first, as far as the block can.
    any_batch : bool
        Without `specs`: False for a graph for arrays of the sizes of the last call only, whose operators are those that
        the block calls.

    Returns
    -------
    (found, forms, last)
        The graph with the structure of its results; forms of sparse and ragged arguments; positional arguments, keyword
        arguments and dtype of mixed precision of the last call.

    Raises
    ------
    RuntimeError
        If the block is not hybridized or was not called yet, or shapes of its results depend on values.
    UnsupportedError
        If there is no graph for the lengths that `specs` say.
    """
    from mxnet import graph as graphs

    last: Any = None if compiled is None else compiled.last_arguments()
    if compiled is not None and last is None and compiled.trace_report():
        raise RuntimeError(
            f"{caller}: shapes of its results depend on values, which a graph in a file does not know\n"
            "  hint: export the part of the network before the mask, or weight elements instead of leaving them out"
        )
    if compiled is None or last is None:
        raise RuntimeError(f"{caller}: call `hybridize()`, then the block once with arrays like those of later calls")
    args, kwargs, dtype = last
    options: GraphOptions = block._graph_options  # type: ignore[attr-defined]  # of hybrid blocks, which alone are compiled
    with autograd.pause(), autograd.predict_mode(), autocast(dtype):
        if specs is None and not any_batch and not any(map(has_parts, (*args, *kwargs.values()))):
            function = compiled.__wrapped__  # type: ignore[attr-defined]
            untouched = Compiled(function, _OF_COMPILED_GRAPHS, None, options.backend)
            found, forms = untouched.graph_for(args, kwargs, graphs.slot), None
        elif specs is None:
            found, forms = _graph(compiled, args, kwargs, options, type(block).__name__)
        else:
            found, note = _graph_of_any_lengths(compiled.__wrapped__, args, specs, options)  # type: ignore[attr-defined]
            forms = None
            if found is None:
                raise UnsupportedError(f"{caller}: the network has no graph for any length of these axes: {note}")
    if found is None:
        raise RuntimeError(f"{caller}: shapes of its results depend on values")
    return found, forms, last


def _graph(compiled: Compiled, args: Any, kwargs: Any, options: GraphOptions, name: str) -> tuple[Any, Any]:
    """The graph for the current mode with the structure of its results; the forms of sparse and ragged arguments."""
    from mxnet import graph as graphs

    if not any(map(has_parts, (*args, *kwargs.values()))):
        found = _graph_of_any_batch(compiled, args, kwargs, options)
        return found or compiled.graph_for(args, kwargs, graphs.slot), None
    try:
        return _graph_of_parts(compiled, args, kwargs, options, name, has_steps=False)
    except LongestUnknownError:
        return _graph_of_parts(compiled, args, kwargs, options, name, has_steps=True)


def _graph_of_any_lengths(
    function: Callable[..., Any], arguments: tuple[Any, ...], specs: list[InputSpec | None], options: GraphOptions
) -> tuple[Any, str]:
    """The graph of a function for any lengths that `specs` name; else None and the reason."""
    from mxnet import graph as graphs

    made = Compiled(function, (), specs, None, options.memory_budget, options.partition_if_dynamic)
    found = made.graph_for(arguments, {}, graphs.slot)
    if found is None:
        return None, "shapes of its results depend on values"
    entry = made.trace_report()[0]
    return (found, "") if "num_sizes" in entry else (None, entry.get("note", ""))


def _graph_of_any_batch(compiled: Compiled, args: Any, kwargs: Any, options: GraphOptions) -> Any:
    """A graph for any number of samples; None if there is none.

    Samples are along the first axis of the arguments. Sequences, the first argument with three axes, have samples and
    steps along the first two, and both may be any then. Axes that are not as long as these in the first argument keep
    their lengths. There is no such graph if the block was told which axes may have any length, or has a backend, whose
    parts are compiled for certain shapes.
    """
    if options.dynamic is not None or options.backend is not None:
        return None
    arrays = [x for x in args if isinstance(x, ndarray)]
    if kwargs or len(arrays) < len(args) or not arrays or not arrays[0].ndim:
        return None
    first = arrays[0].shape
    for number in (2, 1) if len(first) == 3 and first[0] != first[1] else (1,):
        names = {first[axis]: f"n{axis}" for axis in range(number)}
        specs: list[InputSpec | None] = [
            InputSpec(*(names.get(n, n) for n in x.shape[:number]), *x.shape[number:]) for x in arrays
        ]
        found, _ = _graph_of_any_lengths(compiled.__wrapped__, args, specs, options)  # type: ignore[attr-defined]
        if found is not None:
            return found
    return None


def _graph_of_parts(
    compiled: Compiled, args: Any, kwargs: Any, options: GraphOptions, name: str, *, has_steps: bool
) -> tuple[Any, list[Any]]:
    """The graph of a function of the parts of sparse and ragged arrays, and the forms of the function's arguments.

    It serves ragged arrays of any lengths and any number of rows, and sparse arrays of one shape and any number of
    stored elements. The first axis of other arguments, if it is as long as a ragged one has rows in the last call, is
    so in all calls; their other axes keep their lengths. With `has_steps` the graph has an argument as long as the
    longest row for each ragged axis.
    """
    if kwargs:
        raise UnsupportedError(
            f"{name}.export: a network of sparse or ragged arguments takes them by position, not `{next(iter(kwargs))}`"
        )
    forms: list[Any] = []
    known: list[Any] = []  # The number of an array, or `Parts` of numbers.
    flat_arrays: list[ndarray] = []
    lengths: list[str | None] = []  # Names of the lengths of first axes that may be any.
    beside: list[int] = []
    for number, x in enumerate(args):
        if has_parts(x):
            steps = {"has_steps": True} if has_steps and isinstance(x, RaggedArray) else {}
            parts = arguments_of(x, **steps)
            numbers = tuple(range(len(flat_arrays), len(flat_arrays) + len(parts.arrays)))
            forms.append([parts.kind, parts.rest, len(numbers)])
            known.append(parts._replace(arrays=numbers))
            flat_arrays += parts.arrays
            names = x._file_lengths(**steps)
            lengths += [
                n if n is None or (n.startswith("rows ") and n[5:].isdigit()) else f"{n} of {number}" for n in names
            ]
        elif isinstance(x, ndarray):
            forms.append(None)
            known.append(len(flat_arrays))
            if x.ndim:
                beside.append(len(flat_arrays))
            flat_arrays.append(x)
            lengths.append(None)
        else:
            raise UnsupportedError(
                f"{name}.export: arguments beside sparse and ragged ones must be arrays, found {x!r}"
            )

    def function(*arrays: Any) -> Any:
        bound = [
            join_traced(x._replace(arrays=tuple(arrays[i] for i in x.arrays))) if isinstance(x, Parts) else arrays[x]
            for x in known
        ]
        return split(compiled.__wrapped__(*bound))  # type: ignore[attr-defined]

    free = list(lengths)
    for i in beside:
        rows = f"rows {flat_arrays[i].shape[0]}"
        free[i] = rows if rows in lengths else None
    note = ""
    for chosen in (free, lengths) if free != lengths else (lengths,):
        # Lengths that are equal in a call are taken for one: these differ, and no values are read.
        sizes = {length: 5 + 2 * i for i, length in enumerate(dict.fromkeys(n for n in chosen if n is not None))}
        shapes = [x.shape if n is None else (sizes[n], *x.shape[1:]) for x, n in zip(flat_arrays, chosen, strict=True)]
        examples = [zeros(shape, x.dtype, device=x.device) for shape, x in zip(shapes, flat_arrays, strict=True)]
        specs = [_spec(x.shape, n) for x, n in zip(flat_arrays, chosen, strict=True)]
        found, note = _graph_of_any_lengths(function, tuple(examples), specs, options)
        if found is not None:
            return found, forms
    raise UnsupportedError(f"{name}.export: the network has no graph for all lengths of its arguments: {note}")


def _spec(shape: tuple[int, ...], length: str | None) -> InputSpec | None:
    return None if length is None else InputSpec(length, *shape[1:])
