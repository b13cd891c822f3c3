"""Incomplete gamma and beta functions against SciPy and mpmath, over their whole range."""

import mpmath
import numpy as onp
import pytest
import scipy.special

from mxnet import autograd, error, np, npx
from mxnet.test_utils import check_numeric_gradient

INF, NAN = onp.inf, onp.nan
SHAPES = 10.0 ** onp.linspace(-3, 6, 19)
DECADES = 10.0 ** onp.linspace(-8, 2, 31)
TAIL = 10.0 ** -onp.linspace(0.4, 250, 30)
PROBABILITIES = onp.concatenate([TAIL, onp.linspace(0.01, 0.99, 21), 1 - TAIL[TAIL > 1e-15]])

# A logarithm of a result up to 700 is known to 2**-53 of itself, and its terms near the mean to sqrt(1e6) * 2**-53.
RTOL = 2e-12


def array(x):
    return np.array(x, dtype="float64")


def around(mean, deviation):
    """Arguments from 8 standard deviations below the mean to 8 above."""
    return mean + deviation * onp.linspace(-8.1, 8.1, 28)


def gamma_arguments():
    a = onp.repeat(SHAPES, 59).reshape(19, 59)
    x = onp.concatenate([around(a[:, :1], a[:, :1] ** 0.5), a[:, :31] * DECADES], axis=1)
    return a, onp.maximum(x, 0)


def beta_arguments():
    a, b = (x[..., None] for x in onp.meshgrid(SHAPES[::2], SHAPES[::2]))
    mean = a / (a + b)
    x = around(mean, (mean * (1 - mean) / (a + b + 1)) ** 0.5)
    others = onp.concatenate([10.0 ** -onp.linspace(0.1, 12, 20), 1 - 10.0 ** -onp.linspace(0.1, 12, 20)])
    x = onp.concatenate([x, onp.broadcast_to(others, (*x.shape[:-1], 40))], axis=-1)
    return onp.broadcast_to(a, x.shape), onp.broadcast_to(b, x.shape), onp.clip(x, 0, 1)


def check(found, want, rtol):
    found = found.asnumpy()
    # Below it SciPy's results lose their digits or are 0.
    is_normal = want > 1e-290
    wrong = is_normal & ~(abs(found - want) <= rtol * want) & (found != want)
    assert not wrong.any(), (found[wrong][:5], want[wrong][:5])
    assert (found[~is_normal & (want == want)] <= 1e-289).all()


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_gamma_functions(name):
    a, x = gamma_arguments()
    # SciPy cuts its series off after 2,000 terms: 1e-5 of the result is missing below the mean.
    is_cut = (a > 1e5) & (x < a - 4.4 * a**0.5)
    a, x = a[~is_cut], x[~is_cut]
    check(getattr(npx, name)(array(a), array(x)), getattr(scipy.special, name)(a, x), RTOL)


@pytest.mark.parametrize(
    ("a", "x"), [(1e6, 995_500.0), (1e6, 1_006_000.0), (1e-3, 1e-300), (1e-3, 0.9), (299.9, 250.0), (300.0, 250.0)]
)
def test_gamma_functions_have_their_digits_in_both_tails(a, x):
    with mpmath.workdps(60):
        lower = float(mpmath.gammainc(mpmath.mpf(a), 0, mpmath.mpf(x), regularized=True))
        upper = float(mpmath.gammainc(mpmath.mpf(a), mpmath.mpf(x), mpmath.inf, regularized=True))
    assert abs(float(npx.gammainc(array(a), array(x))) / lower - 1) < 2e-13
    assert abs(float(npx.gammaincc(array(a), array(x))) / upper - 1) < 2e-13


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [
        (1e6, 0.18, 0.9999975028431),
        (5623.4, 1e-3, 0.99983),
        (1e-3, 50.0, 0.5),
        (199.9, 300.0, 0.3),
        (200.0, 300.0, 0.3),
        (300.0, 200.0, 0.7),
        (0.5, 0.5, 1e-200),
        (10.0, 1e6, 1.0948568594649477e-05),
        (1e-10, 0.5, 0.7),
        (1e-5, 3.0, 0.2),
    ],
)
def test_beta_functions_have_their_digits_in_both_tails(a, b, x):
    with mpmath.workdps(60):
        lower = mpmath.betainc(mpmath.mpf(a), mpmath.mpf(b), 0, mpmath.mpf(x), regularized=True)
        upper = float(1 - lower)
    given = array(a), array(b), array(x)
    assert abs(float(npx.betainc(*given)) / float(lower) - 1) < 2e-13
    assert abs(float(npx.betaincc(*given)) / upper - 1) < 2e-13


