"""Random arrays from the global, counter-based stream."""

from __future__ import annotations

from mxnet import _core
from mxnet._core import seed

globals().update(_core.namespaces["random"])

__all__ = ["seed", *sorted(_core.namespaces["random"])]
