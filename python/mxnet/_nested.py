"""Arrays in nested lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mxnet._core import ndarray

__all__ = ["Nested", "Structure", "flatten", "reorder", "spread"]

Nested = Any  # ndarray, None, or a list, tuple or dict of these


@dataclass(frozen=True)
class Structure:
    """The structure of a nested value without its arrays.

    `kind` is the class of the container, `ndarray` for an array, `NoneType` for None. `keys` are those of a dict.
    """

    kind: Any  # a class
    keys: tuple[Any, ...] = ()
    parts: tuple[Structure, ...] = ()

    def restore(self, arrays: Iterator[Any]) -> Nested:
        """The value with these arrays inserted."""
        if self.kind is ndarray:
            return next(arrays)
        if self.kind is type(None):
            return None
        parts = [part.restore(arrays) for part in self.parts]
        if issubclass(self.kind, dict):
            return self.kind(zip(self.keys, parts, strict=True))
        if hasattr(self.kind, "_fields"):  # a named tuple
            return self.kind(*parts)
        return self.kind(parts)

    def unflatten(self, arrays: Sequence[Any]) -> Nested:
        """The value with these arrays inserted, given in order."""
        return self.restore(iter(arrays))

    def paths(self, name: str) -> list[str]:
        """Names of the arrays of argument `name`: `states[0]['h']`."""
        if self.kind is ndarray:
            return [name]
        if issubclass(self.kind, dict):
            key_paths = [f"{name}[{key!r}]" for key in self.keys]
        else:
            key_paths = [f"{name}[{i}]" for i in range(len(self.parts))]
        return [path for part, key_path in zip(self.parts, key_paths, strict=True) for path in part.paths(key_path)]

    def fits(self, other: Structure) -> bool:
        """Whether both have the same structure; lists and tuples of the same length are considered equal."""
        is_dict = issubclass(self.kind, dict)
        if is_dict != issubclass(other.kind, dict) or (is_dict and set(self.keys) != set(other.keys)):
            return False
        is_leaf = self.kind in (ndarray, type(None)) or other.kind in (ndarray, type(None))
        if is_leaf:
            return self.kind is other.kind
        if len(self.parts) != len(other.parts):
            return False
        theirs = dict(zip(other.keys, other.parts, strict=True)) if is_dict else {}
        pairs = zip(self.keys, self.parts, strict=True) if is_dict else enumerate(self.parts)
        return all(part.fits(theirs[key] if is_dict else other.parts[key]) for key, part in pairs)

    def __str__(self) -> str:
        if self.kind is ndarray:
            return "array"
        if self.kind is type(None):
            return "None"
        if issubclass(self.kind, dict):
            return "{" + ", ".join(f"{k!r}: {part}" for k, part in zip(self.keys, self.parts, strict=True)) + "}"
        inside = ", ".join(map(str, self.parts))
        return f"[{inside}]" if issubclass(self.kind, list) else f"({inside}{',' * (len(self.parts) == 1)})"


def flatten(function: str, name: str, value: Nested) -> tuple[list[ndarray], Structure]:
    """The arrays of a nested value, in order, and their structure.

    Parameters
    ----------
    function, name : str
        What errors call the function and its argument.
    value : ndarray, None, list, tuple or dict of these

    Raises
    ------
    TypeError
        If something else is inside.
    """
    arrays: list[ndarray] = []
    structure = _take_apart(function, name, value, arrays)
    return arrays, structure


def _take_apart(function: str, name: str, value: Nested, arrays: list[ndarray]) -> Structure:
    if isinstance(value, ndarray):
        arrays.append(value)
        return Structure(ndarray)
    if value is None:
        return Structure(type(None))
    if isinstance(value, dict):
        parts = [_take_apart(function, f"{name}[{key!r}]", part, arrays) for key, part in value.items()]
        return Structure(type(value), tuple(value), tuple(parts))
    if isinstance(value, (list, tuple)):
        parts = [_take_apart(function, f"{name}[{i}]", part, arrays) for i, part in enumerate(value)]
        return Structure(type(value), (), tuple(parts))
    raise TypeError(
        f"{function}: `{name}` must be an ndarray, or a list, tuple or dict of them, found '{type(value).__name__}'"
    )


def reorder(arrays: Sequence[Any], found: Structure, wanted: Structure) -> list[Any]:
    """Arrays taken from `found`, in the order of `wanted`, which must fit it: dicts may have another order of keys."""
    return list(_in_order(found.unflatten(arrays), wanted))


def _in_order(value: Nested, wanted: Structure) -> Iterator[Any]:
    if wanted.kind is ndarray:
        yield value
    elif issubclass(wanted.kind, dict):
        for key, part in zip(wanted.keys, wanted.parts, strict=True):
            yield from _in_order(value[key], part)
    else:
        for item, part in zip(value or (), wanted.parts, strict=True):
            yield from _in_order(item, part)


def spread(value: Nested) -> tuple[Any, ...]:
    """The positional arguments given by a value: the items of a list or tuple, else the value itself."""
    return tuple(value) if isinstance(value, (list, tuple)) and not hasattr(value, "_fields") else (value,)
