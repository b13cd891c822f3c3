"""Tests that every operator of the registry gets from its entry: values, layouts, dtypes, gradients.

An operator needs nothing but its probe to be tested here. What cannot be compared stands in the tables below with the
reason.
"""

import re

import numpy as np
import pytest

import mxnet
import slopes
from mxnet import _core
from probing import (
    COMPLEX,
    ENTRIES,
    FLOATS,
    INTEGERS,
    Maker,
    array_parameters,
    attribute_parameters,
    dtype_name,
    expected,
    generator,
    many,
    names,
    numpy_function,
    op,
    oracle,
    result_dtype,
    to_mx,
    to_numpy,
    values,
)
from ulps import distance, real_of, rounded

# Operators without an independent reference, and where they are tested instead.
WITHOUT_ORACLE = {
    "to_device": "tests/utilities/test_devices.py",
    "transfer": "tests/utilities/test_devices.py",
    "as_strided": "tests/lib/test_memory.py",  # strides of an oracle's operand are others
    "apply_at": "tests/ufunc/test_at.py",
    "adagrad_update": "tests/nn/test_update.py",
    "adam_update": "tests/nn/test_update.py",
    "adamw_update": "tests/nn/test_update.py",
    "batch_norm": "tests/nn/test_norm.py",
    "box_iou": "tests/npx/test_boxes.py",
    "box_nms": "tests/npx/test_boxes.py",
    "box_nms_order": "tests/npx/test_boxes.py",
    "sequence_last": "tests/npx/test_sequences.py",
    "sequence_mask": "tests/npx/test_sequences.py",
    "sequence_reverse": "tests/npx/test_sequences.py",
    "checked_parameter": "tests/random/test_samplers.py",
    "betainc_slope_a": "tests/npx/test_incomplete.py",
    "betainc_slope_b": "tests/npx/test_incomplete.py",
    "gamma_slope": "tests/random/test_gradients.py",
    "gammainc_slope": "tests/npx/test_incomplete.py",
    "wald_path": "tests/random/test_gradients.py",
    "attention": "tests/nn/test_attention.py",
    "attention_gradient": "tests/nn/test_attention.py",
    "scaled_dot_product_attention": "tests/nn/test_attention.py",
    "ragged_argsort": "tests/ragged/test_operators.py",
    "ragged_attention": "tests/ragged/test_operators.py",
    "ragged_attention_gradient": "tests/ragged/test_operators.py",
    "ragged_cumsum": "tests/ragged/test_operators.py",
    "ragged_expand": "tests/ragged/test_operators.py",
    "ragged_log_softmax": "tests/ragged/test_operators.py",
    "ragged_matmul": "tests/ragged/test_operators.py",
    "ragged_max": "tests/ragged/test_operators.py",
    "ragged_min": "tests/ragged/test_operators.py",
    "ragged_outer": "tests/ragged/test_operators.py",
    "ragged_pad": "tests/ragged/test_operators.py",
    "ragged_prod": "tests/ragged/test_operators.py",
    "ragged_softmax": "tests/ragged/test_operators.py",
    "ragged_softmax_gradient": "tests/ragged/test_operators.py",
    "ragged_sum": "tests/ragged/test_operators.py",
    "ragged_unpad": "tests/ragged/test_operators.py",
    "batch_norm_gradient": "tests/nn/test_norm.py",
    "batch_norm_inference": "tests/nn/test_norm.py",
    "batch_norm_training": "tests/nn/test_norm.py",
    "eig": "tests/linalg/test_factorisations.py",
    "eig_complex": "tests/linalg/test_factorisations.py",
    "eigh": "tests/linalg/test_factorisations.py",
    "eigvals_complex": "tests/linalg/test_factorisations.py",
    "svd": "tests/linalg/test_factorisations.py",
    "calibrate_entropy": "tests/quantization/test_calibration.py",
    "quantization_scale": "tests/quantization/test_operators.py",
    "int8_convolution": "tests/quantization/test_operators.py",
    "int8_fully_connected": "tests/quantization/test_operators.py",
    "int8_pooling": "tests/quantization/test_operators.py",
    "convolution": "tests/nn/test_convolution.py",
    "convolution_batch_norm": "tests/nn/test_convolution.py",
    "convolution_relu": "tests/nn/test_convolution.py",
    "convolution_data_gradient": "tests/nn/test_convolution.py",
    "convolution_weight_gradient": "tests/nn/test_convolution.py",
    "cross_entropy": "tests/nn/test_softmax.py",
    "cross_entropy_gradient": "tests/nn/test_softmax.py",
    "ctc_loss": "tests/nn/test_ctc.py",
    "ctc_states": "tests/nn/test_ctc.py",
    "ctc_paths": "tests/nn/test_ctc.py",
    "match_pairs": "tests/npx/test_detection.py",
    "roi_align": "tests/npx/test_detection.py",
    "roi_align_spread": "tests/npx/test_detection.py",
    "roi_largest": "tests/npx/test_detection.py",
    "sldwin_atten_context": "tests/npx/test_neighbours.py",
    "sldwin_atten_score": "tests/npx/test_neighbours.py",
    "sldwin_atten_spread": "tests/npx/test_neighbours.py",
    "ctc_paths_gradient": "tests/nn/test_ctc.py",
    "split_vector": "tests/nn/test_rnn.py",
    "deconvolution": "tests/nn/test_convolution.py",
    "dropout": "tests/nn/test_linear.py",
    "fully_connected": "tests/nn/test_linear.py",
    "fused_adagrad": "tests/optimizer/test_fused.py",
    "fused_adam": "tests/optimizer/test_fused.py",
    "fused_adamw": "tests/optimizer/test_fused.py",
    "fused_nag": "tests/optimizer/test_fused.py",
    "fused_rmsprop": "tests/optimizer/test_fused.py",
    "fused_sgd": "tests/optimizer/test_fused.py",
    "group_norm": "tests/nn/test_norm.py",
    "instance_norm": "tests/nn/test_norm.py",
    "l2_normalization": "tests/nn/test_norm.py",
    "layer_norm": "tests/nn/test_norm.py",
    "log_softmax": "tests/nn/test_softmax.py",
    "masked_log_softmax": "tests/nn/test_softmax.py",
    "masked_softmax": "tests/nn/test_softmax.py",
    "nag_update": "tests/nn/test_update.py",
    "pooling": "tests/nn/test_pooling.py",
    "pooling_gradient": "tests/nn/test_pooling.py",
    "pooling_select": "tests/nn/test_pooling.py",
    "rms_norm": "tests/nn/test_norm.py",
    "rmsprop_update": "tests/nn/test_update.py",
    "rnn": "tests/nn/test_rnn.py",
    "rnn_layer": "tests/nn/test_rnn.py",
    "rnn_layer_gradient": "tests/nn/test_rnn.py",
    "row_norm": "tests/nn/test_norm.py",
    "row_norm_gradient": "tests/nn/test_norm.py",
    "sgd_update": "tests/nn/test_update.py",
    "smooth_l1": "tests/nn/test_softmax.py",
    "softmax": "tests/nn/test_softmax.py",
    "softmax_gradient": "tests/nn/test_softmax.py",
    "sparse_cross_entropy": "tests/nn/test_softmax.py",
    "window": "tests/autograd/test_in_place.py: it takes C order only",
}

