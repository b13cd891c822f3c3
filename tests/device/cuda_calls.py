"""Calls operators by the probes of their entries on the CPU and on `gpu(0)`, and prints what differs, in JSON.

Run where a GPU or its emulator is found: `python cuda_calls.py [--all] NAME...`, with `--all` in every layout and
floating dtype. Without names it calls every operator, and says which have no kernel.
"""

import json
import sys
import warnings

import numpy as np

import mxnet as mx
from mxnet import numpy as mx_numpy

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))
import probing

GPU = mx.gpu(0)


def to_device(value, device):
    """The value with its arrays on a device."""
    if isinstance(value, mx_numpy.ndarray):
        return value.to_device(device)
    if isinstance(value, list | tuple):
        return type(value)(to_device(item, device) for item in value)
    return value


def differ(found, want):
    """What two results differ in; None if they agree."""
    if found.shape != want.shape or found.dtype != want.dtype:
        return f"{found.dtype}{found.shape}, not {want.dtype}{want.shape}"
    name = str(found.dtype)
    a, b = probing.to_numpy(found), probing.to_numpy(want)
    if a.dtype.kind not in "fc":
        wrong = a != b
    else:
        # Sums of few terms, all rounded a few times, in another order.
        eps = {"float16": 2**-10, "bfloat16": 2**-7}.get(name, np.finfo(a.dtype).eps)
        a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (a, b))
        finite = np.abs(b[np.isfinite(b)])
        scale = float(max(finite.max(initial=0.0), np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        both_nan = np.isnan(a) & np.isnan(b)
        with np.errstate(invalid="ignore"):
            wrong = ~((a == b) | both_nan | (np.abs(a - b) <= 32 * eps * scale))
    if not wrong.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if a.ndim else ()
    return f"{int(wrong.sum())} of {a.size} differ, at {at}: {a[at]!r}, not {b[at]!r}"


def call(name, arguments, keywords, device):
    """The results of a call, and the arrays that it changed."""
    arguments, keywords = to_device(list(arguments), device), {k: to_device(v, device) for k, v in keywords.items()}
    mx.random.seed(7)
    with device:
        found = probing.many(probing.op(name)(*arguments, **keywords))
    flat = [x for item in arguments for x in (item if isinstance(item, list | tuple) else [item])]
    changed = [x for x in flat if isinstance(x, mx_numpy.ndarray)]
    return found, changed


# How many calls were compared.
compared = 0


def problems_of(name, layouts, dtypes):
    global compared
    for text in probing.ENTRIES[name]["calls"]:
        for layout in layouts:
            for dtype in dtypes:
                label = f"{name}({text}) {layout} {dtype}"
                try:
                    arguments, keywords = probing.Maker(name, text, ours=True, layout=layout, dtype=dtype).arguments()
                    want, want_changed = call(name, arguments, keywords, mx.cpu())
                    [x.wait_to_read() for x in want]
                except Exception:  # noqa: BLE001  not a call for this dtype
                    continue
                try:
                    arguments, keywords = probing.Maker(name, text, ours=True, layout=layout, dtype=dtype).arguments()
                    found, changed = call(name, arguments, keywords, GPU)
                    compared += 1
                    for i, (a, b) in enumerate(zip(found, want, strict=True)):
                        problem = differ(a.to_device(mx.cpu()), b)
                        if problem:
                            yield f"{label}: result {i}: {problem}"
                    for i, (a, b) in enumerate(zip(changed, want_changed, strict=True)):
                        problem = differ(a.to_device(mx.cpu()), b)
                        if problem:
                            yield f"{label}: operand {i}: {problem}"
                except mx.error.DeviceError as error:
                    if "no kernel for gpu(0)" in str(error):
                        yield f"{name}: no kernel: {str(error).splitlines()[0]}"
                        return
                    yield f"{label}: {error}"
                except Exception as error:  # noqa: BLE001  whatever is raised is a difference
                    yield f"{label}: {type(error).__name__}: {str(error)[:600]}"


def main(names):
    warnings.simplefilter("ignore")
    every = "--all" in names
    names = [name for name in names if name != "--all"]
    layouts = ["dense", "reversed", "transposed"] if every else ["dense", "transposed"]
    dtypes = ["float32", "float64", "float16"] if every else ["float32"]
    found = {}
    for name in names or sorted(probing.ENTRIES):
        before = compared
        problems = list(problems_of(name, layouts, dtypes))
        print(name, compared - before, file=sys.stderr, flush=True)
        if problems:
            found[name] = problems
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
