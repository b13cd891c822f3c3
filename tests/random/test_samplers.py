"""Samplers: distributions, parameters, gradients, and the stream they draw from."""

import numpy as onp
import pytest
from scipy import special, stats

import mxnet as mx
from mxnet import _core, autograd, np, npx

N = 50_000


@pytest.fixture(autouse=True)
def _seeded():
    mx.random.seed(20)


def follows(sample, distribution):
    """Kolmogorov and Smirnov's test; with a fixed seed it always gives the same answer."""
    assert stats.kstest(sample.asnumpy().ravel().astype("float64"), distribution.cdf).pvalue > 1e-3


CONTINUOUS = {
    "uniform": ((-2.0, 3.0), stats.uniform(-2, 5)),
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "exponential": ((3.0,), stats.expon(scale=3)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "laplace": ((1.0, 2.0), stats.laplace(1, 2)),
    "logistic": ((1.0, 2.0), stats.logistic(1, 2)),
    "gamma": ((2.5, 2.0), stats.gamma(2.5, scale=2)),
    "standard_gamma": ((0.5,), stats.gamma(0.5)),
    "lognormal": ((0.5, 0.75), stats.lognorm(0.75, scale=onp.exp(0.5))),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "weibull": ((1.7,), stats.weibull_min(1.7)),
    "pareto": ((3.0,), stats.lomax(3)),
    "power": ((2.5,), stats.powerlaw(2.5)),
    "standard_t": ((4.0,), stats.t(4)),
    "triangular": ((-1.0, 2.0, 4.0), stats.triang(0.6, loc=-1, scale=5)),
    "wald": ((2.0, 3.0), stats.invgauss(2 / 3, scale=3)),
    "noncentral_chisquare": ((3.0, 2.0), stats.ncx2(3, 2)),
    "noncentral_f": ((5.0, 9.0, 2.0), stats.ncf(5, 9, 2)),
    "chisquare": ((3.0,), stats.chi2(3)),
    "beta": ((2.0, 0.7), stats.beta(2, 0.7)),
    "f": ((5.0, 7.0), stats.f(5, 7)),
    "random": ((), stats.uniform()),
    "random_sample": ((), stats.uniform()),
    "standard_normal": ((), stats.norm()),
    "standard_exponential": ((), stats.expon()),
    "standard_cauchy": ((), stats.cauchy()),
    "vonmises": ((0.0, 2.5), stats.vonmises(2.5)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(CONTINUOUS))
def test_samples_follow_their_distribution(name, dtype):
    parameters, distribution = CONTINUOUS[name]
    sample = getattr(np.random, name)(*parameters, size=(N,), dtype=dtype)
    assert sample.dtype == dtype
    follows(sample, distribution)


@pytest.mark.parametrize("name", sorted(n for n in CONTINUOUS if CONTINUOUS[n][0]))
def test_array_parameters_follow_the_same_distribution(name):
    parameters, distribution = CONTINUOUS[name]
    arrays = [np.array([[p], [p]]) for p in parameters]
    sample = getattr(np.random, name)(*arrays, size=(2, N // 2))
    assert sample.shape == (2, N // 2)
    assert sample.dtype == "float32"
    follows(sample, distribution)


def test_parameters_broadcast_and_each_element_has_its_own():
    low, high = np.array([[0.0], [10.0]]), np.array([1.0, 2.0, 3.0]) + 10
    for _ in range(20):
        x = np.random.uniform(low, high).asnumpy()
        assert x.shape == (2, 3)
        assert (x >= low.asnumpy()).all()
        assert (x <= high.asnumpy()).all()
    means = np.random.normal(np.array([0.0, 100.0]), 1.0, size=(10_000, 2)).asnumpy().mean(0)
    # Five standard errors.
    assert onp.allclose(means, [0, 100], rtol=0, atol=0.05)


def test_size_must_hold_what_the_parameters_broadcast_to():
    with pytest.raises(ValueError, match=r"\(3,\)[\s\S]*\(2,\)"):
        np.random.normal(np.zeros((3,)), 1.0, size=(2,))
    with pytest.raises(ValueError, match=r"-1"):
        np.random.normal(size=(-1,))


@pytest.mark.parametrize("name", ["uniform", "normal", "gumbel", "laplace", "logistic"])
def test_location_and_scale_get_gradients(name):
    a, b = np.array([1.0, 2.0, 3.0]), np.array([4.0])
    a.attach_grad()
    b.attach_grad()
    with autograd.record():
        y = getattr(np.random, name)(a, b, size=(2, 3))
    y.backward()
    if name == "uniform":
        share = (y.asnumpy() - a.asnumpy()) / (4 - a.asnumpy())
        assert onp.allclose(a.grad.asnumpy(), (1 - share).sum(0), atol=1e-5)
        assert onp.allclose(b.grad.asnumpy(), [share.sum()], atol=1e-5)
    else:
        assert onp.array_equal(a.grad.asnumpy(), [2, 2, 2])
        assert onp.allclose(b.grad.asnumpy(), [((y.asnumpy() - a.asnumpy()) / 4).sum()], rtol=1e-5, atol=1e-5)


def test_exponential_and_gamma_get_gradients_of_their_scale():
    scale = np.array([1.0, 5.0])
    scale.attach_grad()
    for draw in (lambda: np.random.exponential(scale), lambda: np.random.gamma(2.0, scale)):
        with autograd.record():
            y = draw()
        y.backward()
        assert onp.allclose(scale.grad.asnumpy(), y.asnumpy() / scale.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: np.random.normal(0.0, -1.0), "`scale` must be at least 0, found -1"),
        (lambda: np.random.exponential(-2.0), "`scale` must be at least 0, found -2"),
        (lambda: np.random.gamma(-0.5), "`shape` must be at least 0, found -0.5"),
        (lambda: np.random.poisson(-1.0), "`lam` must be from 0 to .*, found -1"),
        (lambda: np.random.poisson(1e30), "`lam` must be from 0 to 9.2233720064847708e18, found 10{30}"),
        (lambda: np.random.beta(0.0, 1.0), "`a` must be above 0, found 0"),
        (lambda: np.random.binomial(2.5, 0.5), "`n` must be a whole number of at least 0, found 2.5"),
        (lambda: np.random.binomial(2, 1.5), r"`p` must be in \[0, 1\], found 1.5"),
        (lambda: np.random.geometric(0.0), r"`p` must be in \(0, 1\], found 0"),
        (lambda: np.random.negative_binomial(0.0, 0.5), "`n` must be above 0, found 0"),
        (lambda: np.random.triangular(0.0, 3.0, 2.0), "found 0, 3, 2"),
        (lambda: np.random.weibull(-1.0), "`a` must be above 0, found -1"),
        (lambda: np.random.chisquare(0.0), "`df` must be above 0, found 0"),
        (lambda: np.random.hypergeometric(5, -1, 2), "`nbad` must be a whole number .* found -1"),
        (lambda: np.random.hypergeometric(5, 4, 10), "found 10 of 5 and 4"),
        (lambda: np.random.logseries(1.0), r"`p` must be in \[0, 1\), found 1"),
        (lambda: np.random.zipf(1.0), "`a` must be above 1, found 1"),
        (lambda: np.random.vonmises(0.0, -2.0), "`kappa` must be at least 0, found -2"),
        (
            lambda: np.random.normal(0.0, np.array([1.0, -3.0])).asnumpy(),
            "`scale` must be at least 0, found -3 at element 1",
        ),
        (lambda: np.random.gamma(np.array([1.0, -3.0])).asnumpy(), "`shape` must be at least 0, found -3 at element 1"),
        (
            lambda: np.random.poisson(np.array([[1.0], [-2.0]])).asnumpy(),
            "`lam` must be from 0 to .*, found -2 at element 1",
        ),
        (lambda: np.random.binomial(np.array([3]), np.array([0.5, 1.5])).asnumpy(), "`p` .* found 1.5 at element 1"),
        (lambda: npx.random.bernoulli(np.array([0.5, 2.0])).asnumpy(), "`prob` .* found 2 at element 1"),
        (lambda: np.random.dirichlet([1.0, 0.0]).asnumpy(), "`alpha` must be above 0, found 0 at element 1"),
        (lambda: npx.random.bernoulli(1.5), r"`prob` must be in \[0, 1\], found 1.5"),
        (lambda: npx.random.bernoulli(0.5, 0.0), "both given"),
        (lambda: npx.random.bernoulli(), "neither"),
        (lambda: np.random.randint(5, 5), "low >= high: 5 and 5"),
        (lambda: np.random.randint(0, 300, dtype="uint8"), "high is out of bounds for uint8"),
        (lambda: np.random.randint(-1, 3, dtype="uint8"), "low is out of bounds for uint8"),
        (lambda: np.random.multinomial(3, np.array([0.5, 1.0, 0.1])), r"is 1.5, above 1"),
        (lambda: np.random.multinomial(-3, np.array([0.5, 0.5])), "-3"),
        (lambda: np.random.multinomial(3, np.array([-0.5, 0.5])), r"probability 0 is -0.5"),
        (lambda: np.random.default_rng(1).multinomial(3, []), "at least 1 axis"),
        (lambda: np.random.choice(2.5), "integer"),
    ],
)
def test_impossible_parameters_are_refused_with_their_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_dtypes_that_hold_no_samples_are_refused():
    with pytest.raises(TypeError, match="int32"):
        np.random.uniform(dtype="int32")
    with pytest.raises(TypeError, match="float32"):
        np.random.randint(3, dtype="float32")
    with pytest.raises(TypeError, match="integers"):
        np.random.randint(2.5)
    with pytest.raises(TypeError, match="real"):
        np.random.normal(np.array([1j]))
    with pytest.raises(OverflowError, match="finite"):
        np.random.uniform(-1.7e308, 1.7e308)


def test_half_precision_samples_are_rounded_float32_samples():
    for dtype in ("float16", "bfloat16"):
        mx.random.seed(3)
        narrow = np.random.normal(size=(1000,), dtype=dtype)
        mx.random.seed(3)
        wide = np.array(np.random.normal(size=(1000,)), dtype=dtype)
        assert narrow.dtype == wide.dtype
        assert narrow.tolist() == wide.tolist()


def test_default_dtype_follows_the_setting():
    assert np.random.uniform().dtype == "float32"
    assert np.random.rand(2).dtype == "float32"
    assert np.random.normal(np.zeros((2,), "float64")).dtype == "float64"
    assert np.random.normal(np.zeros((2,), "int32")).dtype == "float32"
    before = _core.set_numpy_promotion(True)
    try:
        assert np.random.uniform().dtype == "float64"
    finally:
        _core.set_numpy_promotion(before)


def test_shapes():
    for size, shape in ((None, ()), (3, (3,)), ((2, 3), (2, 3)), ((), ()), ((0, 2), (0, 2)), ([4, 1], (4, 1))):
        assert np.random.normal(size=size).shape == shape
        assert np.random.randint(9, size=size).shape == shape
        assert np.random.poisson(3.0, size=size).shape == shape
        assert npx.random.bernoulli(0.5, size=size).shape == shape
    assert np.random.rand().shape == ()
    assert np.random.rand(2, 3).shape == (2, 3)
    assert np.random.randn(4, dtype="float64").dtype == "float64"
    assert npx.random.uniform_n(np.zeros((2, 1)), np.ones((3,)), batch_shape=(5, 4)).shape == (5, 4, 2, 3)
    assert npx.random.normal_n(np.zeros((2,)), batch_shape=5).shape == (5, 2)
    assert npx.random.normal_n(0.0, 1.0).shape == ()


def test_out_receives_the_samples():
    out = np.zeros((3, 2), "float64")
    mx.random.seed(1)
    result = np.random.normal(0.0, 1.0, (3, 2), "float64", None, out)
    assert result is out
    mx.random.seed(1)
    assert out.tolist() == np.random.normal(size=(3, 2), dtype="float64").tolist()
    with pytest.raises(ValueError, match=r"\(3, 2\)[\s\S]*\(2, 2\)"):
        np.random.normal(size=(2, 2), out=out)


# ---- integers ----


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_randint_reaches_the_ends_of_every_dtype(dtype):
    info = onp.iinfo(dtype)
    x = np.random.randint(info.min, info.max, size=(1000,), dtype=dtype).asnumpy()
    assert x.dtype == dtype
    assert stats.kstest((x.astype("float64") - info.min) / (info.max - info.min + 1.0), "uniform").pvalue > 1e-3
    near = np.random.randint(info.max - 2, info.max, size=(200,), dtype=dtype).asnumpy()
    assert set(near.tolist()) == {info.max - 2, info.max - 1}


def test_randint_is_uniform_and_excludes_the_upper_end():
    counts = onp.bincount(np.random.randint(7, size=(70_000,)).asnumpy(), minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > 1e-3
    assert np.random.randint(3, 4).item() == 3
    assert np.random.randint(2, dtype="bool", size=(50,)).dtype == "bool"
    assert np.random.randint(5).dtype == "int64"


def test_randint_takes_arrays_of_bounds():
    low, high = np.array([[0], [100]]), np.array([101, 1000, 2**40])
    for _ in range(30):
        x = np.random.randint(low, high).asnumpy()
        assert x.shape == (2, 3)
        assert (x >= low.asnumpy()).all()
        assert (x < high.asnumpy()).all()
    with pytest.raises(ValueError, match="element 1: 5 and 5"):
        np.random.randint(np.array([0, 5]), np.array([1, 5])).asnumpy()


def test_poisson_has_its_probabilities():
    for mean in (0.0, 0.8, 4.0, 60.0):
        x = np.random.poisson(mean, size=(N,)).asnumpy()
        assert x.dtype == "int64"
        top = int(mean + 3 * mean**0.5) + 1
        expected = stats.poisson(mean).pmf(onp.arange(top))
        expected = onp.append(expected, 1 - expected.sum()) * N
        found = onp.bincount(onp.minimum(x, top), minlength=top + 1)
        keep = expected > 5
        assert found[expected < 1e-9].sum() == 0
        spread = ((found - expected)[keep] ** 2 / expected[keep]).sum()
        assert stats.chi2(max(keep.sum() - 1, 1)).sf(spread) > 1e-3
    lams = np.array([1.0, 50.0])
    means = np.random.poisson(lams, size=(N, 2)).asnumpy().mean(0)
    # Five standard errors: the variance is the mean.
    assert (abs(means - [1, 50]) < 5 * onp.sqrt([1 / N, 50 / N])).all()


@pytest.mark.parametrize(
    ("name", "parameters", "distribution"),
    [
        ("geometric", (0.3,), stats.geom(0.3)),
        ("negative_binomial", (2.5, 0.4), stats.nbinom(2.5, 0.4)),
        ("binomial", (20, 0.25), stats.binom(20, 0.25)),
        ("binomial", (60, 0.3), stats.binom(60, 0.3)),
        ("binomial", (1000, 0.9), stats.binom(1000, 0.9)),
        ("binomial", (1, 0.5), stats.binom(1, 0.5)),
        ("binomial", (10**7, 0.3), stats.binom(10**7, 0.3)),
        ("negative_binomial", (0.3, 0.02), stats.nbinom(0.3, 0.02)),
        ("hypergeometric", (7, 11, 5), stats.hypergeom(18, 7, 5)),
        ("hypergeometric", (100, 40, 90), stats.hypergeom(140, 100, 90)),
        ("hypergeometric", (4000, 3000, 2000), stats.hypergeom(7000, 4000, 2000)),
        ("zipf", (2.5,), stats.zipf(2.5)),
        ("zipf", (4.0,), stats.zipf(4.0)),
        ("logseries", (0.7,), stats.logser(0.7)),
        ("logseries", (0.99,), stats.logser(0.99)),
    ],
)
def test_counts_have_their_probabilities(name, parameters, distribution):
    sampler = getattr(np.random, name)
    for given in (parameters, [np.array([p]) for p in parameters]):
        x = sampler(*given, size=(N,)).asnumpy()
        assert x.dtype == "int64"
        # Classes of about equal probability; what lies above counts as one.
        edges = onp.unique(distribution.ppf(onp.linspace(0, 0.999, 80)[1:]))
        expected = onp.diff(distribution.cdf(edges), prepend=0, append=1) * N
        found = onp.bincount(onp.searchsorted(edges, x), minlength=len(edges) + 1)
        keep = expected > 5
        spread = ((found - expected)[keep] ** 2 / expected[keep]).sum()
        assert stats.chi2(max(keep.sum() - 1, 1)).sf(spread) > 1e-3


def test_binomial_parameters_broadcast():
    n, p = np.array([[10], [100]]), np.array([0.0, 0.5, 1.0])
    x = np.random.binomial(n, p, size=(2000, 2, 3)).asnumpy()
    assert (x[..., 0] == 0).all()
    assert (x[..., 2] == [10, 100]).all()
    # Five standard errors.
    assert onp.allclose(x[..., 1].mean(0), [5, 50], atol=5 * (25 / 2000) ** 0.5)


def test_a_sure_success_takes_one_try():
    assert np.random.geometric(1.0, size=(50,)).tolist() == [1] * 50


def test_transformed_samples_have_gradients():
    a = np.array([0.5, 2.0, 3.0], dtype="float64")
    a.attach_grad()
    for name in ("weibull", "pareto", "power", "rayleigh", "lognormal"):
        with autograd.record():
            y = getattr(np.random, name)(a, size=(2, 3))
        y.backward()
        y, v = y.asnumpy(), a.asnumpy()
        slope = {
            "weibull": -y * onp.log(y) / v,
            "pareto": -(y + 1) * onp.log1p(y) / v,
            "power": -y * onp.log(y) / v,
            "rayleigh": y / v,
            "lognormal": y,
        }[name]
        assert onp.allclose(a.grad.asnumpy(), slope.sum(0), rtol=1e-9), name


def test_bernoulli_has_its_probability():
    # Four standard deviations of a share of 0.3 in N.
    near = 4 * (0.21 / N) ** 0.5
    logit = float(onp.log(0.3 / 0.7))
    for draw in (
        lambda: npx.random.bernoulli(0.3, size=(N,)),
        lambda: npx.random.bernoulli(np.full((N,), 0.3)),
        lambda: npx.random.bernoulli(logit=logit, size=(N,)),
        lambda: npx.random.bernoulli(logit=np.full((N,), logit), dtype="int32"),
        lambda: npx.random.bernoulli(0.3, size=(N,), dtype="bool"),
    ):
        x = draw().asnumpy()
        assert set(onp.unique(x).tolist()) == {0, 1}
        assert abs(x.mean() - 0.3) < near
    assert npx.random.bernoulli(0.3).dtype == "float32"
    assert npx.random.bernoulli(0.0, size=(99,)).sum().item() == 0
    assert npx.random.bernoulli(1.0, size=(99,)).sum().item() == 99


def test_multinomial_counts_add_up_and_have_their_probabilities():
    p = [0.2, 0.0, 0.5, 0.3]
    x = np.random.multinomial(10, np.array(p), size=(500, 4)).asnumpy()
    assert x.shape == (500, 4, 4)
    assert (x.sum(-1) == 10).all()
    assert (x[..., 1] == 0).all()
    assert stats.chisquare(x.sum((0, 1))[[0, 2, 3]], onp.array([0.2, 0.5, 0.3]) * 20_000).pvalue > 1e-3
    assert np.random.multinomial(7, p).shape == (4,)
    assert np.random.multinomial(0, p).tolist() == [0, 0, 0, 0]


def test_categorical_draws_classes_of_rows():
    rows = np.array([[[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]]])
    classes = npx.random.categorical(rows, shape=(4000,))
    assert classes.dtype == "int32"
    assert classes.shape == (1, 2, 4000)
    first, second = classes.asnumpy()[0]
    assert stats.chisquare(onp.bincount(first, minlength=3), onp.array([0.2, 0.3, 0.5]) * 4000).pvalue > 1e-3
    assert (second == 1).all()
    assert npx.random.categorical(rows).shape == (1, 2)
    assert npx.random.categorical(np.array([0.0, 3.0]), dtype="int64").item() == 1
    with pytest.raises(ValueError, match=r"probability 0 of row 1 is -1"):
        npx.random.categorical(np.array([[1.0, 0.0], [-1.0, 2.0]])).asnumpy()
    with pytest.raises(ValueError, match=r"2 probabilities of row 0 are all 0"):
        npx.random.categorical(np.zeros((1, 2))).asnumpy()
    with pytest.raises(TypeError, match="float32"):
        npx.random.categorical(rows, dtype="float32")


def test_categorical_gives_differentiable_log_probabilities():
    p = np.array([[0.25, 0.75], [0.5, 0.5]])
    p.attach_grad()
    with autograd.record():
        classes, logs = npx.random.categorical(p, shape=3, get_prob=True)
        total = logs.sum()
    total.backward()
    drawn, values = classes.asnumpy(), p.asnumpy()
    assert onp.allclose(logs.asnumpy(), onp.log(onp.take_along_axis(values, drawn, 1)), rtol=1e-6)
    counts = onp.stack([(drawn == c).sum(1) for c in (0, 1)], 1)
    assert onp.allclose(p.grad.asnumpy(), counts / values, rtol=1e-6)


def test_npx_multinomial_counts():
    counts = npx.random.multinomial(6, np.array([0.5, 0.25, 0.25]), shape=(4,))
    assert counts.dtype == "int32"
    assert counts.shape == (4, 3)
    assert counts.sum(1).tolist() == [6, 6, 6, 6]


def test_dirichlet_shares_sum_to_one_and_have_their_distribution():
    x = np.random.dirichlet([0.5, 2.0, 3.5], size=(2 * N,))
    assert x.shape == (2 * N, 3)
    assert onp.allclose(x.asnumpy().sum(-1), 1, atol=1e-6)
    for i, a in enumerate((0.5, 2.0, 3.5)):
        follows(x[:, i], stats.beta(a, 6 - a))
    assert np.random.dirichlet(np.ones((4,), "float64")).dtype == "float64"


# ---- orders ----


def test_permutation_and_shuffle_keep_the_slices():
    assert sorted(np.random.permutation(50).tolist()) == list(range(50))
    assert np.random.permutation(0).shape == (0,)
    x = np.array(onp.arange(60).reshape(20, 3))
    moved = np.random.permutation(x)
    assert moved.tolist() != x.tolist()
    assert sorted(map(tuple, moved.tolist())) == sorted(map(tuple, x.tolist()))
    view = np.array(onp.arange(60).reshape(20, 3))
    assert np.random.shuffle(view[:, 1:]) is None
    assert view[:, 0].tolist() == list(range(0, 60, 3))
    assert sorted(map(tuple, view[:, 1:].tolist())) == sorted(map(tuple, x[:, 1:].tolist()))
    assert view.tolist() != x.tolist()


def test_every_order_is_equally_likely():
    counts = {}
    for _ in range(3000):
        order = tuple(np.random.permutation(3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_orders_of_what_has_none_are_refused():
    with pytest.raises(ValueError, match="0-d"):
        np.random.shuffle(np.array(3.0))
    with pytest.raises(TypeError, match="tuple"):
        np.random.shuffle((1, 2))
    with pytest.raises(IndexError, match="integer"):
        np.random.permutation(2.5)
    assert np.random.permutation(-2).shape == (0,)


# ---- choices ----


def test_choice_takes_elements_with_their_probabilities():
    items, p = np.array([10, 20, 30, 40]), [0.1, 0.0, 0.6, 0.3]
    drawn = np.random.choice(items, size=(100, 200), p=p).asnumpy()
    assert drawn.shape == (100, 200)
    counts = [(drawn == item).sum() for item in (10, 20, 30, 40)]
    assert counts[1] == 0
    assert stats.chisquare(onp.array(counts)[[0, 2, 3]], onp.array([0.1, 0.6, 0.3]) * 20_000).pvalue > 1e-3
    even = onp.bincount(np.random.choice(5, 20_000).asnumpy(), minlength=5)
    assert len(even) == 5
    assert stats.chisquare(even).pvalue > 1e-3
    assert np.random.choice(items).shape == ()
    assert np.random.choice(7, (2, 3)).dtype == "int64"
    assert np.random.choice(items, 0).shape == (0,)


def test_choice_without_replacement_repeats_nothing():
    assert sorted(np.random.choice(20, 20, replace=False).tolist()) == list(range(20))
    chosen = np.random.choice(np.array([1.5, 2.5, 3.5]), (2,), False).tolist()
    assert len(set(chosen)) == 2
    weighted = np.random.choice(4, 3, replace=False, p=[0.5, 0.25, 0.0, 0.25]).tolist()
    assert sorted(weighted) == [0, 1, 3]
    # The first of a weighted choice has the weights' probabilities.
    firsts = [np.random.choice(3, 2, replace=False, p=[0.7, 0.2, 0.1]).tolist()[0] for _ in range(3000)]
    assert stats.chisquare(onp.bincount(firsts, minlength=3), onp.array([0.7, 0.2, 0.1]) * 3000).pvalue > 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: np.random.choice(3, 4, replace=False), "cannot take 4 of 3"),
        (lambda: np.random.choice(0, 1), "0 elements"),
        (lambda: np.random.choice(-1), "-1 elements"),
        (lambda: np.random.choice(np.zeros((2, 2))), "one axis"),
        (lambda: np.random.choice(3, p=[0.5, 0.5]), r"shape \(3,\)"),
        (lambda: np.random.choice(2, p=[0.5, 0.6]), "sum to 1 but to 1.1"),
        (lambda: np.random.choice(2, p=[1.5, -0.5]), "probability 0 is 1.5"),
        (lambda: np.random.choice(3, 2, False, [1.0, 0.0, 0.0]), "only 1 have"),
    ],
)
def test_impossible_choices_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- the stream ----


def draws():
    return [
        np.random.uniform(size=(1000,)),
        np.random.normal(size=(999,), dtype="float64"),
        np.random.randint(10**12, size=(1001,)),
        np.random.poisson(3.0, size=(1001,)),
        np.random.gamma(0.3, size=(1001,)),
        np.random.permutation(501),
        np.random.multinomial(5, [0.5, 0.5], size=300),
        npx.random.bernoulli(0.5, size=(1001,)),
    ]


def test_the_same_seed_gives_the_same_numbers_and_another_does_not():
    def run(seed):
        mx.random.seed(seed)
        return [x.asnumpy().tobytes() for x in draws()]

    assert run(5) == run(5)
    assert all(a != b for a, b in zip(run(5), run(6), strict=True))
    assert len(set(run(7))) == 8


def test_numbers_do_not_depend_on_threads_or_mode():
    before, mode = _core.num_threads(), _core.engine_mode()
    found = set()
    try:
        for threads in (1, 2, 3):
            for engine in ("adaptive", "async", "sync"):
                _core.set_num_threads(threads)
                _core.set_engine_mode(engine)
                mx.random.seed(11)
                arrays = [np.random.normal(size=(300_001,)), *draws()]
                found.add(b"".join(x.asnumpy().tobytes() for x in arrays))
    finally:
        _core.set_num_threads(before)
        _core.set_engine_mode(mode)
    assert len(found) == 1


def test_calls_draw_different_numbers():
    a, b = np.random.uniform(size=(1000,)), np.random.uniform(size=(1000,))
    # Two of 1000 24-bit numbers each agree by chance about once in 17 calls; five never do.
    assert len(set(a.tolist()) & set(b.tolist())) < 5
    pair = np.random.normal(size=(1000,)).asnumpy(), np.random.normal(size=(1000,)).asnumpy()
    assert abs(onp.corrcoef(*pair)[0, 1]) < 4 / 1000**0.5


def test_state_can_be_kept_and_restored():
    np.random.normal(size=(17,))
    state = np.random.get_state()
    first = np.random.uniform(size=(9,)).tolist()
    np.random.set_state(state)
    assert np.random.uniform(size=(9,)).tolist() == first
    assert state[0] == "Philox4x32-10" and isinstance(state, tuple)
    state = np.random.get_state(legacy=False)
    assert state["bit_generator"] == "Philox4x32-10"
    first = np.random.uniform(size=(9,)).tolist()
    np.random.set_state(state)
    assert np.random.uniform(size=(9,)).tolist() == first
    for foreign in ({"bit_generator": "PCG64"}, ("MT19937", 1, 2), ("Philox4x32-10", "1", 2), 5):
        with pytest.raises(ValueError, match="get_state"):
            np.random.set_state(foreign)


@pytest.mark.parametrize("seed", [-1, 2**32, 2**64, [1, -1], [2**32], [], 1.5, "a", [1.5], [[1]]])
def test_seeds_out_of_range_are_refused_with_numpys_class(seed):
    state = np.random.get_state()
    with pytest.raises((ValueError, TypeError)) as theirs:
        onp.random.seed(seed)
    for refused in (np.random.seed, np.random.RandomState):
        with pytest.raises(theirs.type):
            refused(seed)
    with pytest.raises((ValueError, TypeError), match="seed_state"):
        np.random.seed(seed)
    assert np.random.get_state() == state


def test_seeds_are_of_several_integers_or_of_chance():
    np.random.seed([1, 2])
    first = np.random.uniform(size=(3,)).tolist()
    np.random.seed(onp.array([1, 2]))
    assert np.random.uniform(size=(3,)).tolist() == first
    np.random.seed([2, 1])
    assert np.random.uniform(size=(3,)).tolist() != first
    np.random.seed()
    chance = np.random.get_state()
    np.random.seed(None)
    assert np.random.get_state() != chance


def test_seeds_are_64_bits():
    for seed in (0, 2**32 + 1, 2**64 - 1):
        mx.random.seed(seed)
        np.random.uniform()
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"between 0 and 2.*64 - 1, found {seed}"):
            mx.random.seed(seed)


@pytest.mark.parametrize("seed", [mx.random.seed, np.random.seed, npx.random.seed])
def test_the_seed_of_a_device_is_that_of_all(seed):
    seed(5)
    want = np.random.uniform(size=4)
    for device in (mx.cpu(), mx.cpu(1), mx.gpu(0), "all"):
        seed(5, device=device)
        assert (np.random.uniform(size=4) == want).all()
    with pytest.raises(ValueError, match="`device` must be 'all' or a Device, found 'cpu'"):
        seed(5, device="cpu")


# ---- tails and limits ----


def test_tails_reach_as_far_as_they_should():
    """Extremes of samples have distributions of their own: the largest of n is below q with probability F(q)^n."""
    n = 2_000_000
    for name, distribution in (("standard_normal", stats.norm()), ("standard_exponential", stats.expon())):
        for dtype in ("float32", "float64"):
            x = getattr(np.random, name)(size=n, dtype=dtype)
            low, high = x.min().item(), x.max().item()
            # Their numbers of further ones are exponential: between these with probability 0.9998.
            assert 1e-4 < n * distribution.sf(high) < 10
            if name == "standard_normal":
                assert 1e-4 < n * distribution.cdf(low) < 10
            else:
                assert 0 <= n * distribution.cdf(low) < 10


def test_uniform_numbers_stay_below_one_and_fill_their_bits():
    x = np.random.random(1_000_000).asnumpy()
    assert 0 <= x.min() < 2e-5
    assert 1 - 2e-5 < x.max() < 1
    assert (x * 2**24 == onp.floor(x * 2**24)).all()
    y = np.random.random(100_000, dtype="float64").asnumpy()
    assert (y * 2**53 == onp.floor(y * 2**53)).all()
    # The lowest bits are as random as the others.
    low = (y * 2**53).astype("int64") & 0xFF
    assert stats.chisquare(onp.bincount(low, minlength=256)).pvalue > 1e-3


def test_limits_of_parameters():
    assert np.random.gamma(0.0, 3.0).item() == 0
    assert np.random.normal(2.0, 0.0).item() == 2
    assert np.random.poisson(0.0, size=5).tolist() == [0] * 5
    assert np.random.binomial(0, 0.5).item() == 0
    assert np.random.hypergeometric(3, 0, 2, size=5).tolist() == [2] * 5
    assert np.random.logseries(0.0, size=5).tolist() == [1] * 5
    assert np.random.negative_binomial(2, 1.0, size=5).tolist() == [0] * 5
    assert np.random.zipf(2000.0).item() == 1
    assert onp.isfinite(np.random.gamma(1e300, size=50, dtype="float64").asnumpy()).all()
    # Concentrations from nothing to beyond what float64 resolves.
    follows(np.random.vonmises(0.0, 0.0, size=(N,), dtype="float64"), stats.uniform(-onp.pi, 2 * onp.pi))
    for kappa in (1e-7, 1e-3, 50.0):
        follows(np.random.vonmises(0.0, kappa, size=(N,), dtype="float64"), stats.vonmises(kappa))
    for kappa in (1e6, 1e12):
        follows(np.random.vonmises(0.0, kappa, size=(N,), dtype="float64"), stats.norm(0, kappa**-0.5))
    follows(np.random.beta(1e8, 1e8, size=(N,), dtype="float64"), stats.norm(0.5, (8e8) ** -0.5))
    small = np.random.beta(1e-4, 1e-4, size=(N,)).asnumpy()
    assert not onp.isnan(small).any()
    assert abs((small > 0.5).mean() - 0.5) < 4 * (0.25 / N) ** 0.5


def test_zipf_of_a_heavy_tail_has_its_probabilities():
    x = np.random.zipf(1.2, size=(N,)).asnumpy()
    expected = onp.arange(1.0, 31) ** -1.2 / special.zeta(1.2)
    expected = onp.append(expected, 1 - expected.sum()) * N
    found = onp.bincount(onp.minimum(x, 31), minlength=32)[1:]
    assert stats.chisquare(found, expected).pvalue > 1e-3
    # Half of the weight beyond any k is beyond 32 k.
    assert x.max() > 10**9
    assert (np.random.zipf(1.0001, size=(1000,)).asnumpy() > 0).all()


def test_angles_turn_around_their_centre():
    x = np.random.vonmises(3.0, 4.0, size=(N,), dtype="float64").asnumpy()
    assert (abs(x) <= onp.pi + 1e-12).all()
    follows(np.array((x - 3.0 + onp.pi) % (2 * onp.pi) - onp.pi, dtype="float64"), stats.vonmises(4.0))


def test_tries_that_no_integer_counts_are_the_largest_integers():
    for dtype, largest in (("int64", 2**63 - 1024), ("int32", 2**31 - 1), ("uint8", 255)):
        assert mx.np.random.geometric(1e-300, 5, dtype=dtype).tolist() == [largest] * 5


def test_shuffle_takes_lists_as_it_takes_arrays():
    items = list("abcdefgh")
    assert np.random.shuffle(items) is None
    assert items != sorted(items) == list("abcdefgh")
    for module in (np, onp):
        with pytest.raises(TypeError):
            module.random.shuffle((1, 2))
