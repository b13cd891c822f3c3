"""Code paths of large arrays: transposes in blocks, tables of float16, sums in parts, sorted sets."""

import numpy
import pytest

import mxnet as mx
from mxnet import np

RNG = numpy.random.default_rng(7)


def ours(x: numpy.ndarray) -> mx.np.ndarray:
    return np.array(x, dtype=x.dtype)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(301, 517), (16, 1031), (1031, 17), (3, 65, 129)])
def test_transposed_operands_are_added_in_their_places(dtype, shape):
    x = RNG.integers(0, 50, shape).astype(dtype)
    y = RNG.integers(0, 50, shape[:-2] + shape[:-3:-1]).astype(dtype)
    a, b = ours(x), ours(y)
    expected = x.swapaxes(-1, -2) + y
    numpy.testing.assert_array_equal((a.swapaxes(-1, -2) + b).asnumpy(), expected)
    numpy.testing.assert_array_equal((b + a.swapaxes(-1, -2)).asnumpy(), expected)
    numpy.testing.assert_array_equal((a.swapaxes(-1, -2) + a.swapaxes(-1, -2)).asnumpy(), 2 * x.swapaxes(-1, -2))
    for k in (1, 3):
        numpy.testing.assert_array_equal((np.rot90(a, k, (-2, -1)) + 1).asnumpy(), numpy.rot90(x, k, (-2, -1)) + 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "statement",
    [
        "x += y",
        "x *= x",
        "x *= 2",
        "x ^= y",
        "np.subtract(3, x, out=x)",
        "np.subtract(y, x, out=x)",
        "np.maximum(y, x, out=x)",
        "np.add(x, x[:1], out=x)",
        "np.add(x[:, :1], x, out=x)",
        "np.add(x, x[::-1], out=x)",
        "np.add(x, x.T, out=x)",
        "x[1:] += x[:-1]",
        "x.T[...] += x",
        "np.negative(x, out=x)",
        "np.square(x[::2], out=x[::2])",
        "np.clip(x, 2, 5, out=x)",
        "np.clip(x, y, 5, out=x)",
        "np.clip(y, 1, x, out=x)",
        "np.clip(x, 2, 5, out=x, where=y > 2)",
        "np.clip(x[:, ::-1], 2, 5, out=x)",
        "x.fill(1)",
        "x[...] = True",
        "x[:, 3:200] = 1",
        "x[::2, ::3] = True",
        "x[rows] = y",
        "x[rows[:300]] = y[:300]",
        "x[rows % 7] = y",
        "x[:, rows] = y",
        "x[rows[::-1]] += y",
        "x[rows, rows] = y[0]",
    ],
)
def test_large_arrays_are_written_in_place(statement, dtype):
    x = RNG.integers(0, 9, (333, 333)).astype(dtype)
    y = RNG.integers(0, 9, (333, 333)).astype(dtype)
    rows = RNG.permutation(333)
    a, b = ours(x), ours(y)
    raised = []
    for names in ({"np": numpy, "x": x, "y": y, "rows": rows}, {"np": np, "x": a, "y": b, "rows": ours(rows)}):
        try:
            exec(statement, names)
            raised.append(None)
        except TypeError:
            raised.append(TypeError)
    assert raised[0] is raised[1]
    numpy.testing.assert_array_equal(a.asnumpy(), x)
    numpy.testing.assert_array_equal(b.asnumpy(), y)


def test_a_condition_may_run_across_what_it_chooses_from():
    condition, x = RNG.uniform(size=(333, 222)) < 0.5, RNG.uniform(size=(222, 333)).astype("float32")
    found = np.where(ours(condition).T, ours(x), np.zeros_like(ours(x)))
    numpy.testing.assert_array_equal(found.asnumpy(), numpy.where(condition.T, x, 0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "log", "sin", "cbrt", "tanh", "arcsinh", "arccosh"])
def test_functions_of_many_halves_give_what_they_give_of_few(name, dtype):
    function = getattr(np, name)
    every = np.array(numpy.arange(1 << 16, dtype="uint16")).view("float16")
    every = every if dtype == "float16" else every.astype("float32").astype(dtype)
    many = np.tile(every, 9)[: 8 * 65536 + 77]
    few = function(every).astype("float32").asnumpy()
    numpy.testing.assert_array_equal(function(many).astype("float32").asnumpy(), numpy.tile(few, 9)[: many.size])


