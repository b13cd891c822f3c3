"""The `repr` of objects that are constructed from arguments: `Class(argument=value, ...)`."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import numpy as onp

from mxnet.numpy import ndarray

__all__ = ["argument_repr", "changed_arguments", "default_of"]

_LONGEST = 60


def argument_repr(made: object, hidden: Collection[str] = ()) -> str:
    """The class of an object and those arguments of its constructor that it keeps and that are not the default.

    Parameters
    ----------
    made : object
        An argument `x` is looked for as attribute ``x`` and ``_x``.
    hidden : collection of str
        Arguments that are left out.

    Returns
    -------
    str

    Examples
    --------
    >>> from mxnet._argument_repr import argument_repr
    >>> argument_repr(mx.lr_scheduler.FactorScheduler(step=10, factor=0.5))
    'FactorScheduler(step=10, factor=0.5)'
    """
    return f"{type(made).__name__}({', '.join(changed_arguments(made, hidden))})"


def changed_arguments(made: object, hidden: Collection[str] = ()) -> list[str]:
    """``"name=value"`` of the arguments that `argument_repr` shows."""
    shown: dict[str, str] = {}
    for kind in type(made).__mro__:
        init = kind.__dict__.get("__init__")
        if init is None or kind is object:
            continue
        parameters = list(inspect.signature(init).parameters.values())[1:]
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or parameter.name in shown:
                continue
            kept = _ABSENT if parameter.name in hidden else _stored(made, parameter.name)
            if kept is not _ABSENT and not _is_default(kept, parameter.default):
                shown[parameter.name] = _formatted(kept)
        # Arguments of base classes are shown only if the class passes them on.
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    return [f"{name}={text}" for name, text in shown.items()]


def default_of(made: object, name: str) -> Any:
    """The default of an argument of the constructor; None if there is no such argument.

    Parameters
    ----------
    made : object
    name : str

    Returns
    -------
    object

    Examples
    --------
    >>> from mxnet._argument_repr import default_of
    >>> default_of(mx.optimizer.Adam(learning_rate=0.5), 'learning_rate')
    0.001
    """
    for kind in type(made).__mro__:
        init = kind.__dict__.get("__init__")
        if init is not None and kind is not object:
            parameter = inspect.signature(init).parameters.get(name)
            if parameter is not None:
                return parameter.default
    return None


_ABSENT = object()


def _stored(made: object, name: str) -> Any:
    for attribute in (name, f"_{name}"):
        if attribute in vars(made):
            return vars(made)[attribute]
    return _ABSENT


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return isinstance(value, bool | int | float | str | tuple) and type(value) is type(default) and value == default


def _formatted(value: Any) -> str:
    if isinstance(value, ndarray | onp.ndarray):
        return f"<{tuple(value.shape)} {value.dtype}>"
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    if isinstance(value, dict):
        return f"<{len(value)} entries>" if value else "{}"
    text = repr(value)
    if len(text) <= _LONGEST and "\n" not in text:
        return text
    return f"<{type(value).__name__} of {len(value)}>" if hasattr(value, "__len__") else f"<{type(value).__name__}>"
