"""Compiled functions: `jit`, what runs at each call of one, and reports of what was traced."""

from __future__ import annotations

import functools
import linecache
import threading
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mxnet import _core
from mxnet.error import AbstractArrayError

__all__ = ["BoundCall", "Compiled", "at_each_call", "jit", "watch_parameters"]

# Forms of arguments for which a function keeps a graph.
_MAX_GRAPHS = 64

_PACKAGE = str(Path(__file__).parent)
_HINT = (
    "values are not known while a function is traced: use `npx.cond`, `npx.while_loop` or `np.where` instead of a "
    "Python condition, and take values out of arrays (`item`, `asnumpy`, `print`) outside the function"
)


class _State(threading.local):
    """What a trace on this thread has to be told."""

    def __init__(self) -> None:
        self.before: list[Callable[[], object]] | None = None


_state = _State()

# What has arrays that may be replaced by others: weakly held, so that nothing lives longer for being compiled.
_watched: weakref.WeakSet[Any] = weakref.WeakSet()


def watch_parameters(parameter: Any) -> None:
    """Have compiled functions notice when a parameter gets other arrays.

    Parameters
    ----------
    parameter : Parameter
        Has `_data`, a dict of arrays, and `_generation`, a number that counts its replacements.
    """
    _watched.add(parameter)


def at_each_call(action: Callable[[], object]) -> None:
    """Do something on the host now, or, in a trace, before each run of the graph.

    Parameters
    ----------
    action : callable
        Called without arguments, outside of traces and recordings.
    """
    if _state.before is None:
        action()
    else:
        _state.before.append(action)


class BoundCall:
    """A method of an object that does not keep the object alive.

    Parameters
    ----------
    method : callable
        Called with the object and the arguments.
    owner : object
        Holds what this is a part of, and so lives at least as long.
    """

    def __init__(self, method: Callable[..., Any], owner: object) -> None:
        self._method = method
        self._owner = weakref.ref(owner)
        self.__qualname__ = type(owner).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return self._method(self._owner(), *args, **kwargs)


class _Tracing:
    """One trace of a function: how it is called, and what its graph needs to know."""

    def __init__(self, function: Callable[..., Any], name: str, passes_off: list[str]) -> None:
        self.passes_off = passes_off
        self._function = function
        self._name = name
        self._before: list[Callable[[], object]] = []

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        outer, _state.before = _state.before, self._before
        try:
            return self._function(*args, **(kwargs or {}))
        except AbstractArrayError as error:
            raise AbstractArrayError(_located(self._name, error)) from error
        finally:
            _state.before = outer

    def finish(self, graph: Any) -> tuple[list[Callable[[], object]], Callable[[], bool] | None]:
        if graph is None:
            return [], None
        captured = set(graph.captured_storages)
        used = [
            (weakref.ref(parameter), parameter._generation)
            for parameter in list(_watched)
            if any(_core.storage_of(array) in captured for array in parameter._data.values())
        ]

        def is_current() -> bool:
            return all((parameter := ref()) is not None and parameter._generation == number for ref, number in used)

        return self._before, is_current if used else None


def _located(name: str, error: AbstractArrayError) -> str:
    """The message of an error in a trace, with the line of the user's program."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not (frame.filename or "").startswith(_PACKAGE)]
    text = str(error).split("\n  hint:")[0]
    if own:
        frame = own[-1]
        line = linecache.getline(frame.filename, frame.lineno or 0).strip()
        text = f"{text}\n  in `{name}`, {frame.filename}:{frame.lineno}: `{line}`"
    return f"{text}\n  hint: {_HINT}"


class Compiled(_core.JitFunction):
    """A function that runs as a compiled graph; made by `jit`.

    Calls are told apart by their signature: nested structure of the arguments, shapes, dtypes, strides and devices of
    arrays, values of everything else, whether gradients are recorded, training mode and the rules of promotion. The
    first call of each signature traces the function with arrays that have no values; later ones run its graph.

    Examples
    --------
    >>> @mx.jit
    ... def normalize(x):
    ...     return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-5)
    >>> normalize(np.array([[1.0], [3.0]]))
    array([[-0.99999],
           [ 0.99999]])
    >>> len(normalize.trace_report())
    1
    """

    def __new__(cls, function: Callable[..., Any], passes_off: tuple[str, ...] = ()) -> Compiled:
        """Make a compiled function; see `jit`."""
        name = getattr(function, "__qualname__", type(function).__name__)

        def tracing(_self: Any, _args: Any, _kwargs: Any) -> _Tracing:
            return _Tracing(function, name, list(passes_off))

        made: Compiled = super().__new__(cls, function, tracing, _MAX_GRAPHS)  # type: ignore[call-arg]
        functools.update_wrapper(made, function, updated=())
        return made

    def trace_report(self) -> list[dict[str, Any]]:
        """What was traced, one entry for each graph that is kept, the oldest first.

        Returns
        -------
        list of dict
            Keys: `traced_nodes`, `nodes` (behind the passes), `steps` (of a run; fused operators are one),
            `arena_bytes` (memory for intermediate results), `unshared_bytes` (the same if each had memory of its own),
            `seconds` (for tracing and compiling). Sizes with `gradient_` in front are those of the gradient.
        """
        report = []
        for graph in self.graphs:
            entry = {"traced_nodes": graph.num_traced_nodes, "seconds": graph.seconds}
            for prefix, sizes in zip(("", "gradient_"), graph.sizes, strict=False):
                names = ("nodes", "steps", "arena_bytes", "unshared_bytes")
                entry.update({prefix + name: size for name, size in zip(names, sizes, strict=True)})
            report.append(entry)
        return report


def jit(function: Callable[..., Any] | None = None, *, passes_off: tuple[str, ...] = ()) -> Any:
    """Compile a function of arrays: it is traced once for each form of its arguments and runs as a graph afterwards.

    Parameters
    ----------
    function : callable
        Takes and returns arrays, nested in tuples, lists and dicts, and other values. Values that are no arrays are
        constants of a graph.
    passes_off : tuple of str
        Passes to leave out: ``"remove_dead_nodes"``, ``"merge_common_nodes"``, ``"remove_copies"``,
        ``"fuse"``.

    Returns
    -------
    Compiled
        Results, random numbers and writes in place are those of the function itself. Gradients flow through it.

    Raises
    ------
    AbstractArrayError
        At the first call, if the function needs a value of an array while it is traced: as a condition, as a Python
        number, for printing. The message names the line.
    TypeError
        At a call, if an argument is neither an array nor can be compared with others.

    Notes
    -----
    Arrays that the function does not get as arguments are inputs of the graph: it sees later writes to them. Python
    code of the function runs only in traces, so what it prints or counts is printed or counted once.

    Examples
    --------
    >>> @mx.jit
    ... def scaled(x, factor):
    ...     return np.tanh(x) * factor
    >>> scaled(np.zeros(2), 3.0)
    array([0., 0.])
    """
    if function is None:
        return functools.partial(jit, passes_off=passes_off)
    if not callable(function):
        raise TypeError(f"jit: `function` must be callable, found '{type(function).__name__}'")
    return Compiled(function, passes_off)
