"""The seed of the random number generators."""

from __future__ import annotations

from mxnet import _core
from mxnet.device import Device

__all__ = ["seed"]


def seed(seed_state: int, device: Device | str = "all") -> None:
    """Start the stream of random numbers anew.

    Parameters
    ----------
    seed_state : int
        From 0 to ``2**64 - 1``. The same seed gives the same numbers on every device and with any number of threads.
    device : Device or "all"
        There is one stream for all devices, so only ``"all"`` is possible.

    Raises
    ------
    ValueError
        If `device` is a single device.

    Examples
    --------
    >>> mx.random.seed(1)
    >>> x = np.random.normal(size=3)
    >>> mx.random.seed(1)
    >>> bool((np.random.normal(size=3) == x).all())
    True
    """
    if device != "all":
        raise ValueError(f"`device` must be 'all': one random stream serves all devices, found {device!r}")
    _core.seed(seed_state)
