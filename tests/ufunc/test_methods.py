"""`reduce`, `accumulate`, `reduceat`, `outer` and `at` of every function of two arrays, against NumPy's."""

import itertools

import numpy as np
import pytest

import mxnet as mx
import slopes
from probing import ENTRIES, generator

NAMES = sorted(
    name
    for name in ENTRIES
    if isinstance(getattr(np, name, None), np.ufunc)
    and (getattr(np, name).nin, getattr(np, name).nout, getattr(np, name).signature) == (2, 1, None)
)
DTYPES = ("bool", "int8", "int32", "uint16", "uint64", "float16", "float32", "float64", "complex64")


@pytest.fixture(autouse=True)
def numpys_promotion():
    """Dtypes are NumPy's here, so that results can be compared."""
    before = mx._core.set_numpy_promotion(True)
    yield
    mx._core.set_numpy_promotion(before)


def values(dtype, shape, *key):
    rng = generator(dtype, shape, *key)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    x = rng.uniform(0.5, 2, shape)
    return (x + 1j * rng.uniform(0.5, 2, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def outcome(call):
    """A NumPy array, or the class of errors that NumPy and we have in common."""
    try:
        with np.errstate(all="ignore"):
            result = call()
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        return next(c for c in (IndexError, OverflowError, TypeError, ValueError) if isinstance(error, c))
    return result.asnumpy() if isinstance(result, mx.np.ndarray) else np.asarray(result)


def same(ours, theirs, name):
    """Same errors, same dtypes; integers the same, floats to what the order of operations can change."""
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert not isinstance(ours, type), f"{ours}, NumPy gives {theirs.dtype} {theirs.shape}"
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    if theirs.dtype.kind in "fc":
        # A few operations, each to an ulp or three, in another order; NumPy rounds halves after each one.
        tolerance = 40 * float(np.finfo(theirs.dtype).eps)
        assert np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * 4, equal_nan=True), f"{ours}\n{theirs}"
    else:
        assert np.array_equal(ours, theirs)


def stepwise(name, method, x, axis):
    """Fold by calls of NumPy's function: its own vector loops of these are wrong where they write what they read."""
    function = getattr(np, name)
    rows = np.moveaxis(x, axis, 0)
    steps = list(itertools.accumulate(rows, function))
    return steps[-1] if method == "reduce" else np.moveaxis(np.stack(steps), 0, axis)


def both(name, call, x):
    """The outcome of `call(function, array)` for us and for NumPy."""
    return outcome(lambda: call(getattr(mx.np, name), mx.np.array(x))), outcome(lambda: call(getattr(np, name), x))


# NumPy's folds of these floats read elements of the accumulator before they are written.
WRONG_IN_NUMPY = {"arctan2", "power", "float_power"}
# NumPy folds these integers in the dtype of a loop that takes two dtypes; ours refuses.
TWO_DTYPES = {"ldexp"}
FOLDING = [name for name in NAMES if name not in WRONG_IN_NUMPY | TWO_DTYPES]


@pytest.mark.parametrize("name", sorted(WRONG_IN_NUMPY))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint16"])
def test_folds_are_calls_of_the_function_one_after_the_other(name, dtype):
    # Three steps at most: errors of powers of powers grow fast.
    for shape, axes in (((3, 70), (0,)), ((4, 3), (1, -1)), ((2, 3, 2), (0, 1, 2))):
        x = values(dtype, shape, name)
        for axis in axes:
            for method in ("reduce", "accumulate"):
                with np.errstate(all="ignore"):
                    wanted = stepwise(name, method, x, axis)
                got = getattr(getattr(mx.np, name), method)(mx.np.array(x), axis=axis).asnumpy()
                if method == "reduce":
                    same(got, wanted, name)
                else:
                    # The first step is the element, which a stack of both gives the wider dtype.
                    assert np.allclose(got, wanted, rtol=40 * np.finfo(got.dtype).eps if got.dtype.kind == "f" else 0)


def test_functions_of_two_dtypes_do_not_fold():
    for x in (mx.np.ones(3), mx.np.ones(3, dtype="int32")):
        with pytest.raises(TypeError, match="ldexp: reduce: `ldexp` has no loop"):
            mx.np.ldexp.reduce(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FOLDING)
def test_reduce_is_numpys(name, dtype):
    for shape in ((3, 4), (5,), (2, 3, 2), (0, 3), (3, 0)):
        x = values(dtype, shape, name)
        for axis in (0, -1, None, (0, len(shape) - 1) if len(shape) > 1 else (0,)):
            for keywords in ({}, {"keepdims": True}):
                ours, theirs = both(name, lambda f, x, a=axis, k=keywords: f.reduce(x, axis=a, **k), x)
                same(ours, theirs, name)
    x = values(dtype, (3, 4), name)
    if isinstance(outcome(lambda: getattr(np, name).reduce(x)), type):
        return
    mask = generator(name).random((3, 4)) < 0.6
    for keywords in ({"where": mask, "initial": 1}, {"where": mask}, {"initial": 2}, {"initial": None}):
        ours, theirs = both(name, lambda f, x, k=keywords: f.reduce(x, **k), x)
        same(ours, theirs, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FOLDING)
def test_accumulate_and_reduceat_are_numpys(name, dtype):
    for shape in ((3, 4), (5,), (2, 3, 2), (0, 3)):
        x = values(dtype, shape, name)
        for axis in (0, -1):
            same(*both(name, lambda f, x, a=axis: f.accumulate(x, axis=a), x), name)
    x = values(dtype, (5, 4), name)
    for axis, starts in ((0, [0, 3, 1]), (1, [0, 2]), (1, [3, 3, 0]), (0, [0, 5]), (0, [0, -1])):
        same(*both(name, lambda f, x, a=axis, s=starts: f.reduceat(x, s, axis=a), x), name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "fmax"])