# Operators whose gradient is, by their purpose, not the derivative of their values.
NOT_THE_DERIVATIVE = {
    **dict.fromkeys(
        [
            *("gammainc", "gammaincc", "gammaincinv", "gammainccinv", "gammainc_slope"),
            *("betainc", "betaincc", "betaincinv", "betainccinv", "betainc_slope_a", "betainc_slope_b"),
        ],
        "second derivatives by shapes are refused: tests/npx/test_incomplete.py",
    ),
    "gamma_slope": "it refuses, and says so",
    "wald_path": "samples move with parameters by the distribution that they are of",
    "round_ste": "a straight-through estimator",
    "sign_ste": "a straight-through estimator",
    "round": "with decimals it jumps within the step of the numeric derivative",
    "masked_log_softmax": "masked elements are -inf, of which no difference can be taken",
    "eig": "vectors have any phase: tests/linalg/test_gradients.py",
    "eig_complex": "vectors have any phase: tests/linalg/test_gradients.py",
    "svd": "vectors have any phase: tests/linalg/test_gradients.py",
    "attention": "its second output is for its gradient only: tests/nn/test_attention.py",
    "ragged_attention": "its second output is for its gradient only: tests/ragged/test_operators.py",
    "ctc_loss": "the gradient of its gradient is refused: tests/nn/test_ctc.py",
    "ctc_paths": "the gradient of its gradient is refused: tests/nn/test_ctc.py",
    "ctc_paths_gradient": "it refuses, and says so",
    "rnn_layer": "one of its outputs is a workspace",
    "rnn_layer_gradient": "it refuses, and says so",
}

