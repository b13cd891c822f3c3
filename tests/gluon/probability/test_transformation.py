"""Transformations, the tables of them and distributions of transformed numbers."""

import numpy as onp
import pytest
import scipy.special
import scipy.stats as stats

import mxnet as mx
from mxnet.gluon import probability as mgp
from mxnet.gluon.probability.distributions import constraint
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

X = onp.array([[0.2, 1.5], [2.0, 0.7]])


def array(x):
    return mx.np.array(x, dtype="float64")


SMOOTH = {
    "exp": (mgp.ExpTransform(), onp.exp, 1),
    "affine": (mgp.AffineTransform(1.0, -2.0), lambda x: 1 - 2 * x, -1),
    "affine of arrays": (
        mgp.AffineTransform(array([1.0, 2.0]), array([0.5, 3.0])),
        lambda x: onp.array([1.0, 2.0]) + onp.array([0.5, 3.0]) * x,
        1,
    ),
    "power": (mgp.PowerTransform(3.0), lambda x: x**3, 1),
    "negative power": (mgp.PowerTransform(array(-0.5)), lambda x: x**-0.5, -1),
    "sigmoid": (mgp.SigmoidTransform(), scipy.special.expit, 1),
    "composed": (
        mgp.ComposeTransform([mgp.AffineTransform(0.5, -1.0), mgp.ExpTransform(), mgp.PowerTransform(2.0)]),
        lambda x: onp.exp(0.5 - x) ** 2,
        -1,
    ),
    "inverse": (mgp.ExpTransform().inv, onp.log, 1),
    "nothing": (mgp.ComposeTransform([]), lambda x: x, 1),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_values_inverses_and_slopes(name):
    transform, function, sign = SMOOTH[name]
    y = transform(array(X))
    assert_almost_equal(y, function(X), rtol=1e-14)
    assert_almost_equal(transform.inv(y), X, rtol=1e-12)
    assert_almost_equal(transform.inv.inv(array(X)), function(X), rtol=1e-14)
    assert transform.bijective and transform.inv.bijective and transform.event_dim == 0
    assert (mx.np.array(transform.sign).asnumpy() == sign).all()
    assert (mx.np.array(transform.inv.sign).asnumpy() == sign).all()
    # Central differences of step 1e-5 are exact to about 1e-10 of the third derivative.
    slope = (function(X + 1e-5) - function(X - 1e-5)) / 2e-5
    found = transform.log_det_jacobian(array(X), y)
    assert_almost_equal(found, onp.log(abs(slope)), rtol=1e-7, atol=1e-7)
    assert_almost_equal(transform.inv.log_det_jacobian(y, array(X)), -onp.log(abs(slope)), rtol=1e-7, atol=1e-7)
    check_numeric_gradient(transform, [X], rtol=1e-6, atol=1e-8)


def test_softmax_and_absolute_value_are_no_bijections():
    softmax, absolute = mgp.SoftmaxTransform(), mgp.AbsTransform()
    assert softmax.event_dim == 1 and not softmax.bijective and not absolute.bijective
    assert_almost_equal(softmax(array(X)), scipy.special.softmax(X, axis=-1), rtol=1e-14)
    assert_almost_equal(softmax(softmax.inv(softmax(array(X)))), softmax(array(X)), rtol=1e-14)
    assert_almost_equal(absolute(array(-X)), X, rtol=0, atol=0)
    for transform in (softmax, absolute):
        with pytest.raises(NotImplementedError, match="log_det_jacobian"):
            transform.log_det_jacobian(array(X), array(X))
        with pytest.raises(NotImplementedError, match="not monotonic"):
            _ = transform.sign


def test_event_axes_of_composed_transformations():
    transform = mgp.ComposeTransform([mgp.ExpTransform(), mgp.AffineTransform(0.0, 2.0, event_dim=1)])
    assert transform.event_dim == 1
    x = array(X)
    assert_almost_equal(transform.log_det_jacobian(x, transform(x)), X.sum(axis=-1) + 2 * onp.log(2), rtol=1e-14)


def test_sigmoid_stays_inside():
    for dtype in ("float32", "float64"):
        y = mgp.SigmoidTransform()(mx.np.array([-2000.0, 2000.0], dtype=dtype))
        assert onp.isfinite(mgp.SigmoidTransform().inv(y).asnumpy()).all()


def test_what_is_no_transformation():
    with pytest.raises(TypeError, match="`parts` must hold transformations, found float"):
        mgp.ComposeTransform([1.0])
    with pytest.raises(TypeError, match="`transforms` must be transformations, found float"):
        mgp.TransformedDistribution(mgp.Normal(), 1.0)
    with pytest.raises(TypeError, match="`base_dist` must be a distribution, found int"):
        mgp.TransformedDistribution(1, mgp.ExpTransform())
    for call in (lambda t: t(1.0), lambda t: t.inv(1.0)):
        with pytest.raises(NotImplementedError, match="must define"):
            call(mgp.Transformation())


class Stretch(mgp.TransformBlock):
    bijective, sign = True, 1

    def __init__(self):
        super().__init__()
        self.factor = mx.gluon.Parameter(shape=(1,), init="ones", dtype="float64")

    def _forward_compute(self, x):
        return x * self.factor.data()

    def _inverse_compute(self, y):
        return y / self.factor.data()

    def log_det_jacobian(self, x, y):
        return mx.np.log(mx.np.abs(self.factor.data())) + mx.np.zeros_like(x)


def test_block_with_parameters_is_a_transformation():
    stretch, seen = Stretch(), []
    stretch.initialize()
    stretch.factor.set_data(array([2.0]))
    stretch.register_forward_hook(lambda block, args, out: seen.append(out.shape))
    ours = mgp.TransformedDistribution(mgp.Normal(array(0.0), array(1.0)), stretch)
    assert_almost_equal(ours.log_prob(array(X)), stats.norm(0, 2).logpdf(X), rtol=1e-13)
    with mx.autograd.record():
        total = ours.log_prob(array(X)).sum()
    total.backward()
    assert_almost_equal(stretch.factor.grad(), [(X**2 / 8 - 0.5).sum()], rtol=1e-12)
    assert list(stretch.collect_params()) == ["factor"] and seen
    with pytest.raises(TypeError):
        mgp.TransformBlock(prefix="a")


def test_transformed_distributions():
    normal = mgp.Normal(array([0.2, -0.5]), array([1.5, 0.5]))
    twin = stats.norm([0.2, -0.5], [1.5, 0.5])
    lognormal = mgp.TransformedDistribution(normal, mgp.ExpTransform())
    expected = stats.lognorm([1.5, 0.5], 0, onp.exp([0.2, -0.5]))
    p = onp.array([[0.1], [0.5], [0.9]])
    assert_almost_equal(lognormal.log_prob(array(X)), expected.logpdf(X), rtol=1e-12, atol=1e-14)
    assert_almost_equal(lognormal.cdf(array(X)), expected.cdf(X), rtol=1e-12)
    assert_almost_equal(lognormal.icdf(array(p)), expected.ppf(p), rtol=1e-12)
    assert (lognormal.log_prob(array([-1.0, 0.0])).asnumpy() == -onp.inf).all()
    falling = mgp.TransformedDistribution(normal, [mgp.AffineTransform(1.0, array([-2.0, 2.0])), mgp.ExpTransform()])
    signs = onp.array([-1.0, 1.0])
    y = onp.exp(1 + 2 * signs * X)
    assert_almost_equal(falling.cdf(array(y)), onp.where(signs > 0, twin.cdf(X), twin.sf(X)), rtol=1e-12)
    assert_almost_equal(falling.cdf(falling.icdf(array(p))), onp.broadcast_to(p, (3, 2)), rtol=1e-12)
    assert_almost_equal(falling.log_prob(array(y)), twin.logpdf(X) - onp.log(2 * y), rtol=1e-12)
    assert falling.has_grad and falling.sample((4, 2)).shape == falling.sample_n(4).shape == (4, 2)
    assert falling.broadcast_to((3, 2)).sample().shape == (3, 2)
    samples = falling.sample_n(100)
    assert falling.support.check(samples) is samples
    with pytest.raises(ValueError, match=r"found -1\.0"):
        mgp.TransformedDistribution(normal, mgp.ExpTransform(), validate_args=True).log_prob(array([-1.0, 1.0]))


def test_transformations_of_events():
    ours = mgp.TransformedDistribution(mgp.Normal(mx.np.zeros((4, 3)), 1.0), mgp.SoftmaxTransform())
    assert ours.event_dim == 1
    samples = ours.sample((2, 4))
    assert samples.shape == (2, 4, 3) and ours.sample_n(5).shape == (5, 4, 3)
    assert constraint.Simplex().check(samples) is samples
    assert ours.broadcast_to((2, 4)).sample().shape == (2, 4, 3)
    stretched = mgp.TransformedDistribution(
        mgp.Normal(array(onp.zeros((4, 3))), 1.0), mgp.AffineTransform(0.0, 2.0, event_dim=1)
    )
    x = onp.ones((4, 3))
    assert_almost_equal(stretched.log_prob(array(x)), stats.norm(0, 2).logpdf(x).sum(axis=-1), rtol=1e-13)


@pytest.mark.parametrize("name", ["exp", "affine of arrays", "sigmoid"])
def test_samples_move_with_the_parameters(name):
    transform = SMOOTH[name][0]

    def with_seed(loc, scale):
        mx.random.seed(8)
        return mgp.TransformedDistribution(mgp.Normal(loc, scale), transform).sample_n(3)

    check_numeric_gradient(with_seed, [[0.5, -1.0], [2.0, 0.7]], rtol=1e-6, atol=1e-8)


C = constraint
DOMAINS = [
    C.Real(),
    C.Positive(),
    C.NonNegative(),
    C.GreaterThan(2.0),
    C.GreaterThanEq(-1.0),
    C.LessThan(2.0),
    C.LessThanEq(-1.0),
    C.UnitInterval(),
    C.Interval(-1.0, 3.0),
    C.OpenInterval(2.0, 3.0),
    C.HalfOpenInterval(0.0, 5.0),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: type(domain).__name__)
def test_tables_lead_to_the_domain(domain):
    x = array([-5.0, 0.0, 5.0])
    for table in (mgp.biject_to, mgp.transform_to):
        transform = table(domain)
        y = transform(x)
        assert transform.bijective and domain.check(y) is y
        assert len(set(y.asnumpy().tolist())) == 3
        assert_almost_equal(transform.inv(y), x, rtol=1e-10, atol=1e-12)


def test_tables_take_more():
    assert constraint.Simplex().check(mgp.transform_to(constraint.Simplex())(array(X))).shape == (2, 2)
    with pytest.raises(NotImplementedError, match="Simplex"):
        mgp.biject_to(constraint.Simplex())

    class Even(constraint.Constraint):
        def check(self, value):
            return value

    table = mgp.domain_map()

    @table.register(Even)
    def factory(found):
        return mgp.AffineTransform(0.0, 2.0)

    assert factory(None)(1.0) == table(Even())(1.0) == 2
    table.register(Even(), lambda found: mgp.ExpTransform())
    assert isinstance(table(Even()), mgp.ExpTransform)
    with pytest.raises(TypeError, match=r"domain_map\.register"):
        table.register(int, factory)
