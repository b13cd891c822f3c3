"""Older spellings of public names: arguments, methods and module attributes.

Every older spelling that still works goes through one of the functions here, and gives a DeprecationWarning that names
the new one. Names that are gone answer with an AttributeError that says what to use.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["REMOVED", "old_attribute", "old_keywords", "old_method", "removed"]

F = TypeVar("F", bound=Callable[..., Any])

# Names of `mxnet` and `npx` that older programs use and that do not exist, and what does their work.
_NUMPY = "arrays are `mx.np.ndarray`, made and computed with by `mx.np` and `mx.npx`"
_GRAPHS = "networks are `mx.gluon.HybridBlock`s"
_TRAINING = "training is `mx.gluon.Trainer`, or the loop `mx.gluon.contrib.estimator.Estimator`"
REMOVED: dict[str, dict[str, str]] = {
    "mxnet": {
        "nd": _NUMPY,
        "ndarray": _NUMPY,
        "sym": _GRAPHS,
        "symbol": _GRAPHS,
        "mod": _TRAINING,
        "module": _TRAINING,
        "model": _TRAINING,
        "rnn": "recurrent layers and cells are in `mx.gluon.rnn`",
    },
}


def _warn(old: str, new: str, stacklevel: int = 3) -> None:
    # 3: the caller of the function that was given the old name.
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=stacklevel)


def old_keywords(**names: str) -> Callable[[F], F]:
    """Decorator: let a function take keyword arguments by an older name too.

    Parameters
    ----------
    **names : str
        Older name to the name in the signature, for example ``ctx="device"``.

    Returns
    -------
    decorator
        The function raises a TypeError if an argument is given by both names.

    Examples
    --------
    >>> import warnings
    >>> from mxnet._renamed import old_keywords
    >>> @old_keywords(ctx='device')
    ... def where(device=None):
    ...     return device
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore', DeprecationWarning)
    ...     where(ctx=mx.cpu(1))
    cpu(1)
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                for old, new in names.items():
                    if old in kwargs:
                        if new in kwargs:
                            raise TypeError(f"{function.__name__}() got both `{new}` and its older name `{old}`")
                        _warn(f"argument `{old}` of {function.__name__}", f"`{new}`")
                        kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]  # functools.wraps keeps the signature

    return decorate


def old_method(old: str, method: Callable[..., Any], keywords: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """A method under its older name.

    Parameters
    ----------
    old : str
    method : function
        Looked up again by its name at the call, so that what a subclass overrides is called.
    keywords : mapping of str to str, optional
        As for `old_keywords`.

    Returns
    -------
    function
        To be assigned in the class body.
    """
    new = method.__name__
    translated = dict(keywords or {})

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _warn(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)(*args, **{translated.get(name, name): value for name, value in kwargs.items()})

    call.__name__, call.__qualname__ = old, old
    signature = inspect.signature(method)
    older = {name: spelling for spelling, name in translated.items()}
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p.replace(name=older.get(name, name)) for name, p in signature.parameters.items()]
    )
    _, _, described = (method.__doc__ or "").partition("\n")
    for name, spelling in older.items():
        described = described.replace(f"{name} : ", f"{spelling} : ").replace(f"`{name}`", f"`{spelling}`")
    call.__doc__ = f"Older name of `{new}`.\n{described}"
    return call


def old_attribute(module: str, old: str, new: str, found: Any) -> Any:
    """What an older name of a module stands for, with a DeprecationWarning.

    Parameters
    ----------
    module, old, new : str
        Name of the module, the older name in it, and what to use.
    found : object

    Returns
    -------
    object
        `found`.
    """
    _warn(f"`{module}.{old}`", f"`{new}`", stacklevel=4)  # the module's __getattr__ lies between
    return found


def removed(module: str, name: str) -> AttributeError:
    """The error of a name that a module does not have.

    Parameters
    ----------
    module, name : str

    Returns
    -------
    AttributeError
        To be raised; it says what to use if `name` is one of `REMOVED`.
    """
    instead = REMOVED.get(module, {}).get(name)
    hint = "" if instead is None else f": it was removed; {instead}"
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)