# Operators whose elements may be anything: only shape and dtype are compared.
UNDEFINED_VALUES = {"empty", "empty_like"}

# Operators whose result depends on the dtype's own spacing: a wider reference means something else.
# Their bfloat16 rows have a test of their own below.
OWN_DTYPE = {"nextafter"}

# Functions of floats whose results are counts.
COUNTS = {"exponent": "int32"}
# Operators that make integers of floats.
ROUNDED = ("quantize_int8", "quantize_uint8")

# Operators whose dtypes differ from those of NumPy's function of the same name, and why.
OTHER_DTYPES = {}

ELEMENTWISE = names(lambda e: e["elementwise"] and not e["calls"])
UFUNCS = names(lambda e: e["elementwise"] and e["form"] == "ufunc" and not e["calls"])
CALLS = [(name, call) for name in names(lambda e: e["calls"] and not e["samples"]) for call in ENTRIES[name]["calls"]]
EVERY_DTYPE = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
NUMPY_DTYPES = [d for d in EVERY_DTYPE if d != "bfloat16"]


def call_id(value):
    """Names of tests show the call."""
    return value if isinstance(value, str) else None


def allowed(entry, dtype):
    """Units in the last place allowed in `dtype`.

    Half precision is computed in float32 and rounded once more, which adds one unit unless the float32 result is exact.
    The float64 rows are other approximations than the float32 rows, and their reference may itself be off by a unit.
    Complex results come from sums of products of parts: those of complex64 are computed in float64, those of
    complex128 carry the errors of every step.
    """
    ulp = entry["ulp32"]
    if dtype == "complex64":
        return ulp + 3
    if dtype == "complex128":
        return 4 * ulp + 3
    if dtype in ("float16", "bfloat16"):
        return min(ulp, 1)
    if dtype == "float64":
        return 2 * ulp
    return ulp


def close(name, got, want, dtype, *, whole=False):
    """`got` is `want`, of the dtype it should have, up to what the entry allows."""
    for g, w in zip(many(got), want, strict=True):
        kind = result_dtype(w, dtype)
        assert dtype_name(g) == kind, f"dtype {dtype_name(g)}, expected {kind}"
        limit = 0 if kind == "bool" or kind in INTEGERS else allowed(ENTRIES[name], kind)
        if dtype in COMPLEX:
            limit = allowed(ENTRIES[name], dtype)
        far = distance(to_numpy(g), rounded(w, kind), kind, whole=whole)
        assert far <= limit, f"{far} ulp of {kind}, allowed {limit}:\n{to_numpy(g)}\nexpected\n{w}"


def compare(name, xs, dtype, **keywords):
    """Calls an elementwise operator on NumPy operands and compares with its oracle."""
    close(name, op(name)(*[to_mx(x, dtype) for x in xs], **keywords), expected(name, xs, dtype), dtype)


def operands(name, dtype, *shapes, seed=0):
    """One random operand for every array parameter; the last shape serves all that remain."""
    entry, rng = ENTRIES[name], generator(name, dtype, shapes, seed)
    count = len(array_parameters(entry))
    shapes = [*shapes, *[shapes[-1]] * count][:count]
    return [values(entry, dtype, shape, rng) for shape in shapes]


