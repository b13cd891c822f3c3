"""The dispatch table of sparse arrays, by function and kinds of operands.

Functions of `np` and `npx` come here when one of their operands is sparse. What no row serves raises an error that
names the function and the kinds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mxnet import _core, error
from mxnet._core import ndarray
from mxnet.sparse import _elementwise, _joining, _products, _reduce

Operator = Callable[..., Any]


def kind(x: Any) -> str:
    """The kind of an operand: a number, a dense array, or the name of a sparse format."""
    if hasattr(x, "format") and hasattr(x, "_with_data"):
        return str(x.format)
    if isinstance(x, (bool, int, float, complex)) or (not isinstance(x, ndarray) and getattr(x, "ndim", 1) == 0):
        return "number"
    if isinstance(x, ndarray):
        return "number" if x.ndim == 0 else "dense"
    return "dense"


_SPARSE = ("csr", "csc", "coo", "bsr", "row_sparse")


def _group(name: str) -> str:
    return "sparse" if name in _SPARSE else name


@functools.cache
def keeping_zero() -> frozenset[str]:
    """Elementwise operators of one array that map zero to zero, from their registry entries."""
    return frozenset(e["name"] for e in _core.registry() if e["keeps_zero"] and e["elementwise"])


# Elementwise functions of two operands. "*" stands for all other functions; of sparse arrays
# and numbers, for those that are zero where both operands are zero.
BINARY: dict[tuple[str, str, str], Operator] = {
    ("multiply", "sparse", "sparse"): _elementwise.product,
    ("multiply", "sparse", "dense"): _elementwise.on_pattern,
    ("multiply", "dense", "sparse"): _elementwise.on_pattern,
    ("multiply", "sparse", "number"): _elementwise.times_number,
    ("multiply", "number", "sparse"): _elementwise.number_times,
    ("divide", "sparse", "dense"): _elementwise.on_pattern,
    ("divide", "sparse", "number"): _elementwise.over_number,
    ("divide", "sparse", "sparse"): _elementwise.quotient,
    ("add", "sparse", "dense"): _elementwise.plus_dense,
    ("add", "dense", "sparse"): _elementwise.dense_plus,
    ("subtract", "sparse", "dense"): _elementwise.minus_dense,
    ("subtract", "dense", "sparse"): _elementwise.dense_minus,
    ("add", "sparse", "sparse"): _elementwise.added,
    ("subtract", "sparse", "sparse"): _elementwise.added,
    **{
        (name, a, b): _elementwise.on_pattern
        for name in ("logical_and", "bitwise_and")
        for a, b in (("sparse", "dense"), ("dense", "sparse"))
    },
    ("*", "sparse", "sparse"): _elementwise.union,
    ("*", "sparse", "dense"): _elementwise.with_dense,
    ("*", "dense", "sparse"): _elementwise.with_dense,
    ("*", "sparse", "number"): _elementwise.with_number,
    ("*", "number", "sparse"): _elementwise.with_number,
}

# Matrix products, by the formats of the operands.
MATMUL: dict[tuple[str, str], Operator] = {
    ("bsr", "dense"): _products.blocks_dense,
    **{(a, "dense"): _products.sparse_dense for a in ("csr", "csc", "coo", "row_sparse")},
    **{("dense", b): _products.dense_sparse for b in _SPARSE},
    **{(a, b): _products.sparse_sparse for a in _SPARSE for b in _SPARSE},
}


def _method(name: str) -> Operator:
    def call(x: Any, *arguments: Any, **keywords: Any) -> Any:
        return getattr(x, name)(*arguments, **keywords)

    return call


# Functions that are not elementwise, by their names in `np` and `npx`.
FUNCTIONS: dict[str, Operator] = {
    **{name: _method(name) for name in ("sum", "mean", "prod", "max", "min", "any", "all")},
    **{name: _reduce.position(name) for name in ("argmax", "argmin")},
    "var": _reduce.var,
    "std": _reduce.std,
    "ptp": _reduce.ptp,
    **{name: _method(name) for name in ("count_nonzero", "nonzero", "transpose", "swapaxes", "reshape", "diagonal")},
    **{name: _method(name) for name in ("trace", "copy", "astype")},
    **{
        name: _elementwise.of_values(name)
        for name in ("real", "imag", "angle", "fix", "nan_to_num", "isposinf", "isneginf", "iscomplex")
    },
    **{name: _elementwise.of_values(name) for name in ("activation", "leaky_relu", "gelu", "smooth_l1")},
    "dropout": _elementwise.dropout,
    "copy_in_order": _method("copy"),
    "amax": _method("max"),
    "amin": _method("min"),
    "matrix_transpose": _method("transpose"),
    "permute_dims": _method("transpose"),
    "around": _joining.around,
    "round": _joining.around,
    "clip": _joining.clip,
    "dot": lambda a, b: dot(a, b),
    "concatenate": _joining.concatenate,
    "concat": _joining.concatenate,
    "vstack": _joining.vstack,
    "hstack": _joining.hstack,
    "kron": _joining.kron,
    "tril": _joining.tril,
    "triu": _joining.triu,
    "diag": _joining.diag,
    "ravel": _joining.ravel,
    "zeros_like": _joining.zeros_like,
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
}


def _unserved(name: str, operands: Any, reason: str = "") -> error.UnsupportedError:
    kinds = ", ".join(type(x).__name__ for x in operands)
    return error.UnsupportedError(
        f"{name}({kinds}): no operator serves these kinds{reason}; `x.todense()` makes a dense array"
    )


def elementwise(name: str, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Dispatch of an elementwise function, from `__array_ufunc__`."""
    name = {"true_divide": "divide", "abs": "absolute", "matvec": "matmul"}.get(name, name)
    if name == "matmul" and method == "__call__" and not keywords:
        return matmul(*inputs)
    if method == "reduce" and name in ("add", "multiply", "maximum", "minimum") and len(inputs) == 1:
        reduction = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}[name]
        return getattr(inputs[0], reduction)(**{"axis": 0, **keywords})
    given = {key: value for key, value in keywords.items() if value is not None}
    if method != "__call__" or given:
        what = f".{method}" if method != "__call__" else f" with `{next(iter(given))}`"
        raise _unserved(name + what, inputs)
    if len(inputs) == 1:
        if name not in keeping_zero():
            raise _unserved(name, inputs, ": it is not zero at zero")
        x = inputs[0]._canonical()
        return x._with_data(_core.namespaces["op"][name](x.data))
    if len(inputs) != 2:
        raise _unserved(name, inputs)
    left, right = (_group(kind(x)) for x in inputs)
    serve = BINARY.get((name, left, right)) or BINARY.get(("*", left, right))
    if serve is None:
        raise _unserved(name, inputs)
    result = serve(name, *inputs)
    if result is NotImplemented:
        raise _unserved(name, inputs, ": the result is not zero where the operands are")
    return result


def matmul(a: Any, b: Any) -> Any:
    """A product of matrices or vectors, of which at least one is sparse."""
    serve = MATMUL.get((kind(a), kind(b)))
    if serve is None:
        raise _unserved("matmul", (a, b))
    return serve(a, b)


def dot(a: Any, b: Any) -> Any:
    """A product of matrices or vectors, or with a number."""
    return a * b if "number" in (kind(a), kind(b)) else matmul(a, b)


def call(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Dispatch of a function, from `__array_function__`."""
    serve = FUNCTIONS.get(name)
    if serve is None:
        operands = [x for x in (*arguments, *keywords.values()) if kind(x) in _SPARSE]
        raise _unserved(name, operands)
    left = {key: value for key, value in keywords.items() if value is not None}
    return serve(*arguments, **left)
