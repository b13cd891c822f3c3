"""Environment variables and repeated tests."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from mxnet.device import current_device, num_gpus

__all__ = [
    "environment",
    "is_op_runnable",
    "list_gpus",
    "retry",
]

F = TypeVar("F", bound=Callable[..., Any])


def list_gpus() -> list[int]:
    """Numbers of the graphics processors.

    Returns
    -------
    list of int

    Examples
    --------
    >>> len(mx.test_utils.list_gpus()) == mx.num_gpus()
    True
    """
    return list(range(num_gpus()))


def is_op_runnable() -> bool:
    """Whether operators can run on the current device.

    Returns
    -------
    bool
        False if it is a graphics processor that does not exist.

    Examples
    --------
    >>> with mx.gpu(mx.num_gpus()):
    ...     mx.test_utils.is_op_runnable()
    False
    >>> mx.test_utils.is_op_runnable()
    True
    """
    device = current_device()
    return device.device_type != "gpu" or device.device_id in list_gpus()


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Other environment variables inside a ``with`` block.

    Parameters
    ----------
    *args : name and value, or one mapping of names to values
        None removes a variable.

    Returns
    -------
    context manager

    Raises
    ------
    ValueError
        If there are neither one nor two arguments.

    Examples
    --------
    >>> import os
    >>> with mx.test_utils.environment('MXNET_EXAMPLE', '1'):
    ...     os.environ['MXNET_EXAMPLE']
    '1'
    """
    if len(args) == 1:
        changes = dict(args[0])
    elif len(args) == 2:
        changes = {args[0]: args[1]}
    else:
        raise ValueError(f"a name and a value or one mapping is needed, found {len(args)} arguments")
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set_environment(changes)
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)


def retry(n: int) -> Callable[[F], F]:
    """Decorator for a statistical test: run it until it passes, at most `n` times.

    Parameters
    ----------
    n : int
        At least 1.

    Returns
    -------
    decorator

    Raises
    ------
    ValueError
        If `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1, found {n}")

    def decorate(test: F) -> F:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                with contextlib.suppress(AssertionError):
                    return test(*args, **kwargs)
            return test(*args, **kwargs)

        return run  # type: ignore[return-value]  # the wrapper has the test's signature, which a TypeVar cannot say

    return decorate