def test_many_segments_are_numpys(name, dtype):
    steps = generator(name, dtype).integers(1, 60, 400)
    for shape in ((20_000,), (20_000, 2), (20_000, 3), (3, 20_000)):
        x = values(dtype, shape, name)
        starts = np.cumsum(np.append(7, steps))
        for axis in (0, -1):
            if shape[axis] > starts[-1]:
                same(*both(name, lambda f, x, a=axis, s=starts: f.reduceat(x, s, axis=a), x), name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_outer_is_numpys(name, dtype):
    x, y = values(dtype, (2, 3), name), values(dtype, (4,), name, 1)
    ours = outcome(lambda: getattr(mx.np, name).outer(mx.np.array(x), mx.np.array(y)))
    same(ours, outcome(lambda: getattr(np, name).outer(x, y)), name)


@pytest.mark.parametrize("name", ["add", "subtract", "maximum", "hypot", "logaddexp", "bitwise_xor"])
def test_long_and_wide_folds_are_numpys(name):
    dtype = "int64" if name == "bitwise_xor" else "float64"
    for shape, axis in (((5000,), 0), ((70, 900), 0), ((900, 70), 1), ((33, 65, 17), 1)):
        x = values(dtype, shape, name)
        same(*both(name, lambda f, x, a=axis: f.reduce(x, axis=a), x), name)
        same(*both(name, lambda f, x, a=axis: f.accumulate(x, axis=a), x), name)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logical_and", "subtract", "hypot"])
def test_folds_write_to_out_and_take_a_dtype(name):
    x = values("float32", (3, 4), name)
    for method, shape in (("reduce", (4,)), ("accumulate", (3, 4))):
        for dtype in ("float64", "float32"):
            if name == "logical_and" and dtype != "bool":
                continue
            ours, theirs = mx.np.zeros(shape, dtype=dtype), np.zeros(shape, dtype)
            assert getattr(getattr(mx.np, name), method)(mx.np.array(x), out=ours) is ours
            getattr(getattr(np, name), method)(x, out=theirs)
            same(ours.asnumpy(), theirs, name)
            got = getattr(getattr(mx.np, name), method)(mx.np.array(x), 0, dtype)
            same(got.asnumpy(), getattr(getattr(np, name), method)(x, 0, dtype), name)
    out = mx.np.zeros((4,), dtype="int32")
    mx.np.add.reduce(mx.np.array(x), out=out)
    assert out.tolist() == np.add.reduce(x, out=np.zeros(4, "int32")).tolist()
    with pytest.raises(ValueError, match=r"\(3,\)"):
        mx.np.add.reduce(mx.np.array(x), out=mx.np.zeros(3))


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda m, a: m.negative.reduce(a), ValueError, "reduce only supported for binary functions"),
        (lambda m, a: m.divmod.reduce(a), ValueError, "functions returning a single value"),
        (lambda m, a: m.negative.accumulate(a), ValueError, "accumulate only supported for binary functions"),
        (lambda m, a: m.negative.outer(a), ValueError, "outer product only supported for binary functions"),
        (lambda m, a: m.subtract.reduce(a, axis=(0, 1)), ValueError, "'subtract' is not reorderable"),
        (lambda m, a: m.maximum.reduce(a[:0]), ValueError, "zero-size array to reduction operation maximum"),
        (
            lambda m, a: m.maximum.reduce(a, where=a > 2),
            ValueError,
            "does not have an identity, so to use a where",
        ),
        (lambda m, a: m.add.reduce(a[:0], initial=None), ValueError, "zero-size array to reduction operation add"),
        (lambda m, a: m.add.reduce(a, axis=2), np.exceptions.AxisError, "axis 2 is out of bounds"),
        (lambda m, a: m.add.reduce(a, axis=(0, 0)), ValueError, "(?i)duplicate|repeated"),
        (lambda m, a: m.add.accumulate(a[0, 0]), TypeError, "cannot accumulate on a scalar"),
        (lambda m, a: m.add.accumulate(a, axis=None), ValueError, "accumulate does not allow multiple axes"),
        (lambda m, a: m.add.accumulate(a, axis=(0, 1)), ValueError, "accumulate does not allow multiple axes"),
        (lambda m, a: m.add.reduceat(a, [0, 7]), IndexError, r"index 7 out-of-bounds in add.reduceat \[0, 2\)"),
        (lambda m, a: m.add.reduceat(a, [[0]]), ValueError, None),
        (lambda m, a: m.equal.reduce(a), TypeError, "loop"),
        (lambda m, a: m.ldexp.reduce(a), TypeError, "ldexp"),
        (lambda m, a: m.add.reduce(), TypeError, None),
        (lambda m, a: m.add.reduce(a, foo=1), TypeError, "foo"),
        (lambda m, a: m.add.reduce(a, 0, axis=0), TypeError, "axis"),
    ],
)
def test_refusals_are_numpys(call, error, match):
    a = np.arange(6.0).reshape(2, 3)
    for module, x in ((mx.np, mx.np.array(a)), (np, a)):
        with pytest.raises(error, match=match):
            call(module, x)


