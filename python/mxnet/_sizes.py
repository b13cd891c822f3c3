"""Lengths in traces of functions for arrays of any size: decisions that depend on them are recorded."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

from mxnet import _core

__all__ = ["RealSize", "Size", "note", "noted", "unnoted"]


class _State(threading.local):
    """Where this thread records decisions."""

    def __init__(self) -> None:
        self.log: list[tuple[str, float, float, bool]] | None = None


_state = _State()


def noted(log: list[tuple[str, float, float, bool]] | None) -> list[tuple[str, float, float, bool]] | None:
    """Record decisions of this thread in another list.

    Parameters
    ----------
    log : list or None
        Gets one entry for each comparison of a length: which one, both sides, the outcome.

    Returns
    -------
    list or None
        The list so far.
    """
    before, _state.log = _state.log, log
    return before


@contextlib.contextmanager
def unnoted() -> Iterator[None]:
    """Record no decisions in a with-block: work that only the first call does is not part of the function."""
    before = noted(None)
    try:
        yield
    finally:
        noted(before)


def note(name: str, left: float, right: float, outcome: bool) -> None:
    """Record a comparison of lengths.

    Parameters
    ----------
    name : {"lt", "le", "gt", "ge", "eq", "ne", "seen", "bound ge", "bound gt"}
    left, right : number
        Both sides.
    outcome : bool
    """
    if _state.log is not None:
        _state.log.append((name, left, right, outcome))


class Size(int):
    """A length: an integer that records comparisons, as do integers computed from it."""

    __slots__ = ()

    def __hash__(self) -> int:
        note("seen", int(self), int(self), True)
        return int.__hash__(self)

    def __bool__(self) -> bool:
        outcome = int(self) != 0
        note("ne", int(self), 0, outcome)
        return outcome

    def __reduce__(self) -> Any:
        return int, (int(self),)


class RealSize(float):
    """A real number that was computed from lengths."""

    __slots__ = ()

    def __hash__(self) -> int:
        note("seen", float(self), float(self), True)
        return float.__hash__(self)

    def __bool__(self) -> bool:
        outcome = float(self) != 0
        note("ne", float(self), 0.0, outcome)
        return outcome

    def __reduce__(self) -> Any:
        return float, (float(self),)


def _watched(value: Any) -> Any:
    """The result of an operation on lengths."""
    kind = type(value)
    if kind is int:
        return Size(value)
    if kind is float:
        return RealSize(value)
    return tuple(map(_watched, value)) if kind is tuple else value


def _operation(base: type, name: str) -> Callable[..., Any]:
    method = getattr(base, name)

    def operation(self: Any, *others: Any) -> Any:
        return _watched(method(self, *others))

    operation.__name__ = name
    return operation


def _comparison(base: type, name: str) -> Callable[..., Any]:
    method = getattr(base, f"__{name}__")
    builtin_kinds: dict[type, type] = {Size: int, RealSize: float, bool: int}

    def comparison(self: Any, other: Any) -> Any:
        outcome = method(self, other)
        if outcome is not NotImplemented:
            kind = builtin_kinds.get(type(other), type(other))
            right = kind(other) if kind in (int, float) else operator.index(other)
            note(name, base(self), right, outcome)
        return outcome

    comparison.__name__ = f"__{name}__"
    return comparison


_BINARY = ("add", "sub", "mul", "floordiv", "truediv", "mod", "divmod", "pow")
_BITS = ("and", "or", "xor", "lshift", "rshift")

for _class, _base in ((Size, int), (RealSize, float)):
    _names = [prefix + name for name in _BINARY + (_BITS if _base is int else ()) for prefix in ("", "r")]
    for _name in [*_names, "neg", "pos", "abs", "round", "trunc", "floor", "ceil"]:
        setattr(_class, f"__{_name}__", _operation(_base, f"__{_name}__"))
    for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(_class, f"__{_name}__", _comparison(_base, _name))

_core.classes_of_lengths(Size, RealSize)
