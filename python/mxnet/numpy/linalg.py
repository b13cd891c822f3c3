"""Linear algebra on arrays."""

from __future__ import annotations

from mxnet import _core
from mxnet._core import LinAlgError
from mxnet.numpy._linalg import (
    EighResult,
    EigResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    cond,
    cross,
    diagonal,
    eig,
    eigh,
    outer,
    pinv,
    qr,
    slogdet,
    svd,
    tensordot,
    tensorinv,
    tensorsolve,
    trace,
)
from mxnet.numpy._products import matrix_power

globals().update(_core.namespaces["linalg"])
