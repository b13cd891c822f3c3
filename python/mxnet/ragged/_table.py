"""The dispatch table of calls with ragged arrays, by function and kinds of operands."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from mxnet import _core, error
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.ragged import _contraction, _flat, _networks, _ordering, _reductions, _rows, _scans
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._elementwise import elementwise

Kinds = tuple[str, ...]

# Operators that users call by another name.
_PUBLIC = {"copy_in_order": "copy", "astype_of": "astype", "gamma_function": "gamma"}

# Elementwise functions that are no ufuncs, with their number of operands.
ELEMENTWISE = {
    "where": 3, "clip": 3, "around": 1, "round": 1, "isclose": 2, "copy": 1, "astype": 1,
    "zeros_like": 1, "ones_like": 1, "full_like": 2, "real": 1, "imag": 1, "angle": 1,
    "activation": 1, "relu": 1, "sigmoid": 1, "leaky_relu": 1, "gelu": 1, "softsign": 1, "dropout": 1, "erf": 1,
    "erfinv": 1, "gamma": 1, "gammaln": 1, "digamma": 1, "rsqrt": 1, "rcbrt": 1, "reciprocal": 1, "smooth_l1": 1,
    "one_hot": 1, "hard_sigmoid": 1, "isneginf": 1, "isposinf": 1, "isreal": 1, "iscomplex": 1, "fix": 1, "sinc": 1,
    "round_ste": 1, "sign_ste": 1, "empty_like": 1, "nan_to_num": 1,
}  # fmt: skip

# What takes the place of functions that ragged arrays do not have.
ALTERNATIVES = {
    "sequence_mask": "rows have no padding to mask",
    "sequence_last": "`r[:, -1]` is the last element of each row",
    "sequence_reverse": "`np.flip(r, axis=1)` reverses each row",
    "masked_softmax": "rows have no padding: `npx.softmax(r, axis=1)`",
    "masked_log_softmax": "rows have no padding: `npx.log_softmax(r, axis=1)`",
    "batch_dot": "`np.matmul` and `np.einsum` multiply, `npx.scaled_dot_product_attention` rows with rows",
    "tensordot": "`np.einsum` sums over named axes",
    "inner": "`np.einsum` sums over named axes",
    "outer": "`np.einsum` and `ragged.segment_outer` multiply the elements of each row",
    "vdot": "`np.sum(a * b)`",
    "vecdot": "`np.sum(a * b, axis=-1)`",
    "cumprod": "`np.exp(np.cumsum(np.log(r), axis=1))` for positive elements",
    "cumulative_prod": "`np.exp(np.cumsum(np.log(r), axis=1))` for positive elements",
    "tile": "`np.repeat` and `np.concatenate` repeat rows",
    "nonzero": "`r[mask]` has the elements where a mask is true",
    "argwhere": "`r[mask]` has the elements where a mask is true",
    "flatnonzero": "`r[mask]` has the elements where a mask is true",
    "compress": "`r[mask]` has the elements, or the rows, where a mask is true",
    "extract": "`r[mask]` has the elements where a mask is true",
    "column_stack": "`np.stack` joins along a new axis",
    "broadcast_to": "`r + np.zeros(shape)` broadcasts over uniform axes",
    "group_norm": "`npx.layer_norm` normalises each element, `(r - mean) / std` over `axis=1` each row",
    "instance_norm": "`(r - mean) / std` over `axis=1` normalises each row",
    "partition": "`np.sort` and `npx.topk` order rows",
    "argpartition": "`np.argsort` and `npx.topk` order rows",
    "take_along_axis": "`np.take` with ragged indices chooses elements of each row",
}

_R, _D, _N, _ANY = "ragged", "dense", "none", "any"

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
    "average": (_reductions.average, ("a", "axis", "weights"), {(_R, _ANY, _ANY)}),
    "norm": (_reductions.norm, ("x",), {(_R,)}),
    "nansum": (_reductions.nansum, ("a",), {(_R,)}),
    "nanprod": (_reductions.nanprod, ("a",), {(_R,)}),
    "nanmax": (_reductions.nanmax, ("a",), {(_R,)}),
    "nanmin": (_reductions.nanmin, ("a",), {(_R,)}),
    "nanmean": (_reductions.nanmean, ("a",), {(_R,)}),
    "nanvar": (_reductions.nanvar, ("a",), {(_R,)}),
    "nanstd": (_reductions.nanstd, ("a",), {(_R,)}),
    "concatenate": (_rows.concatenate, ("arrays",), {(_R,)}),
    "concat": (_rows.concat, ("arrays",), {(_R,)}),
    "vstack": (_rows.vstack, ("tup",), {(_R,)}),
    "hstack": (_rows.hstack, ("tup",), {(_R,)}),
    "dstack": (_rows.dstack, ("tup",), {(_R,)}),
    "append": (_rows.append, ("arr", "values"), {(_R, _R)}),
    "stack": (_rows.stack, ("arrays",), {(_R,)}),
    "split": (_rows.split, ("ary",), {(_R,)}),
    "array_split": (_rows.array_split, ("ary",), {(_R,)}),
    "hsplit": (_rows.hsplit, ("ary",), {(_R,)}),
    "vsplit": (_rows.vsplit, ("ary",), {(_R,)}),
    "dsplit": (_rows.dsplit, ("ary",), {(_R,)}),
    "sort": (_ordering.sort, ("a",), {(_R,)}),
    "argsort": (_ordering.argsort, ("a",), {(_R,)}),
    "topk": (_ordering.topk, ("data",), {(_R,)}),
    "median": (_ordering.median, ("a",), {(_R,)}),
    "quantile": (_ordering.quantile, ("a",), {(_R,)}),
    "percentile": (_ordering.percentile, ("a",), {(_R,)}),
    "take": (_rows.take, ("a", "indices"), {(_R, _D), (_R, _R), (_D, _R)}),
    "slice_axis": (_rows.slice_axis, ("data",), {(_R,)}),
    "pick": (_rows.pick, ("data", "index"), {(_R, _R)}),
    "swapaxes": (_rows.swapaxes, ("a",), {(_R,)}),
    "expand_dims": (_rows.expand_dims, ("a",), {(_R,)}),
    "squeeze": (_rows.squeeze, ("a",), {(_R,)}),
    "flip": (_rows.flip, ("m",), {(_R,)}),
    "transpose": (_rows.transpose, ("a",), {(_R,)}),
    "moveaxis": (_rows.moveaxis, ("a",), {(_R,)}),
    "reshape": (_rows.reshape, ("a",), {(_R,)}),
    "ravel": (_rows.ravel, ("a",), {(_R,)}),
    "atleast_1d": (_rows.at_least(1), ("a",), {(_R,)}),
    "atleast_2d": (_rows.at_least(2), ("a",), {(_R,)}),
    "atleast_3d": (_rows.at_least(3), ("a",), {(_R,)}),
    "cumsum": (_scans.cumsum, ("a",), {(_R,)}),
    "cumulative_sum": (_scans.cumulative_sum, ("x",), {(_R,)}),
    "nancumsum": (_scans.nancumsum, ("a",), {(_R,)}),
    "diff": (_scans.diff, ("a",), {(_R,)}),
    "roll": (_scans.roll, ("a",), {(_R,)}),
    "repeat": (_scans.repeat, ("a",), {(_R,)}),
    "einsum": (_contraction.einsum, (), {()}),
    "unique": (_flat.unique, ("ar",), {(_R,)}),
    "unique_values": (_flat.of_values("unique_values"), ("x",), {(_R,)}),
    "unique_counts": (_flat.of_values("unique_counts"), ("x",), {(_R,)}),
    "histogram": (_flat.of_values("histogram"), ("a",), {(_R,)}),
    "histogram_bin_edges": (_flat.of_values("histogram_bin_edges"), ("a",), {(_R,)}),
    "bincount": (_flat.of_values("bincount"), ("x",), {(_R,)}),
    "isin": (_flat.each("isin", "element"), ("element", "test_elements"), {(_R, _R), (_R, _D), (_D, _R)}),
    "digitize": (_flat.each("digitize", "x"), ("x", "bins"), {(_R, _D)}),
    "interp": (_flat.each("interp", "x"), ("x", "xp", "fp"), {(_R, _D, _D)}),
    "searchsorted": (_flat.each("searchsorted", "v"), ("a", "v"), {(_D, _R)}),
    "shape": (_flat.shape, ("a",), {(_R,)}),
    "ndim": (_flat.ndim, ("a",), {(_R,)}),
    "size": (_flat.size, ("a",), {(_R,)}),
    "allclose": (_flat.allclose, ("a", "b"), {(_R, _R), (_R, _D), (_D, _R)}),
    "array_equal": (_flat.array_equal, ("a1", "a2"), {(_R, _R), (_R, _D), (_D, _R)}),
    "add_n": (_flat.add_n, (), {()}),
    "stop_gradient": (_flat.stop_gradient, ("data",), {(_R,)}),
    "cast": (_flat.cast, ("data",), {(_R,)}),
    "batch_norm": (
        _flat.batch_norm, ("x", "gamma", "beta", "running_mean", "running_var"), {(_R, _D, _D, _D, _D)},
    ),
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
    "pooling": (_networks.pooling, ("data",), {(_R,)}),
    "sparse_cross_entropy": (_networks.sparse_cross_entropy, ("data", "label"), {(_R, _R)}),
    "rnn": (
        _networks.rnn, ("data", "parameters", "state", "state_cell"), {(_R, _D, _D, _D), (_R, _D, _D, _N)},
    ),
    "scaled_dot_product_attention": (
        _networks.attention, ("q", "k", "v", "mask"), {(_R, _R, _R, _N)},
    ),
    "ctc_loss": (_networks.ctc_loss, ("data", "label"), {(_R, _R), (_R, _D), (_D, _R)}),
}  # fmt: skip


def kind(x: Any, takes_list: bool = False) -> str:
    """The storage of an operand: 'ragged', 'dense', 'none', or 'list' for a list of ragged arrays."""
    if isinstance(x, list | tuple):
        return (_R if takes_list else "list") if any(isinstance(item, RaggedArray) for item in x) else _D
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
    if name in ALTERNATIVES:
        return error.UnsupportedError(
            f"{name}: no operator for operands ({', '.join(kinds)})\n  hint: {ALTERNATIVES[name]}"
        )
    served = ", ".join(f"({', '.join(k)})" for k in sorted(known))
    hint = f"served are {served}" if known else "ragged arrays have `values`, `to_dense` and `mx.ragged.names()`"
    return error.UnsupportedError(f"{name}: no operator for operands ({', '.join(kinds)})\n  hint: {hint}")


def _renamed(found: Exception, name: str) -> Exception:
    """An error of a function that serves `name` as one of `name`."""
    text = str(found)
    if text.startswith((f"{name}: ", f"{name}()")):
        return found
    head, colon, rest = text.partition(": ")
    called = re.match(r"[\w.<>]+(?=\(\) )", text)
    if called:
        text = name + text[called.end() :]
    else:
        text = f"{name}: {rest if colon and head.isidentifier() else text}"
    try:
        return type(found)(text).with_traceback(found.__traceback__)
    except TypeError:
        return found


def _ours(name: str) -> Any:
    """Our function of this name, in whichever module it is."""
    found = getattr(np, name, None) or _core.namespaces["npx"].get(name) or getattr(npx, name, None)
    return found or _core.namespaces["op"][name]


@functools.cache
def _elementwise_operands(name: str) -> tuple[inspect.Parameter, ...]:
    """The parameters of an elementwise function that are operands."""
    return tuple(inspect.signature(_ours(name)).parameters.values())[: ELEMENTWISE[name]]


def _bound(
    operands: tuple[inspect.Parameter, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The operands by position, up to the last one that is given, and the other keywords.

    Operands that are left out in between have their defaults.
    """
    named = dict(kwargs)
    found = list(args)
    given = [i for i, parameter in enumerate(operands) if parameter.name in named]
    for parameter in operands[len(args) : max(given, default=-1) + 1]:
        if parameter.name not in named and parameter.default is parameter.empty:
            break  # the function raises the error
        found.append(named.pop(parameter.name, parameter.default))
    return found, named


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)`` with a ragged array among the operands."""
    name = _PUBLIC.get(function.__name__, function.__name__)
    try:
        return _served(function, name, args, kwargs)
    except Exception as found:  # noqa: BLE001  # every error names the function
        raise _renamed(found, name) from None


def _served(function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(function, np.ufunc) and name not in TABLE:
        return _ufunc(function, name, "__call__", args, kwargs)
    if name in ELEMENTWISE:
        count = ELEMENTWISE[name]
        if name == "where" and len(args) + len(kwargs) < count:
            raise error.UnsupportedError(
                "where: ragged arrays need `x` and `y`\n  hint: r[mask] has the elements where a mask is true"
            )
        if name == "clip":  # the bounds have two names
            for alias, full in (("min", "a_min"), ("max", "a_max")):
                if kwargs.get(alias) is not None and full not in kwargs:
                    kwargs = {full if key == alias else key: value for key, value in kwargs.items()}
        operands, named = _bound(_elementwise_operands(name), args[:count], kwargs)
        return elementwise(_ours(name), name, operands, args[count:], named)
    if name not in TABLE:
        raise _missing(name, tuple(kind(x) for x in args), set())
    serve, operands_of, known = TABLE[name]
    found = [*args[: len(operands_of)], *(kwargs.get(key) for key in operands_of[len(args) :])]
    kinds = tuple(kind(x, key in ("arrays", "tup")) for x, key in zip(found, operands_of, strict=True))
    if not any(all(one in (its, _ANY) for one, its in zip(row, kinds, strict=True)) for row in known):
        raise _missing(name, kinds, known)
    # Keywords that name operands are moved to their positions, up to the first operand that is left out.
    positional, named = list(args), dict(kwargs)
    for key in operands_of[len(args) :]:
        if key not in named:
            break
        positional.append(named.pop(key))
    return serve(*positional, **named)


def call_ufunc(function: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a ufunc, or of its method, with a ragged array among the operands."""
    name = function.__name__
    if name in TABLE and method == "__call__":
        return call(function, inputs, kwargs)
    try:
        return _ufunc(function, name, method, inputs, kwargs)
    except Exception as found:  # noqa: BLE001  # every error names the function
        raise _renamed(found, name) from None


def _ufunc(function: Any, name: str, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    ours = function if isinstance(function, np.ufunc) else getattr(np, name, None)
    if not isinstance(ours, np.ufunc) or ours.signature is not None:
        raise _missing(name, tuple(kind(x) for x in inputs), set())
    if method == "__call__":
        return elementwise(ours, name, inputs, (), kwargs)
    reductions = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
    if method == "reduce" and name in reductions:
        return call(getattr(np, reductions[name]), (inputs[0],), {"axis": 0, **kwargs})
    if method == "accumulate" and name == "add":
        return call(np.cumsum, (inputs[0],), {"axis": 0, **kwargs})
    raise _missing(f"{name}.{method}", tuple(kind(x) for x in inputs), set())