@pytest.mark.parametrize("name", ["betainc", "betaincc"])
def test_beta_functions(name):
    a, b, x = beta_arguments()
    # SciPy's results have errors of up to 1.3e-11 at a = 10, b = 1e6.
    check(getattr(npx, name)(array(a), array(b), array(x)), getattr(scipy.special, name)(a, b, x), 2e-11)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_inverses_of_gamma_functions(name):
    a, p = onp.broadcast_arrays(10.0 ** onp.linspace(-3, 12, 31)[:, None], PROBABILITIES)
    x = getattr(npx, name + "inv")(array(a), array(p)).asnumpy()
    back = getattr(npx, name)(array(a), array(x)).asnumpy()
    assert (x >= 0).all()
    assert (onp.diff(x, axis=1)[:, onp.diff(p[0]) > 0] * (1 if name == "gammainc" else -1) >= 0).all()
    # The quantile is rounded, which moves its probability by the density times its spacing.
    density = onp.exp(scipy.special.xlogy(a - 1, x) - x - scipy.special.gammaln(a))
    allowed = 1e-12 * onp.minimum(p, 1 - p) + 2 * density * onp.spacing(x) + 1e-16 * (p > 0.5)
    wrong = (abs(back - p) > allowed) & (x > 1e-300)
    assert not wrong.any(), (a[wrong], p[wrong], back[wrong])


@pytest.mark.parametrize("name", ["betainc", "betaincc"])
def test_inverses_of_beta_functions(name):
    shapes = 10.0 ** onp.linspace(-3, 8, 12)
    a, b, p = onp.broadcast_arrays(shapes[:, None, None], shapes[:, None], PROBABILITIES)
    x = getattr(npx, name + "inv")(array(a), array(b), array(p)).asnumpy()
    back = getattr(npx, name)(array(a), array(b), array(x)).asnumpy()
    assert ((x >= 0) & (x <= 1)).all()
    is_inner = (x > 1e-300) & (x < 1)
    inner = onp.where(is_inner, x, 0.5)
    logs = (a - 1) * onp.log(inner) + (b - 1) * onp.log1p(-inner) - scipy.special.betaln(a, b)
    allowed = (
        1e-12 * onp.minimum(p, 1 - p) + 4 * onp.exp(onp.minimum(logs, 700)) * onp.spacing(inner) + 1e-16 * (p > 0.5)
    )
    wrong = (abs(back - p) > allowed) & is_inner
    assert not wrong.any(), (a[wrong], b[wrong], p[wrong], back[wrong])


