"""Functions written in Python that ask sparse and ragged arguments, as operators do (`__array_function__`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["overridable"]


def _structured(arguments: Iterable[Any]) -> Any:
    """The first sparse or ragged array among the arguments and in lists of them."""
    for x in arguments:
        if isinstance(x, list | tuple):
            found = _structured(x)
            if found is not None:
                return found
        elif hasattr(type(x), "_graph_parts"):
            return x
    return None


def overridable(function: F) -> F:
    """Let sparse and ragged arguments answer a call that fails with them.

    Parameters
    ----------
    function : callable
        A function that converts its arguments to arrays, which such arguments refuse.

    Returns
    -------
    callable
        Calls with arrays alone cost no search.
    """

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            x = _structured((*args, *kwargs.values()))
            if x is None:
                raise
        return x.__array_function__(asked, (type(x),), args, kwargs)

    return cast("F", asked)
