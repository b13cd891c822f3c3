"""Descriptions of calls of compiled functions, and of how they differ."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from mxnet import _core
from mxnet._core import ndarray

__all__ = ["described", "difference"]

# Limits of a report: characters of a value that is not an array, and arguments that differ.
_MAX_TEXT = 60
_MAX_DIFFERENCES = 3


def described(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> dict[str, str]:
    """Describe the arguments of a call and the modes that it is traced under.

    Parameters
    ----------
    function : callable
        Names the arguments where it can be asked.
    args : tuple
    kwargs : mapping or None

    Returns
    -------
    dict of str to str
        For each array and each other value among the arguments, by its path, what it is.
    """
    try:
        arguments: dict[str, Any] = dict(inspect.signature(function).bind(*args, **(kwargs or {})).arguments)
    except (TypeError, ValueError):
        arguments = {f"argument {i}": value for i, value in enumerate(args)} | dict(kwargs or {})
    found: dict[str, str] = {}
    for name, value in arguments.items():
        _describe(name, value, found)
    found["recording"], found["training"] = str(_core.is_recording()), str(_core.is_training())
    if (dtype := _core.autocast()) is not None:
        found["mixed precision"] = dtype
    return found


def _describe(path: str, value: Any, found: dict[str, str]) -> None:
    if isinstance(value, ndarray):
        order = "" if value.flags.c_contiguous else f" with strides {value.strides}"
        found[path] = f"{value.dtype} {value.shape}{order}"
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _describe(f"{path}[{i}]", item, found)
    elif isinstance(value, dict):
        for key, item in value.items():
            _describe(f"{path}[{key!r}]", item, found)
    else:
        text = repr(value)
        found[path] = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def difference(call: Mapping[str, str], earlier: list[dict[str, str]]) -> str:
    """Say why a call is traced although others were traced before it.

    Parameters
    ----------
    call : mapping of str to str
        What `described` says of the call.
    earlier : list of dict
        The same of the earlier ones.

    Returns
    -------
    str
        In what it differs from the one that is most like it.
    """
    if not earlier:
        return "first call"
    differing = [
        [
            (key, call.get(key), other.get(key))
            for key in dict.fromkeys((*call, *other))
            if call.get(key) != other.get(key)
        ]
        for other in earlier
    ]
    nearest = min(reversed(differing), key=len)
    if not nearest:
        return "arrays of parameters were replaced, or values changed that the trace had read"
    shown = [f"{key} is {new or 'missing'}, was {old or 'missing'}" for key, new, old in nearest[:_MAX_DIFFERENCES]]
    rest = len(nearest) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")