def test_ends_of_the_range():
    shapes = onp.array([0.0, 1e-10, 0.5, 1.0, 50.0, 1e10, INF, NAN, -1.0])
    x = onp.array([0.0, 1e-10, 0.5, 1.0, 50.0, 1e10, INF, NAN, -1.0])
    a, x = onp.meshgrid(shapes, x)
    for name in ("gammainc", "gammaincc"):
        found = getattr(npx, name)(array(a), array(x)).asnumpy()
        onp.testing.assert_allclose(found, getattr(scipy.special, name)(a, x), rtol=1e-9)
    p = onp.array([0.0, 0.3, 1.0, NAN, -0.1, 1.1])
    a, b, x = onp.meshgrid(shapes, shapes, p)
    for name in ("betainc", "betaincc"):
        found = getattr(npx, name)(array(a), array(b), array(x)).asnumpy()
        onp.testing.assert_allclose(found, getattr(scipy.special, name)(a, b, x), rtol=1e-9)
    assert npx.gammaincinv(2.0, array(p)).asnumpy()[[0, 2]].tolist() == [0, INF]
    assert npx.gammainccinv(2.0, array(p)).asnumpy()[[0, 2]].tolist() == [INF, 0]
    assert npx.betaincinv(2.0, 3.0, array(p)).asnumpy()[[0, 2]].tolist() == [0, 1]
    assert npx.betainccinv(2.0, 3.0, array(p)).asnumpy()[[0, 2]].tolist() == [1, 0]
    for found in (
        npx.gammaincinv(2.0, array(p)),
        npx.gammainccinv(2.0, array(p)),
        npx.betaincinv(2.0, 3.0, array(p)),
        npx.betainccinv(2.0, 3.0, array(p)),
        npx.gammaincinv(array([-1.0, NAN, INF]), 0.5),
        npx.betaincinv(array([-1.0, NAN, 0.0]), 2.0, 0.5),
    ):
        assert onp.isnan(found.asnumpy()[-3:]).all()


# Shapes on both sides of each switch between methods, arguments in both tails.
A = onp.array([0.003, 0.4, 1.0, 7.0, 250.0, 340.0, 2e4])
RATIOS = onp.array([0.5, 0.98, 1.03, 2.0])[:, None]


def five_points(f, x, h):
    """Derivative of `f` by differences; the error is of order `h**4`."""
    values = [f(x * (1 + k * h)) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * x * h)


@pytest.mark.parametrize("side", [0, 1])
def test_slopes_by_the_shape_of_gamma(side):
    spread = 1 + (RATIOS - 1) * onp.minimum(1, 3 * A**-0.5)
    a, x = array(A * onp.ones((4, 1))), array(A * spread)
    a.attach_grad()
    x.attach_grad()
    with autograd.record():
        y = (npx.gammainc, npx.gammaincc)[side](a, x)
    y.backward()
    with mpmath.workdps(50):
        f = [
            lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
            lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        ][side]
        h = mpmath.mpf("1e-10")
        for index in onp.ndindex(4, len(A)):
            one, other = mpmath.mpf(float(a[index])), mpmath.mpf(float(x[index]))
            by_a = five_points(lambda t, other=other: f(t, other), one, h)
            by_x = five_points(lambda t, one=one: f(one, t), other, h)
            assert abs(float(a.grad[index]) / float(by_a) - 1) < 1e-11, (one, other)
            assert abs(float(x.grad[index]) / float(by_x) - 1) < 1e-11, (one, other)


B_CASES = [
    (0.01, 0.3, 0.2),
    (0.01, 0.3, 0.9),
    (2.0, 0.02, 0.97),
    (3.0, 5.0, 0.3),
    (0.5, 900.0, 3e-4),
    (900.0, 0.5, 0.9998),
    (230.0, 210.0, 0.5),
    (230.0, 210.0, 0.56),
    (5000.0, 300.0, 0.94),
]


@pytest.mark.parametrize("case", B_CASES)
def test_slopes_of_beta(case):
    arrays = [array(x) for x in case]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        y = npx.betainc(*arrays)
    y.backward()
    with mpmath.workdps(50):
        case = [mpmath.mpf(x) for x in case]

        def value(*given):
            return mpmath.betainc(given[0], given[1], 0, given[2], regularized=True)

        for i, x in enumerate(arrays):
            want = five_points(lambda t, i=i: value(*case[:i], t, *case[i + 1 :]), case[i], mpmath.mpf("1e-10"))
            assert abs(float(x.grad) / float(want) - 1) < 1e-11, i


