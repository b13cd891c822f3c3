"""Calls that the probes of entries do not make, on the CPU and on `gpu(0)`: several tiles, dtypes, streams, errors.

Run where a GPU or its emulator is found: `python cuda_cases.py [--all]` prints a list of problems, in JSON.
"""

import itertools
import json
import sys
import warnings

import numpy as np
from cuda_calls import GPU, call, differ, probing

import mxnet as mx

RNG = np.random.default_rng(0)
# With --all every dtype; else one of each class, since the emulator compiles a text for each.
ALL = "--all" in sys.argv
FLOATS = ("float16", "float32", "float64") if ALL else ("float32",)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64") if ALL else ("int16", "uint64")
COMPLEX = ("complex64", "complex128") if ALL else ("complex64",)


def array(shape, dtype="float32", low=-2.0, high=2.0):
    x = RNG.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.uniform(low, high, shape)
    return mx.np.array(x if np.dtype(dtype).kind in "fc" else np.floor(x * 20), dtype=dtype)


def integers(shape, high, low=0):
    return mx.np.array(RNG.integers(low, high, shape))


def products():
    for m, n, k in ((3, 5, 700), (70, 65, 20), (200, 130, 33), (1, 1, 3000), (129, 1, 40)):
        for dtype in (*FLOATS, *COMPLEX, "int32"):
            yield "matmul", (array((m, k), dtype), array((k, n), dtype)), {}
    for dtype in (*INTEGERS, "bool", "bfloat16"):
        a, b = (array(shape, "float32" if dtype == "bfloat16" else dtype) for shape in ((4, 9), (9, 3)))
        yield "matmul", (a.astype(dtype), b.astype(dtype)), {}
    a, b = array((2, 3, 1, 5, 4)), array((3, 2, 6, 4))
    yield "matmul", (a, b.transpose(0, 1, 3, 2)), {}
    yield "matmul", (a[:, ::2], b.transpose(0, 1, 3, 2)[::2]), {}
    yield "conjugated_dot", (array((5000,), "complex64"), array((5000,), "complex64")), {}
    yield "fully_connected", (array((70, 5, 6)), array((90, 30)), array((90,))), {"no_bias": False}


def indices():
    x = array((40, 6))
    rows = integers((300,), 40)
    for dtype in (*FLOATS, *COMPLEX, "int8", "bool"):
        y = array((300, 6), dtype)
        yield "scatter_add", (y, [rows], (rows,), (40, 6)), {}
        yield "index_assign", (x.astype(dtype), y, [rows], (rows,)), {}
        yield "gather", (x.astype(dtype), [rows], (rows,)), {}
    pair = (integers((7, 2), 40), integers((7, 2), 6))
    yield "gather", (x, list(pair), pair), {}
    yield "scatter_add", (array((7, 2)), list(pair), pair, (40, 6)), {}
    yield "scatter_along", (array((50, 30)), integers((50, 30), 9), 1, (50, 9)), {}
    for dtype in INTEGERS:
        low = 0 if dtype[0] == "u" else -9
        yield "resolve_indices", (mx.np.array(RNG.integers(low, 9, (4, 5)), dtype=dtype), 9), {}
        yield "wrapped_indices", (mx.np.array(RNG.integers(low, 120, (4, 5)), dtype=dtype), 9, "wrap"), {}


def orders():
    for dtype in (*FLOATS, *INTEGERS, *COMPLEX, "bool"):
        for n in (20, 200, 1500) if ALL else (20, 1500):
            x = array((3, n), dtype)
            if np.dtype(dtype).kind in "fc":
                x[1, 3] = np.nan
                x[2, 5], x[2, 6] = -0.0, 0.0
            for falls in (False, True):
                yield "argsort_rows", (x, falls), {}
            yield "sort_rows", (x,), {}
        yield "topk_rows", (x, 7), {}
        yield "contains", (x[0, :50], x), {}
        yield "search_sorted", (mx.np.array(np.sort(x[0].asnumpy())), x, True), {}
    yield "sort_rows", (array((2, 5000)),), {}
    yield "lexsort_rows", ([integers((2, 300), 4), integers((2, 300), 3), array((2, 300)).astype("int8")],), {}
    yield "select_rows", (array((4, 90)), (0, 44, 45, 89)), {}
    yield "bin_counts", (array((5000,)), mx.np.linspace(-1.5, 1.5, 31)), {}


def randoms():
    names = ("uniform", "normal", "bernoulli", "exponential", "gumbel", "laplace", "logistic", "triangular")
    for name in names:
        for dtype in ("float16", "float32", "float64", "int32") if ALL else ("float32", "float64"):
            yield "random_fill", ((1003,), name, 0.25, 1.5), {"dtype": dtype, "device": None}
    for low, last in ((0, 9), (-5, 2**31), (0, 2**32 - 1), (-(2**62), 2**62), (0, 2**64 - 1), (-(2**63), 2**63 - 1)):
        yield "random_integers", ((501,), low, last), {"dtype": "uint64" if last >= 2**63 else "int64", "device": None}
    yield "random_integers", ((501,), 0, 200), {"dtype": "uint8", "device": None}
    yield "random_integers_between", (integers((99,), 5), integers((99,), 900, 5)), {}
    yield "random_order", ((3, 57),), {"device": None}
    yield "random_reordered", (array((31, 4)),), {}
    yield "random_reordered", (array((31,)),), {}
    yield "random_different", (90, 40), {"device": None}
    yield "dropout_mask", ((40, 30), 0.3), {"dtype": "float16", "device": None}


