"""Checks of arguments that are numbers of something."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["count_of"]


def count_of(owner: str, name: str, value: Any, least: int = 1) -> int:
    """A number of units, channels or layers as an integer.

    Parameters
    ----------
    owner, name : str
        The class and its argument, for the message.
    value : int
        Or whatever else counts as an integer, such as an element of an array.
    least : int
        The smallest number allowed.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If it is no integer.
    ValueError
        If it is smaller.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{owner}: `{name}` must be an integer, found {value!r}") from None
    if number < least:
        raise ValueError(f"{owner}: `{name}` must be at least {least}, found {number}")
    return number