def test_results_of_folds_are_not_broadcast_to_out():
    x = mx.np.ones((1, 10))
    with pytest.raises(ValueError, match=r"`out` has shape \(3, 1\), the result has shape \(1, 1\)"):
        mx.np.add.reduce(x, axis=-1, out=mx.np.zeros((3, 1)), keepdims=True)
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        mx.np.maximum.reduce(mx.np.zeros((0, 0, 5)), axis=1)


def test_comparisons_fold_truth_values_where_these_are_asked_for():
    for name in ("equal", "less", "greater_equal"):
        x = np.array([0, 1, 1, 0], dtype="int8")
        wanted = getattr(np, name).accumulate(x, dtype="?")
        assert getattr(mx.np, name).accumulate(mx.np.array(x), dtype="?").tolist() == wanted.tolist()


def test_at_cuts_floats_off_for_integers():
    x, y = mx.np.arange(10), np.arange(10)
    for module, array in ((mx.np, x), (np, y)):
        module.power.at(array, [1, 2, 3, 2], 3.5)
    assert x.tolist() == y.tolist()


def test_at_tells_of_floating_point_errors():
    x = mx.np.array([mx.np.inf, 0, -mx.np.inf])
    with mx.np.errstate(all="warn"), pytest.warns(RuntimeWarning, match="invalid value encountered in log"):
        mx.np.log.at(x, [2])
    ones = mx.np.ones(3)
    with mx.np.errstate(all="raise"):
        mx.np.divide.at(ones, [0, 1], 2)
        with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
            mx.np.divide.at(ones, [0, 1], [1, 0])


