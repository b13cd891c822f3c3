"""Linear algebra on arrays."""

from __future__ import annotations

from mxnet import _core
from mxnet.numpy._products import matrix_norm, norm, tensordot, vector_norm

globals().update(_core.namespaces["linalg"])
