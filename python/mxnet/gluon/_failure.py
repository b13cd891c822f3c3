"""Notes on exceptions raised in a network: the path of the block, its arguments, names of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as onp

from mxnet import numpy, numpy_extension
from mxnet._graph_parts import has_parts
from mxnet.numpy import ndarray

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["foreign_inputs", "indented", "listed", "locate", "without_forward"]


def without_forward(kind: type[Block]) -> str:
    """The message for a block whose class does not define `forward`.

    Parameters
    ----------
    kind : type

    Returns
    -------
    str
    """
    old = hasattr(kind, "hybrid_forward")
    hint = ": `hybrid_forward(F, x, ...)` was removed; define `forward(x)` with `mx.np` and `mx.npx`" if old else ""
    return f"{kind.__name__} does not define forward{hint}"


def locate(block: Block, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> None:
    """Note on an exception that passes a block where in the network it was raised.

    The innermost block adds a note; each block around it puts its own name for the child in front of the path.

    Parameters
    ----------
    block : Block
        The block that the exception passes.
    args, kwargs
        What the block was called with.
    error : Exception
        The names of its parameters become paths, too.
    """
    found = getattr(error, "_block_path", None)
    if found is None:
        name = next((key for key, own in block._reg_params.items() if own is getattr(error, "_parameter", None)), None)
        path, parameter = [], name
        called = ", ".join([*map(_shown, args), *(f"{key}={_shown(value)}" for key, value in kwargs.items())])
        text = f"{type(block).__name__} called with ({called})"
        error.add_note(text)
        if (function := _function_for(error)) is not None:
            error.add_note(f"hint: arrays have no such method, call `{function}(x, ...)`")
    else:
        inner, path, parameter, text = found
        name = next((key for key, child in block._children.items() if child is inner), None)
        path = [name or type(inner).__name__, *path]
        where = f"in `{'.'.join(path)}`: {text}"
        notes = error.__notes__
        notes[_position(notes, text)] = where
        if parameter is not None and error.args and isinstance(error.args[0], str):
            old, new = ".".join([*path[1:], parameter]), ".".join([*path, parameter])
            error.args = (error.args[0].replace(f"parameter {old!r}", f"parameter {new!r}"), *error.args[1:])
    error._block_path = (block, path, parameter, text)  # type: ignore[attr-defined]  # exceptions take attributes


def _function_for(error: Exception) -> str | None:
    """The function that does the work of a method that arrays had in MXNet 1.x; None for other errors."""
    if isinstance(error, AttributeError) and isinstance(error.obj, ndarray) and error.name is not None:
        for short, module in (("np", numpy), ("npx", numpy_extension)):
            if callable(getattr(module, error.name, None)):
                return f"{short}.{error.name}"
    return None


def _position(notes: list[str], text: str) -> int:
    return next(position for position, note in enumerate(notes) if note.endswith(text))


def foreign_inputs(block: Block, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> str | None:
    """What is wrong with a call that was given arrays of NumPy, or a list instead of an array.

    Parameters
    ----------
    block : Block
    args, kwargs
        What it was called with.
    error : Exception
        Which it raised.

    Returns
    -------
    str or None
        None if no argument is such, or if the block takes them.
    """
    if block._takes_numpy:
        return None
    named = [*((f"argument {position}", value) for position, value in enumerate(args)), *kwargs.items()]
    # A list may be meant as one, unless a list was asked for an attribute of arrays. Traces pass copies of lists.
    is_asked = (
        isinstance(error, AttributeError)
        and isinstance(error.obj, list | tuple)
        and error.name is not None
        and hasattr(ndarray, error.name)
    )
    for name, value in named:
        if isinstance(value, onp.ndarray) or (is_asked and isinstance(value, list | tuple)):
            kind = "numpy.ndarray" if isinstance(value, onp.ndarray) else type(value).__name__
            return f"{type(block).__name__}: {name} is a {kind}; `mx.np.array(x)` makes an array of mxnet of it"
    return None


def _shown(value: Any) -> str:
    """A short description of an argument."""
    if isinstance(value, ndarray | onp.ndarray) or has_parts(value):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, list | tuple):
        shown = ", ".join(map(_shown, value[:4]))
        return f"[{shown}{', ...' if len(value) > 4 else ''}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(part)}" for key, part in list(value.items())[:4]) + "}"
    text = repr(value)
    return text if len(text) <= 40 else type(value).__name__


def indented(text: str) -> str:
    """Text whose lines behind the first one are two columns further right.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    return text.replace("\n", "\n  ")


def listed(names: list[str]) -> str:
    """At most ten names, and how many more there are.

    Parameters
    ----------
    names : list of str

    Returns
    -------
    str
    """
    shown = ", ".join(repr(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
