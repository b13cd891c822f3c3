"""Passes and partitioners added by programs, switches of passes, and the search for a pass that changes a result."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mxnet import _core
from mxnet._config import config
from mxnet._graph_view import GraphNode, TracedGraph
from mxnet._jit import jit
from mxnet.numpy import ndarray

__all__ = [
    "PART_OPERATOR",
    "bisect",
    "passes",
    "register_partitioner",
    "register_pass",
    "unregister_pass",
    "without_pass",
]


def passes() -> list[str]:
    """Names of the passes, in the order in which they run; those that were registered come first.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "fold_constants" in mx.graph.passes()
    True
    """
    return [name for name, _ in _core.graph_passes()]


def _checked(name: str, function: object, of: str) -> None:
    if not name:
        raise TypeError(f"{of}: the function needs a `name`")
    if not callable(function):
        raise TypeError(f"{of}: a function is needed, found '{type(function).__name__}'")


def register_pass(
    function: Callable[[TracedGraph], None] | None = None, *, name: str | None = None, backend: bool = False
) -> Any:
    """Run a function on every graph before it is compiled; a decorator.

    Parameters
    ----------
    function : callable
        Gets a graph (`nodes`, `inputs`, `outputs`, `replace`, `subgraph`, ...) and changes it in place.
    name : str, optional
        By default the function's name. A registered pass of the same name is replaced.
    backend : bool
        Run it only on graphs of blocks that `HybridBlock.optimize_for` names it for.

    Returns
    -------
    callable
        `function`.

    Raises
    ------
    TypeError
        If `function` cannot be called.
    ValueError
        If the library has a pass of this name. A call that compiles a graph raises it, too, if the pass leaves a graph
        that contradicts itself: the message names the pass.

    Notes
    -----
    Graphs that were compiled before are compiled anew at their next call.

    Examples
    --------
    >>> @mx.graph.register_pass
    ... def halves(graph):
    ...     for node in graph.nodes:
    ...         if node.op == "divide" and node.inputs[1] == 2:
    ...             graph.replace(node, "multiply", [node.inputs[0], 0.5])
    >>> halve = mx.jit(lambda x: x / 2)
    >>> halve(np.ones(2))
    array([0.5, 0.5])
    >>> "multiply" in str(halve.graphs[0])
    True
    >>> mx.graph.unregister_pass("halves")
    """
    if function is None:
        return lambda function: register_pass(function, name=name, backend=backend)
    name = getattr(function, "__name__", "") if name is None else name
    _checked(name, function, "register_pass")

    def run(text: str) -> str:
        graph = TracedGraph(text)
        function(graph)
        return graph._text()

    _core.register_pass(name, backend, run)
    return function


def unregister_pass(name: str) -> None:
    """Forget a registered pass or partitioner.

    Parameters
    ----------
    name : str

    Raises
    ------
    ValueError
        If there is none of this name.
    """
    if not _core.unregister_pass(name):
        raise ValueError(f"unregister_pass: no pass {name!r} is registered")


# What runs each part, by the part's name. Parts live as long as the process, because graphs hold only names. A name is
# random, so that one from a file or from a forked process is never taken for another part. The dict is that of the
# extension, which exists once in a process even if this module is imported again.
_parts: dict[str, tuple[list[tuple[tuple[int, ...], str]], Callable[..., Any]]] = _core.partition_parts


def _part(name: str) -> tuple[list[tuple[tuple[int, ...], str]], Callable[..., Any]]:
    if name not in _parts:
        raise ValueError(
            "the graph has a part that a partitioner written in Python compiled in another process: "
            "export the network without it, after `optimize_for(x, clear=True)`"
        )
    return _parts[name]


def _infer(name: str, _training: bool, _given: Any) -> list[tuple[tuple[int, ...], Any]]:
    from mxnet import numpy as np

    return [(shape, np.dtype(dtype)) for shape, dtype in _part(name)[0]]


def _run(name: str, _training: bool, inputs: list[ndarray]) -> tuple[list[ndarray], None]:
    found = _part(name)[1](*inputs)
    return ([found] if isinstance(found, ndarray) else list(found)), None


# Operator of the parts that partitioners of this process compiled. After its results it returns what it saves for a
# gradient: nothing here.
PART_OPERATOR = "graph_partition"
try:
    _core.added_operator(PART_OPERATOR)
except ValueError:
    _core.add_operator(PART_OPERATOR, "A part of a graph that a partitioner compiled.", _infer, _run, None)


def register_partitioner(
    name: str,
    select: Callable[[GraphNode], Any],
    compile: Callable[[TracedGraph], Callable[..., Any]] | None = None,
    *,
    min_nodes: int = 1,
) -> None:
    """Let parts of graphs run by other code: a backend for `HybridBlock.optimize_for`.

    Parameters
    ----------
    name : str
        Of the backend.
    select : callable of a GraphNode
        Whether the backend takes the node. Neighbours that it takes become one part, as far as no other node lies
        between them. Nodes that change arrays, draw random numbers or lie on another device than the CPU stay.
    compile : callable of a TracedGraph, optional
        Gets each part as a graph of its own; returns what runs it: a callable that takes the values of the part's
        inputs as arrays and returns an array, or a list of those of its outputs. By default `TracedGraph.compile`.
    min_nodes : int
        Smaller parts stay as they are.

    Raises
    ------
    TypeError
        If `select` or `compile` cannot be called.
    ValueError
        If the library has a pass of this name.

    Examples
    --------
    >>> found = []
    >>> def compile(part):
    ...     found.append([node.op for node in part.nodes])
    ...     return part.compile()
    >>> mx.graph.register_partitioner("elementwise", lambda node: node.op in ("exp", "relu"), compile)
    >>> net = mx.gluon.nn.HybridLambda(lambda x: npx.relu(np.exp(x) - 2).sum())
    >>> net.optimize_for(np.ones(3), backend="elementwise")
    >>> found
    [['exp'], ['relu']]
    >>> mx.graph.unregister_pass("elementwise")
    """
    _checked(name, select, "register_partitioner")
    if compile is not None:
        _checked(name, compile, "register_partitioner")

    def take(text: str) -> list[bool]:
        return [not node.writes_in_place and bool(select(node)) for node in TracedGraph(text).nodes]

    def compile_part(text: str) -> str:
        part = TracedGraph(text)
        code = part.compile() if compile is None else compile(part)
        unique = uuid.uuid4().hex
        _parts[unique] = [(y.shape, y.dtype) for y in part.outputs], code
        return unique

    _core.register_partitioner(name, min_nodes, PART_OPERATOR, take, compile_part)


@contextmanager
def without_pass(*names: str) -> Iterator[None]:
    """Leave passes out of all graphs that are compiled meanwhile; graphs that are called meanwhile are compiled anew.

    Parameters
    ----------
    *names : str
        Of `passes()`.

    Raises
    ------
    ValueError
        If there is no pass of a name.

    Examples
    --------
    >>> f = mx.jit(lambda x: np.exp(x) + 1)
    >>> with mx.graph.without_pass("fuse"):
    ...     f(np.zeros(1))
    array([2.])
    """
    known = passes()
    for name in names:
        if name not in known:
            raise ValueError(f"without_pass: there is no pass {name!r}; known are {', '.join(known)}")
    before = _core.switch_off_passes([])
    _core.switch_off_passes([*before, *names])
    try:
        yield
    finally:
        _core.switch_off_passes(before)


def _copied(value: Any) -> Any:
    if isinstance(value, ndarray):
        return value.copy()
    if isinstance(value, tuple | list):
        return type(value)(_copied(item) for item in value)
    return {key: _copied(item) for key, item in value.items()} if isinstance(value, dict) else value


def _bits(value: Any) -> Any:
    if isinstance(value, ndarray):
        return value.shape, str(value.dtype), value.asnumpy().tobytes()
    if isinstance(value, tuple | list):
        return [_bits(item) for item in value]
    return {key: _bits(item) for key, item in value.items()} if isinstance(value, dict) else value


def bisect(
    function: Callable[..., Any],
    *args: Any,
    same: Callable[[Any, Any], bool] | None = None,
    **kwargs: Any,
) -> str | None:
    """Find the pass that changes a function's result.

    Parameters
    ----------
    function : callable
        As for `jit`: a function of arrays, a block, or a compiled function.
    *args, **kwargs
        Its arguments; each run gets copies of the arrays.
    same : callable of two results, optional
        Whether they are the same; by default their bits must be.

    Returns
    -------
    str or None
        The first pass in the order of `passes()` without which the result is that of `function` itself and with
        which it is another; ``"trace"`` if the graph differs without any pass; None if it does not.

    Examples
    --------
    >>> mx.graph.bisect(lambda x: np.exp(x) + 1, np.ones(3)) is None
    True
    """
    equal = (lambda a, b: _bits(a) == _bits(b)) if same is None else same
    state = _core.random_state()

    def result(off: list[str] | None) -> Any:
        _core.set_random_state(*state)
        given, named = _copied(args), _copied(kwargs)
        if off is None:
            with config(jit=False):
                return _copied(function(*given, **named))
        unwrapped = getattr(function, "function", function)
        with without_pass(*off):
            return _copied(jit(lambda *a, **k: unwrapped(*a, **k))(*given, **named))

    expected = result(None)
    known = [name for name, is_chosen in _core.graph_passes() if not is_chosen]
    if equal(expected, result([])):
        return None
    for count in range(len(known) + 1):
        if not equal(expected, result(known[count:])):
            return known[count - 1] if count else "trace"
    return None
