"""Products of matrices."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.onnx._importer.table import Call, operator


@operator("MatMul")
def matmul(call: Call, lhs: Any, rhs: Any) -> Any:
    return np.matmul(lhs, rhs)


@operator("Gemm")
def gemm(call: Call, lhs: Any, rhs: Any, offset: Any = None) -> Any:
    alpha, beta = call["alpha"], call["beta"]
    is_dense = call["transB"] and not call["transA"] and alpha == beta == 1
    if is_dense and offset is not None and offset.shape == (rhs.shape[0],):
        return npx.fully_connected(lhs, rhs, offset, num_hidden=rhs.shape[0], no_bias=False, flatten=False)
    product = np.matmul(lhs.T if call["transA"] else lhs, rhs.T if call["transB"] else rhs)
    if alpha != 1:
        product = (alpha * product).astype(lhs.dtype)
    if offset is None:
        return product
    return product + (offset if beta == 1 else (beta * offset).astype(lhs.dtype))


@operator("Einsum")
def einsum(call: Call, *arrays: Any) -> Any:
    return np.einsum(call["equation"].replace(" ", ""), *arrays)


@operator("Det")
def determinant(call: Call, x: Any) -> Any:
    return np.linalg.det(x)
