"""Results at the edges, as NumPy has them: values, dtypes, elements and arrays, warnings, the class of errors."""

import copy
import operator
import pickle
import warnings

import numpy
import pytest

import mxnet as mx
from both import both
from mxnet.util import np_default_dtype

C = numpy.array([[1 + 2j, 3, 5j], [1, 2, 3j]])
X = numpy.arange(6.0).reshape(2, 3)
I = numpy.array([3, 1, 2])


def is_element(x):
    """Whether an object stands for one of NumPy's scalars: operators in place make another object of it."""
    if isinstance(x, mx.np.ndarray):
        x = copy.copy(x)
        return operator.imul(x, x) is not x
    return isinstance(x, numpy.generic)


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize(
    "expression",
    [
        "np.isin(3, [1, 2, 3])",
        "np.isin(I[0], [1, 2, 3], invert=True)",
        "np.isin(I, [1])",
        "np.roll(3, 1)",
        "np.roll(I[0], 1)",
        "np.flip(3)",
        "np.flip(I[0])",
        "np.i0(1.0)",
        "np.i0(X[0, 0])",
        "np.i0(X)",
        "np.unstack(I)",
        "np.unstack(X, axis=1)",
        "np.unstack(X[:, 0])",
        "loads(dumps(X[0, 1]))",
        "loads(dumps(X.sum()))",
        "loads(dumps(np.array(1.5)))",
        "loads(dumps(X))",
    ],
)
def test_elements_and_arrays_of_no_axes_are_those_of_numpy(expression):
    more = {"loads": pickle.loads, "dumps": pickle.dumps}
    both(expression, rtol=1e-15, X=X, I=I, **more)
    found, expected = (
        eval(expression, {"np": module, **more}, {"X": module.array(X), "I": module.array(I)})
        for module in (mx.np, numpy)
    )
    assert [is_element(x) for x in parts(found)] == [is_element(x) for x in parts(expected)]


def test_elements_of_a_row_that_was_taken_apart_are_copies():
    x = mx.np.array([1.0, 2.0])
    first, _ = mx.np.unstack(x)
    x[0] = 5.0
    assert first.item() == 1.0
    x.attach_grad()
    with mx.autograd.record():
        head = mx.np.unstack(x)[1] * 3
    head.backward()
    assert x.grad.tolist() == [0.0, 3.0]


@pytest.mark.parametrize("number", [3.0, 3, -2, 3 + 1j, True, 0.0])
@pytest.mark.parametrize("name", ["real", "imag", "isreal"])
def test_parts_of_python_numbers_are_python_numbers(name, number):
    found, expected = getattr(mx.np, name)(number), getattr(numpy, name)(number)
    assert type(found) is type(expected)
    assert found == expected


