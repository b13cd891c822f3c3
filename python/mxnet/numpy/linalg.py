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
    lstsq,
    matrix_rank,
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
from mxnet.numpy._products import matrix_norm, matrix_power, norm, vector_norm

globals().update(_core.namespaces["linalg"])
