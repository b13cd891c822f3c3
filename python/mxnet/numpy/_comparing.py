"""Equality with objects that are not arrays of numbers: text, None, any object. Elements are compared one by one."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from mxnet import _core
from mxnet._core import array, asarray, ndarray

_op = _core.namespaces["op"]

# Types that are never equal to a number.
_NO_NUMBERS = (str, bytes, dict, set, frozenset, type)


def objects(x: Any) -> Any:
    """The elements as Python objects.

    Parameters
    ----------
    x : array_like, or anything

    Returns
    -------
    numpy.ndarray
        Of dtype object; dates stay what they are, as their missing values equal nothing.
    """
    values = numpy.asarray(x.asnumpy() if isinstance(x, ndarray) else x)
    return values if values.dtype.kind in "mM" else numpy.asarray(x, dtype=object)


def unlike(x: Any, other: Any, name: str) -> ndarray:
    """Elementwise `==` or `!=` with an object that is not an array of numbers.

    Parameters
    ----------
    x, other : array_like
        At least one of them is an array of numbers, or both are None.
    name : {'equal', 'not_equal'}

    Returns
    -------
    ndarray
        Truth values, of the shape to which both broadcast; sequences in `other` are taken apart.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> np.array([1, 2]) == None
    array([False, False])
    >>> np.array([1, 2]) != ["a", 2]
    array([ True, False])
    """
    if x is None:
        x, other = other, x
    if x is None:
        return array(name == "equal")
    x = asarray(x)
    if other is None or isinstance(other, _NO_NUMBERS):
        return _op["full"](x.shape, name == "not_equal", "bool", device=x.device)  # type: ignore[no-any-return]
    compare = operator.eq if name == "equal" else operator.ne
    pairs = numpy.broadcast(objects(x), objects(other))
    return array([bool(compare(a, b)) for a, b in pairs], dtype="bool").reshape(pairs.shape)
