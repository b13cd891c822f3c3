"""Devices and the current device of a thread."""

from __future__ import annotations

import copyreg
import threading
from types import TracebackType

from mxnet import _core
from mxnet._core import Device
from mxnet._renamed import attribute_finder

__all__ = ["Device", "cpu", "current_device", "gpu", "gpu_memory_info", "num_gpus"]

__getattr__ = attribute_finder(__name__)


class _Stack(threading.local):
    """The devices that ``with`` blocks of this thread will restore, innermost last."""

    def __init__(self) -> None:
        self.outer: list[Device] = []


_stack = _Stack()


def _enter(self: Device) -> Device:
    """Make this the default device of new arrays on this thread."""
    _stack.outer.append(_core.set_current_device(self))
    return self


def _exit(
    self: Device,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Go back to the device before."""
    del self, kind, error, trace
    _core.set_current_device(_stack.outer.pop())


def _empty_cache(self: Device) -> None:
    """Give the memory back to the system that is kept for new arrays of this device.

    Memory of arrays that exist is not touched. New arrays take longer until there is a cache again.

    Raises
    ------
    mxnet.error.DeviceError
        If there is no such device.

    Examples
    --------
    >>> mx.cpu().empty_cache()
    """
    _core.empty_cache(self)


# Arrays hand out the extension's own class, so the context manager must be on that class, not on a subclass of it.
Device.__enter__ = _enter  # type: ignore[method-assign]
Device.__exit__ = _exit  # type: ignore[method-assign]
Device.empty_cache = _empty_cache  # type: ignore[method-assign]
# For copies and pickles: the class and the arguments that make it anew.
copyreg.pickle(Device, lambda device: (Device, (device.device_type, device.device_id)))
# Numbers of the device types, as saved files and the C interface write them.
Device.devtype2str = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}  # type: ignore[attr-defined]
Device.devstr2type = {name: number for number, name in Device.devtype2str.items()}  # type: ignore[attr-defined]


def cpu(device_id: int = 0) -> Device:
    """The host processor.

    Parameters
    ----------
    device_id : int
        All ids mean the same hardware; arrays of different ids count as being on different devices.

    Returns
    -------
    Device

    Examples
    --------
    >>> mx.cpu(), np.zeros(2, device=mx.cpu(1)).device
    (cpu(0), cpu(1))
    """
    return Device("cpu", device_id)


def gpu(device_id: int = 0) -> Device:
    """A graphics processor.

    Parameters
    ----------
    device_id : int
        From 0 to ``num_gpus() - 1``.

    Returns
    -------
    Device
        Naming a device that does not exist is allowed; making an array on it is not.

    Examples
    --------
    >>> mx.gpu(0)
    gpu(0)
    """
    return Device("gpu", device_id)


def current_device() -> Device:
    """The device of the innermost ``with device:`` block of this thread, else ``cpu(0)``.

    Returns
    -------
    Device

    Examples
    --------
    >>> import mxnet as mx
    >>> with mx.cpu(1):
    ...     mx.current_device()
    cpu(1)
    >>> mx.current_device()
    cpu(0)
    """
    return _core.current_device()


def num_gpus() -> int:
    """Number of graphics processors that arrays can be made on.

    Returns
    -------
    int
        0 without a GPU or without NVIDIA's driver: arrays live in host memory only.
        `mx.runtime.backends()` says what is missing.

    Examples
    --------
    >>> mx.num_gpus() >= 0
    True
    """
    return int(_core.num_devices("gpu"))


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total memory of a graphics processor, as its driver counts.

    Memory that is kept for new arrays is not free: ``mx.gpu(device_id).empty_cache()`` gives it back first.

    Parameters
    ----------
    device_id : int
        From 0 to ``num_gpus() - 1``.

    Returns
    -------
    (int, int)
        Bytes that are free, and all.

    Raises
    ------
    mxnet.error.DeviceError
        If there is no such device.

    Examples
    --------
    >>> [mx.device.gpu_memory_info(i)[1] for i in range(mx.num_gpus())]
    []
    """
    free, total = _core.device_memory(gpu(device_id))
    return free, total