def test_dtypes_of_a_call_are_resolved_without_calling():
    i4, f4, f8, b = map(np.dtype, ("i4", "f4", "f8", "?"))
    assert mx.np.add.resolve_dtypes((f4, f8, None)) == (f8, f8, f8)
    assert mx.np.add.resolve_dtypes((f4, int, None)) == (f4, f4, f4)
    assert mx.np.equal.resolve_dtypes((i4, i4, None)) == (i4, i4, b)
    assert mx.np.add.resolve_dtypes((i4, i4, None), signature=(None, None, "f4")) == (f4, f4, f4)
    assert mx.np.add.resolve_dtypes((None, i4, None), reduction=True) == (np.dtype("int64"),) * 3
    for call in (
        lambda: mx.np.add.resolve_dtypes((i4, i4)),
        lambda: mx.np.add.resolve_dtypes((None, i4, f4)),
        lambda: mx.np.add.resolve_dtypes(("i4", "i4", None)),
        lambda: mx.np.add.resolve_dtypes((i4, f4, None), casting="no"),
        lambda: mx.np.add.resolve_dtypes((i4, i4, i4), reduction=True),
    ):
        with pytest.raises(TypeError):
            call()


def test_indices_of_segments_are_integers():
    # NumPy truncates floats.
    with pytest.raises(TypeError, match="reduceat takes integer indices, found float64"):
        mx.np.add.reduceat([1, 2, 3], [0.5, 1])


def test_numbers_and_lists_fold_too():
    assert mx.np.add.reduce(3).tolist() == 3
    assert mx.np.add.reduce([1, 2, 3]).tolist() == 6
    assert mx.np.add.reduce([[1, 2], [3, 4]], 1).tolist() == [3, 7]
    assert mx.np.add.outer([1, 2], 3).tolist() == [4, 5]
    assert mx.np.add.outer(3, [1, 2]).dtype == np.int64


def test_results_do_not_depend_on_layout():
    x = values("float32", (6, 8, 4), "layout")
    for view in (lambda x: x[::2, ::-1], lambda x: x.transpose(2, 0, 1), lambda x: x[1:, :, 2]):
        for name in ("hypot", "subtract", "fmax"):
            f, g = getattr(mx.np, name), getattr(np, name)
            for method in ("reduce", "accumulate"):
                same(getattr(f, method)(view(mx.np.array(x)), 1).asnumpy(), getattr(g, method)(view(x), 1), name)


# ---- gradients ----


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract", "divide", "hypot", "logaddexp", "arctan2"])
def test_gradients_of_folds_are_the_slopes(name):
    f, rng = getattr(mx.np, name), generator(name)
    # No two elements so near that a step of the numeric derivative changes their order.
    x = rng.permutation(12).reshape(4, 3) / 8 + 0.5
    slopes.check(lambda x: f.reduce(x, axis=0), [x], rng)
    slopes.check(lambda x: f.reduceat(x, [0, 2, 1], axis=0), [x], rng)
    slopes.check(lambda x: f.accumulate(x, axis=1), [x], rng)
    slopes.check(lambda x, y: f.outer(x, y), [x[0], x[1]], rng)
    mask = mx.np.array(rng.random((4, 3)) < 0.7)
    # The start lies apart from all elements: extremes have no slope where they tie.
    slopes.check(lambda x: f.reduce(x, axis=0, where=mask, initial=0.25), [x], rng)
