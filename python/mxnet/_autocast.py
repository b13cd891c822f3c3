"""The switch of automatic mixed precision."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mxnet import _core

__all__ = ["autocast", "checked"]

DTYPES = ("float16", "bfloat16")


def checked(caller: str, dtype: str) -> str:
    """The name of a dtype that mixed precision can have.

    Parameters
    ----------
    caller : str
        Who asks, for the message.
    dtype : str or dtype

    Raises
    ------
    ValueError
        If it is neither float16 nor bfloat16.
    """
    name = str(dtype)
    if name not in DTYPES:
        raise ValueError(f"{caller}: mixed precision is of 'float16' or 'bfloat16', found {dtype!r}")
    return name


@contextlib.contextmanager
def autocast(dtype: str | None = "float16") -> Iterator[None]:
    """Run what follows in mixed precision, or not.

    Parameters
    ----------
    dtype : {"float16", "bfloat16", None}
        What products and convolutions compute in; None for no casts, in a part of a program that has them.

    Raises
    ------
    ValueError
        If `dtype` is another one.

    Notes
    -----
    The mode belongs to the thread, and inside a coroutine to all that the thread runs meanwhile. `backward` needs no
    mode: it computes each gradient in the dtype that its operator had.

    Examples
    --------
    >>> x = np.ones((2, 2))
    >>> with mx.amp.autocast():
    ...     y = np.dot(x, x)
    ...     z = np.exp(y)
    >>> y.dtype, z.dtype
    (dtype('float16'), dtype('float32'))
    """
    before = _core.set_autocast(None if dtype is None else checked("autocast", dtype))
    try:
        yield
    finally:
        _core.set_autocast(before)
