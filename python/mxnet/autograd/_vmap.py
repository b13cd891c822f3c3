"""`vmap`: calls a function of single examples for a whole batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet._nested import Nested, Structure, flatten

__all__ = ["vmap"]

Axis = int | None


def vmap(
    function: Callable[..., Nested], in_axes: Axis | Sequence[Axis] = 0, out_axes: int = 0
) -> Callable[..., Nested]:
    """A function of single examples as a function of batches.

    Parameters
    ----------
    function : callable
        Made of operators of this library, for arrays of one example: it sees their shapes without the axis of the
        batch. It may take gradients inside (`grad`, `jacobian`, ...), for each example.
    in_axes : int, None or a sequence of these
        The axis of each argument that counts the examples, None for arguments that are the same for all; one for all
        arguments, or one for each. It holds for all arrays in a list, tuple or dict.
    out_axes : int
        Where the axis of the batch is in the results.

    Returns
    -------
    callable
        Takes batches by position and returns the results of all examples, as if they were computed one by one and
        stacked. Gradients flow through it. `vmap` of such a function is one over two axes.

    Raises
    ------
    TypeError
        If `function` cannot be called or returns something else than arrays, an axis is no integer, or a batch is none
        of arrays.
    ValueError
        When it is called: if there is no axis for an argument, an array has no such axis, axes of the batch differ in
        length, or no argument has one.
    UnsupportedError
        If the function calls an operator that has no batching rule (the message names it), draws random numbers, or
        writes to an array in place.
    AbstractArrayError
        If it needs the values of an example (`float(x)`, ``if x > 0``, shapes that depend on values).

    Notes
    -----
    The function runs once. Elementwise operators, views and everything composed of operators follow from broadcasting;
    products, reductions, indexing, sorting, factorisations, convolutions and pooling have rules beside their entries.

    Examples
    --------
    >>> x, w = np.arange(6.0).reshape(3, 2), np.array([1.0, 10.0])
    >>> mx.autograd.vmap(np.dot, in_axes=(0, None))(x, w)
    array([10., 32., 54.])
    >>> slope = lambda x: mx.autograd.jacobian(lambda x: (x**3).sum(), x)
    >>> mx.autograd.vmap(slope)(x)  # a gradient for each example
    array([[ 0.,  3.],
           [12., 27.],
           [48., 75.]])
    """
    if not callable(function):
        raise TypeError(f"vmap: `function` must be a function, found '{type(function).__name__}'")
    if not isinstance(out_axes, int):
        raise TypeError(f"vmap: `out_axes` must be an integer, found '{type(out_axes).__name__}'")

    def run(*args: Any) -> Nested:
        axes = _axes(in_axes, len(args))
        batch = _Batch(args, axes)
        structures: list[Structure] = []

        def body(examples: list[ndarray]) -> list[ndarray]:
            arrays, structure = flatten("vmap", "result of function", function(*batch.arguments(examples)))
            structures[:] = [structure]
            return arrays

        found, same = _core.batched(batch.size, batch.arrays, body)
        results = [batch.whole(y, one, out_axes) for y, one in zip(found, same, strict=True)]
        return structures[0].unflatten(results)

    return run


def _axes(in_axes: Axis | Sequence[Axis], count: int) -> list[Axis]:
    """The batch axis of each argument."""
    axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * count
    if len(axes) != count:
        raise ValueError(f"vmap: `in_axes` has {len(axes)} entries for {count} arguments")
    for axis in axes:
        if axis is not None and not isinstance(axis, int):
            raise TypeError(f"vmap: `in_axes` must be integers or None, found '{type(axis).__name__}'")
    return axes  # type: ignore[return-value]  # checked above


class _Batch:
    """The arguments of a call: batched arrays with the batch axis first, and unbatched ones."""

    def __init__(self, args: tuple[Any, ...], axes: list[Axis]) -> None:
        self.parts: list[tuple[Structure, int] | Any] = []
        self.is_batch = [axis is not None for axis in axes]
        self.arrays: list[ndarray] = []
        first = ""
        for i, (value, axis) in enumerate(zip(args, axes, strict=True)):
            if axis is None:
                self.parts.append(value)
                continue
            arrays, structure = flatten("vmap", f"argument {i}", value)
            self.parts.append((structure, len(arrays)))
            for x, path in zip(arrays, structure.paths(f"argument {i}"), strict=True):
                if not -x.ndim <= axis < x.ndim:
                    raise ValueError(f"vmap: `{path}` has no axis {axis}, its shape is {x.shape}")
                if self.arrays and x.shape[axis] != len(self.arrays[0]):
                    raise ValueError(
                        f"vmap: axes of the batch must have one length, `{first}` has {len(self.arrays[0])} and "
                        f"`{path}` has {x.shape[axis]}"
                    )
                first = first or path
                self.arrays.append(np.moveaxis(x, axis, 0))
        if not self.arrays:
            raise ValueError("vmap: at least one argument must have an axis of the batch, found none")
        self.size = len(self.arrays[0])

    def arguments(self, examples: list[ndarray]) -> list[Any]:
        """The arguments of the function, with these arrays for one example."""
        rest, arguments = list(examples), []
        for part, is_batch in zip(self.parts, self.is_batch, strict=True):
            if not is_batch:
                arguments.append(part)
                continue
            structure, count = part
            arguments.append(structure.unflatten(rest[:count]))
            del rest[:count]
        return arguments

    def whole(self, found: ndarray | None, same: ndarray, out_axis: int) -> ndarray:
        """A batched result with the batch axis at the requested position."""
        ndim = same.ndim + 1
        if not -ndim <= out_axis < ndim:
            raise ValueError(
                f"vmap: a result of shape {same.shape} for each example has no place {out_axis} for the batch"
            )
        y = np.broadcast_to(same, (self.size, *same.shape)) if found is None else found
        return np.moveaxis(y, 0, out_axis)