def test_long_and_short_integers_divide_as_in_python():
    ends = [0, 1, -1, 3, 2**52 - 1, -(2**52) + 1, 2**52, -(2**52), 2**53 + 1, 2**62, -(2**63), 2**63 - 1]
    near = [a * b + c for a in (7, -(2**26), 2**25 + 1) for b in (3, -5, 2**26 - 1) for c in (-1, 0, 1)]
    values = numpy.array(ends + near, dtype="int64")
    a, b = (x.reshape(-1) for x in numpy.meshgrid(values, values[values != 0]))
    keep = ~((a == -(2**63)) & (b == -1))
    a, b = a[keep], b[keep]
    short = (abs(a.astype(object)) < 2**52) & (abs(b.astype(object)) < 2**52)
    for chosen in (numpy.flatnonzero(short), numpy.arange(a.size)):
        x, y = numpy.tile(a[chosen], 3), numpy.tile(b[chosen], 3)
        wanted = [divmod(int(p), int(q)) for p, q in zip(x, y, strict=True)]
        numpy.testing.assert_array_equal((ours(x) // ours(y)).asnumpy(), [q for q, _ in wanted])
        numpy.testing.assert_array_equal((ours(x) % ours(y)).asnumpy(), [r for _, r in wanted])
        truncated = [abs(int(p)) % abs(int(q)) * (1 if p >= 0 else -1) for p, q in zip(x, y, strict=True)]
        numpy.testing.assert_array_equal(np.fmod(ours(x), ours(y)).asnumpy(), truncated)
    assert (ours(values) // 0).asnumpy().tolist() == [0] * values.size


@pytest.mark.parametrize("n", [1, 17, 1000, 32769, 100_003])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_inner_products_of_any_length(n, dtype):
    def draw() -> numpy.ndarray:
        x = RNG.normal(size=n)
        return (x + 1j * RNG.normal(size=n) if dtype[0] == "c" else x).astype(dtype)

    x, y = draw(), draw()
    exact = "complex128" if dtype[0] == "c" else "float64"
    p, q = x.astype(exact), y.astype(exact)
    # Lanes of at most 16384 / 64 sums, then trees; backwards one sum after the other.
    ulp = float(numpy.finfo(dtype).eps * numpy.sum(abs(p) * abs(q)))
    assert abs(np.vdot(ours(x), ours(y)).item() - numpy.vdot(p, q)) <= 300 * ulp
    assert abs(np.dot(ours(x), ours(y)).item() - numpy.dot(p, q)) <= 300 * ulp
    assert abs(np.dot(ours(x)[::-1], ours(y)).item() - numpy.dot(p[::-1], q)) <= 17_000 * ulp


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (129, 1000), (1000, 129), (515, 515), (7, 70_001)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_matrices_times_vectors(shape, dtype):
    m, n = shape
    x, row, column = (RNG.normal(size=size).astype(dtype) for size in (shape, m, n))
    bound = 300 * float(numpy.finfo(dtype).eps)
    for ours_, (a, b) in (
        (ours(x) @ ours(column), (x, column)),
        (ours(row) @ ours(x), (row, x)),
        (ours(x).T @ ours(row), (x.T, row)),
        (ours(column) @ ours(x).T, (column, x.T)),
    ):
        wanted, size = a.astype("complex128") @ b, abs(a.astype("complex128")) @ abs(b)
        assert (abs(ours_.asnumpy() - wanted) <= bound * size).all()


def test_results_do_not_depend_on_the_number_of_threads():
    x, v = ours(RNG.normal(size=(700, 900)).astype("float32")), ours(RNG.normal(size=300_000).astype("float32"))
    z = v + 1j * v[::-1]
    before = mx._core.num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            mx._core.set_num_threads(threads)
            found = [x @ x[0], x[:, 0] @ x, np.dot(v, v), np.vdot(z, z), np.sort(v), x.T + x.T, np.unique(v)]
            results.append([y.asnumpy() for y in found])
    finally:
        mx._core.set_num_threads(before)
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            numpy.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("n", [40, 129, 1000, 2500, 9000])
def test_first_positions_of_extremes_in_rows(dtype, n):
    x = RNG.integers(0, 100, (5, n)).astype(dtype)
    if dtype[0] == "f":
        x[1, n // 2] = x[1, n // 3] = numpy.nan
        x[2, n - 1] = numpy.nan
        x[3] = -0.0
        x[3, 1::2] = 0.0
    for name in ("argmax", "argmin"):
        wanted = getattr(numpy, name)(x, 1)
        numpy.testing.assert_array_equal(getattr(np, name)(ours(x), 1).asnumpy(), wanted)
        assert [int(getattr(np, name)(ours(row))) for row in x] == wanted.tolist()


def test_any_and_all_that_the_first_elements_decide_or_not():
    for n in (1, 63, 64, 65, 4096, 4097, 50_000):
        for position in {0, n // 2, n - 1}:
            x = numpy.zeros(n, bool)
            x[position] = True
            assert bool(ours(x).any()) and not bool(ours(~x).all())
        assert not bool(np.any(np.zeros(n, dtype=bool))) and bool(np.all(np.ones(n, dtype=bool)))
    assert ours(numpy.eye(200, dtype=bool)).any().shape == ()
    assert np.any(ours(numpy.eye(200, dtype=bool)), keepdims=True).shape == (1, 1)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_many_positions_are_left_out(axis):
    x = RNG.normal(size=(300, 400)).astype("float32")
    at = RNG.integers(-300, 300, (20, 20))
    left = np.delete(ours(x), ours(at), axis).asnumpy()
    numpy.testing.assert_array_equal(left, numpy.delete(x, at.reshape(-1), axis))
    with pytest.raises(IndexError, match="1000000"):
        np.delete(ours(x), numpy.full(500, 10**6), axis)


def test_the_gradient_of_what_is_left_is_one():
    x = ours(RNG.normal(size=1000).astype("float32"))
    x.attach_grad()
    at = numpy.arange(0, 1000, 3)
    with mx.autograd.record():
        y = np.delete(x, at).sum()
    y.backward()
    wanted = numpy.ones(1000)
    wanted[at] = 0
    numpy.testing.assert_array_equal(x.grad.asnumpy(), wanted)


@pytest.mark.parametrize(
    "arguments", [(500,), (500, 7), (500, -7), (300, 2, 450), (450, -3, 300), (4, 9), (4, -9), (0,)]
)
def test_positions_of_triangles(arguments):
    for name in ("triu_indices", "tril_indices"):
        for found, wanted in zip(getattr(np, name)(*arguments), getattr(numpy, name)(*arguments), strict=True):
            numpy.testing.assert_array_equal(found.asnumpy(), wanted)
            assert found.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_sets_of_many_elements(dtype):
    x, y = (RNG.integers(0, 200_000, 150_000).astype(dtype) / 4 for _ in range(2))
    x, y = x.astype(dtype), y.astype(dtype)
    if dtype[0] == "f":
        x[::1000] = numpy.nan
        y[::999] = numpy.nan
        x[5], y[5] = -0.0, 0.0
    for name in ("intersect1d", "setxor1d", "setdiff1d", "union1d"):
        found = getattr(np, name)(ours(x), ours(y)).asnumpy()
        numpy.testing.assert_array_equal(found, getattr(numpy, name)(x, y))
    for equal_nan in (True, False):
        found = np.unique(ours(x), return_counts=True, equal_nan=equal_nan)
        for mine, other in zip(found, numpy.unique(x, return_counts=True, equal_nan=equal_nan), strict=True):
            numpy.testing.assert_array_equal(mine.asnumpy(), other)
        numpy.testing.assert_array_equal(
            np.unique(ours(x), equal_nan=equal_nan).asnumpy(), numpy.unique(x, equal_nan=equal_nan)
        )


def test_long_divisions_of_polynomials():
    u, v = RNG.normal(size=400), numpy.array([1.0, -0.3, 0.2, 0.05, -0.01])
    for dividend in (u, u[:5], u[:3]):
        for found, wanted in zip(np.polydiv(ours(dividend), ours(v)), numpy.polydiv(dividend, v), strict=True):
            numpy.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-11, atol=1e-12)
    quotient, rest = np.polydiv(ours(numpy.convolve(u, v)), ours(v))
    numpy.testing.assert_allclose(quotient.asnumpy(), u, rtol=1e-10, atol=1e-12)
    assert rest.shape == (1,)


def test_powers_of_arrays_of_exponents():
    start, stop = (RNG.uniform(0, 2, (40, 50)).astype("float32") for _ in range(2))
    for base in (10.0, 2, 0.5, RNG.uniform(1, 3, (40, 50)).astype("float32")):
        root = ours(base) if isinstance(base, numpy.ndarray) else base
        found = np.logspace(ours(start), ours(stop), 7, base=root)
        wanted = numpy.logspace(start.astype("float64"), stop.astype("float64"), 7, base=base)
        assert found.dtype == numpy.float32
        # The exponents are rounded to float32: half an ulp of up to 4, times the logarithm of the base.
        numpy.testing.assert_allclose(found.asnumpy(), wanted, rtol=4 * 2.4e-7 * 2.4)


def test_slices_are_views_and_know_their_array_while_recording():
    x = ours(RNG.normal(size=(6, 5)).astype("float64"))
    rows, columns = np.unstack(x), np.unstack(x, axis=-1)
    assert (len(rows), len(columns)) == (6, 5) and columns[2].shape == (6,)
    columns[2][1] = 9.0
    assert float(x[1, 2]) == 9.0
    assert np.unstack(np.zeros((0, 3))) == () and len(np.unstack(np.zeros((1, 3)))) == 1
    x.attach_grad()
    with mx.autograd.record():
        y = sum(i * part.sum() for i, part in enumerate(np.unstack(x, axis=1)))
    y.backward()
    numpy.testing.assert_array_equal(x.grad.asnumpy(), numpy.tile(numpy.arange(5.0), (6, 1)))
    with pytest.raises(ValueError, match="at least 1 axis"):
        np.unstack(np.array(3.0))


@pytest.mark.parametrize("shape", [(41, 7, 130), (200, 300), (70_000,), (3, 0, 2)])
@pytest.mark.parametrize("dtype", [int, "float32", "int16"])
def test_positions_along_every_axis(shape, dtype):
    numpy.testing.assert_array_equal(np.indices(shape, dtype).asnumpy(), numpy.indices(shape, dtype))
