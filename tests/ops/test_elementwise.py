"""Elementwise operators: what the standard tests do not reach."""

import mpmath
import numpy as onp
import pytest

from mxnet import _core
from mxnet import numpy as np
from mxnet import numpy_extension as npx


def recorded(function, *xs):
    """Gradients of the sum of `function(*xs)`."""
    for x in xs:
        x.attach_grad()
    before = _core.set_recording(True)
    try:
        y = function(*xs)
    finally:
        _core.set_recording(before)
    return [g.asnumpy() for g in _core.grad([y], list(xs))]


# ---- powers ----


@pytest.mark.parametrize("exponent", [2, 2.0, 0.5, 3, -1.0, 0, 0.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_power_by_a_python_number_is_numpys(dtype, exponent):
    x = onp.linspace(0.25, 3.0, 12).astype(dtype)
    got = np.array(x) ** exponent
    want = x**exponent
    assert got.dtype == want.dtype
    assert onp.allclose(got.asnumpy(), want, rtol=4 * onp.finfo(dtype).eps, atol=0)


def test_power_of_integers_keeps_the_dtype_and_wraps():
    x = onp.arange(-5, 6, dtype="int8")
    for exponent in (2, 3, 7):
        got = np.array(x) ** exponent
        assert got.dtype == "int8"
        assert onp.array_equal(got.asnumpy(), x**exponent)
    assert (np.array(x) ** 0.5).dtype == "float32"
    assert (np.array(onp.array([True, False])) ** 2).dtype == "int8"


def test_power_takes_arrays_on_the_right_and_works_in_place():
    x = onp.array([0.5, 1.0, 2.0], dtype="float32")
    assert onp.allclose((2 ** np.array(x)).asnumpy(), 2**x, rtol=3e-7)
    y = np.array(x)
    alias = y
    y **= 2
    assert alias is y
    assert onp.array_equal(y.asnumpy(), x**2)
    with pytest.raises(TypeError, match="pow"):
        pow(np.array(x), 2, 5)


def test_power_gradients_are_finite_at_zero():
    zero = onp.zeros(2, "float32")
    assert onp.array_equal(recorded(lambda x: x**2, np.array(zero))[0], [0, 0])
    assert onp.array_equal(recorded(lambda x: x**1.0, np.array(zero))[0], [1, 1])
    dx, dy = recorded(np.power, np.array(zero), np.array(onp.array([0.0, 2.0], "float32")))
    assert onp.array_equal(dx, [0, 0])
    assert onp.array_equal(dy, [0, 0])


# ---- special functions ----


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("x", [0.1, 0.9, 3.5, 40.0, -0.3, -2.6, -17.2])
def test_polygamma_matches_mpmath_on_both_sides_of_zero(n, x):
    got = float(_core.namespaces["op"]["polygamma"](np.array(onp.array(x)), n))
    # Reflection subtracts numbers of the size of the larger of its two terms.
    with mpmath.workdps(40):
        want = mpmath.psi(n, mpmath.mpf(x))
        size = abs(want) if x > 0 else max(abs(want), abs(mpmath.psi(n, 1 - mpmath.mpf(x))))
    assert abs(got - float(want)) <= 100 * onp.finfo("float64").eps * float(size)


def test_sinc_has_its_roots_at_the_integers():
    x = onp.arange(-5, 6, dtype="float32")
    assert onp.array_equal(np.sinc(np.array(x)).asnumpy(), (x == 0).astype("float32"))


def test_ldexp_refuses_floats_as_exponents():
    with pytest.raises(TypeError, match=r"float32"):
        np.ldexp(np.array([1.0]), np.array([1.0]))


def test_gcd_refuses_floats():
    with pytest.raises(TypeError, match=r"float32"):
        np.gcd(np.array([1.0]), np.array([2]))


@pytest.mark.parametrize("name", ["cbrt", "arctan2", "hypot", "floor", "signbit", "isposinf"])
def test_real_functions_refuse_complex_numbers(name):
    z = np.array(onp.array([1 + 2j], "complex64"))
    function = getattr(np, name)
    with pytest.raises(TypeError, match=r"complex64"):
        function(z, z) if name in ("arctan2", "hypot") else function(z)


# ---- parts of complex numbers ----


def test_real_and_imag_are_views():
    z = np.array(onp.array([1 + 2j, 3 + 4j], "complex64"))
    re, im = np.real(z), np.imag(z)
    assert re.dtype == im.dtype == "float32"
    re[0] = 10.0
    im[1] = 20.0
    assert z.asnumpy().tolist() == [10 + 2j, 3 + 20j]
    assert z.real.asnumpy().tolist() == [10, 3]
    assert z.imag.asnumpy().tolist() == [2, 20]
    x = np.array([1.0, 2.0])
    assert x.imag.asnumpy().tolist() == [0, 0]


# ---- choosing and bounding ----


def test_where_needs_both_or_neither():
    c = np.array([True, False])
    with pytest.raises(ValueError, match="both or neither"):
        np.where(c, c)


def test_where_of_a_condition_alone_is_a_tuple_of_positions():
    for shape in ((4,), (2, 3)):
        c = onp.arange(onp.prod(shape)).reshape(shape) % 2
        got = np.where(np.array(c))
        assert isinstance(got, tuple)
        assert [g.asnumpy().tolist() for g in got] == [w.tolist() for w in onp.where(c)]


def test_clip_refuses_a_bound_given_twice():
    with pytest.raises(ValueError, match="a_min"):
        np.clip(np.array([1.0]), 0.0, 1.0, min=0.5)


def test_clip_writes_to_out():
    x = np.array([-1.0, 0.5, 3.0])
    assert np.clip(x, 0.0, 1.0, out=x) is x
    assert x.asnumpy().tolist() == [0.0, 0.5, 1.0]


def test_clip_gives_the_gradient_to_what_came_out():
    operands = [-2, 0, 1, 2, 5], [-1, -1, -1, -1, -1], [1, 1, 1, 1, -3]
    grads = recorded(np.clip, *(np.array(onp.array(v, "float32")) for v in operands))
    assert [g.tolist() for g in grads] == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 1]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_nan_to_num_knows_the_largest_number_of_the_dtype(dtype):
    x = onp.array([onp.nan, onp.inf, -onp.inf, 1.5]).astype(dtype)
    got = np.nan_to_num(np.array(x))
    assert got.dtype == dtype
    assert onp.array_equal(got.asnumpy(), onp.nan_to_num(x))


def test_nan_to_num_changes_the_array_itself_without_copy():
    x = np.array([onp.nan, 1.0])
    np.nan_to_num(x, copy=False, nan=7.0)
    assert x.asnumpy().tolist() == [7.0, 1.0]


# ---- activations ----


def test_activation_refuses_unknown_names():
    with pytest.raises(ValueError, match="'swash'"):
        npx.activation(np.array([1.0]), "swash")


def test_prelu_needs_gamma_of_the_right_length():
    x = np.array(onp.ones((2, 3), "float32"))
    with pytest.raises(ValueError, match="gamma"):
        npx.leaky_relu(x, act_type="prelu")
    with pytest.raises(ValueError, match=r"1 element or 3[\s\S]*\(4,\)"):
        npx.leaky_relu(x, np.array(onp.ones(4, "float32")), act_type="prelu")


def test_rrelu_draws_slopes_between_its_bounds_in_training():
    x = onp.concatenate([-onp.ones(1000), onp.ones(10)]).astype("float32")
    before = _core.set_training(True)
    try:
        y = npx.leaky_relu(np.array(x), act_type="rrelu", lower_bound=0.25, upper_bound=0.5).asnumpy()
    finally:
        _core.set_training(before)
    assert onp.array_equal(y[1000:], x[1000:])
    slopes = -y[:1000]
    assert slopes.min() >= 0.25
    assert slopes.max() <= 0.5
    assert len(set(slopes.tolist())) > 900


def test_relu_keeps_integers():
    y = npx.relu(np.array(onp.array([-2, 0, 3], "int32")))
    assert y.dtype == "int32"
    assert y.asnumpy().tolist() == [0, 0, 3]


def test_expm1_of_large_numbers_is_infinite():
    x = onp.array([709.0, 709.7, 709.8, 711.0, 720.0, 1e300, onp.inf])
    assert onp.array_equal(np.isinf(np.expm1(np.array(x))).asnumpy(), [False, False, True, True, True, True, True])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "arcsin", "arccos", "arctan"])
