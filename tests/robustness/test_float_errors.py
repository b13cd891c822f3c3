"""errstate finds the floating-point errors that NumPy finds."""

import io
import threading
import warnings

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np

# An expression over `m` (NumPy or mx.np) and what is wrong with it.
CASES = [
    ("m.ones(3) / m.array([1.0, 0.0, 2.0])", "divide"),
    ("m.log(m.array([1.0, 0.0]))", "divide"),
    ("m.log1p(m.array([-1.0]))", "divide"),
    ("m.power(m.array([0.0, 2.0]), -1.0)", "divide"),
    ("m.reciprocal(m.array([0.0]))", "divide"),
    ("m.arctanh(m.array([1.0]))", "divide"),
    ("m.array([1, 2]) // m.array([0, 1])", "divide"),
    ("m.array([1, 2]) % m.array([0, 1])", "divide"),
    ("m.exp(m.array([1e4]))", "over"),
    ("m.array([1e308]) * 10.0", "over"),
    ("m.array([1e308]) + m.array([1e308])", "over"),
    ("m.array([1e300]).astype('float32')", "over"),
    ("m.power(m.array([10.0]), 400.0)", "over"),
    ("m.sqrt(m.array([-1.0, 4.0]))", "invalid"),
    ("m.log(m.array([-1.0]))", "invalid"),
    ("m.arcsin(m.array([2.0]))", "invalid"),
    ("m.array([m.inf]) - m.array([m.inf])", "invalid"),
    ("m.zeros(2) / m.zeros(2)", "invalid"),
    ("m.array([1.0, m.nan]).astype('int64')", "invalid"),
    ("m.array([1e-300]) * 1e-300", "under"),
    ("m.exp(m.array([-1e4]))", "under"),
    ("m.array([m.nan, m.inf, 1.0]) * 2.0", None),
    ("m.array([m.inf]) / 2.0", None),
    ("m.exp(m.array([m.inf, -m.inf]))", None),
    ("m.log(m.array([m.inf, m.nan]))", None),
    ("m.array([1.0, 2.0])[::2] + m.array([0.0])", None),
    ("m.array([m.nan]).sum()", None),
    ("m.maximum(m.array([m.nan]), 1.0)", None),
    # What a mask leaves out is not looked at.
    ("m.sqrt(m.array([-1.0, 4.0]), where=m.array([False, True]), out=m.zeros(2))", None),
    ("m.sqrt(m.array([-1.0, 4.0]), where=m.array([True, False]), out=m.zeros(2))", "invalid"),
    ("m.divide(m.ones(2), m.array([0.0, 2.0]), where=m.array([False, True]), out=m.zeros(2))", None),
    ("m.divide(m.ones(2), m.array([0.0, 2.0]), where=m.array([True, False]), out=m.zeros(2))", "divide"),
    ("m.floor_divide(m.ones(2, int), m.array([0, 2]), where=m.array([False, True]), out=m.zeros(2, int))", None),
    ("m.exp(m.array([1e4, 0.0]), where=m.array([[False, True], [True, True]]), out=m.zeros((2, 2)))", "over"),
    ("m.exp(m.array([1e4, 0.0]), where=m.array([[False, True], [False, True]]), out=m.zeros((2, 2)))", None),
    ("m.log(m.array([0.0, 1.0]), where=m.array([False, True]), out=m.zeros(2, m.float32))", None),
    ("m.multiply(m.array([1e300, 1.0]), 10.0, where=m.array([False, True]), out=m.zeros(2, m.float32))", None),
    # What is assigned is converted.
    ("m.zeros(2, 'float32').__setitem__(0, 1e300)", "over"),
    ("m.zeros(2, 'float32').__setitem__(slice(None), m.array([1e300, 1.0]))", "over"),
    ("m.zeros(2, 'float32').__setitem__(slice(None), m.array([1e-300, 1.0]))", "under"),
    ("m.zeros(2, 'float32').__setitem__(slice(None), m.array([m.nan, m.inf]))", None),
    ("m.zeros(2, 'float32').__setitem__(slice(None), [1e300, 1.0])", "over"),
    ("m.zeros(2, 'float32').__setitem__(m.array([0]), m.array([1e300]))", "over"),
    ("m.zeros(2, 'float32').__setitem__(m.array([True, False]), 1e300)", "over"),
    ("m.zeros(2, 'float32').__setitem__(0, m.inf)", None),
    ("m.zeros(2, 'float16').__setitem__(0, 70000)", "over"),
    ("m.zeros(2, 'float16').__setitem__(slice(None), m.array([70000, 1]))", "over"),
    ("m.zeros(2, 'complex64').__setitem__(0, 1e300)", "over"),
    ("m.zeros(2, 'complex64').__setitem__(0, 1e300j)", "over"),
    ("m.zeros(2, int).__setitem__(slice(None), m.array([m.nan, 1.0]))", "invalid"),
    ("m.zeros(2, 'float32').fill(1e300)", "over"),
    ("m.copyto(m.zeros(2, 'float32'), 1e300)", "over"),
    ("m.copyto(m.zeros(2, 'float32'), m.array([1e300]), casting='unsafe')", "over"),
    ("m.array([1e300], 'float32')", "over"),
    ("m.full(2, 1e300, 'float32')", "over"),
    ("m.full(2, m.array([1e300]), 'float32')", "over"),
    ("m.full_like(m.zeros(2, 'float32'), 1e300)", "over"),
    ("m.concatenate([m.array([1e300])], dtype='float32', casting='unsafe')", "over"),
    ("m.put(m.zeros(2, 'float32'), [0], m.array([1e300]))", "over"),
    ("m.full(2, m.inf, 'float32')", None),
    ("m.array(1e300, 'float32')", "over"),
    ("m.array([[1.0, m.inf], [m.nan, 1e38]], 'float32')", None),
    # Python integers beyond 64 bits are finite.
    ("m.arange(3.0) + 2**64", None),
    ("m.minimum(m.arange(3.0), 2**64)", None),
    ("m.arange(1.0, 3.0) * 2**64", None),
    ("m.arange(3.0) / 2**70", None),
    ("m.array([1e308]) * 2**64", "over"),
    ("m.zeros(1) * 2**64", None),
    # A zero that comes from zeros is exact.
    ("m.arange(5.0) * 0", None),
    ("0 * m.arange(5.0)", None),
    ("m.arange(5.0) * m.zeros(5)", None),
    ("m.zeros(5) / 3", None),
    ("m.array([1e-300]) / 10**300", "under"),
    ("m.roots([1, 0, -1])", None),
    ("m.linalg.slogdet(m.zeros((2, 2)))", None),
    ("m.linalg.cond(m.zeros((2, 2)))", None),
    ("m.random.default_rng(0).pareto(0.01, size=1000)", None),
]
KINDS = ("divide", "over", "under", "invalid")


