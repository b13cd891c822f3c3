"""Older names of `mxnet.device`: every one works and gives a DeprecationWarning."""

from __future__ import annotations

from typing import Any

from mxnet import device as _device
from mxnet._renamed import old_attribute, removed

_NEW = {
    "Context": "Device",
    "cpu": "cpu",
    "current_context": "current_device",
    "gpu": "gpu",
    "gpu_memory_info": "gpu_memory_info",
    "num_gpus": "num_gpus",
}

__all__ = list(_NEW)  # derived, so that no name is written twice


def __getattr__(name: str) -> Any:
    if name not in _NEW:
        raise removed(__name__, name)
    new = _NEW[name]
    return old_attribute(__name__, name, f"mxnet.device.{new}", getattr(_device, new))


def __dir__() -> list[str]:
    return sorted({*globals(), *_NEW})
