"""Functions of sequences with kernels of their own: sums at every shift, values between points, orders, choices."""

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxnet as mx

np = mx.np
RNG = onp.random.default_rng(11)


def drawn(n, dtype, rng=RNG):
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if "int" in dtype:
        return rng.integers(0, 100, n).astype(dtype)
    x = rng.standard_normal(n)
    return (x + 1j * rng.standard_normal(n)).astype(dtype) if "complex" in dtype else x.astype(dtype)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", "uint16", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_sums_at_every_shift_are_those_of_numpy(name, mode, dtype):
    for n, m in [(1, 1), (5, 3), (3, 5), (16, 16), (4, 1), (1, 6), (70, 9), (9, 70), (3000, 33)]:
        a, v = drawn(n, dtype), drawn(m, dtype)
        wide = {"float16": "float64", "float32": "float64", "complex64": "complex128"}.get(dtype, dtype)
        expected = getattr(onp, name)(a.astype(wide), v.astype(wide), mode)
        found = getattr(np, name)(np.array(a, dtype=dtype), np.array(v, dtype=dtype), mode)
        assert found.dtype == dtype
        assert found.shape == expected.shape
        if "float" not in dtype and "complex" not in dtype:
            assert (found.asnumpy() == expected).all()
            continue
        # Each sum has at most min(n, m) terms below 16 in size; a half is rounded once more at the end.
        eps = onp.finfo(dtype).eps
        bound = (min(n, m) + 2) * 16 * (onp.finfo("float32").eps if dtype == "float16" else eps)
        error = onp.abs(found.asnumpy().astype(wide) - expected)
        assert (error <= bound + (eps * onp.abs(expected) if dtype == "float16" else 0)).all()


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float32", "complex64", "complex128"])
def test_fast_paths_give_what_the_general_path_gives(dtype):
    for n, m in [(1, 1), (9, 4), (4, 9), (300, 70), (3000, 90)]:
        a, v = np.array(drawn(n, dtype), dtype=dtype), np.array(drawn(m, dtype), dtype=dtype)
        assert np.convolve(a, v).tolist() == np.convolve(a, v, "full").tolist()
        assert np.correlate(a, v).tolist() == np.correlate(a, v, "valid").tolist()
        assert np.correlate(a[::-1], v).tolist() == np.correlate(np.copy(a[::-1]), v).tolist()
    for shape in [(), (5,), (3, 4), (40, 60)]:
        size = int(onp.prod(shape))
        x, y = (drawn(size, dtype).reshape(shape) for _ in range(2))
        wide = "complex128" if "complex" in dtype else "float64"
        expected = onp.vdot(x.astype(wide), y.astype(wide))
        exact = dtype == "int16"
        if dtype == "bool":
            expected, exact = bool(expected), True
        found = np.vdot(np.array(x, dtype=dtype), np.array(y, dtype=dtype))
        assert found.shape == ()
        assert found.dtype == dtype
        if exact:
            assert found.item() == (expected if dtype == "bool" else int(onp.int64(expected).astype("int16")))
            continue
        # A sum of `size` products below 16, each rounded; halves are summed in float32 and rounded once.
        eps = onp.finfo("float32" if dtype == "float16" else dtype).eps
        half = onp.finfo(dtype).eps * abs(expected) if dtype == "float16" else 0
        assert abs(complex(found.item()) - expected) <= (size + 2) * 16 * eps + half
    with pytest.raises(ValueError, match="`a` has 3 elements, `b` 2"):
        np.vdot(np.ones(3), np.ones(2))
    assert np.vdot(np.ones(0), np.ones(0)).item() == 0


def test_few_sums_of_many_terms_are_as_exact_as_many():
    a, v = drawn(50_000, "float64"), drawn(49_997, "float64")
    found = np.correlate(np.array(a), np.array(v)).asnumpy()
    assert onp.abs(found - onp.correlate(a, v)).max() <= 50_000 * onp.finfo("float64").eps


