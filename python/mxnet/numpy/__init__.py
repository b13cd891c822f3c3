"""NumPy's interface on asynchronous, differentiable arrays.

Operators come from the registry of the compiled core; what only Python can express well stands in the modules beside
this one.
"""

from __future__ import annotations

from numpy import (
    bool_,
    complex64,
    complex128,
    dtype,
    e,
    euler_gamma,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)

from mxnet import _core
from mxnet._core import array, asarray, from_dlpack, ndarray
from mxnet.numpy import linalg, random
from mxnet.numpy._files import load, save, savez, savez_compressed
from mxnet.numpy._indexing import diagflat, put, put_along_axis
from mxnet.numpy._ordering import (
    lexsort,
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from mxnet.numpy._products import einsum, tensordot

bool = bool_  # NumPy's name
bfloat16 = "bfloat16"

globals().update(_core.namespaces["numpy"])

__all__ = sorted({name for name in globals() if not name.startswith("_")} - {"annotations"})