def main_dtype(name):
    """The dtype in which layouts are tested."""
    dtypes = ENTRIES[name]["dtypes"]
    return next(d for d in ("float32", "int32", *dtypes) if d in dtypes)


# ---- the registry itself ----


@pytest.mark.parametrize("name", names(lambda e: not e["samples"]))
def test_every_operator_has_an_oracle_or_a_reason(name):
    if name in WITHOUT_ORACLE:
        assert oracle(name) is None, "it has an oracle: take it out of WITHOUT_ORACLE"
        return
    assert callable(oracle(name)), (
        f"`{name}` is no NumPy function: give its probe an oracle with `.against(...)` or list it in WITHOUT_ORACLE"
    )


def test_tables_name_operators_that_exist():
    for table in (WITHOUT_ORACLE, NOT_THE_DERIVATIVE, OTHER_DTYPES):
        assert not set(table) - set(ENTRIES)


@pytest.mark.parametrize("name", names(lambda e: not e["elementwise"] and not e["samples"]))
def test_operators_that_are_not_elementwise_have_probe_calls(name):
    assert ENTRIES[name]["calls"], f"`{name}`: Probe::calls(&[...]) says how to call it"


# ---- elementwise operators ----


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_values_match_the_oracle_in_every_dtype(name):
    if name in WITHOUT_ORACLE:
        pytest.skip(WITHOUT_ORACLE[name])
    for dtype in ENTRIES[name]["dtypes"]:
        if name in OWN_DTYPE and dtype == "bfloat16":
            continue
        for n in (61, 5003):
            compare(name, operands(name, dtype, (n,)), dtype)


# Gradient kernels have no public name and promise nothing where a cotangent or a slope is infinite.
@pytest.mark.parametrize(
    "name", [n for n in ELEMENTWISE if ENTRIES[n]["surface"] or len(array_parameters(ENTRIES[n])) == 1]
)
def test_elementwise_special_values_match_the_oracle(name):
    if name in WITHOUT_ORACLE:
        pytest.skip(WITHOUT_ORACLE[name])
    for dtype in ENTRIES[name]["dtypes"]:
        if dtype not in ("float32", "float64", "float16"):
            continue
        info = np.finfo(dtype)
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -1.5, info.max, -info.max, info.tiny, -info.tiny]
        special = np.asarray(special, dtype)
        count = len(array_parameters(ENTRIES[name]))
        xs = [np.ascontiguousarray(x) for x in np.meshgrid(*[special] * count)] if count > 1 else [special]
        compare(name, [x.ravel() for x in xs], dtype)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_takes_any_layout(name):
    if name in WITHOUT_ORACLE:
        pytest.skip(WITHOUT_ORACLE[name])
    dtype = main_dtype(name)
    views = {
        "0-d": ((), lambda x: x),
        "empty": ((3, 0, 2), lambda x: x),
        "one element": ((1, 1), lambda x: x),
        "transposed": ((4, 5, 3), lambda x: x.T),
        "every second": ((6, 9), lambda x: x[::2, ::3]),
        "reversed": ((5, 7), lambda x: x[::-1, ::-2]),
        "offset": ((5, 7), lambda x: x[1:4, 2:]),
    }
    for what, (shape, view) in views.items():
        xs = operands(name, dtype, shape)
        got = op(name)(*[view(to_mx(x, dtype)) for x in xs])
        try:
            close(name, got, expected(name, [view(x) for x in xs], dtype), dtype)
        except AssertionError as error:
            error.add_note(f"layout: {what}")
            raise
    broadcast = op("broadcast_to")
    for shape, full in (((1, 4), (3, 4)), ((3, 1), (3, 4)), ((), (2, 2)), ((1, 0), (3, 0))):
        xs = operands(name, dtype, shape)
        got = op(name)(*[broadcast(to_mx(x, dtype), full) for x in xs])
        close(name, got, expected(name, [np.broadcast_to(x, full) for x in xs], dtype), dtype)


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if len(array_parameters(ENTRIES[n])) > 1])
def test_elementwise_broadcasts(name):
    if name in WITHOUT_ORACLE:
        pytest.skip(WITHOUT_ORACLE[name])
    dtype = main_dtype(name)
    for a, b in (
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((), (5,)),
        ((2, 1, 3), (4, 1)),
        ((0,), (1,)),
        ((5,), ()),
        ((70, 1), (1, 90)),
    ):
        compare(name, operands(name, dtype, a, b), dtype)
    with pytest.raises(ValueError, match=r"\(3,\)[\s\S]*\(4,\)"):
        op(name)(*[to_mx(x, dtype) for x in operands(name, dtype, (3,), (4,))])


