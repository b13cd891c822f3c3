"""Gradient checkpointing: less memory for gradients, at the cost of a second forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet import _core
from mxnet._core import ndarray
from mxnet._nested import Nested, Structure, flatten

__all__ = ["checkpoint"]


def checkpoint(function: Callable[..., Nested]) -> Callable[..., Nested]:
    """A block or function whose intermediate results are not kept for gradients, but computed again.

    Parameters
    ----------
    function : gluon.Block or callable
        Made of operators of this library. Returns an array, or nested lists, tuples and dicts of arrays.

    Returns
    -------
    callable
        Takes the arguments of `function` and returns its results. While recording it keeps what the function reads from
        outside (arguments, parameters), nothing that it computes inside; a backward pass runs the function again.
        Without recording it is the function itself.

    Raises
    ------
    TypeError
        If `function` cannot be called, or, when it is called, returns something else than arrays.
    AutogradError
        In the backward pass: if an array that the function reads was overwritten in place since, or the second run does
        something else than the first. It must depend on nothing but arrays and random numbers of this library.

    Notes
    -----
    Results and gradients are those without `checkpoint`, to the bit: the second run draws the same random numbers, and
    sees arrays from outside that it overwrites (statistics of `batch_norm`) as they were; they are updated once, by the
    first run. No gradient flows through values written to arrays from outside.

    Examples
    --------
    >>> x = mx.np.array([1.0, 2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.npx.checkpoint(lambda x: mx.np.exp(mx.np.sin(x)))(x)
    >>> y.backward()
    >>> x.grad
    array([ 1.2533808, -1.0331167])
    """
    if not callable(function):
        raise TypeError(f"checkpoint: `function` must be a function or a block, found '{type(function).__name__}'")
    name = getattr(function, "__name__", None) or type(function).__name__

    def run(*args: Any, **kwargs: Any) -> Nested:
        if not _core.is_recording():
            return function(*args, **kwargs)
        structures: list[Structure] = []

        def body() -> list[ndarray]:
            arrays, structure = flatten("checkpoint", f"result of {name}", function(*args, **kwargs))
            structures[:] = [structure]
            return arrays

        arrays = _core.checkpoint(name, body)
        return structures[0].unflatten(arrays)

    return run
