"""The dispatch table of calls with ragged arrays, by function and kinds of operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet import _core, error
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.ragged import _networks, _reductions, _rows
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._elementwise import elementwise

Kinds = tuple[str, ...]

# Elementwise functions that are no ufuncs, with their number of operands.
ELEMENTWISE = {
    "where": 3, "clip": 3, "nan_to_num": 1, "around": 1, "round": 1, "isclose": 2, "copy": 1, "astype": 1,
    "zeros_like": 1, "ones_like": 1, "full_like": 1, "real": 1, "imag": 1, "angle": 1,
    "activation": 1, "relu": 1, "sigmoid": 1, "leaky_relu": 1, "gelu": 1, "softsign": 1, "dropout": 1, "erf": 1,
    "erfinv": 1, "gamma": 1, "gammaln": 1, "digamma": 1, "rsqrt": 1, "rcbrt": 1, "reciprocal": 1, "smooth_l1": 1,
    "one_hot": 1, "stop_gradient": 1, "cast": 1, "hard_sigmoid": 1,
}  # fmt: skip

_R, _D, _N = "ragged", "dense", "none"

# Function: implementation, operands, and supported kinds of operands. A list of arrays is one operand.
TABLE: dict[str, tuple[Callable[..., Any], tuple[str, ...], set[Kinds]]] = {
    "sum": (_reductions.sum_, ("a",), {(_R,)}),
    "prod": (_reductions.prod, ("a",), {(_R,)}),
    "max": (_reductions.max_, ("a",), {(_R,)}),
    "amax": (_reductions.max_, ("a",), {(_R,)}),
    "min": (_reductions.min_, ("a",), {(_R,)}),
    "amin": (_reductions.min_, ("a",), {(_R,)}),
    "any": (_reductions.any_, ("a",), {(_R,)}),
    "all": (_reductions.all_, ("a",), {(_R,)}),
    "mean": (_reductions.mean, ("a",), {(_R,)}),
    "var": (_reductions.var, ("a",), {(_R,)}),
    "std": (_reductions.std, ("a",), {(_R,)}),
    "argmax": (_reductions.argmax, ("a",), {(_R,)}),
    "argmin": (_reductions.argmin, ("a",), {(_R,)}),
    "count_nonzero": (_reductions.count_nonzero, ("a",), {(_R,)}),
    "ptp": (_reductions.ptp, ("a",), {(_R,)}),
    "concatenate": (_rows.concatenate, ("arrays",), {(_R,)}),
    "concat": (_rows.concatenate, ("arrays",), {(_R,)}),
    "vstack": (_rows.vstack, ("tup",), {(_R,)}),
    "stack": (_rows.stack, ("arrays",), {(_R,)}),
    "split": (_rows.split, ("ary",), {(_R,)}),
    "sort": (_rows.sort, ("a",), {(_R,)}),
    "argsort": (_rows.argsort, ("a",), {(_R,)}),
    "take": (_rows.take, ("a", "indices"), {(_R, _D), (_R, _R), (_D, _R)}),
    "swapaxes": (_rows.swapaxes, ("a",), {(_R,)}),
    "expand_dims": (_rows.expand_dims, ("a",), {(_R,)}),
    "squeeze": (_rows.squeeze, ("a",), {(_R,)}),
    "flip": (_rows.flip, ("m",), {(_R,)}),
    "transpose": (_rows.transpose, ("a",), {(_R,)}),
    "moveaxis": (_rows.moveaxis, ("a",), {(_R,)}),
    "cumsum": (_rows.cumsum, ("a",), {(_R,)}),
    "reshape": (_rows.reshape, ("a",), {(_R,)}),
    "matmul": (_networks.matmul, ("x1", "x2"), {(_R, _D), (_R, _R)}),
    "dot": (_networks.matmul, ("a", "b"), {(_R, _D)}),
    "softmax": (_networks.softmax, ("data",), {(_R,)}),
    "log_softmax": (_networks.log_softmax, ("data",), {(_R,)}),
    "layer_norm": (_networks.layer_norm, ("data", "gamma", "beta"), {(_R, _D, _D)}),
    "rms_norm": (_networks.rms_norm, ("data", "gamma"), {(_R, _D)}),
    "fully_connected": (
        _networks.fully_connected, ("x", "weight", "bias"), {(_R, _D, _D), (_R, _D, _N)},
    ),
    "embedding": (_networks.embedding, ("data", "weight"), {(_R, _D)}),
    "convolution": (
        _networks.convolution, ("data", "weight", "bias"), {(_R, _D, _D), (_R, _D, _N)},
    ),
    "rnn": (
        _networks.rnn, ("data", "parameters", "state", "state_cell"), {(_R, _D, _D, _D), (_R, _D, _D, _N)},
    ),
    "scaled_dot_product_attention": (
        _networks.attention, ("q", "k", "v", "mask"), {(_R, _R, _R, _N)},
    ),
    "ctc_loss": (_networks.ctc_loss, ("data", "label"), {(_R, _R), (_R, _D), (_D, _R)}),
}  # fmt: skip


def kind(x: Any) -> str:
    """The storage of an operand: 'ragged', 'dense' or 'none'."""
    if isinstance(x, list | tuple):
        return _R if any(isinstance(item, RaggedArray) for item in x) else _D
    return _R if isinstance(x, RaggedArray) else _N if x is None else _D


def names() -> list[str]:
    """The functions that take ragged arrays.

    Returns
    -------
    list of str
    """
    spaces = [_core.namespaces[space] for space in ("numpy", "npx")]
    ufuncs = {name for space in spaces for name, found in space.items() if _elementwise_ufunc(found)}
    return sorted({*TABLE, *ELEMENTWISE, *ufuncs})


def _elementwise_ufunc(function: Any) -> bool:
    return isinstance(function, np.ufunc) and function.signature is None


def _missing(name: str, kinds: Kinds, known: set[Kinds]) -> error.UnsupportedError:
    served = ", ".join(f"({', '.join(k)})" for k in sorted(known))
    hint = f"served are {served}" if known else "ragged arrays have `values`, `to_dense` and `mx.ragged.names()`"
    return error.UnsupportedError(f"{name}: no operator for operands ({', '.join(kinds)})\n  hint: {hint}")


def _ours(name: str) -> Any:
    """Our function of this name, in whichever module it is."""
    return getattr(np, name, None) or _core.namespaces["npx"].get(name) or getattr(npx, name)


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)`` with a ragged array among the operands."""
    name = {"copy_in_order": "copy"}.get(function.__name__, function.__name__)
    if isinstance(function, np.ufunc) and name not in TABLE:
        return call_ufunc(function, "__call__", args, kwargs)
    if name in ELEMENTWISE:
        count = ELEMENTWISE[name]
        names = ("a_min", "a_max") if name == "clip" else ()
        kwargs = dict(kwargs)
        operands = list(args[:count])
        while len(operands) < count and names:
            operands.append(kwargs.pop(names[len(operands) - 1], None))
        return elementwise(_ours(name), name, operands, args[count:], kwargs)
    if name not in TABLE:
        raise _missing(name, tuple(kind(x) for x in args), set())
    serve, operands_of, known = TABLE[name]
    found = [*args[: len(operands_of)], *(kwargs.get(key) for key in operands_of[len(args) :])]
    # A keyword that names an operand is moved to the operand's position.
    kinds = tuple(kind(x) for x in found)
    if kinds not in known:
        raise _missing(name, kinds, known)
    return serve(*args, **kwargs)


def call_ufunc(function: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a ufunc, or of its method, with a ragged array among the operands."""
    name = function.__name__
    if name in TABLE and method == "__call__":
        return call(function, inputs, kwargs)
    ours = function if isinstance(function, np.ufunc) else getattr(np, name, None)
    if not isinstance(ours, np.ufunc) or ours.signature is not None:
        raise _missing(name, tuple(kind(x) for x in inputs), set())
    if method == "__call__":
        return elementwise(ours, name, inputs, (), kwargs)
    reductions = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
    if method == "reduce" and name in reductions:
        return call(getattr(np, reductions[name]), (inputs[0],), {"axis": 0, **kwargs})
    raise _missing(f"{name}.{method}", tuple(kind(x) for x in inputs), set())
