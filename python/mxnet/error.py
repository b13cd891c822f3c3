"""Exception classes of the package, all subclasses of `MXNetError`.

Each also is the class that NumPy or Python raises for the same fault, so that ``except ValueError`` works as expected.
"""

from __future__ import annotations

from collections.abc import Callable

from mxnet._core import (
    AbstractArrayError,
    AutogradError,
    AxisError,
    DeviceError,
    DTypeError,
    FloatingPointError,
    IndexError,
    InternalError,
    IOError,
    LinAlgError,
    MemoryError,
    MXNetError,
    OverflowError,
    ShapeError,
    UFuncTypeError,
    UnsupportedError,
    ValueError,
    ZeroDivisionError,
)

__all__ = [
    "AbstractArrayError",
    "AutogradError",
    "FloatingPointError",
    "AxisError",
    "DTypeError",
    "DeviceError",
    "DistributedError",
    "FileFormatError",
    "IOError",
    "IndexError",
    "InternalError",
    "LinAlgError",
    "MXNetError",
    "MemoryError",
    "OverflowError",
    "ShapeError",
    "UFuncTypeError",
    "UnsupportedError",
    "ValueError",
    "ZeroDivisionError",
    "register",
]

_REGISTRY: dict[str, type[BaseException]] = {}


def register(
    func_name: str | type[BaseException] | None = None, cls: type[BaseException] | None = None
) -> type[BaseException] | Callable[[type[BaseException]], type[BaseException]]:
    """Give an exception class a name.

    Parameters
    ----------
    func_name : str or exception class, optional
        The name; the class's own name if the class is given here.
    cls : exception class, optional
        Without it a decorator is returned.

    Returns
    -------
    exception class, or a decorator that returns it

    Examples
    --------
    >>> from mxnet import error
    >>> @error.register
    ... class QuotaError(error.MXNetError):
    ...     pass
    """
    if isinstance(func_name, type):
        _REGISTRY[func_name.__name__] = func_name
        return func_name

    def add(klass: type[BaseException]) -> type[BaseException]:
        _REGISTRY[func_name or klass.__name__] = klass
        return klass

    return add if cls is None else add(cls)


class FileFormatError(ValueError):
    """A file is truncated, corrupt or of another format than the one asked for."""


class DistributedError(MXNetError, RuntimeError):
    """The processes of a program do not do the same, or one of them has ended."""
