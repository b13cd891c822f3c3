"""Layers of one, two and three spatial axes: what they share is written once, in a class that they derive from."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["for_axes"]

C = TypeVar("C", bound=type)

_LETTERS = "DHW"


def for_axes(num_axes: int, **defaults: Any) -> Callable[[C], C]:
    """Class decorator: make the layer of a number of spatial axes from the class that it derives from.

    The layer gets the attribute `_num_axes`, a constructor with defaults of its own, and a docstring. The docstring is
    that of the layer with the sections of the base classes behind its summary, those of the first base last.
    In the base class ``<axes>`` stands for letters such as ``HW``, ``<sizes>`` for ``h, w``, ``<n>`` for their number.

    Parameters
    ----------
    num_axes : {1, 2, 3}
    **defaults
        Arguments of the inherited constructor whose defaults differ.

    Returns
    -------
    decorator
    """

    def decorate(layer: C) -> C:
        layer._num_axes = num_axes  # type: ignore[attr-defined]  # declared by the base classes
        if defaults:
            layer.__init__ = _with_defaults(layer, defaults)  # type: ignore[misc]  # a constructor for this class
        layer.__doc__ = _docstring(layer, _LETTERS[3 - num_axes :])
        return layer

    return decorate


def _with_defaults(layer: type, defaults: dict[str, Any]) -> Any:
    """A copy of the constructor with other defaults, so that `help` and `inspect.signature` show them."""
    inherited: Any = layer.__init__  # type: ignore[misc]  # of the class, not of an instance
    parameters = inspect.signature(inherited).parameters.values()
    if unknown := defaults.keys() - {p.name for p in parameters}:
        raise TypeError(f"{layer.__qualname__}: no parameter of the constructor is called {sorted(unknown)}")
    merged = [p.replace(default=defaults.get(p.name, p.default)) for p in parameters]
    given = [p for p in merged if p.default is not p.empty]
    positional = tuple(p.default for p in given if p.kind is not p.KEYWORD_ONLY)
    made = types.FunctionType(inherited.__code__, inherited.__globals__, "__init__", positional, inherited.__closure__)
    made.__kwdefaults__ = {p.name: p.default for p in given if p.kind is p.KEYWORD_ONLY}
    made.__annotations__, made.__module__ = inherited.__annotations__, layer.__module__
    made.__qualname__ = f"{layer.__qualname__}.__init__"
    return made


def _docstring(layer: type, letters: str) -> str:
    summary, own = _sections(layer)
    shared = ""
    for base in layer.__mro__[1:]:
        shared = _sections(base)[1] + shared
        if "_num_axes" in vars(base).get("__annotations__", {}):
            break  # what is above knows no axes
    for token, text in (("<axes>", letters), ("<sizes>", ", ".join(letters.lower())), ("<n>", str(len(letters)))):
        shared = shared.replace(token, text)
    return f"{summary}\n{shared}{own}"


def _sections(kind: type) -> tuple[str, str]:
    """The text before the first section of a class's own docstring, and the sections."""
    lines = inspect.cleandoc(vars(kind).get("__doc__") or "").split("\n")
    first = next((i for i in range(1, len(lines)) if re.fullmatch("-{3,}", lines[i])), len(lines) + 1) - 1
    return "\n".join(lines[:first]), "".join(f"{line}\n" for line in ([*lines[first:], ""] if lines[first:] else []))
