"""Functions of all elements, for which rows do not matter, and of what an array is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mxnet import _core, error
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.ragged._array import RaggedArray

_npx = _core.namespaces["npx"]


def of_values(name: str) -> Callable[..., Any]:
    """The function of all elements of its first argument, whose result is dense; `weights` may be ragged, too."""

    def function(a: RaggedArray, *rest: Any, **named: Any) -> Any:
        call = getattr(np, name)
        given = inspect.signature(call).bind(a, *rest, **named)
        for key, x in given.arguments.items():
            if isinstance(x, RaggedArray):
                if x is not a and key != "weights":
                    raise error.UnsupportedError(f"{name}: `{key}` must not be ragged")
                a._check_same(x, name)
                given.arguments[key] = x.values
        return call(*given.args, **given.kwargs)

    return function


def unique(
    ar: RaggedArray,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    **other: Any,
) -> Any:
    """The different elements of all rows, sorted."""
    if axis is not None or return_index or return_inverse:
        raise error.UnsupportedError("unique: ragged arrays take no `axis`, `return_index` and `return_inverse`")
    return np.unique(ar.values, return_counts=return_counts, **other)


def each(name: str, operand: str) -> Callable[..., Any]:
    """The function of each element of its argument `operand`. Of other ragged arguments it takes all elements."""

    def function(*args: Any, **named: Any) -> Any:
        call = getattr(np, name)
        given = inspect.signature(call).bind(*args, **named)
        r = given.arguments[operand]
        for key, x in given.arguments.items():
            if isinstance(x, RaggedArray):
                given.arguments[key] = x.values
        found = call(*given.args, **given.kwargs)
        return r.with_values(found) if isinstance(r, RaggedArray) else found

    return function


def shape(a: RaggedArray) -> Any:
    """Sizes of the axes; None for ragged ones."""
    return a.shape


def ndim(a: RaggedArray) -> int:
    """Number of axes."""
    return a.ndim


def size(a: RaggedArray, axis: Any = None) -> int:
    """Number of elements."""
    if axis is None:
        return a.size
    found = 1
    for one in axis if isinstance(axis, tuple) else (axis,):
        length = a.shape[a._axis(one, "size")]
        if length is None:
            raise error.UnsupportedError(f"size: axis {one} of shape {a.shape} is ragged; `lengths` has its sizes")
        found *= length
    return found


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within tolerances."""
    return bool(np.all(np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether rows and elements are equal."""
    if not (isinstance(a1, RaggedArray) and isinstance(a2, RaggedArray)) or a1.num_ragged != a2.num_ragged:
        return False
    if not all(own.same(its) for own, its in zip(a1._partitions, a2._partitions, strict=True)):
        return False
    return bool(np.array_equal(a1.values, a2.values, equal_nan=equal_nan))


def add_n(*args: Any) -> Any:
    """Sum of arrays in the same rows."""
    total = args[0]
    for x in args[1:]:
        total = total + x
    return total


def stop_gradient(data: RaggedArray) -> Any:
    """The same elements, through which no gradient flows."""
    return data.detach()


def cast(data: RaggedArray, dtype: Any) -> Any:
    """The elements in another dtype."""
    return data.with_values(npx.cast(data.values, dtype))


def batch_norm(
    x: RaggedArray, gamma: Any, beta: Any, running_mean: Any, running_var: Any, *rest: Any, axis: int = 1, **named: Any
) -> Any:
    """Normalisation over all elements of each channel; channels are along a uniform axis."""
    at = x._axis(axis, "batch_norm")
    if at <= x.num_ragged:
        raise error.UnsupportedError(
            f"batch_norm: axis {axis} of shape {x.shape} is not uniform\n  hint: axis=-1 normalises the last axis"
        )
    named["axis"] = at - x.num_ragged
    found = _npx["batch_norm"](x.values, gamma, beta, running_mean, running_var, *rest, **named)
    return (x.with_values(found[0]), *found[1:]) if isinstance(found, tuple) else x.with_values(found)