GAMMA_GIVEN = [onp.array([[0.3, 2.0, 30.0]]), onp.array([[0.2], [0.5], [0.9]])]
BETA_GIVEN = [onp.array([[0.4, 2.0, 30.0]]), onp.array([3.0, 0.7, 40.0]), onp.array([[0.2], [0.5], [0.9]])]


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammaincinv", "gammainccinv"])
def test_gradients_of_gamma_functions_and_inverses(name):
    check_numeric_gradient(getattr(npx, name), GAMMA_GIVEN, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["betainc", "betaincc", "betaincinv", "betainccinv"])
def test_gradients_of_beta_functions_and_inverses(name):
    check_numeric_gradient(getattr(npx, name), BETA_GIVEN, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "given"),
    [(name, GAMMA_GIVEN) for name in ("gammainc", "gammaincc", "gammaincinv", "gammainccinv")]
    + [(name, BETA_GIVEN) for name in ("betainc", "betaincc", "betaincinv", "betainccinv")],
)
def test_second_derivatives_by_the_argument(name, given):
    function, shapes = getattr(npx, name), [array(x) for x in given[:-1]]

    def slope(x):
        with autograd.record():
            y = function(*shapes, x)
            return autograd.grad(y, x, create_graph=True)[0]

    check_numeric_gradient(slope, [given[-1]], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("name", "given"), [("gammainc", GAMMA_GIVEN), ("betainc", BETA_GIVEN)])
def test_second_derivatives_by_shapes_are_refused(name, given):
    function, others = getattr(npx, name), [array(x) for x in given[1:-1]]

    x, a = array(given[-1]), array(given[0])
    for variable in (x, a):
        variable.attach_grad()
    with autograd.record():
        y = function(a, *others, x)
        first = autograd.grad(y, [a], create_graph=True)[0]
    with pytest.raises(error.AutogradError, match="of first order only"):
        first.backward()


def test_float32_is_the_rounded_float64():
    a, x = gamma_arguments()
    a, x = a.astype("float32"), x.astype("float32")
    found = npx.gammainc(np.array(a), np.array(x))
    assert found.dtype == onp.float32
    onp.testing.assert_array_equal(found, npx.gammainc(array(a), array(x)).asnumpy().astype("float32"))
    a, b, x = (x.astype("float32") for x in beta_arguments())
    found = npx.betaincinv(np.array(a), np.array(b), np.array(x))
    onp.testing.assert_array_equal(found, npx.betaincinv(array(a), array(b), array(x)).asnumpy().astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_quantiles_at_an_end_are_finite_or_that_of_the_end(dtype):
    calls = [
        (npx.gammaincinv, (2.0, 1.0)),
        (npx.gammaincinv, (2.0, 0.0)),
        (npx.gammainccinv, (2.0, 0.0)),
        (npx.betaincinv, (2.0, 9.0, 0.0)),
        (npx.betaincinv, (2.0, 9.0, 1.0)),
        (npx.betainccinv, (2.0, 3.0, 1e-30)),
    ]
    for function, values in calls:
        operands = [np.array([value], dtype=dtype) for value in values]
        for x in operands:
            x.attach_grad()
        with autograd.record():
            y = function(*operands)
        y.backward()
        slopes = [x.grad.item() for x in operands[:-1]]
        if y.item() in (0, 1, onp.inf):
            assert slopes == [0] * len(slopes)
        else:
            assert all(map(onp.isfinite, slopes))


def test_upper_quantiles_of_small_parameters_keep_their_digits():
    # mpmath; P(a, x) = p ** (1 / a) is 0 in the last case.
    small, least = (np.array(a, dtype="float64") for a in (1e-15, 1e-139))
    assert npx.gammainccinv(small, 1e-18).item() == pytest.approx(5.118010355486143, rel=1e-12)
    assert npx.gammaincinv(least, 0.50017).item() == 0
