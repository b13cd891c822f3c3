"""Calls of operators on a GPU and on the CPU, compared. Run as a program where there is a GPU, emulated or not.

`python cuda_walk.py elementwise|calls|coverage SHARE` makes one call of SHARE and prints the problems, a line each.
"""

import sys
import warnings

import numpy as np

import mxnet as mx
import np_coverage
from mxnet import _core
from probing import COMPLEX, ENTRIES, FLOATS, INTEGERS, Maker, generator, many, op, to_mx, values

GPU = mx.gpu(0)
# Steps of numbers next to 1.
STEP = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}
# How many steps results may differ by. Both sides are right to a few (the gamma function to 20), and sums of a few
# elements in another order differ by as many; halves are rounded from float32 on both sides.
STEPS = 64
# Calls with undefined elements, and exchange of memory.
UNDEFINED = {"np.empty(n)", "np.empty_like(x)", "np.from_dlpack(x)"}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 0.5, 1e-8, 3.0, -3.0, 100.0]


def to_device(value):
    """The value with its arrays on the GPU."""
    if isinstance(value, mx.np.ndarray):
        return value.to_device(GPU)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item) for item in value)
    if isinstance(value, dict):
        return {key: to_device(item) for key, item in value.items()}
    return value


def on_host(y):
    y = y.to_device(mx.cpu())
    return (op("astype")(y, "float32") if str(y.dtype) == "bfloat16" else y).asnumpy()


def difference(want, found):
    """How two results differ, or None."""
    if not isinstance(want, mx.np.ndarray):
        if isinstance(want, np.ndarray):
            return None if np.array_equal(want, found, equal_nan=want.dtype.kind in "fc") else f"{want} {found}"
        return None if type(want) is type(found) else f"{type(want)} {type(found)}"
    dtype = str(want.dtype)
    if (want.shape, dtype) != (found.shape, str(found.dtype)):
        return f"{want.shape} {dtype}, found {found.shape} {found.dtype}"
    a, b = on_host(want), on_host(found)
    if dtype in STEP:
        wide = "complex128" if dtype in COMPLEX else "float64"
        a, b = a.astype(wide), b.astype(wide)
        steps = 2 if dtype in ("float16", "bfloat16") else STEPS
        same = np.isclose(a, b, rtol=steps * STEP[dtype], atol=8 * STEP[dtype], equal_nan=True) | (
            np.isnan(a) & np.isnan(b)
        )
    else:
        same = a == b
    if same.all():
        return None
    first = np.flatnonzero(~same.ravel())[0]
    return f"{(~same).sum()} of {a.size} differ, the first {a.ravel()[first]!r} {b.ravel()[first]!r}"


def compared(name, call, there):
    """Problems of one call that is made on both sides; none if the CPU refuses it, too, or there is no kernel yet."""
    try:
        want = many(call())
    except Exception:  # noqa: BLE001  what the CPU refuses is no call to compare
        return []
    try:
        found = many(there())
    except mx.error.DeviceError as error:
        # Lists among the arguments become arrays of the CPU: such calls are refused there.
        is_refused = "no kernel for" in str(error) or "operands are on different devices" in str(error)
        return [] if is_refused else [f"{name}: {error}"]
    except Exception as error:  # noqa: BLE001  whatever is raised is a difference
        return [f"{name}: raises {type(error).__name__}: {error}"]
    differences = (difference(a, b) for a, b in zip(want, found, strict=True))
    return [f"{name}: {problem}" for problem in differences if problem]


def elementwise(share):
    """Elementwise operators, each of its dtypes: random numbers and special ones."""
    number = 0
    for name, entry in ENTRIES.items():
        if not entry["elementwise"]:
            continue
        arrays = sum(kind == "array" for _, kind, _ in entry["params"])
        for dtype in entry["dtypes"] or ("bool", *INTEGERS, *FLOATS, *COMPLEX):
            number += 1
            if number % share:
                continue
            rng = generator(name, dtype)
            xs = [values(entry, dtype, (5, 13), rng) for _ in range(arrays)]
            if dtype not in ("bool", *INTEGERS):
                for k, x in enumerate(xs):
                    x[0] = np.roll(SPECIAL, 3 * k).astype(x.dtype)
            if name == "choose_elements":
                xs[0] = rng.random((5, 13)) < 0.5
            if name == "ldexp":
                xs[1] = rng.integers(-10, 10, (5, 13)).astype("int32")
            if name == "power" and dtype in INTEGERS:
                xs[1] = np.abs(xs[1].astype("int64") % 5).astype(dtype)
            xs = [to_mx(x, "bfloat16" if dtype == "bfloat16" and x.dtype.kind == "f" else None) for x in xs]
            function = op(name)
            yield from compared(
                f"{name} {dtype}", lambda f=function, xs=xs: f(*xs), lambda f=function, xs=xs: f(*to_device(xs))
            )


def calls(share):
    """The calls that entries of other operators name, in several layouts and dtypes."""
    number = 0
    for name, entry in ENTRIES.items():
        if entry["elementwise"] or entry["samples"] or name in ("empty", "empty_like", "transfer"):
            continue
        for text in entry["calls"]:
            for layout, dtype in (("dense", "float32"), ("transposed", "float64"), ("reversed", "float32")):
                number += 1
                if number % share:
                    continue

                def made(where, name=name, text=text, layout=layout, dtype=dtype):
                    positional, named = Maker(name, text, ours=True, layout=layout, dtype=dtype).arguments()
                    if where is None:
                        return op(name)(*positional, **named)
                    with where:
                        return op(name)(*to_device(list(positional)), **to_device(named))

                yield from compared(
                    f"{name}({text}) {layout} {dtype}", lambda made=made: made(None), lambda made=made: made(GPU)
                )


def coverage(share):
    """Calls of the coverage table."""
    probe = np_coverage.Probe()

    def run(text, scope, where):
        mx.np.random.seed(1)
        with where:
            found = np_coverage.run(text, scope)
        return list(found.values()) if isinstance(found, dict) else found

    for text in sorted(set(probe.common_calls()) - UNDEFINED)[::share]:
        there = {name: to_device(value) for name, value in probe.ours().items()}
        yield from compared(
            text,
            lambda text=text: run(text, probe.ours(), mx.cpu()),
            lambda text=text, there=there: run(text, there, GPU),
        )


if __name__ == "__main__":
    _, what, share = sys.argv
    warnings.simplefilter("ignore")
    mx.np.seterr(all="ignore")
    np.seterr(all="ignore")
    problems = list({"elementwise": elementwise, "calls": calls, "coverage": coverage}[what](int(share)))
    print("\n".join(problems))
    assert mx.num_gpus() > 0
    assert _core.cuda_texts()
    sys.exit(bool(problems))
