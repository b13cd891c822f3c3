"""Linear algebra on arrays."""

from __future__ import annotations

from mxnet import _core

globals().update(_core.namespaces["linalg"])