@pytest.mark.parametrize(
    "call", ["{}(C, dtype={})", "{}(C, 0, dtype={})", "{}(C, 1, {}, ddof=1)", "{}(C, dtype={}, where=W)"]
)
@pytest.mark.parametrize("name", ["np.var", "np.std", "np.nanvar", "np.nanstd"])
@pytest.mark.parametrize("dtype", ["'float64'", "'complex128'"])
def test_spread_of_complex_numbers_in_a_dtype(name, dtype, call):
    expression = call.format(name, dtype)
    names = {"C": C, "W": numpy.array([[True, True, False], [True, True, True]])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both(expression, rtol=1e-14, **names)
    if "float" in dtype:
        with np_default_dtype(True), pytest.warns(numpy.exceptions.ComplexWarning):
            eval(expression, {"np": mx.np}, {k: mx.np.array(x) for k, x in names.items()})


@pytest.mark.parametrize(
    "expression",
    [
        "np.var(np.full(10, 1e200))",
        "np.std(np.full((3, 10), 1e200), 1)",
        "np.cov(np.full(10, 1e200))",
        "np.cov(np.full((2, 10), 1e200))",
        "np.cov(X * 1e200, ddof=0) * 1e-300",
    ],
)
def test_what_very_large_numbers_have_in_common_is_no_spread(expression):
    both(expression, rtol=1e-14, X=X * 1e-150)


@pytest.mark.parametrize(
    "expression",
    [
        *(f"np.{name}(3, order={order!r})" for name in ("zeros", "ones", "empty") for order in ("A", "K", "X")),
        *(f"np.full(3, 1, order={order!r})" for order in "AK"),
        "np.full((2, 2), 1, order='f')",
        "np.arange(start=2)",
        "np.arange(start=0, step=1)",
        "np.arange(start=2, stop=4)",
        "np.arange(stop=2)",
        "np.arange(2, step=1)",
        "np.roll(X, 1, axis=())",
        "np.roll(3.0, 1, axis=())",
        "np.random.permutation(-1)",
        "np.random.permutation(2.5)",
        "np.random.choice(2.5)",
        "np.random.poisson(1e30)",
        "np.random.poisson([1.0, 1e30])",
        "np.random.default_rng(1).poisson(1e19)",
        "np.random.default_rng(1).multinomial(3, [])",
        "np.random.default_rng(1).multinomial(3, 0.5)",
    ],
)
def test_calls_that_numpy_refuses_are_refused_with_its_class(expression):
    both(expression, X=X)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("out", ["bool", "int8", "uint64", "int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
def test_out_of_what_chooses_elements_has_any_dtype(dtype, out, mode):
    """NumPy converts the elements as `astype` does; 2.4 refuses some conversions, 2.5 calls others deprecated."""
    a = numpy.array([1, 2, 3], dtype)
    x = mx.np.array(a)
    calls = {
        "take": lambda into: mx.np.take(x, [0, 1], out=into, mode=mode),
        "choose": lambda into: mx.np.choose([0, 1], [x[:2], x[[0, 1, 1]][1:]], out=into, mode=mode),
        "compress": lambda into: mx.np.compress([True, True, False], x, out=into),
    }
    discards = dtype == "complex128" and out in ("int8", "uint64", "int64", "float32", "float64")
    for name, call in calls.items():
        into = mx.np.zeros(2, dtype=out)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert call(into) is into
        assert [w.category for w in seen] == [numpy.exceptions.ComplexWarning] * discards, name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", numpy.exceptions.ComplexWarning)
            assert into.tolist() == a[:2].astype(out).tolist(), name


@pytest.mark.parametrize(
    "call",
    [
        "np.sum(c, out=o)",
        "np.sum(c, dtype='complex128', out=o)",
        "np.sum(c, dtype='float64', out=o)",
        "np.prod(c, out=o)",
        "np.max(c, out=o)",
        "np.mean(c, out=o)",
        "np.var(c, out=o)",
        "np.any(c, out=o)",
        "np.all(c, out=o, where=[True, False, True])",
        "np.cumsum(c, out=r)",
        "np.cumprod(c, out=r)",
        "np.trace(m, out=o)",
        "np.take(c, [0, 1, 2], out=r)",
        "np.choose([0, 0, 0], [c], out=r)",
        "np.compress([1, 1, 1], c, out=r)",
        *(f"np.{name}(c, out=o, where=[True, False, True])" for name in ("sum", "prod", "mean", "var")),
        *(f"np.{name}(c, out=o, where=[True, False, True], initial=1)" for name in ("min", "max")),
        *(f"np.nan{name}(c, out=o)" for name in ("sum", "prod", "mean", "min", "max", "median", "var")),
        "np.nansum(c, out=o, where=[True, False, True])",
        "np.median(c, out=o)",
        *(f"np.{name}.reduce(c, out=o)" for name in ("add", "multiply", "maximum", "logical_and")),
        "np.add.reduce(c, out=o, where=[True, False, True])",
        "np.add.accumulate(c, out=r)",
        "np.add.reduceat(c, [0, 1, 2], out=r)",
        "np.add(c, 1, out=r, casting='unsafe')",
        "np.add(c, 1, out=r, casting='unsafe', where=[True, False, True])",
    ],
)
def test_complex_results_in_a_real_out_warn(call):
    seen = []
    for module in (mx.np, numpy):
        c = module.array(numpy.array([1 + 1j, 2, 3]))
        names = {
            "np": module,
            "c": c,
            "m": c[:, None] * c,
            "o": module.zeros((), dtype="float64"),
            "r": module.zeros(3, dtype="float64"),
        }
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            eval(call, names)
        # NumPy's reductions warn twice, and from 2.5 on some conversions are also deprecated.
        seen.append(
            (numpy.exceptions.ComplexWarning in [w.category for w in caught], names["o"].tolist(), names["r"].tolist())
        )
    assert seen[0][0] == seen[1][0]
    numpy.testing.assert_allclose(seen[0][1], seen[1][1])
    numpy.testing.assert_allclose(seen[0][2], seen[1][2])


@pytest.mark.parametrize(
    "call",
    [
        *(f"np.{name}(x, out=o{more})" for name in ("sum", "prod", "mean", "var") for more in ("", ", where=w")),
        *(f"np.{name}(x, out=o, where=w, initial=1)" for name in ("min", "max")),
        *(f"np.nan{name}(x, out=o)" for name in ("sum", "prod", "min", "max", "median")),
        "np.median(x, out=o)",
        "np.std(x, out=o)",
        "np.std(x, out=o, where=w)",
        "np.quantile(x, 0.5, out=o)",
    ],
)
def test_folds_write_to_an_out_of_any_dtype(call):
    seen = []
    for module in (mx.np, numpy):
        x = module.array(numpy.array([1.75, 2.5, 3.25], "float32"))
        names = {"np": module, "x": x, "w": module.array([True, False, True]), "o": module.array(7)}
        try:
            eval(call, names)
            seen.append(names["o"].tolist())
        except TypeError:
            seen.append("TypeError")
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "statement",
    [
        "np.add.at(x, 0, 1)",
        "np.copyto(x, 1)",
        "np.copyto(x, x + 1, where=x > 0)",
        "np.put(x, 1, 2)",
        "np.place(x, x > 0, 2)",
        "np.putmask(x, x > 0, 2)",
        "np.fill_diagonal(x, 2)",
        "np.put_along_axis(x, np.array([[0], [0]]), 2, 1)",
        "x.fill(2)",
        "x.sort()",
        "np.add(1, 1, out=x)",
    ],
)
def test_what_is_read_only_is_not_written_to(statement):
    for module in (mx.np, numpy):
        locked = module.array(X)
        locked.flags.writeable = False
        spread = module.broadcast_to(module.arange(3.0), (2, 3))
        for x in (locked, spread):
            with pytest.raises(ValueError, match=r"read-only|WRITEBACK|write"):
                exec(statement, {"np": module, "x": x})
    assert locked.tolist() == X.tolist()


@pytest.mark.parametrize("x", ["X[0, 1]", "X.sum()"])
@pytest.mark.parametrize(
    "statement", ["np.copyto(x, 1)", "np.place(x, x > 0, 1.0)", "np.putmask(x, x > 0, 1.0)", "np.add.at(x, (), 1)"]
)
def test_elements_are_no_arrays_to_write_to(statement, x):
    for module in (mx.np, numpy):
        with pytest.raises(TypeError):
            exec(statement, {"np": module, "x": eval(x, {"X": module.array(X)})})


@pytest.mark.parametrize(
    "expression",
    [
        "np.linspace(-2, 4, 11)",
        "np.linspace(0.1, 0.7, 14)",
        "np.linspace(3, -7, 13, endpoint=False)",
        "np.linspace(X[0], X[1] / 3, 7)",
        "np.linspace(X[0], 0.7, 7, retstep=True)",
        "np.linspace(0.1, 0.7, 14, retstep=True)",
        "np.linspace(1, 1j, 7)",
        "np.arange(0.1, 2, 0.3)",
        "np.arange(-1, 5, 0.7)",
        "np.arange(1e20, 1e20 + 1e6, 1e5)",
        "np.arange(5, 0, -0.3)",
        "np.histogram_bin_edges(X / 7, 13)",
        "np.histogram(I, 7)",
    ],
)
def test_evenly_spaced_numbers_have_numpys_bits(expression):
    both(expression, X=X, I=I)


@pytest.mark.parametrize(
    "expression",
    [
        "np.where(2.5, [3, 1], [5, 6])",
        "np.where(0.5, 1, 2)",
        "np.where(1e300, I, 2)",
        "np.where(2**70, [1.5], 2)",
        "np.where(1j, 1, 2)",
        "np.cumulative_sum(3)",
        "np.cumulative_sum(3.5, axis=0, include_initial=True)",
        "np.cumulative_prod(np.array(2.0), axis=-1)",
        "np.cumulative_prod(3, axis=1)",
        "np.cumulative_sum(C[0], dtype='float64')",
        "np.cumulative_prod(C, axis=1, dtype='float64')",
        "np.ravel_multi_index((), ())",
        "np.ravel_multi_index(np.array([]), np.array([]))",
        *(
            f"np.{name}(3.0, axis={axis})"
            for name in ("mean", "var", "std", "average", "sum", "max")
            for axis in (0, -1, 1)
        ),
        "np.array(3.0).mean(0)",
        "np.array(3.0).std(axis=(0,))",
        "np.array(3.0).mean(())",
    ],
)
def test_numbers_are_taken_as_numpy_takes_them(expression):
    both(expression, X=X, I=I, C=C)


@pytest.mark.parametrize("name", ["transpose", "squeeze", "permute_dims", "imag", "real", "reshape"])
@pytest.mark.parametrize("x", ["3.5", "X[0, 1]", "np.array(1.5)"])
def test_views_of_numbers_are_arrays_and_those_of_elements_elements(name, x):
    found, expected = (
        eval(f"np.{name}({x}{', ()' if name == 'reshape' else ''})", {"np": module, "X": module.array(X)})
        for module in (mx.np, numpy)
    )
    assert is_element(found) == is_element(expected)
    assert numpy.shape(found) == ()