@pytest.mark.parametrize("hyperbolic", [False, True])
def test_complex_functions_at_zeros_infinities_and_far_away_are_numpys(name, hyperbolic, dtype):
    parts = [0.0, 1.0, 2.0, 2.5, 0.3, onp.inf, 1e200, 1e-200, 710.0, 745.0]
    # C leaves open what the signs of NaNs do.
    parts = [*(sign * part for part in parts for sign in (1, -1)), onp.nan]
    with onp.errstate(all="ignore"):
        z = onp.array([complex(re, im) for re in parts for im in parts]).astype(dtype)
        want = getattr(onp, name + "h" * hyperbolic)(z)
    got = getattr(np, name + "h" * hyperbolic)(np.array(z)).asnumpy()
    # Both sides round several times; the sum of the parts' errors is a few units.
    rtol = 8 * onp.finfo(dtype).eps
    # C leaves the signs of zeros and infinities open beside NaNs.
    is_open = onp.isnan(z) | onp.isnan(want)
    for ours, theirs in ((got.real, want.real), (got.imag, want.imag)):
        ours, theirs = (onp.where(is_open, abs(x), x) for x in (ours, theirs))
        onp.testing.assert_allclose(ours, theirs, rtol=rtol, atol=0)
        zeros = theirs == 0
        assert onp.array_equal(onp.signbit(ours[zeros]), onp.signbit(theirs[zeros]))


