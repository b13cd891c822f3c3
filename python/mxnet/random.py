"""The seed of the random number generators."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from mxnet import _core
from mxnet._renamed import attribute_finder, old_keywords
from mxnet.device import Device

__all__ = ["seed"]

__getattr__ = attribute_finder(__name__)


@old_keywords(ctx="device")
def seed(seed_state: int | Sequence[int] | None = None, device: Device | str = "all") -> None:
    """Start the stream of random numbers anew.

    Parameters
    ----------
    seed_state : int, sequence of int or None
        From 0 to ``2**64 - 1``. The same seed gives the same numbers on every device and with any number of threads.
        Several integers make one seed; None asks the operating system.
    device : Device or "all"
        There is one stream for all devices, which the seed of any of them starts anew.

    Raises
    ------
    TypeError
        If a seed is no integer.
    ValueError
        If `device` is something else, or a seed is out of range.

    Examples
    --------
    >>> mx.random.seed(1)
    >>> x = np.random.normal(size=3)
    >>> mx.random.seed(1)
    >>> bool((np.random.normal(size=3) == x).all())
    True
    """
    if device != "all" and not isinstance(device, Device):
        raise ValueError(f"`device` must be 'all' or a Device, found {device!r}")
    _core.seed(_number(seed_state))


def _number(seed_state: Any) -> int:
    """A seed as one integer."""
    if seed_state is None:
        return secrets.randbits(64)
    if hasattr(seed_state, "tolist"):
        seed_state = seed_state.tolist()
    if isinstance(seed_state, Sequence) and not isinstance(seed_state, str):
        if not seed_state:
            raise ValueError("`seed_state` must not be empty")
        key, _, _ = _core.RandomStream([_number(part) & 0xFFFFFFFF for part in seed_state]).state()
        return int(key)
    try:
        value: int = seed_state.__index__()
    except AttributeError:
        raise TypeError(f"`seed_state` must be an integer, not {type(seed_state).__name__!r}") from None
    if not 0 <= value < 1 << 64:
        raise ValueError(f"`seed_state` must be between 0 and 2**64 - 1, found {value}")
    return value
