"""Passes and partitioners added by programs, switches of passes, and the search for a pass that changes a result."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mxnet import _core
from mxnet._config import config
from mxnet._graph_view import GraphNode, GraphValue, TracedGraph
from mxnet._jit import jit
from mxnet.numpy import ndarray

__all__ = ["bisect", "passes", "register_partitioner", "register_pass", "unregister_pass", "without_pass"]


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


# What runs each part, by the part's number. Parts live as long as the process, because graphs hold only numbers.
_parts: dict[str, tuple[list[tuple[tuple[int, ...], str]], Callable[..., Any]]] = {}
_numbers = itertools.count()


def _infer(number: str, _training: bool, _given: Any) -> list[tuple[tuple[int, ...], Any]]:
    from mxnet import numpy as np

    return [(shape, np.dtype(dtype)) for shape, dtype in _parts[number][0]]


def _run(number: str, _training: bool, inputs: list[ndarray]) -> tuple[list[ndarray], None]:
    found = _parts[number][1](*inputs)
    return ([found] if isinstance(found, ndarray) else list(found)), None


_OPERATOR = "graph_partition"
_lock = threading.Lock()
_is_added = False


def _add_operator() -> None:
    global _is_added
    with _lock:
        if not _is_added:
            _core.add_operator(_OPERATOR, "A part of a graph that a partitioner compiled.", _infer, _run, None)
            _is_added = True


def _reads(node: GraphNode) -> list[int]:
    return [x.buffer for x in node._arrays()] + [old for old, _ in node._before.get("versions", [])]


def _makes(node: GraphNode) -> list[int]:
    return [y.buffer for y in node.outputs] + [new for _, new in node._before.get("versions", [])]


def _groups(graph: TracedGraph, select: Callable[[GraphNode], Any]) -> list[list[GraphNode]]:
    """Groups chosen nodes with neighbours, such that no path between nodes of a group passes through other nodes."""
    maker: dict[int, int] = {}
    group_of: list[int | None] = []
    # For each node, the groups that it depends on through nodes outside of the group.
    behind: list[set[int]] = []
    members: list[list[GraphNode]] = []
    for at, node in enumerate(graph.nodes):
        made_by = [maker[buffer] for buffer in _reads(node) if buffer in maker]
        chosen = None
        takes = not node.writes_in_place and bool(select(node))

        def through(group: int | None, made_by: list[int] = made_by) -> set[int]:
            found: set[int] = set()
            for other in made_by:
                found |= behind[other]
                if (of := group_of[other]) is not None and of != group:
                    found.add(of)
            return found

        if takes:
            own = [group for other in made_by if (group := group_of[other]) is not None]
            chosen = next((group for group in own if group not in through(group)), None)
            if chosen is None:
                chosen = len(members)
                members.append([])
            members[chosen].append(node)
        group_of.append(chosen)
        behind.append(through(chosen))
        maker.update((buffer, at) for buffer in _makes(node))
    return members


def _is_convex(graph: TracedGraph, group: list[GraphNode]) -> bool:
    """Whether no path leaves the group and re-enters it."""
    inside = set(map(id, group))
    # Buffers that depend on the group through a node outside of it.
    tainted: set[int] = set()
    made = {buffer for node in group for buffer in _makes(node)}
    for node in graph.nodes:
        reads = _reads(node)
        if id(node) in inside:
            if any(buffer in tainted for buffer in reads):
                return False
        elif any(buffer in tainted or buffer in made for buffer in reads):
            tainted.update(_makes(node))
    return True


def _in_order(nodes: list[GraphNode]) -> list[GraphNode]:
    """The nodes in topological order; otherwise in their original order."""
    maker: dict[int, GraphNode] = {}
    for node in nodes:
        maker.update((buffer, node) for buffer in _makes(node))
    done: set[int] = set()
    order: list[GraphNode] = []
    for first in nodes:
        waiting = [first]
        while waiting:
            node = waiting[-1]
            missing = [
                maker[b] for b in _reads(node) if b in maker and id(maker[b]) not in done and maker[b] is not node
            ]
            if id(node) in done or not missing:
                waiting.pop()
                if id(node) not in done:
                    done.add(id(node))
                    order.append(node)
            else:
                waiting.extend(missing)
    return order


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
        between them.
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

    def run(text: str) -> str:
        graph = TracedGraph(text)
        _add_operator()
        for group in _groups(graph, select):
            if len(group) < min_nodes or not _is_convex(graph, group):
                continue
            part = graph.subgraph(group)
            code = part.compile() if compile is None else compile(part)
            number = str(next(_numbers))
            _parts[number] = [(y.shape, y.dtype) for y in part.outputs], code
            # After its results the operator returns what it saves for a gradient: nothing here.
            outputs = [*part.outputs, graph.new_value((), "uint64")]
            arguments: list[GraphValue] = part._values  # type: ignore[attr-defined]
            node = GraphNode(_OPERATOR, arguments, outputs, {"parameters": number}, group[0].line)
            at = graph.nodes.index(group[-1])
            graph.nodes[at] = node
            gone = set(map(id, group))
            graph.nodes = _in_order([other for other in graph.nodes if id(other) not in gone])
        return graph._text()

    _core.register_pass(name, True, run)


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
        plain = getattr(function, "function", function)
        with without_pass(*off):
            return _copied(jit(lambda *a, **k: plain(*a, **k))(*given, **named))

    expected = result(None)
    known = [name for name, is_chosen in _core.graph_passes() if not is_chosen]
    if equal(expected, result([])):
        return None
    for count in range(len(known) + 1):
        if not equal(expected, result(known[count:])):
            return known[count - 1] if count else "trace"
    return None