@pytest.mark.parametrize("name", UFUNCS)
def test_elementwise_writes_to_out(name):
    dtype = main_dtype(name)
    call, n = op(name), 9
    xs = [to_mx(x, dtype) for x in operands(name, dtype, (n,))]
    want = many(call(*xs))
    outs = [_core.array(np.zeros(y.shape, to_numpy(y).dtype)) for y in want]
    result = call(*xs, out=tuple(outs) if len(outs) > 1 else outs[0])
    assert all(a is b for a, b in zip(many(result), outs, strict=True))
    for got, right in zip(outs, want, strict=True):
        assert np.array_equal(to_numpy(got), to_numpy(right), equal_nan=right.dtype.kind in "fc")
    wrong = _core.array(np.zeros((n + 1,), to_numpy(want[0]).dtype))
    with pytest.raises(ValueError, match=r"10"):
        call(*xs, out=(wrong,) * len(outs) if len(outs) > 1 else wrong)


@pytest.mark.parametrize("name", UFUNCS)
def test_elementwise_out_may_overlap_inputs(name):
    dtype = main_dtype(name)
    call, n = op(name), 5000
    base = operands(name, dtype, (n + 1,))[0]
    rest = [to_mx(x, dtype) for x in operands(name, dtype, (n,))[1:]]
    first = many(call(to_mx(base[:-1], dtype), *rest))[0]
    if dtype_name(first) != dtype or len(many(call(to_mx(base[:-1], dtype), *rest))) > 1:
        pytest.skip("the result has another dtype than the input, or there are several")
    same_kind = {"equal_nan": np.dtype(dtype).kind in "fc"}
    for what, source, target in (
        ("itself", slice(0, n), slice(0, n)),
        ("one ahead", slice(0, n), slice(1, n + 1)),
        ("one behind", slice(1, n + 1), slice(0, n)),
        ("reversed", slice(0, n), slice(n - 1, None, -1)),
    ):
        array = to_mx(base, dtype)
        want = to_numpy(call(to_mx(base[source], dtype), *rest))
        call(array[source], *rest, out=array[target])
        assert np.array_equal(to_numpy(array[target]), want, **same_kind), what


@pytest.mark.parametrize("name", UFUNCS)
def test_elementwise_where_leaves_the_rest_alone(name):
    dtype = main_dtype(name)
    call, n = op(name), 12
    xs = [to_mx(x, dtype) for x in operands(name, dtype, (n,))]
    mask = generator(name).random(n) < 0.5
    full = many(call(*xs))
    outs = [_core.array(np.ones((n,), to_numpy(y).dtype)) for y in full]
    call(*xs, out=tuple(outs) if len(outs) > 1 else outs[0], where=_core.array(mask))
    for got, y in zip(outs, full, strict=True):
        want = np.where(mask, to_numpy(y), np.ones((n,), to_numpy(y).dtype))
        assert np.array_equal(to_numpy(got), want, equal_nan=y.dtype.kind in "fc")


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if len(array_parameters(ENTRIES[n])) == 2])
def test_elementwise_takes_python_numbers_on_both_sides(name):
    if name in WITHOUT_ORACLE:
        pytest.skip(WITHOUT_ORACLE[name])
    dtype = main_dtype(name)
    x = operands(name, dtype, (7,))[0]
    scalar = values(ENTRIES[name], dtype, (), generator(name, "scalar")).item()
    for xs in ((x, scalar), (scalar, x)):
        got = op(name)(*[to_mx(a, dtype) if a is x else a for a in xs])
        close(name, got, expected(name, [np.asarray(a, dtype) for a in xs], dtype), dtype)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_does_not_depend_on_threads(name):
    dtype = main_dtype(name)
    xs = [to_mx(x, dtype) for x in operands(name, dtype, (300_007,))]
    same_whatever_the_threads(lambda: op(name)(*xs))


