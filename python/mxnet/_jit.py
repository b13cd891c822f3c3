"""Compiled functions: `jit`, the code that runs at each call, and reports of traces."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import linecache
import operator
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mxnet import _core
from mxnet._sizes import noted
from mxnet._trace_report import described, difference
from mxnet.error import AbstractArrayError

__all__ = ["BoundCall", "Compiled", "InputSpec", "at_each_call", "hold_in_trace", "jit", "watch_parameters"]

# Limits: signatures for which a function keeps a graph, and traces that reports compare with.
_MAX_GRAPHS = 64

_PACKAGE = str(Path(__file__).parent)
_HINT = (
    "values are not known while a function is traced: use `npx.cond`, `npx.while_loop` or `np.where` instead of a "
    "Python condition, and take values out of arrays (`item`, `asnumpy`, `print`) outside the function"
)


class _State(threading.local):
    """The state of traces on this thread."""

    def __init__(self) -> None:
        self.before: list[Callable[[], object]] | None = None
        self.held: list[object] | None = None


_state = _State()

# Objects whose arrays may be replaced. The references are weak, so that compiling a function keeps nothing alive.
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


def hold_in_trace(value: object) -> None:
    """In a trace, keep an object as long as its graph; else do nothing.

    Parameters
    ----------
    value : object
        An object that the function made, and whose state continues from run to run.
    """
    if _state.held is not None and _core.trace_is_active():
        _state.held.append(value)


def check_backend(caller: str, backend: str | None) -> None:
    """Raise ValueError if no pass or partitioner is registered as this backend.

    Parameters
    ----------
    caller : str
        Who asks, for the message.
    backend : str or None
    """
    known = [name for name, is_chosen in _core.graph_passes() if is_chosen]
    if backend is not None and backend not in known:
        listed = ", ".join(map(repr, known)) or "none is registered"
        raise ValueError(f"{caller}: there is no backend {backend!r}; known are: {listed}")


class BoundCall:
    """A bound method that does not keep its object alive.

    Parameters
    ----------
    method : callable
        Called with the object and the arguments.
    owner : object
        Holds what this is a part of, and so lives at least as long.
    described : callable
        Has the signature by which calls are described.
    """

    def __init__(self, method: Callable[..., Any], owner: object, described: Callable[..., Any]) -> None:
        self._method = method
        self._owner = weakref.ref(owner)
        self.__signature__ = inspect.signature(described)
        self.__qualname__ = type(owner).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return self._method(self._owner(), *args, **kwargs)


@dataclasses.dataclass(frozen=True)
class _Options:
    """Compilation options; `jit` documents them."""

    passes_off: tuple[str, ...] = ()
    backend: str | None = None
    memory_budget: int | None = None


class _Tracing:
    """One trace of a function: how the function is called, and what its graph needs."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        choices: _Options,
        arguments: dict[str, str],
        history: list[dict[str, str]],
    ) -> None:
        self.passes_off = list(choices.passes_off)
        self.backend = choices.backend
        self.memory_budget = choices.memory_budget
        self.arguments = arguments
        self.why = ""
        self.seconds = 0.0
        self.splits = True
        self.decisions: list[tuple[str, float, float, bool]] = []
        self._function = function
        self._name = name
        self._history = history
        self._start = time.perf_counter()
        self._before: list[Callable[[], object]] = []
        self._held: list[object] = []

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        outer = _state.before, _state.held
        _state.before, _state.held = self._before, self._held
        before = noted(self.decisions)
        try:
            return self._function(*args, **(kwargs or {}))
        except AbstractArrayError as error:
            raise AbstractArrayError(_located(self._name, error)) from error
        finally:
            noted(before)
            _state.before, _state.held = outer

    def note_length(self, n: int) -> None:
        """Note that a length was read as a plain integer, so that comparisons with it are not recorded."""
        self.decisions.append(("seen", n, n, True))

    def finish(self, storages: list[int] | None) -> tuple[list[Callable[[], object]], Callable[[], bool] | None]:
        self.seconds = time.perf_counter() - self._start
        # A copy: other threads may trace the function at the same time.
        self.why = difference(self.arguments, list(self._history))
        self._history.append(self.arguments)
        del self._history[:-_MAX_GRAPHS]
        if storages is None:
            return [], None
        captured = set(storages)
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

    Calls are distinguished by signature: nested structure of the arguments, shapes, dtypes, strides and devices of
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

    def __new__(
        cls,
        function: Callable[..., Any],
        passes_off: tuple[str, ...] = (),
        dynamic: Any = None,
        backend: str | None = None,
        memory_budget: int | None = None,
        splits: bool = True,
    ) -> Compiled:
        """Make a compiled function; see `jit`."""
        name = getattr(function, "__qualname__", type(function).__name__)
        history: list[dict[str, str]] = []

        check_backend("jit", backend)
        choices = _Options(tuple(passes_off), backend, memory_budget)

        def tracing(_self: Any, args: Any, kwargs: Any) -> _Tracing:
            made = _Tracing(function, name, choices, described(function, args, kwargs), history)
            made.splits = splits
            return made

        axes, is_for_all = _dynamic_axes(name, dynamic)
        made: Compiled = super().__new__(cls, function, tracing, _MAX_GRAPHS, axes, is_for_all)  # type: ignore[call-arg]
        functools.update_wrapper(made, function, updated=())
        return made

    def trace_report(self) -> list[dict[str, Any]]:
        """What was traced, one entry for each trace that is kept, the oldest first.

        Returns
        -------
        list of dict
            Keys: `arguments` (what the call was, by name), `why` (it was traced: in what it differs from the earlier
            trace that is most like it), `seconds` (for tracing and compiling). If there is a graph: `traced_nodes`,
            `nodes` (behind the passes), `steps` (of a run; fused operators are one), `arena_bytes` (memory for
            intermediate results; once it has run, also for kernels), `unshared_bytes` (for intermediate results if each
            had memory of its own), `peak_bytes` (all that a run needs beside its arguments; once it has run, with all
            that the kernels of one step allocated on the calling thread, the turns of a loop added up); those with
            `gradient_` in front are of the gradient. Of functions with dynamic sizes these are of the graph that was
            used last, and `num_sizes` says for how many sizes there is one. If there is none: `note` (the reason).
        """
        report = []
        for record, graphs, is_sized, num_pieces, note in self.records:
            entry: dict[str, Any] = {"arguments": record.arguments, "why": record.why, "seconds": record.seconds}
            if note is not None:
                entry["note"] = note
            if num_pieces:
                entry["num_pieces"] = num_pieces
            if is_sized:
                entry["num_sizes"] = len(graphs)
                entry["seconds"] += sum(graph.seconds for graph in graphs)
            if graphs:
                entry["traced_nodes"] = graphs[-1].num_traced_nodes
                names = ("nodes", "steps", "arena_bytes", "unshared_bytes")
                both = zip(("", "gradient_"), graphs[-1].sizes, graphs[-1].peak_bytes, strict=False)
                for prefix, sizes, peak_bytes in both:
                    entry.update({prefix + name: size for name, size in zip(names, sizes, strict=True)})
                    entry[prefix + "peak_bytes"] = peak_bytes
            report.append(entry)
        return report


