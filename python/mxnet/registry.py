"""Classes by their names: registers of subclasses, for factories of one's own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar

from mxnet._caller_warning import warn_caller

__all__ = ["get_alias_func", "get_create_func", "get_register_func", "get_registry"]

_Class = TypeVar("_Class", bound=type)

_registries: dict[type, dict[str, type]] = {}


def get_registry(base_class: type) -> dict[str, type]:
    """The registered subclasses of a class.

    Parameters
    ----------
    base_class : class

    Returns
    -------
    dict of str to class
        A copy, by names in lower case.

    Examples
    --------
    >>> class Shape: pass
    >>> mx.registry.get_registry(Shape)
    {}
    """
    return dict(_registries.get(base_class, {}))


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that registers subclasses, also as a decorator.

    Parameters
    ----------
    base_class : class
    nickname : str
        What the classes are called in messages.

    Returns
    -------
    function of (klass, name=None)
        Returns `klass`. The name is that of the class by default; case does not matter. Raises TypeError if `klass`
        is no subclass; warns if another class had the name.

    Examples
    --------
    >>> class Shape: pass
    >>> register = mx.registry.get_register_func(Shape, 'shape')
    >>> @register
    ... class Circle(Shape): pass
    >>> list(mx.registry.get_registry(Shape))
    ['circle']
    """

    def register(klass: _Class, name: str | None = None) -> _Class:
        if not inspect.isclass(klass) or not issubclass(klass, base_class):
            raise TypeError(f"a {nickname} must be a subclass of {base_class.__name__}, found {klass!r}")
        registry = _registries.setdefault(base_class, {})
        key = (klass.__name__ if name is None else name).lower()
        if registry.get(key, klass) is not klass:
            warn_caller(
                f"{nickname} {key!r} was {registry[key].__module__}.{registry[key].__name__} "
                f"and becomes {klass.__module__}.{klass.__name__}"
            )
        registry[key] = klass
        return klass

    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A decorator that registers a subclass under several names.

    Parameters
    ----------
    base_class : class
    nickname : str
        What the classes are called in messages.

    Returns
    -------
    function
        Takes names and returns a decorator.

    Examples
    --------
    >>> class Shape: pass
    >>> @mx.registry.get_alias_func(Shape, 'shape')('disc', 'round')
    ... class Circle(Shape): pass
    >>> list(mx.registry.get_registry(Shape))
    ['disc', 'round']
    """
    register = get_register_func(base_class, nickname)

    def alias(*names: str) -> Callable[[_Class], _Class]:
        def decorate(klass: _Class) -> _Class:
            for name in names:
                register(klass, name)
            return klass

        return decorate

    return alias


def _parsed(nickname: str, text: str) -> Any:
    """A mapping of arguments, or a list of a name and such a mapping, from JSON."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{nickname}: text that starts with {text[0]!r} must be JSON: {error}") from error
    if isinstance(found, list) and not (len(found) == 2 and isinstance(found[0], str) and isinstance(found[1], dict)):
        raise ValueError(f"{nickname}: a list in JSON must hold a name and a mapping of arguments, found {text!r}")
    return found


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that makes objects of registered classes.

    Parameters
    ----------
    base_class : class
    nickname : str
        Key of the class's name in a mapping of arguments.

    Returns
    -------
    function
        Takes a name and the arguments of the class. The name is a registered one; or a mapping of arguments with the
        name under `nickname`, or JSON of one, or JSON of ``[name, arguments]``; or an object, which is returned as it
        is. Raises ValueError for an unknown name or JSON of another form, and TypeError for arguments beside an object
        or JSON.

    Examples
    --------
    >>> class Shape: pass
    >>> @mx.registry.get_register_func(Shape, 'shape')
    ... class Circle(Shape):
    ...     def __init__(self, radius=1):
    ...         self.radius = radius
    >>> create = mx.registry.get_create_func(Shape, 'shape')
    >>> create('circle', radius=2).radius
    2
    >>> create('["circle", {"radius": 3}]').radius
    3
    """

    def create(*args: Any, **kwargs: Any) -> Any:
        if not args and nickname not in kwargs:
            raise TypeError(
                f"{nickname}: a name is missing; in a mapping its key is {nickname!r}, found {sorted(kwargs)}"
            )
        name, args = (args[0], args[1:]) if args else (kwargs.pop(nickname), ())
        is_json = isinstance(name, str) and name.startswith(("[", "{"))
        if (is_json or not isinstance(name, str)) and (args or kwargs):
            raise TypeError(f"arguments beside a {type(name).__name__} that has all of them: {name!r}")
        if isinstance(name, base_class):
            return name
        if is_json:
            name = _parsed(nickname, name)
        if isinstance(name, list):
            return create(name[0], **name[1])
        if isinstance(name, dict):
            return create(**name)
        if not isinstance(name, str):
            raise TypeError(f"{nickname}: must be a name, a mapping or an object, found {type(name).__name__}")
        known = get_registry(base_class)
        klass = known.get(name.lower())
        if klass is None:
            raise ValueError(f"no {nickname} {name!r}; known are {', '.join(sorted(known)) or 'none'}")
        return klass(*args, **kwargs)

    return create
