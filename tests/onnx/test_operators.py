"""Every operator of the registry: its probe calls as exported models, run by others."""

import numpy as np
import pytest

import onnx_oracle
from mxnet import error
from mxnet.numpy import ndarray
from mxnet.onnx._exporter.operators import translated_names
from mxnet.onnx._exporter.operators._absent import REASONS
from probing import COMPLEX, ENTRIES, INTEGERS, Maker, generator, op, to_mx, values

TRANSLATED = set(translated_names())
ABSENT = {name for names, _, _ in REASONS for name in names}
MADE_OF_OTHERS = {name for name, entry in ENTRIES.items() if entry["composite"] or entry["view"]}
# Samples are other ones; `tests/onnx/test_random.py` looks at their distributions. Elements of `empty` are any.
OTHER_VALUES = {name for name, entry in ENTRIES.items() if entry["samples"]} | {"empty", "empty_like"}
# Results of a node in a runtime may differ by rounding of single steps, and elementary functions by some ulp.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}
# Float64 functions with numbers that ONNX keeps in single precision, and those that runtimes compute so.
SINGLE = ("erf", "erfc", "gelu_erf", "gelu_tanh", "hard_sigmoid", "hard_swish", "selu")
# Combinations whose functions are steep or cancel: multiples of the tolerance.
LESS_EXACT = {"tan": 8, "arctanh": 8, "arccosh": 8, "power": 8, "float_power": 8, "interpolated": 4}


def test_every_operator_has_a_translation_or_a_reason():
    assert set(ENTRIES) == TRANSLATED | ABSENT | MADE_OF_OTHERS
    assert not TRANSLATED & ABSENT
    assert not ABSENT & MADE_OF_OTHERS
    assert not TRANSLATED & MADE_OF_OTHERS


def calls_of(name):
    entry = ENTRIES[name]
    if entry["calls"] or not entry["elementwise"]:
        return entry["calls"]
    return [", ".join(["f((3, 4))"] * sum(kind == "array" for _, kind, _ in entry["params"]))]


class Slot(int):
    """Stands for an array among arguments."""


def arguments(name, call):
    """The arrays of a probe call, and the call as a function of them."""
    arrays = []

    def without(x):
        if isinstance(x, ndarray):
            arrays.append(x)
            return Slot(len(arrays) - 1)
        return type(x)(map(without, x)) if isinstance(x, list | tuple) else x

    def bound(x, given):
        if isinstance(x, Slot):
            return given[x]
        return type(x)(bound(y, given) for y in x) if isinstance(x, list | tuple) else x

    args, kwargs = Maker(name, call, ours=True).arguments()
    args, kwargs = without(list(args)), {key: without(x) for key, x in kwargs.items()}
    return arrays, lambda *given: op(name)(*bound(args, given), **{key: bound(x, given) for key, x in kwargs.items()})


def check(found, wanted, name, call=""):
    """Compare results of a model with ours."""
    assert len(found) == len(wanted)
    for y, ours in zip(found, wanted, strict=True):
        want, dtype = onnx_oracle.host(ours), str(ours.dtype)
        assert (y.shape, str(y.dtype)) == (want.shape, dtype), (name, call)
        if dtype in TOLERANCE:
            bound = 1e-7 if dtype == "float64" and name in SINGLE else TOLERANCE[dtype] * LESS_EXACT.get(name, 1)
            np.testing.assert_allclose(
                y.astype("f8"), want.astype("f8"), bound, bound, err_msg=f"{name}({call}) {dtype}"
            )
        else:
            np.testing.assert_array_equal(y, want, f"{name}({call}) {dtype}")


@pytest.mark.parametrize("name", sorted(TRANSLATED - OTHER_VALUES))
def test_exported_probe_calls_give_the_same_results(name, tmp_path):
    num_run = 0
    for call in calls_of(name):
        try:
            arrays, function = arguments(name, call)
            net, wanted = onnx_oracle.traced(function, arrays)
        except error.MXNetError:
            continue  # the operator does not take these dtypes: `test_exported_dtypes_give_the_same_results` has others
        try:
            onnx_oracle.export(net, tmp_path / "op.onnx")
        except error.UnsupportedError:
            continue  # complex numbers, or a case that the translation refuses
        found, _ = onnx_oracle.run(tmp_path / "op.onnx", arrays)
        check(found, [y for y in wanted if y is not None], name, call)
        num_run += 1
    assert num_run or ENTRIES[name]["elementwise"] or name in ("conjugated_dot", "rnn_layer")


# Operands of integers, where those of the probe are not valid for all functions.
OPERANDS = {
    "left_shift": lambda xs: [xs[0], xs[1] % 9],
    "right_shift": lambda xs: [xs[0], xs[1] % 9],
    "power": lambda xs: [xs[0] % 5, xs[1] % 4],
}
ELEMENTWISE = sorted(name for name in TRANSLATED if ENTRIES[name]["elementwise"] and name not in OTHER_VALUES)


def operands(name, dtype):
    """Arrays of one dtype, one for each array parameter."""
    entry = ENTRIES[name]
    rng = generator("onnx", name, dtype)
    found = [values(entry, dtype, (2, 3), rng) for _, kind, _ in entry["params"] if kind == "array"]
    if name == "ldexp":
        return [to_mx(found[0], dtype), to_mx(np.asarray([[1, -2, 3], [0, 4, 1]]))]
    if dtype in INTEGERS and name in OPERANDS:
        found = OPERANDS[name](found)
    return [to_mx(x, dtype) for x in found]


@pytest.mark.parametrize("has_bfloat16", [False, True])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_exported_dtypes_give_the_same_results(name, has_bfloat16, tmp_path):
    dtypes = [dtype for dtype in ENTRIES[name]["dtypes"] if dtype not in COMPLEX]
    dtypes = [dtype for dtype in dtypes if (dtype == "bfloat16") == has_bfloat16]
    groups = []
    for dtype in dtypes:
        try:
            arrays = operands(name, dtype)
            op(name)(*arrays)
        except (error.MXNetError, TypeError):
            continue
        groups.append(arrays)
    if not groups:
        assert has_bfloat16 or not dtypes
        return
    count = len(groups[0])

    def function(*given):
        results = [op(name)(*given[at : at + count]) for at in range(0, len(given), count)]
        return [y for found in results for y in (found if isinstance(found, tuple) else (found,))]

    flat = [x for arrays in groups for x in arrays]
    net, wanted = onnx_oracle.traced(function, flat)
    onnx_oracle.export(net, tmp_path / "op.onnx")
    found, _ = onnx_oracle.run(tmp_path / "op.onnx", flat)
    check(found, wanted, name)