def same_whatever_the_threads(run):
    """One thread and two give the same bits."""
    before = _core.num_threads()
    try:
        _core.set_num_threads(1)
        one = [to_numpy(y) for y in many(run())]
        _core.set_num_threads(2)
        two = [to_numpy(y) for y in many(run())]
    finally:
        _core.set_num_threads(before)
    for a, b in zip(one, two, strict=True):
        assert a.tobytes() == b.tobytes()


def test_nextafter_steps_through_neighbours_in_bfloat16():
    bits = np.arange(0, 0x7F80, 7, dtype=np.uint32)
    x = (bits << 16).view(np.float32)
    above = ((bits + 1) << 16).view(np.float32)
    for sign in (1.0, -1.0):
        toward = np.full_like(x, sign * np.inf)
        got = to_numpy(op("nextafter")(to_mx(sign * x, "bfloat16"), to_mx(toward, "bfloat16")))
        assert np.array_equal(got, sign * above)
        back = to_numpy(op("nextafter")(to_mx(got, "bfloat16"), to_mx(-toward, "bfloat16")))
        assert np.array_equal(back, sign * x)


# ---- dtypes ----


def dtype_of_call(function, *args):
    """Names of the result dtypes, or "error" if the operands are refused."""
    try:
        with np.errstate(all="ignore"):
            return tuple(dtype_name(y) for y in many(function(*args)))
    except (TypeError, OverflowError):
        return "error"


@pytest.fixture
def numpy_promotion():
    """NumPy's promotion while the test runs."""
    before = _core.set_numpy_promotion(True)
    yield
    _core.set_numpy_promotion(before)


def numpy_like():
    """Elementwise operators that are NumPy functions with nothing but arrays for parameters."""
    return [n for n in ELEMENTWISE if isinstance(numpy_function(n), np.ufunc) and not attribute_parameters(ENTRIES[n])]


@pytest.mark.parametrize("name", numpy_like())
@pytest.mark.usefixtures("numpy_promotion")
def test_result_dtypes_are_numpys_in_numpy_mode(name):
    if name in OTHER_DTYPES:
        pytest.skip(OTHER_DTYPES[name])
    function, call = numpy_function(name), op(name)
    ours = {d: _core.array(np.ones((1,), d)) for d in NUMPY_DTYPES}
    theirs = {d: np.ones((1,), d) for d in NUMPY_DTYPES}
    wrong = []
    if function.nin == 1:
        for d in NUMPY_DTYPES:
            got, want = dtype_of_call(call, ours[d]), dtype_of_call(function, theirs[d])
            if got != want:
                wrong.append(f"{d}: {got}, NumPy {want}")
    else:
        for a in NUMPY_DTYPES:
            for b in NUMPY_DTYPES:
                got, want = dtype_of_call(call, ours[a], ours[b]), dtype_of_call(function, theirs[a], theirs[b])
                if got != want:
                    wrong.append(f"{a}, {b}: {got}, NumPy {want}")
            for scalar in (True, 1, 1.0, 1j):
                for left in (True, False):
                    pair = (lambda x, s=scalar: (s, x)) if left else (lambda x, s=scalar: (x, s))
                    got, want = dtype_of_call(call, *pair(ours[a])), dtype_of_call(function, *pair(theirs[a]))
                    if got != want:
                        wrong.append(f"{pair(a)}: {got}, NumPy {want}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:40])


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_integers_become_the_default_float_where_floats_are_needed(name):
    dtypes = ENTRIES[name]["dtypes"]
    if "int32" in dtypes or "float32" not in dtypes or name in ROUNDED:
        pytest.skip("it takes integers as they are, or no floats, or makes integers")
    count = len(array_parameters(ENTRIES[name]))
    for dtype in ("bool", *INTEGERS):
        xs = [_core.array(np.ones((2,), dtype))] * count
        assert set(dtype_of_call(op(name), *xs)) <= {"float32", "bool", COUNTS.get(name)}
        if count == 2:
            for mixed in ("float16", "float32", "float64"):
                assert set(dtype_of_call(op(name), xs[0], _core.array(np.ones((2,), mixed)))) <= {mixed, "bool"}


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if len(array_parameters(ENTRIES[n])) == 2])
def test_an_integer_array_with_a_float_array_gives_that_float(name):
    dtypes = ENTRIES[name]["dtypes"]
    if "float32" not in dtypes or "int32" not in dtypes:
        pytest.skip("it takes only integers or only floats")
    for integer in INTEGERS:
        for mixed in [d for d in FLOATS if d in dtypes]:
            one = (
                to_mx(np.ones((2,), np.float32), "bfloat16")
                if mixed == "bfloat16"
                else _core.array(np.ones((2,), mixed))
            )
            for pair in ((_core.array(np.ones((2,), integer)), one), (one, _core.array(np.ones((2,), integer)))):
                assert set(dtype_of_call(op(name), *pair)) <= {mixed, "bool"}, (integer, mixed)


