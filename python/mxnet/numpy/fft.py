"""Discrete Fourier transforms.

Differentiable, in single precision for single precision (NumPy's rule), batches of lines in parallel.
"""

from __future__ import annotations

from mxnet import _core

globals().update(_core.namespaces["fft"])

__all__ = sorted(_core.namespaces["fft"])