def networks():
    for dtype in FLOATS:
        x, w = array((2, 6, 9, 10), dtype), array((8, 3, 3, 2), dtype)
        how = {"stride": (2, 1), "dilate": (1, 2), "pad": (1, 2), "num_group": 2}
        y = probing.op("convolution")(x, w, no_bias=True, **how)
        yield "convolution", (x, w, array((8,), dtype)), how
        yield "convolution_data_gradient", (y, w, None, x.shape), how
        yield "convolution_weight_gradient", (x, y, w.shape), how
        yield (
            "convolution",
            (array((2, 5, 6, 7, 4), dtype), array((3, 2, 3, 2, 4), dtype)),
            {"layout": "NDHWC", "no_bias": True},
        )
        q, k, v = array((2, 3, 70, 20), dtype), array((2, 3, 45, 20), dtype), array((2, 3, 45, 70), dtype)
        for is_causal in (False, True):
            yield "attention", (q, k, v, None, is_causal, 0.3), {}
            yield "attention", (q, k, v, array((3, 70, 45), dtype), is_causal, 0.3), {}
            out, lse = probing.op("attention")(q, k, v, None, is_causal, 0.3)
            yield "attention_gradient", (q, k, v, None, out, lse, out, is_causal, 0.3), {}
        yield "cross_entropy", (array((40, 700), dtype), integers((40,), 700)), {}
        yield (
            "pooling",
            (array((2, 3, 9, 8), dtype),),
            {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 1), "pool_type": "max"},
        )
    for mode, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        for reverse, lengths in itertools.product((False, True), (None, mx.np.array([5, 2, 0], dtype="int64"))):
            state = array((3, 6))
            cells = array((3, 6)) if mode == "lstm" else None
            weights = [array(shape) for shape in ((gates * 6, 4), (gates * 6, 6), (gates * 6,), (gates * 6,))]
            given = (array((5, 3, 4)), *weights, state, cells, lengths)
            yield "rnn_layer", (*given, mode, reverse), {}
            y, _, _, kept = probing.op("rnn_layer")(*given, mode, reverse)
            yield "rnn_layer_gradient", (*given, y, kept, array((5, 3, 6)), state, cells, mode, reverse), {}


def factors():
    for dtype in ("float32", "float64", *COMPLEX) if ALL else ("float64",):
        a = array((3, 12, 12), dtype) + 8 * mx.np.eye(12, dtype=dtype)
        yield "inverse", (a,), {}
        yield "solve_stacks", (a, array((3, 12, 5), dtype)), {}
        yield "det", (a,), {}
        yield "slogdet", (a,), {}
        both = mx.np.matmul(a, mx.np.conj(a.transpose(0, 2, 1)))
        yield "cholesky_lower", (both,), {}


def wrong_values():
    """Calls that fail when their results are read, and what the errors say."""
    far = mx.np.array([1, 9, 2])
    yield "resolve_indices", (far, 5), IndexError, "index 9 is out of bounds for axis 0 with size 5"
    layer = [array(shape) for shape in ((5, 3, 4), (6, 4), (6, 6), (6,), (6,), (3, 6))]
    too_long = "`sequence_length` 1 is 9, must be in 0..=5"
    yield "rnn_layer", (*layer, None, far, "rnn_tanh"), ValueError, too_long
    yield (
        "gather_along",
        (array((3, 4)), mx.np.array([[0], [7], [1]]), 1),
        IndexError,
        "position 7 is outside an axis of size 4",
    )
    yield "chosen", (far, [array((3,)), array((3,))]), ValueError, "must be in 0..2, found"
    yield "random_integers_between", (far, mx.np.array([5, 9, 7])), ValueError, "low >= high at element 1: 9 and"
    yield "inverse", (mx.np.zeros((2, 3, 3)),), np.linalg.LinAlgError, "is singular: pivot 0 is zero"
    far = mx.np.array([1.0, 0.5, -2.0])
    yield (
        "checked_parameter",
        (far, "above 0", "scale", "normal"),
        ValueError,
        "`scale` must be above 0, found -2 at element 2",
    )
    yield "cholesky_lower", (-mx.np.eye(3),), np.linalg.LinAlgError, "leading minor of order 1 is not"


def main():
    warnings.simplefilter("ignore")
    problems, count = [], 0
    for family in (products, indices, orders, randoms, networks, factors):
        for name, arguments, keywords in family():
            label = f"{family.__name__}: {name} {[getattr(x, 'shape', x) for x in arguments]} {keywords}"[:200]
            try:
                named = {k: v for k, v in keywords.items() if k != "device"}
                here = dict(named, device=mx.cpu()) if "device" in keywords else named
                there = dict(named, device=GPU) if "device" in keywords else named
                want, _ = call(name, arguments, here, mx.cpu())
                found, _ = call(name, arguments, there, GPU)
                for a, b in zip(found, want, strict=True):
                    problem = differ(a.to_device(mx.cpu()), b)
                    if problem:
                        problems.append(f"{label}: {problem}")
                count += 1
            except Exception as error:  # noqa: BLE001  whatever is raised is a difference
                problems.append(f"{label}: {type(error).__name__}: {str(error)[:300]}")
    for name, arguments, kind, text in wrong_values():
        try:
            found, _ = call(name, arguments, {}, GPU)
            found[0].asnumpy()
            problems.append(f"{name}: raises nothing")
        except kind as error:
            if text not in str(error):
                problems.append(f"{name}: says {error}")
        except Exception as error:  # noqa: BLE001  whatever is raised is a difference
            problems.append(f"{name}: {type(error).__name__}: {error}")
    print(json.dumps({"problems": problems, "compared": count}))


if __name__ == "__main__":
    main()