@pytest.mark.parametrize(
    "call",
    [
        "np.clip(x, 1, 3, out=y)",
        "np.clip(x, None, 3, out=y)",
        "np.clip(x, x, 3.0, out=z)",
        "np.clip(x, 1, 3, out=y, where=y > 2)",
        "np.isposinf(x, out=b)",
        "np.isneginf(x, out=b)",
        "np.frexp(x, out=(y, e))",
        "np.clip(x, 1, 3, out=x[:2])",
        "np.isposinf(x, out=b[0, :2])",
    ],
)
def test_functions_of_elements_repeat_their_result_in_a_larger_output(call):
    def names(space):
        return {
            "np": space,
            "x": space.array([0.5, -onp.inf, onp.inf, 2.5]),
            "y": space.full((3, 4), 7.0),
            "z": space.full((2, 3, 4), 7.0),
            "b": space.zeros((3, 4), dtype=bool),
            "e": space.zeros((3, 4), dtype="int32"),
        }

    wanted, found, raised = names(onp), names(np), []
    for spaces in (wanted, found):
        try:
            eval(call, spaces)
            raised.append(False)
        except ValueError:
            raised.append(True)
    assert raised[0] == raised[1]
    for name in "xyzbe":
        onp.testing.assert_array_equal(found[name].asnumpy(), wanted[name], err_msg=name)


# ---- division ----


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_of_floats_is_numpys_whatever_its_neighbours_are(name, dtype):
    rng = onp.random.default_rng(5)
    n = 6000
    exponents = rng.integers(-30, 30, n), rng.integers(-30, 30, n)
    a, b = ((rng.standard_normal(n) * 2.0**e).astype(dtype) for e in exponents)
    a[::2] = rng.integers(-1000, 1000, n // 2)  # blocks of plain numbers, exact multiples among them
    b[::2] = rng.integers(1, 30, n // 2) / 4
    special = onp.array([0.0, -0.0, onp.inf, -onp.inf, onp.nan, onp.finfo(dtype).max, onp.finfo(dtype).tiny, 1.0, -3.0])
    pairs = onp.stack(onp.meshgrid(special, special)).reshape(2, -1).astype(dtype)
    a, b = onp.concatenate([a[::2], a, pairs[0]]), onp.concatenate([b[::2], b, pairs[1]])
    with onp.errstate(all="ignore"):
        wanted, found = getattr(onp, name)(a, b), getattr(np, name)(np.array(a), np.array(b))
    for got, want in zip(found, wanted, strict=True) if name == "divmod" else [(found, wanted)]:
        onp.testing.assert_array_equal(got.asnumpy(), want)
        zeros = want == 0
        onp.testing.assert_array_equal(onp.signbit(got.asnumpy()[zeros]), onp.signbit(want[zeros]))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_division_of_wide_integers_is_exact(name, dtype):
    rng = onp.random.default_rng(6)
    info = onp.iinfo(dtype)
    limits = [info.min, info.min + 1, 0, 1, 2**52 - 1, 2**52, 2**52 + 1, info.max - 1, info.max]
    small = rng.integers(max(info.min, -1000), 1000, (2, 3000), dtype=dtype)
    wide = rng.integers(info.min, info.max, (2, 3000), dtype=dtype, endpoint=True)
    edges = onp.array([(a, b) for a in limits for b in limits], dtype).T
    a, b = onp.concatenate([small, wide, edges], axis=1)
    with onp.errstate(all="ignore"):
        want = getattr(onp, name)(a, b)
    onp.testing.assert_array_equal(getattr(np, name)(np.array(a), np.array(b)).asnumpy(), want)


# ---- extremes of booleans ----


@pytest.mark.parametrize("length", [1, 70, 9000, 300_000])
def test_extremes_of_booleans_are_numpys_wherever_they_lie(length):
    for value in (False, True):
        for at in {0, 1 % length, length // 3, length - 1, None}:
            x = onp.full(length, not value)
            if at is not None:
                x[at] = value
            for y, z in ((x, np.array(x)), (x[::-2], np.array(x)[::-2])):
                for name in ("argmax", "argmin", "max", "min"):
                    assert int(getattr(z, name)()) == int(getattr(y, name)()), (name, value, at)