# ---- gradients of elementwise operators ----


def differentiable(entry):
    return entry["differentiable"] and entry["name"] not in NOT_THE_DERIVATIVE and "float64" in entry["dtypes"]


@pytest.mark.parametrize("name", names(lambda e: e["elementwise"] and not e["calls"] and differentiable(e)))
def test_elementwise_gradients_are_the_slopes(name):
    entry = ENTRIES[name]
    count = len(array_parameters(entry))
    for dtype in ("float64", "complex128"):
        if dtype not in entry["dtypes"]:
            continue
        for shapes in ([(3, 4)] * count, [(2, 3), (3,), (2, 1)][:count]):
            rng = generator(name, dtype, len(shapes))
            xs = [values(entry, dtype, shape, rng) for shape in shapes]
            slopes.check(op(name), xs, rng)


@pytest.mark.parametrize("name", names(lambda e: e["elementwise"] and not e["calls"] and differentiable(e)))
def test_elementwise_gradients_keep_the_dtype_of_the_input(name):
    count = len(array_parameters(ENTRIES[name]))
    for dtype in [d for d in (*FLOATS, *COMPLEX) if d in ENTRIES[name]["dtypes"]]:
        xs = [to_mx(x, dtype) for x in operands(name, dtype, (5,))]
        for x in xs:
            x.attach_grad()
        before = _core.set_recording(True)
        try:
            heads = [y for y in many(op(name)(*xs)) if slopes.is_inexact(y)]
        finally:
            _core.set_recording(before)
        assert [dtype_name(g) for g in _core.grad(heads, xs)] == [dtype] * count


@pytest.mark.parametrize("name", names(lambda e: not e["differentiable"]))
def test_operators_without_gradient_say_why(name):
    assert ENTRIES[name]["no_gradient_because"]


# ---- operators with probe calls ----


@pytest.mark.parametrize("name, call", CALLS, ids=call_id)
def test_calls_match_the_oracle_in_any_layout(name, call):
    if name in WITHOUT_ORACLE:
        pytest.skip(WITHOUT_ORACLE[name])
    args, kwargs = Maker(name, call, ours=False).arguments()
    with np.errstate(all="ignore"):
        want = [np.asarray(y) for y in many(oracle(name)(*args, **kwargs))]
    if name == "eigvals" and not want[0].imag.any():
        # NumPy's are always complex from 2.5 on.
        want = [want[0].real]
    for layout in ("dense", "spread", "reversed", "transposed"):
        args, kwargs = Maker(name, call, ours=True, layout=layout).arguments()
        got = many(op(name)(*args, **kwargs))
        assert len(got) == len(want), f"{len(got)} outputs, expected {len(want)}"
        for g, w in zip(got, want, strict=True):
            kind = dtype_name(g)
            assert np.dtype(kind).kind == w.dtype.kind or w.dtype.kind == "f", f"dtype {kind}, expected {w.dtype}"
            if name in UNDEFINED_VALUES:
                assert g.shape == w.shape
                continue
            far = distance(to_numpy(g), rounded(w, kind), kind, whole=True)
            limit = allowed(ENTRIES[name], kind) if real_of(kind) in FLOATS else 0
            assert far <= limit, f"{layout}: {far} ulp, allowed {limit}:\n{to_numpy(g)}\nexpected\n{w}"