class InputSpec:
    """The signature of an argument of a compiled function: which of its axes may have any length.

    Parameters
    ----------
    *shape : int, str or None
        The length of each axis; None for any length. Lengths with the same text are the same length.
    dtype : dtype, optional
        By default any.

    Examples
    --------
    >>> @mx.jit(dynamic=mx.InputSpec(None, 2))
    ... def total(x):
    ...     return x.sum() / x.shape[0]
    >>> [total(np.ones((n, 2))).item() for n in (2, 3, 7)]
    [2.0, 2.0, 2.0]
    >>> len(total.trace_report())
    1
    """

    def __init__(self, *shape: int | str | None, dtype: Any = None) -> None:
        self.shape = tuple(n if n is None or isinstance(n, str) else operator.index(n) for n in shape)
        if any(isinstance(n, int) and n < 0 for n in self.shape):
            raise ValueError(f"InputSpec: lengths must not be negative, found {self.shape}")
        self.dtype = None if dtype is None else _core.abstract_array((0,), dtype).dtype.name

    def __repr__(self) -> str:
        inside = [repr(n) for n in self.shape]
        if self.dtype is not None:
            inside.append(f"dtype={self.dtype!r}")
        return f"InputSpec({', '.join(inside)})"


def _dynamic_axes(name: str, dynamic: Any) -> tuple[list[Any] | None, bool]:
    """For each array, or for all: the dynamic axes, the lengths of the others, and the dtype."""
    if dynamic is None or dynamic is False:
        return None, False
    if dynamic is True:
        return [([(0, None)], None, None)], True
    if isinstance(dynamic, InputSpec):
        dynamic = [dynamic]
    try:
        items = list(dynamic) if isinstance(dynamic, Sequence) and not isinstance(dynamic, str) else [dynamic]
        if not any(isinstance(item, InputSpec) or item is None for item in items):
            axes = [operator.index(axis) for axis in items]
            if any(axis < 0 for axis in axes):
                raise ValueError(f"{name}: axes in `dynamic` must not be negative, found {dynamic!r}")
            return [([(axis, None) for axis in axes], None, None)], True
        return [_axes_of(item) for item in items], False
    except (TypeError, AttributeError):
        raise TypeError(
            f"{name}: `dynamic` must be True, axes, or one `mx.InputSpec` for each array, found {dynamic!r}"
        ) from None


