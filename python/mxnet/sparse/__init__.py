"""Sparse arrays: structures of ordinary arrays, with SciPy's names and MXNet's.

>>> import mxnet as mx
>>> x = mx.sparse.csr_array(([1.0, 2.0], [1, 0], [0, 1, 2]), shape=(2, 2))
>>> (x @ mx.np.array([1.0, 10.0])).tolist()
[10.0, 2.0]
"""

from __future__ import annotations

from mxnet.sparse import _alternatives
from mxnet.sparse import graph as graph
from mxnet.sparse._array import sparray
from mxnet.sparse._bsr import bsr_array
from mxnet.sparse._compressed import csc_array, csr_array
from mxnet.sparse._construct import (
    block_array,
    block_diag,
    cast_storage,
    diags_array,
    eye_array,
    find,
    issparse,
    rand_sparse_ndarray,
    random_array,
)
from mxnet.sparse._coo import coo_array
from mxnet.sparse._files import load, load_npz, save, save_npz
from mxnet.sparse._joining import (
    expand_dims,
    hstack,
    kron,
    kronsum,
    permute_dims,
    swapaxes,
    tril,
    triu,
    vstack,
)
from mxnet.sparse._products import sampled as sampled_matmul
from mxnet.sparse._row_sparse import retain, row_sparse_array

__all__ = [
    "block_array",
    "block_diag",
    "bsr_array",
    "cast_storage",
    "coo_array",
    "csc_array",
    "csr_array",
    "diags_array",
    "expand_dims",
    "eye_array",
    "find",
    "hstack",
    "issparse",
    "kron",
    "kronsum",
    "load",
    "load_npz",
    "permute_dims",
    "rand_sparse_ndarray",
    "random_array",
    "retain",
    "row_sparse_array",
    "sampled_matmul",
    "save",
    "save_npz",
    "sparray",
    "swapaxes",
    "tril",
    "triu",
    "vstack",
]


def __getattr__(name: str) -> object:
    instead = _alternatives.FUNCTIONS.get(name)
    if instead is None:
        raise AttributeError(f"module 'mxnet.sparse' has no attribute '{name}'")
    raise AttributeError(f"mxnet.sparse.{name} does not exist: {instead}")
