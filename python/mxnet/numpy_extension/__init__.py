"""What a network needs beyond NumPy's interface."""

from __future__ import annotations

from mxnet import _core

globals().update(_core.namespaces["npx"])
