"""Sparse and ragged arrays as arguments and results of graphs in files, which contain their parts only."""

from __future__ import annotations

from typing import Any, NamedTuple

from mxnet._core import ndarray
from mxnet.error import ShapeError

__all__ = ["Parts", "arguments_of", "flattened", "has_parts", "is_kind", "join", "join_traced", "split"]


# Appended to `Parts.rest` if the parts have one more array for each ragged axis: the numbers 0, 1, ..., as many as the
# longest row has elements.
HAS_STEPS = [True]


class Parts(NamedTuple):
    """An array in a graph of a file.

    `kind` is the name of its class. `rest` has what is not an array: numbers, truth values and lists of them.
    """

    kind: str
    rest: Any
    arrays: tuple[Any, ...]


def has_parts(x: Any) -> bool:
    """Whether `x` is a sparse or ragged array.

    Parameters
    ----------
    x : object

    Returns
    -------
    bool
    """
    return hasattr(type(x), "_graph_parts")


def _class(kind: str) -> Any:
    from mxnet import ragged, sparse

    classes = (
        ragged.RaggedArray,
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        sparse.bsr_array,
        sparse.row_sparse_array,
    )
    return {cls.__name__: cls for cls in classes}.get(kind)


def is_kind(kind: object) -> bool:
    """Whether there is a class of sparse or ragged arrays of this name.

    Parameters
    ----------
    kind : object

    Returns
    -------
    bool
    """
    return isinstance(kind, str) and _class(kind) is not None


def _as_lists(rest: Any) -> Any:
    """Tuples as lists, as JSON gives them back."""
    return [_as_lists(item) for item in rest] if isinstance(rest, tuple | list) else rest


def arguments_of(x: Any, has_steps: bool = False) -> Parts:
    """The parts of an argument, brought to canonical form if it is sparse.

    Parameters
    ----------
    x : sparray or RaggedArray
    has_steps : bool
        Whether the graph has shapes made of the longest rows of a ragged array, and so an argument of that length.

    Returns
    -------
    Parts
    """
    rest, arrays = x._file_parts(True, has_steps=True) if has_steps else x._file_parts(True)
    return Parts(type(x).__name__, _as_lists(rest), arrays)


def join(parts: Parts) -> Any:
    """The array of parts that have values.

    Parameters
    ----------
    parts : Parts

    Returns
    -------
    sparray or RaggedArray
    """
    return _class(parts.kind)._of_file_parts(parts.rest, parts.arrays)


def join_traced(parts: Parts) -> Any:
    """The array of parts that are arguments of a graph: what follows from their values is not known.

    Parameters
    ----------
    parts : Parts

    Returns
    -------
    sparray or RaggedArray
    """
    return _class(parts.kind)._of_traced_parts(parts.rest, parts.arrays)


def split(results: Any) -> Any:
    """Nested results with `Parts` in place of sparse and ragged arrays.

    Parameters
    ----------
    results : object

    Returns
    -------
    object
    """
    if has_parts(results):
        rest, arrays = results._file_parts(False)
        return Parts(type(results).__name__, _as_lists(rest), arrays)
    if isinstance(results, tuple) and not hasattr(results, "_fields"):
        return tuple(split(item) for item in results)
    if isinstance(results, list):
        return [split(item) for item in results]
    if isinstance(results, dict):
        return {key: split(item) for key, item in results.items()}
    return results


def flattened(forms: list[Any], arguments: tuple[Any, ...], name: str) -> list[ndarray]:
    """Arguments of a graph as its plain arrays.

    Parameters
    ----------
    forms : list
        For each argument None, or kind, rest and number of arrays.
    arguments : tuple
    name : str
        Who is called, for messages.

    Returns
    -------
    list of ndarray

    Raises
    ------
    TypeError
        If an argument is an array of another kind.
    ShapeError
        If its shape, or its number of ragged axes, differs.
    ValueError
        If there are too many or too few arguments.
    """
    num_arrays = sum(1 if form is None else form[2] for form in forms)
    if not any(map(has_parts, arguments)) and len(arguments) == num_arrays:
        return list(arguments)
    if len(arguments) != len(forms):
        raise ValueError(f"{name}: the graph takes {len(forms)} arguments, found {len(arguments)}")
    found: list[ndarray] = []
    for number, (form, x) in enumerate(zip(forms, arguments, strict=True)):
        kind = "ndarray" if form is None else form[0]
        if type(x).__name__ != kind:
            raise TypeError(f"{name}: argument {number} must be of type {kind}, found '{type(x).__name__}'")
        if form is None:
            found.append(x)
            continue
        parts = arguments_of(x, has_steps=kind == "RaggedArray" and form[1][1:] == HAS_STEPS)
        if parts.rest != form[1] or len(parts.arrays) != form[2]:
            raise ShapeError(f"{name}: argument {number}, a {kind} of shape {x.shape}, is not of the graph's shape")
        found.extend(parts.arrays)
    return found
