"""What a network needs beyond NumPy's interface."""

from __future__ import annotations

from mxnet import _core
from mxnet.numpy_extension import random as random

globals().update(_core.namespaces["npx"])