def _axes_of(spec: InputSpec | None) -> Any:
    if spec is None:
        return [], None, None
    axes = [(axis, n) for axis, n in enumerate(spec.shape) if n is None or isinstance(n, str)]
    return axes, [n if isinstance(n, int) else None for n in spec.shape], spec.dtype


def jit(
    function: Callable[..., Any] | None = None,
    *,
    passes_off: tuple[str, ...] = (),
    dynamic: Any = None,
    backend: str | None = None,
    memory_budget: int | None = None,
) -> Any:
    """Compile a function of arrays: it is traced once for each form of its arguments and runs as a graph afterwards.

    Parameters
    ----------
    function : callable
        Takes and returns arrays, nested in tuples, lists and dicts, and other values. Values that are no arrays are
        constants of a graph.
    passes_off : tuple of str
        Names of passes to leave out; `mx.graph.passes` lists them.
    dynamic : bool, int, tuple of int, InputSpec or sequence of InputSpec, optional
        Axes whose length is not part of the form: True for the first one of every array among the arguments, integers
        for these axes of every array, or one `InputSpec` (None for no such axis) for each array. The function is traced
        at three sizes, and one graph serves all.
    backend : str, optional
        Name of a registered partitioner or pass that runs on the graphs of this function.
    memory_budget : int, optional
        The most bytes of intermediate results. Where a graph with its gradient needs more, parts of the function are
        computed again when the gradient needs them; results stay the same.

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
        At a call, if an argument is neither an array nor can be compared with others; if `dynamic` is something else.
    ValueError
        At a call, if an array does not have the form that `dynamic` says.

    Notes
    -----
    Arrays that the function does not get as arguments are inputs of the graph: it sees later writes to them. Python
    code of the function runs only in traces, so what it prints or counts is printed or counted once.

    Dynamic lengths that are equal at the first call are taken for one length; a call in which they differ is traced
    again. Numbers that follow from lengths (``x.shape[0] * 2``) must be polynomials of them, such as lengths, products
    and sums; where they are not, or where the function calls other operators at another size, there is a graph for each
    size, and `trace_report` says why.

    Examples
    --------
    >>> @mx.jit
    ... def scaled(x, factor):
    ...     return np.tanh(x) * factor
    >>> scaled(np.zeros(2), 3.0)
    array([0., 0.])
    """
    if function is None:
        choices = {"passes_off": passes_off, "dynamic": dynamic, "backend": backend, "memory_budget": memory_budget}
        return functools.partial(jit, **choices)
    if not callable(function):
        raise TypeError(f"jit: `function` must be callable, found '{type(function).__name__}'")
    return Compiled(function, passes_off, dynamic, backend, memory_budget)