@pytest.mark.parametrize("name, call", [c for c in CALLS if c[0] not in UNDEFINED_VALUES], ids=call_id)
def test_calls_do_not_depend_on_threads(name, call):
    def run():
        args, kwargs = Maker(name, call, ours=True).arguments()
        return op(name)(*args, **kwargs)

    same_whatever_the_threads(run)


@pytest.mark.parametrize(
    "name, call",
    [
        (n, c)
        for n, c in CALLS
        if ENTRIES[n]["differentiable"] and n not in NOT_THE_DERIVATIVE and ("f(" in c or "c(" in c)
    ],
    ids=call_id,
)
def test_gradients_of_calls_are_the_slopes(name, call):
    maker = Maker(name, call, ours=True, dtype="float64")
    args, kwargs = maker.arguments()
    xs = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in maker.floats]
    if not any(slopes.is_inexact(y) for y in many(op(name)(*args, **kwargs))):
        pytest.skip("this call returns no floats")

    def function(*arrays):
        args, kwargs = Maker(name, call, ours=True, dtype="float64", instead=arrays).arguments()
        return op(name)(*args, **kwargs)

    slopes.check(function, xs, generator(name, call))


# ---- third order ----

# A sample of each kind of rule: slopes made of other functions, kernels with gradients of their own, products, folds.
SMOOTH = {
    "arctan2": "np.arctan2(x, y)",
    "cholesky": "np.linalg.cholesky(np.matmul(m, m.T) + 2 * np.eye(2, dtype='float64'))",
    "convolution": "npx.convolution(x.reshape(1, 1, 3), y[:2].reshape(1, 1, 2), kernel=(2,), no_bias=True) ** 3",
    "cumprod": "np.cumprod(x)",
    "det": "np.linalg.det(m @ m @ m)",
    "erf": "npx.erf(x)",
    "exp": "np.exp(x * y)",
    "expm1, log1p": "np.expm1(x) * np.log1p(y)",
    "gammaln": "npx.gammaln(x + 1.5)",
    "gather": "np.take(x * y, np.array([2, 0, 2])) ** 3",
    "gelu": "npx.gelu(x)",
    "inverse": "np.linalg.inv(m + 3 * np.eye(2, dtype='float64'))",
    "layer_norm": "npx.layer_norm(x * 2, y, y)",
    "log_softmax": "npx.log_softmax(x * y)",
    "matmul": "np.matmul(m, np.matmul(m, m))",
    "mean, var": "np.var(x) * np.mean(y)",
    "power": "np.power(x + 2, y)",
    "prod": "np.prod(x)",
    "reciprocal": "1 / (x + 3)",
    "sigmoid": "npx.sigmoid(x)",
    "sin, cos": "np.sin(x) * np.cos(y)",
    "softmax": "npx.softmax(x * y)",
    "solve": "np.linalg.solve(m + 3 * np.eye(2, dtype='float64'), m)",
    "sqrt, rsqrt": "np.sqrt(x + 2) + npx.rsqrt(y + 2)",
    "tanh": "np.tanh(x * y)",
    "where": "np.where(x > y, x**3, np.exp(y))",
}


@pytest.mark.parametrize("expression", SMOOTH.values(), ids=SMOOTH)
def test_third_derivatives_of_smooth_functions_are_the_slopes(expression):
    rng = generator(expression)
    scope = {"np": mxnet.np, "npx": mxnet.npx}
    # The expressions are those above.
    names = [name for name in "xym" if re.search(rf"\b{name}\b", expression)]
    function = eval(f"lambda {', '.join(names)}: {expression}", scope)
    xs = [rng.uniform(-0.9, 0.9, (2, 2) if name == "m" else 3) for name in names]
    slopes.check(function, xs, rng, orders=3)