def caught(module, expression, kind):
    with module.errstate(all="ignore", **{kind: "raise"}):
        try:
            eval(expression, {"m": module})
        except FloatingPointError as error:
            return str(error).splitlines()[0]
    return None


@pytest.mark.parametrize(("expression", "wrong"), CASES)
def test_each_kind_is_found_where_numpy_finds_it_and_nowhere_else(expression, wrong):
    with mx.util.np_default_dtype(True):
        for kind in KINDS:
            expected, found = caught(onp, expression, kind), caught(np, expression, kind)
            assert (found is None) == (expected is None), (kind, expected, found)
            assert (found is not None) == (kind == wrong)
            if found:
                assert found == expected.replace("scalar ", "")


def test_nothing_is_watched_by_default():
    assert set(np.geterr().values()) == {"ignore"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.ones(3) / 0


def test_warnings_go_through_pythons_filters():
    with np.errstate(divide="warn"):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
            np.ones(3) / 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="divide by zero encountered in divide"):
                np.ones(3) / 0


def test_printing_goes_to_stderr(capsys):
    with np.errstate(over="print"):
        np.exp(np.array([1e9]))
    assert capsys.readouterr().err == "Warning: overflow encountered in exp\n"


def test_modes_nest_and_come_back_after_an_error():
    def nested():
        with np.errstate(all="raise"):
            with np.errstate(invalid="ignore"):
                assert np.geterr() == {"divide": "raise", "over": "raise", "under": "raise", "invalid": "ignore"}
                np.sqrt(np.array([-1.0]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nested()
    assert set(np.geterr().values()) == {"ignore"}


def test_it_decorates_functions():
    @np.errstate(divide="raise")
    def reciprocal(x):
        return 1 / x

    with pytest.raises(FloatingPointError):
        reciprocal(np.zeros(2))
    assert set(np.geterr().values()) == {"ignore"}


def test_a_thread_has_modes_of_its_own():
    found = []
    with np.errstate(all="raise"):
        thread = threading.Thread(target=lambda: found.append((np.geterr()["divide"], (np.ones(1) / 0).item())))
        thread.start()
        thread.join()
    assert found == [("ignore", float("inf"))]


def test_modes_that_do_not_exist_are_refused_and_change_nothing():
    with pytest.raises(
        ValueError, match="mode 'shout' of `divide` is none of 'ignore', 'warn', 'raise', 'print', 'call', 'log'"
    ):
        np.seterr(divide="shout")
    with pytest.raises(ValueError, match="'shout'"), np.errstate(call=print, divide="shout"):
        pass
    assert set(np.geterr().values()) == {"ignore"}
    assert np.geterrcall() is None


def test_errors_are_reported_to_a_function():
    reported = []
    x = np.array([1.0, -1.0, 1e38])
    with np.errstate(all="call", call=lambda *args: reported.append(args)):
        x / 0
        np.log(x)
        x * x
        x / 1e38 / 1e38
    kinds = dict(reported)
    assert kinds["divide by zero"] == 1 and kinds["invalid value"] == 8 and kinds["overflow"] == 2
    assert np.geterrcall() is None
    before = np.seterrcall(None)
    assert before is None
    with pytest.raises(ValueError, match="seterrcall"), np.errstate(divide="call"):
        x / 0
    with pytest.raises(ValueError, match="callable"):
        np.seterrcall(3)


def test_errors_are_logged_to_an_object():
    log = io.StringIO()
    with np.errstate(divide="log", call=log):
        np.ones(2) / 0
    assert log.getvalue() == "Warning: divide by zero encountered in divide\n"


def test_gradients_are_recorded_while_watching():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with np.errstate(all="raise"), autograd.record():
        y = (x * x).sum()
    y.backward()
    onp.testing.assert_array_equal(x.grad.asnumpy(), [2, 4])


def test_in_place_division_is_judged_by_the_operands_before():
    x = np.array([1.0, 4.0])
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        x /= np.array([1.0, 0.0])


def test_masked_elements_do_not_warn_and_masks_are_forgotten_afterwards():
    x = np.array([-1.0, 4.0])
    with np.errstate(all="raise"):
        out = np.sqrt(x, where=x > 0, out=np.zeros(2))
        with pytest.raises(FloatingPointError, match="invalid value encountered in sqrt"):
            np.sqrt(x)
        with pytest.raises(FloatingPointError, match="invalid value encountered in sqrt"):
            np.sqrt(x, where=x < 0, out=np.zeros(2))
    assert out.tolist() == [0.0, 2.0]


# Fast paths (small arrays, elements, writes in place) report the errors that NumPy reports.
FAST_PATHS = [
    "x + x",
    "x * 1e308",
    "x - x[::-1]",
    "x / 0.0",
    "x / x",
    "x[0] / x[1]",
    "x[1] / x[0]",
    "x[2] * 1e308",
    "x[2] + x[3]",
    "x[3] - x[3]",
    "x[:3] @ x[:3]",
    "m.sqrt(x)",
    "m.log(x[0])",
    "m.exp(x * 100.0)",
    "m.add(x, x, out=x)",
    "x.__iadd__(1e308)",
    "x.__itruediv__(x.copy())",
    "x.__isub__(x[3])",
    "x.sum()",
    "x // 0",
    "x % 0",
    "x.astype(m.int64)",
    "x[:3].astype(m.float32)",
    "i // i",
    "i % i[0]",
    "i[1] // i[0]",
    "i.__ifloordiv__(i.copy())",
    "i / i",
    "m.where(x > 0, x, 0).copy()",
    "x[1:3].T.reshape(2, 1).copy()",
    "x.__setitem__(0, x[2])",
    "x.__setitem__(0, 1e300)",
    "f * 1e30 * 1e30",
]


@pytest.mark.parametrize(
    "values", [[0.0, 1.0, 1e300, float("inf")], [2.0, 1.0, 4.0, 1.0], [0.0, -3.0, float("nan"), 1.0]]
)
@pytest.mark.parametrize("expression", FAST_PATHS)
def test_small_arrays_and_elements_tell_of_the_same_errors(expression, values):
    def reported(m):
        given = {
            "m": m,
            "x": m.array(values, dtype="float64"),
            "i": m.array([0, 1, 2]),
            "f": m.array([1.0, 3.0], dtype="float32"),
        }
        with warnings.catch_warnings(record=True) as found, m.errstate(divide="warn", over="warn", invalid="warn"):
            warnings.simplefilter("always")
            made = eval(expression, given)
        kinds = {str(warning.message).split(" encountered")[0] for warning in found}
        return kinds, [None if y is None else onp.asarray(y) for y in (made, given["x"], given["i"], given["f"])]

    with mx.util.np_default_dtype():
        kinds, arrays = reported(np)
    expected_kinds, expected = reported(onp)
    assert kinds == expected_kinds
    for one, other in zip(arrays, expected, strict=True):
        if other is not None and not (other.dtype.kind in "iu" and "invalid value" in kinds):
            onp.testing.assert_allclose(one, other, rtol=1e-12 if other.dtype != onp.float32 else 1e-6)