def test_sequences_may_have_strides_and_other_dtypes():
    a, v = drawn(40, "float64")[::-2], drawn(6, "float32")[::2]
    expected = onp.convolve(a, v)
    found = np.convolve(np.array(a, dtype="float64"), np.array(v))
    assert onp.allclose(found.asnumpy(), expected, rtol=0, atol=1e-13)
    turned = np.array(a[::-1].copy(), dtype="float64")[::-1]
    assert onp.allclose(np.correlate(turned, np.array(v), "full").asnumpy(), onp.correlate(a, v, "full"), atol=1e-13)
    assert np.convolve(np.array([1, 2, 3]), 2.5).dtype == "float32"


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_sequences_are_checked(name):
    function = getattr(np, name)
    with pytest.raises(ValueError, match="v cannot be empty"):
        function(np.ones(3), np.ones(0))
    with pytest.raises(ValueError, match="`a` must have 1 axis, found 2"):
        function(np.ones((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match="middle"):
        function(np.ones(3), np.ones(2), "middle")


def test_gradients_of_correlations_of_complex_sequences_are_differences():
    a, v = drawn(5, "complex128"), drawn(3, "complex128")
    weights = drawn(7, "complex128")
    x, w = np.array(a), np.array(v)
    for one in (x, w):
        one.attach_grad()
    with mx.autograd.record():
        loss = np.real(np.sum(np.correlate(x, w, "full") * np.array(weights)))
    loss.backward()

    def value(a, v):
        return (onp.correlate(a, v, "full") * weights).sum().real

    step = 1e-6
    for i in range(5):
        for unit in (1, 1j):
            delta = onp.zeros(5, complex)
            delta[i] = unit * step
            slope = (value(a + delta, v) - value(a - delta, v)) / (2 * step)
            found = x.grad.asnumpy()[i]
            assert abs((found.real if unit == 1 else found.imag) - slope) < 1e-7
    for i in range(3):
        for unit in (1, 1j):
            delta = onp.zeros(3, complex)
            delta[i] = unit * step
            slope = (value(a, v + delta) - value(a, v - delta)) / (2 * step)
            found = w.grad.asnumpy()[i]
            assert abs((found.real if unit == 1 else found.imag) - slope) < 1e-7


# ---- values between points ----

numbers = st.one_of(st.floats(-4, 4, width=32), st.sampled_from([-onp.inf, onp.inf, onp.nan, 0.0, 1.0]))


@settings(max_examples=150, deadline=None)
@given(
    x=st.lists(numbers, min_size=1, max_size=6),
    xp=st.lists(st.integers(-3, 3), min_size=1, max_size=6, unique=True),
    data=st.data(),
)
def test_values_between_points_are_those_of_numpy(x, xp, data):
    xp = sorted(float(p) for p in xp)
    fp = data.draw(st.lists(numbers, min_size=len(xp), max_size=len(xp)))
    with onp.errstate(all="ignore"):
        expected = onp.interp(x, xp, fp)
    found = np.interp(*(np.array(one, dtype="float64") for one in (x, xp, fp))).asnumpy()
    onp.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


def test_values_between_many_points_are_found_in_any_order():
    xp = onp.sort(RNG.uniform(0, 1, 5000))
    fp = RNG.standard_normal(5000)
    x = RNG.uniform(-0.1, 1.1, 40_000)
    expected = onp.interp(x, xp, fp)
    found = np.interp(np.array(x), np.array(xp), np.array(fp)).asnumpy()
    assert onp.abs(found - expected).max() < 1e-12
    ascending = np.interp(np.array(onp.sort(x)), np.array(xp), np.array(fp)).asnumpy()
    assert onp.abs(ascending - onp.interp(onp.sort(x), xp, fp)).max() < 1e-12


def test_dtypes_of_values_between_points():
    half = np.array([0.25, 0.5], dtype="float16")
    assert np.interp(half, np.array([0, 1]), np.array([0, 2])).dtype == "float16"
    assert np.interp([0.5], [0, 1], [0, 1]).dtype == "float32"
    assert np.interp(half, np.array([0.0, 1.0], dtype="float64"), [0, 1]).dtype == "float64"
    complex_values = np.interp([0.5, 9.0], [0, 1], [0, 1], right=1j)
    assert complex_values.dtype == "complex64"
    assert complex_values.tolist() == [0.5, 1j]
    with pytest.raises(TypeError, match="coordinates must be real"):
        np.interp(1j, [0, 1], [0, 1])


def test_the_gradient_at_nan_is_zero():
    x, fp = np.array([onp.nan, 0.5]), np.array([0.0, 4.0])
    for one in (x, fp):
        one.attach_grad()
    with mx.autograd.record():
        y = np.interp(x, np.array([0.0, 1.0]), fp)
    y.backward()
    assert x.grad.tolist() == [0.0, 4.0]
    assert fp.grad.tolist() == [0.5, 0.5]


# ---- orders, bins, choices, grids ----


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_orders_by_several_keys_are_those_of_numpy(axis, count):
    keys = [RNG.integers(0, 3, (6, 7)).astype(d) for d in ("int64", "float32", "bool", "int8")[:count]]
    found = np.lexsort([np.array(key, dtype=key.dtype) for key in keys], axis)
    assert found.dtype == "int64"
    assert (found.asnumpy() == onp.lexsort(keys, axis)).all()


def test_keys_may_be_rows_of_an_array_and_are_checked():
    keys = RNG.integers(0, 4, (3, 20))
    assert (np.lexsort(np.array(keys)).asnumpy() == onp.lexsort(keys)).all()
    with pytest.raises(TypeError, match="at least one key"):
        np.lexsort(())
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        np.lexsort((np.ones(3), np.ones(2)))
    with pytest.raises(onp.exceptions.AxisError):
        np.lexsort((np.ones(3), np.ones(3)), 1)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("right", [False, True])
def test_bins_of_every_dtype(dtype, right):
    edges = onp.array([1, 1, 3, 6, 7]).astype(dtype)
    x = onp.arange(9).astype(dtype)
    for one in (edges, edges[::-1].copy()):
        found = np.digitize(np.array(x, dtype=dtype), np.array(one, dtype=dtype), right)
        assert (found.asnumpy() == onp.digitize(x, one, right)).all()
    with pytest.raises(ValueError, match="monotonically"):
        np.digitize(np.array(x, dtype=dtype), np.array([1, 3, 2], dtype=dtype))


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_chosen_elements_are_those_of_numpy(mode):
    numbers = RNG.integers(-5, 9, (4, 1, 5))
    choices = [RNG.standard_normal((3, 5)), RNG.standard_normal((4, 1, 1)), RNG.standard_normal(5)]
    found = np.choose(np.array(numbers), [np.array(c) for c in choices], mode=mode)
    assert (found.asnumpy() == onp.choose(numbers, choices, mode=mode)).all()
    out = np.zeros((4, 3, 5), dtype="float64")
    assert np.choose(np.array(numbers), [np.array(c) for c in choices], out, mode) is out
    assert (out.asnumpy() == found.asnumpy()).all()


def test_choices_are_checked():
    for bad in (-1, 2):
        with pytest.raises(ValueError, match=rf"0\.\.2, found {bad}"):
            np.choose(np.array([0, bad]), [np.ones(2), np.zeros(2)])
    with pytest.raises(ValueError, match="at least one"):
        np.choose(np.array([0]), [])
    with pytest.raises(TypeError, match="integers, found float32"):
        np.choose(np.ones(2), [np.ones(2)])


def test_gradients_of_chosen_elements_go_where_they_came_from():
    x, y = np.ones((2, 3)), np.ones(3)
    for one in (x, y):
        one.attach_grad()
    with mx.autograd.record():
        z = np.choose(np.array([[0, 1, 1], [1, 0, 1]]), [x, y]) * np.arange(1, 7).reshape(2, 3)
    z.backward()
    assert x.grad.tolist() == [[1, 0, 0], [0, 5, 0]]
    assert y.grad.tolist() == [4, 2, 3 + 6]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["int64", "int8", "float32", "float16"])
def test_positions_of_a_grid(shape, dtype):
    found, expected = np.indices(shape, dtype), onp.indices(shape, dtype)
    assert found.dtype == dtype
    assert found.shape == expected.shape
    assert (found.asnumpy() == expected).all()


def test_identities_in_fortran_order():
    for arguments in [(3,), (2, 4), (4, 2, 1), (3, 3, -1)]:
        found, expected = np.eye(*arguments, order="F"), onp.eye(*arguments, order="F")
        assert found.flags.f_contiguous
        assert (found.asnumpy() == expected).all()
    assert np.eye(2, order="F", dtype="int8").dtype == "int8"
    with pytest.raises(ValueError, match="order"):
        np.eye(2, order="Z")


def test_names_of_memory_orders_and_dtypes():
    x = np.ones((2, 3))
    assert [np.isfortran(y) for y in (x, x.T, np.ones(3), x[:, :2].T)] == [False, True, False, False]
    assert isinstance(x.dtype, np.dtypes.Float32DType)
    assert len(np.random.bytes(5)) == 5
    np.random.seed(3)
    first = np.random.bytes(16)
    np.random.seed(3)
    assert np.random.bytes(16) == first
